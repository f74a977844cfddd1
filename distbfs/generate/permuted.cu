/* Maps ids of vertices by a permutation, in place.
 *
 * Method: a thread an id.  Data and source: hashing.h.
 *
 * variants: ID=u32,u64
 */
#include "hashing.cuh"

/* by: [1]; ids: [count], below n; for any grid and block */
extern "C" __global__ void permute_ids(u64 count, const permutation *__restrict__ by,
                                       ID *ids) {
    const Permutation<ID> permuted(*by);
    for (u64 k = thread_of(); k < count; k += threads_of())
        ids[k] = permuted(ids[k]);
}
