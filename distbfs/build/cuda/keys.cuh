/* Shared by the kernels that build graphs and parts: classes of degrees, keys of tuples,
 * and the keys that differ from the previous one. */
#ifndef DISTBFS_KEYS_CUH
#define DISTBFS_KEYS_CUH
#include "../../engines/cuda/common/base.cuh"

#define THREADS 256
#define WARPS (THREADS / 32)
#define PER_THREAD 8 /* tuples or keys of a thread at a time */
#define TILE (THREADS * PER_THREAD)

/* The class of a degree, as device_graph.degree_class. */
INLINE u32 class_of(u32 degree) {
    if (degree <= 16) return degree;
    u32 octave = 31 - __clz(degree);
    return 16 + 4 * (octave - 4) + (degree >> (octave - 2) & 3);
}

/* Appends up to N keys of each thread of a block, which takes room for them with one atomic
 * and writes them warp by warp; all threads call it.
 *
 * wanted: bit j where key(j) is to be appended; keys: [capacity]; keys beyond are only
 * counted; size: [1], keys so far
 */
template <int N, class Key>
INLINE void append(u32 wanted, const Key &key, u64 capacity, u64 *__restrict__ keys, u64 *size) {
    __shared__ u32 counts[WARPS];
    __shared__ u64 start;
    u32 warp = threadIdx.x / 32;
    u32 found = __reduce_add_sync(ALL, __popc(wanted));
    if (lane_id() == 0) counts[warp] = found;
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 sum = 0;
        for (int w = 0; w < WARPS; w++) sum += counts[w];
        start = sum ? atomicAdd(size, (u64)sum) : 0;
    }
    __syncthreads();
    u64 at = start;
    for (u32 w = 0; w < warp; w++) at += counts[w];
#pragma unroll
    for (int j = 0; j < N; j++) {
        u32 lanes = __ballot_sync(ALL, wanted >> j & 1);
        u64 place = at + __popc(lanes & lanes_below());
        if ((wanted >> j & 1) && place < capacity) keys[place] = key(j);
        at += __popc(lanes);
    }
    __syncthreads();
}

INLINE bool is_fresh(const u64 *keys, u64 i, u64 key) {
    return i == 0 || keys[i - 1] != key;
}

/* Call put(i, key, at) for each key that differs from the one before it: `at` is the
 * number of such keys before it.
 *
 * keys: [count], sorted; starts: [tiles + 1], from count_fresh
 */
template <class Put>
INLINE void each_fresh(u64 count, const u64 *__restrict__ keys, const u64 *__restrict__ starts,
                       const Put &put) {
    __shared__ u32 before[PER_THREAD * WARPS];
    u32 warp = threadIdx.x / 32;
    for (u64 first = blockIdx.x * (u64)TILE; first < count; first += gridDim.x * (u64)TILE) {
        u32 lanes[PER_THREAD];
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            u64 i = first + k * THREADS + threadIdx.x;
            lanes[k] = __ballot_sync(ALL, i < count && is_fresh(keys, i, keys[i]));
            if (lane_id() == 0) before[k * WARPS + warp] = __popc(lanes[k]);
        }
        __syncthreads();
        if (warp == 0) {
            u32 one = before[threadIdx.x * 2], other = before[threadIdx.x * 2 + 1];
            u32 start = (u32)warp_scan<u64>(one + other) - one - other;
            before[threadIdx.x * 2] = start;
            before[threadIdx.x * 2 + 1] = start + one;
        }
        __syncthreads();
        u64 start = starts[first / TILE];
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            if (!(lanes[k] >> threadIdx.x % 32 & 1)) continue;
            u64 i = first + k * THREADS + threadIdx.x;
            put(i, keys[i], start + before[k * WARPS + warp] + __popc(lanes[k] & lanes_below()));
        }
        __syncthreads();
    }
}
#endif
