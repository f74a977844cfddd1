/* Rows in two pieces: their first columns on the device, their tails in host memory.
 *
 * Where a graph is larger than the device (SPLIT), rows longer than `kept` have only so
 * many columns in `adj`; the rest is read in place from pinned memory.  Both are told by
 * one index from `adj` on, modulo 2^62: `far` leads to the first tail.  As numbers are by
 * falling degree class, rows with tails are among the first `tailed`.
 *
 * Where a search sees some edges only (MASKED), each column has a bit, in the order of
 * columns; those of tails are beside them, in host memory.  A vertex that is not seen has
 * no edge that is, so that a bit is looked at where a neighbour fits already.  `first` and
 * `column` have the first eight columns that are seen, and the vertex itself where there
 * are fewer: it is unvisited where it is looked at.  Rows are read from as many columns on
 * as have been tested; of those before none is left.  Degrees count all columns.
 */
#ifndef DISTBFS_XBFS_ROWS_CUH
#define DISTBFS_XBFS_ROWS_CUH
#include "search.cuh"

/* How many columns of row v are in its tail. */
INLINE u32 tail_of(const Params &p, u32 v) {
#if SPLIT
    if (v < p.tailed) return (u32)(p.tail_row[v + 1] - p.tail_row[v]);
#endif
    return 0;
}

/* Where the tail of row v begins, which has one. */
INLINE u64 tail_at(const Params &p, u32 v) {
#if SPLIT
    return p.far + p.tail_row[v];
#else
    return 0;
#endif
}

/* The degree of v, whose row begins at `begin`. */
INLINE u32 degree_at(const Params &p, u32 v, OFFSET begin) {
    return (u32)(p.row[v + 1] - begin) + tail_of(p, v);
}

/* Where column j of row v is, which begins at `begin`. */
INLINE u64 place_of(const Params &p, u32 v, u64 begin, u32 j) {
#if SPLIT
    if (j >= p.kept) return tail_at(p, v) + (j - p.kept);
#endif
    return begin + j;
}

/* Whether the column at `at` is seen. */
INLINE bool edge_seen(const Params &p, u64 at) {
#if MASKED && SPLIT
    const u64 tail = (at - p.far) & ((1ull << 62) - 1);
    if (tail < p.tail_count) return p.tail_seen[tail >> 5] >> (tail & 31) & 1;
#endif
#if MASKED
    return p.seen[at >> 5] >> (at & 31) & 1;
#else
    return true;
#endif
}

/* Whether a frontier is so wide that it is not pushed; edges: of its `count` rows.  At least what
 * is beyond `kept` columns of each is in tails, and that takes longer than a pull needs. */
INLINE bool pulls_at_once(const Params &p, u64 count, u64 edges) {
    if (SPLIT && edges >= count * p.kept + p.pull_tails) return true;
    return edges >= p.pull_edges;
}

/* Where the edge checks of a level are counted; null where nobody counts. */
INLINE u64 *counts_of(const Params &p, u32 depth) {
    return COUNT && depth < p.rows ? p.counts + depth : 0;
}

/* Columns of tails that were read, and the lines of 128 bytes that they lie in. */
struct TailReads {
    u32 columns, lines;
};

/* Counts `count` columns of tails from the one at `tail` among all of them. */
INLINE void note_tail(TailReads &reads, u64 tail, u32 count) {
    if (!count) return;
    reads.columns += count;
    reads.lines += (u32)((tail + count - 1) >> 5) - (u32)(tail >> 5) + 1;
}

/* Adds up what each lane has read of tails; checks: of the level. */
INLINE void add_tails(const Params &p, u64 *checks, const TailReads &reads, u32 lane) {
    const u32 columns = __reduce_add_sync(ALL, reads.columns);
    const u32 lines = __reduce_add_sync(ALL, reads.lines);
    if (lane || !columns) return;
    atomicAdd(checks + 2 * (u64)p.rows, (u64)columns);
    atomicAdd(checks + 3 * (u64)p.rows, (u64)lines);
}

/* Counts the tails of a frontier that is pushed; checks: null where nobody counts. */
INLINE void count_tails(const Params &p, const uint4 *queue, u32 count, u64 *checks, u32 warp,
                        u32 warps, u32 lane) {
    if (!COUNT || !SPLIT || !checks) return;
    for (u32 from = warp * 32; from < count; from += warps * 32) {
        const u32 i = from + lane, v = i < count ? queue[i].x : NONE;
        TailReads reads = {0, 0};
        if (v < p.tailed) note_tail(reads, p.tail_row[v], tail_of(p, v));
        add_tails(p, checks, reads, lane);
    }
}
#endif
