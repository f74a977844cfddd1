/* Direction-optimizing search of a whole graph; its levels are those of levels.h.
 *
 * Trees that hang on the 2-core are not searched: their columns come last in rows, their
 * bits are set, so that pushes leave them alone, and one pass over them tells how far each
 * vertex is below the core.  A root in a tree is searched from in its own tree, and in the
 * core from where that hangs.
 *
 * A search that reaches few vertices costs what these cost: it keeps them in a queue, from
 * which the next search takes their results back, and looks at the trees that hang on them
 * alone.
 *
 * variants: OFFSET=uint32_t,uint64_t MASKED=0,1
 */
#include "levels.h"

#define FEW 16             /* the next search resets what one has reached of at most 1 / FEW */

typedef struct {
    const whole_graph *g;
    int own;         /* the tree of the root has its levels; its bits are not set */
    int64_t deepest; /* level */
} tree_pass;

#define AHEAD 16 /* vertices whose lines are asked for before */

/* Give vertices of trees a level below that of what they hang on. */
static void hang_trees(void *argument, int64_t from, int64_t to) {
    tree_pass *pass = argument;
    const whole_graph *g = pass->g;
    int32_t deepest = -1;
    const uint32_t end = (uint32_t)(g->active + to);
    for (uint32_t v = (uint32_t)(g->active + from); v < end; v++) {
        if (v + 2 * AHEAD < end) {
            __builtin_prefetch(g->vertices + g->first[v + 2 * AHEAD]);
            __builtin_prefetch(g->level + g->vertices[g->first[v + AHEAD]]);
            __builtin_prefetch(g->level + g->vertices[v + AHEAD], 1);
            if (g->parent) __builtin_prefetch(g->parent + g->vertices[v + AHEAD], 1);
        }
        if (pass->own && !test(g->visited, v)) continue;
        uint32_t id = g->vertices[v], above = g->vertices[g->first[v]];
        int32_t level = g->first[v] < v ? g->level[above] : -1;
        level += level >= 0;
        g->level[id] = level;
        if (g->parent) g->parent[id] = level < 0 ? -1 : (int32_t)above;
        deepest = level > deepest ? level : deepest;
    }
    int64_t most = __atomic_load_n(&pass->deepest, __ATOMIC_RELAXED);
    while (deepest > most &&
           !__atomic_compare_exchange_n(&pass->deepest, &most, deepest, 1, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
}

/* All but the chained ones, which are given theirs before. */
static void hang_leaves(void *argument, int64_t from, int64_t to) {
    int64_t chained = ((tree_pass *)argument)->g->chained;
    hang_trees(argument, chained + from, chained + to);
}

/* Search the tree of a root, whose bits are taken away; active vertices have their levels.
 * Its vertices are queued.  Returns how many there are. */
static int64_t search_tree(whole_graph *g, uint32_t root, uint32_t *queue) {
    uint32_t *from = g->queue[1];
    int64_t last = 1;
    queue[0] = from[0] = root;
    reach(g, root, root, 0);
    for (int64_t k = 0; k < last; k++) {
        uint32_t u = queue[k];
        int32_t below = g->level[g->vertices[u]] + 1;
        for (OFFSET e = g->offsets[u]; e < g->offsets[u + 1]; e++) {
            uint32_t v = g->columns[e];
            if (v == from[k] || v == u) continue; /* rows may have loops */
            reach(g, v, u, below);
            if (v < g->active || last == g->trees) continue; /* rows of a bad store may cycle */
            queue[last] = v, from[last++] = u;
        }
        g->visited[u >> 6] &= ~(UINT64_C(1) << (u & 63));
    }
    return last;
}

/* Search the trees that hang on a vertex, or on one of them, but that of the root.  `last`
 * of at most `limit` vertices are queued; returns how many there are then, more than
 * `limit` if there is no room. */
static int64_t search_hung(const whole_graph *g, uint32_t u, uint32_t *queue, int64_t last,
                           int64_t limit) {
    OFFSET first = g->offsets[u] + (u >= g->active);
    int32_t below = g->level[g->vertices[u]] + 1;
    for (OFFSET e = g->offsets[u + 1]; e-- > first && g->columns[e] >= g->active;) {
        uint32_t v = g->columns[e];
        /* mutant: !test -> 0 && test : test_searches_with_and_without_trees_in_turn */
        if (v == u || !test(g->visited, v)) continue;
        if (last >= limit) return limit + 1;
        reach(g, v, u, below);
        queue[last++] = v;
    }
    return last;
}

static void unreach_trees(void *argument, int64_t from, int64_t to) {
    const whole_graph *g = argument;
    for (int64_t v = g->active + from; v < g->active + to; v++) unreach(g, (uint32_t)v);
}

/* Give all vertices of trees level and parent, those of the root's tree from the root, where
 * that is in one.  Where few vertices are reached, only what hangs on these is looked at.
 * limit: how many are few; clean: vertices of trees have no level
 * g->reached: active vertices in queue[0], -1 where not all are; afterwards of all.
 * Returns the deepest level. */
static int64_t search_trees(search_state *s, uint32_t root, int64_t deepest, int64_t limit,
                            int clean) {
    whole_graph *g = s->g;
    tree_pass pass = {.g = g, .own = root >= g->active, .deepest = deepest};
    uint32_t *queue = g->queue[0];
    int64_t core = g->reached, last = core < 0 ? 0 : core;
    if (core >= 0 && !clean) team_for(s->threads, g->trees, 4096, unreach_trees, g);
    if (pass.own) {
        last += search_tree(g, root, queue + last);
        int64_t level = g->level[g->vertices[queue[last - 1]]];
        if (level > deepest) pass.deepest = level;
    }
    if (core >= 0) {
        int64_t hung = last;
        for (int64_t k = 0; k < core && last <= limit; k++)
            last = search_hung(g, queue[k], queue, last, limit);
        for (int64_t k = hung; k < last && last <= limit; k++) {
            int64_t level = g->level[g->vertices[queue[k]]];
            if (level > pass.deepest) pass.deepest = level;
            last = search_hung(g, queue[k], queue, last, limit);
        }
        g->reached = last;
        if (last <= limit) return pass.deepest;
    }
    g->reached = -1;
    hang_trees(&pass, 0, g->chained);
    team_for(s->dense_team, g->trees - g->chained, 4096, hang_leaves, &pass);
    return pass.deepest;
}

/* Take back the results of the last search. */
static void take_back(whole_graph *g) {
    for (int64_t k = 0; k < g->reached; k++) {
        uint32_t v = g->queue[0][k];
        uint64_t bit = UINT64_C(1) << (v & 63);
        unreach(g, v);
        if (v < g->active)
            g->visited[v >> 6] &= ~bit;
        else
            g->visited[v >> 6] |= bit;
    }
}

/* Search from the graph's roots, which are active where there are several; levels and parents
 * of all ids with edges are written.  With trees the search from one root begins where its
 * tree hangs, on that level.
 * records: [active + trees] or NULL, by level, of active vertices; direction: 0 by cost, 1
 * push only, 2 pull only.
 * Returns the number of levels, with the last one, which finds nothing; STOPPED if stop
 * returned true; without trees it ends as ends_with tells. */
int64_t search_fast(whole_graph *graph, int threads, int direction, level_record *records) {
    const int clean = graph->reached >= 0;
    const int64_t few = (graph->active + graph->trees) / FEW;
    if (clean)
        take_back(graph);
    else
        clear_visited(graph);
    graph->reached = -1;
    whole_graph copy = *graph;
    search_state s = {.g = &copy, .threads = threads, .queue = copy.queue[0], .missed = -1,
                      .queued = 1, .complete = 1};
    uint32_t root = 0, start;
    if (copy.root_count == 1) {
        start = root = copy.roots[0];
        for (; start >= copy.active && copy.first[start] < start; s.level++)
            start = copy.first[start];
        copy.roots = &start;
        if (start >= copy.active) /* the tree hangs on no active vertex */
            copy.root_count = s.level = 0;
    }
    s.count = s.reached = visit_roots(&copy, s.level);
    for (int64_t k = 0; k < s.count; k++) s.edges += degree(&copy, s.queue[k]);
    choose_dense_team(&s);
    while (s.count && !ends_with(&copy, s.level)) {
        if (team_stops(copy.stop)) return STOPPED;
        double began = records ? team_seconds() : 0;
        level_record record = {.frontier = s.count};
        s.level++;
        record.mode = choose(&s, direction);
        record.checks = run_level(&s, (int)record.mode);
        s.reached += s.count;
        if (s.reached > few) s.complete = 0;
        record.found = s.count;
        note_level(records, s.level, began, record);
    }
    if (s.dense_work > 0) note_rate(s.dense_rate, s.dense_seconds, s.dense_work);
    if (!clean) finish_search(&copy);
    /* mutant: (s.complete) -> (s.reached <= few) : test_searches_that_pull_take_nothing_back */
    if (s.complete) copy.reached = s.reached;
    int64_t levels = s.level;
    if (copy.trees) levels = search_trees(&s, root, s.level - 1, few, clean) + 1;
    graph->reached = copy.reached;
    return levels;
}
