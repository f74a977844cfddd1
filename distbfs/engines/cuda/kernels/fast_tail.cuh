/* The end of a search: the few vertices that pulls have left, and changing back to push.
 *
 * tail: the vertices listed by the last pull test all their neighbours once more; what
 * is found becomes a queue.  gather: the last level becomes a queue (single scan, XBFS
 * Section 4.1).  Both run beside the writing of results; what later pushes find is
 * added to the results one by one (settle). */
#ifndef DISTBFS_FAST_TAIL_CUH
#define DISTBFS_FAST_TAIL_CUH
#include "fast.cuh"
#include "fast_push.cuh"

#define SHORT_ROW 8 /* edges that one thread looks at */

/* Append vertices (not bits, not results) with their degrees; a whole warp calls it.
 * Returns the place in the queue. */
INLINE u32 append(const Params &p, bool mine, u32 v, const Queue &q, u32 lane) {
    const u32 who = __ballot_sync(ALL, mine);
    if (!who) return 0;
    const u32 hubs = __ballot_sync(ALL, mine && v < p.hubs);
    const OFFSET begin = mine ? p.row[v] : 0;
    const u32 degree = mine ? (u32)(p.row[v + 1] - begin) : 0;
    const u32 upto = warp_scan(degree, lane), total = __shfl_sync(ALL, upto, 31);
    u64 at = 0;
    u32 hub_at = 0;
    if (lane == 0) at = atomicAdd(q.size, (u64)total << 32 | __popc(who));
    if (lane == 1 && hubs) hub_at = atomicAdd(q.hubs, __popc(hubs));
    if (sizeof(OFFSET) == 8 && lane == 2) atomicAdd(q.edges, (u64)total);
    at = __shfl_sync(ALL, at, 0);
    hub_at = __shfl_sync(ALL, hub_at, 1);
    const u32 place = (u32)at + __popc(who & lanes_below(lane));
    if (!mine) return 0;
    const u32 before = (u32)(at >> 32) + upto - degree;
    q.entry[place] = make_uint4(v, before, (u32)begin - before, degree);
    if (v < p.hubs) q.hub[hub_at + __popc(hubs & lanes_below(lane))] = v;
    return place;
}

/* Whether u was visited before this pass: in the snapshot, or found by a pass before. */
INLINE bool earlier(const Params &p, const u32 *old, u32 u, u32 level) {
    if (bit_of(old, u)) return true;
    return *(volatile u32 *)(p.late_bits + (u >> 5)) >> (u & 31) & 1 &&
           *(volatile u32 *)(p.direct + u) < level;
}

/* A listed vertex that the pass before found gets its results and its bit; where the
 * first pass runs, results are being written, so they wait for the next one. */
INLINE void patch(const Params &p, u32 v, u32 parent, u32 *visited, u32 level, u32 late) {
    red_or(visited + (v >> 5), 1u << (v & 31));
    settle(p, v, parent, level, late);
}

/* One pass over the list of this warp; found vertices become a queue.  A found one is
 * moved to the end of the list with its parent, tail_found counts them.  Returns edge
 * checks. */
INLINE u32 tail(const Params &p, u32 *visited, u32 level, u32 late, const Queue &q, u32 warp,
                u32 lane) {
    u32 *list = p.tail + (u64)warp * TAIL_ROOM, *parents = p.tail_parent + (u64)warp * TAIL_ROOM;
    u32 count = p.tail_count[warp], done = p.tail_found[warp], checks = 0;
    if (late)
        for (u32 i = count + lane; i < count + done; i += 32)
            patch(p, list[i], parents[i], visited, level - 1, late);
    if (!count) {
        if (done && lane == 0) p.tail_found[warp] = 0;
        return 0;
    }
    u32 kept = 0, hits = 0, item[TAIL_ROOM / 32], from[TAIL_ROOM / 32];
    bool found[TAIL_ROOM / 32];
#pragma unroll
    for (int r = 0; r < TAIL_ROOM / 32; r++) {
        const bool mine = r * 32 + lane < count;
        const u32 v = item[r] = mine ? list[r * 32 + lane] : 0;
        const OFFSET begin = mine ? p.row[v] : 0, end = mine ? p.row[v + 1] : 0;
        bool hit = false;
        u32 parent = 0;
        if (end - begin <= SHORT_ROW)
            for (OFFSET e = begin; e < end && !hit; e += 4) {
                u32 u[4];
#pragma unroll
                for (int i = 0; i < 4; i++) u[i] = load_once(p.adj + (e + i < end ? e + i : e));
#pragma unroll
                for (int i = 3; i >= 0; i--) {
                    if (COUNT) checks += e + i < end;
                    if (earlier(p, visited, u[i], level)) hit = true, parent = u[i];
                }
            }
        for (u32 todo = __ballot_sync(ALL, end - begin > SHORT_ROW); todo; todo &= todo - 1) {
            const u32 one = __ffs(todo) - 1;
            const OFFSET to = __shfl_sync(ALL, end, one);
            u32 winner = 0, u = 0;
            for (OFFSET e = __shfl_sync(ALL, begin, one); e < to && !winner; e += 32) {
                u = e + lane < to ? load_once(p.adj + e + lane) : 0;
                if (COUNT) checks += e + lane < to;
                winner = __ballot_sync(ALL, e + lane < to && earlier(p, visited, u, level));
            }
            if (!winner) continue;
            u = __shfl_sync(ALL, u, __ffs(winner) - 1);
            if (lane == one) hit = true, parent = u;
        }
        if (hit) {
            p.direct[v] = level;
            __threadfence();
            red_or(p.late_bits + (v >> 5), 1u << (v & 31));
        }
        const u32 place = append(p, hit, v, q, lane);
        if (hit) p.queue_parent[place] = parent;
        found[r] = hit, from[r] = parent;
        hits += __popc(__ballot_sync(ALL, hit));
    }
    __syncwarp();
    if (!hits && !done) return checks;
    u32 at = 0;
#pragma unroll
    for (int r = 0; r < TAIL_ROOM / 32; r++) {
        const bool mine = r * 32 + lane < count;
        const u32 who = __ballot_sync(ALL, mine && found[r]);
        const u32 rest = __ballot_sync(ALL, mine && !found[r]);
        if (mine && found[r]) {
            const u32 to = count - hits + at + __popc(who & lanes_below(lane));
            list[to] = item[r], parents[to] = from[r];
        } else if (mine) list[kept + __popc(rest & lanes_below(lane))] = item[r];
        at += __popc(who), kept += __popc(rest);
    }
    if (lane == 0) p.tail_count[warp] = kept, p.tail_found[warp] = hits;
    return checks;
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

/* Levels of one byte become ints. */
INLINE void widen(const Params &p, u32 count) {
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS)
        p.level_wide[i] = p.level_out[i] == 255 ? -1 : p.level_out[i];
}
#endif
