/* What is done between two levels, by kernels of their own or inside one that does it all.
 *
 * `each` calls take(items, writers, ok, lane) for what came, as `each_item` does. */
#ifndef DISTBFS_BETWEEN_STEPS_CUH
#define DISTBFS_BETWEEN_STEPS_CUH
#include "between_leaves.cuh"
#include "between_level.cuh"
#include "between_outer.cuh"

INLINE void empty_boxes(const Between &b) {
    if (blockIdx.x) return;
    for (u32 i = threadIdx.x; i < b.shares; i += THREADS)
        b.outbox[b.box[i]] = *replies_to(b, i) = no_items(b);
}

/* The number of the root, NONE where this device does not have it, or it has no edges. */
INLINE u32 root_here(const Between &b) {
    if (b.delegate == NONE) return b.own.root == ELSEWHERE ? NONE : b.own.numbers[b.own.root];
#if SEVERAL
    const Owner to = owner_of(b, b.delegate);
    return to.part == b.index ? to.number : NONE;
#else
    return b.delegate;
#endif
}

/* Whether pulls look at a number that is not visited. */
INLINE bool is_pulled(const Params &p, u32 v) {
#if DIRECTED
    return !bit_of(p.unentered, v);
#else
    return true;
#endif
}

INLINE void zero(u64 *words, u64 count) {
    for (u64 i = (u64)blockIdx.x * THREADS + threadIdx.x; i < count; i += (u64)gridDim.x * THREADS)
        words[i] = 0;
}

/* Forget the last search.  A single root, where this part knows it, is the frontier. */
INLINE void forget(const Between &b) {
    const Params &p = b.own;
    const u32 root = root_here(b);
    const bool some = root != NONE, searched = some && root < p.active;
    zero((u64 *)b.sent, b.sent_words / 2); /* two a word, as of known */
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < b.normals / 64; i += gridDim.x * THREADS)
        ((u64 *)b.known)[i] = root < b.normals && root >> 6 == i ? 1ull << (root & 63) : 0;
    zero(b.counts, COUNTS);
    zero(b.sizes, 2 * b.shares);
    empty_boxes(b);
    if (blockIdx.x || threadIdx.x) return;
    State s = {PUSHING, 0, 0, 0, 0, 0, 0, 0, p.active, 0, 1, START};
    if (DIRECTED) s.left -= p.bare_count;
    b.asking[1] = b.asking[0];
    if (searched) s.left -= is_pulled(p, root), b.asking[1] -= bit_of(IN_EDGES(b).has_outer, root);
    Mail *mail = b.mail;
    mail[0].size = mail[0].edges = mail[0].hubs = 0;
    mail[1] = mail[2] = mail[0];
    b.idle[0] = b.idle[1] = 0, *b.filled = 1;
    *b.below = root < b.normals ? b.leaves[root] : 0;
    if (some) {
        const OFFSET row = p.row[root];
        /* mutant: degree_at(p, root, -> (u32)(p.row[root + 1] -
         * : test_split_between::test_each_way_with_the_least_on_the_devices */
        const u32 degree = degree_at(p, root, row);
        p.queue[0][0] = make_uint4(root, 0, (u32)row, degree);
        p.hub_queue[0][0] = root;
        mail[0].size = (u64)degree << 32 | 1, mail[0].edges = degree, mail[0].hubs = root < p.hubs;
        s.count = 1, s.hubs = root < p.hubs, s.edges = degree;
        if (searched) atomicOr(p.snapshot + (root >> 5), 1u << (root & 31));
        p.direct[root] = 0;
        if (p.parents) p.parent[root] = position_here(b, root);
    }
    *b.open = s.left;
#if SEVERAL /* `level` asks all devices of the domain */
    s.left = 0;
    b.device->joint.now = b.device->joint.complete = 0;
#endif
    *p.state = s, b.does[0] = b.begins, b.does[1] = 0;
}

/* Admit the roots of a set that this device knows, after `forget`. */
INLINE void admit_roots(const Between &b) {
    const Params &p = b.own;
    const State s = *p.state;
    const u32 lane = threadIdx.x & 31;
    for (u64 i = blockIdx.x * (u64)THREADS + threadIdx.x; i - lane < p.root_count;
         i += (u64)gridDim.x * THREADS) {
        const bool mine = i < p.root_count;
        const u32 v = mine ? p.roots[i] : 0;
        bool some = mine && v < p.active;
        append_leaf(b, mine && !some, v, lane);
        admit<1>(b, s, &some, &v, lane);
        if (some && p.parents) p.parent[v] = position_here(b, v);
    }
}

