/* Numbers of shortest paths, level by level, from the levels of a search.
 *
 * Vertices are sorted by level first.  From a level to the next, counts are pushed from
 * the rows of the upper one or pulled by the rows of the lower one, whichever have fewer
 * edges; a pull needs no atomic additions and may have twice as many.
 * Source: Brandes, A Faster Algorithm for Betweenness Centrality, 2001, Section 3.
 *
 * variants: OFFSET=uint32_t,uint64_t COUNT=uint64_t EXACT=1 | OFFSET=uint32_t,uint64_t COUNT=double EXACT=0
 */
#include "../../device/team.h"

#ifndef OFFSET
#define OFFSET uint32_t
#endif
#ifndef COUNT
#define COUNT uint64_t
#define EXACT 1
#endif

#define GRAIN 256 /* rows of a piece of work */

typedef struct {
    int64_t n, levels;          /* levels: 0 ... levels - 1 */
    const OFFSET *offsets;      /* [n + 1], rows of edges out */
    const uint32_t *columns;    /* [edges] */
    const OFFSET *in_offsets;   /* [n + 1], rows of edges in; the same where symmetric */
    const uint32_t *in_columns; /* [edges] */
    const uint32_t *vertices;   /* [n], number -> id */
    const int32_t *level;       /* [n], by id, -1: unreached */
    COUNT *sigma;               /* [n], by number, 0 */
    COUNT *counts;              /* [n], by id */
    int32_t *at;                /* [n], level by number */
    uint32_t *order;            /* [n], numbers by level */
    int64_t *begins;            /* [levels + 1], 0 */
    int64_t *out, *into;        /* [levels], edges of each, 0 */
    int64_t now;                /* the level that is counted */
    int32_t passed;             /* whether a count of it passed 64 bits */
} counting;

static inline void plus(counting *g, COUNT *sum, COUNT x) {
#if EXACT
    if (__builtin_add_overflow(*sum, x, sum)) __atomic_store_n(&g->passed, 1, __ATOMIC_RELAXED);
#else
    (void)g;
    *sum += x;
#endif
}

static inline void plus_shared(counting *g, COUNT *sum, COUNT x) {
#if EXACT
    COUNT old = __atomic_fetch_add(sum, x, __ATOMIC_RELAXED);
    if (old + x < old) __atomic_store_n(&g->passed, 1, __ATOMIC_RELAXED);
#else
    (void)g;
    COUNT old, next;
    __atomic_load(sum, &old, __ATOMIC_RELAXED);
    do next = old + x;
    while (!__atomic_compare_exchange(sum, &old, &next, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
#endif
}

static void sort_by_level(counting *g) {
    for (int64_t v = 0; v < g->n; v++) {
        int32_t level = g->at[v] = g->level[g->vertices[v]];
        if (level < 0) continue;
        g->begins[level + 1]++;
        g->out[level] += (int64_t)(g->offsets[v + 1] - g->offsets[v]);
        g->into[level] += (int64_t)(g->in_offsets[v + 1] - g->in_offsets[v]);
    }
    for (int64_t l = 0; l < g->levels; l++) g->begins[l + 1] += g->begins[l];
    for (int64_t v = 0; v < g->n; v++)
        if (g->at[v] >= 0) g->order[g->begins[g->at[v]]++] = (uint32_t)v;
    for (int64_t l = g->levels; l > 0; l--) g->begins[l] = g->begins[l - 1];
    g->begins[0] = 0;
}

static void push_rows(void *argument, int64_t from, int64_t to) {
    counting *g = argument;
    const uint32_t *rows = g->order + g->begins[g->now - 1];
    for (int64_t k = from; k < to; k++) {
        uint32_t u = rows[k];
        COUNT x = g->sigma[u];
        for (OFFSET e = g->offsets[u]; e < g->offsets[u + 1]; e++)
            if (g->at[g->columns[e]] == g->now) plus_shared(g, g->sigma + g->columns[e], x);
    }
}

static void pull_rows(void *argument, int64_t from, int64_t to) {
    counting *g = argument;
    const uint32_t *rows = g->order + g->begins[g->now];
    for (int64_t k = from; k < to; k++) {
        uint32_t v = rows[k];
        COUNT sum = 0;
        for (OFFSET e = g->in_offsets[v]; e < g->in_offsets[v + 1]; e++)
            if (g->at[g->in_columns[e]] == g->now - 1) plus(g, &sum, g->sigma[g->in_columns[e]]);
        g->sigma[v] = sum;
    }
}

static void by_id(void *argument, int64_t from, int64_t to) {
    counting *g = argument;
    for (int64_t v = from; v < to; v++) g->counts[g->vertices[v]] = g->sigma[v];
}

/* Returns the first level where a count passed 64 bits, which then is wrong, or 0. */
int64_t count_paths(counting *g, int threads) {
    int64_t passed = 0;
    sort_by_level(g);
    for (int64_t k = 0; g->levels && k < g->begins[1]; k++) g->sigma[g->order[k]] = 1;
    for (g->now = 1; g->now < g->levels; g->now++) {
        const int64_t *begins = g->begins + g->now;
        g->passed = 0;
        if (g->into[g->now] <= 2 * g->out[g->now - 1])
            team_for(threads, begins[1] - begins[0], GRAIN, pull_rows, g);
        else
            team_for(threads, begins[0] - begins[-1], GRAIN, push_rows, g);
        if (g->passed && !passed) passed = g->now;
    }
    team_for(threads, g->n, GRAIN << 6, by_id, g);
    return passed;
}
