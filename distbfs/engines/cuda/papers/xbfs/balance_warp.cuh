/* Warp-centric dynamic balancing of a pull: as thread-centric, but lane 0 takes 32
 * entries at a time for its warp and passes them round by a shuffle.
 * XBFS (Gaihre et al., HPDC 2019), Section 5.1.2, Algorithm 2. */
#ifndef DISTBFS_BALANCE_WARP_CUH
#define DISTBFS_BALANCE_WARP_CUH
#include "pull_sync.cuh"

/* The first entry of the next 32 that this warp takes; all lanes call it. */
DEVICE uint32_t next_bulk(Slot *slot) {
    uint32_t first = 0;
    if (lane_id() == 0) first = all_threads() + atomicAdd(&slot->ticket, 32u);
    return __shfl_sync(FULL, first, 0);
}

/* queue: [size] */
template <class Rule>
DEVICE void pull_warp(const Params &p, const uint32_t *queue, uint32_t size, Slot *slot,
                      int level, Tally &tally) {
    uint32_t first = thread_id() - lane_id();
    while (first < size) {
        const uint32_t at = first + lane_id();
        if (at < size) traverse<Rule>(p, queue[at], level, tally);
        __syncwarp();
        first = next_bulk(slot);
    }
}
#endif
