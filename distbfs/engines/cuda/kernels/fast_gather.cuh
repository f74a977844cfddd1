/* Changing back to push after pulls: the last level becomes a queue (single scan, XBFS
 * Section 4.1), and the levels that the snapshots tell are written down, so that pushes
 * go on in snapshot 0. */
#ifndef DISTBFS_FAST_GATHER_CUH
#define DISTBFS_FAST_GATHER_CUH
#include "fast.cuh"
#include "fast_push.cuh"

/* Append vertices with their degrees; a whole warp calls it. */
INLINE void append(const Params &p, bool mine, u32 v, const Queue &q, u32 lane) {
    const u32 who = __ballot_sync(ALL, mine);
    if (!who) return;
    const u32 hubs = __ballot_sync(ALL, mine && v < p.hubs);
    const OFFSET begin = mine ? p.row[v] : 0;
    const u32 degree = mine ? (u32)(p.row[v + 1] - begin) : 0;
    const u32 upto = warp_scan(degree, lane), total = __shfl_sync(ALL, upto, 31);
    u64 at = 0;
    u32 hub_at = 0;
    if (lane == 0) at = atomicAdd(&q.mail->size, (u64)total << 32 | __popc(who));
    if (lane == 1 && hubs) hub_at = (u32)atomicAdd(&q.mail->hubs, (u64)__popc(hubs));
    if (sizeof(OFFSET) == 8 && lane == 2) atomicAdd(&q.mail->edges, (u64)total);
    at = __shfl_sync(ALL, at, 0);
    hub_at = __shfl_sync(ALL, hub_at, 1);
    const u32 place = (u32)at + __popc(who & lanes_below(lane));
    if (!mine) return;
    const u32 before = (u32)(at >> 32) + upto - degree;
    q.entry[place] = make_uint4(v, before, (u32)begin - before, degree);
    if (v < p.hubs) q.hub[hub_at + __popc(hubs & lanes_below(lane))] = v;
}

/* The vertices of the last level as a queue. */
INLINE void gather(const Params &p, const u32 *before, const u32 *now, const Queue &q,
                   u32 warp, u32 warps, u32 lane) {
    for (u32 w0 = warp * 32; w0 < p.words; w0 += warps * 32) {
        const u32 w = w0 + lane;
        u32 open = w < p.words ? now[w] & ~before[w] : 0;
        while (__any_sync(ALL, open)) {
            append(p, open, w * 32 + __ffs(open) - 1, q, lane);
            open &= open - 1;
        }
    }
}

/* Levels of all snapshots become direct ones; snapshot k becomes snapshot 0, and
 * snapshot 1 is clean again. */
INLINE void flush(const Params &p, u32 k, u32 base) {
    for (u32 w = blockIdx.x * THREADS + threadIdx.x; w < p.words; w += gridDim.x * THREADS) {
        u32 seen = p.snapshot[w];
        for (u32 j = 1; j <= k; j++) {
            const u32 now = p.snapshot[j * p.stride + w];
            for (u32 fresh = now & ~seen; fresh; fresh &= fresh - 1)
                p.direct[w * 32 + __ffs(fresh) - 1] = base + j;
            seen |= now;
        }
        p.snapshot[w] = seen;
        p.snapshot[p.stride + w] = 0;
    }
}
#endif
