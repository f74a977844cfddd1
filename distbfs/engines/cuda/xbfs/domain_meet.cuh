/* How the devices of a domain wait for each other.
 *
 * What any block wrote before a meeting is seen by all after it.  Where only a sum is told,
 * each block adds to its part's tally on every device, and waits for the tallies on its
 * own.  Where more is told, the last block of a device that comes writes a message to every
 * device, and all blocks wait for the messages on their own.  Turns rise from search to
 * search, so messages are not cleared; one is written over four turns later, when all that
 * read it have come to three more.  Tallies and sums are cleared two meetings ahead.
 * A peer is waited for no longer than `patience`; then, or where another has given up,
 * all end.
 * Block 0 of a device looks at its host's word as it comes to a meeting, and what it saw
 * goes with what it tells anyway; so all blocks of all devices, or block 0 of each, learn of
 * it at the same meeting.
 */
#ifndef DISTBFS_XBFS_DOMAIN_MEET_CUH
#define DISTBFS_XBFS_DOMAIN_MEET_CUH
#include "domain.cuh"

#define POLLS 1024 /* between two looks at the clock */

/* The words of all messages of a turn, in shared memory; a meeting that only sums values
 * leaves all but the first as they were. */
struct Received {
    u32 word[MOST_PARTS][WORDS];
    u32 failed;
};

INLINE u64 sum_of(const Member &r, const Received &received, Word word) {
    u64 sum = 0;
    for (u32 t = 0; t < r.parts; t++) sum += received.word[t][word];
    return sum;
}

/* What goes into messages: of the queue that was made, and pairs for each part (volatile,
 * as other blocks count them). */
struct Outgoing {
    u32 value, size, hubs, all;
    u64 edges;
    const volatile u32 *sent;
};

/* Give up, and let the others know. */
INLINE void give_up(const Member &r, u64 why) {
    for (u32 t = 0; t < r.parts; t++) store_system(&r.mailbox[t]->failed, why);
}

/* One warp writes messages to all parts; what was written before, here or by blocks that
 * came before, is seen by who reads them. */
INLINE void send_messages(const Member &r, Kind kind, u64 turn, const Outgoing &out, u32 lane) {
    fence_system();
    for (u32 i = lane; i < r.parts * WORDS; i += 32) {
        const u32 to = i / WORDS, k = i - to * WORDS;
        u32 x = out.value;
        if (k == FOR_YOU) x = out.sent ? out.sent[to] : 0;
        if (k == SIZE) x = out.size;
        if (k == EDGES) x = (u32)out.edges;
        if (k == EDGES_HIGH) x = (u32)(out.edges >> 32);
        if (k == HUBS) x = out.hubs;
        if (k == SENT) x = out.all;
        u64 *word = r.mailbox[to]->message[kind][turn & 3][r.index].word + k;
        write_system(word, turn << 32 | x);
    }
}

/* Read a word that part `from` writes until wanted(word); false where the search has
 * failed. */
template <class Wanted>
INLINE bool await(const Member &r, const u64 *word, u64 &x, u32 from, const Wanted &wanted) {
    Mailbox *box = r.mailbox[r.index];
    u64 since = 0;
    u32 polls = 0;
    while (!wanted(x = look_system(word))) {
        if (++polls % POLLS) continue;
        const u64 now = nanoseconds();
        if (look_system(&box->failed)) return false;
        if (!since) since = now;
        else if (now - since > r.patience) {
            give_up(r, 1 + from);
            return false;
        }
    }
    return true;
}

/* One warp waits for the messages of all parts; j.stop: see JointState. */
INLINE bool receive(const Member &r, JointState &j, Kind kind, u64 turn, Received &received,
                    u32 lane) {
    bool fine = true;
    for (u32 i = lane; fine && i < r.parts * WORDS; i += 32) {
        const u32 from = i / WORDS, k = i - from * WORDS;
        const u64 *word = r.mailbox[r.index]->message[kind][turn & 3][from].word + k;
        u64 x = 0;
        fine = await(r, word, x, from, [=](u64 y) { return y >> 32 == (u32)turn; });
        received.word[from][k] = (u32)x;
        if (k == HUBS && (u32)x & TOP_BIT) j.stop = 1;
    }
    return !__any_sync(ALL, !fine);
}

/* What each block does at a meeting that tells sums alone; one warp calls it.
 * own: what the block adds to a tally; j.stop: see JointState */
INLINE bool tally(const Member &r, JointState &j, u64 met, u64 own, Received &received,
                  u32 lane) {
    bool fine = true;
    fence_system();
    if (lane < r.parts) {
        add_system(&r.mailbox[lane]->tally[met & 3][r.index][0], own);
        const u64 *word = &r.mailbox[r.index]->tally[met & 3][lane][0];
        const u32 blocks = gridDim.x;
        u64 x = 0;
        fine = await(r, word, x, lane, [=](u64 y) { return (y & 0xffff) == blocks; });
        received.word[lane][VALUE] = (u32)(x >> 16);
        /* mutant: if (x >> 63) j.stop = 1 -> : test_parts_learn_at_each_kind_of_meeting */
        if (x >> 63) j.stop = 1;
    }
    return !__any_sync(ALL, !fine);
}

