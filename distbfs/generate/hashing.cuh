/* Counter-based random numbers and bijections on [0, n); the twin of hashing.h.
 *
 * mix64 is the finaliser of splitmix64 (Steele, Lea, Flood 2014).  A permutation works
 * on k bits by xor-shift and odd multiplication and is repeated until the value is below
 * n; values of at most 32 bits need only the low words of the products.
 */
#ifndef DISTBFS_HASHING_CUH
#define DISTBFS_HASHING_CUH
#include "../engines/cuda/common/base.cuh"

#define GOLDEN 0x9E3779B97F4A7C15ull
#define ROUNDS 4
#define PERMUTATION_WORDS (3 + 2 * ROUNDS)

INLINE u64 mix64(u64 x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

/* A bijection on [0, n): n, mask = 2^k - 1, shift = ceil(k / 2), odd factors, addends */
template <typename Word>
struct Permutation {
    Word n, mask, shift, factor[ROUNDS], addend[ROUNDS];

    /* words: [PERMUTATION_WORDS], PermutationStruct of hashing.py */
    __device__ __forceinline__ explicit Permutation(const u64 *words)
        : n((Word)words[0]), mask((Word)words[1]), shift((Word)words[2]) {
        for (int r = 0; r < ROUNDS; r++) {
            factor[r] = (Word)words[3 + r];
            addend[r] = (Word)words[3 + ROUNDS + r];
        }
    }

    __device__ __forceinline__ Word once(Word x) const {
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
            x ^= x >> shift;
            x = (x * factor[r] + addend[r]) & mask;
        }
        return x ^ (x >> shift);
    }

    __device__ __forceinline__ Word operator()(Word x) const {
        do x = once(x);
        while (x >= n);
        return x;
    }
};
#endif
