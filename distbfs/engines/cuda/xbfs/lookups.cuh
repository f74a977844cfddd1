/* The level of a pair of vertices, and a path, by edge lookups, without a traversal.
 *
 * Method: a warp lists vertices at distance i from one end, and looks for each of them in
 * the row of the other end (levels 1, 2) or in the rows of its neighbours (levels 3 to 5):
 * a row is ascending, so that a lookup is a binary search.  Rows begin with hubs, and where
 * a graph has them nearly all pairs end after a handful of lookups.  Levels 1 to 4 are
 * told only when all lookups of the level before have failed; for level 5 the first 32
 * columns of a row are looked for.
 * Sources: Akiba, Iwata, Yoshida, Fast exact shortest-path distance queries, SIGMOD 2013
 * (hubs cover nearly all pairs); Pohl, Bi-directional search, Machine Intelligence 6, 1971.
 */
#ifndef DISTBFS_LOOKUPS_CUH
#define DISTBFS_LOOKUPS_CUH
#include "../common/base.cuh"

#define OPEN (-2) /* the level of a pair that is not known yet */
#define MOST_LOOKED_UP 5

struct Pairs {
    Uints row, in_row;        /* [active + 1]; the same in a symmetric graph */
    const u32 *adj, *in_adj;  /* [m + pad] */
    const u32 *numbers;       /* [n], id -> number; [active] with members, see number_in */
    const uint4 *members;     /* [blocks] or null */
    const u32 *vertices;      /* [active], number -> id */
    const u32 *source;        /* [k], ids */
    const u32 *search;        /* [count]: of k */
    const u32 *target;        /* [count], ids */
    int *level;               /* [count], OPEN where it is not known */
    u32 *open;                /* [ceil(k / 32)], zero: searches with open pairs */
    u32 *path;                /* [count][MOST_LOOKED_UP + 1], ids between the ends */
    u32 count, lookups;       /* lookups: steps of a warp for a pair */
};

/* An end of a pair: its row, and the rows of which it is one. */
struct End {
    Uints row;      /* [active + 1] */
    const u32 *adj; /* [m + pad], ascending in each row */
    u32 v;
    Columns own;
    bool target; /* else the source */
};
INLINE End end_of(const Uints &row, const u32 *adj, u32 v, bool target) {
    return {row, adj, v, columns_of(row, adj, v), target};
}

/* The vertices between two ends are not asked for. */
struct NoPath {
    __device__ __forceinline__ void put(const End &, int, int, u32, bool) const {}
};

/* A path of up to MOST_LOOKED_UP edges: at[i] is i edges from the source. */
struct Path {
    const u32 *vertices; /* number -> id */
    u32 *at;             /* ids */

    /* On a path of `level` edges, a vertex is `steps` edges from an end: that of the first
     * lane that has one.  All lanes of a warp call it. */
    __device__ __forceinline__ void put(const End &e, int level, int steps, u32 x,
                                        bool mine) const {
        const u32 have = __ballot_sync(ALL, mine);
        /* mutant: level - steps : steps -> steps : steps : test_paths_of_every_length */
        if (lane_id() == __ffs(have) - 1u) at[e.target ? level - steps : steps] = vertices[x];
    }
};
/* Row v of an end's rows. */
INLINE Columns row_of(const End &e, u32 v) { return columns_of(e.row, e.adj, v); }
INLINE void swap(End &a, End &b) {
    const End c = a;
    a = b, b = c;
}

/* Whether x is in row v of an end's rows. */
INLINE bool has_edge(const End &e, u32 v, u32 x) {
    const Columns row = row_of(e, v);
    u32 low = 0, high = row.count;
    while (low < high) {
        const u32 middle = low + (high - low) / 2;
        if (row.at[middle] < x) low = middle + 1;
        else high = middle;
    }
    return low < row.count && row.at[low] == x;
}

/* Whether any lane's x, unless NONE, is in the row of a neighbour of `far`: then it is put
 * on a path of `level` edges; OPEN where the steps do not suffice.  All lanes of a warp
 * call it. */
template <class Way> INLINE int any_beside(const End &far, u32 x, int &left, const Way &way,
                                           int level) {
    for (u32 j = 0; j < far.own.count; j++) {
        if (!left--) return OPEN;
        const bool mine = x != NONE && has_edge(far, far.own.at[j], x);
        if (__any_sync(ALL, mine)) {
            way.put(far, level, 1, far.own.at[j], true);
            way.put(far, level, 2, x, mine);
            return 1;
        }
    }
    return 0;
}

