/* One pass over edge tuples that compares the results at their two ends.
 *
 * Method: for each tuple the results of both ends are read from a table; faults are
 * counted by kind, the position of the first of each kind is kept, and vertices whose
 * tree edge occurs are marked.  Blocks of tuples are gathered first and checked after,
 * so that many table reads are in flight.
 * Rules: Graph500 specification 2.0, Section "Validation", rules 3, 4 and 5.
 *
 * Of a symmetric graph each tuple is two arcs, of a directed one it is one.
 *
 * Data encoding: words[x] = level · 2^32 + (uint32) parent; -1 is unreached / none.
 */
#include "../device/team.h"
#include <stdint.h>

enum { BLOCK = 256, BLOCKS = 64 /* that a thread takes at once */ };
enum { OUTSIDE = 0, HALF = 1, SPAN = 2, KINDS = 3 };

typedef struct {
    int64_t reached;
    int64_t counts[KINDS];
    int64_t first[KINDS];
} tally;

static inline void fault(tally *t, int kind, int64_t position)
{
    t->counts[kind]++;
    if (position < t->first[kind])
        t->first[kind] = position;
}

static inline void mark(uint8_t *seen, int64_t x)
{
    if (!__atomic_load_n(&seen[x], __ATOMIC_RELAXED))
        __atomic_store_n(&seen[x], 1, __ATOMIC_RELAXED);
}

/* What to check.
 *
 * parents: an arc marks a vertex whose parent it comes from; else one that it comes to from
 *   a vertex one level nearer to the root
 * directed: a tuple is the arc (u, v); else it is (v, u), too
 */
typedef struct {
    int parents, directed;
    int64_t n;
    const int64_t *words;
    uint8_t *seen;
} checks;

/* The arc from u, whose word is a, to v, whose word is b. */
static inline void judge_arc(const checks *c, tally *t, int64_t position, int64_t u,
                             int64_t v, int64_t a, int64_t b)
{
    const int64_t from = a >> 32, to = b >> 32;
    /* mutant: to < 0 -> 0 : test_rejects_exactly_what_is_no_search */
    if (from >= 0 && to < 0)
        fault(t, HALF, position);
    /* mutant: > 1 -> > 2 : test_a_tuple_that_spans_two_levels_is_found */
    else if (from >= 0 && to - from > 1)
        fault(t, SPAN, position);
    if (c->parents ? (int32_t)b == u : from >= 0 && to - from == 1)
        mark(c->seen, v);
}

static inline void judge(const checks *c, tally *t, int64_t position, int64_t u, int64_t v,
                         int64_t a, int64_t b)
{
    judge_arc(c, t, position, u, v, a, b);
    if (!c->directed) /* mutant: !c->directed -> 1 : test_one_arc_turned_round */
        judge_arc(c, t, position, v, u, b, a);
    /* mutant: b >= 0 && !c->directed -> b >= 0 : test_accepts_a_search */
    t->reached += a >= 0 || (b >= 0 && !c->directed);
}

static void judge_block(const checks *c, tally *t, int64_t start, int64_t stop,
                        const int64_t *u, const int64_t *v)
{
    int64_t a[BLOCK], b[BLOCK];
    const int64_t size = stop - start, n = c->n, *words = c->words;
    uint64_t bad = 0;
    for (int64_t i = 0; i < size; i++)
        bad |= ((uint64_t)u[start + i] >= (uint64_t)n) |
               ((uint64_t)v[start + i] >= (uint64_t)n);
    if (bad) {
        for (int64_t i = start; i < stop; i++) {
            if ((uint64_t)u[i] >= (uint64_t)n || (uint64_t)v[i] >= (uint64_t)n)
                fault(t, OUTSIDE, i);
            else
                judge(c, t, i, u[i], v[i], words[u[i]], words[v[i]]);
        }
        return;
    }
    for (int64_t i = 0; i < size; i++)
        a[i] = words[u[start + i]];
    for (int64_t i = 0; i < size; i++)
        b[i] = words[v[start + i]];
    for (int64_t i = 0; i < size; i++)
        judge(c, t, start + i, u[start + i], v[start + i], a[i], b[i]);
}

/* A pass that threads share. */
typedef struct {
    checks c;
    int64_t tuples;
    const int64_t *u, *v;
    int64_t *counts, *first, reached;
} pass;

static void judge_blocks(void *argument, int64_t from, int64_t to)
{
    pass *p = argument;
    const int64_t tuples = p->tuples;
    tally t = {0, {0, 0, 0}, {tuples, tuples, tuples}};
    for (int64_t block = from; block < to; block++) {
        const int64_t start = block * BLOCK;
        const int64_t stop = start + BLOCK < tuples ? start + BLOCK : tuples;
        judge_block(&p->c, &t, start, stop, p->u, p->v);
    }
    team_add(&p->reached, t.reached);
    for (int k = 0; k < KINDS; k++) {
        team_add(&p->counts[k], t.counts[k]);
        int64_t first = __atomic_load_n(&p->first[k], __ATOMIC_RELAXED);
        while (t.first[k] < first &&
               !__atomic_compare_exchange_n(&p->first[k], &first, t.first[k], 0,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            ;
    }
}

/* Return the number of tuples of which an arc leaves a reached vertex.
 *
 * u, v: [tuples] ends; words: [n] results; seen: [n] marks, set to 1 and never cleared
 * parents, directed: as of `checks`
 * counts, first: [3] faults by kind and the position of the first (tuples: none):
 *   0 an end outside 0 … n-1, 1 an arc from a reached to an unreached vertex, 2 an arc that
 *   skips a level
 */
int64_t validate_tuples(int64_t tuples, const int64_t *u, const int64_t *v, int64_t n,
                        const int64_t *words, uint8_t *seen, int32_t parents,
                        int32_t directed, int32_t threads, int64_t *counts, int64_t *first)
{
    const int64_t blocks = (tuples + BLOCK - 1) / BLOCK;
    pass p = {{parents, directed, n, words, seen}, tuples, u, v, counts, first, 0};
    for (int k = 0; k < KINDS; k++) {
        counts[k] = 0;
        first[k] = tuples;
    }
    team_for(threads, blocks, BLOCKS, judge_blocks, &p);
    return p.reached;
}
