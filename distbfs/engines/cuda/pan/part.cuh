/* The data of a search on one part of a degree-separated graph, and the updates for
 * a vertex that a visit finds.
 *
 * Normal vertices (by number) and delegates are kept in bitmaps of 32-bit words, which are
 * also the 64-bit words of masks.  `visited` holds what was found up to the frontier and
 * does not change during a level, `front` the frontier; `fresh` gathers what the level
 * finds.  A pull may therefore take any visited neighbour as parent.  Levels and parents are kept by local
 * id, those of delegates by delegate number; parents are vertex ids.
 * Source: Pan, Pearce, Owens 2018, Sections III-C and IV.
 */
#ifndef DISTBFS_PART_CUH
#define DISTBFS_PART_CUH
#include "../common/base.cuh"

#define THREADS 256
#define WARPS 8
#define PULL_BLOCKS 5 /* of a pull on each multiprocessor */
#define COUNT_BITS 30 /* of the size of a queue: edges << COUNT_BITS | entries */
#define ENTRIES ((1ull << COUNT_BITS) - 1)
#define FIRST 4      /* columns of a row that are kept beside it too */
#define BOX_STEP 16  /* between counters that are added to at once: 128 bytes */
#define GROUP 8      /* words whose vertices are listed together */
#define LIST 288     /* 31 vertices that wait and those of a group, rounded up */
#define WAITING 64   /* vertices whose rows go on */
#define ROOM (LIST + 2 * WAITING)

struct Rows {
    const OFFSET *offsets; /* [rows + 1] */
    const void *columns;   /* [edges + pad]: u64 of nn of several parts, else u32 */

    template <class T> __device__ __forceinline__ const T *to() const { return (const T *)columns; }
};

enum Graph { NN_ROWS, ND_ROWS, DN_ROWS, DD_ROWS };
/* Work of the next level, as Work in engines/base.py. */
enum Count {
    NORMALS, DELEGATES, NN_EDGES,
    DD_FORWARD, DD_Q, DD_S, DD_U,
    DN_FORWARD, DN_Q, DN_S, DN_U,
    ND_FORWARD, ND_Q, ND_S, ND_U,
    TARGETS, OPEN,
    COUNTS
};

struct Params {
    Rows rows[4];
    const u32 *nn_mask, *nd_mask;  /* [words] normal vertices with such edges */
    const u32 *dn_mask, *dd_mask;  /* [dwords] delegates with such edges */
    const u32 *nd_first, *dd_first; /* [FIRST][32 words], [FIRST][32 dwords]: first columns
                                       of rows, NONE where a row has fewer */
    const u32 *vertices;           /* [local] number -> local id */
    const VERTEX *delegate_ids;    /* [d] */
    u32 *visited, *fresh, *front;  /* [words] */
    u32 *dvisited, *dfresh, *dfront; /* [dwords] */
    const u32 *mask;               /* [dwords] delegates that all parts found */
    u32 *sent;                     /* [parts][sent_words] what was sent to a part before */
    int *level, *dlevel;           /* [local], [d] */
    VERTEX *parent, *dparent;      /* the same; null where not asked for */
    uint4 *dd_queue, *dn_queue;    /* [d]: delegate, edges before it (two words), degree */
    u64 *size;                     /* [2][BOX_STEP] of dd, dn: edges << COUNT_BITS | entries */
    u64 *const *box;               /* [parts] where items for a part go, see `item_of` */
    u64 *box_size;                 /* [parts][BOX_STEP] how many there are, then unused */
    u64 *work;                     /* [COUNTS] */
    u64 *checks;                   /* [4] edge checks of nn, nd, dn, dd, or null */
    const u64 *items;              /* [item_count] that arrived from parts of one rank */
    const u32 *senders;            /* [devices] the parts of that rank */
    const u32 *owned, *places;     /* [owned_count] delegates of this part, their local ids */
    const u32 *targets, *dtargets; /* [words], [dwords] this part's targets, or null */
    u64 sent_words, item_count;
    u32 words, dwords, active, d, owned_count, index, parts;
    u32 devices, device;      /* parts of a rank, at most, and which of its own this is */
    int depth;                /* of what is found */
    u32 number, delegate;     /* of the root, NONE where it is no such vertex here */
};

