/* Kronecker edge tuples by position.
 *
 * Method, that of kronecker.c: four levels of the recursion at once by the alias method over
 * 4^4 outcomes, with one 64-bit number of stream position * 16 + draw; the
 * last draw takes what is left of the levels.  An outcome holds the bits of u above
 * those of v.  Then both ends go through the vertex permutation.
 *
 * Data: a slot of a table is one word: threshold (56 bits) above the alias (8 bits).
 * Source: Graph500 specification 2.0, Section 3; Walker 1977.
 *
 * variants: ID=u32,u64
 */
#include "hashing.cuh"
#include "kronecker.h"

#define THREADS 256

/* Writes the tuples start ... start + count - 1, for any grid of blocks of THREADS. */
extern "C" __global__ void __launch_bounds__(THREADS)
kronecker_tuples(const slice s) {
    __shared__ u64 table[2 * SLOTS];
    for (u32 k = threadIdx.x; k < 2 * SLOTS; k += THREADS) table[k] = s.tables[k];
    __syncthreads();
    ID *__restrict__ u = (ID *)s.u, *__restrict__ v = (ID *)s.v;
    const u64 start = (u64)s.start, count = (u64)s.count, key = s.key;
    const u32 draws = (u32)s.draws, last_bits = (u32)s.last_bits;
    const Permutation<u64> edges(s.edges);
    const Permutation<ID> vertices(s.vertices);
    for (u64 k = thread_of(THREADS); k < count; k += threads_of(THREADS)) {
        u64 counter = key + edges(start + k) * 16 * GOLDEN;
        ID x = 0, y = 0;
        for (u32 d = 0; d < draws; d++, counter += GOLDEN) {
            bool last = d + 1 == draws;
            u32 bits = last ? last_bits : 4;
            u64 drawn = mix64(counter);
            u32 slot = (u32)(drawn >> 56);
            u64 entry = table[slot + (last ? SLOTS : 0)];
            bool below = (drawn & (~0ull >> 8)) < entry >> 8;
            u32 outcome = below ? slot : (u32)entry & 255;
            x = x << bits | outcome >> bits;
            y = y << bits | (outcome & ((1u << bits) - 1));
        }
        u[k] = vertices(x);
        v[k] = vertices(y);
    }
}
