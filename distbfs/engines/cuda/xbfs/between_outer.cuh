/* Outer edges, in both directions.
 *
 * Push: the frontier's vertices name what they find in other parts, each once a search.
 * Pull: when the inner graph was searched, unvisited vertices ask for their neighbours.  The
 * answers come in the order of the questions: a bit, set where the neighbour was visited before
 * this level, and so is the parent.
 * A box has what goes to one part: a word of its own (`size_of`), and items, local id there << 32
 * | local id of the parent.  Or it has questions, local ids there, in its first half, and who
 * asks, numbers here, in its second.  Answers have room of their own, as both are read with them.
 * Between many parts, boxes may have room for less than a level has for them.  Then it is sent in
 * rounds: a push leaves what found no place, whose bits of `sent` it takes back, to the next
 * round of the same frontier; a pull asks for a range of edges that has room.
 *
 * Source: Pan, Pearce, Owens 2018, Section V-B (normal vertices, uniquified). */
#ifndef DISTBFS_BETWEEN_OUTER_CUH
#define DISTBFS_BETWEEN_OUTER_CUH
#include "between.cuh"

/* Calls take(columns, numbers whose edges they are, ok, lane) by whole warps, EACH edges a
 * lane, for the outer edges of one normal vertex a lane where `some`; returns how many there
 * are of the warp.
 * edges: b itself, or IN_EDGES */
template <class Edges, class Take>
INLINE u32 each_outer(const Between &b, const Edges &edges, bool some, u32 v, u32 lane,
                      const Take &take) {
    u64 begin = some ? edges.outer_offsets[v - b.normals] : 0;
    u64 end = some ? edges.outer_offsets[v - b.normals + 1] : 0;
    if (b.is_short) {
        if (begin < b.edges_from) begin = b.edges_from;
        if (end > b.edges_to) end = b.edges_to;
        if (end < begin) end = begin;
    }
    const u32 length = (u32)(end - begin);
    const u32 upto = warp_scan(length, lane), total = __shfl_sync(ALL, upto, 31);
    const u32 before = upto - length;
    for (u32 e = 0; e < total; e += EACH * 32) {
        u32 column[EACH], from[EACH];
        bool ok[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const u32 me = e + i * 32 + lane;
            const u32 k = lane_before(before, me);
            const u64 row = __shfl_sync(ALL, begin, k);
            const u32 start = __shfl_sync(ALL, before, k);
            from[i] = __shfl_sync(ALL, v, k);
            ok[i] = me < total;
            const u64 at = row + (me - start);
            column[i] = ok[i] ? __ldcg(edges.outer_columns + at) : 0;
#if MASKED
            const u32 *seen = edges.outer_seen;
            /* mutant: [at >> 5] >> (at & 31) & 1 -> : test_between_domains_of_one_device */
            if (!SEES_ALL || seen) ok[i] = ok[i] && seen[at >> 5] >> (at & 31) & 1;
#endif
        }
        take(column, from, ok, lane);
    }
    return total;
}

/* Calls put(i, part, place) for what lanes have that is `mine`, each with a place of its own in
 * the box of its part; a whole warp calls it. */
template <class Put>
INLINE void places_for(const Between &b, const bool *mine, const u32 *part, u32 lane,
                       const Put &put) {
    bool some = false;
#pragma unroll
    for (int i = 0; i < EACH; i++) some |= mine[i];
    if (!__any_sync(ALL, some)) return;
    if (b.shares == 2) { /* there is one other part */
        const u32 to = b.share ^ 1;
        u32 at = size_of(take_places<EACH>(mine, b.outbox + b.box[to]));
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (mine[i]) put(i, to, at++);
        return;
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const u32 all = __ballot_sync(ALL, mine[i]);
        if (!all) continue;
        const u32 same = __match_any_sync(ALL, mine[i] ? part[i] : NONE) & all;
        const u32 first = same ? __ffs(same) - 1 : 0;
        u32 at = 0;
        if (mine[i] && lane == first)
            at = size_of(atomicAdd(b.outbox + b.box[part[i]], (u64)__popc(same)));
        at = __shfl_sync(ALL, at, first);
        if (mine[i]) put(i, part[i], at + __popc(same & lanes_below(lane)));
    }
}

