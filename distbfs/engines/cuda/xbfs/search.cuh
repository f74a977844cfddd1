/* The data of a search by method `fast`.
 *
 * Vertices are numbers (graph/device_graph.py): hubs first.  `snapshot[0]` is the bitmap
 * of visited vertices while levels push; a marking push or a pull reads snapshot k and
 * writes snapshot k + 1, so that levels can be told at the end from the snapshots alone;
 * results by id are written by a kernel of their own (results.cu), or with AT_ONCE by the search.
 * Level of a vertex: `direct` if its bit is in snapshot 0, else `base` + the number of
 * the first snapshot that has its bit.
 */
#ifndef DISTBFS_XBFS_SEARCH_CUH
#define DISTBFS_XBFS_SEARCH_CUH
#include "../common/base.cuh"
#include "../common/sets.cuh"
#include "../common/tails.cuh"

#define THREADS 1024
#define WARPS 32
#define SNAPSHOTS 20  /* bitmaps; when they are used up, levels are written out */
#define COLUMNS 7      /* second to eighth neighbours kept in arrays of their own */
#define TILE_WORDS 8  /* at most: bitmap words that a warp pulls at a time */
#define WAIT 160      /* vertices of a warp that wait for their rows */
#define HALF 64       /* vertices of a warp whose rows are not read to the end */
#define FEW 128       /* one in so many is left: pull_last.cuh */
#define MOST_TAILS 6  /* such pulls before pushes are tried again */
#define SMALL 2048    /* edges of a frontier that one block pushes alone */

/* Words of shared memory of a warp in a pull. */
#define HALF_AT (WAIT + WAIT / 4)
#define STAGE_AT (HALF_AT + 2 * HALF)
#define SPARSE_AT (STAGE_AT + 2 * TILE_WORDS * 32)
#define WARP_WORDS (SPARSE_AT + TILE_WORDS * 16 + 16)

#ifndef DIRECTED
#define DIRECTED 0 /* edges lead one way: pushes read rows of edges out, pulls those of edges in */
#endif

#define NARROW 126    /* the largest level of one byte */
#define ELSEWHERE (~0ull)

enum Step { START, BLOCK_PUSH, GRID_PUSH, MARK_PUSH, PULL, PULL_LAST, GATHER, FLUSH, RESULTS, MERGE };
/* STOPPED: ended by the host, without results, and the bitmaps are dirty. */
enum Phase { PUSHING, PULLING, GATHERING, FINISHING, DONE, STOPPED };

/* How a search from a set begins, alike on all devices: its roots are a queue, or too many. */
enum FromSet { BY_QUEUE = 1, BY_PULL };

/* What one launch leaves for the next: whether the bitmaps are clean and, where levels need more
 * than a byte and another form writes the results, all of it. */
struct State {
    u16 phase, grows; /* grows: the frontier is worth a pull; used by search.cu alone */
    u32 depth;
    u32 count, hubs; /* of the queue */
    u64 edges;       /* of the queue */
    u32 base, k;     /* level of snapshot 0 when pulls began; the snapshot in use */
    u32 left;        /* unvisited vertices before the next pull */
    u32 tails;       /* pulls by words so far */
    u32 dirty;       /* the bitmaps are not as a search begins with them */
    u32 step;        /* what the last level was found by */
};

/* What a launch knows between two steps.  It waits in shared memory while a step runs,
 * so that the step has the registers. */
struct Run {
    State s;
    u32 turn, used, pad[2]; /* 64 bytes, which are copied 16 at a time */
};

/* A queue that is made by all blocks. */
struct Mail {
    u64 size;  /* edges << 32 | vertices */
    u64 edges; /* not wrapped */
    u64 hubs;  /* with DIRECTED and vertices that are found, but have no edges out << 32 */
    u64 pad[13];
};

struct Control {
    Barrier barrier;
    Mail mail[3]; /* in turn; each use clears the next */
    u64 highest;  /* the last snapshot that has a vertex which those before have not */
    Run run;          /* what block 0 came to alone */
};

