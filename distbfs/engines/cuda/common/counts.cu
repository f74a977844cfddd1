/* Numbers of shortest paths, level by level, from the levels of a search, in one launch.
 *
 * Method: a cooperative grid, one block of 1,024 threads a multiprocessor, meets after each
 * step.  Vertices are sorted by level, hubs still first in each piece.  From a level to the
 * next, counts are pushed along the rows of the upper one, or pulled along the rows of the
 * lower one, whichever is cheaper; a pull reads twice the edges in the same time, as it
 * adds nothing in memory.  A pull reads no levels: only neighbours one level up have a
 * code other than 0; a byte that is the count itself where it is less than
 * 255.  Codes of hubs lie in shared memory.  Rows of LONG edges and more are cut into pieces
 * for warps.
 *
 * Bytes, Kronecker of scale 25 (active 17e6, m 1.05e9): levels by number and lists 0.25e9,
 * results by id 0.5e9, columns of the rows that are looked at, about 0.3 m, 1.3e9: 0.5 ms
 * of an H200's copies; the codes of these 0.3e9 edges, half of them in shared memory and
 * half in L2, are 0.2 and 1.0 ms of its reads, concurrent with the copies.
 *
 * Data: numbers as in graph/device_graph.py.
 * Source: Brandes, A Faster Algorithm for Betweenness Centrality, 2001, Section 3.
 *
 * variants: LEVEL=i8,i32 COUNT=u64,f64
 */
#include "base.cuh"

#define THREADS 1024
#define WARPS (THREADS / 32)
#define NEAR (THREADS / 8) /* levels that blocks count in shared memory */
#define LONG 128           /* edges */
#define AHEAD 4            /* columns that a lane loads before it looks at one */
#define LARGE 255          /* the code of larger counts */
#define EXACT ((COUNT)1 / 2 == 0)

struct Control {
    Barrier barrier;
    u32 tail[2]; /* pieces, of even and odd levels */
    u32 some_long;
    u32 passed; /* the first level where a count passes 64 bits, or 0 */
};

struct Params {
    Uints row, in_row;           /* [active + 1], edges out and in; the same if symmetric */
    const u32 *adj, *in_adj;     /* [m + pad] */
    const u32 *vertices;         /* [active], number -> id */
    const u32 *numbers;          /* [n], id -> number */
    const LEVEL *level;          /* [n], by id, -1: unreached */
    LEVEL *at;                   /* [active], level by number */
    COUNT *sigma;                /* [active], by number */
    COUNT *out;                  /* [n], by id */
    u8 *code;                    /* [active + 16] */
    u32 *order;                  /* [active], numbers by level */
    u64 *begin;                  /* [levels + 1], 0; where each level begins in `order` */
    u64 *edges, *into, *cursor;  /* [levels + 1] each, 0; edges out of a level, and in */
    uint2 *piece;                /* [2 m / LONG]: number, which LONG edges of its row */
    Control *control;            /* [1], 0 */
    u32 n, active, levels, hubs; /* hubs: codes that fit shared memory, in 16s */
    u64 table_edges;             /* of a pull, that pay for the copies of hub codes */
};

/* The state shared by the steps of a level. */
struct Level {
    u32 depth, hubs;
    const u8 *table; /* [hubs], shared */
    bool over;       /* whether a sum of this thread passed 64 bits */
};

INLINE COUNT plus(Level &s, COUNT a, COUNT b) {
    const COUNT sum = a + b;
    if (EXACT) s.over |= sum < b;
    return sum;
}

INLINE void add(Level &s, COUNT *p, COUNT x) {
    const COUNT old = atomicAdd(p, x);
    /* mutant: old + x < old -> false : test_path_counts::test_counts_beyond_64_bits */
    if (EXACT) s.over |= old + x < old;
}

/* Sum of values below 2^32 over a warp. */
INLINE u64 sum_wide(u32 x) {
    return ((u64)__reduce_add_sync(ALL, x >> 16) << 16) + __reduce_add_sync(ALL, x & 0xffff);
}

