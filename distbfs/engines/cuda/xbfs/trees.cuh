/* Vertices of trees: they are not searched, but get level and parent with the results.
 *
 * Their numbers come after those that are searched (`active`), each after the one that it
 * hangs on, which is its first neighbour (graph/device_graph.py).  A search from one of them
 * begins where its tree hangs on the rest, on the level that this has, and its own tree is
 * measured from the root.
 * Source: pruning of trees in Graph500 codes (Ueno et al. 2016; Nakao et al. 2021).
 */
#ifndef DISTBFS_XBFS_TREES_CUH
#define DISTBFS_XBFS_TREES_CUH
#include "results.cuh"

#define MOST_CHAIN 16 /* edges from a vertex of a tree to the rest: trees.py */

/* Levels that do not fit a byte may come: those of trees are deeper than what is searched. */
INLINE bool too_deep(const Params &p, u32 depth) { return depth + 2 * p.chain > NARROW; }

/* What v hangs on, NONE where it is the root of a tree that is a component. */
INLINE u32 above(const Params &p, u32 v) {
    const u32 u = p.first[v];
    return u < v ? u : NONE;
}

/* The way from the root of a search to what is searched, without that. */
struct Way {
    u32 length, end;      /* vertices of trees; where it leads, NONE: to no other vertex */
    u32 step[MOST_CHAIN]; /* [length] */
};

INLINE void walk(const Params &p, u32 root, Way &way) {
    way.length = 0, way.end = root;
    while (way.end != NONE && way.end >= p.active) {
        way.step[way.length++] = way.end;
        way.end = above(p, way.end);
    }
}

/* The same without the way: where it leads, and by how many edges. */
INLINE u32 end_of(const Params &p, u32 root, u32 &edges) {
    for (edges = 0; root != NONE && root >= p.active; edges++) root = above(p, root);
    return root;
}

/* Level of a searched vertex, -1 where it is unvisited.  Most are in one of the first
 * snapshots after pushes; ones, twos: their words of snapshots 1 and 2. */
INLINE int searched_level(const Params &p, u32 v, u32 ones, u32 twos, u32 k, u32 base) {
    const u32 bit = 1u << (v & 31);
    if (k && !(ones & bit)) {
        if (k == 1) return -1;
        if (twos & bit) return base + 2;
#pragma unroll 1
        for (u32 j = 3; j <= k; j++)
            if (bit_of(p.snapshot + j * p.stride, v)) return base + j;
        return -1;
    }
    if (bit_of(p.snapshot, v)) return p.direct[v];
    return k ? (int)(base + 1) : -1;
}

/* Level of a vertex of a tree, -1 where it is unreached, and its parent, by number; for all
 * but those that hang on what is searched while the root is there, too. */
INLINE int tree_level(const Params &p, u32 v, const Way &way, u32 k, u32 base, u32 &parent) {
    u32 u = v;
    parent = p.first[v];
    for (u32 edges = 0;; edges++) {
        if (u == NONE) return -1;
        if (u < p.active) {
            const int level = searched_level(p, u, p.snapshot[p.stride + (u >> 5)],
                                             p.snapshot[2 * p.stride + (u >> 5)], k, base);
            return level < 0 ? -1 : level + (int)edges;
        }
        for (u32 j = 0; j < way.length; j++) {
            if (way.step[j] != u) continue;
            if (!edges) parent = j ? way.step[j - 1] : v; /* nearer to the root, or the root */
            return edges + j;
        }
        u = above(p, u);
    }
}

/* Levels and parents, by number, of four vertices of trees v … v + 3, of which `mine` are
 * asked for; a level beyond the last one that is wanted is -1. */
INLINE void tree_levels(const Params &p, u32 v, u32 mine, const Way &way, u32 k, u32 base,
                        int (&level)[4], u32 (&parent)[4]) {
    const uint4 f4 = *(const uint4 *)(p.first + v);
    const u32 f[4] = {f4.x, f4.y, f4.z, f4.w};
    u32 ones[4], twos[4];
#pragma unroll
    for (int i = 0; i < 4; i++) { /* all that may be needed is asked for at once */
        const u32 w = (mine >> i & 1) && f[i] < p.active ? f[i] >> 5 : 0u;
        ones[i] = p.snapshot[p.stride + w];
        twos[i] = p.snapshot[2 * p.stride + w];
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        level[i] = -1, parent[i] = f[i];
        if (!(mine >> i & 1)) continue;
        if (f[i] < p.active && !way.length) {
            level[i] = searched_level(p, f[i], ones[i], twos[i], k, base);
            level[i] += level[i] >= 0;
        } else level[i] = tree_level(p, v + i, way, k, base, parent[i]);
        if (level[i] > 0 && (u32)level[i] > p.last) level[i] = -1;
    }
}

/* Results by number of all vertices of trees. */
INLINE void trees_by_number(const Params &p, u32 root, u32 k, u32 base, bool wide) {
    Way way;
    walk(p, root, way);
    u32 top = 0;
    for (u32 v = p.active + (blockIdx.x * THREADS + threadIdx.x) * 4; v < p.every;
         v += gridDim.x * THREADS * 4) {
        const u32 mine = v + 4 <= p.every ? 15u : (1u << (p.every - v)) - 1;
        int level[4];
        u32 parent[4], bytes = 0;
        tree_levels(p, v, mine, way, k, base, level, parent);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (level[i] > (int)(base + top)) top = level[i] - base;
            bytes |= (u32)(level[i] & 255) << 8 * i;
            if (level[i] < 0) parent[i] = NONE;
        }
        if (wide) *(uint4 *)(p.level_wide + v) = make_uint4(level[0], level[1], level[2], level[3]);
        else *(u32 *)(p.level_out + v) = bytes;
        if (p.parents)
            *(uint4 *)(p.parent + v) = make_uint4(parent[0], parent[1], parent[2], parent[3]);
    }
    tell_highest(p, top, threadIdx.x & 31);
}
#endif
