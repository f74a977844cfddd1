/* Tuples of a random geometric graph by position; geometric.py defines it and has the
 * same in NumPy.
 *
 * Cells have the side of the radius, so that all neighbours of a point are in its cell
 * and the eight around it.  A pair is a tuple of the cell that comes first; a cell pairs
 * with itself and with the cells to its right, below left, below and below right.
 */
#include "../device/team.h"
#include "hashing.h"

#define BLOCK 64  /* cells; also in geometric.py */
#define BLOCKS 16 /* that a thread takes at once */
#define MOST 256  /* points of a cell */
#define RADIUS (INT64_C(1) << 30)
#define AROUND 5

typedef struct {
    uint64_t counts, points; /* keys */
    int64_t side;            /* cells */
    const uint64_t *limits;  /* [most], rising: a hash of at least limits[k] has k + 1 */
    int64_t most;
} plane;

typedef struct {
    int count;
    int64_t id; /* of the first point */
    int64_t x[MOST], y[MOST];
} cell;

static inline int count_of(const plane *p, int64_t c) {
    uint64_t x = mix64(p->counts + (uint64_t)c * GOLDEN);
    int k = 0;
    while (k < p->most && x >= p->limits[k]) k++;
    return k;
}

/* Read the points of a cell (right, below) of the origin of distances. */
static inline void read_cell(const plane *p, cell *out, int64_t c, int right, int below) {
    out->count = count_of(p, c);
    for (int k = 0; k < out->count; k++) {
        uint64_t x = mix64(p->points + ((uint64_t)c * MOST + (uint64_t)k) * GOLDEN);
        out->x[k] = (int64_t)(x & (RADIUS - 1)) + right * RADIUS;
        out->y[k] = (int64_t)(x >> 30 & (RADIUS - 1)) + below * RADIUS;
    }
}

/* Enumerate the tuples of a cell; those at 0 … count - 1 from `at` on are written
 * unless u is NULL.  id, under: first points of the cell and of the one below left.
 * Returns how many there are. */
static int64_t tuples_of(const plane *p, int64_t c, int64_t id, int64_t under, int64_t at,
                         int64_t count, int64_t *u, int64_t *v) {
    cell around[AROUND];
    int64_t column = c % p->side, pairs = 0;
    int more = column + 1 < p->side, down = c / p->side + 1 < p->side;
    int there[AROUND] = {1, more, down && column > 0, down, down && more};
    int64_t cells[AROUND] = {c, c + 1, c + p->side - 1, c + p->side, c + p->side + 1};
    static const int right[AROUND] = {0, 1, -1, 0, 1}, below[AROUND] = {0, 0, 1, 1, 1};
    for (int r = 0; r < AROUND; r++) {
        around[r].count = 0;
        if (there[r]) read_cell(p, around + r, cells[r], right[r], below[r]);
    }
    around[0].id = id;
    around[1].id = id + around[0].count;
    around[2].id = under;
    around[3].id = under + (down ? count_of(p, cells[2]) : 0);
    around[4].id = around[3].id + around[3].count;
    for (int i = 0; i < around[0].count; i++)
        for (int r = 0; r < AROUND; r++)
            for (int j = r ? 0 : i + 1; j < around[r].count; j++) {
                int64_t x = around[r].x[j] - around[0].x[i];
                int64_t y = around[r].y[j] - around[0].y[i];
                if (x >= RADIUS || x <= -RADIUS || y >= RADIUS || y <= -RADIUS) continue;
                if (x * x + y * y >= RADIUS * RADIUS) continue;
                int64_t place = at + pairs++;
                if (!u || place < 0 || place >= count) continue;
                u[place] = id + i;
                v[place] = around[r].id + j;
            }
    return pairs;
}

typedef struct {
    plane p;
    int64_t *vertices, *tuples; /* of counting */
    int64_t low, high;          /* blocks low … high - 1 */
    int64_t start, count;       /* of writing */
    const int64_t *ids, *places; /* [blocks + 1] before each block */
    int64_t *u, *v;             /* [count] */
    int threads;
} slice;

static void count_blocks(void *argument, int64_t from, int64_t to) {
    const slice *s = argument;
    const plane *p = &s->p;
    for (int64_t b = s->low + from; b < s->low + to; b++) {
        int64_t n = 0, m = 0;
        for (int64_t c = b * BLOCK; c < (b + 1) * BLOCK && c < p->side * p->side; c++) {
            n += count_of(p, c);
            m += tuples_of(p, c, 0, 0, 0, 0, NULL, NULL);
        }
        s->vertices[b + 1] = n;
        s->tuples[b + 1] = m;
    }
}

/* Count the points and tuples of block b in vertices[b + 1] and tuples[b + 1]. */
void geometric_count(slice *s) {
    team_for(s->threads, s->high - s->low, BLOCKS, count_blocks, s);
}

static void write_blocks(void *argument, int64_t from, int64_t to) {
    const slice *s = argument;
    const plane *p = &s->p;
    int64_t side = p->side, size = side * side;
    for (int64_t b = s->low + from; b < s->low + to; b++) {
        int64_t id = s->ids[b], at = s->places[b] - s->start, under = 0;
        int64_t first = b * BLOCK + side - 1; /* below left of the first cell */
        if (first < size) {
            under = s->ids[first / BLOCK];
            for (int64_t c = first - first % BLOCK; c < first; c++) under += count_of(p, c);
        }
        for (int64_t c = b * BLOCK; c < (b + 1) * BLOCK && c < size; c++) {
            at += tuples_of(p, c, id, under, at, s->count, s->u, s->v);
            id += count_of(p, c);
            if (c + side - 1 < size) under += count_of(p, c + side - 1);
        }
    }
}

/* Write the tuples start … start + count - 1, which are in the blocks low … high - 1. */
void geometric(slice *s) {
    team_for(s->threads, s->high - s->low, BLOCKS, write_blocks, s);
}