/* Delegates that other domains found, of each word of a mask: mask(where). */
template <class Mask>
INLINE void admit_delegates(const Between &b, const State &s, const Mask &mask) {
    const Params &p = b.own;
    const u32 *now = newest(p, s), warp = (threadIdx.x >> 5) * gridDim.x + blockIdx.x;
    const u32 lane = threadIdx.x & 31;
    u32 unknown_here = 0;
    const auto fresh = [&](u32 w) {
        const u32 all = mask(mask_at(b, w)) & ~now[w];
        /* mutant: __popc(all & b.is_owned[w]) -> 0
         * : test_more_parents_are_unknown_than_there_is_room_at_first */
        unknown_here += __popc(all & b.is_owned[w]);
        return all;
    };
    each_bit(0, b.normals / 32, warp, gridDim.x * WARPS, lane, fresh,
             [&](bool some, u32 c, u32 lane) {
                 admit<1>(b, s, &some, &c, lane);
                 if (some && p.parents) p.parent[c] = unknown(b);
             });
    const u32 sum = warp_sum(unknown_here);
    if (lane == 0 && sum) atomicAdd(b.counts + UNKNOWN, (u64)sum);
}

/* Normal vertices here that other domains found. */
struct Items {
    const Between &b;
    const State &s;
    __device__ __forceinline__ void operator()(const u64 *item, const u32 *of, bool *ok,
                                               u32 lane) const {
        u32 v[EACH], local[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++)
            v[k] = ok[k] ? b.own.numbers[item[k] >> 32] : 0, local[k] = (u32)item[k];
        take_all<EACH>(b, s, ok, v, local, of, lane);
    }
};

/* This thread's share of what is counted after a pull. */
INLINE void count_words(const Between &b, const State &s, u32 *count) {
    const Params &p = b.own;
    const u32 *now = newest(p, s), *before = now - p.stride;
    for (u32 q = blockIdx.x * THREADS + threadIdx.x; q < p.words / 4; q += gridDim.x * THREADS) {
        const uint4 now4 = ((const uint4 *)now)[q], outer4 = ((const uint4 *)b.has_outer)[q];
        const uint4 before4 = ((const uint4 *)before)[q];
        const uint4 asks4 = DIRECTED ? ((const uint4 *)IN_EDGES(b).has_outer)[q] : outer4;
        const u32 seen[4] = {now4.x, now4.y, now4.z, now4.w};
        const u32 outer[4] = {outer4.x, outer4.y, outer4.z, outer4.w};
        const u32 known[4] = {before4.x, before4.y, before4.z, before4.w};
        const u32 asks[4] = {asks4.x, asks4.y, asks4.z, asks4.w};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const u32 fresh = seen[k] & ~known[k];
#if DIRECTED /* pulls look at no others */
            count[LEFT] += __popc(~closed(p, now, 4 * q + k));
#else
            count[LEFT] += __popc(~seen[k]);
#endif
            count[OPEN_OUTER] += __popc(~seen[k] & asks[k]);
            count[OUTER] += __popc(fresh & outer[k]);
            const u32 w = 4 * q + k;
            const bool delegates = w < b.normals / 32;
            count[delegates ? DELEGATES : NORMALS] += __popc(fresh);
            if (delegates) b.known[w] = seen[k];
        }
    }
}

/* The same of a queue, but of LEFT and OPEN_OUTER what they are less by than before. */
INLINE void count_queue(const Between &b, const State &s, u32 *count) {
    const Params &p = b.own;
    const u32 at = s.depth & 1, size = (u32)__ldcg(&b.mail[at].size), all = size + idle_of(b, at);
    const bool is_less = s.depth || p.from_set; /* by a single root they are so from the start */
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < all; i += gridDim.x * THREADS) {
        const u32 v = queued(p, at, size, i);
        if (v >= p.active) continue; /* see `lone` */
        count[v < b.normals ? DELEGATES : NORMALS]++;
        count[LEFT] += is_less && is_pulled(p, v);
        count[OUTER] += bit_of(b.has_outer, v);
        /* mutant: is_less && bit_of( -> bit_of( : test_between_leaves::test_every_way */
        count[OPEN_OUTER] += is_less && bit_of(IN_EDGES(b).has_outer, v);
        if (v >= b.normals) continue;
        count[LEAVES] += b.leaves[v];
        atomicOr(b.known + (v >> 5), 1u << (v & 31));
    }
}

