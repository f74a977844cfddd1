/* Kernels for one part of a degree-separated graph that the host calls step by step:
 * start, the visits of nn, nd, dn and dd, arrivals from other parts, and the step to
 * the next level, which also measures the work in both directions.
 *
 * Method: forward visits push.cuh, backward ones pull.cuh, both visits.cuh.
 * Data: part.cuh.  Source: Pan, Pearce, Owens 2018, Section IV.
 *
 * variants: OFFSET=u32,u64 VERTEX=int,i64
 */
#include "visits.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) start(const Params p) {
    begin_search(p);
}

extern "C" __global__ void __launch_bounds__(THREADS) push_nn(const Params p) {
    if (p.parts > 1) forward_nn<u64>(p);
    else forward_nn<u32>(p);
}
extern "C" __global__ void __launch_bounds__(THREADS) push_nd(const Params p) { forward_nd(p); }
extern "C" __global__ void __launch_bounds__(THREADS) push_dn(const Params p) { forward_dn(p); }
extern "C" __global__ void __launch_bounds__(THREADS) push_dd(const Params p) { forward_dd(p); }
extern "C" __global__ void __launch_bounds__(THREADS) queue_dd(const Params p) { form_dd_queue(p); }
extern "C" __global__ void __launch_bounds__(THREADS) queue_dn(const Params p) { form_dn_queue(p); }

extern "C" __global__ void __launch_bounds__(THREADS, PULL_BLOCKS) pull_nd(const Params p) { backward_nd(p); }
extern "C" __global__ void __launch_bounds__(THREADS, PULL_BLOCKS) pull_dn(const Params p) { backward_dn(p); }
extern "C" __global__ void __launch_bounds__(THREADS, PULL_BLOCKS) pull_dd(const Params p) { backward_dd(p); }

extern "C" __global__ void __launch_bounds__(THREADS) take_normals(const Params p) { take_items(p); }

extern "C" __global__ void __launch_bounds__(THREADS) advance(const Params p) { next_level(p); }

extern "C" __global__ void __launch_bounds__(THREADS) finish(const Params p) {
    finish_normals(p);
    finish_delegates(p);
}

/* offsets: [rows + 1]; mask: [words], rows that have edges */
extern "C" __global__ void __launch_bounds__(THREADS) row_mask(const OFFSET *offsets, u64 rows,
                                                               u64 words, u32 *mask) {
    for (u64 w = thread_of<u32>(THREADS) >> 5; w < words; w += threads_of<u32>(THREADS) >> 5) {
        const u64 v = w * 32 + (threadIdx.x & 31);
        const u32 bits = __ballot_sync(ALL, v < rows && offsets[v + 1] > offsets[v]);
        if (lane_id() == 0) mask[w] = bits;
    }
}

/* offsets: [rows + 1]; columns: [edges]
 * first: [FIRST][places], first columns of each row, NONE where it has fewer */
extern "C" __global__ void __launch_bounds__(THREADS) first_columns(
    const OFFSET *offsets, const u32 *columns, u64 rows, u64 places, u32 *first) {
    for (u64 i = thread_of<u32>(THREADS); i < FIRST * places; i += threads_of<u32>(THREADS)) {
        const u64 v = i % places, k = i / places;
        const bool some = v < rows && offsets[v + 1] - offsets[v] > k;
        first[i] = some ? columns[offsets[v] + k] : NONE;
    }
}
