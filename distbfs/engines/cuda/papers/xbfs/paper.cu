/* XBFS as published: every frontier and balancing strategy, selectable.
 *
 * Method: the phases of a level are device functions of the headers; `search` runs all
 * levels in one cooperative launch of blocks of THREADS threads, which meet between phases.
 * Data: rows of neighbours by number; status int32 by number, -1 = unvisited; frontier
 * queues of numbers.  The structure Params gives the shape of every array.
 * Source: Gaihre, Wu, Yao, Liu: XBFS: eXploring Runtime Optimizations for Breadth-First
 * Search on GPUs, HPDC 2019, Sections 4 and 5.
 */
#include "balance_degree.cuh"
#include "balance_donation.cuh"
#include "balance_static.cuh"
#include "balance_thread.cuh"
#include "balance_warp.cuh"
#include "frontier_double_scan.cuh"
#include "frontier_no_queue.cuh"
#include "frontier_scan_free.cuh"
#include "frontier_single_scan.cuh"
#include "paper_adapt.cuh"
#include "paper_state.cuh"
#include "pull_async.cuh"
#include "push.cuh"

/* Reset the search. */
INLINE void start(const Params &p) {
    for (u64 v = thread_of<u32>(THREADS); v < p.active; v += threads_of<u32>(THREADS)) {
        store_status(p.level + v, v == p.root ? 0 : UNVISITED);
        if (p.parent) p.parent[v] = v == p.root ? p.root : NONE;
    }
    if (thread_of<u32>(THREADS) != 0) return;
    p.queues[0][0] = p.root;
    for (int k = 0; k < 4; k++) p.control->slots[k] = Slot{};
    if (!p.work) return;
    for (u32 k = 0; k < WORK; k++) p.work[k] = 0;
    p.records[p.record_capacity].nanoseconds = nanoseconds();
}

/* Push: rows of fewer than CHUNK neighbours. */
INLINE void expand_rows(const Params &p, const State &s) {
    Tally tally;
    Slot *slot = &p.control->slots[s.level & 3];
    const u32 *queue = queue_in(p, s);
    const u32 size = s.gather ? slot->queued : s.size;
    ScanFree atomically{p, queue_out(p, s), slot, s.level, tally};
    if (s.mode == SINGLE_SCAN)
        expand(p, queue, size, slot, Every{}, PlainWrite{p, s.level, tally});
    else if (s.mode == NO_QUEUE)
        expand(p, queue, size, slot, JustFound{p.level, s.level - 1}, atomically);
    else
        expand(p, queue, size, slot, Every{}, atomically);
    add_tally(p, tally, s.level);
}

/* Push: chunks of longer rows. */
INLINE void expand_long_rows(const Params &p, const State &s) {
    Tally tally;
    Slot *slot = &p.control->slots[s.level & 3];
    if (s.mode == SINGLE_SCAN)
        expand_chunks(p, slot->chunks, PlainWrite{p, s.level, tally});
    else
        expand_chunks(p, slot->chunks,
                      ScanFree{p, queue_out(p, s), slot, s.level, tally});
    add_tally(p, tally, s.level);
}

template <class Rule>
INLINE void pull_queue(const Params &p, const State &s, Tally &tally) {
    Slot *slot = &p.control->slots[s.level & 3];
    const u32 *queue = queue_in(p, s);
    const u32 size = slot->queued;
    if (p.balance == STATIC)
        pull_static<Rule>(p, queue, size, slot, s.level, tally);
    else if (p.balance == THREAD)
        pull_thread<Rule>(p, queue, size, slot, s.level, tally);
    /* mutant: WARP -> WARP && !p.asynchronous : test_how_balances_hand_entries_out */
    else if (p.balance == WARP)
        pull_warp<Rule>(p, queue, size, slot, s.level, tally);
    else if (p.balance == DONATION)
        pull_donation<Rule>(p, queue, size, slot, s.level, tally);
    else
        pull_degree<Rule>(p, queue, size, slot, s.level, tally);
}

/* Whether a pull may find vertices of the level after: not where this one may be the last. */
INLINE bool runs_ahead(const Params &p, const State &s) {
    /* mutant: !p.goal.count && s -> s : test_until::test_strategies_of_xbfs_paper */
    /* mutant: && s.level != p.goal.last -> : test_until::test_strategies_of_xbfs_paper */
    return p.asynchronous && !p.goal.count && s.level != p.goal.last;
}

INLINE void pull(const Params &p, const State &s) {
    Tally tally;
    if (p.work) open_work();
    /* mutant: s) -> s) && p.balance == STATIC : test_an_asynchronous_pull_finds_the_next_level */
    if (runs_ahead(p, s))
        pull_queue<Asynchronous>(p, s, tally);
    else
        pull_queue<Synchronous>(p, s, tally);
    __syncwarp();
    if (p.work) close_work(p, &p.control->slots[s.level & 3]);
    add_tally(p, tally, s.level);
}

INLINE bool adopts(const State &s) { return s.mode == NO_QUEUE && s.early; }

/* All blocks meet. */
INLINE void meet(const Params &p, u32 &turn) { grid_sum(&p.control->barrier, turn, 0); }

/* One level of a search in one launch; the meeting after its last phase is left to the
 * caller. */
INLINE void run_level(const Params &p, const State &s, u32 &turn) {
    if (s.mode == PULL) {
        count_unvisited(p);
        meet(p, turn);
        place_unvisited(p, s);
        meet(p, turn);
        pull(p, s);
        return;
    }
    if (s.gather) gather_frontier(p, s);
    if (adopts(s)) adopt_early(p, s);
    if (s.gather || adopts(s)) meet(p, turn);
    expand_rows(p, s);
    meet(p, turn);
    if (p.control->slots[s.level & 3].chunks) {
        expand_long_rows(p, s);
        if (s.mode == SINGLE_SCAN) meet(p, turn);
    }
    if (s.mode == SINGLE_SCAN) scan_level(p, s);
}

/* The whole search; a cooperative launch. */
extern "C" __global__ void __launch_bounds__(THREADS, 5) search(const Params p) {
    __shared__ State state;
    u32 turn = p.control->turn;
    start(p);
    if (threadIdx.x == 0) state = first_state(p);
    meet(p, turn);
    while (!state.done) {
        run_level(p, state, turn);
        if (p.stop && thread_of<u32>(THREADS) == 0)
            p.control->slots[state.level & 3].stop = (u32)look(p.stop);
        meet(p, turn);
        const bool met = reached(p.goal, p.level, state.level);
        if (threadIdx.x == 0) {
            if (blockIdx.x == 0) close_level(p, state);
            state = next_state(p, state, met);
        }
        __syncthreads();
    }
    if (thread_of<u32>(THREADS) == 0) p.control->state = state, p.control->turn = turn;
}
