/* Forward visits: the rows of the frontier are handed to warps, 128 columns at a time.
 *
 * Thread-warp-block mapping (Merrill, Garland, Grimshaw 2012) for nn, nd and dn: short
 * rows are packed, so that each lane has an edge of one of 32 rows; a warp walks a longer
 * row, a block a long one.  Merge-based partitioning (Davidson et al. 2014) for dd: every
 * warp gets as many edges as any other and finds where they begin in the edge counts of
 * the queue.
 * Source: Pan, Pearce, Owens 2018, Section IV-A.
 */
#ifndef DISTBFS_PAN_PUSH_CUH
#define DISTBFS_PAN_PUSH_CUH
#include "part.cuh"

#define WARP_ROW 128   /* edges from which a warp walks a row */
#define BLOCK_ROW 2048 /* edges from which a block does */
#define LONG_ROWS 256  /* of a block at a time; a warp walks those beyond */
#define EACH 4         /* edges of a lane at once */

/* One edge of a lane. */
struct Edge {
    bool valid;
    u32 u; /* source row */
    OFFSET at;
};

/* take(edges [EACH]): a whole warp calls it. */
template <class Take>
INLINE void walk(u32 row, OFFSET begin, OFFSET end, u32 lane, u32 step, Take take) {
    for (OFFSET e = begin; e < end; e += step) {
        Edge edges[EACH];
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const OFFSET at = e + j * 32 + lane;
            edges[j].valid = at < end, edges[j].u = row, edges[j].at = at;
        }
        take(edges);
    }
}

/* Up to 32 rows, one a lane: all edges, 32 EACH at a time. */
template <class Take> INLINE void pack(u32 u, OFFSET at, u32 size, u32 lane, Take take) {
    const u32 upto = warp_scan(size, lane), before = upto - size;
    const u32 total = __shfl_sync(ALL, upto, 31);
    const OFFSET shift = at - before;
    for (u32 e = 0; e < total; e += 32 * EACH) {
        Edge edges[EACH];
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const u32 mine = e + j * 32 + lane;
            u32 row = 0; /* the last that begins at `mine` or before */
#pragma unroll
            for (int s = 16; s; s >>= 1)
                if (__shfl_sync(ALL, before, row + s) <= mine) row += s;
            edges[j].valid = mine < total;
            edges[j].u = __shfl_sync(ALL, u, row);
            edges[j].at = __shfl_sync(ALL, shift, row) + mine;
        }
        take(edges);
    }
}

/* Shared memory of a block, [LONG_ROWS] and how many there are. */
INLINE u32 *block_rows() {
    __shared__ u32 rows[LONG_ROWS + 1];
    return rows;
}

/* The rows that open(word) names, of `words` words. */
template <class Open, class Take>
INLINE void by_bits(const Rows &rows, u32 words, Open open, Take take) {
    u32 *long_rows = block_rows(), &longs = long_rows[LONG_ROWS];
    u32 *list = warp_room(), listed = 0;
    const u32 lane = lane_id(), span = span_of(words);
    const u32 mine = warp_of() * span, step = all_warps() * span;
    if (threadIdx.x == 0) longs = 0;
    __syncthreads();
    auto rows_of = [&](bool all) {
        while (listed >= 32 || (all && listed)) {
            const u32 count = listed < 32 ? listed : 32;
            listed -= count;
            const u32 u = lane < count ? list[listed + lane] : 0;
            const OFFSET at = rows.offsets[u];
            const OFFSET size = lane < count ? rows.offsets[u + 1] - at : 0;
            bool walked = size >= WARP_ROW;
            if (size >= BLOCK_ROW) {
                const u32 place = atomicAdd(&longs, 1u);
                if (place < LONG_ROWS) long_rows[place] = u, walked = false;
            }
            pack(u, at, size < WARP_ROW ? (u32)size : 0, lane, take);
            for (u32 todo = __ballot_sync(ALL, walked); todo; todo &= todo - 1) {
                const u32 one = __ffs(todo) - 1, row = __shfl_sync(ALL, u, one);
                const OFFSET begin = __shfl_sync(ALL, at, one);
                walk(row, begin, begin + __shfl_sync(ALL, size, one), lane, 32 * EACH, take);
            }
            __syncwarp();
        }
    };
    /* blocks go on together, as long rows are theirs */
    for (u32 base = 0; base < words; base += step) {
        const u32 word = base + mine + lane;
        const u32 bits = lane < span && word < words ? open(word) : 0;
        const u32 count = __reduce_add_sync(ALL, __popc(bits));
        const u32 groups = !count ? 0 : count <= 32 * GROUP ? 1 : 32 / GROUP;
        for (u32 g = 0; g < groups; g++) {
            listed += list_bits(list + listed, word,
                                groups == 1 || lane / GROUP == g ? bits : 0, lane);
            __syncwarp();
            rows_of(false);
        }
        if (base + step >= words) rows_of(true);
        __syncthreads();
        const u32 many = longs < LONG_ROWS ? longs : LONG_ROWS;
        for (u32 k = 0; k < many; k++) {
            const u32 row = long_rows[k];
            const OFFSET begin = rows.offsets[row] + (threadIdx.x - lane) * EACH;
            walk(row, begin, rows.offsets[row + 1], lane, THREADS * EACH, take);
        }
        __syncthreads();
        if (threadIdx.x == 0) longs = 0;
        __syncthreads();
    }
}

