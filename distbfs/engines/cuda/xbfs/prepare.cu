/* Arrays that method `fast` derives from a graph before it searches (search.cuh). */
#include "../common/base.cuh"
#include "../common/positions.cuh"

/* Bits of the columns from `at` on that are seen, up to the end of a word, or to `end`. */
INLINE u32 seen_bits(const u32 *seen, u64 at, u64 end) {
    const u32 bits = seen[at >> 5] & ALL << (at & 31);
    return (at | 31) < end ? bits : bits & ~(ALL << (end & 31));
}

/* The place of neighbour `which` (0 is the first) among those from `begin` on that are seen,
 * `end` or more where there are fewer; seen: a bit for each column, null: all are. */
INLINE u64 seen_place(const u32 *seen, u64 begin, u64 end, u32 which) {
    if (!seen) return begin + which;
    while (begin < end) {
        u32 bits = seen_bits(seen, begin, end);
        if (which < __popc(bits)) {
            for (; which; which--) bits &= bits - 1;
            return (begin & ~31ull) + __ffs(bits) - 1;
        }
        which -= __popc(bits);
        begin = (begin | 31) + 1;
    }
    return end;
}

/* place [active]: id within its block, of those that have one */
extern "C" __global__ void places(const u32 *vertices, u32 active, u32 block, u16 *place) {
    for (u64 v = blockIdx.x * (u64)blockDim.x + threadIdx.x; v < active;
         v += (u64)gridDim.x * blockDim.x)
        place[v] = vertices[v] % block;
}

/* column [size]: neighbour `which` (0 is the first) of those that are seen, or where a row is
 * shorter the first of these, or with `itself` the vertex, as where there are none: it is not
 * visited where it is looked at
 * name [size]: its name by names of positions or, without them, its position; or null
 * seen: as in seen_place; devices, device: whose positions columns are */
extern "C" __global__ void columns(Uints row, const u32 *adj, const u32 *seen, const u32 *names,
                                   u32 active, u32 devices, u32 device, u32 which, u32 itself,
                                   u32 size, u32 *column, u32 *name) {
    for (u64 v = blockIdx.x * (u64)blockDim.x + threadIdx.x; v < size;
         v += (u64)gridDim.x * blockDim.x) {
        if (v >= active) {
            column[v] = 0;
            continue;
        }
        const u64 begin = row[v], end = row[v + 1];
        /* mutant: end, which) -> end, which + (seen && !which))
         * : test_masked_kernels::test_masks_in_every_way */
        const u64 at = seen_place(seen, begin, end, which);
        const u64 other = itself ? end : seen_place(seen, begin, end, 0);
        const u64 place = at < end ? at : other;
        /* mutant: place < end -> true : test_vertices_that_have_outer_edges_alone */
        /* mutant: position_in((u32)v, devices, device) -> (u32)v
         * : test_between_kernels::test_domains_of_several_devices */
        const u32 u = place < end ? adj[place] : position_in((u32)v, devices, device);
        column[v] = u;
        if (name) name[v] = names ? names[u] : u;
    }
}

/* more [words]: the vertices with columns that are seen besides their first
 * tail_row [tailed + 1], tail_seen: of the rows with tails; their bits, see seen_place */