/* Whether a place is beyond the room of a box. */
INLINE bool is_beyond(const Between &b, u32 part, u32 at) {
    return b.is_short && at >= room_for(b, part);
}

/* Puts the items of lanes that are `mine` into the boxes of their parts; calls full(i) for those
 * that found no place. */
template <class Full>
INLINE void post(const Between &b, const bool *mine, const u32 *part, const u64 *item, u32 lane,
                 const Full &full) {
    places_for(b, mine, part, lane, [&](int i, u32 to, u32 at) {
        if (is_beyond(b, to, at)) full(i);
        else b.outbox[b.box[to] + 1 + at] = item[i];
    });
}

/* The same, of no more than there is room for. */
INLINE void post(const Between &b, const bool *mine, const u32 *part, const u64 *item, u32 lane) {
    post(b, mine, part, item, lane, [](int) {});
}

/* The halves of the box for a part: questions; who asks. */
INLINE u32 *questions_to(const Between &b, u32 part) { return (u32 *)(b.outbox + b.box[part] + 1); }
INLINE u32 *askers_of(const Between &b, u32 part) {
    return questions_to(b, part) + (b.box[part + 1] - b.box[part] - 1);
}

/* Leaves `ok` where a lane is the first to set a bit. */
INLINE void first_to_set(u32 *bitmap, const u32 *at, bool *ok) {
    u32 seen[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) seen[i] = ok[i] ? __ldcg(bitmap + (at[i] >> 5)) : ALL;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const u32 bit = 1u << (at[i] & 31);
        ok[i] = !(seen[i] & bit);
        seen[i] = ALL;
        if (ok[i]) seen[i] = atomicOr(bitmap + (at[i] >> 5), bit);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) ok[i] = ok[i] && !(seen[i] >> (at[i] & 31) & 1);
}

/* The share that has a target. */
template <class Edges> INLINE u32 share_with(const Between &b, const Edges &edges, u32 target) {
    if (b.shares == 2) return b.share ^ 1;
    u32 low = 0, end = b.shares; /* the last share that begins at the target or before */
    while (end - low > 1) {
        const u32 middle = (low + end) / 2;
        if (edges.starts[middle] <= target) low = middle;
        else end = middle;
    }
    return low;
}

/* The targets of columns where `ok`: their shares, and what they are there. */
template <class Edges>
INLINE void targets_of(const Between &b, const Edges &edges, const u32 *column, const bool *ok,
                       u32 *part, u32 *there) {
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        there[i] = ok[i] ? edges.outer_targets[column[i]] : 0;
        part[i] = ok[i] ? share_with(b, edges, column[i]) : 0;
    }
}

/* Tells another part of vertices there, unless that was done before. */
struct Sender {
    const Between &b;
    __device__ __forceinline__ void operator()(const u32 *column, const u32 *from, bool *ok,
                                               u32 lane) const {
        u32 part[EACH], there[EACH];
        u64 item[EACH];
        /* mutant: column -> from : test_between_kernels::test_levels_and_parents */
        first_to_set(b.sent, column, ok);
        targets_of(b, b, column, ok, part, there);
#pragma unroll
        for (int i = 0; i < EACH; i++)
            item[i] = (u64)there[i] << 32 | (ok[i] ? b.locals[from[i]] : 0);
        post(b, ok, part, item, lane,
             /* mutant: atomicAnd(b.sent + (column[i] >> 5), ~(1u << (column[i] & 31))) -> (void)i
              * : test_levels_in_rounds */
             [&](int i) { atomicAnd(b.sent + (column[i] >> 5), ~(1u << (column[i] & 31))); });
    }
};

/* Asks another part for vertices there. */
struct Asker {
    const Between &b;
    __device__ __forceinline__ void operator()(const u32 *column, const u32 *from, bool *ok,
                                               u32 lane) const {
        u32 part[EACH], there[EACH];
        targets_of(b, IN_EDGES(b), column, ok, part, there);
        places_for(b, ok, part, lane, [&](int i, u32 to, u32 at) {
            if (is_beyond(b, to, at)) return;
            questions_to(b, to)[at] = there[i];
            askers_of(b, to)[at] = from[i];
        });
    }
};

