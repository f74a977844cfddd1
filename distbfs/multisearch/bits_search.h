/* The words of vertices in many searches of one traversal (bits.c), and updates by threads.
 *
 * They are those of a whole graph, or of the normals of a part, the delegates, or the outer
 * ends of a part's nn edges, whose edges are given with each step. */
#ifndef DISTBFS_BITS_SEARCH_H
#define DISTBFS_BITS_SEARCH_H
#include "../device/team.h"
#include "spread.h"
#include <string.h>

#ifndef OFFSET
#define OFFSET uint32_t
#endif

#define SAMPLES 128      /* rows looked at to price a pull */
#define SAMPLE_DEPTH 64  /* neighbours looked at per sampled row */
#define PUSH_PRICE 3.0   /* price of an edge in a push over one in a pull */
#define PULL_FLOOR 200   /* no pull while the frontier has fewer edges / 200 */
#define LONG_ROWS 512    /* how many long rows a level sets aside */
#define SEARCHES (64 * WIDTH)
#define PLANES 31

enum { DONE = 0, GROW = 1, STOPPED = -2 };
enum { BY_PRICE, ONLY_PUSH, ONLY_PULL };
enum { PUSH, PULL };

typedef struct {
    int64_t direction, frontier, checks;
} bit_record;

typedef struct {
    int64_t n, rows, edges;     /* vertices; those with edges come first; stored edges */
    const OFFSET *offsets;      /* [n + 1], edges out; NULL in a graph in parts */
    const uint32_t *columns;    /* [edges] */
    const OFFSET *in_offsets;   /* [n + 1], edges in; the same where symmetric */
    const uint32_t *in_columns; /* [edges] */
    word *seen, *other;         /* [n] each */
    uint64_t *claimed;          /* [ceil(n / 64)], all zero between levels */
    uint32_t *queue, *spare;    /* [rows] each */
    word *planes[PLANES];       /* [n] each; the first `digits` of them, if levels */
    int64_t *counts;            /* [2^digits, SEARCHES], by level, or NULL */
    bit_record *records;        /* [2^digits], of each level */
    /* sums over searches by vertex, [n] each, added to; or NULL */
    int64_t *reached_from;      /* searches that reached it */
    int64_t *distance_from;     /* its levels in these */
    double *harmonic_from;      /* 1 / its level in these, but for level 0 */
    int64_t digits;             /* levels below 2^digits have their memory */
    int64_t keep_levels;        /* whether planes are kept */
    int64_t limit;              /* the last level that is wanted */
    int64_t level;              /* of the frontier */
    int64_t count, work;        /* vertices of the frontier, edges out of them */
    int64_t tail;               /* vertices that got words by steps of a level in parts */
    int64_t clean, queued;      /* other is zero; the frontier is in the queue */
    uint64_t running[WIDTH];    /* searches that have a frontier */
    int32_t depth[SEARCHES];    /* the largest level of each search so far */
    int (*stop)(void);          /* asked before each level; NULL: never */
} bit_search;

static inline word no_bits(void) {
    word w;
    memset(&w, 0, sizeof w);
    return w;
}

static inline word running(const bit_search *s) {
    word w;
    memcpy(&w, s->running, sizeof w);
    return w;
}

static inline int64_t out_degree(const bit_search *s, uint32_t v) {
    return (int64_t)(s->offsets[v + 1] - s->offsets[v]);
}

/* A thread's finds in a level; gains wait for others to be counted 64 at a time. */
typedef struct {
    word found;
    int64_t count, work, checks;
    int waiting;
    word gains[64];
    int64_t counts[SEARCHES];
} tally;

/* A level that threads share: work taken, and finds so far.  Pushes go from the frontier of
 * `from` along edges to vertices of s. */
typedef struct {
    bit_search *s;
    const bit_search *from;
    const OFFSET *offsets;
    const uint32_t *columns;
    word light, found;
    int64_t next, size, tail, checks, aside;
    int shared;    /* several threads push */
    uint32_t lock; /* of what tallies are added to */
    uint32_t rows[LONG_ROWS];
} shared_level;

static void count_gains(tally *t) {
    uint64_t block[64];
    for (int lane = 0; lane < WIDTH; lane++) {
        for (int k = 0; k < 64; k++) block[k] = k < t->waiting ? t->gains[k][lane] : 0;
        transpose(block);
        for (int k = 0; k < 64; k++)
            t->counts[64 * lane + k] += __builtin_popcountll(block[k]);
    }
    t->waiting = 0;
}

