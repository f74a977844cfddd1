/* Many searches at once, a block each; blocks take searches in turn.
 *
 * Method.  EDGES=1: edge-parallel, a thread for each edge of the graph at every level.
 * EDGES=0: by queues; a warp for a vertex of degree T or more, else a thread.  T = 0 is
 * the warp-based method, T without end the work-efficient one.
 * Data: multi.cuh.  A search's levels are bytes as long as they fit (LEVEL); visited bits
 * are in shared memory where they fit.
 * Sources: McLaughlin, Riedy, Bader 2015, Section III; Jia et al. 2011 (edge-parallel);
 * McLaughlin, Bader 2014 (work-efficient).
 *
 * variants: LEVELS=0 LEVEL=u8 EDGES=0 THREADS=256,1024 | LEVELS=1 LEVEL=u8,u16,u32 EDGES=0,1 THREADS=256,1024
 */
#include "multi.cuh"

#include "problem.cuh"

struct Job {
    Params p;
    Fields f;
};

#define ORDER (!EDGES || HAS_END) /* whether the order of vertices is kept */

/* v was found by edges of this level where `fresh`; all lanes of a warp call it. */
INLINE void enqueue(const Params &p, Block *b, u32 *order, u32 v, bool fresh) {
    const u32 lane = lane_id(), who = __ballot_sync(ALL, fresh);
    if (!who) return;
    const u32 large = __ballot_sync(ALL, fresh && v < p.split), small = who & ~large;
    u32 to = 0, back = 0;
    if (lane == 0 && small) to = atomicAdd(&b->small, (u32)__popc(small));
    if (lane == 0 && large) back = atomicAdd(&b->large, (u32)__popc(large));
    to = __shfl_sync(ALL, to, 0), back = __shfl_sync(ALL, back, 0);
    if (!ORDER || !fresh) return;
    if (v < p.split) order[p.active - (back + __popc(large & lanes_below(lane)))] = v;
    else order[to + __popc(small & lanes_below(lane))] = v;
}

/* The edge (u, v); all lanes of a warp call it. */
INLINE void follow(const Params &p, Search &s, u32 u, u32 v, bool there) {
    const Base &base = s;
    bool fresh = false;
    if (there) {
        const u32 bit = 1u << (v & 31);
        /* whoever sees v without a level writes the same one; one of them gets the bit */
        if (LEVELS ? base.level[v] == UNREACHED : !(base.bits[v >> 5] & bit)) {
            if (LEVELS) base.level[v] = (LEVEL)(base.depth + 1);
            fresh = !(atomicOr(base.bits + (v >> 5), bit) & bit);
        }
#if HAS_VISIT_VERTEX
        visit_vertex(s, u, v);
#endif
    }
    enqueue(p, base.block, base.order, v, fresh);
}

/* One search.  Returns false where a level passes DEEPEST, or the host's word was seen. */
INLINE bool traverse(const Params &p, Search &s) {
    /* members of Base, which states of these names hide in Search */
    Base &base = s;
    Block *b = base.block;
    u32 small = 0, large = 0;
    for (base.depth = 0;; base.depth++) {
        __syncthreads();
        const u32 small_end = b->small, large_end = b->large;
        if (threadIdx.x == 0) {
            b->small_next = b->large_next = 0;
            b->stop = p.stop && look(p.stop);
        }
        base.size = small_end - small + large_end - large;
        if (HAS_END && threadIdx.x == 0)
            base.starts[base.depth] = small, base.starts[p.active + 3 + base.depth] = large;
        __syncthreads();
        if (!base.size) break;
        if (b->stop) return false;
        if (LEVELS && base.depth + 1 > DEEPEST && base.depth < p.most) return false;
#if HAS_PRIOR
        prior(s);
        __syncthreads();
#endif
        if (base.depth == p.most) {
            if (HAS_END && threadIdx.x == 0)
                base.starts[base.depth + 1] = small_end,
                base.starts[p.active + 4 + base.depth] = large_end;
            return true;
        }
#if EDGES
        for (u64 e = threadIdx.x; e - (threadIdx.x & 31) < p.m; e += THREADS) {
            const u32 u = e < p.m ? __ldg(p.from + e) : NONE;
            const bool there = u != NONE && base.level[u] == (LEVEL)base.depth;
            if (__any_sync(ALL, there)) follow(p, s, u, there ? __ldg(p.adj + e) : 0, there);
        }
#else
        base.edges(small, small_end, large, large_end,
                   [&](u32 u, u32 v, bool there) { follow(p, s, u, v, there); });
#endif
#if HAS_POST
        __syncthreads();
        post(s);
#endif
        small = small_end, large = large_end;
    }
    base.depth--;
    return true;
}

/* Registers are for all threads that a multiprocessor can have, or for half of them where
 * functions of the problem follow edges. */
#define AT_ONCE (HAS_END || HAS_VISIT_VERTEX ? 1024 : 2048)

extern "C" __global__ void __launch_bounds__(THREADS, AT_ONCE / THREADS) search(const Job job) {
    extern __shared__ uint4 dynamic[]; /* [words / 4] visited bits, unless p.bits */
    __shared__ Block block;
    const Params &p = job.p;
    for (;;) {
        if (threadIdx.x == 0) block.search = p.control[1] ? NONE : atomicAdd(p.control, 1u);
        __syncthreads();
        const u32 at = block.search;
        if (at >= p.count) break;
        const u32 i = p.first + at, source = p.numbers[p.sources[i]];
        Search s(job.f, i, at, p.stride, p.n);
        Base &base = s;
        base.index = i, base.source = source, base.n = p.n, base.depth = 0, base.size = 0;
        base.p = &p, base.block = &block;
        base.order = p.order + blockIdx.x * (u64)(p.active + 1);
        base.starts = p.starts + blockIdx.x * (u64)(2 * (p.active + 3));
        base.bits = p.bits ? p.bits + blockIdx.x * (u64)p.words : (u32 *)dynamic;
        base.level = p.level + (p.level_by_search ? at : blockIdx.x) * p.stride;
        for (u32 w = threadIdx.x; w < p.words / 4; w += THREADS)
            ((uint4 *)base.bits)[w] = make_uint4(0, 0, 0, 0);
        if (LEVELS) /* all bits of each level: unreached */
            for (u64 w = threadIdx.x; w < p.stride * sizeof(LEVEL) / 16; w += THREADS)
                ((uint4 *)base.level)[w] = make_uint4(NONE, NONE, NONE, NONE);
        __syncthreads();
        if (threadIdx.x == 0) {
            const bool large = source < p.split;
            block.small = !large, block.large = large;
            if (ORDER) base.order[large ? p.active : 0] = source;
            if (LEVELS) base.level[source] = 0;
            if (source < p.active) base.bits[source >> 5] |= 1u << (source & 31);
        }
#if HAS_INIT
        __syncthreads();
        init(s);
#endif
        if (!traverse(p, s)) {
            if (threadIdx.x == 0) p.control[1] = block.stop ? 2 : 1;
            break;
        }
#if HAS_END
        end(s);
#endif
        __syncthreads();
    }
}

struct End {
    Fields f;
    const u32 *vertices; /* [n], number -> id */
    u32 n, k;
};

extern "C" __global__ void __launch_bounds__(256) finish(const End end) {
#if HAS_FINALIZE
    Whole w(end.f);
    WholeBase &base = w;
    base.n = end.n, base.k = end.k, base.vertices = end.vertices;
    finalize(w);
#endif
}
