/* Rows in two pieces: their first columns on the device, their tails in host memory.
 *
 * Where a graph is larger than the device (SPLIT), rows longer than `kept` have only so
 * many columns in `adj`; the rest is read in place from pinned memory.  Both are told by
 * one index from `adj` on, modulo 2^62: `far` leads to the first tail.  As numbers are by
 * falling degree class, rows with tails are among the first `tailed`; `tail_row` has
 * tailed + 1 offsets among all tails.  Functions that take a P serve all parameters with
 * these members.
 */
#ifndef DISTBFS_TAILS_CUH
#define DISTBFS_TAILS_CUH
#include "base.cuh"

#ifndef SPLIT
#define SPLIT 0 /* rows have tails in host memory */
#endif

/* How many columns of row v are in its tail. */
template <class P> INLINE u32 tail_of(const P &p, u32 v) {
#if SPLIT
    if (v < p.tailed) return (u32)(p.tail_row[v + 1] - p.tail_row[v]);
#endif
    return 0;
}

/* Where the tail of row v begins, which has one. */
template <class P> INLINE u64 tail_at(const P &p, u32 v) {
#if SPLIT
    return p.far + p.tail_row[v];
#else
    return 0;
#endif
}

/* The degree of v, whose row begins at `begin`. */
template <class P, class At> INLINE u32 degree_at(const P &p, u32 v, At begin) {
    return (u32)(p.row[v + 1] - begin) + tail_of(p, v);
}

/* Where column j of row v is, which begins at `begin`. */
template <class P> INLINE u64 place_of(const P &p, u32 v, u64 begin, u32 j) {
#if SPLIT
    /* mutant: kept); -> kept) + 1; : test_fast_kernels::test_tails_in_host_memory */
    if (j >= p.kept) return tail_at(p, v) + (j - p.kept);
#endif
    return begin + j;
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

/* Adds up what each lane has read of tails; a whole warp calls it. */
INLINE void add_reads(u64 *all_columns, u64 *all_lines, const TailReads &reads, u32 lane) {
    const u32 columns = __reduce_add_sync(ALL, reads.columns);
    const u32 lines = __reduce_add_sync(ALL, reads.lines);
    if (lane || !columns) return;
    atomicAdd(all_columns, (u64)columns);
    atomicAdd(all_lines, (u64)lines);
}
#endif
