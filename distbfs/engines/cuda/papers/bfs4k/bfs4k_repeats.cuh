/* Repeats: a vertex that several threads find in one level.
 *
 * A hash table in shared memory, of 64-bit entries (vertex, finder: a thread and which of
 * its BATCH edges), is written by all that found a vertex and then read back: who reads
 * the same vertex by another finder leaves it to that one.  The last to write a vertex
 * reads itself or another vertex (a conflict) and keeps it, so that none is lost.  Threads
 * of other blocks, and those that come later, are missed by the table.
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

/* Which of BATCH vertices a lane keeps, bits of `mine`; a whole warp calls it. */
INLINE u32 unrepeated(const Table &t, u32 mine, const u32 *v, Tally &tally) {
    const u32 shift = 32 - t.bits;
#pragma unroll
    for (u32 k = 0; k < BATCH; k++)
        if (mine >> k & 1)
            t.entry[v[k] * 2654435761u >> shift] = (u64)v[k] << 32 | k * THREADS | threadIdx.x;
    __syncwarp();
    u32 kept = 0;
#pragma unroll
    for (u32 k = 0; k < BATCH; k++) {
        if (!(mine >> k & 1)) continue;
        const u64 seen = t.entry[v[k] * 2654435761u >> shift];
        const bool same = (u32)(seen >> 32) == v[k];
        const bool own = same && (u32)seen == (k * THREADS | threadIdx.x);
        /* mutant: (u32)(own || !same) -> 1u : test_repeats_are_dropped_by_the_table */
        /* mutant: (own || !same) -> own : test_k6_of_more_threads_has_fewer_conflicts */
        kept |= (u32)(own || !same) << k;
        TALLY(tally, repeats, !(kept >> k & 1));
        TALLY(tally, conflicts, !same);
    }
    __syncwarp();
    return kept;
}

/* Make BATCH vertices, bits of `mine`, vertices of `level`; which are to be queued. */
INLINE u32 take(const Params &p, u32 mine, const u32 *v, const u32 *from, int level, Tally &tally) {
    u32 old[BATCH];
#pragma unroll
    for (u32 k = 0; k < BATCH; k++) {
        old[k] = 0;
#if CLAIM
        if (mine >> k & 1) old[k] = atomicOr(p.visited + (v[k] >> 5), 1u << (v[k] & 31));
#else
        if (mine >> k & 1) old[k] = __ldcg(p.level + v[k]) >= 0;
#endif
    }
#pragma unroll
    for (u32 k = 0; k < BATCH; k++) {
        if (!(mine >> k & 1)) continue;
#if CLAIM
        if (old[k] >> (v[k] & 31) & 1) {
            mine &= ~(1u << k);
            TALLY(tally, missed, 1);
            continue;
        }
        TALLY(tally, found, 1);
#else
        if (old[k]) { /* since it was looked at */
            mine &= ~(1u << k);
            continue;
        }
#endif
#if COUNT && !CLAIM
        const bool again = atomicExch(p.level + v[k], level) == level;
        TALLY(tally, missed, again);
        TALLY(tally, found, !again);
#endif
        p.level[v[k]] = level;
        if (p.parent) p.parent[v[k]] = from[k];
    }
    return mine;
}
#endif
