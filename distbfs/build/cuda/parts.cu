/* Keys of the directed edges of a part from edge tuples, and numbers of its vertices.
 *
 * Method: every device reads all tuples and makes keys of the directed edges that its
 * part keeps by Algorithm 1.  The class of a vertex and its number come from sets of ids
 * with ranks: a vertex with edges is normal, and in the first set, or a delegate, and in
 * the second.  Where ids have 64 bits the first set is that of the own part, and delegates
 * are in a hash table: nothing is of all vertices.
 *
 * Data encoding.  A vertex v has part v % parts and local id v / parts; its place is part *
 * per + local id, where per is the most vertices of a part.  Each part has `blocks` blocks
 * in sets.  A key is (row - first row of the range) * 2^bits + column; bits is 32 where ids
 * have 32 bits.  The rows of the four subgraphs follow each other: nn and nd (active rows
 * each, by number), dn and dd (delegates rows each).  Columns of nn are places, those of nd
 * and dd delegates, those of dn numbers.  `table` has degree * 2^32 + number of delegates, by
 * rank in the second set, over all parts together, or by slot of the hash table.
 *
 * Source: Pan, Pearce, Owens 2018, Section III-B.
 *
 * variants: ID=u32,u64
 *
 * All kernels take one-dimensional grids of any size and blocks of THREADS threads.
 */
#include "../../engines/cuda/common/positions.cuh"
#include "../../engines/cuda/common/sets.cuh"
#include "keys.cuh"

#define TURNED 4 /* one dd edge of so many is with the other end; build/host/separate.py */

/* At most two keys of a tuple. */
struct Found {
    u32 row[2], count;
    ID column[2];
    __device__ __forceinline__ void add(u32 r, ID c) {
        row[count] = r;
        column[count] = c;
        count++;
    }
};

/* Rows are the local ids of this part, columns the ids of all their neighbours; or, unless
 * `both`, of those that tuples lead to. */
struct Own {
    u32 parts, part, both;
    __device__ __forceinline__ void operator()(ID x, ID y, Found &found) const {
        if (x % parts == part) found.add((u32)(x / parts), y);
        if (both && y % parts == part) found.add((u32)(y / parts), x);
    }
};

/* First slot to search for a key, of `slots`. */
INLINE u64 slot_of(u64 id, u64 slots) {
    return __umul64hi(id * 0x9E3779B97F4A7C15ull, slots);
}

/* One end of a tuple: its part, local id and entry. */
struct End {
    u32 part, local, number;
    u64 entry;
    bool own;
};

/* Rows are those of the four subgraphs; both: as in Own; blocks: of a part in each set.  Sets of
 * ids of 32 bits are those of all parts. */
struct Separated {
    u32 parts, part, both, blocks, active, delegates;
    u64 per, slots;
    const uint4 *__restrict__ normals; /* [parts * blocks], or [blocks] of the own part */
    const void *__restrict__ members;  /* uint4 [parts * blocks], or u64 [slots], ids or -1 */
    const u64 *__restrict__ table;     /* [delegates], or [slots] */

    __device__ __forceinline__ End end_at(ID x) const {
        const u32 at = (u32)(x % parts);
        return End{at, (u32)(x / parts), 0, 0, at == part};
    }

    /* The entry of a delegate; false where the vertex is none. */
    __device__ __forceinline__ bool is_delegate(ID x, End &e) const {
        u32 rank;
        if (!delegates) return false;
        if (sizeof(ID) == 4) {
            const uint4 *set = (const uint4 *)members + (u64)e.part * blocks;
            if (!find(set, e.local, rank)) return false;
            e.entry = table[rank];
            return true;
        }
        const u64 *ids = (const u64 *)members;
        for (u64 k = slot_of(x, slots);; k = k + 1 == slots ? 0 : k + 1) {
            const u64 id = ids[k];
            if (id == ~0ull) return false;
            /* mutant: id != (u64)x -> false : test_keys_that_tell_few_rows_apart */
            if (id != (u64)x) continue;
            e.entry = table[k];
            return true;
        }
    }

    /* Whether a vertex is normal, and its number: of ids of 64 bits where it is an own one,
     * and then the entry where it is a delegate. */
    __device__ __forceinline__ bool is_normal(ID x, End &e) const {
        if (sizeof(ID) == 4) return find(normals + (u64)e.part * blocks, e.local, e.number);
        if (is_delegate(x, e)) return false;
        e.own = e.own && find(normals, e.local, e.number);
        return true;
    }

