/* Whole searches between domains, in one launch on each device: no host between levels.
 * The results kernel of results.cu follows.
 *
 * What goes to other shares is put into their memory (wire.cuh), and a signal follows when all
 * blocks have put theirs.  Every share signals every other one twice a level: with its boxes and
 * mask, where it found delegates, and with its counts; a third time with answers, where the
 * level asks.  A signal is turn << 1 | bit, and turns rise from search to search, so nothing is
 * cleared; each word of counts has its turn in it, and is a signal itself.  What came is not
 * overwritten before its reader has told its counts.  All shares choose alike from the same
 * counts, as `choose` does in between.cu, whose steps these are.
 * A share that is waited for longer than `patience` ends the search on all that wait for it.
 * Where a frontier between hosts is wide, what it finds is on its way while the inner graph is
 * searched: blocks put it and go on.
 * Of SEVERAL devices, those of a domain meet inside a level (between_level.cuh) and have no boxes
 * for each other.  What they have for other domains goes to its owners; a lane of delegates goes
 * to the device that has it there, so that a mask leaves a domain once for each other one.  A
 * domain of one device between those takes part as one of several, and a domain of one device
 * has one lane.
 *
 * Data: between.cuh.  Sources: those of between.cu; messages without a processor in their path
 * as in the GPU codes of the Graph500 list.
 *
 * variants: OFFSET=u32,u64 IN_IDS=1 SEVERAL=0,1 SPLIT=0 | OFFSET=u64 IN_IDS=1 SEVERAL=0,1 SPLIT=1 | OFFSET=u32 IN_IDS=1 SEVERAL=0,1 SPLIT=0 MASKED=1 | OFFSET=u64 IN_IDS=1 SEVERAL=0,1 SPLIT=1 MASKED=1 | OFFSET=u64 IN_IDS=1 SEVERAL=0,1 SPLIT=0 DIRECTED=1 | OFFSET=u64 IN_IDS=1 SEVERAL=0,1 SPLIT=1 MASKED=1 DIRECTED=1
 */
#define COUNT 0
#include "between_steps.cuh"
#include "wire.cuh"

#define MOST_SHARES 64
#define CHUNK 2048         /* words that a block puts at a time */
#define POLLS 1024         /* between two looks at the clock */
#define DATED 16           /* bits of a word of counts that have its turn */
#define FAILURE (~0ull)    /* of a signal: its writer gives up */

/* Signals, each with a word for each writer. */
enum Signal { BOXES, REPLIES, TALLIES, SIGNALS };

/* What the host is told at the end: levels, 1 + the share that was waited for in vain; bytes that
 * this share has sent, by kind, and messages. */
enum Told { LEVELS, FAULT, BYTES };
enum Sort { MASKS, ITEMS, QUESTIONS, ANSWERS, PARENTS, SORTS };
#define TOLD (BYTES + 2 * SORTS)

/* What the next level does, and what it knows of all shares. */
struct Next {
    u64 does;   /* see Does */
    u64 hidden; /* delegates that are not found yet */
    u64 asks;   /* whether a share has delegates whose parents others have */
    u64 wide;   /* whether the frontier is */
};

struct Loop {
    Between b;
    u64 *came;             /* [others][slot], symmetric: boxes of other shares */
    u64 *replied;          /* [others][reply_slot], symmetric: their answers */
    u32 *masks;            /* [other domains][dwords], symmetric: delegates that they found */
    u64 *dated;            /* [other domains][pieces], symmetric: turns of these, see Piece */
    u64 *tallies;          /* [2][shares][COUNTS], symmetric: what they have counted, by turn, and
                              << DATED, and the turn */
    u64 *signals;          /* [SIGNALS][shares], symmetric */
    u64 *turn;             /* [1], of the last level */
    u64 *masked;           /* [1], the last turn in which this share found delegates */
    u64 *arrived;          /* [1], blocks, at meetings that only the last one stays for */
    u64 *told;             /* [TOLD] */
    Next *next;            /* [1] */
    u64 slot, reply_slot;  /* words of a box, or of answers, and the word before them */
    u32 hidden;            /* delegates that are not found when the search begins */
    u32 parents;           /* they are wanted of delegates as well */
    u32 wide;              /* from so many vertices of a share on that have outer edges */
    const u64 *apart;      /* [shares], for each share those of other domains, as bits */
    const u32 *elements;   /* [shares], the processing element that has each */
};

