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

/* Own words of codes for all devices; levels that have none become direct ones. */
INLINE void publish_codes(const Member &r, u32 k, u32 base) {
    const Params &p = r.own;
    for (u32 w = blockIdx.x * THREADS + threadIdx.x; w < p.words; w += gridDim.x * THREADS) {
        u32 seen;
        const uint2 code = code_word(p, w, k, seen);
        const u32 at = place_of(r, w);
        for (u32 i = 0; i < r.parts; i++) { /* not all to the same device at once */
            const u32 t = r.index + i < r.parts ? r.index + i : r.index + i - r.parts;
            r.code[t][at] = code;
        }
        if (k <= CODED || p.snapshot[k * p.stride + w] == seen) continue;
        for (u32 j = CODED + 1; j <= k; j++) {
            const u32 now = p.snapshot[j * p.stride + w];
            for (u32 fresh = now & ~seen; fresh; fresh &= fresh - 1)
                p.direct[w * 32 + __ffs(fresh) - 1] = base + j;
            seen |= now;
        }
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

/* All devices end a search so; false where it has failed.  room: dynamic shared memory */
INLINE bool level_leaves(const Member &r, JointState &j, u32 *room, Received &received) {
    const Params &p = r.own;
    const u32 k = j.s.k, base = j.s.base;
    if (!j.complete) publish_changes(r, p.snapshot + k * p.stride, j.now);
    publish_codes(r, k, base);
    if (!meet(r, j, 0, 0, 0, received)) return false;
    find_leaves(r, replica_of(r, r.index, j.now), (uint2 *)room, k, base, too_deep(p, j.s.depth));
    return meet_here(r, j);
}
#endif
