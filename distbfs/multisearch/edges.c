/* The order in which searches found vertices, and the edges out of a frontier.
 *
 * Rows and columns of the graph are vertex numbers; what a problem sees are ids:
 * `vertices` maps numbers to ids, `numbers` ids to numbers.
 */
#include <omp.h>
#include <stdint.h>

#ifndef OFFSET
#define OFFSET uint32_t
#endif

/* Sort the vertices of each search by level; within a level ids ascend.
 * level: int32 [b, n], -1 = unreached; at: int64 [levels, b], where each level of each
 * search begins in `row` and `vertex` [reached pairs], which are filled; at is moved. */
void sort_levels(const int32_t *level, int64_t b, int64_t n, int64_t *at, int64_t *row,
                 int64_t *vertex, int threads) {
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < b; i++)
        for (int64_t v = 0; v < n; v++) {
            int32_t d = level[i * n + v];
            if (d < 0) continue;
            int64_t place = at[d * b + i]++;
            row[place] = i;
            vertex[place] = v;
        }
}

/* Write the edges out of `count` vertices: (row, u, v) of edge e in out[0 … 2][e].
 * ends: int64 [count], sums of the degrees so far, counted from `before`. */
void fill_edges(const OFFSET *offsets, const uint32_t *columns, const uint32_t *vertices,
                const uint32_t *numbers, const int64_t *row, const int64_t *u,
                const int64_t *ends, int64_t before, int64_t count, int64_t *out_row,
                int64_t *out_u, int64_t *out_v, int threads) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 64)
    for (int64_t k = 0; k < count; k++) {
        OFFSET start = offsets[numbers[u[k]]];
        int64_t first = (k ? ends[k - 1] : before) - before, last = ends[k] - before;
        for (int64_t e = first; e < last; e++) {
            out_row[e] = row[k];
            out_u[e] = u[k];
            out_v[e] = vertices[columns[start + (OFFSET)(e - first)]];
        }
    }
}
