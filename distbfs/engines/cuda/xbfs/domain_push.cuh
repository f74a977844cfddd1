/* Push by queue between devices.
 *
 * A found vertex of this part is claimed and queued as in push.cuh.  One of another
 * part that this part has not sent before goes to its owner as a pair; the owner claims it
 * after the meeting, and so drops what several parts have found.
 */
#ifndef DISTBFS_XBFS_DOMAIN_PUSH_CUH
#define DISTBFS_XBFS_DOMAIN_PUSH_CUH
#include "domain.cuh"

/* Lanes with `away` send (number, parent) to `owner`; a whole warp calls it.
 * sent: [parts], counters; at(owner): where this part's list there begins */
template <class At>
INLINE void send_pairs(const Member &r, bool away, const Owner &to, u32 parent, u32 *sent,
                       const At &at) {
    u32 who = __ballot_sync(ALL, away);
    while (who) { /* owner by owner */
        const u32 part = __shfl_sync(ALL, to.part, __ffs(who) - 1);
        const bool mine = away && to.part == part;
        const u32 place = take_place(mine, sent + part);
        if (mine) at(part)[place] = make_uint2(to.number, parent);
        who &= ~__ballot_sync(ALL, mine);
    }
}

/* What a push does with what it finds. */
struct Send {
    const Member &r;
    u32 *visited, *filter; /* snapshot 0 by number, the replica by position */
    u32 level;
    const Queue &next;
    u32 *sent;
    bool few; /* the lists of narrow levels */
    __device__ __forceinline__ void operator()(bool ok, u32 v, u32 u, u32 lane) const {
        const Params &p = r.own;
        const Owner to = owner_of(r, v);
        const bool here = to.part == r.index;
        const u32 bit = 1u << (v & 31), parent = position_of(r, u);
        claim(p, ok && here, to.number, parent, visited, level, next, lane);
        bool away = ok && !here && v < r.own.bound && !(filter[v >> 5] & bit);
        if (away) away = !(atomicOr(filter + (v >> 5), bit) & bit);
        const bool narrow = few;
        const u32 which = level & 1;
        send_pairs(r, away, to, parent, sent, [&](u32 part) {
            return narrow ? few_at(r, part, r.index, which) : pairs_at(r, part, r.index, 0);
        });
    }
};

/* Claim `count` pairs that came from another part. */
INLINE void claim_pairs(const Member &r, const uint2 *list, u32 count, u32 *visited, u32 level,
                        const Queue &next, u32 warp, u32 warps, u32 lane) {
    for (u32 from = warp * 32; from < count; from += warps * 32) {
        const u32 i = from + lane;
        const uint2 pair = i < count ? __ldcg(list + i) : make_uint2(0, 0);
        /* mutant: i < -> i + 1 < : test_a_wide_push_between_pulls */
        claim(r.own, i < count, pair.x, pair.y, visited, level, next, lane);
    }
}
#endif
