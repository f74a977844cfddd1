/* Queues per thread, joined by a prefix sum over their lengths.
 *
 * Source: Sevilmis, Sivri, Aydin 2019, Section 4.2.1.  Each thread writes the vertices
 * that it finds to a queue of its own; after a barrier each knows where its part of the
 * shared frontier begins, and all copy at the same time.
 */
#ifndef DISTBFS_QUEUES_H
#define DISTBFS_QUEUES_H
#include "whole.h"
#include <stdlib.h>

#define MAX_THREADS 4096

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

/* Copy this thread's queue to its place in the frontier; all threads call it. */
static inline void join_queues(const thread_queue *queues, uint32_t *frontier) {
    int id = omp_get_thread_num();
    int64_t at = 0;
    for (int t = 0; t < id; t++) at += queues[t].count;
    if (queues[id].count)
        memcpy(frontier + at, queues[id].items, sizeof(uint32_t) * (size_t)queues[id].count);
}

static inline void free_queues(thread_queue *queues, int threads) {
    for (int t = 0; t < threads; t++) free(queues[t].items);
    free(queues);
}
#endif
