/* A part that is searched level by level between domains: its data beside domain.cuh's.
 *
 * A domain has one device, or SEVERAL; a device has rows of the inner graph by number, and
 * columns are positions (inner_part.py), which are numbers where there is one device.  The
 * delegates come first, so that a mask of delegates is the first words of a bitmap by
 * position.  The inner graph is searched by the kernels of method fast, or by those of
 * resident searches.  Between two levels, what other domains found is put into the newest
 * snapshot of its owner, and into its queue while levels push, else into all replicas;
 * those without inner edges, which a push cannot have in its queue, stand at the end of
 * the queue's room, from the last place down.  The parent of a vertex that another domain
 * found is an id in a slot behind the names of the positions, and the vertex points there.
 * Between domains a normal vertex is a local id of 32 bits, and the share that says it.
 * Normal vertices whose only edge leads to a delegate may be left out: between_leaves.cuh.
 * Where edges lead one way (DIRECTED), outer edges out are pushed, and vertices ask along those
 * in; vertices without inner edges out that a push finds stand at the end of the queue, too.
 */
#ifndef DISTBFS_BETWEEN_CUH
#define DISTBFS_BETWEEN_CUH
#define BETWEEN 1
#include "domain.cuh"
#if SEVERAL
#include "domain_late.cuh"
#endif

/* What a level does.  The host says so where it waits for each level; else `choose` does, when
 * all shares have counted, and kernels that are launched without knowing look at it. */
enum Does { GOES = 1, PUSHES = 2, ASKS = 4 };

/* What is counted between two levels.  OVER: a box had more than its first words; UNKNOWN:
 * vertices of this share whose parents others have, of all levels; LEAVES: of DELEGATES, those
 * that are left out: the next level has found them, and they are NORMALS of it. */
enum Count {
    NORMALS, DELEGATES, OUTER, OPEN_OUTER, LEFT, FOUND, MISSED, LEAVES, FAILED, CHECKS, OVER, UNKNOWN,
    COUNTS
};

/* Its parts are the devices of the domain, zeros where there is one. */
struct Between : Member {
    const u64 *outer_offsets;   /* [normal vertices + 1] */
    const u32 *outer_columns;   /* [outer edges], indices of targets */
    const u32 *outer_targets;   /* [targets], local ids there, by share */
    const u32 *starts;          /* [shares + 1], the first target of each share */
    const u32 *locals;          /* [numbers], local ids of normal vertices */
    const u32 *has_outer;       /* [words]: numbers with outer edges that are seen */
    const u32 *outer_seen;      /* [outer edges / 32 + 1], a bit for each, with MASKED */
    u32 *front;                 /* [words]: the frontier, of has_outer, where boxes are short */
    Uints names;                /* [slots + normal vertices], ids: own.vertices, to write slots */
    u32 *sent;                  /* [sent_words], a bit for each target: it was sent already */
    u64 *outbox;                /* for each share a box: between_outer.cuh */
    const u64 *box;             /* [shares + 1], where the box of each begins */
    u64 *replies;               /* answers for each share, see `replies_to` */
    u64 *sizes;                 /* [2][shares]: of boxes to others, and of those that came */
    u32 *known;                 /* [normals / 32], by number: delegates that all parts know of */
    u32 *found;                 /* [dwords], see `mask_at`: those that this device alone knows of */
    Mail *mail;                 /* [3]: of the queues of even and odd levels, of gathering */
    u64 *counts;                /* [COUNTS], see Count */
    u32 *idle;                  /* [2]: vertices at the end of the queue of even and odd levels, see
                                   `idle_of` */
    u32 *filled;                /* [1], slots in use; the first is of no vertex */
    const u32 *mask;            /* [masks][dwords]: delegates that other domains, or all, found */
    const u64 *items;           /* of other shares for this one, see `each_item` */
    const u32 *owned;           /* [owned_count], delegates whose vertices this share has */
    const u32 *is_owned;        /* [normals / 32], the same as bits */
    const u32 *homes;           /* [domains][lanes], the share that has a lane of delegates */
    const u32 *leaves;          /* [normals], how many that are left out a delegate here has */
    const u32 *has_leaves;      /* [normals / 32], delegates that have some */
    u64 *below;                 /* [1], LEAVES of the newest frontier */
    u32 *open;                  /* [1], numbers that are not visited */
    u32 *asking;                /* [2], those with outer edges in that are seen: all; not visited */
    u32 *does;                  /* [2], see Does; which half of report is next */
    const u64 *gathered;        /* [shares][COUNTS], what all have counted */
    u64 *report;                /* [2][2 * COUNTS + 2 * shares], pinned: of all shares; own; sizes */
    u64 sent_words, item_count, item_step;
    u64 edges_from, edges_to;   /* the outer edges that are looked at, where boxes are short */
    u32 normals, slots, dwords, masks;
    u32 owned_from, owned_to;   /* of owned: whose parents are asked for */
    u32 domains, domain;        /* how many there are, and which this is */
    u32 lanes, own_lanes;       /* of delegates: in all, and those of this device */
    u32 shares, share;          /* of all domains: how many, and which this is */
    u32 id_bits;                /* of an id, at least 32; those of 32 bits have 32 */
    u32 way;                    /* what boxes have: PUSHES or ASKS; 0: as the level does */
    u32 needs;                  /* a launch does nothing unless the level does this; 0: it does */
    u32 begins;                 /* what the first level does */
    u32 rule, pull_share;       /* what later levels may do; see `choose` */
    u32 boxes;                  /* that items lie in */
    u32 first;                  /* words of a box that are sent before its size is known, 0: all */
    u32 lost;                   /* targets that no search can reach */
    u32 delegate;               /* position of the root, NONE: it is no delegate */
    u32 is_short;               /* boxes may have less room than there is for them in a level */
    u32 replying;               /* sizes are told of replies instead of boxes */
    u32 hung;                   /* of targets, the last: delegates whose leaves are wanted */
    u32 again[2];               /* of a set, leaves whose delegates are roots, or are found next */
#if DIRECTED /* the same for outer edges in */
    const u64 *in_offsets;
    const u32 *in_columns, *in_targets, *in_starts, *in_has_outer, *in_outer_seen;
#endif
};

