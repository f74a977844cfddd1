/* Counts that a thread keeps in registers and adds to a level's counters at its end.
 * The edges out of the new vertices steer the method; the rest needs COUNT=1. */
#ifndef DISTBFS_PAPER_TALLY_CUH
#define DISTBFS_PAPER_TALLY_CUH
#include "paper_state.cuh"

struct Tally {
    u64 edges = 0, early_edges = 0;
    u32 found = 0, early = 0;
#if COUNT
    u64 checks = 0;
    u32 writes = 0;
    u64 *work; /* shared [WORK], or null */
#endif

    __device__ __forceinline__ void check(u64 count) {
#if COUNT
        checks += count;
#endif
    }
    __device__ __forceinline__ void write() {
#if COUNT
        writes++;
#endif
    }
    /* Edge checks of one pulled vertex (Figure 9). */
    __device__ __forceinline__ void pulled(u32 degree, u32 count) {
#if COUNT
        checks += count;
        const int bucket = degree ? 31 - __clz(degree) : 0;
        atomicAdd(work + bucket, 1ull);
        atomicAdd(work + 32 + bucket, (u64)count);
        atomicAdd(work + (2 + (count ? 31 - __clz(count) : 0)) * 32 + bucket, 1ull);
#endif
    }
};

template <class T> INLINE void add_warp(T *to, T value) {
    if (!__any_sync(ALL, value != 0)) return;
    value = warp_sum(value);
    if (lane_id() == 0) atomicAdd(to, value);
}

/* All lanes of a warp call it. */
INLINE void add_tally(const Params &p, const Tally &t, int level) {
    Slot *slot = &p.control->slots[level & 3], *next = &p.control->slots[(level + 1) & 3];
    add_warp(&slot->edges, t.edges);
    add_warp(&slot->found, t.found);
    add_warp(&next->early_edges, t.early_edges);
    add_warp(&next->early, t.early);
#if COUNT
    add_warp(&slot->checks, t.checks);
    add_warp(&slot->writes, t.writes);
#endif
}

/* Work by degree of a block; all threads call both. */
INLINE void open_work(Tally &t) {
#if COUNT
    __shared__ u64 work[WORK];
    for (u32 k = threadIdx.x; k < WORK; k += THREADS) work[k] = 0;
    t.work = work;
    __syncthreads();
#endif
}
INLINE void close_work(const Params &p, const Tally &t) {
#if COUNT
    __syncthreads();
    for (u32 k = threadIdx.x; k < WORK; k += THREADS)
        if (t.work[k]) atomicAdd(p.work + k, t.work[k]);
#endif
}
#endif
