/* Sums along shortest paths, level by level: numbers of paths, and Brandes' dependencies.
 *
 * Vertices are sorted by level.  From a level to the next, or to the one before, values
 * are pushed along the rows of the one or pulled by the rows of the other, whichever have
 * fewer edges; a pull needs no atomic additions and may have twice as many.
 *
 * For betweenness each thread has a share of the sources and its own arrays, so that
 * results do not change from run to run; it finds levels and sums up paths, then
 * (1 + dependency) / paths.  Numbers of paths grow as binomials and would overflow on
 * large grids.  Only ratios between neighbouring levels matter, so a level whose largest
 * number passes BIG is scaled by SMALL, and so are the sums of the level above it.  Where
 * numbers of one level are too far apart for that, the source is left to others.
 *
 * Source: Brandes, A Faster Algorithm for Betweenness Centrality, 2001, Sections 3 and 4.
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
#define TURN 4096 /* vertices between two looks whether to end */

/* Vertices with levels: of a whole graph, or the normals or delegates of a part. */
typedef struct {
    int64_t n;
    const int32_t *at; /* [n], level by number, -1: unreached */
    uint32_t *order;   /* [n], numbers by level */
    int64_t *begins;   /* [levels + 1], where each level begins in it */
    COUNT *values;     /* [n] */
    int32_t passed;    /* whether a value passed 64 bits */
} leveled;

/* From the vertices of a level to those of another, along edges. */
typedef struct {
    const OFFSET *offsets, *back_offsets;   /* rows by the first end, by the other */
    const uint32_t *columns, *back_columns;
    const leveled *from;
    leveled *to;
    int32_t start, goal; /* levels */
    int shared;          /* whether several threads push */
} step;

static inline void plus(leveled *to, COUNT *sum, COUNT x) {
#if EXACT
    if (__builtin_add_overflow(*sum, x, sum)) __atomic_store_n(&to->passed, 1, __ATOMIC_RELAXED);
#else
    (void)to;
    *sum += x;
#endif
}

