/* Rows from edge tuples or keys: grouped, sorted and cut by all threads.
 *
 * Method: keys are grouped by their high bits as they come, one run after the other
 * (count, then place).  A bucket is then gathered from all runs into the cache, sorted by
 * the digits that differ (radix sort, least first), and is overwritten by its columns,
 * without loops and repeats; when all buckets are counted the columns are
 * copied to their places.  Beside keys and columns a thread takes room for a bucket
 * and CACHED keys.  Data encoding: key = row << bits | column; bucket = key >> shift; row =
 * slot * local + local id; vertex = local id * parts + part.
 */
#include <stdlib.h>
#include <string.h>
#include "../device/team.h"

#define TILE 512       /* items whose keys are made together */
#define DIGIT 11       /* most bits of a digit, 8 where keys are few */
#define FEW 4096       /* keys */
#define CACHED 131072  /* keys that are sorted with as much room beside them */
#define SHORT 24       /* keys that are sorted by insertion */
#define GRAIN 16384    /* vertices that a thread takes at once */
#define CLASSES 128    /* whose counts a thread adds up at once */
#define PAGE 4096
#define LARGE_PAGE (1 << 21)
enum { BOTH, FORTH, BACK };

/* Directed edges of tuples (u, v: [count]), or of keys row << 32 | column (v: NULL).
 * A loop of tuples comes once.  slots: [parts / ranks] of a device, -1 for none.
 * shift: of buckets; -1: keys are grouped by rank */
typedef struct {
    const int64_t *u, *v;
    int64_t count, n, way, parts, ranks, local;
    const int64_t *slots;
    int64_t bits, shift;
} items;

/* counts: [pieces][classes] of a piece, 2^32 - 1 in all at most, then where the next one
 * of the piece goes, from the first of its class on; starts: [classes + 1] of each class */
typedef struct {
    int64_t classes, pieces;
    uint32_t *counts;
    int64_t *starts;
} table;

static void add_pieces(void *argument, int64_t from, int64_t to) {
    table *t = argument;
    for (int64_t c = from; c < to; c++) t->starts[c + 1] = 0;
    for (int64_t p = 0; p < t->pieces; p++)
        for (int64_t c = from; c < to; c++) {
            uint32_t *count = t->counts + p * t->classes + c, size = *count;
            /* mutant: (uint32_t)t->starts[c + 1] -> 0 : test_keys_are_sorted */
            *count = (uint32_t)t->starts[c + 1];
            t->starts[c + 1] += size;
        }
}

/* Turn counts into places; returns how many there are in all. */
static int64_t find_places(table *t, int threads) {
    team_for(threads, t->classes, CLASSES, add_pieces, t);
    t->starts[0] = 0;
    for (int64_t c = 0; c < t->classes; c++) t->starts[c + 1] += t->starts[c];
    return t->starts[t->classes];
}

/* The counts of a piece, set to 0, or where its next ones go. */
static inline uint32_t *piece_counts(const table *t, int64_t piece, int place) {
    uint32_t *at = t->counts + piece * t->classes;
    if (!place) memset(at, 0, sizeof *at * (size_t)t->classes);
    for (int64_t c = 0; place && c < t->classes; c++) at[c] += (uint32_t)t->starts[c];
    return at;
}

/* piece: items of one; keys: [starts[classes]] by class, NULL while they are counted */
typedef struct {
    items edges;
    table at;
    int64_t piece;
    uint64_t *keys;
    int64_t outside;
} grouping;

static inline int put(const items *t, uint64_t row, uint64_t column, uint64_t *key,
                      uint32_t *class) {
    uint64_t part = 0;
    int64_t slot = 0;
    if (t->parts > 1) {
        part = row % (uint64_t)t->parts;
        row /= (uint64_t)t->parts;
        slot = t->slots[part / (uint64_t)t->ranks];
        row += (uint64_t)(slot * t->local);
    }
    *key = row << t->bits | column;
    /* mutant: part % -> part / : test_keys_for_ranks */
    *class = (uint32_t)(t->shift < 0 ? part % (uint64_t)t->ranks : *key >> t->shift);
    return slot >= 0;
}

/* keys, classes: [2 * TILE]; returns how many */
static inline int make_keys(const items *t, int64_t from, int64_t to, uint64_t *keys,
                            uint32_t *classes) {
    int made = 0;
    for (int64_t k = from; k < to; k++) {
        uint64_t u = (uint64_t)t->u[k], v;
        if (t->v)
            v = (uint64_t)t->v[k];
        else
            v = u & UINT32_MAX, u >>= 32;
        if (t->way != BACK) made += put(t, u, v, keys + made, classes + made);
        if (t->way == BACK || (t->way == BOTH && u != v))
            made += put(t, v, u, keys + made, classes + made);
    }
    return made;
}

