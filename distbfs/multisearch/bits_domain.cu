/* Up to 128 * PIECES searches in one traversal over the rows of a domain of devices, which may
 * be one of several.
 *
 * Method: the host launches the steps of a level on all devices and waits for all between them:
 *   push_level                bits and marks go to the replica of the neighbour's owner,
 *                             which lacks them: `seen` of others is read, and not written
 *                             meanwhile;
 *   or live_level, where rows have tails, and
 *      pull_level             own rows get bits of their neighbours, read at home;
 *                             (bits from other domains are added, see bits_outer.cu)
 *   list_level, settle_level  the owner settles the bits it got and writes them to all
 *   count_searches      counts what was found, by search
 * begin_level writes level 0, empty_level makes room for it.  Data: bits_domain.cuh.
 *
 * Source: Then et al. 2014.
 *
 * variants: PIECES=1,2,4 SPLIT=0,1
 */
#include "bits_domain.cuh"
#include "bits_count.cuh"
#include "bits_pull.cuh"
#include "bits_push.cuh"

INLINE const uint4 *seen_row(const Domain &d, u32 u) {
    const Owner owner = owner_of(d, u);
    return of_part(d, d.seen, owner.part) + (u64)owner.number * PIECES;
}

/* A pull leaves what it finds in own rows, to be settled with what comes from elsewhere. */
INLINE bool finish_pull(const Domain &d, const Level &l, u32 v, uint4, uint4 fresh) {
    const bool any = group_any(some(fresh)) != 0;
    if (v == NONE) return false;
    if (any) l.next[(u64)place(d, v) * PIECES + l.piece] = fresh;
    return any;
}

INLINE void offer(const Domain &d, const Level &l, u32 u, uint4 bits) {
    if (!some(bits)) return;
    const u32 owner = owner_of(d, u).part;
    give_row(of_part(d, l.next, owner) + (u64)u * PIECES, l.piece, bits);
    give_mark(of_part(d, l.next_mark, owner), u);
}

INLINE void announce(const Domain &d, const Level &l, u32 v, uint4 fresh) {
    const u32 at = place(d, v);
    for (u32 k = 0; k < d.parts; k++) {
        if (k == d.index) continue; /* mutant: == -> != : test_domain_bits::test_levels */
        of_part(d, l.next, k)[(u64)at * PIECES + l.piece] = fresh;
        give_mark(of_part(d, l.next_mark, k), at);
    }
}

/* Delegates are counted by one of the domains. */
INLINE bool counts_here(const Domain &d, u32 v) { return v >= d.counted; }

/* Clears the counters of the level after this one. */
INLINE void clear_ahead(const Domain &d) {
    clear_mark(d, d.depth);
    clear_live(d, d.depth);
    if (blockIdx.x == 0 && threadIdx.x == 0) *tally_of(d, d.depth + 1) = {0, 0};
}

/* Notes which searches have a frontier that the rows here may find. */
extern "C" __global__ void __launch_bounds__(THREADS, 1) live_level(const Domain d) {
    if (SPLIT) note_live(d, level_of(d, d.depth));
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) pull_level(const Domain d) {
    __shared__ u32 room[WORDS];
    clear_ahead(d);
    const Level l = level_of(d, d.depth);
    pull(d, l, room, d.full[l.piece]);
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

/* No own row of the frontier of level `depth` has bits. */
extern "C" __global__ void __launch_bounds__(THREADS, 1) empty_level(const Domain d) {
    empty_rows(d, level_of(d, d.depth));
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) settle_level(const Domain d) {
    const u64 size = tally_of(d, d.depth)->size, old = tally_of(d, d.depth + TURNS - 1)->size;
    const u32 count = (u32)size, old_count = (u32)old;
    const u32 edges =
        settle_queue(d, level_of(d, d.depth), d.queue[(d.depth + 1) & 1], old_count,
                     old_count + (u32)(old >> 32), count, count + (u32)(size >> 32));
    const u32 sum = __reduce_add_sync(ALL, edges);
    if (lane_id() == 0 && sum) atomicAdd(&tally_of(d, d.depth)->edges, (u64)sum);
}

/* Counts the vertices of level `depth` by search. */
extern "C" __global__ void __launch_bounds__(THREADS, 1) count_searches(const Domain d) {
    __shared__ u32 room[32 * WORDS];
    const Level l = level_of(d, d.depth);
    const u64 size = tally_of(d, d.depth)->size;
    const u32 count = (u32)size, all = count + (u32)(size >> 32);
    count_level(d, l, l.next, l.next_mark, d.queue[d.depth & 1], 0, count, all, d.depth, room);
}

struct Begin {
    Domain p;
    const u32 *number; /* [k], of the sources; NONE where another device has it */
    u32 k, pad;
};

/* Offers level 0 to the own rows, by one block; all own rows, marks and tallies are zero. */
extern "C" __global__ void __launch_bounds__(THREADS, 1) begin_level(const Begin b) {
    const Domain &d = b.p;
    for (u32 i = threadIdx.x; i < b.k; i += THREADS) {
        if (b.number[i] == NONE) continue;
        const u32 at = place(d, b.number[i]);
        atomicOr((u32 *)(d.front[0] + (u64)at * PIECES) + i / 32, 1u << (i & 31));
        atomicOr(d.mark[0] + (at >> 5), 1u << (at & 31));
    }
}
