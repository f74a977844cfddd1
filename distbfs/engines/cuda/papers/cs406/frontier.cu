/* Engine `frontier`: threads divide a queue of the frontier.
 *
 * Method.  Push: a thread reads the neighbours of its vertex and puts those that it finds
 * into the next queue, one atomic addition each.  Pull: a thread whose vertex is
 * unvisited looks for a neighbour whose bit of the frontier is set.
 * Data: loop.cuh.
 * Source: Sevilmis, Sivri, Aydin: CS406 project, 2019, Section 5.2; there two threads may
 * queue a vertex twice, here it is claimed by an atomic.
 */
#include "../../common/loop.cuh"

extern "C" __global__ void begin(const Params p) {
    begin_search(p);
    if (thread_of() == 0) p.queue[0][0] = p.root;
}

/* The queues that this level reads and writes. */
INLINE u32 *queue_in(const Params &p) { return p.depth & 1 ? p.queue[1] : p.queue[0]; }
INLINE u32 *queue_out(const Params &p) { return p.depth & 1 ? p.queue[0] : p.queue[1]; }

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) push(const Params p) {
    u64 checks = 0;
    u64 *tail = counts_of(p, p.depth);
    u32 *next = queue_out(p);
    for (u64 k = thread_of(); k < p.size; k += threads_of()) {
        const u32 u = queue_in(p)[k];
        const u64 begin = p.row[u], end = p.row[u + 1];
        for (u64 e = begin; e < end; e++)
            if (find(p, p.adj[e], u)) next[atomicAdd(tail, (u64)1)] = p.adj[e];
        checks += end - begin;
    }
    __syncwarp();
    count(p, 0, checks);
}

extern "C" __global__ void clear(const Params p) {
    /* mutant: = 0 -> |= 0 : test_shapes */
    for (u64 w = thread_of(); w * 32 < p.active; w += threads_of()) p.bits[w] = 0;
}

extern "C" __global__ void mark(const Params p) {
    for (u64 k = thread_of(); k < p.size; k += threads_of()) {
        const u32 u = queue_in(p)[k];
        atomicOr(p.bits + (u >> 5), 1u << (u & 31));
    }
}

extern "C" __global__ void pull(const Params p) {
    u64 checks = 0;
    u64 *tail = counts_of(p, p.depth);
    u32 *next = queue_out(p);
    for (u64 v = thread_of(); v < p.active; v += threads_of()) {
        if (p.level[v] != -1) continue;
        const u64 end = p.in_row[v + 1];
        for (u64 e = p.in_row[v]; e < end; e++) {
            const u32 u = p.in_adj[e];
            checks++;
            if (!bit_of(p.bits, u)) continue;
            p.level[v] = (int)p.depth + 1;
            if (p.parent) p.parent[v] = u;
            next[atomicAdd(tail, (u64)1)] = (u32)v;
            break;
        }
    }
    __syncwarp();
    count(p, 0, checks);
}
