/* Bitmaps, and the few operations that take sixteen vertices at a time.
 *
 * Bitmaps are uint64 words, bit v of the map at bit v % 64 of word v / 64.  Each
 * operation has one version for AVX-512 and one in plain C; both give the same values.
 */
#ifndef DISTBFS_BITS_H
#define DISTBFS_BITS_H
#include <stdint.h>
#if defined(__AVX512BW__) || defined(__BMI2__)
#include <immintrin.h>
#endif

#define LANES 16

static inline int test(const uint64_t *map, uint32_t v) {
    return (int)(map[v >> 6] >> (v & 63) & 1);
}

static inline void set(uint64_t *map, uint32_t v) { map[v >> 6] |= UINT64_C(1) << (v & 63); }

/* Set a bit while other threads do the same; returns whether this call set it. */
static inline int claim(uint64_t *map, uint32_t v) {
    uint64_t bit = UINT64_C(1) << (v & 63);
    if (__atomic_load_n(map + (v >> 6), __ATOMIC_RELAXED) & bit) return 0;
    return !(__atomic_fetch_or(map + (v >> 6), bit, __ATOMIC_RELAXED) & bit);
}

/* Move the bits of `packed`, in their order, to the places that are set in `places`. */
static inline uint64_t spread_bits(uint64_t packed, uint64_t places) {
#ifdef __BMI2__
    return _pdep_u64(packed, places);
#else
    uint64_t bits = 0;
    for (; packed; packed >>= 1, places &= places - 1)
        if (packed & 1) bits |= places & -places;
    return bits;
#endif
}

#ifdef __AVX512BW__

/* Which of the lanes `todo` have their neighbour lead[lane] set in a map. */
static inline uint32_t test_lanes(const uint64_t *map, const uint32_t *lead, uint32_t todo) {
    __mmask16 lanes = (__mmask16)todo;
    __m512i v = _mm512_maskz_loadu_epi32(lanes, lead);
    __m512i word = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), lanes,
                                               _mm512_srli_epi32(v, 5), map, 4);
    __m512i bit = _mm512_sllv_epi32(_mm512_set1_epi32(1),
                                    _mm512_and_si512(v, _mm512_set1_epi32(31)));
    return _mm512_mask_test_epi32_mask(lanes, word, bit);
}

/* For the lanes `hit`: out[index[lane]] = value. */
static inline void scatter_value(int32_t *out, const uint32_t *index, uint32_t hit,
                                 int32_t value) {
    __m512i at = _mm512_maskz_loadu_epi32((__mmask16)hit, index);
    _mm512_mask_i32scatter_epi32(out, (__mmask16)hit, at, _mm512_set1_epi32(value), 4);
}

/* For the lanes `hit`: out[index[lane]] = table[from[lane]]. */
static inline void scatter_table(int32_t *out, const uint32_t *index, uint32_t hit,
                                 const uint32_t *table, const uint32_t *from) {
    __mmask16 lanes = (__mmask16)hit;
    __m512i at = _mm512_maskz_loadu_epi32(lanes, index);
    __m512i key = _mm512_maskz_loadu_epi32(lanes, from);
    __m512i value = _mm512_mask_i32gather_epi32(key, lanes, key, table, 4);
    _mm512_mask_i32scatter_epi32(out, lanes, at, value, 4);
}

/* The same with 64-bit values. */
static inline void scatter_table64(int64_t *out, const uint32_t *index, uint32_t hit,
                                   const int64_t *table, const uint32_t *from) {
    for (int half = 0; half < 2; half++, hit >>= 8, index += 8, from += 8) {
        __mmask8 lanes = (__mmask8)hit;
        __m256i at = _mm256_maskz_loadu_epi32(lanes, index);
        __m256i key = _mm256_maskz_loadu_epi32(lanes, from);
        __m512i value = _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), lanes, key,
                                                    table, 8);
        _mm512_mask_i32scatter_epi64(out, lanes, at, value, 8);
    }
}

/* Copy those of 64 values that `taken` names, at most sixteen, one behind the other. */
static inline void pack_lanes(uint32_t *out, const uint32_t *values, uint64_t taken) {
    __m512i packed = _mm512_setzero_si512();
    for (uint32_t count = 0; taken; taken >>= LANES, values += LANES) {
        __mmask16 lanes = (__mmask16)taken;
        __m512i some = _mm512_maskz_compress_epi32(lanes, _mm512_maskz_loadu_epi32(lanes, values));
        uint32_t more = (uint32_t)__builtin_popcount(lanes);
        packed = _mm512_mask_expand_epi32(packed, (__mmask16)(((1u << more) - 1) << count), some);
        count += more;
    }
    _mm512_storeu_si512(out, packed);
}

/* One bit for each of 64 bytes that is not zero; the bytes are cleared. */
static inline uint64_t take_marks(uint8_t *marks) {
    __m512i bytes = _mm512_loadu_si512((const void *)marks);
    uint64_t set_bits = _mm512_test_epi8_mask(bytes, bytes);
    if (set_bits) _mm512_storeu_si512((void *)marks, _mm512_setzero_si512());
    return set_bits;
}

#else

static inline uint32_t test_lanes(const uint64_t *map, const uint32_t *lead, uint32_t todo) {
    uint32_t hit = 0;
    for (int k = 0; k < LANES; k++)
        if (todo >> k & 1) hit |= (uint32_t)test(map, lead[k]) << k;
    return hit;
}

static inline void scatter_value(int32_t *out, const uint32_t *index, uint32_t hit,
                                 int32_t value) {
    for (; hit; hit &= hit - 1) out[index[__builtin_ctz(hit)]] = value;
}

static inline void scatter_table(int32_t *out, const uint32_t *index, uint32_t hit,
                                 const uint32_t *table, const uint32_t *from) {
    for (; hit; hit &= hit - 1) {
        int k = __builtin_ctz(hit);
        out[index[k]] = (int32_t)table[from[k]];
    }
}

static inline void scatter_table64(int64_t *out, const uint32_t *index, uint32_t hit,
                                   const int64_t *table, const uint32_t *from) {
    for (; hit; hit &= hit - 1) {
        int k = __builtin_ctz(hit);
        out[index[k]] = table[from[k]];
    }
}

static inline void pack_lanes(uint32_t *out, const uint32_t *values, uint64_t taken) {
    for (; taken; taken &= taken - 1) *out++ = values[__builtin_ctzll(taken)];
}

static inline uint64_t take_marks(uint8_t *marks) {
    uint64_t set_bits = 0;
    for (int k = 0; k < 64; k++) {
        set_bits |= (uint64_t)(marks[k] != 0) << k;
        marks[k] = 0;
    }
    return set_bits;
}

#endif
#endif
