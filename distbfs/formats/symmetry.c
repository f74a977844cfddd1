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

#define BLOCK 1024 /* entries that are looked at together; they stay in L1 */

/* Add the hashes and signs of a block to sums, as `once` does; return whether an id is no
 * node.  u, v: [count] */
static inline int hash_block(int64_t count, const int32_t *u, const int32_t *v,
                             uint32_t nodes, int64_t way, uint64_t *sums)
{
    uint64_t sum = 0, signs = 0;
    uint32_t bad = 0;
    if (way) {
        for (int64_t k = 0; k < count; k++) {
            const uint32_t a = (uint32_t)u[k], b = (uint32_t)v[k];
            bad |= b >= nodes;
            sum += way == 1 ? hash(a, b) : hash(b, a);
        }
        sums[0] += way == 1 ? sum : -sum;
        sums[1] += (uint64_t)(way == 1 ? count : -count);
        return bad != 0;
    }
    for (int64_t k = 0; k < count; k++) {
        const uint32_t a = (uint32_t)u[k], b = (uint32_t)v[k];
        const uint32_t low = a < b ? a : b, high = a < b ? b : a;
        const uint64_t h = hash(low, high);
        const uint64_t back = (uint64_t)0 - (a > b), proper = (uint64_t)0 - (a != b);
        bad |= b >= nodes;
        sum += ((h ^ back) - back) & proper;
        signs += (1 ^ back) - back & proper;
    }
    sums[0] += sum;
    sums[1] += signs;
    return bad != 0;
}

/* The same for lists of neighbours, row after row.
 *
 * rows, first: how many rows, and the id of the first one; counts: [rows] entries of each
 * stride, near: [entries * stride] neighbours, every stride-th counts; nodes: ids are less,
 *      2^31 at most
 * way: 0 keep one pair of each edge; 1 keep all, add hashes; 2 keep none, take the hashes
 *      of the turned pairs away
 * pairs: [entries][2]; sums: [2] of hashes and of signs, raised
 * bad: [1] the first entry whose id is no node, or -1
 */
int64_t lists_once(int64_t rows, int64_t first, const int64_t *counts, int64_t stride,
                   const int32_t *near, int64_t nodes, int64_t way, int64_t *pairs,
                   uint64_t *sums, int64_t *bad)
{
    int32_t u[BLOCK], gathered[BLOCK];
    int64_t kept = 0, entry = 0, r = 0, left = rows ? counts[0] : 0;
    bad[0] = -1;
    while (r < rows) {
        int64_t size = 0;
        while (size < BLOCK && r < rows) {
            const int64_t some = left < BLOCK - size ? left : BLOCK - size;
            for (int64_t k = 0; k < some; k++) u[size + k] = (int32_t)(first + r);
            size += some;
            left -= some;
            if (!left && ++r < rows) left = counts[r];
        }
        const int32_t *v = near + entry * stride;
        if (stride > 1) {
            for (int64_t k = 0; k < size; k++) gathered[k] = v[k * stride];
            v = gathered;
        }
        if (hash_block(size, u, v, (uint32_t)nodes, way, sums)) {
            int64_t k = 0;
            while ((uint32_t)v[k] < (uint32_t)nodes) k++;
            bad[0] = entry + k;
            return kept;
        }
        entry += size;
        if (way == 2) continue;
        for (int64_t k = 0; k < size; k++) {
            pairs[2 * kept] = u[k];
            pairs[2 * kept + 1] = v[k];
            kept += way || u[k] <= v[k];
        }
    }
    return kept;
}
