/* How devices of a resident search wait for each other.
 *
 * The last block of a device that comes to a meeting writes a letter to every device: the
 * words, a fence, and then the turn, with release.  All blocks wait for the letters of all
 * parts on their own device, with acquire, so that what any block wrote before the meeting
 * is seen by all after it.  Turns rise from search to search, so nothing is cleared; a
 * letter is written over four turns later, when all that read it have come to three more.
 * A peer is waited for no longer than `patience`; then, or where another has given up,
 * all end.
 */
#ifndef DISTBFS_RESIDENT_MEET_CUH
#define DISTBFS_RESIDENT_MEET_CUH
#include "resident.cuh"

#define POLLS 1024 /* between two looks at the clock */

/* The words of all letters of a turn, in shared memory. */
struct News {
    u64 word[MOST_PARTS][WORDS];
    u32 failed;
};

INLINE u64 sum_of(const Resident &r, const News &news, Word word) {
    u64 sum = 0;
    for (u32 t = 0; t < r.parts; t++) sum += news.word[t][word];
    return sum;
}

/* Give up, and let the others know. */
INLINE void give_up(const Resident &r, u64 why) {
    for (u32 t = 0; t < r.parts; t++) store_system(&r.mailbox[t]->failed, why);
}

/* A letter to part `to`; the whole device's writes are fenced by the caller's own fence and
 * those of the blocks that came before. */
INLINE void send_letter(const Resident &r, u32 to, Kind kind, u64 turn,
                        const u64 (&word)[WORDS]) {
    Letter *letter = &r.mailbox[to]->letter[kind][turn & 3][r.index];
#pragma unroll
    for (u32 k = 0; k < WORDS; k++) write_system(&letter->word[k], word[k]);
    fence_system();
    store_system(&letter->turn, turn);
}

/* Lane t of a warp waits for the letter of part t. */
INLINE bool receive(const Resident &r, Kind kind, u64 turn, News &news, u32 lane) {
    Mailbox *box = r.mailbox[r.index];
    bool fine = true;
    if (lane < r.parts) {
        const Letter *letter = &box->letter[kind][turn & 3][lane];
        u64 since = 0;
        u32 polls = 0;
        while (look_system(&letter->turn) != turn) {
            if (++polls % POLLS) continue;
            const u64 now = nanoseconds();
            if (look_system(&box->failed)) fine = false;
            if (!since) since = now;
            else if (now - since > r.patience) {
                give_up(r, 1 + lane);
                fine = false;
            }
            if (!fine) break;
        }
        if (fine)
            for (u32 k = 0; k < WORDS; k++) news.word[lane][k] = read_system(&letter->word[k]);
    }
    return !__any_sync(ALL, !fine);
}

/* All blocks of all devices meet; false where the search has failed.  Journeys are in shared
 * memory, one a block.
 * value: summed over all threads of the device; mail: of this device's queue, or null;
 * sent: pairs for each part, or null */
INLINE bool meet(const Resident &r, Journey &j, u32 value, const Mail *mail, const u32 *sent,
                 News &news) {
    __shared__ u32 part[32];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u32 sum = __reduce_add_sync(ALL, value);
    if (lane == 0) part[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        const u64 met = j.met + 1;
        Desk *d = r.desk;
        u64 *total = &d->sum[(met & 3) * 16];
        const u32 mine = __reduce_add_sync(ALL, lane < (blockDim.x >> 5) ? part[lane] : 0u);
        u32 last = 0;
        if (lane == 0) {
            if (mine) atomicAdd(total, (u64)mine);
            fence_system(); /* of all threads of the block, after __syncthreads */
            last = add_acquire_release(&d->arrived, 1) + 1 == met * gridDim.x;
        }
        if (__shfl_sync(ALL, last, 0)) {
            u64 word[WORDS] = {__ldcg(total), 0, 0, 0, 0, 0, 0};
            if (mail) {
                word[SIZE] = __ldcg(&mail->size), word[EDGES] = __ldcg(&mail->edges);
                word[HUBS] = __ldcg(&mail->hubs);
            }
            if (sent) {
                const u32 count = lane < r.parts ? __ldcg(sent + lane) : 0u;
                word[FOR_YOU] = count, word[SENT] = __reduce_add_sync(ALL, count);
            }
            if (lane == 0) d->sum[((met + 2) & 3) * 16] = 0; /* all have left that one */
            __syncwarp();
            if (lane < r.parts) send_letter(r, lane, BY_ALL, met, word);
        }
        __syncwarp();
        const bool fine = receive(r, BY_ALL, met, news, lane);
        if (lane == 0) news.failed = !fine, j.met = met;
    }
    __syncthreads();
    return !news.failed;
}

/* One block of each device meets those of the others; mail, sent: shared. */
INLINE bool post(const Resident &r, Journey &j, const Mail &mail, const u32 *sent, News &news) {
    const u32 lane = threadIdx.x & 31;
    __syncthreads();
    if (threadIdx.x < 32) {
        const u64 turn = j.turn + 1;
        const u32 count = lane < r.parts ? sent[lane] : 0;
        const u32 all = __reduce_add_sync(ALL, count);
        const u64 word[WORDS] = {0, count, mail.size, mail.edges, mail.hubs, all, 0};
        fence_system();
        if (lane < r.parts) send_letter(r, lane, BY_ONE, turn, word);
        __syncwarp();
        const bool fine = receive(r, BY_ONE, turn, news, lane);
        if (lane == 0) news.failed = !fine, j.turn = turn;
    }
    __syncthreads();
    return !news.failed;
}

/* All blocks of this device meet; then, where `learn`, all know what block 0 has left on
 * the desk.  Nobody is waited for but blocks of this device, which run. */
INLINE bool meet_here(const Resident &r, Journey &j, bool learn = false) {
    __shared__ u32 over;
    const u32 lane = threadIdx.x & 31;
    __syncthreads();
    if (threadIdx.x < 32) {
        Desk *d = r.desk;
        if (lane == 0) {
            const u64 all = ++j.met_here * gridDim.x;
            u32 polls = 0;
            over = 0;
            add_release(&d->arrived_here, 1);
            while (look(&d->arrived_here) < all) {
                if (++polls % POLLS) continue;
                over = look_system(&r.mailbox[r.index]->failed) != 0;
                if (over) break;
            }
            acquire();
        }
        __syncwarp();
        if (learn && lane < sizeof(Journey) / 8)
            ((u64 *)&j)[lane] = __ldcg((const u64 *)&d->journey + lane);
    }
    __syncthreads();
    return !over;
}
#endif
