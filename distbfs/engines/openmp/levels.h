/* Levels of a search that turns (Beamer, Asanovic, Patterson 2012): of a whole graph, fast.c,
 * or of the inner graph of a part, whose vertices other parts find as well, part.c.
 *
 * A level runs in one of four modes.  While the frontier has few edges one thread
 * pushes alone, so that long thin graphs do not pay for threads.  A push that is
 * followed by another keeps a queue.  A push that will be followed by a pull only marks
 * bytes: no atomics, no queue, no counts.  A pull asks the snapshot of visited vertices,
 * because any visited neighbour of an unvisited vertex is one level up; it looks at the
 * first neighbour, kept apart, for sixteen vertices at once and walks the rest of the
 * row for those that miss.
 *
 * Pull or push is chosen by cost: a push reads the edges of the frontier, a pull
 * as many edges as a sample of unvisited rows needs until their first hit, or at most
 * those that the pull before looked at in vain.
 */
#ifndef DISTBFS_LEVELS_H
#define DISTBFS_LEVELS_H
#include "whole.h"

#define SERIAL_CLASS 12    /* work of 2^12 edges or less: one of several threads works alone */
#define NEAR_CLASSES 4     /* above that, what nothing is known of is tried with one thread */
#define TRIALS 6           /* with one thread and with all, together */
#define AGAIN 64           /* times after which the slower way is tried again */
#define DOUBTFUL (1 << 22) /* edges from which all threads surely pay where all is looked at */
#define BATCH_EDGES 16384  /* that one thread looks at together */
#define BLOCK 8            /* columns of a row that are copied at once, needed or not */
#define NEAR 64            /* results that are brought near before they are written */
#define LONG_ROW 4096      /* rows above this are cut among the threads */
#define LONG_ROWS 1024     /* how many such rows a level sets aside */
#define PIECES 16          /* into which such a row is cut */
#define SAMPLES 128        /* rows looked at to price a pull */
#define SAMPLE_DEPTH 64    /* neighbours looked at per sampled row */
#define PUSH_PRICE 2.0     /* price of an edge in a push over one in a pull */
#define MARK_PRICE 2.0     /* of an edge of the next frontier, where that is to be pulled for */
#define PULL_FLOOR 400     /* no pull while the frontier has fewer edges / 400 */

#ifndef OWN
#define OWN(g, word) (~(uint64_t)0) /* vertices whose results are kept */
#endif

typedef struct {
    whole_graph *g;
    int threads;             /* that there are */
    int team;                /* that the level takes */
    int dense_team;          /* that pulls, marking pushes and trees take */
    double *push_rate, *dense_rate; /* that are measured, or NULL: see choose_push_team */
    double dense_seconds, dense_work;
    int32_t level;
    uint32_t *queue, *spare; /* the frontier; what lies behind it */
    int complete;          /* all that was reached stands before it; else queues alternate */
    int64_t count, edges;  /* of the frontier; edges: where it is queued */
    int64_t edges_before;  /* of the frontier before, 0 unknown */
    double degree_before;  /* mean of a marked frontier */
    int64_t reached;       /* vertices visited so far */
    double pull_price;     /* edges that a pull is expected to look at */
    double push_price;     /* the same of a push, by what they cost */
    int64_t missed;        /* edges that the last pull looked at in vain, -1: it was a push */
    int queued;            /* the frontier is in the queue, not only in the bitmaps */
} search_state;

/* A level that threads share: work taken, and vertices found so far. */
typedef struct {
    search_state *s;
    int marking;
    int64_t next, tail, found, edges, checks, missed, aside;
    uint32_t rows[LONG_ROWS];
} shared_level;

/* Edges of the frontier whose ends are looked at together. */
typedef struct {
    uint32_t ends[BATCH_EDGES + BLOCK], from[BATCH_EDGES + BLOCK];
} edge_batch;

/* Go through the ends of a batch.  Levels of long thin graphs are short, and what they touch
 * is in no near cache: each step goes through all of the batch, so that none of its loads
 * waits for another, and nothing branches on what is visited.
 * l: of a level that threads share, NULL if there is one thread */
