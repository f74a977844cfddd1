/* Rows of a whole graph from edge tuples.
 *
 * Method: count the ends of tuples at each vertex; number the vertices by falling degree
 * class with a stable counting sort; for a range of numbers, pack both directions of the
 * tuples into keys, which are sorted and written as columns by keys.cu.  A vertex with a
 * number has an edge, so no row is empty, except in directed graphs.
 *
 * Data encoding: a key is (row - first row of the range) * 2^32 + column, both numbers of
 * device_graph.py.  Classes are those of device_graph.degree_class, 0 ... 127.
 *
 * All kernels take one-dimensional grids of any size and blocks of THREADS threads, if not
 * said otherwise.
 */
#include "keys.cuh"

#define CLASSES 128
#define LOOSE 16 /* class of leaves that come before all others in trees; above all ranks */
#define SPAN 1024 /* columns that a warp deals out at a time */

/* What an edge adds to the links of its end: one to the low half, which counts the edges, and
 * the other end to the high half, a sum modulo 2^32.  Of one edge that is the other end. */
INLINE u64 link_to(u32 v) { return (u64)v << 32 | 1; }

/* Counts the ends of a chunk of tuples.
 *
 * u, v: [count]; out, in: [n], counts of tuples other than loops by source and target,
 * increased; the same array for undirected graphs
 * ends: [n], ends of loops, two each, increased; loops: [1], increased
 * links: [n], where not null instead of out and in: see link_to
 */
extern "C" __global__ void __launch_bounds__(THREADS)
count_ends(u64 count, const u32 *__restrict__ u, const u32 *__restrict__ v, u32 *out, u32 *in,
           u32 *ends, u64 *loops, u64 *links) {
    u64 found = 0;
    for (u64 k = thread_of(THREADS); k < count; k += threads_of(THREADS)) {
        u32 a = u[k], b = v[k];
        if (a == b) {
            atomicAdd(ends + a, 2u);
            found++;
        } else if (links) {
            atomicAdd(links + a, link_to(b));
            atomicAdd(links + b, link_to(a));
        } else {
            atomicAdd(out + a, 1u);
            atomicAdd(in + b, 1u);
        }
    }
    found = warp_sum(found);
    if (lane_id() == 0 && found) atomicAdd(loops, found);
}

/* Lists the vertices with one edge, in any order.
 *
 * degrees: [n]; list: [n]; size: [1], how many, increased
 */
extern "C" __global__ void __launch_bounds__(THREADS)
list_leaves(u64 n, const u32 *__restrict__ degrees, u32 *__restrict__ list, u32 *size) {
    for (u64 v = thread_of(THREADS); v < n; v += threads_of(THREADS))
        if (degrees[v] == 1) list[atomicAdd(size, 1u)] = (u32)v;
}

/* Chooses which vertices with one edge are taken away in a round; no link changes meanwhile.
 *
 * list: [count], vertices that had one edge when they were listed
 * links: [n], of the edges that are left, see link_to
 * ranks: [n], set to the round; of a lone edge one end stays, as the root of its tree
 */
extern "C" __global__ void __launch_bounds__(THREADS)
choose_leaves(u64 count, const u32 *__restrict__ list, const u64 *__restrict__ links, u32 round,
              u8 *__restrict__ ranks) {
    for (u64 k = thread_of(THREADS); k < count; k += threads_of(THREADS)) {
        const u32 v = list[k], u = (u32)(links[v] >> 32);
        if ((u32)links[v] == 1 && ((u32)links[u] != 1 || v > u)) ranks[v] = (u8)round;
    }
}

/* Takes them away.
 *
 * list, links, ranks: as in choose_leaves; a vertex that loses its last edge is the root of
 * a tree, whose rank is that of the next round
 * next: [all], vertices that have one edge then, some perhaps none; size: [1], how many,
 * increased
 */
extern "C" __global__ void __launch_bounds__(THREADS)
take_leaves(u64 count, const u32 *__restrict__ list, u64 *links, u32 round, u8 *ranks,
            u32 *__restrict__ next, u32 *size) {
    for (u64 k = thread_of(THREADS); k < count; k += threads_of(THREADS)) {
        const u32 v = list[k], u = (u32)(links[v] >> 32);
        if (ranks[v] != round || (u32)links[v] != 1) continue; /* or a root, which has none */
        const u32 had = (u32)atomicAdd(links + u, 0 - link_to(v));
        if (had == 2) next[atomicAdd(size, 1u)] = u;
        else if (had == 1) ranks[u] = (u8)(round + 1);
    }
}

