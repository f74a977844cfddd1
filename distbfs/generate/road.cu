/* Tuples of a road-like graph by position; road.py defines it and has the same in NumPy.
 *
 * Method: a warp writes the tuples of a block of 128 crossings: warp scans give the ids of
 * 32 of them at a time and of the 32 below.
 * Data: the hash of a crossing: bits 0-1 and 2-3 are the vertices on its edges to the right
 * and below, bits 4-33 and 34-63 decide whether the edges exist.  Source: road.py.
 *
 * variants: ID=u32,u64
 */
#include "hashing.cuh"

static const u64 BLOCK = 128; /* crossings */
static const u32 KEEP = 966367642u;

/* Links of the edges of a crossing, 0 where there is no edge, and all its vertices */
struct Crossing {
    u32 right, below, vertices;
};

INLINE Crossing draw(u64 key, u64 side, u64 c) {
    if (c >= side * side) return {0, 0, 0};
    u64 x = mix64(key + c * GOLDEN);
    u32 right = ((u32)(x >> 4) & 0x3fffffffu) < KEEP && c % side + 1 < side;
    u32 below = (u32)(x >> 34) < KEEP && c + side < side * side;
    u32 on_right = right * (u32)(x & 3), on_below = below * (u32)(x >> 2 & 3);
    return {right + on_right, below + on_below, 1 + on_right + on_below};
}

/* The sum of the values of the lanes before this one; total: that of all lanes */
INLINE u32 scan(u32 value, u32 *total) {
    u32 sum = warp_scan(value);
    *total = __shfl_sync(ALL, sum, 31);
    return sum - value;
}

/* The block of crossings that holds a tuple; before: [blocks + 1], ascending */
INLINE u64 block_of(const u64 *before, u64 blocks, u64 position) {
    return last_before(blocks, position, [&](u64 block) { return before[block]; });
}

/* Writes the links of one edge that are at 0 … count - 1; at may wrap below 0. */
INLINE void chain(u64 at, u64 count, u32 links, u64 near, u64 first, u64 far, ID *u, ID *v) {
    for (u32 k = 0; k < links; k++, at++) {
        if (at >= count) continue;
        u[at] = (ID)(k == 0 ? near : first + k - 1);
        v[at] = (ID)(k == links - 1 ? far : first + k);
    }
}

/* Writes the tuples start … start + count - 1, all below the number of tuples, for any
 * grid and any block of whole warps.
 * key, side, vertices, tuples: Road.device_arguments()
 * vertices, tuples: [ceil(side^2 / 128) + 1], how many are before each block
 * u, v: [count], the ends */
extern "C" __global__ void road_tuples(u64 start, u64 count, u64 key, u64 side,
                                       const u64 *vertices, const u64 *tuples, ID *u,
                                       ID *v) {
    if (count == 0) return;
    u64 blocks = (side * side + BLOCK - 1) / BLOCK, lane = lane_id();
    u64 last = block_of(tuples, blocks, start + count - 1);
    u64 warps = (u64)gridDim.x * (blockDim.x / 32);
    u64 warp = (u64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    for (u64 b = block_of(tuples, blocks, start) + warp; b <= last; b += warps) {
        u64 id = vertices[b], at = tuples[b] - start, under = 0;
        u64 corner = b * BLOCK + side;  /* below the first crossing of the block */
        if (corner < side * side) {
            under = vertices[corner / BLOCK];
            for (u64 c = corner - corner % BLOCK; c < corner; c += 32) {
                u32 total;
                scan(c + lane < corner ? draw(key, side, c + lane).vertices : 0, &total);
                under += total;
            }
        }
        for (u64 c = b * BLOCK + lane; c < (b + 1) * BLOCK + lane; c += 32) {
            Crossing here = draw(key, side, c);
            u32 sum, links, sum_under;
            u64 near = id + scan(here.vertices, &sum);
            u64 place = at + scan(here.right + here.below, &links);
            u64 far = under + scan(draw(key, side, c + side).vertices, &sum_under);
            u64 down = near + here.right + (here.right == 0);
            chain(place, count, here.right, near, near + 1, near + here.vertices, u, v);
            chain(place + here.right, count, here.below, near, down, far, u, v);
            id += sum;
            at += links;
            under += sum_under;
        }
    }
}
