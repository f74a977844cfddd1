/* Levels of a part: of its inner graph, and along its outer edges, see part.py.
 *
 * Numbers are those of all delegates, the same on every part; a gap up to a whole word, which
 * is never entered; the normal vertices of the part.  The rows of a delegate are those of dd,
 * then of dn; the rows of a normal vertex those of nd, then what nn has inside the part.  What
 * is found of delegates all parts mark as visited, after each level.  Along edges of nn that
 * leave the part, the outer ones, frontier vertices send items to other parts, or vertices that
 * are still unvisited ask other parts, and are answered by items.
 *
 * Where a part owns its rows all vertices with edges are delegates.  It pushes from its own
 * and pulls for these alone, and has no outer edges.
 *
 * Source: Pan, Pearce, Owens 2018, Sections III and IV.
 *
 * variants: OFFSET=uint32_t,uint64_t VERTEX=int32_t,int64_t MASKED=0,1
 */
#define OWN(g, word) ((g)->expandable[word])
#include "levels.h"

#define UNKNOWN (-1)
#define NUMBER_AT 32    /* bits of an item; below the number is the place of its parent */
#define PIECES_EACH 8   /* of a frontier with outer edges, for each thread */
#define FEW_ROWS 1024   /* up to which many queued vertices are one piece */
#define RUN 64          /* vertices of a queue that a piece takes together */

/* Rows of a subgraph. */
typedef struct {
    const void *offsets;  /* [rows + 1], of `wide` bytes */
    const void *columns;  /* [edges], uint32_t, or uint64_t in nn of several parts */
    const uint64_t *seen; /* [ceil(edges / 64)], of MASKED alone */
    int64_t wide;
} subgraph;

typedef struct {
    whole_graph graph;
    search_state state;
    subgraph nn, nd, dn, dd; /* while rows in are joined, those of edges in */
    subgraph in_nn;          /* nn of edges in, along which vertices ask */
    uint64_t *fresh;     /* [delegate_words], found here in this level; zero between levels */
    int64_t *targets;    /* [target_count] not reached, by number */
    int64_t target_count;
    int64_t delegates, delegate_words;
    int64_t front_delegates, front_normals; /* of the frontier; delegates: of all parts */
    int64_t front_outer; /* its vertices of has_outer */
    int64_t owns_rows;
    uint64_t *has_outer; /* [words], vertices with visible outer edges; NULL: there are none */
    uint64_t *may_ask;   /* [words], those with such edges in; has_outer if edges lead both ways */
    int64_t index, parts, ranks, threads;
    int64_t outer, open; /* vertices of may_ask; unvisited ones before the next level */
    int64_t *counts;     /* [threads * PIECES_EACH, parts], items, then where they go */
    int64_t *starts;     /* [parts + 1], where the items of each part begin */
    uint64_t *items;     /* [starts[parts]] */
    int64_t pieces;      /* into which the vertices are cut that send or ask */
} part_state;

static inline uint64_t offset_of(const subgraph *r, int64_t row) {
    return r->wide == 8 ? ((const uint64_t *)r->offsets)[row] : ((const uint32_t *)r->offsets)[row];
}

static inline int is_seen(const subgraph *r, uint64_t e) {
    return !MASKED || (int)(r->seen[e >> 6] >> (e & 63) & 1);
}

static inline uint32_t column_of(const subgraph *r, uint64_t e) {
    return ((const uint32_t *)r->columns)[e];
}

/* The first number of a normal vertex. */
static inline int64_t normals_from(const part_state *s) { return 64 * s->delegate_words; }

/* The part of an end of nn, and its number there. */
static inline int64_t part_at(const part_state *s, const subgraph *nn, uint64_t e) {
    return s->parts > 1 ? (int64_t)(((const uint64_t *)nn->columns)[e] >> NUMBER_AT) : s->index;
}

static inline uint32_t number_at(const part_state *s, const subgraph *nn, uint64_t e) {
    return s->parts > 1 ? (uint32_t)((const uint64_t *)nn->columns)[e] : column_of(nn, e);
}

