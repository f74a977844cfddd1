/* Top-down and bottom-up levels over queues per thread.
 *
 * Source: Sevilmis, Sivri, Aydin 2019, Sections 3.1, 4.2 and Appendices 1 and 2.  Two
 * changes make the results exact under races: a vertex is claimed by an atomic bit
 * before it enters a queue, and the bottom-up level reads a bitmap of the frontier that
 * does not change while it runs.
 */
#ifndef DISTBFS_CS406_H
#define DISTBFS_CS406_H
#include "queues.h"

/* Each thread of the team pushes its share of the frontier into its own queue. */
static inline int64_t top_down(whole_graph *g, const uint32_t *frontier, int64_t count,
                               int32_t level, thread_queue *mine, int *failed) {
    int64_t checks = 0;
#pragma omp for schedule(guided)
    for (int64_t k = 0; k < count; k++) {
        uint32_t u = frontier[k];
        checks += degree(g, u);
        for (OFFSET e = g->offsets[u]; e < g->offsets[u + 1]; e++) {
            uint32_t v = g->columns[e];
            if (!claim(g->visited, v)) continue;
            reach(g, v, u, level);
            if (!append(mine, v)) *failed = 1;
        }
    }
    return checks;
}

/* Each unvisited vertex looks for a neighbour in the frontier bitmap `next`. */
static inline int64_t bottom_up(whole_graph *g, int32_t level, thread_queue *mine,
                                int *failed) {
    int64_t checks = 0;
#pragma omp for schedule(guided)
    for (int64_t w = 0; w < g->words; w++) {
        uint64_t found = 0;
        for (uint64_t rest = ~g->visited[w]; rest; rest &= rest - 1) {
            uint32_t v = (uint32_t)(w * 64 + __builtin_ctzll(rest));
            for (OFFSET e = g->in_offsets[v]; e < g->in_offsets[v + 1]; e++) {
                checks++;
                if (!test(g->next, g->in_columns[e])) continue;
                reach(g, v, g->in_columns[e], level);
                if (!append(mine, v)) *failed = 1;
                found |= rest & -rest;
                break;
            }
        }
        g->visited[w] |= found;
    }
    return checks;
}

/* The level loop; switch_at: frontier vertices from which levels go bottom-up. */
static inline int64_t search_queues(const whole_graph *graph, uint32_t root, int threads,
                                    int64_t switch_at, level_record *records,
                                    int64_t limit) {
    whole_graph copy = *graph;
    whole_graph *g = &copy;
    thread_queue *queues = calloc((size_t)threads, sizeof(thread_queue));
    if (!queues) return -1;
    int64_t count = 1, checks = 0, level = 0;
    int failed = 0, stopped = 0;
    start_search(g, root);
    uint32_t *frontier = g->queue[0];
    while (count && !failed && !ends_with(g, level)) {
        stopped = g->stop && g->stop();
        if (stopped) break;
        double began = records ? omp_get_wtime() : 0;
        int up = count >= switch_at;
        int64_t next = 0;
        level++;
        checks = 0;
        if (up) memset(g->next, 0, (size_t)g->words * 8);
#pragma omp parallel num_threads(threads) reduction(+ : checks)
        {
            thread_queue *mine = queues + omp_get_thread_num();
            mine->count = 0;
            if (up) {
#pragma omp for schedule(static)
                for (int64_t k = 0; k < count; k++)
                    __atomic_fetch_or(g->next + (frontier[k] >> 6),
                                      UINT64_C(1) << (frontier[k] & 63), __ATOMIC_RELAXED);
                checks += bottom_up(g, (int32_t)level, mine, &failed);
            } else {
                checks += top_down(g, frontier, count, (int32_t)level, mine, &failed);
            }
            __atomic_fetch_add(&next, mine->count, __ATOMIC_RELAXED);
#pragma omp barrier
            join_queues(queues, frontier);
        }
        if (records && level <= limit) {
            level_record r = {up ? PULL : PUSH, count, checks, next, omp_get_wtime() - began};
            records[level - 1] = r;
        }
        count = next;
    }
    free_queues(queues, threads);
    finish_search(g);
    if (stopped) return STOPPED;
    return failed ? -1 : level;
}
#endif
