/* Levels that all blocks of all devices push together. */
#ifndef DISTBFS_DOMAIN_LEVEL_CUH
#define DISTBFS_DOMAIN_LEVEL_CUH
#include "domain_mark.cuh"
#include "domain_meet.cuh"

INLINE bool few(const Member &r, u64 left) { return left <= r.active_all / FEW; }

/* Take the queues that all devices have made. */
INLINE void take(const Member &r, JointState &j, const Received &received) {
    j.edges = j.count = j.most = 0;
    for (u32 t = 0; t < r.parts; t++) {
        const u64 edges = (u64)received.word[t][EDGES_HIGH] << 32 | received.word[t][EDGES];
        j.edges += edges, j.count += received.word[t][SIZE];
        if (j.most < edges) j.most = edges;
        if (t != r.index) continue;
        j.s.count = received.word[t][SIZE], j.s.edges = edges;
        j.s.hubs = received.word[t][HUBS] & ~TOP_BIT;
    }
    if (j.s.count) j.deepest = j.s.depth;
}

/* Whether all devices of a domain pull a frontier at once; rows have as many columns before a tail
 * on each. */
INLINE bool pulls_at_once(const Member &r, const JointState &j) {
    /* mutant: pulls_at_once -> !pulls_at_once : test_a_wide_push_between_pulls */
    return pulls_at_once(r.own, j.count, j.edges);
}

INLINE bool pushes(const Member &r, const JointState &j) {
    const Params &p = r.own;
    return ASKED(p.push_only) ||
           (!pulls_at_once(r, j) && j.edges < p.mark_edges && !ASKED(p.pull_only));
}

/* Whether block 0 of each device pushes the next level. */
INLINE bool pushes_alone(const Member &r, const JointState &j) {
    return j.most <= ALONE && pushes(r, j);
}

/* A line of the trace, by one thread: what all devices have done. */
INLINE void note(const Member &r, JointState &j, u32 what, u64 vertices, u64 edges,
                 u32 ahead = 0) {
    if (!COUNT || !r.own.trace || j.traced >= r.own.rows) return;
    u64 *t = r.own.trace + (u64)j.traced++ * 4;
    t[0] = nanoseconds(), t[1] = (u64)what << 32 | (j.s.depth + ahead);
    t[2] = vertices, t[3] = edges;
}

/* Snapshots 0 and 1, and the replicas of 1, by a marking push, but for a last meeting; false
 * where the search has failed. */
INLINE bool mark_level(const Member &r, JointState &j, Received &received, u32 *room, const Mail *mail,
                       u32 *sent, u32 warp, u32 warps, u32 lane) {
    __shared__ u32 counts[MOST_PARTS];
    const Params &p = r.own;
    u32 *old = p.snapshot, *fresh = old + p.stride;
    const u32 now = j.s.depth & 1;
    count_tails(p, p.queue[now], j.s.count, counts_of(p, j.s.depth + 1), warp, warps, lane);
    const bool many = j.edges >= p.fetch_edges;
    mark(p, p.queue[now], j.s.count, j.s.edges, many, p.hub_queue[now], j.s.hubs,
         Sending{r, old, fresh, replica_of(r, r.index, j.now), sent, counts}, room, warp, warps,
         lane);
    reload();
    if (!meet(r, j, 0, mail, sent, received)) return false;
    if (blockIdx.x == 0 && threadIdx.x == 0) note(r, j, MARK_PUSH, j.count, j.edges, 1);
    bool some = false;
    for (u32 t = 0; t < r.parts; t++) {
        const u32 pairs = received.word[t][FOR_YOU];
        if (t == r.index || !pairs) continue;
        merge_pairs(r, pairs_at(r, r.index, t, 0), pairs, fresh);
        some = true;
    }
    if (some && !meet_here(r, j)) return false;
    merge_ranges(r, fresh, j.now ^ 1, room, many ? 1 : p.group);
    return true;
}

/* A level by queue, but for a last meeting where there were `pairs`; false where the search
 * has failed. */
INLINE bool push_level(const Member &r, JointState &j, Received &received, Mail *mail, u32 *sent,
                       bool &pairs, u32 warp, u32 warps, u32 lane) {
    const Params &p = r.own;
    const u32 now = j.s.depth & 1, level = j.s.depth + 1;
    const Queue next = {p.queue[now ^ 1], p.hub_queue[now ^ 1], mail};
    count_tails(p, p.queue[now], j.s.count, counts_of(p, level), warp, warps, lane);
    push(p, p.queue[now], j.s.count, (u32)j.s.edges,
         Send{r, p.snapshot, replica_of(r, r.index, j.now), level, next, sent, false}, warp, warps,
         lane);
    reload();
    if (!meet(r, j, 0, mail, sent, received)) return false;
    pairs = sum_of(r, received, SENT) != 0;
    if (!pairs) return true;
    for (u32 t = 0; t < r.parts; t++)
        if (t != r.index)
            claim_pairs(r, pairs_at(r, r.index, t, 0), received.word[t][FOR_YOU], p.snapshot,
                        level, next, warp, warps, lane);
    reload();
    return true;
}
#endif