#define SPAN 4   /* words of a bitmap that a lane looks at together */
#define CLOSE 8 /* words that lie together of those that a warp looks at */

INLINE u32 nth_bit(u32 bits, u32 n) {
    while (n--) bits &= bits - 1;
    return __ffs(bits) - 1;
}

/* Calls take(some, number, lane) by whole warps for the bits set in bits(word), one a lane,
 * for words from `first` up to `end`.  A warp looks at words far from each other: what a
 * search has left, or finds at once, lies together. */
template <class Bits, class Take>
INLINE void each_bit(u32 first, u32 end, u32 warp, u32 warps, u32 lane, const Bits &bits,
                     const Take &take) {
    const u32 close = end - first < warps * CLOSE ? 1 : CLOSE, units = 32 / close;
    const auto word_at = [&](u32 unit0, u32 k, u32 lane) {
        return first + (unit0 + (k * units + lane / close) * warps) * close + lane % close;
    };
    for (u32 unit0 = warp; first + unit0 * close < end; unit0 += SPAN * units * warps) {
        u32 set[SPAN], own = 0;
#pragma unroll
        for (u32 k = 0; k < SPAN; k++) {
            const u32 w = word_at(unit0, k, lane);
            set[k] = w < end ? bits(w) : 0;
            own += __popc(set[k]);
        }
        const u32 upto = warp_scan(own, lane), total = __shfl_sync(ALL, upto, 31);
        const u32 before = upto - own;
        for (u32 e = 0; e < total; e += 32) {
            const u32 from = lane_before(before, e + lane);
            u32 v = 0, skip = e + lane - __shfl_sync(ALL, before, from);
            bool some = false;
#pragma unroll
            for (u32 k = 0; k < SPAN; k++) {
                const u32 one = __shfl_sync(ALL, set[k], from), count = __popc(one);
                if (!some && skip < count)
                    some = true, v = word_at(unit0, k, from) * 32 + nth_bit(one, skip);
                skip -= count;
            }
            take(some, v, lane);
        }
    }
}

/* How many vertices a warp takes at once, so that all have some. */
INLINE u32 share_of(u32 count, u32 warps) {
    const u32 each = (count + warps - 1) / warps;
    return each < 32 ? each : 32;
}

/* Calls take(some, position, lane) by whole warps for the frontier's normal vertices that
 * have outer edges, one a lane. */
template <class Take>
INLINE void each_front(const Between &b, const State &s, u32 warp, u32 warps, u32 lane,
                       const Take &take) {
    const Params &p = b.own;
    if (s.phase == PUSHING) {
        const u32 now = s.depth & 1, all = s.count + idle_of(b, now), each = share_of(all, warps);
        for (u32 i = warp * each; i < all; i += warps * each) {
            const bool some = lane < each && i + lane < all;
            const u32 v = some ? queued(p, now, s.count, i + lane) : 0;
            take(some && bit_of(b.has_outer, v), v, lane);
        }
        return;
    }
    const u32 *now = newest(p, s), *before = now - p.stride;
    each_bit(b.normals / 32, p.words, warp, warps, lane,
             [&](u32 w) { return now[w] & ~before[w] & b.has_outer[w]; }, take);
}

/* Marks the frontier's vertices that have outer edges in `front`, zeros before. */
INLINE void mark_front(const Between &b, const State &s, u32 warp, u32 warps, u32 lane) {
    each_front(b, s, warp, warps, lane, [&](bool some, u32 v, u32) {
        if (some) atomicOr(b.front + (v >> 5), 1u << (v & 31));
    });
}

INLINE void push_outer(const Between &b, const State &s, u32 warp, u32 warps, u32 lane) {
    u64 checks = 0;
    const auto push = [&](bool some, u32 v, u32 lane) {
        checks += each_outer(b, b, some, v, lane, Sender{b});
    };
    if (b.is_short) { /* also when the level was searched */
        each_bit(b.normals / 32, b.own.words, warp, warps, lane, [&](u32 w) { return b.front[w]; },
                 push);
    } else each_front(b, s, warp, warps, lane, push);
    if (lane == 0 && checks) atomicAdd(b.counts + CHECKS, checks);
}

