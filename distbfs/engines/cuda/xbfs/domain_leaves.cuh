/* Leaves of a domain: they are not searched, but get level and parent with the results.
 *
 * The numbers of every part from `active` on are of vertices with one edge, so columns from
 * `bound` on are their positions, which no replica has.  A leaf is one level below its
 * neighbour, which may be of another part: each part tells all devices the codes of its own
 * vertices (trees.cuh) when a search ends; where a code does not tell, the level is in the
 * owner's `direct`.  A search from a leaf pushes its edge as any other.
 * Source: pruning of trees in Graph500 codes (Ueno et al. 2016; Nakao et al. 2021), here of
 * their outermost vertices.
 */
#ifndef DISTBFS_XBFS_DOMAIN_LEAVES_CUH
#define DISTBFS_XBFS_DOMAIN_LEAVES_CUH
#include "domain_meet.cuh"
#include "domain_publish.cuh"
#include "trees.cuh"

#define CODED 3 /* snapshots that have codes */

/* Levels of word w that have no code become direct ones; seen: what has one. */
INLINE void direct_levels(const Params &p, u32 w, u32 k, u32 base, u32 seen) {
    if (p.snapshot[k * p.stride + w] == seen) return;
    for (u32 j = CODED + 1; j <= k; j++) {
        const u32 now = p.snapshot[j * p.stride + w];
        for (u32 fresh = now & ~seen; fresh; fresh &= fresh - 1)
            p.direct[w * 32 + __ffs(fresh) - 1] = base + j;
        seen |= now;
    }
}

/* Own words of codes for all devices, two at a time. */
INLINE void publish_codes(const Member &r, u32 k, u32 base) {
    const Params &p = r.own;
    const u32 stride = gridDim.x * THREADS;
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < p.words / 2; i += stride) {
        uint2 in[CODED + 1];
#pragma unroll
        for (u32 j = 0; j <= CODED; j++)
            in[j] = j <= k ? *(const uint2 *)(p.snapshot + j * p.stride + 2 * i)
                           : make_uint2(ALL, ALL);
        const uint2 x = code_word(in[0].x, in[1].x, in[2].x, in[3].x);
        const uint2 y = code_word(in[0].y, in[1].y, in[2].y, in[3].y);
        const u32 at = place_of(r, 2 * i);
        for (u32 one = 0; one < r.parts; one++) { /* not all to the same device at once */
            const u32 t = r.index + one < r.parts ? r.index + one : r.index + one - r.parts;
            *(uint4 *)(r.code[t] + at) = make_uint4(x.x, x.y, y.x, y.y);
        }
        if (k <= CODED) continue;
        direct_levels(p, 2 * i, k, base, in[CODED].x);
        direct_levels(p, 2 * i + 1, k, base, in[CODED].y);
    }
}

/* The id of a position. */
INLINE u64 id_at(const Member &r, u32 position) {
    const u32 name = r.own.vertices[position];
    return r.own.shares ? (u64)name * r.parts + owner_of(r, position).part : name;
}

/* Level of a leaf whose neighbour has no code, -1 where it is unreached.
 * reached: bits of all vertices, by position */
INLINE int leaf_level(const Member &r, u32 neighbour, const u32 *reached) {
    if (neighbour >= r.own.bound) /* a leaf, too: none but a root leads there */
        return id_at(r, neighbour) == r.own.root_id ? 1 : -1;
    if (!bit_of(reached, neighbour)) return -1;
    const Owner to = owner_of(r, neighbour);
    return (int)__ldcg(r.direct[to.part] + to.number) + 1;
}

/* Levels and parents of this device's leaves; see tell_trees. */
INLINE void find_leaves(const Member &r, const u32 *reached, uint2 *held, u32 k, u32 base,
                        bool wide) {
    const Params &p = r.own;
    const u32 root = p.root == ELSEWHERE ? NONE : number_of(p, p.root);
    hold_codes(p, held);
    tell_trees(p, base, wide, false, [&](u32 v, u32(&parent)[4], int(&level)[4]) {
        levels_of_four(
            p, v, parent, level, held, k, base,
            [&](u32 v, u32 u) { return u < p.bound && v != root; },
            [&](u32 v, u32 &parent) {
                if (v != root) return leaf_level(r, parent, reached);
                parent = position_of(r, root);
                return 0;
            });
    });
}

/* What all devices must know of this one for their leaves. */
INLINE void tell_codes(const Member &r, const JointState &j) {
    if (!j.complete) publish_changes(r, r.own.snapshot + j.s.k * r.own.stride, j.now);
    publish_codes(r, j.s.k, j.s.base);
}

/* All devices end a search so, after `tell_codes`; false where it has failed.
 * room: dynamic shared memory */
INLINE bool level_leaves(const Member &r, JointState &j, u32 *room, Received &received) {
    if (!meet(r, j, 0, 0, 0, received)) return false;
    find_leaves(r, replica_of(r, r.index, j.now), (uint2 *)room, j.s.k, j.s.base,
                too_deep(r.own, j.s.depth));
    return meet_here(r, j);
}
#endif
