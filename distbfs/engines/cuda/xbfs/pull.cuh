/* Pull: unvisited vertices look for a visited neighbour in a snapshot.
 *
 * Any visited neighbour is one level up, since all levels before are complete.  A warp
 * takes a tile of bitmap words.  Where most of its vertices are unvisited, each lane
 * tests the first neighbours of four (staged by cp.async while the tile before is
 * worked on), then second to eighth neighbours from columns while many are left; else
 * the unvisited ones are first gathered.  Vertices that need their row wait in a queue
 * of the warp until 32 are together, so that all lanes work; rows are read 32 bytes at
 * a time, long rests by the whole warp.  Where few vertices are left: pull_last.cuh.
 */
#ifndef DISTBFS_XBFS_PULL_CUH
#define DISTBFS_XBFS_PULL_CUH
#include "rows.cuh"
#include "search.cuh"

#define READ 8       /* columns of a row that a lane reads at once, of one sector */
#define LONG_REST 64 /* edges that the whole warp reads */

/* One warp's work of a pull. */
struct Puller {
    const Params &p;
    Visited visited;
    u32 *fresh;   /* next snapshot */
    u32 *wait;    /* [WAIT] vertices */
    u8 *skip;     /* [WAIT] how many of their neighbours have been tested */
    u32 *half;    /* [HALF][2] vertex, edges that are left */
    u32 waiting, halves, lane, checks;
    TailReads tails;
};

/* Found vertices set their bit; the word is this warp's, but written already. */
INLINE void found(const Puller &w, u32 v, u32 parent) {
    if (w.p.parents) w.p.parent[v] = parent;
    red_or(w.fresh + (v >> 5), 1u << (v & 31));
}

/* The warp reads columns at … to - 1 of vertex v until one is visited; returns whether
 * one is, and adds the hit to that lane's. */
INLINE bool scan_rest(Puller &w, u32 v, u64 at, u64 to, u32 &hits) {
    const Params &p = w.p;
    u32 winner = 0;
    for (; at < to && !winner; at += 64) {
        const u64 a = at + w.lane, b = a + 32;
        const u32 x = a < to ? load_once(IN_ADJ(p) + a) : 0u;
        const u32 y = b < to ? load_once(IN_ADJ(p) + b) : 0u;
        const u32 both[2] = {x, y}, seen = w.visited.of(both, (u32)(a < to) | (u32)(b < to) << 1);
        const bool hx = seen & 1 && in_edge_seen(p, a), hy = seen & 2 && in_edge_seen(p, b);
        if (COUNT) w.checks += (a < to) + (b < to);
        winner = __ballot_sync(ALL, hx || hy);
        if (winner && w.lane == __ffs(winner) - 1) found(w, v, hx ? x : y), hits++;
    }
    return winner;
}

/* A step for 32 waiting vertices: FRESH ones have not read their row yet.  What is left of
 * a row counts its tail, which is read by the whole warp. */
