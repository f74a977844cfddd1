/* Many searches in one traversal: each vertex has a word with one bit for each search.
 *
 * WIDTH 64-bit lanes make a word, so 64 to 512 searches share every look at an edge.
 * A pull asks the snapshot of all bits seen: a bit that a neighbour has seen and the
 * vertex has not was found one level up, as any earlier one would have arrived by now.
 * It leaves a row as soon as every search that still runs has been seen.  A push ORs the
 * word of a frontier vertex into its neighbours.  Pull or push is decided by price, as in
 * engines/openmp/fast.c.  Levels are kept as bit planes: plane j holds bit j of each
 * level.  They become bytes or wider at the end (spread.h), when the depth is known.
 *
 * Sources: Then, Kaufmann, Chirigati et al., The More the Merrier: Efficient
 * Multi-Source Graph Traversal, VLDB 2014, Sections 3 and 4; McLaughlin, Riedy, Bader
 * 2015 for the abstraction that this serves.
 */
#include "spread.h"
#include <omp.h>
#include <string.h>

#ifndef OFFSET
#define OFFSET uint32_t
#endif

#define SERIAL_EDGES 2048 /* frontier edges below which one thread pushes alone */
#define LONG_ROW 4096     /* rows above this are cut among the threads of a push */
#define LONG_ROWS 512     /* how many such rows a level sets aside */
#define SAMPLES 128       /* rows looked at to price a pull */
#define SAMPLE_DEPTH 64   /* neighbours looked at per sampled row */
#define PUSH_PRICE 3.0    /* price of an edge in a push over one in a pull */
#define PULL_FLOOR 200    /* no pull while the frontier has fewer edges / 200 */
#define LIGHT_SAMPLES 1024 /* frontier vertices that tell how large each search is */
#define LIGHT 32         /* a search is light with fewer edges / 256 in its frontier */
#define LOCAL_QUEUE 512
#define SEARCHES (64 * WIDTH)
#define PLANES 31

enum { DONE = 0, GROW = 1, STOPPED = -2 };
enum { BY_PRICE, ONLY_PUSH, ONLY_PULL };
enum { PUSH, PULL };

typedef struct {
    int64_t direction, frontier, checks;
} bit_record;

typedef struct {
    int64_t n, rows, edges;     /* vertices; those with edges come first; stored edges */
    const OFFSET *offsets;      /* [n + 1], edges out */
    const uint32_t *columns;    /* [edges] */
    const OFFSET *in_offsets;   /* [n + 1], edges in; the same where symmetric */
    const uint32_t *in_columns; /* [edges] */
    word *seen, *other;         /* [n] each */
    uint64_t *claimed;          /* [ceil(n / 64)], all zero between levels */
    uint32_t *queue, *spare;    /* [rows] each */
    word *planes[PLANES];       /* [n] each; the first `held` of them, if levels */
    int64_t *counts;            /* [2^held, SEARCHES], by level, or NULL */
    bit_record *records;        /* [2^held], of each level */
    int64_t held;               /* levels below 2^held have their memory */
    int64_t keep_levels;        /* whether planes are kept */
    int64_t limit;              /* the last level that is wanted */
    int64_t level;              /* of the frontier */
    int64_t count, work;        /* vertices of the frontier, edges out of them */
    int64_t clean, queued;      /* other is zero; the frontier is in the queue */
    uint64_t running[WIDTH];    /* searches that have a frontier */
    int32_t depth[SEARCHES];    /* the largest level of each search so far */
    int (*stop)(void);          /* asked before each level; NULL: never */
} bit_search;

static inline word no_bits(void) {
    word w;
    memset(&w, 0, sizeof w);
    return w;
}

static inline int any(word w) {
    uint64_t all = 0;
    for (int k = 0; k < WIDTH; k++) all |= w[k];
    return all != 0;
}

static inline word running(const bit_search *s) {
    word w;
    memcpy(&w, s->running, sizeof w);
    return w;
}

static inline int64_t out_degree(const bit_search *s, uint32_t v) {
    return (int64_t)(s->offsets[v + 1] - s->offsets[v]);
}

/* What a thread found in a level; gains wait for others to be counted 64 at a time. */
typedef struct {
    word found;
    int64_t count, work, checks;
    int waiting;
    word gains[64];
    int64_t counts[SEARCHES];
} tally;

