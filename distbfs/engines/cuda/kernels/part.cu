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
    u64 checks = 0;
    by_rows(rows, p.queue[0], (u32)(p.size[NN_ROWS] & ENTRIES), [&](bool valid, u32 u, OFFSET e) {
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
        if (__any_sync(ALL, send)) post(p, send, part, item_of(p, v, u));
    });
    tell_checks(p, NN_ROWS, checks);
}

extern "C" __global__ void __launch_bounds__(THREADS) push_nd(const Params p) {
    const Rows &rows = p.rows[ND_ROWS];
    u64 checks = 0;
    by_rows(rows, p.queue[1], (u32)(p.size[ND_ROWS] & ENTRIES), [&](bool valid, u32 u, OFFSET e) {
        if (!valid) return;
        if (COUNT) checks++;
        discover_delegate(p, load_once((const u32 *)rows.columns + e), id_of(p, u));
    });
    tell_checks(p, ND_ROWS, checks);
}

extern "C" __global__ void __launch_bounds__(THREADS) push_dn(const Params p) {
    const Rows &rows = p.rows[DN_ROWS];
    u64 checks = 0;
    by_rows(rows, p.queue[2], (u32)(p.size[DN_ROWS] & ENTRIES), [&](bool valid, u32 c, OFFSET e) {
        if (!valid) return;
        if (COUNT) checks++;
        discover(p, load_once((const u32 *)rows.columns + e), p.delegate_ids[c]);
    });
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

/* A word's vertices that have rows are added to a queue, with their edges; a whole warp
 * works on the word.  Returns the edges of this lane's vertex. */
INLINE u64 enqueue(const Params &p, Graph graph, u32 word, u32 bits, u32 lane) {
    if (!bits) return 0;
    const u32 v = word * 32 + lane;
    const bool mine = bits >> lane & 1;
    const OFFSET *offsets = p.rows[graph].offsets;
    const u32 degree = mine ? (u32)(offsets[v + 1] - offsets[v]) : 0;
    const u32 place = __popc(bits & lanes_below(lane));
    u64 at = 0;
    if (graph != DD_ROWS) {
        if (lane == 0) at = atomicAdd(p.size + graph, (u64)__popc(bits));
        at = __shfl_sync(ALL, at, 0);
        if (mine) p.queue[graph][(at & ENTRIES) + place] = v;
        return degree;
    }
    const u32 upto = warp_scan(degree, lane), total = __shfl_sync(ALL, upto, 31);
    if (lane == 0) at = atomicAdd(p.size + graph, (u64)total << COUNT_BITS | __popc(bits));
    at = __shfl_sync(ALL, at, 0);
    const u64 before = (at >> COUNT_BITS) + upto - degree;
    if (mine) p.dd_queue[(at & ENTRIES) + place] = make_uint4(v, (u32)before, before >> 32, degree);
    return degree;
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
            p.frontier[word] = now;
            if (now) p.visited[word] = seen | now, p.fresh[word] = 0;
            count[NORMALS] += __popc(now);
            count[ND_Q] += __popc(nd);
            count[ND_S] += __popc(p.nd_mask[word] & ~(seen | now));
        }
        for (u32 todo = __ballot_sync(ALL, now); todo; todo &= todo - 1) {
            const u32 one = __ffs(todo) - 1, at = w0 + one;
            const u32 bits = __shfl_sync(ALL, now, one);
            if (bits >> lane & 1) p.level[p.vertices[at * 32 + lane]] = p.depth;
            count[NN_EDGES] += enqueue(p, NN_ROWS, at, __shfl_sync(ALL, nn, one), lane);
            count[ND_FORWARD] += enqueue(p, ND_ROWS, at, __shfl_sync(ALL, nd, one), lane);
        }
    }
    for (u32 w0 = warp * 32; w0 < p.dwords; w0 += warps * 32) {
        const u32 word = w0 + lane;
        u32 now = 0, dn = 0, dd = 0;
        if (word < p.dwords) {
            const u32 seen = p.dvisited[word];
            now = p.mask[word] & ~seen;
            dn = p.dn_mask[word] & now, dd = p.dd_mask[word] & now;
            p.dfrontier[word] = now;
            p.dfresh[word] = 0;
            if (now) p.dvisited[word] = seen | now;
            if (!p.index) count[DELEGATES] += __popc(now);
            count[DN_Q] += __popc(dn);
            count[DD_Q] += __popc(dd);
            count[DN_S] += __popc(p.dn_mask[word] & ~(seen | now));
            count[DD_S] += __popc(p.dd_mask[word] & ~(seen | now));
        }
        for (u32 todo = __ballot_sync(ALL, now); todo; todo &= todo - 1) {
            const u32 one = __ffs(todo) - 1, at = w0 + one;
            const u32 bits = __shfl_sync(ALL, now, one);
            if (bits >> lane & 1) p.dlevel[at * 32 + lane] = p.depth;
            count[DN_FORWARD] += enqueue(p, DN_ROWS, at, __shfl_sync(ALL, dn, one), lane);
            count[DD_FORWARD] += enqueue(p, DD_ROWS, at, __shfl_sync(ALL, dd, one), lane);
        }
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
