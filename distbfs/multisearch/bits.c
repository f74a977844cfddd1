/* Many searches in one traversal: each vertex has a word with one bit for each search.
 *
 * WIDTH 64-bit lanes make a word, so 64 to 512 searches share every read of an edge.
 * A pull asks the snapshot of all bits seen: a bit that a neighbour has seen and the
 * vertex has not was found one level up, as any earlier one would have arrived by now.
 * It leaves a row as soon as every search that still runs has been seen.  A push ORs the
 * word of a frontier vertex into its neighbours.  Pull or push is chosen by cost, as in
 * engines/openmp/fast.c.  Levels are kept as bit planes: plane j holds bit j of each
 * level.  They become bytes or wider at the end (spread.h), when the depth is known.
 *
 * A whole graph is searched by bits_run.  Of a graph in parts the caller makes each level:
 * bits_push or bits_pull for each subgraph, bits_take for words of other ranks, then
 * bits_settle for each kind of vertices.
 *
 * Sources: Then, Kaufmann, Chirigati et al., The More the Merrier: Efficient
 * Multi-Source Graph Traversal, VLDB 2014, Sections 3 and 4; McLaughlin, Riedy, Bader
 * 2015 for the abstraction; Pan, Pearce, Owens 2018, Section IV, for the subgraphs of parts.
 *
 * variants: WIDTH=1,2,4,8 OFFSET=uint32_t,uint64_t
 */
#include "bits_search.h"

#define SERIAL_EDGES 2048 /* frontier edges below which one thread pushes alone */
#define FEW_ROWS 64       /* up to which one thread makes a step in parts alone */
#define LONG_ROW 4096     /* rows above this are cut among the threads of a push */
#define PIECES 16         /* into which such a row is cut */
#define LIGHT_SAMPLES 1024 /* frontier vertices that tell how large each search is */
#define LIGHT 32         /* a search is light with fewer edges / 256 in its frontier */
#define LOCAL_QUEUE 512

static void pull_rows(void *argument, int id) {
    (void)id;
    shared_level *l = argument;
    bit_search *s = l->s;
    const word light = l->light, wanted = running(s), heavy = wanted & ~light;
    tally t;
    int64_t from, to;
    begin_tally(s, &t);
    while (team_chunk(&l->next, s->rows, 1024, &from, &to))
        for (int64_t v = from; v < to; v++) {
            word old = s->seen[v], todo = heavy & ~old, gain = no_bits();
            if (any(light)) gain = s->other[v];
            if (any(todo))
                gain |= pull_row(s->in_offsets, s->in_columns, (uint64_t)v, s->seen, todo,
                                 &t.checks);
            /* mutant: wanted & ~old -> wanted : test_bits::test_named_graphs */
            gain &= wanted & ~old;
            s->other[v] = old | gain;
            if (any(gain)) note(s, &t, (uint32_t)v, gain);
        }
    end_tally(l, &t);
}

