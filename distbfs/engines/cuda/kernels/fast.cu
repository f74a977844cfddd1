/* Method `fast`: a whole search in one launch, with the choices made on the device.
 *
 * A cooperative grid, one block of 1,024 threads a multiprocessor, meets once a level.
 * Frontiers of few edges are pushed by block 0 alone; wider ones by queue; a push whose
 * level will be followed by a pull only marks; pulls read one bitmap of visited vertices
 * and write the next; the last vertices are found from a list; results are written from
 * the bitmaps while that list is worked on, and what is found after that is added.
 * Data: fast.cuh.  Sources: Beamer, Asanovic, Patterson 2012 (direction); Gaihre et al.
 * 2019 (XBFS, scan-free queues, decisions at run time); Yasui, Fujisawa 2015 (order).
 *
 * variants: OFFSET=u32 COUNT=0 IN_IDS=0 | OFFSET=u32 COUNT=0 IN_IDS=1 | OFFSET=u64 COUNT=0 IN_IDS=0 | OFFSET=u64 COUNT=0 IN_IDS=1 | OFFSET=u32 COUNT=1 IN_IDS=0 | OFFSET=u32 COUNT=1 IN_IDS=1 | OFFSET=u64 COUNT=1 IN_IDS=0 | OFFSET=u64 COUNT=1 IN_IDS=1
 */
#include "fast.cuh"
#include "fast_mark.cuh"
#include "fast_pull.cuh"
#include "fast_push.cuh"
#include "fast_results.cuh"
#include "fast_tail.cuh"

/* Snapshot 0 and 1 and by_first as a search begins with them. */
INLINE void prepare(const Params &p) {
    const u32 last = p.active >> 5, tail = p.active & 31 ? ALL << (p.active & 31) : 0u;
    for (u32 w = blockIdx.x * THREADS + threadIdx.x; w < p.words; w += gridDim.x * THREADS) {
        p.snapshot[w] = w < last ? 0u : w == last ? tail : ALL;
        p.snapshot[p.stride + w] = 0;
        p.by_first[w] = 0;
        p.late_bits[w] = 0;
    }
}

/* The same after results have been written, by the blocks from `first` on; snapshots 0
 * and 1 may still be read until here only where results are by id. */
INLINE void clean(const Params &p, u32 first) {
    const u32 last = p.active >> 5, tail = p.active & 31 ? ALL << (p.active & 31) : 0u;
    if (blockIdx.x < first) return;
    for (u32 w = (blockIdx.x - first) * THREADS + threadIdx.x; w < p.words;
         w += (gridDim.x - first) * THREADS) {
        p.late_bits[w] = 0;
        if (!IN_IDS) continue;
        p.snapshot[w] = w < last ? 0u : w == last ? tail : ALL;
        p.snapshot[p.stride + w] = 0;
        p.by_first[w] = 0;
    }
}

/* Levels of all snapshots become direct ones; snapshot k becomes snapshot 0. */
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
    }
}

/* Block 0 pushes while the frontier is small; returns the levels of the budget left. */
INLINE u32 push_in_block(const Params &p, State &s, u32 budget, u32 *visited, u32 lane) {
    __shared__ u64 size, edges;
    __shared__ u32 hubs;
    do {
        if (threadIdx.x == 0) size = edges = hubs = 0;
        __syncthreads();
        const u32 to = (s.depth & 1) ^ 1;
        const Queue next = {p.queue[to], p.hub_queue[to], &size, &edges, &hubs};
        push(p, p.queue[s.depth & 1], s.count, (u32)s.edges, visited, s.depth + 1, s.late, next,
             threadIdx.x >> 5, WARPS, lane);
        s.depth++;
        if (COUNT && threadIdx.x == 0 && s.depth < p.rows) p.counts[s.depth] = s.edges;
        __syncthreads();
        s.count = (u32)size;
        s.edges = sizeof(OFFSET) == 8 ? edges : size >> 32;
        s.hubs = hubs;
        __syncthreads();
    } while (--budget && s.count && s.edges <= SMALL && !(s.late == LATE && s.depth == NARROW) &&
             (s.late || p.push_only || (s.edges < p.mark_edges && s.edges < p.pull_edges)));
    return budget;
}

