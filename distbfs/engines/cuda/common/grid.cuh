/* A barrier of all blocks of a cooperative launch.
 *
 * One word: each block adds 1, block 0 adds what turns the top bit over once all
 * blocks have come.  The other bits are then zero again, so the word needs no reset
 * between launches. */
#ifndef DISTBFS_GRID_CUH
#define DISTBFS_GRID_CUH
#include "types.cuh"

/* word: [1].  All threads of all blocks call it; what they wrote before is seen by all
 * after it. */
DEVICE void grid_barrier(uint32_t *word) {
    __syncthreads();
    if (threadIdx.x == 0) {
        const uint32_t add = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
        __threadfence();
        const uint32_t old = atomicAdd(word, add);
        while (((look_acquire(word) ^ old) & 0x80000000u) == 0) {
        }
        __threadfence();
    }
    __syncthreads();
}
#endif
