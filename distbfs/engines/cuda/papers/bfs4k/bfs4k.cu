/* Engine `bfs4k`: pushes whose work is distributed by the frontier's size and degrees,
 * the whole search in one launch.
 *
 * Method: a cooperative grid, one block of 1,024 threads a multiprocessor, meets once a
 * level.  Frontiers up to 1,024 x K5 vertices are searched by block 0 alone, level after
 * level, with the frontier in shared memory.  A level is distributed by edges where the
 * frontier times K4 is below the resident threads, or by a warp whose rows are shorter
 * than its virtual warps (the paper does not), else by virtual warps of K1 to 32 lanes.
 * Rows of the vertices of highest degree (K2) go to a second queue in pieces.
 * The device makes the choices that the paper makes on the host between kernels.
 * Data: bfs4k.cuh.  Source: Busato, Bombieri: BFS-4K: an Efficient Implementation of BFS
 * for Kepler GPU Architectures, IEEE TPDS 2015, Sections 4 to 6.
 *
 * variants: OFFSET=u32,u64 COUNT=0,1 CLAIM=0,1
 */
#include "bfs4k_visit.cuh"

/* Reset the search and set the root. */
INLINE void begin_search(const Params &p) {
    const u64 all = threads_of(THREADS), me = thread_of(THREADS);
    for (u64 v = me; v < p.active; v += all) {
        p.level[v] = v == p.root ? 0 : -1;
        if (p.parent) p.parent[v] = v == p.root ? p.root : NONE;
    }
#if CLAIM
    for (u64 w = me; w < p.words; w += all)
        p.visited[w] = w == p.root >> 5 ? 1u << (p.root & 31) : 0;
#endif
    const u32 degree = (u32)(p.row[p.root + 1] - p.row[p.root]);
    if (p.root < p.hubs)
        for (u64 k = me; k < pieces_in(p, degree); k += all)
            p.piece[0][k] = make_uint2(p.root, (u32)k);
    else if (me == 0) p.queue[0][0] = p.root;
}

INLINE void first_state(const Params &p, State &s) {
    const u32 degree = (u32)(p.row[p.root + 1] - p.row[p.root]);
    const bool hub = p.root < p.hubs;
    s.depth = s.refused = s.stopped = 0;
    s.count = !hub, s.hubs = hub;
    s.pieces = hub ? pieces_in(p, degree) : 0;
}

/* Whether one block may try: not while a frontier is about as large as one that had too
 * many edges. */
INLINE bool may_be_alone(const State &s) {
    return !s.refused || s.count < s.refused - s.refused / 4;
}

/* The state of a launch between two levels, in shared memory during a level, so that
 * the level has the registers. */
struct Run {
    State s;
    u32 turn, used;
};

/* A level of the whole grid; returns what it was. */
INLINE u32 grid_level(const Params &p, const Run *parked, u32 *room, Mail *mail) {
    const State &s = parked->s;
    const u32 lane = lane_id(), warp = threadIdx.x >> 5, now = s.depth & 1;
    const u32 warps = gridDim.x * WARPS, threads = gridDim.x * THREADS;
    const u32 *queue = queue_of(p, now);
    u64 *tables = (u64 *)(room + WARPS * LOCAL * 32);
    const Table table = {tables + ((u64)(warp / p.group_warps) << p.table), p.table};
    GridSink sink = {p,    room + warp * LOCAL * 32, 0, queue_of(p, now ^ 1), pieces_of(p, now ^ 1),
                     mail};
    Tally tally;
    Visit<GridSink> visit = {p, sink, table, (int)s.depth + 1, lane, tally};
    const u32 turn = warp * gridDim.x + blockIdx.x; /* neighbours on other multiprocessors */
    visit.by_piece(pieces_of(p, now), s.pieces, turn, warps);
    const bool edges = discovers(p, threads, s.count);
    const u32 size = virtual_warp(p, threads, s.count);
    for (u64 base = 0; base < s.count; base += (u64)warps * 32) {
        const u64 at = base + place_of(s.count, turn, warps, lane);
        const u32 many = __popc(__ballot_sync(ALL, at < s.count));
        u32 u = 0, degree = 0;
        u64 row = 0;
        if (!many) break;
        if (at < s.count) {
            u = __ldcg(queue + at);
            row = p.row[u], degree = (u32)(p.row[u + 1] - row);
        }
        visit.rows(u, row, degree, many, edges, size);
    }
    sink.finish(lane, warp);
    TALLY(tally, turned, sink.turned);
    tell(p, tally, s.depth, lane);
    return edges ? GRID_EDGES : GRID_WARPS;
}