/* What a block knows of the others' signals, in shared memory. */
struct Heard {
    u64 signal[MOST_SHARES];
    u32 fault; /* 1 + a share that gave up, or was waited for in vain */
};

INLINE u64 *signal_at(const Loop &n, u32 kind, u32 share) {
    return n.signals + kind * n.b.shares + share;
}

/* Whether a share is of another domain. */
INLINE bool is_apart(const Loop &n, u32 share) { return n.apart[n.b.share] >> share & 1; }

/* Whether a share signals this one, and is signalled: all others tell their counts. */
INLINE bool signals(const Loop &n, u32 kind, u32 share) {
    return kind == TALLIES ? share != n.b.share : is_apart(n, share);
}

/* How many shares other domains have. */
INLINE u32 shares_apart(const Loop &n) { return __popcll(n.apart[n.b.share]); }

/* Wait until there(x) for what is at a word of a share, by one thread; FAILURE: in vain. */
template <class There>
INLINE u64 wait_for(const Loop &n, u32 kind, u32 share, const u64 *word, const There &there) {
    u64 since = 0, x;
    u32 polls = 0;
    while (!there(x = look_system(word))) {
        if (++polls % POLLS) continue;
        const u64 now = nanoseconds();
        if (!since) since = now;
        if (now - since > n.b.patience || look_system(signal_at(n, kind, share)) == FAILURE)
            return FAILURE;
    }
    return x;
}

/* Whether nobody is waited for in vain; a whole block calls it.  wait(): this thread waits; 1 + the
 * share that it waits for in vain, or 0 */
template <class Wait> INLINE bool all_hear(const Loop &n, Heard &heard, const Wait &wait) {
    if (threadIdx.x == 0) heard.fault = 0;
    __syncthreads();
    const u32 fault = wait();
    if (fault) heard.fault = fault;
    __syncthreads();
    if (heard.fault && threadIdx.x == 0) n.told[FAULT] = heard.fault;
    return !heard.fault;
}

/* Wait for a signal of every share that gives it; a whole block calls it. */
INLINE bool hear(const Loop &n, u32 kind, u64 turn, Heard &heard) {
    return all_hear(n, heard, [&] {
        const u32 t = threadIdx.x;
        if (t >= n.b.shares || !signals(n, kind, t)) return 0u;
        const auto there = [&](u64 x) { return x >> 1 >= turn; };
        heard.signal[t] = wait_for(n, kind, t, signal_at(n, kind, t), there);
        return heard.signal[t] == FAILURE ? 1 + t : 0u;
    });
}

/* Signal the shares that wait for it, after what was put and is seen; one thread. */
INLINE void tell(const Loop &n, u32 kind, u64 value) {
    fence_system();
    for (u32 t = 0; t < n.b.shares; t++)
        if (signals(n, kind, t)) set_signal(signal_at(n, kind, n.b.share), value, n.elements[t]);
}

/* Whether this block is the last one to come, which then sees what all have done before.
 * There is a meeting of all blocks between two of these. */
INLINE bool comes_last(const Loop &n) {
    __shared__ u32 last;
    __syncthreads();
    if (threadIdx.x == 0) last = (add_acquire_release(n.arrived, 1) + 1) % gridDim.x == 0;
    __syncthreads();
    return last;
}

/* Put words to a share, by all blocks, of which the first one differs by share. */
INLINE void put_all(const Loop &n, void *to, const void *from, u64 words, u32 share) {
    const u64 pieces = (words + CHUNK - 1) / CHUNK;
    const u32 begin = (blockIdx.x + share * 17) % gridDim.x;
    for (u64 k = begin; k < pieces; k += gridDim.x) {
        const u64 at = k * CHUNK, some = words - at < CHUNK ? words - at : CHUNK;
        put_block((u64 *)to + at, (const u64 *)from + at, 8 * some, n.elements[share]);
    }
}

/* The row of what a share has written, at a reader. */
INLINE u64 row_of(const Loop &n, u32 writer, u32 reader) {
    return __popcll(n.apart[reader] & ((1ull << writer) - 1));
}

