/* A device of a domain in searches that share one traversal, a bit each: where its rows and
 * those of the others are.
 *
 * Data: each device has the rows of its own vertices, which are numbers; columns are positions
 * (positions.cuh).  Frontiers and marks are replicas: rows and bits by position of the
 * vertices of all devices, on every device, so that a pull reads its neighbours at home.
 * Others' rows of a replica are valid where marked, and undefined elsewhere; own rows have no
 * bits but those of the frontier, and what is added to the next one.  Visited bits, levels and
 * queues are of own vertices.  Sources: those of bits.cuh.
 */
#ifndef DISTBFS_BITS_DOMAIN_CUH
#define DISTBFS_BITS_DOMAIN_CUH
#include "bits.cuh"
#include "../engines/cuda/common/positions.cuh"

#define MOST_PARTS 8
#define TURNS 3

/* Of the frontier of a level, on this device. */
struct Tally {
    u64 edges; /* out of it */
    u64 size;  /* of its queue, hubs << 32 | others */
};

struct Domain : Params {
    long long shift[MOST_PARTS]; /* bytes from front, mark and seen here to those of a part */
    u64 magic;                   /* ceil(2^32 / parts) */
    Tally *tally;                /* [TURNS], by level */
    u32 parts, index;
    u32 depth;                   /* the level of a step */
    u32 counted;                 /* vertices below are counted by another domain */
};

INLINE u32 place(const Domain &d, u32 v) { return position_of(d, v); }
INLINE u32 word_place(const Domain &d, u32 word) { return place_of(d, word); }

INLINE Tally *tally_of(const Domain &d, u32 depth) { return d.tally + depth % TURNS; }

INLINE void give_system(u32 *to, u32 bits) {
    if (bits) red_or_system(to, bits);
}

/* Adds bits, of this lane's piece, to a row of the next frontier. */
INLINE void give_row(uint4 *row, u32 piece, uint4 bits) {
    u32 *to = (u32 *)(row + piece);
    give_system(to, bits.x), give_system(to + 1, bits.y);
    give_system(to + 2, bits.z), give_system(to + 3, bits.w);
}
INLINE void give_mark(u32 *mark, u32 at) { red_or_system(mark + (at >> 5), 1u << (at & 31)); }
#endif
