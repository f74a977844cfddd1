/* Sums over degrees, for the statistics that choose engines and knobs.
 *
 * Method: a thread a vertex, sums of warps added to memory.
 * Data: rows as everywhere, by number.
 */
#include "../../common/base.cuh"

/* row [active + 1]; sums [2], zero before: squares of degrees, the highest degree */
extern "C" __global__ void degrees(Uints row, u32 active, u64 *sums) {
    u64 squares = 0, most = 0;
    for (u64 v = thread_of(); v < active; v += threads_of()) {
        const u64 degree = row[v + 1] - row[v];
        squares += degree * degree;
        most = degree > most ? degree : most;
    }
    squares = warp_sum(squares);
    for (int s = 16; s; s >>= 1) {
        const u64 other = __shfl_down_sync(ALL, most, s);
        most = other > most ? other : most;
    }
    if (lane_id() == 0) {
        atomicAdd(sums, squares);
        atomicMax(sums + 1, most);
    }
}
