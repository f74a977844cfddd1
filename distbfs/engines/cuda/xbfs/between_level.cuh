/* A level of the inner graph, by all blocks of a device, or of SEVERAL that meet.
 *
 * Devices of a domain choose alike, from what they tell each other when they begin: how
 * much is left, and how large their queues are with what came from other domains.  After
 * it, what any of them wrote to another is seen by the kernels that follow the next sum
 * over all domains, which comes when all devices are done. */
#ifndef DISTBFS_BETWEEN_LEVEL_CUH
#define DISTBFS_BETWEEN_LEVEL_CUH
#include "between.cuh"
#include "gather.cuh"
#include "pull.cuh"
#include "pull_last.cuh"
#if SEVERAL
#include "domain_level.cuh"
#include "domain_publish.cuh"
#else
#include "mark.cuh"
#endif

/* What a cooperative launch begins with: the other counters are clean for the next one. */
INLINE void clear_other(const Params &p) {
    if (blockIdx.x) return;
    for (u32 i = threadIdx.x; i < sizeof(Control) / 8; i += THREADS) ((u64 *)p.other)[i] = 0;
}

/* Take the queue that this device has made. */
INLINE void take(State &s, const Mail *mail) {
    const u64 size = __ldcg(&mail->size);
    s.count = (u32)size, s.hubs = (u32)__ldcg(&mail->hubs);
    s.edges = sizeof(OFFSET) == 8 ? __ldcg(&mail->edges) : size >> 32;
}

/* Whether the levels that follow a pull are searched by queue again.
 * found: vertices of the last level; last: few are left */
INLINE bool turns(const Params &p, const State &s, u64 found, bool last) {
    if (p.pull_only || s.step == MARK_PUSH) return false;
    if (s.step == PULL_LAST) return s.tails >= MOST_TAILS && found <= SMALL;
    return found * 8 < s.left && !last;
}

/* The delegates that this device knows of and others may not; all its blocks have met. */
INLINE void tell_delegates(const Between &b, const u32 *now) {
    for (u32 w = blockIdx.x * THREADS + threadIdx.x; w < b.normals / 32; w += gridDim.x * THREADS)
        b.found[mask_at(b, w)] = __ldcg(now + w) & ~b.known[w];
}

