/* Levels and parents of everything that was visited, from the snapshots. */
#ifndef DISTBFS_FAST_RESULTS_CUH
#define DISTBFS_FAST_RESULTS_CUH
#include "fast.cuh"

#define GROUP 512       /* threads of a group */

INLINE void meet_group(u32 group) {
    asm volatile("bar.sync %0,%1;" ::"r"(group + 1), "n"(GROUP) : "memory");
}

/* Four bits of a word as four bytes of 0 or 1. */
INLINE u32 spread(u32 word, int nibble) {
    return ((word >> 4 * nibble & 15) * 0x00204081u) & 0x01010101u;
}

/* Level of a number, -1 where it is unvisited. */
INLINE int level_of(const Params &p, u32 v, u32 k, u32 base) {
    const u32 *word = p.snapshot + (v >> 5);
    const u32 bit = v & 31;
    u32 seen[8];
#pragma unroll
    for (int j = 0; j < 8; j++) seen[j] = j <= (int)k ? word[j * p.stride] : 0u;
    if (seen[0] >> bit & 1) return p.direct[v];
    u32 before = 0;
#pragma unroll
    for (int j = 1; j < 8; j++) before += j <= (int)k && !(seen[j] >> bit & 1);
    u32 j = before + 1;
    if (before == 7)
        while (j <= k && !(word[j * p.stride] >> bit & 1)) j++;
    return j <= k ? (int)(base + j) : -1;
}

/* Results by number; a thread takes a word.  Snapshots 0 and 1 are left as the next
 * search wants them where nothing needs them any more (clear). */
