/* A level by pushes from a queue: first the bits go to the neighbours that lack them,
 * then each neighbour's new bits are settled. */
#ifndef DISTBFS_BITS_PUSH_CUH
#define DISTBFS_BITS_PUSH_CUH
#include "bits.cuh"
#include "bits_tails.cuh"

#define WIDE 32 /* edges from which on a warp takes a row */

/* A vertex goes to the next queue; all lanes of a warp call it. */
INLINE void list(const Params &p, const Level &l, u32 v, bool fresh) {
    const bool hub = fresh && v < p.hubs, other = fresh && !hub;
    if (hub) {
        const u64 place = atomicAdd(l.size, (u64)1 << 32) >> 32;
        l.next_queue[p.active - 1 - place] = v;
    }
    const u32 at = (u32)take_place(other, l.size);
    if (other) l.next_queue[at] = v;
}

INLINE void give(u32 *to, u32 bits) {
    if (bits) red_or(to, bits);
}

/* Adds bits, of this lane's piece, to a row that this device alone has. */
INLINE void give_own(uint4 *row, u32 piece, uint4 bits) {
    u32 *to = (u32 *)(row + piece);
    give(to, bits.x), give(to + 1, bits.y), give(to + 2, bits.z), give(to + 3, bits.w);
}

/* A neighbour gets bits that it lacks, and into the next queue; all lanes call it. */
INLINE void offer(const Params &p, const Level &l, u32 u, uint4 bits) {
    if (some(bits)) give_own(l.next + (u64)u * PIECES, l.piece, bits);
    bool fresh = group_any(some(bits)) && l.piece == 0;
    if (fresh) {
        const u32 bit = 1u << (u & 31);
        fresh = !(atomicOr(l.next_mark + (u >> 5), bit) & bit);
    }
    list(p, l, u, fresh);
}

/* A vertex of the next queue is settled, with `fresh` bits in its row. */
INLINE void announce(const Params &, const Level &, u32, uint4) {}

/* `bits` of this lane's piece go along the edges 0, step … of a row; all lanes call it. */
template <class P>
INLINE void tell_row(const P &p, const Level &l, Columns row, u32 step, uint4 bits) {
    while (__any_sync(ALL, row.count)) {
        u32 u[AHEAD];
        uint4 lacks[AHEAD];
#pragma unroll
        for (u32 k = 0; k < AHEAD; k++)
            u[k] = k * step < row.count ? __ldg(row.at + k * step) : NONE;
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            lacks[k] = make_uint4(0, 0, 0, 0);
            if (u[k] != NONE) lacks[k] = without(bits, seen_row(p, u[k])[l.piece]);
        }
#pragma unroll
        for (int k = 0; k < AHEAD; k++) offer(p, l, u[k], lacks[k]);
        row = row.from(AHEAD * step);
    }
}

/* The same along the lines first, first + step … of the tail of v. */
template <class P>
INLINE void tell_tail(const P &p, const Level &l, u32 v, u32 first, u32 step, uint4 bits,
                      TailReads &reads) {
    each_line(p.out, l, v, first, step, reads, [&](u32 own) {
#pragma unroll
        for (u32 k = 0; k < PIECES; k++) {
            const u32 u = __shfl_sync(ALL, own, k * GROUP + l.group);
            uint4 lacked = make_uint4(0, 0, 0, 0);
            if (u != NONE) lacked = without(bits, seen_row(p, u)[l.piece]);
            offer(p, l, u, lacked);
        }
        return true;
    });
}

