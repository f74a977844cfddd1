/* Leaves on delegates: normal vertices whose only edge leads there.
 *
 * They have the last numbers of a device, from `active` on, and are not searched: no bitmap has
 * their bits, and columns to them are passed over.  All domains know the level of a delegate, so a
 * leaf is found one level later and nobody need be told.  It is counted then, so that a search ends
 * after the level of the last of them, and gets level and parent before results are written
 * (trees.cuh).  A search from a leaf pushes its edge as any other.
 * Source: pruning of trees in Graph500 codes (Ueno et al. 2016; Nakao et al. 2021), here of
 * vertices that hang on delegates (Pan, Pearce, Owens 2018).
 */
#ifndef DISTBFS_BETWEEN_LEAVES_CUH
#define DISTBFS_BETWEEN_LEAVES_CUH
#include "between.cuh"
#include "trees.cuh"

#define HELD_CODES 4096 /* words of delegates whose codes a block holds: between.py */

/* Leaves on delegates, with the levels of a search; see Trees. */
struct HungLeaves {
    const Params &p;
    const uint2 *held;
    u32 k, base;
    /* a leaf whose edge is not seen is its own first neighbour */
    __device__ __forceinline__ bool below(u32, u32 u) const { return u < p.active; }
    __device__ __forceinline__ int other(u32, u32 &u) const {
        const int level = u < p.active ? level_of(p, u, k, base) : -1;
        return level < 0 ? -1 : level + 1;
    }
};

#define LEAF_ROOM (HELD_CODES * 2 + WARPS * LATER) /* words of shared memory */

/* What tells the levels of delegates, for all blocks; they meet before `level_leaves`. */
INLINE void code_delegates(const Between &b) {
    if (b.own.active < b.own.every) make_codes(b.own, b.own.state->k, b.normals / 32);
}

/* Levels of all leaves that are left out, up to `last`, when all is searched.
 * room: shared, [LEAF_ROOM] */
INLINE void level_leaves(const Between &b, u32 *room) {
    const Params &p = b.own;
    if (p.active == p.every) return;
    const State &s = *p.state;
    uint2 *held = (uint2 *)room;
    hold_codes(p, held);
    tell_trees(p, HungLeaves{p, held, s.k, s.base}, too_deep(p, s.depth), false,
               room + HELD_CODES * 2);
}

/* Whether a number that is searched was found in the level that ended. */
INLINE bool is_new(const Between &b, const State &s, u32 v) {
    const Params &p = b.own;
    const u32 *now = newest(p, s);
    if (s.phase == PULLING) return bit_of(now, v) && !bit_of(now - p.stride, v);
    return bit_of(now, v) && p.direct[v] == s.depth;
}

/* Put a leaf that is a root of a set into the first queue, one a lane where `mine`. */
INLINE void append_leaf(const Between &b, bool mine, u32 v, u32 lane) {
    const Params &p = b.own;
    const OFFSET begin = mine ? p.row[v] : 0;
    const u32 degree = mine ? degree_at(p, v, begin) : 0;
    append(p, degree != 0, v, begin, degree, Queue{p.queue[0], p.hub_queue[0], b.mail}, lane);
}

/* This thread's share of the leaves on delegates that pulls have found; those of a queue are
 * counted with it.  Leaves that are roots are not found once more: their delegate is a root, or
 * found by the first level. */
INLINE void count_leaves(const Between &b, const State &s, u32 *count) {
    const Params &p = b.own;
    if (p.active == p.every) return;
    const u32 first = blockIdx.x * THREADS + threadIdx.x, all = gridDim.x * THREADS;
    if (s.phase == PULLING) {
        const u32 *now = newest(p, s), *before = now - p.stride;
        for (u32 v = first; v < b.normals; v += all) {
            const u32 w = v >> 5, bits = b.has_leaves[w] & __ldcg(now + w) & ~before[w];
            if (bits >> (v & 31) & 1) count[LEAVES] += b.leaves[v];
        }
    }
    if (s.depth > 1) return;
    const u32 roots = p.from_set ? p.root_count : first == 0 && p.root != ELSEWHERE;
    for (u32 i = first; i < roots; i += all) {
        const u32 v = p.from_set ? p.roots[i] : p.numbers[p.root];
        const u32 u = v >= p.active && v < p.every ? p.first[v] : NONE;
        if (u < p.active && is_new(b, s, u)) atomicAdd(b.counts + LEAVES, ~0ull);
    }
}

/* This thread's share of the targets that are not found yet. */
INLINE u32 missed(const Between &b, const State &s) {
    const Params &p = b.own;
    const u32 *now = newest(p, s);
    u32 count = 0;
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < p.sought; i += gridDim.x * THREADS) {
        const u32 v = p.targets[i], u = v < p.active ? v : p.first[v];
        count += u >= p.active || !bit_of(now, u) || (v >= p.active && is_new(b, s, u));
    }
    return count;
}
#endif