static int all_inside(const items *t, int64_t from, int64_t to) {
    uint64_t most = 0, n = (uint64_t)t->n;
    for (int64_t k = from; k < to; k++) {
        uint64_t u = (uint64_t)t->u[k], v = (uint64_t)t->v[k];
        most = u > most ? u : most;
        most = v > most ? v : most;
    }
    return from == to || most < n;
}

static void group_pieces(void *argument, int64_t from, int64_t to) {
    grouping *g = argument;
    uint64_t keys[2 * TILE];
    uint32_t classes[2 * TILE];
    for (int64_t piece = from; piece < to; piece++) {
        uint32_t *at = piece_counts(&g->at, piece, g->keys != NULL);
        int64_t last = (piece + 1) * g->piece;
        if (last > g->edges.count) last = g->edges.count;
        for (int64_t k = piece * g->piece; k < last; k += TILE) {
            int64_t end = k + TILE < last ? k + TILE : last;
            if (!g->keys && g->edges.v && !all_inside(&g->edges, k, end)) {
                __atomic_store_n(&g->outside, 1, __ATOMIC_RELAXED);
                return;
            }
            int made = make_keys(&g->edges, k, end, keys, classes);
            if (g->keys)
                for (int j = 0; j < made; j++) g->keys[at[classes[j]]++] = keys[j];
            else
                for (int j = 0; j < made; j++) at[classes[j]]++;
        }
    }
}

/* Count the keys of items; returns how many, -1 where an end is outside. */
int64_t count_keys(grouping *g, int threads) {
    team_for(threads, g->at.pieces, 1, group_pieces, g);
    return g->outside ? -1 : find_places(&g->at, threads);
}

/* Write the keys that count_keys has counted. */
void place_keys(grouping *g, int threads) {
    team_for(threads, g->at.pieces, 1, group_pieces, g);
}

/* The keys of a bucket, and room for CACHED beside them; grown as need be. */
typedef struct {
    uint64_t *keys, *beside;
    int64_t room;
} scratch;

static int make_room(scratch *s, int64_t count) {
    if (count <= s->room) return 1;
    free(s->keys);
    int64_t beside = count < CACHED ? count : CACHED;
    s->room = count;
    s->keys = malloc(sizeof(uint64_t) * (size_t)(count + beside));
    s->beside = s->keys + count;
    if (!s->keys) s->room = 0;
    return s->keys != NULL;
}

