/* The data of searches that share one traversal, a bit each.
 *
 * Functions that take a P serve the rows of one device (Params) and those of a device of
 * several (bits_domain.cu), which overloads the functions for Params here.
 *
 * A vertex has a row of PIECES times 16 bytes, 128 searches a lane: bit i of the row is
 * search i.  Vertices are numbers (graph/device_graph.py): hubs first.
 * Rows may have tails in host memory (SPLIT, bits_tails.cuh).
 * Level of a vertex in a search: bit b of it is in plane b, for all that have been seen.
 * Sources: Then et al. 2014 (MS-BFS); Beamer, Asanovic, Patterson 2012 (direction).
 */
#ifndef DISTBFS_BITS_CUH
#define DISTBFS_BITS_CUH
#include "../engines/cuda/common/base.cuh"
#include "../engines/cuda/common/tails.cuh"

#define THREADS 1024
#define WARPS 32
#define GROUP (32 / PIECES)   /* rows that a warp reads at a time */
#define WORDS (4 * PIECES)    /* of 32 searches */
#define PLANES 32
#define MARKS 4
#define AHEAD 4              /* neighbours that a lane reads at a time */

#if PIECES == 4
typedef u8 Part; /* the marks of the vertices of a warp */
#elif PIECES == 2
typedef u16 Part;
#else
typedef u32 Part;
#endif

/* State that one launch leaves for the next. */
struct State {
    u32 depth, count, hubs; /* of the frontier: level, queue from its front, from its end */
    u32 dense;              /* there is no queue */
    u64 edges;              /* out of the frontier, see edges_of */
    u32 pulls, pushes;      /* levels */
    u32 stopped, pad;       /* the host wants the searches to end */
};

struct Control {
    Barrier barrier;
    u64 size[3 * 16]; /* in turn, hubs << 32 | others */
};

/* Rows by number, which may have tails. */
struct Rows {
    Uints row;           /* [active + 1] */
    const u32 *adj;      /* [m + pad] */
    const u64 *tail_row; /* [tailed + 1], where tails begin, the first at 0: tails.cuh */
    u64 far;             /* where tails are, from adj on */
    u32 tailed, pad;     /* rows that may have tails */
};

struct Params {
    Rows out, into;         /* what pushes go along, and what pulls look at */
    uint4 *seen;            /* [active][PIECES] */
    uint4 *front[2];        /* [active][PIECES]; that of the next level has no bits where
                             * nothing is marked two levels before it */
    uint4 *plane[PLANES];   /* [active][PIECES] */
    u32 *mark[MARKS];       /* [words]: rows of the frontier with bits; by level */
    u32 *queue[2];          /* [active]: hubs from the end */
    u32 *counts;            /* [levels][32 * WORDS] or null: vertices by level and search */
    u64 *reached_from;      /* [active] or null: searches that reached it after level 0 */
    u64 *distance_from;     /* [active] or null: sum of its levels in these */
    double *harmonic_from;  /* [active] or null: sum of 1 / level, but for level 0 */
    Control *control;       /* [1], zero */
    State *state;           /* [1] */
    const u64 *stop;        /* [1], of the host: 1 to end the searches; null: nobody asks */
    u64 pull_edges;         /* frontiers of so many edges are pulled */
    u64 *reads;             /* [2]: columns of tails that were read, lines of these */
    u32 *live;              /* [2][WORDS], by level: searches that have a frontier */
    u32 active, words;      /* words of a mark, a multiple of 4 */
    u32 hubs, wide;         /* vertices below: for all warps, pulled by one; multiples of 32 */
    u32 planes, last;       /* planes there are, unless null; the last level to make */
    uint4 full[4];          /* [PIECES]: searches there are */
};

INLINE uint4 operator|(uint4 a, uint4 b) {
    return make_uint4(a.x | b.x, a.y | b.y, a.z | b.z, a.w | b.w);
}
/* Bits of a that b has not. */
INLINE uint4 without(uint4 a, uint4 b) {
    return make_uint4(a.x & ~b.x, a.y & ~b.y, a.z & ~b.z, a.w & ~b.w);
}
INLINE uint4 operator&(uint4 a, uint4 b) {
    return make_uint4(a.x & b.x, a.y & b.y, a.z & b.z, a.w & b.w);
}
INLINE u32 some(uint4 a) { return a.x | a.y | a.z | a.w; }

/* Whether any lane of a group has x; all lanes of the warp call it. */
INLINE u32 group_any(u32 x) {
#pragma unroll
    for (int s = 1; s < PIECES; s <<= 1) x |= __shfl_xor_sync(ALL, x, s);
    return x;
}

