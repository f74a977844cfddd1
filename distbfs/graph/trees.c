/* Trees: the vertices outside the 2-core of a symmetric graph; see trees.py.
 *
 * Leaves are removed in rounds, those of a round in ascending order of their ids.
 *
 * variants: OFFSET=uint32_t,uint64_t
 */
#include <stdlib.h>
#include "../device/team.h"

#ifndef OFFSET
#define OFFSET uint64_t
#endif

static int by_id(const void *a, const void *b) {
    uint32_t u = *(const uint32_t *)a, v = *(const uint32_t *)b;
    return (u > v) - (u < v);
}

/* Remove leaves until none is left; returns how many vertices were removed.
 *
 * offsets: [rows + 1]; columns: [edges]; left: [rows], the degrees, -1 afterwards where
 * removed; removed: room for all with edges, begins with `count` leaves ascending
 */
int64_t remove_leaves(const int64_t *offsets, const uint32_t *columns, int64_t *left,
                      uint32_t *removed, int64_t count) {
    for (int64_t first = 0; first < count;) {
        int64_t end = count;
        for (int64_t k = first; k < end; k++) left[removed[k]] = -1;
        for (; first < end; first++) {
            if (!(first & 4095) && team_ended()) return count;
            uint32_t v = removed[first];
            for (int64_t e = offsets[v]; e < offsets[v + 1]; e++) {
                uint32_t u = columns[e];
                if (left[u] > 0 && --left[u] == 1) removed[count++] = u;
            }
        }
        if (count - end > 1) qsort(removed + end, (size_t)(count - end), sizeof *removed, by_id);
    }
    return count;
}

/* Returns the least c such that in each of the rows c ... active - 1 all columns but the
 * first are behind the row. */
int64_t first_tree(const OFFSET *offsets, const uint32_t *columns, int64_t active) {
    for (int64_t v = active - 1; v >= 0; v--) {
        if (!(v & 4095) && team_ended()) break;
        for (int64_t e = (int64_t)offsets[v] + 1; e < (int64_t)offsets[v + 1]; e++)
            if (columns[e] < v) return v + 1;
    }
    return 0;
}
