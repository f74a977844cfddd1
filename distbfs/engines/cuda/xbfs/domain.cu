/* A whole search on several devices of one host, one cooperative launch on each.
 *
 * The steps are those of method fast (search.cu), and every choice is made alike on all
 * devices, from sums over all of them.  Frontiers of few edges are pushed by block 0 of
 * each device; as long as rows are short, such a level is one exchange of messages between
 * these blocks.  Wider ones are pushed by queue, pairs for owners meanwhile; a push that is
 * followed by a pull marks; pulls read the replica of one snapshot and make the next, whose
 * words go to all devices inside the pull, and those that change later when their block has
 * no more to do; where few are found, their bits are set one by one (domain_late.cuh).
 * Where a search has targets, all devices meet once more after each level and add up how
 * many are missing.  Where the word of a host was seen, all end after the same level,
 * without results.
 * The form PLAIN has only all levels from one root; some devices may take it, and not others.
 * Where rows have tails in host memory (SPLIT), each device reads its own, and where some
 * edges are not seen (MASKED), it looks at the bits of its own columns besides (rows.cuh).
 * Where edges lead one way (DIRECTED), pushes follow edges out and pulls look at edges in; a
 * level of vertices without edges out is the last one.
 * Data: domain.cuh; meetings: domain_meet.cuh.  Sources: those of search.cu; Pan, Pearce,
 * Owens 2018 (owner v mod p).
 *
 * variants: OFFSET=u32 COUNT=0 IN_IDS=0,1 SPLIT=0 | OFFSET=u64 COUNT=0 IN_IDS=1 SPLIT=0,1 | OFFSET=u32 COUNT=0 IN_IDS=1 SPLIT=0 MASKED=1 | OFFSET=u32 COUNT=1 IN_IDS=0,1 SPLIT=0 MASKED=1 | OFFSET=u64 COUNT=1 IN_IDS=0,1 SPLIT=1 MASKED=1 | OFFSET=u32,u64 COUNT=0 IN_IDS=0,1 SPLIT=0 PLAIN=1 | OFFSET=u64 COUNT=0 IN_IDS=0,1 SPLIT=0 DIRECTED=1 | OFFSET=u64 COUNT=0 IN_IDS=1 SPLIT=1 DIRECTED=1 | OFFSET=u64 COUNT=1 IN_IDS=0,1 SPLIT=1 MASKED=1 DIRECTED=1
 */
#include "domain.cuh"
#include "domain_late.cuh"
#include "domain_leaves.cuh"
#include "domain_level.cuh"
#include "domain_publish.cuh"
#include "domain_push.cuh"
#include "gather.cuh"
#include "pull.cuh"
#include "pull_last.cuh"
#include "seeds.cuh"

/* A pull is done and leaves `left` vertices of all. */
INLINE void pulled(const Member &r, JointState &j, u64 left, bool last) {
    State &s = j.s;
    const u64 found = s.left - left;
    s.depth++, s.k++, s.step = last ? PULL_LAST : PULL;
    s.left = (u32)left, s.tails += last, j.now ^= 1;
    j.listed = last && j.late, j.lates += j.listed, j.late = found <= MOST_LATE;
    /* what has found as many as the largest component has can go nowhere else */
    /* mutant: left <= r.outside -> !left : test_a_component_that_is_known */
    /* mutant: left <= r.outside || !found || ends(r.own, s) -> !left || !found || s.depth >
     * r.own.last : test_resident_until::test_after_every_step */
    if (left <= r.outside || !found || ends(r.own, s)) s.phase = FINISHING;
    else if (ASKED(r.own.pull_only)) s.phase = PULLING;
    else if (last ? s.tails >= MOST_TAILS && found <= SMALL : found * 8 < left && !few(r, left))
        s.phase = GATHERING;
}

/* Levels by block 0 of each device, until the frontier is wide or empty; false where the
 * search has failed. */
