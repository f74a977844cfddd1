/* Up to 128 * PIECES searches in one traversal, in as many launches as its memory needs.
 *
 * Method: a cooperative grid, one block of 1,024 threads a multiprocessor, meets once a level
 * that is pulled and twice where it is pushed; the direction is chosen on the device by
 * the edges out of the frontier.  It ends after a level in which block 0 sees the host's
 * word.  Data and sources: bits.cuh.
 *
 * variants: PIECES=1,2,4
 */
#include "bits.cuh"
#include "bits_count.cuh"
#include "bits_level.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1) search(const Params p) {
    __shared__ u32 room[32 * WORDS];
    __shared__ u64 news[2];
    __shared__ u32 stop; /* the host's word, as all have learnt it */
    State s = *p.state;
    Grid g = {room, news, &stop, 0, 0};
    const bool lead = blockIdx.x == 0 && threadIdx.x == 0;
    if (threadIdx.x == 0) stop = 0;
    __syncthreads();
    while (s.edges && s.depth < p.last && !stop) {
        Level l = level_of(p, s.depth + 1);
        make_level(p, l, s, g, p.full[l.piece]);
        if (p.counts && s.edges)
            count_level(p, l, l.next, l.next_mark, p.queue[s.depth & 1], s.dense, s.count,
                        s.count + s.hubs, s.depth, room);
    }
    /* a launch without a meeting: all must have read the state */
    if (!g.turn) grid_sum(&p.control->barrier, g.turn, 0);
    if (lead) s.stopped = stop, *p.state = s;
}

struct Begin {
    Params p;
    const u32 *number; /* [k], of the sources; NONE where it has no edges */
    u32 k, pad;        /* a multiple of 16 bytes, as Params */
};

/* Level 0 of the searches, by one block; all of seen, front, mark and state is zero. */
extern "C" __global__ void __launch_bounds__(THREADS, 1) begin_level(const Begin b) {
    const Params &p = b.p;
    for (u32 i = threadIdx.x; i < b.k; i += THREADS) {
        const u32 v = b.number[i];
        if (v != NONE) put_first(p, v, i);
    }
}
