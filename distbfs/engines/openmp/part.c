/* Kernels for one part of a degree-separated graph.
 *
 * Source: Pan, Pearce, Owens 2018, Section IV: previsit and visit kernels for nn, nd, dn
 * and dd, forward-push and backward-pull; nn always pushes.  Normal vertices and
 * delegates are both kept in bitmaps.  `visited` holds what was found up to the frontier
 * and does not change during a level; `fresh` gathers what the level finds.  A pull may
 * therefore take any visited neighbour as parent.
 *
 * Parents are coded: a number of this part, DELEGATE | delegate, FOREIGN | vertex id, or
 * REMOTE - rank while only the rank that delivered the vertex is known.
 */
#include "bits.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#ifndef OFFSET
#define OFFSET uint32_t
#endif
#ifndef NN_COLUMN
#define NN_COLUMN uint64_t
#endif

#define DELEGATE (INT64_C(1) << 32)
#define FOREIGN (INT64_C(1) << 62)
#define REMOTE INT64_C(-2)
#define UNKNOWN INT64_C(-1)
#define PARALLEL_EDGES 16384 /* below this many edges a kernel runs on one thread */
#define PARALLEL_WORDS 1024

typedef struct {
    const OFFSET *offsets;
    const void *columns;
} rows;

typedef struct {
    int64_t local, active, delegates, words, delegate_words; /* words of the bitmaps */
    int64_t index, parts, threads;
    rows nn, nd, dn, dd;
    const uint64_t *nn_mask, *nd_mask; /* [words] normal vertices with such edges */
    const uint64_t *dn_mask, *dd_mask; /* [delegate_words] delegates with such edges */
    const uint32_t *first;             /* [words * 64] first delegate of each nd row */
    const uint32_t *vertices;          /* [local] number -> local id */
    const int64_t *delegate_ids;       /* [delegates] */
    uint64_t *visited, *fresh, *frontier;                            /* [words] */
    uint64_t *delegate_visited, *delegate_fresh, *delegate_frontier; /* [delegate_words] */
    uint32_t *dirty, *frontier_dirty; /* [words] bitmap words that hold bits */
    int32_t *level, *delegate_level;  /* [words * 64], [delegates] */
    int64_t *parent, *delegate_parent;
    uint32_t *delivered; /* [active] */
    int64_t dirty_count, frontier_count, delivered_count, unvisited_nd, depth;
} part_state;

static inline const uint32_t *columns(const rows *r) { return r->columns; }
static inline const NN_COLUMN *nn_columns(const rows *r) { return r->columns; }

/* Find a normal vertex; several threads may find the same. */
static inline int discover(part_state *s, uint32_t v, int64_t parent) {
    if (test(s->visited, v)) return 0;
    uint64_t bit = UINT64_C(1) << (v & 63);
    uint64_t *word = s->fresh + (v >> 6);
    if (__atomic_load_n(word, __ATOMIC_RELAXED) & bit) return 0;
    uint64_t old = __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
    if (old & bit) return 0;
    s->parent[v] = parent;
    if (!old)
        s->dirty[__atomic_fetch_add(&s->dirty_count, 1, __ATOMIC_RELAXED)] = v >> 6;
    return 1;
}

static inline void discover_delegate(part_state *s, uint32_t c, int64_t parent) {
    if (!test(s->delegate_visited, c) && claim(s->delegate_fresh, c))
        s->delegate_parent[c] = parent;
}

/* Sum of the row lengths of the set bits of one word. */
static inline int64_t lengths(const OFFSET *offsets, int64_t base, uint64_t bits) {
    int64_t sum = 0;
    for (; bits; bits &= bits - 1) {
        int64_t v = base + __builtin_ctzll(bits);
        sum += (int64_t)(offsets[v + 1] - offsets[v]);
    }
    return sum;
}

void part_start(part_state *s, int64_t number, int64_t delegate) {
    size_t bytes = (size_t)s->words * 8, delegate_bytes = (size_t)s->delegate_words * 8;
    memset(s->visited, 0, bytes);
    memset(s->fresh, 0, bytes);
    memset(s->frontier, 0, bytes);
    if (s->active & 63) s->visited[s->words - 1] = ~UINT64_C(0) << (s->active & 63);
    memset(s->delegate_visited, 0, delegate_bytes);
    memset(s->delegate_fresh, 0, delegate_bytes);
    memset(s->delegate_frontier, 0, delegate_bytes);
    memset(s->delegate_level, 0xff, (size_t)s->delegates * 4);
    for (int64_t c = 0; c < s->delegates; c++) s->delegate_parent[c] = UNKNOWN;
    s->dirty_count = s->frontier_count = s->delivered_count = s->depth = 0;
    s->unvisited_nd = 0;
    for (int64_t w = 0; w < s->words; w++)
        s->unvisited_nd += __builtin_popcountll(s->nd_mask[w]);
    if (number >= 0) {
        uint32_t v = (uint32_t)number;
        set(s->visited, v);
        set(s->frontier, v);
        s->frontier_dirty[s->frontier_count++] = v >> 6;
        s->level[v] = 0;
        s->parent[v] = number;
        s->unvisited_nd -= test(s->nd_mask, v);
    }
    if (delegate >= 0) {
        set(s->delegate_visited, (uint32_t)delegate);
        set(s->delegate_frontier, (uint32_t)delegate);
        s->delegate_level[delegate] = 0;
        s->delegate_parent[delegate] = DELEGATE | delegate;
    }
}

