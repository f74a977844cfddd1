/* Method `fast` one level a launch, for a part that is searched between domains.
 *
 * A level of a part: `outer` puts what its frontier finds in other parts into boxes;
 * `level` searches the inner graph by queue, by marking or by a pull, as search.cu does, and
 * tells which delegates this part found; instead of `outer`, before it, `ask` and `answer`
 * may come after it, where few vertices are left; `take_mask` and `take_items` admit what all parts
 * and other parts found; `settle` counts, and chooses how the next level is searched.  The
 * direction is this part's own affair; a part whose frontier is empty goes on, as the next
 * may come from outside.
 *
 * Data: between.cuh, search.cuh.  Sources: those of search.cu; Pan, Pearce, Owens 2018,
 * Sections IV and V (delegates and normal vertices between parts).
 *
 * variants: OFFSET=u32,u64 COUNT=0,1 IN_IDS=1 VERTEX=int,i64
 */
#include "between.cuh"
#include "between_outer.cuh"
#include "gather.cuh"
#include "mark.cuh"
#include "pull.cuh"
#include "pull_last.cuh"
#include "results.cuh"

INLINE void take(State &s, const Mail *mail) {
    const u64 size = __ldcg(&mail->size);
    s.count = (u32)size, s.hubs = (u32)__ldcg(&mail->hubs);
    s.edges = sizeof(OFFSET) == 8 ? __ldcg(&mail->edges) : size >> 32;
}

/* What a cooperative launch begins with: the other counters are clean for the next one. */
INLINE void clear_other(const Params &p) {
    if (blockIdx.x) return;
    for (u32 i = threadIdx.x; i < sizeof(Control) / 8; i += THREADS) ((u64 *)p.other)[i] = 0;
}

/* Clean bitmaps, after a search that did not come to its end. */
extern "C" __global__ void __launch_bounds__(THREADS) clean_up(const __grid_constant__ Between b) {
    clean(b.own, b.own.snapshot, b.own.by_first);
}

/* The root, where this part knows it; one block. */
extern "C" __global__ void __launch_bounds__(THREADS) begin(const __grid_constant__ Between b) {
    const Params &p = b.own;
    if (threadIdx.x) return;
    const u32 root = b.root;
    const bool some = root != NONE;
    State s = {PUSHING, 0, 0, 0, 0, 0, 0, 0, 0, 1, START};
    Mail *mail = b.mail;
    mail[0].size = mail[0].edges = mail[0].hubs = 0;
    mail[1] = mail[2] = mail[0];
    b.idle[0] = b.idle[1] = 0, *b.filled = 1;
    if (some) {
        const OFFSET row = p.row[root];
        const u32 degree = (u32)(p.row[root + 1] - row);
        p.queue[0][0] = make_uint4(root, 0, (u32)row, degree);
        p.hub_queue[0][0] = root;
        mail[0].size = (u64)degree << 32 | 1, mail[0].edges = degree, mail[0].hubs = root < p.hubs;
        atomicOr(p.snapshot + (root >> 5), 1u << (root & 31));
        p.direct[root] = 0;
        if (p.parents) p.parent[root] = root;
    }
    *p.state = s;
}

extern "C" __global__ void __launch_bounds__(THREADS) outer(const __grid_constant__ Between b) {
    const State s = *b.own.state;
    push_outer(b, s, (threadIdx.x >> 5) * gridDim.x + blockIdx.x, gridDim.x * WARPS,
               threadIdx.x & 31);
}

extern "C" __global__ void __launch_bounds__(THREADS) ask(const __grid_constant__ Between b) {
    const State s = *b.own.state;
    ask_outer(b, s, (threadIdx.x >> 5) * gridDim.x + blockIdx.x, gridDim.x * WARPS,
              threadIdx.x & 31);
}

extern "C" __global__ void __launch_bounds__(THREADS) answer(const __grid_constant__ Between b) {
    answer_outer(b, *b.own.state, threadIdx.x & 31);
}

