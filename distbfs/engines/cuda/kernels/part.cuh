/* The data of a search on one part of a degree-separated graph, and what a visit does
 * with a vertex that it finds.
 *
 * Normal vertices (by number) and delegates are kept in bitmaps of 32-bit words, which are
 * also the 64-bit words of masks.  `visited` holds what was found up to the frontier and
 * does not change during a level; `fresh` gathers what the level finds.  A pull may
 * therefore take any visited neighbour as parent.  Levels and parents are kept by local
 * id, those of delegates by delegate number; parents are vertex ids.
 * Source: Pan, Pearce, Owens 2018, Sections III-C and IV.
 */
#ifndef DISTBFS_PART_CUH
#define DISTBFS_PART_CUH
#include "base.cuh"

#define THREADS 256
#define WARPS 8
#define COUNT_BITS 29 /* of a queue's size: edges << COUNT_BITS | entries */
#define ENTRIES ((1ull << COUNT_BITS) - 1)

struct Rows {
    const OFFSET *offsets; /* [rows + 1] */
    const void *columns;   /* [edges + pad]: NN of nn, else u32 */
};

enum Graph { NN_ROWS, ND_ROWS, DN_ROWS, DD_ROWS };
/* What the next level would cost, as Work in engines/base.py. */
enum Count {
    NORMALS, DELEGATES, NN_EDGES,
    DD_FORWARD, DD_Q, DD_S, DD_U,
    DN_FORWARD, DN_Q, DN_S, DN_U,
    ND_FORWARD, ND_Q, ND_S, ND_U,
    COUNTS
};

struct Params {
    Rows rows[4];
    const u32 *nn_mask, *nd_mask;  /* [words] normal vertices with such edges */
    const u32 *dn_mask, *dd_mask;  /* [dwords] delegates with such edges */
    const u32 *vertices;           /* [local] number -> local id */
    const VERTEX *delegate_ids;    /* [d] */
    u32 *visited, *fresh;          /* [words] */
    u32 *dvisited, *dfresh;        /* [dwords] */
    const u32 *mask;               /* [dwords] delegates that all parts found */
    u32 *sent;                     /* [parts][sent_words] what was sent to a part before */
    int *level, *dlevel;           /* [local], [d] */
    VERTEX *parent, *dparent;      /* the same; null where not asked for */
    u32 *queue[3];                 /* nn, nd [active], dn [d] */
    uint4 *dd_queue;               /* [d]: delegate, edges before it (two words), degree */
    u64 *size;                     /* [4] of the queues, as above */
    u64 *outbox;                   /* items for other parts, see `item_of` */
    const u64 *box;                /* [parts] where the items for a part begin */
    u64 *box_size;                 /* [parts] how many there are */
    u64 *work;                     /* [COUNTS] */
    u64 *checks;                   /* [4] edge checks of nn, nd, dn, dd, with COUNT */
    const u64 *items;              /* [item_count] that arrived from parts of rank `came_from` */
    const u32 *split;              /* [hubs][ranges + 1]: where ranges begin in rows of dn */
    const u32 *owned, *places;     /* [owned_count] delegates of this part, their local ids */
    u64 sent_words, item_count;
    u32 words, dwords, active, d, owned_count, index, parts;
    u32 ranges, range_words; /* of normal vertices */
    u32 marked;              /* delegates below it are hubs, and mark_dn has pushed them */
    u32 ranks, devices, came_from; /* part = rank + device * ranks */
    int depth;                /* of what is found */
    u32 number, delegate;     /* of the root, NONE where it is no such vertex here */
};

INLINE bool bit_of(const u32 *bitmap, u32 v) { return bitmap[v >> 5] >> (v & 31) & 1; }

INLINE VERTEX id_of(const Params &p, u32 number) {
    return (VERTEX)p.vertices[number] * (VERTEX)p.parts + (VERTEX)p.index;
}

/* A vertex that was found for another part: its number there, and the local id of its
 * parent with the device that has it. */
INLINE u64 item_of(const Params &p, u32 number, u32 parent) {
    return (u64)number << 32 | (p.vertices[parent] * p.devices + p.index / p.ranks);
}

INLINE VERTEX parent_of(const Params &p, u64 item) {
    const u32 low = (u32)item, part = p.came_from + low % p.devices * p.ranks;
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

/* Sums over a block of threads, added to `total`; all threads call it. */
INLINE void add_to(u64 *total, u64 mine) {
    __shared__ u64 sum;
    __syncthreads();
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
#pragma unroll
    for (int s = 16; s; s >>= 1) mine += __shfl_down_sync(ALL, mine, s);
    if ((threadIdx.x & 31) == 0 && mine) atomicAdd(&sum, mine);
    __syncthreads();
    if (threadIdx.x == 0 && sum) atomicAdd(total, sum);
}

INLINE void tell_checks(const Params &p, int graph, u64 mine) {
    if (COUNT) add_to(p.checks + graph, mine);
}
#endif
