/* Push by queue: the frontier's edges are shared out evenly (merge path over the edge
 * counts of the queue), found vertices are claimed by atomicOr and queued with one
 * atomic add a warp (scan-free frontier, XBFS Section 4.1). */
#ifndef DISTBFS_XBFS_PUSH_CUH
#define DISTBFS_XBFS_PUSH_CUH
#include "rows.cuh"
#include "search.cuh"

/* Where the queue of the next level is made. */
struct Queue {
    uint4 *entry;
    u32 *hub;
    Mail *mail;
};

INLINE u64 row_of(const Params &p, const uint4 &e) {
    return sizeof(OFFSET) == 4 ? (u64)(u32)(e.y + e.z) : (u64)p.row[e.x];
}

/* Append vertices with their rows, one a lane where `mine`; a whole warp calls it.  With
 * DIRECTED, those without edges out are counted instead, and BETWEEN domains stand at the end of
 * the queue's room. */
INLINE void append(const Params &p, bool mine, u32 v, OFFSET begin, u32 degree, const Queue &q,
                   u32 lane) {
#if DIRECTED
    const u32 ends = __ballot_sync(ALL, mine && !degree);
    u64 before_ends = 0;
    /* mutant: if (lane == 3 && ends) -> if (false) : test_last_levels_of_vertices_without_edges_out */
    if (lane == 3 && ends) before_ends = atomicAdd(&q.mail->hubs, (u64)__popc(ends) << 32);
    if (BETWEEN && ends) {
        const u32 end = (u32)(__shfl_sync(ALL, before_ends, 3) >> 32) + __popc(ends & lanes_below(lane));
        /* mutant: q.entry[p.every - 1 - end].x = v -> (void)end
         * : test_directed_between::test_directed_shapes */
        if (mine && !degree) q.entry[p.every - 1 - end].x = v;
    }
    /* mutant: mine && degree -> mine : test_vertices_without_edges_out */
    mine = mine && degree;
#endif
    const u32 who = __ballot_sync(ALL, mine);
    if (!who) return;
    const u32 hubs = __ballot_sync(ALL, mine && v < p.hubs);
    if (!mine) degree = 0;
    const u32 upto = warp_scan(degree, lane), total = __shfl_sync(ALL, upto, 31);
    u64 at = 0;
    u32 hub_at = 0;
    if (lane == 0) at = atomicAdd(&q.mail->size, (u64)total << 32 | __popc(who));
    if (lane == 1 && hubs) hub_at = (u32)atomicAdd(&q.mail->hubs, (u64)__popc(hubs));
    if (sizeof(OFFSET) == 8 && lane == 2) atomicAdd(&q.mail->edges, (u64)total);
    at = __shfl_sync(ALL, at, 0);
    hub_at = __shfl_sync(ALL, hub_at, 1);
    if (!mine) return;
    const u32 before = (u32)(at >> 32) + upto - degree;
    q.entry[(u32)at + __popc(who & lanes_below(lane))] =
        make_uint4(v, before, (u32)begin - before, degree);
    if (v < p.hubs) q.hub[hub_at + __popc(hubs & lanes_below(lane))] = v;
}

/* Each lane claims number v for the parent u where `ok`; a whole warp calls it. */
INLINE void claim(const Params &p, bool ok, u32 v, u32 u, u32 *visited, u32 level,
                  const Queue &q, u32 lane) {
    const u32 bit = 1u << (v & 31);
    bool mine = false;
    OFFSET begin = 0;
    u32 degree = 0;
    if (ok && v < p.active && !(visited[v >> 5] & bit)) {
        begin = p.row[v];
        degree = degree_at(p, v, begin);
        mine = !(atomicOr(visited + (v >> 5), bit) & bit);
    }
    append(p, mine, v, begin, degree, q, lane);
    if (!mine) return;
    p.direct[v] = level;
    if (p.parents) p.parent[v] = u;
}

/* Claims all that a push finds; columns are numbers. */
struct Claim {
    const Params &p;
    u32 *visited;
    u32 level;
    const Queue &next;
    __device__ __forceinline__ void operator()(bool ok, u32 v, u32 u, u32 lane) const {
        claim(p, ok, v, u, visited, level, next, lane);
    }
};

/* What a push wants of rows: all columns. */
struct Every {
    __device__ __forceinline__ bool operator()(u32, u32) const { return true; }
};

/* One level by `warps` warps of which this is `warp`; edges < 2^32.  take(ok, column,
 * number whose row it is in, lane) is called by whole warps; want(number, j) says whether
 * column j of its row is. */
template <class Take, class Want = Every>
INLINE void push(const Params &p, const uint4 *queue, u32 count, u32 edges, const Take &take,
                 u32 warp, u32 warps, u32 lane, const Want &want = Want()) {
    u32 share = ((edges + warps - 1) / warps + 31) & ~31u;
    if (share > 1024) share = 1024;
    for (u64 from = (u64)warp * share; from < edges; from += (u64)warps * share) {
        u32 e = (u32)from;
        /* mutant: share : -> share - 1 :
         * : test_fast_kernels::test_thresholds_that_force_each_way */
        const u32 end = from + share < edges ? e + share : edges;
        u32 low = 0, high = count; /* the last entry that begins at e or before */
        while (high - low > 1) {
            u32 step = (high - low + 31) >> 5, at = low + lane * step;
            bool before = at < high && queue[at].y <= e;
            u32 passed = __popc(__ballot_sync(ALL, before));
            low += (passed - 1) * step;
            high = low + step < high ? low + step : high;
        }
        uint4 entry = make_uint4(0, ALL, 0, 0);
        if (low + lane < count) entry = queue[low + lane];
        for (; e < end; e += 32) {
            u32 passed;
            while ((passed = __popc(__ballot_sync(ALL, entry.y <= e))) > 1) {
                low += passed - 1;
                entry = make_uint4(0, ALL, 0, 0);
                if (low + lane < count) entry = queue[low + lane];
            }
            const u32 me = e + lane;
            const u32 k = lane_before(entry.y, me);
            uint4 mine;
            mine.x = __shfl_sync(ALL, entry.x, k);
            mine.y = __shfl_sync(ALL, entry.y, k);
            mine.z = __shfl_sync(ALL, entry.z, k);
            const bool ok = me < end;
            const u32 j = me - mine.y;
            const bool wanted = ok && want(mine.x, j);
            const u64 at = wanted ? place_of(p, mine.x, row_of(p, mine), j) : 0;
            const u32 v = wanted ? load_once(p.adj + at) : 0u;
            take(wanted && edge_seen(p, at), v, mine.x, lane);
        }
    }
}
#endif