/* work: [15] as engines/base.py Work: normals, delegates, nn FV, then FV, q, s, u of
 * dd, dn and nd. */
void part_previsit(part_state *s, int64_t *work) {
    int64_t normals = 0, nn = 0, nd = 0, nd_q = 0;
    int64_t count = s->frontier_count;
#pragma omp parallel for schedule(static) num_threads(s->threads) \
    reduction(+ : normals, nn, nd, nd_q) if (count > PARALLEL_WORDS)
    for (int64_t k = 0; k < count; k++) {
        int64_t w = s->frontier_dirty[k];
        uint64_t bits = s->frontier[w];
        normals += __builtin_popcountll(bits);
        nn += lengths(s->nn.offsets, w * 64, bits & s->nn_mask[w]);
        nd += lengths(s->nd.offsets, w * 64, bits & s->nd_mask[w]);
        nd_q += __builtin_popcountll(bits & s->nd_mask[w]);
    }
    int64_t found = 0, dn[4] = {0}, dd[4] = {0};
    for (int64_t w = 0; w < s->delegate_words; w++) {
        uint64_t bits = s->delegate_frontier[w], open = ~s->delegate_visited[w];
        uint64_t in_dn = s->dn_mask[w], in_dd = s->dd_mask[w];
        dn[2] += __builtin_popcountll(open & in_dn);
        dd[2] += __builtin_popcountll(open & in_dd);
        if (!bits) continue;
        found += __builtin_popcountll(bits);
        dn[0] += lengths(s->dn.offsets, w * 64, bits & in_dn);
        dn[1] += __builtin_popcountll(bits & in_dn);
        dd[0] += lengths(s->dd.offsets, w * 64, bits & in_dd);
        dd[1] += __builtin_popcountll(bits & in_dd);
    }
    dn[3] = s->unvisited_nd;
    dd[3] = dd[2];
    int64_t all[15] = {normals, s->index ? 0 : found, nn, dd[0], dd[1], dd[2], dd[3],
                       dn[0], dn[1], dn[2], dn[3], nd, nd_q, s->unvisited_nd, dn[2]};
    memcpy(work, all, sizeof all);
}

/* counts: [parts], how many nn edges of the frontier lead to each part. */
void part_count_nn(const part_state *s, int64_t *counts) {
    for (int64_t k = 0; k < s->frontier_count; k++) {
        int64_t w = s->frontier_dirty[k];
        for (uint64_t rest = s->frontier[w] & s->nn_mask[w]; rest; rest &= rest - 1) {
            int64_t u = w * 64 + __builtin_ctzll(rest);
            for (OFFSET e = s->nn.offsets[u]; e < s->nn.offsets[u + 1]; e++)
                counts[(uint64_t)nn_columns(&s->nn)[e] >> 32]++;
        }
    }
}

/* Push nn: vertices of this part are found, others go to bins.
 * bins: [edges of the frontier]; ends: [parts], where each part's bin starts, on return
 * where it ends. */
void part_push_nn(part_state *s, uint32_t *bins, int64_t *ends) {
    for (int64_t k = 0; k < s->frontier_count; k++) {
        int64_t w = s->frontier_dirty[k];
        for (uint64_t rest = s->frontier[w] & s->nn_mask[w]; rest; rest &= rest - 1) {
            int64_t u = w * 64 + __builtin_ctzll(rest);
            for (OFFSET e = s->nn.offsets[u]; e < s->nn.offsets[u + 1]; e++) {
                uint64_t column = nn_columns(&s->nn)[e];
                int64_t part = (int64_t)(column >> 32);
                if (part == s->index)
                    discover(s, (uint32_t)column, u);
                else
                    bins[ends[part]++] = (uint32_t)column;
            }
        }
    }
}

