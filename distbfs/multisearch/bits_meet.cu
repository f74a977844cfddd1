/* Levels of requested pairs (search, target) of up to 128 searches, which end as soon as
 * all of these are known.
 *
 * Method: kernel near of lookups.cu has found the levels of most pairs.  `meet` searches
 * from the sources of the others, as bits.cu, but between two levels a warp looks
 * back from each target whose level is open, along edges into it: a neighbour that its
 * search has seen by level d makes it one of level d + 1, else a neighbour's neighbour one
 * of level d + 2.  Only searches with open pairs go on: frontiers lose the bits of all
 * others, and are mostly small again.
 * Data: bits.cuh.
 * Sources: as bits.cuh and lookups.cuh.
 *
 * variants: PIECES=1
 */
#include "bits.cuh"
#include "../engines/cuda/common/sets.cuh"
#include "../engines/cuda/xbfs/lookups.cuh"
#include "bits_level.cuh"

#define STEPS 32    /* reads of a warp for a pair between two levels */
#define BEGINNING 4 /* columns of a neighbour's row that a lane reads */

struct Meet {
    Params p;
    Pairs pairs;   /* level [count + 1], last: whether it was stopped; open [3][4], zero:
                      searches with open pairs, by level in turn */
    u32 k, pad[3]; /* searches */
};

/* A search's visited bits: every WORDS-th word from the first, and its bit in them. */
struct Seen {
    const u32 *word;
    u32 bit;
};
INLINE bool has(const Seen &seen, u32 v) {
    return v != NONE && seen.word[(u64)v * WORDS] & seen.bit;
}

/* The level of v in a search, whose vertices up to `depth` are seen; OPEN where the steps
 * do not suffice.  All lanes of a warp call it. */
INLINE int look_back(const Params &p, const Seen &seen, u32 v, u32 lane, int depth) {
    const Columns row = pulled(p, v);
    int left = STEPS;
    if (has(seen, v)) return depth;
    for (u32 base = 0; base < row.count; base += 32) {
        if (__any_sync(ALL, has(seen, base + lane < row.count ? row.at[base + lane] : NONE)))
            return depth + 1;
        if (!--left) return OPEN;
    }
    for (u32 base = 0; base < row.count; base += 32) { /* most are told by a hub */
        const u32 u = base + lane < row.count ? row.at[base + lane] : NONE;
        const Columns near = u == NONE ? Columns{0, 0} : pulled(p, u);
        bool hit = false;
#pragma unroll
        for (u32 k = 0; k < BEGINNING; k++) hit |= has(seen, k < near.count ? near.at[k] : NONE);
        if (__any_sync(ALL, hit)) return depth + 2;
        if (!--left) return OPEN;
    }
    for (u32 base = 0; base < row.count; base += 32) {
        const u32 u = base + lane < row.count ? row.at[base + lane] : NONE;
        const Columns rest = (u == NONE ? Columns{0, 0} : pulled(p, u)).from(BEGINNING);
        for (u32 longer = __ballot_sync(ALL, rest.count); longer; longer &= longer - 1) {
            const u32 who = __ffs(longer) - 1, count = __shfl_sync(ALL, rest.count, who);
            const u32 *at = (const u32 *)__shfl_sync(ALL, (u64)rest.at, who);
            for (u32 k = 0; k < count; k += 32) {
                if (__any_sync(ALL, has(seen, k + lane < count ? at[k + lane] : NONE)))
                    return depth + 2;
                if (!--left) return OPEN;
            }
        }
    }
    return OPEN;
}

/* A pair is open; its search goes on. */
INLINE void stays_open(const Meet &m, u32 q, u32 *open) {
    atomicOr(open + m.pairs.search[q] / 32, 1u << (m.pairs.search[q] & 31));
}

/* The level of an open pair as far as it is known; all lanes of a warp call it. */
INLINE int level_of_pair(const Meet &m, u32 q, u32 lane, const State &s) {
    if (!s.edges) return -1;
    const u32 i = m.pairs.search[q];
    const Seen seen = {(const u32 *)m.p.seen + i / 32, 1u << (i & 31)};
    return look_back(m.p, seen, number_in(m.pairs.members, m.pairs.numbers, m.pairs.target[q]), lane,
                     (int)s.depth);
}

