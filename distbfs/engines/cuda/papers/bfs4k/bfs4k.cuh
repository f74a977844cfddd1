/* The data of engine `bfs4k` (bfs4k.cu): arguments, knobs and counters.
 *
 * A frontier is two queues: vertices, and pieces of the rows of the few vertices of
 * highest degree (numbers below `hubs`), which take the place of the child kernels of
 * the paper: NVRTC does not link the device runtime that these need.  Both are drained
 * in the same stage. */
#ifndef DISTBFS_BFS4K_CUH
#define DISTBFS_BFS4K_CUH
#include "../../common/base.cuh"
#include "../../common/goal.cuh"

#define THREADS 1024 /* of a block; the same in bfs4k.py */
#define WARPS 32
#define LOCAL 16  /* vertices that a thread keeps in its local queue */
#define BATCH 4   /* edges that a thread looks at together */
#define EDGES 2   /* edges a vertex that one block takes of its largest frontier */
#define MANY (1u << 16) /* edges of one vertex that are too many for one block */

#ifndef CLAIM
#define CLAIM 1 /* 1: found vertices are claimed by an atomic; 0: plain writes, as published */
#endif

enum Step { BLOCK_EDGES, BLOCK_WARPS, GRID_EDGES, GRID_WARPS };

/* The next frontier; used in turn, each use clears the next. */
struct Mail {
    u64 size;   /* vertices, also those that found no room (CLAIM=0) */
    u64 pieces; /* pieces of long rows */
    u64 hubs;   /* the vertices that these belong to */
    u64 edges;  /* of the vertices in `size`; of one block's queue alone */
};

/* One level that was run (COUNT). */
struct Record {
    u64 step, frontier, checks, found, repeats_found, repeats_missed, conflicts;
    u64 places, searches, in_turns; /* edges that threads had room for, binary searches for
                                       them, vertices that local queues gave in turns */
    u64 pieces, nanoseconds;
};

struct State {
    u32 depth, count, pieces, hubs;
    u32 refused; /* vertices of a frontier that had too many edges for one block, or 0 */
    u32 stopped; /* the host has ended the search while levels were left */
};

/* Zero before the first search; the next one goes on where that one left. */
struct Control {
    Barrier barrier;
    Mail mail[3];
    State alone, state; /* what block 0 came to alone; of the end */
    u32 turn, used; /* meetings, and mails used, of all searches so far */
};

struct Params {
    const OFFSET *row;   /* [active + 1] */
    const u32 *adj;      /* [m + pad] */
    int *level;          /* [active], -1: unreached */
    u32 *parent;         /* [active], number or NONE; null: not wanted */
    u32 *visited;        /* [words], bits (CLAIM=1) */
    u32 *queue[2];       /* [capacity] */
    uint2 *piece[2];     /* [piece_capacity]: vertex, piece of its row */
    Control *control;    /* [1] */
    const u64 *stop;     /* [1], of the host: 1 to end a search; null: nobody asks */
    Record *records;     /* [record_capacity + 1] zeros; the last: the start (COUNT) */
    u32 active, words, root;
    u32 capacity, piece_capacity, record_capacity;
    u32 hubs;            /* K2: vertices of the highest degrees */
    u32 slice;           /* K3 x 32: neighbours of a long row in a piece, which a warp takes */
    u32 least_warp;      /* K1, as a power of two: 0 to 5 */
    u32 edge_discover;   /* K4 */
    u32 alone;           /* 1024 x K5: the largest frontier of one block */
    u32 group_warps;     /* K6 / 32: warps that share a hash table */
    u32 table, table_alone; /* log2 of its entries: of a group, of one block alone */
    u32 turns;           /* K7, 0: never */
    u32 extended;
    Goal goal;
};

/* The queues that a level of this depth reads, by its last bit. */
INLINE u32 *queue_of(const Params &p, u32 odd) { return odd ? p.queue[1] : p.queue[0]; }
INLINE uint2 *pieces_of(const Params &p, u32 odd) { return odd ? p.piece[1] : p.piece[0]; }

INLINE u32 pieces_in(const Params &p, u32 degree) {
    return degree / p.slice + (degree % p.slice != 0);
}

/* One of the BATCH values of a lane, by a number that is not known to the compiler. */
INLINE u32 pick(const u32 *x, u32 k) {
    u32 found = x[0];
#pragma unroll
    for (u32 j = 1; j < BATCH; j++)
        if (j == k) found = x[j];
    return found;
}

/* What a thread counts (COUNT). */
struct Tally {
#if COUNT
    u32 checks = 0, found = 0, repeats = 0, missed = 0, conflicts = 0;
    u32 places = 0, searches = 0, turned = 0;
#endif
};

#if COUNT
#define TALLY(t, name, x) (t).name += (x)
#else
#define TALLY(t, name, x)
#endif

/* Add what the threads of a warp counted to the record of a level. */
INLINE void tell(const Params &p, const Tally &t, u32 depth, u32 lane) {
#if COUNT
    Record *r = p.records + (depth < p.record_capacity ? depth : p.record_capacity - 1);
    const u32 sum[8] = {__reduce_add_sync(ALL, t.checks), __reduce_add_sync(ALL, t.found),
                        __reduce_add_sync(ALL, t.repeats), __reduce_add_sync(ALL, t.missed),
                        __reduce_add_sync(ALL, t.conflicts), __reduce_add_sync(ALL, t.places),
                        __reduce_add_sync(ALL, t.searches), __reduce_add_sync(ALL, t.turned)};
    u64 *to = &r->checks; /* in the order of Record */
    if (lane == 0)
        for (int k = 0; k < 8; k++)
            if (sum[k]) atomicAdd(to + k, (u64)sum[k]);
#endif
}

/* One thread: what the level was, once it is over. */
INLINE void note(const Params &p, u32 depth, u32 step, u32 frontier, u32 pieces = 0) {
#if COUNT
    Record *r = p.records + (depth < p.record_capacity ? depth : p.record_capacity - 1);
    r->step = step, r->frontier = frontier, r->pieces = pieces, r->nanoseconds = nanoseconds();
#endif
}
#endif
