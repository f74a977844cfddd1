/* Top-down while the frontier is sparse, bottom-up once it holds n / 32 vertices.
 *
 * Source: Sevilmis, Sivri, Aydin 2019, Sections 3.1.3 and 4.2.2: the frontier is a
 * bitset for the bottom-up levels.
 *
 * variants: OFFSET=uint32_t,uint64_t MASKED=0,1
 */
#include "cs406.h"

/* mutant: 32 / -> 8 / : test_levels_are_pulled_from_a_32nd_of_the_vertices_on */
#define SPARSE 32 /* a frontier of fewer than vertices / 32 is sparse */

/* As search_fast: direction 0 switches, 1 stays top-down, 2 stays bottom-up. */
int64_t search_hybrid(const whole_graph *graph, uint32_t root, int threads, int direction,
                      level_record *records, int64_t limit) {
    int64_t at = (graph->active + SPARSE - 1) / SPARSE;
    /* mutant: == 1) -> == 3) : test_methods_that_push_never_pull */
    if (direction == 1) at = INT64_MAX;
    if (direction == 2) at = 0;
    return search_queues(graph, root, threads, at, records, limit);
}
