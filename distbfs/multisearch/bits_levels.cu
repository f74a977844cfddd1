/* Levels of bit-parallel searches, as a matrix.
 *
 * Method: digits of a level are read from the planes.  Data and sources: bits.cuh.
 *
 * variants: LEVEL=u8,u16,u32
 */
#include "../engines/cuda/common/base.cuh"

#define PLANES 32
#define UNREACHED ((LEVEL)-1)
#define EACH 4 /* ids of a lane */

struct Matrix {
    const u32 *numbers;       /* [n], id -> number or NONE */
    const u32 *seen;          /* [active][words] */
    const u32 *plane[PLANES]; /* [active][words] */
    LEVEL *out;               /* [k][n], by id */
    u32 n, k, words, planes;
};

/* A warp writes 32 searches of 128 ids: rows are read once, lines are written whole. */
extern "C" __global__ void __launch_bounds__(256) matrix(const Matrix p) {
    const u32 lane = lane_id(), warps = gridDim.x * (blockDim.x >> 5);
    const u32 used = (p.k + 31) / 32;
    const u64 tiles = (u64)(((u64)p.n + 32 * EACH - 1) / (32 * EACH)) * used;
    for (u64 t = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); t < tiles; t += warps) {
        const u32 w = (u32)(t % used), first = (u32)(t / used) * 32 * EACH + lane * EACH;
        u64 at[EACH];
        u32 seen[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const u32 number = first + e < p.n ? p.numbers[first + e] : NONE;
            at[e] = (u64)(number == NONE ? 0 : number) * p.words + w;
            seen[e] = number == NONE ? 0 : p.seen[at[e]];
        }
        for (u32 half = 0; half < 32; half += 8) { /* eight searches at a time */
            u32 value[8][EACH];
#pragma unroll
            for (int j = 0; j < 8; j++)
#pragma unroll
                for (int e = 0; e < EACH; e++) value[j][e] = 0;
            for (u32 b = 0; b < p.planes; b++) {
#pragma unroll
                for (int e = 0; e < EACH; e++) {
                    const u32 bits = seen[e] ? p.plane[b][at[e]] >> half : 0;
#pragma unroll
                    for (int j = 0; j < 8; j++) value[j][e] |= (bits >> j & 1) << b;
                }
            }
#pragma unroll
            for (int j = 0; j < 8; j++) {
                const u32 i = w * 32 + half + j;
                if (i >= p.k) break;
                LEVEL *to = p.out + (u64)i * p.n + first;
                LEVEL out[EACH];
#pragma unroll
                for (int e = 0; e < EACH; e++)
                    out[e] = seen[e] >> (half + j) & 1 ? (LEVEL)value[j][e] : UNREACHED;
                if (sizeof(LEVEL) == 1 && first + EACH <= p.n && (u64)to % 4 == 0)
                    *(u32 *)to = (u32)out[0] | (u32)out[1] << 8 | (u32)out[2] << 16 |
                                 (u32)out[3] << 24;
                else if (sizeof(LEVEL) == 2 && first + EACH <= p.n && (u64)to % 8 == 0)
                    *(uint2 *)to = make_uint2((u32)out[0] | (u32)out[1] << 16,
                                              (u32)out[2] | (u32)out[3] << 16);
                else if (sizeof(LEVEL) == 4 && first + EACH <= p.n && (u64)to % 16 == 0)
                    *(uint4 *)to = make_uint4(out[0], out[1], out[2], out[3]);
                else
                    for (int e = 0; e < EACH; e++)
                        if (first + e < p.n) to[e] = out[e];
            }
        }
    }
}
