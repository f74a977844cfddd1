/* Validation of a search on devices, by the rules of host.py.
 *
 * Method: each device has the results of its own vertices and a share of the tuples.
 * Passes, each with a grid that strides over its input:
 *   1. tuples, chunk by chunk, each an arc, or one each way: rules 3 and 4; marks each
 *      vertex to which an arc comes from one level nearer to the root, and unless there
 *      are levels only from its parent.  A possible tree edge of another device's vertex
 *      goes to that device, which checks it
 *   2. its own vertices: ranges, the root and rules 1, 2 and 4; where rule 2 is true, rule
 *      5 by the marks, or the nearer neighbour
 * Before these, levels are derived where there are parents alone (derived_cuda.py).
 * Faults are counted per block, with the lowest position of each kind.
 * Rules: Graph500 specification 2.0, Section "Validation".
 *
 * Both passes need levels of vertices at random: they read states, which have the level
 * and show whether to check the parent.  One device makes a table of all; several pack those
 * of their own and have a table of all and a copy of the other devices' parents; each marks
 * vertices of all in its table, and owners take the marks.  Where these do not fit, they ask
 * the owners for the states of the ends of a chunk, and send pairs of a vertex and a possible
 * parent.
 *
 * Data encoding: state, of `bits`: in the low `code` bits the level, all ones unreached,
 *   and where there is one device the code before that a level to be looked up.  Top bit: the
 *   mark.
 * states: vertex x at place row[x mod parts] * per + x div parts; 32-bit words of 2^shift
 *   states; per is a multiple of 32.  Where owners are asked, marks of own vertices alone.
 * Levels and parents are negative where unreached; the two deepest that an int32 tells
 *   are one here.
 * report: [2 · KINDS + 3] 64-bit words: counts of faults, position of the first of each
 * (2^63 - 1: none), then reached vertices, tuples that leave a reached vertex, depth + 1.
 *
 * variants: LEVEL=i8,i32 PARENT=i32,i64 ID=u32 | LEVEL=i8,i32 PARENT=i64 ID=u64
 */
#include "../engines/cuda/common/base.cuh"

#define TUPLES 4      /* of a thread at a time */
#define ALONE_SHIFT 3 /* where one device has all */
#define ALONE_CODE 3

/* Kinds of faults, in the order of faults.TEXTS. */
enum Kind {
    OUTSIDE, LEVEL_RANGE, PARENT_RANGE, ROOT_LEVEL, ROOT_PARENT, STEP, NEARER, SPAN,
    HALF, SET, EDGE, KINDS
};
enum Sum { REACHED = 2 * KINDS, NEDGE, DEPTH };

/* Findings of one block; in shared memory. */
struct Tally {
    u32 counts[KINDS];
    u64 first[KINDS];
};

/* The input of a device's checks, and its output. */
struct Check {
    const LEVEL *const *level;    /* [parts], each [local], or null where it is elsewhere */
    const PARENT *const *parent;  /* [parts], so; null: levels only */
    const u32 *seat;              /* [parts], the device that has it */
    const u32 *row;               /* [parts], of states; null: the number of the part */
    u32 *states;                  /* [rows][per >> shift] */
    u64 *report;                  /* [2 * KINDS + 3] */
    ID *pairs;                    /* [room][2], vertex and what may be its parent, where states
                                     are asked for */
    u64 *filled;                  /* [1], how many there are */
    const ID *u, *v;              /* [count] */
    u32 *slots;                   /* [gap * 2], by ends: where in `answers`; null: a table */
    u32 *answers;                 /* [items], states of what was requested, as dealt */
    const ID *came;               /* [count][each], from another device */
    ID *ids;                      /* [items][each], to be dealt by who has the first of each;
                                     from item `count` on `gap` ids later */
    ID *dealt;                    /* [items][each]; null: they are counted */
    u64 *cursor;                  /* [devices], where in `dealt`, in items */
    u64 n, per;
    u64 start, count;             /* position of the first; how many there are */
    u64 items, gap;
    u32 parts, part;
    u32 shift, code;
    u32 shallow;                  /* the last code of a level is one to be looked up */
    u32 each;
    u32 split;                    /* log2 of `parts`; 0 where it is none */
    const u64 *roots;             /* [root_count], rising: the root, or those of a set */
    u64 root_count;
    u32 directed;                 /* tuples are arcs (u, v); else (v, u), too */
    u32 *fresh;                   /* [per / 32], bits of the vertices of level `depth` */
    u64 depth;
};

