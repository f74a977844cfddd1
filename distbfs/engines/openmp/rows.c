/* Levels of a part whose rows are with the owners of their vertices, see rows.py.
 *
 * Numbers are those of all vertices with edges, on every part.  A part has out rows and in
 * rows of those that it owns: it pushes from these, and pulls for these alone.  What one
 * part finds all of them mark as visited, after each level.
 *
 * variants: OFFSET=uint32_t,uint64_t MASKED=0,1
 */
#define OWN(g, word) ((g)->expandable[word])
#include "levels.h"

typedef struct {
    whole_graph graph;
    search_state state;
    uint64_t *fresh;     /* [words], found here in this level; zero between levels */
    int64_t *targets;    /* [target_count] not reached */
    int64_t target_count;
    int64_t frontier;    /* vertices of all parts */
} row_share;

/* Begin from roots, [graph.root_count], which all parts know. */
void rows_start(row_share *r, int threads) {
    whole_graph *g = &r->graph;
    clear_visited(g);
    r->state = (search_state){.g = g, .threads = threads, .queue = g->queue[0], .missed = -1,
                              .queued = 1};
    search_state *s = &r->state;
    s->count = r->frontier = visit_roots(g, 0, 0);
    for (int64_t k = 0; k < s->count; k++) {
        s->edges += degree(g, s->queue[k]);
        s->reached += test(g->expandable, s->queue[k]);
    }
}

/* Vertices of the frontier, of all parts; prices of a push and of a pull along these rows;
 * targets that are not reached. */
void rows_work(row_share *r, double *prices, int64_t *counts) {
    int64_t left = 0;
    price(&r->state);
    for (int64_t k = 0; k < r->target_count; k++)
        if (!test(r->graph.visited, (uint32_t)r->targets[k])) r->targets[left++] = r->targets[k];
    r->target_count = left;
    prices[0] = r->state.push_price, prices[1] = r->state.pull_price;
    counts[0] = r->frontier, counts[1] = left;
}

/* Run a level; marks: whether pushes may mark.  Returns edge checks. */
int64_t rows_advance(row_share *r, int pull, int marks) {
    search_state *s = &r->state;
    const whole_graph *g = &r->graph;
    s->level++;
    const int mode = pull ? PULL : choose_push(s, marks);
    const int64_t checks = run_level(s, mode);
    if (s->queued)
        for (int64_t k = 0; k < s->count; k++) set(r->fresh, s->queue[k]);
    else
        for (int64_t w = 0; w < g->words; w++) r->fresh[w] = g->visited[w] & ~g->next[w];
    return checks;
}

/* The first neighbour of v that was visited before this level, whose finds are `found`. */
static uint32_t parent_of(const whole_graph *g, uint32_t v, const uint64_t *found) {
    const uint32_t first = g->first[v];
    /* mutant: !test(found, first) -> 1 : test_directed_parts */
    if (test(g->visited, first) && !test(found, first)) return first;
    OFFSET e = g->in_offsets[v], last = g->in_offsets[v + 1] - 1;
    for (; e < last; e++) {
        uint32_t u = g->in_columns[e];
        /* mutant: !test(found, u) -> 1 : test_directed_parts */
        if (sees_in(g, e) && test(g->visited, u) && !test(found, u)) break;
    }
    return g->in_columns[e];
}

/* Take own vertices that only others have found. */
static void take_others(row_share *r, const uint64_t *found, const uint32_t *own, int64_t count) {
    search_state *s = &r->state;
    const whole_graph *g = &r->graph;
    for (int64_t k = 0; k < count; k++) {
        uint32_t v = own[k];
        reach(g, v, g->parent ? parent_of(g, v, found) : v, s->level);
        if (!s->queued) continue;
        s->queue[s->count++] = v;
        s->edges += degree(g, v);
    }
}

/* Take what all parts have found, [words]; NULL: nothing.  Own vertices that only others
 * found get a neighbour as parent: all that were visited before are one level up. */
void rows_accept(row_share *r, const uint64_t *found) {
    search_state *s = &r->state;
    whole_graph *g = &r->graph;
    uint32_t later[2 * NEAR];
    int64_t owned = 0, count = 0;
    r->frontier = 0;
    for (int64_t w = 0; found && w < g->words; w++) {
        if (!found[w]) continue;
        const uint64_t mine = found[w] & g->expandable[w];
        r->frontier += __builtin_popcountll(found[w]);
        owned += __builtin_popcountll(mine);
        r->fresh[w] = 0;
        uint64_t rest = mine & ~g->visited[w];
        g->visited[w] |= found[w];
        for (; rest; rest &= rest - 1) {
            uint32_t v = later[count++] = (uint32_t)(w * 64 + __builtin_ctzll(rest));
            near_results(g, v);
        }
        if (count < NEAR) continue;
        take_others(r, found, later, count);
        count = 0;
    }
    take_others(r, found, later, count);
    if (!s->queued) s->count = owned;
    s->reached += owned;
}

/* Give own vertices that were not reached level and parent -1. */
void rows_finish(row_share *r) { finish_search(&r->graph); }