/* Block 0 alone: levels until the frontier is empty or too large; it is in memory then,
 * as it was before.  Each level has one __syncthreads. */
INLINE void block_levels(const Params &p, Run *parked, u32 *room) {
    __shared__ Mail mail[3];
    __shared__ u32 stop[2]; /* the host's word, by depth & 1: some still read the last one */
    const u32 lane = lane_id(), warp = threadIdx.x >> 5;
    u64 *const tables = (u64 *)room;
    const Table table = {tables, p.table_alone};
    OFFSET *const rows = (OFFSET *)(tables + (1ull << p.table_alone));
    u32 *const words = (u32 *)(rows + 2 * p.alone);
    u32 depth = parked->s.depth, count = parked->s.count, which = 0;

    if (threadIdx.x < 3) mail[threadIdx.x] = Mail{};
    if (threadIdx.x < 2) stop[threadIdx.x] = 0;
    __syncthreads();
    {
        const Near near = near_of(p, rows, words, depth & 1);
        u32 edges = 0;
        for (u32 i = threadIdx.x; i < count; i += THREADS) {
            const u32 v = __ldcg(queue_of(p, depth & 1) + i);
            const OFFSET begin = p.row[v];
            const u32 degree = (u32)(p.row[v + 1] - begin);
            near.vertex[i] = v, near.begin[i] = begin, near.degree[i] = degree;
            edges += degree < MANY ? degree : MANY;
        }
        edges = __reduce_add_sync(ALL, edges);
        if (lane == 0) atomicAdd((u32 *)&mail[2].edges, edges);
    }
    __syncthreads();
    if (mail[2].edges > EDGES * (u64)p.alone) {
        if (threadIdx.x == 0) parked->s.refused = count;
        return;
    }
    __syncthreads();
    Mail *own;
    do {
        own = &mail[which], which = which == 2 ? 0 : which + 1;
        if (threadIdx.x == 0) mail[which] = Mail{};
        const u32 now = depth & 1;
        const Near from = near_of(p, rows, words, now);
        Tally tally;
        BlockSink sink = {p, near_of(p, rows, words, now ^ 1), queue_of(p, now ^ 1),
                          pieces_of(p, now ^ 1), own};
        Visit<BlockSink> visit = {p, sink, table, (int)depth + 1, lane, tally};
        const bool by_edge = discovers(p, THREADS, count);
        const u32 size = virtual_warp(p, THREADS, count);
        for (u32 base = 0; base < count; base += WARPS * 32) {
            const u32 at = base + place_of(count, warp, WARPS, lane);
            const u32 many = __popc(__ballot_sync(ALL, at < count));
            u32 u = 0, degree = 0;
            u64 row = 0;
            if (!many) break;
            if (at < count) u = from.vertex[at], row = from.begin[at], degree = from.degree[at];
            visit.rows(u, row, degree, many, by_edge, size);
        }
        tell(p, tally, depth, lane);
        if (p.stop && threadIdx.x == 0) stop[now] = (u32)look(p.stop);
        __syncthreads();
        if (threadIdx.x == 0) note(p, depth, by_edge ? BLOCK_EDGES : BLOCK_WARPS, count);
        depth++, count = (u32)own->size;
    } while (depth != (u32)p.goal.last && count && !own->pieces && count <= p.alone &&
             own->edges <= EDGES * (u64)p.alone && !stop[(depth & 1) ^ 1] &&
             /* mutant: !reached(p.goal, p.level, (int)depth) -> true : test_knobs_of_bfs4k */
             !reached(p.goal, p.level, (int)depth));
    const u32 kept = count < p.alone ? count : p.alone;
    for (u32 i = threadIdx.x; i < kept; i += THREADS)
        queue_of(p, depth & 1)[i] = near_of(p, rows, words, depth & 1).vertex[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        parked->s.depth = depth, parked->s.count = count;
        /* the grid comes next, before `alone` of Control is written again */
        parked->s.refused = own->edges > EDGES * (u64)p.alone ? count : 0;
        parked->s.pieces = (u32)own->pieces, parked->s.hubs = (u32)own->hubs;
    }
}

