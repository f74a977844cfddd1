/* Own words of the next snapshot for the replicas of all devices. */
#ifndef DISTBFS_XBFS_DOMAIN_PUBLISH_CUH
#define DISTBFS_XBFS_DOMAIN_PUBLISH_CUH
#include "domain.cuh"

/* x: the four words from `word` on, where this device's replica has others. */
INLINE void publish_changed(const Member &r, const uint4 &x, u32 word, u32 which) {
    const u32 at = place_of(r, word);
    const uint4 y = __ldcg((const uint4 *)(replica_of(r, r.index, which) + at));
    /* mutant: x && x.y == y.y && x.z == y.z && x.w == y.w -> x : test_a_wide_push_between_pulls */
    if (x.x == y.x && x.y == y.y && x.z == y.z && x.w == y.w) return;
    for (u32 k = 0; k < r.parts; k++) *(uint4 *)(replica_of(r, in_turn(r, k), which) + at) = x;
}

/* Words of a tile as a pull leaves them, and those that change later. */
struct Publish {
    const Member &r;
    const u32 *fresh;
    u32 which;
    __device__ __forceinline__ void operator()(u32 word0, u32 words) const {
        const u32 lane = threadIdx.x & 31, shift = words == 8 ? 3 : 2;
        const u32 word = word0 + (lane & (words - 1)); /* a tile has 8 words, or 4 */
        const u32 bits = __ldcg(fresh + word), at = place_of(r, word);
        for (u32 t = lane >> shift; t < r.parts; t += 32 >> shift)
            replica_of(r, t, which)[at] = bits;
    }
    __device__ __forceinline__ void end(u32 tiles, u32 words) const {
        const u32 pieces = words / 4;
        __syncthreads();
        for (u32 i = threadIdx.x;; i += THREADS) {
            const u32 tile = i / pieces * gridDim.x + blockIdx.x;
            /* mutant: if (tile >= tiles) break -> break
             * : test_resident_kernels::test_thresholds_that_force_each_way */
            if (tile >= tiles) break;
            const u32 word = tile * words + i % pieces * 4;
            publish_changed(r, __ldcg((const uint4 *)(fresh + word)), word, which);
        }
    }
};

/* The words of a warp's granules after a pull of few vertices, which no others have changed. */
INLINE void publish_last(const Member &r, const u32 *words, u32 which, u32 warp, u32 warps,
                         u32 lane) {
    __syncwarp();
    for (u32 at = warp + (lane >> 3) * warps;; at += 4 * warps) {
        const u32 word = at * 32 + (lane & 7) * 4;
        if (word >= r.own.words) break;
        publish_changed(r, __ldcg((const uint4 *)(words + word)), word, which);
    }
}

/* All words that differ from what this device's replica has of them. */
INLINE void publish_changes(const Member &r, const u32 *words, u32 which) {
    const u32 count = r.own.words / 4, stride = gridDim.x * THREADS;
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < count; i += stride)
        publish_changed(r, __ldcg((const uint4 *)words + i), i * 4, which);
}

/* A replica as a search begins with it. */
INLINE void clean_replica(const Member &r, u32 which) {
    const u32 count = r.all_words / 4, stride = gridDim.x * THREADS; /* by 4 words */
    uint4 *all = (uint4 *)replica_of(r, r.index, which);
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < count; i += stride)
        all[i] = make_uint4(0, 0, 0, 0);
}
INLINE void clean_replicas(const Member &r) {
    for (u32 which = 0; which < 2; which++) clean_replica(r, which);
}
#endif