template <bool FRESH> INLINE u32 step(Puller &w) {
    const Params &p = w.p;
    u32 &size = FRESH ? w.waiting : w.halves;
    const u32 count = size < 32 ? size : 32;
    size -= count;
    const bool mine = w.lane < count;
    u32 v = 0, hits = 0, tail = 0;
    OFFSET at = 0, end = 0;
    if (mine) {
        if (FRESH) {
            v = w.wait[size + w.lane];
            at = IN_ROWS(p).row[v] + w.skip[size + w.lane];
            end = IN_ROWS(p).row[v + 1];
            tail = tail_of(IN_ROWS(p), v);
        } else {
            const u32 *h = w.half + (size + w.lane) * 2;
            v = h[0];
            end = IN_ROWS(p).row[v + 1];
            tail = tail_of(IN_ROWS(p), v);
            at = end - (h[1] - tail);
        }
    }
    __syncwarp();
    if (at < end) {
        const OFFSET block = at & ~(OFFSET)(READ - 1);
        const uint4 x = load_once4(IN_ADJ(p) + block), y = load_once4(IN_ADJ(p) + block + 4);
        const u32 u[READ] = {x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w};
        const u32 before = (1u << (at - block)) - 1, whole = (1u << READ) - 1;
        const u32 inside = (end - block < READ ? (1u << (end - block)) - 1 : whole) & ~before;
        if (COUNT) w.checks += __popc(inside);
        u32 hit = w.visited.of(u, inside), parent = 0;
#if MASKED
        /* mutant: >> (block & 31) -> | ALL : test_masked_kernels::test_masks_in_every_way */
        if (!SEES_ALL || IN_SEEN(p)) hit &= IN_SEEN(p)[block >> 5] >> (block & 31); /* in one word */
#endif
#pragma unroll
        for (int i = READ - 1; i >= 0; i--)
            if (hit >> i & 1) parent = u[i];
        at = block + READ;
        if (hit) {
            found(w, v, parent);
            hits = 1;
            at = end;
            tail = 0;
        }
    }
    const u32 head = at < end ? (u32)(end - at) : 0;
    const bool more = head + tail;
    const bool longer = more && (!head || head + tail > LONG_REST);
    const u32 again = __ballot_sync(ALL, more && !longer);
    if (more && !longer) {
        u32 *h = w.half + (w.halves + __popc(again & lanes_below(w.lane))) * 2;
        h[0] = v;
        h[1] = head + tail;
    }
    w.halves += __popc(again);
    for (u32 todo = __ballot_sync(ALL, longer); todo; todo &= todo - 1) {
        const u32 one = __ffs(todo) - 1, who = __shfl_sync(ALL, v, one);
        const OFFSET r = __shfl_sync(ALL, at, one), to = __shfl_sync(ALL, end, one);
        const bool hit = scan_rest(w, who, r, to, hits);
        const u32 rest = __shfl_sync(ALL, tail, one);
        if (!SPLIT || hit || !rest) continue;
        const u64 from = tail_at(IN_ROWS(p), who);
        const u32 before = w.checks;
        scan_rest(w, who, from, from + rest, hits);
#if COUNT
        const u32 read = __reduce_add_sync(ALL, w.checks - before);
        if (w.lane == 0) note_tail(w.tails, from - IN_ROWS(p).far, read);
#endif
    }
    __syncwarp();
    return hits;
}

/* Work off the queues until fewer than a warp's worth waits, or nothing. */
INLINE u32 drain(Puller &w, bool all) {
    u32 hits = 0;
#pragma unroll 1
    while (true) {
        if (w.halves >= 32 || (all && w.halves && !w.waiting)) hits += step<false>(w);
        else if (w.waiting >= 32 || (all && w.waiting)) hits += step<true>(w);
        else return hits;
    }
}

/* Lanes with `mask` queue up to four vertices v … v + 3 that have tested `skip`
 * neighbours. */
INLINE void enqueue4(Puller &w, u32 mask, u32 v, u32 skip) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const bool mine = mask >> i & 1;
        const u32 who = __ballot_sync(ALL, mine);
        const u32 at = w.waiting + __popc(who & lanes_below(w.lane));
        if (mine) w.wait[at] = v + i, w.skip[at] = skip;
        w.waiting += __popc(who);
    }
}

/* The bits of v … v + 3 that are below a limit. */
INLINE u32 below(u32 v, u32 limit) {
    return v + 4 <= limit ? 15u : v >= limit ? 0u : (1u << (limit - v)) - 1;
}

/* Which of v … v + 3 have columns to test besides the first. */
INLINE u32 with_more(const Params &p, u32 v) {
#if BARE
    return p.more[v >> 5] >> (v & 31) & 15;
#else
    return below(v, p.several);
#endif
}

/* 128 vertices of a tile where many are unvisited: words i … i + 3 of the tile at word0.
 * old: the word of each lane; first: staged. */
