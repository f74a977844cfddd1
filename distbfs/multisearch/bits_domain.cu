/* Up to 128 searches in one traversal over the rows of a domain of devices.
 *
 * Data: each device has the rows of its own vertices, which are numbers; columns are positions
 * (positions.cuh).  Frontiers and marks are replicas: rows and bits by position of the
 * vertices of all parts, on every device, so that a pull reads its neighbours at home.
 * Others' rows of a replica are valid where marked, and undefined elsewhere; a device's own
 * are as in bits.cuh.  Visited bits, levels and queues are of own vertices.
 *
 * Method: the host launches the steps of a level on all devices and waits for all between them:
 *   pull_level                own rows; finds are written to all replicas
 *   push_level                bits and marks go to the replica of the neighbour's owner,
 *                             which lacks them: `seen` of others is read, and not written
 *                             meanwhile;
 *   list_level, settle_level  then the owner settles the bits it got and writes them to all
 * and, before the first push after a pull, list_level of the frontier and empty_level.
 * begin_level writes level 0.  Sources: those of bits.cuh.
 *
 * variants: OFFSET=u32,u64 PIECES=1
 */
#include "bits.cuh"
#include "bits_pull.cuh"
#include "bits_push.cuh"
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
    u32 depth, pad;              /* the level of a step */
};

/* What a part has where this device has p. */
template <class T> INLINE T *of_part(const Domain &d, T *p, u32 part) {
    return (T *)((const char *)p + d.shift[part]);
}

INLINE u32 place(const Domain &d, u32 v) { return position_of(d, v); }
INLINE u32 word_place(const Domain &d, u32 word) { return place_of(d, word); }

INLINE const uint4 *seen_row(const Domain &d, u32 u) {
    const Owner owner = owner_of(d, u);
    return of_part(d, d.seen, owner.part) + owner.number;
}

INLINE void publish(const Domain &d, const Level &l, u32 at, uint4 fresh) {
    for (u32 k = 0; k < d.parts; k++)
        if (k != d.index) of_part(d, l.next, k)[at] = fresh;
}

INLINE void mark_next(const Domain &d, const Level &l, u32 v) {
    const u32 at = place(d, v);
    for (u32 k = 0; k < d.parts; k++)
        red_or_system(of_part(d, l.next_mark, k) + (at >> 5), 1u << (at & 31));
}

INLINE void mark_tile(const Domain &d, const Level &l, u32 tile, u32 bits) {
    if (bits && l.lane < d.parts) of_part(d, l.next_mark, l.lane)[word_place(d, tile)] = bits;
}

INLINE void give_system(u32 *to, u32 bits) {
    if (bits) red_or_system(to, bits);
}

INLINE void offer(const Domain &d, const Level &l, u32 u, uint4 bits) {
    if (!some(bits)) return;
    const u32 owner = owner_of(d, u).part;
    u32 *to = (u32 *)(of_part(d, l.next, owner) + u);
    give_system(to, bits.x), give_system(to + 1, bits.y);
    give_system(to + 2, bits.z), give_system(to + 3, bits.w);
    red_or_system(of_part(d, l.next_mark, owner) + (u >> 5), 1u << (u & 31));
}

INLINE void announce(const Domain &d, const Level &l, u32 v, uint4 fresh) {
    publish(d, l, place(d, v), fresh);
    mark_next(d, l, v);
}

INLINE Tally *tally_of(const Domain &d, u32 depth) { return d.tally + depth % TURNS; }

/* Adds to the edges out of the next frontier; all lanes of a warp call it. */
INLINE void add_edges(const Domain &d, u32 edges) {
    const u32 sum = __reduce_add_sync(ALL, edges);
    if (lane_id() == 0 && sum) atomicAdd(&tally_of(d, d.depth)->edges, (u64)sum);
}

/* Clears the counters of the level after this one. */
INLINE void clear_ahead(const Domain &d) {
    clear_mark(d, d.depth);
    if (blockIdx.x == 0 && threadIdx.x == 0) *tally_of(d, d.depth + 1) = {0, 0};
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) pull_level(const Domain d) {
    __shared__ u32 room[WORDS];
    clear_ahead(d);
    add_edges(d, pull(d, level_of(d, d.depth), room));
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) push_level(const Domain d) {
    const u64 size = tally_of(d, d.depth - 1)->size;
    clear_ahead(d);
    push(d, level_of(d, d.depth), d.queue[(d.depth + 1) & 1], (u32)size, (u32)(size >> 32));
}

/* The queue of level `depth`, from its marks. */
extern "C" __global__ void __launch_bounds__(THREADS, 1) list_level(const Domain d) {
    Level l = level_of(d, d.depth);
    l.size = &tally_of(d, d.depth)->size;
    gather(d, l, l.next_mark);
}

/* No own row of a frontier has bits: that of level `depth` can be pushed. */
extern "C" __global__ void __launch_bounds__(THREADS, 1) empty_level(const Domain d) {
    empty_rows(d, level_of(d, d.depth));
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) settle_level(const Domain d) {
    const u64 size = tally_of(d, d.depth)->size, old = tally_of(d, d.depth + TURNS - 1)->size;
    const u32 count = (u32)size, old_count = (u32)old;
    add_edges(d, settle_queue(d, level_of(d, d.depth), d.queue[(d.depth + 1) & 1], old_count,
                              old_count + (u32)(old >> 32), count, count + (u32)(size >> 32)));
}

struct Begin {
    Domain d;
    const u32 *number; /* [k], of the sources; NONE where another part has it */
    u32 k, pad;
};

/* Offers level 0 to the own rows, by one block; all own rows, marks and tallies are zero. */
extern "C" __global__ void __launch_bounds__(THREADS, 1) begin_level(const Begin b) {
    const Domain &d = b.d;
    for (u32 i = threadIdx.x; i < b.k; i += THREADS) {
        if (b.number[i] == NONE) continue;
        const u32 at = place(d, b.number[i]);
        atomicOr((u32 *)(d.front[0] + at) + i / 32, 1u << (i & 31));
        atomicOr(d.mark[0] + (at >> 5), 1u << (at & 31));
    }
}
