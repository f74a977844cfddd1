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

constexpr u32 WARPS = THREADS / 32;
constexpr int WORDS = 8; /* groups of 32 statuses that a warp loads before it uses them */

/* Hand the segments of a warp to `take(vertex, ballot, owner lane)`, 32 vertices at a
 * time, in order. */
template <class Take> INLINE void scan_segments(const Params &p, Take take) {
    const u32 words = p.segment / 32; /* of one segment */
    const u64 first = (u64)(thread_of<u32>(THREADS) - lane_id()) * p.segment;
    for (u32 word = 0; word < p.segment; word += WORDS) {
        if (first + (u64)word * 32 >= p.vertices) break;
        int status[WORDS];
#pragma unroll
        for (int k = 0; k < WORDS; k++) {
            const u64 v = first + (u64)(word + k) * 32 + lane_id();
            const bool inside = word + k < p.segment && v < p.vertices;
            status[k] = inside ? load_status(p.status + v) : 0;
        }
#pragma unroll
        for (int k = 0; k < WORDS; k++) {
            const u32 lanes = __ballot_sync(ALL, status[k] == UNVISITED);
            const u64 v = first + (u64)(word + k) * 32 + lane_id();
            if (lanes) take((u32)v, lanes, (word + k) / words);
        }
    }
}

/* Sum over the threads of the block before this one; `total` over all of them. */
INLINE u32 block_prefix(u32 value, u32 &total) {
    __shared__ u32 sums[WARPS];
    u32 upto = value;
    for (int step = 1; step < 32; step <<= 1) {
        const u32 other = __shfl_up_sync(ALL, upto, step);
        if (lane_id() >= step) upto += other;
    }
    __syncthreads();
    if (lane_id() == 31) sums[threadIdx.x / 32] = upto;
    __syncthreads();
    u32 before = 0;
    total = 0;
    for (u32 warp = 0; warp < WARPS; warp++) {
        if (warp < threadIdx.x / 32) before += sums[warp];
        total += sums[warp];
    }
    return before + upto - value;
}

/* Scan I: places of the segments inside each block, and the sum of each block. */
INLINE void count_unvisited(const Params &p) {
    u32 mine = 0;
    scan_segments(p, [&](u32, u32 lanes, u32 owner) {
        if (lane_id() == owner) mine += __popc(lanes);
    });
    u32 total;
    p.segments[thread_of<u32>(THREADS)] = block_prefix(mine, total);
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
    block_prefix(before, before);
    block_prefix(all, all);
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
