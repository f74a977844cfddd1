/* The visits of a part, arrivals from other parts, and the step to the next level, which
 * also measures the work in both directions (the previsit of the paper).
 *
 * Source: Pan, Pearce, Owens 2018, Section IV; data: part.cuh.
 */
#ifndef DISTBFS_PAN_VISITS_CUH
#define DISTBFS_PAN_VISITS_CUH
#include "part.cuh"
#include "pull.cuh"
#include "push.cuh"

/* Finds of a pull, normal vertices: columns are delegates. */
struct NormalsFound {
    const Params &p;
    __device__ __forceinline__ void found(u32 v, u32 c) { discover(p, v, p.delegate_ids[c]); }
    __device__ __forceinline__ void found_word(u32 word, u32 bits) { red_or(p.fresh + word, bits); }
    /* those of v … v + 3 that are in `hit` */
    __device__ __forceinline__ void found_first(u32 v, u32 hit, const u32 *c) {
        if (!p.parent || !hit) return;
        u32 at[4];
        if (v + 4 <= p.active) { /* mutant: + 4 <= -> < : test_addresses */
            const uint4 x = load_once4(p.vertices + v);
            at[0] = x.x, at[1] = x.y, at[2] = x.z, at[3] = x.w;
        } else
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (hit >> j & 1) at[j] = p.vertices[v + j];
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (hit >> j & 1) p.parent[at[j]] = p.delegate_ids[c[j]];
    }
};

/* Delegates: columns are delegates, or normal vertices. */
template <bool FROM_NORMAL> struct DelegatesFound {
    const Params &p;
    __device__ __forceinline__ VERTEX id(u32 u) {
        return FROM_NORMAL ? id_of(p, u) : p.delegate_ids[u];
    }
    __device__ __forceinline__ void found(u32 c, u32 u) { discover_delegate(p, c, id(u)); }
    __device__ __forceinline__ void found_word(u32 word, u32 bits) { red_or(p.dfresh + word, bits); }
    __device__ __forceinline__ void found_first(u32 c, u32 hit, const u32 *u) {
        if (!p.parent) return;
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (hit >> j & 1) p.dparent[c + j] = id(u[j]);
    }
};

/* Reset the search; the root is `fresh`, so that the next level is measured from it. */
INLINE void begin_search(const Params &p) {
    const u32 number = p.number, delegate = p.delegate;
    const u32 last = p.active >> 5, tail = ALL << (p.active & 31);
    for (u32 w = thread_of<u32>(THREADS); w < p.words; w += threads_of<u32>(THREADS)) {
        p.visited[w] = w < last ? 0u : w == last ? tail : ALL;
        p.fresh[w] = w == number >> 5 && number != NONE ? 1u << (number & 31) : 0;
    }
    for (u32 w = thread_of<u32>(THREADS); w < p.dwords; w += threads_of<u32>(THREADS)) {
        p.dvisited[w] = 0;
        p.dfresh[w] = w == delegate >> 5 && delegate != NONE ? 1u << (delegate & 31) : 0;
    }
    if (p.parent)
        for (u32 c = thread_of<u32>(THREADS); c < p.d; c += threads_of<u32>(THREADS))
            p.dparent[c] = c == delegate ? p.delegate_ids[c] : (VERTEX)-1;
    if (p.parts > 1)
        for (u64 w = thread_of<u32>(THREADS); w < p.sent_words * p.parts; w += threads_of<u32>(THREADS)) p.sent[w] = 0;
    if (thread_of<u32>(THREADS) == 0 && number != NONE && p.parent)
        p.parent[p.vertices[number]] = id_of(p, number);
}

