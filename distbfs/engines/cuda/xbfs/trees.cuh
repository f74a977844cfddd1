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
#define LATER 64      /* vertices of a warp that wait for a level that no code tells */

/* Levels are wanted that may not fit a byte: those of trees are deeper than what is searched. */
INLINE bool too_deep(const Params &p, u32 depth) {
    /* mutant: NARROW && p.level_out -> NARROW : test_parents_alone::test_every_way */
    return depth + 2 * p.chain > NARROW && p.level_out;
}

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

/* Codes of searched vertices, made as their results are. */
struct OwnCodes {
    const Params &p;
    bool wanted;
    __device__ __forceinline__ void operator()(u32 i, u32 low, u32 high) const {
        if (!wanted) return;
        u16 *code = (u16 *)(p.code + i / 2) + (i & 1);
        code[0] = low, code[2] = high;
    }
    __device__ __forceinline__ void later(u32, u32, u32) const {}
};

/* The codes of a word from what the snapshot of pushes and the first three after it have. */
INLINE uint2 code_word(u32 a, u32 b, u32 c, u32 d) {
    return make_uint2((b & ~a) | (d & ~c), (c & ~b) | (d & ~c));
}

/* The codes of words 2 i and 2 i + 1; seen: what the first three snapshots after pushes
 * have of them. */
INLINE uint4 code_words(const Params &p, u32 i, u32 k, uint2 &seen) {
    uint2 in[CODED + 1];
#pragma unroll
    for (u32 j = 0; j <= CODED; j++)
        in[j] = j <= k ? *(const uint2 *)(p.snapshot + j * p.stride + 2 * i)
                       : make_uint2(ALL, ALL);
    seen = in[CODED];
    const uint2 x = code_word(in[0].x, in[1].x, in[2].x, in[3].x);
    const uint2 y = code_word(in[0].y, in[1].y, in[2].y, in[3].y);
    return make_uint4(x.x, x.y, y.x, y.y);
}

/* The codes of word w. */
INLINE uint2 code_word(const Params &p, u32 w, u32 k) {
    u32 in[CODED + 1];
#pragma unroll
    for (u32 j = 0; j <= CODED; j++) in[j] = j <= k ? p.snapshot[j * p.stride + w] : ALL;
    return code_word(in[0], in[1], in[2], in[3]);
}

/* Where most vertices are: in one of the first three snapshots after pushes.  A code of two
 * bits says in which, 0: look elsewhere.  uint2 of a word: low and high bits.  All blocks meet
 * before they read it.  words: the first ones, that are looked up */
INLINE void make_codes(const Params &p, u32 k, u32 words) {
    uint2 seen;
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < words / 2; i += gridDim.x * THREADS)
        ((uint4 *)p.code)[i] = code_words(p, i, k, seen);
}

/* The codes of searched vertices v[i] that are `wanted`, 0 of the others; all words are asked
 * for before one is waited for.  held: [coded], those of the first words; one at least can be
 * read.  Without CODES the snapshots tell them. */
template <int N>
INLINE void codes_of(const Params &p, const u32 (&v)[N], const bool (&wanted)[N],
                     const uint2 *held, u32 k, u32 (&code)[N]) {
    uint2 c[N];
#pragma unroll
    for (int i = 0; i < N; i++) {
        const u32 w = wanted[i] ? v[i] >> 5 : 0u;
#if CODES
        const bool far = wanted[i] && w >= p.coded;
        c[i] = held[far ? 0u : w];
        if (far) c[i] = __ldcg(p.code + w);
#else
        c[i] = code_word(p, w, k);
#endif
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        const u32 at = v[i] & 31;
        code[i] = wanted[i] ? (c[i].x >> at & 1) | (c[i].y >> at & 1) << 1 : 0u;
        if (code[i] > k) code[i] = 0;
    }
}

/* Level of a searched vertex, -1 where it is unvisited. */
INLINE int searched_level(const Params &p, u32 v, const uint2 *held, u32 k, u32 base) {
    const u32 one[1] = {v};
    const bool wanted[1] = {true};
    u32 code[1];
    codes_of(p, one, wanted, held, k, code);
    return code[0] ? base + code[0] : level_of(p, v, k, base);
}

