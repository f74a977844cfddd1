/* Pairs of ids from lines of text, and from records of columns that may be quoted.
 *
 * Method: one pass over the bytes of a block that ends at a line end; the first two
 * columns of a line are read digit by digit, the others are skipped.  Nothing is
 * guessed: the first line that is not blank, not a comment and not a good pair stops
 * the pass, and the caller describes its error.
 *
 * Data encoding: a line is [blanks] id separator id [separator anything] ended by \n or
 * \r\n; a separator is blanks (spaces, tabs), or one byte with blanks around it or not,
 * and no blanks elsewhere.  Where a line may have any columns, one with a quote is no
 * good pair, as the quote may hold separators and line ends.
 */
#include "words.h"

typedef struct {
    int64_t base;      /* the lowest id as written; subtracted */
    int64_t most_u;    /* the largest id as written, first column */
    int64_t most_v;    /* second column */
    int64_t fields;    /* columns that a line has, 0: two or more */
    int64_t separator; /* ' ': blanks; or ',', ';', '\t' */
    int64_t comment_a; /* bytes that begin a comment line */
    int64_t comment_b;
    int64_t loops;     /* whether both ids may be the same */
    int64_t canonical; /* whether ids have no leading zeros */
} rules;

static inline int blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static inline int line_end(const uint8_t *p)
{
    return *p == '\n' || (*p == '\r' && p[1] == '\n');
}

/* Read digits; return the byte after them, or NULL without digits, above 2^63-1, or, of
 * canonical ones, where a zero leads. */
static inline const uint8_t *number(const uint8_t *p, int64_t canonical, int64_t *value)
{
    uint8_t digit = (uint8_t)(*p - '0');
    if (digit > 9 || (canonical && !digit && (uint8_t)(p[1] - '0') <= 9))
        return NULL;
    uint64_t x = digit;
    for (p++; (digit = (uint8_t)(*p - '0')) <= 9; p++) {
        if (x > (uint64_t)INT64_MAX / 10)
            return NULL;
        x = 10 * x + digit;
        if (x > (uint64_t)INT64_MAX)
            return NULL;
    }
    *value = (int64_t)x;
    return p;
}

static inline const uint8_t *skip_blanks(const uint8_t *p)
{
    while (blank(*p))
        p++;
    return p;
}

/* Skip blanks that do not separate, separators other than blanks at most once; return
 * NULL where the columns do not end. */
static inline const uint8_t *next_column(const uint8_t *p, uint8_t separator)
{
    const uint8_t other = separator == '\t' ? ' ' : '\t';
    if (separator == ' ')
        return blank(*p) ? skip_blanks(p) : NULL;
    while (*p == ' ' || *p == other)
        p++;
    if (*p++ != separator)
        return NULL;
    while (*p == ' ' || *p == other)
        p++;
    return p;
}

/* Read the pair of a line; return its line end (\n), or NULL for a bad line.
 * extra is raised where there are more columns. */
static const uint8_t *pair(const uint8_t *p, const uint8_t *stop, const rules *r,
                           int64_t *u, int64_t *v, int64_t *extra)
{
    const uint8_t separator = (uint8_t)r->separator;
    p = number(p, r->canonical, u);
    p = p ? next_column(p, separator) : NULL;
    p = p ? number(p, r->canonical, v) : NULL;
    if (!p || *u < r->base || *u > r->most_u || *v < r->base || *v > r->most_v)
        return NULL;
    if (!r->loops && *u == *v)
        return NULL;
    if (*p == '\n')
        return r->fields > 2 ? NULL : p;
    const uint8_t *third = next_column(p, separator);
    if (!third && !line_end(skip_blanks(p)))
        return NULL;
    const uint8_t *end = memchr(p, '\n', (size_t)(stop - p));
    const uint8_t *cut = end[-1] == '\r' ? end - 1 : end;
    if (memchr(p, '\r', (size_t)(cut - p)))
        return NULL;
    if (!r->fields && memchr(p, '"', (size_t)(cut - p)))
        return NULL;
    if (r->fields) {
        int64_t fields = 2;
        for (; p < cut; p++)
            fields += !blank(*p) && blank(p[-1]);
        if (fields != r->fields)
            return NULL;
        *extra += fields > 2;
    } else {
        while (p < cut && (blank(*p) || *p == separator))
            p++;
        *extra += p < cut;
    }
    return end;
}

