/* Forward visits: the rows of a queue are handed to a warp, 32 columns at a time.
 *
 * Thread-warp-block mapping (Merrill, Garland, Grimshaw 2012) for nn, nd and dn: a lane
 * walks a short row, a warp a longer one, a block a long one.  Merge-based partitioning
 * (Davidson et al. 2014) for dd: every warp gets as many edges as any other and finds
 * where they begin in the edge counts of the queue.
 * Source: Pan, Pearce, Owens 2018, Section IV-A.
 */
#ifndef DISTBFS_PART_PUSH_CUH
#define DISTBFS_PART_PUSH_CUH
#include "part.cuh"

#define WARP_ROW 16    /* edges from which a warp walks a row */
#define BLOCK_ROW 2048 /* edges from which a block does */

/* take(valid, source row, position of the column): a whole warp calls it.  Rows below
 * `skip` are left out. */
template <class Take>
INLINE void by_rows(const Rows &rows, const u32 *queue, u32 count, u32 skip, Take take) {
    __shared__ u32 long_rows[THREADS];
    __shared__ u32 longs;
    const u32 lane = threadIdx.x & 31;
    u32 each = (count + gridDim.x - 1) / gridDim.x; /* rows of a block */
    if (each > THREADS) each = THREADS;
    /* few rows are spread over the warps */
    const u32 place = each == THREADS ? threadIdx.x : lane * WARPS + (threadIdx.x >> 5);
    for (u32 from = blockIdx.x * each; from < count; from += gridDim.x * each) {
        if (threadIdx.x == 0) longs = 0;
        __syncthreads();
        u32 u = place < each && from + place < count ? queue[from + place] : NONE;
        const bool mine = u != NONE && u >= skip;
        if (!mine) u = 0;
        const OFFSET at = mine ? rows.offsets[u] : 0;
        const OFFSET size = mine ? rows.offsets[u + 1] - at : 0;
        if (size >= BLOCK_ROW) long_rows[atomicAdd(&longs, 1u)] = u;
        const u32 few = size < WARP_ROW ? (u32)size : 0;
        for (u32 i = 0; __any_sync(ALL, i < few); i++) take(i < few, u, at + i);
        u32 todo = __ballot_sync(ALL, size >= WARP_ROW && size < BLOCK_ROW);
        for (; todo; todo &= todo - 1) {
            const u32 one = __ffs(todo) - 1, row = __shfl_sync(ALL, u, one);
            const OFFSET begin = __shfl_sync(ALL, at, one), edges = __shfl_sync(ALL, size, one);
            for (OFFSET e = 0; e < edges; e += 32) take(e + lane < edges, row, begin + e + lane);
        }
        __syncthreads();
        for (u32 k = 0; k < longs; k++) {
            const u32 row = long_rows[k];
            const OFFSET begin = rows.offsets[row], end = rows.offsets[row + 1];
            for (OFFSET e = begin + (threadIdx.x - lane); e < end; e += THREADS)
                take(e + lane < end, row, e + lane);
        }
        __syncthreads();
    }
}

INLINE u64 before_of(const uint4 &entry) { return (u64)entry.z << 32 | entry.y; }

/* The same for a queue with edge counts; edges: of all its rows. */
template <class Take>
INLINE void by_edges(const Rows &rows, const uint4 *queue, u32 count, u64 edges, Take take) {
    const u32 lane = threadIdx.x & 31, warps = gridDim.x * WARPS;
    const u32 warp = blockIdx.x * WARPS + (threadIdx.x >> 5);
    u64 share = ((edges + warps - 1) / warps + 31) & ~31ull;
    if (share > 4096) share = 4096;
    for (u64 from = warp * share; from < edges; from += warps * share) {
        const u64 end = from + share < edges ? from + share : edges;
        u32 low = 0, high = count; /* the last entry that begins at `from` or before */
        while (high - low > 1) {
            const u32 middle = low + (high - low) / 2;
            if (before_of(queue[middle]) <= from) low = middle;
            else high = middle;
        }
        for (u64 e = from; e < end;) {
            const uint4 entry = queue[low];
            const u64 first = before_of(entry), stop = first + entry.w;
            const u64 upto = stop < end ? stop : end;
            const OFFSET row = rows.offsets[entry.x];
            for (; e < upto; e += 32) {
                const bool valid = e + lane < upto;
                take(valid, entry.x, row + (OFFSET)(e + lane - first));
            }
            e = upto, low++;
        }
    }
}

/* Items for other parts.  A warp keeps those for the first STAGED parts back in shared
 * memory until a warp's worth is together, so that few atomic adds meet. */
#define STAGED 8
#define STAGE 64

struct Post {
    const Params &p;
    u64 *stage; /* shared, [STAGED][STAGE] of this warp */
    u32 *held;  /* shared, [STAGED] how many */
    u32 lane;

    /* `count` items of a stage, from its end, go out. */
    __device__ __forceinline__ void flush(u32 part, u32 count) {
        u64 at = 0;
        const u32 first = held[part] - count;
        __syncwarp();
        if (lane == 0) at = atomicAdd(p.box_size + part, (u64)count), held[part] = first;
        at = __shfl_sync(ALL, at, 0);
        if (lane < count) p.outbox[p.box[part] + at + lane] = stage[part * STAGE + first + lane];
        __syncwarp();
    }

    /* One item a lane where `some`; a whole warp calls it. */
    __device__ __forceinline__ void add(bool some, u32 part, u64 item) {
        for (u32 todo = __ballot_sync(ALL, some); todo;) {
            const u32 to = __shfl_sync(ALL, part, __ffs(todo) - 1);
            const u32 group = __ballot_sync(ALL, some && part == to), count = __popc(group);
            const u32 mine = __popc(group & lanes_below(lane));
            todo &= ~group;
            if (to >= STAGED) {
                u64 at = 0;
                if (lane == 0) at = atomicAdd(p.box_size + to, (u64)count);
                at = __shfl_sync(ALL, at, 0);
                if (some && part == to) p.outbox[p.box[to] + at + mine] = item;
                continue;
            }
            const u32 before = held[to];
            if (some && part == to) stage[to * STAGE + before + mine] = item;
            __syncwarp();
            if (lane == 0) held[to] = before + count;
            __syncwarp();
            if (before + count >= 32) flush(to, 32);
        }
    }

    __device__ __forceinline__ void finish() {
        __syncwarp();
        for (u32 part = 0; part < STAGED; part++)
            if (held[part]) flush(part, held[part]);
    }
};
#endif
