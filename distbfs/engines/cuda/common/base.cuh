/* Used by every kernel: thread numbers, sums of warps and blocks, and the grid barrier. */
#ifndef DISTBFS_BASE_CUH
#define DISTBFS_BASE_CUH

#include "ptx.cuh"

#define ALL 0xffffffffu
#define NONE 0xffffffffu /* no vertex, no parent */

INLINE bool bit_of(const u32 *bitmap, u32 v) { return bitmap[v >> 5] >> (v & 31) & 1; }

/* An array of unsigned integers of 32 or 64 bits, of which the lowest bit of its address
 * tells: 1 where they have 64 (device/structures.py). */
struct Uints {
    const void *at; /* [items] */
    __device__ __forceinline__ bool wide() const { return (u64)at & 1; }
    __device__ __forceinline__ u64 operator[](u64 i) const {
        return wide() ? ((const u64 *)((const char *)at - 1))[i] : ((const u32 *)at)[i];
    }
    __device__ __forceinline__ void set(u64 i, u64 value) const {
        if (wide()) ((u64 *)((char *)at - 1))[i] = value;
        else ((u32 *)at)[i] = (u32)value;
    }
};

/* Columns that follow each other: of a row, or some of them. */
struct Columns {
    const u32 *at;
    u32 count;
    /* Those from the one at `first` on. */
    __device__ __forceinline__ Columns from(u32 first) const {
        return {at + first, count - (first < count ? first : count)};
    }
};

/* Those of row v; the low words of offsets, which nobody writes meanwhile, tell how many. */
INLINE Columns columns_of(const Uints &row, const u32 *adj, u32 v) {
    const u32 wide = row.wide();
    const u32 *offset = (const u32 *)((const char *)row.at - wide) + ((u64)v << wide);
    u64 begin = __ldg(offset);
    const u32 count = __ldg(offset + 1 + wide) - (u32)begin;
    if (wide) begin |= (u64)__ldg(offset + 1) << 32;
    return {adj + begin, count};
}

/* The number of this thread in the grid, and how many there are; block: threads of a block,
 * where the kernel knows. */
template <class T = u64> INLINE T thread_of(u32 block = blockDim.x) {
    return (T)blockIdx.x * block + threadIdx.x;
}
template <class T = u64> INLINE T threads_of(u32 block = blockDim.x) {
    return (T)gridDim.x * block;
}

INLINE u32 lane_id() { return threadIdx.x & 31; }
INLINE u32 lanes_below(u32 lane = threadIdx.x & 31) { return (1u << lane) - 1; }

/* Sum over the lanes up to this one. */
template <class T = u32, class X> INLINE T warp_scan(X value, u32 lane = threadIdx.x & 31) {
    T x = value;
#pragma unroll
    for (int s = 1; s < 32; s <<= 1) {
        T y = __shfl_up_sync(ALL, x, s);
        if (lane >= s) x += y;
    }
    return x;
}

/* The last lane with `before` up to `at`: before rises by lane, and the first has 0. */
INLINE u32 lane_before(u32 before, u32 at) {
    u32 k = 0;
#pragma unroll
    for (int s = 16; s; s >>= 1)
        if (__shfl_sync(ALL, before, k + s) <= at) k += s;
    return k;
}

/* The word of which eight lanes have four bits each, from bit `part` on; by a whole warp. */
INLINE u32 word_of(u32 four, u32 part) {
    u32 word = four << part;
    word |= __shfl_xor_sync(ALL, word, 1);
    word |= __shfl_xor_sync(ALL, word, 2);
    word |= __shfl_xor_sync(ALL, word, 4);
    return word;
}

/* Sum over the lanes of a warp, in every lane. */
template <class T> INLINE T warp_sum(T x) {
#pragma unroll
    for (int s = 16; s; s >>= 1) x += __shfl_xor_sync(ALL, x, s);
    return x;
}

/* Sum over the threads of a block before this one, and over all of them.  All threads of a
 * block of so many warps call it. */
template <u32 warps, class T> INLINE T block_scan(T value, T &total) {
    __shared__ T sums[warps];
    const T upto = warp_scan<T>(value);
    __syncthreads();
    if (lane_id() == 31) sums[threadIdx.x / 32] = upto;
    __syncthreads();
    T before = 0;
    total = 0;
    for (u32 warp = 0; warp < warps; warp++) {
        if (warp < threadIdx.x / 32) before += sums[warp];
        total += sums[warp];
    }
    return before + upto - value;
}

