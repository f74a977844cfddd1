/* Results by number from the snapshots, and clean bitmaps for the next search. */
#ifndef DISTBFS_XBFS_RESULTS_CUH
#define DISTBFS_XBFS_RESULTS_CUH
#include "search.cuh"

#define EARLY 4 /* snapshots that are asked for at once */

/* Four bits of a word as four bytes of 0 or 1. */
INLINE u32 spread(u32 word, int nibble) {
    return ((word >> 4 * nibble & 15) * 0x00204081u) & 0x01010101u;
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

/* Results by number; a thread takes a word. */
INLINE void results_by_number(const Params &p, u32 k, u32 base, bool wide) {
    const u32 last = p.active >> 5, tail = ALL << (p.active & 31);
    u32 top = 0;
    for (u32 w = blockIdx.x * THREADS + threadIdx.x; w < p.words; w += gridDim.x * THREADS) {
        const u32 *snapshot = p.snapshot + w;
        const u32 pushed = snapshot[0], pad = w < last ? 0u : w == last ? tail : ALL;
        const u32 v0 = w * 32, bare = bare_word(p, w) & ~pushed;
        u32 seen = pushed | bare, later[EARLY], out[8];
#pragma unroll
        for (int j = 0; j < EARLY; j++) later[j] = j < (int)k ? snapshot[(j + 1) * p.stride] : 0u;
        if (wide) {
            for (u32 v = v0; v < v0 + 32 && v < p.active; v++) {
                const int level = level_of(p, v, k, base);
                p.level_wide[v] = level;
                if (level > (int)(base + top)) top = level - base;
                if (level < 0 && p.parents) p.parent[v] = NONE;
            }
        } else {
#pragma unroll
            for (int z = 0; z < 8; z++) out[z] = 0;
            u32 j = 0;
#pragma unroll
            for (; j < EARLY; j++) {
                const u32 fresh = later[j] & ~seen;
                seen |= later[j];
                if (fresh && top <= j) top = j + 1;
#pragma unroll
                for (int z = 0; z < 8; z++) out[z] |= spread(fresh, z) * (base + j + 1);
            }
#pragma unroll 1
            for (; j < k; j++) {
                const u32 now = snapshot[(j + 1) * p.stride], fresh = now & ~seen;
                seen |= now;
                if (fresh && top <= j) top = j + 1;
#pragma unroll
                for (int z = 0; z < 8; z++) out[z] |= spread(fresh, z) * (base + j + 1);
            }
#pragma unroll
            for (int z = 0; z < 8; z++) out[z] |= spread(~seen | bare, z) * 255;
            if (p.parents)
                for (u32 open = ~seen | bare; open; open &= open - 1)
                    p.parent[v0 + __ffs(open) - 1] = NONE;
            uint4 *to = (uint4 *)(p.level_out + v0);
            to[0] = make_uint4(out[0], out[1], out[2], out[3]);
            to[1] = make_uint4(out[4], out[5], out[6], out[7]);
            for (u32 set = pushed & ~pad; set; set &= set - 1) {
                const u32 v = v0 + __ffs(set) - 1;
                p.level_out[v] = p.direct[v];
            }
        }
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