/* Whether a vertex is a leaf that hangs on no other vertex of a tree; to: [n], see
 * split_trees */
INLINE bool loose(u32 v, const u8 *ranks, const u32 *to) {
    return ranks[v] == 1 && ranks[to[v]] == 0;
}

/* Splits the vertices by what they are in trees.
 *
 * degrees: [n]; links: [n], from the last round; ranks: [n]
 * to: [n], what a vertex with a rank hangs on; classed: [n], degrees, one in trees
 */
extern "C" __global__ void __launch_bounds__(THREADS)
split_trees(u64 n, const u32 *__restrict__ degrees, const u64 *__restrict__ links,
            const u8 *__restrict__ ranks, u32 *__restrict__ to, u32 *__restrict__ classed) {
    for (u64 v = thread_of(THREADS); v < n; v += threads_of(THREADS)) {
        to[v] = (u32)(links[v] >> 32);
        classed[v] = ranks[v] ? 1 : degrees[v];
    }
}

/* Counts vertices with edges outside of trees, vertices in trees, and loose leaves.
 *
 * degrees, ranks, to: [n]; counts: [3], increased
 */
extern "C" __global__ void __launch_bounds__(THREADS)
count_trees(u64 n, const u32 *__restrict__ degrees, const u8 *__restrict__ ranks,
            const u32 *__restrict__ to, u64 *counts) {
    u64 count[3] = {0, 0, 0};
    for (u64 v = thread_of(THREADS); v < n; v += threads_of(THREADS)) {
        count[0] += degrees[v] && !ranks[v];
        count[1] += ranks[v] != 0;
        count[2] += loose((u32)v, ranks, to);
    }
    for (int k = 0; k < 3; k++) {
        const u64 sum = warp_sum(count[k]);
        if (lane_id() == 0 && sum) atomicAdd(counts + k, sum);
    }
}

/* Tells the order of vertices in trees by classes, the highest first.
 *
 * tree: [count], ids; ranks, to, degrees: [n]; below: loose leaves below this id come first
 * classes: [count], LOOSE, or the rank; most: [1], the highest degree of those on which
 * others hang, raised
 */
extern "C" __global__ void __launch_bounds__(THREADS)
tree_classes(u64 count, const u32 *__restrict__ tree, const u8 *__restrict__ ranks,
             const u32 *__restrict__ to, const u32 *__restrict__ degrees, u32 below,
             u32 *__restrict__ classes, u32 *most) {
    for (u64 k = thread_of(THREADS); k < count; k += threads_of(THREADS)) {
        const u32 v = tree[k];
        classes[k] = v < below && loose(v, ranks, to) ? LOOSE : ranks[v];
        if (ranks[v] > 1) atomicMax(most, degrees[v]);
    }
}

/* Lowers the degrees by which a directed graph is numbered, so that vertices with few edges, none
 * of them in, come last: pulls have nothing to look at there.  They get degree 1, others at least
 * 2.
 *
 * out, degrees: [n], edges out, and out and in; few: most edges of such a vertex
 */
extern "C" __global__ void __launch_bounds__(THREADS)
lower_degrees(u64 n, const u32 *__restrict__ out, u32 few, u32 *__restrict__ degrees) {
    for (u64 v = thread_of(THREADS); v < n; v += threads_of(THREADS)) {
        const u32 degree = degrees[v];
        if (!degree) continue;
        /* mutant: degree <= few -> degree
         *   : test_directed_kernels::test_vertices_that_no_edge_enters_come_last */
        if (degree == out[v] && degree <= few) degrees[v] = 1;
        else if (degree == 1) degrees[v] = 2;
    }
}

/* Completes ends: ends += each * degrees.
 *
 * degrees, ends: [n]; sum: [1], the sum of the new ends is added to it
 */
extern "C" __global__ void __launch_bounds__(THREADS)
add_degrees(u64 n, u32 each, const u32 *__restrict__ degrees, u32 *__restrict__ ends, u64 *sum) {
    u64 found = 0;
    for (u64 k = thread_of(THREADS); k < n; k += threads_of(THREADS)) {
        u32 value = ends[k] + each * degrees[k];
        ends[k] = value;
        found += value;
    }
    found = warp_sum(found);
    if (lane_id() == 0 && found) atomicAdd(sum, found);
}

