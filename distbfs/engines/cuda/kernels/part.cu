/* Kernels for one part of a degree-separated graph: start, the visits of nn, nd, dn and
 * dd, what arrives from other parts, and the step to the next level, which also forms the
 * queues and sizes the work in both directions (the paper's previsit).
 *
 * Source: Pan, Pearce, Owens 2018, Section IV; data: part.cuh.
 *
 * variants: OFFSET=u32 VERTEX=int NN=u64 COUNT=0 | OFFSET=u32 VERTEX=int NN=u64 COUNT=1 | OFFSET=u32 VERTEX=i64 NN=u64 COUNT=0 | OFFSET=u64 VERTEX=int NN=u64 COUNT=0 | OFFSET=u64 VERTEX=i64 NN=u64 COUNT=1 | OFFSET=u32 VERTEX=int NN=u32 COUNT=0
 */
typedef long long i64;
#include "part.cuh"
#include "part_mark.cuh"
#include "part_pull.cuh"
#include "part_push.cuh"

INLINE u32 thread_of() { return blockIdx.x * THREADS + threadIdx.x; }
INLINE u32 all_threads() { return gridDim.x * THREADS; }

/* Forget the last search; the root is `fresh`, so that `advance` makes it the frontier. */
extern "C" __global__ void __launch_bounds__(THREADS) start(const Params p) {
    const u32 last = p.active >> 5, tail = ALL << (p.active & 31);
    for (u32 w = thread_of(); w < p.words; w += all_threads()) {
        p.visited[w] = w < last ? 0u : w == last ? tail : ALL;
        p.fresh[w] = w == p.number >> 5 && p.number != NONE ? 1u << (p.number & 31) : 0;
    }
    for (u32 w = thread_of(); w < p.dwords; w += all_threads()) {
        p.dvisited[w] = 0;
        p.dfresh[w] = w == p.delegate >> 5 && p.delegate != NONE ? 1u << (p.delegate & 31) : 0;
    }
    for (u32 c = thread_of(); c < p.d; c += all_threads()) {
        p.dlevel[c] = -1;
        if (p.parent) p.dparent[c] = c == p.delegate ? p.delegate_ids[c] : (VERTEX)-1;
    }
    if (p.parts > 1)
        for (u64 w = thread_of(); w < p.sent_words * p.parts; w += all_threads()) p.sent[w] = 0;
    if (thread_of() == 0 && p.number != NONE && p.parent)
        p.parent[p.vertices[p.number]] = id_of(p, p.number);
}

/* Forward visits. */
extern "C" __global__ void __launch_bounds__(THREADS) push_nn(const Params p) {
    const Rows &rows = p.rows[NN_ROWS];
    const NN *columns = (const NN *)rows.columns;
    __shared__ u64 stages[WARPS][STAGED * STAGE];
    __shared__ u32 holds[WARPS][STAGED];
    const u32 lane = threadIdx.x & 31, own = threadIdx.x >> 5;
    Post post = {p, stages[own], holds[own], lane};
    if (lane < STAGED) holds[own][lane] = 0;
    __syncwarp();
    u64 checks = 0;
    by_rows(rows, p.queue[0], (u32)(p.size[NN_ROWS] & ENTRIES), 0, [&](bool valid, u32 u, OFFSET e) {
        const u64 column = valid ? (u64)columns[e] : 0;
        const u32 part = sizeof(NN) == 8 ? (u32)(column >> 32) : p.index, v = (u32)column;
        if (COUNT) checks += valid;
        if (valid && part == p.index) discover(p, v, id_of(p, u));
        bool send = false;
        if (valid && part != p.index) {
            u32 *sent = p.sent + part * p.sent_words + (v >> 5);
            const u32 bit = 1u << (v & 31);
            send = !(*(volatile u32 *)sent & bit) && !(atomicOr(sent, bit) & bit);
        }
        if (__any_sync(ALL, send)) post.add(send, part, item_of(p, v, u));
    });
    post.finish();
    tell_checks(p, NN_ROWS, checks);
}

