/* Kernels for one part of a degree-separated graph.
 *
 * Source: Pan, Pearce, Owens 2018, Section IV: previsit and visit kernels for nn, nd, dn
 * and dd, forward-push and backward-pull; nn always pushes.  Normal vertices and
 * delegates are both kept in bitmaps.  `visited` holds what was found up to the frontier
 * and does not change during a level; `fresh` gathers what the level finds.  A pull may
 * therefore take any visited neighbour as parent.
 *
 * Levels and parents are kept by local id, parents as vertex ids, or REMOTE - rank while
 * only the rank that delivered the vertex is known.
 *
 * With MASKED, each edge has a visibility bit.
 *
 * variants: OFFSET=uint32_t,uint64_t VERTEX=int32_t,int64_t NN_COLUMN=uint32_t,uint64_t MASKED=0,1
 */
#include "../../device/team.h"
#include "bits.h"
#include <stdlib.h>
#include <string.h>

#ifndef OFFSET
#define OFFSET uint32_t
#endif
#ifndef VERTEX /* of a vertex id: int32_t, or int64_t where n needs it */
#define VERTEX int64_t
#endif
#ifndef NN_COLUMN
#define NN_COLUMN uint64_t
#endif
#ifndef MASKED
#define MASKED 0
#endif

#define REMOTE (-2)
#define UNKNOWN (-1)
#define PARALLEL_EDGES 16384 /* below this many edges a kernel runs on one thread */
#define PARALLEL_WORDS 1024

typedef struct {
    const OFFSET *offsets;
    const void *columns;
    const uint64_t *seen; /* [ceil(edges / 64)], of MASKED alone */
} rows;

typedef struct {
    int64_t local, active, delegates, words, delegate_words; /* words of the bitmaps */
    int64_t index, parts, threads;
    rows nn, nd, dn, dd, dd_pulled; /* dd_pulled: dd where edges lead both ways */
    const uint64_t *nn_mask, *nd_mask; /* [words] normal vertices with such edges */
    const uint64_t *dn_mask, *dd_mask, *dd_pulled_mask; /* [delegate_words] delegates with
                                                           such edges */
    const uint32_t *nd_first;          /* [words * 64] first column of each row */
    const uint32_t *dn_first, *dd_pulled_first; /* [delegate_words * 64] */
    const uint32_t *vertices;          /* [words * 64 at least] number -> local id */
    const VERTEX *delegate_ids;        /* [delegates] */
    uint64_t *visited, *fresh, *frontier;                            /* [words] */
    uint64_t *delegate_visited, *delegate_fresh, *delegate_frontier; /* [delegate_words] */
    uint32_t *dirty, *frontier_dirty; /* [words] bitmap words that hold bits */
    int32_t *level, *delegate_level;   /* [local], [delegates] */
    VERTEX *parent, *delegate_parent;  /* the same; parent may be NULL */
    const uint32_t *owned, *owned_local; /* [owned_count] delegates of this part, local ids */
    uint32_t *orphans;                   /* [owned_count] */
    int64_t owned_count;
    uint32_t *delivered; /* [active] */
    uint64_t *outbox;    /* [edges of nn at the frontier] columns as they are stored */
    uint32_t *bins;      /* the same; numbers by part */
    int64_t *ends;       /* [parts] where the bin of each part ends */
    int64_t *work;       /* [COUNTS], as engines/base.py Work */
    int64_t *checks;     /* [4] edge checks of nn, nd, dn, dd */
    int64_t *targets;    /* [target_count] not reached: normal v as v, delegate c as ~c */
    int64_t dirty_count, frontier_count, delivered_count, unvisited_nd, depth;
    int64_t target_count, lost_targets; /* lost: that have no edges */
    int64_t alone; /* roots that are of this part and in no row of it */
} part_state;

enum { VISIT_NN = 1, VISIT_ND = 2, VISIT_DN = 4, VISIT_DD = 8 };
enum { NN_WORK = 2, DD_WORK = 3, DN_WORK = 7, ND_WORK = 11, COUNTS = 17 };