static inline void push_batch(search_state *s, shared_level *l, edge_batch *b, int64_t looked) {
    whole_graph *g = s->g;
    int64_t open = 0, count = 0, edges = 0;
    uint32_t *fresh = l ? b->ends : s->spare + s->count;
    for (int64_t k = 0; k < looked; k++) {
        uint32_t v = b->ends[k], u = b->from[k];
        b->ends[open] = v, b->from[open] = u;
        open += !(__atomic_load_n(g->visited + (v >> 6), __ATOMIC_RELAXED) >> (v & 63) & 1);
    }
    for (int64_t k = 0; k < open; k++) { /* several may have one end */
        uint32_t v = b->ends[k];
        __builtin_prefetch(g->offsets + v); /* all of them before the first is looked at */
        __builtin_prefetch(g->vertices + v);
        int first = l ? claim(g->visited, v) : !test(g->visited, v);
        if (!l) set(g->visited, v);
        fresh[count] = v, b->from[count] = b->from[k];
        count += first;
    }
    for (int64_t at = 0, end; at < count; at = end) {
        end = at + NEAR < count ? at + NEAR : count;
        for (int64_t k = at; k < end; k++) {
            uint32_t v = fresh[k];
            __builtin_prefetch(g->columns + g->offsets[v]); /* for the next level */
            near_results(g, v);
            edges += degree(g, v);
        }
        for (int64_t k = at; k < end; k++) reach(g, fresh[k], b->from[k], s->level);
    }
    if (l) {
        int64_t at = __atomic_fetch_add(&l->tail, count, __ATOMIC_RELAXED);
        memcpy(s->spare + at, fresh, sizeof(uint32_t) * (size_t)count);
        team_add(&l->edges, edges);
    } else
        s->count += count, s->edges += edges;
}

/* Add the visible ones of so many columns of a row, for which there is room behind `count`;
 * returns how many edges there are then. */
static inline int64_t add_edges(const whole_graph *g, edge_batch *b, int64_t count, uint32_t u,
                                OFFSET first, int64_t length) {
    const uint32_t *row = g->columns + first;
    uint32_t *ends = b->ends + count, *from = b->from + count;
    if (MASKED) {
        for (OFFSET e = first; e < first + (OFFSET)length; e++)
            if (sees(g, e)) b->ends[count] = g->columns[e], b->from[count++] = u;
        return count;
    }
    /* by blocks, the last one beyond the row: a call of memcpy for each row takes longer */
    int64_t whole = row + length + BLOCK <= g->columns + g->edges ? length : 0;
    for (int64_t i = 0; i < whole; i += BLOCK) {
        memcpy(ends + i, row + i, sizeof(uint32_t) * BLOCK);
        for (int k = 0; k < BLOCK; k++) from[i + k] = u;
    }
    for (int64_t i = whole; i < length; i++) ends[i] = row[i], from[i] = u;
    return count + length;
}

/* Add the columns of a row, and go through batches that are full; returns as add_edges. */
static int64_t push_range(search_state *s, shared_level *l, edge_batch *b, int64_t count,
                          uint32_t u, OFFSET from, OFFSET to) {
    while ((int64_t)(to - from) > BATCH_EDGES - count) {
        OFFSET room = (OFFSET)(BATCH_EDGES - count);
        push_batch(s, l, b, add_edges(s->g, b, count, u, from, (int64_t)room));
        /* mutant: += room -> += room + 1 : test_rows_longer_than_a_batch */
        from += room;
        count = 0;
    }
    return add_edges(s->g, b, count, u, from, (int64_t)(to - from));
}

/* A level by one thread. */
static void push_serial(search_state *s) {
    const whole_graph *g = s->g;
    const uint32_t *rows = s->queue, *end = rows + s->count;
    const int fits = s->edges <= BATCH_EDGES;
    int64_t count = 0;
    edge_batch b;
    s->count = s->edges = 0;
    for (; fits && rows < end; rows++)
        count = add_edges(g, &b, count, *rows, g->offsets[*rows], degree(g, *rows));
    for (; rows < end; rows++) {
        OFFSET first = g->offsets[*rows];
        count = push_range(s, NULL, &b, count, *rows, first, g->offsets[*rows + 1]);
    }
    push_batch(s, NULL, &b, count);
}