/* Whether a vertex is the root, or one of a set. */
INLINE bool is_root(const Check &c, u64 x) {
    u64 low = 0, high = c.root_count; /* the first that is not below x */
    while (low < high) {
        const u64 mid = low + (high - low) / 2;
        if (c.roots[mid] < x) low = mid + 1;
        else high = mid;
    }
    return low < c.root_count && c.roots[low] == x;
}

/* The device and place of a vertex. */
struct Place {
    u32 part;
    ID local;
};
INLINE Place place_of(const Check &c, ID x) {
    Place place = {0, x};
    if (c.parts > 1) {
        place.local = c.split ? x >> c.split : x / c.parts;
        place.part = (u32)(x - place.local * c.parts);
    }
    return place;
}
INLINE ID spot_of(const Check &c, const Place &place) {
    return (c.row ? c.row[place.part] : place.part) * (ID)c.per + place.local;
}
INLINE u64 locals_of(const Check &c, u32 part) {
    return part < c.n ? (c.n - part + c.parts - 1) / c.parts : 0;
}

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

INLINE u32 unreached(const Check &c) { return (1u << c.code) - 1; }

/* Code of a level; the deepest that there is a code for stands for all below, too. */
INLINE u32 code_of(const Check &c, int level) {
    const u32 most = unreached(c) - 1;
    return level < 0 ? most + 1 : (u32)level < most ? (u32)level : most;
}

INLINE u32 bit_place(const Check &c, ID at) {
    return (u32)(at & ((1u << c.shift) - 1)) << (5 - c.shift);
}
INLINE u32 top_bit(const Check &c) { return 1u << ((32 >> c.shift) - 1); }

INLINE u32 state_in(const Check &c, u32 word, ID at) {
    return word >> bit_place(c, at) & (2 * top_bit(c) - 1);
}
INLINE u32 state_at(const Check &c, ID at) { return state_in(c, c.states[at >> c.shift], at); }
INLINE void mark(const Check &c, ID at) {
    atomicOr(&c.states[at >> c.shift], top_bit(c) << bit_place(c, at));
}

/* State of a vertex that was requested as number i, and one that was or is in the table. */
/* mutant: c.slots[i] -> i : test_one_wrong_parent_or_level_of_another_device */
INLINE u32 answer_to(const Check &c, u64 i) { return c.answers[c.slots[i]]; }
INLINE u32 state_of(const Check &c, const Place &place, u64 i) {
    return c.slots ? answer_to(c, i) : state_at(c, spot_of(c, place));
}

/* Level by a state; any negative level is -1. */
INLINE int level_of(const Check &c, u32 state, const Place &place) {
    const u32 none = unreached(c), code = state & none;
    if (code == none) return -1;
    return c.shallow && code == none - 1 ? c.level[place.part][place.local] : (int)code;
}

/* Levels of a part by its parents, one level at a time: those whose parent has a bit in `states`,
 * which has the level before, or at level 0 those that are their own parents. */
extern "C" __global__ void __launch_bounds__(256) derive_levels(const Check c) {
    LEVEL *level = (LEVEL *)c.level[c.part];
    const PARENT *parent = c.parent[c.part];
    const u64 end = locals_of(c, c.part);
    const u32 lane = lane_id();
    u64 count = 0;
    for (u64 k = thread_of(); k - lane < end; k += threads_of()) {
        bool hit = false;
        if (k < end && level[k] < 0) {
            const i64 of = parent[k];
            /* mutant: >= 0 && of < (i64)c.n -> >= 0 :
             * test_cuda_on_host::test_answers_are_those_of_the_host,
             * test_cuda_on_host::test_planted_faults_are_told_as_the_host_tells_them */
            if (of >= 0 && of < (i64)c.n)
                hit = c.depth ? state_at(c, spot_of(c, place_of(c, (ID)of)))
                              /* mutant: (u64)of == k * c.parts + c.part -> is_root(c, k *
                               * c.parts + c.part) :
                               * test_cuda_on_host::test_planted_faults_are_told_as_the_host_tells_them */
                              : (u64)of == k * c.parts + c.part;
        }
        if (hit) level[k] = (LEVEL)c.depth;
        const u32 hits = __ballot_sync(ALL, hit);
        if (hits && lane == 0) atomicOr(&c.fresh[(k - lane) >> 5], hits << (k - lane & 31));
        count += hit;
    }
    count = warp_sum(count);
    if (lane == 0) atomicAdd(c.filled, count);
}

