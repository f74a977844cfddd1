/* Rates that the limit of a search on a CPU is made from: copying, random bit tests.
 *
 * Both run on several threads; places are drawn as in rates.cu. */
#include <omp.h>
#include <stdint.h>
#include <string.h>

/* from, to: [bytes], which do not overlap */
void rates_copy(void *to, const void *from, int64_t bytes, int threads) {
#pragma omp parallel num_threads(threads)
    {
        const int64_t count = omp_get_num_threads(), mine = omp_get_thread_num();
        const int64_t low = bytes * mine / count, high = bytes * (mine + 1) / count;
        memcpy((char *)to + low, (const char *)from + low, (size_t)(high - low));
    }
}

/* words: [ceil(bits / 32)]; tests: of each thread; returns how many bits were set */
int64_t rates_bit_tests(const uint32_t *words, uint32_t bits, int64_t tests, int threads) {
    int64_t found = 0;
#pragma omp parallel num_threads(threads) reduction(+ : found)
    {
        uint32_t state = (uint32_t)(omp_get_thread_num() + 1) * 2654435761u;
        for (int64_t k = 0; k < tests; k++) {
            state = state * 1664525u + 1013904223u;
            const uint32_t at = (uint32_t)((uint64_t)state * bits >> 32);
            found += words[at >> 5] >> (at & 31) & 1;
        }
    }
    return found;
}
