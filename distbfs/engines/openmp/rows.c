/* Levels of a part whose rows are with the owners of their vertices, see rows.py.
 *
 * Numbers are those of all vertices with edges, on every part.  A part has out rows and in
 * rows of those that it owns: it pushes from these, and pulls for these alone.  What one
 * part finds all of them mark as visited, after each level.
 *
 * variants: OFFSET=uint32_t,uint64_t MASKED=0,1
 */
#include "levels.h"

typedef struct {
    whole_graph graph;
    search_state state;
    uint64_t *fresh;     /* [words], found here in this level; zero between levels */
    uint32_t *orphans;   /* [owned], own vertices that only others found */
    int64_t orphan_count;
    int64_t *targets;    /* [target_count] not reached */
    int64_t target_count;
    int64_t frontier;    /* vertices of all parts */
} row_share;

static uint64_t owned_bits(const row_share *r, int64_t w, uint64_t bits) {
    return bits & r->graph.expandable[w];
}

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
    r->orphan_count = 0;
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

/* Take what all parts have found, [words]; NULL: nothing. */
void rows_accept(row_share *r, const uint64_t *found) {
    search_state *s = &r->state;
    whole_graph *g = &r->graph;
    int64_t owned = 0;
    r->frontier = 0;
    for (int64_t w = 0; found && w < g->words; w++) {
        if (!found[w]) continue;
        const uint64_t mine = owned_bits(r, w, found[w]);
        r->frontier += __builtin_popcountll(found[w]);
        owned += __builtin_popcountll(mine);
        r->fresh[w] = 0;
        uint64_t rest = found[w] & ~g->visited[w];
        g->visited[w] |= rest;
        for (; rest; rest &= rest - 1) {
            uint32_t v = (uint32_t)(w * 64 + __builtin_ctzll(rest));
            g->level[g->vertices[v]] = s->level;
            if (!(mine >> (v & 63) & 1)) continue;
            /* mutant: = v -> = 0 : test_directed_parts */
            r->orphans[r->orphan_count++] = v;
            if (!s->queued) continue;
            s->queue[s->count++] = v;
            s->edges += degree(g, v);
        }
    }
    if (!s->queued) s->count = owned;
    s->reached += owned;
}

/* Give own vertices that only others found a neighbour one level up as parent: all levels are
 * known here.  Then level and parent -1 to what was not reached. */
void rows_finish(row_share *r) {
    const whole_graph *g = &r->graph;
    for (int64_t k = 0; g->parent && k < r->orphan_count; k++) {
        uint32_t v = r->orphans[k];
        int32_t above = g->level[g->vertices[v]] - 1;
        for (OFFSET e = g->in_offsets[v]; e < g->in_offsets[v + 1]; e++) {
            uint32_t u = g->in_columns[e];
            if (!sees_in(g, e) || !test(g->visited, u)) continue;
            /* mutant: == above -> == above + 1 : test_directed_parts */
            if (g->level[g->vertices[u]] == above) {
                g->parent[g->vertices[v]] = (int32_t)g->names[u];
                break;
            }
        }
    }
    finish_search(g);
}