/* One level of the inner graph. */
extern "C" __global__ void __launch_bounds__(THREADS, 1) level(const __grid_constant__ Between b) {
    extern __shared__ uint4 dynamic[];
    u32 *room = (u32 *)dynamic;
    const Params &p = b.own;
    Barrier *barrier = &p.control->barrier;
    const u32 lane = threadIdx.x & 31, grid = gridDim.x, warps = grid * WARPS;
    const u32 warp = (threadIdx.x >> 5) * grid + blockIdx.x; /* neighbours on other SMs */
    const bool lead = blockIdx.x == 0 && threadIdx.x == 0;
    State s = *p.state;
    const u32 now = s.depth & 1, to = now ^ 1;
    u32 turn = 0;
    u64 *checks = COUNT && s.depth + 1 < p.rows ? p.counts + s.depth + 1 : 0;
    clear_other(p);
    if (s.phase == GATHERING) {
        u32 *visited = newest(p, s);
        gather(p, visited - p.stride, visited, Queue{p.queue[now], p.hub_queue[now], b.mail + 2},
               warp, warps, lane);
        grid_sum(barrier, turn, 0);
        take(s, b.mail + 2);
        flush(p, s.k, s.base);
        grid_sum(barrier, turn, 0);
        s.base = s.k = s.tails = 0, s.phase = PUSHING;
    }
    const u32 *visited = newest(p, s);
    if (s.phase == PUSHING && !p.push_only && (s.edges >= p.pull_edges || p.pull_only))
        s.phase = PULLING, s.base = s.depth, s.k = 0;
    if (s.phase == PUSHING && (p.push_only || s.edges < p.mark_edges)) {
        push(p, p.queue[now], s.count, (u32)s.edges,
             Claim{p, p.snapshot, s.depth + 1,
                   Queue{p.queue[to], p.hub_queue[to], b.mail + to}},
             warp, warps, lane);
        if (COUNT && lead && checks) *checks = s.edges;
        s.step = GRID_PUSH;
    } else if (s.phase == PUSHING) {
        mark(p, p.queue[now], s.count, p.hub_queue[now], s.hubs,
             Marks{p, visited, p.snapshot + p.stride}, room, warp, warps, lane);
        if (COUNT && lead && checks) *checks = s.edges;
        s.base = s.depth, s.k = 1, s.phase = PULLING, s.step = MARK_PUSH;
    } else {
        if (s.k + 2 > SNAPSHOTS) {
            flush(p, s.k, s.base);
            grid_sum(barrier, turn, 0);
            s.base = s.depth, s.k = 0;
            visited = p.snapshot;
        }
        u32 *fresh = p.snapshot + (s.k + 1) * p.stride;
        /* few unvisited vertices do not pay for the copying of hub bits */
        const u32 hub_words = s.left >= p.active / 8 ? p.hub_words : 0;
        Last one;
        bool kept = false;
        if (few(p, s.left))
            pull_last(p, visited, fresh, visited, room, one, kept, warp, warps, lane, checks,
                      NoMore());
        else
            pull(p, visited, fresh, visited, room, hub_words, warp, warps, lane, checks, Nothing());
        s.step = few(p, s.left) ? PULL_LAST : PULL;
        s.tails += s.step == PULL_LAST, s.k++;
    }
    grid_sum(barrier, turn, 0);
    s.depth++;
    const u32 *found = newest(p, s);
    for (u32 w = blockIdx.x * THREADS + threadIdx.x; w < b.dwords; w += grid * THREADS)
        b.found[w] = __ldcg(found + w) & ~b.known[w];
    if (lead) *p.state = s;
}

/* Delegates that other parts found. */
extern "C" __global__ void __launch_bounds__(THREADS) take_mask(const __grid_constant__ Between b) {
    const Params &p = b.own;
    const State s = *p.state;
    const u32 lane = threadIdx.x & 31, warps = gridDim.x * WARPS;
    const u32 *now = newest(p, s);
    for (u32 w0 = ((threadIdx.x >> 5) * gridDim.x + blockIdx.x) * 32; w0 < b.dwords;
         w0 += warps * 32) {
        const u32 w = w0 + lane;
        u32 open = 0;
        if (w < b.dwords) {
            for (u32 k = 0; k < b.masks; k++) open |= b.mask[k * b.dwords + w];
            open &= ~now[w];
        }
        while (__any_sync(ALL, open)) {
            const u32 c = open ? w * 32 + __ffs(open) - 1 : 0;
            if (admit(b, s, open != 0, c, lane) && p.parents) p.parent[c] = unknown(b);
            open &= open - 1;
        }
    }
}

/* Vertices of this part that other parts found. */
extern "C" __global__ void __launch_bounds__(THREADS) take_items(const __grid_constant__ Between b) {
    const Params &p = b.own;
    const State s = *p.state;
    const u32 lane = threadIdx.x & 31;
    const u64 count = items_of(b);
    for (u64 i = (u64)blockIdx.x * THREADS + threadIdx.x; i - lane < count;
         i += (u64)gridDim.x * THREADS) {
        const bool ok = i < count;
        const u64 item = ok ? __ldcg(b.items + i) : 0;
        const u32 v = ok ? b.item_place[item >> 32] : 0;
        const bool mine = admit(b, s, ok, v, lane);
        if (!p.parents) continue;
        const u32 slot = take_place(mine, b.filled);
        if (mine) name_parent(b, v, slot, (u32)item);
    }
}

