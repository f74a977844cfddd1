/* Words with a bit for each search. */
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
#endif
