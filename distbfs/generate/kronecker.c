/* Kronecker edge tuples by position (Graph500 specification 2.0, Section 3).
 *
 * The tuple at a position is drawn from counters alone: four levels of the recursion at
 * once, by the alias method over 4^4 outcomes (Walker 1977), with one 64-bit number of
 * stream position * 16 + draw.  An outcome holds the four bits of u above those of v.
 * Then both ends go through the vertex permutation.  kronecker.py has the twin in NumPy.
 */
#include "hashing.h"

#define TILE 256

/* threshold, alias: [draws][256]; bits: [draws] levels per draw; u, v: [count] */
void kronecker(int64_t start, int64_t count, uint64_t key, int draws, const int32_t *bits,
               const uint64_t *threshold, const uint32_t *alias,
               const permutation *edges, const permutation *vertices, int64_t *u,
               int64_t *v, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t first = 0; first < count; first += TILE) {
        uint64_t base[TILE], i[TILE], j[TILE];
        int size = count - first < TILE ? (int)(count - first) : TILE;
        for (int k = 0; k < size; k++) {
            base[k] = (uint64_t)(start + first + k);
            i[k] = j[k] = 0;
        }
        permute_all(edges, base, size);
        for (int d = 0; d < draws; d++) {
            const uint64_t *limit = threshold + d * 256;
            const uint32_t *other = alias + d * 256;
            int b = bits[d];
            for (int k = 0; k < size; k++) {
                uint64_t x = mix64(key + (base[k] * 16 + d) * GOLDEN);
                uint64_t slot = x >> 56, below = x & (~UINT64_C(0) >> 8);
                uint64_t outcome = below < limit[slot] ? slot : other[slot];
                i[k] = i[k] << b | outcome >> b;
                j[k] = j[k] << b | (outcome & ((1u << b) - 1));
            }
        }
        permute_all(vertices, i, size);
        permute_all(vertices, j, size);
        for (int k = 0; k < size; k++) {
            u[first + k] = (int64_t)i[k];
            v[first + k] = (int64_t)j[k];
        }
    }
}
