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
 *
 * Data: between.cuh, search.cuh.  Sources: those of search.cu; Pan, Pearce, Owens 2018,
 * Sections IV and V (delegates and normal vertices between parts).
 *
 * variants: OFFSET=u32,u64 COUNT=0,1 IN_IDS=1 SEVERAL=0,1 NAME=u32,u64 SPLIT=0 | OFFSET=u64 COUNT=0,1 IN_IDS=1 SEVERAL=0,1 NAME=u32,u64 SPLIT=1 | OFFSET=u32,u64 COUNT=0,1 IN_IDS=1 SEVERAL=0,1 NAME=u32,u64 SPLIT=0 MASKED=1 | OFFSET=u64 COUNT=0,1 IN_IDS=1 SEVERAL=0,1 NAME=u32,u64 SPLIT=1 MASKED=1
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

/* The number of the root, NONE where this device does not have it, or it has no edges. */
INLINE u32 root_here(const Between &b) {
    if (b.delegate == NONE) return b.own.root == ELSEWHERE ? NONE : b.own.numbers[b.own.root];
#if SEVERAL
    const Owner to = owner_of(b, b.delegate);
    return to.part == b.index ? to.number : NONE;
#else
    return b.delegate;
#endif
}

INLINE void zero(u64 *words, u64 count) {
    for (u64 i = (u64)blockIdx.x * THREADS + threadIdx.x; i < count; i += (u64)gridDim.x * THREADS)
        words[i] = 0;
}

/* Forget the last search; the root, where this part knows it. */
extern "C" __global__ void __launch_bounds__(THREADS) begin(const __grid_constant__ Between b) {
    const Params &p = b.own;
    zero((u64 *)b.sent, b.sent_words / 2); /* two a word, as of known */
    zero((u64 *)b.known, b.normals / 64);
    zero((u64 *)p.control, sizeof(Control) / 8);
    zero((u64 *)p.other, sizeof(Control) / 8);
    zero(b.counts, COUNTS);
    zero(b.sizes, 2 * b.shares);
    if (blockIdx.x || threadIdx.x) return;
    const u32 root = root_here(b);
    const bool some = root != NONE;
    State s = {PUSHING, 0, 0, 0, 0, 0, 0, 0, 0, 1, START};
    Mail *mail = b.mail;
    mail[0].size = mail[0].edges = mail[0].hubs = 0;
    mail[1] = mail[2] = mail[0];
    b.idle[0] = b.idle[1] = 0, *b.filled = 1;
    if (some) {
        const OFFSET row = p.row[root];
        const u32 degree = degree_at(p, root, row);
        p.queue[0][0] = make_uint4(root, 0, (u32)row, degree);
        p.hub_queue[0][0] = root;
        mail[0].size = (u64)degree << 32 | 1, mail[0].edges = degree, mail[0].hubs = root < p.hubs;
        atomicOr(p.snapshot + (root >> 5), 1u << (root & 31));
        p.direct[root] = 0;
        if (p.parents) p.parent[root] = position_here(b, root);
    }
    *p.state = s, b.does[0] = b.begins, b.does[1] = 0;
#if SEVERAL
    b.device->joint.now = b.device->joint.complete = 0;
#endif
}

/* The roots of a set that this device knows, after `begin`. */
extern "C" __global__ void __launch_bounds__(THREADS) begin_roots(const __grid_constant__ Between b) {
    const Params &p = b.own;
    const State s = *p.state;
    const u32 lane = threadIdx.x & 31;
    for (u64 i = blockIdx.x * (u64)THREADS + threadIdx.x; i - lane < p.root_count;
         i += (u64)gridDim.x * THREADS) {
        bool some = i < p.root_count;
        const u32 v = some ? p.roots[i] : 0;
        admit<1>(b, s, &some, &v, lane);
        if (some && p.parents) p.parent[v] = position_here(b, v);
    }
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
    each_letter(b, [&](const Letter &letter) { answer_letter(b, s, letter); });
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
#endif
}

/* Empty the boxes, when what was in them is where it goes. */
extern "C" __global__ void __launch_bounds__(THREADS) empty(const __grid_constant__ Between b) {
    empty_boxes(b);
}

/* Tell the sizes of boxes, and of what came, where its boxes are here; the own ones are sent, and
 * empty, then.  A box for which there was more than its room is full. */
extern "C" __global__ void __launch_bounds__(THREADS) tell_sizes(const __grid_constant__ Between b) {
    if (skips(b)) return;
    for (u32 i = threadIdx.x; i < b.shares; i += THREADS) {
        const u32 size = size_of(b.outbox[b.box[i]]);
        b.sizes[i] = size;
        if (size && is_beyond(b, i, size - 1)) {
            const u32 room = room_for(b, i);
            b.outbox[b.box[i]] = no_items(b) | room;
            b.sizes[i] = room, b.counts[OVER] = 1;
        }
        if (b.item_step) b.outbox[b.box[i]] = no_items(b);
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
    each_letter(b, [&](const Letter &letter) {
        const u32 asked = b.writer == NONE ? letter.count : (u32)b.sizes[letter.part] - letter.skip;
        take_letter(b, s, letter, asked, threadIdx.x & 31);
    });
}

/* What was found, here and elsewhere, becomes the frontier.  Not yet where more than the first
 * items of a box has still to come. */
extern "C" __global__ void __launch_bounds__(THREADS) settle(const __grid_constant__ Between b) {
    if (skips(b)) return;
    const Params &p = b.own;
    u32 turn = 0;
    clear_other(p);
    empty_boxes(b);
    const bool asks = (b.way ? b.way : *b.does) & ASKS;
    u64 most = 0; /* words */
    for (u32 i = threadIdx.x; i < 2 * b.shares; i += THREADS) {
        const u64 words = asks ? (b.sizes[i] + 1) / 2 : b.sizes[i];
        if (words > most) most = words;
    }
    const bool over = __syncthreads_or(b.first && most > b.first);
    if (blockIdx.x == 0 && most) atomicMax(b.counts + MOST, most);
    if (blockIdx.x == 0 && threadIdx.x == 0) b.counts[OVER] = over;
    if (over) return;
    count_found(b, *p.state, turn);
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

/* The results kernel of results.cu follows. */
extern "C" __global__ void __launch_bounds__(THREADS) end(const __grid_constant__ Between b) {
    if (blockIdx.x == 0 && threadIdx.x == 0) b.own.state->phase = DONE;
#if SEVERAL
    clean_replicas(b);
#endif
}