INLINE void count_sent(const Loop &n, u32 sort, u64 bytes) {
    if (blockIdx.x || threadIdx.x) return;
    n.told[BYTES + sort] += bytes;
    n.told[BYTES + SORTS + sort] += shares_apart(n);
}

/* What comes from other shares: a row of `slot` words for each. */
struct Region {
    u64 *words;
    u64 slot;
};

INLINE Region came(const Loop &n) { return Region{n.came, n.slot}; }
INLINE Region replied(const Loop &n) { return Region{n.replied, n.reply_slot}; }

/* Put the boxes for other shares, or replies, into a region of theirs; what their bytes count as is
 * `sort`. */
INLINE void put_boxes(const Loop &n, const Region &region, u32 sort) {
    const Between &b = n.b;
    u64 bytes = 0;
    for (u32 t = 0; t < b.shares; t++) {
        if (!is_apart(n, t)) continue;
        const u64 *box = sort == ANSWERS ? replies_to(b, t) : b.outbox + b.box[t];
        u64 words = size_of(__ldcg(box));
        if (sort == QUESTIONS) words = (words + QUESTIONS_A_WORD - 1) / QUESTIONS_A_WORD;
        if (sort == ANSWERS) words = (words + ANSWERS_A_WORD - 1) / ANSWERS_A_WORD;
        put_all(n, region.words + row_of(n, b.share, t) * region.slot, box, 1 + words, t);
        bytes += 8 * (1 + words);
    }
    count_sent(n, sort, bytes);
}

/* A piece of a lane of a mask, of up to THREADS words. */
struct Piece {
    u32 lane, at, end; /* where it begins in the mask, and where the lane ends */
    u32 number;        /* of all pieces */
};

/* Words of a lane, and its pieces. */
INLINE u32 lane_words(const Between &b) { return b.dwords / b.lanes; }
INLINE u32 pieces_of(const Between &b) { return (lane_words(b) + THREADS - 1) / THREADS; }
INLINE u32 all_pieces(const Between &b) { return b.lanes * pieces_of(b); }

/* Piece k of those that this device has. */
INLINE Piece piece_of(const Between &b, u32 k) {
    const u32 words = lane_words(b), pieces = pieces_of(b), own = k / pieces;
    const u32 lane = b.index + own * devices_of(b), first = k - own * pieces;
    return Piece{lane, lane * words + first * THREADS, (lane + 1) * words, lane * pieces + first};
}

/* The word of numbers here that a mask has at a place. */
INLINE u32 word_at(const Between &b, u32 at) {
    const u32 words = lane_words(b), lane = at / words, in = at - lane * words;
    return (in / 32 * b.own_lanes + lane / devices_of(b)) * 32 + (in & 31);
}

/* Calls take(share, row) for the share of each other domain that has a lane of delegates: with the
 * row of what this domain has written there, or of what is here of its domain. */
template <class Take>
INLINE void each_with(const Between &b, u32 lane, bool written, const Take &take) {
    for (u32 k = 0; k < b.domains; k++) {
        if (k == b.domain) continue;
        const u32 writer = written ? b.domain : k, reader = written ? k : b.domain;
        take(b.homes[k * b.lanes + lane], (u64)(writer - (writer > reader)));
    }
}

/* Put the delegates that this share alone knows of, pieces of a mask that have some.  A block that
 * is late may find those that others of its blocks have just heard of, too: they are known then. */
INLINE void put_masks(const Loop &n, const u32 *now, u64 epoch) {
    const Between &b = n.b;
    const u32 own = b.own_lanes * pieces_of(b);
    for (u32 k = blockIdx.x; k < own; k += gridDim.x) {
        const Piece piece = piece_of(b, k);
        const u32 at = piece.at + threadIdx.x, w = word_at(b, at);
        const u32 fresh = at < piece.end ? __ldcg(now + w) & ~b.known[w] : 0;
        if (at < piece.end) b.found[at] = fresh;
        if (!__syncthreads_or(fresh != 0)) continue;
        const u32 some = piece.end - piece.at < THREADS ? piece.end - piece.at : THREADS;
        each_with(b, piece.lane, true, [&](u32 t, u64 row) {
            const u32 pe = n.elements[t];
            put_block(n.masks + row * b.dwords + piece.at, b.found + piece.at, 4 * some, pe);
            if (threadIdx.x == 0) put_word(n.dated + row * all_pieces(b) + piece.number, epoch, pe);
        });
        if (threadIdx.x) continue;
        *(volatile u64 *)n.masked = epoch;
        atomicAdd(n.told + BYTES + MASKS, (u64)(b.domains - 1) * (4 * some + 8));
        atomicAdd(n.told + BYTES + SORTS + MASKS, (u64)(b.domains - 1));
    }
}