struct Params {
    const OFFSET *row;        /* [active + 1] */
    const u32 *adj;           /* [m + pad], rising in each row */
    const u32 *first;         /* [active + pad], first neighbour that is seen, or itself; of
                                 neighbours where edges lead one way those with an edge to it */
    const u32 *column[COLUMNS]; /* [listed[k] + pad], neighbour k + 2, or the first */
    const u32 *numbers;       /* [n], id -> number; [members] with these, by rank */
    const uint4 *members;     /* [blocks], the set of ids that have a number, or null */
    const u32 *vertices;      /* [active], number -> id; [positions] of a part: its name */
    const u32 *first_id;      /* [active + pad], id of the first neighbour; with shares its
                                 position */
    const u16 *place;         /* [active], id modulo block_ids */
    const uint2 *piece;       /* [all pieces]: word, bits; see results.cu */
    const u32 *piece_at;      /* [blocks + 1], where those of a block of ids begin */
    const u32 *split;         /* [hubs][ranges + 1], hub rows cut by destination */
    const u32 *range;         /* [ranges + 1], in words */
    u32 *snapshot;            /* [SNAPSHOTS][stride] */
    u32 *by_first;            /* [words]: the parent is the first neighbour */
    u32 *next_snapshot, *next_by_first; /* of the next search: left clean */
    u32 *parent;              /* [active], number; by id not set where by_first */
    u32 *direct;              /* [every], level where pushed, and of trees */
    uint2 *code;              /* [words], with trees: trees.cuh; of a part by position */
    uint4 *queue[2];          /* [active + 1]: vertex, edges before it, row, degree */
    u32 *hub_queue[2];        /* [hubs] */
    u64 *said;                /* [2][blocks of the grid]: narrow.cuh */
    u8 *level_out;            /* [n or active], -1 as a signed byte: unreached; null: parents
                                 alone are wanted */
    int *level_wide;          /* [n or active], instead where levels pass NARROW */
    u32 *parent_out;          /* [n or active]; u64 by id with shares */
    Control *control, *other; /* the other is cleared for the next launch */
    State *state;
    u64 *trace;               /* [rows][4], with COUNT, or null: time, what << 32 | depth,
                                 vertices, edges */
    u64 *counts;              /* [4][rows], by level, with COUNT: edge checks; looks at
                                 bits of hubs; columns of tails; lines of these */
    const u32 *targets;       /* [sought], numbers, NONE without edges; null: none at all */
    const u64 *stop;          /* [1], of the host: 1 to end a search; null: nobody asks */
    const u32 *roots;         /* [root_count], numbers, of a set; each once */
    const u64 *lones;         /* [2][lone_count], local ids, rising, and ids of those roots of
                                 a set that have no edges */
    const u64 *tail_row;      /* [tailed + 1], where tails begin, the first at 0: tails.cuh */
    const u32 *seen;          /* [m / 32 + pad], a bit for each column of adj, with MASKED */
    const u32 *tail_seen;     /* [tail_count / 32 + 1], for those of tails, in host memory */
    const u32 *more;          /* [words]: some column that is seen is not in `first` */
    const u32 *bare;          /* [words]: no edge in is seen; or null: see bare_word.  Only
                                 where a device has the whole graph, or edges lead one way */
    u64 far, tail_count;      /* where tails are, from adj on; their columns */
    u64 m, stride;
    u64 mark_edges;           /* a push of so many edges is followed by a pull */
    u64 row_edges;            /* one of at most so many takes rows, and no ranges */
    u64 fetch_edges;          /* one of so many takes short ranges and fetches their parents */
    u64 pull_edges;           /* a frontier of so many edges is not pushed at all */
    u64 pull_tails;           /* nor one with so many of them in tails */
    u64 n, root, root_id;     /* root: local id, ELSEWHERE: another device has it */
    u32 active, words, several; /* several: vertices of degree 2 or more */
    u32 hubs, ranges, pieces, hub_words, tile, blocks, block_ids;
    u32 shares;               /* parts of a graph whose ids have 64 bits, else 0 */
    u32 listed[COLUMNS + 1];  /* listed[k]: vertices of degree k + 2 or more come first */
    u32 parents, rows, push_only, pull_only;
    u32 queue_room;           /* vertices */
    u32 near, lanes;          /* with NEAR: vertices of a block, at most; lanes of each where there
                                 are many, log2 */
    u32 growth;               /* from a frontier to one that is worth a pull; 0: any */
    u32 last, sought;         /* the last level that is searched; how many targets */
    u32 from_set;             /* FromSet: `root` is ELSEWHERE then; 0: from that root alone */
    u32 root_count, lone_count; /* of this device */
    u32 tailed, kept;         /* rows that may have tails; columns before a tail */
    u32 bare_count;           /* bits in `bare`, of all devices of a domain */
    u32 cuts, group;          /* ranges that `split` has, of which `ranges` are marked; so many
                                 are taken as one where edges are few */
    u32 every, chain;         /* vertices, those of trees as well, which come after `active`;
                                 edges from one of these to the others at most: trees.cuh */
    u32 window[COLUMNS + 2];  /* with WINDOWS: first words of those for each column, for rows */
    u32 window_words;         /* of each; 0: without */
    u32 coded;                /* words of codes that shared memory holds */
    u32 bound;                /* columns from it on are not searched, ALL: none is; of a part,
                                 positions */
#if DIRECTED
    const OFFSET *in_row;     /* [active + 1], of edges in, which pulls read */
    const u32 *in_adj;        /* [m + pad], rising in each row */
    const u32 *in_seen;       /* [m / 32 + pad], a bit for each column of in_adj, with MASKED */
    const u64 *in_tail_row;   /* [in_tailed + 1], as tail_row */
    const u32 *in_tail_seen;  /* [in_tail_count / 32 + 1], as tail_seen */
    u64 in_far, in_tail_count; /* where their tails are, from in_adj on; their columns */
    const u32 *unentered;     /* [words], BETWEEN domains instead of `bare`: others may find them */
    u32 in_tailed;            /* rows that may have tails */
#endif
};

