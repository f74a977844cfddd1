/* Method `fast`: a whole search in one launch, with the choices made on the device.
 *
 * A cooperative grid, one block of 1,024 threads a multiprocessor, meets once a level.
 * Frontiers of few edges are pushed by block 0 alone; wider ones by queue; a push whose
 * level will be followed by a pull only marks; pulls read one bitmap of visited vertices
 * and write the next; the last vertices are found from a list; results are written from
 * the bitmaps while that list is worked on, and what is found after that is added.
 * A search ends before all is found after its last level, or with targets when they are
 * visited: then levels are not run on without a meeting, and one more meeting counts them.
 * A search from a set begins with all of it as a queue, or with a pull (seeds.cuh).
 * Vertices of trees are not searched, but get their results at the end (trees.cuh).
 * The form PLAIN has nothing but the search of all levels from one root: what nobody asks for
 * costs small graphs a twentieth.  With AT_ONCE all results are written here, by id, too, without
 * another meeting; where levels need more than a byte, a launch of the other form goes on.
 * It also ends, without results, after a level in which block 0 sees the host's word.
 * Plain searches of meshes have a form with levels for narrow frontiers (NEAR, narrow.cuh).
 * Where some edges are not seen, their bits are looked at besides (MASKED, rows.cuh).  The form
 * that counts is one of these, and serves searches of all edges, too.
 * Where edges lead one way (DIRECTED), pushes follow edges out and pulls look at edges in.
 * Data: search.cuh.  Sources: Beamer, Asanovic, Patterson 2012 (direction); Gaihre et al.
 * 2019 (XBFS, scan-free queues, decisions at run time); Yasui, Fujisawa 2015 (order).
 *
 * variants: OFFSET=u32 COUNT=0 IN_IDS=0,1 SPLIT=0 | OFFSET=u64 COUNT=0 IN_IDS=1 SPLIT=0,1 | OFFSET=u32 COUNT=0 IN_IDS=1 SPLIT=0 MASKED=1 | OFFSET=u32 COUNT=1 IN_IDS=0,1 SPLIT=0 MASKED=1 | OFFSET=u64 COUNT=1 IN_IDS=0,1 SPLIT=1 MASKED=1 | OFFSET=u32 COUNT=0 IN_IDS=1 SPLIT=0 AT_ONCE=1 FEW_TREES=0,1 | OFFSET=u32 COUNT=0 IN_IDS=0 SPLIT=0 AT_ONCE=1 FEW_TREES=1 PLAIN=1 | OFFSET=u32 COUNT=0 IN_IDS=1 SPLIT=0 AT_ONCE=1 FEW_TREES=0,1 PLAIN=1 | OFFSET=u32,u64 COUNT=0 IN_IDS=0,1 SPLIT=0 PLAIN=1 | OFFSET=u32 COUNT=0 IN_IDS=1 SPLIT=0 WINDOWS=1 | OFFSET=u32 COUNT=0 IN_IDS=0,1 SPLIT=0 PLAIN=1 WINDOWS=1 | OFFSET=u32,u64 COUNT=0 IN_IDS=0,1 SPLIT=0 DIRECTED=1 | OFFSET=u32 COUNT=1 IN_IDS=0,1 SPLIT=0 MASKED=1 DIRECTED=1 | OFFSET=u64 COUNT=0 IN_IDS=1 SPLIT=1 DIRECTED=1 | OFFSET=u64 COUNT=1 IN_IDS=0,1 SPLIT=1 MASKED=1 DIRECTED=1 | OFFSET=u32 COUNT=0 IN_IDS=1 SPLIT=0 PLAIN=1 DIRECTED=1 | OFFSET=u32 COUNT=0 IN_IDS=1 SPLIT=0 AT_ONCE=1 FEW_TREES=1 PLAIN=1 DIRECTED=1 | OFFSET=u32 COUNT=0 IN_IDS=1 SPLIT=0 PLAIN=1 WINDOWS=1 DIRECTED=1 | OFFSET=u32 COUNT=0 IN_IDS=0 SPLIT=0 AT_ONCE=1 FEW_TREES=1 PLAIN=1 NEAR=1 | OFFSET=u32 COUNT=0 IN_IDS=1 SPLIT=0 AT_ONCE=1 FEW_TREES=0,1 PLAIN=1 NEAR=1 | OFFSET=u32 COUNT=0 IN_IDS=0,1 SPLIT=0 PLAIN=1 NEAR=1
 */
