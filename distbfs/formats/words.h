/* A table of distinct byte strings (words), numbered in the order in which they come.
 *
 * Method: open addressing with linear probing, at most half full.  Data encoding: a slot
 * is 0 if free, else the number of a word plus 1 in its low NUMBER bits and the top bits
 * of the word's hash above them, so that most words that differ are not looked at.
 * Source of the hash: Wang Yi, wyhash (2019), with a seed that files cannot know.
 */
#ifndef WORDS_H
#define WORDS_H

#include <stdint.h>
#include <string.h>

#define NUMBER 40      /* bits */
#define LONGEST 1024   /* bytes of a word in a file */
#define FULL (-1)      /* more memory is needed */
#define UNFIT (-2)     /* the word cannot be an id */

/* slots: [mask + 1], of a power of two; offsets: [room + 1], first 0; text: [bytes]
 * count: words in the table; seed: of hashes; strict: words are ids of a file */
typedef struct {
    uint64_t *slots;
    int64_t *offsets;
    uint8_t *text;
    int64_t mask, count, room, bytes;
    uint64_t seed;
    int64_t strict;
} word_table;

static inline uint64_t folded(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t eight(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, 8);
    return x;
}

static inline uint64_t four(const uint8_t *p)
{
    uint32_t x;
    memcpy(&x, p, 4);
    return x;
}

static inline uint64_t word_hash(const uint8_t *p, int64_t size, uint64_t seed)
{
    uint64_t h = seed ^ folded(seed ^ 0xa0761d6478bd642fu, (uint64_t)size), a = 0, b = 0;
    for (; size > 16; p += 16, size -= 16)
        h = folded(eight(p) ^ 0xe7037ed1a0b428dbu, eight(p + 8) ^ h);
    if (size >= 8) {
        a = eight(p);
        b = eight(p + size - 8);
    } else if (size >= 4) {
        a = four(p);
        b = four(p + size - 4);
    } else if (size) {
        a = (uint64_t)p[0] << 16 | (uint64_t)p[size / 2] << 8 | p[size - 1];
    }
    h = folded(a ^ 0x8ebc6af09c88c6e3u, b ^ h);
    return folded(h, 0x589965cc75374cc3u);
}

/* Return whether bytes are UTF-8 as Python reads it, without control characters. */
static inline int is_id(const uint8_t *p, int64_t size)
{
    const uint8_t *stop = p + size;
    if (!size || size > LONGEST)
        return 0;
    while (p < stop) {
        const uint8_t c = *p++;
        if (c < 0x80) {
            if (c < 0x20 || c == 0x7f)
                return 0;
            continue;
        }
        const int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
        if (c < 0xc2 || c > 0xf4 || stop - p < more)
            return 0;
        const uint8_t low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
        const uint8_t high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        if (*p < low || *p > high)
            return 0;
        for (int k = 1; k < more; k++)
            if ((p[k] & 0xc0) != 0x80)
                return 0;
        p += more;
    }
    return 1;
}

/* Return the number of a word, which is added if it is new; FULL or UNFIT if it cannot be.
 * word: [size]; hash: its own */
static inline int64_t number_of(word_table *t, const uint8_t *word, int64_t size,
                                uint64_t hash)
{
    const uint64_t tag = hash >> NUMBER << NUMBER;
    uint64_t slot = hash & (uint64_t)t->mask;
    for (uint64_t x; (x = t->slots[slot]); slot = (slot + 1) & (uint64_t)t->mask) {
        const int64_t known = (int64_t)(x ^ tag) - 1;
        if (known >> NUMBER)
            continue;
        const int64_t begin = t->offsets[known];
        if (t->offsets[known + 1] - begin == size && !memcmp(t->text + begin, word, (size_t)size))
            return known;
    }
    if (t->strict && !is_id(word, size))
        return UNFIT;
    const int64_t begin = t->offsets[t->count];
    if (t->count == t->room || begin + size > t->bytes)
        return FULL;
    memcpy(t->text + begin, word, (size_t)size);
    t->slots[slot] = tag | (uint64_t)++t->count;
    t->offsets[t->count] = begin + size;
    return t->count - 1;
}

#endif