/* Calls take(share, box) for the box that came from each other share. */
template <class Take>
INLINE void each_box(const Loop &n, const Region &region, const Take &take) {
    for (u32 t = 0; t < n.b.shares; t++)
        if (is_apart(n, t)) take(t, region.words + row_of(n, t, n.b.share) * region.slot);
}

/* As `each_item`. */
struct Came {
    const Loop &n;
    const Region region;
    template <class Take> __device__ __forceinline__ void operator()(const Take &take) const {
        each_box(n, region, [&](u32 share, const u64 *box) {
            each_of(box + 1, size_of(__ldcg(box)), share, threadIdx.x & 31, take);
        });
    }
};

INLINE Letter letter_in(u32 share, const u64 *box) {
    return Letter{(const u32 *)(box + 1), share, size_of(__ldcg(box))};
}

/* The shares that have sent a mask, as bits. */
INLINE u64 masks_of(const Loop &n, const Heard &heard) {
    u64 who = 0;
    for (u32 t = 0; t < n.b.shares; t++)
        if (is_apart(n, t) && heard.signal[t] & 1) who |= 1ull << t;
    return who;
}

/* The delegates that others found in this level; who: see `masks_of`. */
INLINE void take_masks(const Loop &n, const State &s, u64 who, u64 epoch) {
    const Between &b = n.b;
    const u32 words = lane_words(b), pieces = pieces_of(b);
    if (!who) return;
    admit_delegates(b, s, [&](u32 at) {
        const u32 lane = at / words, piece = lane * pieces + (at - lane * words) / THREADS;
        u32 all = 0;
        each_with(b, lane, false, [&](u32 share, u64 row) {
            if (!(who >> share & 1)) return;
            /* mutant: __ldcg(n.dated + row * all_pieces(b) + piece) == epoch -> true
             * : test_masks_of_several_pieces */
            if (__ldcg(n.dated + row * all_pieces(b) + piece) == epoch)
                all |= __ldcg(n.masks + row * b.dwords + at);
        });
        return all;
    });
}

/* What all shares have counted; one block leaves what follows in `next`.  False: see `hear`. */
INLINE bool tally_up(const Loop &n, const State &s, u64 turn, Heard &heard, u64 *sums) {
    const Between &b = n.b;
    const u64 date = turn % ((1 << DATED) - 1); /* a count of -1 is no FAILURE */
    u64 *tallies = n.tallies + (turn & 1) * b.shares * COUNTS;
    for (u32 i = threadIdx.x; i < b.shares * COUNTS; i += THREADS) {
        const u32 t = i / COUNTS, c = i - t * COUNTS;
        const u64 x = __ldcg(b.counts + c) << DATED | date;
        u64 *to = tallies + b.share * COUNTS + c;
        if (t == b.share) *to = x;
        else put_word(to, x, n.elements[t]);
    }
    if (threadIdx.x == THREADS - 1) make_frontier(b, s); /* while the others' are on their way */
    const bool fine = all_hear(n, heard, [&] {
        u32 fault = 0;
        for (u32 i = threadIdx.x; i < b.shares * COUNTS; i += THREADS) {
            const u32 t = i / COUNTS;
            const auto there = [&](u64 x) { return x << (64 - DATED) == date << (64 - DATED); };
            if (t != b.share && wait_for(n, TALLIES, t, tallies + i, there) == FAILURE)
                fault = 1 + t;
        }
        return fault;
    });
    if (!fine) return false;
    sum_counts(b, tallies, sums, DATED);
    const u32 does = chosen(b, sums);
    if (threadIdx.x == 0) {
        /* mutant: -= sums[DELEGATES] / b.domains -> = 0
         * : test_between_loop::test_levels_and_parents */
        n.next->does = does, n.next->hidden -= sums[DELEGATES] / b.domains;
        n.next->asks = sums[UNKNOWN] != 0;
        n.next->wide = sums[OUTER] >= (u64)n.wide * b.shares;
    }
    for (u32 i = threadIdx.x; does && i < UNKNOWN; i += THREADS) b.counts[i] = 0;
    __syncthreads();
    return true;
}