/* Level of a vertex of a tree, -1 where it is unreached, and its parent, by number. */
INLINE int tree_level(const Params &p, u32 v, const Way &way, const uint2 *held, u32 k, u32 base,
                      u32 &parent) {
    u32 u = v;
    for (u32 edges = 0;; edges++) {
        if (u == NONE) return -1;
        if (u < p.active) {
            const int level = searched_level(p, u, held, k, base);
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

/* Where levels of trees are told to the kernel that writes results by id: a byte each, or
 * `direct` itself where that is too narrow; 0 of all that are reached where none is wanted. */
INLINE u8 *tree_bytes(const Params &p) { return (u8 *)(p.direct + p.active); }

/* Copy the first `coded` words of codes; all threads of the block wait for it. */
INLINE void hold_codes(const Params &p, uint2 *held) {
    for (u32 i = threadIdx.x; i < p.coded / 2; i += THREADS)
        ((uint4 *)held)[i] = __ldcg((const uint4 *)p.code + i);
    __syncthreads();
}

/* Levels of four vertices that are not searched, and have first neighbours `parent`, where
 * codes tell them; -1 of others.  tree: as of Trees.  Returns bits of those that its `other`
 * must be asked for. */
template <class Tree>
INLINE u32 levels_by_code(const Params &p, const Tree &tree, u32 v, const u32 (&parent)[4],
                          int (&level)[4]) {
    u32 code[4], others = 0;
    bool coded[4];
#pragma unroll
    for (int i = 0; i < 4; i++) coded[i] = v + i < p.every && tree.below(v + i, parent[i]);
    codes_of(p, parent, coded, tree.held, tree.k, code);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        level[i] = code[i] ? (int)(tree.base + code[i] + 1) : -1;
        if (v + i < p.every && !code[i]) others |= 1u << i;
    }
    return others;
}

/* A level, -1 where it is beyond the last that is wanted. */
INLINE int up_to_last(const Params &p, int level) {
    /* mutant: ASKED(level > 0 && (u32)level > p.last) ? -1 : level -> level
     * : test_trees_from_every_place */
    return ASKED(level > 0 && (u32)level > p.last) ? -1 : level;
}

/* All of them, those that are wanted. */
template <class Tree>
INLINE void levels_of_four(const Params &p, const Tree &tree, u32 v, u32 (&parent)[4],
                           int (&level)[4]) {
    const u32 others = levels_by_code(p, tree, v, parent, level);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (others >> i & 1) level[i] = tree.other(v + i, parent[i]);
        level[i] = up_to_last(p, level[i]);
    }
}

/* Levels and parents of all vertices that are not searched; by number, or for results by id.
 * Those without a code wait until a warp has 32 of them.
 * tree: see Trees; moved: some parents are others than first neighbours; wait: shared, [LATER]
 * a warp */
template <class Tree>
INLINE void tell_trees(const Params &p, const Tree &tree, bool wide, bool moved, u32 *wait) {
    const u32 lane = threadIdx.x & 31, stride = gridDim.x * THREADS * 4;
    u32 *own = wait + (threadIdx.x >> 5) * LATER, size = 0, top = 0;
    int *out_wide = IN_IDS ? (int *)p.direct : p.level_wide;
    u8 *out = IN_IDS ? tree_bytes(p) - p.active : p.level_out;
    const bool parents = p.parents && (!IN_IDS || moved), levels = IN_IDS || p.level_out;
    const int most = p.level_out ? 0x7fffffff : 0; /* that is told */
    const auto wanted = [&](int level) {
        level = up_to_last(p, level);
        if (level > (int)(tree.base + top)) top = level - tree.base;
        /* mutant: level > most ? most : level -> level : test_levels_of_trees_beyond_a_byte */
        return level > most ? most : level;
    };
    const auto ask = [&](u32 v) {
        u32 parent = p.first[v];
        const int level = wanted(tree.other(v, parent));
        if (wide) out_wide[v] = level;
        else if (levels) out[v] = level;
        if (parents) p.parent[v] = level < 0 ? NONE : parent;
    };
    u32 v = p.active + (blockIdx.x * THREADS + threadIdx.x) * 4;
    uint4 next = make_uint4(0, 0, 0, 0);
    if (v < p.every) next = *(const uint4 *)(p.first + v);
    for (; __any_sync(ALL, v < p.every); v += stride) {
        const uint4 f4 = next;
        if (v + stride < p.every) next = *(const uint4 *)(p.first + v + stride);
        u32 parent[4] = {f4.x, f4.y, f4.z, f4.w}, bytes = 0;
        int level[4];
        u32 others = 0; /* few vertices do not pay for a queue */
        if (CODES) others = levels_by_code(p, tree, v, parent, level);
        else levels_of_four(p, tree, v, parent, level);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            level[i] = wanted(level[i]);
            bytes |= (u32)(level[i] & 255) << 8 * i;
            if (level[i] < 0) parent[i] = NONE;
        }
        if (v < p.every) {
            if (wide)
                *(uint4 *)(out_wide + v) = make_uint4(level[0], level[1], level[2], level[3]);
            else if (levels) *(u32 *)(out + v) = bytes;
            if (parents)
                *(uint4 *)(p.parent + v) = make_uint4(parent[0], parent[1], parent[2], parent[3]);
        }
        if (!__any_sync(ALL, others)) continue;
#pragma unroll 1
        for (int i = 0; i < 4; i++) {
            const u32 who = __ballot_sync(ALL, others >> i & 1);
            if (others >> i & 1) own[size + __popc(who & lanes_below(lane))] = v + i;
            size += __popc(who);
            __syncwarp();
            if (size >= 32) size -= 32, ask(own[size + lane]);
            __syncwarp();
        }
    }
    /* mutant: if (lane < size) ask(own[lane]) -> : test_domain_leaves::test_every_way */
    if (lane < size) ask(own[lane]);
    tell_highest(p, top, lane);
}

/* Vertices of whole trees, which one device has. */
struct Trees {
    const Params &p;
    const Way &way;
    const uint2 *held; /* as of codes_of */
    u32 k, base;
    /* whether v is one below its first neighbour u if that has a code; what the way leads to
     * was pushed, and has none */
    __device__ __forceinline__ bool below(u32, u32 u) const { return u < p.active; }
    /* the level of any, -1 where it is unreached; may change the parent */
    __device__ __forceinline__ int other(u32 v, u32 &parent) const {
        return tree_level(p, v, way, held, k, base, parent);
    }
};
#endif