static void count_gains(tally *t) {
    uint64_t block[64];
    for (int lane = 0; lane < WIDTH; lane++) {
        for (int k = 0; k < 64; k++) block[k] = k < t->waiting ? t->gains[k][lane] : 0;
        transpose(block);
        for (int k = 0; k < 64; k++)
            t->counts[64 * lane + k] += __builtin_popcountll(block[k]);
    }
    t->waiting = 0;
}

static inline void begin_tally(const bit_search *s, tally *t) {
    t->found = no_bits();
    t->count = t->work = t->checks = 0;
    t->waiting = 0;
    if (s->counts) memset(t->counts, 0, sizeof t->counts);
}

/* Note that v was found at the present level by the searches `gain`. */
static inline void note(const bit_search *s, tally *t, uint32_t v, word gain) {
    t->found |= gain;
    t->count++;
    t->work += out_degree(s, v);
    if (s->keep_levels)
        for (uint64_t rest = (uint64_t)s->level; rest; rest &= rest - 1)
            s->planes[__builtin_ctzll(rest)][v] |= gain;
    if (!s->counts) return;
    t->gains[t->waiting++] = gain;
    if (t->waiting == 64) count_gains(t);
}

/* Add what a thread found to the search; all threads call it. */
static void end_tally(bit_search *s, tally *t, word *found) {
    if (s->counts && t->waiting) count_gains(t);
#pragma omp critical(distbfs_bits)
    {
        *found |= t->found;
        s->count += t->count;
        s->work += t->work;
        s->records[s->level].checks += t->checks;
        if (s->counts)
            for (int k = 0; k < SEARCHES; k++)
                s->counts[s->level * SEARCHES + k] += t->counts[k];
    }
}

/* OR of the words of a row until all of `todo` is there. */
static inline word pull_row(const bit_search *s, uint32_t v, word todo, int64_t *checks) {
    const uint32_t *column = s->in_columns;
    OFFSET start = s->in_offsets[v], end = s->in_offsets[v + 1], e = start;
    word all = no_bits();
    for (; e < end && e < start + 2; e++) {
        all |= s->seen[column[e]];
        if (!any(todo & ~all)) {
            *checks += (int64_t)(e - start) + 1;
            return all;
        }
    }
    for (; e + 4 <= end; e += 4) {
        all |= (s->seen[column[e]] | s->seen[column[e + 1]]) |
               (s->seen[column[e + 2]] | s->seen[column[e + 3]]);
        if (!any(todo & ~all)) {
            *checks += (int64_t)(e - start) + 4;
            return all;
        }
    }
    for (; e < end; e++) all |= s->seen[column[e]];
    *checks += (int64_t)(end - start);
    return all;
}

/* Find the bits of a level that rows are asked for; those of `light` were pushed. */
static void pull(bit_search *s, int threads, word light, word *found) {
    word wanted = running(s), heavy = wanted & ~light;
#pragma omp parallel num_threads(threads)
    {
        tally t;
        begin_tally(s, &t);
#pragma omp for schedule(dynamic, 1024) nowait
        for (int64_t v = 0; v < s->rows; v++) {
            word old = s->seen[v], todo = heavy & ~old, gain = no_bits();
            if (any(light)) gain = s->other[v];
            if (any(todo)) gain |= pull_row(s, (uint32_t)v, todo, &t.checks);
            gain &= wanted & ~old;
            s->other[v] = old | gain;
            if (any(gain)) note(s, &t, (uint32_t)v, gain);
        }
        end_tally(s, &t, found);
    }
    word *swap = s->seen;
    s->seen = s->other;
    s->other = swap;
    s->clean = s->queued = 0;
}

typedef struct {
    uint32_t items[LOCAL_QUEUE];
    int count;
} local_queue;

static inline void flush(uint32_t *out, local_queue *q, int64_t *tail) {
    int64_t at = __atomic_fetch_add(tail, q->count, __ATOMIC_RELAXED);
    memcpy(out + at, q->items, sizeof(uint32_t) * (size_t)q->count);
    q->count = 0;
}

