/* Levels and parents of everything that was visited, from the snapshots. */
#ifndef DISTBFS_FAST_RESULTS_CUH
#define DISTBFS_FAST_RESULTS_CUH
#include "fast.cuh"

#define GROUP 512   /* threads of a group */
#define STRIPS 512  /* runs of 128 numbers in a block, at most: ids / 128 + 2 classes */

INLINE void meet_group(u32 group) {
    asm volatile("bar.sync %0,%1;" ::"r"(group + 1), "n"(GROUP) : "memory");
}

/* Four bits of a word as four bytes of 0 or 1. */
INLINE u32 spread(u32 word, int nibble) {
    return ((word >> 4 * nibble & 15) * 0x00204081u) & 0x01010101u;
}

/* Level of a number, -1 where it is unvisited. */
INLINE int level_of(const Params &p, u32 v, u32 k, u32 base) {
    if (bit_of(p.snapshot, v)) return p.direct[v];
#pragma unroll 1
    for (u32 j = 1; j <= k; j++)
        if (bit_of(p.snapshot + j * p.stride, v)) return base + j;
    return -1;
}

/* Results by number; a thread takes a word. */
INLINE void results_by_number(const Params &p, u32 k, u32 base, bool wide) {
    const u32 last = p.active >> 5, tail = p.active & 31 ? ALL << (p.active & 31) : 0u;
    for (u32 w = blockIdx.x * THREADS + threadIdx.x; w < p.words; w += gridDim.x * THREADS) {
        const u32 *snapshot = p.snapshot + w;
        const u32 pushed = snapshot[0], pad = w < last ? 0u : w == last ? tail : ALL;
        const u32 v0 = w * 32;
        u32 seen = pushed, later[4], out[8];
#pragma unroll
        for (int j = 0; j < 4; j++) later[j] = j < (int)k ? snapshot[(j + 1) * p.stride] : 0u;
        if (wide) {
            for (u32 v = v0; v < v0 + 32 && v < p.active; v++) {
                const int level = level_of(p, v, k, base);
                p.level_wide[v] = level;
                if (level < 0 && p.parents) p.parent[v] = NONE;
            }
        } else {
#pragma unroll
            for (int z = 0; z < 8; z++) out[z] = 0;
            u32 j = 0;
#pragma unroll
            for (; j < 4; j++) {
                const u32 fresh = later[j] & ~seen;
                seen |= later[j];
#pragma unroll
                for (int z = 0; z < 8; z++) out[z] |= spread(fresh, z) * (base + j + 1);
            }
#pragma unroll 1
            for (; j < k; j++) {
                const u32 now = snapshot[(j + 1) * p.stride], fresh = now & ~seen;
                seen |= now;
#pragma unroll
                for (int z = 0; z < 8; z++) out[z] |= spread(fresh, z) * (base + j + 1);
            }
#pragma unroll
            for (int z = 0; z < 8; z++) out[z] |= spread(~seen, z) * 255;
            if (p.parents)
                for (u32 open = ~seen; open; open &= open - 1) p.parent[v0 + __ffs(open) - 1] = NONE;
            uint4 *to = (uint4 *)(p.level_out + v0);
            to[0] = make_uint4(out[0], out[1], out[2], out[3]);
            to[1] = make_uint4(out[4], out[5], out[6], out[7]);
            for (u32 set = pushed & ~pad; set; set &= set - 1) {
                const u32 v = v0 + __ffs(set) - 1;
                p.level_out[v] = p.direct[v];
            }
        }
    }
}

/* Results by id.  Ids are cut into blocks; inside a class numbers rise with ids, so the
 * vertices of a block are one run of numbers in each class.
 * segment[b][c]: the first number of class c whose id is in block b or after.
 * A group gathers a block in shared memory and writes it out in full lines; a lane takes
 * four numbers, whose bits lie in one word. */