INLINE u32 dense_step(Puller &w, u32 word0, u32 i, u32 old, const u32 *first) {
    const Params &p = w.p;
    const u32 part = (w.lane & 7) * 4, word = word0 + i + (w.lane >> 3), v = word * 32 + part;
    const u32 seen = __shfl_sync(ALL, old, i + (w.lane >> 3)), open = ~seen >> part & 15;
    if (!__any_sync(ALL, open)) {
        if (part == 0) w.fresh[word] = KEPT_BITS(p, w.fresh, word, seen);
        return 0;
    }
    const uint4 f4 = *(const uint4 *)(first + i * 32 + w.lane * 4);
    u32 f[4] = {f4.x, f4.y, f4.z, f4.w}, hit = w.visited.of(f, open);
    if (COUNT) w.checks += __popc(open);
    const u32 by_first = hit;
    u32 miss = open & ~hit & with_more(p, v), skip = 1;
    u32 count = __reduce_add_sync(ALL, __popc(miss));
#pragma unroll 1
    while (skip <= COLUMNS && count >= 32) {
        if (miss) {
            const uint4 g4 = load_once4(p.column[skip - 1] + v);
            const u32 g[4] = {g4.x, g4.y, g4.z, g4.w};
#pragma unroll
            for (int j = 0; j < 4; j++) {
                /* there are no more columns, unless some are in a tail */
                if (BARE && (DIRECTED || p.bare) && g[j] == (DIRECTED ? f[j] : v + j) &&
                    (!SPLIT || v + j >= IN_ROWS(p).tailed))
                    miss &= ~(1u << j);
            }
            if (COUNT) w.checks += __popc(miss);
            const u32 more = w.visited.of(g, miss);
            hit |= more;
#pragma unroll
            for (int j = 0; j < 4; j++)
                /* mutant: g[j] -> f[j] : test_fast_kernels::test_thresholds_that_force_each_way */
                if (more >> j & 1) f[j] = g[j];
        }
        miss &= ~hit & below(v, p.listed[skip]);
        skip++;
        count = __reduce_add_sync(ALL, __popc(miss));
    }
    if (p.parents) {
        const u32 stored = IN_IDS ? hit & ~by_first : hit;
        if (!IN_IDS && open == 15) {
            *(uint4 *)(p.parent + v) =
                make_uint4(hit & 1 ? f[0] : NONE, hit & 2 ? f[1] : NONE, hit & 4 ? f[2] : NONE,
                           hit & 8 ? f[3] : NONE);
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (stored >> j & 1) p.parent[v + j] = f[j];
        }
    }
    const u32 bits = word_of(hit, part);
    if (IN_IDS) {
        const u32 firsts = word_of(by_first, part);
        if (part == 0 && firsts) red_or(p.by_first + word, firsts);
    }
    u32 left = 0;
    if (part == 0) {
        w.fresh[word] = KEPT_BITS(p, w.fresh, word, seen) | bits;
        left = __popc(~(seen | bits));
    }
    __syncwarp();
    if (count) enqueue4(w, miss, v, skip);
    __syncwarp();
    return left;
}

/* A tile where few are unvisited: they are listed first.  list: shared, positions in the
 * tile; mark: shared [TILE_WORDS], bits that are found by first neighbours.  Returns how
 * many are listed. */
INLINE u32 list_tile(Puller &w, u32 word0, u32 words, u32 old, u16 *list, u32 *mark) {
    const u32 first_bit = w.lane * words, shift = first_bit & 31; /* a lane lists `words` bits */
    const u32 word = __shfl_sync(ALL, old, first_bit >> 5);
    u32 open = ~word >> shift & ((1u << words) - 1);
    const u32 upto = warp_scan(__popc(open), w.lane), total = __shfl_sync(ALL, upto, 31);
    u32 at = upto - __popc(open);
    for (; open; open &= open - 1) list[at++] = first_bit + __ffs(open) - 1;
    if (w.lane < words)
        w.fresh[word0 + w.lane] = KEPT_BITS(w.p, w.fresh, word0 + w.lane, old), mark[w.lane] = 0;
    __syncwarp();
    return total;
}

/* 32 vertices of such a list; returns this lane's share of what is not found. */
INLINE u32 sparse_step(Puller &w, u32 word0, const u16 *list, u32 from, u32 total, u32 *mark,
                       const u32 *first) {
    const Params &p = w.p;
    const bool mine = from + w.lane < total;
    u32 v = word0 * 32;
    bool hit = false;
    if (mine) {
        const u32 at = list[from + w.lane], f = first[at];
        v += at;
        hit = w.visited(f);
        if (COUNT) w.checks++;
        if (hit) {
            if (p.parents && !IN_IDS) p.parent[v] = f;
            atomicOr(mark + ((v >> 5) - word0), 1u << (v & 31));
        }
    }
#if BARE
    const bool waits = mine && !hit && bit_of(p.more, v);
#else
    const bool waits = mine && !hit && v < p.several;
#endif
    const u32 miss = __ballot_sync(ALL, waits), at = w.waiting + __popc(miss & lanes_below(w.lane));
    if (waits) w.wait[at] = v, w.skip[at] = 1;
    w.waiting += __popc(miss);
    __syncwarp();
    return mine && !hit;
}

/* Stage the first neighbours of a tile: 16 bytes where one of four is unvisited. */
INLINE void stage(const Params &p, u32 *to, u32 word0, u32 words, u32 open, u32 lane) {
    for (u32 piece = lane; piece < words * 8; piece += 32) {
        const u32 o = __shfl_sync(ALL, open, piece >> 3);
        if (o >> (piece & 7) * 4 & 15) copy_async(to + piece * 4, p.first + word0 * 32 + piece * 4);
    }
    commit_copies();
}