INLINE VERTEX id_of(const Params &p, u32 number) {
    return (VERTEX)p.vertices[number] * (VERTEX)p.parts + (VERTEX)p.index;
}

/* A vertex that was found for another part: its number there, and the local id of its
 * parent with the device that has it. */
INLINE u64 item_of(const Params &p, u32 number, u32 parent) {
    return (u64)number << 32 | (p.vertices[parent] * p.devices + p.device);
}

INLINE VERTEX parent_of(const Params &p, u64 item) {
    const u32 low = (u32)item, part = p.senders[low % p.devices];
    return (VERTEX)(low / p.devices) * (VERTEX)p.parts + (VERTEX)part;
}

/* A normal vertex of this part is found; many may find the same. */
INLINE void discover(const Params &p, u32 v, VERTEX parent) {
    const u32 w = v >> 5, bit = 1u << (v & 31);
    if (p.visited[w] & bit) return;
    if (*(volatile u32 *)(p.fresh + w) & bit) return;
    if (atomicOr(p.fresh + w, bit) & bit) return;
    if (p.parent) p.parent[p.vertices[v]] = parent;
}

INLINE void discover_delegate(const Params &p, u32 c, VERTEX parent) {
    const u32 w = c >> 5, bit = 1u << (c & 31);
    if (p.dvisited[w] & bit) return;
    if (*(volatile u32 *)(p.dfresh + w) & bit) return;
    if (atomicOr(p.dfresh + w, bit) & bit) return;
    if (p.parent) p.dparent[c] = parent;
}

/* Sums over a block of threads, added to `totals`, [K]; all threads call it. */
template <int K> INLINE void add_to(u64 *totals, const u64 *mine) {
    __shared__ u64 sums[WARPS][K];
    const u32 lane = lane_id(), own = threadIdx.x >> 5;
    if (threadIdx.x < WARPS * K) ((u64 *)sums)[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < K; k++) {
        u64 x = mine[k];
        if (!__any_sync(ALL, x != 0)) continue;
        x = warp_sum(x);
        if (lane == 0) sums[own][k] = x;
    }
    __syncthreads();
    if (threadIdx.x < K) {
        u64 sum = 0;
        for (u32 w = 0; w < WARPS; w++) sum += sums[w][threadIdx.x];
        if (sum) atomicAdd(totals + threadIdx.x, sum);
    }
}

/* The edge checks of this thread in a visit, counted where they are asked for: they lie in
 * shared memory, so that searches without them have the registers. */
INLINE u32 &own_checks() {
    __shared__ u32 checks[THREADS];
    return checks[threadIdx.x];
}
INLINE void begin_checks(const Params &p) {
    if (p.checks) own_checks() = 0;
}
INLINE void add_checks(const Params &p, u32 more) {
    if (p.checks) own_checks() += more;
}
INLINE void tell_checks(const Params &p, int graph) {
    if (!p.checks) return;
    const u64 mine = own_checks();
    add_to<1>(p.checks + graph, &mine);
}

/* Shared memory of a warp, [ROOM], for any use. */
INLINE u32 *warp_room() {
    __shared__ u32 rooms[WARPS][ROOM];
    return rooms[threadIdx.x >> 5];
}

/* The vertices of words, a word a lane, are put into a list; returns how many. */
INLINE u32 list_bits(u32 *list, u32 word, u32 bits, u32 lane) {
    const u32 upto = warp_scan(__popc(bits), lane);
    u32 at = upto - __popc(bits);
    for (; bits; bits &= bits - 1) list[at++] = word * 32 + __ffs(bits) - 1;
    return __shfl_sync(ALL, upto, 31);
}

/* Warps in an order in which neighbours are of different blocks. */
INLINE u32 warp_of() { return (threadIdx.x >> 5) * gridDim.x + blockIdx.x; }
INLINE u32 all_warps() { return gridDim.x * WARPS; }
/* How many of `words` words a warp takes at once, a multiple of 4 up to 32. */
INLINE u32 span_of(u32 words) {
    const u32 each = (words / all_warps() + 4) & ~3u;
    return each < 32 ? each : 32;
}
#endif
