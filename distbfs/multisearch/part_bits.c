/* Many searches over parts: steps of a level, with a bit for each search.
 *
 * A word has a bit for each search.  Rows are the normals of a part, the delegates, or
 * the outer ends of a part's nn edges; each kind has its words and the marks of rows
 * whose next word is not empty, so that a level takes time by what it finds and one bit
 * for each row.
 *
 * Source: Then et al., The More the Merrier, VLDB 2014, for words; Pan, Pearce, Owens
 * 2018, Section IV, for the four subgraphs.
 *
 * variants: WIDTH=1,2,4,8 OFFSET=uint32_t,uint64_t
 */
#include "../device/team.h"
#include "word_rows.h"
#include <string.h>

#define PLANES 31
#define GRAIN 64 /* frontier rows, or words of marks, that a thread takes at a time */

typedef struct {
    int64_t count;         /* rows */
    word *seen, *front;    /* [count]; front: of rows in the queue */
    word *next;            /* [count], empty between levels */
    uint64_t *marks;       /* [ceil(count / 64)], rows whose next word is not empty */
    uint32_t *queue;       /* [count], the frontier */
    int64_t queued;
    uint64_t *running;     /* [WIDTH], searches that have a row in the queue */
    word *planes[PLANES];  /* [count] each: plane j has bit j of levels; or NULL */
    /* sums over searches by row, [count] each, added to; or NULL */
    int64_t *reached_from;
    int64_t *distance_from;
    double *harmonic_from;
} bit_rows;

typedef struct {
    const OFFSET *offsets;   /* [from->count + 1] */
    const uint32_t *columns; /* rows of `to` */
    const bit_rows *from;
    bit_rows *to;
    int shared; /* several threads push */
} bit_edges;

static inline void mark(bit_rows *rows, uint32_t v, int shared) {
    uint64_t *at = rows->marks + v / 64, bit = UINT64_C(1) << v % 64;
    if (!shared)
        *at |= bit;
    else if (!(__atomic_load_n(at, __ATOMIC_RELAXED) & bit))
        __atomic_fetch_or(at, bit, __ATOMIC_RELAXED);
}

static void push_rows(void *argument, int64_t first, int64_t last) {
    const bit_edges *p = argument;
    for (int64_t k = first; k < last; k++) {
        uint32_t u = p->from->queue[k];
        word w = p->from->front[u];
        for (OFFSET e = p->offsets[u]; e < p->offsets[u + 1]; e++) {
            uint32_t v = p->columns[e];
            if (!p->shared) {
                p->to->next[v] |= w;
            } else {
                uint64_t *to = (uint64_t *)(p->to->next + v);
                for (int lane = 0; lane < WIDTH; lane++)
                    if (w[lane] & ~__atomic_load_n(to + lane, __ATOMIC_RELAXED))
                        __atomic_fetch_or(to + lane, w[lane], __ATOMIC_RELAXED);
            }
            mark(p->to, v, p->shared);
        }
    }
}

/* Push the words of a frontier along edges. */
void part_bits_push(const OFFSET *offsets, const uint32_t *columns, const bit_rows *from,
                    bit_rows *to, int threads) {
    bit_edges edges = {offsets, columns, from, to, threads > 1 && from->queued > GRAIN};
    team_for(threads, from->queued, GRAIN, push_rows, &edges);
}

typedef struct {
    const OFFSET *offsets;   /* [to->count + 1], the same edges by their ends */
    const uint32_t *columns; /* rows of `from` */
    const bit_rows *from;
    bit_rows *to;
    word running;
} bit_ends;

/* 64 rows, of one word of marks, at a time. */
static void pull_rows(void *argument, int64_t first, int64_t last) {
    const bit_ends *p = argument;
    bit_rows *to = p->to;
    int64_t checks = 0;
    for (int64_t at = first; at < last; at++)
        for (int64_t v = at * 64; v < at * 64 + 64 && v < to->count; v++) {
            word todo = p->running & ~to->seen[v] & ~to->next[v];
            if (!any(todo)) continue;
            todo &= pull_row(p->offsets, p->columns, (uint64_t)v, p->from->seen, todo, &checks);
            if (!any(todo)) continue;
            to->next[v] |= todo;
            to->marks[at] |= UINT64_C(1) << v % 64;
        }
}

static word running_in(const bit_rows *from) {
    word running;
    for (int lane = 0; lane < WIDTH; lane++) running[lane] = from->running[lane];
    return running;
}

/* The time that a pull saves of that of a push of the frontier along the same edges, in looks
 * at an edge; negative where it takes longer.
 *
 * offsets: of the edges; end_offsets, end_columns: of the same by their ends, or of those that
 * lead to these */
