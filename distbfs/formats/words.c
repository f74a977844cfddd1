/* Numbers of words by a table, and their order by bytes.
 *
 * Method of the order: sort by the next eight bytes; words that agree in them are sorted by
 * the eight after those, and so on (Bentley and Sedgewick 1997, with the bytes cached).
 */
#include <stdlib.h>

#include "words.h"

#define AHEAD 32 /* words whose slots are fetched before they are looked at */

/* Number words until one cannot be; return how many were.
 *
 * offsets: [count + 1] of the words in text, or NULL for words of 8 bytes each
 * numbers: [count]; why: [1] FULL or UNFIT if it is not all of them
 */
int64_t number_words(word_table *t, int64_t count, const int64_t *offsets,
                     const uint8_t *text, int64_t *numbers, int64_t *why)
{
    uint64_t hashes[AHEAD];
    for (int64_t first = 0; first < count; first += AHEAD) {
        const int64_t some = count - first < AHEAD ? count - first : AHEAD;
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t k = 0; k < some; k++) {
                const int64_t word = first + k;
                const int64_t begin = offsets ? offsets[word] : 8 * word;
                const int64_t size = offsets ? offsets[word + 1] - begin : 8;
                if (!pass) {
                    hashes[k] = word_hash(text + begin, size, t->seed);
                    __builtin_prefetch(t->slots + (hashes[k] & (uint64_t)t->mask));
                    continue;
                }
                numbers[word] = number_of(t, text + begin, size, hashes[k]);
                if (numbers[word] < 0) {
                    *why = numbers[word];
                    return word;
                }
            }
        }
    }
    return count;
}

/* Write the slots of all words; they are 0 before. */
void fill_slots(word_table *t)
{
    for (int64_t word = 0; word < t->count; word++) {
        const int64_t begin = t->offsets[word];
        const uint64_t hash = word_hash(t->text + begin, t->offsets[word + 1] - begin, t->seed);
        uint64_t slot = hash & (uint64_t)t->mask;
        while (t->slots[slot])
            slot = (slot + 1) & (uint64_t)t->mask;
        t->slots[slot] = (hash >> NUMBER << NUMBER) | (uint64_t)(word + 1);
    }
}

/* A word to be sorted: its next bytes, the first one highest, zeros after its end; how many
 * of them it has */
typedef struct {
    uint64_t bytes;
    int64_t left, word;
} sorted_word;

static int compare(const void *a, const void *b)
{
    const sorted_word *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return x->left < y->left ? -1 : x->left > y->left;
}

static void sort_from(const word_table *t, sorted_word *words, int64_t count, int64_t depth)
{
    do { /* again where all agree, without recursion */
        for (int64_t k = 0; k < count; k++) {
            const int64_t begin = t->offsets[words[k].word] + depth;
            const int64_t rest = t->offsets[words[k].word + 1] - begin;
            uint64_t bytes = 0;
            words[k].left = rest < 8 ? rest : 8;
            memcpy(&bytes, t->text + begin, (size_t)words[k].left);
            words[k].bytes = __builtin_bswap64(bytes);
        }
        qsort(words, (size_t)count, sizeof *words, compare);
        depth += 8;
    } while (count > 1 && !compare(words, words + count - 1));
    for (int64_t first = 0, last; first < count; first = last) {
        for (last = first + 1; last < count; last++)
            if (compare(words + first, words + last))
                break;
        if (last - first > 1)
            sort_from(t, words + first, last - first, depth);
    }
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
    for (int64_t k = 0; k < t->count; k++)
        words[k].word = k;
    sort_from(t, words, t->count, 0);
    offsets[0] = 0;
    for (int64_t k = 0; k < t->count; k++) {
        const int64_t word = words[k].word, begin = t->offsets[word];
        const int64_t size = t->offsets[word + 1] - begin;
        ranks[word] = k;
        memcpy(text + offsets[k], t->text + begin, (size_t)size);
        offsets[k + 1] = offsets[k] + size;
    }
    free(words);
    return 0;
}
