/* Devices of one node that read and write each other's memory, and how they wait.
 *
 * Every part has a piece of memory that all devices have mapped, laid out alike but for
 * the inbox at its end.  A level has three meetings.  A part signals by writing the
 * number of the level into a flag at every other part, after a fence, and waits until
 * all flags here have come so far; numbers rise, so flags are never cleared.  Kernels
 * that wait are launched after all work of their own device that others wait for.
 */
#ifndef DISTBFS_PEERS_CUH
#define DISTBFS_PEERS_CUH
#include "part.cuh"

#define STEP_BLOCKS 4 /* of step_level on each multiprocessor */

enum Meeting { VISITED, COMBINED, COUNTED, MEETINGS };

/* One search on one part; written by its own device alone. */
struct State {
    u64 turn;  /* of the level, over all searches */
    u64 depth; /* of what is found now */
    u64 done, failed;
    u64 pull_dd, pull_dn, pull_nd;
    u64 masks, normals; /* whether delegates, vertices of other parts may be found */
    u64 dense;          /* vertices of other parts leave as bitmaps */
    u64 tickets[2];
    u64 forward[4]; /* edges of this part's frontier: nn, nd, dn, dd */
    u64 sum[COUNTS];
    u64 checks[4];
    u64 decided;  /* levels, of this search */
    u64 alone;    /* local id of the root and 1 where it has no neighbours, else 0 */
    u64 posted;   /* items that left this part */
    u64 time[6];  /* ns: level begun, visited, all visited, combined, counted; next begun */
};

struct Level {
    Params part;
    u8 *const *base; /* [parts] the memory of each part, as mapped here */
    u64 flags_at;    /* bytes from there: u64 [MEETINGS][parts] */
    u64 arrived_at;  /* u64 [parts]: items from each part */
    u64 work_at;     /* u64 [parts][COUNTS] */
    u64 mask_at, dfresh_at; /* u32 [dwords], padded to 16 bytes */
    u64 dparent_at;  /* VERTEX [d] */
    u64 sent_at;     /* u32 [parts][sent_words] */
    const u64 *inbox;       /* items for this part */
    const u64 *inbox_start; /* [parts] where those of each part begin */
    State *state;
    volatile u64 *told;     /* host memory: levels decided, done, failed, depth */
    double factors[3][2];  /* dd, dn, nd: to pull, to push */
    u64 patience;          /* ns that a wait may take */
    u64 dense_edges;       /* from which bitmaps leave */
    const u32 *numbers;    /* [local] local id -> number */
    u32 forced;            /* direction: 0 by work, 1 push, 2 pull */
    u32 local;             /* of the root, NONE where it is no normal vertex of this part */
};

template <class T> INLINE T *at_part(const Level &l, u32 part, u64 at) {
    return (T *)(l.base[part] + at);
}

/* Threads 0 … parts - 1 of one block call it, after what the others shall see. */
INLINE void signal_all(const Level &l, Meeting meeting, u64 turn) {
    const u32 parts = l.part.parts;
    for (u32 t = threadIdx.x; t < parts; t += blockDim.x) {
        fence_system();
        store_system(at_part<u64>(l, t, l.flags_at) + meeting * parts + l.part.index, turn);
    }
}

/* A whole block waits for all parts; false where one has not come in time. */
INLINE bool wait_all(const Level &l, Meeting meeting, u64 turn) {
    const u32 parts = l.part.parts;
    const u64 *flags = at_part<u64>(l, l.part.index, l.flags_at) + meeting * parts;
    __shared__ u32 late;
    if (threadIdx.x == 0) late = 0;
    __syncthreads();
    for (u32 t = threadIdx.x; t < parts; t += blockDim.x) {
        const u64 since = nanoseconds();
        bool over = false;
        while (look_system(flags + t) < turn && !over) over = nanoseconds() - since > l.patience;
        if (over) late = 1;
    }
    __syncthreads();
    if (late && threadIdx.x == 0) {
        l.state->failed = 1 + meeting;
        l.state->done = 1;
    }
    return !late;
}

/* True in all threads of the block that comes last; the others' writes are seen there. */
INLINE bool last_block(u64 *ticket) {
    __shared__ u32 last;
    __syncthreads();
    if (threadIdx.x == 0) {
        fence_system();
        last = atomicAdd(ticket, 1ull) == gridDim.x - 1;
        if (last) *ticket = 0;
        fence_system();
    }
    __syncthreads();
    return last;
}
#endif
