/* Validation of a search on devices, by the rules of host.py.
 *
 * Method: each device has the levels of all vertices, the parents of its own, and a share
 * of the tuples.  Passes, each with a grid that strides over its input:
 *   1. all vertices: packs the states; its own: ranges, the root and rules 1, 2 and 4
 *   2. tuples, chunk by chunk: rules 3 and 4; marks each vertex that a tuple joins to
 *      its parent, or for levels only to a vertex one level nearer to the root.  What may
 *      be the tree edge of another device's vertex goes to that device, which looks
 *   3. its own vertices: rule 5, or the nearer neighbour
 * Faults are counted per block, with the lowest position of each kind.
 * Rules: Graph500 specification 2.0, Section "Validation".
 *
 * Pass 2 reads the ends of tuples at random.  It reads the packed states: half a byte
 * holds nearly every level and the mark, so a parent is read only where the tuple can
 * be the tree edge of a vertex that has no mark yet.  Of a vertex of another device a
 * byte of the hash of its parent says so.
 *
 * Data encoding: vertex x is at place part * per + local id, x mod parts and x div parts;
 * per is a multiple of 8 where there are several parts
 * states: word of place / 8, bits 4 (place mod 8) … + 3: three bits of level code (0 … 5
 * the level, DEEP look it up, UNREACHED unreached) and MARK.  Levels and parents are
 * negative where unreached.
 * report: [2 · KINDS + 3] 64-bit words: counts of faults, position of the first of each
 * (all ones: none), then reached vertices, tuples with a reached end, depth + 1.
 *
 * variants: LEVEL=i8,i16,i32 PARENT=i32,i64 ID=u32 | LEVEL=i8,i16,i32 PARENT=i64 ID=u64
 */
#include "../engines/cuda/common/base.cuh"

#define TUPLES 4 /* of a thread at a time */

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

/* What a device checks, and where it writes. */
struct Check {
    const LEVEL *level;           /* [parts][per] */
    const u8 *prints;             /* [parts][per], of parents; null where all are here */
    const PARENT *const *parent;  /* [parts], each [local] or null; null: levels only */
    const u32 *seat;              /* [parts], the device that has it */
    u32 *states;                  /* [parts][per / 8, rounded up] */
    u64 *report;                  /* [2 * KINDS + 3] */
    u64 *box;                     /* [seats][room][2]: vertex and what may be its parent */
    u64 *filled;                  /* [seats], pairs of each box */
    const ID *u, *v;              /* [count] */
    const u64 *pairs;             /* [count][2], from a box */
    u64 n, root, per, room;
    u64 start, count;             /* position of the first tuple; how many there are */
    u32 parts, own;               /* own: which device this is */
    u32 part, thorough;           /* thorough: look for tree edges between any levels, not
                                     only those that differ by one; of use only where pass
                                     1 found faults */
};

/* Where a vertex is. */
struct Place {
    u32 part;
    ID local, at;
};
INLINE Place place_of(const Check &c, ID x) {
    Place place = {0, x, x};
    if (c.parts > 1) {
        place.local = x / c.parts;
        place.part = (u32)(x - place.local * c.parts);
        place.at = place.part * (ID)c.per + place.local;
    }
    return place;
}
INLINE u64 locals_of(const Check &c, u32 part) {
    return part < c.n ? (c.n - part + c.parts - 1) / c.parts : 0;
}

/* A byte of the hash of a parent. */
INLINE u8 print_of(u64 x) { return (u8)((x ^ x >> 32) * 0x9E3779B97F4A7C15ull >> 56); }

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

INLINE u32 state_at(const Check &c, ID at) {
    return c.states[at / PER_WORD] >> (4 * (at % PER_WORD)) & 15;
}

/* Level by a state; any negative level is -1. */
INLINE int level_at(const Check &c, u32 state, ID at) {
    const int code = state & LEVEL_BITS;
    return code == UNREACHED ? -1 : code == DEEP ? c.level[at] : code;
}

INLINE void mark(const Check &c, ID at) {
    atomicOr(&c.states[at / PER_WORD], (u32)MARK << (4 * (at % PER_WORD)));
}

