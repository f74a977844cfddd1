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
