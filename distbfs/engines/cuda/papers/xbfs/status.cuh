/* The status array: int32 level of each vertex by number, -1 = unvisited.
 * XBFS (Gaihre et al., HPDC 2019), Section 1.1. */
#ifndef DISTBFS_STATUS_CUH
#define DISTBFS_STATUS_CUH
#include "../../common/base.cuh"

constexpr int UNVISITED = -1;

/* May be as old as the last grid barrier: then a vertex found since looks unvisited. */
INLINE int load_status(const int *at) { return load_cached(at); }

/* Sees what other multiprocessors wrote in this level. */
INLINE int load_fresh(const int *at) { return load_relaxed(at); }

INLINE void store_status(int *at, int level) { store_relaxed(at, level); }
#endif