/* What a launch knows between two steps.  It waits in shared memory while a step runs,
 * so that the step has the registers. */
struct Run {
    State s;
    u32 turn, used, traced, budget;
};

INLINE void park(Run *parked, const Run &r) {
    __syncthreads(); /* all have read what was there */
    if (threadIdx.x == 0) *parked = r;
    __syncthreads();
}

INLINE Run unpark(const Run *parked) {
    asm volatile("" ::: "memory");
    return *parked;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) search(const Params p) {
    extern __shared__ uint4 dynamic[];
    u32 *room = (u32 *)dynamic;
    Control *c = p.control;
    const u32 lane = threadIdx.x & 31, grid = gridDim.x, warps = grid * WARPS;
    const u32 warp = (threadIdx.x >> 5) * grid + blockIdx.x; /* neighbours on other SMs */
    const u32 thread = blockIdx.x * THREADS + threadIdx.x, threads = grid * THREADS;
    const bool lead = thread == 0;
    __shared__ Run parked;
    Run r = {*p.state, 0, 0, 0, p.budget};
    State &s = r.s;
    u32 &turn = r.turn, &used = r.used, &traced = r.traced, &budget = r.budget;
    const u32 root = p.numbers[p.root];
#define NOTE(what, vertices, edge_count)                                                 \
    if (lead && p.trace && traced < p.rows) {                                            \
        u64 *t = p.trace + (u64)traced++ * 4;                                            \
        t[0] = nanoseconds(), t[1] = (u64)(what) << 32 | s.depth, t[2] = (vertices),     \
        t[3] = (edge_count);                                                             \
    }
    if (blockIdx.x == 0)
        for (u32 i = threadIdx.x; i < sizeof(Control) / 8; i += THREADS) ((u64 *)p.other)[i] = 0;
    if (s.phase == DONE) {
        if (s.dirty) {
            prepare(p);
            grid_sum(&c->barrier, turn, 0);
        }
        const bool some = root != NONE;
        s.depth = s.base = s.k = s.late = 0;
        s.phase = some ? PUSHING : FINISHING;
        s.count = some, s.hubs = root < p.hubs, s.left = p.active;
        s.edges = some ? (u64)(p.row[root + 1] - p.row[root]) : 0;
        if (lead && some) {
            p.queue[0][0] = make_uint4(root, 0, (u32)p.row[root], (u32)s.edges);
            if (root < p.hubs) p.hub_queue[0][0] = root;
            atomicOr(p.snapshot + (root >> 5), 1u << (root & 31));
            p.direct[root] = 0;
            if (p.parents) p.parent[root] = name_of(p, root);
        }
        /* others may look at the root only after a meeting; block 0 alone may at once */
        if (s.edges > SMALL || s.edges >= p.mark_edges || s.edges >= p.pull_edges || p.pull_only)
            grid_sum(&c->barrier, turn, 0);
        else __syncthreads();
    }
    NOTE(START, s.count, s.edges)
    while (s.phase == FINISHING || (s.phase != DONE && budget)) {
        u32 *visited = p.snapshot + s.k * p.stride;
        const u32 now = s.depth & 1;
        const u32 slot = used % 3 * 16, then = (used + 1) % 3 * 16;
        const bool may_pull = !s.late && !p.push_only;
        switch (s.phase) {
        case PUSHING:
            if (!s.count) {
                s.phase = s.late ? DONE : FINISHING;
            } else if (s.late == LATE && s.depth == NARROW) {
                widen(p, IN_IDS ? p.n : p.active);
                grid_sum(&c->barrier, turn, 0);
                s.late |= WIDE;
                NOTE(WIDEN, 0, 0)
            } else if (may_pull && (s.edges >= p.pull_edges || p.pull_only)) {
                s.phase = PULLING, s.base = s.depth;
            } else if (may_pull && s.edges >= p.mark_edges) {
                park(&parked, r);
                mark(p, p.queue[now], s.count, p.hub_queue[now], s.hubs, visited,
                     visited + p.stride, room, warp, warps, lane);
                r = unpark(&parked);
                grid_sum(&c->barrier, turn, 0);
                s.base = s.depth++;
                if (COUNT && lead && s.depth < p.rows) p.counts[s.depth] = s.edges;
                s.k = 1, s.phase = PULLING, s.step = MARK_PUSH, budget--;
                NOTE(MARK_PUSH, s.count, s.edges)
            } else if (s.edges <= SMALL) {
                if (blockIdx.x == 0) {
                    budget = push_in_block(p, s, budget, visited, lane);
                    if (threadIdx.x == 0) {
                        c->block[0] = (u64)s.depth << 32 | s.count;
                        c->block[1] = (u64)s.hubs << 32 | budget;
                        c->block[2] = s.edges;
                    }
                }
                grid_sum(&c->barrier, turn, 0);
                const u64 x = __ldcg(&c->block[0]), y = __ldcg(&c->block[1]);
                s.depth = x >> 32, s.count = (u32)x, s.hubs = y >> 32, budget = (u32)y;
                s.edges = __ldcg(&c->block[2]);
                s.step = BLOCK_PUSH;
                NOTE(BLOCK_PUSH, s.count, s.edges)
            } else {
                const Queue next = {p.queue[now ^ 1], p.hub_queue[now ^ 1], &c->queue[slot],
                                    &c->edges[slot], (u32 *)&c->hubs[slot]};
                if (lead) c->queue[then] = c->edges[then] = c->hubs[then] = 0;
                used++;
                park(&parked, r);
                push(p, p.queue[now], s.count, (u32)s.edges, visited, s.depth + 1, s.late, next,
                     warp, warps, lane);
                r = unpark(&parked);
                grid_sum(&c->barrier, turn, 0);
                s.depth++, s.step = GRID_PUSH, budget--;
                if (COUNT && lead && s.depth < p.rows) p.counts[s.depth] = s.edges;
                const u64 size = __ldcg(&c->queue[slot]);
                s.count = (u32)size;
                s.edges = sizeof(OFFSET) == 8 ? __ldcg(&c->edges[slot]) : size >> 32;
                s.hubs = (u32)__ldcg(&c->hubs[slot]);
                NOTE(GRID_PUSH, s.count, s.edges)
            }
            break;
        case PULLING: {
            if (s.k + 2 > SNAPSHOTS) {
                flush(p, s.k, s.base);
                if (lead)
                    for (u32 i = 0; i < SNAPSHOTS; i++) c->overflow[i] = 0;
                grid_sum(&c->barrier, turn, 0);
                s.base = s.depth, s.k = 0;
                visited = p.snapshot;
                NOTE(FLUSH, 0, 0)
            }
            /* few unvisited vertices do not pay for the copying of hub bits */
            const u32 hub_words = s.left >= p.active / 8 ? p.hub_words : 0;
            u64 *checks = COUNT && s.depth + 1 < p.rows ? p.counts + s.depth + 1 : 0;
            park(&parked, r);
            const u32 open = pull(p, visited, visited + p.stride, room, hub_words, warp, warps,
                                  lane, &c->overflow[s.k], checks);
            r = unpark(&parked);
            const u32 left = (u32)grid_sum(&c->barrier, turn, open), found = s.left - left;
            const bool listed = !__ldcg(&c->overflow[s.k]);
            s.depth++, s.k++, s.step = PULL, budget--;
            s.left = left;
            if (!left || !found) s.phase = FINISHING;
            else if (p.pull_only) s.phase = PULLING;
            else if (listed) s.phase = TAILING;
            else if ((u64)found * 8 < left) s.phase = GATHERING;
            NOTE(PULL, found, left)
            break;
        }
        case TAILING:
        case GATHERING: {
            const bool is_tail = s.phase == TAILING;
            const bool wide = s.depth + is_tail > NARROW, clear = s.k >= 2;
            const Queue next = {p.queue[now ^ is_tail], p.hub_queue[now ^ is_tail],
                                &c->queue[slot], &c->edges[slot], (u32 *)&c->hubs[slot]};
            if (lead) c->queue[then] = c->edges[then] = c->hubs[then] = 0;
            used++;
            if (is_tail) {
                if (s.late == LATE && s.depth == NARROW) {
                    widen(p, IN_IDS ? p.n : p.active);
                    grid_sum(&c->barrier, turn, 0);
                    s.late |= WIDE;
                }
                const u32 checks = tail(p, visited, s.depth + 1, s.late, next, warp, lane);
                const u32 sum = COUNT ? __reduce_add_sync(ALL, checks) : 0;
                if (sum && lane == 0 && s.depth + 1 < p.rows)
                    atomicAdd(p.counts + s.depth + 1, (u64)sum);
            } else gather(p, visited - p.stride, visited, next, warp, warps, lane);
            if (!s.late) {
                park(&parked, r);
                results(p, s.k, s.base, wide, clear, room, blockIdx.x, grid);
                r = unpark(&parked);
                s.late = wide ? LATE | WIDE : LATE;
                s.dirty = !clear;
            }
            grid_sum(&c->barrier, turn, 0);
            const u64 size = __ldcg(&c->queue[slot]);
            s.count = (u32)size;
            s.edges = sizeof(OFFSET) == 8 ? __ldcg(&c->edges[slot]) : size >> 32;
            s.hubs = (u32)__ldcg(&c->hubs[slot]);
            if (is_tail) s.depth++, s.left -= s.count, s.step = TAIL, budget--;
            NOTE(is_tail ? TAIL : GATHER, s.count, s.edges)
            const bool small = s.edges <= SMALL && s.count <= SMALL;
            if (is_tail && !small) break; /* another pass */
            if (s.k >= 2) clean(p, small && s.count && grid > 1);
            s.phase = s.count ? PUSHING : DONE;
            if (!s.count) break;
            if (!small) { /* gathered: all its bits and results are there */
                grid_sum(&c->barrier, turn, 0);
                break;
            }
            /* block 0 goes on alone; should the frontier grow, the host launches again */
            if (blockIdx.x) return;
            if (is_tail)
                for (u32 i = threadIdx.x; i < s.count; i += THREADS)
                    patch(p, p.queue[s.depth & 1][i].x, p.queue_parent[i], visited, s.depth, s.late);
            __syncthreads();
            if (budget) push_in_block(p, s, budget, visited, lane), s.step = BLOCK_PUSH;
            if (!s.count) s.phase = DONE;
            NOTE(BLOCK_PUSH, s.count, s.edges)
            budget = 0;
            break;
        }
        case FINISHING: {
            const bool wide = s.depth > NARROW, clear = s.k >= 2 && !IN_IDS;
            park(&parked, r);
            results(p, s.k, s.base, wide, clear, room, blockIdx.x, grid);
            r = unpark(&parked);
            s.phase = DONE, s.dirty = !clear, s.late = wide ? LATE | WIDE : LATE;
            if (IN_IDS && root == NONE) {
                grid_sum(&c->barrier, turn, 0);
                if (lead) {
                    p.level_out[p.root] = 0;
                    if (p.parents) p.parent_out[p.root] = p.root;
                }
            }
            NOTE(RESULTS, 0, 0)
            break;
        }
        }
    }
    if (lead) *p.state = s;
}