/* Queue the vertices that the last pull found, and clear what a push adds to. */
static void queue_found(bit_search *s, int threads) {
    int64_t tail = 0;
#pragma omp parallel num_threads(threads)
    {
        local_queue q = {.count = 0};
#pragma omp for schedule(static) nowait
        for (int64_t v = 0; v < s->rows; v++) {
            if (any(s->seen[v] & ~s->other[v])) {
                q.items[q.count++] = (uint32_t)v;
                if (q.count == LOCAL_QUEUE) flush(s->queue, &q, &tail);
            }
            s->other[v] = no_bits();
        }
        flush(s->queue, &q, &tail);
    }
    s->clean = s->queued = 1;
}

/* OR the word of a frontier vertex into the neighbours first … last - 1 of its row.
 * shared: other threads do the same meanwhile. */
static inline void push_range(bit_search *s, word from, OFFSET first, OFFSET last,
                              const int shared, local_queue *q, int64_t *tail) {
    for (OFFSET e = first; e < last; e++) {
        uint32_t v = s->columns[e];
        word gain = from & ~s->seen[v];
        if (!any(gain)) continue;
        uint64_t *lanes = (uint64_t *)(s->other + v), added = 0;
        for (int k = 0; k < WIDTH; k++) {
            if (!shared) {
                added |= gain[k] & ~lanes[k];
                lanes[k] |= gain[k];
            } else if (gain[k] & ~__atomic_load_n(lanes + k, __ATOMIC_RELAXED)) {
                added = 1;
                __atomic_fetch_or(lanes + k, gain[k], __ATOMIC_RELAXED);
            }
        }
        if (!added) continue;
        uint64_t *claims = s->claimed + (v >> 6), bit = UINT64_C(1) << (v & 63);
        if (__atomic_load_n(claims, __ATOMIC_RELAXED) & bit) continue;
        if (shared) {
            if (__atomic_fetch_or(claims, bit, __ATOMIC_RELAXED) & bit) continue;
        } else {
            *claims |= bit;
        }
        q->items[q->count++] = v;
        if (q->count == LOCAL_QUEUE) flush(s->spare, q, tail);
    }
}

/* All threads: push the frontier; found vertices go to the spare queue. */
static void push_frontier(bit_search *s, int64_t size, const int shared, uint32_t *rows,
                          int64_t *aside, int64_t *tail) {
    local_queue q = {.count = 0};
#pragma omp for schedule(dynamic, 32)
    for (int64_t k = 0; k < size; k++) {
        uint32_t u = s->queue[k];
        if (shared && out_degree(s, u) > LONG_ROW) {
            int64_t at = __atomic_fetch_add(aside, 1, __ATOMIC_RELAXED);
            if (at < LONG_ROWS) {
                rows[at] = u;
                continue;
            }
        }
        push_range(s, s->seen[u], s->offsets[u], s->offsets[u + 1], shared, &q, tail);
    }
    int64_t id = omp_get_thread_num(), all = omp_get_num_threads();
    for (int64_t k = 0; k < *aside && k < LONG_ROWS; k++) {
        OFFSET start = s->offsets[rows[k]];
        int64_t d = out_degree(s, rows[k]);
        push_range(s, s->seen[rows[k]], (OFFSET)(start + d * id / all),
                   (OFFSET)(start + d * (id + 1) / all), shared, &q, tail);
    }
    flush(s->spare, &q, tail);
}

static void push(bit_search *s, int threads, int64_t work, int64_t size, word *found) {
    int64_t tail = 0, aside = 0;
    uint32_t rows[LONG_ROWS];
    int team = work > SERIAL_EDGES ? threads : 1;
    s->records[s->level].checks = work;
#pragma omp parallel num_threads(team)
    {
        if (team > 1)
            push_frontier(s, size, 1, rows, &aside, &tail);
        else
            push_frontier(s, size, 0, rows, &aside, &tail);
#pragma omp barrier
        tally t;
        begin_tally(s, &t);
#pragma omp for schedule(static) nowait
        for (int64_t k = 0; k < tail; k++) {
            uint32_t v = s->spare[k];
            word gain = s->other[v];
            s->seen[v] |= gain;
            s->other[v] = no_bits();
            /* every bit of this word belongs to a vertex of the queue */
            __atomic_store_n(s->claimed + (v >> 6), 0, __ATOMIC_RELAXED);
            note(s, &t, v, gain);
        }
        end_tally(s, &t, found);
    }
    uint32_t *swap = s->queue;
    s->queue = s->spare;
    s->spare = swap;
}