/* The outer edges along which vertices ask. */
#if DIRECTED
struct InEdges { /* as of Between */
    const u64 *outer_offsets;
    const u32 *outer_columns, *outer_targets, *starts, *has_outer, *outer_seen;
};

INLINE InEdges IN_EDGES(const Between &b) {
    return {b.in_offsets, b.in_columns, b.in_targets, b.in_starts, b.in_has_outer, b.in_outer_seen};
}
#else
#define IN_EDGES(b) (b)
#endif

/* The position of a number here, and the number of a position. */
INLINE u32 position_here(const Between &b, u32 v) { return SEVERAL ? position_of(b, v) : v; }
INLINE u32 number_here(const Between &b, u32 at) { return SEVERAL ? owner_of(b, at).number : at; }

/* How many devices this domain has. */
INLINE u32 devices_of(const Between &b) { return b.lanes / b.own_lanes; }

/* Where a mask has a word of delegates' numbers: lanes lie one after the other, so that those
 * which two devices have are whole pieces of it. */
INLINE u32 mask_at(const Between &b, u32 w) {
    if (b.lanes == 1) return w;
    const u32 granule = w >> 5, lane = b.index + granule % b.own_lanes * devices_of(b);
    return lane * (b.dwords / b.lanes) + granule / b.own_lanes * 32 + (w & 31);
}

/* The share of a domain that has a position of delegates. */
INLINE u32 share_at(const Between &b, u32 domain, u32 position) {
    /* mutant: % b.lanes -> % 1 : test_parents_of_delegates_are_asked_for */
    return b.homes[domain * b.lanes + (position >> 10) % b.lanes];
}

/* The id of a position, or of a slot behind them. */
INLINE u64 id_at(const Between &b, u32 position) { return b.names[position]; }

INLINE bool skips(const Between &b) { return b.needs && !(*b.does & b.needs); }

INLINE u32 *newest(const Params &p, const State &s) { return p.snapshot + s.k * p.stride; }

/* The parent of a delegate that another part found, until that is told: slot 0. */
INLINE u32 unknown(const Between &b) { return b.slots; }

/* Whether this device knows the parent of a delegate that is found. */
INLINE bool has_parent(const Between &b, u32 c) {
    return bit_of(b.own.by_first, c) || b.own.parent[c] != unknown(b);
}

/* A vertex that another part found: its parent is an id. */
INLINE void name_parent(const Between &b, u32 v, u32 slot, u64 id) {
    b.names.set(b.slots + slot, id);
    b.own.parent[v] = b.slots + slot;
}

/* How many vertices stand at the end of a queue's room. */
INLINE u32 idle_of(const Between &b, u32 now) {
    return DIRECTED ? (u32)(__ldcg(&b.mail[now].hubs) >> 32) : b.idle[now];
}

/* Vertex i of a frontier while levels push: of the queue, then of its end. */
INLINE u32 queued(const Params &p, u32 now, u32 count, u32 i) {
    return p.queue[now][i < count ? i : p.every - 1 - (i - count)].x;
}

/* How many roots are vertices of this device that no bitmap has: without edges, or left out. */
INLINE u32 lone(const Between &b, const State &s) {
    if (s.depth) return 0;
    if (b.own.from_set) return b.own.lone_count;
    return b.own.root != ELSEWHERE && b.own.numbers[b.own.root] >= b.own.active;
}

/* A box begins with a word: how many items are in it, and whose it is << 32. */
INLINE u32 size_of(u64 head) { return (u32)head; }
INLINE u32 writer_of(u64 head) { return (u32)(head >> 32); }
INLINE u64 no_items(const Between &b) { return (u64)b.share << 32; }

/* How many items, or questions, the box for a share has room for. */
INLINE u32 room_for(const Between &b, u32 share) {
    return (u32)(b.box[share + 1] - b.box[share] - 1);
}

