/* The vertices of a level, counted search by search. */
#ifndef DISTBFS_BITS_COUNT_CUH
#define DISTBFS_BITS_COUNT_CUH
#include "bits.cuh"
#include "bits_push.cuh"

/* Whether a vertex is counted here. */
INLINE bool counts_here(const Params &, u32) { return true; }

/* Counts the bits of the frontier, search by search, for tiles of 32 vertices.
 * room: [32 * WORDS] */
template <class P>
INLINE void count_level(const P &p, const Level &l, const uint4 *front, const u32 *mark,
                        const u32 *queue, u32 dense, u32 count, u32 all, u32 depth, u32 *room) {
    const u32 *words = (const u32 *)front;
    const u32 tiles = dense ? (p.active + 31) / 32 : (all + 31) / 32;
    u32 sum[WORDS];
#pragma unroll
    for (int w = 0; w < WORDS; w++) sum[w] = 0;
    for (u32 i = threadIdx.x; i < 32 * WORDS; i += THREADS) room[i] = 0;
    __syncthreads();
    for (u32 tile = l.warp; tile < tiles; tile += l.warps) {
        const u32 i = tile * 32 + l.lane;
        if (dense && !mark[tile]) continue;
        bool there = i < all;
        if (dense) there = mark[tile] >> l.lane & 1;
        u32 v = i;
        if (there && !dense) v = entry(p, queue, count, i), there = counts_here(p, v);
#pragma unroll
        for (int w = 0; w < WORDS; w++) {
            const u32 bits = there ? words[(u64)place(p, v) * WORDS + w] : 0;
            if (!__any_sync(ALL, bits != 0)) continue;
#pragma unroll 8
            for (u32 j = 0; j < 32; j++) {
                const u32 found = __popc(__ballot_sync(ALL, bits >> j & 1));
                if (l.lane == j) sum[w] += found;
            }
        }
    }
#pragma unroll
    for (int w = 0; w < WORDS; w++)
        if (sum[w]) atomicAdd(room + 32 * w + l.lane, sum[w]);
    __syncthreads();
    for (u32 i = threadIdx.x; i < 32 * WORDS; i += THREADS)
        if (room[i]) atomicAdd(p.counts + (u64)depth * 32 * WORDS + i, room[i]);
    __syncthreads();
}
#endif