/* The two subgraphs that have rows of a number, and its row there; false in the gap. */
static inline int rows_of(const part_state *s, int64_t v, const subgraph **first,
                          const subgraph **second, int64_t *row) {
    const int normal = v >= normals_from(s);
    *first = normal ? &s->nd : &s->dd, *second = normal ? &s->nn : &s->dn;
    *row = normal ? v - normals_from(s) : v;
    return normal || v < s->delegates;
}

/* Count the inner edges of each row; a body of team_for, as those that follow. */
static void count_rows(void *argument, int64_t from, int64_t to) {
    const part_state *s = argument;
    OFFSET *lengths = (OFFSET *)s->graph.offsets + 1;
    for (int64_t v = from; v < to; v++) {
        const subgraph *first, *second;
        int64_t row;
        lengths[v] = 0;
        if (!rows_of(s, v, &first, &second, &row)) continue;
        lengths[v] = (OFFSET)(offset_of(first, row + 1) - offset_of(first, row));
        const uint64_t end = offset_of(second, row + 1);
        for (uint64_t e = offset_of(second, row); e < end; e++)
            lengths[v] += second != &s->nn || part_at(s, second, e) == s->index;
    }
}

static inline void set_seen(const part_state *s, OFFSET e) {
    __atomic_fetch_or((uint64_t *)s->graph.seen + (e >> 6), UINT64_C(1) << (e & 63),
                      __ATOMIC_RELAXED);
}

/* Write the columns of inner rows; with MASKED, which of them are seen, instead. */
static void join_rows(void *argument, int64_t from, int64_t to) {
    const part_state *s = argument;
    uint32_t *columns = (uint32_t *)s->graph.columns;
    for (int64_t v = from; v < to; v++) {
        const subgraph *first, *second;
        int64_t row;
        OFFSET at = s->graph.offsets[v];
        if (!rows_of(s, v, &first, &second, &row)) continue;
        for (uint64_t e = offset_of(first, row); e < offset_of(first, row + 1); e++, at++) {
            if (!MASKED) columns[at] = column_of(first, e); /* a delegate */
            else if (is_seen(first, e)) set_seen(s, at);
        }
        for (uint64_t e = offset_of(second, row); e < offset_of(second, row + 1); e++) {
            if (second == &s->nn && part_at(s, second, e) != s->index) continue;
            const uint32_t number = second == &s->nn ? number_at(s, second, e)
                                                     : column_of(second, e);
            if (!MASKED) columns[at] = (uint32_t)normals_from(s) + number;
            else if (is_seen(second, e)) set_seen(s, at);
            at++;
        }
    }
}

/* The vertices of a word that have visible outer edges. */
static uint64_t outer_bits(const part_state *s, const subgraph *nn, int64_t w) {
    uint64_t bits = 0;
    for (int64_t v = w * 64; v < w * 64 + 64 && v < s->graph.active; v++) {
        const int64_t row = v - normals_from(s);
        if (row < 0) continue;
        int some = 0;
        const uint64_t end = offset_of(nn, row + 1);
        for (uint64_t e = offset_of(nn, row); e < end && !some; e++)
            some = is_seen(nn, e) && part_at(s, nn, e) != s->index;
        bits |= (uint64_t)some << (v & 63);
    }
    return bits;
}

/* Mark the vertices of words that have visible outer edges. */
static void mark_outer(void *argument, int64_t from, int64_t to) {
    const part_state *s = argument;
    for (int64_t w = from; w < to; w++) {
        s->has_outer[w] = outer_bits(s, &s->nn, w);
        if (s->may_ask != s->has_outer) s->may_ask[w] = outer_bits(s, &s->in_nn, w);
        team_add(&((part_state *)argument)->outer, __builtin_popcountll(s->may_ask[w]));
    }
}

/* Write the offsets of inner rows, but for the sum. */
void part_count(part_state *s) {
    team_for((int)s->threads, s->graph.active, 4096, count_rows, s);
}

