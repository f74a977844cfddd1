/* Shortest paths of up to 32 searches over the rows of a domain of devices, which may be one of
 * several: their numbers forward, and Brandes' dependencies backward.
 *
 * Method: searches of one traversal, or one search, have found all levels.  Own vertices are
 * listed by level, on each level that a search finds them on, but hubs, which are few.  A sweep
 * forward makes the number of paths to each vertex, level by level, as the sum over its
 * neighbours one level before; a sweep backward makes (1 + dependency) / paths, from the sum of
 * these over its neighbours one level after.  Of each level the host launches on all devices
 *   carry             own vertices of the level sum up their neighbours, read at home; each is
 *                     settled and written to all devices of the domain, but delegates, whose
 *                     edges are in all domains
 * and between several domains
 *   collect           values of vertices that others have edges to become items by the share
 *                     that asked for them; so do sums of delegates, by lane
 *   take              items that have arrived are kept, or added to sums of delegates
 *   settle_delegates  which are then complete
 * and waits for all before the next.  No sum depends on the order of threads.
 *
 * Data: vertices are numbers, columns are positions (positions.cuh).  A row of values has WIDTH
 * numbers, one a search; bits of a word are searches, too.  Values and bits are replicas by
 * position of the vertices of all devices, on every device.  A value is valid where the bits of
 * its level have been set.  An item has two words of 64 bits: where << 32 | search, and the
 * value; `where` is the position of a delegate, else the index of a target at who asked.
 * Sums in float64 are infinite beyond 1.8e308 paths, and then not a number; those in 64 bits, of
 * the sweep forward alone, note where they pass these.
 *
 * Sources: Brandes 2001; Then et al. 2014 (the searches); Pan, Pearce, Owens 2018 (delegates).
 *
 * variants: WIDTH=8,32 VALUE=f64 | WIDTH=1 VALUE=u64,f64
 */
#include "base.cuh"
#include "positions.cuh"

#define THREADS 1024
#define WARPS 32
#define GROUP (32 / WIDTH) /* edges that a warp follows at a time */
#define MOST_PARTS 8
#define ITEM 2
#define EXACT ((VALUE)1 / 2 == 0)
#define RUN 3 /* of a long list, a warp takes runs of 2^RUN vertices */

struct Paths {
    Uints row;            /* [active + 1] */
    const u32 *adj;       /* [m + pad], positions */
    const u32 *digit;     /* [1 + digits][active]: reached, then binary digits of the level; of
                             one search: its levels, NONE where unreached */
    VALUE *values;        /* [positions][WIDTH] */
    u32 *bits[2];         /* [positions]: searches that have a vertex on a level, by parity */
    VALUE *paths;         /* [active][WIDTH], or values where there is no sweep backward */
    double *sums;         /* [active], of dependencies */
    long long shift[MOST_PARTS]; /* bytes from values and bits here to those of a part */
    u64 magic;            /* ceil(2^32 / parts) */
    const u64 *outer_row; /* [active - normals + 1], the outer edges of normals */
    const u32 *outer_adj; /* [outer edges], indices of targets */
    VALUE *far;           /* [targets][WIDTH], their values */
    u32 *far_bits;        /* [targets], searches that have them on the level before */
    const u32 *asked;     /* [asked_first[shares]], numbers of vertices, by who asks */
    const u32 *target;    /* the same, their indices of targets there */
    const u32 *asked_first; /* [shares + 1] */
    u64 *box;             /* [(asked + normals) * WIDTH][ITEM] */
    u64 *sizes;           /* [shares + lanes], items of each */
    u32 *order;           /* [listed], numbers by level without hubs; null: to be counted */
    u64 *cursor;          /* [levels]: 0, then how many are on each, or where they begin */
    u32 *passed;          /* [1], the first level where a sum passes 64 bits, or 0 */
    u64 begin, end;       /* of the level that is made, in `order` */
    u64 old_begin, old_end; /* of the one that was made two levels before */
    const u64 *items;     /* [count][ITEM], what has arrived */
    u64 count;
    u32 active, hubs, digits; /* hubs: rows for a block, a multiple of 32 */
    u32 parts, index;
    u32 normals;          /* the first number of a normal vertex */
    u32 several;          /* whether delegates have edges in other domains, too */
    u32 shares, lanes;    /* lanes of delegates on this device */
    u32 level;            /* the level that is made */
    u32 back, begins;     /* the sweep backward; its first level, which sums up nothing */
    u32 delegates, pad;   /* whether the items are of delegates */
};

