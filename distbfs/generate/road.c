/* Tuples of a road-like graph by position; road.py defines it and has the same in NumPy.
 *
 * The hash of a crossing: bits 0-1 and 2-3 are the vertices on its edges to the right
 * and below, bits 4-33 and 34-63 decide whether the edges exist.
 */
#include "../device/team.h"
#include "hashing.h"

#define BLOCK 128
#define BLOCKS 64 /* that a thread takes at once */
#define KEEP UINT64_C(966367642)
#define DRAW ((UINT64_C(1) << 30) - 1)

/* Links of the edges of a crossing, 0 where there is no edge, and all its vertices */
typedef struct {
    int right, below, vertices;
} crossing;

static inline crossing draw(uint64_t key, int64_t side, int64_t c, int last_column) {
    uint64_t x = mix64(key + (uint64_t)c * GOLDEN);
    int right = (x >> 4 & DRAW) < KEEP && !last_column;
    int below = (x >> 34) < KEEP && c + side < side * side;
    int on_right = right * (int)(x & 3), on_below = below * (int)(x >> 2 & 3);
    return (crossing){right + on_right, below + on_below, 1 + on_right + on_below};
}

typedef struct {
    uint64_t key;
    int64_t side;
    int64_t *vertices, *tuples; /* of counting */
    int64_t low, high;          /* blocks low … high - 1 */
    int64_t start, count;       /* of writing */
    const int64_t *ids, *places; /* [blocks + 1] before each block */
    int64_t *u, *v;             /* [count] */
    int threads;
} slice;

static void count_blocks(void *argument, int64_t from, int64_t to) {
    const slice *s = argument;
    int64_t side = s->side;
    for (int64_t b = s->low + from; b < s->low + to; b++) {
        int64_t stop = (b + 1) * BLOCK, v = 0, t = 0;
        if (stop > side * side) stop = side * side;
        for (int64_t c = b * BLOCK; c < stop; c++) {
            crossing at = draw(s->key, side, c, c % side == side - 1);
            v += at.vertices;
            t += at.right + at.below;
        }
        s->vertices[b + 1] = v;
        s->tuples[b + 1] = t;
    }
}

/* Count the vertices and tuples of block b in vertices[b + 1] and tuples[b + 1]. */
void road_count(slice *s) {
    team_for(s->threads, s->high - s->low, BLOCKS, count_blocks, s);
}

/* Return the id of a crossing; vertices: [blocks + 1] before each block */
static int64_t id_of(uint64_t key, int64_t side, const int64_t *vertices, int64_t c) {
    int64_t id = vertices[c / BLOCK];
    for (int64_t k = c - c % BLOCK; k < c; k++)
        id += draw(key, side, k, k % side == side - 1).vertices;
    return id;
}

/* Write the links of one edge, of which those at 0 … count - 1 are wanted */
static inline void chain(int64_t at, int64_t count, int links, int64_t near, int64_t first,
                         int64_t far, int64_t *u, int64_t *v) {
    for (int k = 0; k < links; k++, at++) {
        if (at < 0 || at >= count) continue;
        u[at] = k == 0 ? near : first + k - 1;
        v[at] = k == links - 1 ? far : first + k;
    }
}

static void write_blocks(void *argument, int64_t from, int64_t to) {
    const slice *s = argument;
    int64_t side = s->side, size = side * side, count = s->count;
    for (int64_t b = s->low + from; b < s->low + to; b++) {
        int64_t c = b * BLOCK, stop = c + BLOCK < size ? c + BLOCK : size;
        int64_t id = s->ids[b], at = s->places[b] - s->start;
        int64_t under = c + side < size ? id_of(s->key, side, s->ids, c + side) : 0;
        for (; c < stop; c++) {
            int last_column = c % side == side - 1;
            crossing here = draw(s->key, side, c, last_column);
            int64_t next = id + here.vertices;
            int64_t down = id + here.right + (here.right == 0);
            chain(at, count, here.right, id, id + 1, next, s->u, s->v);
            chain(at + here.right, count, here.below, id, down, under, s->u, s->v);
            at += here.right + here.below;
            id = next;
            if (c + side < size)
                under += draw(s->key, side, c + side, last_column).vertices;
        }
    }
}

/* Write the tuples start … start + count - 1, which are in the blocks low … high - 1. */
void road(slice *s) { team_for(s->threads, s->high - s->low, BLOCKS, write_blocks, s); }