/* The edges of all neighbours of an end. */
INLINE u64 edges_beyond(const End &e, u32 lane) {
    u64 sum = 0;
    for (u32 i = lane; i < e.own.count; i += 32) sum += row_of(e, e.own.at[i]).count;
    return warp_sum(sum);
}

/* Whether an end has one neighbour, which leads back to it alone. */
INLINE bool closed(const End &e) {
    if (e.own.count != 1) return false;
    const Columns row = row_of(e, *e.own.at);
    return !row.count || (row.count == 1 && *row.at == e.v);
}

/* Up to level 3. */
template <class Way> INLINE int near_level(const End &near, const End &far, u32 lane, int &left,
                                           const Way &way) {
    if (has_edge(far, far.v, near.v)) return 1;
    for (u32 base = 0; base < near.own.count; base += 32) {
        if (!left--) return OPEN;
        const u32 i = base + lane;
        const bool mine = i < near.own.count && has_edge(far, far.v, near.own.at[i]);
        if (__any_sync(ALL, mine)) {
            way.put(near, 2, 1, mine ? near.own.at[i] : NONE, mine);
            return 2;
        }
    }
    if (closed(near) || closed(far)) return -1;
    const u64 pairs = (u64)near.own.count * far.own.count;
    for (u64 base = 0; base < pairs; base += 32) {
        if (!left--) return OPEN;
        const u64 k = base + lane;
        const bool mine = k < pairs && has_edge(far, far.own.at[k / near.own.count],
                                                near.own.at[k % near.own.count]);
        if (__any_sync(ALL, mine)) {
            way.put(far, 3, 1, mine ? far.own.at[k / near.own.count] : NONE, mine);
            way.put(near, 3, 1, mine ? near.own.at[k % near.own.count] : NONE, mine);
            return 3;
        }
    }
    return 0;
}

/* Calls look(x, u) with each lane's vertex two edges from an end, or NONE, and the neighbour
 * u between: 32 columns of each neighbour's row, then the next 32; until that is not 0. */
template <class Look> INLINE int two_away(const End &e, u32 lane, Look look) {
    for (u32 first = 0;; first += 32) {
        bool more = false;
        for (u32 i = 0; i < e.own.count; i++) {
            const Columns row = row_of(e, e.own.at[i]).from(first);
            if (!row.count) continue;
            more = true; /* mutant: more = true -> : test_meeting::test_all_columns_count */
            const u32 x = lane < row.count ? row.at[lane] : NONE;
            if (const int known = look(x, e.own.at[i])) return known;
        }
        if (!more) return 0;
    }
}

/* The level between two ends that differ, OPEN where it is not known; the rows of t lead
 * to it.  left: steps of the warp, each of up to 32 lookups; way: takes the vertices between
 * them.  All lanes of a warp call it. */
template <class Way> INLINE int level_by_lookups(End s, End t, u32 lane, int left,
                                                 const Way &way) {
    if (!s.own.count || !t.own.count) return -1;
    if (s.own.count < t.own.count) swap(s, t);
    if (const int known = near_level(t, s, lane, left, way)) return known;
    if (edges_beyond(s, lane) * t.own.count < edges_beyond(t, lane) * s.own.count) swap(s, t);
    const int four = two_away(t, lane, [&](u32 x, u32 u) {
        const int known = any_beside(s, x, left, way, 4);
        if (known == 1) way.put(t, 4, 1, u, true);
        return known;
    });
    if (four) return four == OPEN ? OPEN : 4;
    const int five = two_away(t, lane, [&](u32 mine, u32 u) {
        for (u32 some = __ballot_sync(ALL, mine != NONE); some; some &= some - 1) {
            const u32 y = __shfl_sync(ALL, mine, __ffs(some) - 1);
            const Columns row = row_of(t, y);
            const u32 x = lane < row.count ? row.at[lane] : NONE;
            if (const int known = any_beside(s, x, left, way, 5)) {
                if (known == 1) way.put(t, 5, 1, u, true), way.put(t, 5, 2, y, true);
                return known;
            }
        }
        return 0;
    });
    return five > 0 ? 5 : OPEN;
}
#endif
