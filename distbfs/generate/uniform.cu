/* Tuples with independent uniform ends, by position; the twin of uniform.py.
 *
 * Method: end e of the tuple at a position is the high half of n times the hash of the
 * counter position * 2 + e.  Data and source: hashing.h.
 *
 * variants: ID=u32,u64
 */
#include "hashing.cuh"
#include "uniform.h"

/* Writes the tuples start … start + count - 1, for any grid and any block. */
extern "C" __global__ void uniform_tuples(const slice s) {
    for (u64 k = thread_of(); k < (u64)s.count; k += threads_of()) {
        u64 counter = ((u64)s.start + k) * 2;
        ((ID *)s.u)[k] = (ID)__umul64hi(mix64(s.key + counter * GOLDEN), s.n);
        ((ID *)s.v)[k] = (ID)__umul64hi(mix64(s.key + (counter + 1) * GOLDEN), s.n);
    }
}
