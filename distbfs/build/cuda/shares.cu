/* Edge tuples in boxes, one for each device that keeps some of them.
 *
 * Method: a tuple goes to the device that has the part of u and to that of v, once where
 * they are one.  A first kernel counts what goes into each box, a second writes the boxes
 * one after the other.  Where the boxes are few a block counts its tuples in shared memory
 * and takes room for all of them with one atomic a box.
 *
 * Data encoding: vertex v is of part v % parts.
 *
 * variants: ID=u32,u64
 *
 * All kernels take one-dimensional grids of any size and blocks of THREADS threads.
 */
#include "keys.cuh"

#define FEW 2048 /* boxes that a block counts by itself */

/* Counts the tuples of each box.
 *
 * u, v: [count], ids; seats: [parts], the device of each part; sizes: [boxes], added to
 */
extern "C" __global__ void __launch_bounds__(THREADS) count_boxes(
    u64 count, const ID *__restrict__ u, const ID *__restrict__ v, u32 parts,
    const u32 *__restrict__ seats, u32 boxes, u32 *sizes) {
    __shared__ u32 few[FEW];
    bool own = boxes <= FEW;
    for (u32 k = threadIdx.x; own && k < boxes; k += THREADS) few[k] = 0;
    __syncthreads();
    u32 *counts = own ? few : sizes;
    for (u64 k = thread_of(THREADS); k < count; k += threads_of(THREADS)) {
        u32 a = seats[u[k] % parts], b = seats[v[k] % parts];
        atomicAdd(counts + a, 1u);
        if (a != b) atomicAdd(counts + b, 1u);
    }
    __syncthreads();
    for (u32 k = threadIdx.x; own && k < boxes; k += THREADS)
        if (few[k]) atomicAdd(sizes + k, few[k]);
}

/* Writes the tuples into their boxes, in any order.
 *
 * u, v: [count], ids; seats: [parts], the device of each part
 * ends: [boxes], where each box begins, and after this where it ends
 * box_u, box_v: [tuples of all boxes]
 */
extern "C" __global__ void __launch_bounds__(THREADS) fill_boxes(
    u64 count, const ID *__restrict__ u, const ID *__restrict__ v, u32 parts,
    const u32 *__restrict__ seats, u32 boxes, u64 *ends, ID *__restrict__ box_u,
    ID *__restrict__ box_v) {
    __shared__ u32 few[FEW];    /* tuples of this tile in each box so far */
    __shared__ u64 starts[FEW]; /* where they go */
    bool own = boxes <= FEW;
    for (u64 first = blockIdx.x * (u64)TILE; first < count; first += gridDim.x * (u64)TILE) {
        u32 box[PER_THREAD][2], place[PER_THREAD][2];
        for (u32 k = threadIdx.x; own && k < boxes; k += THREADS) few[k] = 0;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            u64 i = first + k * THREADS + threadIdx.x;
            box[k][0] = box[k][1] = NONE;
            if (i >= count) continue;
            u32 a = seats[u[i] % parts], b = seats[v[i] % parts];
            box[k][0] = a;
            if (a != b) box[k][1] = b; /* mutant: if (a != b) box -> box : test_boxes */
            if (!own) continue;
            place[k][0] = atomicAdd(few + a, 1u);
            if (a != b) place[k][1] = atomicAdd(few + b, 1u);
        }
        __syncthreads();
        for (u32 k = threadIdx.x; own && k < boxes; k += THREADS)
            if (few[k]) starts[k] = atomicAdd(ends + k, (u64)few[k]);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            u64 i = first + k * THREADS + threadIdx.x;
#pragma unroll
            for (int e = 0; e < 2; e++) {
                u32 b = box[k][e];
                if (b == NONE) continue;
                u64 at = own ? starts[b] + place[k][e] : atomicAdd(ends + b, (u64)1);
                box_u[at] = u[i];
                box_v[at] = v[i];
            }
        }
    }
}