/* All blocks meet; whether each of them is fine.
 * next: shared, receives what the next level does, unless null */
INLINE bool meet_fine(const Loop &n, u32 &turn, bool fine, Next *next = 0) {
    const u32 words = next ? sizeof(Next) / 8 : 0;
    return !grid_sum(&n.b.own.control->barrier, turn, threadIdx.x == 0 && !fine,
                     (const u64 *)n.next, words, (u64 *)next);
}

/* What was put is where it goes, and what others have in return has come: questions or items, then
 * answers.  False: see `hear`.
 * stays: the boxes are written anew when this returns, so all blocks must have put theirs */
INLINE bool pass_on(const Loop &n, u32 signal, u64 epoch, bool stays, Heard &heard, u32 &turn) {
    all_put();
    bool tells = blockIdx.x == 0;
    if (stays) grid_sum(&n.b.own.control->barrier, turn, 0);
    else tells = comes_last(n);
    if (tells && threadIdx.x == 0)
        tell(n, signal, epoch << 1 | (__ldcg(n.masked) == epoch));
    return hear(n, signal, epoch, heard);
}

/* A level of the inner graph; false: a device of the domain is waited for in vain. */
INLINE bool search_inner(const Loop &n, u32 *room, State &s, u32 &turn) {
#if SEVERAL
    if (!meet_fine(n, turn, search_level(n.b, room))) return false;
    s = *n.b.own.state;
#else
    search_level(n.b, room, turn, s);
#endif
    return true;
}

/* One level, but for its counts; false: a share is waited for in vain. */
INLINE bool one_level(const Loop &n, u32 *room, u32 does, bool hides, bool wide, u64 epoch,
                      State &s, Heard &heard, u32 &turn) {
    const Between &b = n.b;
    const u32 lane = threadIdx.x & 31, warps = gridDim.x * WARPS;
    const u32 warp = (threadIdx.x >> 5) * gridDim.x + blockIdx.x;
    const bool asks = does & ASKS, early = does & PUSHES && wide;
    if (does & PUSHES) push_outer(b, s, warp, warps, lane);
    if (early) {
        grid_sum(&b.own.control->barrier, turn, 0);
        put_boxes(n, came(n), ITEMS);
    }
    if (!search_inner(n, room, s, turn)) return false;
    if (asks) {
        ask_outer(b, s, warp, warps, lane);
        grid_sum(&b.own.control->barrier, turn, 0);
    }
    if (hides) put_masks(n, newest(b.own, s), epoch);
    if (!early) put_boxes(n, came(n), asks ? QUESTIONS : ITEMS);
    bool fine = pass_on(n, BOXES, epoch, false, heard, turn);
    const u64 who = masks_of(n, heard);
    if (asks) {
        if (fine)
            each_box(n, came(n), [&](u32 share, const u64 *box) {
                answer_letter(b, s, letter_in(share, box), lane);
            });
        if (!meet_fine(n, turn, fine)) return false;
        put_boxes(n, replied(n), ANSWERS);
        fine = pass_on(n, REPLIES, epoch, false, heard, turn);
    }
    if (fine) {
        take_masks(n, s, who, epoch);
        if (asks)
            each_box(n, replied(n), [&](u32 share, const u64 *box) {
                take_letter(b, s, letter_in(share, box), lane);
            });
        else if (does & PUSHES) Came{n, came(n)}(Items{b, s});
    }
    fine = meet_fine(n, turn, fine);
    return fine;
}

/* Count a level and choose the next one; false: as `one_level`. */
INLINE bool count_level(const Loop &n, const State &s, u64 epoch, Heard &heard, u64 *sums,
                        Next &next, u32 &turn) {
    bool fine = true;
    empty_boxes(n.b);
    count_found(n.b, s);
    if (comes_last(n)) fine = tally_up(n, s, epoch, heard, sums);
    fine = meet_fine(n, turn, fine, &next);
    return fine;
}

