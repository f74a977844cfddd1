/* Thread-centric dynamic balancing of a pull: the first T entries of the queue go to
 * the T threads; after that each thread that is done takes the next entry from a
 * counter.  XBFS (Gaihre et al., HPDC 2019), Section 5.1.2, Algorithm 1. */
#ifndef DISTBFS_BALANCE_THREAD_CUH
#define DISTBFS_BALANCE_THREAD_CUH
#include "pull_sync.cuh"

/* queue: [size] */
template <class Rule>
INLINE void pull_thread(const Params &p, const u32 *queue, u32 size, Slot *slot,
                        int level, Tally &tally) {
    u32 at = thread_of<u32>(THREADS);
    while (at < size) {
        traverse<Rule>(p, queue[at], level, tally);
        /* mutant: = threads_of<u32>(THREADS) + atomicAdd(&slot->ticket, 1u) -> +=
         * threads_of<u32>(THREADS) : test_how_balances_hand_entries_out */
        at = threads_of<u32>(THREADS) + atomicAdd(&slot->ticket, 1u);
    }
}
#endif