/* Searches that have v on a level. */
INLINE u32 on_level(const Paths &p, u32 v, u32 level) {
    if (WIDTH == 1) return p.digit[v] == level;
    u32 bits = p.digit[v];
    for (u32 k = 0; k < p.digits; k++) {
        const u32 set = p.digit[(u64)(k + 1) * p.active + v];
        bits &= level >> k & 1 ? set : ~set;
    }
    return bits;
}

INLINE VALUE plus(const Paths &p, VALUE a, VALUE b) {
    const VALUE sum = a + b;
    /* mutant: sum < b -> false : test_path_counts::test_counts_beyond_64_bits */
    if (EXACT && sum < b) atomicCAS(p.passed, 0u, p.level);
    return sum;
}

/* All devices of the domain learn which searches have v on the level that is made, which are
 * returned; one lane calls it. */
INLINE u32 announce(const Paths &p, u32 v) {
    const u32 bits = on_level(p, v, p.level);
    for (u32 k = 0; k < p.parts; k++)
        of_part(p, p.bits[p.level & 1], k)[position_of(p, v)] = bits;
    return bits;
}

/* Counts the vertices of each level, or lists them. */
extern "C" __global__ void __launch_bounds__(THREADS, 1) list_levels(const Paths p) {
    const u32 lane = lane_id(), warps = gridDim.x * WARPS;
    for (u64 base = p.hubs + ((threadIdx.x >> 5) * gridDim.x + blockIdx.x) * 32; base < p.active;
         base += warps * 32) {
        const u32 v = (u32)base + lane;
        u32 left = v < p.active ? WIDTH == 1 ? p.digit[v] != NONE : p.digit[v] : 0;
        while (__any_sync(ALL, left)) {
            int level = !left ? -1 : WIDTH == 1 ? (int)p.digit[v] : 0;
            for (u32 k = 0; left && k < p.digits; k++) {
                const u32 set = p.digit[(u64)(k + 1) * p.active + v];
                level |= (set >> (__ffs(left) - 1) & 1) << k;
            }
            if (left) left &= ~on_level(p, v, (u32)level);
            each_level(level, [&](int one, u32) {
                const u64 at = take_place(level == one, p.cursor + one);
                if (level == one && p.order) p.order[at] = v;
            });
        }
    }
}

/* The sum of neighbours at, at + step … of a row, 32 edges each time, in the searches of `want`
 * that have them on the level before.  Each lane has the sum of search lane % WIDTH, of every
 * GROUP-th of these neighbours.  All lanes of a warp call it. */
INLINE VALUE follow(const Paths &p, const u32 *adj, const u32 *bits, const VALUE *values, u64 at,
                    u64 end, u64 step, u32 want) {
    const u32 lane = lane_id(), search = lane % WIDTH, group = lane / WIDTH;
    VALUE sum = 0;
    for (; at < end; at += step) {
        u32 u = 0, both = 0;
        if (at + lane < end) {
            u = __ldg(adj + at + lane);
            both = bits[u] & want;
        }
        u32 left = __ballot_sync(ALL, both != 0);
        while (left) {
            const u32 k = (__ffs(left) - 1) / GROUP * GROUP;
            left &= ~(((2u << (GROUP - 1)) - 1) << k);
            const u32 w = __shfl_sync(ALL, u, k + group), hit = __shfl_sync(ALL, both, k + group);
            if (hit >> search & 1) sum = plus(p, sum, values[(u64)w * WIDTH + search]);
        }
    }
    return sum;
}