/* Counts the vertices of each class in each tile of ids; one warp a tile.
 *
 * tile: ids of a tile, a multiple of 32; tiles = ceil(n / tile); degrees: [n]
 * counts: [CLASSES][tiles], highest class first
 */
extern "C" __global__ void __launch_bounds__(THREADS)
count_classes(u64 n, u64 tile, u64 tiles, const u32 *__restrict__ degrees,
              u32 *__restrict__ counts) {
    __shared__ u32 count[WARPS][CLASSES];
    u32 warp = threadIdx.x / 32, lane = lane_id();
    u64 stride = (u64)gridDim.x * WARPS;
    for (u64 t = (u64)blockIdx.x * WARPS + warp; t < tiles; t += stride) {
        for (u32 c = lane; c < CLASSES; c += 32) count[warp][c] = 0;
        __syncwarp();
        u64 stop = (t + 1) * tile < n ? (t + 1) * tile : n;
        for (u64 base = t * tile; base < stop; base += 32) {
            u64 id = base + lane;
            u32 c = id < stop ? class_of(degrees[id]) : 0;
            u32 same = __match_any_sync(ALL, c);
            if (!(same & lanes_below())) count[warp][c] += __popc(same);
            __syncwarp();
        }
        for (u32 c = lane; c < CLASSES; c += 32)
            counts[(CLASSES - 1 - c) * tiles + t] = count[warp][c];
        __syncwarp();
    }
}

/* Numbers the vertices; tiles as in count_classes.
 *
 * starts: [CLASSES * tiles + 1], from the counts; class_starts: [CLASSES + 1], first
 * number of each class, highest class first; vertices: [vertices with edges], number ->
 * id; numbers: [n], id -> number or NONE
 */
extern "C" __global__ void __launch_bounds__(THREADS)
assign_numbers(u64 n, u64 tile, u64 tiles, const u32 *__restrict__ degrees,
               const u64 *__restrict__ starts, u64 *__restrict__ class_starts,
               u32 *__restrict__ vertices, u32 *__restrict__ numbers) {
    __shared__ u32 next[WARPS][CLASSES];
    u32 warp = threadIdx.x / 32, lane = lane_id();
    u64 stride = (u64)gridDim.x * WARPS;
    for (u64 t = (u64)blockIdx.x * WARPS + warp; t < tiles; t += stride) {
        for (u32 c = lane; c < CLASSES; c += 32) {
            next[warp][c] = (u32)starts[(CLASSES - 1 - c) * tiles + t];
            if (t == 0) class_starts[c] = starts[c * tiles];
        }
        if (t == 0 && lane == 0) class_starts[CLASSES] = starts[CLASSES * tiles];
        __syncwarp();
        u64 stop = (t + 1) * tile < n ? (t + 1) * tile : n;
        for (u64 base = t * tile; base < stop; base += 32) {
            u64 id = base + lane;
            u32 degree = id < stop ? degrees[id] : 0;
            u32 c = class_of(degree);
            u32 same = __match_any_sync(ALL, c);
            u32 number = next[warp][c] + __popc(same & lanes_below());
            __syncwarp();
            if (!(same & lanes_below())) next[warp][c] += __popc(same);
            __syncwarp();
            if (degree) vertices[number] = (u32)id;
            if (id < stop) numbers[id] = degree ? number : NONE;
        }
    }
}

/* Appends the keys of a chunk of tuples whose rows are low ... low + last.
 *
 * Loops give no keys.
 * u, v: [count], ids; numbers: [n]; both: not 0: v -> u as well as u -> v; bits: 32
 * keys: [capacity]; size: [1], see append
 */