extern "C" __global__ void __launch_bounds__(THREADS) push_nd(const Params p) {
    const Rows &rows = p.rows[ND_ROWS];
    u64 checks = 0;
    by_rows(rows, p.queue[1], (u32)(p.size[ND_ROWS] & ENTRIES), 0, [&](bool valid, u32 u, OFFSET e) {
        if (!valid) return;
        if (COUNT) checks++;
        discover_delegate(p, load_once((const u32 *)rows.columns + e), id_of(p, u));
    });
    tell_checks(p, ND_ROWS, checks);
}

extern "C" __global__ void __launch_bounds__(THREADS) push_dn(const Params p) {
    const Rows &rows = p.rows[DN_ROWS];
    u64 checks = 0;
    const u32 count = (u32)(p.size[DN_ROWS] & ENTRIES);
    by_rows(rows, p.queue[2], count, p.marked, [&](bool valid, u32 c, OFFSET e) {
        if (!valid) return;
        if (COUNT) checks++;
        discover(p, load_once((const u32 *)rows.columns + e), p.delegate_ids[c]);
    });
    tell_checks(p, DN_ROWS, checks);
}

/* The rows of hubs, cut by ranges of targets: a block marks a range in shared memory. */
extern "C" __global__ void __launch_bounds__(MARK_THREADS) mark_dn(const Params p) {
    extern __shared__ uint4 dynamic[];
    u32 *seen = (u32 *)dynamic;
    u64 checks = 0;
    for (u32 r = blockIdx.x; r < p.ranges; r += gridDim.x)
        checks += mark_range(p, r, seen);
    tell_checks(p, DN_ROWS, checks);
}

extern "C" __global__ void __launch_bounds__(THREADS) push_dd(const Params p) {
    const Rows &rows = p.rows[DD_ROWS];
    const u64 size = p.size[DD_ROWS];
    u64 checks = 0;
    by_edges(rows, p.dd_queue, (u32)(size & ENTRIES), size >> COUNT_BITS,
             [&](bool valid, u32 c, OFFSET e) {
                 if (!valid) return;
                 if (COUNT) checks++;
                 discover_delegate(p, load_once((const u32 *)rows.columns + e), p.delegate_ids[c]);
             });
    tell_checks(p, DD_ROWS, checks);
}

/* Backward visits, over the rows of the reverse subgraph. */
extern "C" __global__ void __launch_bounds__(THREADS) pull_dn(const Params p) {
    const u64 checks = pull(
        p.rows[ND_ROWS], p.dvisited, p.words,
        [&](u32 w) { return p.nd_mask[w] & ~p.visited[w] & ~*(volatile u32 *)(p.fresh + w); },
        [&](u32 v, u32 c) { discover(p, v, p.delegate_ids[c]); });
    tell_checks(p, DN_ROWS, checks);
}

extern "C" __global__ void __launch_bounds__(THREADS) pull_nd(const Params p) {
    const u64 checks = pull(
        p.rows[DN_ROWS], p.visited, p.dwords,
        [&](u32 w) { return p.dn_mask[w] & ~p.dvisited[w] & ~*(volatile u32 *)(p.dfresh + w); },
        [&](u32 c, u32 u) { discover_delegate(p, c, id_of(p, u)); });
    tell_checks(p, ND_ROWS, checks);
}

extern "C" __global__ void __launch_bounds__(THREADS) pull_dd(const Params p) {
    const u64 checks = pull(
        p.rows[DD_ROWS], p.dvisited, p.dwords,
        [&](u32 w) { return p.dd_mask[w] & ~p.dvisited[w] & ~*(volatile u32 *)(p.dfresh + w); },
        [&](u32 c, u32 u) { discover_delegate(p, c, p.delegate_ids[u]); });
    tell_checks(p, DD_ROWS, checks);
}

/* Vertices of this part that the parts of another rank found. */
extern "C" __global__ void __launch_bounds__(THREADS) take_normals(const Params p) {
    for (u64 i = thread_of(); i < p.item_count; i += all_threads())
        discover(p, (u32)(p.items[i] >> 32), parent_of(p, p.items[i]));
}