#ifndef BETWEEN
#define BETWEEN 0 /* other domains find vertices, too: between.cuh */
#endif

#ifndef AT_ONCE
#define AT_ONCE 0 /* the blocks of a search write all results at once, as ids are few */
#endif
#ifndef PLAIN
#define PLAIN 0 /* nothing is asked of a search but all levels from one root */
#endif
#define ASKED(what) (PLAIN ? 0 : (what)) /* code that nobody needs would still be fetched */
#ifndef NEAR
#define NEAR 0 /* narrow frontiers are pushed by blocks that keep what they find: narrow.cuh */
#endif
#ifndef FEW_TREES
#define FEW_TREES 0 /* vertices of trees look up no tables, as they are few: trees.cuh */
#endif
#define CODES (!FEW_TREES)

#ifndef WINDOWS
#define WINDOWS 0 /* pulls of most vertices go column by column: pull_windows.cuh */
#endif

#ifndef MASKED
#define MASKED 0 /* some edges are not seen: rows.cuh */
#endif

/* Forms that serve searches of all edges, too: without bits, a column is seen. */
#define SEES_ALL (MASKED && (COUNT || DIRECTED))
#define BARE (MASKED || DIRECTED) /* pulls have nothing to look at for some vertices */

/* Whether the last level that is wanted has been searched. */
INLINE bool ends(const Params &p, const State &s) { return ASKED(s.depth >= p.last); }

/* The vertices of word w that have no edge in that is seen.  Pulls take them as visited, so that
 * snapshots after the first may have their bits (see KEPT_BITS); nobody gives them a level for
 * it. */
INLINE u32 bare_word(const Params &p, u32 w) {
#if BARE
    return p.bare ? p.bare[w] : 0u;
#else
    return 0u;
#endif
}

/* The bits of word w that the next snapshot keeps of those that a pull does not look at.  Where
 * edges lead one way, others look at bare vertices, which are not visited but for roots: what
 * these lead to is found before.  fresh: that snapshot */
#if DIRECTED
/* mutant: ((bits) & ~bare_word(p, w)) -> (bits) : test_last_levels_of_vertices_without_edges_out */
#define KEPT_BITS(p, fresh, w, bits) ((bits) & ~bare_word(p, w))
#else
#define KEPT_BITS(p, fresh, w, bits) (bits) /* by a macro, which leaves no trace in the code */
#endif
#if DIRECTED && BETWEEN /* of the snapshot before */
#undef KEPT_BITS
/* mutant: ((fresh) - (p).stride)[w] -> (bits) : test_directed_between::test_directed_shapes */
#define KEPT_BITS(p, fresh, w, bits) ((fresh) - (p).stride)[w]
#endif

/* The number of an id, NONE where it has none. */
INLINE u32 number_of(const Params &p, u64 id) {
    return number_in(p.members, p.numbers, id);
}

/* Give vertices from v on, those with bits, a direct level. */
INLINE void write_levels(const Params &p, u32 v, u32 bits, u32 level) {
    for (; bits; bits &= bits - 1) p.direct[v + __ffs(bits) - 1] = level;
}

/* This thread's share of the targets that are not visited. */
INLINE u32 missed(const Params &p, const u32 *visited) {
    u32 count = 0;
    /* mutant: i < -> i + 1 < : test_until_fast::test_levels_and_targets */
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < p.sought; i += gridDim.x * THREADS) {
        const u32 v = p.targets[i];
        /* mutant: == NONE || -> != NONE && : test_targets_of_several_parts */
        count += v == NONE || !((__ldcg(visited + (v >> 5)) & ~bare_word(p, v >> 5)) >> (v & 31) & 1);
    }
    return count;
}

/* Visited bits: some words from shared memory, the first ones, hubs, or a window. */
struct Visited {
    const u32 *hub, *all;
    u32 hub_words;
    u32 from = 0; /* the first of them */
#if COUNT
    mutable u32 looks = 0; /* at the bits of hubs */
#endif
    __device__ __forceinline__ bool operator()(u32 v) const {
        const u32 one[1] = {v};
        return of(one, 1);
    }
    /* Which of u[i] with bit i in `wanted` are visited; all are asked for before one is
     * waited for. */
    template <int N> __device__ __forceinline__ u32 of(const u32 (&u)[N], u32 wanted) const {
        u32 bits[N], seen = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            const u32 w = u[i] >> 5, at = w - from;
            const bool far = wanted >> i & 1 && at >= hub_words;
#if COUNT
            looks += wanted >> i & 1 && !far;
#endif
            /* mutant: at < hub_words ? at : 0u -> 0
             * : test_fast_kernels::test_thresholds_that_force_each_way */
            bits[i] = hub[at < hub_words ? at : 0u];
            /* mutant: all[w] -> 0 : test_fast_kernels::test_thresholds_that_force_each_way */
            if (far) bits[i] = all[w];
        }
#pragma unroll
        for (int i = 0; i < N; i++) seen |= (bits[i] >> (u[i] & 31) & 1) << i;
        return seen & wanted;
    }
};
#endif
