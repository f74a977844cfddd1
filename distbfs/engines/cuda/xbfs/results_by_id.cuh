/* Results by id, of blocks of ids that lie together.
 *
 * Ids are cut into blocks; inside a degree class numbers rise with ids, so the vertices of
 * a block of ids are one run of numbers in each class.  A piece is what such runs have of
 * one word of a bitmap.  A block of threads gathers the pieces of its blocks of ids in shared
 * memory and writes them out in full lines.
 *
 * Where ids have 64 bits parents are positions until they are written out; of a position a
 * NAME of 64 bits is the id, and one of 32 bits the local id.
 */
#ifndef DISTBFS_XBFS_RESULTS_BY_ID_CUH
#define DISTBFS_XBFS_RESULTS_BY_ID_CUH
#include "trees.cuh"

#ifndef ID
#define ID u32
#define NAME u32
#endif
#define AHEAD 6   /* snapshots that are asked for at once */

/* What stands for a position in shared memory: its id, or itself where ids are wide. */
INLINE u32 name_of(const Params &p, u32 position) {
    return sizeof(ID) == 4 ? p.vertices[position] : position;
}

/* The id that a name stands for; -1 of NONE. */
INLINE ID id_of(const Params &p, u32 name) {
    if (sizeof(ID) == 4) return name;
    if (name == NONE) return ~(ID)0;
    if (sizeof(NAME) == 8) return ((const NAME *)p.vertices)[name];
    /* mutant: 10 -> 9 : test_resident_kernels::test_ids_of_any_width */
    return (ID)p.vertices[name] * p.shares + (name >> 10) % p.shares;
}

/* Four numbers of a piece a lane: levels, one byte each, and parents by id to where their
 * ids are in shared memory.  Returns the last snapshot that has a vertex of its own.  Levels
 * that nobody wants are made of what is there, and not written out. */
INLINE u32 put(const Params &p, const uint2 piece, const u32 (&at_snapshot)[AHEAD], u32 k, u32 base,
               u8 *level, u32 *parent, u32 lane) {
    const u32 word = piece.x, part = lane * 4 & 31, v = word * 32 + part;
    u32 seen[AHEAD], firsts = 0, top = 0;
    /* all that may be needed is asked for at once */
#pragma unroll
    for (int j = 0; j < AHEAD; j++) seen[j] = p.snapshot[word + at_snapshot[j]];
    uint4 f4 = make_uint4(0, 0, 0, 0), g4 = f4;
    if (p.parents) {
        firsts = p.by_first[word];
        f4 = load_once4(p.first_id + v);
        g4 = *(const uint4 *)(p.parent + v);
    }
    const uint2 at2 = *(const uint2 *)(p.place + v);
    const u32 pushed = seen[0] >> part & 15, bare = bare_word(p, word) >> part & ~pushed & 15;
    u32 found = pushed | bare, levels = 0;
#pragma unroll
    for (u32 j = 1; j < AHEAD; j++) {
        const u32 fresh = seen[j] >> part & ~found & 15;
        levels += spread(fresh, 0) * j;
        if (fresh) top = j;
        found |= fresh;
    }
#pragma unroll 1
    for (u32 j = AHEAD; j <= k; j++) {
        const u32 fresh = p.snapshot[j * p.stride + word] >> part & ~found & 15;
        levels += spread(fresh, 0) * j;
        if (fresh) top = j;
        found |= fresh;
    }
    /* mutant: base -> 0 : test_fast_kernels::test_thresholds_that_force_each_way */
    levels += base * 0x01010101u;
    if (pushed && p.level_out) levels = levels & ~bytes_of(pushed) | pushed_levels(p, v, pushed);
    found &= piece.y >> part & ~bare;
    u32 who[4] = {f4.x, f4.y, f4.z, f4.w};
    const u32 other[4] = {g4.x, g4.y, g4.z, g4.w}, stored = found & ~(firsts >> part);
    if (p.parents) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (stored >> i & 1) who[i] = name_of(p, other[i]);
    }
    const u32 at[4] = {at2.x & 0xffff, at2.x >> 16, at2.y & 0xffff, at2.y >> 16};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (!(found >> i & 1)) continue;
        level[at[i]] = levels >> 8 * i;
        parent[at[i]] = who[i];
    }
    return top;
}

/* The same where levels need more than a byte; out: [ids] of this block. */
INLINE u32 put_wide(const Params &p, const uint2 piece, u32 k, u32 base, int *out, u32 *parent,
                    u32 lane) {
    u32 top = 0;
    for (u32 i = 0; i < 4; i++) {
        const u32 bit = (lane * 4 & 31) + i, v = piece.x * 32 + bit;
        if (!(piece.y >> bit & 1)) continue;
        const int level = level_of(p, v, k, base);
        if (level < 0) continue;
        if (level > (int)(base + top)) top = level - base;
        const u32 at = p.place[v];
        out[at] = level;
        if (!p.parents) continue;
        const bool first = p.by_first[piece.x] >> bit & 1;
        parent[at] = first ? p.first_id[v] : name_of(p, p.parent[v]);
    }
    return top;
}

/* The same of vertices of trees; tell(v, level, from) tells the levels of four, NONE where they
 * are unreached, and their parents: positions where `moved`, else their names. */
