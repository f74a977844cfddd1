/* Converts state by number to state by id; items of any type of 1, 2, 4 or 8 bytes.
 *
 * Method: a thread an item of the result.  Data: numbers as in multi.cuh.
 */
#include "../engines/cuda/common/base.cuh"

/* Calls work(an item of so many bytes). */
template <class Work> INLINE void with_item(u32 bytes, const Work &work) {
    if (bytes == 8) work((u64)0);
    else if (bytes == 4) work((u32)0);
    else if (bytes == 2) work((u16)0);
    else work((u8)0);
}

/* One row a search: in [k][stride] by number, with the source's place at `active`;
 * out [k][n] by id; sources [k], ids; numbers [n]: id -> number, from `active` on for
 * those without edges */
extern "C" __global__ void rows_by_id(const u32 *numbers, const u32 *sources, const void *in,
                                      void *out, u32 n, u32 k, u32 active, u64 stride, u64 fill,
                                      u32 bytes) {
    with_item(bytes, [&](auto item) {
        typedef decltype(item) Item;
        const u64 all = (u64)n * k;
        for (u64 i = thread_of(); i < all; i += threads_of()) {
            const u32 row = (u32)(i / n), id = (u32)(i % n), v = numbers[id];
            const Item *values = (const Item *)in + row * stride;
            Item value = (Item)fill;
            if (v < active) value = values[v];
            else if (id == sources[row]) value = values[active];
            ((Item *)out)[i] = value;
        }
    });
}

/* in [n] by number, out [n] by id, numbers [n] */
extern "C" __global__ void by_id(const u32 *numbers, const void *in, void *out, u32 n,
                                 u32 bytes) {
    with_item(bytes, [&](auto item) {
        typedef decltype(item) Item;
        for (u64 i = thread_of(); i < n; i += threads_of())
            ((Item *)out)[i] = ((const Item *)in)[numbers[i]];
    });
}
