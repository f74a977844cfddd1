/* Top-down search with queues per thread (Sevilmis, Sivri, Aydin 2019, Section 4).
 *
 * variants: OFFSET=uint32_t,uint64_t MASKED=0,1
 */
#include "cs406.h"

/* As search_fast; direction is not used.  Returns the levels run, -1 without memory. */
int64_t search_push(const whole_graph *graph, uint32_t root, int threads, int direction,
                    level_record *records, int64_t limit) {
    (void)direction;
    /* mutant: INT64_MAX -> graph->active / 32 : test_methods_that_push_never_pull */
    return search_queues(graph, root, threads, INT64_MAX, records, limit);
}
