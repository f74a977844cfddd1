/* Bits of the edges that searches see.
 *
 * Method: by flags of vertices, a column has its bit if both of its ends are flagged; by a
 * list of pairs, each sets the bit that a binary search finds in its row; for flags of edges
 * as they are listed, the keys of a range of ids are written and sorted, so that flag k is
 * of key k, and flagged ones are pairs.
 *
 * Data: a bit for each column, in the order in which the device stores them: bit k % 32 of word
 * k / 32.  Columns of tails in host memory have bits of their own.  Rows are by number.
 * Columns have names that rise in each row: numbers, positions (positions.cuh) where there are
 * several devices, or indices of targets.  All bits begin as zeros.  Where edges lead one way,
 * rows of edges out and rows of edges in have their bits one after the other.
 */
#include "../../engines/cuda/common/base.cuh"
#include "../../engines/cuda/common/positions.cuh"

struct Seen {
    Uints row;            /* [active + 1] */
    const u32 *adj;       /* [m], rising in each row */
    const u64 *tail_row;  /* [tailed + 1], where tails begin */
    const u32 *tails;     /* [tail_row[tailed]], in host memory */
    u32 *bits;            /* [m / 32 + 1] */
    u32 *tail_bits;       /* [(high - low) / 32 + 1], of the tails from `low` on */
    const u32 *u, *v;     /* [count], ids of the ends of edges that are seen */
    u32 *places;          /* [n], id -> name of columns, NONE: no column has it */
    const void *names;    /* [columns], u32 or (wide) u64: the id of each, or of none all ones;
                             with `shares` local ids of so many parts */
    const u32 *numbers;   /* [local ids] -> row + first, or null: rows are columns of `device` */
    const u32 *vertices;  /* [active], local ids of such rows */
    const u32 *ids;       /* [n / 32 + 1], flags of vertices, a bit each */
    u32 *flags;           /* [columns / 32 + 1], the same by name */
    u32 *ends;            /* [active], how many columns of each row are seen */
    u64 *buckets;         /* [(n - 1 >> shift) + 1], how many keys begin with such an id */
    u64 *keys;            /* [keys of some ids], smaller and larger id of an edge, 32 bits
                             each; or the ids that it leads from and to */
    u64 *filled;          /* [1], how many are written */
    u64 low, high, count, n, columns;
    u64 from_id, to_id;   /* of the smaller ids of keys */
    u32 active, tailed;
    u32 devices, device;  /* whose positions columns are, and which has the rows */
    u32 shares, wide;
    u32 parts, part;      /* whose local ids there are */
    u32 first, shift;
    u32 one_way;          /* not 0: of a directed graph */
};

