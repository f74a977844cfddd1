/* Tuples with independent uniform ends, by position.
 *
 * End e of the tuple at a position is the high half of n times the hash of the counter
 * position * 2 + e.  uniform.py has the twin in NumPy, uniform.cu that in CUDA.
 */
#include "hashing.h"

static inline int64_t scaled(uint64_t x, uint64_t n) {
    return (int64_t)((unsigned __int128)x * n >> 64);
}

/* u, v: [count] */
void uniform(int64_t start, int64_t count, uint64_t key, uint64_t n, int64_t *u,
             int64_t *v, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t k = 0; k < count; k++) {
        uint64_t counter = (uint64_t)(start + k) * 2;
        u[k] = scaled(mix64(key + counter * GOLDEN), n);
        v[k] = scaled(mix64(key + (counter + 1) * GOLDEN), n);
    }
}
