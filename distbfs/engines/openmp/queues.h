/* Queues per thread, joined by a prefix sum over their lengths.
 *
 * Source: Sevilmis, Sivri, Aydin 2019, Section 4.2.1.  Each thread writes the vertices
 * that it finds to a queue of its own; when all are done the start of each queue's part of the
 * shared frontier is known, and all are copied in parallel.
 */
#ifndef DISTBFS_QUEUES_H
#define DISTBFS_QUEUES_H
#include "whole.h"
#include <stdlib.h>

typedef struct {
    uint32_t *items;
    int64_t count, capacity;
} thread_queue;

static inline int append(thread_queue *q, uint32_t v) {
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

/* Copy queue t to its place in the frontier. */
static inline void join_queue(const thread_queue *queues, int64_t t, uint32_t *frontier) {
    int64_t at = 0;
    for (int64_t k = 0; k < t; k++) at += queues[k].count;
    if (queues[t].count)
        memcpy(frontier + at, queues[t].items, sizeof(uint32_t) * (size_t)queues[t].count);
}

static inline void free_queues(thread_queue *queues, int threads) {
    for (int t = 0; t < threads; t++) free(queues[t].items);
    free(queues);
}
#endif
