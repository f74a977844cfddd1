/* Outer edges: the frontier's are pushed, each vertex of another part once a search.
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

/* Puts a vertex of another part into its box, unless it was sent before. */
struct Sender {
    const Between &b;
    __device__ __forceinline__ void operator()(bool ok, u64 column, u32 from, u32 lane) const {
        const u32 part = (u32)(column >> 32), number = (u32)column, bit = 1u << (number & 31);
        u32 *word = b.sent + part * b.sent_words + (number >> 5);
        const bool mine = ok && !(__ldcg(word) & bit) && !(atomicOr(word, bit) & bit);
        const u32 all = __ballot_sync(ALL, mine);
        const u32 same = __match_any_sync(ALL, mine ? part : NONE) & all;
        const u32 first = same ? __ffs(same) - 1 : 0;
        u64 at = 0;
        if (mine && lane == first)
            at = atomicAdd(b.box_size + part * BOX_STEP, (u64)__popc(same));
        at = __shfl_sync(ALL, at, first);
        if (!mine) return;
        const u64 item = (u64)number << 32 | b.own.vertices[from];
        b.outbox[b.box[part] + at + __popc(same & lanes_below(lane))] = item;
    }
};

/* Calls take(some, position, lane) by whole warps for the frontier's normal vertices that
 * have outer edges, one a lane. */
template <class Take>
INLINE void each_front(const Between &b, const State &s, u32 warp, u32 warps, u32 lane,
                       const Take &take) {
    const Params &p = b.own;
    if (s.phase == PUSHING) {
        const uint4 *queue = p.queue[s.depth & 1];
        for (u32 i = warp * 32; i < s.count; i += warps * 32) {
            const u32 v = i + lane < s.count ? queue[i + lane].x : 0;
            take(i + lane < s.count && bit_of(b.has_outer, v), v, lane);
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
#endif