INLINE bool narrow(const Member &r, JointState &j) {
    const Params &p = r.own;
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const bool lead = threadIdx.x == 0;
    __shared__ Mail own;
    __shared__ u32 sent[MOST_PARTS];
    __shared__ Received received;
    u32 *filter = replica_of(r, r.index, j.now);
    if (!j.known && !ASKED(p.from_set)) { /* the root's device may push before others know */
        __syncthreads();
        if (lead && j.s.count) {
            j.count = 1, j.edges = j.most = j.s.edges;
            j.known = pushes_alone(r, j) && !ends(p, j.s);
        }
        __syncthreads();
    }
    while (true) {
        const bool known = j.known;
        const u32 level = j.s.depth + 1, to = level & 1;
        if (lead) {
            own.size = known ? 0 : j.s.edges << 32 | j.s.count;
            own.edges = known ? 0 : j.s.edges, own.hubs = known ? 0 : j.s.hubs;
        }
        if (threadIdx.x < MOST_PARTS) sent[threadIdx.x] = 0;
        __syncthreads();
        const Queue next = {p.queue[to], p.hub_queue[to], &own};
        if (known) {
            count_tails(p, p.queue[to ^ 1], j.s.count, counts_of(p, level), warp, WARPS, lane);
            push(p, p.queue[to ^ 1], j.s.count, (u32)j.s.edges,
                 Send{r, p.snapshot, filter, level, next, sent, true}, warp, WARPS, lane);
            __syncthreads();
            if (COUNT && lead && level < p.rows) p.counts[level] += j.s.edges;
        }
        if (!post(r, j, known, own, sent, received)) return false;
        /* mutant: sum_of(r, received, VALUE) -> known
         * : test_resident_kernels::test_thresholds_that_force_each_way */
        const u64 pushed = sum_of(r, received, VALUE), pairs = sum_of(r, received, SENT);
        if (lead) {
            if (pushed) j.s.depth = level, j.s.step = BLOCK_PUSH, j.complete = 0;
            take(r, j, received);
        }
        if (pairs) {
            for (u32 t = 0; t < r.parts; t++)
                if (t != r.index)
                    claim_pairs(r, few_at(r, r.index, t, to), received.word[t][FOR_YOU],
                                p.snapshot, level, next, warp, WARPS, lane);
            if (threadIdx.x < MOST_PARTS) sent[threadIdx.x] = 0;
            __syncthreads();
            if (lead) { /* what they are at most will do while rows are short */
                const u64 more = pairs * r.longest;
                j.edges += more, j.most += more, j.count += pairs;
                j.known = pushes_alone(r, j);
                j.s.count = (u32)own.size, j.s.hubs = (u32)own.hubs;
                j.s.edges = sizeof(OFFSET) == 8 ? own.edges : own.size >> 32;
                if (j.s.count) j.deepest = level;
            }
            __syncthreads();
            if (!j.known) {
                if (!post(r, j, 0, own, sent, received)) return false;
                if (lead) take(r, j, received);
            }
        }
        if (lead) {
            j.known = 1;
            if (DIRECTED && own.hubs >> 32) j.deepest = level;
            j.going = j.count && pushes_alone(r, j) && !ends(p, j.s);
            /* a level that is looked through for targets ends with a meeting of all blocks:
             * its control may be written again only then */
            if ((ASKED(p.targets) && j.s.depth) || j.stop) j.going = 0;
            if (pushed) note(r, j, BLOCK_PUSH, j.count, j.edges);
        }
        __syncthreads();
        if (!j.going) return true;
    }
}

/* Whether there are levels to search: what is found is not all, nor as deep as is wanted. */
INLINE bool goes_on(const Member &r, const JointState &j) {
    const State &s = j.s;
    const bool over = s.phase == PUSHING && j.known && (!j.count || ends(r.own, s));
    return s.phase < FINISHING && !over;
}

