/* Single-scan frontier queue: plain status writes, then one scan of the status array.
 *
 * The push writes the level without atomics; threads that find one vertex at the same
 * time all write the same level, and any of their parents is right.  The scan then
 * appends the vertices of a level, with one atomic addition a warp, so the queue is
 * not in order.  XBFS (Gaihre et al., HPDC 2019), Section 4.1. */
#ifndef DISTBFS_FRONTIER_SINGLE_SCAN_CUH
#define DISTBFS_FRONTIER_SINGLE_SCAN_CUH
#include "frontier_scan_free.cuh"

/* What a push does with the edge from -> to. */
struct PlainWrite {
    const Params &p;
    int level;
    Tally &tally;

    __device__ __forceinline__ void operator()(bool edge, u32 from, u32 to) {
        if (!edge || load_status(p.level + to) != UNVISITED) return;
        store_status(p.level + to, level);
        if (p.parent) p.parent[to] = from;
        if (p.work) tally.found++;
    }
};

constexpr int SCAN_STEPS = 4; /* statuses that a thread loads before it uses them */

/* Hand each vertex and its status to `take(in range, vertex, status)`, warp by warp. */
template <class Take> INLINE void scan_status(const Params &p, Take take) {
    const u32 stride = threads_of<u32>(THREADS);
    const u32 first = thread_of<u32>(THREADS) - lane_id();
    const u64 round = (u64)SCAN_STEPS * stride;
    for (u64 base = first; base < p.active; base += round) {
        int status[SCAN_STEPS];
#pragma unroll
        for (int k = 0; k < SCAN_STEPS; k++) {
            const u64 v = base + (u64)k * stride + lane_id();
            status[k] = v < p.active ? load_status(p.level + v) : UNVISITED;
        }
#pragma unroll
        for (int k = 0; k < SCAN_STEPS; k++) {
            const u64 v = base + (u64)k * stride + lane_id();
            take(v < p.active, (u32)v, status[k]);
        }
    }
}

/* Make the next queue after a push with plain writes; the vertices of the level that
 * an asynchronous pull found earlier are among them. */
INLINE void scan_level(const Params &p, const State &s) {
    Tally tally;
    Slot *slot = &p.control->slots[s.level & 3];
    u32 *next = queue_out(p, s);
    scan_status(p, [&](bool inside, u32 v, int status) {
        const bool mine = inside && status == s.level;
        if (mine) tally.edges += degree_of(p, v);
        enqueue(mine, v, next, &slot->tail);
    });
    add_tally(p, tally, s.level);
}

/* Make the frontier of the first push after a pull where no-queue is not wanted.
 * Vertices of the level that are known already go straight to the next queue, unless
 * scan_level will find them. */
INLINE void gather_frontier(const Params &p, const State &s) {
    Slot *slot = &p.control->slots[s.level & 3];
    u32 *frontier = queue_in(p, s), *next = queue_out(p, s);
    const bool early = s.early && s.mode != SINGLE_SCAN;
    scan_status(p, [&](bool inside, u32 v, int status) {
        enqueue(inside && status == s.level - 1, v, frontier, &slot->queued);
        if (early) enqueue(inside && status == s.level, v, next, &slot->tail);
    });
}
#endif
