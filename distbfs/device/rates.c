/* Memory rates of a CPU, for the limit of a search: copying, random bit tests.
 *
 * Both run on several threads; places are drawn as in rates.cu. */
#include "team.h"
#include <string.h>

#define PIECE (1 << 20) /* bytes that a thread copies at once */
#define SHARES 16       /* into which the bit tests of a thread are cut */

typedef struct {
    void *to;
    const void *from;
} copy;

static void copy_bytes(void *argument, int64_t low, int64_t high) {
    const copy *c = argument;
    memcpy((char *)c->to + low, (const char *)c->from + low, (size_t)(high - low));
}

/* from, to: [bytes], which do not overlap */
void rates_copy(void *to, const void *from, int64_t bytes, int threads) {
    copy c = {to, from};
    team_for(threads, bytes, PIECE, copy_bytes, &c);
}

typedef struct {
    const uint32_t *words;
    uint32_t bits;
    int64_t each, set;
} bit_tests;

static void test_bits(void *argument, int64_t from, int64_t to) {
    bit_tests *t = argument;
    int64_t set = 0;
    for (int64_t share = from; share < to; share++) {
        uint32_t state = (uint32_t)(share + 1) * 2654435761u;
        for (int64_t k = 0; k < t->each; k++) {
            state = state * 1664525u + 1013904223u;
            const uint32_t at = (uint32_t)((uint64_t)state * t->bits >> 32);
            set += t->words[at >> 5] >> (at & 31) & 1;
        }
    }
    team_add(&t->set, set);
}

/* words: [ceil(bits / 32)]; tests: of each thread; returns how many bits were set */
int64_t rates_bit_tests(const uint32_t *words, uint32_t bits, int64_t tests, int threads) {
    bit_tests t = {words, bits, tests / SHARES, 0};
    team_for(threads, (int64_t)threads * SHARES, 1, test_bits, &t);
    return t.set;
}