static inline void plus_shared(leveled *to, COUNT *sum, COUNT x) {
#if EXACT
    COUNT old = __atomic_fetch_add(sum, x, __ATOMIC_RELAXED);
    if (old + x < old) __atomic_store_n(&to->passed, 1, __ATOMIC_RELAXED);
#else
    (void)to;
    COUNT old, next;
    __atomic_load(sum, &old, __ATOMIC_RELAXED);
    do next = old + x;
    while (!__atomic_compare_exchange(sum, &old, &next, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
#endif
}

/* The level of a neighbour is unpredictable, so a thread alone does not branch on it. */
static void push_rows(void *argument, int64_t first, int64_t last) {
    const step *s = argument;
    leveled *to = s->to;
    const uint32_t *rows = s->from->order + s->from->begins[s->start];
    const int32_t *at = to->at;
    COUNT *values = to->values;
    for (int64_t k = first; k < last; k++) {
        const COUNT x = s->from->values[rows[k]];
        const OFFSET end = s->offsets[rows[k] + 1];
        for (OFFSET e = s->offsets[rows[k]]; e < end; e++) {
            const uint32_t v = s->columns[e];
            if (!s->shared) plus(to, values + v, at[v] == s->goal ? x : 0);
            else if (at[v] == s->goal) plus_shared(to, values + v, x);
        }
    }
}

/* The sum of the neighbours before a vertex. */
static inline COUNT gather(const step *s, uint32_t row) {
    const int32_t *at = s->from->at, start = s->start;
    const COUNT *values = s->from->values;
    const uint32_t *columns = s->back_columns;
    const OFFSET end = s->back_offsets[row + 1];
    COUNT sum = 0;
#if EXACT
    for (OFFSET e = s->back_offsets[row]; e < end; e++)
        plus(s->to, &sum, at[columns[e]] == start ? values[columns[e]] : 0);
#else
#pragma omp simd reduction(+ : sum)
    for (OFFSET e = s->back_offsets[row]; e < end; e++)
        /* mutant: == start -> >= 0 : test_edges_inside_a_level_are_on_no_path */
        sum += at[columns[e]] == start ? values[columns[e]] : 0;
#endif
    return sum;
}

static void pull_rows(void *argument, int64_t first, int64_t last) {
    const step *s = argument;
    const uint32_t *rows = s->to->order + s->to->begins[s->goal];
    for (int64_t k = first; k < last; k++)
        plus(s->to, s->to->values + rows[k], gather(s, rows[k]));
}

static void carry(step *s, int threads, int pull) {
    const int64_t *begins = pull ? s->to->begins + s->goal : s->from->begins + s->start;
    s->shared = threads > 1;
    team_for(threads, begins[1] - begins[0], s->shared ? GRAIN : TURN, pull ? pull_rows : push_rows,
             s);
}

static int64_t edges_of(const leveled *r, int32_t level, const OFFSET *offsets) {
    int64_t edges = 0;
    for (int64_t k = r->begins[level]; k < r->begins[level + 1]; k++)
        edges += (int64_t)(offsets[r->order[k] + 1] - offsets[r->order[k]]);
    return edges;
}

/* Add the values of a level to those of another, along edges given by both ends, or by the first
 * alone, which are pushed. */
void carry_along(const OFFSET *offsets, const uint32_t *columns, const OFFSET *back_offsets,
                 const uint32_t *back_columns, const leveled *from, leveled *to, int32_t start,
                 int32_t goal, int threads) {
    step s = {offsets, back_offsets, columns, back_columns, from, to, start, goal, 0};
    carry(&s, threads,
          back_offsets && edges_of(to, goal, back_offsets) <= 2 * edges_of(from, start, offsets));
}

/* Add up values of a whole graph from the first level to the last of so many; return the first
 * level where a value passed 64 bits, or 0. */
int64_t carry_down(const OFFSET *offsets, const uint32_t *columns, const OFFSET *back_offsets,
                   const uint32_t *back_columns, leveled *r, int64_t levels, int threads) {
    int64_t passed = 0;
    for (int32_t level = 1; level < levels; level++) {
        carry_along(offsets, columns, back_offsets, back_columns, r, r, level - 1, level, threads);
        if (r->passed && !passed) passed = level;
    }
    return passed;
}

#if !EXACT
#define BIG 0x1p500
#define SMALL 0x1p-500
#define LEAST 0x1p-900 /* n / LEAST is a number */
#define MANY 16 /* a level with this share of all edges is found first, then counted */

/* The arrays of all shares, or of one: */
typedef struct {
    int64_t n, active;                       /* vertices, and those with edges */
    int64_t shares, count;                   /* of sources */
    const OFFSET *offsets, *in_offsets;      /* [n + 1], the same where symmetric */
    const uint32_t *columns, *in_columns;    /* [edges] */
    const uint32_t *sources;                 /* [count], numbers */
    double *paths, *coef;                    /* [shares, n] each; paths are 0 between searches */
    int32_t *level;                          /* [shares, n], -1 between searches */
    uint32_t *queue;                         /* [shares, n + 1], vertices by level */
    int64_t *begins;                         /* [shares, n + 2], where each level begins in it */
    int64_t *out, *into;                     /* [shares, n + 2], edges of each level */
    double *of_share;                        /* [shares, n], dependencies on each vertex so far */
    uint8_t *scaled;                         /* [shares, n + 2], levels whose numbers were scaled */
    double *value;                           /* [n], added to */
    int32_t sparse;                          /* whether each pull costs few edges */
    uint8_t *far;                            /* [n], sources that are left out, by number */
} sources;

/* Count the edges of a level. */
static void tally(const sources *p, int32_t level) {
    int64_t out = 0, into = 0;
    for (int64_t k = p->begins[level]; k < p->begins[level + 1]; k++) {
        const uint32_t u = p->queue[k];
        out += (int64_t)(p->offsets[u + 1] - p->offsets[u]);
        into += (int64_t)(p->in_offsets[u + 1] - p->in_offsets[u]);
    }
    p->out[level] = out, p->into[level] = into;
}

/* Find the level after one, and count paths to it on the way or not.  The level of a neighbour
 * is unpredictable, so nothing branches on it.  Once every vertex that has edges is found, no
 * row is left to look at.  Returns whether the call is to end. */
static inline int find_level(const sources *p, int32_t level, const int counts) {
    const int64_t first = p->begins[level], last = p->begins[level + 1];
    int32_t *restrict levels = p->level;
    double *restrict paths = p->paths;
    uint32_t *restrict queue = p->queue;
    const uint32_t *restrict columns = p->columns;
    int64_t tail = last;
    for (int64_t k = first; k < last && last < p->active; k++) {
        if (!(k % TURN) && team_ended()) return 1;
        const uint32_t u = queue[k];
        const OFFSET end = p->offsets[u + 1];
        const double x = paths[u];
        for (OFFSET e = p->offsets[u]; e < end; e++) {
            const uint32_t v = columns[e];
            const int32_t old = levels[v], now = old < 0 ? level + 1 : old;
            queue[tail] = v;
            tail += old < 0;
            levels[v] = now;
            if (counts) paths[v] += now == level + 1 ? x : 0;
        }
    }
    p->begins[level + 2] = tail;
    return 0;
}

/* Scale the numbers of a level where they are large; return whether they are too far apart. */
static int scale_level(const sources *p, int32_t level) {
    const int64_t first = p->begins[level], last = p->begins[level + 1];
    double most = 0;
    int wide = 0;
    for (int64_t k = first; k < last; k++)
        if (p->paths[p->queue[k]] > most) most = p->paths[p->queue[k]];
    p->scaled[level] = most > BIG;
    for (int64_t k = first; most > BIG && k < last; k++)
        wide |= (p->paths[p->queue[k]] *= SMALL) < LEAST;
    return wide;
}

/* Find the levels from a source and count paths; return the number of levels, 0 where the call
 * is to end.  far: whether numbers are too far apart */
static int32_t count_paths(const sources *p, leveled *down, uint32_t source, int *far) {
    const int64_t many = (int64_t)p->offsets[p->n] / MANY;
    step s = {p->offsets, p->in_offsets, p->columns, p->in_columns, down, down, 0, 0, 0};
    int32_t level = 0;
    p->queue[0] = source;
    p->level[source] = 0;
    p->paths[source] = 1;
    p->begins[0] = 0, p->begins[1] = 1;
    if (!p->sparse) tally(p, 0);
    for (; p->begins[level] < p->begins[level + 1]; level++) {
        const int apart = !p->sparse && p->out[level] > many;
        if (apart ? find_level(p, level, 0) : find_level(p, level, 1)) return 0;
        if (!p->sparse) tally(p, level + 1);
        s.start = level, s.goal = level + 1;
        /* mutant: if (apart) -> if (0) : test_any_graph_and_any_sources */
        if (apart) carry(&s, 1, p->into[level + 1] <= 2 * p->out[level]);
        *far |= scale_level(p, level + 1);
    }
    return level;
}

/* Add up the dependencies of a source, from the deepest level, on which nothing depends. */
static void add_source(const sources *p, uint32_t source) {
    leveled down = {p->n, p->level, p->queue, p->begins, p->paths, 0}, up = down;
    step s = {p->in_offsets, p->offsets, p->in_columns, p->columns, &up, &up, 0, 0, 0};
    int far = 0;
    const int32_t levels = count_paths(p, &down, source, &far);
    up.values = p->coef;
    p->far[source] = far;
    for (int32_t level = far ? 0 : levels - 1; level > 0; level--) {
        const int64_t first = p->begins[level], last = p->begins[level + 1];
        const int deepest = level + 1 == levels;
        /* mutant: p->scaled[level + 1] ? SMALL : 1 -> 1
         * : test_betweenness::test_more_paths_than_a_double_can_count */
        const double scale = p->scaled[level + 1] ? SMALL : 1;
        s.start = level + 1, s.goal = level;
        const int pull = !deepest && (p->sparse || p->out[level] <= 2 * p->into[level + 1]);
        if (!pull)
            for (int64_t k = first; k < last; k++) p->coef[p->queue[k]] = 0;
        if (!pull && !deepest) carry(&s, 1, 0);
        for (int64_t k = first; k < last; k++) {
            if (!(k % TURN) && team_ended()) return;
            const uint32_t u = p->queue[k];
            const double sum = pull ? gather(&s, u) : p->coef[u];
            const double delta = p->paths[u] * (sum * scale);
            p->of_share[u] += delta;
            p->coef[u] = (1 + delta) / p->paths[u];
        }
    }
    for (int64_t k = 0; levels && k < p->begins[levels]; k++)
        p->level[p->queue[k]] = -1, p->paths[p->queue[k]] = 0;
}

static void search_shares(void *argument, int64_t from, int64_t to) {
    for (int64_t t = from; t < to; t++) {
        sources p = *(const sources *)argument;
        p.paths += t * p.n, p.coef += t * p.n, p.level += t * p.n, p.of_share += t * p.n;
        p.out += t * (p.n + 2), p.into += t * (p.n + 2), p.begins += t * (p.n + 2);
        p.queue += t * (p.n + 1), p.scaled += t * (p.n + 2);
        for (int64_t v = 0; v < p.n; v++)
            p.paths[v] = p.of_share[v] = 0, p.level[v] = -1;
        for (int64_t i = t; i < p.count && !team_ended(); i += p.shares)
            add_source(&p, p.sources[i]);
    }
}

static void add_values(void *argument, int64_t from, int64_t to) {
    const sources *p = argument;
    for (int64_t v = from; v < to; v++)
        for (int64_t t = 0; t < p->shares; t++) p->value[v] += p->of_share[t * p->n + v];
}

/* Add to value [n] the dependencies of sources on each vertex, except of a source on itself,
 * and but for those that it sets in far [n]. */
void add_dependencies(sources *all) {
    team_for((int)all->shares, all->shares, 1, search_shares, all);
    team_for((int)all->shares, all->n, 4096, add_values, all);
}
#endif
