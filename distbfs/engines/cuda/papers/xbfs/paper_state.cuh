/* Shared by the kernels of the paper's method: arguments, options and counters.
 *
 * `level` is the level that is being found.  Push expands the vertices of level - 1;
 * pull looks for a neighbour of level - 1 from each unvisited vertex. */
#ifndef DISTBFS_PAPER_STATE_CUH
#define DISTBFS_PAPER_STATE_CUH
#include "../../common/base.cuh"
#include "../../common/goal.cuh"

#define THREADS 256 /* of a block; the same in search.py */
#define WARPS (THREADS / 32)

enum Mode { SCAN_FREE, SINGLE_SCAN, NO_QUEUE, PULL };
enum Frontier { ANY, ONLY_SCAN_FREE, ONLY_SINGLE_SCAN, ONLY_NO_QUEUE, DOUBLE_SCAN };
enum Direction { EITHER, ALWAYS_PUSH, ALWAYS_PULL };
constexpr u32 WORK = 34 * 32; /* counters of pulled vertices */
enum Balance { STATIC, THREAD, WARP, DONATION, DEGREE };

/* Counters of one level; zero before the level that writes them begins. */
struct Slot {
    u64 edges;       /* out of the vertices that the level found */
    u64 early_edges; /* out of those that the pull before it had found */
    u64 checks;      /* edge checks, if counted */
    u32 found;       /* vertices that the level found; single-scan: status writes, if counted */
    u32 early;       /* vertices of this level that the pull before it found */
    u32 tail;        /* entries of the queue that a push writes */
    u32 queued;      /* entries of a pull's queue, or of a gathered frontier */
    u32 ticket;      /* queue entries handed out by dynamic balancing */
    u32 chunks;      /* entries of `chunks` */
    u32 donations;   /* rows of a last lane that its warp took, if counted */
    u32 stop;        /* the host's word, as the first thread saw it after the level */
};

/* The choices before a level. */
struct State {
    u64 edges;  /* out of the vertices of level - 1: checks of a push */
    u64 before; /* the same of level - 2 */
    int level;
    int mode;
    int gather; /* 1: the status array is scanned first for the frontier */
    int input;  /* which queue holds the frontier, or the last pull's vertices */
    u32 size;   /* entries of that queue */
    u32 early;  /* vertices of `level` that are known already */
    int done;   /* 1: there is no more to find; 2: the host has ended the search */
    int levels; /* that have vertices, up to `level` - 1 */
};

/* One level that was run, where levels are counted. */
struct Record {
    u64 step, frontier, checks; /* step: its mode */
    u64 found, found_early;     /* found_early: those of the next level, which `found` includes */
    u64 repeats, handed_out, donations, nanoseconds;
};

/* Zero before the first search; the next one begins with the turn that one left. */
struct Control {
    Slot slots[4]; /* of a level: slots[level & 3] */
    State state;
    u64 turn; /* meetings of all searches so far */
    Barrier barrier;
};

struct Params {
    Uints row;                /* [active + 1] */
    const u32 *adj;           /* [m], numbers */
    Uints in_row;             /* [active + 1], the rows that pulls look at: the same of */
    const u32 *in_adj;        /* [m]; a symmetric graph, else those of edges in */
    int *level;               /* [active], -1: unvisited; the status array */
    u32 *parent;              /* [active], numbers or NONE; null: not wanted */
    u32 *queues[2];           /* [active] each */
    u64 *chunks;              /* [2 m / CHUNK + 1], vertex << 32 | chunk of its row */
    u32 *segments;            /* [threads], queue entries of earlier segments of a block */
    u32 *totals;              /* [blocks], queue entries of a block's segments */
    u64 *work;                /* [WORK], of pulled vertices by log2 of their degree:
                                 [0][32] vertices, [1][32] checks, [2 + w][32] vertices
                                 with 2^w checks and more (Figure 9); null: levels
                                 are not counted, and have no records */
    Control *control;         /* [1] */
    Record *records;          /* [record_capacity + 1]; the last: the start */
    const u64 *stop;          /* [1], of the host: 1 to end a search; null: nobody asks */
    u64 m;
    double alpha;
    u32 active;
    u32 root;
    u32 segment; /* vertices of a thread's segment, a multiple of 32 */
    u32 record_capacity;
    int frontier, direction, balance, asynchronous;
    Goal goal;
};

INLINE u32 degree_of(const Params &p, u32 v) {
    return (u32)(p.row[v + 1] - p.row[v]);
}

INLINE u32 in_degree_of(const Params &p, u32 v) {
    return (u32)(p.in_row[v + 1] - p.in_row[v]);
}

/* The queue that a level reads and the one that a push writes. */
INLINE u32 *queue_in(const Params &p, const State &s) {
    return s.input ^ s.gather ? p.queues[1] : p.queues[0];
}
INLINE u32 *queue_out(const Params &p, const State &s) {
    return s.input ^ s.gather ? p.queues[0] : p.queues[1];
}
#endif
