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

#define SLOTS 256
#define THREADS 256

/* Writes the tuples start ... start + count - 1, for any grid of blocks of THREADS.
 *
 * draws: 1 ... 8; last_bits: levels of the last draw, all others have four
 * permutations: [2][PERMUTATION_WORDS], of the positions and of the vertices
 * tables: [2][SLOTS], of all draws but the last and of the last
 * u, v: [count], the ends
 */
extern "C" __global__ void __launch_bounds__(THREADS)
kronecker_tuples(u64 start, u64 count, u64 key, u32 draws, u32 last_bits,
                 const u64 *__restrict__ permutations, const u64 *__restrict__ tables,
                 ID *__restrict__ u, ID *__restrict__ v) {
    __shared__ u64 table[2 * SLOTS];
    for (u32 k = threadIdx.x; k < 2 * SLOTS; k += THREADS) table[k] = tables[k];
    __syncthreads();
    const Permutation<u64> edges(permutations);
    const Permutation<ID> vertices(permutations + PERMUTATION_WORDS);
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
