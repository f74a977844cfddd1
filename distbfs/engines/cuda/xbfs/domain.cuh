/* The data of a search on the several devices of a domain.
 *
 * Part k has the vertices v with v mod parts = k; inside it vertices are numbers, as in
 * search.cuh, with hubs first.  Numbers of all parts are interleaved in granules of 1,024:
 * position = (number / 1024 * parts + part) * 1024 + number % 1024.  Rows are a part's own
 * numbers, columns positions.  So `own` is what method fast has, by number, and is used by
 * its functions; only what they call bits of neighbours is a bitmap by position:
 *
 * `replica[2]`, on every device: the vertices of all parts that are visited.  While levels
 * pull, or mark, one is read and the other is made: each part writes its own words to all
 * devices.  While levels push by queue, snapshot 0 of the owner is what counts; the
 * replica then only keeps a part from sending a vertex twice: its bits of others' vertices
 * are visited, but not all visited ones have theirs.  A part's own words are the same on
 * all devices but for such bits.
 *
 * Vertices of other parts leave as pairs (number at the owner, position of the parent) for
 * lists in the owner's memory, which the owner works off after a meeting.
 * Parents are positions while a search runs: pairs and columns take 4 bytes a vertex, the
 * hub test needs no table, and only what is not the first neighbour is turned to an id at
 * the end, mostly a hub, whose entry of `own.vertices` (position -> id, on every device)
 * lies in L2.
 *
 * Peers write messages, pairs, counts of marks, replicas and codes, all before a meeting and
 * read after it.  Where leaves are left out: domain_leaves.cuh.
 */
#ifndef DISTBFS_XBFS_DOMAIN_CUH
#define DISTBFS_XBFS_DOMAIN_CUH
#include "search.cuh"
#include "push.cuh"
#include "../common/positions.cuh"

#define MOST_PARTS 8
#define ALONE 4096 /* edges of a device's frontier that its block 0 pushes alone */
#define WORDS 7

/* What a part tells another at a meeting.  Each word has the turn beside it, so that none
 * has to be written after the others. */
struct Message {
    u64 word[WORDS + 1]; /* turn << 32 | word */
};
enum Word { VALUE, FOR_YOU, SIZE, EDGES, EDGES_HIGH, HUBS, SENT };
#define TOP_BIT 0x80000000u /* of HUBS, which are fewer: this part's host ends the search */

/* Meetings of all blocks, and of block 0 of each device.  They have messages apart: block 0
 * may be many meetings ahead of blocks that still read the messages of the last one of
 * all, but not of two of the same kind. */
enum Kind { BY_ALL, BY_ONE, KINDS };

/* Written by peers, of each device. */
struct Mailbox {
    Message message[KINDS][4][MOST_PARTS]; /* by turn modulo 4 and sender */
    u64 tally[4][MOST_PARTS][8]; /* by meeting and sender, [0]: stop << 63 | sum << 16 | blocks */
    u64 failed;                   /* 1 + the part that was waited for in vain */
};

/* What a block knows between two steps, in shared memory; the same in all blocks of all
 * devices but for the queue of `s`, whose numbers are of this device. */
struct JointState {
    State s;
    u64 edges, count; /* of the queues of all devices */
    u64 most;         /* edges of the queue of the device with most */
    u64 turn;         /* meetings of block 0 of each device, over all searches */
    u64 met, met_here; /* of all blocks of all devices, of this one */
    u32 used, traced;
    u32 deepest;      /* the last level of which this device has found vertices by push */
    u32 now;          /* the replica that is read */
    u32 complete;     /* it has all visited vertices */
    u32 known, going; /* how large the frontier is; levels by block 0 go on */
    u32 late, listed; /* the next late pull is one; the last was: domain_late.cuh */
    u32 lates;        /* late pulls so far */
    u32 stop;         /* a host wants the search to end */
};

/* Written by this device alone; kept from search to search. */
struct DeviceControl {
    u64 turn, met, met_here;
    u64 arrived_here; /* blocks, at meetings of this device */
    u64 sum[4 * 16];  /* by meeting of all devices, as a tally, of blocks that have come */
    u32 found[3][16]; /* vertices that a late pull has found, in turn */
    u32 sent[3][16]; /* pairs for each part, in turn */
    u64 deepest;
    u64 failed; /* as in the mailbox when a search came to its end */
    JointState joint; /* what block 0 came to alone; at most 32 words */
};

struct Member {
    Params own;                 /* vertices: [positions] position -> id */
    Mailbox *mailbox[MOST_PARTS];
    u32 *replica[MOST_PARTS];   /* [2][all_words], of each device */
    uint2 *inbox[MOST_PARTS];   /* [parts - 1][2][room], then [2][parts - 1][ALONE] */
    u32 *marks[MOST_PARTS];     /* [parts][ranges]: pairs from each part */
    uint2 *code[MOST_PARTS];    /* where leaves are left out, on each device: p.code by position */
    u32 *direct[MOST_PARTS];    /* `direct` of each device */
    DeviceControl *device;
    u64 magic;                  /* ceil(2^32 / parts) */
    u64 patience;               /* ns that a peer is waited for */
    u64 active_all;             /* vertices that are searched, of all parts */
    u32 parts, index, all_words, room, longest; /* longest: row of all parts */
    u32 outside;                /* vertices of all parts that are searched, and not of a
                                   component that has half of them or more; 0: not known */
};

INLINE u32 *replica_of(const Member &r, u32 part, u32 which) {
    return r.replica[part] + (u64)which * r.all_words;
}

/* The k-th device that this one writes to: not all write to the same one at once. */
INLINE u32 in_turn(const Member &r, u32 k) {
    return r.index + k < r.parts ? r.index + k : r.index + k - r.parts;
}

/* Where a part's pairs lie at their owner: `which` 0 by queue, 1 by range. */
INLINE uint2 *pairs_at(const Member &r, u32 owner, u32 sender, u32 which) {
    const u32 slot = sender - (sender > owner);
    return r.inbox[owner] + ((u64)slot * 2 + which) * r.room;
}
/* Those of narrow levels, by level modulo 2. */
INLINE uint2 *few_at(const Member &r, u32 owner, u32 sender, u32 which) {
    const u32 slot = sender - (sender > owner), others = r.parts - 1;
    return r.inbox[owner] + (u64)others * 2 * r.room + ((u64)which * others + slot) * ALONE;
}
#endif
