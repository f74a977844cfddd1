/* How a pull of a part shares listed vertices among the lanes of a warp: the four ways of
 * XBFS.  BALANCE is static (1): a lane has the vertices of one word; thread (2): a lane
 * that is done takes the next one; warp (3): 32 at a time, a lane each; donation (4): the
 * same, but the whole warp finishes the last row of 32.
 * Source: XBFS (Gaihre et al., HPDC 2019), Sections 5.1.1 and 5.1.2 (Algorithm 1).
 */
#ifndef DISTBFS_PAN_BALANCE_CUH
#define DISTBFS_PAN_BALANCE_CUH
#include "part.cuh"

enum Balance { LISTED, STATIC, THREAD, WARP, DONATION };

#define BEFORE_COUNT 5 /* neighbours that are looked at between two counts of lanes */

template <class Target> struct Sharer {
    const Rows &rows;
    const u32 *status;
    u32 lane;
    Target &target;

    /* One neighbour of v; true where it is visited, and v so found. */
    __device__ __forceinline__ bool look(u32 v, OFFSET at) {
        const u32 column = rows.to<u32>()[at];
        add_checks(target.p, 1);
        if (!bit_of(status, column)) return false;
        target.found(v, column);
        return true;
    }

    /* A word a lane. */
    __device__ __forceinline__ void by_words(u32 word, u32 bits) {
        for (; bits; bits &= bits - 1) {
            const u32 v = word * 32 + __ffs(bits) - 1;
            const OFFSET end = rows.offsets[v + 1];
            for (OFFSET at = rows.offsets[v]; at < end; at++)
                if (look(v, at)) break;
        }
        __syncwarp();
    }

    __device__ __forceinline__ void by_threads(const u32 *list, u32 count) {
        u32 next = 0, v = 0;
        OFFSET at = 0, end = 0;
        while (true) {
            const u32 idle = __ballot_sync(ALL, at >= end);
            const u32 mine = next + __popc(idle & lanes_below(lane));
            if (at >= end && mine < count)
                v = list[mine], at = rows.offsets[v], end = rows.offsets[v + 1];
            next = next + __popc(idle) < count ? next + __popc(idle) : count;
            if (!__any_sync(ALL, at < end)) {
                if (next >= count) return;
                continue;
            }
            if (at < end) at = look(v, at) ? end : at + 1;
        }
    }

    __device__ __forceinline__ void by_warps(const u32 *list, u32 count, bool donate) {
        for (u32 from = 0; from < count; from += 32) {
            const bool mine = from + lane < count;
            const u32 v = mine ? list[from + lane] : 0;
            OFFSET at = mine ? rows.offsets[v] : 0, end = mine ? rows.offsets[v + 1] : 0;
            for (u32 busy; (busy = __ballot_sync(ALL, at < end));) {
                /* mutant: == 1 -> > 32
                 * : test_part_strategies::test_donated_rows_are_looked_at_to_their_end */
                if (donate && __popc(busy) == 1) {
                    whole_warp(__ffs(busy) - 1, v, at, end);
                    break;
                }
                for (int k = 0; k < BEFORE_COUNT; k++)
                    if (at < end) at = look(v, at) ? end : at + 1;
            }
        }
        __syncwarp();
    }

    /* The rest of one lane's row. */
    __device__ __forceinline__ void whole_warp(u32 one, u32 v, OFFSET at, OFFSET end) {
        const u32 who = __shfl_sync(ALL, v, one);
        const OFFSET stop = __shfl_sync(ALL, end, one);
        u32 hits = 0;
        /* mutant: 32 -> 33 : test_part_strategies::test_donated_rows_are_looked_at_to_their_end */
        for (OFFSET r = __shfl_sync(ALL, at, one); r < stop && !hits; r += 32) {
            const bool edge = r + lane < stop;
            const u32 column = edge ? rows.to<u32>()[r + lane] : 0;
            add_checks(target.p, edge);
            hits = __ballot_sync(ALL, edge && bit_of(status, column));
            if (hits && lane == __ffs(hits) - 1) target.found(who, column);
        }
    }
};
#endif
