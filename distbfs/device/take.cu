/* Values at few places of a large array, for a host that reads them.
 *
 * Places and values lie in pinned memory of the host, which devices reach themselves
 * (CUDA C++ Programming Guide, mapped memory): one launch and no copy.
 *
 * variants: ANY=1
 */
struct Take {
    const void *values;               /* [any], items of `size` bytes */
    const unsigned long long *places; /* [count] */
    void *out;                        /* [count], items of `size` bytes */
    unsigned int count, size;         /* size: 1, 2, 4 or 8 */
};

extern "C" __global__ void take(const Take t) {
    const unsigned int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= t.count) return;
    const unsigned long long at = t.places[k];
    switch (t.size) {
    case 1: ((char *)t.out)[k] = ((const char *)t.values)[at]; break;
    case 2: ((short *)t.out)[k] = ((const short *)t.values)[at]; break;
    case 4: ((int *)t.out)[k] = ((const int *)t.values)[at]; break;
    default: ((long long *)t.out)[k] = ((const long long *)t.values)[at];
    }
}