/* Where the answers to a share begin: a word as a box has, then a bit for each question; see
 * `reply_words` in between_params.py. */
INLINE u64 *replies_to(const Between &b, u32 share) {
    return b.replies + b.box[share] / 32 + 3 * share;
}

#define EACH 4 /* items, or outer edges, of a lane at a time */

/* Calls take(items, writers, ok, lane) by whole warps, EACH a lane, for items of one share. */
template <class Take>
INLINE void each_of(const u64 *items, u64 count, u32 writer, u32 lane, const Take &take) {
    const u64 first = (u64)blockIdx.x * THREADS + threadIdx.x, all = (u64)gridDim.x * THREADS;
    for (u64 i = first; i - lane < count; i += EACH * all) {
        u64 item[EACH];
        u32 of[EACH];
        bool ok[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            ok[k] = i + k * all < count, of[k] = writer;
            item[k] = ok[k] ? __ldcg(items + i + k * all) : 0;
        }
        take(item, of, ok, lane);
    }
}

/* The same for what other shares sent: boxes of item_step words, of whose items as many as there
 * is room for are here; or boxes one after the other, as long as they are. */
template <class Take>
INLINE void each_item(const Between &b, u32 lane, const Take &take) {
    if (!b.item_step) {
        for (u64 at = 0; at < b.item_count;) {
            const u64 head = __ldcg(b.items + at);
            each_of(b.items + at + 1, size_of(head), writer_of(head), lane, take);
            at += 1 + size_of(head);
        }
        return;
    }
    const u64 first = (u64)blockIdx.x * THREADS + threadIdx.x, all = (u64)gridDim.x * THREADS;
    const u64 room = b.item_step - 1, count = b.boxes * room;
    for (u64 i = first; i - lane < count; i += EACH * all) {
        u64 item[EACH];
        u32 of[EACH];
        bool ok[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            u64 at = i + k * all;
            ok[k] = at < count, item[k] = 0;
            if (!ok[k]) continue;
            const u64 box = b.boxes == 1 ? 0 : at / room, in = at - box * room;
            const u64 head = __ldcg(b.items + box * b.item_step);
            ok[k] = in < size_of(head), of[k] = writer_of(head);
            if (ok[k]) item[k] = __ldcg(b.items + box * b.item_step + 1 + in);
        }
        take(item, of, ok, lane);
    }
}

/* Take N vertices a lane where `ok`, found outside at level s.depth; leaves `ok` where this
 * lane was the first to have one.  A whole warp calls it. */
template <int N>
INLINE void admit(const Between &b, const State &s, bool *ok, const u32 *v, u32 lane) {
    const Params &p = b.own;
    u32 *now = newest(p, s), seen[N];
#pragma unroll
    for (int i = 0; i < N; i++) seen[i] = ok[i] ? __ldcg(now + (v[i] >> 5)) : ALL;
#pragma unroll
    for (int i = 0; i < N; i++) {
        const u32 bit = 1u << (v[i] & 31);
        if (!(seen[i] & bit)) seen[i] = atomicOr(now + (v[i] >> 5), bit);
        ok[i] = !(seen[i] & bit);
    }
    const u32 to = s.depth & 1;
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (s.phase != PUSHING) {
#if SEVERAL
            /* mutant: ok[i] -> false : test_several_devices_search_each_way */
            if (ok[i]) set_everywhere(b, v[i] >> 5, 1u << (v[i] & 31), b.device->joint.now);
#endif
            continue;
        }
        const OFFSET begin = ok[i] ? p.row[v[i]] : 0;
        /* mutant: degree_at(p, v[i], -> (u32)(p.row[v[i] + 1] -
         * : test_split_between::test_each_way_with_the_least_on_the_devices */
        const u32 degree = ok[i] ? degree_at(p, v[i], begin) : 0;
        /* mutant: degree != 0 -> ok[i] : test_vertices_that_have_outer_edges_alone */
        append(p, DIRECTED ? ok[i] : degree != 0, v[i], begin, degree,
               Queue{p.queue[to], p.hub_queue[to], b.mail + to}, lane);
#if !DIRECTED
        const u32 at = take_place(ok[i] && !degree, b.idle + to);
        /* mutant: every -> active : test_between_leaves::test_sets_of_roots */
        if (ok[i] && !degree) p.queue[to][p.every - 1 - at].x = v[i];
#endif
        if (ok[i]) p.direct[v[i]] = s.depth;
    }
}

/* The same, with their parents: local ids of shares. */
template <int N>
INLINE void take_all(const Between &b, const State &s, bool *ok, const u32 *v, const u32 *local,
                     const u32 *share, u32 lane) {
    admit<N>(b, s, ok, v, lane);
    if (!b.own.parents) return;
    u32 slot = take_places<N>(ok, b.filled);
#pragma unroll
    for (int k = 0; k < N; k++)
        /* mutant: share[k] -> b.share : test_between_kernels::test_levels_and_parents */
        if (ok[k]) name_parent(b, v[k], slot++, (u64)local[k] * b.shares + share[k]);
}
#endif