static void sort_short(uint64_t *keys, int64_t count) {
    for (int64_t i = 1; i < count; i++) {
        uint64_t key = keys[i];
        int64_t j = i;
        for (; j && keys[j - 1] > key; j--) keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

/* at[d] becomes the number of keys whose digit is less; at: [mask + 1] */
static void count_digits(const uint64_t *keys, int64_t count, int shift, uint64_t mask,
                         int64_t *at) {
    int64_t next = 0;
    memset(at, 0, sizeof *at * (mask + 1));
    for (int64_t i = 0; i < count; i++) at[keys[i] >> shift & mask]++;
    for (uint64_t d = 0; d <= mask; d++) {
        int64_t size = at[d];
        at[d] = next;
        next += size;
    }
}

/* Sort keys[count] by `bits` bits from `low` on, least first; beside: [count] */
static void sort_cached(uint64_t *keys, uint64_t *beside, int64_t count, int low,
                        int bits) {
    int most = count < FEW ? 8 : DIGIT, passes = (bits + most - 1) / most;
    int width = (bits + passes - 1) / passes;
    uint64_t mask = (UINT64_C(1) << width) - 1, *from = keys, *to = beside;
    int64_t at[1 << DIGIT];
    /* mutant: < low -> + width < low : test_keys_are_sorted */
    for (int shift = low; shift < low + bits; shift += width) {
        count_digits(from, count, shift, mask, at);
        for (int64_t i = 0; i < count; i++) to[at[from[i] >> shift & mask]++] = from[i];
        uint64_t *other = from;
        from = to;
        to = other;
    }
    if (from != keys) memcpy(keys, from, sizeof(uint64_t) * (size_t)count);
}

/* Sort keys[count]; more than CACHED are first parted in place by their highest digit
 * (American flag sort).  beside: [CACHED or count] */
static void sort_keys(uint64_t *keys, uint64_t *beside, int64_t count) {
    uint64_t differ = 0;
    if (count <= SHORT) {
        sort_short(keys, count);
        return;
    }
    for (int64_t i = 1; i < count; i++) differ |= keys[i] ^ keys[0];
    if (!differ) return;
    int low = __builtin_ctzll(differ), high = 64 - __builtin_clzll(differ);
    if (count <= CACHED) {
        sort_cached(keys, beside, count, low, high - low);
        return;
    }
    int64_t at[256], end[256];
    int shift = high > 8 ? high - 8 : 0;
    count_digits(keys, count, shift, 255, at);
    for (int d = 0; d < 255; d++) end[d] = at[d + 1];
    end[255] = count;
    for (uint64_t d = 0; d < 256; d++)
        for (; at[d] < end[d]; at[d]++) {
            uint64_t key = keys[at[d]], digit;
            while ((digit = key >> shift & 255) != d) {
                uint64_t other = keys[at[digit]];
                keys[at[digit]++] = key;
                key = other;
            }
            keys[at[d]] = key;
        }
    for (int64_t d = 0, from = 0; d < 256; from = end[d++])
        sort_keys(keys + from, beside, end[d] - from);
}

/* Keys in runs: those of bucket b in run r are starts[r][b] … starts[r][b + 1].
 *
 * keys: [starts[runs - 1][buckets]]; starts: [runs][buckets + 1]; width: bytes of a
 * column, 4 or 8; distinct: drop loops and repeats; loop_ends: what a loop counts as
 * part_of: [slots]; ends, lengths: [rows], raised; loops: [slots], raised;
 * kept: [buckets] columns; places: [buckets] of the first of them; columns: [all kept]
 * ends, loops, part_of: for distinct keys alone
 */
typedef struct {
    uint64_t *keys;
    const int64_t *starts;
    int64_t runs, buckets, bits, width, distinct, loop_ends, parts, local;
    const int64_t *part_of;
    int64_t *ends, *lengths, *loops, *kept;
    const int64_t *places;
    char *columns;
    int64_t next, last, no_memory;
} bucket_set;

static int64_t bucket_size(const bucket_set *s, int64_t bucket) {
    int64_t size = 0;
    for (int64_t r = 0; r < s->runs; r++) {
        const int64_t *at = s->starts + r * (s->buckets + 1) + bucket;
        size += at[1] - at[0];
    }
    return size;
}

/* Write columns over sorted keys and count them by row; returns how many. */
static int64_t squeeze(const bucket_set *s, uint64_t *keys, int64_t count) {
    char *out = (char *)keys;
    uint64_t mask = (UINT64_C(1) << s->bits) - 1;
    int64_t kept = 0;
    for (int64_t i = 0; i < count;) {
        uint64_t row = keys[i] >> s->bits, own = UINT64_MAX, slot = 0;
        int64_t first = i, before = kept, loops = 0;
        if (s->distinct) {
            slot = row / (uint64_t)s->local;
            own = (row - slot * (uint64_t)s->local) * (uint64_t)s->parts +
                  (uint64_t)s->part_of[slot];
        }
        uint64_t key, last = ~keys[i];
        for (; i < count && (key = keys[i]) >> s->bits == row; i++) {
            uint64_t column = key & mask;
            uint32_t narrow = (uint32_t)column;
            if (s->width == 4)
                memcpy(out + 4 * kept, &narrow, 4);
            else
                memcpy(out + 8 * kept, &column, 8);
            loops += column == own;
            /* mutant: (key != last) & (column != own) -> column != own : test_rows_of_tuples */
            kept += (!s->distinct) | ((key != last) & (column != own));
            last = key;
        }
        team_add(s->lengths + row, kept - before);
        if (!s->distinct) continue;
        team_add(s->ends + row, i - first + loops * (s->loop_ends - 1));
        team_add(s->loops + slot, loops);
    }
    return kept;
}

/* Copy bytes between one place and the keys of a bucket, which lie in many. */
static void spread(const bucket_set *s, int64_t bucket, char *bytes, int64_t left,
                   int back) {
    for (int64_t r = 0; left; r++) {
        const int64_t *at = s->starts + r * (s->buckets + 1) + bucket;
        int64_t size = (at[1] - at[0]) * (int64_t)sizeof(uint64_t);
        if (size > left) size = left;
        if (back)
            memcpy(s->keys + at[0], bytes, (size_t)size);
        else
            memcpy(bytes, s->keys + at[0], (size_t)size);
        bytes += size;
        left -= size;
    }
}

static void sort_some(void *argument, int id) {
    bucket_set *s = argument;
    scratch room = {NULL, NULL, 0};
    int64_t bucket, to;
    (void)id;
    while (team_chunk(&s->next, s->last, 1, &bucket, &to)) {
        int64_t count = bucket_size(s, bucket);
        if (!make_room(&room, count)) {
            __atomic_store_n(&s->no_memory, 1, __ATOMIC_RELAXED);
            break;
        }
        spread(s, bucket, (char *)room.keys, count * (int64_t)sizeof(uint64_t), 0);
        sort_keys(room.keys, room.beside, count);
        s->kept[bucket] = squeeze(s, room.keys, count);
        spread(s, bucket, (char *)room.keys, s->kept[bucket] * s->width, 1);
    }
    free(room.keys);
}

static void copy_some(void *argument, int id) {
    bucket_set *s = argument;
    int64_t bucket, to;
    (void)id;
    while (team_chunk(&s->next, s->last, 1, &bucket, &to))
        spread(s, bucket, s->columns + s->places[bucket] * s->width,
               s->kept[bucket] * s->width, 0);
}

/* Turn the keys of buckets into columns, without loops and repeats where they are to be
 * distinct; returns 1 where memory is short. */
int sort_buckets(bucket_set *s, int64_t from, int64_t to, int threads) {
    s->next = from;
    s->last = to;
    team_run(threads, sort_some, s);
    return (int)s->no_memory;
}

/* Copy the columns of buckets to their places; returns 0. */
int copy_buckets(bucket_set *s, int64_t from, int64_t to, int threads) {
    s->next = from;
    s->last = to;
    team_run(threads, copy_some, s);
    return (int)s->no_memory;
}

/* Rows to be put in another order, with their columns by rank and by another name.
 *
 * offsets: [rows + 1]; columns: [edges]; order: [rows] which row is k-th; rank, name:
 * [columns there are] of a column, and of a rank; blocks: [count + 1] rows where a block
 * begins; places: [rows + 1] where the k-th row begins, of `width` bytes, 4 or 8; out:
 * [edges]
 */
typedef struct {
    const int64_t *offsets;
    const uint32_t *columns, *order, *rank, *name;
    const int64_t *blocks;
    const void *places;
    uint32_t *out;
    int64_t width, bits, next, last, no_memory;
} row_set;

static inline int64_t place_of(const row_set *s, int64_t row) {
    return s->width == 4 ? (int64_t)((const uint32_t *)s->places)[row]
                         : ((const int64_t *)s->places)[row];
}

static void rank_some(void *argument, int id) {
    row_set *s = argument;
    scratch room = {NULL, NULL, 0};
    int64_t block, to;
    uint64_t mask = (UINT64_C(1) << s->bits) - 1;
    (void)id;
    while (team_chunk(&s->next, s->last, 1, &block, &to)) {
        int64_t first = s->blocks[block], last = s->blocks[block + 1];
        int64_t start = place_of(s, first), count = place_of(s, last) - start;
        if (!make_room(&room, count)) {
            __atomic_store_n(&s->no_memory, 1, __ATOMIC_RELAXED);
            break;
        }
        for (int64_t k = first; k < last; k++) {
            int64_t at = place_of(s, k), length = place_of(s, k + 1) - at;
            uint64_t *keys = room.keys + at - start, row = (uint64_t)(k - first);
            const uint32_t *columns = s->columns + s->offsets[s->order[k]];
            for (int64_t j = 0; j < length; j++)
                keys[j] = row << s->bits | s->rank[columns[j]];
        }
        sort_keys(room.keys, room.beside, count);
        for (int64_t k = 0; k < count; k++)
            s->out[start + k] = s->name[room.keys[k] & mask];
    }
    free(room.keys);
}

/* Write the rows of blocks; returns 1 where memory is short. */
int rank_rows(row_set *s, int64_t from, int64_t to, int threads) {
    s->next = from;
    s->last = to;
    team_run(threads, rank_some, s);
    return (int)s->no_memory;
}

/* index: [count]; values: of `width` bytes, 4 or 8; out: [count], of uint32 to invert */
typedef struct {
    const uint32_t *index;
    const void *values;
    int64_t width;
    void *out;
} taking;

static void take_range(void *argument, int64_t from, int64_t to) {
    const taking *t = argument;
    const uint32_t *index = t->index, *narrow = t->values;
    const uint64_t *wide = t->values;
    if (t->width == 4)
        for (int64_t k = from; k < to; k++) ((uint32_t *)t->out)[k] = narrow[index[k]];
    else
        for (int64_t k = from; k < to; k++) ((uint64_t *)t->out)[k] = wide[index[k]];
}

static void invert_range(void *argument, int64_t from, int64_t to) {
    const taking *t = argument;
    for (int64_t k = from; k < to; k++) ((uint32_t *)t->out)[t->index[k]] = (uint32_t)k;
}

/* out[k] = values[index[k]] */
void take(const taking *t, int64_t count, int threads) {
    team_for(threads, count, GRAIN, take_range, (void *)t);
}

/* out[index[k]] = k */
void invert(const taking *t, int64_t count, int threads) {
    team_for(threads, count, GRAIN, invert_range, (void *)t);
}

/* Values to be put in order, falling or rising, equal ones by their places: radix sort of
 * value << bits | place, least digit first, each pass by all threads.
 *
 * values: [count], of `width` bytes, 4 or 8; piece: of them; order: [count]
 * keys, beside: [count], of the passes before the last one, if there are 1 or 2 of them
 * counts, starts: see table, of 2^digit classes; from, to, shift: of the pass
 */
typedef struct {
    const void *values;
    int64_t width, count, piece, bits, digit, falling;
    uint64_t *keys, *beside;
    uint32_t *order;
    table at;
    const uint64_t *from;
    uint64_t *to;
    int64_t shift, placing;
} ordering;

static inline uint64_t value_at(const ordering *o, int64_t k) {
    return o->width == 4 ? ((const uint32_t *)o->values)[k]
                         : ((const uint64_t *)o->values)[k];
}

static void order_pieces(void *argument, int64_t from, int64_t to) {
    ordering *o = argument;
    uint64_t mask = (UINT64_C(1) << o->digit) - 1, turned = o->falling ? mask : 0;
    uint64_t places = (UINT64_C(1) << o->bits) - 1;
    for (int64_t piece = from; piece < to; piece++) {
        uint32_t *at = piece_counts(&o->at, piece, (int)o->placing);
        int64_t last = (piece + 1) * o->piece;
        if (last > o->count) last = o->count;
        for (int64_t k = piece * o->piece; k < last; k++) {
            uint64_t key =
                o->from ? o->from[k] : value_at(o, k) << o->bits | (uint64_t)k;
            uint32_t *next = at + ((key >> o->shift ^ turned) & mask);
            if (o->placing && o->to)
                o->to[*next] = key;
            else if (o->placing)
                o->order[*next] = (uint32_t)(key & places);
            ++*next;
        }
    }
}

/* Write the order of values by their lowest `passes` digits, 1 at least. */
void order_values(ordering *o, int64_t passes, int threads) {
    o->from = NULL;
    for (int64_t pass = 0; pass < passes; pass++) {
        o->shift = o->bits + pass * o->digit;
        o->to = pass == passes - 1 ? NULL : pass & 1 ? o->beside : o->keys;
        for (o->placing = 0; o->placing < 2; o->placing++) {
            team_for(threads, o->at.pieces, 1, order_pieces, o);
            if (!o->placing) find_places(&o->at, threads);
        }
        o->from = o->to;
    }
}

typedef struct {
    char *memory;
    int64_t bytes, zero;
} pages;

static void touch_range(void *argument, int64_t from, int64_t to) {
    const pages *r = argument;
    int64_t before = (int64_t)((uintptr_t)r->memory % LARGE_PAGE);
    int64_t first = from * LARGE_PAGE - before, last = to * LARGE_PAGE - before;
    if (first < 0) first = 0;
    if (last > r->bytes) last = r->bytes;
    if (r->zero)
        memset(r->memory + first, 0, (size_t)(last - first));
    else
        for (int64_t k = first; k < last; k += PAGE) *(volatile char *)(r->memory + k) = 0;
}

/* Touch the pages of new memory with all threads, each large page by one thread: where
 * several threads write to an unmapped page, each of them clears one.  zero: clear all
 * of the memory, else one byte a page is written. */
void touch(char *memory, int64_t bytes, int64_t zero, int threads) {
    pages r = {memory, bytes, zero};
    int64_t before = (int64_t)((uintptr_t)memory % LARGE_PAGE);
    team_for(threads, (before + bytes + LARGE_PAGE - 1) / LARGE_PAGE, 1, touch_range, &r);
}