extern "C" __global__ void with_more(Uints row, const u32 *seen, const u64 *tail_row,
                                     const u32 *tail_seen, u32 tailed, u32 active, u32 words,
                                     u32 *more) {
    for (u64 v = blockIdx.x * (u64)blockDim.x + threadIdx.x; v < (u64)words * 32;
         v += (u64)gridDim.x * blockDim.x) {
        bool is = v < active && seen_place(seen, row[v], row[v + 1], 1) < row[v + 1];
        if (!is && v < tailed)
            is = seen_place(tail_seen, tail_row[v], tail_row[v + 1], 0) < tail_row[v + 1];
        const u32 bits = __ballot_sync(ALL, is);
        if ((v & 31) == 0) more[v >> 5] = bits;
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

/* How many of the rising columns of a row are at least `bound`, of those that are seen; seen: as
 * in seen_place. */
INLINE u32 seen_from(const u32 *adj, const u32 *seen, u64 begin, u64 end, u32 bound) {
    const u64 from = lower_bound(adj, begin, end, bound);
    /* mutant: if (!seen) return -> return : test_some_edges_with_records */
    if (!seen) return (u32)(end - from);
    u32 count = 0;
    for (u64 at = from; at < end; at = (at | 31) + 1) count += __popc(seen_bits(seen, at, end));
    return count;
}

/* count [rows]: columns of each of the first rows from `bound` on that are seen
 * tail_row [tailed + 1], tail, tail_seen: of the rows with tails, their columns and bits */
extern "C" __global__ void leaves(Uints row, const u32 *adj, const u32 *seen,
                                  const u64 *tail_row, const u32 *tail, const u32 *tail_seen,
                                  u32 tailed, u32 rows, u32 bound, u32 *count) {
    for (u64 v = blockIdx.x * (u64)blockDim.x + threadIdx.x; v < rows;
         v += (u64)gridDim.x * blockDim.x) {
        u32 sum = seen_from(adj, seen, row[v], row[v + 1], bound);
        /* mutant: v < tailed -> 0 : test_between_leaves::test_rows_with_tails_in_host_memory */
        if (v < tailed) sum += seen_from(tail, tail_seen, tail_row[v], tail_row[v + 1], bound);
        count[v] = sum;
    }
}

/* bare [words of active]: the vertices without edges that are seen; count: [1], how many, increased
 * ends [active]: edges that are seen of each, null: all of its row */
extern "C" __global__ void bares(Uints row, const u32 *ends, u32 active, u32 *bare, u32 *count) {
    const u64 all = (active + 31ull) & ~31ull;
    for (u64 v = blockIdx.x * (u64)blockDim.x + threadIdx.x; v < all;
         v += (u64)gridDim.x * blockDim.x) {
        const bool none = v < active && (ends ? !ends[v] : row[v + 1] == row[v]);
        const u32 bits = __ballot_sync(ALL, none);
        if (v & 31) continue;
        bare[v >> 5] = bits;
        if (bits) atomicAdd(count, (u32)__popc(bits));
    }
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

/* Orders pieces by block of ids, as sorted keys tell.
 * key, made: [pieces], of make_pieces; piece: [pieces]; at: [blocks + 1], the first of a block */
extern "C" __global__ void order_pieces(u32 pieces, u32 blocks, const u64 *key,
                                        const uint2 *made, uint2 *piece, u32 *at) {
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i <= pieces;
         i += (u64)gridDim.x * blockDim.x) {
        if (i < pieces) piece[i] = made[(u32)key[i]];
        const u32 upto = i < pieces ? (u32)(key[i] >> 32) : blocks;
        for (u32 b = i ? (u32)(key[i - 1] >> 32) + 1 : 0; b <= upto; b++) at[b] = (u32)i;
    }
}

/* weight [words]: edges from hubs to the vertices of each word */
extern "C" __global__ void weights(Uints row, const u32 *adj, u32 active, u32 hubs,
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
extern "C" __global__ void splits(Uints row, const u32 *adj, u32 hubs, u32 ranges,
                                  const u32 *range, u32 *split) {
    const u64 all = (u64)hubs * (ranges + 1);
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < all;
         i += (u64)gridDim.x * blockDim.x) {
        const u32 h = i / (ranges + 1), r = i % (ranges + 1);
        split[i] = lower_bound(adj, row[h], row[h + 1], (u64)range[r] * 32) - row[h];
    }
}

/* sum [0]: squared degrees of rows from `rest` on; where edges lead one way, products of edges in
 * and out; most [0]: columns of the longest row from `first` on, without tails, raised */
extern "C" __global__ void lengths(Uints row, Uints in_row, u32 rest, u32 first, u32 active,
                                   double *sum, u32 *most) {
    double squares = 0;
    u32 longest = 0;
    for (u64 v = blockIdx.x * (u64)blockDim.x + threadIdx.x; v < active;
         v += (u64)gridDim.x * blockDim.x) {
        const u32 length = (u32)(row[v + 1] - row[v]);
        /* mutant: in_row[v + 1] - in_row[v] -> row[v + 1] - row[v]
         * : test_directed_kernels::test_limits_of_pushes */
        if (v >= rest) squares += (double)length * (double)(in_row[v + 1] - in_row[v]);
        if (v >= first && length > longest) longest = length;
    }
    squares = warp_sum(squares);
    longest = __reduce_max_sync(ALL, longest);
    if (threadIdx.x & 31) return;
    atomicAdd(sum, squares);
    atomicMax(most, longest);
}
