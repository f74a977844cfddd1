/* Levels of narrow frontiers, as meshes have by the hundred: what counts is the time between two
 * levels.
 *
 * Each block keeps the vertices that it finds in shared memory and pushes them itself in the next
 * level.  Between two levels it tells all others in one word how many there are, and reads theirs:
 * so blocks meet.  Nothing else goes from block to block but bits of visited vertices, by atomics;
 * one that has returned is done, so nobody waits for other writes.  When a block has far more than
 * others, or more than it has room for, the frontier becomes a queue again, which all share.
 * Source: Gaihre et al. 2019 (XBFS, Section 4.1); persistent kernels. */
#ifndef DISTBFS_XBFS_NARROW_CUH
#define DISTBFS_XBFS_NARROW_CUH
#include "push.cuh"

/* The same in search_table.py. */
#define MOST_BLOCKS 256 /* of a grid, which read words of each other */
#define NEAR_ROOM 8192  /* vertices that a block finds in a level, at most */

/* Of a word: vertices, edge checks << 16, level << 40. */
#define WORD_CHECKS 16
#define WORD_LEVEL 40

/* What a block has found, or all; most: by one block. */
struct Finds {
    u32 count, checks, most;
};

/* Push vertices list[k], k < count, of this block; `next` has what they find. */
INLINE void push_near(const Params &p, const u32 *list, u32 count, u32 *visited, u32 level,
                      u32 *next, Finds *own, u32 lane) {
    u32 bits = 5; /* lanes of a vertex, log2 */
    while (bits > p.lanes && count << bits > THREADS) bits--;
    const u32 width = 1u << bits, step = THREADS >> bits;
    for (u32 from = (threadIdx.x - lane) >> bits; from < count; from += step) {
        const u32 k = from + (lane >> bits);
        u32 u = 0, degree = 0;
        OFFSET begin = 0;
        if (k < count) u = list[k], begin = p.row[u], degree = degree_at(p, u, begin);
        for (u32 j = lane & (width - 1); __any_sync(ALL, j < degree); j += width) {
            const bool ok = j < degree;
            const u32 v = ok ? load_once(p.adj + begin + j) : NONE, bit = 1u << (v & 31);
            /* mutant: !(atomicOr(visited + (v >> 5), bit) & bit) -> atomicOr(visited + (v >> 5), bit)
             * : test_narrow_frontiers */
            const bool mine = v < p.active && !(atomicOr(visited + (v >> 5), bit) & bit);
            const u32 checked = __ballot_sync(ALL, ok);
            if (lane == 0) atomicAdd(&own->checks, (u32)__popc(checked));
            const u32 at = take_place(mine, &own->count);
            if (!mine) continue;
            next[at] = v;
            p.direct[v] = level;
            if (p.parents) p.parent[v] = u;
        }
    }
}

/* All blocks meet after a level, in which this one has found own[level & 1]; the other is
 * cleared.  Two sets of words take turns, since others may still read the last. */
INLINE Finds meet_near(const Params &p, u32 level, Finds *own, u32 lane) {
    __shared__ Finds sums[MOST_BLOCKS / 32];
    const u32 grid = gridDim.x, warp = threadIdx.x >> 5, readers = (grid + 31) / 32;
    const u64 tag = level & ((1u << (64 - WORD_LEVEL)) - 1);
    u64 *said = p.said + (level & 1) * grid;
    __syncthreads();
    if (threadIdx.x == 0) {
        const Finds &mine = own[level & 1];
        store_relaxed(said + blockIdx.x,
                      tag << WORD_LEVEL | (u64)mine.checks << WORD_CHECKS | mine.count);
        own[~level & 1] = {0, 0, 0};
    }
    if (warp < readers) {
        u64 word = 0;
        if (threadIdx.x < grid) {
            do word = look(said + threadIdx.x);
            while (word >> WORD_LEVEL != tag);
        }
        const u32 count = (u32)word & 0xffff, checks = (u32)(word >> WORD_CHECKS) & 0xffffff;
        const Finds sum = {__reduce_add_sync(ALL, count), __reduce_add_sync(ALL, checks),
                           __reduce_max_sync(ALL, count)};
        if (lane == 0) sums[warp] = sum;
    }
    __syncthreads();
    Finds all = {0, 0, 0};
    for (u32 w = 0; w < readers; w++) {
        all.count += sums[w].count, all.checks += sums[w].checks;
        if (sums[w].most > all.most) all.most = sums[w].most;
    }
    return all;
}

/* Take this block's piece of a queue; list: [NEAR_ROOM].  Returns how many these are. */
INLINE u32 take_piece(const uint4 *queue, u32 count, u32 *list) {
    const u32 piece = (count + gridDim.x - 1) / gridDim.x, low = blockIdx.x * piece;
    const u32 own = low >= count ? 0 : count - low < piece ? count - low : piece;
    for (u32 k = threadIdx.x; k < own; k += THREADS) list[k] = queue[low + k].x;
    return own;
}

/* Append the vertices of this block to a queue. */
INLINE void put_piece(const Params &p, const u32 *list, u32 count, const Queue &queue, u32 lane) {
    for (u32 k = threadIdx.x - lane; k < count; k += THREADS) {
        const bool is = k + lane < count;
        const u32 v = is ? list[k + lane] : 0u;
        const OFFSET begin = is ? p.row[v] : 0;
        append(p, is, v, begin, is ? degree_at(p, v, begin) : 0, queue, lane);
    }
}
#endif
