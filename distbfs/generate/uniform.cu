/* Tuples with independent uniform ends, by position; the twin of uniform.py.
 *
 * Method: end e of the tuple at a position is the high half of n times the hash of the
 * counter position * 2 + e.  Data and source: hashing.cuh.
 *
 * variants: ID=u32,u64
 */
#include "hashing.cuh"

/* Writes the tuples start … start + count - 1, for any grid and any block.
 * key, n: Uniform.device_arguments(); u, v: [count], the ends */
extern "C" __global__ void uniform_tuples(u64 start, u64 count, u64 key, u64 n, ID *u,
                                          ID *v) {
    for (u64 k = thread_of(); k < count; k += threads_of()) {
        u64 counter = (start + k) * 2;
        u[k] = (ID)__umul64hi(mix64(key + counter * GOLDEN), n);
        v[k] = (ID)__umul64hi(mix64(key + (counter + 1) * GOLDEN), n);
    }
}
