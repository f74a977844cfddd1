/* One pass over edge tuples that compares the results at their two ends.
 *
 * Method: blocks of tuples are taken in three steps, so that many reads at random are in
 * flight: the levels of all ends; then the tuples that may be tree edges are listed; then
 * their parents are compared, and vertices whose tree edge occurs are marked.  Whether any
 * tuple is wrong is all that is said of faults.
 * Rules: Graph500 specification 2.0, Section "Validation", rules 3, 4 and 5.
 *
 * Of a symmetric graph each tuple is two arcs, of a directed one it is one.
 */
#include "../device/team.h"
#include <stdint.h>

enum { BLOCK = 256, BLOCKS = 64 /* that a thread takes at once */ };

/* A pass that threads share; see scan_tuples. */
typedef struct {
    int64_t tuples, n;
    const int64_t *u, *v, *parent;
    const int32_t *level;
    uint8_t *seen;
    int directed;
    int64_t reached, wrong;
} pass;

/* Return how many tuples leave a reached vertex, -1 if one is wrong. */
static int64_t scan_block(const pass *p, int64_t start, int64_t size)
{
    const int64_t *u = p->u + start, *v = p->v + start;
    int32_t a[BLOCK], b[BLOCK];
    int64_t child[BLOCK], of[BLOCK], reached = 0, listed = 0;
    int wrong = 0;
    for (int64_t i = 0; i < size; i++)
        wrong |= ((uint64_t)u[i] >= (uint64_t)p->n) | ((uint64_t)v[i] >= (uint64_t)p->n);
    if (wrong)
        return -1;
    for (int64_t i = 0; i < size; i++)
        a[i] = p->level[u[i]];
    for (int64_t i = 0; i < size; i++)
        b[i] = p->level[v[i]];
    for (int64_t i = 0; i < size; i++) {
        const int64_t step = (int64_t)b[i] - a[i];
        const int there = a[i] >= 0;
        /* mutant: & !p->directed -> & 1 : test_one_arc_turned_round */
        const int back = (b[i] >= 0) & !p->directed;
        /* mutant: b[i] < 0 -> 0 : test_rejects_exactly_what_is_no_search */
        wrong |= there & ((b[i] < 0) | (step > 1));
        /* mutant: < -1 -> < -2 : test_a_tuple_that_spans_two_levels_is_found */
        wrong |= back & ((a[i] < 0) | (step < -1));
        reached += there | back;
        const int down = there & (step == 1), up = back & (step == -1);
        child[listed] = down ? v[i] : u[i];
        of[listed] = down ? u[i] : v[i];
        listed += down | up;
    }
    for (int64_t k = 0; p->parent && k < listed; k++)
        of[k] = p->parent[child[k]] == of[k] ? child[k] : -1;
    for (int64_t k = 0; k < listed; k++) {
        const int64_t x = p->parent ? of[k] : child[k];
        if (x >= 0 && !__atomic_load_n(&p->seen[x], __ATOMIC_RELAXED))
            __atomic_store_n(&p->seen[x], 1, __ATOMIC_RELAXED);
    }
    return wrong ? -1 : reached;
}

static void scan_blocks(void *argument, int64_t from, int64_t to)
{
    pass *p = argument;
    int64_t reached = 0, wrong = 0;
    for (int64_t block = from; block < to; block++) {
        const int64_t start = block * BLOCK, left = p->tuples - start;
        const int64_t some = scan_block(p, start, left < BLOCK ? left : BLOCK);
        reached += some;
        wrong += some < 0;
    }
    team_add(&p->reached, reached);
    team_add(&p->wrong, wrong);
}

/* Return the number of tuples of which an arc leaves a reached vertex, or -1 if an end is
 * outside 0 … n-1, or an arc leads from a reached vertex to an unreached one or skips a
 * level.
 *
 * u, v: [tuples] ends; level, parent: [n] results, parent null: levels only
 * seen: [n] marks, set to 1 and never cleared: an arc comes from the parent, or where there
 *   are levels only from a vertex one level nearer to the root
 * directed: a tuple is the arc (u, v); else it is (v, u), too
 */
int64_t scan_tuples(int64_t tuples, const int64_t *u, const int64_t *v, int64_t n,
                    const int32_t *level, const int64_t *parent, uint8_t *seen,
                    int32_t directed, int32_t threads)
{
    pass p = {tuples, n, u, v, parent, level, seen, directed, 0, 0};
    team_for(threads, (tuples + BLOCK - 1) / BLOCK, BLOCKS, scan_blocks, &p);
    return p.wrong ? -1 : p.reached;
}
