/* Push over a queue, with the work of a vertex given to what fits its degree.
 *
 * A thread takes a vertex of fewer than 32 neighbours, a warp one of fewer than BLOCK, a
 * block one of fewer than CHUNK; longer rows are cut into chunks that all blocks share
 * afterwards.  The classes are those of Enterprise (Liu and Huang, SC 2015), the
 * baseline of XBFS (Gaihre et al., HPDC 2019). */
#ifndef DISTBFS_PUSH_CUH
#define DISTBFS_PUSH_CUH
#include "paper_tally.cuh"

constexpr uint32_t CHUNK = 2048; /* neighbours; the same in paper.py */

/* Visit neighbours start ... stop-1 of a row by `width` threads, of which this is one;
 * the threads of a warp stay together.  row: [stop] */
template <class Visit>
DEVICE void visit_row(const uint32_t *row, uint32_t from, uint32_t start, uint32_t stop,
                      uint32_t thread, uint32_t width, Visit &visit) {
    for (uint32_t base = start; base < stop; base += width) {
        const bool edge = base + thread < stop;
        visit(edge, from, edge ? __ldg(row + base + thread) : 0);
    }
}

/* The entry of the input that this thread takes in a round.  A short queue is spread
 * over multiprocessors first, then over warps; a long one is read in order. */
DEVICE uint64_t entry_of(uint32_t size, uint64_t round) {
    if (size > all_threads()) return round * all_threads() + thread_id();
    const uint32_t warp = threadIdx.x / 32 * gridDim.x + blockIdx.x;
    return round ? size : (uint64_t)lane_id() * (gridDim.x * (BLOCK / 32)) + warp;
}

/* queue: [size]; take: which entries; visit: called for each edge by whole warps. */
template <class Take, class Visit>
DEVICE void expand(const Params &p, const uint32_t *queue, uint32_t size, Slot *slot,
                   Take take, Visit visit, Tally &tally) {
    __shared__ uint32_t owner, shared_vertex;
    const uint32_t rounds = (size + (uint64_t)all_threads() - 1) / all_threads();
    for (uint64_t round = 0; round < rounds; round++) {
        const uint64_t at = entry_of(size, round);
        uint32_t v = at < size ? queue[at] : NONE;
        if (v != NONE && !take(v)) v = NONE;
        uint32_t degree = v != NONE ? degree_of(p, v) : 0;
        const uint32_t *row = p.columns + (v != NONE ? __ldg(p.offsets + v) : 0);
        tally.check(degree);

        if (degree >= CHUNK) { /* all blocks, later */
            const uint32_t count = (degree + CHUNK - 1) / CHUNK;
            const uint32_t base = atomicAdd(&slot->chunks, count);
            for (uint32_t k = 0; k < count; k++)
                p.chunks[base + k] = (uint64_t)v << 32 | k;
            degree = 0;
        }
        while (__syncthreads_or(degree >= BLOCK)) { /* the block */
            if (degree >= BLOCK) atomicExch(&owner, threadIdx.x); /* any of them */
            __syncthreads();
            if (owner == threadIdx.x) {
                shared_vertex = v;
                degree = 0;
            }
            __syncthreads();
            const uint32_t from = shared_vertex;
            visit_row(p.columns + __ldg(p.offsets + from), from, 0, degree_of(p, from),
                      threadIdx.x, BLOCK, visit);
        }
        uint32_t wide = __ballot_sync(FULL, degree >= 32); /* the warp */
        while (wide) {
            const int lane = __ffs(wide) - 1;
            wide &= wide - 1;
            const uint32_t from = __shfl_sync(FULL, v, lane);
            const uint32_t stop = __shfl_sync(FULL, degree, lane);
            const uint64_t start = __shfl_sync(FULL, (uint64_t)(row - p.columns), lane);
            visit_row(p.columns + start, from, 0, stop, lane_id(), 32, visit);
        }
        const uint32_t own = degree < 32 ? degree : 0; /* the thread */
        const uint32_t longest = __reduce_max_sync(FULL, own);
        for (uint32_t k = 0; k < longest; k++)
            visit(k < own, v, k < own ? __ldg(row + k) : 0);
    }
}

/* The chunks of long rows, block by block; after all blocks have expanded. */
template <class Visit>
DEVICE void expand_chunks(const Params &p, uint32_t count, Visit visit) {
    for (uint32_t at = blockIdx.x; at < count; at += gridDim.x) {
        const uint32_t from = p.chunks[at] >> 32;
        const uint32_t start = (uint32_t)p.chunks[at] * CHUNK;
        const uint32_t degree = degree_of(p, from);
        const uint32_t stop = degree - start < CHUNK ? degree : start + CHUNK;
        visit_row(p.columns + __ldg(p.offsets + from), from, start, stop, threadIdx.x,
                  BLOCK, visit);
    }
}
#endif
