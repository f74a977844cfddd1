/* Pairs that stand for their edges, and sums of hashes that tell equal sets of pairs.
 *
 * Method: one pass without branches on the data; a pair (u, v) is written where the next
 * one belongs, which moves on only if u <= v.  Each pair has the hash of (min, max), which
 * is added if u < v and taken away if u > v.  Data encoding: the hash is that of mirror.py
 * (SplitMix64; Steele, Lea, Flood, 2014), modulo 2^64.
 */
#include <stdint.h>

static inline uint64_t hash(int64_t u, int64_t v)
{
    uint64_t x = ((uint64_t)u * 0x9E3779B97F4A7C15u + (uint64_t)v) * 0xBF58476D1CE4E5B9u;
    x ^= x >> 31;
    x *= 0x94D049BB133111EBu;
    return x ^ (x >> 29);
}

/* Return how many pairs are kept.
 *
 * u, v: [count] ids of 0 or more
 * pairs: [count][2] those with u <= v, in order
 * sums: [2] of hashes and of signs, over all pairs with u != v
 */
int64_t once(int64_t count, const int64_t *u, const int64_t *v, int64_t *pairs,
             uint64_t *sums)
{
    uint64_t sum = 0, signs = 0;
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t a = u[i], b = v[i];
        const uint64_t sign = (uint64_t)((a < b) - (a > b));
        const uint64_t h = a < b ? hash(a, b) : hash(b, a);
        sum += sign * h;
        signs += sign;
        pairs[2 * kept] = a;
        pairs[2 * kept + 1] = b;
        kept += a <= b;
    }
    sums[0] = sum;
    sums[1] = signs;
    return kept;
}

/* Return the sum of the hashes of pairs (u, v); u, v: [count]. */
uint64_t hash_sum(int64_t count, const int64_t *u, const int64_t *v)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += hash(u[i], v[i]);
    return sum;
}

/* The same for lists of neighbours, row after row.
 *
 * rows, first: how many rows, and the id of the first one; counts: [rows] entries of each
 * stride, near: [entries * stride] neighbours, every stride-th counts; nodes: ids are less
 * way: 0 keep one pair of each edge; 1 keep all, add hashes; 2 keep none, take the hashes
 *      of the turned pairs away
 * pairs: [entries][2]; sums: [2] of hashes and of signs, raised
 * bad: [1] the first entry whose id is no node, or -1
 */
int64_t lists_once(int64_t rows, int64_t first, const int64_t *counts, int64_t stride,
                   const int32_t *near, int64_t nodes, int64_t way, int64_t *pairs,
                   uint64_t *sums, int64_t *bad)
{
    uint64_t sum = 0, signs = 0;
    int64_t kept = 0, entry = 0;
    bad[0] = -1;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t a = first + r;
        for (int64_t stop = entry + counts[r]; entry < stop; entry++) {
            const int64_t b = near[entry * stride];
            if (b < 0 || b >= nodes) {
                bad[0] = entry;
                return kept;
            }
            if (way == 2) {
                sum -= hash(b, a);
                continue;
            }
            const uint64_t sign = way ? 1 : (uint64_t)((a < b) - (a > b));
            sum += sign * (way || a < b ? hash(a, b) : hash(b, a));
            signs += sign;
            pairs[2 * kept] = a;
            pairs[2 * kept + 1] = b;
            kept += way || a <= b;
        }
        signs -= way == 2 ? (uint64_t)counts[r] : 0;
    }
    sums[0] += sum;
    sums[1] += signs;
    return kept;
}
