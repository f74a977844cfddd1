/* A table of distinct byte strings (words), numbered in the order in which they come, and
 * the order of its words by their bytes.
 *
 * Method: open addressing with linear probing, at most half full; hashes have a seed that
 * files cannot know.  Data encoding: a slot is 0 if free, else the number of a word plus 1
 * in its low NUMBER bits and the top bits of the word's hash above them, so that most words
 * that differ are not looked at.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD 32  /* words whose slots are fetched before they are looked at */
#define NUMBER 40 /* bits */
#define FULL (-1) /* the number of a word for which there is no memory */

/* slots: [mask + 1], of a power of two; offsets: [room + 1], first 0; text: [bytes]
 * count: words in the table; seed: of hashes */
typedef struct {
    uint64_t *slots;
    int64_t *offsets;
    uint8_t *text;
    int64_t mask, count, room, bytes;
    uint64_t seed;
} word_table;

static uint64_t folded(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t word_hash(const word_table *t, const uint8_t *word, int64_t size)
{
    uint64_t h = t->seed ^ (uint64_t)size, bytes;
    for (; size > 7; word += 8, size -= 8) {
        memcpy(&bytes, word, 8);
        h = folded(h ^ bytes, 0xa0761d6478bd642fu);
    }
    for (bytes = 0; size; size--)
        bytes = bytes << 8 | *word++;
    return folded(folded(h ^ bytes, 0xe7037ed1a0b428dbu), 0x8ebc6af09c88c6e3u);
}

/* Return the number of a word, which is added if it is new, or FULL.  word: [size] */
static int64_t number_of(word_table *t, const uint8_t *word, int64_t size, uint64_t hash)
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
    const int64_t begin = t->offsets[t->count];
    if (t->count == t->room || begin + size > t->bytes)
        return FULL;
    memcpy(t->text + begin, word, (size_t)size);
    t->slots[slot] = tag | (uint64_t)++t->count;
    t->offsets[t->count] = begin + size;
    return t->count - 1;
}

/* Number words until there is no memory for one; return how many were.
 *
 * begins, sizes: [count] of the words in text, or NULL for words of 8 bytes each
 * numbers: [count], may be begins
 */
int64_t number_words(word_table *t, int64_t count, const int64_t *begins, const int64_t *sizes,
                     const uint8_t *text, int64_t *numbers)
{
    uint64_t hashes[AHEAD];
    for (int64_t first = 0; first < count; first += AHEAD) {
        const int64_t last = count - first < AHEAD ? count : first + AHEAD;
        for (int64_t k = first; k < last; k++) {
            const uint8_t *word = text + (begins ? begins[k] : 8 * k);
            hashes[k - first] = word_hash(t, word, sizes ? sizes[k] : 8);
            __builtin_prefetch(t->slots + (hashes[k - first] & (uint64_t)t->mask));
        }
        for (int64_t k = first; k < last; k++) {
            const uint8_t *word = text + (begins ? begins[k] : 8 * k);
            const int64_t number = number_of(t, word, sizes ? sizes[k] : 8, hashes[k - first]);
            if (number == FULL)
                return k;
            numbers[k] = number;
        }
    }
    return count;
}

/* Write the slots of all words; they are 0 before. */
void fill_slots(word_table *t)
{
    for (int64_t word = 0; word < t->count; word++) {
        const int64_t begin = t->offsets[word];
        const uint64_t hash = word_hash(t, t->text + begin, t->offsets[word + 1] - begin);
        uint64_t slot = hash & (uint64_t)t->mask;
        while (t->slots[slot])
            slot = (slot + 1) & (uint64_t)t->mask;
        t->slots[slot] = (hash >> NUMBER << NUMBER) | (uint64_t)(word + 1);
    }
}

/* A word to be sorted; head: its first 8 bytes, the first one highest, zeros after its end */
typedef struct {
    uint64_t head;
    const uint8_t *text;
    int64_t size, number;
} sorted_word;

static int compare(const void *a, const void *b)
{
    const sorted_word *x = a, *y = b;
    if (x->head != y->head)
        return x->head < y->head ? -1 : 1;
    const int order = memcmp(x->text, y->text, (size_t)(x->size < y->size ? x->size : y->size));
    /* mutant: ? -1 : 1 -> ? 1 : -1 : test_any_bytes_are_numbered_and_sorted */
    return order ? order : x->size < y->size ? -1 : 1;
}

/* Sort all words by their bytes; return 0, or 1 without memory.
 *
 * ranks: [count] by number; offsets: [count + 1], text: [offsets[count]] of the sorted words
 */
int sort_words(const word_table *t, int64_t *ranks, int64_t *offsets, uint8_t *text)
{
    sorted_word *words = malloc((size_t)(t->count + 1) * sizeof *words);
    if (!words)
        return 1;
    for (int64_t k = 0; k < t->count; k++) {
        const uint8_t *word = t->text + t->offsets[k];
        words[k] = (sorted_word){0, word, t->offsets[k + 1] - t->offsets[k], k};
        for (int64_t i = 0; i < 8; i++)
            words[k].head = words[k].head << 8 | (i < words[k].size ? word[i] : 0);
    }
    qsort(words, (size_t)t->count, sizeof *words, compare);
    offsets[0] = 0;
    for (int64_t k = 0; k < t->count; k++) {
        ranks[words[k].number] = k;
        memcpy(text + offsets[k], words[k].text, (size_t)words[k].size);
        offsets[k + 1] = offsets[k] + words[k].size;
    }
    free(words);
    return 0;
}