/* The first place of [low, high) in rising values that is not below x. */
INLINE u64 lower_bound(const u32 *values, u64 low, u64 high, u32 x) {
    while (low < high) {
        const u64 middle = low + (high - low) / 2;
        if (values[middle] < x) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Sets the bit of column x of row v, where there is one. */
INLINE void see(const Seen &r, u32 v, u32 x) {
    if (v == NONE || x == NONE) return;
    const u64 end = r.row[v + 1], at = lower_bound(r.adj, r.row[v], end, x);
    if (at < end && r.adj[at] == x) atomicOr(r.bits + (at >> 5), 1u << (at & 31));
    if (at < end || v >= r.tailed) return;
    const u64 stop = r.tail_row[v + 1], t = lower_bound(r.tails, r.tail_row[v], stop, x);
    if (t < stop && r.tails[t] == x && t >= r.low && t < r.high)
        atomicOr(r.tail_bits + ((t - r.low) >> 5), 1u << (t & 31));
}

/* The row of an id, whose column is at `place`; NONE where this device has none. */
INLINE u32 row_of(const Seen &r, u32 id, u32 place) {
    if (r.numbers) {
        const u32 number = id % r.parts == r.part ? r.numbers[id / r.parts] : NONE;
        return number == NONE || number < r.first ? NONE : number - r.first;
    }
    const u32 granule = place >> 10;
    if (place == NONE || granule % r.devices != r.device) return NONE;
    return granule / r.devices << 10 | (place & 1023);
}

/* Sets the bits of edges, of both directions unless they lead one way. */
extern "C" __global__ void see_pairs(const Seen r) {
    for (u64 k = thread_of(); k < r.count; k += threads_of()) {
        const u32 u = r.u[k], v = r.v[k], a = r.places[u], b = r.places[v];
        see(r, row_of(r, u, a), b);
        /* mutant: v, b), a -> u, a), b : test_masked_kernels::test_clusters */
        /* mutant: !r.one_way -> true : test_directed_between::test_masks */
        if (!r.one_way) see(r, row_of(r, v, b), a);
    }
}

/* The id of a name; n or more where there is none. */
INLINE u64 id_of(const Seen &r, u64 name) {
    if (r.wide) return ((const u64 *)r.names)[name];
    const u64 id = ((const u32 *)r.names)[name];
    return r.shares ? id * r.shares + (name >> 10) % r.shares : id;
}

/* Makes places of names; they begin as NONE. */
extern "C" __global__ void place_names(const Seen r) {
    for (u64 k = thread_of(); k < r.columns; k += threads_of()) {
        const u64 id = id_of(r, k);
        if (id < r.n) r.places[id] = (u32)k;
    }
}

INLINE bool flagged(const Seen &r, u64 id) {
    return id < r.n && r.ids[id >> 5] >> (id & 31) & 1;
}

/* Makes flags of ids. */
extern "C" __global__ void place_flags(const Seen r) {
    for (u64 k = thread_of(); k >> 5 <= r.columns >> 5; k += threads_of()) {
        const u32 word = __ballot_sync(ALL, k < r.columns && flagged(r, id_of(r, k)));
        if ((k & 31) == 0) r.flags[k >> 5] = word;
    }
}

/* Whether the vertex of a row is flagged. */
INLINE bool row_flagged(const Seen &r, u32 v) {
    if (r.numbers) return flagged(r, (u64)r.vertices[v] * r.parts + r.part);
    return bit_of(r.flags, position_in(v, r.devices, r.device));
}

/* Sets the bits of the columns begin … end - 1 that are seen; a warp calls it.
 * bits: of the columns from `low` on, a multiple of 32, up to `high` */
INLINE void see_columns(const u32 *columns, u64 begin, u64 end, const u32 *flags, u32 *bits,
                        u64 low, u64 high) {
    if (begin < low) begin = low;
    if (end > high) end = high;
    for (u64 from = begin & ~31ull; from < end; from += 32) {
        const u64 k = from + lane_id();
        const u32 word = __ballot_sync(ALL, k >= begin && k < end && bit_of(flags, columns[k]));
        if (word && lane_id() == 0) atomicOr(bits + ((from - low) >> 5), word);
    }
}

/* Sets the bits of the edges whose ends are both seen. */
extern "C" __global__ void see_ends(const Seen r) {
    for (u64 v = thread_of() >> 5; v < r.active; v += threads_of() >> 5) {
        if (!row_flagged(r, (u32)v)) continue;
        see_columns(r.adj, r.row[v], r.row[v + 1], r.flags, r.bits, 0, ~0ull);
        if (v < r.tailed)
            see_columns(r.tails, r.tail_row[v], r.tail_row[v + 1], r.flags, r.tail_bits,
                        r.low, r.high);
    }
}

/* The id of a number, where a device has the whole graph. */
INLINE u32 whole_id(const Seen &r, u64 number) { return ((const u32 *)r.names)[number]; }

/* Writes the keys of a warp's columns begin … end - 1 of the row of `id`, as far as that is
 * the smaller id, or edges lead one way; or counts them. */
INLINE u32 forward(const Seen &r, const u32 *columns, u64 begin, u64 end, u32 id, bool writes) {
    u32 sum = 0;
    for (u64 from = begin; from < end; from += 32) {
        const u64 k = from + lane_id();
        const u32 other = k < end ? whole_id(r, columns[k]) : 0;
        const bool first = id < other || r.one_way;
        const u32 some = __ballot_sync(ALL, k < end && first), count = __popc(some);
        sum += count;
        if (!writes || !count) continue;
        u64 at = 0;
        if (lane_id() == 0) at = atomicAdd(r.filled, (u64)count);
        at = __shfl_sync(ALL, at, 0) + __popc(some & lanes_below(lane_id()));
        if (some >> lane_id() & 1) r.keys[at] = (u64)id << 32 | other;
    }
    return sum;
}

INLINE u32 forward_of_row(const Seen &r, u32 v, u32 id, bool writes) {
    u32 sum = forward(r, r.adj, r.row[v], r.row[v + 1], id, writes);
    if (v < r.tailed) sum += forward(r, r.tails, r.tail_row[v], r.tail_row[v + 1], id, writes);
    return sum;
}

/* Counts keys by their smaller ids. */
extern "C" __global__ void count_keys(const Seen r) {
    for (u64 v = thread_of() >> 5; v < r.active; v += threads_of() >> 5) {
        const u32 id = whole_id(r, v), sum = forward_of_row(r, (u32)v, id, false);
        if (lane_id() == 0 && sum) atomicAdd(r.buckets + (id >> r.shift), (u64)sum);
    }
}

/* Writes the keys of some smaller ids, in any order. */
extern "C" __global__ void write_keys(const Seen r) {
    for (u64 v = thread_of() >> 5; v < r.active; v += threads_of() >> 5) {
        const u32 id = whole_id(r, v);
        if (id >= r.from_id && id < r.to_id) forward_of_row(r, (u32)v, id, true);
    }
}

/* How many of the bits begin … end - 1 are set, added up over the lanes of a warp. */
INLINE u32 count_bits(const u32 *bits, u64 begin, u64 end) {
    u32 sum = 0;
    for (u64 from = (begin & ~31ull) + lane_id() * 32; from < end; from += 32 * 32) {
        u32 word = bits[from >> 5];
        if (from < begin) word &= ALL << (begin & 31);
        if (end - from < 32) word &= ~(ALL << (end & 31));
        sum += __popc(word);
    }
    return __reduce_add_sync(ALL, sum);
}

/* Counts the bits of each row; tail_bits: of all tails. */
extern "C" __global__ void count_seen(const Seen r) {
    for (u64 v = thread_of() >> 5; v < r.active; v += threads_of() >> 5) {
        u32 sum = count_bits(r.bits, r.row[v], r.row[v + 1]);
        if (v < r.tailed) sum += count_bits(r.tail_bits, r.tail_row[v], r.tail_row[v + 1]);
        if (lane_id() == 0) r.ends[v] = sum;
    }
}
