/* One pass over edge tuples that compares the results at their two ends.
 *
 * Method: for each tuple the results of both ends are read from a table; faults are
 * counted by kind, the position of the first of each kind is kept, and vertices whose
 * tree edge occurs are marked.  Blocks of tuples are gathered first and checked after,
 * so that many table reads are in flight.
 * Rules: Graph500 specification 2.0, Section "Validation", rules 3, 4 and 5.
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

static inline void judge(tally *t, int64_t position, int64_t u, int64_t v, int64_t a,
                         int64_t b, int parents, uint8_t *seen)
{
    const int64_t la = a >> 32, lb = b >> 32;
    const int ra = la >= 0, rb = lb >= 0;
    const int64_t step = la - lb;
    t->reached += ra | rb; /* mutant: ra | rb -> 2 * (ra | rb) : test_accepts_a_search */
    if (ra != rb) /* mutant: != rb -> && !rb && !ra : test_rejects_exactly_what_is_no_search */
        fault(t, HALF, position);
    /* mutant: 1 || step < -1 -> 2 || step < -2 : test_a_tuple_that_spans_two_levels_is_found */
    else if (ra && (step > 1 || step < -1))
        fault(t, SPAN, position);
    if (parents) {
        if ((int32_t)a == v)
            mark(seen, u);
        if ((int32_t)b == u)
            mark(seen, v);
    } else if (ra && rb) {
        if (step == 1)
            mark(seen, u);
        if (step == -1)
            mark(seen, v);
    }
}

static void judge_block(tally *t, int64_t start, int64_t stop, const int64_t *u,
                        const int64_t *v, int64_t n, const int64_t *words,
                        uint8_t *seen, int parents)
{
    int64_t a[BLOCK], b[BLOCK];
    const int64_t size = stop - start;
    uint64_t bad = 0;
    for (int64_t i = 0; i < size; i++)
        bad |= ((uint64_t)u[start + i] >= (uint64_t)n) |
               ((uint64_t)v[start + i] >= (uint64_t)n);
    if (bad) {
        for (int64_t i = start; i < stop; i++) {
            if ((uint64_t)u[i] >= (uint64_t)n || (uint64_t)v[i] >= (uint64_t)n)
                fault(t, OUTSIDE, i);
            else
                judge(t, i, u[i], v[i], words[u[i]], words[v[i]], parents, seen);
        }
        return;
    }
    for (int64_t i = 0; i < size; i++)
        a[i] = words[u[start + i]];
    for (int64_t i = 0; i < size; i++)
        b[i] = words[v[start + i]];
    for (int64_t i = 0; i < size; i++)
        judge(t, start + i, u[start + i], v[start + i], a[i], b[i], parents, seen);
}

/* A pass that threads share. */
typedef struct {
    int64_t tuples, n;
    const int64_t *u, *v, *words;
    uint8_t *seen;
    int parents;
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
        judge_block(&t, start, stop, p->u, p->v, p->n, p->words, p->seen, p->parents);
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

/* Return the number of tuples with an end that is reached.
 *
 * u, v: [tuples] ends; words: [n] results; seen: [n] marks, set to 1 and never cleared
 * parents: mark x where a tuple joins it to its parent; else, where a tuple joins it to
 *   a vertex one level nearer to the root
 * counts, first: [3] faults by kind and the position of the first (tuples: none):
 *   0 an end outside 0 … n-1, 1 one end reached, 2 levels differ by more than one
 */
int64_t validate_tuples(int64_t tuples, const int64_t *u, const int64_t *v, int64_t n,
                        const int64_t *words, uint8_t *seen, int32_t parents,
                        int32_t threads, int64_t *counts, int64_t *first)
{
    const int64_t blocks = (tuples + BLOCK - 1) / BLOCK;
    pass p = {tuples, n, u, v, words, seen, parents, counts, first, 0};
    for (int k = 0; k < KINDS; k++) {
        counts[k] = 0;
        first[k] = tuples;
    }
    team_for(threads, blocks, BLOCKS, judge_blocks, &p);
    return p.reached;
}
