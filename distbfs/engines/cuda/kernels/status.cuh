/* The status array: int32 level of each vertex by number, -1 = unvisited.
 * XBFS (Gaihre et al., HPDC 2019), Section 1.1. */
#ifndef DISTBFS_STATUS_CUH
#define DISTBFS_STATUS_CUH
#include "types.cuh"

constexpr int UNVISITED = -1;

/* May be as old as the last grid barrier: then a vertex found since looks unvisited. */
DEVICE int load_status(const int *at) {
    int value;
    asm volatile("ld.global.ca.s32 %0,[%1];" : "=r"(value) : "l"(at));
    return value;
}

/* Sees what other multiprocessors wrote in this level. */
DEVICE int load_fresh(const int *at) {
    int value;
    asm volatile("ld.relaxed.gpu.global.s32 %0,[%1];" : "=r"(value) : "l"(at));
    return value;
}

DEVICE void store_status(int *at, int level) {
    asm volatile("st.relaxed.gpu.global.s32 [%0],%1;" ::"l"(at), "r"(level) : "memory");
}
#endif
