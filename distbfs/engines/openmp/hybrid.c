/* Top-down and bottom-up levels over queues per thread, joined by a prefix sum over their
 * lengths: top-down while the frontier is sparse, bottom-up once it holds n / 32 vertices.
 *
 * Method: each thread writes the vertices that it finds to a queue of its own; when all are
 * done the start of each queue's part of the shared frontier is known, and all are copied in
 * parallel.  Two changes make the results exact under races: a vertex is claimed by an atomic
 * bit before it enters a queue, and the bottom-up level reads a bitmap of the frontier that
 * does not change while it runs.
 * Source: Sevilmis, Sivri, Aydin 2019, Sections 3.1, 4 and Appendices 1 and 2.
 *
 * variants: OFFSET=uint32_t,uint64_t MASKED=0,1
 */
#include "whole.h"
#include <stdlib.h>

/* mutant: 32 / -> 8 / : test_levels_are_pulled_from_a_32nd_of_the_vertices_on */
#define SPARSE 32 /* a frontier of fewer than vertices / 32 is sparse */
#define VERTICES 64 /* of the frontier that a thread takes at once */
#define WORDS 16    /* of the bitmap of unvisited vertices */

typedef struct {
    uint32_t *items;
    int64_t count, capacity;
} thread_queue;

static int append(thread_queue *q, uint32_t v) {
    if (q->count == q->capacity) {
        int64_t capacity = q->capacity ? q->capacity * 2 : 1024;
        uint32_t *items = realloc(q->items, sizeof(uint32_t) * (size_t)capacity);
        if (!items) return 0;
        q->items = items;
        q->capacity = capacity;
    }
    q->items[q->count++] = v;
    return 1;
}

/* A level that threads share; queues: [threads] */
typedef struct {
    whole_graph *g;
    uint32_t *frontier;
    int64_t count, level, next, checks, found;
    thread_queue *queues;
    int failed;
} queue_level;

/* Each thread pushes its share of the frontier into its own queue. */
static void top_down(void *argument, int id) {
    queue_level *l = argument;
    whole_graph *g = l->g;
    thread_queue *mine = l->queues + id;
    int64_t checks = 0, from, to;
    while (team_chunk(&l->next, l->count, VERTICES, &from, &to))
        for (int64_t k = from; k < to; k++) {
            uint32_t u = l->frontier[k];
            checks += degree(g, u);
            for (OFFSET e = g->offsets[u]; e < g->offsets[u + 1]; e++) {
                uint32_t v = g->columns[e];
                if (!sees(g, e) || !claim(g->visited, v)) continue;
                reach(g, v, u, (int32_t)l->level);
                if (!append(mine, v)) l->failed = 1;
            }
        }
    team_add(&l->checks, checks);
    team_add(&l->found, mine->count);
}

static void set_frontier(void *argument, int64_t from, int64_t to) {
    const queue_level *l = argument;
    for (int64_t k = from; k < to; k++)
        __atomic_fetch_or(l->g->next + (l->frontier[k] >> 6),
                          UINT64_C(1) << (l->frontier[k] & 63), __ATOMIC_RELAXED);
}

/* Each unvisited vertex looks for a neighbour in the frontier bitmap `next`. */
static void bottom_up(void *argument, int id) {
    queue_level *l = argument;
    whole_graph *g = l->g;
    thread_queue *mine = l->queues + id;
    int64_t checks = 0, from, to;
    while (team_chunk(&l->next, g->words, WORDS, &from, &to))
        for (int64_t w = from; w < to; w++) {
            uint64_t found = 0;
            for (uint64_t rest = ~g->visited[w]; rest; rest &= rest - 1) {
                uint32_t v = (uint32_t)(w * 64 + __builtin_ctzll(rest));
                for (OFFSET e = g->in_offsets[v]; e < g->in_offsets[v + 1]; e++) {
                    checks++;
                    if (!sees_in(g, e) || !test(g->next, g->in_columns[e])) continue;
                    reach(g, v, g->in_columns[e], (int32_t)l->level);
                    if (!append(mine, v)) l->failed = 1;
                    found |= rest & -rest;
                    break;
                }
            }
            g->visited[w] |= found;
        }
    team_add(&l->checks, checks);
    team_add(&l->found, mine->count);
}

/* Copy queues to their places in the frontier. */
static void join_queues(void *argument, int64_t from, int64_t to) {
    const queue_level *l = argument;
    int64_t at = 0;
    for (int64_t t = 0; t < to; at += l->queues[t++].count)
        if (t >= from && l->queues[t].count)
            memcpy(l->frontier + at, l->queues[t].items,
                   sizeof(uint32_t) * (size_t)l->queues[t].count);
}

/* As search_fast: direction 0 switches, 1 stays top-down, 2 stays bottom-up.  Returns the levels
 * run, -1 without memory. */
int64_t search_hybrid(const whole_graph *graph, int threads, int direction,
                      level_record *records) {
    whole_graph copy = *graph;
    whole_graph *g = &copy;
    /* frontier vertices from which levels go bottom-up */
    int64_t switch_at = direction == 2 ? 0 : (g->active + SPARSE - 1) / SPARSE;
    /* mutant: == 1) -> == 3) : test_methods_that_push_never_pull */
    if (direction == 1) switch_at = INT64_MAX;
    if (threads > TEAM_MOST) threads = TEAM_MOST;
    thread_queue *queues = calloc((size_t)threads, sizeof(thread_queue));
    if (!queues) return -1;
    queue_level l = {.g = g, .frontier = g->queue[0], .queues = queues};
    int stopped = 0;
    l.count = start_search(g);
    while (l.count && !l.failed && !ends_with(g, l.level)) {
        stopped = team_stops(g->stop);
        if (stopped) break;
        double began = records ? team_seconds() : 0;
        int up = l.count >= switch_at;
        l.level++;
        l.next = l.checks = l.found = 0;
        for (int t = 0; t < threads; t++) queues[t].count = 0;
        if (up) {
            memset(g->next, 0, (size_t)g->words * 8);
            team_for(threads, l.count, 4096, set_frontier, &l);
        }
        team_run(threads, up ? bottom_up : top_down, &l);
        team_for(threads, threads, 1, join_queues, &l);
        note_level(records, l.level, began,
                   (level_record){up ? PULL : PUSH, l.count, l.checks, l.found, 0});
        l.count = l.found;
    }
    for (int t = 0; t < threads; t++) free(queues[t].items);
    free(queues);
    finish_search(g);
    if (stopped) return STOPPED;
    return l.failed ? -1 : l.level;
}
