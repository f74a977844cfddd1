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

constexpr uint32_t WARPS = BLOCK / 32;
constexpr int WORDS = 8; /* groups of 32 statuses that a warp loads before it uses them */

/* Hand the segments of a warp to `take(vertex, ballot, owner lane)`, 32 vertices at a
 * time, in order. */
template <class Take> DEVICE void scan_segments(const Params &p, Take take) {
    const uint32_t words = p.segment / 32; /* of one segment */
    const uint64_t first = (uint64_t)(thread_id() - lane_id()) * p.segment;
    for (uint32_t word = 0; word < p.segment; word += WORDS) {
        if (first + (uint64_t)word * 32 >= p.vertices) break;
        int status[WORDS];
#pragma unroll
        for (int k = 0; k < WORDS; k++) {
            const uint64_t v = first + (uint64_t)(word + k) * 32 + lane_id();
            const bool inside = word + k < p.segment && v < p.vertices;
            status[k] = inside ? load_status(p.status + v) : 0;
        }
#pragma unroll
        for (int k = 0; k < WORDS; k++) {
            const uint32_t lanes = __ballot_sync(FULL, status[k] == UNVISITED);
            const uint64_t v = first + (uint64_t)(word + k) * 32 + lane_id();
            if (lanes) take((uint32_t)v, lanes, (word + k) / words);
        }
    }
}

/* Sum over the threads of the block before this one; `total` over all of them. */
DEVICE uint32_t block_prefix(uint32_t value, uint32_t &total) {
    __shared__ uint32_t sums[WARPS];
    uint32_t upto = value;
    for (int step = 1; step < 32; step <<= 1) {
        const uint32_t other = __shfl_up_sync(FULL, upto, step);
        if (lane_id() >= step) upto += other;
    }
    __syncthreads();
    if (lane_id() == 31) sums[threadIdx.x / 32] = upto;
    __syncthreads();
    uint32_t before = 0;
    total = 0;
    for (uint32_t warp = 0; warp < WARPS; warp++) {
        if (warp < threadIdx.x / 32) before += sums[warp];
        total += sums[warp];
    }
    return before + upto - value;
}

/* Scan I: places of the segments inside each block, and the sum of each block. */
DEVICE void count_unvisited(const Params &p) {
    uint32_t mine = 0;
    scan_segments(p, [&](uint32_t, uint32_t lanes, uint32_t owner) {
        if (lane_id() == owner) mine += __popc(lanes);
    });
    uint32_t total;
    p.segments[thread_id()] = block_prefix(mine, total);
    if (threadIdx.x == 0) p.totals[blockIdx.x] = total;
}

/* Scan II: the queue, in order, and its length. */
DEVICE void place_unvisited(const Params &p, const State &s) {
    uint32_t before = 0, all = 0;
    for (uint32_t block = threadIdx.x; block < gridDim.x; block += BLOCK) {
        const uint32_t total = p.totals[block];
        all += total;
        if (block < blockIdx.x) before += total;
    }
    block_prefix(before, before);
    block_prefix(all, all);
    uint32_t at = before + p.segments[thread_id()];
    uint32_t *queue = queue_in(p, s);
    scan_segments(p, [&](uint32_t v, uint32_t lanes, uint32_t owner) {
        const uint32_t place = __shfl_sync(FULL, at, owner);
        if (lanes >> lane_id() & 1) queue[place + __popc(lanes & lanes_below())] = v;
        if (lane_id() == owner) at += __popc(lanes);
    });
    if (thread_id() == 0) p.control->slots[s.level & 3].queued = all;
}
#endif