/* The inner graph was searched: what is still unvisited asks. */
INLINE void ask_outer(const Between &b, const State &s, u32 warp, u32 warps, u32 lane) {
    const Params &p = b.own;
    const u32 *now = newest(p, s);
    u64 checks = 0;
    each_bit(b.normals / 32, p.words, warp, warps, lane,
             [&](u32 w) { return ~now[w] & IN_EDGES(b).has_outer[w]; },
             [&](bool some, u32 v, u32 lane) {
                 checks += each_outer(b, IN_EDGES(b), some, v, lane, Asker{b});
             });
    if (lane == 0 && checks) atomicAdd(b.counts + CHECKS, checks);
}

#define QUESTIONS_A_WORD 2 /* in a box */
#define ANSWERS_A_WORD 64  /* in a reply */

/* Questions, or answers, that came from one part. */
struct Letter {
    const u32 *words;
    u32 part, count; /* of which there are so many */
};

/* Calls take(letter) for what came from each part, so many a word: boxes of item_step words, or
 * one after the other as long as they are, with a word of their own. */
template <class Take>
INLINE void each_letter(const Between &b, u32 a_word, const Take &take) {
    const u64 all = b.item_step ? b.boxes * b.item_step : b.item_count;
    for (u64 at = 0; at < all;) {
        const u64 head = __ldcg(b.items + at);
        u32 count = size_of(head);
        const u64 words = b.item_step ? b.item_step - 1 : (count + a_word - 1) / a_word;
        if (count > a_word * words) count = a_word * words;
        take(Letter{(const u32 *)(b.items + at + 1), writer_of(head), count});
        at += 1 + words;
    }
}

/* Answers questions of one part, before anything was admitted: s.depth is the level that is
 * searched. */
INLINE void answer_letter(const Between &b, const State &s, const Letter &letter, u32 lane) {
    const Params &p = b.own;
    const bool pushing = s.phase == PUSHING;
    const u32 *now = newest(p, s), *before = pushing ? now : now - p.stride;
    const u32 first = blockIdx.x * THREADS + threadIdx.x, all = gridDim.x * THREADS;
    u64 *reply = replies_to(b, letter.part);
    u32 *answers = (u32 *)(reply + 1);
    if (first == 0) *reply = no_items(b) | letter.count;
    for (u32 i = first; i - lane < letter.count; i += EACH * all) {
        u32 v[EACH];
        bool ok[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++)
            v[k] = i + k * all < letter.count ? __ldcg(letter.words + i + k * all) : NONE;
#pragma unroll
        for (int k = 0; k < EACH; k++) /* the last word may have half a question */
            v[k] = v[k] < p.n ? p.numbers[v[k]] : NONE;
#pragma unroll
        for (int k = 0; k < EACH; k++)
            /* mutant: before -> now : test_between_kernels::test_directions */
            ok[k] = v[k] != NONE && bit_of(before, v[k]) &&
                    !(pushing && p.direct[v[k]] == s.depth);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const u32 at = i - lane + k * all, bits = __ballot_sync(ALL, ok[k]);
            if (lane == 0 && at < letter.count) answers[at / 32] = bits;
        }
    }
}

/* Takes the answers of one part to what was asked here. */
INLINE void take_letter(const Between &b, const State &s, const Letter &letter, u32 lane) {
    const u32 first = blockIdx.x * THREADS + threadIdx.x, all = gridDim.x * THREADS;
    const u32 *questions = questions_to(b, letter.part), *askers = askers_of(b, letter.part);
    const u32 count = letter.count;
    for (u32 i = first; i - lane < count; i += EACH * all) {
        u32 v[EACH], id[EACH], of[EACH];
        bool ok[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const u32 at = i + k * all;
            ok[k] = at < count && __ldcg(letter.words + at / 32) >> lane & 1;
            of[k] = letter.part;
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            v[k] = ok[k] ? askers[i + k * all] : 0;
            id[k] = ok[k] ? questions[i + k * all] : 0;
        }
        take_all<EACH>(b, s, ok, v, id, of, lane);
    }
}
#endif
