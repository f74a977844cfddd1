/* A whole graph on one device, as the searches of this folder take it.
 *
 * Vertices are numbers 0 … active-1, hubs first inside blocks; `vertices` maps a number
 * to its place in arrays of results, which is its id, as `names` is, in a whole graph.
 * All other arrays belong to numbers.  level[id] < 0 means unreached; ids without edges keep what they held.
 *
 * A push reads offsets and columns, a pull in_offsets and in_columns: the same arrays
 * where the graph is symmetric, the edges out and in of a directed one, where a row may
 * be empty: such a vertex is not `enterable`.
 *
 * The vertices of trees, which hang on others, may come behind the active ones; they have
 * what the active ones have but bits and marks.  The first column of such a vertex is the
 * one on which it hangs and is a smaller number, all others are greater; of the top of a
 * tree that hangs on no active vertex all are greater.
 *
 * With MASKED, each edge has a visibility bit: `seen` of columns, `in_seen` of
 * in_columns.  `first` is then the first visible in_column.
 */
#ifndef DISTBFS_WHOLE_H
#define DISTBFS_WHOLE_H
#include "../../device/team.h"
#include "bits.h"
#include <string.h>

#ifndef OFFSET
#define OFFSET uint32_t
#endif
#ifndef VERTEX /* of a parent: int32_t, or int64_t where n needs it */
#define VERTEX int32_t
#endif
#ifndef MASKED
#define MASKED 0
#endif

typedef struct {
    int64_t active, edges, words; /* words: of a bitmap, ceil(active / 64) */
    const OFFSET *offsets;        /* [active + 1] */
    const uint32_t *columns;      /* [edges], ascending by descending degree in a row */
    const uint32_t *first;        /* [words * 64], first in_column; of no row itself */
    const uint32_t *vertices;     /* [words * 64], where the results of a number are */
    const VERTEX *names;          /* [words * 64], what a number is called as a parent */
    double mean_next;             /* edges out of a vertex, mean over edges into it */
    int32_t *level;               /* [n] */
    VERTEX *parent;               /* [n] or NULL */
    uint64_t *visited, *next;     /* [words] */
    uint8_t *marks;               /* [words * 64], all zero before a search */
    uint32_t *found_by;           /* [words * 64] */
    uint32_t *queue[2];           /* [active + 1] each */
    const OFFSET *in_offsets;     /* [active + 1] */
    const uint32_t *in_columns;   /* [edges] */
    const uint64_t *enterable;    /* [words], vertices with a visible in_column; NULL: all */
    int64_t closed;               /* how many have none */
    const uint64_t *expandable;   /* [words], vertices whose out rows are here; NULL: all */
    int64_t depth;                /* the last level that is wanted */
    const uint32_t *targets;      /* [wanted], numbers; the search ends with the last */
    int64_t wanted;
    int (*stop)(void);            /* asked before each level; NULL: never */
    const uint64_t *seen, *in_seen; /* [ceil(edges / 64)], of MASKED alone */
    const uint32_t *roots;        /* [root_count], numbers, each once */
    int64_t root_count;
    int64_t trees;                /* vertices active ... active + trees - 1 are in trees */
    int64_t chained;              /* so many of these may hang on others of them */
    double *rates;                /* [65][3], team_rates of levels.h: of pushes by class, and of
                                     what goes through all vertices; NULL: none are kept */
    int64_t reached;              /* of fast.c: vertices in queue[0], whose results the next
                                     search takes back; all others have none.  -1: unknown */
} whole_graph;

#define STOPPED (-2) /* what a search returns that was told to stop */

/* One level of a search: mode (enum below), vertices and edge checks, seconds. */
enum { SERIAL_PUSH, PUSH, MARKING_PUSH, PULL };
typedef struct {
    int64_t mode, frontier, checks, found;
    double seconds;
} level_record;