/* Counts what was found, here and elsewhere; `counts` is zero before. */
INLINE void count_found(const Between &b, const State &s) {
    __shared__ u32 sums[FAILED];
    const Params &p = b.own;
    u32 count[FAILED];
    if (threadIdx.x < FAILED) sums[threadIdx.x] = 0;
#pragma unroll
    for (int k = 0; k < FAILED; k++) count[k] = 0;
    const bool pulled = s.phase == PULLING;
    if (pulled) count_words(b, s, count);
    else count_queue(b, s, count);
    count_leaves(b, s, count);
    if (p.targets) count[MISSED] = missed(b, s);
    /* mutant: lone(b, s) -> 0 : test_between_kernels::test_levels_and_parents */
    if (blockIdx.x == 0 && threadIdx.x == 0) count[MISSED] += b.lost, count[NORMALS] += lone(b, s);
    count[FOUND] = count[NORMALS] + count[DELEGATES];
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        /* mutant: leaves_of_level(b, s) -> 0ull : test_a_last_level_of_leaves_alone */
        if (s.depth) atomicAdd(b.counts + NORMALS, leaves_of_level(b, s));
        if (!pulled) {
            atomicAdd(b.counts + LEFT, (u64)*b.open);
            atomicAdd(b.counts + OPEN_OUTER, (u64)b.asking[1]);
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < FAILED; k++) {
        const u32 sum = __reduce_add_sync(ALL, count[k]);
        if ((threadIdx.x & 31) == 0 && sum) atomicAdd(sums + k, sum);
    }
    __syncthreads();
    if (threadIdx.x < FAILED && sums[threadIdx.x]) {
        const bool less = !pulled && (threadIdx.x == LEFT || threadIdx.x == OPEN_OUTER);
        const u64 sum = sums[threadIdx.x];
        atomicAdd(b.counts + threadIdx.x, less ? 0 - sum : sum);
    }
}

/* What was counted becomes the frontier, by one thread when all blocks have counted. */
INLINE void make_frontier(const Between &b, State s) {
    const Params &p = b.own;
    const u32 left = (u32)__ldcg(b.counts + LEFT);
    *b.below = __ldcg(b.counts + LEAVES);
    *b.open = left, b.asking[1] = (u32)__ldcg(b.counts + OPEN_OUTER);
    if (s.phase == PUSHING) take(s, b.mail + (s.depth & 1));
#if SEVERAL /* `level` asks all devices of the domain */
    b.counts[FAILED] = look_system(&b.mailbox[b.index]->failed);
#else
    s.left = left;
    const u64 found = __ldcg(b.counts + FOUND);
    if (s.phase != PUSHING) s.phase = turns(p, s, found, few(p, left)) ? GATHERING : PULLING;
#endif
    const u32 then = s.depth & 1 ^ 1;
    Mail *next = b.mail + then, *gathered = b.mail + 2;
    b.idle[then] = 0;
    next->size = next->edges = next->hubs = 0;
    gathered->size = gathered->edges = gathered->hubs = 0;
    *p.state = s;
}

/* The sums over all shares of what each has counted, in `sums`, shared; of UNKNOWN the largest.
 * One block.  below: bits of each word that are no part of a count */
INLINE void sum_counts(const Between &b, const u64 *gathered, u64 *sums, u32 below = 0) {
    for (u32 c = threadIdx.x >> 5; c < COUNTS; c += WARPS) {
        const bool largest = c == UNKNOWN;
        const auto with = [&](u64 x, u64 y) { return !largest ? x + y : x > y ? x : y; };
        u64 all = 0;
        /* mutant: b.shares -> 32 : test_counts_of_more_parts_than_a_warp_has_lanes */
        for (u32 i = threadIdx.x & 31; i < b.shares; i += 32)
            all = with(all, (u64)((long long)__ldcg(gathered + i * COUNTS + c) >> below));
        for (int s = 16; s; s >>= 1) all = with(all, __shfl_xor_sync(ALL, all, s));
        if ((threadIdx.x & 31) == 0) sums[c] = all;
    }
    __syncthreads();
}

