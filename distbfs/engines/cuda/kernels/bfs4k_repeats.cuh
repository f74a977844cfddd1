/* Repeats: a vertex that several threads find in one level.
 *
 * A hash table in shared memory, of 64-bit entries (vertex, thread), is written by all
 * that found a vertex and then read back: who reads the same vertex by another thread
 * leaves it to that one.  The last to write a vertex reads itself or another vertex (a
 * conflict) and keeps it, so that none is lost.  Threads of other blocks, and those that
 * come later, are missed by the table.
 * BFS-4K (Busato, Bombieri 2015), Section 6, Figure 11.
 *
 * CLAIM=0, as published: what the table kept is written and queued; repeats that it
 * missed are queued too.  CLAIM=1: a bit is claimed by an atomic first, so that a vertex
 * is queued once; `missed` then counts what the claim still had to stop. */
#ifndef DISTBFS_BFS4K_REPEATS_CUH
#define DISTBFS_BFS4K_REPEATS_CUH
#include "bfs4k.cuh"

struct Table {
    volatile u64 *entry; /* shared [2^bits], contents do not matter */
    u32 bits;
};

/* Whether v looks unvisited; may be as old as the last meeting. */
INLINE bool unvisited(const Params &p, u32 v) {
#if CLAIM
    return !(p.visited[v >> 5] >> (v & 31) & 1);
#else
    return __ldcg(p.level + v) < 0;
#endif
}

/* Which lanes keep their vertex; a whole warp calls it. */
INLINE bool unrepeated(const Table &t, bool mine, u32 v, Tally &tally) {
    const u32 at = v * 2654435761u >> (32 - t.bits);
    const u64 word = (u64)v << 32 | threadIdx.x;
    if (mine) t.entry[at] = word;
    __syncwarp();
    const u64 seen = mine ? t.entry[at] : word;
    __syncwarp();
    if (!mine || seen == word) return mine;
    const bool same = (u32)(seen >> 32) == v;
    TALLY(tally, repeats, same);
    TALLY(tally, conflicts, !same);
    return !same;
}

/* Make v a vertex of `level`; whether it is to be queued. */
INLINE bool take(const Params &p, u32 v, u32 from, int level, Tally &tally) {
#if CLAIM
    const u32 bit = 1u << (v & 31);
    if (atomicOr(p.visited + (v >> 5), bit) & bit) {
        TALLY(tally, missed, 1);
        return false;
    }
    TALLY(tally, found, 1);
#else
    if (__ldcg(p.level + v) >= 0) return false; /* since it was looked at */
#if COUNT
    const bool again = atomicExch(p.level + v, level) == level;
    TALLY(tally, missed, again);
    TALLY(tally, found, !again);
#endif
#endif
    p.level[v] = level;
    if (p.parent) p.parent[v] = from;
    return true;
}
#endif