#include "search.cuh"
#include "gather.cuh"
#include "mark.cuh"
#include "pull.cuh"
#include "pull_last.cuh"
#include "pull_windows.cuh"
#include "narrow.cuh"
#include "push.cuh"
#include "results_by_id.cuh"
#include "seeds.cuh"

#define TOGETHER 3 /* blocks of ids whose results a block writes */

/* Takes a queue.  A frontier that has not doubled (p.growth) is pushed, however wide: in meshes
 * frontiers hardly grow, and a marking push and a pull cost more.  But the next one must fit the
 * queue. */
INLINE void take(const Params &p, State &s, u64 size, u64 edges, u64 hubs) {
    const u64 before = s.edges;
    s.count = (u32)size, s.hubs = (u32)hubs;
    s.edges = sizeof(OFFSET) == 8 ? edges : size >> 32;
    /* mutant: s.edges >= p.growth * before -> true : test_frontiers_that_do_not_grow_are_pushed */
    /* mutant: s.edges > p.queue_room -> false : test_wide_frontiers_that_do_not_grow */
    s.grows = s.edges >= p.growth * before || s.edges > p.queue_room;
    /* a level of vertices without edges out: no other follows */
    if (DIRECTED && !s.count && hubs >> 32) s.phase = FINISHING;
}

/* Whether the frontier is pulled. */
INLINE bool pulls(const Params &p, const State &s) {
    return s.grows && pulls_at_once(p, s.count, s.edges);
}

/* Whether the push of the frontier is followed by a pull. */
INLINE bool marks(const Params &p, const State &s) {
    /* mutant: >= -> < : test_steps_follow_the_edges_of_the_frontier */
    return s.grows && s.edges >= p.mark_edges;
}

/* Whether narrow.cuh pushes the frontier: no block has more than p.near of its vertices, so that
 * what it finds has room. */
INLINE bool is_narrow(const Params &p, const State &s) {
    return NEAR && !s.grows && s.count <= p.near * gridDim.x;
}

/* A pull is done and leaves `left` vertices. */
INLINE void pulled(const Params &p, State &s, u32 left, bool last) {
    const u32 found = s.left - left;
    s.depth++, s.k++, s.step = last ? PULL_LAST : PULL;
    s.left = left, s.tails += last;
    /* mutant: ends(p, s) -> s.depth > p.last : test_until_fast::test_after_every_step */
    if (!left || !found || ends(p, s)) s.phase = FINISHING;
    else if (ASKED(p.pull_only)) s.phase = PULLING;
    /* mutant: found * 8 < -> found * 8 > : test_pulls_go_on_while_they_find_an_eighth */
    else if (last ? s.tails >= MOST_TAILS && found <= SMALL : (u64)found * 8 < left && !few(p, left))
        s.phase = GATHERING;
}

/* Whether there are levels to search: what is found is not all, nor as deep as is wanted. */
INLINE bool goes_on(const Params &p, const State &s) {
    return s.phase < FINISHING && (s.phase != PUSHING || (s.count && !ends(p, s)));
}