/* The sum over the neighbours of v, of every `warps`-th 32 of them from `warp` on; the same in
 * all lanes of a search.  All lanes of a warp call it. */
INLINE VALUE sum_of(const Paths &p, u32 v, u32 want, u32 warp, u32 warps) {
    if (p.begins) return p.back || warp ? 0 : 1; /* one path from a source to itself */
    const u32 before = p.level & 1 ^ 1;
    VALUE sum = follow(p, p.adj, p.bits[before], p.values, p.row[v] + (u64)warp * 32, p.row[v + 1],
                       (u64)warps * 32, want);
    if (p.several && v >= p.normals) {
        const u64 *row = p.outer_row + (v - p.normals);
        sum += follow(p, p.outer_adj, p.far_bits, p.far, row[0] + (u64)warp * 32, row[1],
                      (u64)warps * 32, want);
    }
#pragma unroll
    for (u32 s = WIDTH; s < 32; s <<= 1) sum = plus(p, sum, __shfl_xor_sync(ALL, sum, s));
    return sum;
}

/* v has its complete sum, in the lane of each search; all lanes of a warp call it. */
INLINE void settle(const Paths &p, u32 v, u32 want, VALUE sum) {
    const u32 lane = lane_id();
    double dependency = 0;
    if (lane < WIDTH && want >> lane & 1) {
        VALUE *paths = p.paths + (u64)v * WIDTH + lane, value = sum;
        if (!EXACT && p.back) {
            dependency = *paths * sum;
            value = (1 + dependency) / *paths;
        } else *paths = sum;
        const u64 at = (u64)position_of(p, v) * WIDTH + lane;
        for (u32 k = 0; k < p.parts; k++) of_part(p, p.values, k)[at] = value;
    }
    if (EXACT || !p.back) return;
    dependency = warp_sum(dependency);
    if (lane == 0) p.sums[v] += dependency;
}

INLINE void finish(const Paths &p, u32 v, u32 want, VALUE sum) {
    if (!p.several || p.begins || v >= p.normals) settle(p, v, want, sum);
    else if (lane_id() < WIDTH && want >> lane_id() & 1)
        p.values[(u64)position_of(p, v) * WIDTH + lane_id()] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) carry(const Paths p) {
    __shared__ VALUE room[WARPS][WIDTH];
    const u32 lane = lane_id(), own = threadIdx.x >> 5;
    const u32 warp = own * gridDim.x + blockIdx.x, warps = gridDim.x * WARPS;
    for (u64 i = p.old_begin + thread_of(THREADS); i < p.old_end; i += threads_of(THREADS))
        /* as below where they are on this level, too */
        /* mutant: announce(p, p.order[i]) -> : test_domain_paths::test_domains_of_all_kinds */
        announce(p, p.order[i]);
    for (u32 v = blockIdx.x; v < p.hubs; v += gridDim.x) {
        const u32 want = on_level(p, v, p.level);
        if (threadIdx.x == 0) announce(p, v);
        if (!want) continue; /* the same for all threads of the block */
        VALUE sum = sum_of(p, v, want, own, WARPS);
        if (lane < WIDTH) room[own][lane] = sum;
        __syncthreads();
        if (own == 0) {
            sum = 0;
            for (u32 k = 0; k < WARPS && lane < WIDTH; k++) sum = plus(p, sum, room[k][lane]);
            finish(p, v, want, sum);
        }
        __syncthreads();
    }
    const u32 run = p.end - p.begin < warps * 32 ? 0 : RUN; /* few: one for each warp */
    for (u64 base = p.begin; base < p.end; base += warps * 32) {
        const u64 i = base + (((lane >> run) * warps + warp) << run) + (lane & (1u << run) - 1);
        const u32 v = i < p.end ? p.order[i] : 0, want = i < p.end ? announce(p, v) : 0;
        for (u32 left = __ballot_sync(ALL, want != 0); left; left &= left - 1) {
            const u32 k = __ffs(left) - 1, some = __shfl_sync(ALL, want, k);
            const u32 u = __shfl_sync(ALL, v, k);
            finish(p, u, some, sum_of(p, u, some, 0, 1));
        }
    }
}

