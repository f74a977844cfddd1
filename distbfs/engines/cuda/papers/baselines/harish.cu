/* Engine `harish`: a thread a vertex, a mask of the frontier instead of a queue.
 *
 * Method: every level reads all vertices, O(V D + E).  A second kernel makes the vertices found
 * the next frontier, so that a level never runs ahead.
 * Data: loop.cuh.
 * Source: Harish, Narayanan: Accelerating Large Graph Algorithms on the GPU Using CUDA,
 * HiPC 2007, Section 4.1; in the comparison of BFS-4K, Table 2.
 */
#include "../../common/loop.cuh"

extern "C" __global__ void begin(const Params p) {
    begin_search(p);
    for (u64 v = thread_of(); v < p.active; v += threads_of())
        p.mask[v] = v == p.root, p.fresh[v] = 0;
}

extern "C" __global__ void push(const Params p) {
    u64 checks = 0;
    for (u64 u = thread_of(); u < p.active; u += threads_of()) {
        if (!p.mask[u]) continue;
        p.mask[u] = 0;
        const u64 end = p.row[u + 1];
        for (u64 e = p.row[u]; e < end; e++) {
            const u32 v = p.adj[e];
            checks++;
            if (p.level[v] >= 0 && p.level[v] <= (int)p.depth) continue;
            p.level[v] = (int)p.depth + 1; /* all that find v write the same */
            if (p.parent) p.parent[v] = (u32)u;
            p.fresh[v] = 1;
        }
    }
    __syncwarp();
    count(p, 0, checks);
}

extern "C" __global__ void advance(const Params p) {
    u32 found = 0;
    for (u64 v = thread_of(); v < p.active; v += threads_of()) {
        if (!p.fresh[v]) continue;
        /* mutant: fresh[v] = 0, p. -> : test_graph_engines::test_records */
        p.fresh[v] = 0, p.mask[v] = 1;
        found++;
    }
    __syncwarp();
    count(p, found, 0);
}
