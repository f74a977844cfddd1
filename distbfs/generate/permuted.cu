/* Maps ids of vertices by a permutation, in place.
 *
 * Method: a thread an id.  Data and source: hashing.cuh.
 *
 * variants: ID=u32,u64
 */
#include "hashing.cuh"

/* words: [PERMUTATION_WORDS]; ids: [count], below n; for any grid and block */
extern "C" __global__ void permute_ids(u64 count, const u64 *__restrict__ words, ID *ids) {
    const Permutation<ID> permutation(words);
    for (u64 k = thread_of(); k < count; k += threads_of())
        ids[k] = permutation(ids[k]);
}
