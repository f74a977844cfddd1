/* Engine `virtual-warp`: groups of 2^width threads a vertex, of one size for all levels.
 *
 * Method: every level reads all vertices; the group of a vertex of the level reads its
 * neighbours together.  O(V D + E).
 * Data: loop.cuh.
 * Source: Hong, Kim, Oguntebi, Olukotun: Accelerating CUDA Graph Algorithms at Maximum
 * Warp, PPoPP 2011; in BFS-4K, Table 2.
 */
#include "../../common/loop.cuh"

extern "C" __global__ void begin(const Params p) { begin_search(p); }

extern "C" __global__ void push(const Params p) {
    u32 found = 0;
    u64 checks = 0;
    const u32 me = (u32)thread_of() & ((1u << p.width) - 1);
    for (u64 u = thread_of() >> p.width; u < p.active; u += threads_of() >> p.width) {
        if (p.level[u] != (int)p.depth) continue;
        const u64 end = p.row[u + 1];
        /* mutant: 1ull -> 2ull : test_shapes */
        for (u64 e = p.row[u] + me; e < end; e += 1ull << p.width) {
            found += find(p, p.adj[e], (u32)u);
            checks++;
        }
    }
    __syncwarp();
    count(p, found, checks);
}
