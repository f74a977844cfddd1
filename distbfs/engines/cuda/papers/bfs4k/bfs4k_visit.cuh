/* Distribution of the edges of a frontier: dynamic virtual warps, edge-discover with
 * its extended variant, and the pieces of rows of the second queue.
 * BFS-4K (Busato, Bombieri 2015), Sections 5.2 to 5.4. */
#ifndef DISTBFS_BFS4K_VISIT_CUH
#define DISTBFS_BFS4K_VISIT_CUH
#include "bfs4k_queue.cuh"

/* Which of the next 32 x `warps` entries of a queue a lane takes.  Those beside each other
 * were found together and are alike in degree, so warps take them in turn: eight at a
 * time of a long queue, so that whole sectors are read, else one. */
INLINE u32 place_of(u32 count, u32 warp, u32 warps, u32 lane) {
    const u32 few = count / 32 >= warps ? 3 : 0;
    return (((lane >> few) * warps + warp) << few) + (lane & ((1u << few) - 1));
}

/* A level: its threads, and the destination of its finds. */
template <class Sink> struct Visit {
    const Params &p;
    Sink &sink;
    Table table;
    int level; /* of what is found */
    u32 lane;
    Tally &tally;

    /* BATCH edges from -> to of a lane, those with `ok`; a whole warp calls it. */
    __device__ __forceinline__ void look(const bool *ok, const u32 *from, const u32 *to) {
        u32 mine = 0;
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            mine |= (u32)(ok[k] && unvisited(p, to[k])) << k;
            TALLY(tally, checks, ok[k]);
            TALLY(tally, places, 1);
        }
        if (!__any_sync(ALL, mine)) return;
        mine = unrepeated(table, mine, to, tally);
        mine = take(p, mine, to, from, level, tally);
        sink.add(mine, to, lane);
    }

    /* Neighbours start ... stop-1 of a row, by all lanes. */
    __device__ __forceinline__ void run(u32 u, u64 row, u32 start, u32 stop) {
        for (u32 base = start; base < stop; base += 32 * BATCH) {
            bool ok[BATCH];
            u32 from[BATCH], to[BATCH];
#pragma unroll
            for (int k = 0; k < BATCH; k++) {
                const u32 at = base + k * 32 + lane;
                ok[k] = at < stop, from[k] = u;
                to[k] = ok[k] ? load_once(p.adj + (row + at)) : 0;
            }
            look(ok, from, to);
        }
    }

    /* Virtual warps of 2^size lanes take a vertex each; u, row, degree: one a lane, of
     * `many` lanes. */
    __device__ __forceinline__ void by_vertex(u32 u, u64 row, u32 degree, u32 many, u32 size) {
        const u32 width = 1u << size, each = 32 >> size, me = lane & (width - 1);
        for (u32 k = 0; k < many; k += each) {
            const u32 who = k + (lane >> size);
            const u32 owner = __shfl_sync(ALL, u, who), length = __shfl_sync(ALL, degree, who);
            const u64 begin = __shfl_sync(ALL, row, who);
            const u32 longest = __reduce_max_sync(ALL, length);
            for (u32 base = 0; base < longest; base += width * BATCH) {
                bool ok[BATCH];
                u32 from[BATCH], to[BATCH];
#pragma unroll
                for (int j = 0; j < BATCH; j++) {
                    const u32 at = base + j * width + me;
                    ok[j] = at < length, from[j] = owner;
                    to[j] = ok[j] ? load_once(p.adj + (begin + at)) : 0;
                }
                look(ok, from, to);
            }
        }
    }

    /* Edge-discover: the lanes take edges; each finds its vertex by a binary search of
     * the prefix sum of the degrees, which the lanes hold.  Extended: a row that goes on
     * for whole warps is gone through without searches. */
    __device__ __forceinline__ void by_edge(u32 u, u64 row, u32 degree) {
        const u32 upto = warp_scan(degree, lane), before = upto - degree;
        const u32 total = __shfl_sync(ALL, upto, 31);
        u32 e = 0;
        while (e < total) {
            bool ok[BATCH];
            u32 from[BATCH] = {}, to[BATCH] = {}, last = 0;
#pragma unroll
            for (int j = 0; j < BATCH; j++) {
                const u32 at = e + j * 32 + lane;
                ok[j] = at < total;
                TALLY(tally, searches, ok[j]);
                if (e + j * 32 >= total) continue;
                const u32 k = lane_before(before, at);
                last = k;
                from[j] = __shfl_sync(ALL, u, k);
                const u64 begin = __shfl_sync(ALL, row, k);
                const u32 start = __shfl_sync(ALL, before, k);
                if (ok[j]) to[j] = load_once(p.adj + (begin + (at - start)));
            }
            look(ok, from, to);
            e += 32 * BATCH;
            /* mutant: !p.extended || e -> e : test_ext_goes_through_long_rows_without_searches */
            if (!p.extended || e >= total) continue;
            last = __shfl_sync(ALL, last, 31);
            const u32 end = __shfl_sync(ALL, upto, last);
            /* mutant: < e + 32 -> >= e : test_ext_goes_through_long_rows_without_searches */
            if (end < e + 32) continue;
            const u32 start = __shfl_sync(ALL, before, last), rest = (end - e) & ~31u;
            run(__shfl_sync(ALL, u, last), __shfl_sync(ALL, row, last), e - start, e - start + rest);
            e += rest;
        }
    }

    /* Rows, one a lane, of `many` lanes: by edges if so told, or where rows are shorter
     * than a virtual warp. */
    __device__ __forceinline__ void rows(u32 u, u64 row, u32 degree, u32 many, bool edges, u32 size) {
        if (!edges && p.edge_discover) edges = __reduce_add_sync(ALL, degree) < many << size;
        if (edges) by_edge(u, row, degree);
        else by_vertex(u, row, degree, many, size);
    }

    /* The second queue: `count` pieces of rows, a piece a warp. */
    __device__ __forceinline__ void by_piece(const uint2 *pieces, u32 count, u32 warp, u32 warps) {
        for (u64 base = 0; base < count; base += (u64)warps * 32) {
            const u64 at = base + place_of(count, warp, warps, lane);
            u32 u = 0, degree = 0;
            u64 row = 0;
            if (at < count) {
                const uint2 one = __ldcg(pieces + at);
                const u32 start = one.y * p.slice;
                u = one.x, row = p.row[u], degree = (u32)(p.row[u + 1] - row) - start;
                row += start, degree = degree < p.slice ? degree : p.slice;
            }
            by_vertex(u, row, degree, __popc(__ballot_sync(ALL, at < count)), 5);
        }
    }
};

/* Virtual warps of a level as a power of two: the resident threads over the frontier,
 * rounded down to a power of two, at least K1 and at most 32. */
INLINE u32 virtual_warp(const Params &p, u32 threads, u32 count) {
    u32 size = p.least_warp; /* mutant: p.least_warp -> 0 : test_k1_is_the_least_virtual_warp */
    while (size < 5 && (u64)count << (size + 1) <= threads) size++;
    return size;
}

/* Whether a level is distributed by edges. */
INLINE bool discovers(const Params &p, u32 threads, u32 count) {
    /* mutant: (u64)count * p.edge_discover -> count
     * : test_k4_shares_short_frontiers_out_by_edges */
    return p.edge_discover && (u64)count * p.edge_discover < threads;
}
#endif
