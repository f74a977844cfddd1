/* Static balancing of a pull: thread t takes the entries t, t + T, t + 2 T, ... of the
 * queue, whatever their degree.  XBFS (Gaihre et al., HPDC 2019), Section 5.1.2. */
#ifndef DISTBFS_BALANCE_STATIC_CUH
#define DISTBFS_BALANCE_STATIC_CUH
#include "pull_sync.cuh"

/* queue: [size] */
template <class Rule>
INLINE void pull_static(const Params &p, const u32 *queue, u32 size, Slot *,
                        int level, Tally &tally) {
    for (u32 at = thread_of<u32>(THREADS); at < size; at += threads_of<u32>(THREADS))
        traverse<Rule>(p, queue[at], level, tally);
}
#endif
