/* Push over a queue, with the work of a vertex given to what fits its degree.
 *
 * A thread takes a vertex of fewer than 32 neighbours, a warp one of fewer than THREADS, a
 * block one of fewer than CHUNK; longer rows are cut into chunks that all blocks share
 * afterwards.  The classes are those of Enterprise (Liu and Huang, SC 2015), the
 * baseline of XBFS (Gaihre et al., HPDC 2019). */
#ifndef DISTBFS_PUSH_CUH
#define DISTBFS_PUSH_CUH
#include "paper_tally.cuh"

constexpr u32 CHUNK = 2048; /* neighbours; the same in paper.py */

/* Visit neighbours start ... stop-1 of a row by `width` threads, of which this is one;
 * the threads of a warp stay together.  row: [stop] */
template <class Visit>
INLINE void visit_row(const u32 *row, u32 from, u32 start, u32 stop,
                      u32 thread, u32 width, Visit &visit) {
    for (u32 base = start; base < stop; base += width) {
        const bool edge = base + thread < stop;
        visit(edge, from, edge ? __ldg(row + base + thread) : 0);
    }
}

/* The entry of the input that this thread takes in a round.  A short queue is spread
 * over multiprocessors first, then over warps; a long one is read in order. */
INLINE u64 entry_of(u32 size, u64 round) {
    const u32 threads = threads_of<u32>(THREADS);
    if (size > threads) return round * threads + thread_of<u32>(THREADS);
    const u32 warp = threadIdx.x / 32 * gridDim.x + blockIdx.x;
    return round ? size : (u64)lane_id() * (gridDim.x * WARPS) + warp;
}

/* queue: [size]; take: which entries; visit: called for each edge by whole warps. */
template <class Take, class Visit>
INLINE void expand(const Params &p, const u32 *queue, u32 size, Slot *slot,
                   Take take, Visit visit) {
    __shared__ u32 owner, shared_vertex;
    const u32 threads = threads_of<u32>(THREADS);
    const u32 rounds = (size + (u64)threads - 1) / threads;
    for (u64 round = 0; round < rounds; round++) {
        const u64 at = entry_of(size, round);
        u32 v = at < size ? queue[at] : NONE;
        if (v != NONE && !take(v)) v = NONE;
        u32 degree = v != NONE ? degree_of(p, v) : 0;
        const u32 *row = p.adj + (v != NONE ? p.row[v] : 0);
        if (p.work) add_warp(&slot->checks, (u64)degree);

        if (degree >= CHUNK) { /* all blocks, later */
            const u32 count = (degree + CHUNK - 1) / CHUNK;
            const u32 base = atomicAdd(&slot->chunks, count);
            for (u32 k = 0; k < count; k++)
                p.chunks[base + k] = (u64)v << 32 | k;
            degree = 0;
        }
        while (__syncthreads_or(degree >= THREADS)) { /* the block */
            if (degree >= THREADS) atomicExch(&owner, threadIdx.x); /* any of them */
            __syncthreads();
            if (owner == threadIdx.x) {
                shared_vertex = v;
                degree = 0;
            }
            __syncthreads();
            const u32 from = shared_vertex;
            visit_row(p.adj + p.row[from], from, 0, degree_of(p, from),
                      threadIdx.x, THREADS, visit);
        }
        u32 wide = __ballot_sync(ALL, degree >= 32); /* the warp */
        while (wide) {
            const int lane = __ffs(wide) - 1;
            wide &= wide - 1;
            const u32 from = __shfl_sync(ALL, v, lane);
            const u32 stop = __shfl_sync(ALL, degree, lane);
            const u64 start = __shfl_sync(ALL, (u64)(row - p.adj), lane);
            visit_row(p.adj + start, from, 0, stop, lane_id(), 32, visit);
        }
        const u32 own = degree < 32 ? degree : 0; /* the thread */
        const u32 longest = __reduce_max_sync(ALL, own);
        for (u32 k = 0; k < longest; k++)
            visit(k < own, v, k < own ? __ldg(row + k) : 0);
    }
}

/* The chunks of long rows, block by block; after all blocks have expanded. */
template <class Visit>
INLINE void expand_chunks(const Params &p, u32 count, Visit visit) {
    for (u32 at = blockIdx.x; at < count; at += gridDim.x) {
        const u32 from = p.chunks[at] >> 32;
        const u32 start = (u32)p.chunks[at] * CHUNK;
        const u32 degree = degree_of(p, from);
        /* mutant: + CHUNK; -> + CHUNK - 1; : test_paper_kernels::test_directed_graphs */
        const u32 stop = degree - start < CHUNK ? degree : start + CHUNK;
        visit_row(p.adj + p.row[from], from, start, stop, threadIdx.x,
                  THREADS, visit);
    }
}
#endif