/* The queue that block 0 begins with, where the root is of this device. */
INLINE void begin(const Member &r, JointState &j) {
    const Params &p = r.own;
    State &s = j.s;
    const u32 root = p.root == ELSEWHERE ? NONE : number_of(p, p.root);
    const bool some = root != NONE;
    s.depth = s.base = s.k = s.tails = 0, s.dirty = 1, s.phase = PUSHING, s.step = START;
    s.count = some, s.hubs = some && root < p.hubs;
    s.left = (u32)(r.active_all - (DIRECTED ? p.bare_count : 0)); /* of all parts */
    /* mutant: degree_at(p, root, -> (u64)(p.row[root + 1] -
     * : test_split_domains::test_each_way_with_the_least_on_the_devices */
    s.edges = some ? degree_at(p, root, p.row[root]) : 0;
    if (blockIdx.x || !some) return;
    p.queue[0][0] = make_uint4(root, 0, (u32)p.row[root], (u32)s.edges);
    if (root < p.hubs) p.hub_queue[0][0] = root;
    if (root < p.active) atomicOr(p.snapshot + (root >> 5), 1u << (root & 31));
    p.direct[root] = 0;
    if (p.parents) p.parent[root] = position_of(r, root);
}

/* The queues that all devices begin with where there is a set of roots, or what makes them
 * begin with a pull; false where the search has failed. */
INLINE bool begin_at_set(const Member &r, JointState &j, u32 warp, u32 warps, u32 lane) {
    const Params &p = r.own;
    Mail *mail = &p.control->mail[0];
    begin_set(p, Queue{p.queue[0], p.hub_queue[0], mail}, warp, warps, lane,
              [&](u32 v) { return position_of(r, v); });
    if (!meet_here(r, j)) return false;
    if (threadIdx.x == 0) {
        State &s = j.s;
        const u64 size = __ldcg(&mail->size);
        j.used = 1, s.count = (u32)size, s.hubs = (u32)__ldcg(&mail->hubs);
        s.edges = sizeof(OFFSET) == 8 ? __ldcg(&mail->edges) : size >> 32;
        if (p.from_set == BY_PULL) {
            s.count = p.root_count;
            j.known = 1, j.count = r.active_all, j.edges = j.most = p.pull_edges;
        }
    }
    __syncthreads();
    return true;
}

/* What follows a pull that leaves `open` vertices to this thread, and whose words are in all
 * replicas; false where the search has failed. */