void part_join(part_state *s) {
    team_for((int)s->threads, s->graph.active, 4096, join_rows, s);
}

void part_mark(part_state *s) {
    s->outer = 0;
    team_for((int)s->threads, s->graph.words, 64, mark_outer, s);
}

/* Begin from roots, [graph.root_count]: delegates, which all parts know, and own vertices. */
void part_start(part_state *s) {
    whole_graph *g = &s->graph;
    clear_visited(g);
    if (s->delegates & 63) g->visited[s->delegate_words - 1] |= ~UINT64_C(0) << (s->delegates & 63);
    s->state = (search_state){.g = g, .threads = (int)s->threads, .queue = g->queue[0],
                              .missed = -1, .queued = 1};
    search_state *state = &s->state;
    choose_dense_team(state);
    state->count = visit_roots(g, 0);
    s->front_delegates = 0;
    for (int64_t k = 0; k < state->count; k++) {
        const uint32_t v = state->queue[k];
        state->edges += degree(g, v);
        state->reached += test(g->enterable, v);
        s->front_delegates += v < s->delegates;
    }
    s->front_normals = state->count - s->front_delegates;
    s->open = s->outer;
}

/* A pass over the outer edges of the frontier, or of unvisited vertices. */
typedef struct {
    part_state *s;
    int asks, writes; /* writes: the items, where counts are places; else it counts */
} outer_pass;

static void pass_row(const outer_pass *pass, uint32_t v, int64_t *counts) {
    const part_state *s = pass->s;
    const int64_t row = v - normals_from(s);
    const uint64_t each = (uint64_t)(s->parts / s->ranks); /* parts of a rank */
    const uint64_t place = pass->asks ? (uint64_t)row * each + (uint64_t)(s->index / s->ranks)
                                      : (uint64_t)s->graph.names[v] / (uint64_t)s->ranks;
    const subgraph *nn = pass->asks ? &s->in_nn : &s->nn;
    const uint64_t end = offset_of(nn, row + 1);
    for (uint64_t e = offset_of(nn, row); e < end; e++) {
        const int64_t part = part_at(s, nn, e);
        if (part == s->index || !is_seen(nn, e)) continue;
        if (pass->writes)
            s->items[counts[part]] = (uint64_t)number_at(s, nn, e) << NUMBER_AT | place;
        counts[part]++;
    }
}

/* Pieces of the frontier take turns, each with counts of its own. */
static void pass_pieces(void *argument, int64_t from, int64_t to) {
    const outer_pass *pass = argument;
    const part_state *s = pass->s;
    const search_state *state = &s->state;
    const whole_graph *g = &s->graph;
    const int queued = state->queued && !pass->asks;
    for (int64_t piece = from; piece < to; piece++) {
        int64_t *counts = s->counts + piece * s->parts;
        for (int64_t k = piece * RUN; queued && k < state->count; k += s->pieces * RUN)
            for (int64_t i = k; i < k + RUN && i < state->count; i++)
                if (test(s->has_outer, state->queue[i])) pass_row(pass, state->queue[i], counts);
        for (int64_t w = s->delegate_words + piece; !queued && w < g->words; w += s->pieces) {
            uint64_t rest = pass->asks ? ~g->visited[w] : g->visited[w] & ~g->next[w];
            for (rest &= (pass->asks ? s->may_ask : s->has_outer)[w]; rest; rest &= rest - 1)
                pass_row(pass, (uint32_t)(w * 64 + __builtin_ctzll(rest)), counts);
        }
    }
}

static void pass_outer(part_state *s, int asks, int writes) {
    outer_pass pass = {s, asks, writes};
    team_for((int)s->threads, s->pieces, 1, pass_pieces, &pass);
}

