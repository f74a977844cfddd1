/* Where a search ends early; the same in goal.py. */
#ifndef DISTBFS_GOAL_CUH
#define DISTBFS_GOAL_CUH
#include "ptx.cuh"

struct Goal {
    const u32 *targets; /* [count], numbers, the root not among them */
    u32 count;          /* 0: no targets */
    int last;           /* the last level whose vertices are wanted */
};

/* Whether there are targets and all of them are of levels up to `depth`.  Each block tests
 * by itself, once all blocks have finished that level: others may be finding vertices of the
 * next level, which do not count, so all blocks agree.
 * level: [active]; all threads of a block call it */
INLINE bool reached(const Goal &g, const int *level, int depth) {
    for (u32 base = 0; base < g.count; base += blockDim.x) {
        const u32 k = base + threadIdx.x;
        const int at = k < g.count ? load_relaxed(level + g.targets[k]) : 0;
        /* mutant: < 0 -> < -1 : test_nothing_lies_beyond_the_last_level */
        if (__syncthreads_or(at < 0 || at > depth)) return false;
    }
    return g.count;
}
#endif
