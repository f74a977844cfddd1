/* Positions of the vertices of a domain, as build/cuda/domain.py gives them: the
 * numbers of all parts, interleaved in granules of 1,024.
 *
 * A domain `r` has u32 parts, u32 index (of this part) and u64 magic: ceil(2^32 / parts). */
#ifndef DISTBFS_POSITIONS_CUH
#define DISTBFS_POSITIONS_CUH
#include "ptx.cuh"

INLINE u32 position_in(u32 number, u32 parts, u32 index) {
    return ((number >> 10) * parts + index) << 10 | (number & 1023);
}
template <class Domain> INLINE u32 position_of(const Domain &r, u32 number) {
    return position_in(number, r.parts, r.index);
}

/* Words of a bitmap by position: where a word of own numbers lies. */
template <class Domain> INLINE u32 place_of(const Domain &r, u32 word) {
    return ((word >> 5) * r.parts + r.index) << 5 | (word & 31);
}

/* What a part has where this device has p; r has the bytes between them, shift [parts]. */
template <class Domain, class T> INLINE T *of_part(const Domain &r, T *p, u32 part) {
    return (T *)((const char *)p + r.shift[part]);
}

struct Owner {
    u32 part, number;
};
template <class Domain> INLINE Owner owner_of(const Domain &r, u32 position) {
    const u32 granule = position >> 10, at = (u32)((u64)granule * r.magic >> 32);
    return {granule - at * r.parts, at << 10 | (position & 1023)};
}
#endif
