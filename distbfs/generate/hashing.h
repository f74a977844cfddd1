/* Counter-based random numbers and bijections on [0, n), in C and, by hashing.cuh, in CUDA.
 *
 * mix64 is the finaliser of splitmix64 (Steele, Lea, Flood 2014).  permute_all() is the
 * walk of generate/hashing.py: xor-shift and odd multiplication on k bits, repeated
 * until the value is below n; both sides must give the same values.
 */
#ifndef DISTBFS_HASHING_H
#define DISTBFS_HASHING_H
#ifndef INLINE /* in C; kernels have it, and the types, from ptx.cuh */
#include <stdint.h>
#define INLINE static inline
typedef int64_t i64;
typedef uint64_t u64;
#endif

#define GOLDEN 0x9E3779B97F4A7C15ull
#define ROUNDS 4

INLINE u64 mix64(u64 x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

/* A bijection on [0, n): n, mask = 2^k - 1, shift = ceil(k / 2), odd factors, addends */
typedef struct {
    u64 n, mask, shift, factor[ROUNDS], addend[ROUNDS];
} permutation;

INLINE u64 permute_once(const permutation *p, u64 x) {
    for (int r = 0; r < ROUNDS; r++) {
        x ^= x >> p->shift;
        x = (x * p->factor[r] + p->addend[r]) & p->mask;
    }
    return x ^ (x >> p->shift);
}

/* Permute count values in place; the loop without walking is there to be vectorised. */
INLINE void permute_all(const permutation *p, u64 *x, int count) {
    u64 outside = 0;
    for (int k = 0; k < count; k++) {
        x[k] = permute_once(p, x[k]);
        outside |= x[k] >= p->n;
    }
    if (outside)
        for (int k = 0; k < count; k++)
            while (x[k] >= p->n) x[k] = permute_once(p, x[k]);
}
#endif
