/* Copies to the host: a small array, and values at a few places of a large one.
 *
 * Method: one block writes both to memory of the host; no copy.
 * Data: `back` and requests lie in pinned memory, which devices access directly.
 * Source: CUDA C++ Programming Guide, mapped memory.
 */
#include "../engines/cuda/common/base.cuh"

#define FEW 4096 /* places, at most */

struct Request {
    const void *values; /* [length], items of `size` bytes */
    u64 length;
    u32 count, size; /* size: 1, 2, 4 or 8 */
    u64 places[FEW]; /* [count] of them; what is none is not looked at */
    u64 taken[FEW];  /* [count] items of `size` bytes */
};

struct Bring {
    const u32 *array; /* [words] */
    u32 *back;        /* [words] */
    Request *request; /* [1], or null */
    u32 words;
};

extern "C" __global__ void bring(const Bring b) {
    for (u32 k = threadIdx.x; k < b.words; k += blockDim.x) b.back[k] = b.array[k];
    if (!b.request) return;
    Request &r = *b.request;
    const void *values = r.values;
    const u64 length = r.length;
    const u32 count = r.count, size = r.size;
    for (u32 k = threadIdx.x; k < count; k += blockDim.x) {
        const u64 at = r.places[k];
        if (at >= length) continue;
        switch (size) {
        case 1: ((u8 *)r.taken)[k] = ((const u8 *)values)[at]; break;
        case 2: ((u16 *)r.taken)[k] = ((const u16 *)values)[at]; break;
        case 4: ((u32 *)r.taken)[k] = ((const u32 *)values)[at]; break;
        default: r.taken[k] = ((const u64 *)values)[at];
        }
    }
}