/* Levels by number, counts of level 0, and the vertices and edges of each level. */
INLINE void tally(const Params &p, u32 first, u32 last, u32 *sizes, u64 *out, u64 *in) {
    const u32 lane = lane_id();
    const bool directed = p.row.at != p.in_row.at;
    u32 most = 0;
    for (u32 k = first + threadIdx.x / 32 * 32 * AHEAD; k < last; k += THREADS * AHEAD) {
        int level[AHEAD];
        u32 degree[AHEAD], in_degree[AHEAD];
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            const u32 v = k + 32 * j + lane;
            level[j] = v < last ? (int)p.level[p.vertices[v]] : -1;
            degree[j] = level[j] < 0 ? 0 : (u32)(p.row[v + 1] - p.row[v]);
            in_degree[j] = degree[j];
            if (directed) in_degree[j] = level[j] < 0 ? 0 : (u32)(p.in_row[v + 1] - p.in_row[v]);
        }
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            const u32 v = k + 32 * j + lane;
            if (v < last) p.at[v] = level[j], p.sigma[v] = p.code[v] = level[j] == 0;
            most |= (degree[j] | in_degree[j]) >= LONG;
            each_level(level[j], [&](int one, u32 who) {
                const bool mine = level[j] == one;
                const u64 outs = sum_wide(mine ? degree[j] : 0);
                const u64 ins = directed ? sum_wide(mine ? in_degree[j] : 0) : outs;
                if (lane) return;
                if (one < NEAR) {
                    atomicAdd(sizes + one, (u32)__popc(who));
                    atomicAdd(out + one, outs), atomicAdd(in + one, ins);
                } else {
                    atomicAdd(p.begin + one, (u64)__popc(who));
                    atomicAdd(p.edges + one, outs), atomicAdd(p.into + one, ins);
                }
            });
        }
    }
    if (most) p.control->some_long = 1;
}

/* Sizes of levels as where they begin; of one block. */
INLINE void begins(const Params &p) {
    u64 before = 0, total;
    for (u32 k = 0; k <= p.levels; k += THREADS) {
        const u32 i = k + threadIdx.x;
        const u64 size = i <= p.levels ? p.begin[i] : 0;
        const u64 at = before + block_scan<WARPS>(size, total);
        if (i <= p.levels) p.begin[i] = p.cursor[i] = at;
        before += total;
    }
}

/* Numbers by level; next: where this block's begin. */
INLINE void sort(const Params &p, u32 first, u32 last, u32 *next) {
    const u32 lane = lane_id();
    for (u32 k = first + threadIdx.x / 32 * 32 * AHEAD; k < last; k += THREADS * AHEAD) {
        int level[AHEAD];
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            const u32 v = k + 32 * j + lane;
            level[j] = v < last ? (int)p.at[v] : -1;
        }
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
            each_level(level[j], [&](int one, u32 who) {
                u32 at = 0;
                if (lane == 0 && one < NEAR) at = atomicAdd(next + one, (u32)__popc(who));
                else if (lane == 0) at = (u32)atomicAdd(p.cursor + one, (u64)__popc(who));
                at = __shfl_sync(ALL, at, 0) + __popc(who & lanes_below(lane));
                if (level[j] == one) p.order[at] = k + 32 * j + lane;
            });
    }
}

/* Columns e, e + step, … of a row of `count`, NONE beyond it. */
struct Batch {
    u32 v[AHEAD];
};
INLINE Batch load(const u32 *adj, u32 e, u32 count, u32 step) {
    Batch b;
#pragma unroll
    for (int j = 0; j < AHEAD; j++) b.v[j] = e + j * step < count ? adj[e + j * step] : NONE;
    return b;
}

/* A push gives its count to those of a batch that are on the level, a pull returns the sum
 * of theirs. */
template <bool PULL> INLINE COUNT look_at(const Params &p, Level &s, const Batch &b, COUNT given) {
    if (!PULL) {
        bool below[AHEAD];
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
            below[j] = b.v[j] != NONE && p.at[b.v[j]] == (LEVEL)s.depth;
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
            if (below[j]) add(s, p.sigma + b.v[j], given);
        return 0;
    }
    u32 code[AHEAD], small = 0;
    COUNT sum = 0;
#pragma unroll
    for (int j = 0; j < AHEAD; j++)
        code[j] = b.v[j] < s.hubs ? s.table[b.v[j]] : b.v[j] != NONE ? p.code[b.v[j]] : 0;
#pragma unroll
    for (int j = 0; j < AHEAD; j++) {
        if (code[j] < LARGE) small += code[j];
        else sum = plus(s, sum, p.sigma[b.v[j]]);
    }
    return plus(s, sum, (COUNT)small);
}

/* The edges `from`, from + step, … of a row; the next batch is on its way meanwhile. */
template <bool PULL>
INLINE COUNT look_along(const Params &p, Level &s, const u32 *adj, u32 from, u32 count, u32 step,
                        COUNT given) {
    COUNT sum = 0;
    Batch now = load(adj, from, count, step);
    for (u32 e = from; e < count; e += AHEAD * step) {
        const Batch next = load(adj, e + AHEAD * step, count, step);
        sum = plus(s, sum, look_at<PULL>(p, s, now, given));
        now = next;
    }
    return sum;
}