INLINE void results_by_id(const Params &p, u32 k, u32 base, bool wide, u32 *room) {
    __shared__ u32 table[2][3][CLASSES + 1];
    __shared__ u8 of[2][STRIPS];
    const u32 group = threadIdx.x / GROUP, thread = threadIdx.x % GROUP;
    const u32 warp = thread >> 5, lane = threadIdx.x & 31, groups = THREADS / GROUP;
    const u32 ids = p.block_ids;
    u32 *parent = room + group * (ids + ids / 4);
    u32 *before = table[group][0], *begin = table[group][1], *end = table[group][2];
    u8 *level = (u8 *)(parent + ids), *class_of = of[group];
    for (u32 i = thread; i < (ids + ids / 4) / 4; i += GROUP)
        ((uint4 *)parent)[i] = make_uint4(ALL, ALL, ALL, ALL);
    for (u32 b = blockIdx.x * groups + group; b < p.blocks; b += gridDim.x * groups) {
        const u32 *segment = p.segment + (u64)b * (p.classes + 1);
        if (wide)
            for (u32 i = thread; i < ids; i += GROUP) p.level_wide[(u64)b * ids + i] = -1;
        if (warp == 0) {
            u32 sum = 0, from[CLASSES / 32], to[CLASSES / 32];
#pragma unroll
            for (u32 i = 0; i < CLASSES / 32; i++) {
                const bool in = i * 32 + lane < p.classes;
                from[i] = in ? segment[i * 32 + lane] : 0;
                to[i] = in ? segment[p.classes + 1 + i * 32 + lane] : 0;
            }
#pragma unroll
            for (u32 i = 0; i < CLASSES / 32; i++) {
                const u32 c = i * 32 + lane;
                const u32 size = from[i] < to[i] ? (to[i] - (from[i] & ~127u) + 127) / 128 : 0;
                const u32 upto = warp_scan(size, lane), start = sum + upto - size;
                if (c < p.classes) begin[c] = from[i], end[c] = to[i], before[c] = start;
                for (u32 q = 0; q < size; q++) class_of[start + q] = c;
                sum += __shfl_sync(ALL, upto, 31);
            }
            if (lane == 0) before[p.classes] = sum;
        }
        meet_group(group);
        const u32 total = before[p.classes];
        for (u32 q = warp; q < total; q += GROUP / 32) {
            const u32 c = class_of[q], from = begin[c], to = end[c];
            const u32 v = (from & ~127u) + (q - before[c]) * 128 + lane * 4;
            u32 mine = 15;
            if (v < from) mine &= v + 4 <= from ? 0u : 15u << (from - v);
            if (v + 4 > to) mine &= v >= to ? 0u : (1u << (to - v)) - 1;
            const u32 word = v >> 5, part = v & 31;
            /* all that may be needed is asked for at once */
            const u32 *snapshot = p.snapshot + word;
            u32 seen[6];
#pragma unroll
            for (int j = 0; j < 6; j++) seen[j] = mine && j <= (int)k ? snapshot[j * p.stride] : 0u;
            u32 firsts = 0;
            uint4 f4 = make_uint4(0, 0, 0, 0), g4 = f4;
            if (p.parents && mine) {
                firsts = p.by_first[word] >> part & 15;
                f4 = load_once4(p.first_id + v);
                g4 = *(const uint4 *)(p.parent + v);
            }
            const uint2 at2 = mine ? *(const uint2 *)(p.place + v) : make_uint2(0, 0);
            const u32 at[4] = {at2.x & 0xffff, at2.x >> 16, at2.y & 0xffff, at2.y >> 16};
            const u32 first4[4] = {f4.x, f4.y, f4.z, f4.w};
            u32 parent4[4] = {g4.x, g4.y, g4.z, g4.w};
            const u32 pushed = seen[0] >> part & 15;
            u32 found = pushed, levels = 0; /* one byte each */
#pragma unroll
            for (int j = 1; j < 6; j++) {
                const u32 now = seen[j] >> part & 15;
                levels |= spread(now & ~found, 0) * j;
                found |= now;
            }
#pragma unroll 1
            for (u32 j = 6; j <= k; j++) {
                const u32 now = snapshot[j * p.stride] >> part & 15;
                levels |= spread(now & ~found, 0) * j;
                found |= now;
            }
            found &= mine;
            const u32 stored = p.parents ? found & ~firsts : 0u;
#pragma unroll
            for (int i = 0; i < 4; i++)
                parent4[i] = stored >> i & 1 ? p.vertices[parent4[i]] : first4[i];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (!(found >> i & 1)) continue;
                const u32 l = pushed >> i & 1 ? p.direct[v + i] : base + (levels >> 8 * i & 255);
                if (wide) p.level_wide[(u64)b * ids + at[i]] = l;
                else level[at[i]] = l;
                parent[at[i]] = parent4[i];
            }
        }
        meet_group(group);
        if (!wide)
            for (u32 i = thread; i < ids / 16; i += GROUP) {
                ((uint4 *)(p.level_out + (u64)b * ids))[i] = ((uint4 *)level)[i];
                ((uint4 *)level)[i] = make_uint4(ALL, ALL, ALL, ALL);
            }
        if (p.parents)
            for (u32 i = thread; i < ids / 4; i += GROUP) {
                ((uint4 *)(p.parent_out + (u64)b * ids))[i] = ((uint4 *)parent)[i];
                ((uint4 *)parent)[i] = make_uint4(ALL, ALL, ALL, ALL);
            }
        meet_group(group);
    }
    __syncthreads();
}

/* Bitmaps as a search begins with them: snapshots 0 and 1, by_first. */
INLINE void clean(const Params &p, u32 *snapshot, u32 *by_first) {
    const u32 last = p.active >> 5, tail = p.active & 31 ? ALL << (p.active & 31) : 0u;
    for (u32 w = blockIdx.x * THREADS + threadIdx.x; w < p.words; w += gridDim.x * THREADS) {
        snapshot[w] = w < last ? 0u : w == last ? tail : ALL;
        snapshot[p.stride + w] = 0;
        if (IN_IDS) by_first[w] = 0;
    }
}

/* All results; the bitmaps of the next search are made ready. */
INLINE void results(const Params &p, u32 k, u32 base, bool wide, u32 *room) {
    clean(p, p.next_snapshot, p.next_by_first);
    if (IN_IDS) results_by_id(p, k, base, wide, room);
    else results_by_number(p, k, base, wide);
}
#endif
