/* A slice of Kronecker edge tuples by position, and what makes them: for C and for CUDA. */
#ifndef DISTBFS_KRONECKER_H
#define DISTBFS_KRONECKER_H
#include "hashing.h"

#define SLOTS 256

typedef struct {
    i64 start, count;
    u64 key;
    int draws, last_bits, threads; /* last_bits: levels of the last draw; others: four */
    const u64 *tables;             /* [2][SLOTS], of all draws but the last and of the last */
    permutation edges, vertices;   /* of the positions and of the vertices */
    i64 *u, *v;                    /* [count], the ends; of type ID in kernels */
} slice;
#endif
