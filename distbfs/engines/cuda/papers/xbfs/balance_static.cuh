/* Static balancing of a pull: thread t takes the entries t, t + T, t + 2 T, ... of the
 * queue, whatever their degree.  XBFS (Gaihre et al., HPDC 2019), Section 5.1.2. */
#ifndef DISTBFS_BALANCE_STATIC_CUH
#define DISTBFS_BALANCE_STATIC_CUH
#include "pull_sync.cuh"

/* queue: [size] */
template <class Rule>
DEVICE void pull_static(const Params &p, const uint32_t *queue, uint32_t size, Slot *,
                        int level, Tally &tally) {
    for (uint32_t at = thread_id(); at < size; at += all_threads())
        traverse<Rule>(p, queue[at], level, tally);
}
#endif
