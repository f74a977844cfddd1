/* A shortest path by a search from both ends.
 *
 * Method: a search from the sources along edges out and one from the target along edges in
 * go on in turns by whole levels, each time the one whose frontier has fewer edges.  No
 * vertex is in both until an edge leads from one to the other; the first such edge closes a
 * shortest path, since the levels before it have met nowhere.
 * Source: Pohl, Bi-directional search, Machine Intelligence 6 (1971) 127-140.
 *
 * Data encoding: marks[v] says which search has v, found_by[v] from where; queue[k] has all
 * vertices of a search in the order of their levels.
 *
 * variants: OFFSET=uint32_t,uint64_t MASKED=0,1
 */
#include "whole.h"

enum { NO_END, SOURCES, TARGET };

typedef struct {
    const OFFSET *offsets;
    const uint32_t *columns;
    const uint64_t *seen;
    uint32_t *queue;
    uint8_t mark;
    int64_t begin, count; /* the frontier is queue[begin] ... queue[count - 1] */
    int64_t edges;        /* of the frontier */
} end_search;

static void put(const whole_graph *g, end_search *s, uint32_t v, uint32_t from) {
    g->marks[v] = s->mark;
    g->found_by[v] = from;
    s->queue[s->count++] = v;
    s->edges += (int64_t)(s->offsets[v + 1] - s->offsets[v]);
}

/* Advance by a level, or up to an edge (met[0], met[1]) to the other search.  Returns whether
 * there is one. */
static int advance(const whole_graph *g, end_search *s, uint32_t met[2], int64_t *checks) {
    const int64_t end = s->count;
    s->edges = 0;
    for (; s->begin < end; s->begin++) {
        const uint32_t v = s->queue[s->begin];
        for (OFFSET e = s->offsets[v]; e < s->offsets[v + 1]; e++) {
            if (MASKED && !(s->seen[e >> 6] >> (e & 63) & 1)) continue;
            const uint32_t x = s->columns[e];
            ++*checks;
            if (g->marks[x] == s->mark) continue;
            if (g->marks[x]) {
                met[0] = v, met[1] = x;
                return 1;
            }
            put(g, s, x, v);
        }
    }
    return 0;
}

static void forget(const whole_graph *g, const end_search *s) {
    for (int64_t k = 0; k < s->count; k++) g->marks[s->queue[k]] = 0;
}

/* Find a shortest path from the nearest of some sources to another vertex, all of them
 * numbers with edges.  queue[0] then has it from source to target.
 *
 * sources: [count]; checks: [1], how many edges were looked at
 * Returns how many vertices it has, 0 if there is none; STOPPED if stop returned true. */
int64_t search_both_ends(whole_graph *g, const uint32_t *sources, int64_t count,
                         uint32_t target, int64_t *checks) {
    end_search ends[2] = {
        {g->offsets, g->columns, g->seen, g->queue[0], SOURCES, 0, 0, 0},
        {g->in_offsets, g->in_columns, g->in_seen, g->queue[1], TARGET, 0, 0, 0},
    };
    uint32_t met[2];
    int found = 0, stopped = 0;
    g->reached = -1; /* queue[0] has no results any more */
    *checks = 0;
    for (int64_t k = 0; k < count; k++) put(g, &ends[0], sources[k], sources[k]);
    put(g, &ends[1], target, target);
    while (!found && ends[0].begin < ends[0].count && ends[1].begin < ends[1].count) {
        if ((stopped = team_stops(g->stop))) break;
        /* mutant: < ends[0] -> > ends[0] : test_edges_that_are_looked_at */
        const int side = ends[1].edges < ends[0].edges;
        found = advance(g, &ends[side], met, checks);
        if (found && side) {
            const uint32_t near = met[1];
            met[1] = met[0], met[0] = near;
        }
    }
    for (int side = 0; side < 2; side++) forget(g, &ends[side]);
    if (stopped) return STOPPED;
    if (!found) return 0;
    int64_t length = 1;
    for (uint32_t v = met[0]; g->found_by[v] != v; v = g->found_by[v]) length++;
    uint32_t *path = g->queue[0], v = met[0];
    for (int64_t k = length; k > 0; v = g->found_by[v]) path[--k] = v;
    for (v = met[1];; v = g->found_by[v]) {
        path[length++] = v;
        if (g->found_by[v] == v) return length;
    }
}
