/* A whole search by one cluster of blocks, for graphs whose frontiers stay small.
 *
 * Roads and meshes have thousands of levels of a few hundred vertices; what counts is
 * the time between two levels.  Vertex v belongs to block v mod R of the cluster, which
 * holds its visited bit in shared memory.  A found neighbour is written into the inbox
 * that its block keeps for this one, so that places are counted locally; the counts
 * follow, and each warp works off one inbox as soon as all of it has come.
 * Data: record [active]: four neighbours, NONE where there are fewer; with more than four
 * the last is MORE and the row goes on in adj; with MASKED, columns that are not seen are
 * NONE.  Results are by id or number, levels int; both begin as -1.
 * Source: Atos and Hopper's clusters; persistent kernels.
 *
 * variants: MASKED=0,1
 */
#include "../common/base.cuh"

#define MORE 0xfffffffeu
#define MEMBERS 16 /* blocks of a cluster, at most */
#define ROOM 256   /* messages of an inbox */
/* mutant: TURNS 3 -> TURNS 2 : test_cluster_kernel::test_cluster */
#define TURNS 3    /* levels whose messages there is room for */

enum Says { FOUND = 1, TOO_MANY = 2, STOP = 4 }; /* of a block, with each level */

struct ClusterParams {
    Uints row;             /* [active + 1] */
    const u32 *adj;        /* [m] */
    const uint4 *record;   /* [active] */
    const u32 *numbers;    /* [n], id -> number */
    const u32 *vertices;   /* [active], number -> id */
    u32 *visited;          /* [words], zeros, where shared memory is too small, or null */
    int *level_out;        /* [n or active] or null */
    u32 *parent_out;       /* [n or active] or null */
    u32 *state;            /* [4]: levels; 1 where an inbox was too small, 2 where the host
                              ended the search; checks, queue */
    const u64 *stop;       /* [1], of the host: 1 to end a search; null: nobody asks */
    const u32 *targets;    /* [sought], numbers, NONE without edges; null: none at all */
    const u32 *seen;       /* [m / 32 + pad], a bit for each column, with MASKED */
    u32 root, active, words, in_ids;
    u32 last, sought;      /* the last level that is searched; how many targets */
};

/* What a block sends to the others in a level. */
struct Sender {
    uint2 *inbox;  /* of this block, in the memory of each: [ROOM] */
    u32 *letter;   /* of this block, there: messages << 3 | what this block says */
    u64 *barrier;  /* there: opens when all that was sent has come */
    u32 *sent;     /* [members] messages of this level */
    u32 *broken;
    u32 members;
};

INLINE void pass_on(const ClusterParams &p, const Sender &s, u32 u, u32 from) {
    const u32 to = u & (s.members - 1), place = atomicAdd(s.sent + to, 1u);
    prefetch(p.record + u);
    if (p.in_ids) prefetch(p.vertices + u);
    if (place < ROOM) send(s.inbox + place, s.barrier, to, u, from);
    /* mutant: TOO_MANY -> 0
     * : test_cluster_kernel::test_cluster_gives_up_where_inboxes_are_too_small */
    else *s.broken = TOO_MANY;
}

/* The first warp tells each block how many messages there are for it. */
INLINE void close(const Sender &s, u32 lane, u32 says) {
    if (lane >= s.members) return;
    const u32 all = s.sent[lane], count = all < ROOM ? all : ROOM;
    s.sent[lane] = 0;
    send(s.letter, s.barrier, lane, count << 3 | says);
    expect(s.barrier, lane, count * 8 + 4);
}

/* Whether this thread's share of the targets has one of this block that is not visited. */
INLINE bool misses(const ClusterParams &p, const u32 *bits, u32 me, u32 members, u32 shift) {
    bool some = false;
    /* mutant: i < -> i + 1 < : test_in_one_cluster */
    for (u32 i = threadIdx.x; i < p.sought; i += blockDim.x) {
        const u32 v = p.targets[i], own = v >> shift;
        if (v == NONE) some = true;
        else if ((v & (members - 1)) != me) continue;
        else if (p.visited) some |= !(__ldcg(p.visited + (v >> 5)) >> (v & 31) & 1);
        else some |= !(bits[own >> 5] >> (own & 31) & 1);
    }
    return some;
}

