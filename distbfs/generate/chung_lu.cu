/* Tuples of a graph with a power law of degrees, by position; the twin of chung_lu.py.
 *
 * Method: a thread a tuple; an end by weight is a class of ranks, found by a binary search
 * of a draw, one of its ranks, and the vertex that a permutation deals that rank out to.
 * Data and source: chung_lu.py, hashing.cuh.
 *
 * variants: ID=u32,u64
 */
#include "hashing.cuh"

#define DRAWS 5
#define SHARE_BITS 53

/* The high half of the upper 32 bits of a draw times a size */
INLINE u64 below(u64 draw, u64 size) {
    const u64 x = draw >> 32;
    return x * (size >> 32) + (x * (size & 0xffffffffull) >> 32);
}

/* Writes the tuples start … start + count - 1, for any grid and any block.
 * key, n, …: ChungLu.device_arguments()
 * inside: draws below it make tuples inside a community of `community` ids
 * begins: [classes], where the draws of a class begin; first: [classes + 1], its ranks
 * words: [PERMUTATION_WORDS], from ranks to ids; u, v: [count], the ends */
extern "C" __global__ void chung_lu_tuples(u64 start, u64 count, u64 key, u64 n, u64 inside,
                                           u64 community, u64 classes, const u64 *begins,
                                           const u64 *first, const u64 *words, ID *u, ID *v) {
    const Permutation<u64> permute(words);
    for (u64 k = thread_of(); k < count; k += threads_of()) {
        const u64 counter = (start + k) * DRAWS;
        u64 draw[DRAWS], ends[2];
        for (int j = 0; j < DRAWS; j++) draw[j] = mix64(key + (counter + j) * GOLDEN);
        if (draw[0] >> (64 - SHARE_BITS) < inside) {
            ends[0] = __umul64hi(draw[1], n);
            const u64 from = ends[0] - ends[0] % community, left = n - from;
            ends[1] = from + below(draw[3], left < community ? left : community);
        } else {
            for (int e = 0; e < 2; e++) {
                const u64 at = draw[1 + 2 * e] >> (64 - SHARE_BITS);
                const u64 of = last_before(classes, at, [&](u64 c) { return begins[c]; });
                const u64 rank = first[of] + below(draw[2 + 2 * e], first[of + 1] - first[of]);
                ends[e] = permute(rank);
            }
        }
        u[k] = (ID)ends[0];
        v[k] = (ID)ends[1];
    }
}