/* Turn counts into the places where items of each piece begin; returns their sum. */
static int64_t place_items(part_state *s) {
    int64_t sum = 0;
    for (int64_t part = 0; part < s->parts; part++) {
        s->starts[part] = sum;
        for (int64_t *c = s->counts + part; c < s->counts + s->pieces * s->parts; c += s->parts) {
            const int64_t count = *c;
            *c = sum;
            sum += count;
        }
    }
    return s->starts[s->parts] = sum;
}

static void clear_counts(part_state *s, int64_t pieces) {
    s->pieces = pieces;
    memset(s->counts, 0, (size_t)(pieces * s->parts) * sizeof *s->counts);
}

/* Count what the frontier sends, or with `asks` what unvisited vertices ask, for which
 * part_send needs room. */
int64_t part_items(part_state *s, int64_t asks) {
    const int few = s->state.queued && s->state.count <= FEW_ROWS && !asks;
    clear_counts(s, few ? 1 : s->threads * PIECES_EACH);
    pass_outer(s, (int)asks, 0);
    return place_items(s);
}

void part_send(part_state *s, int64_t asks) { pass_outer(s, (int)asks, 1); }

/* Normal vertices of the frontier that are in a set, [words]. */
static int64_t front_in(const part_state *s, const uint64_t *set) {
    const search_state *state = &s->state;
    const whole_graph *g = &s->graph;
    int64_t count = 0;
    for (int64_t k = 0; state->queued && k < state->count; k++)
        count += test(set, state->queue[k]);
    for (int64_t w = s->delegate_words; !state->queued && w < g->words; w++)
        count += __builtin_popcountll(g->visited[w] & ~g->next[w] & set[w]);
    return count;
}

/* Set the prices of a push and of a pull along inner rows, the targets that are not reached, and
 * how many vertices of the frontier, and unvisited ones, have outer edges. */
void part_work(part_state *s) {
    int64_t left = 0;
    price(&s->state);
    for (int64_t k = 0; k < s->target_count; k++)
        if (!test(s->graph.visited, (uint32_t)s->targets[k])) s->targets[left++] = s->targets[k];
    s->target_count = left;
    s->front_outer = s->has_outer ? front_in(s, s->has_outer) : 0;
    /* mutant: front_in(s, s->may_ask) -> s->front_outer : test_questions_of_arcs */
    s->open -= s->may_ask == s->has_outer ? s->front_outer : front_in(s, s->may_ask);
}

/* Run a level of the inner graph; marks: whether pushes may mark.  Returns edge checks. */
int64_t part_advance(part_state *s, int64_t pull, int64_t marks) {
    search_state *state = &s->state;
    const whole_graph *g = &s->graph;
    state->level++;
    const int mode = pull ? PULL : choose_push(state, (int)marks);
    const int64_t checks = run_level(state, mode);
    for (int64_t k = 0; state->queued && k < state->count; k++)
        if (state->queue[k] < s->delegates) set(s->fresh, state->queue[k]);
    for (int64_t w = 0; !state->queued && w < s->delegate_words; w++)
        s->fresh[w] = g->visited[w] & ~g->next[w];
    return checks;
}

/* The first neighbour of v that was visited before this level, whose finds are `found`. */
static uint32_t parent_of(const whole_graph *g, uint32_t v, const uint64_t *found) {
    const uint32_t first = g->first[v];
    /* mutant: !test(found, first) -> 1 : test_directed_parts */
    if (test(g->visited, first) && !test(found, first)) return first;
    OFFSET e = g->in_offsets[v], last = g->in_offsets[v + 1] - 1;
    for (; e < last; e++) {
        uint32_t u = g->in_columns[e];
        /* mutant: !test(found, u) -> 1 : test_directed_parts */
        if (sees_in(g, e) && test(g->visited, u) && !test(found, u)) break;
    }
    return g->in_columns[e];
}

static inline void enqueue(search_state *state, uint32_t v) {
    if (!state->queued) return;
    state->queue[state->count++] = v;
    state->edges += degree(state->g, v);
}

/* Take delegates that only others have found: where rows are complete, an own neighbour is the
 * parent, since all that were visited before are one level up. */
