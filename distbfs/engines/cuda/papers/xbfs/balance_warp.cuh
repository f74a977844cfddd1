/* Warp-centric dynamic balancing of a pull: as thread-centric, but lane 0 takes 32
 * entries at a time for its warp and passes them round by a shuffle.
 * XBFS (Gaihre et al., HPDC 2019), Section 5.1.2, Algorithm 2. */
#ifndef DISTBFS_BALANCE_WARP_CUH
#define DISTBFS_BALANCE_WARP_CUH
#include "pull_sync.cuh"

/* The first entry of the next 32 that this warp takes; all lanes call it. */
INLINE u32 next_bulk(Slot *slot) {
    u32 first = 0;
    /* mutant: 32u -> 64u : test_how_balances_hand_entries_out */
    if (lane_id() == 0) first = threads_of<u32>(THREADS) + atomicAdd(&slot->ticket, 32u);
    return __shfl_sync(ALL, first, 0);
}

/* queue: [size] */
template <class Rule>
INLINE void pull_warp(const Params &p, const u32 *queue, u32 size, Slot *slot,
                      int level, Tally &tally) {
    u32 first = thread_of<u32>(THREADS) - lane_id();
    while (first < size) {
        const u32 at = first + lane_id();
        if (at < size) traverse<Rule>(p, queue[at], level, tally);
        __syncwarp();
        first = next_bulk(slot);
    }
}
#endif