static inline const uint32_t *columns(const rows *r) { return r->columns; }

/* Whether edge e of a subgraph is visible. */
static inline int sees(const rows *r, OFFSET e) {
    return !MASKED || (int)(r->seen[e >> 6] >> (e & 63) & 1);
}

static inline const NN_COLUMN *nn_columns(const rows *r) { return r->columns; }

static inline void scatter_ids(VERTEX *out, const uint32_t *index, uint32_t hit,
                               const VERTEX *table, const uint32_t *from) {
    if (sizeof(VERTEX) == 8)
        scatter_table64((int64_t *)out, index, hit, (const int64_t *)table, from);
    else
        scatter_table((int32_t *)out, index, hit, (const uint32_t *)table, from);
}

/* Find a normal vertex; several threads may find the same. */
static inline int discover(part_state *s, uint32_t v, VERTEX parent) {
    if (test(s->visited, v)) return 0;
    uint64_t bit = UINT64_C(1) << (v & 63);
    uint64_t *word = s->fresh + (v >> 6);
    if (__atomic_load_n(word, __ATOMIC_RELAXED) & bit) return 0;
    uint64_t old = __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
    if (old & bit) return 0;
    uint32_t id = s->vertices[v];
    s->level[id] = (int32_t)s->depth + 1;
    if (s->parent) s->parent[id] = parent;
    if (!old)
        s->dirty[__atomic_fetch_add(&s->dirty_count, 1, __ATOMIC_RELAXED)] = v >> 6;
    return 1;
}

static inline void discover_delegate(part_state *s, uint32_t c, VERTEX parent) {
    if (!test(s->delegate_visited, c) && claim(s->delegate_fresh, c))
        s->delegate_parent[c] = parent;
}

static inline VERTEX vertex_id(const part_state *s, int64_t number) {
    return (VERTEX)(s->vertices[number] * s->parts + s->index);
}

/* Sum of the row lengths of the set bits of one word; rows: of the whole subgraph. */
static inline int64_t lengths(const OFFSET *offsets, int64_t rows, int64_t base,
                              uint64_t bits) {
    int64_t sum = 0;
    if (sizeof(OFFSET) == 4 && __builtin_popcountll(bits) > 4 && base + 64 <= rows)
        return sum_lengths((const uint32_t *)(offsets + base), bits);
    for (; bits; bits &= bits - 1) {
        int64_t v = base + __builtin_ctzll(bits);
        sum += (int64_t)(offsets[v + 1] - offsets[v]);
    }
    return sum;
}

static void add_root(part_state *s, uint32_t v) {
    set(s->visited, v);
    if (!s->frontier[v >> 6]) s->frontier_dirty[s->frontier_count++] = v >> 6;
    set(s->frontier, v);
    s->level[s->vertices[v]] = 0;
    if (s->parent) s->parent[s->vertices[v]] = vertex_id(s, v);
    s->unvisited_nd -= test(s->nd_mask, v);
}

static void add_delegate_root(part_state *s, uint32_t c) {
    set(s->delegate_visited, c);
    set(s->delegate_frontier, c);
    s->delegate_level[c] = 0;
    s->delegate_parent[c] = s->delegate_ids[c];
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
    if (number >= 0) add_root(s, (uint32_t)number);
    if (delegate >= 0) add_delegate_root(s, (uint32_t)delegate);
}

/* The roots of a set: numbers [count], delegates [delegate_count]; each once. */
void part_add_roots(part_state *s, const uint32_t *numbers, int64_t count,
                    const uint32_t *delegates, int64_t delegate_count) {
    for (int64_t k = 0; k < count; k++) add_root(s, numbers[k]);
    for (int64_t k = 0; k < delegate_count; k++) add_delegate_root(s, delegates[k]);
}

/* A kernel that threads share, its arguments and sums. */
typedef struct {
    part_state *s;
    int choice;
    int64_t checks, normals, nn, nd, nd_q;
} shared_kernel;

static int64_t share(part_state *s, int many, int64_t count, int64_t grain,
                     team_range range, int choice) {
    shared_kernel k = {.s = s, .choice = choice};
    team_for(many ? (int)s->threads : 1, count, grain, range, &k);
    return k.checks;
}