    __device__ __forceinline__ void operator()(ID x, ID y, Found &found) const {
        End a = end_at(x), b = end_at(y);
        if (!a.own && !b.own) return;
        bool normal_x = is_normal(x, a), normal_y = is_normal(y, b);
        if (normal_x && normal_y) {
            if (a.own) found.add(a.number, (ID)(b.part * per + b.local));
            if (both && b.own) found.add(b.number, (ID)(a.part * per + a.local));
            return;
        }
        const bool known = sizeof(ID) == 8;
        if (normal_x || normal_y) {
            if (normal_x ? !a.own : !b.own) return;
            if (!known && !(normal_x ? is_delegate(y, b) : is_delegate(x, a))) return;
            u32 number = normal_x ? a.number : b.number;
            u32 delegate = (u32)(normal_x ? b.entry : a.entry);
            if (both || normal_x) found.add(active + number, delegate);
            if (both || normal_y) found.add(2 * active + delegate, number);
            return;
        }
        if (!known && (!is_delegate(x, a) || !is_delegate(y, b))) return;
        u32 dx = (u32)(a.entry >> 32), dy = (u32)(b.entry >> 32);
        u32 cx = (u32)a.entry, cy = (u32)b.entry;
        bool kept_at_x = dx < dy || (dx == dy && x < y);
        if ((cx + cy) % TURNED == 0) kept_at_x = !kept_at_x;
        if (kept_at_x ? !a.own : !b.own) return;
        u32 base = 2 * active + delegates;
        found.add(base + cx, cy);
        if (both) found.add(base + cy, cx);
    }
};

/* Appends the keys of a chunk of tuples whose rows are low ... low + last.
 *
 * Loops give no keys.
 * u, v: [count], ids; keys: [capacity]; size: [1], see append
 */
template <typename Rule>
INLINE void append_by(u64 count, const ID *__restrict__ u, const ID *__restrict__ v,
                      const Rule &rule, u32 low, u32 last, u32 bits, u64 capacity,
                      u64 *__restrict__ keys, u64 *size) {
    if (sizeof(ID) == 4) bits = 32;
    for (u64 first = blockIdx.x * (u64)TILE; first < count; first += gridDim.x * (u64)TILE) {
        u64 key[2 * PER_THREAD];
        u32 wanted = 0;
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            u64 i = first + k * THREADS + threadIdx.x;
            ID x = i < count ? u[i] : 0, y = i < count ? v[i] : 0;
            Found found = {{0, 0}, 0, {0, 0}};
            if (x != y) rule(x, y, found);
#pragma unroll
            for (u32 e = 0; e < 2; e++) {
                u32 row = found.row[e] - low;
                key[2 * k + e] = (u64)row << bits | found.column[e];
                if (e < found.count && row <= last) wanted |= 1u << (2 * k + e);
            }
        }
        append<2 * PER_THREAD>(wanted, [&](int j) { return key[j]; }, capacity, keys, size);
    }
}

/* Counts the keys of a chunk of tuples by row.
 *
 * u, v: [count], ids; lengths: [rows], added to
 */
template <typename Rule>
INLINE void count_keys(u64 count, const ID *__restrict__ u, const ID *__restrict__ v,
                       const Rule &rule, u32 *lengths) {
    for (u64 i = thread_of(THREADS); i < count; i += threads_of(THREADS)) {
        ID x = u[i], y = v[i];
        Found found = {{0, 0}, 0, {0, 0}};
        if (x != y) rule(x, y, found);
#pragma unroll
        for (u32 e = 0; e < 2; e++)
            if (e < found.count) atomicAdd(lengths + found.row[e], 1u);
    }
}

/* append_by Own; u, v: [count]; keys: [capacity]; size: [1] */
extern "C" __global__ void __launch_bounds__(THREADS) append_own(
    u64 count, const ID *u, const ID *v, u32 parts, u32 part, u32 both, u32 low, u32 last,
    u32 bits, u64 capacity, u64 *keys, u64 *size) {
    append_by(count, u, v, Own{parts, part, both}, low, last, bits, capacity, keys, size);
}

/* count_keys by Own; u, v: [count]; lengths: [local ids] */
extern "C" __global__ void __launch_bounds__(THREADS) count_own(
    u64 count, const ID *u, const ID *v, u32 parts, u32 part, u32 both, u32 *lengths) {
    count_keys(count, u, v, Own{parts, part, both}, lengths);
}

/* append_by Separated; u, v: [count]; normals: [parts * blocks] or [blocks]
 * members: [parts * blocks] or [slots]; table: [delegates] or [slots]; keys: [capacity]
 * size: [1]
 */
extern "C" __global__ void __launch_bounds__(THREADS) append_separated(
    u64 count, const ID *u, const ID *v, u32 parts, u32 part, u32 both, u32 blocks,
    u32 active, u32 delegates, u64 per, u64 slots, const uint4 *normals, const void *members,
    const u64 *table, u32 low, u32 last, u32 bits, u64 capacity, u64 *keys, u64 *size) {
    const Separated rule = {parts, part,  both,    blocks,  active, delegates,
                            per,   slots, normals, members, table};
    append_by(count, u, v, rule, low, last, bits, capacity, keys, size);
}

