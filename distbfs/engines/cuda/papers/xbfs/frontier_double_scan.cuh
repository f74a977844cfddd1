/* Double-scan frontier queue of a pull: sorted, and all reads of statuses coalesced.
 *
 * Each thread owns a segment of the status array, a multiple of 32 vertices long.  The
 * warp goes through the 32 segments of its threads together: ballot says which of 32
 * vertices are unvisited and the owner of the segment keeps their number.  A prefix sum
 * over segments (in the block, then over blocks) gives their places; the second scan
 * puts the vertices there, with the owner's place passed round by a shuffle.
 * XBFS (Gaihre et al., HPDC 2019), Section 4.2, Figure 6. */
#ifndef DISTBFS_FRONTIER_DOUBLE_SCAN_CUH
#define DISTBFS_FRONTIER_DOUBLE_SCAN_CUH
#include "paper_state.cuh"
#include "status.cuh"

constexpr int WORDS = 8; /* groups of 32 statuses that a warp loads before it uses them */

/* Hand the segments of a warp to `take(vertex, ballot, owner lane)`, 32 vertices at a
 * time, in order. */
template <class Take> INLINE void scan_segments(const Params &p, Take take) {
    const u32 words = p.segment / 32; /* of one segment */
    const u64 first = (u64)(thread_of<u32>(THREADS) - lane_id()) * p.segment;
    for (u32 word = 0; word < p.segment; word += WORDS) {
        if (first + (u64)word * 32 >= p.active) break;
        int status[WORDS];
#pragma unroll
        for (int k = 0; k < WORDS; k++) {
            const u64 v = first + (u64)(word + k) * 32 + lane_id();
            const bool inside = word + k < p.segment && v < p.active;
            status[k] = inside ? load_status(p.level + v) : 0;
        }
#pragma unroll
        for (int k = 0; k < WORDS; k++) {
            const u32 lanes = __ballot_sync(ALL, status[k] == UNVISITED);
            const u64 v = first + (u64)(word + k) * 32 + lane_id();
            if (lanes) take((u32)v, lanes, (word + k) / words);
        }
    }
}

/* Scan I: places of the segments inside each block, and the sum of each block. */
INLINE void count_unvisited(const Params &p) {
    u32 mine = 0;
    scan_segments(p, [&](u32, u32 lanes, u32 owner) {
        if (lane_id() == owner) mine += __popc(lanes);
    });
    u32 total;
    p.segments[thread_of<u32>(THREADS)] = block_scan<WARPS>(mine, total);
    if (threadIdx.x == 0) p.totals[blockIdx.x] = total;
}

/* Scan II: the queue, in order, and its length. */
INLINE void place_unvisited(const Params &p, const State &s) {
    u32 before = 0, all = 0;
    for (u32 block = threadIdx.x; block < gridDim.x; block += THREADS) {
        const u32 total = p.totals[block];
        all += total;
        if (block < blockIdx.x) before += total;
    }
    block_scan<WARPS>(before, before);
    block_scan<WARPS>(all, all);
    u32 at = before + p.segments[thread_of<u32>(THREADS)];
    u32 *queue = queue_in(p, s);
    scan_segments(p, [&](u32 v, u32 lanes, u32 owner) {
        const u32 place = __shfl_sync(ALL, at, owner);
        if (lanes >> lane_id() & 1) queue[place + __popc(lanes & lanes_below())] = v;
        if (lane_id() == owner) at += __popc(lanes);
    });
    if (thread_of<u32>(THREADS) == 0) p.control->slots[s.level & 3].queued = all;
}
#endif