/* States of a part without marks. */
extern "C" __global__ void __launch_bounds__(256) pack_states(const Check c) {
    const u32 each = 1 << c.shift, bits = 32 >> c.shift;
    const u64 words = c.per >> c.shift, end = locals_of(c, c.part);
    const LEVEL *level = c.level[c.part];
    u32 *row = c.states + (spot_of(c, {c.part, 0}) >> c.shift);
    for (u64 w = thread_of(); w < words; w += threads_of()) {
        u32 packed = 0;
        for (u32 k = 0; k < each; k++) {
            const u64 local = w * each + k;
            if (local >= end) break;
            packed |= code_of(c, level[local]) << (k * bits);
        }
        row[w] = packed;
    }
}

/* States of own vertices, for a device that asks; came: [count]; answers: [count] */
extern "C" __global__ void __launch_bounds__(256) answer(const Check c) {
    for (u64 i = thread_of(); i < c.count; i += threads_of()) {
        const Place place = place_of(c, c.came[i]);
        const u32 marked = state_at(c, spot_of(c, place));
        c.answers[i] = code_of(c, c.level[place.part][place.local]) | marked << 31;
    }
}

/* Count the items for each device, or group them. */
extern "C" __global__ void __launch_bounds__(256) deal(const Check c) {
    const u32 lane = lane_id();
    for (u64 i = thread_of(); i - lane < c.items; i += threads_of()) {
        const u64 at = (i < c.count ? i : c.gap + i - c.count) * c.each;
        const ID x = i < c.items ? c.ids[at] : (ID)c.n;
        const u32 dest = x < c.n ? c.seat[place_of(c, x).part] : NONE;
        const u32 same = __match_any_sync(ALL, dest), leader = __ffs(same) - 1;
        u64 to = 0;
        if (dest != NONE && lane == leader) to = atomicAdd(&c.cursor[dest], (u64)__popc(same));
        to = __shfl_sync(ALL, to, leader) + __popc(same & lanes_below());
        if (dest != NONE && c.dealt) {
            for (u32 k = 0; k < c.each; k++) c.dealt[to * c.each + k] = c.ids[at + k];
            if (c.each == 1) c.slots[at] = (u32)to;
        }
    }
}

/* Whether the level of a vertex's parent has to be looked at. */
INLINE bool steps(const Check &c, u64 x, int found, i64 of) {
    return found >= 1 && of >= 0 && of < (i64)c.n && of != (i64)x && !is_root(c, x);
}

/* The requests of pass 2 for a part: ids: [count], parents or n */
extern "C" __global__ void __launch_bounds__(256) list_parents(const Check c) {
    for (u64 i = thread_of(); i < c.count; i += threads_of()) {
        const u64 k = c.start + i;
        const i64 of = c.parent[c.part][k];
        const bool wanted = steps(c, k * c.parts + c.part, c.level[c.part][k], of);
        c.ids[i] = wanted ? (ID)of : (ID)c.n;
    }
}

INLINE void check_vertex(Tally &tally, const Check &c, u64 x, int found, const PARENT *parent,
                         u64 local) {
    const i64 n = c.n;
    if (found < -1 || found >= n)
        fault(tally, LEVEL_RANGE, x);
    const bool root = is_root(c, x);
    if ((found == 0) != root)
        fault(tally, ROOT_LEVEL, x);
    const bool marked = state_at(c, spot_of(c, {c.part, (ID)local})) & top_bit(c);
    if (!parent) {
        if (found >= 1 && !root && !marked)
            fault(tally, NEARER, x);
        return;
    }
    const i64 of = parent[local];
    const bool allowed = of >= 0 && of < n, own = of == (i64)x;
    if (!allowed && of != -1)
        fault(tally, PARENT_RANGE, x);
    /* mutant: != root -> && root && !own
     * : test_cuda_on_host::test_planted_faults_are_told_as_the_host_tells_them */
    if (own != root)
        fault(tally, ROOT_PARENT, x);
    if ((found >= 0) != (of != -1))
        fault(tally, SET, x);
    if (steps(c, x, found, of)) {
        const Place above = place_of(c, (ID)of);
        const u32 state = state_of(c, above, local - c.start);
        /* mutant: != found - 1 -> > found
         * : test_cuda_on_host::test_planted_faults_are_told_as_the_host_tells_them */
        if (level_of(c, state, above) != found - 1)
            fault(tally, STEP, x);
        /* mutant: !marked -> false
         * : test_cuda_on_host::test_planted_faults_are_told_as_the_host_tells_them */
        else if (!marked)
            fault(tally, EDGE, x);
    }
}