/* Values of the level's vertices number(k), k < count, become items from `first` on, but those
 * that are 0, which add nothing; where(k): see ITEM.  Whole warps call it. */
template <class Number, class Where>
INLINE void pack(const Paths &p, u32 count, u64 first, u64 *size, const Number &number,
                 const Where &where) {
    const u32 lane = lane_id(), warps = gridDim.x * WARPS;
    const u64 *values = (const u64 *)p.values;
    for (u32 base = ((threadIdx.x >> 5) * gridDim.x + blockIdx.x) * 32; base < count;
         base += warps * 32) {
        const u32 k = base + lane;
        u32 some = 0;
        u64 from = 0;
        if (k < count) {
            const u32 at = position_of(p, number(k));
            from = (u64)at * WIDTH;
            for (u32 bits = p.bits[p.level & 1][at]; bits; bits &= bits - 1) {
                const u32 i = __ffs(bits) - 1;
                if (values[from + i]) some |= 1u << i;
            }
        }
        u64 to = first + take_run(__popc(some), size);
        for (; some; some &= some - 1, to++) {
            const u32 i = __ffs(some) - 1;
            p.box[to * ITEM] = (u64)where(k) << 32 | i;
            p.box[to * ITEM + 1] = values[from + i];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) collect(const Paths p) {
    const u32 *first = p.asked_first;
    for (u32 s = 0; s < p.shares; s++)
        pack(p, first[s + 1] - first[s], (u64)first[s] * WIDTH, p.sizes + s,
             [&](u32 k) { return p.asked[first[s] + k]; },
             [&](u32 k) { return p.target[first[s] + k]; });
    if (p.begins) return; /* delegates are settled in every domain */
    const u32 each = p.normals / p.lanes;
    for (u32 j = 0; j < p.lanes; j++) {
        const auto number = [&](u32 k) { return position_in(k, p.lanes, j); };
        pack(p, each, ((u64)first[p.shares] + (u64)j * each) * WIDTH, p.sizes + p.shares + j,
             number, [&](u32 k) { return position_of(p, number(k)); });
    }
}

/* No vertex and search is in the items twice. */
extern "C" __global__ void __launch_bounds__(THREADS, 1) take(const Paths p) {
    for (u64 t = thread_of(THREADS); t < p.count; t += threads_of(THREADS)) {
        const u64 *item = p.items + t * ITEM;
        const u32 where = (u32)(item[0] >> 32), search = (u32)item[0] & 31;
        const VALUE value = *(const VALUE *)(item + 1);
        /* mutant: += -> = : test_rows_of_every_length */
        if (p.delegates) p.values[(u64)where * WIDTH + search] += value;
        else {
            p.far[(u64)where * WIDTH + search] = value;
            atomicOr(p.far_bits + where, 1u << search);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) settle_delegates(const Paths p) {
    const u32 lane = lane_id(), warps = gridDim.x * WARPS;
    for (u32 base = ((threadIdx.x >> 5) * gridDim.x + blockIdx.x) * 32; base < p.normals;
         base += warps * 32) {
        const u32 v = base + lane, at = position_of(p, v);
        const u32 want = v < p.normals ? p.bits[p.level & 1][at] : 0;
        for (u32 left = __ballot_sync(ALL, want != 0); left; left &= left - 1) {
            const u32 k = __ffs(left) - 1, some = __shfl_sync(ALL, want, k);
            const u64 from = (u64)__shfl_sync(ALL, at, k) * WIDTH;
            settle(p, base + k, some, lane < WIDTH ? p.values[from + lane] : 0);
        }
    }
}
