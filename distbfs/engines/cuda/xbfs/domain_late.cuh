/* Late pulls between devices: few vertices are found, and their bits are set one by one.
 *
 * A pull of many vertices writes whole words to all replicas, and looks at all of its words
 * once more (domain_publish.cuh).  Here the bit of each vertex is set in all replicas when it
 * is found, and no word is looked at.  The replica that is made was made last two levels ago:
 * what the level before has found is kept in a list and set in it, too.
 */
#ifndef DISTBFS_XBFS_DOMAIN_LATE_CUH
#define DISTBFS_XBFS_DOMAIN_LATE_CUH
#include "domain.cuh"

#define MOST_LATE (1 << 18) /* vertices that a level has found, so that the next is late */

INLINE void set_everywhere(const Member &r, u32 word, u32 bits, u32 which) {
    const u32 at = place_of(r, word);
    for (u32 t = 0; t < r.parts; t++) red_or_system(replica_of(r, t, which) + at, bits);
}

/* Told what a late pull finds. */
struct Late {
    const Member &r;
    u32 which; /* the replica that is made */
    u32 *list, *count;
    bool is; /* late at all */
    __device__ __forceinline__ void operator()(bool found, u32 v, u32) const {
        if (!is) return;
        const u32 at = take_place(found, count);
        if (!found) return;
        list[at] = v;
        /* mutant: 1u << (v & 31) -> 0 : test_resident_kernels::test_every_step_is_seen */
        set_everywhere(r, v >> 5, 1u << (v & 31), which);
    }
};

/* Set in the replica that is made what it lacks of the snapshot before: `count` listed
 * vertices, or (list: null) all words that differ from this device's own replica. */
INLINE void catch_up(const Member &r, const u32 *old, u32 which, const u32 *list, u32 count) {
    const u32 start = blockIdx.x * THREADS + threadIdx.x, stride = gridDim.x * THREADS;
    if (list) {
        for (u32 i = start; i < count; i += stride) {
            const u32 v = __ldcg(list + i);
            set_everywhere(r, v >> 5, 1u << (v & 31), which);
        }
        return;
    }
    const u32 *own = replica_of(r, r.index, which);
    for (u32 w = start; w < r.own.words; w += stride) {
        const u32 lacks = __ldcg(old + w) & ~__ldcg(own + place_of(r, w));
        if (lacks) set_everywhere(r, w, lacks, which);
    }
}
#endif
