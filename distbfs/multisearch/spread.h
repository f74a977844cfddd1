/* From words with a bit for each search to rows with a number for each vertex.
 *
 * 64 vertices at a time: their words are transposed to one mask for each search, and the
 * masks of the bit planes of levels are added up as bytes.  A row is written in pieces of
 * 256 vertices, past the caches where whole lines are written.
 */
#ifndef DISTBFS_SPREAD_H
#define DISTBFS_SPREAD_H
#include <stdint.h>
#include <string.h>
#ifdef __AVX512BW__
#include <immintrin.h>
#endif

/* Words with a bit for each search. */
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

#define BLOCKS 4
#define CHUNK_IDS (64 * BLOCKS)
#define MASKS 32

/* What is written: levels (-1 = unreached) as int8, int16, int32, or 0 and 1. */
enum { BYTES = 1, SHORTS = 2, INTS = 4, FLAGS = 0 };

/* Of 64 searches: mask 0 tells who was reached, mask p + 1 has bit p of levels. */
typedef uint64_t masks[MASKS][BLOCKS][64];

/* The masks of up to 256 vertices; from: first lane of number 0, `step` words apart. */
static inline void gather_masks(uint64_t out[BLOCKS][64], const uint64_t *from,
                                int64_t step, const uint32_t *numbers, int64_t ids) {
    for (int b = 0; b < BLOCKS && 64 * b < ids; b++) {
        int64_t left = ids - 64 * b < 64 ? ids - 64 * b : 64;
        for (int64_t t = 0; t < left; t++) out[b][t] = from[numbers[64 * b + t] * step];
        for (int64_t t = left; t < 64; t++) out[b][t] = 0;
        transpose(out[b]);
    }
}

#ifdef __AVX512BW__

/* Bytes of 64 vertices: the sum over p < count of 2^p where mask p is set. */
static inline __m512i sum_bytes(const masks m, int first, int count, int b, int i) {
    __m512i sum = _mm512_setzero_si512();
    for (int p = 0; p < count; p++)
        sum = _mm512_mask_add_epi8(sum, m[first + p][b][i], sum,
                                   _mm512_set1_epi8((char)(1 << p)));
    return sum;
}

static inline void bytes_of(const masks m, int first, int count, int b, int i,
                            uint8_t *out) {
    _mm512_storeu_si512((void *)out, sum_bytes(m, first, count, b, i));
}

static inline void put_bytes(const masks m, int planes, int b, int i, uint8_t *out,
                             int64_t left) {
    __m512i sum = sum_bytes(m, 1, planes, b, i);
    sum = _mm512_mask_mov_epi8(_mm512_set1_epi8(-1), m[0][b][i], sum);
    if (left == 64 && !((uintptr_t)out & 63))
        _mm512_stream_si512((void *)out, sum);
    else
        _mm512_mask_storeu_epi8(out, ~UINT64_C(0) >> (64 - left), sum);
}

static inline void end_stores(void) { _mm_sfence(); }

#else

/* Eight bytes of 0 or 1 from eight bits. */
static inline uint64_t eight(uint64_t bits) {
    uint64_t low = (bits & 0x7f) * UINT64_C(0x0002040810204081) & UINT64_C(0x0101010101010101);
    return low | (bits & 0x80) << 49;
}

static inline void bytes_of(const masks m, int first, int count, int b, int i,
                            uint8_t *out) {
    for (int k = 0; k < 8; k++) {
        uint64_t sum = 0;
        for (int p = 0; p < count; p++) sum |= eight(m[first + p][b][i] >> 8 * k & 0xff) << p;
        for (int t = 0; t < 8; t++) out[8 * k + t] = (uint8_t)(sum >> 8 * t);
    }
}

static inline void put_bytes(const masks m, int planes, int b, int i, uint8_t *out,
                             int64_t left) {
    uint8_t sum[64], there[64];
    bytes_of(m, 1, planes, b, i, sum);
    bytes_of(m, 0, 1, b, i, there);
    for (int64_t t = 0; t < left; t++) out[t] = (uint8_t)(sum[t] | (there[t] - 1));
}

static inline void end_stores(void) {}

#endif

/* Write search i of the masks to out[at … at + ids - 1]. */
static inline void spread_row(const masks m, int planes, int i, int kind, void *out,
                              int64_t at, int64_t ids) {
    for (int b = 0; b < BLOCKS && 64 * b < ids; b++) {
        int64_t left = ids - 64 * b < 64 ? ids - 64 * b : 64, to = at + 64 * b;
        if (kind == BYTES) {
            put_bytes(m, planes, b, i, (uint8_t *)out + to, left);
            continue;
        }
        uint8_t there[64], part[4][64];
        bytes_of(m, 0, 1, b, i, there);
        if (kind == FLAGS) {
            memcpy((uint8_t *)out + to, there, (size_t)left);
            continue;
        }
        for (int q = 0; q < kind; q++) {
            int count = planes - 8 * q < 8 ? planes - 8 * q : 8;
            bytes_of(m, 1 + 8 * q, count < 0 ? 0 : count, b, i, part[q]);
        }
        if (kind == SHORTS) {
            int16_t *row = (int16_t *)out + to;
            for (int64_t t = 0; t < left; t++)
                row[t] = (int16_t)((part[0][t] | part[1][t] << 8) | (there[t] - 1));
        } else {
            int32_t *row = (int32_t *)out + to;
            for (int64_t t = 0; t < left; t++)
                row[t] = (part[0][t] | part[1][t] << 8 | part[2][t] << 16 |
                          (int32_t)part[3][t] << 24) | (there[t] - 1);
        }
    }
}
#endif
