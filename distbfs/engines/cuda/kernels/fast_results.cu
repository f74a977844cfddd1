/* Results by id of a search by method `fast`, after its kernel; see fast.cuh.
 *
 * variants: OFFSET=u32 IN_IDS=1 | OFFSET=u64 IN_IDS=1
 */
#include "fast_results.cuh"

#define GROUP 512  /* threads of a block */
#define STRIPS 384 /* runs of 128 numbers of a block of ids: ids / 128 + 2 classes, at most */

/* Results by id.  Ids are cut into blocks; inside a class numbers rise with ids, so the
 * vertices of a block are one run of numbers in each class.
 * segment[b][c]: the first number of class c whose id is in block b or after.
 * A block of threads gathers one in shared memory and writes it out in full lines; a lane takes
 * four numbers, whose bits lie in one word. */
extern "C" __global__ void __launch_bounds__(GROUP, 2) results(const Params p) {
    extern __shared__ uint4 dynamic[];
    __shared__ u32 before[CLASSES + 1], begin[CLASSES], end[CLASSES];
    __shared__ u8 class_of[STRIPS];
    if (p.state->phase != DONE) return;
    const u32 k = p.state->k, base = p.state->base, thread = threadIdx.x, ids = p.block_ids;
    const bool wide = p.state->depth > NARROW;
    const u32 warp = thread >> 5, lane = thread & 31;
    u32 *parent = (u32 *)dynamic;
    u8 *level = (u8 *)(parent + ids);
    u32 top = 0;
    clean(p, p.next_snapshot, p.next_by_first);
    for (u32 i = thread; i < (ids + ids / 4) / 4; i += GROUP)
        ((uint4 *)parent)[i] = make_uint4(ALL, ALL, ALL, ALL);
    for (u32 b = blockIdx.x; b < p.blocks; b += gridDim.x) {
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
        __syncthreads();
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
            for (u32 j = 1; j < 6; j++) {
                const u32 now = seen[j] >> part & 15, fresh = now & ~found;
                levels |= spread(fresh, 0) * j;
                if (fresh && top < j) top = j;
                found |= now;
            }
#pragma unroll 1
            for (u32 j = 6; mine && j <= k; j++) {
                const u32 now = snapshot[j * p.stride] >> part & 15, fresh = now & ~found;
                levels |= spread(fresh, 0) * j;
                if (fresh && top < j) top = j;
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
        __syncthreads();
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
        __syncthreads();
    }
    tell_highest(p, top, lane);
    if (p.numbers[p.root] == NONE && blockIdx.x == p.root / ids % gridDim.x && thread == 0) {
        /* a root without edges: its block has been written by these threads */
        if (wide) p.level_wide[p.root] = 0;
        else p.level_out[p.root] = 0;
        if (p.parents) p.parent_out[p.root] = p.root;
    }
}
