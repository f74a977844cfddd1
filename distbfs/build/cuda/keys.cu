/* Rows from sorted keys, and sums over rows.
 *
 * Method: a key that equals the one before it is a repeat; all others are columns, and
 * where the row changes a row begins.
 *
 * Data encoding: a key is (row - first row of the range) * 2^bits + column.
 *
 * All kernels take one-dimensional grids of any size and blocks of THREADS threads, if not
 * said otherwise.
 */
#include "../../engines/cuda/common/sets.cuh"
#include "keys.cuh"

#define ROWS_TILE 1024
#define LOW_BINS 1024
#define SCANNED 16 /* values of a thread at a time */

/* Sums before each value; a single block of 1024 threads.
 *
 * values: [count]; starts: [count + 1], the last is the sum of all
 */
extern "C" __global__ void __launch_bounds__(1024) scan(u64 count, const u32 *__restrict__ values,
                                                        Uints starts) {
    __shared__ u64 sums[32];
    u32 warp = threadIdx.x / 32, lane = lane_id();
    u64 before = 0;
    for (u64 base = 0; base < count; base += 1024 * SCANNED) {
        u64 first = base + threadIdx.x * SCANNED, own[SCANNED], sum = 0;
#pragma unroll
        for (int k = 0; k < SCANNED; k++) {
            own[k] = sum;
            sum += first + k < count ? values[first + k] : 0;
        }
        u64 upto = warp_scan<u64>(sum);
        if (lane == 31) sums[warp] = upto;
        __syncthreads();
        if (warp == 0) sums[lane] = warp_scan<u64>(sums[lane]);
        __syncthreads();
        u64 start = before + upto - sum + (warp ? sums[warp - 1] : 0);
#pragma unroll
        for (int k = 0; k < SCANNED; k++)
            if (first + k < count) starts.set(first + k, start + own[k]);
        before += sums[31];
        __syncthreads();
    }
    if (threadIdx.x == 0) starts.set(count, before);
}

/* Sums each tile of ROWS_TILE values; one block a tile.
 *
 * values: [rows]; sums: [ceil(rows / ROWS_TILE)]; longest: [1], the highest value
 */
extern "C" __global__ void __launch_bounds__(THREADS) sum_rows(
    u64 rows, const u32 *__restrict__ values, u64 *__restrict__ sums, u32 *longest) {
    __shared__ u64 part[WARPS];
    u64 tiles = (rows + ROWS_TILE - 1) / ROWS_TILE;
    u32 highest = 0;
    for (u64 t = blockIdx.x; t < tiles; t += gridDim.x) {
        u64 sum = 0;
        for (u32 k = threadIdx.x; k < ROWS_TILE; k += THREADS) {
            u64 row = t * ROWS_TILE + k;
            u32 value = row < rows ? values[row] : 0;
            sum += value;
            if (value > highest) highest = value;
        }
        sum = warp_sum(sum);
        if (lane_id() == 0) part[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            sum = 0;
            for (int w = 0; w < WARPS; w++) sum += part[w];
            sums[t] = sum;
        }
        __syncthreads();
    }
    highest = __reduce_max_sync(ALL, highest);
    if (lane_id() == 0 && highest) atomicMax(longest, highest);
}

/* Counts the occurrences of each value.
 *
 * values: [count]; counts: [highest value + 1], added to
 */
extern "C" __global__ void __launch_bounds__(THREADS) histogram(
    u64 count, const u32 *__restrict__ values, u32 *counts) {
    __shared__ u32 few[LOW_BINS];
    for (u32 k = threadIdx.x; k < LOW_BINS; k += THREADS) few[k] = 0;
    __syncthreads();
    for (u64 k = thread_of(THREADS); k < count; k += threads_of(THREADS)) {
        u32 value = values[k];
        atomicAdd(value < LOW_BINS ? few + value : counts + value, 1u);
    }
    __syncthreads();
    for (u32 k = threadIdx.x; k < LOW_BINS; k += THREADS)
        if (few[k]) atomicAdd(counts + k, few[k]);
}

/* Counts the keys that differ from the one before them, in tiles of TILE.
 *
 * keys: [count], sorted; tiles: [ceil(count / TILE)]
 */
extern "C" __global__ void __launch_bounds__(THREADS) count_fresh(
    u64 count, const u64 *__restrict__ keys, u32 *__restrict__ tiles) {
    __shared__ u32 counts[WARPS];
    for (u64 first = blockIdx.x * (u64)TILE; first < count; first += gridDim.x * (u64)TILE) {
        u32 found = 0;
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            u64 i = first + k * THREADS + threadIdx.x;
            found += i < count && is_fresh(keys, i, keys[i]);
        }
        found = __reduce_add_sync(ALL, found);
        if (lane_id() == 0) counts[threadIdx.x / 32] = found;
        __syncthreads();
        if (threadIdx.x == 0) {
            u32 sum = 0;
            for (int w = 0; w < WARPS; w++) sum += counts[w];
            tiles[first / TILE] = sum;
        }
        __syncthreads();
    }
}

