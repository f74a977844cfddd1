/* Queues of the next frontier: a two-level exclusive prefix sum, and coalesced writes.
 *
 * A thread keeps its finds in a local queue.  When that is written, a warp sums up
 * the lengths by shuffles (by a ballot where no thread has more than one), a block the
 * totals of its warps, and one atomic addition a block takes the places in the queue.
 * Where the threads of a warp hold `turns` vertices on average (0: never), they first write in
 * turns, as many as the shortest local queue has, so that 32 places beside each other
 * are written at a time; the others go where the prefix sum says.
 * BFS-4K (Busato, Bombieri 2015), Sections 5.1, 5.3 and 5.6. */
#ifndef DISTBFS_BFS4K_QUEUE_CUH
#define DISTBFS_BFS4K_QUEUE_CUH
#include "bfs4k_repeats.cuh"

/* Queue the rows of those of BATCH vertices a lane, bits of `mine`, that are below `hubs`
 * in pieces; returns the others.  A whole warp calls it. */
INLINE u32 queue_hubs(const Params &p, u32 mine, const u32 *v, uint2 *queue, Mail *mail, u32 lane) {
    u32 hub = 0, count[BATCH], sum = 0;
#pragma unroll
    for (u32 k = 0; k < BATCH; k++) hub |= (u32)(v[k] < p.hubs) << k;
    hub &= mine;
    if (!__any_sync(ALL, hub)) return mine;
#pragma unroll
    for (u32 k = 0; k < BATCH; k++) {
        count[k] = 0;
        if (hub >> k & 1) count[k] = pieces_in(p, (u32)(p.row[v[k] + 1] - p.row[v[k]]));
        sum += count[k];
    }
    sum = __reduce_add_sync(ALL, sum);
    const u32 vertices = __reduce_add_sync(ALL, __popc(hub));
    u64 at = 0;
    if (lane == 0) at = atomicAdd(&mail->pieces, (u64)sum);
    if (lane == 1) atomicAdd(&mail->hubs, (u64)vertices);
    at = __shfl_sync(ALL, at, 0);
#pragma unroll 1
    for (u32 k = 0; k < BATCH; k++) {
        const u32 rows = pick(count, k), who = pick(v, k);
        const u32 upto = warp_scan(rows, lane), before = upto - rows;
        const u32 total = __shfl_sync(ALL, upto, 31);
        for (u32 base = 0; base < total; base += 32) {
            const u32 i = base + lane;
            u32 owner = 0;
#pragma unroll
            for (int s = 16; s; s >>= 1)
                if (__shfl_sync(ALL, before, owner + s) <= i) owner += s;
            const u32 u = __shfl_sync(ALL, who, owner), start = __shfl_sync(ALL, before, owner);
            if (i < total && at + i < p.piece_capacity) queue[at + i] = make_uint2(u, i - start);
        }
        at += total;
    }
    return mine & ~hub;
}

/* The finds of a level of the whole grid: local queues, then the queue in memory. */
struct GridSink {
    const Params &p;
    u32 *local; /* shared, of this warp: [LOCAL][32] */
    u32 length; /* of this thread's local queue */
    u32 *queue;
    uint2 *pieces;
    Mail *mail;
#if COUNT
    u32 turned = 0;
#endif

    /* BATCH vertices a lane, bits of `mine`; a whole warp calls it. */
    __device__ __forceinline__ void add(u32 mine, const u32 *v, u32 lane) {
        if (p.hubs) mine = queue_hubs(p, mine, v, pieces, mail, lane);
#pragma unroll
        for (u32 k = 0; k < BATCH; k++)
            if (mine >> k & 1) local[length++ * 32 + lane] = v[k];
        if (__any_sync(ALL, length > LOCAL - BATCH)) flush(lane);
    }

    __device__ __forceinline__ void add(bool mine, u32 one, u32 lane) {
        const u32 v[BATCH] = {one};
        add((u32)mine, v, lane);
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
        /* mutant: * p.turns -> * LOCAL : test_k7_is_the_average_from_which_lanes_write_in_turns */
        if (p.turns && total >= 32 * p.turns) {
            least = __reduce_min_sync(ALL, length);
            for (u32 k = 0; k < least; k++) put(at + k * 32 + lane, local[k * 32 + lane]);
            TALLY(*this, turned, least);
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

/* The finds of a level of one block: the frontier in shared memory, the overflow in
 * memory. */
struct BlockSink {
    const Params &p;
    Near near;
    u32 *queue;
    uint2 *pieces;
    Mail *mail; /* shared, but for the pieces */

    /* BATCH vertices a lane, bits of `mine`; a whole warp calls it. */
    __device__ __forceinline__ void add(u32 mine, const u32 *v, u32 lane) {
        if (p.hubs) mine = queue_hubs(p, mine, v, pieces, mail, lane);
        if (!__any_sync(ALL, mine)) return;
        OFFSET begin[BATCH];
        u32 degree[BATCH], edges = 0;
#pragma unroll
        for (u32 k = 0; k < BATCH; k++) {
            begin[k] = degree[k] = 0;
            if (!(mine >> k & 1)) continue;
            begin[k] = p.row[v[k]];
            degree[k] = (u32)(p.row[v[k] + 1] - begin[k]);
        }
#pragma unroll
        for (u32 k = 0; k < BATCH; k++) edges += degree[k] < MANY ? degree[k] : MANY;
        edges = __reduce_add_sync(ALL, edges);
        const u32 upto = warp_scan(__popc(mine), lane);
        u32 at = 0;
        if (lane == 31) at = atomicAdd((u32 *)&mail->size, upto);
        if (lane == 0) atomicAdd((u32 *)&mail->edges, edges);
        at = __shfl_sync(ALL, at, 31) + upto - __popc(mine);
#pragma unroll
        for (u32 k = 0; k < BATCH; k++) {
            if (!(mine >> k & 1)) continue;
            if (at < p.alone)
                near.vertex[at] = v[k], near.begin[at] = begin[k], near.degree[at] = degree[k];
            else if (CLAIM || at < p.capacity) queue[at] = v[k];
            at++;
        }
    }
};
#endif
