/* Pull of most vertices, column by column, where there are no hubs.
 *
 * Rows rise, so the k-th neighbours of all vertices lie around one place, about k / degree of
 * the way.  A block tests one column of its vertices before the next, with the visited bits of
 * a window around that place in shared memory; each lane keeps the bits of its unvisited
 * vertices in a register.  What is left after the columns waits for its row, as in pull.cuh.
 */
#ifndef DISTBFS_XBFS_PULL_WINDOWS_CUH
#define DISTBFS_XBFS_PULL_WINDOWS_CUH
#include "pull.cuh"

#define FOURS 16  /* of vertices that a lane has at a time */
#define PAIR 2    /* of these, asked for together */
#define ENOUGH 4  /* columns are read while one of so many is left */

/* The whole level; arguments and what is returned are those of `pull`.
 * room: dynamic shared memory, STAGE_AT words a warp and then a window */
INLINE u32 pull_in_windows(const Params &p, const u32 *old, u32 *fresh, u32 *room, u32 warp,
                           u32 warps, u32 lane) {
    u32 *own = room + (threadIdx.x >> 5) * STAGE_AT, *window = room + WARPS * STAGE_AT;
    Puller w = {p, {window, old, p.window_words}, fresh, own, (u8 *)(own + WAIT), own + HALF_AT,
                0, 0,    lane, 0, {0, 0}};
    const u32 part = (lane & 7) * 4, pieces = (p.words + 3) / 4;
    u32 left = 0, from = NONE;
    const auto move = [&](u32 word) { /* the window; all threads of the block call it */
        if (word == from) return;
        from = word;
        __syncthreads();
        for (u32 i = threadIdx.x; i < p.window_words >> 2; i += THREADS)
            copy_async(window + i * 4, old + word + i * 4);
        commit_copies();
        wait_copies<0>();
        __syncthreads();
        /* mutant: word -> 0 : test_fast_kernels::test_thresholds_that_force_each_way */
        w.visited.from = word;
    };
    for (u32 base = 0; base < pieces; base += FOURS * warps) {
        const auto vertex = [&](u32 j) { return (base + j * warps + warp) * 128 + lane * 4; };
        u64 open = 0; /* bits of vertex(j) ... + 3 from bit 4 j on */
#pragma unroll
        for (u32 j = 0; j < FOURS; j++) {
            const u32 word = vertex(j) >> 5, seen = word < p.words ? closed(p, old, word) : ALL;
            open |= (u64)(~seen >> part & 15) << 4 * j;
        }
        u32 skip = 0;
        bool many = true;
#pragma unroll 1
        for (u32 k = 0; k <= COLUMNS; k++) {
            move(p.window[k]);
            if (!many) continue;
            const u32 *column = k ? p.column[k - 1] : p.first;
            const u32 listed = k ? p.listed[k - 1] : p.active;
#pragma unroll 1
            for (u32 g = 0; g < FOURS; g += PAIR) {
                u32 u[4 * PAIR], wanted = 0;
#pragma unroll
                for (u32 i = 0; i < PAIR; i++) {
                    const u32 v = vertex(g + i);
                    const u32 mine = (u32)(open >> 4 * (g + i)) & below(v, listed);
                    uint4 x = make_uint4(0, 0, 0, 0);
                    if (mine) x = load_once4(column + v);
                    u[4 * i] = x.x, u[4 * i + 1] = x.y, u[4 * i + 2] = x.z, u[4 * i + 3] = x.w;
                    wanted |= mine << 4 * i;
                }
                const u32 hits = w.visited.of(u, wanted);
                open &= ~((u64)hits << 4 * g);
#pragma unroll
                for (u32 i = 0; i < PAIR; i++) {
                    const u32 v = vertex(g + i), hit = hits >> 4 * i & 15;
                    if (IN_IDS && k == 0) {
                        const u32 firsts = word_of(hit, part);
                        if (part == 0 && firsts) red_or(p.by_first + (v >> 5), firsts);
                    } else if (p.parents) {
#pragma unroll
                        for (u32 j = 0; j < 4; j++)
                            if (hit >> j & 1) p.parent[v + j] = u[4 * i + j];
                    }
                }
            }
            skip = k + 1;
            const u32 mine = __popc((u32)open) + __popc((u32)(open >> 32));
            many = __reduce_add_sync(ALL, mine) * ENOUGH >= FOURS * 128;
        }
        move(p.window[COLUMNS + 1]);
#pragma unroll 1
        for (u32 j = 0; j < FOURS; j++) {
            const u32 v = vertex(j), word = v >> 5, mine = (u32)(open >> 4 * j) & 15;
            const u32 bits = word_of(mine, part);
            if (part == 0 && word < p.words) fresh[word] = KEPT_BITS(p, fresh, word, ~bits);
            left += __popc(mine);
            __syncwarp();
            /* mutant: mine & below(v, p.listed[skip - 1]) -> 0
             * : test_fast_kernels::test_thresholds_that_force_each_way */
            enqueue4(w, mine & below(v, p.listed[skip - 1]), v, skip);
            __syncwarp();
            left -= drain(w, false);
        }
    }
    return left - drain(w, true);
}
#endif
