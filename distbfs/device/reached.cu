/* Counts the vertices that a search has reached, in all or at each level, and sums the ends
 * of tuples at them.
 *
 * Method: a thread an entry; each warp adds its sums to those of all.  Levels are counted in
 * shared memory, but for those past its end.
 * Data: values are negative where a vertex is not reached, and only there: the last byte
 * of one has its sign.
 */
#include "../engines/cuda/common/base.cuh"

/* values: [highest row + 1] or [count], items of `size` bytes; rows: [count], where the value
 * of an entry is, or null: at its own place; ends: [count], unsigned, of `end_size` bytes, or
 * null; sums: [2], vertices and ends, added to */
extern "C" __global__ void sum_reached(const signed char *values, u32 size, const u32 *rows,
                                       const void *ends, u32 end_size, u64 count, u64 *sums) {
    u64 reached = 0, all = 0;
    for (u64 k = thread_of(); k < count; k += threads_of()) {
        const u64 at = rows ? rows[k] : k;
        if (values[(at + 1) * size - 1] < 0) continue;
        reached++;
        if (!ends) continue;
        switch (end_size) {
        case 1: all += ((const u8 *)ends)[k]; break;
        case 2: all += ((const u16 *)ends)[k]; break;
        case 4: all += ((const u32 *)ends)[k]; break;
        default: all += ((const u64 *)ends)[k];
        }
    }
    reached = warp_sum(reached), all = warp_sum(all);
    if (lane_id()) return;
    atomicAdd(sums, reached);
    atomicAdd(sums + 1, all); /* mutant: sums + 1 -> sums : test_sums_are_those_of_numpy */
}

#define NEAR_LEVELS 1024 /* counted in shared memory */

/* values: [highest row + 1] or [count], signed, of `size` bytes; rows: [count], where the
 * value of an entry is, or null: at its own place; sums: [kinds], entries of each value from
 * 0 to kinds - 1, added to */
extern "C" __global__ void count_values(const void *values, u32 size, const u32 *rows, u64 count,
                                        u64 kinds, u64 *sums) {
    __shared__ u32 near[NEAR_LEVELS];
    for (u32 k = threadIdx.x; k < NEAR_LEVELS; k += blockDim.x) near[k] = 0;
    __syncthreads();
    for (u64 k = thread_of(); k < count; k += threads_of()) {
        const u64 at = rows ? rows[k] : k;
        const i64 value = size == 1   ? ((const signed char *)values)[at]
                          : size == 2 ? ((const short *)values)[at]
                          : size == 4 ? ((const int *)values)[at]
                                      : ((const i64 *)values)[at];
        if (value < 0 || value >= (i64)kinds) continue;
        if (value < NEAR_LEVELS)
            atomicAdd(near + value, 1u);
        else
            atomicAdd(sums + value, (u64)1);
    }
    __syncthreads();
    for (u32 k = threadIdx.x; k < NEAR_LEVELS; k += blockDim.x)
        /* mutant: (u64)near[k] -> (u64)1 : test_values_are_counted_as_numpy_does */
        if (near[k]) atomicAdd(sums + k, (u64)near[k]);
}
