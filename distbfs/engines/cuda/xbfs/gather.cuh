/* Changing back to push after pulls: the last level becomes a queue (single scan, XBFS
 * Section 4.1), and the levels that the snapshots tell are written down, so that pushes
 * go on in snapshot 0. */
#ifndef DISTBFS_XBFS_GATHER_CUH
#define DISTBFS_XBFS_GATHER_CUH
#include "search.cuh"
#include "push.cuh"

/* The vertices of the last level that have edges as a queue. */
INLINE void gather(const Params &p, const u32 *before, const u32 *now, const Queue &q,
                   u32 warp, u32 warps, u32 lane) {
    for (u32 w0 = warp * 32; w0 < p.words; w0 += warps * 32) {
        const u32 w = w0 + lane;
        /* mutant: before[w] & ~ -> : test_pushes_after_pulls_check_the_edges_of_their_frontier */
        u32 open = w < p.words ? now[w] & ~before[w] & ~bare_word(p, w) : 0;
        while (__any_sync(ALL, open)) {
            const u32 v = w * 32 + __ffs(open) - 1;
            const OFFSET begin = open ? p.row[v] : 0;
            const u32 degree = open ? degree_at(p, v, begin) : 0;
            append(p, degree != 0, v, begin, degree, q, lane);
            open &= open - 1;
        }
    }
}

/* Levels of all snapshots become direct ones; snapshot k becomes snapshot 0, and
 * snapshot 1 is clean again. */
INLINE void flush(const Params &p, u32 k, u32 base) {
    for (u32 w = blockIdx.x * THREADS + threadIdx.x; w < p.words; w += gridDim.x * THREADS) {
        const u32 bare = bare_word(p, w);
        u32 seen = p.snapshot[w];
        for (u32 j = 1; j <= k; j++) {
            const u32 now = p.snapshot[j * p.stride + w] & ~bare;
            /* mutant: + j -> + k : test_levels_beyond_the_snapshots_are_flushed */
            write_levels(p, w * 32, now & ~seen, base + j);
            seen |= now;
        }
        p.snapshot[w] = seen;
        p.snapshot[p.stride + w] = 0;
    }
}
#endif
