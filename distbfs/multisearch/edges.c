/* The order in which searches found vertices, and the edges out of a frontier.
 *
 * Rows and columns of the graph are vertex numbers; problems use ids:
 * `vertices` maps numbers to ids, `numbers` ids to numbers.
 *
 * variants: OFFSET=uint32_t,uint64_t
 */
#include "../device/team.h"

#ifndef OFFSET
#define OFFSET uint32_t
#endif

typedef struct {
    const int32_t *level;
    int64_t b, n, *at, *row, *vertex;
} levels_by_search;

static void sort_searches(void *argument, int64_t from, int64_t to) {
    const levels_by_search *l = argument;
    for (int64_t i = from; i < to; i++)
        for (int64_t v = 0; v < l->n; v++) {
            int32_t d = l->level[i * l->n + v];
            if (d < 0) continue;
            int64_t place = l->at[d * l->b + i]++;
            l->row[place] = i;
            l->vertex[place] = v;
        }
}

/* Sort the vertices of each search by level; within a level ids ascend.
 * level: int32 [b, n], -1 = unreached; at: int64 [levels, b], where each level of each
 * search begins in `row` and `vertex` [reached pairs], which are filled; at is moved. */
void sort_levels(const int32_t *level, int64_t b, int64_t n, int64_t *at, int64_t *row,
                 int64_t *vertex, int threads) {
    levels_by_search l = {level, b, n, at, row, vertex};
    team_for(threads, b, 1, sort_searches, &l);
}

typedef struct {
    const OFFSET *offsets;
    const uint32_t *columns, *vertices, *numbers;
    const int64_t *row, *u, *ends;
    int64_t before, *out_row, *out_u, *out_v;
} edge_rows;

static void fill_rows(void *argument, int64_t from, int64_t to) {
    const edge_rows *r = argument;
    for (int64_t k = from; k < to; k++) {
        OFFSET start = r->offsets[r->numbers[r->u[k]]];
        int64_t first = (k ? r->ends[k - 1] : r->before) - r->before;
        int64_t last = r->ends[k] - r->before;
        for (int64_t e = first; e < last; e++) {
            r->out_row[e] = r->row[k];
            r->out_u[e] = r->u[k];
            r->out_v[e] = r->vertices[r->columns[start + (OFFSET)(e - first)]];
        }
    }
}

/* Write the edges out of `count` vertices: (row, u, v) of edge e in out[0 … 2][e].
 * ends: int64 [count], sums of the degrees so far, counted from `before`. */
void fill_edges(const OFFSET *offsets, const uint32_t *columns, const uint32_t *vertices,
                const uint32_t *numbers, const int64_t *row, const int64_t *u,
                const int64_t *ends, int64_t before, int64_t count, int64_t *out_row,
                int64_t *out_u, int64_t *out_v, int threads) {
    edge_rows r = {offsets, columns, vertices, numbers, row,  u,
                   ends,    before,  out_row,  out_u,   out_v};
    team_for(threads, count, 64, fill_rows, &r);
}