/* Pass 2, of `count` vertices of one part: the states hold the marks of pass 1. */
extern "C" __global__ void __launch_bounds__(256, 8) check_vertices(const Check c) {
    __shared__ Tally tally;
    clear(tally);
    const LEVEL *level = c.level[c.part];
    const PARENT *parent = c.parent ? c.parent[c.part] : 0;
    u64 reached = 0;
    u32 deepest = 0; /* and one */
    for (u64 k = c.start + thread_of(); k < c.start + c.count; k += threads_of()) {
        const int found = level[k];
        reached += found >= 0;
        if (found >= 0 && (u32)found + 1 > deepest) deepest = (u32)found + 1;
        check_vertex(tally, c, k * c.parts + c.part, found, parent, k);
    }
    reached = warp_sum(reached);
    deepest = __reduce_max_sync(ALL, deepest);
    if (lane_id() == 0) {
        atomicAdd(&c.report[REACHED], reached);
        atomicMax(&c.report[DEPTH], (u64)deepest);
    }
    tell(tally, c.report);
}

/* Whether a state, of the table or as it was when asked for, has a mark. */
INLINE bool is_marked(const Check &c, u32 state) {
    return c.slots ? state >> 31 : state & top_bit(c);
}

/* all: [n], the parents where one part has all, else null */
INLINE PARENT parent_of(const Check &c, const PARENT *all, const Place &place) {
    return (all ? all : c.parent[place.part])[place.local];
}

/* TUPLES ids from a multiple of TUPLES on, which are not read again. */
INLINE void load(const ID *from, ID *ids) {
    const uint4 some = __ldcs((const uint4 *)from);
    const u32 all[4] = {some.x, some.y, some.z, some.w};
    if (sizeof(ID) == 4) {
        for (int k = 0; k < TUPLES; k++) ids[k] = all[k];
        return;
    }
    const uint4 rest = __ldcs((const uint4 *)from + 1);
    ids[0] = (ID)((u64)some.y << 32 | some.x), ids[1] = (ID)((u64)some.w << 32 | some.z);
    ids[2] = (ID)((u64)rest.y << 32 | rest.x), ids[3] = (ID)((u64)rest.w << 32 | rest.z);
}

/* Check an arc by the levels of its ends; return whether it may be a tree edge, or for
 * levels only marks its second end. */
INLINE bool check_arc(Tally &tally, int from, int to, u64 position) {
    /* mutant: to < 0 -> to < -1
     * : test_cuda_on_host::test_planted_faults_are_told_as_the_host_tells_them */
    if (from >= 0 && to < 0)
        fault(tally, HALF, position);
    /* mutant: > 1 -> > 2
     * : test_cuda_on_host::test_planted_faults_are_told_as_the_host_tells_them */
    if (from >= 0 && to - from > 1)
        fault(tally, SPAN, position);
    return from >= 0 && to - from == 1;
}

/* Pass 1, one chunk; a thread takes TUPLES of them at a time.  Reads at random are made
 * for all of them before the first is used, so that a warp waits once for each kind. */
