/* A slice of tuples with independent uniform ends, by position: for C and for CUDA. */
#ifndef DISTBFS_UNIFORM_H
#define DISTBFS_UNIFORM_H
#include "hashing.h"

typedef struct {
    i64 start, count, *u, *v; /* u, v: [count], the ends; of type ID in kernels */
    u64 key, n;
    int threads;
} slice;
#endif
