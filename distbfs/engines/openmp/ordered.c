/* One thread and one queue: vertices are found in the order of a textbook search.
 *
 * The neighbours of a vertex are taken from left to right in its row, and the first to
 * find a vertex is its parent, so that order and parents follow from the rows alone.
 * The queue, graph->queue[0], keeps all vertices that were found.
 *
 * variants: OFFSET=uint32_t,uint64_t MASKED=0,1
 */
#include "whole.h"

/* As search_fast; direction and threads are not used.  Returns the levels run
 * or STOPPED. */
int64_t search_ordered(const whole_graph *graph, int threads, int direction,
                       level_record *records) {
    (void)threads, (void)direction;
    whole_graph copy = *graph;
    whole_graph *g = &copy;
    uint32_t *queue = g->queue[0];
    int64_t first = 0, last = start_search(g), level = 0;
    int stopped = 0;
    while (first < last && !ends_with(g, level)) {
        stopped = team_stops(g->stop);
        if (stopped) break;
        double began = records ? team_seconds() : 0;
        int64_t tail = last, checks = 0;
        level++;
        for (int64_t k = first; k < last; k++) {
            if (!(k & 4095) && team_ended()) break;
            uint32_t u = queue[k];
            checks += degree(g, u);
            for (OFFSET e = g->offsets[u]; e < g->offsets[u + 1]; e++) {
                /* mutant: [e] -> [g->offsets[u] + g->offsets[u + 1] - 1 - e]
                 * : test_directed, test_graph */
                uint32_t v = g->columns[e];
                if (!sees(g, e) || test(g->visited, v)) continue;
                set(g->visited, v);
                reach(g, v, u, (int32_t)level);
                queue[tail++] = v;
            }
        }
        note_level(records, level, began,
                   (level_record){PUSH, last - first, checks, tail - last, 0});
        first = last;
        last = tail;
    }
    finish_search(g);
    return stopped ? STOPPED : level;
}
