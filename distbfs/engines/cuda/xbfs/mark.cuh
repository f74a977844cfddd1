/* Marking push: a level that is followed by a pull makes no queue, only bits.
 *
 * It reads one snapshot and sets bits of the next, which begins as zeros.  Rows of hubs
 * are cut by destination range; a block takes a range, marks it in shared memory, so
 * that repeats end there, and merges it at the end.  Other rows are shared out to warps
 * in pieces.  Tails in host memory are not cut, but read as streams, row by row, with the
 * rows that are not of hubs.
 *
 * A parent that is stored where L2 has not its sector costs a read and a write of memory
 * that nothing goes along with.  Where a frontier has many edges, ranges are so short that L2
 * holds the parents of those that all blocks mark, and these are fetched first, in lines.
 */
#ifndef DISTBFS_XBFS_MARK_CUH
#define DISTBFS_XBFS_MARK_CUH
#include "push.cuh"
#include "rows.cuh"
#include "search.cuh"

#define PIECE 128 /* edges of a row that one warp takes when rows are few */

/* What becomes of marks where columns are numbers: one snapshot is read, bits of the next
 * are set. */
struct Marks {
    const Params &p;
    const u32 *old;
    u32 *fresh;
    /* to shared memory: the visited bits of words w0 ... w1 - 1 */
    __device__ __forceinline__ void copy(u32 *to, u32 w0, u32 w1) const {
        /* mutant: old[w0 + i] -> 0 : test_fast_kernels::test_thresholds_that_force_each_way */
        for (u32 i = threadIdx.x; i < w1 - w0; i += THREADS) to[i] = old[w0 + i];
    }
    /* of a row that is not cut: the visited bits of its word; to set one */
    __device__ __forceinline__ u32 seen(u32 v) const {
        /* mutant: v < p.active ? old[v >> 5] : ALL -> old[v >> 5] : test_trees_from_every_place */
        return v < p.active ? old[v >> 5] : ALL; /* those of trees are not searched */
    }
    __device__ __forceinline__ u32 set(u32 v, u32 bit) const {
        return atomicOr(fresh + (v >> 5), bit);
    }
    __device__ __forceinline__ void row(bool found, u32 v, u32 u, u32) const {
        if (found && p.parents) p.parent[v] = u;
    }
    /* of a range: before all, each that is found, what `copy` has taken at the end, after all */
    __device__ __forceinline__ void begin(u32 w0, u32 w1, bool many) const {
        if (!many || !p.parents) return;
        for (u32 w = w0 + threadIdx.x; w < w1; w += THREADS)
            if (~old[w]) prefetch(p.parent + w * 32); /* a line */
    }
    __device__ __forceinline__ void take(bool found, u32 v, u32 u, u32, u32) const {
        if (found && p.parents) p.parent[v] = u;
    }
    __device__ __forceinline__ void merge(const u32 *bits, u32 w0, u32 w1) const {
        for (u32 i = threadIdx.x; i < w1 - w0; i += THREADS)
            if (bits[i]) red_or(fresh + w0 + i, bits[i]);
    }
    __device__ __forceinline__ void end(u32) const {}
};

/* One piece of row a lane, `length` edges from `begin`: flattened, 4 x 32 at a time. */
template <class Sink>
INLINE void mark_rows(const Params &p, u32 u, u64 begin, u32 length, const Sink &sink, u32 lane) {
    const u32 upto = warp_scan(length, lane), total = __shfl_sync(ALL, upto, 31);
    const u32 before = upto - length;
    for (u32 e = 0; e < total; e += 128) {
        u32 v[4], from[4], seen[4];
        bool ok[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const u32 me = e + i * 32 + lane;
            ok[i] = me < total;
            const u32 k = lane_before(before, me);
            from[i] = __shfl_sync(ALL, u, k);
            const u64 row = __shfl_sync(ALL, begin, k);
            const u32 start = __shfl_sync(ALL, before, k);
            v[i] = ok[i] ? load_once(p.adj + (row + (me - start))) : 0u;
            ok[i] = ok[i] && edge_seen(p, row + (me - start));
        }
#pragma unroll
        for (int i = 0; i < 4; i++) seen[i] = ok[i] ? sink.seen(v[i]) : ALL;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const u32 bit = 1u << (v[i] & 31);
            ok[i] = ok[i] && !(seen[i] & bit);
            seen[i] = ALL;
            if (ok[i]) seen[i] = sink.set(v[i], bit);
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            sink.row(ok[i] && !(seen[i] >> (v[i] & 31) & 1), v[i], from[i], lane);
    }
}