static void take_others(part_state *s, const uint64_t *found, const uint32_t *v, int64_t count) {
    const whole_graph *g = &s->graph;
    for (int64_t k = 0; k < count; k++) {
        const uint32_t at = g->vertices[v[k]];
        g->level[at] = s->state.level;
        if (g->parent)
            g->parent[at] = s->owns_rows ? g->names[parent_of(g, v[k], found)] : UNKNOWN;
        enqueue(&s->state, v[k]);
    }
}

/* Take the delegates that all parts have found, [delegate_words]; NULL: none. */
void part_accept(part_state *s, const uint64_t *found) {
    search_state *state = &s->state;
    whole_graph *g = &s->graph;
    uint32_t later[2 * NEAR];
    int64_t kept = 0, count = 0;
    s->front_normals = state->count;
    s->front_delegates = 0;
    for (int64_t w = 0; found && w < s->delegate_words; w++) {
        if (!found[w]) continue;
        const uint64_t mine = found[w] & g->expandable[w];
        s->front_delegates += __builtin_popcountll(found[w]);
        s->front_normals -= __builtin_popcountll(s->fresh[w]);
        kept += __builtin_popcountll(mine);
        state->reached += __builtin_popcountll(mine & g->enterable[w]);
        s->fresh[w] = 0;
        uint64_t rest = mine & ~g->visited[w];
        g->visited[w] |= found[w];
        for (; rest; rest &= rest - 1) {
            uint32_t v = later[count++] = (uint32_t)(w * 64 + __builtin_ctzll(rest));
            near_results(g, v);
        }
        if (count < NEAR) continue;
        take_others(s, found, later, count);
        count = 0;
    }
    take_others(s, found, later, count);
    if (!state->queued) state->count = kept + s->front_normals;
    state->reached += s->front_normals;
}

/* Take the items of a rank: own vertices that its parts have found. */
void part_take(part_state *s, int64_t rank, const uint64_t *items, int64_t count) {
    search_state *state = &s->state;
    whole_graph *g = &s->graph;
    for (int64_t k = 0; k < count; k++) {
        const uint32_t v = (uint32_t)(normals_from(s) + (int64_t)(items[k] >> NUMBER_AT));
        if (test(g->visited, v)) continue;
        set(g->visited, v);
        g->level[g->vertices[v]] = state->level;
        if (g->parent)
            g->parent[g->vertices[v]] =
                (VERTEX)((int64_t)(uint32_t)items[k] * s->ranks + rank);
        if (state->queued) enqueue(state, v);
        else state->count++;
        state->reached += test(g->enterable, v);
        s->front_normals++;
    }
}

/* Begin to answer; part_answer first counts the answers to questions. */
void part_hear(part_state *s) { clear_counts(s, 1); }

/* Answer questions of a rank about vertices that were visited before this level.
 * writes: the answers, for which there is room; else they are counted */
void part_answer(part_state *s, int64_t rank, const uint64_t *items, int64_t count,
                 int64_t writes) {
    const whole_graph *g = &s->graph;
    const uint64_t each = (uint64_t)(s->parts / s->ranks);
    for (int64_t k = 0; k < count; k++) {
        const uint32_t v = (uint32_t)(normals_from(s) + (int64_t)(items[k] >> NUMBER_AT));
        /* mutant: < s->state -> <= s->state : test_part_pairs::test_named_graphs */
        if (!test(g->visited, v) || !(g->level[g->vertices[v]] < s->state.level)) continue;
        const uint64_t place = (uint32_t)items[k];
        int64_t *at = s->counts + rank + s->ranks * (int64_t)(place % each);
        if (writes)
            s->items[*at] =
                place / each << NUMBER_AT | (uint64_t)g->names[v] / (uint64_t)s->ranks;
        ++*at;
    }
}

/* Place the answers; returns how many there are. */
int64_t part_placed(part_state *s) { return place_items(s); }

/* Give vertices whose results are here and that were not reached level and parent -1. */
void part_finish(part_state *s) { finish_search(&s->graph); }