/* Forward visits.  NN: of columns of nn, which name a part where there are several. */
template <class NN> INLINE void forward_nn(const Params &p) {
    const Rows &rows = p.rows[NN_ROWS];
    const NN *columns = rows.to<NN>();
    Post post(p);
    begin_checks(p);
    by_bits(rows, p.words, [&](u32 w) { return p.front[w] & p.nn_mask[w]; }, [&](const Edge *edges) {
        u64 column[EACH];
        u32 known[EACH];
        u32 *sent[EACH];
        bool send = false;
#pragma unroll
        for (int j = 0; j < EACH; j++) column[j] = edges[j].valid ? (u64)columns[edges[j].at] : 0;
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const u32 part = sizeof(NN) == 8 ? (u32)(column[j] >> 32) : p.index, v = (u32)column[j];
            const bool away = edges[j].valid && part != p.index;
            sent[j] = p.sent + part * p.sent_words + (v >> 5);
            known[j] = away ? *(volatile u32 *)sent[j] : ALL;
            add_checks(p, edges[j].valid);
            if (edges[j].valid && !away) discover(p, v, id_of(p, edges[j].u));
        }
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const u32 bit = 1u << ((u32)column[j] & 31);
            if (!(known[j] & bit)) known[j] = atomicOr(sent[j], bit);
            known[j] = !(known[j] & bit);
            send |= known[j];
        }
        if (!__any_sync(ALL, send)) return;
#pragma unroll
        for (int j = 0; j < EACH; j++)
            post.add(known[j], (u32)(column[j] >> 32), item_of(p, (u32)column[j], edges[j].u));
    });
    post.finish();
    tell_checks(p, NN_ROWS);
}

/* Edges to vertices of this part: found(column, source row). */
template <class Found> struct Take {
    const Params &p;
    const u32 *columns;
    Found found;
    __device__ __forceinline__ void operator()(const Edge *edges) const {
        u32 column[EACH];
#pragma unroll
        for (int j = 0; j < EACH; j++)
            column[j] = edges[j].valid ? load_once(columns + edges[j].at) : 0;
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            if (!edges[j].valid) continue;
            add_checks(p, 1);
            found(column[j], edges[j].u);
        }
    }
};
template <class Found> INLINE Take<Found> taking(const Params &p, const Rows &rows, Found found) {
    return Take<Found>{p, rows.to<u32>(), found};
}

INLINE void forward_nd(const Params &p) {
    const Rows &rows = p.rows[ND_ROWS];
    begin_checks(p);
    by_bits(rows, p.words, [&](u32 w) { return p.front[w] & p.nd_mask[w]; },
            taking(p, rows, [&](u32 c, u32 u) { discover_delegate(p, c, id_of(p, u)); }));
    tell_checks(p, ND_ROWS);
}

/* By the edges of their queue: found(column, source delegate). */
template <class Found>
INLINE void forward_queued(const Params &p, Graph graph, const uint4 *queue, u64 size, Found found) {
    const Rows &rows = p.rows[graph];
    begin_checks(p);
    by_edges(rows, queue, (u32)(size & ENTRIES), size >> COUNT_BITS, taking(p, rows, found));
    tell_checks(p, graph);
}

INLINE void forward_dn(const Params &p) {
    forward_queued(p, DN_ROWS, p.dn_queue, p.size[BOX_STEP],
                   /* mutant: [c] -> [0] : test_part_kernels::test_directions */
                   [&](u32 v, u32 c) { discover(p, v, p.delegate_ids[c]); });
}

INLINE void forward_dd(const Params &p) {
    forward_queued(p, DD_ROWS, p.dd_queue, *p.size,
                   [&](u32 c, u32 u) { discover_delegate(p, c, p.delegate_ids[u]); });
}

/* The delegates of 32 words with the edges before each; *size is zero at first. */
INLINE void enqueue(const OFFSET *offsets, uint4 *queue, u64 *size, u32 w0, u32 bits, u32 lane) {
    u64 edges = 0, at = 0;
    const u32 total = __reduce_add_sync(ALL, __popc(bits)), words = __ballot_sync(ALL, bits);
    for (u32 todo = words; todo; todo &= todo - 1) {
        const u32 one = __ffs(todo) - 1, word = __shfl_sync(ALL, bits, one);
        const u32 c = (w0 + one) * 32 + lane;
        if (word >> lane & 1) edges += offsets[c + 1] - offsets[c];
    }
    edges = warp_sum(edges);
    if (lane == 0) at = atomicAdd(size, edges << COUNT_BITS | total);
    at = __shfl_sync(ALL, at, 0);
    u64 before = at >> COUNT_BITS;
    u32 place = (u32)(at & ENTRIES);
    for (u32 todo = words; todo; todo &= todo - 1) {
        const u32 one = __ffs(todo) - 1, word = __shfl_sync(ALL, bits, one);
        const u32 c = (w0 + one) * 32 + lane;
        const bool here = word >> lane & 1;
        const u32 degree = here ? (u32)(offsets[c + 1] - offsets[c]) : 0;
        const u32 sum = warp_scan(degree, lane);
        const u64 first = before + sum - degree;
        if (here)
            queue[place + __popc(word & lanes_below(lane))] =
                make_uint4(c, (u32)first, (u32)(first >> 32), degree);
        before += __shfl_sync(ALL, sum, 31), place += __popc(word);
    }
}

