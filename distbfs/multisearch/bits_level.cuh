/* Level 0 of searches, and a level that one grid makes, with its direction. */
#ifndef DISTBFS_BITS_LEVEL_CUH
#define DISTBFS_BITS_LEVEL_CUH
#include "bits_pull.cuh"
#include "bits_push.cuh"

/* What the blocks of a launch share, and the numbers of their meetings and queues. */
struct Grid {
    u32 *room;     /* [32 * WORDS], shared */
    u64 *news;     /* [2], shared */
    u32 *stop;     /* shared: the host's word, as all have learnt it */
    u32 turn, used;
};

/* Puts vertex v on level 0 of search i; all of seen, front, mark and state was zero. */
INLINE void put_first(const Params &p, u32 v, u32 i) {
    const u64 at = (u64)v * WORDS + i / 32;
    atomicOr((u32 *)p.seen + at, 1u << (i & 31));
    atomicOr((u32 *)p.front[0] + at, 1u << (i & 31));
    const u32 bit = 1u << (v & 31);
    if (atomicOr(p.mark[0] + (v >> 5), bit) & bit) return;
    atomicAdd(&p.state->edges, (u64)edges_of(p, v));
    if (v < p.hubs) p.queue[0][p.active - 1 - atomicAdd(&p.state->hubs, 1u)] = v;
    else p.queue[0][atomicAdd(&p.state->count, 1u)] = v;
}

/* Counts what a level adds to a queue, from zero. */
INLINE void take_size(const Params &p, Level &l, Grid &g) {
    l.size = &p.control->size[16 * (g.used % 3)];
    if (blockIdx.x == 0 && threadIdx.x == 0) p.control->size[16 * ((g.used + 1) % 3)] = 0;
    g.used++;
}

/* Makes the level l after s.depth, which then is the state's.
 * full: the searches there are, of this lane's piece */
INLINE void make_level(const Params &p, Level &l, State &s, Grid &g, uint4 full) {
    const u32 side = s.depth & 1;
    Barrier *b = &p.control->barrier;
    clear_mark(p, l.depth);
    if (s.edges >= p.pull_edges) { /* mutant: >= -> < : test_levels_of_many_edges_are_pulled */
        const u32 edges = pull(p, l, g.room, full);
        s.edges = grid_sum(b, g.turn, edges, 0, 0, 0, p.stop, g.stop);
        s.dense = 1, s.pulls++;
    } else {
        if (s.dense) {
            take_size(p, l, g);
            l.next_queue = p.queue[side];
            empty_rows(p, l);
            gather(p, l, l.mark);
            grid_sum(b, g.turn, 0, l.size, 1, g.news);
            s.count = (u32)g.news[0], s.hubs = (u32)(g.news[0] >> 32), s.dense = 0;
        }
        take_size(p, l, g);
        l.next_queue = p.queue[side ^ 1];
        push(p, l, p.queue[side], s.count, s.hubs);
        grid_sum(b, g.turn, 0, l.size, 1, g.news);
        const u32 count = (u32)g.news[0], hubs = (u32)(g.news[0] >> 32);
        const u32 edges = settle_queue(p, l, p.queue[side], s.count, s.count + s.hubs, count,
                                       count + hubs);
        s.edges = grid_sum(b, g.turn, edges, 0, 0, 0, p.stop, g.stop);
        s.count = count, s.hubs = hubs, s.pushes++;
    }
    s.depth++;
}
#endif
