/* Backward visits: unvisited vertices look for a visited neighbour.
 *
 * A warp lists the unvisited vertices of 32 words and takes 32 at a time, so that all
 * lanes work where few are left.  A lane reads the first columns of its row, neighbours
 * of high degree; rows that go on wait until 32 are together, and what is left of long
 * ones is read by the whole warp.
 * Source: Pan, Pearce, Owens 2018, Section IV-B; XBFS 2019, Section 4.2 (sorted queue).
 */
#ifndef DISTBFS_PART_PULL_CUH
#define DISTBFS_PART_PULL_CUH
#include "part.cuh"

#define LIST 1056  /* vertices of a warp that are listed: 31 + 32 * 32, rounded up */
#define WAITING 64 /* whose rows go on */
#define LONG_REST 96

/* status: bitmap of the columns; found(v, column) is called by one lane. */
template <class Found> struct Puller {
    const Rows &rows;
    const u32 *status;
    u32 *list, *wait; /* shared: [LIST] vertices, [WAITING][2] vertex and edges left */
    u32 lane, listed, waiting;
    u64 checks;
    Found found;

    __device__ __forceinline__ const u32 *columns() const { return (const u32 *)rows.columns; }

    /* 32 vertices, one a lane where `mine`, from `at` on. */
    __device__ __forceinline__ void step(bool mine, u32 v, OFFSET at, OFFSET end) {
        bool hit = false;
        u32 column = 0;
        if (mine && at < end) {
            u32 u[4];
#pragma unroll
            for (int j = 0; j < 4; j++) u[j] = load_once(columns() + (at + j < end ? at + j : at));
#pragma unroll
            for (int j = 3; j >= 0; j--)
                if (bit_of(status, u[j])) hit = true, column = u[j];
            if (COUNT) checks += end - at < 4 ? end - at : 4;
            at += 4;
        }
        if (hit) found(v, column);
        const bool more = mine && !hit && at < end, longer = more && end - at > LONG_REST;
        const u32 again = __ballot_sync(ALL, more && !longer);
        if (more && !longer) {
            u32 *w = wait + (waiting + __popc(again & lanes_below(lane))) * 2;
            w[0] = v, w[1] = (u32)(end - at);
        }
        waiting += __popc(again);
        for (u32 todo = __ballot_sync(ALL, longer); todo; todo &= todo - 1) {
            const u32 one = __ffs(todo) - 1, who = __shfl_sync(ALL, v, one);
            const OFFSET stop = __shfl_sync(ALL, end, one);
            u32 winner = 0;
            for (OFFSET r = __shfl_sync(ALL, at, one); r < stop && !winner; r += 32) {
                const OFFSET e = r + lane;
                const u32 x = e < stop ? load_once(columns() + e) : 0u;
                const bool here = e < stop && bit_of(status, x);
                if (COUNT) checks += e < stop;
                winner = __ballot_sync(ALL, here);
                if (winner && lane == __ffs(winner) - 1) found(who, x);
            }
        }
        __syncwarp();
    }

    __device__ __forceinline__ void fresh_rows() {
        const u32 count = listed < 32 ? listed : 32;
        listed -= count;
        const bool mine = lane < count;
        const u32 v = mine ? list[listed + lane] : 0;
        OFFSET at = 0, end = 0;
        if (mine) at = rows.offsets[v], end = rows.offsets[v + 1];
        __syncwarp();
        step(mine, v, at, end);
    }

    __device__ __forceinline__ void rest_of_rows() {
        const u32 count = waiting < 32 ? waiting : 32;
        waiting -= count;
        const bool mine = lane < count;
        const u32 *w = wait + (waiting + lane) * 2;
        const u32 v = mine ? w[0] : 0;
        OFFSET at = 0, end = 0;
        if (mine) end = rows.offsets[v + 1], at = end - w[1];
        __syncwarp();
        step(mine, v, at, end);
    }

    __device__ __forceinline__ void drain(bool all) {
#pragma unroll 1
        while (true) {
            if (waiting >= 32 || (all && waiting && !listed)) rest_of_rows();
            else if (listed >= 32 || (all && listed)) fresh_rows();
            else return;
        }
    }
};

/* All vertices of `words` words that open(word) names. */
template <class Open, class Found>
INLINE u64 pull(const Rows &rows, const u32 *status, u32 words, Open open, Found found) {
    __shared__ u32 lists[WARPS][LIST];
    __shared__ u32 waits[WARPS][2 * WAITING];
    const u32 lane = threadIdx.x & 31, own = threadIdx.x >> 5;
    const u32 warp = own * gridDim.x + blockIdx.x, warps = gridDim.x * WARPS;
    Puller<Found> w = {rows, status, lists[own], waits[own], lane, 0, 0, 0, found};
    for (u32 w0 = warp * 32; w0 < words; w0 += warps * 32) {
        const u32 word = w0 + lane;
        u32 bits = word < words ? open(word) : 0;
        if (!__any_sync(ALL, bits)) continue;
        const u32 upto = warp_scan(__popc(bits), lane);
        u32 at = w.listed + upto - __popc(bits);
        for (; bits; bits &= bits - 1) w.list[at++] = word * 32 + __ffs(bits) - 1;
        w.listed += __shfl_sync(ALL, upto, 31);
        __syncwarp();
        w.drain(false);
    }
    w.drain(true);
    return w.checks;
}
#endif