/* Converts a column; columns: [keys that are no repeats] */
struct Dropped {
    __device__ __forceinline__ void operator()(u64, u64) const {}
};
struct Plain {
    u32 *__restrict__ columns; /* [fresh keys] */
    __device__ __forceinline__ void operator()(u64 at, u64 column) const {
        columns[at] = (u32)column;
    }
};
/* a place of all parts, written as part * 2^32 + local id */
struct Placed {
    u64 per;
    u64 *__restrict__ columns; /* [fresh keys] */
    __device__ __forceinline__ void operator()(u64 at, u64 place) const {
        const u64 part = place / per;
        columns[at] = part << 32 | (place - part * per);
    }
};
/* a place of 32 bits, written as part * 2^32 + number, or as the number alone */
template <typename Column>
struct Numbered {
    u32 per, blocks;
    const uint4 *__restrict__ normals; /* [parts * blocks] */
    Column *__restrict__ columns;      /* [fresh keys] */
    __device__ __forceinline__ void operator()(u64 at, u64 column) const {
        u32 place = (u32)column, part = sizeof(Column) == 4 ? 0 : place / per, number;
        find(normals + (u64)part * blocks, place - part * per, number);
        columns[at] = (Column)((u64)part << 32 | number);
    }
};

/* Writes the columns of sorted keys and adds the lengths of their rows.
 *
 * At a row boundary, the position is added to the length of the row that ends and
 * subtracted from that of the next, modulo 2^32.
 * keys: [count], count > 0; starts: [tiles + 1], see each_fresh; bits: of a column; shift:
 * from the row of a key to its row in lengths and repeated
 * lengths: [rows], without repeats; repeated: [rows], with repeats, or null; both added to
 */
template <typename Put>
INLINE void write_keys(u64 count, const u64 *__restrict__ keys, const u64 *__restrict__ starts,
                       u32 bits, u32 shift, u32 *lengths, u32 *repeated, const Put &put) {
    each_fresh(count, keys, starts, [&](u64 i, u64 key, u64 at) {
        put(at, key & ((1ull << bits) - 1));
        u32 row = (u32)(key >> bits), last = i ? (u32)(keys[i - 1] >> bits) : row;
        if (row == last) return;
        atomicAdd(lengths + (u32)(last + shift), (u32)at);
        atomicAdd(lengths + (u32)(row + shift), 0u - (u32)at);
        if (!repeated) return;
        atomicAdd(repeated + (u32)(last + shift), (u32)i);
        atomicAdd(repeated + (u32)(row + shift), 0u - (u32)i);
    });
    if (blockIdx.x || threadIdx.x) return;
    u32 last = (u32)(keys[count - 1] >> bits) + shift;
    atomicAdd(lengths + last, (u32)starts[(count + TILE - 1) / TILE]);
    if (repeated) atomicAdd(repeated + last, (u32)count);
}

/* write_keys without columns; keys: [count]; starts: [tiles + 1]; lengths, repeated: [rows] */
extern "C" __global__ void __launch_bounds__(THREADS) measure_rows(
    u64 count, const u64 *keys, const u64 *starts, u32 bits, u32 shift, u32 *lengths,
    u32 *repeated) {
    write_keys(count, keys, starts, bits, shift, lengths, repeated, Dropped());
}

/* write_keys; keys: [count]; starts: [tiles + 1]; lengths: [rows]; columns: [fresh keys] */
extern "C" __global__ void __launch_bounds__(THREADS) write_columns(
    u64 count, const u64 *keys, const u64 *starts, u32 bits, u32 shift, u32 *lengths,
    u32 *columns) {
    write_keys(count, keys, starts, bits, shift, lengths, 0, Plain{columns});
}

/* write_keys with numbers of one part; keys: [count]; starts: [tiles + 1]; lengths: [rows]
 * normals: [blocks]; columns: [fresh keys]
 */
extern "C" __global__ void __launch_bounds__(THREADS) write_numbers_32(
    u64 count, const u64 *keys, const u64 *starts, u32 bits, u32 shift, u32 *lengths, u32 per,
    u32 blocks, const uint4 *normals, u32 *columns) {
    const Numbered<u32> put = {per, blocks, normals, columns};
    write_keys(count, keys, starts, bits, shift, lengths, 0, put);
}

/* write_keys with parts and numbers; keys: [count]; starts: [tiles + 1]; lengths: [rows]
 * normals: [parts * blocks]; columns: [fresh keys]
 */
extern "C" __global__ void __launch_bounds__(THREADS) write_numbers_64(
    u64 count, const u64 *keys, const u64 *starts, u32 bits, u32 shift, u32 *lengths, u32 per,
    u32 blocks, const uint4 *normals, u64 *columns) {
    const Numbered<u64> put = {per, blocks, normals, columns};
    write_keys(count, keys, starts, bits, shift, lengths, 0, put);
}

/* write_keys with parts and local ids; keys: [count]; starts: [tiles + 1]; lengths: [rows]
 * columns: [fresh keys]
 */
extern "C" __global__ void __launch_bounds__(THREADS) write_places(
    u64 count, const u64 *keys, const u64 *starts, u32 bits, u32 shift, u32 *lengths, u64 per,
    u64 *columns) {
    write_keys(count, keys, starts, bits, shift, lengths, 0, Placed{per, columns});
}