/* This thread's share of what is counted between two levels. */
INLINE void count_words(const Between &b, const State &s, u64 *count) {
    const Params &p = b.own;
    const bool pulled = s.phase == PULLING;
    const u32 *now = newest(p, s), *before = pulled ? now - p.stride : now;
    for (u32 w = blockIdx.x * THREADS + threadIdx.x; w < p.words; w += gridDim.x * THREADS) {
        const u32 seen = now[w], fresh = seen & ~before[w], outer = b.has_outer[w];
        count[LEFT] += __popc(~seen);
        count[OPEN_OUTER] += __popc(~seen & outer);
        if (w < b.dwords) {
            b.known[w] = seen;
            count[DELEGATES] += __popc(fresh);
        } else count[NORMALS] += __popc(fresh);
        count[OUTER] += __popc(fresh & outer);
    }
    if (pulled) return;
    const u32 at = s.depth & 1, size = (u32)__ldcg(&b.mail[at].size), all = size + b.idle[at];
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < all; i += gridDim.x * THREADS) {
        const u32 v = queued(p, at, size, i);
        count[v < b.normals ? DELEGATES : NORMALS]++;
        count[OUTER] += bit_of(b.has_outer, v);
    }
}

/* Whether the levels that follow a pull are searched by queue again. */
INLINE bool turns(const Params &p, const State &s, u64 found) {
    if (p.pull_only || s.step == MARK_PUSH) return false;
    if (!found) return true;
    if (s.step == PULL_LAST) return s.tails >= MOST_TAILS && found <= SMALL;
    return found * 8 < s.left && !few(p, s.left);
}

/* What was found, here and elsewhere, becomes the frontier; `counts` is zero before. */
extern "C" __global__ void __launch_bounds__(THREADS) settle(const __grid_constant__ Between b) {
    const Params &p = b.own;
    State s = *p.state;
    const u32 lane = threadIdx.x & 31;
    u32 turn = 0;
    u64 count[COUNTS];
    clear_other(p);
#pragma unroll
    for (int k = 0; k < COUNTS; k++) count[k] = 0;
    count_words(b, s, count);
    if (p.targets) count[MISSED] = missed(p, newest(p, s));
    if (blockIdx.x == 0 && threadIdx.x == 0) count[MISSED] += b.lost;
    count[FOUND] = count[NORMALS] + count[DELEGATES];
#pragma unroll
    for (int k = 0; k < CHECKS; k++) {
        if (!__any_sync(ALL, count[k] != 0)) continue;
        const u64 sum = warp_sum(count[k]);
        if (lane == 0) atomicAdd(b.counts + k, sum);
    }
    grid_sum(&p.control->barrier, turn, 0);
    if (blockIdx.x || threadIdx.x) return;
    const u64 found = __ldcg(b.counts + FOUND);
    s.left = (u32)__ldcg(b.counts + LEFT);
    if (s.phase == PUSHING) take(s, b.mail + (s.depth & 1));
    else s.phase = turns(p, s, found) ? GATHERING : PULLING;
    const u32 then = s.depth & 1 ^ 1;
    Mail *next = b.mail + then, *gathered = b.mail + 2;
    b.idle[then] = 0;
    next->size = next->edges = next->hubs = 0;
    gathered->size = gathered->edges = gathered->hubs = 0;
    *p.state = s;
}

/* The parents of delegates that this part found. */
extern "C" __global__ void __launch_bounds__(THREADS) tell_parents(const __grid_constant__ Between b) {
    const Params &p = b.own;
    const u32 *now = newest(p, *p.state);
    for (u32 c = blockIdx.x * THREADS + threadIdx.x; c < b.d; c += gridDim.x * THREADS) {
        VERTEX parent = -1;
        if (bit_of(now, c)) {
            const bool first = bit_of(p.by_first, c);
            const u32 at = first ? 0 : p.parent[c];
            if (first || at != unknown(b)) parent = (VERTEX)(first ? p.first_id[c] : p.vertices[at]);
        }
        b.delegate_parents[c] = parent;
    }
}

/* Those of this part's own vertices that other parts found; then the search is over. */
extern "C" __global__ void __launch_bounds__(THREADS) take_parents(const __grid_constant__ Between b) {
    const Params &p = b.own;
    const u32 lane = threadIdx.x & 31, *now = newest(p, *p.state);
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i - lane < b.owned_count;
         i += gridDim.x * THREADS) {
        const u32 c = i < b.owned_count ? b.owned[i] : 0;
        const bool mine = i < b.owned_count && bit_of(now, c) && !bit_of(p.by_first, c) &&
                          p.parent[c] == unknown(b);
        const u32 slot = take_place(mine, b.filled);
        if (mine) name_parent(b, c, slot, (u32)b.delegate_parents[c]);
    }
}

/* The results kernel of results.cu follows; one block. */
extern "C" __global__ void __launch_bounds__(THREADS) end(const __grid_constant__ Between b) {
    if (threadIdx.x == 0) b.own.state->phase = DONE;
}