/* The same where messages are written; mail, sent: see `meet`. */
INLINE bool exchange(const Member &r, JointState &j, u64 met, u64 own, const Mail *mail,
                     const u32 *sent, Received &received, u32 lane) {
    u64 *total = &r.device->sum[(met & 3) * 16], come = 0;
    if (lane == 0) come = add_acquire_release(total, own);
    come = __shfl_sync(ALL, come, 0) + own;
    if ((come & 0xffff) == gridDim.x) {
        Outgoing out = {(u32)(come >> 16), 0, 0, 0, 0, sent};
        if (mail) {
            const u64 size = __ldcg(&mail->size);
            out.size = (u32)size, out.hubs = (u32)__ldcg(&mail->hubs);
            out.edges = sizeof(OFFSET) == 8 ? __ldcg(&mail->edges) : size >> 32;
        }
        /* mutant: if (come >> 63) out.hubs |= TOP_BIT ->
         * : test_parts_learn_at_each_kind_of_meeting */
        if (come >> 63) out.hubs |= TOP_BIT;
        if (sent) out.all = __reduce_add_sync(ALL, lane < r.parts ? out.sent[lane] : 0u);
        send_messages(r, BY_ALL, met, out, lane);
    }
    __syncwarp();
    return receive(r, j, BY_ALL, met, received, lane);
}

/* The host's word, to the first thread of block 0; it is on its way while the block meets. */
INLINE u32 look_up(const Member &r) {
    const u64 *stop = ASKED(r.own.stop);
    return stop && blockIdx.x == 0 && threadIdx.x == 0 ? (u32)look(stop) : 0;
}

/* All blocks of all devices meet; false where the search has failed.  Joint states are in
 * shared memory, one a block.
 * value: summed over all threads of the device; mail: of this device's queue, or null;
 * sent: pairs for each part, or null; where both are null, the sum alone is told */
INLINE bool meet(const Member &r, JointState &j, u32 value, const Mail *mail, const u32 *sent,
                 Received &received) {
    __shared__ u32 part[32];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u32 stop = look_up(r);
    const u32 sum = __reduce_add_sync(ALL, value);
    if (lane == 0) part[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        const u64 met = j.met + 1;
        const u32 mine = __reduce_add_sync(ALL, lane < (blockDim.x >> 5) ? part[lane] : 0u);
        /* mutant: (u64)mine << 16 | 1 -> 1 : test_steps_are_those_of_one_device */
        const u64 own = (u64)__shfl_sync(ALL, stop, 0) << 63 | (u64)mine << 16 | 1;
        const bool fine = mail || sent ? exchange(r, j, met, own, mail, sent, received, lane)
                                       : tally(r, j, met, own, received, lane);
        if (blockIdx.x == 0) { /* all have come, so all have left the last but one */
            const u32 clear = (met + 2) & 3;
            if (lane == 0) r.device->sum[clear * 16] = 0;
            if (lane < r.parts) r.mailbox[r.index]->tally[clear][lane][0] = 0;
        }
        if (lane == 0) received.failed = !fine, j.met = met;
    }
    __syncthreads();
    return !received.failed;
}

/* One block of each device meets those of the others; value: summed over all; mail, sent:
 * shared. */
INLINE bool post(const Member &r, JointState &j, u32 value, const Mail &mail, const u32 *sent,
                 Received &received) {
    const u32 lane = threadIdx.x & 31;
    const u32 stop = look_up(r);
    __syncthreads();
    if (threadIdx.x < 32) {
        const u64 turn = j.turn + 1;
        Outgoing out = {value, (u32)mail.size, (u32)mail.hubs, 0, 0, sent};
        out.edges = sizeof(OFFSET) == 8 ? mail.edges : mail.size >> 32;
        /* mutant: if (__shfl_sync(ALL, stop, 0)) out.hubs |= TOP_BIT ->
         * : test_parts_learn_at_each_kind_of_meeting */
        if (__shfl_sync(ALL, stop, 0)) out.hubs |= TOP_BIT;
        out.all = __reduce_add_sync(ALL, lane < r.parts ? sent[lane] : 0u);
        send_messages(r, BY_ONE, turn, out, lane);
        const bool fine = receive(r, j, BY_ONE, turn, received, lane);
        if (lane == 0) received.failed = !fine, j.turn = turn;
    }
    __syncthreads();
    return !received.failed;
}

/* All blocks of this device meet; then, where `learn`, all know what block 0 has left on
 * its device's control.  Nobody is waited for but blocks of this device, which run. */
INLINE bool meet_here(const Member &r, JointState &j, bool learn = false) {
    __shared__ u32 over;
    const u32 lane = threadIdx.x & 31;
    __syncthreads();
    if (threadIdx.x < 32) {
        DeviceControl *d = r.device;
        if (lane == 0) {
            const u64 all = ++j.met_here * gridDim.x;
            u32 polls = 0;
            over = 0;
            add_release(&d->arrived_here, 1);
            while (look_acquire(&d->arrived_here) < all) {
                if (++polls % POLLS) continue;
                over = look_system(&r.mailbox[r.index]->failed) != 0;
                if (over) break;
            }
        }
        __syncwarp();
        if (learn && lane < sizeof(JointState) / 8)
            ((u64 *)&j)[lane] = __ldcg((const u64 *)&d->joint + lane);
    }
    __syncthreads();
    return !over;
}
#endif
