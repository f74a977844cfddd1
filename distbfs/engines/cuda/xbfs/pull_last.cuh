/* Pulls where few vertices are left.
 *
 * A warp lists the unvisited vertices of its words and tests 32 at a time.  Where it has
 * no more than that, each lane keeps its vertex and the first neighbours of it, so that
 * in the levels that follow only their bits are read.
 */
#ifndef DISTBFS_XBFS_PULL_LAST_CUH
#define DISTBFS_XBFS_PULL_LAST_CUH
#include "rows.cuh"
#include "search.cuh"

/* Whether so few are left. */
/* mutant: <= p.active / FEW -> < p.active / p.active : test_the_last_few_are_listed */
INLINE bool few(const Params &p, u32 left) { return left <= p.active / FEW; }

#define KEPT 4 /* neighbours that a lane keeps */

/* A vertex that is looked at by one lane. */
struct Last {
    u32 v, degree; /* no degree: no vertex */
    u32 u[KEPT]; /* first neighbours */
};

INLINE void take(const Params &p, Last &one, u32 v, bool some) {
    one.v = v, one.degree = 0;
    if (!some) return;
    const OFFSET at = IN_ROWS(p).row[v];
    one.degree = degree_at(IN_ROWS(p), v, at);
#if MASKED /* a column that is not seen stands for the first that is */
    if (one.degree > 1 && !bit_of(p.more, v)) one.degree = 1;
#pragma unroll
    for (u32 j = 0; j < KEPT; j++) {
        const bool is = j < one.degree && in_edge_seen(p, at + j);
        one.u[j] = load_once(is && one.degree > 1 ? IN_ADJ(p) + at + j : p.first + v);
    }
#else
#pragma unroll
    for (u32 j = 0; j < KEPT; j++) one.u[j] = load_once(IN_ADJ(p) + at + (j < one.degree ? j : 0));
#endif
}

/* Whether a neighbour is visited in `all`, and which: the first. */
INLINE bool look_for(const Params &p, const Last &one, const u32 *all, u32 &parent, u32 &checks,
                     TailReads &tails) {
    bool hit = false;
    if (!one.degree) return false;
#pragma unroll
    for (int j = KEPT - 1; j >= 0; j--)
        if (bit_of(all, one.u[j])) hit = true, parent = one.u[j];
    if (COUNT) checks += one.degree < KEPT ? one.degree : KEPT;
    if (hit || one.degree <= KEPT) return hit;
    const u64 row = IN_ROWS(p).row[one.v];
    u32 beyond = 0; /* columns that are read of its tail */
#pragma unroll 1
    for (u32 e = KEPT; e < one.degree && !hit; e += 4) {
        u32 u[4];
#pragma unroll
        for (u32 j = 0; j < 4; j++)
            u[j] = load_once(IN_ADJ(p) + place_of(IN_ROWS(p), one.v, row, e + j < one.degree ? e + j : e));
#pragma unroll
        for (int j = 3; j >= 0; j--)
            if (bit_of(all, u[j]) &&
                in_edge_seen(p, place_of(IN_ROWS(p), one.v, row, e + j < one.degree ? e + j : e)))
                hit = true, parent = u[j];
        const u32 seen = one.degree - e < 4 ? one.degree - e : 4;
        if (COUNT) checks += seen;
        if (COUNT && SPLIT && e + seen > p.kept)
            beyond += e >= p.kept ? seen : e + seen - p.kept;
    }
    if (COUNT && SPLIT && beyond) note_tail(tails, IN_ROWS(p).tail_row[one.v], beyond);
    return hit;
}

/* What else is done with a vertex that is found: nothing. */
struct NoMore {
    __device__ __forceinline__ void operator()(bool, u32, u32) const {}
};

/* Test one vertex a lane; its word of `fresh` is written already, by this warp.  One that
 * is found is forgotten.  more(found, vertex, lane) is called by whole warps.  Returns
 * whether it is left. */
template <class More>
INLINE u32 test(const Params &p, Last &one, const u32 *all, u32 *fresh, u32 &checks,
                TailReads &tails, u32 lane, const More &more) {
    u32 parent;
    const bool hit = look_for(p, one, all, parent, checks, tails), left = one.degree && !hit;
    more(hit, one.v, lane);
    __syncwarp();
    if (hit) {
        if (p.parents) p.parent[one.v] = parent;
        red_or(fresh + (one.v >> 5), 1u << (one.v & 31));
        one.degree = 0;
    }
    return left;
}

/* One level; returns this lane's share of the vertices still unvisited.
 * old, fresh, all: as in `pull`; room: dynamic shared memory; kept: `one` has this warp's
 * vertices, from the level before and for the next; also: see `test` */
template <class More>
INLINE u32 pull_last(const Params &p, const u32 *old, u32 *fresh, const u32 *all, u32 *room,
                     Last &one, bool &kept, u32 warp, u32 warps, u32 lane, u64 *checks,
                     const More &also) {
    u32 *list = room + (threadIdx.x >> 5) * WARP_WORDS; /* [31 + 16 * 32] */
    u32 left = 0, seen = 0, size = 0;
    TailReads tails = {0, 0};
    bool more = false;
    for (u32 w0 = warp * 32 + lane; w0 - lane < p.words; w0 += 4 * warps * 32) {
        u32 x[4];
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            const u32 w = w0 + i * warps * 32;
            x[i] = w < p.words ? closed(p, old, w) : ALL;
        }
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            const u32 w = w0 + i * warps * 32;
            if (w < p.words) fresh[w] = KEPT_BITS(p, fresh, w, x[i]);
        }
        if (kept) continue;
#pragma unroll 1
        for (u32 i = 0; i < 8; i++) { /* half words */
            const u32 half = i & 1, w = w0 + (i >> 1) * warps * 32;
            u32 open = half ? ~x[0] >> 16 : ~x[0] & 0xffff;
            if (half) x[0] = x[1], x[1] = x[2], x[2] = x[3];
            if (!__any_sync(ALL, open)) continue;
            const u32 upto = warp_scan(__popc(open), lane), total = __shfl_sync(ALL, upto, 31);
            u32 at = size + upto - __popc(open);
            for (; open; open &= open - 1) list[at++] = w * 32 + half * 16 + __ffs(open) - 1;
            __syncwarp();
            for (size += total; size > 32;) {
                more = true;
                size -= 32;
                take(p, one, list[size + lane], true);
                left += test(p, one, all, fresh, seen, tails, lane, also);
            }
        }
    }
    if (!kept) {
        __syncwarp();
        take(p, one, lane < size ? list[lane] : 0, lane < size);
    }
    left += test(p, one, all, fresh, seen, tails, lane, also);
    kept = !more;
    if (COUNT && checks) {
        const u32 sum = __reduce_add_sync(ALL, seen);
        if (lane == 0) atomicAdd(checks, (u64)sum);
        if (SPLIT) add_tails(p, checks, tails, lane);
    }
    return left;
}
#endif
