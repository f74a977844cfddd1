/* One level of a search over parts whose devices see each other's memory, in kernels
 * that are captured once: which of them has work is decided on the device.
 *
 * Order: visits (nn, then dn; beside them dd, then nd), tell_parts, combine, step_level,
 * decide.
 * Vertices of other parts go straight into the inbox of their owner, or, where many are
 * expected and no parents are asked for, the owner reads the bitmap of what was found for
 * it.  Every part ORs one slice of the masks of all and writes it to all.  Sums of the
 * work are made by each part from what all parts wrote to it, so that all decide alike.
 * Source: Pan, Pearce, Owens 2018, Sections IV and V; data: part.cuh, peers.cuh.
 *
 * variants: OFFSET=u32 VERTEX=int NN=u64 COUNT=0 | OFFSET=u32 VERTEX=int NN=u64 COUNT=1 | OFFSET=u32 VERTEX=i64 NN=u64 COUNT=0 | OFFSET=u64 VERTEX=i64 NN=u64 COUNT=1 | OFFSET=u32 VERTEX=int NN=u32 COUNT=0
 */
typedef long long i64;
#include "part_visits.cuh"
#include "peers.cuh"

/* A root without neighbours is in no row: it is set apart. */
extern "C" __global__ void __launch_bounds__(THREADS) open_search(const Level l) {
    const Params &p = l.part;
    State *s = l.state;
    const u32 number = l.local == NONE ? NONE : l.numbers[l.local];
    const bool alone = number != NONE && number >= p.active;
    if (thread_of() == 0) {
        if (s->alone) {
            p.level[s->alone - 1] = -1;
            if (p.parent) p.parent[s->alone - 1] = -1;
        }
        s->alone = alone ? l.local + 1 : 0;
        s->decided = s->depth = s->done = s->failed = s->masks = s->normals = 0;
        s->tickets[0] = s->tickets[1] = 0;
        s->pull_dd = s->pull_dn = s->pull_nd = l.forced == 2;
        s->time[5] = nanoseconds();
    }
    if (thread_of() < COUNTS) p.work[thread_of()] = 0;
    begin_search(p, alone ? NONE : number, p.delegate);
}

extern "C" __global__ void __launch_bounds__(THREADS) visit_nn(const Level l) {
    if (!l.state->done && l.state->forward[NN_ROWS]) forward_nn(l.part, !l.state->dense);
}

extern "C" __global__ void __launch_bounds__(THREADS, PULL_BLOCKS) visit_dn(const Level l) {
    if (l.state->done) return;
    if (l.state->pull_dn) backward_dn(l.part);
    else if (l.state->forward[DN_ROWS]) forward_dn(l.part);
}

extern "C" __global__ void __launch_bounds__(THREADS) form_queues(const Level l) {
    const State *s = l.state;
    if (s->done) return;
    if (!s->pull_dd && s->forward[DD_ROWS]) form_dd_queue(l.part);
    if (!s->pull_dn && s->forward[DN_ROWS]) form_dn_queue(l.part);
}

extern "C" __global__ void __launch_bounds__(THREADS, PULL_BLOCKS) visit_dd(const Level l) {
    if (l.state->done) return;
    if (l.state->pull_dd) backward_dd(l.part);
    else if (l.state->forward[DD_ROWS]) forward_dd(l.part);
}

extern "C" __global__ void __launch_bounds__(THREADS, PULL_BLOCKS) visit_nd(const Level l) {
    if (l.state->done) return;
    if (l.state->pull_nd) backward_nd(l.part);
    else if (l.state->forward[ND_ROWS]) forward_nd(l.part);
}

/* One block: the others learn that the visits are over and how many items came. */
extern "C" __global__ void __launch_bounds__(THREADS) tell_parts(const Level l) {
    const Params &p = l.part;
    State *s = l.state;
    if (s->done) return;
    if (threadIdx.x == 0) s->time[1] = nanoseconds(), s->posted = 0;
    __syncthreads();
    for (u32 t = threadIdx.x; t < p.parts; t += THREADS) {
        const u64 count = __ldcg(p.box_size + t * BOX_STEP);
        at_part<u64>(l, t, l.arrived_at)[p.index] = count;
        p.box_size[t * BOX_STEP] = 0;
        if (count) atomicAdd(&s->posted, count);
    }
    if (threadIdx.x < COUNTS) p.work[threadIdx.x] = 0;
    if (threadIdx.x < 4) s->checks[threadIdx.x] = p.checks[threadIdx.x], p.checks[threadIdx.x] = 0;
    if (threadIdx.x < 2) p.size[threadIdx.x * BOX_STEP] = 0;
    __syncthreads();
    if (s->masks || s->normals) signal_all(l, VISITED, s->turn);
}

/* What other parts found of this one, as bitmaps in their memory. */
INLINE void take_bitmaps(const Level &l) {
    const Params &p = l.part;
    for (u32 w = thread_of(); w < p.words; w += all_threads()) {
        u32 found = 0;
        for (u32 t = 0; t < p.parts; t++)
            if (t != p.index && w < p.sent_words)
                found |= __ldcg(at_part<u32>(l, t, l.sent_at) + p.index * p.sent_words + w);
        found &= ~p.visited[w];
        if (found) p.fresh[w] |= found;
    }
}