template <class P>
INLINE void push(const P &p, const Level &l, const u32 *queue, u32 count, u32 hubs) {
    TailReads reads = {0, 0};
    for (u32 k = 0; k < hubs; k++) { /* all warps share each hub */
        const u32 v = queue[p.active - 1 - k];
        const Columns row = pushed(p, v).from(l.warp * GROUP);
        if (!SPLIT && !row.count) continue; /* the same for all lanes */
        const uint4 bits = l.cur[(u64)place(p, v) * PIECES + l.piece];
        tell_row(p, l, row.from(l.group), l.warps * GROUP, bits);
        if (SPLIT) tell_tail(p, l, v, l.warp, l.warps, bits, reads);
    }
    for (u32 base = l.warp * GROUP; base < count; base += l.warps * GROUP) {
        const u32 i = base + l.group;
        u32 v = NONE;
        Columns row = {0, 0};
        uint4 bits = make_uint4(0, 0, 0, 0);
        if (i < count) {
            v = queue[i];
            row = pushed(p, v);
            bits = l.cur[(u64)place(p, v) * PIECES + l.piece];
        }
        const bool for_warp = row.count >= WIDE;
        u32 wide = __ballot_sync(ALL, for_warp && l.piece == 0);
        if (for_warp) row.count = 0;
        tell_row(p, l, row, 1, bits);
        while (wide) {
            const u32 from = __ffs(wide) - 1;
            wide &= wide - 1;
            const u32 w = __shfl_sync(ALL, v, from);
            tell_row(p, l, pushed(p, w).from(l.group), GROUP,
                     l.cur[(u64)place(p, w) * PIECES + l.piece]);
        }
        if (!SPLIT) continue;
        u32 tails = __ballot_sync(ALL, v != NONE && l.piece == 0 && tail_of(p.out, v));
        for (; tails; tails &= tails - 1) {
            const u32 w = __shfl_sync(ALL, v, __ffs(tails) - 1);
            tell_tail(p, l, w, 0, 1, l.cur[(u64)place(p, w) * PIECES + l.piece], reads);
        }
    }
    if (SPLIT) add_reads(p.reads, p.reads + 1, reads, l.lane);
}

/* The entry i of a queue, of which the first `count` are no hubs. */
INLINE u32 entry(const Params &p, const u32 *queue, u32 count, u32 i) {
    return queue[i < count ? i : p.active - 1 - (i - count)];
}

/* Settle the pushed bits, and empty the rows of the old frontier.
 * Returns this thread's part of the edges out of the next frontier. */
template <class P>
INLINE u32 settle_queue(const P &p, const Level &l, const u32 *old, u32 old_count, u32 old_all,
                        u32 count, u32 all) {
    const u32 step = l.warps * GROUP;
    u32 edges = 0;
    for (u32 i = l.warp * GROUP + l.group; i < all; i += step) {
        const u32 v = entry(p, l.next_queue, count, i);
        const uint4 fresh = l.next[(u64)place(p, v) * PIECES + l.piece];
        settle(p, l, v, p.seen[(u64)v * PIECES + l.piece], fresh);
        announce(p, l, v, fresh);
        if (l.piece == 0) edges += edges_of(p, v);
    }
    for (u32 i = l.warp * GROUP + l.group; i < old_all; i += step) {
        const u32 v = entry(p, old, old_count, i);
        ((uint4 *)l.cur)[(u64)place(p, v) * PIECES + l.piece] = make_uint4(0, 0, 0, 0);
    }
    return edges;
}

/* The rows that the next level will fill are emptied, after a pull. */
template <class P> INLINE void empty_rows(const P &p, const Level &l) {
    for (u64 i = thread_of(THREADS); i < (u64)p.active * PIECES; i += threads_of(THREADS))
        l.next[(u64)place(p, i / PIECES) * PIECES + i % PIECES] = make_uint4(0, 0, 0, 0);
}

/* Calls put(k, place) for the bits k of first … end-1 that are set in a bitmap, each with a
 * place of its own, counted in `size`; whole warps call it. */
template <class Size, class Bits, class Put>
INLINE void each_set(const Level &l, u32 first, u32 end, Size *size, const Bits &bits,
                     const Put &put) {
    for (u64 base = first / 32 + l.warp * 32; base * 32 < end; base += l.warps * 32) {
        const u64 at = base + l.lane;
        u32 set = at * 32 < end ? bits((u32)at) : 0;
        if (set && at * 32 < first) set &= ALL << (first - (u32)at * 32);
        if (set && at * 32 + 32 > end) set &= ALL >> (32 - (end - (u32)at * 32));
        u32 to = (u32)take_run(__popc(set), size);
        for (; set; set &= set - 1) put((u32)at * 32 + __ffs(set) - 1, to++);
    }
}

/* The queue of the frontier whose marks are given. */
template <class P> INLINE void gather(const P &p, const Level &l, const u32 *mark) {
    const auto bits = [&](u32 word) { return mark[word_place(p, word)]; };
    u32 *size = (u32 *)l.size, *queue = l.next_queue;
    each_set(l, 0, p.hubs, size + 1, bits, [&](u32 v, u32 at) { queue[p.active - 1 - at] = v; });
    each_set(l, p.hubs, p.active, size, bits, [&](u32 v, u32 at) { queue[at] = v; });
}
#endif
