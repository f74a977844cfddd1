/* Levels of bit-parallel searches, as a matrix.
 *
 * Method: digits of a level are read from the planes.  Data and sources: bits.cuh.
 *
 * variants: LEVEL=u8,u16,u32
 */
#include "../engines/cuda/common/base.cuh"

#define PLANES 32
#define UNREACHED ((LEVEL)-1)

struct Matrix {
    const u32 *numbers;       /* [n], id -> number or NONE */
    const u32 *seen;          /* [active][words] */
    const u32 *plane[PLANES]; /* [active][words] */
    LEVEL *out;               /* [k][n], by id */
    u32 n, k, words, planes;
};

/* A warp writes 32 searches of 32 ids, eight searches at a time. */
extern "C" __global__ void __launch_bounds__(256) matrix(const Matrix p) {
    const u32 lane = lane_id(), used = (p.k + 31) / 32;
    const u64 tiles = ((u64)p.n + 31) / 32 * used, warps = threads_of(256) / 32;
    for (u64 t = thread_of(256) / 32; t < tiles; t += warps) {
        const u32 word = (u32)(t % used), id = (u32)(t / used) * 32 + lane;
        const u32 number = id < p.n ? p.numbers[id] : NONE;
        const u64 at = (u64)number * p.words + word;
        const u32 seen = number == NONE ? 0 : p.seen[at];
#pragma unroll
        for (u32 first = 0; first < 32; first += 8) {
            u32 value[8] = {};
            for (u32 b = 0; b < p.planes; b++) {
                const u32 bits = seen ? p.plane[b][at] >> first : 0;
#pragma unroll
                for (u32 j = 0; j < 8; j++) value[j] |= (bits >> j & 1) << b;
            }
#pragma unroll
            for (u32 j = 0; j < 8; j++) {
                const u32 i = word * 32 + first + j;
                if (i < p.k && id < p.n)
                    p.out[(u64)i * p.n + id] =
                        seen >> (first + j) & 1 ? (LEVEL)value[j] : UNREACHED;
            }
        }
    }
}
