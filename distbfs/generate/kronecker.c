/* Kronecker edge tuples by position (Graph500 specification 2.0, Section 3).
 *
 * The tuple at a position is drawn from counters alone: four levels of the recursion at
 * once, by the alias method over 4^4 outcomes (Walker 1977), with one 64-bit number of
 * stream position * 16 + draw.  An outcome holds the four bits of u above those of v.
 * Then both ends go through the vertex permutation.  kronecker.py has the twin in NumPy.
 *
 * A slot of a table is one word: threshold (56 bits) above the alias (8 bits).
 */
#include "../device/team.h"
#include "kronecker.h"

#define TILE 256
#define TILES 32 /* that a thread takes at once */

static void draw_tile(const slice *s, int64_t first) {
    u64 base[TILE], i[TILE], j[TILE];
    int size = s->count - first < TILE ? (int)(s->count - first) : TILE;
    for (int k = 0; k < size; k++) {
        base[k] = (u64)(s->start + first + k);
        i[k] = j[k] = 0;
    }
    permute_all(&s->edges, base, size);
    for (int d = 0; d < s->draws; d++) {
        const int last = d + 1 == s->draws, b = last ? s->last_bits : 4;
        const u64 *table = s->tables + (last ? SLOTS : 0), key = s->key;
        for (int k = 0; k < size; k++) {
            uint64_t x = mix64(key + (base[k] * 16 + d) * GOLDEN);
            uint64_t slot = x >> 56, below = x & (~UINT64_C(0) >> 8);
            uint64_t entry = table[slot];
            uint64_t outcome = below < entry >> 8 ? slot : entry & (SLOTS - 1);
            i[k] = i[k] << b | outcome >> b;
            j[k] = j[k] << b | (outcome & ((1u << b) - 1));
        }
    }
    permute_all(&s->vertices, i, size);
    /* mutant: size -> 0 : test_kronecker::test_c_gives_what_numpy_gives */
    permute_all(&s->vertices, j, size);
    for (int k = 0; k < size; k++) {
        s->u[first + k] = (int64_t)i[k];
        s->v[first + k] = (int64_t)j[k];
    }
}

static void draw_tiles(void *argument, int64_t from, int64_t to) {
    for (int64_t tile = from; tile < to; tile++) draw_tile(argument, tile * TILE);
}

void kronecker(slice *s) {
    team_for(s->threads, (s->count + TILE - 1) / TILE, TILES, draw_tiles, s);
}