/* Return how many pairs a block of text holds before its first bad line.
 *
 * text: [length] bytes, the last one \n
 * packed: base, most_u, most_v, fields, separator, the two bytes of comments, loops,
 *         canonical
 * pairs: [capacity][2] zero-based ids; a pair beyond the capacity is a bad line
 * where: [3] the offset of the bad line (-1: none), lines before it, those of them with
 *        more than two columns
 */
int64_t parse_pairs(int64_t length, const uint8_t *text, const rules *packed,
                    int64_t capacity, int64_t *pairs, int64_t *where)
{
    const rules r = *packed;
    const uint8_t *p = text, *stop = text + length;
    int64_t count = 0, lines = 0, extra = 0;
    where[0] = -1;
    while (p < stop) {
        const uint8_t *line = p;
        p = skip_blanks(p);
        if (line_end(p)) {
            p += *p == '\r';
        } else if (*p == r.comment_a || *p == r.comment_b) {
            p = memchr(p, '\n', (size_t)(stop - p));
        } else {
            int64_t u, v;
            const int empty = r.separator == '\t' && memchr(line, '\t', (size_t)(p - line));
            const int good = count < capacity && !empty;
            p = good ? pair(p, stop, &r, &u, &v, &extra) : NULL;
            if (!p) {
                where[0] = line - text;
                break;
            }
            pairs[2 * count] = u - r.base;
            pairs[2 * count + 1] = v - r.base;
            count++;
        }
        p++;
        lines++;
    }
    where[1] = lines;
    where[2] = extra;
    return count;
}

#define BATCH 64          /* records whose words are looked up together */
#define SPARE (8 * LONGEST) /* bytes of words without the quotes that are doubled in them */
#define LONGEST_COLUMN 100000 /* bytes; Python's csv has a limit above it */

enum { DONE, UNUSUAL, CUT, NO_ROOM }; /* why a pass over records ends */

/* Two columns of ids of records.
 *
 * separator: as of rules; u, v: places of the columns; base, most_u, most_v, canonical: as
 *      of rules, for ids that are numbers
 * words: the table of ids that are text, or NULL
 * at: byte of the first record not read; lines: before it; extra: records read with more
 *     than two columns; end: why the pass ended
 */
typedef struct {
    int64_t separator, u, v, base, most_u, most_v, canonical;
    word_table *words;
    int64_t at, lines, extra, end;
} records;

/* A column: its text without quotes around it, whether quotes are doubled in it */
typedef struct {
    const uint8_t *text;
    int64_t size;
    int doubled;
} column;

/* A record: its ids, their hashes; the record's first byte, lines before it, whether there
 * are more than two columns */
typedef struct {
    column ids[2];
    uint64_t hashes[2];
    const uint8_t *begin;
    int64_t lines;
    int extra;
} record;

/* Read one record, as Python's csv does with skipinitialspace and strict; return the byte
 * after it, or NULL and set r->end.  ends: whether each byte ends a column without quotes;
 * lines: raised by those of the record */
static const uint8_t *read_record(const uint8_t *p, const uint8_t *stop, records *r,
                                  const uint8_t *ends, record *out, int64_t *lines)
{
    const uint8_t separator = (uint8_t)r->separator;
    const int blanks = separator == ' ';
    int quotes = 0, tabs = 0;
    int64_t columns = 0, filled = 0;
    r->end = UNUSUAL;
    out->ids[0].size = out->ids[1].size = 0;
    for (;; p++) {
        column c = {NULL, 0, 0};
        while (*p == ' ' || (blanks && *p == '\t'))
            tabs |= *p++ == '\t';
        if (*p == '"') {
            quotes = 1;
            for (c.text = ++p;; p++) {
                const uint8_t *quote = memchr(p, '"', (size_t)(stop - p));
                const uint8_t *end = quote ? quote : stop;
                if (end - c.text > LONGEST_COLUMN)
                    return NULL;
                for (const uint8_t *line = p; (line = memchr(line, '\n', (size_t)(end - line))); line++)
                    ++*lines;
                tabs |= blanks && memchr(p, '\t', (size_t)(end - p));
                if (!quote) {
                    r->end = CUT;
                    return NULL;
                }
                p = quote + 1;
                if (*p != '"')
                    break;
                c.doubled = 1;
            }
            c.size = p - 1 - c.text;
        } else {
            for (c.text = p; !ends[*p]; p++)
                quotes |= *p == '"';
            c.size = p - c.text;
            if (c.size > LONGEST_COLUMN)
                return NULL;
        }
        if (columns == r->u)
            out->ids[0] = c;
        if (columns == r->v)
            out->ids[1] = c;
        columns++;
        filled += c.size > 0;
        if (line_end(p))
            break;
        tabs |= blanks && *p == '\t';
        if (*p != separator && !(blanks && *p == '\t'))
            return NULL;
    }
    if (quotes && tabs) /* Python turns only some of the tabs into blanks */
        return NULL;
    if (columns < 2)
        return NULL;
    out->extra = columns > 2 && filled > 2;
    ++*lines;
    return p + 1 + (*p == '\r');
}

