/* Levels of pairs of vertices by edge lookups, without a traversal.
 *
 * Vertices at distance i from one end are looked up in the row of the other end (levels 1
 * and 2), or in the rows of its neighbours (levels 3 to 5).  Rows ascend by rank, which
 * puts hubs first, so that a lookup is a binary search, and in a graph with hubs nearly
 * all pairs end after some tens of them.  Levels 1 to 4 are told only when all lookups of
 * the level before have failed; for level 5 the first 32 columns of rows are looked up.
 * Pairs that take more than `most` lookups stay open, and so do all later ones in a graph
 * where many do.
 *
 * Sources: Akiba, Iwata, Yoshida, Fast exact shortest-path distance queries, SIGMOD 2013
 * (hubs cover nearly all pairs); Pohl, Bi-directional search, 1971.
 *
 * variants: OFFSET=uint32_t,uint64_t
 */
#include "../device/team.h"

#ifndef OFFSET
#define OFFSET uint32_t
#endif
#define OPEN (-2)   /* a level that is not known */
#define BESIDE 0    /* no lookup of this kind succeeds */
#define STRIDE 32   /* columns of a row that are looked at before those of the next row */
#define TRIED 32    /* pairs after which lookups may be given up */
#define SHARE 4     /* they are where one of so many pairs stays open */

typedef struct {
    const OFFSET *out_offsets;   /* [n + 1], edges out */
    const uint32_t *out_columns; /* [edges], each row ascending by rank */
    const OFFSET *in_offsets;    /* [n + 1], edges in; the same where symmetric */
    const uint32_t *in_columns;  /* [edges] */
    const uint32_t *rank;        /* [n] */
    const uint32_t *source, *target; /* [count] */
    int32_t *level;              /* [count] */
    int64_t count, most;         /* most: lookups of a pair */
    int64_t next;                /* 0 */
    int64_t tried, open;         /* 0 at first: pairs of all calls */
} pair_lookups;

/* An end of a pair: the rows of which it is one. */
typedef struct {
    const OFFSET *offsets;
    const uint32_t *columns, *rank;
    uint32_t v;
    OFFSET begin, degree;
} pair_end;

static pair_end end_of(const OFFSET *offsets, const uint32_t *columns, const uint32_t *rank,
                       uint32_t v) {
    pair_end e = {offsets, columns, rank, v, offsets[v], offsets[v + 1] - offsets[v]};
    return e;
}

static void swap_ends(pair_end *a, pair_end *b) {
    pair_end c = *a;
    *a = *b;
    *b = c;
}

/* Whether x is in row v of an end's rows. */
static int has_edge(const pair_end *e, uint32_t v, uint32_t x) {
    OFFSET low = e->offsets[v], high = e->offsets[v + 1];
    uint32_t wanted = e->rank[x];
    const OFFSET last = high;
    while (low < high) {
        OFFSET middle = low + (high - low) / 2;
        if (e->rank[e->columns[middle]] < wanted) low = middle + 1;
        else high = middle;
    }
    return low < last && e->columns[low] == x;
}

/* Whether x is in the row of a neighbour of `far`, OPEN where no lookups are left. */
static int beside(const pair_end *far, uint32_t x, int64_t *left) {
    for (OFFSET j = 0; j < far->degree; j++) {
        if (!(*left)--) return OPEN;
        if (has_edge(far, far->columns[far->begin + j], x)) return 1;
    }
    return BESIDE;
}

/* The edges of all neighbours of an end. */
static uint64_t edges_beyond(const pair_end *e) {
    uint64_t sum = 0;
    for (OFFSET i = 0; i < e->degree; i++) {
        uint32_t u = e->columns[e->begin + i];
        sum += e->offsets[u + 1] - e->offsets[u];
    }
    return sum;
}