/* Levels of trees, and with AT_ONCE all results; room: shared memory. */
INLINE void finish(const Params &p, u32 root, u32 *room, const State &s) {
    __shared__ Way way;
    const u32 k = s.k, base = s.base, ids = TOGETHER * p.block_ids;
    const bool wide = !AT_ONCE && too_deep(p, s.depth), pruned = p.active < p.every;
    const u32 before = !AT_ONCE ? WARPS * LATER : IN_IDS && p.coded ? ids / 4 * 5 : 0;
    uint2 *held = (uint2 *)(room + before);
    const Trees trees = {p, way, held, k, base};
    if (pruned) {
        if (threadIdx.x == 0) walk(p, root, way);
        if (CODES) hold_codes(p, held);
        else __syncthreads();
        if (!AT_ONCE || !IN_IDS) tell_trees(p, trees, wide, way.length, room);
    }
    if (AT_ONCE) clean(p, p.next_snapshot, p.next_by_first);
    if (AT_ONCE && !IN_IDS) results_by_number(p, k, base, false, OwnCodes{p, false});
#if AT_ONCE && IN_IDS
    const u32 first = blockIdx.x * TOGETHER, left = p.blocks - first;
    if (first >= p.blocks) return;
    const bool moved = pruned && way.length;
    u32 top = 0;
    const auto tell = [&](u32 v, u32(&level)[4], u32(&from)[4]) {
        const uint4 u4 = *(const uint4 *)(p.first + v);
        u32 parent[4] = {u4.x, u4.y, u4.z, u4.w};
        uint4 f4 = u4;
        if (p.parents && !moved) f4 = load_once4(p.first_id + v);
        const u32 f[4] = {f4.x, f4.y, f4.z, f4.w};
        int reached[4];
        levels_of_four(p, trees, v, parent, reached);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            level[i] = reached[i], from[i] = moved ? parent[i] : f[i];
            if (reached[i] > (int)(base + top)) top = reached[i] - base;
        }
    };
    const u32 last = put_blocks<TOGETHER>(p, first, left < TOGETHER ? left : TOGETHER, THREADS, k,
                                          base, false, moved, room, tell);
    tell_highest(p, last > top ? last : top, threadIdx.x & 31);
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) search(const Params p) {
    extern __shared__ uint4 dynamic[];
    u32 *room = (u32 *)dynamic;
    Control *c = p.control;
    const u32 lane = threadIdx.x & 31, grid = gridDim.x, warps = grid * WARPS;
    const u32 warp = (threadIdx.x >> 5) * grid + blockIdx.x; /* neighbours on other SMs */
    const bool lead = blockIdx.x == 0 && threadIdx.x == 0;
    __shared__ Run parked;
    __shared__ Mail own;     /* of block 0's queue */
    __shared__ u32 stop;     /* the host's word, as all have learnt it, or block 0 alone */
    __shared__ u64 news[16]; /* what all have learnt at the last meeting */
#if NEAR
    __shared__ Finds near[2]; /* of this block, of two levels */
    if (threadIdx.x < 2) p.said[threadIdx.x * grid + blockIdx.x] = 0; /* no level has 0 */
#endif
    Run r = {*p.state, 0, 0, {0, 0}};
    State &s = r.s;
    u32 &turn = r.turn, &used = r.used;
    const u32 root = ASKED(p.from_set) ? NONE : p.numbers[p.root];
    u32 traced = 0; /* of the first thread */
#define NOTE(what, vertices, edge_count)                                                 \
    if (COUNT && lead && p.trace && traced < p.rows) {                                   \
        u64 *t = p.trace + (u64)traced++ * 4;                                            \
        t[0] = nanoseconds(), t[1] = (u64)(what) << 32 | s.depth, t[2] = (vertices),     \
        t[3] = (edge_count);                                                             \
    }
    NOTE(START, 0, 0)
    const u64 *host = ASKED(p.stop);
    if (host) { /* the level that a search begins with need not be 0 */
        if (threadIdx.x == 0) stop = 0;
        __syncthreads();
    }
    if (blockIdx.x == 0)
        for (u32 i = threadIdx.x; i < sizeof(Control) / 8; i += THREADS) ((u64 *)p.other)[i] = 0;
    if (s.phase >= DONE) {
        if (s.dirty) {
            clean(p, p.snapshot, p.by_first);
            grid_sum(&c->barrier, turn, 0);
        }
        u32 edges; /* from the root to the source of the search, on their level */
        u32 start = end_of(p, root, edges);
        if (start == NONE || ASKED(edges > p.last)) start = NONE, edges = 0;
        const bool some = start != NONE || p.root_count;
        s.k = s.tails = 0, s.dirty = 1, s.step = START, s.grows = 1;
        s.depth = s.base = edges; /* mutant: edges -> 0 : test_trees_from_every_place */
        s.phase = some ? PUSHING : FINISHING;
        s.count = some, s.hubs = start < p.hubs, s.left = p.active - p.bare_count;
        const OFFSET begin = start != NONE ? p.row[start] : 0;
        s.edges = start != NONE ? degree_at(p, start, begin) : 0;
        if (lead && start != NONE) {
            u32 before = root; /* what leads there */
            if (edges)
                while (above(p, before) != start) before = above(p, before);
            p.queue[edges & 1][0] = make_uint4(start, 0, (u32)begin, (u32)s.edges);
            if (start < p.hubs) p.hub_queue[edges & 1][0] = start;
            atomicOr(p.snapshot + (start >> 5), 1u << (start & 31));
            p.direct[start] = edges;
            if (p.parents) p.parent[start] = before;
        }
        /* others may look at the root only after a meeting; block 0 alone may at once */
        if (ASKED(p.from_set)) {
            Mail *mail = &c->mail[used++ % 3];
            begin_set(p, Queue{p.queue[0], p.hub_queue[0], mail}, warp, warps, lane,
                      [](u32 v) { return v; });
            grid_sum(&c->barrier, turn, 0, &mail->size, 3, news);
            if (p.from_set == BY_QUEUE) take(p, s, news[0], news[1], news[2]);
            else s.count = p.root_count, s.edges = p.pull_edges;
        } else if (s.edges > SMALL || marks(p, s) || pulls(p, s) || ASKED(p.pull_only) ||
                   ends(p, s))
            grid_sum(&c->barrier, turn, 0);
        else __syncthreads();
    }
    NOTE(START, s.count, s.edges)
    while (s.phase < DONE) {
        u32 *visited = p.snapshot + s.k * p.stride;
        const u32 now = s.depth & 1;
        Mail *mail = &c->mail[used % 3], *later = &c->mail[(used + 1) % 3];
        const bool may_pull = !ASKED(p.push_only);
        if (ASKED(p.targets) && s.depth && s.phase != FINISHING &&
            !grid_sum(&c->barrier, turn, missed(p, visited)))
            s.phase = FINISHING;
        /* mutant: if (AT_ONCE && s.phase == FINISHING && too_deep(p, s.depth)) break ->
         * : test_levels_pass_one_byte */
        if (AT_ONCE && s.phase == FINISHING && too_deep(p, s.depth)) break;
        if (host && s.depth && stop && goes_on(p, s)) {
            /* mutant: STOPPED -> STOPPED, s.dirty = 0 : test_every_kind_of_level */
            s.phase = STOPPED;
            break;
        }
        switch (s.phase) {
        case PUSHING:
            if (!s.count) {
                s.phase = FINISHING, s.depth--; /* the last level has found nothing */
            /* mutant: ends(p, s) -> s.depth > p.last : test_until_fast::test_levels_and_targets */
            } else if (ends(p, s)) {
                s.phase = FINISHING;
            } else if (may_pull && (pulls(p, s) || ASKED(p.pull_only))) {
                s.phase = PULLING, s.base = s.depth;
            } else if (may_pull && marks(p, s)) {
                count_tails(p, p.queue[now], s.count, counts_of(p, s.depth + 1), warp, warps, lane);
                park(&parked, r);
                const Marks marks = {p, visited, visited + p.stride};
                if (s.edges <= p.row_edges)
                    mark_few(p, p.queue[now], s.count, (u32)s.edges, marks, warp, warps, lane);
                else
                    mark(p, p.queue[now], s.count, s.edges, s.edges >= p.fetch_edges,
                         p.hub_queue[now], s.hubs, marks, room, warp, warps, lane);
                r = unpark(&parked);
                grid_sum(&c->barrier, turn, 0, 0, 0, 0, host, &stop);
                s.base = s.depth++;
                if (COUNT && lead && s.depth < p.rows) p.counts[s.depth] = s.edges;
                s.k = 1, s.phase = ends(p, s) ? FINISHING : PULLING;
                s.step = MARK_PUSH;
                NOTE(MARK_PUSH, s.count, s.edges)
#if NEAR
            } else if (is_narrow(p, s)) {
                u32 count = take_piece(p.queue[now], s.count, room + now * NEAR_ROOM);
                if (threadIdx.x == 0) near[now ^ 1] = {0, 0, 0};
                __syncthreads();
                while (true) {
                    const u32 odd = s.depth & 1;
                    push_near(p, room + odd * NEAR_ROOM, count, visited, s.depth + 1,
                              room + (odd ^ 1) * NEAR_ROOM, &near[odd ^ 1], lane);
                    s.depth++, s.step = GRID_PUSH;
                    const Finds all = meet_near(p, s.depth, near, lane);
                    count = near[odd ^ 1].count;
                    take(p, s, (u64)all.checks << 32 | all.count, all.checks, 0);
                    if (!s.count || all.most > p.near) break;
                    if (all.most << p.lanes > THREADS && all.most > 2 * (s.count / grid)) break;
                    if (marks(p, s) || pulls(p, s)) break;
                }
                if (!s.count) break;
                if (lead) later->size = later->edges = later->hubs = 0;
                used++;
                put_piece(p, room + (s.depth & 1) * NEAR_ROOM, count,
                          Queue{p.queue[s.depth & 1], p.hub_queue[s.depth & 1], mail}, lane);
                const u16 grows = s.grows;
                grid_sum(&c->barrier, turn, 0, &mail->size, 3, news);
                take(p, s, news[0], news[1], news[2]);
                s.grows = grows;
#endif
            } else {
                /* small frontiers are pushed by block 0, level after level */
                /* mutant: s.edges <= SMALL -> false
                 * : test_steps_follow_the_edges_of_the_frontier */
                const bool small = s.edges <= SMALL;
                if (lead && !small) later->size = later->edges = later->hubs = 0;
                used += !small;
                if (!small || blockIdx.x == 0) {
                    const u32 by = small ? threadIdx.x >> 5 : warp, of = small ? WARPS : warps;
                    while (true) {
                        const u32 to = (s.depth & 1) ^ 1;
                        if (small) {
                            if (threadIdx.x == 0) own.size = own.edges = own.hubs = 0;
                            __syncthreads();
                        }
                        const Queue next = {p.queue[to], p.hub_queue[to], small ? &own : mail};
                        count_tails(p, p.queue[s.depth & 1], s.count,
                                    counts_of(p, s.depth + 1), by, of, lane);
                        park(&parked, r);
                        /* the last warp, which has no edges of small frontiers */
                        if (small && host && threadIdx.x == THREADS - 1) stop = look(host);
                        push(p, p.queue[s.depth & 1], s.count, (u32)s.edges,
                             Claim{p, visited, s.depth + 1, next}, by, of, lane);
                        __syncthreads();
                        r = unpark(&parked);
                        s.depth++;
                        s.step = small ? BLOCK_PUSH : GRID_PUSH;
                        if (COUNT && lead && s.depth < p.rows) p.counts[s.depth] = s.edges;
                        if (!small) break;
                        take(p, s, own.size, own.edges, own.hubs);
                        NOTE(BLOCK_PUSH, s.count, s.edges)
                        __syncthreads();
                        /* mutant: SMALL || (host && stop) -> SMALL : test_every_kind_of_level */
                        if (!s.count || s.edges > SMALL || (host && stop)) break;
                        if (is_narrow(p, s)) break;
                        if (ends(p, s) || ASKED(p.targets)) break;
                        if (may_pull && (marks(p, s) || pulls(p, s))) break;
                    }
                    if (small && threadIdx.x == 0) c->run = r;
                }
                grid_sum(&c->barrier, turn, 0, small ? (const u64 *)&c->run : &mail->size,
                         small ? sizeof(Run) / 8 : 3, news, host, &stop);
                if (small) {
                    const u32 mine = turn;
                    r = *(const Run *)news;
                    turn = mine;
                } else {
                    take(p, s, news[0], news[1], news[2]);
                    NOTE(GRID_PUSH, s.count, s.edges)
                }
            }
            break;
        case PULLING: {
            if (s.k + 2 > SNAPSHOTS) {
                flush(p, s.k, s.base);
                grid_sum(&c->barrier, turn, 0);
                s.base = s.depth, s.k = 0;
                visited = p.snapshot;
                NOTE(FLUSH, 0, 0)
            }
            /* few unvisited vertices do not pay for the copying of hub bits */
            /* mutant: s.left >= p.active / 8 ? p.hub_words : 0 -> 0
             * : test_hub_bits_are_asked_while_many_are_left */
            const u32 hub_words = s.left >= p.active / 8 ? p.hub_words : 0;
            const bool last = few(p, s.left);
            u64 *checks = counts_of(p, s.depth + 1);
            park(&parked, r);
            if (!last) {
                u32 *fresh = visited + p.stride;
                const u32 open =
                    WINDOWS && hub_words
                        ? pull_in_windows(p, visited, fresh, room, warp, warps, lane)
                        : pull(p, visited, fresh, visited, room, WINDOWS ? 0 : hub_words, warp,
                               warps, lane, checks, Nothing());
                r = unpark(&parked);
                const u32 left = (u32)grid_sum(&c->barrier, turn, open, 0, 0, 0, host, &stop);
                const u32 found = s.left - left;
                pulled(p, s, left, false);
                NOTE(s.step, found, left)
                break;
            }
            Last one;
            bool kept = false;
            while (true) {
                const u32 open = pull_last(p, visited, visited + p.stride, visited, room, one,
                                           kept, warp, warps, lane, checks, NoMore());
                r = unpark(&parked);
                const u32 left = (u32)grid_sum(&c->barrier, turn, open, 0, 0, 0, host, &stop);
                const u32 found = s.left - left;
                pulled(p, s, left, true);
                NOTE(s.step, found, left)
                if (s.phase != PULLING || s.k + 2 > SNAPSHOTS || ASKED(p.targets) ||
                    (host && stop))
                    break;
                visited += p.stride;
                if (COUNT && checks) checks = s.depth + 1 < p.rows ? checks + 1 : 0;
                park(&parked, r);
            }
            break;
        }
        case GATHERING:
            if (lead) later->size = later->edges = later->hubs = 0;
            used++;
            gather(p, visited - p.stride, visited, Queue{p.queue[now], p.hub_queue[now], mail},
                   warp, warps, lane);
            grid_sum(&c->barrier, turn, 0, &mail->size, 3, news);
            take(p, s, news[0], news[1], news[2]);
            if (!s.count) { /* the first pull counts what was visited before as found */
                s.phase = FINISHING;
                break;
            }
            flush(p, s.k, s.base);
            grid_sum(&c->barrier, turn, 0);
            s.base = s.k = s.tails = 0, s.phase = PUSHING;
            NOTE(GATHER, s.count, s.edges)
            break;
        default: { /* FINISHING */
            const bool coded = CODES && p.active < p.every;
            if (IN_IDS && coded) make_codes(p, s.k, p.words);
            if (!IN_IDS && !AT_ONCE) {
                park(&parked, r);
                clean(p, p.next_snapshot, p.next_by_first);
                results_by_number(p, parked.s.k, parked.s.base, too_deep(p, parked.s.depth),
                                  OwnCodes{p, coded});
                r = unpark(&parked);
            }
            if (coded) grid_sum(&c->barrier, turn, 0);
            park(&parked, r);
            finish(p, root, room, parked.s);
            r = unpark(&parked);
            if (!IN_IDS) NOTE(RESULTS, 0, 0)
            s.phase = DONE, s.dirty = 0;
        }
        }
    }
    /* a launch without a meeting: all must have read the state */
    if (!turn) grid_sum(&c->barrier, turn, 0);
    if (lead) *p.state = s;
}