/* The searches whose frontiers have few edges, from a sample of the queue: they would keep
 * a pull at rows that have long shown all others.  Bits of levels before are counted too,
 * so that no search is taken for smaller than it is. */
static word light_searches(const bit_search *s) {
    double edges[SEARCHES];
    memset(edges, 0, sizeof edges);
    int64_t step = s->count / LIGHT_SAMPLES + 1, limit = s->edges / LIGHT;
    for (int64_t k = 0; k < s->count; k += step) {
        word w = s->seen[s->queue[k]];
        double weight = (double)(step * out_degree(s, s->queue[k]));
        for (int lane = 0; lane < WIDTH; lane++)
            for (uint64_t rest = w[lane]; rest; rest &= rest - 1)
                edges[64 * lane + __builtin_ctzll(rest)] += weight;
    }
    word all = running(s), light = no_bits();
    for (int i = 0; i < SEARCHES; i++)
        if (edges[i] < (double)limit) light[i / 64] |= all[i / 64] & UINT64_C(1) << (i & 63);
    return light;
}

/* Push the bits of some searches alone, to `other`, where a pull finds them. */
static void push_light(bit_search *s, int threads, int64_t size, word light) {
    int64_t checks = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 64) reduction(+ : checks)
    for (int64_t k = 0; k < size; k++) {
        uint32_t u = s->queue[k];
        word from = s->seen[u] & light;
        if (!any(from)) continue;
        checks += out_degree(s, u);
        for (OFFSET e = s->offsets[u]; e < s->offsets[u + 1]; e++) {
            uint32_t v = s->columns[e];
            uint64_t *lanes = (uint64_t *)(s->other + v);
            word gain = from & ~s->seen[v];
            for (int j = 0; j < WIDTH; j++)
                if (gain[j] & ~__atomic_load_n(lanes + j, __ATOMIC_RELAXED))
                    __atomic_fetch_or(lanes + j, gain[j], __ATOMIC_RELAXED);
        }
    }
    s->records[s->level].checks += checks;
}

/* Expected edge checks of a pull, from a sample of rows. */
static double pull_price(const bit_search *s, word light) {
    word wanted = running(s) & ~light;
    int64_t checks = 0;
    uint64_t random = (uint64_t)(s->level + 1) * UINT64_C(0x9E3779B97F4A7C15);
    for (int k = 0; k < SAMPLES; k++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t v = (uint32_t)(((random >> 32) * (uint64_t)s->rows) >> 32);
        word todo = wanted & ~s->seen[v];
        if (!any(todo)) continue;
        OFFSET start = s->in_offsets[v], end = s->in_offsets[v + 1], e = start;
        while (e < end && e - start < SAMPLE_DEPTH && any(todo))
            todo &= ~s->seen[s->in_columns[e++]];
        checks += any(todo) ? (int64_t)(end - start) : (int64_t)(e - start);
    }
    return (double)checks / SAMPLES * (double)s->rows;
}

/* Whether to pull, and which searches to push before it. */
static int pull_next(bit_search *s, int direction, int threads, word *light) {
    if (direction != BY_PRICE) return direction == ONLY_PULL;
    if (s->work <= SERIAL_EDGES || s->work < s->edges / PULL_FLOOR) return 0;
    if (!s->queued) queue_found(s, threads);
    *light = light_searches(s);
    return pull_price(s, *light) < (double)s->work * PUSH_PRICE;
}