int64_t part_push_nd(part_state *s, int64_t edges) {
    int64_t checks = 0;
#pragma omp parallel for schedule(dynamic, 64) num_threads(s->threads) \
    reduction(+ : checks) if (edges > PARALLEL_EDGES)
    for (int64_t k = 0; k < s->frontier_count; k++) {
        int64_t w = s->frontier_dirty[k];
        for (uint64_t rest = s->frontier[w] & s->nd_mask[w]; rest; rest &= rest - 1) {
            int64_t u = w * 64 + __builtin_ctzll(rest);
            for (OFFSET e = s->nd.offsets[u]; e < s->nd.offsets[u + 1]; e++)
                discover_delegate(s, columns(&s->nd)[e], u);
            checks += (int64_t)(s->nd.offsets[u + 1] - s->nd.offsets[u]);
        }
    }
    return checks;
}

/* Push from delegates: dn finds normal vertices, dd delegates. */
int64_t part_push_delegates(part_state *s, int to_delegates, int64_t edges) {
    const rows *r = to_delegates ? &s->dd : &s->dn;
    const uint64_t *mask = to_delegates ? s->dd_mask : s->dn_mask;
    int64_t checks = 0;
#pragma omp parallel for schedule(dynamic, 4) num_threads(s->threads) \
    reduction(+ : checks) if (edges > PARALLEL_EDGES)
    for (int64_t w = 0; w < s->delegate_words; w++) {
        for (uint64_t rest = s->delegate_frontier[w] & mask[w]; rest; rest &= rest - 1) {
            int64_t u = w * 64 + __builtin_ctzll(rest);
            OFFSET start = r->offsets[u], end = r->offsets[u + 1];
            for (OFFSET e = start; e < end; e++) {
                uint32_t v = columns(r)[e];
                if (to_delegates)
                    discover_delegate(s, v, DELEGATE | u);
                else
                    discover(s, v, DELEGATE | u);
            }
            checks += (int64_t)(end - start);
        }
    }
    return checks;
}

/* Pull nd or dd: unvisited delegates look for a visited normal vertex or delegate. */
int64_t part_pull_delegates(part_state *s, int from_delegates) {
    const rows *r = from_delegates ? &s->dd : &s->dn;
    const uint64_t *mask = from_delegates ? s->dd_mask : s->dn_mask;
    const uint64_t *asked = from_delegates ? s->delegate_visited : s->visited;
    int64_t checks = 0, code = from_delegates ? DELEGATE : 0;
#pragma omp parallel for schedule(dynamic, 16) num_threads(s->threads) \
    reduction(+ : checks) if (s->delegate_words > 64)
    for (int64_t w = 0; w < s->delegate_words; w++) {
        uint64_t found = 0, open = ~(s->delegate_visited[w] | s->delegate_fresh[w]);
        for (uint64_t rest = open & mask[w]; rest; rest &= rest - 1) {
            int64_t v = w * 64 + __builtin_ctzll(rest);
            for (OFFSET e = r->offsets[v]; e < r->offsets[v + 1]; e++) {
                uint32_t u = columns(r)[e];
                checks++;
                if (!test(asked, u)) continue;
                s->delegate_parent[v] = code | u;
                found |= rest & -rest;
                break;
            }
        }
        s->delegate_fresh[w] |= found;
    }
    return checks;
}

/* Pull dn: unvisited normal vertices look for a visited delegate in their nd rows. */
static uint64_t pull_normals(part_state *s, int64_t w, uint64_t todo, int64_t *checks) {
    uint64_t found = 0;
    for (int part = 0; part < 64 / LANES; part++) {
        uint32_t lanes = todo >> (part * LANES) & 0xffff;
        if (!lanes) continue;
        int64_t v = w * 64 + part * LANES;
        uint32_t hit = test_lanes(s->delegate_visited, s->first + v, lanes);
        *checks += __builtin_popcount(lanes);
        for (uint32_t rest = hit; rest; rest &= rest - 1) {
            int k = __builtin_ctz(rest);
            s->parent[v + k] = DELEGATE | s->first[v + k];
        }
        for (uint32_t rest = lanes & ~hit; rest; rest &= rest - 1) {
            int k = __builtin_ctz(rest);
            for (OFFSET e = s->nd.offsets[v + k] + 1; e < s->nd.offsets[v + k + 1]; e++) {
                uint32_t u = columns(&s->nd)[e];
                ++*checks;
                if (!test(s->delegate_visited, u)) continue;
                s->parent[v + k] = DELEGATE | u;
                hit |= 1u << k;
                break;
            }
        }
        found |= (uint64_t)hit << (part * LANES);
    }
    return found;
}

