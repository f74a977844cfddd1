/* Leaves on delegates: normal vertices whose only edge leads there.
 *
 * They have the last numbers of a device, from `active` on, and are not searched: no bitmap has
 * their bits, and columns to them are passed over.  All domains know the level of a delegate, so a
 * leaf is found one level later and nobody need be told.  It is counted then, by the device that
 * has its delegate's row, so that a search ends after the level of the last of them, and gets level
 * and parent before results are written (trees.cuh).  For that the devices of a domain tell each
 * other the levels of their delegates.  A search from a leaf pushes its edge as any other.
 * Source: pruning of trees in Graph500 codes (Ueno et al. 2016; Nakao et al. 2021), here of
 * vertices that hang on delegates (Pan, Pearce, Owens 2018).
 */
#ifndef DISTBFS_BETWEEN_LEAVES_CUH
#define DISTBFS_BETWEEN_LEAVES_CUH
#include "between.cuh"
#if SEVERAL
#include "domain_leaves.cuh"
#else
#include "trees.cuh"
#endif

#define HELD_CODES 4096 /* words of delegates whose codes a block holds: between_share.py */

/* Leaves on delegates, with the levels of a search; see Trees. */
struct HungLeaves {
    const Between &b;
    const uint2 *held;
    u32 k, base;
    /* a leaf whose edge is not seen is its own first neighbour */
    __device__ __forceinline__ bool below(u32, u32 u) const { return u < b.own.bound; }
    __device__ __forceinline__ int other(u32 v, u32 &u) const {
        if (!below(v, u)) return -1;
#if SEVERAL
        const Owner to = owner_of(b, u);
        /* mutant: direct[to.part] -> own.direct : test_several_devices */
        const int level = (int)__ldcg(b.direct[to.part] + to.number);
#else
        const int level = level_of(b.own, u, k, base);
#endif
        return level < 0 ? -1 : level + 1;
    }
};

#define LEAF_ROOM (HELD_CODES * 2 + WARPS * LATER) /* words of shared memory */

/* What tells the levels of delegates, for all blocks; they meet before `level_leaves`.  Of SEVERAL
 * devices, for all: codes, and direct levels of what has none, -1 of what is not visited. */
INLINE void code_delegates(const Between &b) {
    const Params &p = b.own;
    if (p.active == p.every) return;
    const State &s = *p.state;
#if SEVERAL
    publish_codes(b, s.k, s.base, b.normals / 64);
    const u32 *now = newest(p, s), stride = gridDim.x * THREADS;
    for (u32 w = blockIdx.x * THREADS + threadIdx.x; w < b.normals / 32; w += stride)
        /* mutant: write_levels(p, w * 32, ~now[w], NONE) -> (void)now[w] : test_several_devices */
        write_levels(p, w * 32, ~now[w], NONE);
#else
    make_codes(p, s.k, b.normals / 32);
#endif
}

/* Levels of all leaves that are left out, up to `last`, when all is searched.
 * room: shared, [LEAF_ROOM] */
INLINE void level_leaves(const Between &b, u32 *room) {
    const Params &p = b.own;
    if (p.active == p.every) return;
    const State &s = *p.state;
#if SEVERAL
    __shared__ JointState j;
    __shared__ Received received;
    const bool first = threadIdx.x == 0;
    if (first) j = b.device->joint;
    __syncthreads();
    if (!meet(b, j, 0, 0, 0, received)) return;
#endif
    uint2 *held = (uint2 *)room;
    hold_codes(p, held);
    /* mutant: s.base -> 0 : test_between_leaves::test_every_way */
    tell_trees(p, HungLeaves{b, held, s.k, s.base}, too_deep(p, s.depth), false,
               room + HELD_CODES * 2);
#if SEVERAL /* none begins to search again while others read its levels */
    meet(b, j, 0, 0, 0, received);
    if (blockIdx.x == 0 && first) b.device->joint = j;
#endif
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
 * counted with it. */
INLINE void count_leaves(const Between &b, const State &s, u32 *count) {
    const Params &p = b.own;
    /* mutant: s.phase != PULLING -> true : test_between_leaves::test_every_way */
    if (p.active == p.every || s.phase != PULLING) return;
    const u32 first = blockIdx.x * THREADS + threadIdx.x, all = gridDim.x * THREADS;
    const u32 *now = newest(p, s), *before = now - p.stride;
    for (u32 w = first; w < b.normals / 32; w += all) {
        const u32 fresh = b.has_leaves[w] & __ldcg(now + w) & ~before[w];
        if (!fresh) continue;
#pragma unroll 2
        for (u32 k = 0; k < 8; k++) { /* four delegates at a time */
            const u32 four = fresh >> 4 * k & 15;
            uint4 x = make_uint4(0, 0, 0, 0);
            if (four) x = ((const uint4 *)b.leaves)[8 * w + k];
            count[LEAVES] += (four & 1 ? x.x : 0) + (four & 2 ? x.y : 0) + (four & 4 ? x.z : 0) +
                             (four & 8 ? x.w : 0);
        }
    }
}

/* The leaves that the level has found: those below the delegates of the one before.  Leaves here
 * that are roots are not found once more: their delegate is a root, or found by the first level.
 * It may be another device's, so that this is less than nothing there. */
INLINE u64 leaves_of_level(const Between &b, const State &s) {
    const Params &p = b.own;
    u32 again = 0;
    /* mutant: s.depth == 2 ? b.again[1] : 0 -> 0 : test_between_leaves::test_sets_of_roots */
    if (p.from_set) again = s.depth == 1 ? b.again[0] : s.depth == 2 ? b.again[1] : 0;
    else if (s.depth == 2 && p.root != ELSEWHERE) {
        const u32 v = p.numbers[p.root];
        again = v >= p.active && v < p.every && p.first[v] < p.bound;
    }
    return *b.below - again;
}

/* This thread's share of the targets that are not found yet. */
INLINE u32 missed(const Between &b, const State &s) {
    const Params &p = b.own;
    const u32 *now = newest(p, s), leaves = p.sought - b.hung;
    u32 count = 0;
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < p.sought; i += gridDim.x * THREADS) {
        const u32 v = p.targets[i];
        /* mutant: (i >= leaves && is_new(b, s, v)) -> false : test_ends */
        count += !bit_of(now, v) || (i >= leaves && is_new(b, s, v));
    }
    return count;
}
#endif