static inline void mark_range(whole_graph *g, uint32_t u, OFFSET from, OFFSET to) {
    for (OFFSET e = from; e < to; e++) {
        uint32_t v = g->columns[e];
        if (!sees(g, e)) continue;
        if (test(g->visited, v) || __atomic_load_n(g->marks + v, __ATOMIC_RELAXED)) continue;
        __atomic_store_n(g->marks + v, 1, __ATOMIC_RELAXED);
        __atomic_store_n(g->found_by + v, u, __ATOMIC_RELAXED);
    }
}

/* Mark or push along a part of a row; returns as add_edges. */
static inline int64_t expand(shared_level *l, edge_batch *b, int64_t count, uint32_t u,
                             OFFSET from, OFFSET to) {
    if (!l->marking) return push_range(l->s, l, b, count, u, from, to);
    mark_range(l->s->g, u, from, to);
    return 0;
}

/* Go through the rows of the frontier, but set long ones aside. */
static void expand_rows(void *argument, int id) {
    (void)id;
    shared_level *l = argument;
    const whole_graph *g = l->s->g;
    edge_batch b;
    int64_t from, to, count = 0;
    /* large pieces where one queue follows another: neighbours are written by one thread */
    const int64_t least = l->marking ? 0 : l->s->count / (2 * l->s->team);
    while (team_chunk(&l->next, l->s->count, least > 64 ? least : 64, &from, &to))
        for (int64_t k = from; k < to; k++) {
            uint32_t u = l->s->queue[k];
            if (degree(g, u) > LONG_ROW) {
                int64_t at = __atomic_fetch_add(&l->aside, 1, __ATOMIC_RELAXED);
                if (at < LONG_ROWS) {
                    l->rows[at] = u;
                    continue;
                }
            }
            count = expand(l, &b, count, u, g->offsets[u], g->offsets[u + 1]);
        }
    if (count) push_batch(l->s, l, &b, count);
}

static void expand_pieces(void *argument, int id) {
    (void)id;
    shared_level *l = argument;
    const whole_graph *g = l->s->g;
    edge_batch b;
    int64_t from, to, count = 0;
    while (team_chunk(&l->next, l->aside * PIECES, 1, &from, &to)) {
        uint32_t u = l->rows[from / PIECES];
        OFFSET start = g->offsets[u];
        int64_t d = degree(g, u), piece = from % PIECES;
        count = expand(l, &b, count, u, (OFFSET)(start + d * piece / PIECES),
                       (OFFSET)(start + d * (piece + 1) / PIECES));
    }
    if (count) push_batch(l->s, l, &b, count);
}

static void expand_frontier(shared_level *l) {
    team_run(l->s->team, expand_rows, l);
    l->next = 0;
    if (l->aside > LONG_ROWS) l->aside = LONG_ROWS;
    if (l->aside) team_run(l->s->team, expand_pieces, l);
    l->next = 0;
}

static void push_parallel(search_state *s) {
    shared_level l = {.s = s};
    expand_frontier(&l);
    s->count = l.tail;
    s->edges = l.edges;
}

/* Turn the marks of words into visited bits and results, in the order of the vertices. */
static void sweep_marks(void *argument, int64_t from, int64_t to) {
    shared_level *l = argument;
    whole_graph *g = l->s->g;
    int64_t found = 0;
    for (int64_t w = from; w < to; w++) {
        uint64_t fresh = take_marks(g->marks + w * 64);
        g->next[w] = g->visited[w];
        if (!fresh) continue;
        g->visited[w] |= fresh;
        found += __builtin_popcountll(fresh);
        fresh &= OWN(g, w);
        for (int64_t v = w * 64; fresh; v += LANES, fresh >>= LANES) {
            uint32_t hit = fresh & 0xffff;
            if (!hit) continue;
            scatter_value(g->level, g->vertices + v, hit, l->s->level);
            if (g->parent) scatter_names(g, g->vertices + v, hit, g->found_by + v);
        }
    }
    team_add(&l->found, found);
}

static void push_marking(search_state *s) {
    shared_level l = {.s = s, .marking = 1};
    expand_frontier(&l);
    team_for(s->team, s->g->words, 256, sweep_marks, &l);
    s->count = l.found;
    s->missed = -1;
}

typedef struct {
    int64_t found, checks, missed;
} pull_counts;