static void previsit_words(void *argument, int64_t from, int64_t to) {
    shared_kernel *shared = argument;
    const part_state *s = shared->s;
    int64_t normals = 0, nn = 0, nd = 0, nd_q = 0;
    for (int64_t k = from; k < to; k++) {
        int64_t w = s->frontier_dirty[k];
        uint64_t bits = s->frontier[w];
        normals += __builtin_popcountll(bits);
        nn += lengths(s->nn.offsets, s->local, w * 64, bits & s->nn_mask[w]);
        nd += lengths(s->nd.offsets, s->local, w * 64, bits & s->nd_mask[w]);
        nd_q += __builtin_popcountll(bits & s->nd_mask[w]);
    }
    team_add(&shared->normals, normals);
    team_add(&shared->nn, nn);
    team_add(&shared->nd, nd);
    team_add(&shared->nd_q, nd_q);
}

/* Targets that are not reached yet; the others are forgotten. */
static int64_t left_targets(part_state *s) {
    int64_t left = 0;
    for (int64_t k = 0; k < s->target_count; k++) {
        int64_t v = s->targets[k];
        const uint64_t *visited = v < 0 ? s->delegate_visited : s->visited;
        if (!test(visited, (uint32_t)(v < 0 ? ~v : v))) s->targets[left++] = v;
    }
    s->target_count = left;
    return left + s->lost_targets;
}

/* Fill `work`: normals, delegates, nn FV, then FV, q, s, u of dd, dn and nd, targets.
 * Returns the edges of the frontier in dd, dn and nd. */
int64_t part_work(part_state *s) {
    shared_kernel k = {.s = s};
    team_for((int)s->threads, s->frontier_count, PARALLEL_WORDS, previsit_words, &k);
    int64_t found = 0, dn[4] = {0}, dd[4] = {0};
    for (int64_t w = 0; w < s->delegate_words; w++) {
        uint64_t bits = s->delegate_frontier[w], open = ~s->delegate_visited[w];
        uint64_t in_dn = s->dn_mask[w], in_dd = s->dd_mask[w];
        dn[2] += __builtin_popcountll(open & in_dn);
        dd[2] += __builtin_popcountll(open & s->dd_pulled_mask[w]);
        if (!bits) continue;
        found += __builtin_popcountll(bits);
        dn[0] += lengths(s->dn.offsets, s->delegates, w * 64, bits & in_dn);
        dn[1] += __builtin_popcountll(bits & in_dn);
        dd[0] += lengths(s->dd.offsets, s->delegates, w * 64, bits & in_dd);
        dd[1] += __builtin_popcountll(bits & in_dd);
    }
    dn[3] = s->unvisited_nd;
    dd[3] = dd[2];
    int64_t all[COUNTS] = {
        k.normals + (s->depth ? 0 : s->alone), s->index ? 0 : found, k.nn,
        dd[0], dd[1], dd[2], dd[3], dn[0], dn[1], dn[2], dn[3],
        k.nd, k.nd_q, s->unvisited_nd, dn[2], left_targets(s)};
    memcpy(s->work, all, sizeof all);
    return dd[0] + dn[0] + k.nd;
}

/* Push nn: vertices of this part are found, others are noted and sorted by part.
 * Returns how many were noted. */
static int64_t push_nn(part_state *s) {
    int64_t noted = 0, sum = 0;
    memset(s->ends, 0, (size_t)s->parts * sizeof *s->ends);
    for (int64_t k = 0; k < s->frontier_count; k++) {
        int64_t w = s->frontier_dirty[k];
        if (!(k & 63) && team_ended()) break;
        for (uint64_t rest = s->frontier[w] & s->nn_mask[w]; rest; rest &= rest - 1) {
            int64_t u = w * 64 + __builtin_ctzll(rest);
            VERTEX id = vertex_id(s, u);
            for (OFFSET e = s->nn.offsets[u]; e < s->nn.offsets[u + 1]; e++) {
                if (!sees(&s->nn, e)) continue;
                uint64_t column = nn_columns(&s->nn)[e];
                int64_t part = (int64_t)(column >> 32);
                if (part == s->index) {
                    discover(s, (uint32_t)column, id);
                } else {
                    s->outbox[noted++] = column;
                    s->ends[part]++;
                }
            }
        }
    }
    for (int64_t k = 0; k < s->parts; k++) {
        int64_t count = s->ends[k];
        s->ends[k] = sum;
        sum += count;
    }
    for (int64_t k = 0; k < noted; k++)
        s->bins[s->ends[s->outbox[k] >> 32]++] = (uint32_t)s->outbox[k];
    return noted;
}