/* Sum over each group of `width` lanes, in all of them. */
INLINE COUNT group_sum(Level &s, COUNT x, u32 width) {
    for (u32 w = width / 2; w; w /= 2) x = plus(s, x, __shfl_xor_sync(ALL, x, w));
    return x;
}

/* Leave the rows of lanes with `mine` as pieces for later. */
INLINE void leave(const Params &p, bool mine, u32 v, u32 count, u32 *tail) {
    const u32 lane = lane_id();
    for (u32 who = __ballot_sync(ALL, mine); who; who &= who - 1) {
        const u32 one = __ffs(who) - 1, pieces = (__shfl_sync(ALL, count, one) + LONG - 1) / LONG;
        const u32 row = __shfl_sync(ALL, v, one);
        u32 at = lane == 0 ? atomicAdd(tail, pieces) : 0;
        at = __shfl_sync(ALL, at, 0);
        for (u32 i = lane; i < pieces; i += 32) p.piece[at + i] = make_uint2(row, i);
    }
}

/* The rows of a list, 32 a warp, each by as many lanes as hold the longest in a batch,
 * where it is not much longer than the others.  Then the batch of the next rows is on its
 * way while one is looked at. */
template <bool PULL>
INLINE void look_at_rows(const Params &p, Level &s, const u32 *list, u32 size, u32 *tail, u32 warp,
                         u32 warps) {
    const Uints row = PULL ? p.in_row : p.row;
    const u32 *adj = PULL ? p.in_adj : p.adj;
    const u32 lane = lane_id();
    for (u64 k = (u64)warp * 32; k < size; k += (u64)warps * 32) {
        const u32 v = k + lane < size ? list[k + lane] : NONE;
        const u64 first = v == NONE ? 0 : row[v];
        u32 count = v == NONE ? 0 : (u32)(row[v + 1] - first);
        leave(p, count >= LONG, v, count, tail);
        if (count >= LONG) count = 0;
        const COUNT own = PULL || !count ? 0 : p.sigma[v];
        const u32 total = __reduce_add_sync(ALL, count), most = __reduce_max_sync(ALL, count);
        const bool even = most * 32 <= total * 4 && most <= 32 * AHEAD;
        const u32 filled = even ? most * 32 : total;
        u32 width = 1;
        while (width < 32 && width * AHEAD * 32 < filled) width *= 2;
        const u32 each = 32 / width, group = lane / width, in_group = lane % width;
        Batch now;
        if (even) {
            const u64 begin = __shfl_sync(ALL, first, group);
            now = load(adj + begin, in_group, __shfl_sync(ALL, count, group), width);
        }
        for (u32 one = group; one < 32; one += each) {
            const u32 edges = __shfl_sync(ALL, count, one);
            const u32 end = __shfl_sync(ALL, v, one);
            const COUNT given = PULL ? 0 : __shfl_sync(ALL, own, one);
            COUNT sum;
            if (even) {
                const u32 after = one + each < 32 ? one + each : one;
                const u64 next_begin = __shfl_sync(ALL, first, after);
                const u32 next_edges = __shfl_sync(ALL, count, after);
                const Batch next = load(adj + next_begin, in_group, next_edges, width);
                sum = look_at<PULL>(p, s, now, given);
                now = next;
            } else {
                const u64 begin = __shfl_sync(ALL, first, one);
                sum = look_along<PULL>(p, s, adj + begin, in_group, edges, width, given);
            }
            if (!PULL) continue;
            sum = group_sum(s, sum, width);
            if (in_group == 0 && edges) p.sigma[end] = sum;
        }
    }
}

template <bool PULL>
INLINE void look_at_pieces(const Params &p, Level &s, u32 pieces, u32 warp, u32 warps) {
    const Uints row = PULL ? p.in_row : p.row;
    const u32 *adj = PULL ? p.in_adj : p.adj;
    for (u32 k = warp; k < pieces; k += warps) {
        const uint2 piece = p.piece[k];
        const u64 first = row[piece.x] + (u64)piece.y * LONG;
        const u64 rest = row[piece.x + 1] - first;
        const u32 edges = rest < LONG ? (u32)rest : LONG;
        const COUNT given = PULL ? 0 : p.sigma[piece.x];
        COUNT sum = look_along<PULL>(p, s, adj + first, lane_id(), edges, 32, given);
        if (!PULL) continue;
        sum = group_sum(s, sum, 32);
        if (lane_id() == 0 && sum != 0) add(s, p.sigma + piece.x, sum);
    }
}