/* An inbox holds (vertex, parent), from the front.  A warp waits for one inbox alone, and its
 * block tells all what it has sent when all its warps have worked off theirs: so a block sends
 * for the level after next at most, while others may still read what was sent for this one.
 * Each block says whether it found vertices; so all learn a level late that there are none any
 * more.  The first block says, too, that the host wants the search to end, which it looks up
 * while it waits.  With targets the cluster meets once a level. */
extern "C" __global__ void __launch_bounds__(32 * MEMBERS, 1) search(const ClusterParams p) {
    extern __shared__ uint4 dynamic[];
    __shared__ u64 barriers[TURNS][MEMBERS];
    __shared__ u32 letters[TURNS][MEMBERS], sent[TURNS][MEMBERS], missing[2][MEMBERS];
    __shared__ u32 some[TURNS], heard[TURNS], broken, stop; /* found here; said by all */
    const u32 members = cluster_size(), me = cluster_rank(), shift = 31 - __clz(members);
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    uint2 *inboxes = (uint2 *)dynamic; /* [TURNS][members][ROOM] */
    u32 *bits = (u32 *)(inboxes + TURNS * members * ROOM);
    if (!p.visited)
        for (u32 i = threadIdx.x; i < p.words; i += blockDim.x) bits[i] = 0;
    if (threadIdx.x < MEMBERS)
        for (int k = 0; k < TURNS; k++)
            make_barrier(&barriers[k][threadIdx.x]), sent[k][threadIdx.x] = 0;
    if (threadIdx.x < TURNS) some[threadIdx.x] = heard[threadIdx.x] = 0;
    if (threadIdx.x == 0) broken = stop = 0;
    const u32 root = p.numbers[p.root];
    arrive();
    wait();
    const auto sender_of = [&](u32 turn, u32 to) {
        return Sender{inboxes + (to * members + me) * ROOM, &letters[to][me], &barriers[to][me],
                      sent[turn], &broken, members};
    };
    if (warp == 0) {
        const Sender sender = sender_of(TURNS - 1, 0);
        if (me == 0 && lane == 0 && root != NONE) pass_on(p, sender, root, root);
        __syncwarp();
        close(sender, lane, FOUND);
    }
    u32 level = 0, turn = 0, round = 0, following;
    for (;; level++, round ^= turn == TURNS - 1, turn = following) {
        following = turn == TURNS - 1 ? 0 : turn + 1;
        const Sender sender = sender_of(turn, following);
        u32 late_at = NONE, late_parent = 0;
        if (p.stop && me == 0 && threadIdx.x == blockDim.x - 1 && look(p.stop)) stop = STOP;
        if (warp < members) {
            const uint2 *inbox = inboxes + (turn * members + warp) * ROOM;
            await(&barriers[turn][warp], round);
            const u32 letter = letters[turn][warp], count = letter >> 3;
            if (lane == 0 && (letter & 7)) atomicOr(heard + turn, letter & 7);
            for (u32 first = 0; first < count; first += 32) {
                bool fresh = false;
                if (first + lane < count) {
                    const uint2 e = inbox[first + lane];
                    const u32 v = e.x;
                    const uint4 near = __ldg(p.record + v);
                    const u32 name = p.in_ids ? __ldg(p.vertices + v) : v;
                    const u32 parent = p.in_ids ? __ldg(p.vertices + e.y) : e.y;
                    u32 old;
                    if (p.visited) old = atomicOr(p.visited + (v >> 5), 1u << (v & 31)) >> (v & 31);
                    else {
                        const u32 own = v >> shift;
                        old = atomicOr(bits + (own >> 5), 1u << (own & 31)) >> (own & 31);
                    }
                    fresh = !(old & 1);
                    if (fresh && level < p.last) { /* mutant: < p -> <= p : test_in_one_cluster */
                        if (near.x != e.y && near.x < MORE) pass_on(p, sender, near.x, v);
                        if (near.y != e.y && near.y < MORE) pass_on(p, sender, near.y, v);
                        if (near.z != e.y && near.z < MORE) pass_on(p, sender, near.z, v);
                        if (near.w != e.y && near.w < MORE) pass_on(p, sender, near.w, v);
                        if (near.w == MORE)
                            /* mutant: 3; -> 4; : test_cluster_kernel::test_cluster */
                            for (u64 j = p.row[v] + 3; j < p.row[v + 1]; j++) {
                                const u32 u = load_once(p.adj + j);
                                if (MASKED && !(p.seen[j >> 5] >> (j & 31) & 1)) continue;
                                if (u != e.y) pass_on(p, sender, u, v);
                            }
                    }
                    if (fresh) {
                        if (late_at != NONE) {
                            if (p.level_out) p.level_out[late_at] = level;
                            if (p.parent_out) p.parent_out[late_at] = late_parent;
                        }
                        late_at = name, late_parent = parent;
                    }
                }
                if (__any_sync(ALL, fresh) && lane == 0) some[turn] = FOUND;
            }
        }
        if (threadIdx.x == 0) some[following] = heard[following] = 0;
        __syncthreads();
        const u32 told = heard[turn]; /* of the level before */
        if (warp == 0) {
            const u32 says = some[turn] | broken | stop;
            close(sender, lane, __shfl_sync(ALL, says, 0));
        }
        if (late_at != NONE) {
            if (p.level_out) p.level_out[late_at] = level;
            if (p.parent_out) p.parent_out[late_at] = late_parent;
        }
        if (told & TOO_MANY || !(told & FOUND)) {
            if (me == 0 && threadIdx.x == 0)
                p.state[0] = level < 2 ? 0 : level - 2, p.state[1] = told >> 1 & 1;
            break;
        }
        if (told & STOP) { /* mutant: STOP -> 8 : test_by_a_cluster */
            if (me == 0 && threadIdx.x == 0) p.state[0] = level, p.state[1] = 2;
            break;
        }
        if (p.targets) {
            const u32 some_missing = __syncthreads_or(misses(p, bits, me, members, shift));
            if (threadIdx.x < members) tell(&missing[level & 1][me], threadIdx.x, some_missing);
            arrive();
            wait();
            u32 all = 0;
            for (u32 k = 0; k < members; k++) all |= missing[level & 1][k];
            if (!all) {
                if (me == 0 && threadIdx.x == 0) p.state[0] = level, p.state[1] = 0;
                break;
            }
        }
    }
    if (root == NONE && me == 0 && threadIdx.x == 0 && p.in_ids) {
        /* mutant: if (p.level_out) p -> p : test_a_cluster_of_the_engine */
        if (p.level_out) p.level_out[p.root] = 0;
        if (p.parent_out) p.parent_out[p.root] = p.root;
    }
    /* no block may leave while others still send to it */
    if (warp < members) await(&barriers[following][warp], round ^ (following == 0));
    arrive();
    wait();
}

/* record [active]; seen: a bit for each column, null: all are seen */
extern "C" __global__ void records(Uints row, const u32 *adj, u32 active, const u32 *seen,
                                   uint4 *record) {
    for (u64 v = blockIdx.x * (u64)blockDim.x + threadIdx.x; v < active;
         v += (u64)gridDim.x * blockDim.x) {
        const u64 begin = row[v], end = row[v + 1];
        u32 near[4];
        for (int k = 0; k < 4; k++) {
            const u64 at = begin + k;
            const bool is = at < end && (!seen || seen[at >> 5] >> (at & 31) & 1);
            near[k] = is ? adj[at] : NONE;
        }
        if (end - begin > 4) near[3] = MORE;
        record[v] = make_uint4(near[0], near[1], near[2], near[3]);
    }
}