/* The frontier's delegates with edges in a subgraph. */
INLINE void form_queue(const Params &p, Graph graph, const u32 *mask, uint4 *queue, u64 *size) {
    const u32 lane = lane_id(), span = span_of(p.dwords);
    for (u32 w0 = warp_of() * span; w0 < p.dwords; w0 += all_warps() * span) {
        const u32 word = w0 + lane;
        const u32 bits = lane < span && word < p.dwords ? p.dfront[word] & mask[word] : 0;
        if (__any_sync(ALL, bits)) enqueue(p.rows[graph].offsets, queue, size, w0, bits, lane);
    }
}
INLINE void form_dd_queue(const Params &p) {
    form_queue(p, DD_ROWS, p.dd_mask, p.dd_queue, p.size);
}
INLINE void form_dn_queue(const Params &p) {
    form_queue(p, DN_ROWS, p.dn_mask, p.dn_queue, p.size + BOX_STEP);
}

/* Backward visits, over the rows of the reverse subgraph. */
INLINE void backward_dn(const Params &p) {
    begin_checks(p);
    pull(
        p.rows[ND_ROWS], p.nd_first, p.dvisited, p.words,
        [&](u32 w) { return p.nd_mask[w] & ~p.visited[w] & ~*(volatile u32 *)(p.fresh + w); },
        NormalsFound{p});
    tell_checks(p, DN_ROWS);
}

INLINE void backward_nd(const Params &p) {
    begin_checks(p);
    pull(
        /* mutant: visited -> nd_mask : test_part_kernels::test_directions */
        p.rows[DN_ROWS], 0, p.visited, p.dwords,
        [&](u32 w) { return p.dn_mask[w] & ~p.dvisited[w] & ~*(volatile u32 *)(p.dfresh + w); },
        DelegatesFound<true>{p});
    tell_checks(p, ND_ROWS);
}

INLINE void backward_dd(const Params &p) {
    begin_checks(p);
    pull(
        p.rows[DD_ROWS], p.dd_first, p.dvisited, p.dwords,
        [&](u32 w) { return p.dd_mask[w] & ~p.dvisited[w] & ~*(volatile u32 *)(p.dfresh + w); },
        DelegatesFound<false>{p});
    tell_checks(p, DD_ROWS);
}

/* Vertices of this part that parts of a rank found. */
INLINE void take_items(const Params &p) {
    const u64 count = p.item_count;
    for (u64 i = thread_of<u32>(THREADS); i < count; i += (u64)threads_of<u32>(THREADS) * EACH) {
        u64 item[EACH];
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const u64 k = i + (u64)j * threads_of<u32>(THREADS);
            item[j] = k < count ? __ldcg(p.items + k) : ~0ull;
        }
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (item[j] != ~0ull) discover(p, (u32)(item[j] >> 32), parent_of(p, item[j]));
    }
}

/* The vertices of 32 words, a word a lane, found at a level: sets it, and adds their
 * edges in two subgraphs to e0 and e1, a share to each lane.
 * places: [32 words] where a level is kept, or null; bits0, bits1: those with edges */
INLINE void label(int *level, const u32 *places, int depth, const OFFSET *offsets0,
                  const OFFSET *offsets1, u32 w0, u32 bits, u32 bits0, u32 bits1, u64 &e0, u64 &e1) {
    const u32 lane = lane_id(), some = __ballot_sync(ALL, bits);
#pragma unroll 1
    for (u32 i = 0; i < 32; i += EACH) {
        if (!(some >> i & ((1u << EACH) - 1))) continue;
        OFFSET from0[EACH], to0[EACH], from1[EACH], to1[EACH];
        u32 at[EACH];
        bool here[EACH];
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const u32 v = (w0 + i + j) * 32 + lane;
            here[j] = __shfl_sync(ALL, bits, i + j) >> lane & 1;
            const bool in0 = __shfl_sync(ALL, bits0, i + j) >> lane & 1;
            const bool in1 = __shfl_sync(ALL, bits1, i + j) >> lane & 1;
            at[j] = here[j] && places ? places[v] : v;
            from0[j] = in0 ? offsets0[v] : 0, to0[j] = in0 ? offsets0[v + 1] : 0;
            from1[j] = in1 ? offsets1[v] : 0, to1[j] = in1 ? offsets1[v + 1] : 0;
        }
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            if (here[j]) level[at[j]] = depth;
            e0 += to0[j] - from0[j], e1 += to1[j] - from1[j];
        }
    }
}

