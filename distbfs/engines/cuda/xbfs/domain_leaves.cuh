/* Leaves of a domain: they are not searched, but get level and parent with the results.
 *
 * The numbers of every part from `active` on are of vertices with one edge, so columns from
 * `bound` on are their positions, which no replica has.  A leaf is one level below its
 * neighbour, which may be of another part: each part tells all devices the codes of its own
 * vertices (trees.cuh) when a search ends; where a code does not tell, the level is in the
 * owner's `direct`.  A search from a leaf pushes its edge as any other.
 * Source: pruning of trees in Graph500 codes (Ueno et al. 2016; Nakao et al. 2021), here of
 * their outermost vertices.
 */
#ifndef DISTBFS_XBFS_DOMAIN_LEAVES_CUH
#define DISTBFS_XBFS_DOMAIN_LEAVES_CUH
#include "domain_meet.cuh"
#include "domain_publish.cuh"
#include "trees.cuh"

/* Whether leaves are not searched; where edges lead one way, all vertices are. */
INLINE bool leaves_out(const Params &p) { return !DIRECTED && p.active < p.every; }

/* Levels of word w that have no code become direct ones; seen: what has one. */
INLINE void direct_levels(const Params &p, u32 w, u32 k, u32 base, u32 seen) {
    /* mutant: if (p.snapshot[k * p.stride + w] == seen) return -> return
     * : test_domain_leaves::test_every_way */
    if (p.snapshot[k * p.stride + w] == seen) return;
    for (u32 j = CODED + 1; j <= k; j++) {
        const u32 now = p.snapshot[j * p.stride + w];
        write_levels(p, w * 32, now & ~seen, base + j);
        seen |= now;
    }
}

/* The first own words of codes for all devices, in pairs. */
INLINE void publish_codes(const Member &r, u32 k, u32 base, u32 pairs) {
    const Params &p = r.own;
    const u32 stride = gridDim.x * THREADS;
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < pairs; i += stride) {
        uint2 seen;
        const uint4 codes = code_words(p, i, k, seen);
        const u32 at = place_of(r, 2 * i);
        for (u32 t = 0; t < r.parts; t++) *(uint4 *)(r.code[in_turn(r, t)] + at) = codes;
        if (k <= CODED) continue;
        direct_levels(p, 2 * i, k, base, seen.x);
        direct_levels(p, 2 * i + 1, k, base, seen.y);
    }
}

/* The id of a position. */
INLINE u64 id_at(const Member &r, u32 position) {
    const u32 name = r.own.vertices[position];
    return r.own.shares ? (u64)name * r.parts + owner_of(r, position).part : name;
}

/* Leaves of this device; see Trees. */
struct Leaves {
    const Member &r;
    const u32 *reached; /* bits of all vertices, by position */
    const uint2 *held;
    u32 k, base, root;
    __device__ __forceinline__ bool below(u32 v, u32 u) const {
        return u < r.own.bound && v != root;
    }
    __device__ __forceinline__ int other(u32 v, u32 &parent) const {
        if (v == root) {
            parent = position_of(r, root);
            return 0;
        }
        if (parent >= r.own.bound) /* a leaf, too: none but a root leads there */
            return id_at(r, parent) == r.own.root_id ? 1 : -1;
        if (!bit_of(reached, parent)) return -1;
        const Owner to = owner_of(r, parent);
        return (int)__ldcg(r.direct[to.part] + to.number) + 1;
    }
};

/* Codes for all devices, made as results are: two threads have a word. */
struct AllCodes {
    const Member &r;
    bool wanted;
    __device__ __forceinline__ void operator()(u32 i, u32 low, u32 high) const {
        if (!wanted) return;
        const u32 at = place_of(r, i / 2) * 2 + (i & 1);
        /* mutant: low : high -> high : low : test_domain_leaves::test_every_way */
        const u32 other = __shfl_xor_sync(ALL, i & 1 ? low : high, 1);
        const u32 word = i & 1 ? other | high << 16 : low | other << 16;
        for (u32 t = 0; t < r.parts; t++) ((u32 *)r.code[in_turn(r, t)])[at] = word;
    }
    __device__ __forceinline__ void later(u32 v, u32 bits, u32 level) const {
        /* mutant: if (wanted) write_levels(r.own, v, bits, level) ->
         * : test_domain_leaves::test_every_way */
        if (wanted) write_levels(r.own, v, bits, level);
    }
};

/* What all devices must know of this one for their leaves, where these are left out, and
 * results by number. */
INLINE void tell_codes(const Member &r, const JointState &j) {
    const Params &p = r.own;
    const u32 k = j.s.k, base = j.s.base;
    const bool wanted = leaves_out(p);
    /* mutant: wanted && !j.complete -> 0 : test_domain_leaves::test_every_way */
    if (wanted && !j.complete) publish_changes(r, p.snapshot + k * p.stride, j.now);
    if (!IN_IDS) results_by_number(p, k, base, too_deep(p, j.s.depth), AllCodes{r, wanted});
    else if (wanted) publish_codes(r, k, base, p.words / 2);
}

/* All devices end a search so, after `tell_codes`; false where it has failed.
 * room: dynamic shared memory */
INLINE bool level_leaves(const Member &r, JointState &j, u32 *room, Received &received) {
    const Params &p = r.own;
    uint2 *held = (uint2 *)(room + WARPS * LATER);
    const u32 root = p.root == ELSEWHERE ? NONE : number_of(p, p.root);
    if (!meet(r, j, 0, 0, 0, received)) return false;
    hold_codes(p, held);
    tell_trees(p, Leaves{r, replica_of(r, r.index, j.now), held, j.s.k, j.s.base, root},
               too_deep(p, j.s.depth), false, room);
    return meet_here(r, j);
}
#endif
