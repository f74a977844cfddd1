/* The row of each edge.
 *
 * Method: a warp a row.  Data: rows by number.  Source: Jia et al. 2011 (edge-parallel).
 */
#include "../engines/cuda/common/base.cuh"

/* row [active + 1], from [m] */
extern "C" __global__ void edge_rows(Uints row, u32 active, u32 *from) {
    const u32 lane = lane_id(), warps = gridDim.x * (blockDim.x >> 5);
    for (u32 v = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); v < active; v += warps)
        for (u64 at = row[v] + lane; at < row[v + 1]; at += 32) from[at] = v;
}
