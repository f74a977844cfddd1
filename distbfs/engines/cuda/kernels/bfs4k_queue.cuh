/* Queues of the next frontier: a two-level exclusive prefix sum, and coalesced writes.
 *
 * A thread keeps what it found in a local queue.  When that is written, a warp sums up
 * the lengths by shuffles (by a ballot where no thread has more than one), a block the
 * totals of its warps, and one atomic addition a block takes the places in the queue.
 * Where the threads of a warp hold `turns` vertices on average, they first write in
 * turns, as many as the shortest local queue has, so that 32 places beside each other
 * are written at a time; the others go where the prefix sum says.
 * BFS-4K (Busato, Bombieri 2015), Sections 5.1, 5.3 and 5.6. */
#ifndef DISTBFS_BFS4K_QUEUE_CUH
#define DISTBFS_BFS4K_QUEUE_CUH
#include "bfs4k_repeats.cuh"

/* Queue the rows of vertices below `hubs` in pieces, one vertex a lane where `mine`; a
 * whole warp calls it. */
INLINE void queue_pieces(const Params &p, bool mine, u32 v, uint2 *queue, u64 *size, u64 *hubs,
                         u32 lane) {
    u32 who = __ballot_sync(ALL, mine);
    if (!who) return;
    if (lane == 0) atomicAdd(hubs, (u64)__popc(who));
    while (who) {
        const u32 u = __shfl_sync(ALL, v, __ffs(who) - 1), length = piece_length(p);
        who &= who - 1;
        const u32 degree = (u32)(p.row[u + 1] - p.row[u]);
        const u32 count = (degree + length - 1) / length;
        u64 at = 0;
        if (lane == 0) at = atomicAdd(size, (u64)count);
        at = __shfl_sync(ALL, at, 0);
        for (u32 k = lane; k < count; k += 32)
            if (at + k < p.piece_capacity) queue[at + k] = make_uint2(u, k);
    }
}

/* What a level of the whole grid finds: local queues, then the queue in memory. */
struct GridSink {
    const Params &p;
    u32 *local; /* shared, of this warp: [LOCAL][32] */
    u32 length; /* of this thread's local queue */
    u32 *queue;
    uint2 *pieces;
    Mail *mail;

    /* A vertex a lane where `mine`; a whole warp calls it. */
    __device__ __forceinline__ void add(bool mine, u32 v, u32 lane) {
        const bool hub = mine && v < p.hubs;
        queue_pieces(p, hub, v, pieces, &mail->pieces, &mail->hubs, lane);
        if (mine && !hub) local[length++ * 32 + lane] = v;
        if (__any_sync(ALL, length == LOCAL)) flush(lane);
    }

    /* Exclusive prefix sum over the lanes of a warp; `total`: of all. */
    __device__ __forceinline__ u32 before(u32 x, u32 &total, u32 lane) const {
        if (__all_sync(ALL, x <= 1)) { /* binary */
            const u32 who = __ballot_sync(ALL, x == 1);
            total = __popc(who);
            return __popc(who & lanes_below(lane));
        }
        const u32 upto = warp_scan(x, lane);
        total = __shfl_sync(ALL, upto, 31);
        return upto - x;
    }

    __device__ __forceinline__ void put(u64 at, u32 v) const {
        if (CLAIM || at < p.capacity) queue[at] = v;
    }

    /* Write the local queues of a warp from place `at` on; they are empty then. */
    __device__ __forceinline__ void write(u64 at, u32 total, u32 first, u32 lane) {
        u32 least = 0;
        if (total >= 32 * p.turns) {
            least = __reduce_min_sync(ALL, length);
            for (u32 k = 0; k < least; k++) put(at + k * 32 + lane, local[k * 32 + lane]);
            at += least * 32;
            first -= least * lane; /* shorter queues before this one */
        }
        for (u32 k = least; k < length; k++) put(at + first + (k - least), local[k * 32 + lane]);
        length = 0;
    }

    /* A whole warp, in the middle of a level. */
    __device__ __forceinline__ void flush(u32 lane) {
        __syncwarp();
        u32 total;
        const u32 first = before(length, total, lane);
        u64 at = 0;
        if (lane == 0) at = atomicAdd(&mail->size, (u64)total);
        write(__shfl_sync(ALL, at, 0), total, first, lane);
        __syncwarp();
    }

    /* A whole block, at the end of a level. */
    __device__ __forceinline__ void finish(u32 lane, u32 warp) {
        __shared__ u32 totals[WARPS];
        __shared__ u64 base;
        __syncwarp();
        u32 total;
        const u32 first = before(length, total, lane);
        if (lane == 0) totals[warp] = total;
        __syncthreads();
        const u32 mine = totals[lane], upto = warp_scan(mine, lane);
        if (warp == 0 && lane == 31) base = upto ? atomicAdd(&mail->size, (u64)upto) : 0;
        const u32 start = __shfl_sync(ALL, upto - mine, warp);
        __syncthreads();
        write(base + start, total, first, lane);
    }
};

/* A frontier in shared memory, with rows. */
struct Near {
    u32 *vertex;   /* [alone] */
    OFFSET *begin; /* [alone] */
    u32 *degree;   /* [alone] */
};

/* One of the two, by its last bit; rows: [2][alone], words: [2][2][alone]. */
INLINE Near near_of(const Params &p, OFFSET *rows, u32 *words, u32 odd) {
    return {words + odd * 2 * p.alone, rows + odd * p.alone, words + (odd * 2 + 1) * p.alone};
}

/* What a level of one block finds: the frontier in shared memory, what has no room there
 * in memory. */
struct BlockSink {
    const Params &p;
    Near near;
    u32 *queue;
    uint2 *pieces;
    Mail *mail; /* shared, but for the pieces */

    __device__ __forceinline__ void add(bool mine, u32 v, u32 lane) {
        const bool hub = mine && v < p.hubs;
        queue_pieces(p, hub, v, pieces, &mail->pieces, &mail->hubs, lane);
        mine = mine && !hub;
        OFFSET begin = 0;
        u32 degree = 0;
        if (mine) begin = p.row[v], degree = (u32)(p.row[v + 1] - begin);
        const u32 who = __ballot_sync(ALL, mine);
        if (!who) return;
        const u32 edges = __reduce_add_sync(ALL, degree);
        u32 at = 0;
        if (lane == 0) at = (u32)atomicAdd(&mail->size, (u64)__popc(who));
        if (lane == 1) atomicAdd(&mail->edges, (u64)edges);
        at = __shfl_sync(ALL, at, 0) + __popc(who & lanes_below(lane));
        if (!mine) return;
        if (at < p.alone) near.vertex[at] = v, near.begin[at] = begin, near.degree[at] = degree;
        else if (CLAIM || at < p.capacity) queue[at] = v;
    }
};
#endif