/* The vertices found become the frontier, with their level, and the next level is measured;
 * p.work is zero before. */
INLINE void next_level(const Params &p) {
    const u32 lane = lane_id();
    u64 count[COUNTS];
#pragma unroll
    for (int k = 0; k < COUNTS; k++) count[k] = 0;
    const u32 span = span_of(p.words), dspan = span_of(p.dwords);
    for (u32 w0 = warp_of() * span; w0 < p.words; w0 += all_warps() * span) {
        const u32 word = w0 + lane;
        u32 now = 0, nn = 0, nd = 0;
        if (lane < span && word < p.words) {
            const u32 seen = p.visited[word], has_nd = p.nd_mask[word];
            now = p.fresh[word] & ~seen;
            nn = p.nn_mask[word] & now, nd = has_nd & now;
            p.front[word] = now;
            if (now) p.visited[word] = seen | now, p.fresh[word] = 0;
            count[NORMALS] += __popc(now);
            count[ND_Q] += __popc(nd);
            /* mutant: (seen | now) -> seen : test_the_device_counts_work_as_the_host_does */
            count[ND_S] += __popc(has_nd & ~(seen | now));
            if (p.targets) count[TARGETS] += __popc(p.targets[word] & ~(seen | now));
        }
        if (!__any_sync(ALL, now)) continue;
        label(p.level, p.vertices, p.depth, p.rows[NN_ROWS].offsets, p.rows[ND_ROWS].offsets, w0, now,
              nn, nd, count[NN_EDGES], count[ND_FORWARD]);
    }
    for (u32 w0 = warp_of() * dspan; w0 < p.dwords; w0 += all_warps() * dspan) {
        const u32 word = w0 + lane;
        u32 now = 0, dn = 0, dd = 0;
        if (lane < dspan && word < p.dwords) {
            const u32 seen = p.dvisited[word], has_dn = p.dn_mask[word], has_dd = p.dd_mask[word];
            now = p.mask[word] & ~seen;
            dn = has_dn & now, dd = has_dd & now;
            p.dfront[word] = now;
            p.dfresh[word] = 0;
            if (now) p.dvisited[word] = seen | now;
            if (!p.index) count[DELEGATES] += __popc(now);
            count[DN_Q] += __popc(dn);
            count[DD_Q] += __popc(dd);
            count[DN_S] += __popc(has_dn & ~(seen | now));
            count[DD_S] += __popc(has_dd & ~(seen | now));
            /* mutant: (p.dtargets) -> (p.dtargets && !p.targets)
             * : test_part_kernels::test_searches_that_end_early */
            if (p.dtargets) count[TARGETS] += __popc(p.dtargets[word] & ~(seen | now));
        }
        if (!__any_sync(ALL, now)) continue;
        label(p.dlevel, 0, p.depth, p.rows[DN_ROWS].offsets, p.rows[DD_ROWS].offsets, w0, now, dn, dd,
              count[DN_FORWARD], count[DD_FORWARD]);
    }
    count[DD_U] = count[DD_S], count[DN_U] = count[ND_S], count[ND_U] = count[DN_S];
    add_to<COUNTS>(p.work, count);
}

/* Levels and parents of normal vertices that were not found. */
INLINE void finish_normals(const Params &p) {
    for (u32 w = thread_of<u32>(THREADS); w < p.words; w += threads_of<u32>(THREADS)) {
        u32 open = ~p.visited[w];
        for (; open; open &= open - 1) {
            const u32 at = p.vertices[w * 32 + __ffs(open) - 1];
            p.level[at] = -1;
            if (p.parent) p.parent[at] = -1;
        }
    }
}

/* Of the delegates that this part owns. */
INLINE void finish_delegates(const Params &p) {
    for (u32 i = thread_of<u32>(THREADS); i < p.owned_count; i += threads_of<u32>(THREADS)) {
        const u32 c = p.owned[i], at = p.places[i];
        const bool found = bit_of(p.dvisited, c);
        p.level[at] = found ? p.dlevel[c] : -1;
        if (p.parent) p.parent[at] = found ? p.dparent[c] : (VERTEX)-1;
    }
}
#endif
