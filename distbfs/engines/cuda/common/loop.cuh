/* Shared by the engines whose levels the host launches one by one (host_loop.py).
 *
 * `depth` is the level of the frontier; vertices found have depth + 1. */
#ifndef DISTBFS_LOOP_CUH
#define DISTBFS_LOOP_CUH
#include "base.cuh"
#include "goal.cuh"

/* The same in host_loop.py. */
#define THREADS 256 /* of a block */
#define BLOCKS 8    /* most on a multiprocessor, which run at once */
#define COUNTS 3    /* of a level */

struct Params {
    Uints row;         /* [active + 1] */
    const u32 *adj;    /* [m + pad] */
    /* the rows that pulls read; of a symmetric graph the same */
    Uints in_row;      /* [active + 1] */
    const u32 *in_adj; /* [m + pad] */
    int *level;        /* [active], -1: unvisited */
    u32 *parent;       /* [active], number or NONE; null: not wanted */
    u32 *queue[2];     /* [active] each (frontier) */
    u32 *bits;         /* [words], the frontier (frontier, pull) */
    u32 *origin;       /* [m], the row that a column is in (edge-parallel) */
    u8 *mask;          /* [active], the frontier (harish) */
    u8 *fresh;         /* [active], what a level found (harish) */
    u64 *counts;       /* [4][COUNTS]: of level depth & 3: vertices found, edge checks,
                          whether all targets are found */
    u64 m;
    u32 active, depth, size, width; /* size: of the frontier; width: log2 of a virtual warp */
    u32 root, counting; /* counting: 1 where edge checks are wanted, else 0 */
    Goal goal;
};

INLINE u64 *counts_of(const Params &p, u32 depth) { return p.counts + COUNTS * (depth & 3); }

/* Reset the search and set the root. */
INLINE void begin_search(const Params &p) {
    for (u64 v = thread_of(); v < p.active; v += threads_of()) {
        p.level[v] = v == p.root ? 0 : -1;
        if (p.parent) p.parent[v] = v == p.root ? p.root : NONE;
    }
    if (thread_of() < 4 * COUNTS) p.counts[thread_of()] = 0;
}

/* Whether this thread is the one that finds v, from u. */
INLINE bool find(const Params &p, u32 v, u32 u) {
    if (p.level[v] != -1 || atomicCAS(p.level + v, -1, (int)p.depth + 1) != -1) return false;
    if (p.parent) p.parent[v] = u;
    return true;
}

/* Add the counts of the threads of a warp, and clear the counts of a later level; a
 * whole warp calls it. */
INLINE void count(const Params &p, u32 found, u64 checks) {
    u64 *now = counts_of(p, p.depth);
    const u32 sum = __reduce_add_sync(ALL, found);
    if (lane_id() == 0 && sum) atomicAdd(now, (u64)sum);
    if (p.counting) {
        checks = warp_sum(checks);
        if (lane_id() == 0 && checks) atomicAdd(now + 1, checks);
    }
    if (thread_of() < COUNTS) counts_of(p, p.depth + 2)[thread_of()] = 0;
}

/* After a level, where there are targets. */
extern "C" __global__ void seek(const Params p) {
    if (blockIdx.x == 0 && reached(p.goal, p.level, (int)p.depth + 1) && threadIdx.x == 0)
        counts_of(p, p.depth)[2] = 1;
}
#endif
