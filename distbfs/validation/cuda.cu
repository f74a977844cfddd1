/* Validation of a search on a device, by the rules of validate.py.
 *
 * Method: three passes, each with a grid that strides over its input.
 *   1. vertices: ranges, the root and rules 1, 2 and 4; packs the states
 *   2. tuples, chunk by chunk: rules 3 and 4; marks each vertex that a tuple joins to
 *      its parent, or for levels only to a vertex one level nearer to the root
 *   3. vertices: rule 5, or the nearer neighbour
 * Faults are counted per block, with the lowest position of each kind.
 * Rules: Graph500 specification 2.0, Section "Validation".
 *
 * Pass 2 reads the ends of tuples at random.  It reads the packed states: half a byte
 * holds nearly every level and the mark, so a parent is read only where the tuple can
 * be the tree edge of a vertex that has no mark yet.
 *
 * Data encoding: states: [ceil(n / 8)] words, vertex x at bits 4 (x mod 8) … + 3 of
 * word x / 8: three bits of level code (0 … 5 the level, DEEP look it up, UNREACHED
 * unreached) and MARK.  level, parent: negative where unreached.
 * report: [2 · KINDS + 3] 64-bit words: counts of faults, position of the first of each
 * (all ones: none), then reached vertices, tuples with a reached end, depth + 1.
 *
 * variants: LEVEL=i8,i16,i32 PARENT=i32,i64
 */
#include "../engines/cuda/common/base.cuh"

/* Kinds of faults, in the order of faults.TEXTS. */
enum Kind {
    OUTSIDE, LEVEL_RANGE, PARENT_RANGE, ROOT_LEVEL, ROOT_PARENT, STEP, NEARER, SPAN,
    HALF, SET, EDGE, KINDS
};
enum Sum { REACHED = 2 * KINDS, NEDGE, DEPTH };
enum State { DEEP = 6, UNREACHED = 7, LEVEL_BITS = 7, MARK = 8, PER_WORD = 8 };

/* What one block found; in shared memory. */
struct Tally {
    u32 counts[KINDS];
    u64 first[KINDS];
};

INLINE void clear(Tally &tally) {
    for (int k = threadIdx.x; k < KINDS; k += blockDim.x) {
        tally.counts[k] = 0;
        tally.first[k] = ~0ull;
    }
    __syncthreads();
}

INLINE void fault(Tally &tally, Kind kind, u64 position) {
    atomicAdd(&tally.counts[kind], 1u);
    if (position < *(volatile u64 *)&tally.first[kind])
        atomicMin(&tally.first[kind], position);
}

INLINE void tell(const Tally &tally, u64 *report) {
    __syncthreads();
    for (int k = threadIdx.x; k < KINDS; k += blockDim.x) {
        if (tally.counts[k]) {
            atomicAdd(&report[k], (u64)tally.counts[k]);
            atomicMin(&report[KINDS + k], tally.first[k]);
        }
    }
}

INLINE u32 state_of(int level) {
    return level < 0 ? UNREACHED : level < DEEP ? level : DEEP;
}

INLINE u32 state_at(const u32 *states, u32 x) {
    return states[x / PER_WORD] >> (4 * (x % PER_WORD)) & 15;
}

/* Level by a state; any negative level is -1. */
INLINE int level_at(u32 state, const LEVEL *level, u32 x) {
    const int code = state & LEVEL_BITS;
    return code == UNREACHED ? -1 : code == DEEP ? level[x] : code;
}

INLINE void mark(u32 *states, u32 x) {
    atomicOr(&states[x / PER_WORD], (u32)MARK << (4 * (x % PER_WORD)));
}

INLINE void check_vertex(Tally &tally, u32 x, u32 n, u32 root, int found, const LEVEL *level,
                         const PARENT *parent) {
    if (found < -1 || found >= (i64)n)
        fault(tally, LEVEL_RANGE, x);
    if ((found == 0) != (x == root))
        fault(tally, ROOT_LEVEL, x);
    if (!parent)
        return;
    const i64 of = parent[x];
    const bool allowed = of >= 0 && of < (i64)n, own = of == (i64)x;
    if (!allowed && of != -1)
        fault(tally, PARENT_RANGE, x);
    if (own != (x == root))
        fault(tally, ROOT_PARENT, x);
    if ((found >= 0) != (of != -1))
        fault(tally, SET, x);
    if (found >= 1 && allowed && !own && x != root &&
        level[of] != found - 1)
        fault(tally, STEP, x);
}

/* Pass 1.  level: [n]; parent: [n] or null for levels only; states: [ceil(n / 8)],
 * written; report: see above.  A thread takes the eight vertices of a word. */
