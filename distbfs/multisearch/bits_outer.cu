/* What domains exchange in searches that share one traversal, a bit each.
 *
 * Method: of a level, after the step inside a domain (bits_domain.cu) and before its bits are
 * settled, the host launches on each device
 *   push_outer         bits of the frontier go along outer edges to their targets, which are
 *                      rows here; no bit goes to a target twice
 *   collect_outer      targets with bits become items, by the share that has them
 *   collect_delegates  so do delegates of this device that the domain has found, by lane
 * and for what arrives from each share
 *   take               bits that are new here are added to the next frontier
 * Data: as in bits_domain.cuh, and outer edges, whose columns are indices of their targets.  An
 * item has 1 + 2 * PIECES words of 64 bits: where the vertex is there, then its row.  For an outer
 * edge this is its local id there, for a delegate its position.
 *
 * Sources: Then et al. 2014; Pan, Pearce, Owens 2018, Section V-B (each vertex sent once).
 *
 * variants: PIECES=1,2,4
 */
#include "bits_domain.cuh"
#include "bits_push.cuh"

#define ITEM (1 + 2 * PIECES)

/* out: the outer edges, [active + 1] and indices of targets; seen: what each target was sent,
 * [targets][PIECES] */
struct Outer : Domain {
    const uint4 *visited; /* [active][PIECES], of own vertices */
    uint4 *sends;         /* [targets][PIECES], zero between levels */
    u32 *sending;         /* [ceil(targets / 32)], those with bits to be sent */
    const u32 *starts;    /* [shares + 1], the first target of each share */
    const u32 *target;    /* [targets], their local ids there */
    const u32 *number;    /* [n], local id -> number */
    u64 *box;             /* [targets + normals][ITEM] */
    u64 *sizes;           /* [shares + lanes], items of each */
    const u64 *items;     /* [count][ITEM], what has arrived */
    u64 count;
    u32 shares, lanes;    /* lanes of delegates on this device */
    u32 normals, targets; /* the first number of a normal vertex */
    u32 delegates, pad[3]; /* whether the items are of delegates */
};

INLINE void offer(const Outer &o, const Level &l, u32 u, uint4 bits) {
    if (!some(bits)) return;
    give_own(o.sends + (u64)u * PIECES, l.piece, bits);
    red_or(o.sending + (u >> 5), 1u << (u & 31));
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) push_outer(const Outer o) {
    const u64 size = tally_of(o, o.depth - 1)->size;
    const u32 hubs = o.hubs <= o.normals ? 0 : (u32)(size >> 32); /* delegates have none */
    push(o, level_of(o, o.depth), o.queue[(o.depth + 1) & 1], (u32)size, hubs);
}

INLINE void put_item(const Outer &o, u64 at, u32 where, const uint4 *row) {
    u64 *to = o.box + at * ITEM;
    to[0] = where;
    for (int k = 0; k < PIECES; k++) {
        const uint4 bits = row[k];
        to[1 + 2 * k] = (u64)bits.y << 32 | bits.x;
        to[2 + 2 * k] = (u64)bits.w << 32 | bits.z;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) collect_outer(const Outer o) {
    const Level l = level_of(o, o.depth);
    for (u32 s = 0; s < o.shares; s++)
        each_set(l, o.starts[s], o.starts[s + 1], o.sizes + s,
                 [&](u32 word) { return o.sending[word]; },
                 [&](u32 u, u32 to) {
                     uint4 *row = o.sends + (u64)u * PIECES, *sent = o.seen + (u64)u * PIECES;
                     put_item(o, (u64)o.starts[s] + to, o.target[u], row);
                     for (int k = 0; k < PIECES; k++) {
                         /* mutant: sent[k] | row -> row : test_no_bit_goes_to_a_target_twice */
                         sent[k] = sent[k] | row[k];
                         row[k] = make_uint4(0, 0, 0, 0);
                     }
                 });
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) collect_delegates(const Outer o) {
    const Level l = level_of(o, o.depth);
    const u32 each = o.normals / o.lanes;
    for (u32 j = 0; j < o.lanes; j++) {
        /* granules take turns in lanes, as in a domain's devices */
        const auto number_of = [&](u32 k) { return position_in(k, o.lanes, j); };
        each_set(l, 0, each, o.sizes + o.shares + j,
                 [&](u32 word) { return l.next_mark[word_place(o, number_of(word * 32) / 32)]; },
                 [&](u32 k, u32 to) {
                     const u32 at = place(o, number_of(k));
                     put_item(o, (u64)o.targets + (u64)j * each + to, at,
                              l.next + (u64)at * PIECES);
                 });
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) take(const Outer o) {
    const Level l = level_of(o, o.depth);
    for (u64 t = thread_of(THREADS); t < o.count * PIECES; t += threads_of(THREADS)) {
        const u64 *item = o.items + t / PIECES * ITEM;
        const u32 piece = (u32)(t % PIECES), where = (u32)item[0];
        const u32 v = o.delegates ? owner_of(o, where).number : o.number[where];
        const u64 low = item[1 + 2 * piece], high = item[2 + 2 * piece];
        uint4 bits = make_uint4((u32)low, (u32)(low >> 32), (u32)high, (u32)(high >> 32));
        /* mutant: bits = without(bits, o.visited[(u64)v * PIECES + piece]) -> (void)o.visited
         * : test_outer_bits::test_a_last_level */
        bits = without(bits, o.visited[(u64)v * PIECES + piece]);
        if (!some(bits)) continue;
        const u32 at = place(o, v);
        give_row(l.next + (u64)at * PIECES, piece, bits);
        give_mark(l.next_mark, at);
    }
}