/* The vertices of 32 words, a word a lane, are added to a queue; returns where those of
 * this lane's word begin in it. */
INLINE u32 reserve(const Params &p, Graph graph, u32 bits, u32 lane) {
    const u32 upto = warp_scan(__popc(bits), lane), total = __shfl_sync(ALL, upto, 31);
    u64 at = 0;
    if (lane == 0 && total) at = atomicAdd(p.size + graph, (u64)total);
    return (u32)__shfl_sync(ALL, at, 0) + upto - __popc(bits);
}

/* One of those words, by a whole warp; returns the edges of this lane's vertex. */
INLINE u64 enqueue(const Params &p, Graph graph, u32 word, u32 bits, u32 at, u32 lane) {
    if (!(bits >> lane & 1)) return 0;
    const u32 v = word * 32 + lane;
    const OFFSET *offsets = p.rows[graph].offsets;
    p.queue[graph][at + __popc(bits & lanes_below(lane))] = v;
    return offsets[v + 1] - offsets[v];
}

/* The delegates of 32 words with the edges before each; returns a share of their edges. */
INLINE u64 enqueue_dd(const Params &p, u32 w0, u32 bits, u32 lane) {
    const OFFSET *offsets = p.rows[DD_ROWS].offsets;
    const u32 upto = warp_scan(__popc(bits), lane), total = __shfl_sync(ALL, upto, 31);
    if (!total) return 0;
    u64 mine = 0, at = 0;
    for (u32 todo = __ballot_sync(ALL, bits); todo; todo &= todo - 1) {
        const u32 one = __ffs(todo) - 1, word = __shfl_sync(ALL, bits, one);
        const u32 c = (w0 + one) * 32 + lane;
        if (word >> lane & 1) mine += offsets[c + 1] - offsets[c];
    }
    u64 edges = mine;
#pragma unroll
    for (int s = 16; s; s >>= 1) edges += __shfl_xor_sync(ALL, edges, s);
    if (lane == 0) at = atomicAdd(p.size + DD_ROWS, edges << COUNT_BITS | total);
    at = __shfl_sync(ALL, at, 0);
    u64 before = at >> COUNT_BITS;
    u32 place = (u32)(at & ENTRIES);
    for (u32 todo = __ballot_sync(ALL, bits); todo; todo &= todo - 1) {
        const u32 one = __ffs(todo) - 1, word = __shfl_sync(ALL, bits, one);
        const u32 c = (w0 + one) * 32 + lane;
        const bool here = word >> lane & 1;
        const u32 degree = here ? (u32)(offsets[c + 1] - offsets[c]) : 0;
        const u32 sum = warp_scan(degree, lane);
        const u64 first = before + sum - degree;
        if (here)
            p.dd_queue[place + __popc(word & lanes_below(lane))] =
                make_uint4(c, (u32)first, (u32)(first >> 32), degree);
        before += __shfl_sync(ALL, sum, 31), place += __popc(word);
    }
    return mine;
}

/* What was found becomes the frontier, with its level; queues and work of the level that
 * follows.  p.size and p.work are zero before. */
