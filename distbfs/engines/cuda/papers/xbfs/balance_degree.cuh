/* Balancing of a pull by classes of degrees, which XBFS is measured against: entries of
 * few neighbours are taken by a thread, of more by a warp, of many by a block.
 *
 * Each block takes THREADS entries at a time.  32 or THREADS neighbours of a row are
 * looked at together until one is of level - 1, so up to as many more may be checked
 * than by one thread.
 * Source: Liu, Huang: Enterprise, SC 2015, Section 4.2, as XBFS (Gaihre et al., HPDC
 * 2019, Section 6) has it as its baseline; the class of the whole grid is not there. */
#ifndef DISTBFS_BALANCE_DEGREE_CUH
#define DISTBFS_BALANCE_DEGREE_CUH
#include "balance_donation.cuh"

constexpr u32 OF_A_WARP = 32, OF_A_BLOCK = 256; /* the lowest degrees of these classes */

/* All warps of the block look at neighbours of v, a warp 32 of THREADS at a time. */
template <class Rule>
INLINE void pull_by_block(const Params &p, u32 v, int level, Tally &tally) {
    __shared__ u32 hit, same, looked;
    if (threadIdx.x == 0) hit = same = NONE, looked = 0;
    __syncthreads();
    const u32 degree = in_degree_of(p, v);
    const u32 *row = p.in_adj + p.in_row[v];
    for (u32 base = 0; base < degree; base += THREADS) {
        u32 start = base + (threadIdx.x & ~31u);
        const u32 stop = start + 32 < degree ? start + 32 : degree;
        if (start < stop) {
            Rule rule;
            const u32 found = share_row(p, row, start, stop, level, rule);
            /* mutant: == 0) -> == 0 && !base) : test_classes_of_degrees_are_looked_at_together */
            if (found != NONE && lane_id() == 0) hit = found;
            if (rule.same_level() != NONE && lane_id() == 0) same = rule.same_level();
        }
        __syncthreads();
        if (threadIdx.x == 0) looked = base + THREADS < degree ? base + THREADS : degree;
        const bool met = hit != NONE;
        __syncthreads(); /* all have read it */
        if (met) break;
    }
    if (threadIdx.x == 0) {
        Rule rule;
        if (same != NONE) rule.note(level, same, level);
        count_pulled(p, degree, looked);
        settle(p, v, degree, hit, rule, level, tally);
    }
    __syncthreads();
}

/* queue: [size] */
template <class Rule>
INLINE void pull_degree(const Params &p, const u32 *queue, u32 size, Slot *, int level,
                        Tally &tally) {
    __shared__ u32 large[THREADS], count;
    for (u32 base = blockIdx.x * THREADS; base < size; base += threads_of<u32>(THREADS)) {
        if (threadIdx.x == 0) count = 0;
        __syncthreads();
        const u32 at = base + threadIdx.x, v = at < size ? queue[at] : NONE;
        const u32 degree = v == NONE ? 0 : in_degree_of(p, v);
        if (v != NONE && degree < OF_A_WARP) traverse<Rule>(p, v, level, tally);
        if (degree >= OF_A_BLOCK) large[atomicAdd(&count, 1u)] = v;
        __syncwarp();
        u32 rows = __ballot_sync(ALL, degree >= OF_A_WARP && degree < OF_A_BLOCK);
        for (; rows; rows &= rows - 1) {
            const int owner = __ffs(rows) - 1;
            const u32 u = __shfl_sync(ALL, v, owner), stop = __shfl_sync(ALL, degree, owner);
            const u32 *row = p.in_adj + p.in_row[u];
            u32 start = 0;
            Rule rule;
            const u32 found = share_row(p, row, start, stop, level, rule);
            if (lane_id() == owner) {
                count_pulled(p, stop, start);
                settle(p, u, stop, found, rule, level, tally);
            }
        }
        __syncthreads();
        for (u32 k = 0; k < count; k++) pull_by_block<Rule>(p, large[k], level, tally);
        __syncthreads(); /* before the next entries */
    }
}
#endif
