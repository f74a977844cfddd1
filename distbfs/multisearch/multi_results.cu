/* Converts state by number to state by id; items of any type of one size.
 *
 * Method: a thread an item of the result.  Data: numbers as in multi.cuh.
 *
 * variants: ITEM=u8,u16,u32,u64
 */
#include "../engines/cuda/common/base.cuh"

/* One row a search: in [k][stride] by number, with the source's place at `active`;
 * out [k][n] by id; sources [k], ids; numbers [n]: id -> number, from `active` on for
 * those without edges */
extern "C" __global__ void rows_by_id(const u32 *numbers, const u32 *sources, const ITEM *in,
                                      ITEM *out, u32 n, u32 k, u32 active, u64 stride,
                                      ITEM fill) {
    const u64 all = (u64)n * k;
    for (u64 i = thread_of(); i < all; i += threads_of()) {
        const u32 row = (u32)(i / n), id = (u32)(i % n), v = numbers[id];
        ITEM value = fill;
        if (v < active) value = in[row * stride + v];
        else if (id == sources[row]) value = in[row * stride + active];
        out[i] = value;
    }
}

/* in [n] by number, out [n] by id, numbers [n] */
extern "C" __global__ void by_id(const u32 *numbers, const ITEM *in, ITEM *out, u32 n) {
    for (u64 i = thread_of(); i < n; i += threads_of()) out[i] = in[numbers[i]];
}
