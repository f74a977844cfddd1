/* What a session asks of the results of a search in device memory.
 *
 * Levels are signed bytes or ints, -1 = unreached; parents are NONE where there is none.  Results are by id, or by number with `vertices` (number -> id) and
 * `numbers` (id -> number, NONE without edges) as in graph/device_graph.py.
 *
 * variants: LEVEL=i8 | LEVEL=int
 */
typedef signed char i8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define NONE 0xffffffffu
#define UNREACHED (-1)

/* Add up what was reached: out [3] = vertices, largest level + 1, ends of input tuples.
 * level [count]; vertices [count], or null where the place is the id; ends [n] by id;
 * out is 0 before */
extern "C" __global__ void tally(const LEVEL *level, const u32 *vertices, u64 count,
                                 const u32 *ends, u64 *out) {
    u64 reached = 0, deepest = 0, sum = 0;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count;
         i += (u64)gridDim.x * blockDim.x) {
        const LEVEL found = level[i];
        if (found == UNREACHED) continue;
        const u64 next = (u64)found + 1;
        deepest = next > deepest ? next : deepest;
        reached++;
        sum += ends[vertices ? vertices[i] : i];
    }
    for (int s = 16; s; s >>= 1) {
        reached += __shfl_xor_sync(0xffffffffu, reached, s);
        sum += __shfl_xor_sync(0xffffffffu, sum, s);
        const u64 other = __shfl_xor_sync(0xffffffffu, deepest, s);
        deepest = other > deepest ? other : deepest;
    }
    if (threadIdx.x % 32 || !reached) return;
    atomicAdd(out, reached);
    atomicMax(out + 1, deepest);
    atomicAdd(out + 2, sum);
}

/* Results by number as results by id.
 * numbers [n], vertices [active]; level, parent [active] by number, parents may be null;
 * level_out, parent_out [n] by id */
extern "C" __global__ void by_id(const u32 *numbers, const u32 *vertices, const LEVEL *level,
                                 const u32 *parent, u64 n, LEVEL *level_out,
                                 u32 *parent_out) {
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n;
         i += (u64)gridDim.x * blockDim.x) {
        const u32 number = numbers[i];
        const LEVEL found = number == NONE ? UNREACHED : level[number];
        level_out[i] = found;
        if (!parent) continue;
        const u32 above = number == NONE ? NONE : parent[number];
        parent_out[i] = above == NONE ? NONE : vertices[above];
    }
}
