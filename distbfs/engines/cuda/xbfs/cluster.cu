/* A whole search by one cluster of blocks, for graphs whose frontiers stay small.
 *
 * Roads and meshes have thousands of levels of a few hundred vertices; what counts is
 * the time between two levels.  Vertex v belongs to block v mod R of the cluster, which
 * holds its visited bit in shared memory.  A found neighbour is written into the inbox
 * that its block keeps for this one, so that places are counted locally; the counts
 * follow, the cluster meets, and each warp works off one inbox.
 * Data: record [active]: four neighbours, NONE where there are fewer; with more than four
 * the last is MORE and the row goes on in adj; columns that are
 * not seen are NONE.  Results are by id or number, levels int;
 * both begin as -1.  Source: Atos and Hopper's clusters; persistent kernels.
 *
 * variants: OFFSET=u32 | OFFSET=u64 | OFFSET=u32,u64 MASKED=1
 */
#include "../common/base.cuh"

#ifndef MASKED
#define MASKED 0 /* some edges are not seen */
#endif

#define MORE 0xfffffffeu
#define MEMBERS 16 /* blocks of a cluster, at most */
#define ROOM 192   /* messages of an inbox, a multiple of 32 */

struct ClusterParams {
    const OFFSET *row;     /* [active + 1] */
    const u32 *adj;        /* [m] */
    const uint4 *record;   /* [active] */
    const u32 *numbers;    /* [n], id -> number */
    const u32 *vertices;   /* [active], number -> id */
    u32 *visited;          /* [words], zeros, where shared memory is too small, or null */
    int *level_out;        /* [n or active] */
    u32 *parent_out;       /* [n or active] or null */
    u32 *state;            /* [4]: levels; 1 where an inbox was too small, 2 where the host
                              ended the search; checks, queue */
    const u64 *stop;       /* [1], of the host: 1 to end a search; null: nobody asks */
    const u32 *targets;    /* [sought], numbers, NONE without edges; null: none at all */
    const u32 *seen;       /* [m / 32 + pad], a bit for each column, with MASKED */
    u32 root, active, words, in_ids;
    u32 last, sought;      /* the last level that is searched; how many targets */
};

struct Sender {
    uint4 *inbox;  /* of this block, in the memory of each: [ROOM] */
    u32 *sent;     /* [members] messages of this level */
    u32 *broken;
    u32 members;
};

INLINE void pass_on(const ClusterParams &p, const Sender &s, u32 u, u32 from, u32 name) {
    const u32 to = u & (s.members - 1), place = atomicAdd(s.sent + to, 1u);
    prefetch(p.record + u);
    if (p.in_ids) prefetch(p.vertices + u);
    if (place < ROOM) send(s.inbox + place, to, u, from, name);
    else *s.broken = 1;
}

/* Whether this thread's share of the targets has one of this block that is not visited. */
INLINE bool misses(const ClusterParams &p, const u32 *bits, u32 me, u32 members, u32 shift) {
    bool some = false;
    for (u32 i = threadIdx.x; i < p.sought; i += blockDim.x) {
        const u32 v = p.targets[i], own = v >> shift;
        if (v == NONE) some = true;
        else if ((v & (members - 1)) != me) continue;
        else if (p.visited) some |= !(__ldcg(p.visited + (v >> 5)) >> (v & 31) & 1);
        else some |= !(bits[own >> 5] >> (own & 31) & 1);
    }
    return some;
}

/* An inbox holds (vertex, parent, name of the parent), from the front; what is read is
 * set to NONE again.  Each block tells all whether it found vertices; so all learn a level
 * late that there are none any more.  The first block tells so, too, that the host wants the
 * search to end, which it looks up while it waits.  With targets the cluster meets once more
 * a level. */