static inline void begin_tally(const bit_search *s, tally *t) {
    t->found = no_bits();
    t->count = t->work = t->checks = 0;
    t->waiting = 0;
    if (s->counts) memset(t->counts, 0, sizeof t->counts);
}

/* Add to the sums of v, which the searches `gain` found at the present level. */
static inline void add_gain(const bit_search *s, uint32_t v, word gain) {
    if (!s->reached_from && !s->distance_from && !s->harmonic_from) return;
    int64_t found = 0;
    for (int lane = 0; lane < WIDTH; lane++) found += __builtin_popcountll(gain[lane]);
    if (s->reached_from) s->reached_from[v] += found;
    /* mutant: found * s->level -> found : test_bits::test_named_graphs */
    if (s->distance_from) s->distance_from[v] += found * s->level;
    if (s->harmonic_from && s->level) s->harmonic_from[v] += (double)found / (double)s->level;
}

/* Note that v was found at the present level by the searches `gain`. */
static inline void note(const bit_search *s, tally *t, uint32_t v, word gain) {
    t->found |= gain;
    t->count++;
    if (s->offsets) t->work += out_degree(s, v);
    if (s->keep_levels)
        for (uint64_t rest = (uint64_t)s->level; rest; rest &= rest - 1)
            s->planes[__builtin_ctzll(rest)][v] |= gain;
    add_gain(s, v, gain);
    if (!s->counts) return;
    t->gains[t->waiting++] = gain;
    if (t->waiting == 64) count_gains(t);
}

/* Add a thread's finds to the search. */
static void end_tally(shared_level *l, tally *t) {
    bit_search *s = l->s;
    if (s->counts && t->waiting) count_gains(t);
    while (__atomic_exchange_n(&l->lock, 1, __ATOMIC_ACQUIRE)) team_pause();
    l->found |= t->found;
    s->count += t->count;
    s->work += t->work;
    if (s->records) s->records[s->level].checks += t->checks;
    if (s->counts)
        for (int k = 0; k < SEARCHES; k++)
            s->counts[s->level * SEARCHES + k] += t->counts[k];
    __atomic_store_n(&l->lock, 0, __ATOMIC_RELEASE);
}

/* OR of the words of a row's columns until all of `todo` is there. */
static inline word pull_row(const OFFSET *offsets, const uint32_t *column, uint64_t v,
                            const word *seen, word todo, int64_t *checks) {
    OFFSET start = offsets[v], end = offsets[v + 1], e = start;
    word all = {0};
    for (; e < end && e < start + 2; e++) {
        all |= seen[column[e]];
        if (!any(todo & ~all)) {
            *checks += (int64_t)(e - start) + 1;
            /* mutant: return all -> continue : test_pulls_leave_a_row_when_all_searches_are_seen */
            return all;
        }
    }
    for (; e + 4 <= end; e += 4) {
        all |= (seen[column[e]] | seen[column[e + 1]]) |
               (seen[column[e + 2]] | seen[column[e + 3]]);
        if (!any(todo & ~all)) {
            *checks += (int64_t)(e - start) + 4;
            return all;
        }
    }
    for (; e < end; e++) all |= seen[column[e]];
    *checks += (int64_t)(end - start);
    return all;
}

/* Expected edge checks of a pull, from a sample of rows, which lack words `own` of `wanted`
 * and look for them in the words `seen` of their columns. */
static inline double pull_price(const OFFSET *offsets, const uint32_t *columns, int64_t rows,
                                const word *own, const word *seen, word wanted, int64_t level) {
    int64_t checks = 0;
    uint64_t random = (uint64_t)(level + 1) * UINT64_C(0x9E3779B97F4A7C15);
    for (int k = 0; k < SAMPLES; k++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t v = (uint32_t)(((random >> 32) * (uint64_t)rows) >> 32);
        word todo = wanted & ~own[v];
        if (!any(todo)) continue;
        OFFSET start = offsets[v], end = offsets[v + 1], e = start;
        while (e < end && e - start < SAMPLE_DEPTH && any(todo)) todo &= ~seen[columns[e++]];
        checks += any(todo) ? (int64_t)(end - start) : (int64_t)(e - start);
    }
    return (double)checks / SAMPLES * (double)rows;
}
#endif