int64_t part_bits_saving(const OFFSET *offsets, const OFFSET *end_offsets,
                         const uint32_t *end_columns, const bit_rows *from, const bit_rows *to,
                         int64_t level) {
    int64_t work = 0;
    for (int64_t k = 0; k < from->queued; k++)
        work += (int64_t)(offsets[from->queue[k] + 1] - offsets[from->queue[k]]);
    if (work < (int64_t)(offsets[from->count] / PULL_FLOOR)) return -work;
    const double price = pull_price(end_offsets, end_columns, to->count, to->seen, from->seen,
                                    running_in(from), level);
    /* mutant: PUSH_PRICE - price -> -PUSH_PRICE + price : test_pulls_read_few_edges_of_hubs */
    return (int64_t)((double)work * PUSH_PRICE - price);
}

/* Pull the words of a frontier along edges, by their ends.  A bit that a neighbour has seen
 * and a row has not was found one level up, as in bits.c: only searches in the frontier of
 * `from` have such bits. */
void part_bits_pull(const OFFSET *end_offsets, const uint32_t *end_columns, const bit_rows *from,
                    bit_rows *to, int threads) {
    bit_ends p = {end_offsets, end_columns, from, to, running_in(from)};
    team_for(threads, (to->count + 63) / 64, GRAIN, pull_rows, &p);
}

/* Add words to the next ones of k rows. */
void part_bits_take(bit_rows *to, const uint32_t *rows, const word *words, int64_t k) {
    for (int64_t i = 0; i < k; i++) {
        to->next[rows[i]] |= words[i];
        mark(to, rows[i], 0);
    }
}

/* Move the next words of marked rows, ascending, to words [count]; returns how many. */
int64_t part_bits_collect(bit_rows *from, uint32_t *rows, word *words) {
    int64_t found = 0;
    for (int64_t at = 0; at * 64 < from->count; at++) {
        for (uint64_t rest = from->marks[at]; rest; rest &= rest - 1) {
            uint32_t v = (uint32_t)(at * 64 + __builtin_ctzll(rest));
            rows[found] = v;
            words[found++] = from->next[v];
            from->next[v] ^= from->next[v];
        }
        from->marks[at] = 0;
    }
    return found;
}

typedef struct {
    bit_rows *rows;
    int64_t level;
    int64_t *counts; /* [64 * WIDTH], added to; or NULL */
} bit_level;

static void count_gains(int64_t *counts, const word *gains, int waiting) {
    uint64_t block[64];
    for (int lane = 0; lane < WIDTH; lane++) {
        gains_of(block, gains, waiting, lane);
        for (int k = 0; k < 64; k++)
            team_add(counts + 64 * lane + k, __builtin_popcountll(block[k]));
    }
}

static void settle_rows(void *argument, int64_t first, int64_t last) {
    const bit_level *l = argument;
    bit_rows *r = l->rows;
    word gains[64], running = {0};
    for (int64_t at = first; at < last; at++) {
        int waiting = 0;
        uint32_t found[64];
        for (uint64_t rest = r->marks[at]; rest; rest &= rest - 1) {
            uint32_t v = (uint32_t)(at * 64 + __builtin_ctzll(rest));
            word gain = r->next[v] & ~r->seen[v];
            r->next[v] ^= r->next[v];
            if (!any(gain)) continue;
            r->seen[v] |= gain;
            r->front[v] = gain;
            running |= gain;
            for (uint64_t bits = (uint64_t)l->level; bits; bits &= bits - 1) {
                word *plane = r->planes[__builtin_ctzll(bits)];
                if (plane) plane[v] |= gain;
            }
            add_gain(r->reached_from, r->distance_from, r->harmonic_from, v, gain, l->level);
            found[waiting] = v;
            gains[waiting++] = gain;
        }
        r->marks[at] = 0;
        if (!waiting) continue;
        if (l->counts) count_gains(l->counts, gains, waiting);
        int64_t to = __atomic_fetch_add(&r->queued, waiting, __ATOMIC_RELAXED);
        memcpy(r->queue + to, found, (size_t)waiting * sizeof *found);
    }
    for (int lane = 0; lane < WIDTH; lane++)
        if (running[lane]) __atomic_fetch_or(r->running + lane, running[lane], __ATOMIC_RELAXED);
}

/* Make what is new in the next words the frontier, of a level. */
void part_bits_settle(bit_rows *rows, int64_t level, int64_t *counts, int threads) {
    bit_level l = {rows, level, counts};
    rows->queued = 0;
    memset(rows->running, 0, WIDTH * sizeof *rows->running);
    team_for(threads, (rows->count + 63) / 64, GRAIN, settle_rows, &l);
}
