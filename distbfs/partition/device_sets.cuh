/* What the kernels that build parts share: sums over warps, and sets of ids with ranks.
 *
 * A vertex v has part v % parts and local id v / parts; its place is part * per + local
 * id, where per is the most vertices of a part.
 *
 * A set of local ids is made of blocks of SET_BITS ids: x is how many members there are
 * before the block, y z w are the bits.  Each part has `blocks` of them in the sets of all
 * parts.
 */
#ifndef DISTBFS_DEVICE_SETS_CUH
#define DISTBFS_DEVICE_SETS_CUH
typedef unsigned int u32;
typedef unsigned long long u64;

#define BLOCK 256
#define WARPS (BLOCK / 32)
#define ALL 0xffffffffu
#define PER_THREAD 8 /* tuples or keys of a thread at a time */
#define TILE (BLOCK * PER_THREAD)
#define SET_BITS 96

static __device__ __forceinline__ u32 lanes_below()
{
    return (1u << (threadIdx.x % 32)) - 1;
}

/* The sum over the lanes of a warp, in every lane. */
static __device__ __forceinline__ u64 warp_sum(u64 value)
{
    for (int step = 16; step; step /= 2) value += __shfl_xor_sync(ALL, value, step);
    return value;
}

/* The sum over the lanes up to this one. */
static __device__ __forceinline__ u64 warp_scan(u64 value)
{
    for (int step = 1; step < 32; step *= 2) {
        u64 other = __shfl_up_sync(ALL, value, step);
        if (threadIdx.x % 32 >= step) value += other;
    }
    return value;
}

/* Whether a local id is in a set, and how many members are before it.
 *
 * set: the blocks of its part
 */
static __device__ __forceinline__ bool find(const uint4 *__restrict__ set, u32 local,
                                            u32 &before)
{
    const uint4 block = set[local / SET_BITS];
    u32 bit = local % SET_BITS, word = bit / 32;
    u32 bits = word == 0 ? block.y : word == 1 ? block.z : block.w;
    before = block.x + __popc(bits & ((1u << bit % 32) - 1));
    if (word > 0) before += __popc(block.y);
    if (word > 1) before += __popc(block.z);
    return bits >> bit % 32 & 1;
}
#endif
