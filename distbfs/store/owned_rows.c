/* Copies rows with an owner out of a slice of columns; see owned_rows.py.
 *
 * variants: OFFSET=uint32_t,uint64_t
 */
#include <stdint.h>
#include <string.h>

#ifndef OFFSET
#define OFFSET uint64_t
#endif

/* Copy what owned ones of the rows first … last - 1 have of the columns start … stop - 1.
 *
 * offsets: [last + 1]; owned: [last] flags; values: of the columns, items of `size` bytes;
 * out: room for what is copied */
void copy_owned(const OFFSET *offsets, const uint8_t *owned, int64_t first, int64_t last,
                int64_t start, int64_t stop, const char *values, int64_t size, char *out) {
    for (int64_t row = first; row < last; row++) {
        if (!owned[row]) continue;
        int64_t begin = (int64_t)offsets[row], end = (int64_t)offsets[row + 1];
        /* mutant: begin < start -> 0 : test_slices_that_cut_rows */
        if (begin < start) begin = start;
        if (end > stop) end = stop;
        size_t bytes = (size_t)((end - begin) * size);
        memcpy(out, values + (begin - start) * size, bytes);
        out += bytes;
    }
}