#if SEVERAL
/* One level of the inner graph, on all devices of a domain; false where one is waited for in vain. */
INLINE bool search_level(const Between &b, u32 *room) {
    const Params &p = b.own;
    const u32 lane = threadIdx.x & 31, warps = gridDim.x * WARPS;
    const u32 warp = (threadIdx.x >> 5) * gridDim.x + blockIdx.x; /* neighbours on other SMs */
    const bool first = threadIdx.x == 0, lead = blockIdx.x == 0 && first;
    __shared__ JointState j;
    __shared__ Received received;
    if (first) j = b.device->joint, j.s = *p.state;
    clear_other(p);
    if (blockIdx.x == 0 && threadIdx.x < MOST_PARTS) b.device->sent[0][threadIdx.x] = 0;
    __syncthreads();
    const State &s = j.s;
    const u32 now = s.depth & 1;
    Mail *next = b.mail + (now ^ 1), *gathered = b.mail + 2;
    u32 *sent = b.device->sent[0];
    if (!meet(b, j, lead ? *b.open : 0u, b.mail + now, 0, received)) return false;
    if (first) { /* what all devices have; j.s.left is of the level before */
        const u64 left = sum_of(b, received, VALUE), found = s.left - left;
        j.s.left = (u32)left;
        if (s.phase == PUSHING) take(b, j, received);
        else j.s.phase = turns(p, s, found, few(b, left)) ? GATHERING : PULLING;
    }
    __syncthreads();
    if (s.phase == GATHERING) {
        u32 *visited = newest(p, s);
        gather(p, visited - p.stride, visited, Queue{p.queue[now], p.hub_queue[now], gathered}, warp,
               warps, lane);
        if (!meet(b, j, 0, gathered, 0, received)) return false;
        if (first) take(b, j, received);
        flush(p, s.k, s.base);
        if (!meet_here(b, j)) return false;
        if (first) j.s.base = j.s.k = j.s.tails = 0, j.s.phase = PUSHING;
        __syncthreads();
    }
    /* a root that is a leaf is no neighbour of what is pulled */
    /* mutant: s.depth || p.active == p.every -> true : test_several_devices */
    const bool may_pull = s.depth || p.active == p.every;
    if (s.phase == PUSHING && !p.push_only && may_pull && (pulls_at_once(b, j) || p.pull_only)) {
        if (!j.complete) {
            publish_changes(b, newest(p, s), j.now);
            if (!meet(b, j, 0, 0, 0, received)) return false;
        }
        __syncthreads();
        if (first) j.complete = 1, j.s.phase = PULLING, j.s.base = s.depth, j.s.k = 0;
        __syncthreads();
    }
    u64 *checks = counts_of(p, s.depth + 1);
    if (s.phase == PUSHING) {
        const bool by_queue = pushes(b, j);
        bool pairs;
        const bool fine =
            by_queue ? push_level(b, j, received, next, sent, pairs, warp, warps, lane)
                     : mark_level(b, j, received, room, next, sent, warp, warps, lane);
        if (!fine || !meet_here(b, j)) return false;
        if (first) {
            if (COUNT && lead && checks) *checks = s.edges;
            j.s.step = by_queue ? GRID_PUSH : MARK_PUSH, j.complete = !by_queue;
            if (!by_queue) j.s.base = s.depth, j.s.k = 1, j.s.phase = PULLING, j.now ^= 1;
        }
    } else {
        if (s.k + 2 > SNAPSHOTS) {
            flush(p, s.k, s.base);
            if (!meet_here(b, j)) return false;
            if (first) j.s.base = s.depth, j.s.k = 0;
            __syncthreads();
        }
        const u32 *visited = newest(p, s), *replica = replica_of(b, b.index, j.now);
        u32 *fresh = p.snapshot + (s.k + 1) * p.stride;
        const u32 hub_words = s.left >= b.active_all / 8 ? p.hub_words : 0, which = j.now ^ 1;
        const bool last = few(b, s.left);
        Last one;
        bool kept = false;
        if (last)
            pull_last(p, visited, fresh, replica, room, one, kept, warp, warps, lane, checks,
                      Late{b, which, 0, 0, false});
        else
            pull(p, visited, fresh, replica, room, hub_words, warp, warps, lane, checks,
                 Publish{b, fresh, which});
        reload();
        if (last) publish_last(b, fresh, which, warp, warps, lane);
        if (!meet_here(b, j)) return false;
        if (first) j.s.step = last ? PULL_LAST : PULL, j.s.tails += last, j.s.k++, j.now ^= 1;
    }
    __syncthreads();
    tell_delegates(b, newest(p, s));
    __syncthreads();
    if (lead) j.s.depth++, *p.state = j.s, b.device->joint = j;
    return true;
}

#else
/* One level of the inner graph.
 * turn: see `grid_sum`; s: the state before and after it */
INLINE void search_level(const Between &b, u32 *room, u32 &turn, State &s) {
    const Params &p = b.own;
    Barrier *barrier = &p.control->barrier;
    const u32 lane = threadIdx.x & 31, grid = gridDim.x, warps = grid * WARPS;
    const u32 warp = (threadIdx.x >> 5) * grid + blockIdx.x; /* neighbours on other SMs */
    const bool lead = blockIdx.x == 0 && threadIdx.x == 0;
    const u32 now = s.depth & 1, to = now ^ 1;
    u64 *checks = counts_of(p, s.depth + 1);
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
    const bool pulls = !p.push_only && (pulls_at_once(p, s.count, s.edges) || p.pull_only);
    /* mutant: pulls && !lone(b, s) -> pulls : test_between_leaves::test_every_way */
    if (s.phase == PUSHING && pulls && !lone(b, s)) /* which no pull would see */
        s.phase = PULLING, s.base = s.depth, s.k = 0;
    if (s.phase == PUSHING) count_tails(p, p.queue[now], s.count, checks, warp, warps, lane);
    if (s.phase == PUSHING && (p.push_only || s.edges < p.mark_edges)) {
        push(p, p.queue[now], s.count, (u32)s.edges,
             Claim{p, p.snapshot, s.depth + 1,
                   Queue{p.queue[to], p.hub_queue[to], b.mail + to}},
             warp, warps, lane);
        if (COUNT && lead && checks) *checks = s.edges;
        s.step = GRID_PUSH;
    } else if (s.phase == PUSHING) {
        mark(p, p.queue[now], s.count, s.edges, s.edges >= p.fetch_edges, p.hub_queue[now],
             s.hubs, Marks{p, visited, p.snapshot + p.stride}, room, warp, warps, lane);
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
    if (lead) *p.state = s;
}
#endif
#endif
