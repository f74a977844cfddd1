/* Results by number from the snapshots, and clean bitmaps for the next search. */
#ifndef DISTBFS_XBFS_RESULTS_CUH
#define DISTBFS_XBFS_RESULTS_CUH
#include "search.cuh"

#define EARLY 4 /* snapshots that are asked for at once */
#define CODED 3 /* snapshots that have codes: trees.cuh */

/* Four bits of a word as four bytes of 0 or 1. */
INLINE u32 spread(u32 word, int nibble) {
    return ((word >> 4 * nibble & 15) * 0x00204081u) & 0x01010101u;
}

/* Bytes of 255 where a nibble has its bits. */
INLINE u32 bytes_of(u32 nibble) { return spread(nibble, 0) * 255; }

/* Bytes of the levels of four vertices from v on that are pushed: where `pushed` has bits. */
INLINE u32 pushed_levels(const Params &p, u64 v, u32 pushed) {
    const uint4 d = *(const uint4 *)(p.direct + v);
    return (d.x & 255 | (d.y & 255) << 8 | (d.z & 255) << 16 | d.w << 24) & bytes_of(pushed);
}

/* Level of a number, -1 where it is unvisited. */
INLINE int level_of(const Params &p, u32 v, u32 k, u32 base) {
    if (bit_of(p.snapshot, v)) return p.direct[v];
    if (bare_word(p, v >> 5) >> (v & 31) & 1) return -1;
#pragma unroll 1
    for (u32 j = 1; j <= k; j++)
        if (bit_of(p.snapshot + j * p.stride, v)) return base + j;
    return -1;
}

/* Tell the last snapshot that has a vertex of its own; a whole warp calls it. */
INLINE void tell_highest(const Params &p, u32 snapshot, u32 lane) {
    const u32 top = __reduce_max_sync(ALL, snapshot);
    u64 *highest = &p.control->highest;
    if (lane == 0 && top > *(volatile u64 *)highest) atomicMax(highest, (u64)top);
}

#define SHARE (CODES ? 16 : 8) /* vertices of a thread: fewer where they are few */

/* Results by number.  The last blocks take the first vertices, as the first blocks have those of
 * trees.  codes(i, low, high) is called with the codes of share i, by whole warps, and
 * codes.later(v, bits, level) where some of its vertices, from v on, have none for that level */
template <class Codes>
INLINE void results_by_number(const Params &p, u32 k, u32 base, bool wide, const Codes &codes) {
    u32 top = 0;
    for (u32 i = (gridDim.x - 1 - blockIdx.x) * THREADS + threadIdx.x; i < p.words * (32 / SHARE);
         i += gridDim.x * THREADS) {
        const u32 w = i * SHARE / 32, part = i * SHARE & 31, v0 = i * SHARE;
        const u32 *snapshot = p.snapshot + w, all = ALL >> (32 - SHARE);
        u32 later[EARLY], out[SHARE / 4];
        const u32 pushed = snapshot[0] >> part & all;
#pragma unroll
        for (int j = 0; j < EARLY; j++)
            later[j] = j < (int)k ? snapshot[(j + 1) * p.stride] >> part & all : 0u;
        const u32 bare = bare_word(p, w) >> part & ~pushed & all;
        u32 seen = pushed | bare, j = 0, fresh;
#pragma unroll
        for (int z = 0; z < SHARE / 4; z++) out[z] = 0;
        const auto add = [&](u32 now) {
            fresh = now & ~seen;
            seen |= now, j++;
            if (fresh && j > top) top = j;
#pragma unroll
            for (int z = 0; z < SHARE / 4; z++) out[z] += spread(fresh, z) * (base + j);
        };
        u32 low = 0, high = 0; /* bits of codes */
#pragma unroll
        for (int e = 0; e < EARLY; e++) {
            add(later[e]);
            if (e < CODED && (e + 1 & 1)) low |= fresh;
            /* mutant: if (e < CODED && (e + 1 & 2)) high |= fresh ->
             * : test_trees_from_every_place */
            if (e < CODED && (e + 1 & 2)) high |= fresh;
            if (e >= CODED && fresh) codes.later(v0, fresh, base + j);
        }
#pragma unroll 1
        while (j < k) {
            add(snapshot[(j + 1) * p.stride] >> part & all);
            if (fresh) codes.later(v0, fresh, base + j);
        }
        codes(i, low, high);
        const u32 open = ~seen & all | bare;
        if (wide) {
            for (u32 v = v0; v < v0 + SHARE && v < p.active; v++) {
                const int level = level_of(p, v, k, base);
                p.level_wide[v] = level;
                if (level > (int)(base + top)) top = level - base;
            }
        /* mutant: if (p.level_out) { -> { : test_parents_alone::test_every_way */
        } else if (p.level_out) {
#pragma unroll
            for (int z = 0; z < SHARE / 4; z++) {
                const u32 own = pushed >> 4 * z & 15;
                if (own) out[z] |= pushed_levels(p, v0 + 4 * z, own);
                out[z] |= bytes_of(open >> 4 * z);
            }
            u32 *to = (u32 *)(p.level_out + v0);
            constexpr int last = SHARE / 4 - 1;
            if (SHARE == 16) *(uint4 *)to = make_uint4(out[0], out[1], out[last - 1], out[last]);
            else *(uint2 *)to = make_uint2(out[0], out[1]);
        }
        if (p.parents)
            for (u32 one = open; one; one &= one - 1) p.parent[v0 + __ffs(one) - 1] = NONE;
    }
    tell_highest(p, top, threadIdx.x & 31);
}

/* Bitmaps as a search begins with them: snapshots 0 and 1, by_first. */
INLINE void clean(const Params &p, u32 *snapshot, u32 *by_first) {
    const u32 last = p.active >> 5, tail = ALL << (p.active & 31);
    for (u32 w = blockIdx.x * blockDim.x + threadIdx.x; w < p.words;
         w += gridDim.x * blockDim.x) {
        snapshot[w] = w < last ? 0u : w == last ? tail : ALL;
        snapshot[p.stride + w] = 0;
        if (IN_IDS) by_first[w] = 0;
    }
}
#endif