/* Whether an edge out of a vertex, or into it, is visible; by its index among the columns. */
static inline int sees(const whole_graph *g, OFFSET e) {
    return !MASKED || (int)(g->seen[e >> 6] >> (e & 63) & 1);
}

static inline int sees_in(const whole_graph *g, OFFSET e) {
    return !MASKED || (int)(g->in_seen[e >> 6] >> (e & 63) & 1);
}

static inline int64_t degree(const whole_graph *g, uint32_t v) {
    return (int64_t)(g->offsets[v + 1] - g->offsets[v]);
}

static inline void reach(const whole_graph *g, uint32_t v, uint32_t from, int32_t level) {
    uint32_t id = g->vertices[v];
    g->level[id] = level;
    if (g->parent) g->parent[id] = g->names[from];
}

/* For the lanes `hit`: parent[index[lane]] = names[from[lane]]. */
static inline void scatter_names(const whole_graph *g, const uint32_t *index, uint32_t hit,
                                 const uint32_t *from) {
    if (sizeof(VERTEX) == 8)
        scatter_table64((int64_t *)g->parent, index, hit, (const int64_t *)g->names, from);
    else
        scatter_table((int32_t *)g->parent, index, hit, (const uint32_t *)g->names, from);
}

/* Have the memory of a vertex's results brought near. */
static inline void near_results(const whole_graph *g, uint32_t v) {
    uint32_t id = g->vertices[v];
    __builtin_prefetch(g->level + id, 1);
    if (g->parent) __builtin_prefetch(g->parent + id, 1);
}

static inline void unreach(const whole_graph *g, uint32_t v) {
    uint32_t id = g->vertices[v];
    g->level[id] = -1;
    if (g->parent) g->parent[id] = -1;
}

/* Mark nothing as visited; bits past the last vertex, those of trees among them, stay set:
 * pushes leave them alone. */
static inline void clear_visited(whole_graph *g) {
    size_t beyond = (size_t)((g->active + g->trees + 63) / 64 - g->words) * 8;
    memset(g->visited, 0, (size_t)g->words * 8);
    memset(g->visited + g->words, 0xff, beyond);
    memset(g->next + g->words, 0xff, beyond);
    if (g->active & 63) g->visited[g->words - 1] = ~UINT64_C(0) << (g->active & 63);
}

/* Visit and queue the roots.  Returns how many there are. */
static inline int64_t visit_roots(whole_graph *g, int32_t level) {
    for (int64_t k = 0; k < g->root_count; k++) {
        const uint32_t root = g->roots[k];
        set(g->visited, root);
        reach(g, root, root, level);
        g->queue[0][k] = root;
    }
    return g->root_count;
}

static inline int64_t start_search(whole_graph *g) {
    clear_visited(g);
    return visit_roots(g, 0);
}

/* Note a level, from 1 on, that began at some time, if levels are recorded. */
static inline void note_level(level_record *records, int64_t level, double began,
                              level_record record) {
    if (!records) return;
    record.seconds = team_seconds() - began;
    records[level - 1] = record;
}

/* Whether the search ends with a level; advances past targets already found. */
static inline int ends_with(whole_graph *g, int64_t level) {
    if (level >= g->depth) return 1;
    if (!g->targets) return 0;
    while (g->wanted && test(g->visited, *g->targets)) g->wanted--, g->targets++;
    return !g->wanted;
}

/* Give the vertices whose rows are here and that were not reached level and parent -1, but
 * those of a whole graph that no edge enters: they keep theirs unless they are roots. */
static inline void finish_search(const whole_graph *g) {
    const uint64_t *own = g->expandable ? g->expandable : g->enterable;
    for (int64_t w = 0; w < g->words; w++) {
        uint64_t rest = ~g->visited[w];
        if (own) rest &= own[w];
        for (; rest; rest &= rest - 1)
            unreach(g, (uint32_t)(w * 64 + __builtin_ctzll(rest)));
    }
}
#endif