/* Make the text of an id out of its column: without blanks around it, and with single
 * quotes; return 0 where it is unusual.  spare: memory for it, moved on */
static int plain_id(column *c, uint8_t **spare)
{
    const uint8_t *text = c->text;
    if (c->doubled) {
        if (c->size > LONGEST)
            return 0;
        uint8_t *to = *spare;
        for (const uint8_t *p = text; p < text + c->size; p += 1 + (*p == '"'))
            *to++ = *p;
        c->text = *spare;
        c->size = to - *spare;
        *spare = to;
    }
    const int led = c->size && blank(*c->text);
    while (c->size && blank(*c->text)) {
        c->text++;
        c->size--;
    }
    while (c->size && blank(c->text[c->size - 1]))
        c->size--;
    return c->size && !(led && *c->text == '"');
}

/* Read the two ids of a record; return 0 where it is unusual. */
static int take_ids(const records *r, record *out, uint8_t **spare, int64_t *pair)
{
    for (int side = 0; side < 2; side++) {
        column *c = out->ids + side;
        if (!plain_id(c, spare))
            return 0;
        if (r->words) {
            const uint64_t hash = word_hash(c->text, c->size, r->words->seed);
            __builtin_prefetch(r->words->slots + (hash & (uint64_t)r->words->mask));
            out->hashes[side] = hash;
            continue;
        }
        const uint8_t *end = number(c->text, r->canonical, pair + side);
        const int64_t most = side ? r->most_v : r->most_u;
        if (end != c->text + c->size || pair[side] < r->base || pair[side] > most)
            return 0;
        pair[side] -= r->base;
    }
    return 1;
}

/* Write the numbers of the words of records until one cannot have any; return how many
 * records have them, and set why others have not.  pairs: [count][2] */
static int look_up(word_table *words, const record *batch, int count, int64_t *pairs, int *end)
{
    for (int k = 0; k < count; k++) {
        for (int side = 0; side < 2; side++) {
            const column *c = batch[k].ids + side;
            const int64_t word = number_of(words, c->text, c->size, batch[k].hashes[side]);
            if (word < 0) {
                *end = word == FULL ? NO_ROOM : UNUSUAL;
                return k;
            }
            pairs[2 * k + side] = word;
        }
    }
    return count;
}

/* Write the pairs of a block of whole lines, of ids or of numbers of words, until a record
 * is unusual or not complete, or there is no room in the table of words; return how many.
 *
 * text: [length] bytes, the last one \n; pairs: [length / 4 + 1][2]
 */
int64_t parse_records(records *r, int64_t length, const uint8_t *text, int64_t *pairs)
{
    const uint8_t *p = text, *stop = text + length;
    uint8_t ends[256] = {['\n'] = 1, ['\r'] = 1}, spare[SPARE];
    record batch[BATCH];
    int64_t count = 0, lines = 0;
    ends[r->separator] = 1;
    ends['\t'] |= r->separator == ' ';
    r->extra = 0;
    int end = DONE;
    while (end == DONE && p < stop) {
        int size = 0;
        uint8_t *left = spare;
        while (size < BATCH && left - spare <= SPARE - 2 * LONGEST && p < stop) {
            const uint8_t *rest = skip_blanks(p);
            record *next = batch + size;
            next->begin = p;
            next->lines = lines;
            if (line_end(rest) || *rest == '#' || *rest == '%') {
                p = (const uint8_t *)memchr(rest, '\n', (size_t)(stop - rest)) + 1;
                lines++;
                continue;
            }
            p = read_record(p, stop, r, ends, next, &lines);
            if (p && take_ids(r, next, &left, pairs + 2 * (count + size))) {
                size++;
                continue;
            }
            end = p ? UNUSUAL : (int)r->end;
            p = next->begin;
            lines = next->lines;
            break;
        }
        const int taken = size;
        if (r->words)
            size = look_up(r->words, batch, size, pairs + 2 * count, &end);
        if (size < taken) {
            p = batch[size].begin;
            lines = batch[size].lines;
        }
        for (int k = 0; k < size; k++)
            r->extra += batch[k].extra;
        count += size;
    }
    r->at = p - text;
    r->lines = lines;
    r->end = end;
    return count;
}