int64_t part_pull_dn(part_state *s) {
    int64_t checks = 0;
#pragma omp parallel for schedule(dynamic, 128) num_threads(s->threads) \
    reduction(+ : checks) if (s->words > PARALLEL_WORDS)
    for (int64_t w = 0; w < s->words; w++) {
        uint64_t old = s->fresh[w], todo = ~(s->visited[w] | old) & s->nd_mask[w];
        if (!todo) continue;
        uint64_t found = pull_normals(s, w, todo, &checks);
        if (!found) continue;
        s->fresh[w] = old | found;
        if (!old)
            s->dirty[__atomic_fetch_add(&s->dirty_count, 1, __ATOMIC_RELAXED)] =
                (uint32_t)w;
    }
    return checks;
}

void part_take_normals(part_state *s, int64_t rank, const uint32_t *numbers,
                       int64_t count) {
    for (int64_t k = 0; k < count; k++)
        if (discover(s, numbers[k], REMOTE - rank))
            s->delivered[s->delivered_count++] = numbers[k];
}

void part_end_level(part_state *s, const uint64_t *mask) {
    int32_t level = (int32_t)++s->depth;
    int64_t labelled = 0, count = s->dirty_count;
    for (int64_t k = 0; k < s->frontier_count; k++) s->frontier[s->frontier_dirty[k]] = 0;
#pragma omp parallel for schedule(static) num_threads(s->threads) \
    reduction(+ : labelled) if (count > PARALLEL_WORDS)
    for (int64_t k = 0; k < count; k++) {
        int64_t w = s->dirty[k];
        uint64_t bits = s->fresh[w];
        s->visited[w] |= bits;
        labelled += __builtin_popcountll(bits & s->nd_mask[w]);
        for (int part = 0; part < 64 / LANES; part++)
            store_lanes(s->level + w * 64 + part * LANES,
                        (uint32_t)(bits >> (part * LANES) & 0xffff), level);
    }
    s->unvisited_nd -= labelled;
    uint64_t *empty = s->frontier;
    uint32_t *list = s->frontier_dirty;
    s->frontier = s->fresh;
    s->frontier_dirty = s->dirty;
    s->frontier_count = count;
    s->fresh = empty;
    s->dirty = list;
    s->dirty_count = 0;
    for (int64_t w = 0; w < s->delegate_words; w++) {
        uint64_t bits = mask[w] & ~s->delegate_visited[w];
        s->delegate_frontier[w] = bits;
        s->delegate_visited[w] |= bits;
        s->delegate_fresh[w] = 0;
        for (; bits; bits &= bits - 1)
            s->delegate_level[w * 64 + __builtin_ctzll(bits)] = level;
    }
}

/* Delivered vertices take a delegate one level up as parent where they have one.
 * What stays open is moved to the front of `delivered`; returns how many do. */
int64_t part_adopt(part_state *s) {
    int64_t open = 0;
    for (int64_t k = 0; k < s->delivered_count; k++) {
        uint32_t v = s->delivered[k];
        OFFSET e = s->nd.offsets[v], end = s->nd.offsets[v + 1];
        while (e < end && s->delegate_level[columns(&s->nd)[e]] != s->level[v] - 1) e++;
        if (e < end)
            s->parent[v] = DELEGATE | columns(&s->nd)[e];
        else
            s->delivered[open++] = v;
    }
    s->delivered_count = open;
    return open;
}

static inline int64_t vertex_of(const part_state *s, int64_t code) {
    if (code < 0) return UNKNOWN;
    if (code & FOREIGN) return code & ~FOREIGN;
    if (code & DELEGATE) return s->delegate_ids[code & ~DELEGATE];
    return (int64_t)s->vertices[code] * s->parts + s->index;
}

/* which: [count] delegates; parents: [count], vertex ids, -1 where none was found here */
void part_parents_of(const part_state *s, const int64_t *which, int64_t count,
                     int64_t *parents) {
    for (int64_t k = 0; k < count; k++) {
        int64_t c = which[k];
        parents[k] =
            s->delegate_level[c] < 0 ? UNKNOWN : vertex_of(s, s->delegate_parent[c]);
    }
}

/* Write levels and parents of the normal vertices by local id; parent may be NULL. */
void part_result(const part_state *s, int32_t *level, int64_t *parent) {
#pragma omp parallel for schedule(static) num_threads(s->threads) \
    if (s->words > PARALLEL_WORDS)
    for (int64_t v = 0; v < s->active; v++) {
        int seen = test(s->visited, (uint32_t)v);
        uint32_t id = s->vertices[v];
        level[id] = seen ? s->level[v] : -1;
        if (parent) parent[id] = seen ? vertex_of(s, s->parent[v]) : UNKNOWN;
    }
}
