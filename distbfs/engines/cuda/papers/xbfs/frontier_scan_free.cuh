/* Scan-free frontier queue: one pass, two kinds of atomics.
 *
 * A neighbour's status is set by compare-and-swap; who wins puts it into the next
 * queue at once.  The places of a warp's winners are taken by one atomic addition.
 * XBFS (Gaihre et al., HPDC 2019), Section 4.1. */
#ifndef DISTBFS_FRONTIER_SCAN_FREE_CUH
#define DISTBFS_FRONTIER_SCAN_FREE_CUH
#include "paper_tally.cuh"
#include "status.cuh"

/* All lanes of a warp call it; those with `mine` append v.
 * queue: [>= tail after it]; tail: [1] */
INLINE void enqueue(bool mine, u32 v, u32 *queue, u32 *tail) {
    const u32 at = take_place(mine, tail);
    if (mine) queue[at] = v;
}

/* What a push does with the edge from -> to; all lanes of a warp call it. */
struct ScanFree {
    const Params &p;
    u32 *next; /* [active] */
    Slot *slot;
    int level;
    Tally &tally;

    __device__ __forceinline__ void operator()(bool edge, u32 from, u32 to) {
        const bool won = edge && load_status(p.level + to) == UNVISITED &&
                         atomicCAS(p.level + to, UNVISITED, level) == UNVISITED;
        if (won) {
            if (p.parent) p.parent[to] = from;
            tally.found++;
            tally.edges += degree_of(p, to);
        }
        enqueue(won, to, next, &slot->tail);
    }
};
#endif
