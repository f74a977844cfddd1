/* Bijections on [0, n) for kernels.
 *
 * Values of at most 32 bits need only the low words of the products in hashing.h, which has
 * the method, the data and the source.
 */
#ifndef DISTBFS_HASHING_CUH
#define DISTBFS_HASHING_CUH
#include "../engines/cuda/common/base.cuh"
#include "hashing.h"

/* A permutation in registers of Word. */
template <typename Word>
struct Permutation {
    Word n, mask, shift, factor[ROUNDS], addend[ROUNDS];

    __device__ __forceinline__ explicit Permutation(const permutation &p)
        : n((Word)p.n), mask((Word)p.mask), shift((Word)p.shift) {
        for (int r = 0; r < ROUNDS; r++) {
            factor[r] = (Word)p.factor[r];
            addend[r] = (Word)p.addend[r];
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