/* Rows of the hubs in the queue, one destination range, which is `group` of those that are
 * cut; `seen`: shared, the range's words followed by tables for a hub a thread (before
 * [THREADS + 4], shift [THREADS x 2], hub [THREADS], sums [WARPS]).  many: edges */
template <class Sink>
INLINE void mark_range(const Params &p, const u32 *hub, u32 hubs, u32 range, u32 group, bool many,
                       const Sink &sink, u32 *seen, u32 lane, u32 warp) {
    const u32 r0 = range * group, r1 = r0 + group, w0 = p.range[r0], w1 = p.range[r1];
    u32 *before = seen + ((w1 - w0 + 3) & ~3u);
    u64 *shift = (u64 *)(before + THREADS + 4);
    u32 *who = (u32 *)(shift + THREADS), *sums = who + THREADS;
    u32 u, length;
    u64 begin;
    const auto piece_of = [&](u32 i) { /* what the range has of the row of a hub */
        u = length = 0, begin = 0;
        if (i >= hubs) return;
        u = hub[i];
        const u32 *cut = p.split + (u64)u * (p.cuts + 1), first = cut[r0];
        begin = (u64)p.row[u] + first;
        length = cut[r1] - first;
    };
    piece_of(threadIdx.x); /* on its way while bits are read */
    sink.begin(w0, w1, many);
    sink.copy(seen, w0, w1);
    __syncthreads();
    for (u32 h0 = 0; h0 < hubs; h0 += THREADS) {
        if (h0) piece_of(h0 + threadIdx.x);
        const u32 upto = warp_scan(length, lane);
        if (lane == 31) sums[warp] = upto;
        __syncthreads();
        const u32 sum = lane < WARPS ? sums[lane] : 0, scanned = warp_scan(sum, lane);
        const u32 total = __shfl_sync(ALL, scanned, 31);
        const u32 start = __shfl_sync(ALL, scanned - sum, warp) + upto - length;
        before[threadIdx.x] = start;
        shift[threadIdx.x] = begin - start;
        who[threadIdx.x] = u;
        if (threadIdx.x == 0) before[THREADS] = ALL;
        __syncthreads();
        const u32 count = hubs - h0 < THREADS ? hubs - h0 : THREADS;
        u32 top = 1;
        while (top < count) top <<= 1;
        top >>= 1;
        const u32 span = ((total + WARPS - 1) / WARPS + 127) & ~127u, from = warp * span;
        const u32 to = from + span < total ? from + span : total;
        if (from < total) {
            u32 k = 0;
            for (u32 s = top; s; s >>= 1)
                if (k + s < count && before[k + s] <= from + lane) k += s;
            for (u32 e = from + lane; e < to + lane; e += 128) {
                u32 v[4], at[4];
                bool ok[4];
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const u32 me = e + j * 32;
                    ok[j] = me < to;
                    if (ok[j])
                        while (before[k + 1] <= me) k++;
                    at[j] = k;
                    v[j] = ok[j] ? load_once(p.adj + (shift[k] + me)) : 0u;
                    ok[j] = ok[j] && edge_seen(p, shift[k] + me);
                }
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const u32 bit = 1u << (v[j] & 31);
                    bool found = false;
                    if (ok[j]) {
                        u32 *word = seen + ((v[j] >> 5) - w0);
                        if (!(*(volatile u32 *)word & bit)) found = !(atomicOr(word, bit) & bit);
                    }
                    sink.take(found, v[j], who[at[j]], w0, lane);
                }
            }
        }
        __syncthreads();
    }
    sink.merge(seen, w0, w1);
    sink.end(range);
    __syncthreads();
}

