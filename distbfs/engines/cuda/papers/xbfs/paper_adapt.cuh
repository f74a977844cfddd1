/* Which strategy a level takes, decided on the device (Figure 7).
 *
 * The edge checks of a level are the edges out of its frontier, which is what a push of
 * it checks; they are added up while the frontier is found.  The paper does not say
 * which number it takes for a level that is pulled.  Vertices that an asynchronous pull
 * found early count with their level, so the choice does not hang on chance.
 *
 * With checks over |E| of alpha or more the level is pulled (double-scan); the first
 * push after that uses no-queue.  A push is single-scan where checks times lambda over
 * |E| reach alpha (equations 1 and 2), else scan-free.
 * XBFS (Gaihre et al., HPDC 2019), Section 4.3. */
#ifndef DISTBFS_PAPER_ADAPT_CUH
#define DISTBFS_PAPER_ADAPT_CUH
#include "paper_state.cuh"

/* Set mode and gather of the level; `pulled`: the level before it was a pull. */
INLINE void choose(const Params &p, State &s, bool pulled) {
    const double share = (double)s.edges / (double)p.m;
    /* mutant: edges / (double)s.before -> before / (double)s.edges : test_records_add_up */
    const double lambda = (double)s.edges / (double)s.before;
    const bool much = share >= p.alpha; /* mutant: >= -> < : test_records_add_up */
    /* mutant: p.frontier == DOUBLE_SCAN ? s.level > 1 : much -> much : test_records_add_up */
    bool pull = p.frontier == DOUBLE_SCAN ? s.level > 1 : much;
    /* mutant: ALWAYS_PULL -> ALWAYS_PUSH : test_records_add_up */
    if (p.direction != EITHER) pull = p.direction == ALWAYS_PULL;

    s.mode = SCAN_FREE;
    if (pull)
        s.mode = PULL;
    /* mutant: ONLY_SINGLE_SCAN -> ONLY_SINGLE_SCAN && pulled : test_records_add_up */
    else if (p.frontier == ONLY_SINGLE_SCAN)
        s.mode = SINGLE_SCAN;
    /* mutant: (p.frontier == ANY || p.frontier == ONLY_NO_QUEUE) -> p.frontier == ONLY_NO_QUEUE
     * : test_records_add_up */
    else if (pulled && (p.frontier == ANY || p.frontier == ONLY_NO_QUEUE))
        s.mode = NO_QUEUE;
    /* mutant: >= -> < : test_records_add_up */
    else if (p.frontier == ANY && (much || share * lambda >= p.alpha))
        s.mode = SINGLE_SCAN;
    s.gather = pulled && (s.mode == SCAN_FREE || s.mode == SINGLE_SCAN);
}

/* The state before the first level; lambda is 1 there. */
INLINE State first_state(const Params &p) {
    State s = {};
    s.level = 1;
    s.levels = 1;
    s.size = 1;
    /* mutant: p.goal.last == 0 -> 0 : test_until::test_strategies_of_xbfs_paper */
    s.done = p.goal.last == 0;
    s.edges = s.before = degree_of(p, p.root);
    choose(p, s, false);
    return s;
}

/* The state after level s.level, from its counters; met: it found the last target. */
INLINE State next_state(const Params &p, const State &s, bool met) {
    const Slot *slot = &p.control->slots[s.level & 3];
    const bool scanned = s.mode == SINGLE_SCAN, pulled = s.mode == PULL;
    const u32 vertices = scanned ? slot->tail : slot->found + slot->early;
    State next = {};
    next.level = s.level + 1;
    next.before = s.edges;
    next.edges = slot->edges + (scanned ? 0 : slot->early_edges);
    next.input = pulled ? s.input : s.input ^ s.gather ^ 1;
    next.size = pulled ? slot->queued : slot->tail;
    next.early = p.control->slots[next.level & 3].early;
    next.levels = s.levels + (vertices != 0);
    const bool complete = vertices == 0 || met || s.level == p.goal.last;
    next.done = complete ? 1 : slot->stop ? 2 : 0;
    choose(p, next, pulled);
    return next;
}

/* One thread of the grid, after level s.level: clear the counters of a later level, and
 * write what the level did. */
INLINE void close_level(const Params &p, const State &s) {
    Slot *slots = p.control->slots;
    if (p.work) {
        const Slot *slot = slots + (s.level & 3);
        const bool pulled = s.mode == PULL, scanned = s.mode == SINGLE_SCAN;
        const u32 at = s.level - 1;
        Record *record = &p.records[at < p.record_capacity ? at : p.record_capacity - 1];
        record->step = s.mode;
        record->frontier = pulled || s.gather ? slot->queued : s.size;
        record->checks = slot->checks;
        record->found_early = pulled ? slots[(s.level + 1) & 3].early : 0;
        record->found = scanned ? slot->tail - s.early : slot->found + record->found_early;
        record->repeats = scanned ? slot->found - record->found : 0;
        record->handed_out = slot->ticket;
        record->donations = slot->donations;
        record->nanoseconds = nanoseconds();
    }
    slots[(s.level + 3) & 3] = Slot{};
}
#endif