/* count_keys by Separated; u, v: [count]; normals: [parts * blocks] or [blocks]
 * members: [parts * blocks] or [slots]; table: [delegates] or [slots]
 * lengths: [2 * active + 2 * delegates]
 */
extern "C" __global__ void __launch_bounds__(THREADS) count_separated(
    u64 count, const ID *u, const ID *v, u32 parts, u32 part, u32 both, u32 blocks,
    u32 active, u32 delegates, u64 per, u64 slots, const uint4 *normals, const void *members,
    const u64 *table, u32 *lengths) {
    const Separated rule = {parts, part,  both,    blocks,  active, delegates,
                            per,   slots, normals, members, table};
    count_keys(count, u, v, rule, lengths);
}

/* Rows are the numbers of this part, columns the positions of their neighbours; see
 * build/cuda/domain.py; both: as in Own. */
struct Positioned {
    u32 parts, part, blocks, both;
    const uint4 *__restrict__ members; /* [parts * blocks], ranks over all parts */
    const u32 *__restrict__ positions; /* [members], by rank */
    __device__ __forceinline__ u32 number(u32 position) const {
        return (position >> 10) / parts << 10 | (position & 1023);
    }
    /* NONE where the vertex is no member */
    __device__ __forceinline__ u32 position(u32 part_of, u32 local) const {
        u32 rank;
        return find(members + (u64)part_of * blocks, local, rank) ? positions[rank] : NONE;
    }
    __device__ __forceinline__ void operator()(ID x, ID y, Found &found) const {
        u32 xp = (u32)(x % parts), yp = (u32)(y % parts);
        bool own_x = xp == part, own_y = both && yp == part;
        if (!own_x && !own_y) return;
        u32 a = position(xp, (u32)(x / parts)), b = position(yp, (u32)(y / parts));
        if (own_x) found.add(number(a), b);
        if (own_y) found.add(number(b), a);
    }
};

/* append_by Positioned; u, v: [count]; members: [parts * blocks]; positions: [members]
 * keys: [capacity]; size: [1] */
extern "C" __global__ void __launch_bounds__(THREADS) append_positioned(
    u64 count, const ID *u, const ID *v, u32 parts, u32 part, u32 blocks, u32 both,
    const uint4 *members, const u32 *positions, u32 low, u32 last, u32 bits, u64 capacity,
    u64 *keys, u64 *size) {
    const Positioned rule = {parts, part, blocks, both, members, positions};
    append_by(count, u, v, rule, low, last, bits, capacity, keys, size);
}

/* Positions of the members of a part, and their ids for results.
 *
 * members: [blocks], ranks over all parts; base: members of the parts before
 * numbers: [members], by rank in the part; positions: [members of all parts], by rank
 * names: [positions], by position: the id, or the local id where ids have 64 bits
 */
extern "C" __global__ void __launch_bounds__(THREADS) place_numbers(
    u64 local, u32 parts, u32 part, const uint4 *members, u32 base,
    const u32 *__restrict__ numbers, u32 *__restrict__ positions, u32 *__restrict__ names) {
    for (u64 k = thread_of(THREADS); k < local; k += threads_of(THREADS)) {
        u32 rank;
        if (!find(members, (u32)k, rank)) continue;
        u32 position = position_in(numbers[rank - base], parts, part);
        positions[rank] = position;
        names[position] = (u32)(sizeof(ID) == 4 ? k * parts + part : k);
    }
}

/* Properties of the members of a part, by rank.
 *
 * members: [blocks]; degrees, loops: [local], keys of each row and ends of loops
 * ids, lengths, ends: [members], local id, keys of the row, ends of tuples
 * classes: [members], class_of the length
 */
extern "C" __global__ void __launch_bounds__(THREADS) list_members(
    u64 local, const uint4 *members, const u32 *__restrict__ degrees,
    const u32 *__restrict__ loops, u32 *__restrict__ ids, u32 *__restrict__ lengths,
    u32 *__restrict__ ends, u8 *__restrict__ classes) {
    for (u64 k = thread_of(THREADS); k < local; k += threads_of(THREADS)) {
        u32 rank;
        if (!find(members, (u32)k, rank)) continue;
        ids[rank] = (u32)k;
        lengths[rank] = degrees[k];
        ends[rank] = degrees[k] + loops[k];
        classes[rank] = (u8)class_of(degrees[k]);
    }
}

/* Counts the loops of a chunk of tuples at the vertices of this part.
 *
 * u, v: [count]; ends: [local ids], two a loop, added to; loops: [1], added to
 */
