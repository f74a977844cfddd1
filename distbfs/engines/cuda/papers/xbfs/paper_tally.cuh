/* Counts that a thread keeps in registers and adds to a level's counters at its end.
 * The edges out of the new vertices steer the method; the rest is added where levels are
 * counted (Params::work). */
#ifndef DISTBFS_PAPER_TALLY_CUH
#define DISTBFS_PAPER_TALLY_CUH
#include "paper_state.cuh"

struct Tally {
    u64 edges = 0, early_edges = 0;
    u32 found = 0, early = 0;
};

/* Counters of a block by degree: [WORK], the shared memory of launches that count. */
INLINE u64 *work_of_block() {
    extern __shared__ uint4 dynamic[];
    return (u64 *)dynamic;
}

/* Count the edge checks of one pulled vertex (Figure 9). */
INLINE void count_pulled(const Params &p, u32 degree, u32 count) {
    if (!p.work) return;
    u64 *work = work_of_block();
    const int bucket = degree ? 31 - __clz(degree) : 0;
    atomicAdd(work + bucket, 1ull);
    atomicAdd(work + 32 + bucket, (u64)count);
    atomicAdd(work + (2 + (count ? 31 - __clz(count) : 0)) * 32 + bucket, 1ull);
}

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
}

/* Work by degree of a block; all threads call both. */
INLINE void open_work() {
    for (u32 k = threadIdx.x; k < WORK; k += THREADS) work_of_block()[k] = 0;
    __syncthreads();
}
INLINE void close_work(const Params &p, Slot *slot) {
    __syncthreads();
    for (u32 k = threadIdx.x; k < WORK; k += THREADS)
        if (const u64 count = work_of_block()[k]) {
            atomicAdd(p.work + k, count);
            if (k / 32 == 1) atomicAdd(&slot->checks, count);
        }
}
#endif