/* The parents of this share's own delegates that others have; false: as `one_level`. */
INLINE bool swap_parents(const Loop &n, u64 epoch, Heard &heard, u32 &turn) {
    const Between &b = n.b;
    Barrier *barrier = &b.own.control->barrier;
    ask_for_parents(b);
    grid_sum(barrier, turn, 0);
    put_boxes(n, came(n), PARENTS);
    bool fine = pass_on(n, BOXES, epoch, true, heard, turn);
    empty_boxes(b);
    if (!meet_fine(n, turn, fine)) return false;
    Came{n, came(n)}(ParentQuestions{b, newest(b.own, *b.own.state)});
    grid_sum(barrier, turn, 0);
    put_boxes(n, replied(n), PARENTS);
    fine = pass_on(n, REPLIES, epoch, false, heard, turn);
    if (fine) Came{n, replied(n)}(ParentAnswers{b});
    return meet_fine(n, turn, fine);
}

/* Forget the last search; the roots of this one are the frontier. */
INLINE void begin_search(const Loop &n, Next &next, u32 &turn) {
    const Between &b = n.b;
    Barrier *barrier = &b.own.control->barrier;
    clear_other(b.own);
    forget(b);
    if (blockIdx.x == 0) {
        if (threadIdx.x < TOLD) n.told[threadIdx.x] = 0;
        if (threadIdx.x == 0) *n.next = Next{b.begins, n.hidden, 0, 0};
    }
    meet_fine(n, turn, true, &next);
    if (!b.own.from_set) return;
    admit_roots(b);
    grid_sum(barrier, turn, 0);
    const State s = *b.own.state;
    count_found(b, s);
    if (comes_last(n)) {
        if (threadIdx.x == 0) make_frontier(b, s);
        __syncthreads();
        for (u32 i = threadIdx.x; i < COUNTS; i += THREADS) b.counts[i] = 0;
    }
    grid_sum(barrier, turn, 0);
}

/* The end of a search, before results; false: as `search_inner`. */
INLINE bool end_search(const Loop &n, u32 *room, u32 &turn) {
    const Between &b = n.b;
    code_delegates(b);
    grid_sum(&b.own.control->barrier, turn, 0);
    level_leaves(b, room);
#if SEVERAL
    clean_replicas(b);
    return !look_system(&b.mailbox[b.index]->failed);
#else
    return true;
#endif
}

/* A search has failed: nobody waits for this device any more; one thread. */
INLINE void give_up(const Loop &n) {
    for (u32 kind = 0; kind < SIGNALS; kind++) tell(n, kind, FAILURE);
#if SEVERAL
    const Between &b = n.b;
    const u64 failed = look_system(&b.mailbox[b.index]->failed);
    if (!failed) give_up(b, 1 + b.index);
    else if (!n.told[FAULT]) n.told[FAULT] = 1 + b.homes[b.domain * b.lanes + failed - 1];
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) loop(const __grid_constant__ Loop n) {
    extern __shared__ uint4 dynamic[];
    __shared__ Heard heard;
    __shared__ u64 sums[COUNTS];
    __shared__ Next next;
    const Between &b = n.b;
    const u64 before = *n.turn;
    u32 turn = 0, levels = 0;
    bool fine = true;
    begin_search(n, next, turn);
    while (fine && next.does & GOES) {
        const u64 epoch = before + ++levels;
        State s = *b.own.state;
        fine = one_level(n, (u32 *)dynamic, (u32)next.does, next.hidden, next.wide, epoch, s, heard,
                         turn) &&
               count_level(n, s, epoch, heard, sums, next, turn);
    }
    const u64 last = before + levels + 1;
    if (fine && n.parents && next.asks) fine = swap_parents(n, last, heard, turn);
    if (fine) fine = end_search(n, (u32 *)dynamic, turn);
    if (blockIdx.x || threadIdx.x) return;
    if (!fine) give_up(n);
    b.own.state->phase = DONE;
    *n.turn = last, n.told[LEVELS] = levels;
}