/* Find the bits of a level that pulls want; those of `light` were pushed. */
static void pull(shared_level *l, int threads) {
    bit_search *s = l->s;
    l->next = 0;
    team_run(threads, pull_rows, l);
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

static void queue_rows(void *argument, int64_t from, int64_t to) {
    shared_level *l = argument;
    bit_search *s = l->s;
    local_queue q = {.count = 0};
    for (int64_t v = from; v < to; v++) {
        if (any(s->seen[v] & ~s->other[v])) {
            q.items[q.count++] = (uint32_t)v;
            if (q.count == LOCAL_QUEUE) flush(s->queue, &q, &l->tail);
        }
        s->other[v] = no_bits();
    }
    flush(s->queue, &q, &l->tail);
}

/* Queue the vertices that the last pull found, and clear what a push adds to. */
static void queue_found(bit_search *s, int threads) {
    shared_level l = {.s = s};
    team_for(threads, s->rows, 4096, queue_rows, &l);
    s->clean = s->queued = 1;
}

/* Add a word to the next one of v, which goes to the spare queue.
 * shared: other threads do the same meanwhile. */
static inline void give(bit_search *s, uint32_t v, word gain, const int shared, local_queue *q,
                        int64_t *tail) {
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
    if (!added) return;
    uint64_t *claims = s->claimed + (v >> 6), bit = UINT64_C(1) << (v & 63);
    if (__atomic_load_n(claims, __ATOMIC_RELAXED) & bit) return;
    if (shared) {
        if (__atomic_fetch_or(claims, bit, __ATOMIC_RELAXED) & bit) return;
    } else {
        *claims |= bit;
    }
    q->items[q->count++] = v;
    if (q->count == LOCAL_QUEUE) flush(s->spare, q, tail);
}

/* OR the word of a frontier vertex into the neighbours first … last - 1 of its row. */
static inline void push_range(shared_level *l, word from, OFFSET first, OFFSET last,
                              const int shared, local_queue *q) {
    bit_search *s = l->s;
    for (OFFSET e = first; e < last; e++) {
        uint32_t v = l->columns[e];
        word gain = from & ~s->seen[v];
        if (any(gain)) give(s, v, gain, shared, q, &l->tail);
    }
}

/* Push rows of the frontier, but set long ones aside; found vertices go to the spare
 * queue. */
static inline void push_rows_of(shared_level *l, const int shared) {
    local_queue q = {.count = 0};
    int64_t from, to;
    while (team_chunk(&l->next, l->size, 32, &from, &to))
        for (int64_t k = from; k < to; k++) {
            uint32_t u = l->from->queue[k];
            OFFSET first = l->offsets[u], last = l->offsets[u + 1];
            if (shared && last - first > LONG_ROW) {
                int64_t at = __atomic_fetch_add(&l->aside, 1, __ATOMIC_RELAXED);
                if (at < LONG_ROWS) {
                    l->rows[at] = u;
                    continue;
                }
            }
            push_range(l, l->from->seen[u], first, last, shared, &q);
        }
    flush(l->s->spare, &q, &l->tail);
}

static void push_rows(void *argument, int id) {
    (void)id;
    shared_level *l = argument;
    if (l->shared)
        push_rows_of(l, 1);
    else
        push_rows_of(l, 0);
}

static void push_pieces(void *argument, int id) {
    (void)id;
    shared_level *l = argument;
    local_queue q = {.count = 0};
    int64_t from, to;
    while (team_chunk(&l->next, l->aside * PIECES, 1, &from, &to)) {
        uint32_t u = l->rows[from / PIECES];
        OFFSET start = l->offsets[u];
        int64_t d = (int64_t)(l->offsets[u + 1] - start), piece = from % PIECES;
        push_range(l, l->from->seen[u], (OFFSET)(start + d * piece / PIECES),
                   (OFFSET)(start + d * (piece + 1) / PIECES), 1, &q);
    }
    flush(l->s->spare, &q, &l->tail);
}

/* Turn what was pushed into bits seen, and count it. */
static void take_pushed(void *argument, int id) {
    (void)id;
    shared_level *l = argument;
    bit_search *s = l->s;
    tally t;
    int64_t from, to;
    begin_tally(s, &t);
    while (team_chunk(&l->next, l->tail, 512, &from, &to))
        for (int64_t k = from; k < to; k++) {
            uint32_t v = s->spare[k];
            word gain = s->other[v];
            s->seen[v] |= gain;
            s->other[v] = no_bits();
            /* every bit of this word belongs to a vertex of the queue */
            __atomic_store_n(s->claimed + (v >> 6), 0, __ATOMIC_RELAXED);
            note(s, &t, v, gain);
        }
    end_tally(l, &t);
}

/* Push the frontier along edges, by a team. */
static void push_along(shared_level *l, int team) {
    l->shared = team > 1;
    team_run(team, push_rows, l);
    l->next = 0;
    if (l->aside > LONG_ROWS) l->aside = LONG_ROWS;
    if (l->aside) team_run(team, push_pieces, l);
    l->next = 0;
}

/* Make what was pushed the frontier. */
static void settle(shared_level *l, int team) {
    bit_search *s = l->s;
    team_run(team, take_pushed, l);
    uint32_t *swap = s->queue;
    s->queue = s->spare;
    s->spare = swap;
}

static void push(shared_level *l, int threads, int64_t work) {
    bit_search *s = l->s;
    int team = work > SERIAL_EDGES ? threads : 1;
    l->from = s;
    l->offsets = s->offsets;
    l->columns = s->columns;
    s->records[s->level].checks = work;
    push_along(l, team);
    settle(l, team);
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
        /* mutant: (double) -> 0 * (double) : test_light_searches_do_not_keep_pulls_at_rows */
        if (edges[i] < (double)limit) light[i / 64] |= all[i / 64] & UINT64_C(1) << (i & 63);
    return light;
}

static void push_light_rows(void *argument, int64_t low, int64_t high) {
    shared_level *l = argument;
    bit_search *s = l->s;
    int64_t checks = 0;
    for (int64_t k = low; k < high; k++) {
        uint32_t u = s->queue[k];
        word from = s->seen[u] & l->light;
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
    team_add(&l->checks, checks);
}

/* Push the bits of some searches alone, to `other`, where a pull finds them. */
static void push_light(shared_level *l, int threads) {
    team_for(threads, l->size, 64, push_light_rows, l);
    l->s->records[l->s->level].checks += l->checks;
}

/* Whether to pull, and which searches to push before it. */
static int pull_next(bit_search *s, int direction, int threads, word *light) {
    if (direction != BY_PRICE) return direction == ONLY_PULL;
    if (s->work <= SERIAL_EDGES || s->work < s->edges / PULL_FLOOR) return 0;
    if (!s->queued) queue_found(s, threads);
    *light = light_searches(s);
    const word heavy = running(s) & ~*light;
    const double price = pull_price(s->in_offsets, s->in_columns, s->rows, s->seen, s->seen,
                                    heavy, s->level);
    /* mutant: price < -> price > : test_pull_stops_early_and_the_choice_is_by_price */
    return price < (double)s->work * PUSH_PRICE;
}

static void clear_words(void *argument, int64_t from, int64_t to) {
    bit_search *s = argument;
    for (int64_t v = from; v < to; v++) {
        s->seen[v] = s->other[v] = no_bits();
        for (int p = 0; s->keep_levels && p < s->digits; p++) s->planes[p][v] = no_bits();
    }
}

/* Begin searches, int64 [k], from sources, uint32 [k], vertex numbers. */
void bits_begin(bit_search *s, const uint32_t *sources, const int64_t *searches, int64_t k,
                int threads) {
    team_for(threads, s->n, 4096, clear_words, s);
    s->count = s->work = s->level = s->tail = 0;
    s->clean = s->queued = 1;
    memset(s->running, 0, sizeof s->running);
    memset(s->depth, 0, sizeof s->depth);
    bit_record first = {PUSH, k, 0};
    if (s->records) s->records[0] = first;
    if (s->counts) memset(s->counts, 0, sizeof(int64_t) * SEARCHES);
    for (int64_t j = 0; j < k; j++) {
        uint32_t v = sources[j];
        int64_t i = searches[j];
        uint64_t *lane = (uint64_t *)(s->seen + v) + i / 64, bit = UINT64_C(1) << (i & 63);
        if (s->counts) s->counts[i] = 1;
        if (s->reached_from) s->reached_from[v]++;
        if (v < s->rows) {
            if (!any(s->seen[v])) {
                s->queue[s->count++] = v;
                if (s->offsets) s->work += out_degree(s, v);
            }
            s->running[i / 64] |= bit;
        } else { /* a pull copies rows with edges only */
            ((uint64_t *)(s->other + v))[i / 64] |= bit;
        }
        *lane |= bit;
    }
}

/* Note which searches have a frontier, and how deep they are. */
static void end_level(const shared_level *l) {
    bit_search *s = l->s;
    memcpy(s->running, &l->found, sizeof l->found);
    for (int lane = 0; lane < WIDTH; lane++)
        for (uint64_t rest = l->found[lane]; rest; rest &= rest - 1)
            s->depth[64 * lane + __builtin_ctzll(rest)] = (int32_t)s->level;
}

/* Continue until no search has a frontier (DONE), until level 2^digits (GROW: the caller adds
 * a plane and doubles counts and records), or until stop returns true (STOPPED). */
int bits_run(bit_search *s, int threads, int direction) {
    while (s->count && s->level < s->limit) {
        if ((s->level + 1) >> s->digits) return GROW;
        if (team_stops(s->stop)) return STOPPED;
        word light = no_bits();
        int up = pull_next(s, direction, threads, &light);
        if (!up && !s->queued) queue_found(s, threads);
        shared_level l = {.s = s, .light = light, .size = s->count};
        int64_t work = s->work;
        s->level++;
        s->count = s->work = 0;
        bit_record record = {up ? PULL : PUSH, l.size, 0};
        s->records[s->level] = record;
        if (s->counts) memset(s->counts + s->level * SEARCHES, 0, 8 * SEARCHES);
        if (up) {
            if (any(light)) push_light(&l, threads);
            pull(&l, threads);
        } else {
            if (!s->clean) queue_found(s, threads);
            push(&l, threads, work);
        }
        end_level(&l);
    }
    return DONE;
}

/* Push the words of a frontier along edges to the vertices of `to`. */
void bits_push(const OFFSET *offsets, const uint32_t *columns, const bit_search *from,
               bit_search *to, int threads) {
    shared_level l = {.s = to, .from = from, .offsets = offsets, .columns = columns,
                      .size = from->count, .tail = to->tail};
    push_along(&l, from->count > FEW_ROWS ? threads : 1);
    to->tail = l.tail;
}

static void pull_words(void *argument, int id) {
    (void)id;
    shared_level *l = argument;
    bit_search *to = l->s;
    const word wanted = running(l->from);
    local_queue q = {.count = 0};
    int64_t first, last, checks = 0;
    while (team_chunk(&l->next, to->n, 1024, &first, &last))
        for (int64_t v = first; v < last; v++) {
            word todo = wanted & ~to->seen[v] & ~to->other[v];
            if (!any(todo)) continue;
            todo &= pull_row(l->offsets, l->columns, (uint64_t)v, l->from->seen, todo, &checks);
            if (any(todo)) give(to, (uint32_t)v, todo, 0, &q, &l->tail);
        }
    flush(to->spare, &q, &l->tail);
}

/* Pull the words of a frontier along edges, by the rows of their ends.  Only searches in the
 * frontier of `from` have bits that these lack. */
void bits_pull(const OFFSET *end_offsets, const uint32_t *end_columns, const bit_search *from,
               bit_search *to, int threads) {
    shared_level l = {.s = to, .from = from, .offsets = end_offsets, .columns = end_columns,
                      .tail = to->tail};
    team_run(threads, pull_words, &l);
    to->tail = l.tail;
}

/* The time that a pull saves of that of a push of the frontier along the same edges, in looks
 * at an edge; negative where it takes longer.
 *
 * offsets: of the edges; end_offsets, end_columns: of the same by their ends, or of those that
 * lead to these */
int64_t bits_saving(const OFFSET *offsets, const OFFSET *end_offsets,
                    const uint32_t *end_columns, const bit_search *from, const bit_search *to) {
    int64_t work = 0;
    for (int64_t k = 0; k < from->count; k++)
        work += (int64_t)(offsets[from->queue[k] + 1] - offsets[from->queue[k]]);
    if (work < (int64_t)(offsets[from->n] / PULL_FLOOR)) return -work;
    const double price = pull_price(end_offsets, end_columns, to->n, to->seen, from->seen,
                                    running(from), from->level + 1);
    /* mutant: PUSH_PRICE - price -> -PUSH_PRICE + price : test_pulls_read_few_edges_of_hubs */
    return (int64_t)((double)work * PUSH_PRICE - price);
}

/* Add words to the next ones of k vertices. */
void bits_take(bit_search *to, const uint32_t *vertices, const word *words, int64_t k) {
    local_queue q = {.count = 0};
    for (int64_t i = 0; i < k; i++) {
        const word gain = words[i] & ~to->seen[vertices[i]];
        if (any(gain)) give(to, vertices[i], gain, 0, &q, &to->tail);
    }
    flush(to->spare, &q, &to->tail);
}

/* Make what the steps of a level gave to vertices the frontier, of the next level. */
void bits_settle(bit_search *s, int threads) {
    shared_level l = {.s = s, .tail = s->tail};
    s->level++;
    s->count = s->work = s->tail = 0;
    if (s->counts) memset(s->counts + s->level * SEARCHES, 0, 8 * SEARCHES);
    settle(&l, l.tail > FEW_ROWS ? threads : 1);
    end_level(&l);
}

typedef struct {
    const bit_search *s;
    const uint32_t *numbers;
    int64_t k, stride;
    int kind, planes;
    void *out;
} spreading;

static void spread_chunks(void *argument, int64_t from, int64_t to) {
    const spreading *w = argument;
    const bit_search *s = w->s;
    masks m;
    for (int64_t c = from; c < to; c++)
        for (int64_t lane = 0; lane < WIDTH && 64 * lane < w->k; lane++) {
            int64_t first = c * CHUNK_IDS;
            int64_t ids = s->n - first < CHUNK_IDS ? s->n - first : CHUNK_IDS;
            for (int p = 0; p <= w->planes; p++) {
                const uint64_t *bits = (uint64_t *)(p ? s->planes[p - 1] : s->seen);
                gather_masks(m[p], bits + lane, WIDTH, w->numbers + first, ids);
            }
            int64_t searches = w->k - 64 * lane < 64 ? w->k - 64 * lane : 64;
            for (int64_t i = 0; i < searches; i++)
                spread_row(m, w->planes, (int)i, w->kind, w->out,
                           (64 * lane + i) * w->stride + first, ids);
        }
    end_stores();
}

/* Write the levels of k searches by id, or whether vertices were reached.
 * out: [k, stride] of `kind` (spread.h); numbers: uint32 [n], id -> number. */
void bits_spread(const bit_search *s, const uint32_t *numbers, int64_t k, int kind,
                 int64_t stride, void *out, int threads) {
    int planes = 0;
    while (kind != FLAGS && s->level >> planes) planes++;
    int64_t chunks = (s->n + CHUNK_IDS - 1) / CHUNK_IDS;
    spreading w = {s, numbers, k, stride, kind, planes, out};
    team_for(threads, chunks, 4, spread_chunks, &w);
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
