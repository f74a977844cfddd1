/* Values at few places of a large array, for a host that reads them.
 *
 * Method: a thread a place; one launch and no copy.
 * Data: places and what is taken lie in pinned memory of the host, which devices reach
 * themselves.  Source: CUDA C++ Programming Guide, mapped memory.
 */
#include "../engines/cuda/common/base.cuh"

struct Take {
    const void *values; /* [any], items of `size` bytes */
    const u64 *places;  /* [count] */
    void *out;          /* [count], items of `size` bytes */
    u32 count, size;    /* size: 1, 2, 4 or 8 */
};

extern "C" __global__ void take(const Take t) {
    const u32 k = thread_of<u32>();
    if (k >= t.count) return;
    const u64 at = t.places[k];
    switch (t.size) {
    case 1: ((u8 *)t.out)[k] = ((const u8 *)t.values)[at]; break;
    case 2: ((u16 *)t.out)[k] = ((const u16 *)t.values)[at]; break;
    case 4: ((u32 *)t.out)[k] = ((const u32 *)t.values)[at]; break;
    default: ((u64 *)t.out)[k] = ((const u64 *)t.values)[at];
    }
}
