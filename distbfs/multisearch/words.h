/* Words with a bit for each search, and what is counted of them. */
#ifndef DISTBFS_WORDS_H
#define DISTBFS_WORDS_H
#include <stdint.h>

#ifndef WIDTH
#define WIDTH 1
#endif

typedef uint64_t word __attribute__((vector_size(8 * WIDTH)));

static inline int any(word w) {
    uint64_t all = 0;
    for (int k = 0; k < WIDTH; k++) all |= w[k];
    return all != 0;
}

/* Transpose a 64 x 64 matrix of bits: bit j of word i becomes bit i of word j. */
static inline void transpose(uint64_t *a) {
    uint64_t mask = UINT64_C(0xFFFFFFFF);
    for (int width = 32; width; width >>= 1, mask ^= mask << width)
        for (int first = 0; first < 64; first += 2 * width)
            for (int k = first; k < first + width; k++) {
                uint64_t swap = (a[k] >> width ^ a[k + width]) & mask;
                a[k] ^= swap << width;
                a[k + width] ^= swap;
            }
}

/* What 64 searches of a lane gained, a bit for each of up to 64 words. */
static inline void gains_of(uint64_t block[64], const word *gains, int count, int lane) {
    for (int k = 0; k < 64; k++) block[k] = k < count ? gains[k][lane] : 0;
    transpose(block);
}

/* Add to sums of v over searches, of which `gain` found it at a level: how many, their
 * distances, and 1 / distance but for level 0; NULL: not wanted. */
static inline void add_gain(int64_t *reached, int64_t *distance, double *harmonic, uint32_t v,
                            word gain, int64_t level) {
    if (!reached && !distance && !harmonic) return;
    int64_t found = 0;
    for (int lane = 0; lane < WIDTH; lane++) found += __builtin_popcountll(gain[lane]);
    if (reached) reached[v] += found;
    /* mutant: found * level -> found : test_bits::test_named_graphs */
    if (distance) distance[v] += found * level;
    if (harmonic && level) harmonic[v] += (double)found / (double)level;
}
#endif
