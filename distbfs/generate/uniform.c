/* Tuples with independent uniform ends, by position.
 *
 * End e of the tuple at a position is the high half of n times the hash of the counter
 * position * 2 + e.  uniform.py has the twin in NumPy, uniform.cu that in CUDA.
 */
#include "../device/team.h"
#include "uniform.h"

#define GRAIN 65536 /* tuples that a thread takes at once */

static inline int64_t scaled(uint64_t x, uint64_t n) {
    return (int64_t)((unsigned __int128)x * n >> 64);
}

static void draw(void *argument, int64_t from, int64_t to) {
    const slice *s = argument;
    for (int64_t k = from; k < to; k++) {
        uint64_t counter = (uint64_t)(s->start + k) * 2;
        s->u[k] = scaled(mix64(s->key + counter * GOLDEN), s->n);
        s->v[k] = scaled(mix64(s->key + (counter + 1) * GOLDEN), s->n);
    }
}

void uniform(slice *s) { team_for(s->threads, s->count, GRAIN, draw, s); }
