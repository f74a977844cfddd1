/* Tuples of a stencil by position; the twin of stencil.py.
 *
 * Method: a thread a tuple: a binary search finds its offset, then the digits of what is
 * left, in mixed radix, are the coordinates of the first end.
 * Data and source: stencil.py.
 *
 * variants: ID=u32,u64
 */
#include "hashing.cuh"

/* Writes the tuples start … start + count - 1, for any grid and any block.
 * offsets, dimensions, starts, …: Stencil.device_arguments()
 * starts: [offsets + 1], tuples before those of an offset
 * extents: [offsets][dimensions], of the box of first ends; strides: [dimensions]
 * first: [offsets], the first end of the first tuple; step: [offsets], from end to end
 * u, v: [count], the ends */
extern "C" __global__ void stencil_tuples(u64 start, u64 count, u64 offsets, u64 dimensions,
                                          const u64 *starts, const u64 *extents,
                                          const u64 *strides, const u64 *first,
                                          const u64 *step, ID *u, ID *v) {
    for (u64 k = thread_of(); k < count; k += threads_of()) {
        const u64 which =
            last_before(offsets, start + k, [&](u64 offset) { return starts[offset]; });
        u64 rest = start + k - starts[which], from = first[which];
        for (u64 d = dimensions; d-- > 0;) {
            const u64 extent = extents[which * dimensions + d];
            from += rest % extent * strides[d];
            rest /= extent;
        }
        u[k] = (ID)from;
        v[k] = (ID)(from + step[which]);
    }
}