extern "C" __global__ void __launch_bounds__(THREADS) advance(const Params p) {
    const u32 lane = threadIdx.x & 31, own = threadIdx.x >> 5;
    const u32 warp = own * gridDim.x + blockIdx.x, warps = gridDim.x * WARPS;
    u64 count[COUNTS];
#pragma unroll
    for (int k = 0; k < COUNTS; k++) count[k] = 0;
    for (u32 w0 = warp * 32; w0 < p.words; w0 += warps * 32) {
        const u32 word = w0 + lane;
        u32 now = 0, nn = 0, nd = 0;
        if (word < p.words) {
            const u32 seen = p.visited[word];
            now = p.fresh[word] & ~seen;
            nn = p.nn_mask[word] & now, nd = p.nd_mask[word] & now;
            if (now) p.visited[word] = seen | now, p.fresh[word] = 0;
            count[NORMALS] += __popc(now);
            count[ND_Q] += __popc(nd);
            count[ND_S] += __popc(p.nd_mask[word] & ~(seen | now));
        }
        if (!__any_sync(ALL, now)) continue;
        const u32 nn_at = reserve(p, NN_ROWS, nn, lane), nd_at = reserve(p, ND_ROWS, nd, lane);
        for (u32 todo = __ballot_sync(ALL, now); todo; todo &= todo - 1) {
            const u32 one = __ffs(todo) - 1, at = w0 + one;
            const u32 bits = __shfl_sync(ALL, now, one);
            if (bits >> lane & 1) p.level[p.vertices[at * 32 + lane]] = p.depth;
            const u32 in_nn = __shfl_sync(ALL, nn, one), in_nd = __shfl_sync(ALL, nd, one);
            const u32 to_nn = __shfl_sync(ALL, nn_at, one), to_nd = __shfl_sync(ALL, nd_at, one);
            count[NN_EDGES] += enqueue(p, NN_ROWS, at, in_nn, to_nn, lane);
            count[ND_FORWARD] += enqueue(p, ND_ROWS, at, in_nd, to_nd, lane);
        }
    }
    for (u32 w0 = warp * 32; w0 < p.dwords; w0 += warps * 32) {
        const u32 word = w0 + lane;
        u32 now = 0, dn = 0, dd = 0;
        if (word < p.dwords) {
            const u32 seen = p.dvisited[word];
            now = p.mask[word] & ~seen;
            dn = p.dn_mask[word] & now, dd = p.dd_mask[word] & now;
            p.dfresh[word] = 0;
            if (now) p.dvisited[word] = seen | now;
            if (!p.index) count[DELEGATES] += __popc(now);
            count[DN_Q] += __popc(dn);
            count[DD_Q] += __popc(dd);
            count[DN_S] += __popc(p.dn_mask[word] & ~(seen | now));
            count[DD_S] += __popc(p.dd_mask[word] & ~(seen | now));
        }
        if (!__any_sync(ALL, now)) continue;
        const u32 dn_at = reserve(p, DN_ROWS, dn, lane);
        for (u32 todo = __ballot_sync(ALL, now); todo; todo &= todo - 1) {
            const u32 one = __ffs(todo) - 1, at = w0 + one;
            const u32 bits = __shfl_sync(ALL, now, one);
            if (bits >> lane & 1) p.dlevel[at * 32 + lane] = p.depth;
            const u32 in_dn = __shfl_sync(ALL, dn, one), to_dn = __shfl_sync(ALL, dn_at, one);
            count[DN_FORWARD] += enqueue(p, DN_ROWS, at, in_dn, to_dn, lane);
        }
        count[DD_FORWARD] += enqueue_dd(p, w0, dd, lane);
    }
    count[DD_U] = count[DD_S], count[DN_U] = count[ND_S], count[ND_U] = count[DN_S];
#pragma unroll
    for (int k = 0; k < COUNTS; k++) add_to(p.work + k, count[k]);
}

/* Levels and parents of what was not found, and of the delegates that this part owns. */
extern "C" __global__ void __launch_bounds__(THREADS) finish(const Params p) {
    for (u32 v = thread_of(); v < p.active; v += all_threads()) {
        if (bit_of(p.visited, v)) continue;
        const u32 at = p.vertices[v];
        p.level[at] = -1;
        if (p.parent) p.parent[at] = -1;
    }
    for (u32 i = thread_of(); i < p.owned_count; i += all_threads()) {
        p.level[p.places[i]] = p.dlevel[p.owned[i]];
        if (p.parent) p.parent[p.places[i]] = p.dparent[p.owned[i]];
    }
}

/* mask: [words] rows [rows] that have edges */
extern "C" __global__ void __launch_bounds__(THREADS)
    row_mask(const OFFSET *offsets, u64 rows, u64 words, u32 *mask) {
    for (u64 w = thread_of() >> 5; w < words; w += all_threads() >> 5) {
        const u64 v = w * 32 + (threadIdx.x & 31);
        const u32 bits = __ballot_sync(ALL, v < rows && offsets[v + 1] > offsets[v]);
        if ((threadIdx.x & 31) == 0) mask[w] = bits;
    }
}
