/* Betweenness: shortest paths are counted forwards, dependencies summed backwards.
 *
 * Each thread has a share of the sources and its own arrays, so that results do not change
 * from run to run.  coef[v] = (1 + delta[v]) / sigma[v] is kept in place of delta[v]: one load an edge on the way back.
 * Numbers of paths grow as binomials and would overflow on large grids.  Only ratios
 * between neighbouring levels matter, so a level whose largest count passes BIG is scaled
 * by SMALL, and so are the sums of the level above it.  Where counts of one level are too
 * far apart for that, the source is left to others.
 *
 * Source: Brandes, A Faster Algorithm for Betweenness Centrality, 2001, Section 4.
 *
 * variants: OFFSET=uint32_t,uint64_t
 */
#include "../../device/team.h"

#ifndef OFFSET
#define OFFSET uint32_t
#endif

#define BIG 0x1p500
#define SMALL 0x1p-500
#define LEAST 0x1p-900 /* n / LEAST is a number */
#define TURN 4096 /* vertices between two looks whether to end */

/* The arrays of all shares, or of one: */
typedef struct {
    int64_t n, active;       /* vertices, and those with edges */
    int64_t shares, count;   /* of sources */
    const OFFSET *offsets;   /* [n + 1] */
    const uint32_t *columns; /* [edges] */
    const uint32_t *sources; /* [count], numbers */
    double *sigma, *coef;    /* [shares, n] each; sigma is 0 between searches */
    int32_t *level;          /* [shares, n], -1 between searches */
    uint32_t *queue;         /* [shares, n + 1], vertices by level */
    int64_t *begins;         /* [shares, n + 2], where each level begins in the queue */
    double *of_share;        /* [shares, n], dependencies on each vertex so far */
    uint8_t *scaled;         /* [shares, n + 2], levels whose counts were scaled */
    double *value;           /* [n], added to */
    uint8_t *far;            /* [n], sources that are left out, by number */
    int wide;                /* whether counts of a level are too far apart */
} paths;

static inline void scale_level(paths *p, int64_t first, int64_t last, int32_t level) {
    double most = 0;
    for (int64_t k = first; k < last; k++)
        if (p->sigma[p->queue[k]] > most) most = p->sigma[p->queue[k]];
    p->scaled[level] = most > BIG;
    if (most <= BIG) return;
    for (int64_t k = first; k < last; k++) {
        double *sigma = p->sigma + p->queue[k];
        *sigma *= SMALL;
        p->wide |= *sigma < LEAST;
    }
}

/* Find the levels from a source and count paths; returns the number of levels, 0 where the
 * call is to end.  The level of a
 * neighbour is unpredictable, so nothing branches on it.  Once every vertex that has
 * edges is found, no row is left to look at. */
static int32_t forwards(paths *p, uint32_t source) {
    int64_t first = 0, last = 1;
    int32_t level = 0;
    int32_t *restrict levels = p->level;
    double *restrict sigmas = p->sigma;
    uint32_t *restrict queue = p->queue;
    const uint32_t *restrict columns = p->columns;
    p->queue[0] = source;
    p->level[source] = 0;
    p->sigma[source] = 1;
    p->scaled[0] = 0;
    p->wide = 0;
    while (first < last) {
        int64_t tail = last;
        p->begins[level] = first;
        for (int64_t k = first; k < last && last < p->active; k++) {
            if (!(k % TURN) && team_ended()) return 0;
            uint32_t u = queue[k];
            double sigma = sigmas[u];
            OFFSET end = p->offsets[u + 1];
            for (OFFSET e = p->offsets[u]; e < end; e++) {
                uint32_t v = columns[e];
                int32_t old = levels[v], now = old < 0 ? level + 1 : old;
                queue[tail] = v;
                tail += old < 0;
                levels[v] = now;
                /* mutant: == level + 1 -> >= level : test_edges_inside_a_level_are_on_no_path */
                sigmas[v] += now == level + 1 ? sigma : 0;
            }
        }
        first = last;
        last = tail;
        level++;
        scale_level(p, first, last, level);
    }
    p->begins[level] = last;
    p->far[source] = p->wide;
    return level;
}

/* Add up dependencies from the deepest level, on which nothing depends, to the first. */
static void backwards(paths *p, int32_t levels) {
    const int32_t *restrict at = p->level;
    double *restrict coef = p->coef;
    const uint32_t *restrict columns = p->columns;
    if (!levels) return;
    for (int64_t k = p->begins[levels - 1]; k < p->begins[levels]; k++)
        coef[p->queue[k]] = 1 / p->sigma[p->queue[k]];
    for (int32_t level = p->wide ? 0 : levels - 2; level > 0; level--) {
        /* mutant: p->scaled[level + 1] ? SMALL : 1 -> 1
         * : test_betweenness::test_more_paths_than_a_double_can_count */
        double scale = p->scaled[level + 1] ? SMALL : 1;
        for (int64_t k = p->begins[level]; k < p->begins[level + 1]; k++) {
            if (!(k % TURN) && team_ended()) return;
            uint32_t u = p->queue[k];
            double sum = 0;
            OFFSET end = p->offsets[u + 1];
#pragma omp simd reduction(+ : sum)
            for (OFFSET e = p->offsets[u]; e < end; e++)
                sum += at[columns[e]] == level + 1 ? coef[columns[e]] : 0;
            double delta = p->sigma[u] * (sum * scale);
            p->of_share[u] += delta;
            coef[u] = (1 + delta) / p->sigma[u];
        }
    }
    for (int64_t k = 0; k < p->begins[levels]; k++) {
        p->level[p->queue[k]] = -1;
        p->sigma[p->queue[k]] = 0;
    }
}

static void search_shares(void *argument, int64_t from, int64_t to) {
    for (int64_t t = from; t < to; t++) {
        paths p = *(const paths *)argument;
        p.sigma += t * p.n, p.coef += t * p.n, p.level += t * p.n, p.of_share += t * p.n;
        p.queue += t * (p.n + 1), p.begins += t * (p.n + 2), p.scaled += t * (p.n + 2);
        for (int64_t v = 0; v < p.n; v++) p.sigma[v] = p.of_share[v] = 0, p.level[v] = -1;
        for (int64_t i = t; i < p.count && !team_ended(); i += p.shares)
            backwards(&p, forwards(&p, p.sources[i]));
    }
}

static void add_values(void *argument, int64_t from, int64_t to) {
    const paths *p = argument;
    for (int64_t v = from; v < to; v++)
        for (int64_t t = 0; t < p->shares; t++) p->value[v] += p->of_share[t * p->n + v];
}

/* Add to value [n] the dependencies of sources on each vertex, except of a source on itself,
 * and but for those that it sets in far [n]. */
void brandes(paths *all) {
    team_for((int)all->shares, all->shares, 1, search_shares, all);
    team_for((int)all->shares, all->n, 4096, add_values, all);
}