/* Marks what a push comes to. */
template <class Sink> struct RowMarks {
    const Sink &sink;
    __device__ __forceinline__ void operator()(bool ok, u32 v, u32 u, u32 lane) const {
        const u32 bit = 1u << (v & 31);
        u32 seen = ok ? sink.seen(v) : ALL;
        ok = !(seen & bit);
        if (ok) seen = sink.set(v, bit);
        sink.row(ok && !(seen & bit), v, u, lane);
    }
};

/* Where all rows are marked alike many come to the same hubs: what is marked is looked at. */
struct FewMarks : Marks {
    __device__ __forceinline__ u32 seen(u32 v) const {
        return Marks::seen(v) | (v < p.active ? fresh[v >> 5] : 0u);
    }
};

/* The whole level where the queue has few edges, without ranges: these are chains of loads
 * and meetings of a block, which few edges do not pay for. */
INLINE void mark_few(const Params &p, const uint4 *queue, u32 count, u32 edges,
                     const Marks &marks, u32 warp, u32 warps, u32 lane) {
    for (u32 w = warp * 32 + lane; w < p.words; w += warps * 32) {
        const u32 bits = marks.old[w];
        /* mutant: if (bits) red_or(marks.fresh + w, bits) ->
         * : test_fast_kernels::test_thresholds_that_force_each_way */
        if (bits) red_or(marks.fresh + w, bits);
    }
    const FewMarks few = {marks};
    push(p, queue, count, edges, RowMarks<FewMarks>{few}, warp, warps, lane);
}

/* All columns but those of hubs that lie on the device. */
struct Uncut {
    const Params &p;
    __device__ __forceinline__ bool operator()(u32 u, u32 j) const {
        return u >= p.hubs || j >= p.kept;
    }
};

/* The whole level; the caller meets all blocks afterwards.  edges: of the queue; many: of
 * the queues of all devices */
template <class Sink>
INLINE void mark(const Params &p, const uint4 *queue, u32 count, u64 edges, bool many,
                 const u32 *hub, u32 hubs, const Sink &sink, u32 *room, u32 warp, u32 warps,
                 u32 lane) {
    const u32 group = many ? 1 : p.group;
#if !SPLIT
    /* few rows are taken in pieces, many by the lane */
    const bool pieces = (u64)count * p.pieces <= 16ull * warps;
    const u32 all = count == hubs ? 0 : pieces ? count * p.pieces : count;
    const u32 rounds = (count + warps * 32 - 1) / (warps * 32);
    const u32 each = pieces ? 1 : (count + rounds * warps - 1) / (rounds * warps);
    u32 u, length;
    u64 begin;
    const auto piece_of = [&](u32 from) {
        u = length = 0, begin = 0;
        if (lane >= each || from + lane >= all) return;
        const u32 i = from + lane, skip = pieces ? i % p.pieces * PIECE : 0;
        const uint4 e = queue[pieces ? i / p.pieces : i];
        if (e.x < p.hubs || e.w <= skip) return;
        u = e.x, begin = row_of(p, e) + skip;
        length = pieces && e.w - skip > PIECE ? PIECE : e.w - skip;
    };
    if (pieces) { /* their columns are on their way to L2 while hubs are marked */
        piece_of(warp);
        for (u32 e = 0; e < length; e += 32) prefetch(p.adj + begin + e);
    }
#endif
    for (u32 r = blockIdx.x; r * group < p.ranges; r += gridDim.x)
        mark_range(p, hub, hubs, r, group, many, sink, room, lane, threadIdx.x >> 5);
#if SPLIT
    push(p, queue, count, (u32)edges, RowMarks<Sink>{sink}, warp, warps, lane, Uncut{p});
#else
    for (u32 from = warp * each; from < all; from += warps * each) {
        piece_of(from);
        if (__any_sync(ALL, length)) mark_rows(p, u, begin, length, sink, lane);
    }
#endif
}
#endif
