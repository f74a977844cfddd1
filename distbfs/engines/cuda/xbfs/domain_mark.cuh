/* Marking push between devices; see mark.cuh.
 *
 * Ranges of destinations are cut by position, alike on all devices, at granules.  A block
 * marks a range in shared memory as one device does; what is new there and of another part
 * goes to the owner as a pair, into the owner's list of that range, which begins where the
 * owner's numbers of the range do.  After the meeting a block of the owner takes a range,
 * puts the marks of all parts together in shared memory, stores parents of what is new, and
 * publishes the words of the range.
 */
#ifndef DISTBFS_XBFS_DOMAIN_MARK_CUH
#define DISTBFS_XBFS_DOMAIN_MARK_CUH
#include "mark.cuh"
#include "domain_publish.cuh"
#include "domain_push.cuh"

/* The first number of a part from a granule of all parts on. */
INLINE u32 number_from(const Member &r, u32 granule, u32 part) {
    return (granule + r.parts - 1 - part) / r.parts << 10;
}

/* A part's own words of a range of words by position: their ends. */
INLINE uint2 own_words(const Member &r, u32 w0, u32 w1) {
    const u32 end = number_from(r, w1 >> 5, r.index) >> 5;
    return make_uint2(number_from(r, w0 >> 5, r.index) >> 5, end < r.own.words ? end : r.own.words);
}

/* Own parents of a range; old: bits of vertices that have one. */
INLINE void fetch_parents(const Member &r, u32 w0, u32 w1, const u32 *old) {
    if (!r.own.parents) return;
    const uint2 own = own_words(r, w0, w1);
    for (u32 w = own.x + threadIdx.x; w < own.y; w += THREADS)
        if (~old[w]) prefetch(r.own.parent + w * 32); /* a line */
}

/* Marks of one device; columns are positions. */
struct Sending {
    const Member &r;
    const u32 *old; /* snapshots by number */
    u32 *fresh;
    u32 *filter; /* the replica by position */
    u32 *sent;   /* [parts], of the queue's other rows */
    u32 *count;  /* shared [MOST_PARTS], of the range */
    /* from the words of a position on, of its granule */
    __device__ __forceinline__ const u32 *words(u32 v) const {
        const Owner o = owner_of(r, v);
        return o.part == r.index ? old + (o.number >> 5) : filter + (v >> 5);
    }
    __device__ __forceinline__ void copy(u32 *to, u32 w0, u32 w1) const {
        for (u32 i = 4 * threadIdx.x; i < w1 - w0; i += 4 * THREADS)
            *(uint4 *)(to + i) = *(const uint4 *)words((w0 + i) << 5);
    }
    __device__ __forceinline__ u32 seen(u32 v) const {
        return v < r.own.bound ? *words(v) : ALL;
    }
    __device__ __forceinline__ u32 set(u32 v, u32 bit) const {
        const Owner o = owner_of(r, v);
        return atomicOr(o.part == r.index ? fresh + (o.number >> 5) : filter + (v >> 5), bit);
    }
    template <class At>
    __device__ __forceinline__ void found(bool some, u32 v, u32 u, u32 *counts,
                                          const At &at) const {
        const Owner to = owner_of(r, v);
        const u32 parent = position_of(r, u);
        if (some && to.part == r.index && r.own.parents) r.own.parent[to.number] = parent;
        send_pairs(r, some && to.part != r.index, to, parent, counts, at);
    }
    __device__ __forceinline__ void row(bool some, u32 v, u32 u, u32) const {
        found(some, v, u, sent, [&](u32 part) { return pairs_at(r, part, r.index, 0); });
    }
    __device__ __forceinline__ void begin(u32 w0, u32 w1, bool many) const {
        if (many) fetch_parents(r, w0, w1, old);
        if (threadIdx.x < MOST_PARTS) count[threadIdx.x] = 0;
    }
    __device__ __forceinline__ void take(bool some, u32 v, u32 u, u32 w0, u32) const {
        const u32 granule = w0 >> 5;
        found(some, v, u, count, [&](u32 part) {
            return pairs_at(r, part, r.index, 1) + number_from(r, granule, part);
        });
    }
    __device__ __forceinline__ void merge(const u32 *bits, u32 w0, u32 w1) const {
        const uint2 own = own_words(r, w0, w1);
        for (u32 w = own.x + threadIdx.x; w < own.y; w += THREADS) {
            const u32 mine = bits[place_of(r, w) - w0];
            if (mine) red_or(fresh + w, mine);
        }
    }
    __device__ __forceinline__ void end(u32 range) const {
        const u32 t = threadIdx.x; /* all counting was before a __syncthreads */
        if (t < r.parts && t != r.index)
            r.marks[t][(u64)r.index * r.own.ranges + range] = count[t];
    }
};

/* Pairs of rows that are not cut; `fresh` has what this device has marked and all that
 * was visited before. */
INLINE void merge_pairs(const Member &r, const uint2 *list, u32 count, u32 *fresh) {
    const u32 stride = gridDim.x * THREADS;
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < count; i += stride) {
        const uint2 pair = __ldcg(list + i);
        const u32 w = pair.x >> 5, bit = 1u << (pair.x & 31);
        if (!(atomicOr(fresh + w, bit) & bit) && r.own.parents) r.own.parent[pair.x] = pair.y;
    }
}

/* Pairs of all ranges; writes own words of `fresh`, and those that change of all replicas.
 * room: dynamic shared memory, the own words of a range; group: as they were marked */
INLINE void merge_ranges(const Member &r, u32 *fresh, u32 which, u32 *room, u32 group) {
    const Params &p = r.own;
    for (u32 range = blockIdx.x; range * group < p.ranges; range += gridDim.x) {
        const u32 r0 = p.range[range * group], r1 = p.range[(range + 1) * group];
        const uint2 words = own_words(r, r0, r1);
        const u32 n0 = words.x * 32, w0 = words.x, end = words.y;
        if (group == 1 && p.group > 1) fetch_parents(r, r0, r1, fresh);
        for (u32 w = w0 + 4 * threadIdx.x; w < end; w += 4 * THREADS)
            *(uint4 *)(room + (w - w0)) = __ldcg((const uint4 *)(fresh + w));
        __syncthreads();
        for (u32 s = 0; s < r.parts; s++) {
            if (s == r.index) continue;
            const u32 count = __ldcg(r.marks[r.index] + ((u64)s * p.ranges + range));
            const uint2 *list = pairs_at(r, r.index, s, 1) + n0;
            for (u32 i0 = threadIdx.x; i0 < count; i0 += 4 * THREADS) {
                uint2 pair[4];
#pragma unroll
                for (u32 k = 0; k < 4; k++) {
                    const u32 i = i0 + k * THREADS;
                    pair[k] = __ldcg(list + (i < count ? i : i0));
                }
#pragma unroll
                for (u32 k = 0; k < 4; k++) { /* repeats of the first are found already */
                    const u32 v = pair[k].x, bit = 1u << (v & 31);
                    if (atomicOr(room + ((v >> 5) - w0), bit) & bit) continue;
                    if (p.parents) p.parent[v] = pair[k].y;
                }
            }
        }
        __syncthreads();
        for (u32 w = w0 + 4 * threadIdx.x; w < end; w += 4 * THREADS) {
            const uint4 bits = *(const uint4 *)(room + (w - w0));
            *(uint4 *)(fresh + w) = bits;
            /* mutant: publish_changed(r, bits, w, which) -> : test_steps_are_those_of_one_device */
            publish_changed(r, bits, w, which);
        }
        __syncthreads();
    }
}
#endif