/* The OR of this part's slice of all masks, written to all. */
INLINE void combine_masks(const Level &l) {
    const Params &p = l.part;
    const u32 all = (p.dwords + 3) / 4, each = (all + p.parts - 1) / p.parts;
    const u32 from = p.index * each, to = from + each < all ? from + each : all;
    for (u32 w = from + thread_of(); w < to; w += all_threads()) {
        uint4 x = {0, 0, 0, 0};
        for (u32 k = 0; k < p.parts; k++) {
            const u32 t = (p.index + k) % p.parts;
            const uint4 y = __ldcg(at_part<uint4>(l, t, l.dfresh_at) + w);
            x.x |= y.x, x.y |= y.y, x.z |= y.z, x.w |= y.w;
        }
        for (u32 k = 0; k < p.parts; k++)
            at_part<uint4>(l, (p.index + k) % p.parts, l.mask_at)[w] = x;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) combine(const Level l) {
    const Params &p = l.part;
    State *s = l.state;
    const u64 masks = s->masks, normals = s->normals, turn = s->turn;
    if (s->done || !(masks || normals) || !wait_all(l, VISITED, turn)) return;
    if (thread_of() == 0) s->time[2] = nanoseconds();
    if (masks) combine_masks(l);
    if (normals && s->dense) take_bitmaps(l);
    else if (normals)
        for (u32 k = 1; k < p.parts; k++) {
            const u32 t = (p.index + k) % p.parts;
            const u64 count = __ldcg(at_part<u64>(l, p.index, l.arrived_at) + t);
            take_items(p, l.inbox + l.inbox_start[t], count, t % p.ranks);
        }
    if (masks && last_block(s->tickets)) signal_all(l, COMBINED, turn);
}

/* The step to the next level; the others learn what it would cost here. */
extern "C" __global__ void __launch_bounds__(THREADS, STEP_BLOCKS) step_level(const Level l) {
    const Params &p = l.part;
    State *s = l.state;
    const u64 masks = s->masks, turn = s->turn;
    if (s->done || (masks && !wait_all(l, COMBINED, turn))) return;
    if (thread_of() == 0) s->time[3] = nanoseconds();
    next_level(p, masks ? at_part<u32>(l, p.index, l.mask_at) : p.dfresh, (int)s->depth);
    if (!last_block(s->tickets + 1)) return;
    for (u32 i = threadIdx.x; i < p.parts * COUNTS; i += THREADS)
        at_part<u64>(l, i / COUNTS, l.work_at)[p.index * COUNTS + i % COUNTS] =
            __ldcg(p.work + i % COUNTS);
    if (threadIdx.x < 4) {
        const u32 which[4] = {NN_EDGES, ND_FORWARD, DN_FORWARD, DD_FORWARD};
        s->forward[threadIdx.x] = __ldcg(p.work + which[threadIdx.x]);
    }
    __syncthreads();
    signal_all(l, COUNTED, turn);
}

/* Pull or push, as search/direction.py does it. work: forward, q, s, u */
INLINE u64 choose(u64 pulls, const u64 *work, const double *factors) {
    const double q = work[1], forward = work[0];
    const double backward = q ? work[3] * (q + work[2]) / q : 1e300;
    if (!pulls) return forward > factors[0] * backward;
    return !(forward < factors[1] * backward);
}

/* One block: sums, directions, and what the host is told. */
extern "C" __global__ void __launch_bounds__(32) decide(const Level l) {
    const Params &p = l.part;
    State *s = l.state;
    const bool failed = s->failed != 0;
    if (s->done && !failed) return;
    const u64 turn = s->turn;
    const bool all = !failed && wait_all(l, COUNTED, turn);
    if (all && threadIdx.x < COUNTS) {
        u64 sum = 0;
        for (u32 t = 0; t < p.parts; t++)
            sum += __ldcg(at_part<u64>(l, p.index, l.work_at) + t * COUNTS + threadIdx.x);
        s->sum[threadIdx.x] = sum;
    }
    __syncwarp();
    if (threadIdx.x) return;
    if (all) {
        const u64 *sum = s->sum;
        if (!l.forced) {
            s->pull_dd = choose(s->pull_dd, sum + DD_FORWARD, l.factors[0]);
            s->pull_dn = choose(s->pull_dn, sum + DN_FORWARD, l.factors[1]);
            s->pull_nd = choose(s->pull_nd, sum + ND_FORWARD, l.factors[2]);
        }
        s->masks = sum[DD_FORWARD] || sum[ND_FORWARD];
        s->normals = p.parts > 1 && sum[NN_EDGES];
        s->dense = sum[NN_EDGES] >= l.dense_edges;
        if (sum[NORMALS] + sum[DELEGATES]) s->depth++;
        else s->done = 1;
        s->turn = turn + 1;
        s->time[0] = s->time[5];
        s->time[4] = s->time[5] = nanoseconds();
    }
    l.told[1] = s->done;
    l.told[2] = s->failed;
    l.told[3] = s->depth;
    fence_system();
    l.told[0] = ++s->decided;
}

/* After the last level; a delegate that its owner did not find has a parent elsewhere. */
extern "C" __global__ void __launch_bounds__(THREADS) close_search(const Level l) {
    const Params &p = l.part;
    if (thread_of() == 0 && l.state->alone) {
        p.level[l.local] = 0;
        if (p.parent) p.parent[l.local] = (VERTEX)l.local * (VERTEX)p.parts + (VERTEX)p.index;
    }
    finish_normals(p);
    finish_delegates(p, [&](u32 c) {
        VERTEX parent = p.dparent[c];
        for (u32 k = 1; parent == (VERTEX)-1 && k < p.parts; k++)
            parent = __ldcg(at_part<VERTEX>(l, (p.index + k) % p.parts, l.dparent_at) + c);
        return parent;
    });
}