#if !CLAIM
/* More repeats than the queue has room for: make it again, without any. */
INLINE void refill(const Params &p, const State &s, Mail *mail, u32 *room) {
    const u32 lane = lane_id(), warp = threadIdx.x >> 5, now = s.depth & 1;
    GridSink sink = {p, room + warp * LOCAL * 32, 0, queue_of(p, now), pieces_of(p, now), mail};
    const u64 all = (u64)gridDim.x * THREADS;
    for (u64 base = (u64)blockIdx.x * THREADS + warp * 32; base < p.active; base += all) {
        const u64 v = base + lane;
        sink.add(v < p.active && __ldcg(p.level + v) == (int)s.depth, (u32)v, lane);
    }
    sink.finish(lane, warp);
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1) search(const Params p) {
    extern __shared__ uint4 dynamic[];
    __shared__ u64 news[8];
    __shared__ u32 stop; /* the host's word, as all have learnt it */
    __shared__ Run parked;
    u32 *room = (u32 *)dynamic;
    Control *c = p.control;
    const bool lead = blockIdx.x == 0 && threadIdx.x == 0;
    Run r = {{}, c->turn, c->used};
    begin_search(p);
    first_state(p, r.s);
    if (threadIdx.x == 0) stop = 0;
#if COUNT
    if (lead) p.records[p.record_capacity].nanoseconds = nanoseconds();
#endif
    grid_sum(&c->barrier, r.turn, 0); /* all have read the control, too */
    bool met = false;
    while ((r.s.count || r.s.pieces) && r.s.depth != (u32)p.goal.last && !met && !stop) {
        Mail *mail = &c->mail[r.used % 3], *later = &c->mail[(r.used + 1) % 3];
        if (r.s.count > p.alone) r.s.refused = 0;
        if (p.alone && !r.s.pieces && r.s.count <= p.alone && may_be_alone(r.s)) {
            if (blockIdx.x == 0) {
                park(&parked, r);
                block_levels(p, &parked, room);
                __syncthreads();
                r = unpark(&parked);
                if (threadIdx.x == 0) c->alone = r.s;
            }
            grid_sum(&c->barrier, r.turn, 0, (const u64 *)&c->alone, sizeof(State) / 8, news,
                     p.stop, &stop);
            r.s = *(const State *)news;
        } else {
            if (lead) *later = Mail{};
            r.used++;
            park(&parked, r);
            const u32 step = grid_level(p, &parked, room, mail);
            r = unpark(&parked);
            grid_sum(&c->barrier, r.turn, 0, (const u64 *)mail, 3, news, p.stop, &stop);
            if (lead) note(p, r.s.depth, step, r.s.count + r.s.hubs, r.s.pieces);
            r.s.depth++;
            r.s.count = (u32)news[0], r.s.pieces = (u32)news[1], r.s.hubs = (u32)news[2];
        }
#if !CLAIM
        if (r.s.count > p.capacity || r.s.pieces > p.piece_capacity) {
            mail = &c->mail[r.used % 3], later = &c->mail[(r.used + 1) % 3];
            if (lead) *later = Mail{};
            r.used++;
            __syncthreads();
            refill(p, r.s, mail, room);
            grid_sum(&c->barrier, r.turn, 0, (const u64 *)mail, 3, news);
            r.s.count = (u32)news[0], r.s.pieces = (u32)news[1], r.s.hubs = (u32)news[2];
        }
#endif
        __syncthreads(); /* all have read the news */
        met = reached(p.goal, p.level, (int)r.s.depth);
    }
    r.s.stopped = stop && (r.s.count || r.s.pieces) && !met && r.s.depth != (u32)p.goal.last;
    if (lead) c->state = r.s, c->turn = r.turn, c->used = r.used;
}