template <class Tell>
INLINE void put_trees(const Params &p, const uint2 piece, bool moved, bool wide, int *out,
                      u8 *level, u32 *parent, u32 lane, const Tell &tell) {
    const u32 part = lane * 4 & 31, v = piece.x * 32 + part, mine = piece.y >> part & 15;
    u32 levels[4], from[4];
    const uint2 at2 = *(const uint2 *)(p.place + v);
    tell(v, levels, from);
    const u32 at[4] = {at2.x & 0xffff, at2.x >> 16, at2.y & 0xffff, at2.y >> 16};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (!(mine >> i & 1) || levels[i] == NONE) continue;
        if (wide) out[at[i]] = levels[i];
        else level[at[i]] = levels[i];
        if (p.parents) parent[at[i]] = moved ? name_of(p, from[i]) : from[i];
    }
}

/* Roots of a set that have no edges, in a block of ids; by its threads. */
INLINE void lone_roots(const Params &p, u64 first, u64 end, u32 threads, bool wide) {
    u64 low = 0, high = p.lone_count; /* the first that is not before the block */
    while (low < high) {
        const u64 mid = low + (high - low) / 2;
        if (p.lones[mid] < first) low = mid + 1;
        else high = mid;
    }
    for (u64 i = low + threadIdx.x; i < p.lone_count && p.lones[i] < end; i += threads) {
        const u64 at = p.lones[i];
        if (wide) p.level_wide[at] = 0;
        /* mutant: if (p.level_out) p -> p : test_parents_alone::test_sets */
        else if (p.level_out) p.level_out[at] = 0;
        if (p.parents) ((ID *)p.parent_out)[at] = (ID)p.lones[p.lone_count + i];
    }
}

/* The results of `count` blocks of ids from `from` on, at most BLOCKS; by a block of so many
 * threads.  k, base: of the search; moved, tell: see put_trees; room: [5 count block_ids] bytes.
 * Returns the last snapshot that has a vertex of its own, of this thread. */
template <int BLOCKS, class Tell>
INLINE u32 put_blocks(const Params &p, u32 from, u32 count, u32 threads, u32 k, u32 base, bool wide,
                      bool moved, void *room, const Tell &tell) {
    const u32 thread = threadIdx.x, lane = thread & 31, block_ids = p.block_ids;
    const u32 ids = count * block_ids, end = p.piece_at[from + count];
    const uint4 none = make_uint4(ALL, ALL, ALL, ALL);
    const u64 first = (u64)from * block_ids;
    u32 q = p.piece_at[from] + thread / 8, top = 0;
    u32 later[BLOCKS]; /* where pieces of the other blocks begin */
#pragma unroll
    for (u32 b = 1; b < BLOCKS; b++) later[b] = b < count ? p.piece_at[from + b] : end;
    uint2 next = q < end ? p.piece[q] : make_uint2(0, 0);
    u32 *parent = (u32 *)room, at_snapshot[AHEAD];
    u8 *level = (u8 *)(parent + ids);
    for (u32 j = 0; j < AHEAD; j++) at_snapshot[j] = (j < k ? j : k) * (u32)p.stride;
    for (u32 i = thread; i < (ids + ids / 4) / 4; i += threads) ((uint4 *)parent)[i] = none;
    if (wide)
        for (u32 i = thread; i < ids; i += threads) p.level_wide[first + i] = -1;
    __syncthreads();
    for (; q < end; q += threads / 8) {
        const uint2 piece = next;
        u32 at = 0, last = 0; /* ids before its block */
#pragma unroll
        /* mutant: q >= later[b] ? block_ids : 0u -> 0u : test_shapes_in_every_form */
        for (u32 b = 1; b < BLOCKS; b++) at += q >= later[b] ? block_ids : 0u;
        if (q + threads / 8 < end) next = p.piece[q + threads / 8];
        int *out = p.level_wide + first + at;
        if (piece.x >= p.words)
            put_trees(p, piece, moved, wide, out, level + at, parent + at, lane, tell);
        else
            last = wide ? put_wide(p, piece, k, base, out, parent + at, lane)
                        : put(p, piece, at_snapshot, k, base, level + at, parent + at, lane);
        if (last > top) top = last;
    }
    /* a root without edges, or one that is not searched */
    const u64 own = p.root - first;
    const bool alone = p.root >= first && own < ids && number_of(p, p.root) >= p.active;
    if (alone) __syncthreads(); /* after what its neighbour tells */
    if (thread == 0 && alone) {
        if (wide) p.level_wide[p.root] = 0;
        level[own] = 0;
        if (sizeof(ID) == 4) parent[own] = (u32)p.root_id;
    }
    __syncthreads();
    /* mutant: wide && p.level_out -> wide : test_parents_alone::test_every_way */
    if (!wide && p.level_out)
        for (u32 i = thread; i < ids / 16; i += threads)
            __stcs((uint4 *)(p.level_out + first) + i, ((const uint4 *)level)[i]);
    if (p.parents && sizeof(ID) == 4)
        for (u32 i = thread; i < ids / 4; i += threads)
            __stcs((uint4 *)(p.parent_out + first) + i, ((const uint4 *)parent)[i]);
    if (p.parents && sizeof(ID) == 8)
        for (u32 i = thread; i < ids; i += threads)
            ((ID *)p.parent_out)[first + i] = alone && i == own ? p.root_id : id_of(p, parent[i]);
    if (ASKED(p.lone_count)) {
        __syncthreads();
        lone_roots(p, first, first + ids, threads, wide);
    }
    return top;
}
#endif