extern "C" __global__ void __launch_bounds__(256)
    check_vertices(u32 n, const LEVEL *level, const PARENT *parent, u32 *states, u64 *report,
                   u32 root) {
    __shared__ Tally tally;
    clear(tally);
    const u32 words = (n + PER_WORD - 1) / PER_WORD;
    u32 reached = 0;
    int deepest = -1;
    for (u32 w = thread_of<u32>(); w < words; w += threads_of<u32>()) {
        u32 packed = 0;
#pragma unroll
        for (u32 k = 0; k < PER_WORD; k++) {
            const u32 x = w * PER_WORD + k;
            if (x < n) {
                const int found = level[x];
                packed |= state_of(found) << (4 * k);
                reached += found >= 0;
                deepest = max(deepest, found);
                check_vertex(tally, x, n, root, found, level, parent);
            }
        }
        states[w] = packed;
    }
    reached = __reduce_add_sync(ALL, reached);
    deepest = __reduce_max_sync(ALL, deepest);
    if (lane_id() == 0) {
        atomicAdd(&report[REACHED], (u64)reached);
        atomicMax(&report[DEPTH], (u64)(deepest + 1ll));
    }
    tell(tally, report);
}

/* Judge the tuple (u, v) whose ends are in the states a, b; return if one is reached. */
INLINE bool check_tuple(Tally &tally, u64 position, u32 u, u32 v, u32 a, u32 b,
                        const LEVEL *level, const PARENT *parent, u32 *states, bool thorough) {
    const int la = level_at(a, level, u), lb = level_at(b, level, v);
    const bool both = la >= 0 && lb >= 0;
    if ((la >= 0) != (lb >= 0))
        fault(tally, HALF, position);
    if (both && (la - lb > 1 || lb - la > 1))
        fault(tally, SPAN, position);
    const bool down = both && la - lb == 1, up = both && lb - la == 1;
    if (!(a & MARK) && (down || thorough))
        if (parent ? parent[u] == (i64)v : down)
            mark(states, u);
    if (!(b & MARK) && (up || thorough))
        if (parent ? parent[v] == (i64)u : up)
            mark(states, v);
    return la >= 0 || lb >= 0;
}

/* Pass 2, one chunk.  level, parent, states, report: as in pass 1
 * start: position of the first tuple; count: tuples
 * u, v: [count, rounded up to a multiple of four] ends, aligned to 16 bytes
 * thorough: look for tree edges between any levels, not only those that differ by one;
 *   of use only where pass 1 found faults. */
extern "C" __global__ void __launch_bounds__(256)
    check_tuples(u32 n, const LEVEL *level, const PARENT *parent, u32 *states, u64 *report,
                 u64 start, u64 count, const uint4 *u, const uint4 *v, u32 thorough) {
    __shared__ Tally tally;
    clear(tally);
    u32 reached = 0;
    for (u64 g = thread_of(); 4 * g < count; g += threads_of()) {
        const uint4 from = __ldcs(&u[g]), to = __ldcs(&v[g]);
        const u32 us[4] = {from.x, from.y, from.z, from.w};
        const u32 vs[4] = {to.x, to.y, to.z, to.w};
        u32 a[4], b[4];
        bool inside[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            inside[k] = 4 * g + k < count && us[k] < n && vs[k] < n;
            a[k] = inside[k] ? state_at(states, us[k]) : UNREACHED;
            b[k] = inside[k] ? state_at(states, vs[k]) : UNREACHED;
        }
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const u64 position = start + 4 * g + k;
            if (inside[k])
                reached += check_tuple(tally, position, us[k], vs[k], a[k], b[k], level,
                                       parent, states, thorough);
            else if (4 * g + k < count)
                fault(tally, OUTSIDE, position);
        }
    }
    reached = __reduce_add_sync(ALL, reached);
    if (lane_id() == 0)
        atomicAdd(&report[NEDGE], (u64)reached);
    tell(tally, report);
}

/* Pass 3.  Arguments as in pass 1; the states hold the marks of pass 2. */
extern "C" __global__ void __launch_bounds__(256)
    check_marks(u32 n, const LEVEL *level, const PARENT *parent, const u32 *states, u64 *report,
                u32 root) {
    __shared__ Tally tally;
    clear(tally);
    const u32 words = (n + PER_WORD - 1) / PER_WORD;
    for (u32 w = thread_of<u32>(); w < words; w += threads_of<u32>()) {
        const u32 packed = states[w];
        for (u32 k = 0; k < PER_WORD; k++) {
            const u32 x = w * PER_WORD + k, state = packed >> (4 * k) & 15;
            if (x >= n || x == root || state & MARK || state == UNREACHED)
                continue;
            if (!parent) {
                if (level[x] >= 1)
                    fault(tally, NEARER, x);
                continue;
            }
            const i64 of = parent[x];
            if (of >= 0 && of < (i64)n && of != (i64)x)
                fault(tally, EDGE, x);
        }
    }
    tell(tally, report);
}
