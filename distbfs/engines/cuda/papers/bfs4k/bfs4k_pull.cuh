/* A level that is pulled, an addition to BFS-4K: a thread takes an unvisited vertex and
 * looks for a neighbour of the frontier.  Used where the frontier has 1/32 of the
 * vertices (Sevilmis, Sivri, Aydin: CS406 project, 2019, Section 5.2). */
#ifndef DISTBFS_BFS4K_PULL_CUH
#define DISTBFS_BFS4K_PULL_CUH
#include "bfs4k_queue.cuh"

#define DENSE 32 /* mutant: 32 -> 8 : test_levels_are_pulled_from_a_32nd_of_the_vertices_on */

INLINE bool pulls(const Params &p, u32 frontier) {
    return p.pulls && (u64)frontier * DENSE >= p.active;
}

/* The whole level; all warps of the grid call it. */
INLINE void pull(const Params &p, GridSink &sink, u32 depth, Tally &tally, u32 lane, u32 warp) {
    const u64 all = (u64)gridDim.x * THREADS;
    for (u64 base = (u64)blockIdx.x * THREADS + warp * 32; base < p.active; base += all) {
        const u64 v = base + lane;
        bool mine = false;
        if (v < p.active && unvisited(p, (u32)v)) {
            const OFFSET end = p.in_row[v + 1];
            for (OFFSET e = p.in_row[v]; e < end && !mine; e++) {
                const u32 u = load_once(p.in_adj + e);
                TALLY(tally, checks, 1);
                if (__ldcg(p.level + u) != (int)depth) continue;
                p.level[v] = (int)depth + 1;
                if (p.parent) p.parent[v] = u;
#if CLAIM
                atomicOr(p.visited + (v >> 5), 1u << (v & 31));
#endif
                TALLY(tally, found, 1);
                mine = true;
            }
        }
        __syncwarp();
        sink.add(mine, (u32)v, lane);
    }
}
#endif
