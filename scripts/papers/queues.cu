// variants: BLOCK=128 | BLOCK=256 | BLOCK=512 | BLOCK=1024
/* A frontier queue from a status array: by atomic additions, or by a prefix sum.
 *
 * `atomic_warp` and `atomic_block` read the array once; places in the queue come from
 * one addition for the members among 32 statuses, or among TILE, and are in no order.
 * (One addition for each member is as fast as `atomic_warp`: those of a warp are joined
 * on the way.)  `count_tiles`, `scan_tiles` and `place` are the two-pass scan: members
 * of each tile of TILE statuses, sums before each tile (one block), then a second
 * reading that puts the members in order.  The grid of all but `scan_tiles` may have any
 * size; BLOCK threads are fixed when the file is compiled.
 * Source: Gaihre, Wu, Yao, Liu: XBFS, HPDC 2019, Section 4.1, Figure 5. */
#include "../../distbfs/engines/cuda/common/base.cuh"

#ifndef BLOCK
#define BLOCK 256
#endif

constexpr u32 WARPS = BLOCK / 32;
constexpr int STEPS = 4;                /* statuses of a thread that are loaded together */
constexpr u32 TILE = BLOCK * STEPS * 4; /* also in queues.py */

/* Hand every status to `take(member, vertex)`, a warp at a time.
 * status: [count], count below 2^32 */
template <class Take>
INLINE void read_all(const int *status, u64 count, int level, Take take) {
    const u64 stride = threads_of(BLOCK);
    const u64 first = (u64)blockIdx.x * BLOCK + (threadIdx.x & ~31u);
    for (u64 base = first; base < count; base += STEPS * stride) {
        int value[STEPS];
#pragma unroll
        for (int k = 0; k < STEPS; k++) {
            const u64 v = base + k * stride + lane_id();
            value[k] = v < count ? status[v] : level - 1;
        }
#pragma unroll
        for (int k = 0; k < STEPS; k++)
            take(value[k] == level, (u32)(base + k * stride + lane_id()));
    }
}

/* queue: [members]; tail: [1], 0 before the launch, the members after it */
extern "C" __global__ void __launch_bounds__(BLOCK)
    atomic_warp(const int *status, u64 count, int level, u32 *queue, u32 *tail) {
    read_all(status, count, level, [&](bool member, u32 v) {
        const u32 at = take_place(member, tail);
        if (member) queue[at] = v;
    });
}

/* First pass.  tiles: [ceil(count / TILE)], members of each */
extern "C" __global__ void __launch_bounds__(BLOCK)
    count_tiles(const int *status, u64 count, int level, u32 *tiles) {
    const u64 last = (count + TILE - 1) / TILE;
    for (u64 tile = blockIdx.x; tile < last; tile += gridDim.x) {
        u32 mine = 0, total;
#pragma unroll
        for (u32 k = 0; k < TILE / BLOCK; k++) {
            const u64 v = tile * TILE + k * BLOCK + threadIdx.x;
            mine += v < count && status[v] == level;
        }
        block_scan<WARPS>(mine, total);
        if (threadIdx.x == 0) tiles[tile] = total;
    }
}

/* One block: members before each tile, in place.  tail: [1], all members */
extern "C" __global__ void __launch_bounds__(BLOCK)
    scan_tiles(u32 *tiles, u64 count, u32 *tail) {
    u32 before = 0;
    for (u64 base = 0; base < count; base += BLOCK * STEPS) {
        u32 value[STEPS], mine = 0, total;
        const u64 first = base + (u64)threadIdx.x * STEPS;
#pragma unroll
        for (int k = 0; k < STEPS; k++) {
            value[k] = first + k < count ? tiles[first + k] : 0;
            mine += value[k];
        }
        u32 at = before + block_scan<WARPS>(mine, total);
#pragma unroll
        for (int k = 0; k < STEPS; k++) {
            if (first + k < count) tiles[first + k] = at;
            at += value[k];
        }
        before += total;
    }
    if (threadIdx.x == 0) *tail = before;
}

/* Put the members of every tile into the queue; `before(tile, members)` is the place of
 * its first one.  A warp owns TILE / WARPS statuses in a row. */
template <class Before>
INLINE void place_tiles(const int *status, u64 count, int level,
                                            u32 *queue, Before before) {
    constexpr u32 GROUPS = TILE / BLOCK; /* of 32 statuses, for each warp */
    __shared__ u32 base;
    const u64 last = (count + TILE - 1) / TILE;
    for (u64 tile = blockIdx.x; tile < last; tile += gridDim.x) {
        const u64 first = tile * TILE + (threadIdx.x / 32) * (GROUPS * 32) + lane_id();
        u32 lanes[GROUPS], members = 0, total;
#pragma unroll
        for (u32 k = 0; k < GROUPS; k++) {
            const u64 v = first + k * 32;
            lanes[k] = __ballot_sync(ALL, v < count && status[v] == level);
            members += __popc(lanes[k]);
        }
        u32 at = block_scan<WARPS>(lane_id() == 0 ? members : 0, total);
        if (threadIdx.x == 0) base = before(tile, total);
        __syncthreads();
        at = base + __shfl_sync(ALL, at, 0);
#pragma unroll
        for (u32 k = 0; k < GROUPS; k++) {
            if (lanes[k] >> lane_id() & 1)
                queue[at + __popc(lanes[k] & lanes_below())] = (u32)(first + k * 32);
            at += __popc(lanes[k]);
        }
    }
}

/* Second pass.  queue: [members] */
extern "C" __global__ void __launch_bounds__(BLOCK)
    place(const int *status, u64 count, int level, const u32 *tiles, u32 *queue) {
    place_tiles(status, count, level, queue, [&](u64 tile, u32) { return tiles[tile]; });
}

/* As atomic_warp, with one addition for a tile. */
extern "C" __global__ void __launch_bounds__(BLOCK)
    atomic_block(const int *status, u64 count, int level, u32 *queue, u32 *tail) {
    place_tiles(status, count, level, queue,
                [&](u64, u32 members) { return atomicAdd(tail, members); });
}