/* Walk the row of v behind its first neighbour; returns whether a parent was found. */
static inline int pull_row(const search_state *s, uint32_t v, pull_counts *c) {
    const whole_graph *g = s->g;
    OFFSET start = g->in_offsets[v] + 1, end = g->in_offsets[v + 1];
    for (OFFSET e = start; e < end; e++) {
        uint32_t u = g->in_columns[e];
        if (u >= g->active) { /* trees are last */
            end = e;
            break;
        }
        if (!sees_in(g, e) || !test(g->visited, u)) continue;
        reach(g, v, u, s->level);
        c->checks += (int64_t)(e - start) + 1;
        return 1;
    }
    c->checks += (int64_t)(end - start);
    c->missed += (int64_t)(end - start) + 1;
    return 0;
}

static uint64_t pull_word(const search_state *s, int64_t w, pull_counts *c) {
    const whole_graph *g = s->g;
    uint64_t todo = ~g->visited[w], fresh = 0;
    /* mutant: (g->enterable) -> (0) : test_vertices_that_no_edge_enters */
    if (g->enterable) todo &= g->enterable[w];
    const uint32_t *lead = g->first + w * 64, *at = g->vertices + w * 64;
    if (!todo) return 0;
    const int count = __builtin_popcountll(todo);
    c->checks += count;
    if (count <= LANES) { /* packed, so that they are looked at together */
        uint32_t few[LANES], places[LANES];
        pack_lanes(few, lead, todo);
        uint32_t hit = test_lanes(g->visited, few, (1u << count) - 1);
        if (hit) {
            fresh = spread_bits(hit, todo);
            pack_lanes(places, at, todo);
            scatter_value(g->level, places, hit, s->level);
            if (g->parent) scatter_names(g, places, hit, few);
        }
    } else
        for (int part = 0; part < 4; part++, lead += LANES, at += LANES) {
            uint32_t lanes = todo >> (part * LANES) & 0xffff;
            if (!lanes) continue;
            uint32_t hit = test_lanes(g->visited, lead, lanes);
            fresh |= (uint64_t)hit << (part * LANES);
            if (!hit) continue;
            scatter_value(g->level, at, hit, s->level);
            if (g->parent) scatter_names(g, at, hit, lead);
        }
    for (uint64_t rest = todo & ~fresh; rest; rest &= rest - 1) {
        int k = __builtin_ctzll(rest);
        fresh |= (uint64_t)pull_row(s, (uint32_t)(w * 64 + k), c) << k;
    }
    c->found += __builtin_popcountll(fresh);
    return fresh;
}

static void pull_words(void *argument, int64_t from, int64_t to) {
    shared_level *l = argument;
    whole_graph *g = l->s->g;
    pull_counts c = {0, 0, 0};
    for (int64_t w = from; w < to; w++) {
        uint64_t old = g->visited[w];
        g->next[w] = ~old ? old | pull_word(l->s, w, &c) : old;
    }
    team_add(&l->found, c.found);
    team_add(&l->checks, c.checks);
    team_add(&l->missed, c.missed);
}

static int64_t pull(search_state *s) {
    whole_graph *g = s->g;
    shared_level l = {.s = s};
    team_for(s->team, g->words, 256, pull_words, &l);
    uint64_t *swap = g->visited;
    g->visited = g->next;
    g->next = swap;
    s->count = l.found;
    s->missed = l.missed;
    return l.checks;
}

/* Queue the vertices that the last level found. */
static void queue_found(search_state *s) {
    whole_graph *g = s->g;
    int64_t count = 0, edges = 0;
    s->queue = s->g->queue[0];
    for (int64_t w = 0; w < g->words; w++) {
        uint64_t rest = g->visited[w] & ~g->next[w];
        if (g->expandable) rest &= g->expandable[w];
        for (; rest; rest &= rest - 1) {
            uint32_t v = (uint32_t)(w * 64 + __builtin_ctzll(rest));
            s->queue[count++] = v;
            edges += degree(g, v);
        }
    }
    s->count = count;
    s->edges = edges;
    s->queued = 1;
}