/* OR over the groups of a warp, for each place in the row. */
INLINE u32 over_groups(u32 x) {
#pragma unroll
    for (int s = PIECES; s < 32; s <<= 1) x |= __shfl_xor_sync(ALL, x, s);
    return x;
}

/* The row of v that pushes go along, and the one that pulls look at. */
INLINE Columns pushed(const Params &p, u32 v) { return columns_of(p.out.row, p.out.adj, v); }
INLINE Columns pulled(const Params &p, u32 v) { return columns_of(p.into.row, p.into.adj, v); }

/* A frontier vertex's share of edges: one more than its edges, as rows may be empty, so that
 * no frontier has none. */
INLINE u32 edges_of(const Params &p, u32 v) { return pushed(p, v).count + tail_of(p.out, v) + 1; }

/* This thread's number, and the level's data. */
struct Level {
    const uint4 *cur;       /* the frontier */
    uint4 *next;
    const u32 *mark, *old;  /* of cur; of what was in next before */
    u32 *next_mark;
    u32 *next_queue;
    u64 *size;              /* of next_queue */
    u32 depth;              /* of what is found */
    u32 warp, warps, lane, group, piece;
};

/* The level `depth` being made, and this thread's number. */
INLINE Level level_of(const Params &p, u32 depth) {
    Level l;
    const u32 side = depth & 1;
    l.lane = lane_id();
    l.warps = gridDim.x * WARPS;
    l.warp = (threadIdx.x >> 5) * gridDim.x + blockIdx.x; /* neighbours on other SMs */
    l.group = l.lane / PIECES, l.piece = l.lane % PIECES;
    l.depth = depth;
    l.cur = p.front[side ^ 1], l.next = p.front[side];
    l.mark = p.mark[(depth + 3) % MARKS], l.old = p.mark[(depth + 2) % MARKS];
    l.next_mark = p.mark[depth % MARKS];
    l.next_queue = p.queue[side];
    return l;
}

/* Clears the mark of the level after `depth`. */
INLINE void clear_mark(const Params &p, u32 depth) {
    uint4 *clear = (uint4 *)p.mark[(depth + 1) % MARKS];
    for (u32 i = thread_of<u32>(THREADS); i < p.words / 4; i += threads_of<u32>(THREADS))
        clear[i] = make_uint4(0, 0, 0, 0);
}

/* Where a vertex has its row of a frontier, and 32 of them their word of a mark. */
INLINE u32 place(const Params &, u32 v) { return v; }
INLINE u32 word_place(const Params &, u32 word) { return word; }

/* The visited bits of a neighbour. */
INLINE const uint4 *seen_row(const Params &p, u32 u) { return p.seen + (u64)u * PIECES; }

/* A vertex is in the next frontier. */
template <class P> INLINE void mark_next(const P &p, const Level &l, u32 v) {
    const u32 at = place(p, v);
    atomicOr(l.next_mark + (at >> 5), 1u << (at & 31));
}

/* The vertices of a tile of GROUP that are in the next frontier; all lanes call it. */
template <class P> INLINE void mark_tile(const P &p, const Level &l, u32 tile, u32 bits) {
    Part *parts = (Part *)(l.next_mark + word_place(p, tile / PIECES));
    if (bits && l.lane == 0) parts[tile % PIECES] = (Part)bits;
}

/* Adds to the sums of a vertex that `found` searches of a piece found at a level; the host
 * adds the sources. */
INLINE void add_sums(const Params &p, u32 v, u32 found, u32 level) {
    if (!level) return;
    if (p.reached_from) atomicAdd(p.reached_from + v, (u64)found);
    /* mutant: found * level -> found : test_multisearch_bits::test_levels_and_counts */
    if (p.distance_from) atomicAdd(p.distance_from + v, (u64)found * level);
    if (p.harmonic_from) atomicAdd(p.harmonic_from + v, (double)found / level);
}

/* A vertex is in the next frontier with `fresh` in this lane's piece; `seen` was before. */
INLINE void settle(const Params &p, const Level &l, u32 v, uint4 seen, uint4 fresh) {
    const u64 at = (u64)v * PIECES + l.piece;
    if (!some(fresh)) return;
    p.seen[at] = seen | fresh;
    for (u32 b = 0; b < p.planes; b++)
        if (l.depth >> b & 1) p.plane[b][at] = p.plane[b][at] | fresh;
    if (p.reached_from || p.distance_from || p.harmonic_from)
        add_sums(p, v, __popc(fresh.x) + __popc(fresh.y) + __popc(fresh.z) + __popc(fresh.w),
                 l.depth);
}
#endif
