/* What the kernels that build parts share: sets of ids with ranks.
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
#include "keys.cuh"

#define SET_BITS 96

/* Whether a local id is in a set, and how many members are before it.
 *
 * set: the blocks of its part
 */
INLINE bool find(const uint4 *__restrict__ set, u32 local,
                                            u32 &before) {
    const uint4 block = set[local / SET_BITS];
    u32 bit = local % SET_BITS, word = bit / 32;
    u32 bits = word == 0 ? block.y : word == 1 ? block.z : block.w;
    before = block.x + __popc(bits & ((1u << bit % 32) - 1));
    if (word > 0) before += __popc(block.y);
    if (word > 1) before += __popc(block.z);
    return bits >> bit % 32 & 1;
}
#endif
