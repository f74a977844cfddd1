/* What the kernels that build graphs and parts share: sums over warps, prefix sums, and
 * the keys that differ from the one before. */
#ifndef DISTBFS_KEYS_CUH
#define DISTBFS_KEYS_CUH
#include "../../engines/cuda/common/base.cuh"

#define THREADS 256
#define WARPS (THREADS / 32)
#define PER_THREAD 8 /* tuples or keys of a thread at a time */
#define ROWS_TILE 1024

/* Sums before each value; a single block of 1024 threads.
 *
 * values: [count]; starts: [count + 1], the last is the sum of all
 */
template <typename Value>
static __device__ void sums_before(u64 count, const Value *__restrict__ values,
                                   u64 *__restrict__ starts) {
    __shared__ u64 sums[32];
    u32 warp = threadIdx.x / 32, lane = lane_id();
    u64 before = 0;
    for (u64 base = 0; base < count; base += 4096) {
        u64 first = base + threadIdx.x * 4, own[4], sum = 0;
        for (int k = 0; k < 4; k++) {
            own[k] = sum;
            sum += first + k < count ? values[first + k] : 0;
        }
        u64 upto = warp_scan<u64>(sum);
        if (lane == 31) sums[warp] = upto;
        __syncthreads();
        if (warp == 0) sums[lane] = warp_scan<u64>(sums[lane]);
        __syncthreads();
        u64 start = before + upto - sum + (warp ? sums[warp - 1] : 0);
        for (int k = 0; k < 4; k++)
            if (first + k < count) starts[first + k] = start + own[k];
        before += sums[31];
        __syncthreads();
    }
    if (threadIdx.x == 0) starts[count] = before;
}

/* Sums each tile of ROWS_TILE values; one block a tile.
 *
 * values: [rows]; sums: [ceil(rows / ROWS_TILE)]; longest: [1], the highest value
 */
static __device__ void sum_tiles(u64 rows, const u32 *__restrict__ values,
                                 u64 *__restrict__ sums, u32 *longest) {
    __shared__ u64 part[WARPS];
    u64 tiles = (rows + ROWS_TILE - 1) / ROWS_TILE;
    u32 highest = 0;
    for (u64 t = blockIdx.x; t < tiles; t += gridDim.x) {
        u64 sum = 0;
        for (u32 k = threadIdx.x; k < ROWS_TILE; k += THREADS) {
            u64 row = t * ROWS_TILE + k;
            u32 value = row < rows ? values[row] : 0;
            sum += value;
            if (value > highest) highest = value;
        }
        sum = warp_sum(sum);
        if (lane_id() == 0) part[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            sum = 0;
            for (int w = 0; w < WARPS; w++) sum += part[w];
            sums[t] = sum;
        }
        __syncthreads();
    }
    highest = __reduce_max_sync(ALL, highest);
    if (lane_id() == 0 && highest) atomicMax(longest, highest);
}

INLINE bool is_fresh(const u64 *keys, u64 i, u64 key) {
    return i == 0 || keys[i - 1] != key;
}
#endif
