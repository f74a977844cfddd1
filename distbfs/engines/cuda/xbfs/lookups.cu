/* Levels of pairs of vertices, and shortest paths, by edge lookups.
 *
 * Method and sources: lookups.cuh.  A warp takes a pair.
 */
#include "../common/sets.cuh"
#include "lookups.cuh"

#define WARPS 4
#define BLOCKS 8 /* of a multiprocessor */

/* The level of a pair; all lanes of a warp call it. */
template <class Way> INLINE int level_of_near(const Pairs &p, u32 q, u32 lane, const Way &way) {
    const u32 source = p.source[p.search[q]], target = p.target[q];
    if (source == target) return 0;
    const u32 v = number_in(p.members, p.numbers, source);
    const u32 w = number_in(p.members, p.numbers, target);
    if (v == NONE || w == NONE) return -1;
    const End s = end_of(p.row, p.adj, v, false), t = end_of(p.in_row, p.in_adj, w, true);
    return level_by_lookups(s, t, lane, (int)p.lookups, way);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) near(const Pairs p) {
    const u32 lane = lane_id(), warp = thread_of<u32>(32 * WARPS) / 32;
    for (u32 q = warp; q < p.count; q += gridDim.x * WARPS) {
        const int level = level_of_near(p, q, lane, NoPath());
        if (lane) continue;
        p.level[q] = level;
        if (level == OPEN) atomicOr(p.open + p.search[q] / 32, 1u << (p.search[q] & 31));
    }
}

/* The same, with the vertices between the ends. */
extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) paths(const Pairs p) {
    const u32 lane = lane_id(), warp = thread_of<u32>(32 * WARPS) / 32;
    for (u32 q = warp; q < p.count; q += gridDim.x * WARPS) {
        const Path path = {p.vertices, p.path + (u64)q * (MOST_LOOKED_UP + 1)};
        const int level = level_of_near(p, q, lane, path);
        if (!lane) p.level[q] = level;
    }
}
