/* Depth-first order of a symmetric graph; see relabel.py. */
#include <stdlib.h>
#include "../device/team.h"

/* Write the rows with `degrees` above 0, each component by depth from its least row, its
 * neighbours in the order of its columns; returns how many, or -1 without memory.
 *
 * offsets: [rows + 1]; columns: [edges]; degrees: [rows]; order: room for all of them
 */
int64_t depth_first(const int64_t *offsets, const uint32_t *columns, const int64_t *degrees,
                    int64_t rows, uint32_t *order) {
    uint8_t *seen = calloc((size_t)rows + 1, 1);
    uint32_t *stack = malloc(sizeof *stack * ((size_t)offsets[rows] + 1));
    int64_t count = 0;
    for (int64_t root = 0; seen && stack && root < rows; root++) {
        if (!(root & 4095) && team_ended()) break;
        int64_t top = 0;
        if (degrees[root] > 0) stack[top++] = (uint32_t)root;
        while (top) {
            uint32_t v = stack[--top];
            if (seen[v]) continue;
            seen[v] = 1;
            order[count++] = v;
            if (!(count & 4095) && team_ended()) break;
            for (int64_t e = offsets[v + 1]; e-- > offsets[v];) {
                uint32_t u = columns[e];
                if (seen[u] || degrees[u] <= 0) continue;
                stack[top++] = u;
                __builtin_prefetch(offsets + u);
                __builtin_prefetch(degrees + u);
            }
        }
    }
    if (!seen || !stack) count = -1;
    free(seen);
    free(stack);
    return count;
}
