/* Rows in two pieces (tails.cuh), of which a search may see some edges only.
 *
 * Where a search sees some edges only (MASKED), each column has a bit, in the order of
 * columns; those of tails are beside them, in host memory.  A vertex that is not seen has
 * no edge that is, so that a bit is looked at where a neighbour fits already.  `first` and
 * `column` have the first eight columns that are seen, and the vertex itself where there
 * are fewer: it is unvisited where it is looked at.  Rows are read from as many columns on
 * as have been tested; of those before none is left.  Degrees count all columns.
 *
 * Where edges lead one way (DIRECTED) there are two sets of rows: of edges out, which pushes
 * read, and of edges in, for pulls.  A vertex may have none of either: one without edges out
 * is not queued, and one without edges in is bare, as one whose edges are not seen.  Where a
 * row has fewer columns, `column` has the first one again.
 */
#ifndef DISTBFS_XBFS_ROWS_CUH
#define DISTBFS_XBFS_ROWS_CUH
#include "search.cuh"

/* Whether the column at `at` is seen. */
INLINE bool edge_seen(const Params &p, u64 at) {
    if (SEES_ALL && !p.seen) return true;
#if MASKED && SPLIT
    const u64 tail = (at - p.far) & ((1ull << 62) - 1);
    /* mutant: p.tail_seen[tail >> 5] >> (tail & 31) & 1 -> true
     * : test_masked_kernels::test_tails_in_host_memory */
    if (tail < p.tail_count) return p.tail_seen[tail >> 5] >> (tail & 31) & 1;
#endif
#if MASKED
    return p.seen[at >> 5] >> (at & 31) & 1;
#else
    return true;
#endif
}

/* The rows that pulls read, and whether their columns are seen. */
#if DIRECTED
#define IN_ADJ(p) (p).in_adj
#define IN_SEEN(p) (p).in_seen

struct InRows { /* as functions of tails.cuh want them */
    const OFFSET *row;
    const u64 *tail_row;
    u64 far;
    u32 tailed, kept;
};

INLINE InRows IN_ROWS(const Params &p) {
    return {p.in_row, p.in_tail_row, p.in_far, p.in_tailed, p.kept};
}

INLINE bool in_edge_seen(const Params &p, u64 at) {
    if (!MASKED || !p.in_seen) return true;
#if SPLIT
    const u64 tail = (at - p.in_far) & ((1ull << 62) - 1);
    /* mutant: p.in_tail_seen[tail >> 5] >> (tail & 31) & 1 -> true
     * : test_directed_kernels::test_masks_in_host_memory */
    if (tail < p.in_tail_count) return p.in_tail_seen[tail >> 5] >> (tail & 31) & 1;
#endif
    return p.in_seen[at >> 5] >> (at & 31) & 1;
}
#else /* by macros, which leave no trace in the code */
#define IN_ADJ(p) (p).adj
#define IN_SEEN(p) (p).seen
#define IN_ROWS(p) (p)
#define in_edge_seen edge_seen
#endif

/* The vertices of word w that are not looked at. */
INLINE u32 closed(const Params &p, const u32 *old, u32 w) {
#if DIRECTED && BETWEEN
    return old[w] | p.unentered[w];
#else
    return old[w] | bare_word(p, w);
#endif
}

/* Whether a frontier is so wide that it is not pushed; edges: of its `count` rows.  At least what
 * is beyond `kept` columns of each is in tails, and that takes longer than a pull needs. */
INLINE bool pulls_at_once(const Params &p, u64 count, u64 edges) {
    if (SPLIT && edges >= count * p.kept + p.pull_tails) return true;
    /* mutant: >= -> < : test_steps_follow_the_edges_of_the_frontier */
    return edges >= p.pull_edges;
}

/* Where the edge checks of a level are counted; null where nobody counts. */
INLINE u64 *counts_of(const Params &p, u32 depth) {
    return COUNT && depth < p.rows ? p.counts + depth : 0;
}

/* Adds up what each lane has read of tails; checks: of the level. */
INLINE void add_tails(const Params &p, u64 *checks, const TailReads &reads, u32 lane) {
    add_reads(checks + 2 * (u64)p.rows, checks + 3 * (u64)p.rows, reads, lane);
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