/* Begin k searches; sources: uint32 [k], vertex numbers. */
void bits_begin(bit_search *s, const uint32_t *sources, int64_t k, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t v = 0; v < s->n; v++) {
        s->seen[v] = s->other[v] = no_bits();
        for (int p = 0; s->keep_levels && p < s->held; p++) s->planes[p][v] = no_bits();
    }
    s->count = s->work = s->level = 0;
    s->clean = s->queued = 1;
    memset(s->running, 0, sizeof s->running);
    memset(s->depth, 0, sizeof s->depth);
    bit_record first = {PUSH, k, 0};
    s->records[0] = first;
    if (s->counts) memset(s->counts, 0, sizeof(int64_t) * SEARCHES);
    for (int64_t i = 0; i < k; i++) {
        uint32_t v = sources[i];
        uint64_t *lane = (uint64_t *)(s->seen + v) + i / 64, bit = UINT64_C(1) << (i & 63);
        if (s->counts) s->counts[i] = 1;
        if (v < s->rows) {
            if (!any(s->seen[v])) {
                s->queue[s->count++] = v;
                s->work += out_degree(s, v);
            }
            s->running[i / 64] |= bit;
        } else { /* a pull copies rows with edges only */
            ((uint64_t *)(s->other + v))[i / 64] |= bit;
        }
        *lane |= bit;
    }
}

/* Go on until no search has a frontier (DONE), until level 2^held (GROW: the caller adds
 * a plane and doubles counts and records), or until stop says so (STOPPED). */
int bits_run(bit_search *s, int threads, int direction) {
    while (s->count && s->level < s->limit) {
        if ((s->level + 1) >> s->held) return GROW;
        if (s->stop && s->stop()) return STOPPED;
        word light = no_bits();
        int up = pull_next(s, direction, threads, &light);
        if (!up && !s->queued) queue_found(s, threads);
        int64_t size = s->count, work = s->work;
        word found = no_bits();
        s->level++;
        s->count = s->work = 0;
        bit_record record = {up ? PULL : PUSH, size, 0};
        s->records[s->level] = record;
        if (s->counts) memset(s->counts + s->level * SEARCHES, 0, 8 * SEARCHES);
        if (up) {
            if (any(light)) push_light(s, threads, size, light);
            pull(s, threads, light, &found);
        } else {
            if (!s->clean) queue_found(s, threads);
            push(s, threads, work, size, &found);
        }
        memcpy(s->running, &found, sizeof found);
        for (int lane = 0; lane < WIDTH; lane++)
            for (uint64_t rest = found[lane]; rest; rest &= rest - 1)
                s->depth[64 * lane + __builtin_ctzll(rest)] = (int32_t)s->level;
    }
    return DONE;
}

/* Write the levels of k searches by id, or whether vertices were reached.
 * out: [k, stride] of `kind` (spread.h); numbers: uint32 [n], id -> number. */
void bits_spread(const bit_search *s, const uint32_t *numbers, int64_t k, int kind,
                 int64_t stride, void *out, int threads) {
    int planes = 0;
    while (kind != FLAGS && s->level >> planes) planes++;
    int64_t chunks = (s->n + CHUNK_IDS - 1) / CHUNK_IDS;
#pragma omp parallel num_threads(threads)
    {
        masks m;
#pragma omp for schedule(dynamic, 4)
        for (int64_t c = 0; c < chunks; c++)
            for (int64_t lane = 0; lane < WIDTH && 64 * lane < k; lane++) {
                int64_t first = c * CHUNK_IDS;
                int64_t ids = s->n - first < CHUNK_IDS ? s->n - first : CHUNK_IDS;
                for (int p = 0; p <= planes; p++) {
                    const uint64_t *from = (uint64_t *)(p ? s->planes[p - 1] : s->seen);
                    gather_masks(m[p], from + lane, WIDTH, numbers + first, ids);
                }
                int64_t searches = k - 64 * lane < 64 ? k - 64 * lane : 64;
                for (int64_t i = 0; i < searches; i++)
                    spread_row(m, planes, (int)i, kind, out,
                               (64 * lane + i) * stride + first, ids);
            }
        end_stores();
    }
}

/* out[j] = level of vertex number v[j] in search i[j], -1 = unreached; int32 [count]. */
void bits_levels_at(const bit_search *s, const int64_t *i, const uint32_t *v,
                    int64_t count, int32_t *out) {
    for (int64_t j = 0; j < count; j++) {
        int64_t at = (int64_t)v[j] * WIDTH + i[j] / 64;
        int bit = (int)(i[j] & 63);
        int32_t level = -1;
        if (((uint64_t *)s->seen)[at] >> bit & 1) {
            level = 0;
            for (int p = 0; s->keep_levels && s->level >> p; p++)
                level |= (int32_t)(((uint64_t *)s->planes[p])[at] >> bit & 1) << p;
        }
        out[j] = level;
    }
}