/* A tile is worked on as dense where a fifth is unvisited. */
INLINE bool is_dense(u32 open, u32 words) {
    return __reduce_add_sync(ALL, __popc(open)) * 5 > words * 32;
}

/* What is done with a tile when its words are written: nothing. */
struct Nothing {
    __device__ __forceinline__ void operator()(u32, u32) const {}
    __device__ __forceinline__ void end(u32, u32) const {}
};

/* The whole level; returns this thread's share of the vertices still unvisited.
 * old, fresh: bits of the vertices that are looked at, by number; all: bits of their
 * neighbours, as adj names them
 * room: dynamic shared memory, WARP_WORDS a warp and then the bits of hubs
 * done: called by a warp with the first word and the words of a tile; later steps may
 * still set bits there.  done.end(tiles, words) is called by all threads when theirs are
 * set, where a block has tiles blockIdx.x, + gridDim.x, ... */
template <class Done>
INLINE u32 pull(const Params &p, const u32 *old, u32 *fresh, const u32 *all, u32 *room,
                u32 hub_words, u32 warp, u32 warps, u32 lane, u64 *checks, const Done &done) {
    u32 *own = room + (threadIdx.x >> 5) * WARP_WORDS, *hub = room + WARPS * WARP_WORDS;
    u32 *staged = own + STAGE_AT;
    u16 *list = (u16 *)(own + SPARSE_AT);
    u32 *mark = own + SPARSE_AT + TILE_WORDS * 16;
    const u32 words = p.tile, tiles = (p.words + words - 1) / words;
    /* words past the end are all ones, so that no tile is cut */
    u32 tile = warp, now = ALL, next = ALL;
    bool dense = false;
    if (tile < tiles && lane < words) now = closed(p, old, tile * words + lane);
    if (tile + warps < tiles && lane < words)
        next = closed(p, old, (tile + warps) * words + lane);
    dense = is_dense(~now, words);
    if (tile < tiles) stage(p, staged, tile * words, words, ~now, lane);
    else commit_copies();
    for (u32 i = threadIdx.x; i < hub_words >> 2; i += THREADS)
        ((uint4 *)hub)[i] = ((const uint4 *)all)[i];
    __syncthreads();
    Puller w = {p,    {hub, all, hub_words}, fresh, own, (u8 *)(own + WAIT), own + HALF_AT, 0, 0, lane, 0, {0, 0}};
    u32 left = 0, turn = 0;
#pragma unroll 1
    for (;; tile += warps) {
        const bool over = tile >= tiles; /* then only the queues are worked off */
        const u32 after = tile + warps, later = after + warps, word0 = tile * words;
        const bool next_dense = is_dense(~next, words);
        const u32 *first = staged + turn * TILE_WORDS * 32;
        u32 then = ALL, steps = 1, total = 0;
        if (!over) {
            if (after < tiles)
                stage(p, staged + (turn ^ 1) * TILE_WORDS * 32, after * words, words, ~next, lane);
            else commit_copies();
            if (later < tiles && lane < words) then = closed(p, old, later * words + lane);
            wait_copies<1>();
            __syncwarp();
            if (dense) steps = words / 4;
            else if (__any_sync(ALL, ~now)) {
                total = list_tile(w, word0, words, now, list, mark);
                steps = (total + 31) / 32;
            } else {
                if (lane < words) fresh[word0 + lane] = KEPT_BITS(p, fresh, word0 + lane, now);
                steps = 0;
            }
        }
#pragma unroll 1
        for (u32 i = 0; i < steps; i++) {
            if (!over) {
                if (dense) left += dense_step(w, word0, i * 4, now, first);
                else left += sparse_step(w, word0, list, i * 32, total, mark, first);
            }
            left -= drain(w, over);
        }
        if (over) break;
        if (!dense && total && lane < words && mark[lane]) {
            red_or(fresh + word0 + lane, mark[lane]);
            if (IN_IDS) red_or(p.by_first + word0 + lane, mark[lane]);
        }
        __syncwarp();
        done(word0, words);
        now = next;
        next = then;
        dense = next_dense;
        turn ^= 1;
    }
    wait_copies<0>();
    done.end(tiles, words);
#if COUNT
    if (checks) {
        const u32 sum = __reduce_add_sync(ALL, w.checks);
        const u32 looks = __reduce_add_sync(ALL, w.visited.looks);
        if (lane == 0) atomicAdd(checks, (u64)sum), atomicAdd(checks + p.rows, (u64)looks);
        if (SPLIT) add_tails(p, checks, w.tails, lane);
    }
#endif
    return left;
}
#endif