/* Bytes for the parents of the vertices of a part; parent: [local]; prints: [local] */
extern "C" __global__ void __launch_bounds__(256)
    make_prints(u64 local, const PARENT *parent, u8 *prints) {
    for (u64 k = thread_of(); k < local; k += threads_of()) prints[k] = print_of(parent[k]);
}

/* States of all vertices without marks. */
extern "C" __global__ void __launch_bounds__(256) pack_states(const Check c) {
    const u64 each = (c.per + PER_WORD - 1) / PER_WORD, words = each * c.parts;
    for (u64 w = thread_of(); w < words; w += threads_of()) {
        const u32 part = (u32)(w / each);
        const u64 local = w % each * PER_WORD, end = locals_of(c, part);
        u32 packed = 0;
#pragma unroll
        for (u32 k = 0; k < PER_WORD; k++)
            packed |= (local + k < end ? state_of(c.level[part * c.per + local + k]) : UNREACHED)
                      << (4 * k);
        c.states[w] = packed;
    }
}

INLINE void check_vertex(Tally &tally, const Check &c, u64 x, int found, const PARENT *parent,
                         u64 local) {
    const i64 n = c.n;
    if (found < -1 || found >= n)
        fault(tally, LEVEL_RANGE, x);
    if ((found == 0) != (x == c.root))
        fault(tally, ROOT_LEVEL, x);
    if (!parent)
        return;
    const i64 of = parent[local];
    const bool allowed = of >= 0 && of < n, own = of == (i64)x;
    if (!allowed && of != -1)
        fault(tally, PARENT_RANGE, x);
    if (own != (x == c.root))
        fault(tally, ROOT_PARENT, x);
    if ((found >= 0) != (of != -1))
        fault(tally, SET, x);
    if (found >= 1 && allowed && !own && x != c.root &&
        c.level[place_of(c, of).at] != found - 1)
        fault(tally, STEP, x);
}

