/* Pairs of ids from two columns of integers, and the range of the ids.
 *
 * Method: one pass; both columns are read once and each pair is written once.  Data
 * encoding: ids as in the columns; out holds them minus `base`.
 */
#include <stdint.h>

/* u, v: [count]; out: [count][2]; range: [2] least and largest id of both columns, lowered
 * and raised here */
#define PAIRS(name, Id)                                                                  \
    void name(int64_t count, const Id *u, const Id *v, int64_t base, int64_t *out,       \
              int64_t *range)                                                            \
    {                                                                                    \
        int64_t low = range[0], high = range[1];                                         \
        for (int64_t i = 0; i < count; i++) {                                            \
            const int64_t a = u[i], b = v[i];                                            \
            const int64_t least = a < b ? a : b, most = a < b ? b : a;                   \
            low = least < low ? least : low;                                             \
            high = most > high ? most : high;                                            \
            out[2 * i] = (int64_t)((uint64_t)a - (uint64_t)base);                        \
            out[2 * i + 1] = (int64_t)((uint64_t)b - (uint64_t)base);                    \
        }                                                                                \
        range[0] = low;                                                                  \
        range[1] = high;                                                                 \
    }

PAIRS(pairs_int32, int32_t)
PAIRS(pairs_uint32, uint32_t)
PAIRS(pairs_int64, int64_t)
