/* Intra-warp donation for a pull: warp-centric, and when one lane alone is left the
 * whole warp takes the rest of its row.
 *
 * After every five neighbours the lanes that are not done are counted by
 * popc(ballot).  The rest of the last row is looked at 32 neighbours at a time, so up
 * to 31 more may be checked than by one thread.
 * XBFS (Gaihre et al., HPDC 2019), Section 5.1.2. */
#ifndef DISTBFS_BALANCE_DONATION_CUH
#define DISTBFS_BALANCE_DONATION_CUH
#include "balance_warp.cuh"

constexpr u32 CHECKS_BEFORE_COUNT = 5;

/* The warp looks at neighbours start ... stop-1 of a row for one lane; returns a
 * neighbour of level - 1, or NONE, and raises `start` to the first not looked at.
 * row: [stop] */
template <class Rule>
INLINE u32 share_row(const Params &p, const u32 *row, u32 &start,
                          u32 stop, int level, Rule &rule) {
    u32 found = NONE;
    while (start < stop && found == NONE) {
        const bool edge = start + lane_id() < stop;
        const u32 neighbour = edge ? __ldg(row + start + lane_id()) : 0;
        const int status = edge ? Rule::load(p.level + neighbour) : UNVISITED;
        const u32 hits = __ballot_sync(ALL, edge && status == level - 1);
        if (hits) found = __shfl_sync(ALL, neighbour, __ffs(hits) - 1);
        if (Rule::ASYNCHRONOUS) {
            const u32 same = __ballot_sync(ALL, edge && status == level);
            const int lane = same ? __ffs(same) - 1 : 0;
            const u32 current = __shfl_sync(ALL, neighbour, lane);
            if (same) rule.note(level, current, level);
        }
        /* mutant: 32 ? stop : start + 32 -> 33 ? stop : start + 33
         * : test_paper_strategies::test_donated_rows_are_looked_at_to_their_end */
        start = stop - start < 32 ? stop : start + 32;
    }
    return found;
}

/* queue: [size] */
template <class Rule>
INLINE void pull_donation(const Params &p, const u32 *queue, u32 size,
                          Slot *slot, int level, Tally &tally) {
    u32 first = thread_of<u32>(THREADS) - lane_id();
    for (; first < size; first = next_bulk(slot)) {
        const u32 at = first + lane_id();
        const u32 v = at < size ? queue[at] : NONE;
        const bool wanted = v != NONE;
        const u32 degree = wanted ? in_degree_of(p, v) : 0;
        const u64 begin = wanted ? p.in_row[v] : 0;
        Rule rule;
        u32 found = NONE, k = 0;
        while (true) {
            const u32 pause = k + CHECKS_BEFORE_COUNT;
            while (k < pause && k < degree && found == NONE) {
                const u32 neighbour = __ldg(p.in_adj + begin + k++);
                const int status = Rule::load(p.level + neighbour);
                if (status == level - 1)
                    found = neighbour;
                else
                    rule.note(status, neighbour, level);
            }
            __syncwarp();
            const u32 open = __ballot_sync(ALL, k < degree && found == NONE);
            if (!open) break;
            /* mutant: > 1 -> > 0
             * : test_paper_strategies::test_donated_rows_are_looked_at_to_their_end */
            if (__popc(open) > 1) continue;
            const int owner = __ffs(open) - 1;
            if (p.work && lane_id() == owner) atomicAdd(&slot->donations, 1u);
            const u64 row = __shfl_sync(ALL, begin, owner);
            u32 start = __shfl_sync(ALL, k, owner);
            const u32 stop = __shfl_sync(ALL, degree, owner);
            Rule shared;
            const u32 hit =
                share_row(p, p.in_adj + row, start, stop, level, shared);
            if (lane_id() == owner) {
                found = hit;
                k = start;
                if (shared.same_level() != NONE)
                    rule.note(level, shared.same_level(), level);
            }
            break;
        }
        if (wanted) {
            count_pulled(p, degree, k);
            settle(p, v, degree, found, rule, level, tally);
        }
    }
}
#endif
