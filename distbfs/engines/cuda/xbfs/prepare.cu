/* Arrays that method `fast` derives from a graph before it searches (search.cuh).
 *
 * variants: OFFSET=u32 | OFFSET=u64
 */
#include "../common/base.cuh"
#include "../common/positions.cuh"

/* first [active + pad], first_id [active + pad], by names of positions or, without them, the
 * position; a vertex without edges is its own: it is not visited where it is looked at
 * devices, device: whose positions columns are */
extern "C" __global__ void firsts(const OFFSET *row, const u32 *adj, const u32 *names,
                                  u32 active, u32 devices, u32 device, u32 *first,
                                  u32 *first_id) {
    for (u64 v = blockIdx.x * (u64)blockDim.x + threadIdx.x; v < active;
         v += (u64)gridDim.x * blockDim.x) {
        const u32 u = row[v] < row[v + 1] ? adj[row[v]]
                                           : position_in((u32)v, devices, device);
        first[v] = u;
        first_id[v] = names ? names[u] : u;
    }
}

/* place [active]: id within its block, of those that have one */
extern "C" __global__ void places(const u32 *vertices, u32 active, u32 block, u16 *place) {
    for (u64 v = blockIdx.x * (u64)blockDim.x + threadIdx.x; v < active;
         v += (u64)gridDim.x * blockDim.x)
        place[v] = vertices[v] % block;
}

/* column [size]: neighbour `which` (0 is the first), or the first where a row is shorter,
 * or the vertex itself; devices, device: as in firsts */
extern "C" __global__ void columns(const OFFSET *row, const u32 *adj, u32 active, u32 devices,
                                   u32 device, u32 which, u32 size, u32 *column) {
    for (u64 v = blockIdx.x * (u64)blockDim.x + threadIdx.x; v < size;
         v += (u64)gridDim.x * blockDim.x) {
        if (v >= active) {
            column[v] = 0;
            continue;
        }
        const OFFSET begin = row[v], end = row[v + 1], at = begin + which;
        column[v] = begin == end ? position_in((u32)v, devices, device)
                                 : adj[at < end ? at : begin];
    }
}

/* The first position of [low, high) in rising values that is not below x. */
INLINE u64 lower_bound(const u32 *values, u64 low, u64 high, u64 x) {
    while (low < high) {
        const u64 mid = low + (high - low) / 2;
        if (values[mid] < x) low = mid + 1;
        else high = mid;
    }
    return low;
}

/* Calls take(block of ids, bits) for each piece of a word, in the order of numbers; what
 * has no id here, which is below n, is in none. */
template <class Take>
INLINE void cut(u64 n, const u32 *vertices, u32 active, u32 block, u64 word, Take take) {
    const u64 end = word * 32 + 32 < active ? word * 32 + 32 : active;
    u32 bits = 0, last = 0;
    for (u64 v = word * 32; v < end; v++) {
        if (vertices[v] >= n) continue;
        const u32 b = vertices[v] / block;
        if (bits && b != last) take(last, bits), bits = 0;
        bits |= 1u << (v & 31), last = b;
    }
    if (bits) take(last, bits);
}

/* count [words]: pieces of each word */
extern "C" __global__ void count_pieces(u64 n, const u32 *vertices, u32 active, u32 words,
                                        u32 block, u32 *count) {
    for (u64 w = blockIdx.x * (u64)blockDim.x + threadIdx.x; w < words;
         w += (u64)gridDim.x * blockDim.x) {
        u32 pieces = 0;
        cut(n, vertices, active, block, w, [&](u32, u32) { pieces++; });
        count[w] = pieces;
    }
}

/* upto [words]: pieces of this word and those before; piece [all]: word, bits; key [all]:
 * block << 32 | piece */
extern "C" __global__ void make_pieces(u64 n, const u32 *vertices, u32 active, u32 words,
                                       u32 block, const u32 *upto, uint2 *piece, u64 *key) {
    for (u64 w = blockIdx.x * (u64)blockDim.x + threadIdx.x; w < words;
         w += (u64)gridDim.x * blockDim.x) {
        u32 at = w ? upto[w - 1] : 0;
        cut(n, vertices, active, block, w, [&](u32 b, u32 bits) {
            piece[at] = make_uint2(w, bits);
            key[at] = (u64)b << 32 | at;
            at++;
        });
    }
}

/* weight [words]: edges from hubs to the vertices of each word */
extern "C" __global__ void weights(const OFFSET *row, const u32 *adj, u32 active, u32 hubs,
                                   u32 words, u32 *weight) {
    const u32 lane = threadIdx.x & 31;
    for (u64 w = (blockIdx.x * (u64)blockDim.x + threadIdx.x) >> 5; w < words;
         w += ((u64)gridDim.x * blockDim.x) >> 5) {
        const u64 v = w * 32 + lane;
        u32 mine = 0;
        if (v < active) mine = lower_bound(adj, row[v], row[v + 1], hubs) - row[v];
        const u32 sum = __reduce_add_sync(ALL, mine);
        if (lane == 0) weight[w] = sum;
    }
}

/* split [hubs][ranges + 1]: where each range [ranges + 1] (words) begins in a hub's row */
extern "C" __global__ void splits(const OFFSET *row, const u32 *adj, u32 hubs, u32 ranges,
                                  const u32 *range, u32 *split) {
    const u64 all = (u64)hubs * (ranges + 1);
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < all;
         i += (u64)gridDim.x * blockDim.x) {
        const u32 h = i / (ranges + 1), r = i % (ranges + 1);
        split[i] = lower_bound(adj, row[h], row[h + 1], (u64)range[r] * 32) - row[h];
    }
}

/* Pad of columns and of firsts, and sum [0]: squared degrees */
extern "C" __global__ void squares(const OFFSET *row, u32 active, double *sum) {
    double mine = 0;
    for (u64 v = blockIdx.x * (u64)blockDim.x + threadIdx.x; v < active;
         v += (u64)gridDim.x * blockDim.x) {
        const double d = (double)(row[v + 1] - row[v]);
        mine += d * d;
    }
    for (int s = 16; s; s >>= 1) mine += __shfl_down_sync(ALL, mine, s);
    if ((threadIdx.x & 31) == 0) atomicAdd(sum, mine);
}