INLINE u64 before_of(const uint4 &entry) { return (u64)entry.z << 32 | entry.y; }

/* The same for a queue with edge counts; edges: of all its rows. */
template <class Take>
INLINE void by_edges(const Rows &rows, const uint4 *queue, u32 count, u64 edges, Take take) {
    const u32 lane = lane_id(), warp = blockIdx.x * WARPS + (threadIdx.x >> 5);
    u64 share = ((edges + all_warps() - 1) / all_warps() + 31) & ~31ull;
    if (share > 4096) share = 4096;
    for (u64 from = warp * share; from < edges; from += all_warps() * share) {
        const u64 end = from + share < edges ? from + share : edges;
        u32 at = last_before(count, from, [&](u32 k) { return before_of(queue[k]); });
        for (u64 e = from; e < end; at++) {
            const uint4 entry = queue[at];
            const u64 first = before_of(entry), stop = first + entry.w;
            /* mutant: end; -> end - 1; : test_records_count_every_edge_of_a_push */
            const u64 upto = stop < end ? stop : end;
            const OFFSET row = rows.offsets[entry.x];
            walk(entry.x, row + (OFFSET)(e - first), row + (OFFSET)(upto - first), lane, 32 * EACH,
                 take);
            e = upto;
        }
    }
}

/* Items for other parts.  A warp keeps those for the first STAGED parts back in shared
 * memory until its room for a part might not hold a warp's worth more, so that few
 * atomic adds meet. */
#define STAGED 8
#define STAGES 512 /* items of a warp, shared out to the parts */

/* Shared memory of a warp, [STAGES] and [STAGED]. */
INLINE u64 *warp_stage() {
    __shared__ u64 stages[WARPS][STAGES];
    return stages[threadIdx.x >> 5];
}
INLINE u32 *warp_holds() {
    __shared__ u32 holds[WARPS][STAGED];
    return holds[threadIdx.x >> 5];
}

struct Post {
    const Params &p;
    u64 *stage; /* shared, [STAGES] of this warp */
    u32 *held;  /* shared, [STAGED] how many */
    u32 lane, room;

    __device__ __forceinline__ Post(const Params &params)
        : p(params), stage(warp_stage()), held(warp_holds()), lane(threadIdx.x & 31), room(STAGES) {
        while (room * p.parts > STAGES && room * STAGED > STAGES) room >>= 1;
        if (lane < STAGED) held[lane] = 0;
        __syncwarp();
    }

    /* All items of a stage go out. */
    __device__ __forceinline__ void flush(u32 part) {
        u64 at = 0;
        const u32 count = held[part];
        __syncwarp();
        if (lane == 0) {
            at = atomicAdd(p.box_size + part * BOX_STEP, (u64)count);
            held[part] = 0;
        }
        at = __shfl_sync(ALL, at, 0);
        for (u32 k = lane; k < count; k += 32) p.box[part][at + k] = stage[part * room + k];
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
                if (lane == 0) at = atomicAdd(p.box_size + to * BOX_STEP, (u64)count);
                at = __shfl_sync(ALL, at, 0);
                if (some && part == to) p.box[to][at + mine] = item;
                continue;
            }
            const u32 before = held[to];
            if (some && part == to) stage[to * room + before + mine] = item;
            __syncwarp();
            if (lane == 0) held[to] = before + count;
            __syncwarp();
            if (before + count + 32 > room) flush(to);
        }
    }

    __device__ __forceinline__ void finish() {
        __syncwarp();
        for (u32 part = 0; part < STAGED; part++)
            if (held[part]) flush(part);
    }
};
#endif