INLINE void check_ends(Tally &tally, const Check &c) {
    clear(tally);
    u32 reached = 0;
    const ID n = (ID)c.n;
    const u32 count = (u32)c.count, gap = (u32)c.gap, lane = lane_id(), step = threads_of<u32>();
    const PARENT *all = c.parts == 1 && c.parent ? c.parent[0] : 0;
    for (u32 g = thread_of<u32>(); TUPLES * (g - lane) < count; g += step) {
        ID ends[2 * TUPLES] = {}; /* u of each, then v */
        Place place[2 * TUPLES];
        ID at[2 * TUPLES] = {};
        u32 state[2 * TUPLES];
        bool inside[TUPLES];
        const u32 first = TUPLES * g;
        if (first < count) load(c.u + first, ends), load(c.v + first, ends + TUPLES);
#pragma unroll
        for (int k = 0; k < TUPLES; k++)
            inside[k] = first + k < count && ends[k] < n && ends[TUPLES + k] < n;
#pragma unroll
        for (int e = 0; e < 2 * TUPLES; e++) {
            place[e] = place_of(c, ends[e]);
            if (inside[e % TUPLES]) at[e] = spot_of(c, place[e]);
        }
#pragma unroll
        for (int e = 0; e < 2 * TUPLES; e++) {
            const u32 i = first + e % TUPLES + (e < TUPLES ? 0 : gap);
            if (!c.slots) state[e] = c.states[at[e] >> c.shift];
            else state[e] = inside[e % TUPLES] ? answer_to(c, i) : 0;
        }
        bool listed[2 * TUPLES] = {}; /* v of each may be the parent of u, then u of v */
#pragma unroll
        for (int k = 0; k < TUPLES; k++) {
            const int v = TUPLES + k;
            const u64 position = c.start + first + k;
            if (!c.slots) {
                state[k] = state_in(c, state[k], at[k]);
                state[v] = state_in(c, state[v], at[v]);
            }
            if (inside[k]) {
                const int la = level_of(c, state[k], place[k]);
                const int lb = level_of(c, state[v], place[v]);
                if (check_arc(tally, la, lb, position)) listed[v] = !is_marked(c, state[v]);
                if (!c.directed && check_arc(tally, lb, la, position))
                    listed[k] = !is_marked(c, state[k]);
                /* mutant: lb >= 0 && !c.directed -> lb >= 0 : test_faults_of_directed_graphs */
                reached += la >= 0 || (lb >= 0 && !c.directed);
            } else if (first + k < count) {
                fault(tally, OUTSIDE, position);
            }
        }
        if (c.slots) {
            ID *to = c.pairs + 2 * take_places<2 * TUPLES>(listed, c.filled);
#pragma unroll
            for (int e = 0; e < 2 * TUPLES; e++)
                if (listed[e]) *to++ = ends[e], *to++ = ends[(e + TUPLES) % (2 * TUPLES)];
            continue;
        }
        PARENT parent[2 * TUPLES];
#pragma unroll
        for (int e = 0; e < 2 * TUPLES; e++) {
            parent[e] = (PARENT)ends[(e + TUPLES) % (2 * TUPLES)];
            if (listed[e] && c.parent) parent[e] = parent_of(c, all, place[e]);
        }
#pragma unroll
        for (int e = 0; e < 2 * TUPLES; e++) {
            const ID y = ends[(e + TUPLES) % (2 * TUPLES)];
            /* mutant: parent[e] == (PARENT)y -> true : test_planted_faults */
            if (listed[e] && parent[e] == (PARENT)y) mark(c, at[e]);
        }
    }
    reached = __reduce_add_sync(ALL, reached);
    if (lane == 0)
        atomicAdd(&c.report[NEDGE], (u64)reached);
    tell(tally, c.report);
}

/* u, v: [count, rounded up to a multiple of TUPLES], aligned to 16 bytes */
extern "C" __global__ void __launch_bounds__(256) check_tuples_asked(const Check c) {
    __shared__ Tally tally;
    check_ends(tally, c);
}

/* The same without pairs, whose branches are resolved at compile time; shallow: a single
 * device. */
INLINE void check_ends_here(Tally &tally, Check &c, u32 shallow) {
    c.seat = c.row = c.slots = 0;
    c.shallow = shallow;
    check_ends(tally, c);
}
extern "C" __global__ void __launch_bounds__(256) check_tuples_alone(Check c) {
    __shared__ Tally tally;
    c.shift = ALONE_SHIFT, c.code = ALONE_CODE;
    check_ends_here(tally, c, 1);
}
extern "C" __global__ void __launch_bounds__(256) check_tuples_whole(Check c) {
    __shared__ Tally tally;
    check_ends_here(tally, c, 0);
}

/* Pass 1, pairs from another device. */
extern "C" __global__ void __launch_bounds__(256) check_pairs(const Check c) {
    for (u64 i = thread_of(); i < c.count; i += threads_of()) {
        const ID y = c.came[2 * i + 1];
        const Place place = place_of(c, c.came[2 * i]);
        const ID at = spot_of(c, place);
        if (!c.parent || parent_of(c, 0, place) == (PARENT)y) mark(c, at);
    }
}
