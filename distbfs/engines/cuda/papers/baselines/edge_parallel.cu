/* Engine `edge-parallel`: a thread an edge, every level reads all edges, O(E D).
 *
 * Method: a level found is claimed by compare-and-swap.
 * Data: loop.cuh; the row of each column is stored beside it, so the space is O(2E).
 * Source: Jia, Lu, Hoberock, Garland, Hart: Edge v. Node Parallelism for Graph
 * Centrality Metrics, GPU Computing Gems Jade, 2011; in BFS-4K, Table 2.
 */
#include "../../common/loop.cuh"

/* Writes p.origin [m]; once for a graph. */
extern "C" __global__ void sources(const Params p) {
    for (u64 u = thread_of() >> 5; u < p.active; u += threads_of() >> 5)
        /* mutant: e += 32 -> e += 33 : test_shapes */
        for (u64 e = p.row[u] + lane_id(), end = p.row[u + 1]; e < end; e += 32) p.origin[e] = (u32)u;
}

extern "C" __global__ void begin(const Params p) { begin_search(p); }

extern "C" __global__ void push(const Params p) {
    u32 found = 0;
    u64 checks = 0;
    for (u64 e = thread_of(); e < p.m; e += threads_of()) {
        const u32 u = p.origin[e];
        if (p.level[u] != (int)p.depth) continue;
        found += find(p, p.adj[e], u);
        checks++;
    }
    __syncwarp();
    count(p, found, checks);
}