/* The last k below `count` with before(k) <= at; before rises, and before(0) is. */
template <class Index, class Before>
INLINE Index last_before(Index count, u64 at, const Before &before) {
    Index low = 0, high = count;
    while (high - low > 1) {
        const Index middle = (low + high) / 2;
        /* mutant: <= -> < : test_store_rows::test_the_graph_is_that_of_the_tuples */
        if (before(middle) <= at) low = middle;
        else high = middle;
    }
    return low;
}

/* Call each(level, lanes with it) for each level that lanes have; a whole warp calls it. */
template <class Each> INLINE void each_level(int level, const Each &each) {
    u32 left = __ballot_sync(ALL, level >= 0);
    while (left) {
        const int one = __shfl_sync(ALL, level, __ffs(left) - 1);
        const u32 who = __ballot_sync(ALL, level == one);
        each(one, who);
        left &= ~who;
    }
}

/* A place at `tail` for each lane with `mine`; all lanes of a warp call it. */
template <class T> INLINE T take_place(bool mine, T *tail) {
    const u32 who = __ballot_sync(ALL, mine);
    if (!who) return 0;
    T at = 0;
    if (lane_id() == 0) at = atomicAdd(tail, (T)__popc(who));
    return __shfl_sync(ALL, at, 0) + __popc(who & lanes_below());
}

/* The same for `own` of a lane: the place of the first of them, the others follow. */
template <class T> INLINE T take_run(u32 own, T *tail) {
    const u32 upto = warp_scan(own), total = __shfl_sync(ALL, upto, 31);
    T at = 0;
    if (lane_id() == 0 && total) at = atomicAdd(tail, (T)total);
    return __shfl_sync(ALL, at, 0) + upto - own;
}

/* The same for those of N that are a lane's. */
template <int N, class T> INLINE T take_places(const bool *mine, T *tail) {
    u32 own = 0;
#pragma unroll
    for (int i = 0; i < N; i++) own += mine[i];
    return take_run(own, tail);
}

/* The state of a launch between two steps is in shared memory during a step, so that
 * the step has the registers.  All threads of a block call both. */
template <class Run> INLINE void park(Run *parked, const Run &r) {
    __syncthreads(); /* all have read what was there */
    if (threadIdx.x == 0) *parked = r;
    __syncthreads();
}

template <class Run> INLINE Run unpark(const Run *parked) {
    reload();
    return *parked;
}

/* Sums of 47 bits above counts of arrivals, and on top whether the host wants the search
 * to end; four in turn, 128 bytes apart.  The one after next is cleared by the block that
 * leaves, so all are zero after a launch but the last.  The next launch goes on with the
 * turn of this one, or has another barrier, and this one is cleared meanwhile. */
struct Barrier {
    u64 slot[4 * 16];
};

/* All blocks meet; returns the sum of `value` over all threads of the grid.  `turn`
 * counts the meetings of this launch.  All threads of a block must call it.
 * stop: a word that the host sets to 1 (device/stop_word.py), read by block 0 alone,
 * so that all get the same value in the shared `stopped`; null: no stop word
 * Then `words` (at most 32) of `news` are in the shared `into`: one warp of a block reads
 * them, as 4,000 warps that ask L2 for one line would wait for each other. */
INLINE u64 grid_sum(Barrier *b, u32 &turn, u32 value, const u64 *news = 0, u32 words = 0,
                    u64 *into = 0, const u64 *stop = 0, u32 *stopped = 0) {
    __shared__ u32 part[32];
    __shared__ u64 total;
    u32 ends = 0; /* on its way while the block meets */
    /* mutant: (u32)look(stop) -> 0 : test_every_kind_of_level */
    if (stop && blockIdx.x == 0 && threadIdx.x == 0) ends = (u32)look(stop);
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u32 sum = __reduce_add_sync(ALL, value);
    if (lane == 0) part[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        u32 mine = __reduce_add_sync(ALL, lane < (blockDim.x >> 5) ? part[lane] : 0u);
        if (lane == 0) {
            u64 *slot = &b->slot[(turn & 3) * 16], add = (u64)mine << 16 | 1, seen;
            add |= (u64)ends << 63;
            add_release(slot, add);
            do seen = look_acquire(slot);
            while ((seen & 0xffff) != gridDim.x);
            total = seen << 1 >> 17;
            if (stopped) *stopped = seen >> 63;
            if (blockIdx.x == 0) b->slot[((turn + 3) & 3) * 16] = 0;
        }
        __syncwarp();
        if (lane < words) into[lane] = __ldcg(news + lane);
    }
    turn++;
    __syncthreads();
    return total;
}
#endif
