/* Rows whose neighbours have words: what a pull reads of them, and what it costs. */
#ifndef DISTBFS_WORD_ROWS_H
#define DISTBFS_WORD_ROWS_H
#include "words.h"

#ifndef OFFSET
#define OFFSET uint32_t
#endif

#define SAMPLES 128      /* rows looked at to price a pull */
#define SAMPLE_DEPTH 64  /* neighbours looked at per sampled row */
#define PUSH_PRICE 3.0   /* price of an edge in a push over one in a pull */
#define PULL_FLOOR 200   /* no pull while the frontier has fewer edges / 200 */

/* OR of the words of a row's columns until all of `todo` is there. */
static inline word pull_row(const OFFSET *offsets, const uint32_t *column, uint64_t v,
                            const word *seen, word todo, int64_t *checks) {
    OFFSET start = offsets[v], end = offsets[v + 1], e = start;
    word all = {0};
    for (; e < end && e < start + 2; e++) {
        all |= seen[column[e]];
        if (!any(todo & ~all)) {
            *checks += (int64_t)(e - start) + 1;
            /* mutant: return all -> continue : test_pulls_leave_a_row_when_all_searches_are_seen */
            return all;
        }
    }
    for (; e + 4 <= end; e += 4) {
        all |= (seen[column[e]] | seen[column[e + 1]]) |
               (seen[column[e + 2]] | seen[column[e + 3]]);
        if (!any(todo & ~all)) {
            *checks += (int64_t)(e - start) + 4;
            return all;
        }
    }
    for (; e < end; e++) all |= seen[column[e]];
    *checks += (int64_t)(end - start);
    return all;
}

/* Expected edge checks of a pull, from a sample of rows, which lack words `own` of `wanted`
 * and look for them in the words `seen` of their columns. */
static inline double pull_price(const OFFSET *offsets, const uint32_t *columns, int64_t rows,
                                const word *own, const word *seen, word wanted, int64_t level) {
    int64_t checks = 0;
    uint64_t random = (uint64_t)(level + 1) * UINT64_C(0x9E3779B97F4A7C15);
    for (int k = 0; k < SAMPLES; k++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t v = (uint32_t)(((random >> 32) * (uint64_t)rows) >> 32);
        word todo = wanted & ~own[v];
        if (!any(todo)) continue;
        OFFSET start = offsets[v], end = offsets[v + 1], e = start;
        while (e < end && e - start < SAMPLE_DEPTH && any(todo)) todo &= ~seen[columns[e++]];
        checks += any(todo) ? (int64_t)(end - start) : (int64_t)(e - start);
    }
    return (double)checks / SAMPLES * (double)rows;
}
#endif