INLINE void results_by_number(const Params &p, u32 k, u32 base, bool wide, bool clear,
                              u32 index, u32 count) {
    const u32 last = p.active >> 5, tail = p.active & 31 ? ALL << (p.active & 31) : 0u;
    for (u32 w = index * THREADS + threadIdx.x; w < p.words; w += count * THREADS) {
        const u32 pushed = p.snapshot[w];
        u32 seen = pushed, out[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        u32 later[8];
#pragma unroll
        for (int j = 0; j < 8; j++)
            later[j] = j < (int)k ? p.snapshot[(j + 1) * p.stride + w] : 0u;
        const u32 pad = w < last ? 0u : w == last ? tail : ALL;
        const u32 v0 = w * 32;
        if (wide) {
            for (u32 v = v0; v < v0 + 32 && v < p.active; v++) {
                const int level = level_of(p, v, k, base);
                p.level_wide[v] = level;
                if (level < 0 && p.parents) p.parent[v] = NONE;
            }
            if (clear) p.snapshot[w] = pad, p.snapshot[p.stride + w] = 0;
            continue;
        }
#pragma unroll
        for (int j = 0; j < 8; j++) {
            if (j >= (int)k) break;
            const u32 fresh = later[j] & ~seen;
            seen |= later[j];
            if (fresh)
#pragma unroll
                for (int z = 0; z < 8; z++) out[z] |= spread(fresh, z) * (base + j + 1);
        }
        for (u32 j = 9; j <= k; j++) {
            const u32 now = p.snapshot[j * p.stride + w], fresh = now & ~seen;
            seen |= now;
            if (fresh)
#pragma unroll
                for (int z = 0; z < 8; z++) out[z] |= spread(fresh, z) * (base + j);
        }
        if (~seen) {
#pragma unroll
            for (int z = 0; z < 8; z++) out[z] |= spread(~seen, z) * 255;
            if (p.parents)
                for (u32 open = ~seen; open; open &= open - 1) p.parent[v0 + __ffs(open) - 1] = NONE;
        }
        uint4 *to = (uint4 *)(p.level_out + v0);
        to[0] = make_uint4(out[0], out[1], out[2], out[3]);
        to[1] = make_uint4(out[4], out[5], out[6], out[7]);
        for (u32 set = pushed & ~pad; set; set &= set - 1) {
            const u32 v = v0 + __ffs(set) - 1;
            p.level_out[v] = p.direct[v];
        }
        if (clear) p.snapshot[w] = pad, p.snapshot[p.stride + w] = 0;
    }
}

/* Results by id.  Ids are cut into blocks; inside a class numbers rise with ids, so the
 * vertices of a block are one run of numbers in each class.
 * segment[b][c]: the first number of class c whose id is in block b or after.
 * A group gathers a block in shared memory and writes it out in full lines; a lane takes
 * four numbers, whose bits lie in one word. */
INLINE void results_by_id(const Params &p, u32 k, u32 base, bool wide, u32 *room, u32 index,
                          u32 count) {
    __shared__ u32 table[2][3][CLASSES + 1];
    const u32 group = threadIdx.x / GROUP, thread = threadIdx.x % GROUP;
    const u32 warp = thread >> 5, lane = threadIdx.x & 31, groups = THREADS / GROUP;
    const u32 ids = p.block_ids;
    u32 *parent = room + group * (ids + ids / 4);
    u32 *before = table[group][0], *begin = table[group][1], *end = table[group][2];
    u8 *level = (u8 *)(parent + ids);
    for (u32 i = thread; i < (ids + ids / 4) / 4; i += GROUP)
        ((uint4 *)parent)[i] = make_uint4(ALL, ALL, ALL, ALL);
    for (u32 b = index * groups + group; b < p.blocks; b += count * groups) {
        const u32 *segment = p.segment + (u64)b * (p.classes + 1);
        if (wide)
            for (u32 i = thread; i < ids; i += GROUP) p.level_wide[(u64)b * ids + i] = -1;
        if (warp == 0) {
            u32 sum = 0;
            for (u32 c = 0; c < p.classes; c += 32) {
                const bool in = c + lane < p.classes;
                const u32 from = in ? segment[c + lane] : 0;
                const u32 to = in ? segment[p.classes + 1 + c + lane] : 0;
                const u32 size = from < to ? (to - (from & ~127u) + 127) / 128 : 0;
                const u32 upto = warp_scan(size, lane);
                if (in) begin[c + lane] = from, end[c + lane] = to, before[c + lane] = sum + upto - size;
                sum += __shfl_sync(ALL, upto, 31);
            }
            if (lane == 0) before[p.classes] = sum;
        }
        meet_group(group);
        const u32 total = before[p.classes];
#pragma unroll 2
        for (u32 q = warp; q < total; q += GROUP / 32) {
            u32 low = 0, high = p.classes; /* the last class that begins at q or before */
            while (high - low > 1) {
                const u32 mid = (low + high) >> 1;
                if (before[mid] <= q) low = mid;
                else high = mid;
            }
            const u32 from = begin[low], to = end[low];
            const u32 v = (from & ~127u) + (q - before[low]) * 128 + lane * 4;
            u32 mine = 15;
            if (v < from) mine &= v + 4 <= from ? 0u : 15u << (from - v);
            if (v + 4 > to) mine &= v >= to ? 0u : (1u << (to - v)) - 1;
            const u32 word = v >> 5, part = v & 31;
            u32 seen[8], level4[4] = {0, 0, 0, 0};
#pragma unroll
            for (int j = 0; j < 8; j++) seen[j] = j <= (int)k ? p.snapshot[j * p.stride + word] : 0u;
            const u32 firsts = p.parents ? p.by_first[word] >> part & 15 : 0u;
            const uint2 at2 = *(const uint2 *)(p.place + v);
            const u32 at[4] = {at2.x & 0xffff, at2.x >> 16, at2.y & 0xffff, at2.y >> 16};
            const uint4 f4 = p.parents ? load_once4(p.first_id + v) : make_uint4(0, 0, 0, 0);
            u32 found = seen[0] >> part & 15;
            const u32 pushed = found;
#pragma unroll
            for (int j = 1; j < 8; j++) {
                const u32 now = seen[j] >> part & 15, fresh = now & ~found;
                found |= now;
#pragma unroll
                for (int i = 0; i < 4; i++)
                    if (fresh >> i & 1) level4[i] = base + j;
            }
            for (u32 j = 8; j <= k; j++) {
                const u32 now = p.snapshot[j * p.stride + word] >> part & 15, fresh = now & ~found;
                found |= now;
#pragma unroll
                for (int i = 0; i < 4; i++)
                    if (fresh >> i & 1) level4[i] = base + j;
            }
            found &= mine;
            const u32 stored = p.parents ? found & ~firsts : 0u;
            u32 parent4[4] = {f4.x, f4.y, f4.z, f4.w};
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (pushed >> i & 1) level4[i] = p.direct[v + i];
                if (stored >> i & 1) parent4[i] = p.parent[v + i];
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (!(found >> i & 1)) continue;
                if (wide) p.level_wide[(u64)b * ids + at[i]] = level4[i];
                else level[at[i]] = level4[i];
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

/* By block `index` of `count`. */
INLINE void results(const Params &p, u32 k, u32 base, bool wide, bool clear, u32 *room,
                    u32 index, u32 count) {
    if (IN_IDS) results_by_id(p, k, base, wide, room, index, count);
    else results_by_number(p, k, base, wide, clear, index, count);
}
#endif