extern "C" __global__ void __launch_bounds__(THREADS) count_loops(
    u64 count, const ID *__restrict__ u, const ID *__restrict__ v, u32 parts, u32 part,
    u32 *ends, u64 *loops) {
    u64 found = 0;
    for (u64 k = thread_of(THREADS); k < count; k += threads_of(THREADS)) {
        ID x = u[k];
        if (x != v[k] || x % parts != part) continue;
        atomicAdd(ends + x / parts, 2u);
        found++;
    }
    found = warp_sum(found);
    if (lane_id() == 0 && found) atomicAdd(loops, found);
}

/* Makes the bits of both sets of a part; one warp a block of SET_BITS ids.
 *
 * degrees: [local]; normals, members: [blocks], without the ranks
 * normal_counts, member_counts: [blocks], members of each block
 */
extern "C" __global__ void __launch_bounds__(THREADS) mark_sets(
    u64 local, u64 blocks, const u32 *__restrict__ degrees, u32 threshold,
    uint4 *__restrict__ normals, uint4 *__restrict__ members,
    u32 *__restrict__ normal_counts, u32 *__restrict__ member_counts) {
    u64 stride = (u64)gridDim.x * WARPS;
    for (u64 t = (u64)blockIdx.x * WARPS + threadIdx.x / 32; t < blocks; t += stride) {
        u32 normal[3], member[3];
#pragma unroll
        for (u32 w = 0; w < 3; w++) {
            u64 id = t * SET_BITS + w * 32 + threadIdx.x % 32;
            u32 degree = id < local ? degrees[id] : 0;
            normal[w] = __ballot_sync(ALL, degree && degree <= threshold);
            member[w] = __ballot_sync(ALL, degree > threshold);
        }
        if (threadIdx.x % 32) continue;
        normals[t] = make_uint4(0, normal[0], normal[1], normal[2]);
        members[t] = make_uint4(0, member[0], member[1], member[2]);
        normal_counts[t] = __popc(normal[0]) + __popc(normal[1]) + __popc(normal[2]);
        member_counts[t] = __popc(member[0]) + __popc(member[1]) + __popc(member[2]);
    }
}

/* set[k].x = base + starts[k]; set, starts: [blocks] */
extern "C" __global__ void __launch_bounds__(THREADS) rank_set(u64 blocks, u32 base,
                                                             const u64 *starts, uint4 *set) {
    for (u64 k = thread_of(THREADS); k < blocks; k += threads_of(THREADS))
        set[k].x = base + (u32)starts[k];
}

/* Numbers the vertices of a part: normal ones with edges first, both rising by local id.
 *
 * normals, members: [blocks], the sets of this part; degrees, ends: [local]
 * vertices, numbers, tuple_degrees: [local], as in DevicePart
 * ids, high: [delegates of this part], by rank: the vertex and its degree
 */
extern "C" __global__ void __launch_bounds__(THREADS) number_vertices(
    u64 local, u32 parts, u32 part, u32 active, const uint4 *normals, const uint4 *members,
    const u32 *__restrict__ degrees, const u32 *__restrict__ ends,
    u32 *__restrict__ vertices, u32 *__restrict__ numbers, u32 *__restrict__ tuple_degrees,
    u64 *__restrict__ ids, u32 *__restrict__ high) {
    for (u64 k = thread_of(THREADS); k < local; k += threads_of(THREADS)) {
        u32 id = (u32)k, before, rank;
        u32 number = find(normals, id, before) ? before : active + id - before;
        numbers[id] = number;
        vertices[number] = id;
        tuple_degrees[number] = ends[id];
        if (find(members, id, rank))
            ids[rank] = k * parts + part, high[rank] = degrees[id];
    }
}

/* Makes the table of delegates.
 *
 * ids, degrees: [delegates], by delegate number; members: [parts * blocks], with ranks over
 * all parts, or [slots], -1 so far; table: [delegates] or [slots]
 */
extern "C" __global__ void __launch_bounds__(THREADS) number_delegates(
    u64 delegates, const u64 *__restrict__ ids, const u32 *__restrict__ degrees, u32 parts,
    u32 blocks, u64 slots, void *members, u64 *__restrict__ table) {
    for (u64 k = thread_of(THREADS); k < delegates; k += threads_of(THREADS)) {
        const u64 id = ids[k], entry = (u64)degrees[k] << 32 | k;
        if (sizeof(ID) == 4) {
            u32 local = (u32)id / parts, rank;
            find((const uint4 *)members + (u64)((u32)id - local * parts) * blocks, local, rank);
            table[rank] = entry;
            continue;
        }
        u64 at = slot_of(id, slots);
        while (atomicCAS((u64 *)members + at, ~0ull, id) != ~0ull)
            at = at + 1 == slots ? 0 : at + 1;
        table[at] = entry;
    }
}
