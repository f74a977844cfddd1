/* Searches of one part between domains, one level a launch on each device.
 *
 * A level of a part: `outer` puts what its frontier finds in other domains into boxes;
 * `level` searches the inner graph by queue, by marking or by a pull, as search.cu does, or
 * domain.cu on SEVERAL devices, which meet inside (between_level.cuh), and tells which
 * delegates were found; instead of `outer`, before it, `ask` and `answer` may come after it,
 * where few vertices are left; `take_mask` and `take_items` admit what all domains found and
 * what others found here; `settle` counts.  When all is searched, a share asks for the parents
 * of its own delegates that other domains found (`ask_parents` to `take_parents`).  How a level is searched is the domain's own
 * affair; one whose frontier is empty goes on, as the next may come from outside.
 * Rows of the inner graph may have tails in host memory (SPLIT), and where some edges are not seen,
 * inner and outer columns have their bits (MASKED): both in rows.cuh.
 * Where edges lead one way (DIRECTED), pushes follow inner and outer edges out, pulls and questions
 * those in.
 *
 * Data: between.cuh, search.cuh.  Sources: those of search.cu; Pan, Pearce, Owens 2018,
 * Sections IV and V (delegates and normal vertices between parts).
 *
 * variants: OFFSET=u32,u64 COUNT=0 IN_IDS=1 SEVERAL=0,1 SPLIT=0 | OFFSET=u64 COUNT=0 IN_IDS=1 SEVERAL=0,1 SPLIT=1 | OFFSET=u32 COUNT=1 IN_IDS=1 SEVERAL=0,1 SPLIT=0 MASKED=1 | OFFSET=u64 COUNT=1 IN_IDS=1 SEVERAL=0,1 SPLIT=1 MASKED=1 | OFFSET=u64 COUNT=0 IN_IDS=1 SEVERAL=0,1 SPLIT=0 DIRECTED=1 | OFFSET=u64 COUNT=1 IN_IDS=1 SEVERAL=0,1 SPLIT=1 MASKED=1 DIRECTED=1
 */
#include "between_steps.cuh"
#include "results.cuh"

/* Clean bitmaps, after a search that did not come to its end. */
extern "C" __global__ void __launch_bounds__(THREADS) clean_up(const __grid_constant__ Between b) {
    clean(b.own, b.own.snapshot, b.own.by_first);
#if SEVERAL
    clean_replicas(b);
#endif
}

/* Forget the last search; a single root, where this part knows it, is the frontier. */
extern "C" __global__ void __launch_bounds__(THREADS) begin(const __grid_constant__ Between b) {
    zero((u64 *)b.own.control, sizeof(Control) / 8);
    zero((u64 *)b.own.other, sizeof(Control) / 8);
    forget(b);
}

/* The roots of a set that this device knows, after `begin`. */
extern "C" __global__ void __launch_bounds__(THREADS) begin_roots(const __grid_constant__ Between b) {
    admit_roots(b);
}

extern "C" __global__ void __launch_bounds__(THREADS) outer(const __grid_constant__ Between b) {
    if (skips(b)) return;
    const State s = *b.own.state;
    push_outer(b, s, (threadIdx.x >> 5) * gridDim.x + blockIdx.x, gridDim.x * WARPS,
               threadIdx.x & 31);
}

/* The frontier, where boxes are short, before the level. */
extern "C" __global__ void __launch_bounds__(THREADS) front(const __grid_constant__ Between b) {
    mark_front(b, *b.own.state, (threadIdx.x >> 5) * gridDim.x + blockIdx.x, gridDim.x * WARPS,
               threadIdx.x & 31);
}

extern "C" __global__ void __launch_bounds__(THREADS) ask(const __grid_constant__ Between b) {
    if (skips(b)) return;
    const State s = *b.own.state;
    ask_outer(b, s, (threadIdx.x >> 5) * gridDim.x + blockIdx.x, gridDim.x * WARPS,
              threadIdx.x & 31);
}

extern "C" __global__ void __launch_bounds__(THREADS) answer(const __grid_constant__ Between b) {
    if (skips(b)) return;
    const State s = *b.own.state;
    each_letter(b, QUESTIONS_A_WORD, [&](const Letter &letter) {
        answer_letter(b, s, letter, threadIdx.x & 31);
    });
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) level(const __grid_constant__ Between b) {
    if (skips(b)) return;
    extern __shared__ uint4 dynamic[];
#if SEVERAL
    search_level(b, (u32 *)dynamic);
#else
    u32 turn = 0;
    State s = *b.own.state;
    clear_other(b.own);
    search_level(b, (u32 *)dynamic, turn, s);
    tell_delegates(b, newest(b.own, s));
#endif
}

/* Empty the boxes, when what was in them is where it goes. */
extern "C" __global__ void __launch_bounds__(THREADS) empty(const __grid_constant__ Between b) {
    empty_boxes(b);
}

/* Tell the sizes of boxes, or replies, and of what came, where its boxes are here; the own ones are
 * sent then, and empty where they had questions for parents: answers come next.  A box for which
 * there was more than its room is full. */
extern "C" __global__ void __launch_bounds__(THREADS) tell_sizes(const __grid_constant__ Between b) {
    if (skips(b)) return;
    for (u32 i = threadIdx.x; i < b.shares; i += THREADS) {
        const u32 size = size_of(b.replying ? *replies_to(b, i) : b.outbox[b.box[i]]);
        b.sizes[i] = size;
        if (size && is_beyond(b, i, size - 1)) {
            const u32 room = room_for(b, i);
            b.outbox[b.box[i]] = no_items(b) | room;
            b.sizes[i] = room, b.counts[OVER] = 1;
        }
        if (b.item_step && !b.needs) b.outbox[b.box[i]] = no_items(b);
    }
    if (!b.item_step) return;
    for (u32 i = threadIdx.x; i < b.boxes; i += THREADS) {
        const u64 head = b.items[i * b.item_step];
        b.sizes[b.shares + writer_of(head)] = size_of(head);
    }
}

