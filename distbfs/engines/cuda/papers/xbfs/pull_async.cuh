/* Asynchronous pull: a vertex without a neighbour of level - 1 but with one of `level`
 * is of level + 1 and is visited now.
 *
 * A vertex of level - 1 never looks unvisited here, since all of them were known before
 * the level began; so no vertex is placed too late, and none too early, as all its
 * neighbours were looked at.  A neighbour of `level` may be seen or missed: then the
 * vertex waits for the next level.  Vertices found early count with the level they
 * belong to, so a search ends only when a level has none of either kind; a pull of that
 * level leaves them out of its queue, and a push of it puts them into the next queue
 * (frontier_no_queue.cuh, frontier_single_scan.cuh).
 * XBFS (Gaihre et al., HPDC 2019), Section 5.2, Algorithm 3, Lemmas 1 and 2. */
#ifndef DISTBFS_PULL_ASYNC_CUH
#define DISTBFS_PULL_ASYNC_CUH
#include "pull_sync.cuh"

struct Asynchronous {
    static constexpr bool ASYNCHRONOUS = true;
    u32 current = NONE;

    static __device__ __forceinline__ int load(const int *at) { return load_fresh(at); }
    __device__ __forceinline__ void note(int status, u32 neighbour, int level) {
        /* mutant: level -> level - 1 : test_an_asynchronous_pull_finds_the_next_level */
        if (status == level) current = neighbour;
    }
    __device__ __forceinline__ u32 same_level() const { return current; }
};
#endif
