/* The roots of a set, which a search begins at together: their bits, levels and parents, and
 * the queue of the first level.  Roots without edges have no number; results.cu writes them. */
#ifndef DISTBFS_XBFS_SEEDS_CUH
#define DISTBFS_XBFS_SEEDS_CUH
#include "push.cuh"

/* Begin at all roots that have numbers here, by warps of which this is `warp`; others may look
 * at them after a meeting.  Where there are too many for a queue, none is made: levels begin
 * with a pull.  name(v): the parent that a root has, which stands for itself */
template <class Name>
INLINE void begin_set(const Params &p, const Queue &q, u32 warp, u32 warps, u32 lane,
                      const Name &name) {
    for (u64 i0 = (u64)warp * 32; i0 < p.root_count; i0 += (u64)warps * 32) {
        const bool mine = i0 + lane < p.root_count;
        const u32 v = mine ? p.roots[i0 + lane] : 0;
        const OFFSET begin = mine ? p.row[v] : 0;
        const u32 degree = mine ? degree_at(p, v, begin) : 0;
        /* mutant: BY_QUEUE -> BY_PULL : test_sets::test_one_device */
        if (p.from_set == BY_QUEUE)
            append(p, DIRECTED ? mine : degree != 0, v, begin, degree, q, lane);
        if (!mine) continue;
        atomicOr(p.snapshot + (v >> 5), 1u << (v & 31));
        p.direct[v] = 0;
        if (p.parents) p.parent[v] = name(v);
    }
}
#endif