/* Counts by id, eight of a thread at a time. */
INLINE void results(const Params &p) {
    const u64 step = threads_of();
    for (u64 i = thread_of(); i < p.n; i += 8 * step) {
        COUNT counts[8];
        u32 number[8];
        int level[8];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const u64 id = i + j * step;
            level[j] = id < p.n ? (int)p.level[id] : -1;
            number[j] = level[j] > 0 ? p.numbers[id] : NONE;
        }
#pragma unroll
        for (int j = 0; j < 8; j++)
            counts[j] = number[j] == NONE ? (COUNT)(level[j] == 0) : p.sigma[number[j]];
#pragma unroll
        for (int j = 0; j < 8; j++)
            if (i + j * step < p.n) p.out[i + j * step] = counts[j];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) count_paths(const Params p) {
    extern __shared__ uint4 dynamic[];
    __shared__ u32 sizes[NEAR], next[NEAR];
    __shared__ u64 out[NEAR], in[NEAR];
    Control *c = p.control;
    const u32 warps = gridDim.x * WARPS, warp = (threadIdx.x >> 5) * gridDim.x + blockIdx.x;
    const u64 share = ((p.active + gridDim.x - 1) / gridDim.x + 31) / 32 * 32;
    const u64 from = share * blockIdx.x, to = from + share;
    const u32 first = from < p.active ? (u32)from : p.active;
    const u32 last = to < p.active ? (u32)to : p.active, own = threadIdx.x;
    u32 turn = 0;
    if (own < NEAR) sizes[own] = 0, out[own] = in[own] = 0;
    __syncthreads();
    tally(p, first, last, sizes, out, in);
    __syncthreads();
    if (own < NEAR && sizes[own]) {
        atomicAdd(p.begin + own, (u64)sizes[own]);
        atomicAdd(p.edges + own, out[own]), atomicAdd(p.into + own, in[own]);
    }
    grid_sum(&c->barrier, turn, 0);
    if (blockIdx.x == 0) begins(p);
    grid_sum(&c->barrier, turn, 0);
    if (own < NEAR && sizes[own]) next[own] = (u32)atomicAdd(p.cursor + own, (u64)sizes[own]);
    __syncthreads();
    sort(p, first, last, next);
    grid_sum(&c->barrier, turn, 0);
    const bool some_long = c->some_long;
    for (u32 depth = 1; depth < p.levels; depth++) {
        const u64 above = p.begin[depth - 1], at = p.begin[depth], below = p.begin[depth + 1];
        if (at == below) break;
        const u64 pulled = p.into[depth];
        const bool pull = pulled <= 2 * p.edges[depth - 1];
        u32 *tail = c->tail + (depth & 1);
        Level s = {depth, 0, (const u8 *)dynamic, false};
        if (blockIdx.x == 0 && own == 0) c->tail[depth & 1 ^ 1] = 0;
        if (pull) {
            for (u64 i = above + thread_of(); depth > 1 && i < at; i += threads_of()) {
                const u32 v = p.order[i];
                /* mutant: p.sigma[v] < LARGE ? (u8)p.sigma[v] : LARGE -> (u8)(u32)p.sigma[v]
                 * : test_path_counts::test_counts */
                p.code[v] = p.sigma[v] < LARGE ? (u8)p.sigma[v] : LARGE;
            }
            if (depth > 1) grid_sum(&c->barrier, turn, 0);
            if (pulled >= p.table_edges) s.hubs = p.hubs;
            for (u32 i = own; i < s.hubs / 16; i += THREADS) dynamic[i] = ((uint4 *)p.code)[i];
            __syncthreads();
            look_at_rows<true>(p, s, p.order + at, (u32)(below - at), tail, warp, warps);
        } else look_at_rows<false>(p, s, p.order + above, (u32)(at - above), tail, warp, warps);
        grid_sum(&c->barrier, turn, 0);
        if (some_long) {
            if (pull) look_at_pieces<true>(p, s, *tail, warp, warps);
            else look_at_pieces<false>(p, s, *tail, warp, warps);
            if (s.over) atomicCAS(&c->passed, 0u, depth);
            grid_sum(&c->barrier, turn, 0);
        } else if (s.over) atomicCAS(&c->passed, 0u, depth);
    }
    results(p);
}
