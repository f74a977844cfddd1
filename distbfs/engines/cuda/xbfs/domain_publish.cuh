/* Own words of the next snapshot for the replicas of all devices. */
#ifndef DISTBFS_XBFS_DOMAIN_PUBLISH_CUH
#define DISTBFS_XBFS_DOMAIN_PUBLISH_CUH
#include "domain.cuh"

/* Words of a tile as a pull leaves them. */
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
};

/* Words that differ from what this device's replica has of them. */
INLINE void publish_changes(const Member &r, const u32 *words, u32 which) {
    const u32 count = r.own.words / 4, stride = gridDim.x * THREADS;
    const u32 *own = replica_of(r, r.index, which);
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < count; i += stride) {
        const u32 at = place_of(r, i * 4);
        const uint4 x = __ldcg((const uint4 *)(words + i * 4));
        const uint4 y = __ldcg((const uint4 *)(own + at));
        if (x.x == y.x && x.y == y.y && x.z == y.z && x.w == y.w) continue;
        for (u32 k = 0; k < r.parts; k++) { /* not all to the same device at once */
            const u32 t = r.index + k < r.parts ? r.index + k : r.index + k - r.parts;
            *(uint4 *)(replica_of(r, t, which) + at) = x;
        }
    }
}

/* Replicas as a search begins with them. */
INLINE void clean_replicas(const Member &r) {
    const u32 count = r.all_words / 2, stride = gridDim.x * THREADS; /* of both, by 4 words */
    uint4 *all = (uint4 *)replica_of(r, r.index, 0);
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < count; i += stride)
        all[i] = make_uint4(0, 0, 0, 0);
}
#endif