extern "C" __global__ void __launch_bounds__(THREADS)
append_keys(u64 count, const u32 *__restrict__ u, const u32 *__restrict__ v,
            const u32 *__restrict__ numbers, u32 both, u32 low, u32 last, u32 bits,
            u64 capacity, u64 *__restrict__ keys, u64 *size) {
    for (u64 first = blockIdx.x * (u64)TILE; first < count; first += gridDim.x * (u64)TILE) {
        u32 end[2 * PER_THREAD], wanted = 0;
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            u64 i = first + k * THREADS + threadIdx.x;
            u32 x = i < count ? u[i] : 0, y = i < count ? v[i] : 0;
            end[2 * k] = x != y ? numbers[x] : NONE; /* which is in no range */
            end[2 * k + 1] = x != y ? numbers[y] : NONE;
        }
#pragma unroll
        for (int j = 0; j < 2 * PER_THREAD; j++)
            if (end[j] - low <= last && (both || j % 2 == 0)) wanted |= 1u << j;
        append<2 * PER_THREAD>(
            wanted, [&](int j) { return (u64)(end[j] - low) << 32 | end[j ^ 1]; }, capacity,
            keys, size);
    }
}

/* Splits rows: their first columns to the device, the rest to host memory.
 *
 * A warp takes SPAN columns at a time, and each lane goes on from the row that it is in.
 * rows: of these columns; offsets: [rows + 1], from 0; columns:
 * [offsets[rows]]; kept: columns of a head; head_at, tail_at: [rows], start of a row's
 * columns; heads: [all columns of heads]; tails: [all of tails], in host memory
 */
extern "C" __global__ void __launch_bounds__(THREADS)
deal_rows(u64 rows, u32 kept, const u64 *__restrict__ offsets, const u32 *__restrict__ columns,
          const u64 *__restrict__ head_at, const u64 *__restrict__ tail_at,
          u32 *__restrict__ heads, u32 *__restrict__ tails) {
    const u64 count = offsets[rows], warps = (u64)gridDim.x * WARPS;
    for (u64 first = ((u64)blockIdx.x * WARPS + threadIdx.x / 32) * SPAN; first < count;
         first += warps * SPAN) {
        const u64 stop = first + SPAN < count ? first + SPAN : count;
        u64 row = last_before(rows, first, [&](u64 r) { return offsets[r]; });
        for (u64 i = first + lane_id(); i < stop; i += 32) {
            while (offsets[row + 1] <= i) row++;
            const u64 j = i - offsets[row];
            if (j < kept) heads[head_at[row] + j] = columns[i];
            else tails[tail_at[row] + (j - kept)] = columns[i];
        }
    }
}

/* Turns entries of rows into pairs of ids.
 *
 * offsets: [rows + 1], first entry of each row, less that of the first; some rows may be
 * empty; skip: entries of the first row that come before these
 * columns: [count], numbers; names: [rows], number -> id, from the first row on
 * vertices: [n], number -> id; u, v: [count]
 */
extern "C" __global__ void __launch_bounds__(THREADS)
expand_rows(u64 count, u64 rows, u64 skip, const u64 *__restrict__ offsets,
            const u32 *__restrict__ columns, const u32 *__restrict__ names,
            const u32 *__restrict__ vertices, u32 *__restrict__ u, u32 *__restrict__ v) {
    for (u64 k = thread_of(THREADS); k < count; k += threads_of(THREADS)) {
        u64 row = last_before(rows, k + skip, [&](u64 r) { return offsets[r]; });
        u[k] = names[row];
        v[k] = vertices[columns[k]];
    }
}

/* out[k] = values[index[k]]; index, out: [count] */
extern "C" __global__ void __launch_bounds__(THREADS)
gather(u64 count, const u32 *__restrict__ values, const u32 *__restrict__ index,
       u32 *__restrict__ out) {
    for (u64 k = thread_of(THREADS); k < count; k += threads_of(THREADS))
        out[k] = values[index[k]];
}

/* Gives listed vertices the numbers from `first` on.
 *
 * list: [count], ids; vertices: [all], number -> id; numbers: [n], id -> number
 */
extern "C" __global__ void __launch_bounds__(THREADS)
renumber(u64 count, u32 first, const u32 *__restrict__ list, u32 *__restrict__ vertices,
         u32 *__restrict__ numbers) {
    for (u64 k = thread_of(THREADS); k < count; k += threads_of(THREADS)) {
        vertices[first + k] = list[k];
        numbers[list[k]] = first + (u32)k;
    }
}

/* out[index[k]] = values[k]; values, index: [count] */
extern "C" __global__ void __launch_bounds__(THREADS)
scatter(u64 count, const u32 *__restrict__ values, const u32 *__restrict__ index,
        u32 *__restrict__ out) {
    for (u64 k = thread_of(THREADS); k < count; k += threads_of(THREADS))
        out[index[k]] = values[k];
}
