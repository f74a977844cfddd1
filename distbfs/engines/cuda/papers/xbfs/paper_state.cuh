/* What the kernels of the paper's method share: arguments, options and counters.
 *
 * `level` is the level that is being found.  Push expands the vertices of level - 1;
 * pull looks for a neighbour of level - 1 from each unvisited vertex. */
#ifndef DISTBFS_PAPER_STATE_CUH
#define DISTBFS_PAPER_STATE_CUH
#include "../../common/goal.cuh"
#include "../../common/types.cuh"

enum Mode { SCAN_FREE, SINGLE_SCAN, NO_QUEUE, PULL };
enum Frontier { ANY, ONLY_SCAN_FREE, ONLY_SINGLE_SCAN, ONLY_NO_QUEUE, DOUBLE_SCAN };
enum Direction { EITHER, ALWAYS_PUSH, ALWAYS_PULL };
enum Balance { STATIC, THREAD, WARP, DONATION };

/* Counters of one level; zero before the level that writes them begins. */
struct Slot {
    uint64_t edges;       /* out of the vertices that the level found */
    uint64_t early_edges; /* out of those that the pull before it had found */
    uint64_t checks;      /* edge checks (COUNT) */
    uint32_t found;       /* vertices that the level found; single-scan: 0 */
    uint32_t early;       /* vertices of this level that the pull before it found */
    uint32_t tail;        /* entries of the queue that a push writes */
    uint32_t queued;      /* entries of a pull's queue, or of a gathered frontier */
    uint32_t ticket;      /* queue entries handed out by dynamic balancing */
    uint32_t chunks;      /* entries of `chunks` */
    uint32_t writes;      /* status writes of single-scan (COUNT) */
    uint32_t donations;   /* rows of a last lane that its warp took (COUNT) */
    uint32_t stop;        /* the host's word, as the first thread saw it after the level */
};

/* What is decided before a level. */
struct State {
    uint64_t edges;  /* out of the vertices of level - 1: checks of a push */
    uint64_t before; /* the same of level - 2 */
    int level;
    int mode;
    int gather;     /* 1: the status array is scanned first for the frontier */
    int input;      /* which queue holds the frontier, or the last pull's vertices */
    uint32_t size;  /* entries of that queue */
    uint32_t early; /* vertices of `level` that are known already */
    int done;   /* 1: there is no more to find; 2: the host has ended the search */
    int levels; /* that have vertices, up to `level` - 1 */
};

/* One level that was run (COUNT). */
struct Record {
    uint64_t level, mode, frontier, checks, found, early, repeats;
    uint64_t handed_out, donations, nanoseconds;
};

struct Control {
    Slot slots[4]; /* of a level: slots[level & 3] */
    State state;
    uint64_t started; /* %globaltimer after the initialisation (COUNT) */
    uint32_t barrier; /* zero at first; see grid.cuh */
    uint32_t unused;
};

struct Params {
    const OFFSET *offsets;   /* [vertices + 1] */
    const uint32_t *columns; /* [edges], numbers */
    const OFFSET *in_offsets;   /* the rows that pulls look at: the same of a symmetric */
    const uint32_t *in_columns; /* graph, those of the edges in of a directed one */
    int *status;             /* [vertices], level or -1 */
    uint32_t *parent;        /* [vertices], numbers or NONE; null: not wanted */
    uint32_t *queues[2];     /* [vertices] each */
    uint64_t *chunks;        /* [2 edges / CHUNK + 1], vertex << 32 | chunk of its row */
    uint32_t *segments;      /* [threads], queue entries of earlier segments of a block */
    uint32_t *totals;        /* [blocks], queue entries of a block's segments */
    uint64_t *work;          /* [2][32], pulled vertices and checks by log2 of degree */
    Control *control;        /* [1] */
    Record *records;         /* [record_capacity] */
    const uint64_t *stop;    /* [1], of the host: 1 to end a search; null: nobody asks */
    uint64_t edges;
    double alpha;
    uint32_t vertices;
    uint32_t root;
    uint32_t segment; /* vertices of a thread's segment, a multiple of 32 */
    uint32_t record_capacity;
    int frontier, direction, balance, asynchronous;
    Goal goal;
};

DEVICE uint32_t degree_of(const Params &p, uint32_t v) {
    return (uint32_t)(__ldg(p.offsets + v + 1) - __ldg(p.offsets + v));
}

DEVICE uint32_t in_degree_of(const Params &p, uint32_t v) {
    return (uint32_t)(__ldg(p.in_offsets + v + 1) - __ldg(p.in_offsets + v));
}

/* The queue that a level reads and the one that a push writes. */
DEVICE uint32_t *queue_in(const Params &p, const State &s) {
    return s.input ^ s.gather ? p.queues[1] : p.queues[0];
}
DEVICE uint32_t *queue_out(const Params &p, const State &s) {
    return s.input ^ s.gather ? p.queues[0] : p.queues[1];
}
#endif
