/* No frontier queue generation: the push after a pull reads the queue of that pull.
 *
 * The queue holds, in order, all vertices that were unvisited before the pull, so those
 * that it found are among them and the others are passed over.  Vertices of the level
 * that an asynchronous pull had found a level early are not in the queue and need no
 * push: the pull of their level saw them from every neighbour still unvisited, which is
 * therefore visited.
 * XBFS (Gaihre et al., HPDC 2019), Section 4.1, Observation 2. */
#ifndef DISTBFS_FRONTIER_NO_QUEUE_CUH
#define DISTBFS_FRONTIER_NO_QUEUE_CUH
#include "frontier_scan_free.cuh"

/* Which entries of the input queue a push expands. */
struct Every {
    __device__ __forceinline__ bool operator()(u32) const { return true; }
};
struct JustFound {
    const int *status; /* [active] */
    int level;         /* the level before the one that is being found */

    __device__ __forceinline__ bool operator()(u32 v) const {
        return load_status(status + v) == level;
    }
};

/* Vertices of this level that the asynchronous pull found a level early are not met as
 * unvisited by the push: put them into the next queue before it. */
INLINE void adopt_early(const Params &p, const State &s) {
    Slot *slot = &p.control->slots[s.level & 3];
    const u32 *queue = queue_in(p, s);
    u32 *next = queue_out(p, s);
    const u32 first = thread_of<u32>(THREADS) - lane_id();
    for (u32 base = first; base < s.size; base += threads_of<u32>(THREADS)) {
        const u32 at = base + lane_id();
        const u32 v = at < s.size ? queue[at] : NONE;
        /* mutant: == s.level -> == s.level - 1 : test_records_add_up */
        const bool mine = v != NONE && load_status(p.level + v) == s.level;
        enqueue(mine, v, next, &slot->tail);
    }
}
#endif