/* What the level after these counts does, see Does. */
INLINE u32 chosen(const Between &b, const u64 *sums) {
    /* mutant: ]) || sums[OVER] -> ] + sums[OVER]) : test_boxes_with_more_than_their_first_items */
    if (!(sums[NORMALS] + sums[DELEGATES]) || sums[OVER]) return 0;
    const bool asks = sums[OUTER] * b.pull_share > sums[OPEN_OUTER];
    const u32 way = b.rule == (PUSHES | ASKS) ? (asks ? ASKS : PUSHES) : b.rule;
    return GOES | (sums[OUTER] ? way : 0);
}

/* Ask other domains for the parents of this share's own vertices that they found, of a range of
 * those: position, which of the owned ones it is. */
INLINE void ask_for_parents(const Between &b) {
    const Params &p = b.own;
    const u32 lane = threadIdx.x & 31, all = gridDim.x * THREADS, *now = newest(p, *p.state);
    for (u32 i = b.owned_from + blockIdx.x * THREADS + threadIdx.x; i - lane < b.owned_to;
         i += EACH * all) {
        bool wanted[EACH];
        u64 item[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const u32 of = i + k * all, c = of < b.owned_to ? b.owned[of] : 0;
            /* mutant: c) && !has_parent(b, c) -> c)
             * : test_what_is_sent_is_what_the_model_of_th_counts */
            wanted[k] = of < b.owned_to && bit_of(now, c) && !has_parent(b, c);
            item[k] = (u64)position_here(b, c) << 32 | of;
        }
        for (u32 domain = 0; domain < b.domains; domain++) {
            if (domain == b.domain) continue;
            u32 part[EACH];
#pragma unroll
            for (int k = 0; k < EACH; k++) part[k] = share_at(b, domain, (u32)(item[k] >> 32));
            post(b, wanted, part, item, lane);
        }
    }
}

/* The id of the parent of a delegate that this device found. */
INLINE u64 parent_id(const Between &b, u32 c) {
    const Params &p = b.own;
    if (!bit_of(p.by_first, c)) return id_at(b, p.parent[c]);
    const u32 first = p.first_id[c];
    return b.names.wide() ? id_at(b, first) : first;
}

/* Names the parents of delegates that their owners ask for and this device found. */
struct ParentQuestions {
    const Between &b;
    const u32 *now;
    __device__ __forceinline__ void operator()(const u64 *asked, const u32 *, bool *ok,
                                               u32 lane) const {
        u32 part[EACH];
        u64 item[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const u32 at = (u32)(asked[k] >> 32), c = number_here(b, at);
            /* mutant: c) && has_parent(b, c) -> c) : test_parents_of_delegates_are_asked_for */
            ok[k] = ok[k] && bit_of(now, c) && has_parent(b, c);
            part[k] = ok[k] ? (u32)(id_at(b, at) % b.shares) : 0;
            item[k] = ok[k] ? (u64)(u32)asked[k] << b.id_bits | parent_id(b, c) : 0;
        }
        post(b, ok, part, item, lane);
    }
};

/* The parent's id in an answer. */
INLINE u64 answered(const Between &b, u64 item) { return item & ((1ull << b.id_bits) - 1); }

/* The answers: of several for a vertex, one serves. */
struct ParentAnswers {
    const Between &b;
    __device__ __forceinline__ void operator()(const u64 *item, const u32 *, const bool *ok,
                                               u32) const {
        bool mine[EACH];
        u32 c[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            c[k] = ok[k] ? b.owned[item[k] >> b.id_bits] : 0;
            mine[k] = ok[k] && atomicCAS(b.own.parent + c[k], unknown(b), NONE) == unknown(b);
        }
        u32 slot = take_places<EACH>(mine, b.filled);
#pragma unroll
        for (int k = 0; k < EACH; k++)
            if (mine[k]) name_parent(b, c[k], slot++, answered(b, item[k]));
    }
};

/* The same when results are written: there. */
struct LateAnswers {
    const Between &b;
    __device__ __forceinline__ void operator()(const u64 *item, const u32 *, const bool *ok,
                                               u32) const {
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            if (!ok[k]) continue;
            const u32 c = b.owned[item[k] >> b.id_bits];
            const u64 local = id_at(b, position_here(b, c)) / b.shares;
            const u64 parent = answered(b, item[k]); /* as wide as names */
            if (b.names.wide()) ((u64 *)b.own.parent_out)[local] = parent;
            else b.own.parent_out[local] = (u32)parent;
        }
    }
};
#endif
