/* Counter-based random numbers and bijections on [0, n).
 *
 * mix64 is the finaliser of splitmix64 (Steele, Lea, Flood 2014).  permute() is the
 * walk of generate/hashing.py: xor-shift and odd multiplication on k bits, repeated
 * until the value is below n; both sides must give the same values.
 */
#ifndef DISTBFS_HASHING_H
#define DISTBFS_HASHING_H
#include <stdint.h>

#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)
#define ROUNDS 4

static inline uint64_t mix64(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* A bijection on [0, n): n, mask = 2^k - 1, shift = ceil(k / 2), odd factors, addends */
typedef struct {
    uint64_t n, mask, shift, factor[ROUNDS], addend[ROUNDS];
} permutation;

static inline uint64_t permute_once(const permutation *p, uint64_t x) {
    for (int r = 0; r < ROUNDS; r++) {
        x ^= x >> p->shift;
        x = (x * p->factor[r] + p->addend[r]) & p->mask;
    }
    return x ^ (x >> p->shift);
}

/* Permute count values in place; the loop without walking is there to be vectorised. */
static inline void permute_all(const permutation *p, uint64_t *x, int count) {
    uint64_t outside = 0;
    for (int k = 0; k < count; k++) {
        x[k] = permute_once(p, x[k]);
        outside |= x[k] >= p->n;
    }
    if (outside)
        for (int k = 0; k < count; k++)
            while (x[k] >= p->n) x[k] = permute_once(p, x[k]);
}
#endif