static void push_nd_words(void *argument, int64_t from, int64_t to) {
    shared_kernel *shared = argument;
    part_state *s = shared->s;
    int64_t checks = 0;
    for (int64_t k = from; k < to; k++) {
        int64_t w = s->frontier_dirty[k];
        for (uint64_t rest = s->frontier[w] & s->nd_mask[w]; rest; rest &= rest - 1) {
            int64_t u = w * 64 + __builtin_ctzll(rest);
            VERTEX id = vertex_id(s, u);
            for (OFFSET e = s->nd.offsets[u]; e < s->nd.offsets[u + 1]; e++)
                if (sees(&s->nd, e)) discover_delegate(s, columns(&s->nd)[e], id);
            checks += (int64_t)(s->nd.offsets[u + 1] - s->nd.offsets[u]);
        }
    }
    team_add(&shared->checks, checks);
}

static int64_t push_nd(part_state *s, int64_t edges) {
    return share(s, edges > PARALLEL_EDGES, s->frontier_count, 64, push_nd_words, 0);
}

static void push_delegate_words(void *argument, int64_t from, int64_t to) {
    shared_kernel *shared = argument;
    part_state *s = shared->s;
    const int to_delegates = shared->choice;
    const rows *r = to_delegates ? &s->dd : &s->dn;
    const uint64_t *mask = to_delegates ? s->dd_mask : s->dn_mask;
    int64_t checks = 0;
    for (int64_t w = from; w < to; w++) {
        for (uint64_t rest = s->delegate_frontier[w] & mask[w]; rest; rest &= rest - 1) {
            int64_t u = w * 64 + __builtin_ctzll(rest);
            VERTEX id = s->delegate_ids[u];
            OFFSET start = r->offsets[u], end = r->offsets[u + 1];
            for (OFFSET e = start; e < end; e++) {
                uint32_t v = columns(r)[e];
                if (!sees(r, e)) continue;
                if (to_delegates)
                    discover_delegate(s, v, id);
                else
                    discover(s, v, id);
            }
            checks += (int64_t)(end - start);
        }
    }
    team_add(&shared->checks, checks);
}

/* Push from delegates: dn finds normal vertices, dd delegates. */
static int64_t push_delegates(part_state *s, int to_delegates, int64_t edges) {
    return share(s, edges > PARALLEL_EDGES, s->delegate_words, 4, push_delegate_words,
                 to_delegates);
}

/* Rows `todo` of one word look for a column set in `asked`: the first column of sixteen
 * rows at once, then the rest of the rows that miss.  from: [64], what was found.
 * Returns the rows that found one. */
static uint64_t pull_word(const rows *r, const uint32_t *first, const uint64_t *asked,
                          int64_t base, uint64_t todo, uint32_t *from, int64_t *checks) {
    uint64_t found = 0;
    for (int part = 0; part < 64 / LANES; part++) {
        uint32_t lanes = todo >> (part * LANES) & 0xffff;
        if (!lanes) continue;
        int64_t v = base + part * LANES;
        uint32_t hit = test_lanes(asked, first + v, lanes);
        memcpy(from + part * LANES, first + v, LANES * sizeof(uint32_t));
        *checks += __builtin_popcount(lanes);
        for (uint32_t rest = lanes & ~hit; rest; rest &= rest - 1) {
            int k = __builtin_ctz(rest);
            for (OFFSET e = r->offsets[v + k] + 1; e < r->offsets[v + k + 1]; e++) {
                uint32_t u = columns(r)[e];
                ++*checks;
                if (!sees(r, e) || !test(asked, u)) continue;
                from[part * LANES + k] = u;
                hit |= 1u << k;
                break;
            }
        }
        found |= (uint64_t)hit << (part * LANES);
    }
    return found;
}

