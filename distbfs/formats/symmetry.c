/* One pair for each edge, and sums of hashes that identify equal sets of pairs.
 *
 * Method: one pass without branches on the data; a pair (u, v) is written where the next
 * one belongs, which moves on only if u <= v.  Each pair has the hash of (min, max), which
 * is added if u < v and subtracted if u > v.  Data encoding: the hash is that of symmetry.py
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

#define BLOCK 1024 /* entries that are looked at together; they stay in L1 */

/* Add the hashes and signs of a block to sums; return whether an id is no node.
 * u, v: [count] */
static inline int hash_block(int64_t count, const int64_t *u, const int64_t *v,
                             int64_t nodes, int64_t way, int64_t *sums)
{
    uint64_t sum = 0;
    int64_t signs = 0;
    int bad = 0;
    for (int64_t k = 0; k < count; k++) {
        const int64_t a = u[k], b = v[k];
        const int64_t sign = way ? 3 - 2 * way : (a < b) - (a > b);
        const uint64_t h = sign < 0 ? hash(b, a) : hash(a, b);
        bad |= (uint64_t)b >= (uint64_t)nodes;
        sum += (uint64_t)sign * h;
        signs += sign;
    }
    sums[0] = (int64_t)((uint64_t)sums[0] + sum);
    sums[1] += signs;
    return bad;
}

/* Write the pairs of lists of neighbours, row after row; return how many are kept.
 *
 * rows, first: how many rows, and the id of the first one; counts: [rows] entries of each
 * near: [entries] neighbours, uint32_t or int64_t by their size, stride bytes apart
 * nodes: ids are less
 * way: 0 keep one pair of each edge; 1 keep all, add hashes; 2 keep none, take the hashes
 *      of the turned pairs away
 * pairs: [entries][2]; sums: [2] of hashes and of signs, raised
 * bad: [1] the first entry whose id is no node, or -1
 */
int64_t lists_once(int64_t rows, int64_t first, int64_t stride, int64_t size, int64_t nodes,
                   int64_t way, const char *near, const int64_t *counts, int64_t *pairs,
                   int64_t *sums, int64_t *bad)
{
    int64_t u[BLOCK], v[BLOCK];
    int64_t kept = 0, entry = 0, r = 0, left = rows ? counts[0] : 0;
    bad[0] = -1;
    while (r < rows) {
        int64_t count = 0;
        while (count < BLOCK && r < rows) {
            const int64_t some = left < BLOCK - count ? left : BLOCK - count;
            for (int64_t k = 0; k < some; k++) u[count + k] = first + r;
            count += some;
            left -= some;
            if (!left && ++r < rows) left = counts[r];
        }
        const char *p = near + entry * stride;
        if (size == 4)
            for (int64_t k = 0; k < count; k++) v[k] = *(const uint32_t *)(p + k * stride);
        else
            for (int64_t k = 0; k < count; k++) v[k] = *(const int64_t *)(p + k * stride);
        if (hash_block(count, u, v, nodes, way, sums)) {
            int64_t k = 0;
            while ((uint64_t)v[k] < (uint64_t)nodes) k++;
            bad[0] = entry + k;
            return kept;
        }
        entry += count;
        if (way == 2) continue;
        for (int64_t k = 0; k < count; k++) {
            pairs[2 * kept] = u[k];
            pairs[2 * kept + 1] = v[k];
            kept += way || u[k] <= v[k];
        }
    }
    return kept;
}