/* Pass 1, of one part. */
extern "C" __global__ void __launch_bounds__(256) check_vertices(const Check c) {
    __shared__ Tally tally;
    clear(tally);
    const PARENT *parent = c.parent ? c.parent[c.part] : 0;
    const u64 end = locals_of(c, c.part);
    u64 reached = 0;
    u32 deepest = 0; /* and one */
    for (u64 k = thread_of(); k < end; k += threads_of()) {
        const int found = c.level[c.part * c.per + k];
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

/* Look whether y is the parent of a vertex that has no mark, or levels only are there and y is
 * nearer; return whether another device has to look: dest.
 *
 * all: [n], the parents where one part has all, else null */
INLINE bool look_at(const Check &c, const PARENT *all, const Place &place, ID y, u32 &dest) {
    if (all) {
        if (all[place.local] == (PARENT)y) mark(c, place.at);
        return false;
    }
    dest = c.seat[place.part];
    if (dest == c.own) {
        if (!c.parent || c.parent[place.part][place.local] == (PARENT)y) mark(c, place.at);
        return false;
    }
    if (!c.parent) mark(c, place.at); /* it is told once */
    return !c.parent || c.prints[place.at] == print_of(y);
}

/* Append pairs to boxes; a whole warp calls it. */
INLINE void send(const Check &c, bool wanted, u32 dest, u64 x, u64 y) {
    const u32 lane = lane_id();
    for (u32 open = __ballot_sync(ALL, wanted); open;) {
        const u32 leader = __ffs(open) - 1, to = __shfl_sync(ALL, dest, leader);
        const u32 same = __ballot_sync(ALL, wanted && dest == to);
        u64 at = 0;
        if (lane == leader) at = atomicAdd(&c.filled[to], (u64)__popc(same));
        at = __shfl_sync(ALL, at, leader) + __popc(same & lanes_below());
        if (wanted && dest == to && at < c.room) {
            c.box[2 * (to * c.room + at)] = x;
            c.box[2 * (to * c.room + at) + 1] = y;
        }
        open &= ~same;
    }
}

/* TUPLES ids from a multiple of TUPLES on, which are not read again. */
INLINE void load(const ID *from, ID (&ids)[TUPLES]) {
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

/* Pass 2, one chunk; a thread takes TUPLES of them at a time.  u, v: [count, rounded up to a
 * multiple of TUPLES], aligned to 16 bytes */
extern "C" __global__ void __launch_bounds__(256) check_tuples(const Check c) {
    __shared__ Tally tally;
    clear(tally);
    u32 reached = 0;
    const ID n = (ID)c.n;
    const PARENT *all = c.parts == 1 && c.parent ? c.parent[0] : 0;
    const u64 lane = lane_id();
    for (u64 g = thread_of(); TUPLES * (g - lane) < c.count; g += threads_of()) {
        ID us[TUPLES] = {}, vs[TUPLES] = {};
        Place up[TUPLES], vp[TUPLES];
        u32 a[TUPLES], b[TUPLES];
        bool inside[TUPLES];
        if (TUPLES * g < c.count) load(c.u + TUPLES * g, us), load(c.v + TUPLES * g, vs);
#pragma unroll
        for (int k = 0; k < TUPLES; k++) {
            inside[k] = TUPLES * g + k < c.count && us[k] < n && vs[k] < n;
            up[k] = place_of(c, us[k]);
            vp[k] = place_of(c, vs[k]);
            a[k] = inside[k] ? state_at(c, up[k].at) : UNREACHED;
            b[k] = inside[k] ? state_at(c, vp[k].at) : UNREACHED;
        }
#pragma unroll
        for (int k = 0; k < TUPLES; k++) {
            const u64 position = c.start + TUPLES * g + k;
            u32 to_u = 0, to_v = 0;
            bool send_u = false, send_v = false;
            if (inside[k]) {
                const int la = level_at(c, a[k], up[k].at), lb = level_at(c, b[k], vp[k].at);
                const bool both = la >= 0 && lb >= 0, any = c.thorough && c.parent;
                if ((la >= 0) != (lb >= 0))
                    fault(tally, HALF, position);
                if (both && (la - lb > 1 || lb - la > 1))
                    fault(tally, SPAN, position);
                const bool falls = both && la - lb == 1, rises = both && lb - la == 1;
                if (!(a[k] & MARK) && (falls || any))
                    send_u = look_at(c, all, up[k], vs[k], to_u);
                if (!(b[k] & MARK) && (rises || any))
                    send_v = look_at(c, all, vp[k], us[k], to_v);
                reached += la >= 0 || lb >= 0;
            } else if (TUPLES * g + k < c.count) {
                fault(tally, OUTSIDE, position);
            }
            if (c.box) {
                send(c, send_u, to_u, us[k], vs[k]);
                send(c, send_v, to_v, vs[k], us[k]);
            }
        }
    }
    reached = __reduce_add_sync(ALL, reached);
    if (lane == 0)
        atomicAdd(&c.report[NEDGE], (u64)reached);
    tell(tally, c.report);
}

/* Pass 2, what came from another device; it may be for others, too. */
extern "C" __global__ void __launch_bounds__(256) check_pairs(const Check c) {
    for (u64 i = thread_of(); i < c.count; i += threads_of()) {
        const u64 x = c.pairs[2 * i], y = c.pairs[2 * i + 1];
        const Place place = place_of(c, x);
        u32 dest;
        if (c.seat[place.part] == c.own) look_at(c, 0, place, (ID)y, dest);
    }
}

/* Pass 3, of one part: the states hold the marks of pass 2. */
extern "C" __global__ void __launch_bounds__(256) check_marks(const Check c) {
    __shared__ Tally tally;
    clear(tally);
    const PARENT *parent = c.parent ? c.parent[c.part] : 0;
    const u64 end = locals_of(c, c.part);
    for (u64 k = thread_of(); k < end; k += threads_of()) {
        const u64 x = k * c.parts + c.part, at = c.part * c.per + k;
        const u32 state = state_at(c, at);
        if (x == c.root || state & MARK || state == UNREACHED)
            continue;
        if (!parent) {
            if (c.level[at] >= 1)
                fault(tally, NEARER, x);
            continue;
        }
        const i64 of = parent[k];
        if (of >= 0 && of < (i64)c.n && of != (i64)x)
            fault(tally, EDGE, x);
    }
    tell(tally, c.report);
}