INLINE bool pull_ends(const Member &r, JointState &j, Received &received, u32 open, bool last) {
    if (!meet(r, j, open, 0, 0, received)) return false;
    if (threadIdx.x == 0) {
        const u64 left = sum_of(r, received, VALUE), found = j.s.left - left;
        pulled(r, j, left, last);
        if (blockIdx.x == 0) note(r, j, j.s.step, found, left);
    }
    __syncthreads();
    return true;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) search(const __grid_constant__ Member r) {
    extern __shared__ uint4 dynamic[];
    u32 *room = (u32 *)dynamic;
    const Params &p = r.own;
    const u32 lane = threadIdx.x & 31, warps = gridDim.x * WARPS;
    const u32 warp = (threadIdx.x >> 5) * gridDim.x + blockIdx.x; /* neighbours on other SMs */
    const bool first = threadIdx.x == 0, lead = blockIdx.x == 0 && first;
    __shared__ JointState j;
    __shared__ Received received;
    if (first) {
        const DeviceControl *control = r.device;
        j.s = *p.state;
        j.edges = j.count = j.most = 0;
        j.used = j.traced = j.deepest = j.now = j.complete = j.known = j.going = 0;
        j.late = j.listed = j.lates = j.stop = 0;
        j.turn = control->turn, j.met = control->met, j.met_here = control->met_here;
        if (lead) note(r, j, START, 0, 0);
    }
    if (blockIdx.x == 0) {
        for (u32 i = threadIdx.x; i < sizeof(Control) / 8; i += THREADS) ((u64 *)p.other)[i] = 0;
        if (threadIdx.x < 3 * 16) {
            ((u32 *)r.device->sent)[threadIdx.x] = 0;
            ((u32 *)r.device->found)[threadIdx.x] = 0;
        }
    }
    __syncthreads();
    const bool dirty = j.s.dirty;
    __syncthreads();
    if (dirty) {
        clean(p, p.snapshot, p.by_first);
        if (!meet_here(r, j)) return;
    }
    if (first) begin(r, j);
    __syncthreads();
    if (ASKED(p.from_set) && !begin_at_set(r, j, warp, warps, lane)) return;
    while (j.s.phase < DONE) {
        const State &s = j.s;
        u32 *visited = p.snapshot + s.k * p.stride;
        Mail *mail = &p.control->mail[j.used % 3];
        u32 *sent = r.device->sent[j.used % 3];
        if (ASKED(p.targets) && s.depth && s.phase != FINISHING) {
            if (!meet(r, j, missed(p, visited), 0, 0, received)) return;
            if (first && !sum_of(r, received, VALUE)) j.s.phase = FINISHING;
            __syncthreads();
        }
        if (j.stop && goes_on(r, j)) {
            __syncthreads();
            if (first) j.s.phase = STOPPED;
            /* mutant: clean_replicas(r) -> : test_parts_learn_at_each_kind_of_meeting */
            clean_replicas(r);
            __syncthreads();
            break;
        }
        switch (s.phase) {
        case PUSHING: {
            const bool by_queue = pushes(r, j);
            /* mutant: ends(p, s) -> s.depth > p.last
             * : test_resident_until::test_levels_and_targets */
            if (j.known && (!j.count || ends(p, s))) {
                __syncthreads();
                if (first) {
                    j.s.phase = FINISHING;
                    if (!DIRECTED && !j.count && s.depth) j.s.depth--; /* it has found nothing */
                }
                __syncthreads();
                break;
            }
            if (!j.known || (j.most <= ALONE && by_queue)) {
                if (blockIdx.x == 0) {
                    if (!narrow(r, j)) return;
                    if (first) r.device->joint = j, r.device->joint.met_here++;
                }
                if (!meet_here(r, j, true)) return;
                break;
            }
            /* a root that is a leaf is no neighbour of what is pulled */
            const bool may_pull = s.depth || p.active == p.every;
            if (!ASKED(p.push_only) && may_pull && (pulls_at_once(r, j) || ASKED(p.pull_only))) {
                if (!j.complete) {
                    publish_changes(r, visited, j.now);
                    if (!meet(r, j, 0, 0, 0, received)) return;
                }
                __syncthreads();
                if (first) {
                    j.complete = 1, j.late = j.listed = 0;
                    j.s.phase = PULLING, j.s.base = s.depth;
                }
                __syncthreads();
                break;
            }
            const u32 then = (j.used + 1) % 3;
            Mail *later = &p.control->mail[then];
            if (lead) later->size = later->edges = later->hubs = 0;
            if (blockIdx.x == 0 && threadIdx.x < MOST_PARTS) r.device->sent[then][threadIdx.x] = 0;
            bool pairs;
            const bool fine =
                by_queue ? push_level(r, j, received, mail, sent, pairs, warp, warps, lane) &&
                               (!pairs || meet(r, j, 0, mail, 0, received))
                         : mark_level(r, j, received, room, mail, sent, warp, warps, lane) &&
                               meet(r, j, 0, 0, 0, received);
            if (!fine) return;
            if (first) {
                j.used++, j.s.depth++;
                if (COUNT && lead && s.depth < p.rows) p.counts[s.depth] += s.edges;
                if (by_queue) {
                    j.complete = 0, j.s.step = GRID_PUSH;
                    take(r, j, received);
                    if (DIRECTED && __ldcg(&mail->hubs) >> 32) j.deepest = s.depth;
                } else {
                    j.s.base = s.depth - 1, j.s.k = 1, j.s.step = MARK_PUSH;
                    j.s.phase = ends(p, s) ? FINISHING : PULLING;
                    j.now ^= 1, j.complete = 1, j.late = j.listed = 0;
                }
                if (lead) note(r, j, by_queue ? s.step : MERGE, j.count, j.edges);
            }
            __syncthreads();
            break;
        }
        case PULLING: {
            if (s.k + 2 > SNAPSHOTS) {
                flush(p, s.k, s.base);
                if (!meet_here(r, j)) return;
                if (first) {
                    j.s.base = s.depth, j.s.k = 0;
                    if (lead) note(r, j, FLUSH, 0, 0);
                }
                __syncthreads();
                visited = p.snapshot;
            }
            /* few unvisited vertices do not pay for the copying of hub bits */
            const u32 hub_words = s.left >= r.active_all / 8 ? p.hub_words : 0;
            u64 *checks = counts_of(p, s.depth + 1);
            const bool last = few(r, s.left);
            if (!last) {
                u32 *fresh = visited + p.stride;
                const u32 open =
                    pull(p, visited, fresh, replica_of(r, r.index, j.now), room, hub_words, warp,
                         warps, lane, checks, Publish{r, fresh, j.now ^ 1});
                reload();
                if (!pull_ends(r, j, received, open, false)) return;
                break;
            }
            Last one;
            bool kept = false;
            do {
                u32 *fresh = visited + p.stride;
                const u32 turn = j.lates;
                u32 *found = r.device->found[turn % 3];
                const Late tell = {r, j.now ^ 1, (u32 *)p.queue[turn & 1], found, j.late != 0};
                if (tell.is) {
                    if (lead) *r.device->found[(turn + 1) % 3] = 0;
                    const u32 *before = j.listed ? (u32 *)p.queue[turn & 1 ^ 1] : 0;
                    catch_up(r, visited, tell.which, before,
                             __ldcg(r.device->found[(turn + 2) % 3]));
                }
                const u32 open = pull_last(p, visited, fresh, replica_of(r, r.index, j.now), room,
                                           one, kept, warp, warps, lane, checks, tell);
                reload();
                /* mutant: !tell.is -> 0
                 * : test_resident_kernels::test_thresholds_that_force_each_way */
                if (!tell.is) publish_last(r, fresh, j.now ^ 1, warp, warps, lane);
                if (!pull_ends(r, j, received, open, true)) return;
                visited = fresh;
                if (COUNT && checks) checks = s.depth + 1 < p.rows ? checks + 1 : 0;
            } while (s.phase == PULLING && s.k + 2 <= SNAPSHOTS && !ASKED(p.targets) && !j.stop);
            break;
        }
        case GATHERING: {
            const u32 then = (j.used + 1) % 3, now = s.depth & 1;
            Mail *later = &p.control->mail[then];
            if (lead) later->size = later->edges = later->hubs = 0;
            if (blockIdx.x == 0 && threadIdx.x < MOST_PARTS) r.device->sent[then][threadIdx.x] = 0;
            gather(p, visited - p.stride, visited, Queue{p.queue[now], p.hub_queue[now], mail},
                   warp, warps, lane);
            if (!meet(r, j, 0, mail, 0, received)) return;
            if (first) {
                j.used++;
                take(r, j, received);
            }
            __syncthreads();
            if (j.count) {
                flush(p, s.k, s.base);
                if (!meet_here(r, j)) return;
            }
            if (first) { /* the first pull counts what was visited before as found */
                j.s.phase = j.count ? PUSHING : FINISHING;
                if (j.count) {
                    j.s.base = j.s.k = j.s.tails = 0;
                    if (lead) note(r, j, GATHER, j.count, j.edges);
                }
            }
            __syncthreads();
            break;
        }
        default: /* FINISHING; results by id are written by another kernel */
            tell_codes(r, j);
            if (!IN_IDS) clean(p, p.next_snapshot, p.next_by_first);
            clean_replica(r, j.now ^ 1);
            if (leaves_out(p) && !level_leaves(r, j, room, received)) return;
            clean_replica(r, j.now);
            if (!IN_IDS && lead) note(r, j, RESULTS, 0, 0);
            __syncthreads();
            if (first) j.s.phase = DONE, j.s.dirty = 0;
            __syncthreads();
        }
    }
    if (lead) {
        DeviceControl *control = r.device;
        *p.state = j.s;
        control->turn = j.turn, control->met = j.met, control->met_here = j.met_here;
        control->deepest = j.deepest;
        control->failed = look_system(&r.mailbox[r.index]->failed);
    }
}
