/* Results by number as results by id, where a search has not written them so itself.
 *
 * variants: ANY=1
 */
#include "base.cuh"

/* numbers [n]: id -> number or NONE; level [active], parent [active] or null by number;
 * level_out [n], parent_out [n] by id: -1 and NONE where unreached */
extern "C" __global__ void to_ids(const u32 *numbers, const u32 *vertices, const int *level,
                                  const u32 *parent, u32 n, int *level_out, u32 *parent_out) {
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n;
         i += (u64)gridDim.x * blockDim.x) {
        const u32 v = numbers[i];
        const int l = v == NONE ? -1 : level[v];
        level_out[i] = l;
        if (parent) parent_out[i] = l < 0 ? NONE : vertices[parent[v]];
    }
}

/* A root without edges */
extern "C" __global__ void alone(u32 n, u32 root, int *level_out, u32 *parent_out) {
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n;
         i += (u64)gridDim.x * blockDim.x) {
        level_out[i] = i == root ? 0 : -1;
        if (parent_out) parent_out[i] = i == root ? root : NONE;
    }
}