/* Expected edge checks of a pull, from a sample of unvisited rows. */
static double sampled_price(const search_state *s) {
    const whole_graph *g = s->g;
    int64_t looked = 0, checks = 0;
    uint64_t random = (uint64_t)s->level * UINT64_C(0x9E3779B97F4A7C15);
    for (int k = 0; k < SAMPLES * 4 && looked < SAMPLES; k++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t v = (uint32_t)(((random >> 32) * (uint64_t)g->active) >> 32);
        if (test(g->visited, v) || (g->enterable && !test(g->enterable, v))) continue;
        looked++;
        OFFSET start = g->in_offsets[v], end = g->in_offsets[v + 1], e = start;
        while (e < end && e - start < SAMPLE_DEPTH &&
               !(sees_in(g, e) && test(g->visited, g->in_columns[e]))) {
            if (g->in_columns[e] >= g->active)
                end = e;
            else
                e++;
        }
        checks += e < end && e - start == SAMPLE_DEPTH ? (int64_t)(end - start)
                                                       : (int64_t)(e - start) + 1;
    }
    if (!looked) return 0;
    int64_t left = g->active - g->closed - s->reached;
    return (double)checks / (double)looked * (double)(left > 0 ? left : 0);
}

/* Edges of the next frontier: as many as in a random graph of these degrees, but levels that
 * grow slowly, as those of a mesh, go on so. */
static double edges_expected(const search_state *s) {
    const whole_graph *g = s->g;
    const double edges = (double)s->edges, open = (double)(g->active - s->reached);
    const double random = edges * open / (double)g->active * g->mean_next;
    if (!s->edges_before) return random;
    const double grown = edges / (double)s->edges_before * edges;
    /* mutant: grown < random -> grown < 0 : test_slowly_growing_levels_are_not_marked */
    return grown < random ? grown : random;
}

/* Set the prices of a pull and of a push of the frontier, which is queued if that is in doubt:
 * then its edges are known, else what a push costs at least. */
static __attribute__((noinline)) void price(search_state *s) { /* levels of roads are short */
    const whole_graph *g = s->g;
    if (!s->queued) { /* at least one edge each, or as many as the vertices that marked these */
        const int marked = s->missed < 0;
        s->push_price = PUSH_PRICE * (double)s->count * (marked ? s->degree_before : 1);
        /* mutant: (s->missed + g->words) -> 0 : test_what_cannot_be_reached_is_not_pulled_for */
        if (!marked) s->pull_price = (double)(s->missed + g->words);
        if (s->pull_price < s->push_price) return;
        if (marked && (s->pull_price = sampled_price(s)) < s->push_price) return;
        queue_found(s);
    } else if (s->edges >> SERIAL_CLASS && s->edges > g->edges / PULL_FLOOR) {
        /* one each at least, which is too much for most levels of a mesh */
        const double expected = MARK_PRICE * edges_expected(s);
        const double pushed = PUSH_PRICE * (double)s->edges;
        s->pull_price = (double)(g->active - g->closed - s->reached);
        if (pushed > s->pull_price || expected > s->pull_price) s->pull_price = sampled_price(s);
    } else
        s->pull_price = (double)g->edges; /* at most */
    s->push_price = PUSH_PRICE * (double)s->edges;
}

/* What is known of one thread and of all: seconds an edge, and how often one was chosen. */
typedef struct {
    double rate[2];
    double chosen;
} team_rates;

/* Whether all threads are faster than one; -1: not known. */
static int all_pay(const team_rates *r) {
    return r->chosen < TRIALS ? -1 : r->rate[1] < r->rate[0];
}

/* Choose between one thread, 0, and all, 1: both are tried in turns, each so many times in a
 * row, then the faster is taken, and the other now and then. */
static int choose_rate(team_rates *r, int times) {
    const int64_t chosen = (int64_t)r->chosen++;
    const int all = all_pay(r);
    /* mutant: chosen / times % 2 -> 1 : test_what_is_not_known_is_tried_in_turns */
    if (all < 0 || chosen < TRIALS) return chosen / times % 2;
    /* mutant: < AGAIN - times -> >= 0 : test_the_slower_way_is_tried_again */
    return chosen % AGAIN < AGAIN - times ? all : !all;
}

/* Take down what some work took; what was disturbed counts no more than twice of before. */
static void note_rate(double *rate, double seconds, double work) {
    const double now = seconds / work;
    if (*rate == 0)
        *rate = now;
    else if (now < *rate)
        *rate += (now - *rate) / 2;
    else
        *rate += ((now < 2 * *rate ? now : 2 * *rate) - *rate) / 8;
}