static void pull_delegate_words(void *argument, int64_t low, int64_t high) {
    shared_kernel *shared = argument;
    part_state *s = shared->s;
    const int from_delegates = shared->choice;
    const rows *r = from_delegates ? &s->dd_pulled : &s->dn;
    const uint32_t *first = from_delegates ? s->dd_pulled_first : s->dn_first;
    /* mutant: dd_pulled_mask -> dd_mask : test_directed_parts */
    const uint64_t *mask = from_delegates ? s->dd_pulled_mask : s->dn_mask;
    const uint64_t *asked = from_delegates ? s->delegate_visited : s->visited;
    int64_t checks = 0;
    for (int64_t w = low; w < high; w++) {
        uint64_t todo = ~(s->delegate_visited[w] | s->delegate_fresh[w]) & mask[w];
        if (!todo) continue;
        uint32_t from[64];
        uint64_t found = pull_word(r, first, asked, w * 64, todo, from, &checks);
        s->delegate_fresh[w] |= found;
        for (; found; found &= found - 1) {
            int k = __builtin_ctzll(found);
            s->delegate_parent[w * 64 + k] =
                from_delegates ? s->delegate_ids[from[k]] : vertex_id(s, from[k]);
        }
    }
    team_add(&shared->checks, checks);
}

/* Pull nd or dd: unvisited delegates look for a visited normal vertex or delegate. */
static int64_t pull_delegates(part_state *s, int from_delegates) {
    return share(s, s->delegate_words > 64, s->delegate_words, 16, pull_delegate_words,
                 from_delegates);
}

static void pull_dn_words(void *argument, int64_t low, int64_t high) {
    shared_kernel *shared = argument;
    part_state *s = shared->s;
    int64_t checks = 0;
    int32_t level = (int32_t)s->depth + 1;
    for (int64_t w = low; w < high; w++) {
        uint64_t old = s->fresh[w], todo = ~(s->visited[w] | old) & s->nd_mask[w];
        if (!todo) continue;
        uint32_t from[64];
        /* mutant: delegate_visited -> delegate_fresh : test_every_direction_on_a_larger_graph */
        uint64_t found = pull_word(&s->nd, s->nd_first, s->delegate_visited, w * 64, todo,
                                   from, &checks);
        if (!found) continue;
        s->fresh[w] = old | found;
        if (!old)
            s->dirty[__atomic_fetch_add(&s->dirty_count, 1, __ATOMIC_RELAXED)] =
                (uint32_t)w;
        for (int k = 0; k < 64; k += LANES) {
            uint32_t hit = found >> k & 0xffff;
            const uint32_t *ids = s->vertices + w * 64 + k;
            if (hit) scatter_value(s->level, ids, hit, level);
            if (hit && s->parent) scatter_ids(s->parent, ids, hit, s->delegate_ids, from + k);
        }
    }
    team_add(&shared->checks, checks);
}

/* Pull dn: unvisited normal vertices look for a visited delegate in their nd rows. */
static int64_t pull_dn(part_state *s) {
    return share(s, s->words > PARALLEL_WORDS, s->words, 128, pull_dn_words, 0);
}

/* Run some visits of a level, in the order nn, dd, nd, dn.
 * visits, pulls: VISIT_… | …; a push without edges is left out.  Returns how many vertices
 * of other parts nn has put into `bins`. */
