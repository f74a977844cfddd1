/* A level by pulls: each vertex that some search has not seen asks its neighbours, until
 * all searches have seen it.  A block reads the row of a hub, a warp a wide row, a group of
 * lanes any other.  Tails are read where that leaves searches that miss the vertex. */
#ifndef DISTBFS_BITS_PULL_CUH
#define DISTBFS_BITS_PULL_CUH
#include "bits.cuh"
#include "bits_tails.cuh"

/* OR of the neighbours 0, step … of a row, until nothing of `want` is missing.
 * All lanes of a warp call it. */
INLINE uint4 ask(const Level &l, Columns row, u32 step, uint4 want) {
    uint4 found = make_uint4(0, 0, 0, 0);
    while (__any_sync(ALL, row.count)) {
        u32 u[AHEAD];
#pragma unroll
        for (u32 k = 0; k < AHEAD; k++)
            u[k] = k * step < row.count ? __ldg(row.at + k * step) : NONE;
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (u[k] != NONE && !bit_of(l.mark, u[k])) u[k] = NONE;
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (u[k] != NONE) found = found | l.cur[(u64)u[k] * PIECES + l.piece];
        row = row.from(AHEAD * step);
        if (!group_any(some(without(want, found)))) row.count = 0;
    }
    return found;
}

/* Write a vertex's finds to its row; returns whether it is in the frontier. */
template <class P>
INLINE bool finish_pull(const P &p, const Level &l, u32 v, uint4 seen, uint4 fresh) {
    const bool any = group_any(some(fresh)) != 0;
    if (v == NONE) return false;
    const u32 at = place(p, v);
    if (any || bit_of(l.old, at)) l.next[(u64)at * PIECES + l.piece] = fresh;
    if (any) settle(p, l, v, seen, fresh);
    return any;
}

/* Returns this thread's part of the edges out of the next frontier.
 * searches: those there are, of this lane's piece */
template <class P> INLINE u32 pull(const P &p, const Level &l, u32 *room, uint4 searches) {
    const uint4 full = wanted(p, l, searches), zero = make_uint4(0, 0, 0, 0);
    u32 edges = 0;
    TailReads reads = {0, 0};
    for (u32 v = blockIdx.x; v < p.hubs; v += gridDim.x) {
        const u64 at = (u64)v * PIECES + l.piece;
        const uint4 seen = p.seen[at], want = without(full, seen);
        uint4 found = zero;
        if (group_any(some(want))) { /* the same for all threads of the block */
            if (threadIdx.x < WORDS) room[threadIdx.x] = 0;
            __syncthreads();
            const u32 first = (threadIdx.x >> 5) * GROUP + l.group;
            found = ask(l, pulled(p, v).from(first), WARPS * GROUP, want);
            join(l, room, gathered(found));
            const u32 *to = room + 4 * l.piece;
            __syncthreads();
            found = make_uint4(to[0], to[1], to[2], to[3]);
            __syncthreads();
            if (SPLIT && lacks(want, found) && tail_of(p.into, v)) { /* the same for all threads */
                ask_tail(p.into, l, v, want, threadIdx.x >> 5, WARPS, room, reads);
                __syncthreads();
                found = make_uint4(to[0], to[1], to[2], to[3]);
                __syncthreads();
            }
            found = found & want;
        }
        if (threadIdx.x < 32) {
            const bool any = finish_pull(p, l, l.group ? NONE : v, seen, found);
            if (any && l.lane == 0) {
                mark_next(p, l, v);
                edges += edges_of(p, v);
            }
        }
    }
    for (u32 v = p.hubs + l.warp; v < p.wide; v += l.warps) {
        const uint4 seen = p.seen[(u64)v * PIECES + l.piece], want = without(full, seen);
        uint4 found = zero;
        if (group_any(some(want))) {
            /* mutant: GROUP -> 2 * GROUP : test_multisearch_bits::test_levels_and_counts */
            found = ask(l, pulled(p, v).from(l.group), GROUP, want);
            found = gathered(found) & want;
            if (SPLIT && lacks(want, found) && tail_of(p.into, v))
                found = found | ask_tail(p.into, l, v, without(want, found), 0, 1, 0, reads);
        }
        const bool any = finish_pull(p, l, l.group ? NONE : v, seen, found);
        if (any && l.lane == 0) {
            mark_next(p, l, v);
            edges += edges_of(p, v);
        }
    }
    for (u32 tile = p.wide / GROUP + l.warp; tile * GROUP < p.active; tile += l.warps) {
        const u32 v = tile * GROUP + l.group < p.active ? tile * GROUP + l.group : NONE;
        uint4 seen = zero, want = zero;
        Columns row = {0, 0};
        if (v != NONE) {
            seen = p.seen[(u64)v * PIECES + l.piece], want = without(full, seen);
            row = pulled(p, v);
        }
        if (!group_any(some(want))) row.count = 0;
        uint4 found = ask(l, row, 1, want) & want;
        /* mutant: without(want, found) -> want : test_pulls_read_no_tail_without_need */
        if (SPLIT) found = found | ask_tails(p.into, l, v, without(want, found), reads);
        const bool any = finish_pull(p, l, v, seen, found);
        u32 bits = __ballot_sync(ALL, any && l.piece == 0);
        if (any && l.piece == 0) edges += edges_of(p, v);
        if (PIECES > 1) { /* every PIECES-th bit */
            u32 packed = 0;
            for (u32 k = 0; k < GROUP; k++) packed |= (bits >> k * PIECES & 1) << k;
            bits = packed;
        }
        mark_tile(p, l, tile, bits);
    }
    if (SPLIT) add_reads(p.reads, p.reads + 1, reads, l.lane);
    return edges;
}
#endif
