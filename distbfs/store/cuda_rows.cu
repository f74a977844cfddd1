/* Edges of a store from its rows, as read from the files.
 *
 * Method: names of rows and columns are input ids.  Each edge finds its row by binary
 * search in the offsets; neighbouring threads find neighbouring rows.  Invalid
 * contents set a bit of fault, and never cause accesses outside the arrays.
 *
 * Data encoding: rows, columns and numbers are those of partition/part.py.  Offsets have 32
 * or 64 bits (wide), columns of nn in several parts part << 32 | number.
 * fault: [1], bits of the enum below, added to by all kernels.
 *
 * All kernels take one-dimensional grids of any size and blocks of THREADS threads.
 */
#include "../generate/hashing.cuh"

#define THREADS 256
#define PART_SHIFT 32

enum { FIRST = 1, FALLS = 2, LAST = 4, COLUMN = 8, OWNER = 16, VERTICES = 32, DELEGATE = 64,
       PASSIVE = 128, ENDS = 512 };

INLINE u64 at(const void *values, u32 wide, u64 k) {
    return wide ? ((const u64 *)values)[k] : ((const u32 *)values)[k];
}

INLINE u32 named(u64 id, const permutation *by) {
    return by->n ? Permutation<u32>(*by)((u32)id) : (u32)id;
}

/* Maps the numbers of a part to input ids.
 *
 * vertices: [local], number -> local id; by: [1], from ids of the store to the
 * input's, n = 0 for none; seen: [ceil(local / 32)], zeros
 * names: [local], number -> input id
 */
extern "C" __global__ void __launch_bounds__(THREADS)
name_vertices(u64 local, u32 part, u32 parts, const u32 *__restrict__ vertices,
              const permutation *__restrict__ by, u32 *seen, u32 *__restrict__ names, u32 *fault) {
    for (u64 k = thread_of(THREADS); k < local; k += threads_of(THREADS)) {
        u32 id = vertices[k], bit = 1u << (id % 32);
        bool wrong = id >= local || atomicOr(seen + id / 32, bit) & bit;
        if (wrong) atomicOr(fault, (u32)VERTICES);
        names[k] = wrong ? 0 : named((u64)id * parts + part, by);
    }
}

/* delegates: [d], ids of the store; n: vertices; names: [d], input ids */
extern "C" __global__ void __launch_bounds__(THREADS)
name_delegates(u64 d, u64 n, const long long *__restrict__ delegates,
               const permutation *__restrict__ by, u32 *__restrict__ names, u32 *fault) {
    for (u64 k = thread_of(THREADS); k < d; k += threads_of(THREADS)) {
        u64 id = (u64)delegates[k];
        if (id >= n) atomicOr(fault, (u32)DELEGATE);
        names[k] = id < n ? named(id, by) : 0;
    }
}

/* Checks offsets, adds the lengths of rows to the degrees of their ids, and marks rows
 * that have edges.
 *
 * count: rows, 1 for none; offsets: [rows + 1]; edges: of all rows; no row from active on
 * has any
 * names: [rows]; degrees: [n], by name, or null; filled: [ceil(rows / 32)], zeros
 */
extern "C" __global__ void __launch_bounds__(THREADS)
measure_rows(u64 count, u64 rows, u64 active, u64 edges, const void *__restrict__ offsets, u32 wide,
             const u32 *__restrict__ names, u32 *degrees, u32 *filled, u32 *fault) {
    for (u64 k = thread_of(THREADS); k < rows; k += threads_of(THREADS)) {
        u64 first = at(offsets, wide, k), next = at(offsets, wide, k + 1);
        if (next < first) {
            atomicOr(fault, (u32)FALLS);
        } else if (next > first) {
            /* mutant: k >= active -> k > rows : test_store_rows::test_rows_that_are_not_active */
            if (k >= active) atomicOr(fault, (u32)PASSIVE);
            if (degrees) atomicAdd(degrees + names[k], (u32)(next - first));
            atomicOr(filled + k / 32, 1u << (k % 32));
        }
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        if (at(offsets, wide, 0)) atomicOr(fault, (u32)FIRST);
        if (at(offsets, wide, rows) != edges) atomicOr(fault, (u32)LAST);
    }
}

/* Returns the index of a column's name, and whether the column is valid. */
INLINE u64 place_of(u64 column, const u64 *starts, u64 many,
                                               bool *right, u32 *fault) {
    if (!starts) {
        *right = column < many;
        if (!*right) atomicOr(fault, (u32)COLUMN);
        return column;
    }
    u64 part = column >> PART_SHIFT, number = column & 0xffffffffu;
    /* mutant: 1] - starts[part] -> 1] : test_store_rows::test_forged_contents */
    *right = part < many && number < starts[part + 1] - starts[part];
    if (part >= many) atomicOr(fault, (u32)COLUMN);
    else if (!*right) atomicOr(fault, (u32)OWNER);
    return *right ? starts[part] + number : 0;
}

/* Writes the edges of a slice of columns as pairs of input ids.
 *
 * first: edge of the subgraph at which the slice begins; columns: [count], of 64 bits with
 * starts, else of 32
 * offsets: [rows + 1]; row_names: [rows]; names: of columns
 * starts: [parts + 1], where names of the numbers of each part begin, or null where columns
 * are below many; u, v: [count]
 */
extern "C" __global__ void __launch_bounds__(THREADS)
expand_slice(u64 count, u64 first, u64 rows, const void *__restrict__ offsets, u32 wide,
             const void *__restrict__ columns, const u32 *__restrict__ row_names,
             const u32 *__restrict__ names, const u64 *__restrict__ starts, u64 many,
             u32 *__restrict__ u, u32 *__restrict__ v, u32 *fault) {
    for (u64 k = thread_of(THREADS); k < count; k += threads_of(THREADS)) {
        u64 row = last_before(rows, first + k, [&](u64 r) { return at(offsets, wide, r); });
        bool right;
        u64 place = place_of(at(columns, starts != nullptr, k), starts, many, &right, fault);
        u[k] = row_names[row];
        v[k] = right ? names[place] : 0;
    }
}

/* Checks the columns of a slice; arguments as in expand_slice. */
extern "C" __global__ void __launch_bounds__(THREADS)
check_columns(u64 count, const void *__restrict__ columns, const u64 *__restrict__ starts,
              u64 many, u32 *fault) {
    for (u64 k = thread_of(THREADS); k < count; k += threads_of(THREADS)) {
        bool right;
        place_of(at(columns, starts != nullptr, k), starts, many, &right, fault);
    }
}

/* Stores the ends of tuples of the vertices of one of several owners.
 *
 * values: [count], of numbers from one place on; names: [count], input ids
 * owners, owner: those with id mod owners = owner are written; ends: [...], by id / owners
 */
extern "C" __global__ void __launch_bounds__(THREADS)
keep_ends(u64 count, const long long *__restrict__ values, const u32 *__restrict__ names,
          u32 owners, u32 owner, u32 *__restrict__ ends, u32 *fault) {
    for (u64 k = thread_of(THREADS); k < count; k += threads_of(THREADS)) {
        if ((u64)values[k] >> 32) atomicOr(fault, (u32)ENDS);
        if (names[k] % owners == owner) ends[names[k] / owners] = (u32)values[k];
    }
}