int64_t part_visit(part_state *s, int visits, int pulls) {
    const int64_t *w = s->work;
    int64_t *checks = s->checks, noted = 0;
    if (visits & VISIT_NN && (checks[0] = w[NN_WORK])) noted = push_nn(s);
    if (visits & VISIT_DD)
        checks[3] = pulls & VISIT_DD ? pull_delegates(s, 1)
                    : w[DD_WORK]     ? push_delegates(s, 1, w[DD_WORK])
                                     : 0;
    if (visits & VISIT_ND)
        checks[1] = pulls & VISIT_ND ? pull_delegates(s, 0)
                    : w[ND_WORK]     ? push_nd(s, w[ND_WORK])
                                     : 0;
    if (visits & VISIT_DN)
        checks[2] = pulls & VISIT_DN ? pull_dn(s)
                    : w[DN_WORK]     ? push_delegates(s, 0, w[DN_WORK])
                                     : 0;
    return noted;
}

void part_take_normals(part_state *s, int64_t rank, const uint32_t *numbers,
                       int64_t count) {
    for (int64_t k = 0; k < count; k++)
        if (discover(s, numbers[k], (VERTEX)(REMOTE - rank)) && s->parent)
            s->delivered[s->delivered_count++] = numbers[k];
}

static void visit_words(void *argument, int64_t from, int64_t to) {
    shared_kernel *shared = argument;
    part_state *s = shared->s;
    int64_t labelled = 0;
    for (int64_t k = from; k < to; k++) {
        int64_t w = s->dirty[k];
        uint64_t bits = s->fresh[w];
        s->visited[w] |= bits;
        labelled += __builtin_popcountll(bits & s->nd_mask[w]);
    }
    team_add(&shared->nd, labelled);
}

/* mask: [delegate_words] delegates that all parts found, NULL: none */
void part_end_level(part_state *s, const uint64_t *mask) {
    int32_t level = (int32_t)++s->depth;
    int64_t count = s->dirty_count;
    for (int64_t i = 0; i < s->frontier_count; i++) s->frontier[s->frontier_dirty[i]] = 0;
    shared_kernel k = {.s = s};
    team_for((int)s->threads, count, PARALLEL_WORDS, visit_words, &k);
    /* mutant: -= k -> -= 0 * k : test_part_pairs::test_searches_do_not_leak */
    s->unvisited_nd -= k.nd;
    uint64_t *empty = s->frontier;
    uint32_t *list = s->frontier_dirty;
    s->frontier = s->fresh;
    s->frontier_dirty = s->dirty;
    s->frontier_count = count;
    s->fresh = empty;
    s->dirty = list;
    s->dirty_count = 0;
    for (int64_t w = 0; w < s->delegate_words; w++) {
        uint64_t bits = mask ? mask[w] & ~s->delegate_visited[w] : 0;
        s->delegate_frontier[w] = bits;
        s->delegate_visited[w] |= bits;
        s->delegate_fresh[w] = 0;
        for (; bits; bits &= bits - 1)
            s->delegate_level[w * 64 + __builtin_ctzll(bits)] = level;
    }
}

/* List the reached delegates of this part without a parent; returns their number. */
int64_t part_list_orphans(part_state *s) {
    int64_t count = 0;
    for (int64_t k = 0; k < s->owned_count; k++) {
        uint32_t c = s->owned[k];
        s->orphans[count] = c;
        /* mutant: s->delegate_parent[c] < 0 -> 0 : test_part_pairs::test_any_graph */
        count += s->delegate_level[c] >= 0 && s->delegate_parent[c] < 0;
    }
    return count;
}

static void finish_owned(void *argument, int64_t first, int64_t last) {
    const part_state *s = argument;
    for (int64_t k = first; k < last; k++) {
        uint32_t c = s->owned[k], id = s->owned_local[k];
        s->level[id] = s->delegate_level[c];
        if (s->parent) s->parent[id] = s->delegate_parent[c];
    }
}

/* Give delegates of this part their results, and normal vertices that were not reached level
 * and parent -1. */
void part_finish(part_state *s) {
    team_for((int)s->threads, s->owned_count, PARALLEL_EDGES, finish_owned, s);
    for (int64_t w = 0; w < s->words; w++)
        for (uint64_t rest = ~s->visited[w]; rest; rest &= rest - 1) {
            uint32_t id = s->vertices[w * 64 + __builtin_ctzll(rest)];
            s->level[id] = -1;
            if (s->parent) s->parent[id] = UNKNOWN;
        }
}
