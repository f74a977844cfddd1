/* The OR of delegate masks that ranks sent to this device.
 *
 * Method: each word is read once from every row, four rows in flight; NCCL has no OR.
 * Data encoding: masks of 64-bit words, bit b of word w is delegate 64 w + b.
 * Source: Pan, Pearce, Owens 2018, Section V-A (reduction across ranks).
 */
#include "../engines/cuda/common/base.cuh"

#define THREADS 256

/* A one-dimensional grid of any size.
 *
 * rows: [count, stride], masks, of which the first ``words`` words of a row are meant;
 * out: [words], written; may be outside of ``rows`` only
 */
extern "C" __global__ void __launch_bounds__(THREADS) or_rows(
    const u64 *__restrict__ rows, u64 count, u64 stride, u64 words, u64 *out) {
    for (u64 w = thread_of(THREADS); w < words; w += threads_of(THREADS)) {
        u64 found = 0;
#pragma unroll 4
        /* mutant: |= -> ^= : test_reduce_kernel */
        for (u64 r = 0; r < count; ++r) found |= rows[r * stride + w];
        out[w] = found;
    }
}
