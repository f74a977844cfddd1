/* Outer edges, in both directions.
 *
 * Push: the frontier's vertices name what they find in other parts, each once a search.
 * Pull: when the inner graph was searched, unvisited vertices ask for their neighbours; who
 * was visited before this level answers, once for each that asks from a part.
 * A box has what goes to one part: number there << 32 | id of the parent; a question is
 * number there << 32 | id that asks; an answer local id that asked << 32 | id of the parent.
 *
 * Source: Pan, Pearce, Owens 2018, Section V-B (normal vertices, uniquified). */
#ifndef DISTBFS_BETWEEN_OUTER_CUH
#define DISTBFS_BETWEEN_OUTER_CUH
#include "between.cuh"

/* Calls take(ok, column, position whose edge it is, lane) by whole warps for the outer edges
 * of one normal vertex a lane where `some`; returns how many there are of the warp. */
template <class Take>
INLINE u32 each_outer(const Between &b, bool some, u32 v, u32 lane, const Take &take) {
    const u64 begin = some ? b.outer_offsets[v - b.normals] : 0;
    const u32 length = some ? (u32)(b.outer_offsets[v - b.normals + 1] - begin) : 0;
    const u32 upto = warp_scan(length, lane), total = __shfl_sync(ALL, upto, 31);
    const u32 before = upto - length;
    for (u32 e = 0; e < total; e += 32) {
        const u32 me = e + lane;
        u32 k = 0;
#pragma unroll
        for (int s = 16; s; s >>= 1)
            if (__shfl_sync(ALL, before, k + s) <= me) k += s;
        const u64 row = __shfl_sync(ALL, begin, k);
        const u32 start = __shfl_sync(ALL, before, k), from = __shfl_sync(ALL, v, k);
        const bool ok = me < total;
        take(ok, ok ? __ldcg(b.outer_columns + row + (me - start)) : 0ull, from, lane);
    }
    return total;
}

/* Puts one item a lane where `mine` into the box of its part; a whole warp calls it. */
INLINE void post(const Between &b, bool mine, u32 part, u64 item, u32 lane) {
    const u32 same = __match_any_sync(ALL, mine ? part : NONE) & __ballot_sync(ALL, mine);
    const u32 first = same ? __ffs(same) - 1 : 0;
    u64 at = 0;
    if (mine && lane == first) at = atomicAdd(b.box_size + part * BOX_STEP, (u64)__popc(same));
    at = __shfl_sync(ALL, at, first);
    if (mine) b.outbox[b.box[part] + at + __popc(same & lanes_below(lane))] = item;
}

/* Whether a lane is the first to set the bit of a vertex of a part. */
INLINE bool first_to_set(const Between &b, u32 *bitmaps, bool ok, u32 part, u32 v) {
    const u32 bit = 1u << (v & 31);
    u32 *word = bitmaps + part * b.sent_words + (v >> 5);
    return ok && !(__ldcg(word) & bit) && !(atomicOr(word, bit) & bit);
}

/* Tells another part of a vertex there, unless that was done before. */
struct Sender {
    const Between &b;
    __device__ __forceinline__ void operator()(bool ok, u64 column, u32 from, u32 lane) const {
        const u32 part = (u32)(column >> 32), number = (u32)column;
        const bool mine = first_to_set(b, b.sent, ok, part, number);
        post(b, mine, part, (u64)number << 32 | b.own.vertices[mine ? from : 0], lane);
    }
};

/* Asks another part for a vertex there. */
struct Asker {
    const Between &b;
    __device__ __forceinline__ void operator()(bool ok, u64 column, u32 from, u32 lane) const {
        post(b, ok, (u32)(column >> 32), column << 32 | b.own.vertices[ok ? from : 0], lane);
    }
};

/* Calls take(some, position, lane) by whole warps for the frontier's normal vertices that
 * have outer edges, one a lane. */
template <class Take>
INLINE void each_front(const Between &b, const State &s, u32 warp, u32 warps, u32 lane,
                       const Take &take) {
    const Params &p = b.own;
    if (s.phase == PUSHING) {
        const u32 now = s.depth & 1, all = s.count + b.idle[now];
        for (u32 i = warp * 32; i < all; i += warps * 32) {
            const u32 v = i + lane < all ? queued(p, now, s.count, i + lane) : 0;
            take(i + lane < all && bit_of(b.has_outer, v), v, lane);
        }
        return;
    }
    const u32 *now = newest(p, s), *before = now - p.stride;
    for (u32 w0 = b.normals / 32 + warp * 32; w0 < p.words; w0 += warps * 32) {
        const u32 w = w0 + lane;
        u32 front = w < p.words ? now[w] & ~before[w] & b.has_outer[w] : 0;
        while (__any_sync(ALL, front)) {
            take(front != 0, front ? w * 32 + __ffs(front) - 1 : 0u, lane);
            front &= front - 1;
        }
    }
}

INLINE void push_outer(const Between &b, const State &s, u32 warp, u32 warps, u32 lane) {
    u64 checks = 0;
    each_front(b, s, warp, warps, lane, [&](bool some, u32 v, u32 lane) {
        checks += each_outer(b, some, v, lane, Sender{b});
    });
    if (lane == 0 && checks) atomicAdd(b.counts + CHECKS, checks);
}

/* The inner graph was searched: what is still unvisited asks. */
INLINE void ask_outer(const Between &b, const State &s, u32 warp, u32 warps, u32 lane) {
    const Params &p = b.own;
    const u32 *now = newest(p, s);
    u64 checks = 0;
    for (u32 w0 = b.normals / 32 + warp * 32; w0 < p.words; w0 += warps * 32) {
        const u32 w = w0 + lane;
        u32 open = w < p.words ? ~now[w] & b.has_outer[w] : 0;
        while (__any_sync(ALL, open)) {
            checks += each_outer(b, open != 0, open ? w * 32 + __ffs(open) - 1 : 0u, lane, Asker{b});
            open &= open - 1;
        }
    }
    if (lane == 0 && checks) atomicAdd(b.counts + CHECKS, checks);
}

/* Questions of other parts, before anything was admitted: s.depth is the level that is
 * searched. */
INLINE void answer_outer(const Between &b, const State &s, u32 lane) {
    const Params &p = b.own;
    const bool pushing = s.phase == PUSHING;
    const u32 *now = newest(p, s), *before = pushing ? now : now - p.stride;
    for (u64 i = (u64)blockIdx.x * THREADS + threadIdx.x; i - lane < b.item_count;
         i += (u64)gridDim.x * THREADS) {
        const bool ok = i < b.item_count;
        const u64 item = ok ? __ldcg(b.items + i) : 0;
        const u32 v = ok ? b.place[item >> 32] : 0, asks = (u32)item;
        const bool visited = ok && bit_of(before, v) && !(pushing && p.direct[v] == s.depth);
        const u32 part = asks % b.parts, local = asks / b.parts;
        const bool mine = first_to_set(b, b.answered, visited, part, local);
        post(b, mine, part, (u64)local << 32 | p.vertices[v], lane);
    }
}
#endif