extern "C" __global__ void __launch_bounds__(32 * MEMBERS, 1) search(const ClusterParams p) {
    extern __shared__ uint4 dynamic[];
    __shared__ u32 busy[2][MEMBERS], sent[2][MEMBERS], missing[MEMBERS], broken, some[2];
    const u32 members = cluster_size(), me = cluster_rank(), shift = 31 - __clz(members);
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    uint4 *inboxes = dynamic; /* [2][members][ROOM] */
    u32 *bits = (u32 *)(dynamic + 2 * members * ROOM);
    if (!p.visited)
        for (u32 i = threadIdx.x; i < p.words; i += blockDim.x) bits[i] = 0;
    for (u32 i = threadIdx.x; i < 2 * members * ROOM; i += blockDim.x) inboxes[i].x = NONE;
    if (threadIdx.x < MEMBERS)
        for (int k = 0; k < 2; k++) busy[k][threadIdx.x] = 1, sent[k][threadIdx.x] = 0;
    if (threadIdx.x == 0) broken = some[0] = some[1] = 0;
    __syncthreads();
    const u32 root = p.numbers[p.root];
    if (root != NONE && (root & (members - 1)) == me && threadIdx.x == 0)
        inboxes[0] = make_uint4(root, root, p.in_ids ? p.root : root, 0);
    arrive();
    wait();
    u32 level = 0, side = 0;
    u64 stop = 0; /* of the first thread: what it has seen of the host's word */
    for (;; level++, side ^= 1) {
        const Sender sender = {inboxes + ((side ^ 1) * members + me) * ROOM, sent[side], &broken,
                               members};
        u32 late_at = NONE, late_parent = 0;
        if (warp < members) {
            uint4 *inbox = inboxes + (side * members + warp) * ROOM;
            for (u32 i = lane; i < ROOM; i += 32) {
                const uint4 e = inbox[i];
                const u32 v = e.x;
                bool fresh = false;
                if (v != NONE) {
                    inbox[i].x = NONE;
                    const uint4 near = __ldg(p.record + v);
                    const u32 name = p.in_ids ? __ldg(p.vertices + v) : v;
                    u32 old;
                    if (p.visited) old = atomicOr(p.visited + (v >> 5), 1u << (v & 31)) >> (v & 31);
                    else {
                        const u32 own = v >> shift;
                        old = atomicOr(bits + (own >> 5), 1u << (own & 31)) >> (own & 31);
                    }
                    fresh = !(old & 1);
                    if (fresh && level < p.last) {
                        if (near.x != e.y && near.x < MORE) pass_on(p, sender, near.x, v, name);
                        if (near.y != e.y && near.y < MORE) pass_on(p, sender, near.y, v, name);
                        if (near.z != e.y && near.z < MORE) pass_on(p, sender, near.z, v, name);
                        if (near.w != e.y && near.w < MORE) pass_on(p, sender, near.w, v, name);
                        if (near.w == MORE)
                            for (OFFSET j = p.row[v] + 3; j < p.row[v + 1]; j++) {
                                const u32 u = load_once(p.adj + j);
                                if (MASKED && !(p.seen[j >> 5] >> (j & 31) & 1)) continue;
                                if (u != e.y) pass_on(p, sender, u, v, name);
                            }
                    }
                    if (fresh) {
                        if (late_at != NONE) {
                            p.level_out[late_at] = level;
                            if (p.parent_out) p.parent_out[late_at] = late_parent;
                        }
                        late_at = name, late_parent = e.z;
                    }
                }
                if (__any_sync(ALL, fresh) && lane == 0) some[side] = 1;
                if (!__all_sync(ALL, v != NONE)) break;
            }
        }
        if (warp == 0) { /* what this block found one level ago; its threads have met since */
            u32 news = broken ? 2 : some[side ^ 1] || level == 0;
            news |= __shfl_sync(ALL, (u32)stop, 0) << 2;
            if (lane < members) tell(&busy[side][me], lane, news), sent[side ^ 1][lane] = 0;
            __syncwarp();
            if (lane == 0) some[side ^ 1] = 0;
        }
        arrive();
        if (p.stop && me == 0 && threadIdx.x == 0) stop = look(p.stop);
        if (late_at != NONE) {
            p.level_out[late_at] = level;
            if (p.parent_out) p.parent_out[late_at] = late_parent;
        }
        wait();
        u32 told = 0;
        for (u32 k = 0; k < members; k++) told |= busy[side][k];
        if (told == 0 || told == 4 || told & 2) {
            /* the level before found nothing */
            if (me == 0 && threadIdx.x == 0)
                p.state[0] = level < 2 ? 0 : level - 2, p.state[1] = told >> 1 & 1;
            break;
        }
        if (told & 4) {
            if (me == 0 && threadIdx.x == 0) p.state[0] = level, p.state[1] = 2;
            break;
        }
        if (p.targets) {
            const u32 some_missing = __syncthreads_or(misses(p, bits, me, members, shift));
            if (threadIdx.x < members) tell(&missing[me], threadIdx.x, some_missing);
            arrive();
            wait();
            u32 all = 0;
            for (u32 k = 0; k < members; k++) all |= missing[k];
            if (!all) {
                if (me == 0 && threadIdx.x == 0) p.state[0] = level, p.state[1] = 0;
                break;
            }
        }
    }
    if (root == NONE && me == 0 && threadIdx.x == 0 && p.in_ids) {
        p.level_out[p.root] = 0;
        if (p.parent_out) p.parent_out[p.root] = p.root;
    }
    arrive();
    wait(); /* no block may leave while others still write to it */
}

/* record [active]; seen: a bit for each column, null: all are seen */
extern "C" __global__ void records(const OFFSET *row, const u32 *adj, u32 active, const u32 *seen,
                                   uint4 *record) {
    for (u64 v = blockIdx.x * (u64)blockDim.x + threadIdx.x; v < active;
         v += (u64)gridDim.x * blockDim.x) {
        const OFFSET begin = row[v], end = row[v + 1];
        u32 near[4];
        for (int k = 0; k < 4; k++) {
            const OFFSET at = begin + k;
            const bool is = at < end && (!seen || seen[at >> 5] >> (at & 31) & 1);
            near[k] = is ? adj[at] : NONE;
        }
        if (end - begin > 4) near[3] = MORE;
        record[v] = make_uint4(near[0], near[1], near[2], near[3]);
    }
}
