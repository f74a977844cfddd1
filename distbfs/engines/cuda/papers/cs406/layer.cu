/* Engine `layer`: no frontier is kept; every level reads all vertices.
 *
 * Method.  Push: a thread whose vertex is of the level reads its neighbours.  Pull: a
 * thread whose vertex is unvisited looks for a neighbour of the level.
 * Data: loop.cuh.
 * Source: Sevilmis, Sivri, Aydin: CS406 project, 2019, Section 5.1; a vertex is claimed
 * by an atomic here, so that those found can be counted.
 */
#include "../../common/loop.cuh"

extern "C" __global__ void begin(const Params p) { begin_search(p); }

extern "C" __global__ void push(const Params p) {
    u32 found = 0;
    u64 checks = 0;
    for (u64 u = thread_of(); u < p.active; u += threads_of()) {
        if (p.level[u] != (int)p.depth) continue;
        const u64 begin = p.row[u], end = p.row[u + 1];
        for (u64 e = begin; e < end; e++) found += find(p, p.adj[e], (u32)u);
        checks += end - begin;
    }
    __syncwarp();
    count(p, found, checks);
}

extern "C" __global__ void pull(const Params p) {
    u32 found = 0;
    u64 checks = 0;
    for (u64 v = thread_of(); v < p.active; v += threads_of()) {
        if (p.level[v] != -1) continue;
        const u64 end = p.in_row[v + 1];
        for (u64 e = p.in_row[v]; e < end; e++) {
            checks++;
            /* mutant: != (int)p.depth -> < 0 : test_shapes */
            if (p.level[p.in_adj[e]] != (int)p.depth) continue;
            p.level[v] = (int)p.depth + 1;
            if (p.parent) p.parent[v] = p.in_adj[e];
            found++;
            break;
        }
    }
    __syncwarp();
    count(p, found, checks);
}
