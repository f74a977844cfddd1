/* Sets of ids with ranks.
 *
 * A set is made of blocks of SET_BITS ids: x is how many members there are before the block,
 * y z w are the bits.
 */
#ifndef DISTBFS_SETS_CUH
#define DISTBFS_SETS_CUH
#include "base.cuh"

#define SET_BITS 96

/* Whether an id is in a set, [blocks], and how many members are before it. */
INLINE bool find(const uint4 *__restrict__ set, u32 local, u32 &before) {
    const uint4 block = set[local / SET_BITS];
    u32 bit = local % SET_BITS, word = bit / 32;
    u32 bits = word == 0 ? block.y : word == 1 ? block.z : block.w;
    before = block.x + __popc(bits & ((1u << bit % 32) - 1));
    if (word > 0) before += __popc(block.y);
    if (word > 1) before += __popc(block.z);
    return bits >> bit % 32 & 1;
}

/* The number of an id, NONE where it has none: numbers go by rank in a set of ids, [blocks],
 * or by id where that is null. */
INLINE u32 number_in(const uint4 *members, const u32 *numbers, u64 id) {
    u32 at = (u32)id;
    return !members || find(members, at, at) ? numbers[at] : NONE;
}
#endif