/* Choose how many threads levels take that go through all vertices, as the pass over trees
 * does: those of a search are chosen together, as threads that are asked for now and then
 * have fallen asleep. */
static void choose_dense_team(search_state *s) {
    s->dense_team = s->threads;
    s->dense_rate = NULL;
    if (s->threads == 1 || !s->g->rates || s->g->edges >= DOUBTFUL) return;
    team_rates *r = (team_rates *)s->g->rates + 64;
    const int all = choose_rate(r, TRIALS / 2);
    /* mutant: !all -> 0 : test_small_graphs_start_no_threads */
    if (!all) s->dense_team = 1;
    s->dense_rate = r->rate + all;
}

/* Set how many threads the next push takes.  A class is a power of two of edges.  All threads
 * take what is above a first class, and one what is below, but where the class next to it
 * shows that this does not pay, both ways are tried. */
static void choose_push_team(search_state *s) {
    const int class = 63 - __builtin_clzll((uint64_t)s->edges | 1);
    /* mutant: class >= SERIAL_CLASS -> 1 : test_fast_takes_the_cheaper_direction */
    const int large = class >= SERIAL_CLASS;
    s->team = large ? s->threads : 1;
    s->push_rate = NULL;
    if (s->threads == 1 || !s->g->rates) return;
    team_rates *classes = (team_rates *)s->g->rates, *own = classes + class;
    int known = -1;
    for (int c = class - 1; large && c >= SERIAL_CLASS && known < 0; c--)
        known = all_pay(classes + c);
    /* mutant: own + 1 -> own : test_small_levels_are_tried_where_large_ones_show_that_it_pays */
    if (!large) known = all_pay(own + 1);
    if (known < 0 ? !large || class >= SERIAL_CLASS + NEAR_CLASSES : known == large) return;
    const int all = choose_rate(own, 1);
    s->team = all ? s->threads : 1;
    s->push_rate = own->rate + all;
}

/* Choose how the next level is pushed, and by how many threads; queues the frontier.
 * marks: whether a pull may follow */
static int choose_push(search_state *s, int marks) {
    if (!s->queued) queue_found(s);
    /* mutant: MARK_PRICE > -> MARK_PRICE < : test_fast_takes_the_cheaper_direction */
    if (marks && s->edges >> SERIAL_CLASS && edges_expected(s) * MARK_PRICE > s->pull_price)
        return MARKING_PUSH;
    choose_push_team(s);
    return s->team == 1 ? SERIAL_PUSH : PUSH;
}

/* Choose the mode of the next level: by cost, 0, or push only, 1, or pull only, 2. */
static int choose(search_state *s, int direction) {
    if (direction == 0) price(s);
    /* mutant: pull_price < s->push -> pull_price > s->push
     *   : test_fast_takes_the_cheaper_direction */
    if (direction == 2 || (direction == 0 && s->pull_price < s->push_price)) return PULL;
    return choose_push(s, direction == 0);
}

/* Run one level; returns how many edges it looked at. */
static int64_t run_level(search_state *s, int mode) {
    int64_t checks = s->edges;
    const int dense = mode == PULL || mode == MARKING_PUSH;
    if (dense) s->team = s->dense_team;
    double *rate = dense ? s->dense_rate : s->push_rate;
    const double began = rate ? team_seconds() : 0;
    s->edges_before = s->queued ? checks : 0;
    s->degree_before = (double)checks / (double)s->count;
    if (dense) {
        s->queued = s->complete = 0;
        if (mode == PULL)
            checks = pull(s);
        else
            push_marking(s);
        if (rate) {
            s->dense_seconds += team_seconds() - began;
            s->dense_work += (double)(checks + s->g->words);
        }
        return checks;
    }
    s->missed = -1;
    s->spare = s->queue + s->count;
    if (!s->complete) s->spare = s->g->queue[s->queue != s->g->queue[1]];
    if (mode == SERIAL_PUSH)
        push_serial(s);
    else
        push_parallel(s);
    s->queue = s->spare;
    if (rate) note_rate(rate, team_seconds() - began, (double)checks);
    return checks;
}
#endif
