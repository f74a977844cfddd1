/* The tails of rows, for searches that share one traversal: a warp reads a line of 128 bytes
 * at a time, and its groups of lanes share out the columns.
 *
 * A pull asks only for searches that have a frontier: others find nothing, and a vertex that
 * they cannot reach would have its tail read level after level.
 * Data: bits.cuh, tails.cuh. */
#ifndef DISTBFS_BITS_TAILS_CUH
#define DISTBFS_BITS_TAILS_CUH
#include "bits.cuh"

#define LINE 32 /* columns */

/* Calls take(column of this lane, NONE for none) for the lines first, first + step … of the
 * tail of v, while it returns true, the same for all lanes of the warp. */
template <class Take>
INLINE void each_line(const Rows &p, const Level &l, u32 v, u32 first, u32 step, TailReads &reads,
                      const Take &take) {
    const u64 begin = p.tail_row[v], end = begin + tail_of(p, v);
    /* mutant: line * -> (line + 1) * : test_multisearch_bits::test_tails_in_host_memory */
    for (u64 line = begin / LINE + first; line * LINE < end; line += step) {
        const u64 low = line * LINE > begin ? line * LINE : begin, at = line * LINE + l.lane;
        const u64 high = (line + 1) * LINE < end ? (line + 1) * LINE : end;
        if (l.lane == 0) note_tail(reads, low, (u32)(high - low));
        const u32 u = at >= low && at < high ? load_once(p.adj + (p.far + at)) : NONE;
        if (!take(u)) break;
    }
}

/* Whether found lacks any of want, in any piece; all lanes of a warp call it. */
INLINE bool lacks(uint4 want, uint4 found) { return group_any(some(without(want, found))); }

/* OR of the frontier's bits in a piece, over the groups of a warp. */
INLINE uint4 gathered(uint4 found) {
    return make_uint4(over_groups(found.x), over_groups(found.y), over_groups(found.z),
                      over_groups(found.w));
}

/* Adds bits to words of a row, and returns what they are then; all lanes of a warp call it,
 * and the groups have the same. */
INLINE uint4 join(const Level &l, u32 *row, uint4 bits) {
    u32 *to = row + 4 * l.piece;
    if (l.group == 0)
        bits = bits | make_uint4(atomicOr(to, bits.x), atomicOr(to + 1, bits.y),
                                 atomicOr(to + 2, bits.z), atomicOr(to + 3, bits.w));
    return make_uint4(__shfl_sync(ALL, bits.x, l.piece), __shfl_sync(ALL, bits.y, l.piece),
                      __shfl_sync(ALL, bits.z, l.piece), __shfl_sync(ALL, bits.w, l.piece));
}

/* OR of the neighbours in the lines first, first + step … of the tail of v, of the bits that
 * are wanted, until none of them is missing.  room: null, or [WORDS] where the warps that read
 * this tail join what they find.  All lanes of a warp call it for one v. */
INLINE uint4 ask_tail(const Rows &p, const Level &l, u32 v, uint4 want, u32 first, u32 step,
                      u32 *room, TailReads &reads) {
    uint4 found = make_uint4(0, 0, 0, 0);
    each_line(p, l, v, first, step, reads, [&](u32 own) {
        if (own != NONE && !bit_of(l.mark, own)) own = NONE;
#pragma unroll
        for (u32 k = 0; k < PIECES; k++) {
            const u32 u = __shfl_sync(ALL, own, k * GROUP + l.group);
            if (u != NONE) found = found | l.cur[(u64)u * PIECES + l.piece];
        }
        found = gathered(found);
        if (room) found = join(l, room, found);
        return lacks(want, found);
    });
    return found & want;
}

/* The same for the vertices of all groups, one after the other; want: of this group's v. */
INLINE uint4 ask_tails(const Rows &p, const Level &l, u32 v, uint4 want, TailReads &reads) {
    uint4 found = make_uint4(0, 0, 0, 0);
    const bool any = group_any(some(want));
    u32 todo = __ballot_sync(ALL, any && l.piece == 0 && tail_of(p, v));
    for (; todo; todo &= todo - 1) {
        const u32 from = __ffs(todo) - 1, at = from + l.piece;
        const uint4 other =
            make_uint4(__shfl_sync(ALL, want.x, at), __shfl_sync(ALL, want.y, at),
                       __shfl_sync(ALL, want.z, at), __shfl_sync(ALL, want.w, at));
        const uint4 more =
            ask_tail(p, l, __shfl_sync(ALL, v, from), other, 0, 1, (u32 *)0, reads);
        if (l.group == from / PIECES) found = more;
    }
    return found;
}

/* Where the searches are kept that have a frontier before level `depth`. */
INLINE u32 *live_of(const Params &p, u32 depth) { return p.live + (depth & 1) * WORDS; }

/* Forgets them for the level after `depth`. */
INLINE void clear_live(const Params &p, u32 depth) {
    if (SPLIT && blockIdx.x == 0 && threadIdx.x < WORDS) live_of(p, depth + 1)[threadIdx.x] = 0;
}

/* Notes which searches have a frontier, before a pull; it is zero until then. */
template <class P> INLINE void note_live(const P &p, const Level &l) {
    uint4 bits = make_uint4(0, 0, 0, 0);
    for (u32 word = l.warp; word < p.words; word += l.warps) {
        const u32 mark = l.mark[word];
        for (u32 k = l.group; mark && k < 32; k += GROUP)
            if (mark >> k & 1) bits = bits | l.cur[((u64)word * 32 + k) * PIECES + l.piece];
    }
    bits = gathered(bits);
    if (group_any(some(bits))) join(l, live_of(p, l.depth), bits);
}

/* Those of the searches `full` that a pull looks for, in this lane's piece. */
template <class P> INLINE uint4 wanted(const P &p, const Level &l, uint4 full) {
#if SPLIT
    const u32 *live = live_of(p, l.depth) + 4 * l.piece;
    /* mutant: live[0] -> ALL : test_pulls_read_no_tail_without_need */
    full.x &= live[0], full.y &= live[1], full.z &= live[2], full.w &= live[3];
#endif
    return full;
}
#endif
