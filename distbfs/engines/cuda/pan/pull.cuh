/* Backward visits: unvisited vertices look for a visited neighbour.
 *
 * Where many vertices of a warp's words are unvisited, each lane tests the first columns of
 * four, then their second and so on, which lie beside the rows; most searches end there,
 * as columns rise and low delegates have high degrees.  The others (or all, where few
 * are unvisited) are listed and taken 32 at a time, so that all lanes work.  A lane reads the next columns of its
 * row; unfinished rows wait until there are 32, and the whole warp reads the rest of long
 * ones.
 * Source: Pan, Pearce, Owens 2018, Section IV-B; XBFS 2019, Section 4.2 (sorted queue).
 */
#ifndef DISTBFS_PAN_PULL_CUH
#define DISTBFS_PAN_PULL_CUH
#include "part.cuh"

#define LONG_REST 96
#define DENSE 4 /* unvisited vertices of a word from which first columns are looked at */
#define TESTED 0x80000000u /* a listed vertex whose first columns were looked at */

/* found(v, column): by one lane; found_word(word, bits): the vertices of a word whose
 * first columns were visited, whose parents found_first(v, hit, columns) sets. */
template <class Target> struct Puller {
    const Rows &rows;
    const u32 *status; /* bitmap of the columns */
    u32 *list, *wait;  /* shared: [LIST] vertices, [WAITING][2] vertex and edges left */
    u32 lane, listed, waiting;
    Target target;

    /* 32 vertices, one a lane where `mine`, from `at` on. */
    __device__ __forceinline__ void step(bool mine, u32 v, OFFSET at, OFFSET end) {
        bool hit = false;
        u32 column = 0;
        if (mine && at < end) {
            u32 u[4];
#pragma unroll
            for (int j = 0; j < 4; j++) u[j] = load_once(rows.to<u32>() + (at + j < end ? at + j : at));
#pragma unroll
            for (int j = 3; j >= 0; j--)
                if (bit_of(status, u[j])) hit = true, column = u[j];
            add_checks(target.p, end - at < 4 ? (u32)(end - at) : 4);
            at += 4;
        }
        if (hit) target.found(v, column);
        const bool more = mine && !hit && at < end, longer = more && end - at > LONG_REST;
        const u32 again = __ballot_sync(ALL, more && !longer);
        if (more && !longer) {
            u32 *w = wait + (waiting + __popc(again & lanes_below(lane))) * 2;
            w[0] = v, w[1] = (u32)(end - at);
        }
        waiting += __popc(again);
        for (u32 todo = __ballot_sync(ALL, longer); todo; todo &= todo - 1) {
            const u32 one = __ffs(todo) - 1, who = __shfl_sync(ALL, v, one);
            const OFFSET stop = __shfl_sync(ALL, end, one);
            u32 winner = 0;
            for (OFFSET r = __shfl_sync(ALL, at, one); r < stop && !winner; r += 32) {
                const OFFSET e = r + lane;
                const u32 x = e < stop ? load_once(rows.to<u32>() + e) : 0u;
                const bool here = e < stop && bit_of(status, x);
                add_checks(target.p, e < stop);
                winner = __ballot_sync(ALL, here);
                if (winner && lane == __ffs(winner) - 1) target.found(who, x);
            }
        }
        __syncwarp();
    }

    __device__ __forceinline__ void fresh_rows() {
        const u32 count = listed < 32 ? listed : 32;
        listed -= count;
        const bool mine = lane < count;
        const u32 entry = mine ? list[listed + lane] : 0, v = entry & ~TESTED;
        OFFSET at = 0, end = 0;
        if (mine) at = rows.offsets[v] + (entry >> 31) * FIRST, end = rows.offsets[v + 1];
        __syncwarp();
        step(mine, v, at, end);
    }

    __device__ __forceinline__ void rest_of_rows() {
        const u32 count = waiting < 32 ? waiting : 32;
        waiting -= count;
        const bool mine = lane < count;
        const u32 *w = wait + (waiting + lane) * 2;
        const u32 v = mine ? w[0] : 0;
        OFFSET at = 0, end = 0;
        if (mine) end = rows.offsets[v + 1], at = end - w[1];
        __syncwarp();
        step(mine, v, at, end);
    }

    __device__ __forceinline__ void drain(bool all) {
#pragma unroll 1
        while (true) {
            if (waiting >= 32 || (all && waiting && !listed)) rest_of_rows();
            else if (listed >= 32 || (all && listed)) fresh_rows();
            else return;
        }
    }

    /* Those of 32 words, a word a lane. */
    __device__ __forceinline__ void sparse(u32 word, u32 bits, u32 count) {
        const u32 groups = count <= 32 * GROUP ? 1 : 32 / GROUP;
#pragma unroll 1
        for (u32 g = 0; g < groups; g++) {
            listed += list_bits(list + listed, word,
                                groups == 1 || lane / GROUP == g ? bits : 0, lane);
            __syncwarp();
            drain(false);
        }
    }

    /* Eight words at a time, four vertices a lane of each half.
     * first: [FIRST][stride] first columns, NONE where a row has fewer */
    __device__ __forceinline__ void dense(const u32 *first, u64 stride, u32 word0, u32 bits,
                                          u32 span) {
        const u32 part = (lane & 7) * 4;
#pragma unroll 1
        for (u32 i = 0; i < span; i += 8) {
            const u32 word = word0 + i + (lane >> 3);
            u32 miss[2], f[2][4], hit[2] = {0, 0};
#pragma unroll
            for (int h = 0; h < 2; h++)
                miss[h] = __shfl_sync(ALL, bits, (i + h * 4 + (lane >> 3)) & 31) >> part & 15;
#pragma unroll 1
            for (u32 k = 0; k < FIRST && __any_sync(ALL, miss[0] | miss[1]); k++) {
                uint4 x[2];
#pragma unroll
                for (int h = 0; h < 2; h++)
                    if (miss[h]) x[h] = load_once4(first + k * stride + (word + h * 4) * 32 + part);
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const u32 g[4] = {x[h].x, x[h].y, x[h].z, x[h].w};
#pragma unroll
                    for (int j = 0; j < 4; j++) {
                        if (!(miss[h] >> j & 1)) continue;
                        const bool none = g[j] == NONE, here = !none && bit_of(status, g[j]);
                        add_checks(target.p, !none);
                        if (here) hit[h] |= 1u << j, f[h][j] = g[j];
                        if (here || none) miss[h] &= ~(1u << j);
                    }
                }
            }
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const u32 whole = word_of(hit[h], part);
                const u32 at = word + h * 4, v = at * 32 + part;
                if (part == 0 && whole) target.found_word(at, whole);
                target.found_first(v, hit[h], f[h]);
                if (!__any_sync(ALL, miss[h])) continue;
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const u32 who = __ballot_sync(ALL, miss[h] >> j & 1), before = lanes_below(lane);
                    if (miss[h] >> j & 1) list[listed + __popc(who & before)] = v + j | TESTED;
                    listed += __popc(who);
                }
            }
            __syncwarp();
            drain(false);
        }
    }
};

/* All vertices of `words` words that open(word) names.
 * first: [FIRST][32 words] first columns, or null */
template <class Open, class Target>
INLINE void pull(const Rows &rows, const u32 *first, const u32 *status, u32 words, Open open,
                Target target) {
    u32 *room = warp_room();
    const u32 lane = lane_id();
    Puller<Target> w = {rows, status, room, room + LIST, lane, 0, 0, target};
    const u32 span = span_of(words);
    for (u32 w0 = warp_of() * span; w0 < words; w0 += all_warps() * span) {
        const u32 word = w0 + lane, bits = lane < span && word < words ? open(word) : 0;
        const u32 count = __reduce_add_sync(ALL, __popc(bits));
        if (!count) continue;
        if (first && count >= DENSE * span) w.dense(first, 32ull * words, w0, bits, span);
        else w.sparse(word, bits, count);
    }
    w.drain(true);
}
#endif