/* Whether an end has one neighbour, which leads back to it alone. */
static int closed(const pair_end *e) {
    if (e->degree != 1) return 0;
    uint32_t u = e->columns[e->begin];
    OFFSET at = e->offsets[u], degree = e->offsets[u + 1] - at;
    return !degree || (degree == 1 && e->columns[at] == e->v);
}

/* Up to level 3, of which near has the shorter row. */
static int near_level(const pair_end *near, const pair_end *far, int64_t *left) {
    if (has_edge(far, far->v, near->v)) return 1;
    for (OFFSET i = 0; i < near->degree; i++) {
        if (!(*left)--) return OPEN;
        if (has_edge(far, far->v, near->columns[near->begin + i])) return 2;
    }
    if (closed(near) || closed(far)) return -1;
    for (OFFSET i = 0; i < near->degree; i++) {
        int known = beside(far, near->columns[near->begin + i], left);
        if (known) return known == OPEN ? OPEN : 3;
    }
    return BESIDE;
}

/* Whether vertices two edges from e, or the first beyond these, are beside `far`. */
static int beside_two_away(const pair_end *e, const pair_end *far, int beyond, int64_t *left) {
    int more = 1, known;
    for (OFFSET first = 0; more; first += STRIDE) {
        more = 0;
        for (OFFSET i = 0; i < e->degree; i++) {
            uint32_t u = e->columns[e->begin + i];
            OFFSET at = e->offsets[u] + first, end = e->offsets[u + 1];
            if (at >= end) continue;
            more = 1; /* mutant: more = 1 -> : test_lookups::test_all_columns_count */
            if (at + STRIDE < end) end = at + STRIDE;
            for (; at < end; at++) {
                uint32_t y = e->columns[at];
                OFFSET from = e->offsets[y], to = e->offsets[y + 1];
                if (!beyond && (known = beside(far, y, left))) return known;
                if (from + STRIDE < to) to = from + STRIDE;
                for (; beyond && from < to; from++)
                    if ((known = beside(far, e->columns[from], left))) return known;
            }
        }
    }
    return BESIDE;
}

static int level_by_lookups(pair_end s, pair_end t, int64_t left) {
    int known;
    if (s.v == t.v) return 0;
    if (!s.degree || !t.degree) return -1;
    if (s.degree < t.degree) swap_ends(&s, &t);
    if ((known = near_level(&t, &s, &left))) return known;
    if (s.degree > left || t.degree > left) return OPEN;
    if (edges_beyond(&s) * t.degree < edges_beyond(&t) * s.degree) swap_ends(&s, &t);
    if ((known = beside_two_away(&t, &s, 0, &left))) return known == OPEN ? OPEN : 4;
    return beside_two_away(&t, &s, 1, &left) == 1 ? 5 : OPEN;
}

static int worth_it(const pair_lookups *p) {
    int64_t tried = __atomic_load_n(&p->tried, __ATOMIC_RELAXED);
    return tried < TRIED || SHARE * __atomic_load_n(&p->open, __ATOMIC_RELAXED) < tried;
}

static void look_up_some(void *argument, int id) {
    (void)id;
    pair_lookups *p = argument;
    int64_t from, to;
    while (team_chunk(&p->next, p->count, 8, &from, &to))
        for (int64_t j = from; j < to; j++) {
            uint32_t v = p->source[j], w = p->target[j];
            p->level[j] = OPEN;
            if (!worth_it(p)) continue;
            p->level[j] = level_by_lookups(end_of(p->out_offsets, p->out_columns, p->rank, v),
                                           /* mutant: in_offsets, p->in_columns -> out_offsets,
                                            * p->out_columns : test_lookups::test_any_graph */
                                           end_of(p->in_offsets, p->in_columns, p->rank, w),
                                           p->most);
            team_add(&p->tried, 1);
            team_add(&p->open, p->level[j] == OPEN);
        }
}

/* Set the levels of pairs of vertex numbers, OPEN where they are not known. */
void look_up_pairs(pair_lookups *p, int threads) {
    team_run(p->count < 64 ? 1 : threads, look_up_some, p);
}
