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

/* Where most vertices are: in one of the first three snapshots after pushes.  A code of two
 * bits says in which, 0: look elsewhere.  uint2 of a word: low and high bits. */
INLINE void make_codes(const Params &p, uint2 *code, u32 k) {
    for (u32 w = threadIdx.x; w < p.coded; w += THREADS) {
        u32 seen[4];
#pragma unroll
        for (u32 j = 0; j < 4; j++) seen[j] = j <= k ? p.snapshot[j * p.stride + w] : 0u;
        const u32 one = k ? seen[1] & ~seen[0] : 0u, two = k > 1 ? seen[2] & ~seen[1] : 0u;
        const u32 three = k > 2 ? seen[3] & ~seen[2] : 0u;
        code[w] = make_uint2(one | three, two | three);
    }
    __syncthreads();
}

/* Level of a searched vertex, -1 where it is unvisited. */
INLINE int searched_level(const Params &p, u32 v, const uint2 *code, u32 k, u32 base) {
    const u32 w = v >> 5, at = v & 31;
    if (w < p.coded) {
        const uint2 c = code[w];
        const u32 j = (c.x >> at & 1) | (c.y >> at & 1) << 1;
        if (j) return base + j;
    }
    return level_of(p, v, k, base);
}

/* Level of a vertex of a tree, -1 where it is unreached, and its parent, by number; for all
 * but those that hang on what is searched while the root is there, too. */
INLINE int tree_level(const Params &p, u32 v, const Way &way, const uint2 *code, u32 k, u32 base,
                      u32 &parent) {
    u32 u = v;
    parent = p.first[v];
    for (u32 edges = 0;; edges++) {
        if (u == NONE) return -1;
        if (u < p.active) {
            const int level = searched_level(p, u, code, k, base);
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

/* Levels and parents of all vertices of trees; by number, or by id as `direct` for the kernel
 * that writes those.  code: shared memory for `coded` words */
INLINE void find_trees(const Params &p, u32 root, uint2 *code, u32 k, u32 base, bool wide) {
    __shared__ Way way;
    if (threadIdx.x == 0) walk(p, root, way);
    make_codes(p, code, k);
    u32 top = 0;
    for (u32 v = p.active + (blockIdx.x * THREADS + threadIdx.x) * 4; v < p.every;
         v += gridDim.x * THREADS * 4) {
        const uint4 f4 = *(const uint4 *)(p.first + v);
        u32 parent[4] = {f4.x, f4.y, f4.z, f4.w}, slow = 0, bytes = 0;
        u32 ones[4], twos[4];
        int level[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const u32 u = parent[i], w = u >> 5, at = u & 31;
            const uint2 c = w < p.coded ? code[w] : make_uint2(0, 0);
            const u32 j = (c.x >> at & 1) | (c.y >> at & 1) << 1;
            level[i] = base + j + 1;
            if (!j || way.length) slow |= 1u << i;
        }
        /* what may be needed is asked for at once */
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const bool ask = slow >> i & 1 && k > 1 && parent[i] < p.active && !way.length;
            ones[i] = ask ? p.snapshot[p.stride + (parent[i] >> 5)] : 0u;
            twos[i] = ask ? p.snapshot[2 * p.stride + (parent[i] >> 5)] : 0u;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const u32 at = parent[i] & 31;
            if (!(slow >> i & 1)) continue;
            if (!(ones[i] >> at & 1) && twos[i] >> at & 1) level[i] = base + 3;
            else if (v + i < p.every) level[i] = tree_level(p, v + i, way, code, k, base, parent[i]);
            else level[i] = -1;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (v + i >= p.every || (level[i] > 0 && (u32)level[i] > p.last)) level[i] = -1;
            if (level[i] > (int)(base + top)) top = level[i] - base;
            bytes |= (u32)(level[i] & 255) << 8 * i;
            if (level[i] < 0) parent[i] = NONE;
        }
        const uint4 levels = make_uint4(level[0], level[1], level[2], level[3]);
        if (IN_IDS) *(uint4 *)(p.direct + v) = levels;
        else if (wide) *(uint4 *)(p.level_wide + v) = levels;
        else *(u32 *)(p.level_out + v) = bytes;
        if (p.parents && (!IN_IDS || way.length))
            *(uint4 *)(p.parent + v) = make_uint4(parent[0], parent[1], parent[2], parent[3]);
    }
    tell_highest(p, top, threadIdx.x & 31);
}
#endif