/* Returns this thread's part of the number of pairs that stay open; marks their searches. */
INLINE u32 meet_pairs(const Meet &m, const Level &l, const State &s, u32 *open) {
    u32 left = 0;
    for (u32 q = l.warp; q < m.pairs.count; q += l.warps) {
        if (m.pairs.level[q] != OPEN) continue;
        const int level = level_of_pair(m, q, l.lane, s);
        if (l.lane) continue;
        if (level != OPEN) {
            m.pairs.level[q] = level;
            continue;
        }
        stays_open(m, q, open);
        left++;
    }
    return left;
}

/* The frontier of the level before l, after a pull, loses all bits but `open`; returns
 * this thread's part of the edges out of what is left. */
INLINE u32 narrow(const Params &p, const Level &l, uint4 open) {
    u32 *mark = (u32 *)l.mark, edges = 0;
    uint4 *cur = (uint4 *)l.cur;
    for (u32 at = l.warp; at < (p.active + 31) / 32; at += l.warps) {
        const u32 bits = mark[at], v = at * 32 + l.lane;
        const bool mine = bits >> l.lane & 1;
        uint4 row = make_uint4(0, 0, 0, 0);
        if (mine) {
            row = cur[v];
            /* mutant: row & open -> without(row, open) : test_every_graph */
            const uint4 kept = row & open;
            if (some(without(row, kept))) cur[v] = kept;
            row = kept;
        }
        const u32 who = __ballot_sync(ALL, some(row) != 0);
        if (l.lane == 0 && who != bits) mark[at] = who;
        if (some(row)) edges += edges_of(p, v);
    }
    return edges;
}

/* Clears what searches leave. */
INLINE void forget(const Params &p) {
    const uint4 zero = make_uint4(0, 0, 0, 0);
    const u32 from = thread_of<u32>(THREADS), step = threads_of<u32>(THREADS);
    for (u64 i = from; i < (u64)p.active * PIECES; i += step)
        p.seen[i] = p.front[0][i] = p.front[1][i] = zero;
    for (u32 k = 0; k < MARKS; k++)
        for (u32 i = from; i < p.words / 4; i += step) ((uint4 *)p.mark[k])[i] = zero;
    if (!from) *p.state = {};
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) meet(const Meet m) {
    __shared__ u32 room[32 * WORDS];
    __shared__ u64 news[2];
    __shared__ u32 stop;
    const Params &p = m.p;
    Grid g = {room, news, &stop, 0, 0};
    const bool lead = blockIdx.x == 0 && threadIdx.x == 0;
    uint4 full = __ldcg((const uint4 *)m.pairs.open);
    if (lead) m.pairs.level[m.pairs.count] = 0;
    if (!some(full)) return;
    if (threadIdx.x == 0) stop = 0;
    forget(p);
    grid_sum(&p.control->barrier, g.turn, 0);
    if (blockIdx.x == 0)
        for (u32 i = threadIdx.x; i < m.k; i += THREADS)
            if (m.pairs.open[i / 32] >> (i & 31) & 1)
                put_first(p, number_in(m.pairs.members, m.pairs.numbers, m.pairs.source[i]), i);
    grid_sum(&p.control->barrier, g.turn, 0);
    State s = *p.state;
    while (!stop) {
        Level l = level_of(p, s.depth + 1);
        u32 *open = m.pairs.open + 4 * (s.depth % 3);
        if (lead) ((uint4 *)m.pairs.open)[(s.depth + 1) % 3] = make_uint4(0, 0, 0, 0);
        if (s.depth) {
            if (!grid_sum(&p.control->barrier, g.turn, meet_pairs(m, l, s, open))) break;
            full = __ldcg((const uint4 *)open);
            if (s.dense) {
                s.edges = grid_sum(&p.control->barrier, g.turn, narrow(p, l, full));
                if (!s.edges) continue; /* no search with open pairs has a frontier */
            }
        }
        make_level(p, l, s, g, full);
    }
    if (lead) m.pairs.level[m.pairs.count] = (int)stop;
}