/* Delegates that other domains found. */
extern "C" __global__ void __launch_bounds__(THREADS) take_mask(const __grid_constant__ Between b) {
    if (skips(b)) return;
    admit_delegates(b, *b.own.state, [&](u32 at) {
        u32 all = 0;
        for (u32 k = 0; k < b.masks; k++) all |= b.mask[k * b.dwords + at];
        return all;
    });
}

/* Normal vertices here that other domains found. */
extern "C" __global__ void __launch_bounds__(THREADS) take_items(const __grid_constant__ Between b) {
    if (skips(b)) return;
    const State s = *b.own.state;
    each_item(b, threadIdx.x & 31, Items{b, s});
}

/* Vertices here for which other domains have answered. */
extern "C" __global__ void __launch_bounds__(THREADS) take_answers(const __grid_constant__ Between b) {
    if (skips(b)) return;
    const State s = *b.own.state;
    each_letter(b, ANSWERS_A_WORD, [&](const Letter &letter) {
        take_letter(b, s, letter, threadIdx.x & 31);
    });
}

/* What was found, here and elsewhere, becomes the frontier.  Not yet where more than the first
 * items of a box has still to come: boxes keep theirs until then. */
extern "C" __global__ void __launch_bounds__(THREADS) settle(const __grid_constant__ Between b) {
    if (skips(b)) return;
    const Params &p = b.own;
    u32 turn = 0;
    clear_other(p);
    const bool asks = (b.way ? b.way : *b.does) & ASKS;
    u64 most = 0; /* words */
    for (u32 i = threadIdx.x; i < 2 * b.shares; i += THREADS) {
        /* mutant: (b.sizes[i] + 1) -> b.sizes[i]
         * : test_boxes_with_one_question_more_than_their_first_words */
        const u64 words = asks ? (b.sizes[i] + 1) / 2 : b.sizes[i];
        if (words > most) most = words;
    }
    /* mutant: (b.first -> (false : test_boxes_with_more_than_their_first_items */
    const bool over = __syncthreads_or(b.first && most > b.first);
    if (blockIdx.x == 0 && threadIdx.x == 0) b.counts[OVER] = over;
    if (over) return;
    empty_boxes(b);
    const State s = *p.state;
    count_found(b, s);
    grid_sum(&p.control->barrier, turn, 0);
    if (blockIdx.x == 0 && threadIdx.x == 0) make_frontier(b, s);
}

/* What the next level does, alike on all shares; one block.  Nothing where the search is over,
 * or the host, which is told the counts, has still to bring what is over in a box; else its
 * counts begin anew. */
extern "C" __global__ void __launch_bounds__(THREADS) choose(const __grid_constant__ Between b) {
    __shared__ u64 sums[COUNTS];
    const u32 sizes = 2 * b.shares;
    u64 *report = b.report + b.does[1] * (2 * COUNTS + sizes);
    for (u32 i = threadIdx.x; i < sizes; i += THREADS) report[2 * COUNTS + i] = b.sizes[i];
    sum_counts(b, b.gathered, sums);
    for (u32 c = threadIdx.x; c < COUNTS; c += THREADS)
        report[c] = sums[c], report[COUNTS + c] = b.counts[c];
    __syncthreads();
    const u32 does = chosen(b, sums);
    if (threadIdx.x == 0) b.does[0] = does, b.does[1] ^= 1;
    if (!does) return;
    for (u32 i = threadIdx.x; i < UNKNOWN; i += THREADS) b.counts[i] = 0;
    for (u32 i = threadIdx.x; i < 2 * b.shares; i += THREADS) b.sizes[i] = 0;
}

/* Ask other domains for the parents of this share's own vertices that they found. */
extern "C" __global__ void __launch_bounds__(THREADS) ask_parents(const __grid_constant__ Between b) {
    ask_for_parents(b);
}

/* Name the parents of delegates that their owners ask for and this device found. */
extern "C" __global__ void __launch_bounds__(THREADS) answer_parents(const __grid_constant__ Between b) {
    each_item(b, threadIdx.x & 31, ParentQuestions{b, newest(b.own, *b.own.state)});
}

/* The answers.  The own boxes are empty then. */
extern "C" __global__ void __launch_bounds__(THREADS) take_parents(const __grid_constant__ Between b) {
    empty_boxes(b);
    each_item(b, threadIdx.x & 31, ParentAnswers{b});
}

/* The same when the results kernel has run. */
extern "C" __global__ void __launch_bounds__(THREADS) late_parents(const __grid_constant__ Between b) {
    empty_boxes(b);
    each_item(b, threadIdx.x & 31, LateAnswers{b});
}

extern "C" __global__ void __launch_bounds__(THREADS) codes(const __grid_constant__ Between b) {
    code_delegates(b);
}

/* The results kernel of results.cu follows. */
extern "C" __global__ void __launch_bounds__(THREADS) end(const __grid_constant__ Between b) {
    __shared__ uint4 room[LEAF_ROOM / 4];
    level_leaves(b, (u32 *)room);
    if (blockIdx.x == 0 && threadIdx.x == 0) b.own.state->phase = DONE;
#if SEVERAL
    clean_replicas(b);
#endif
}
