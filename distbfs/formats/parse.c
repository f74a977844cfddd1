/* Pairs of ids from the records of a text, whose columns may be quoted.
 *
 * Method: one pass over the bytes of a block that ends at a line end; ids that are numbers
 * are read digit by digit, columns after both ids are passed over where no quote is.
 * Nothing is guessed: the first record that is not blank, not a comment and not a good pair
 * stops the pass, and the caller reads it or describes its error.
 *
 * Data encoding: a record is a line, ended by \n or \r\n, as Python's csv reads it with
 * skipinitialspace and strict; a separator is blanks (spaces, tabs), or one byte with blanks
 * around it or not.  Quoted columns with line ends or doubled quotes are left to the caller.
 */
#include <stdint.h>
#include <string.h>

/* The rules for records, and the state of a pass over them.
 *
 * base, most_u, most_v: least and largest ids as written, of each column; base is taken
 *      away; loops: whether both may be the same; canonical: whether none has leading zeros
 * comments: bytes that begin a comment line, [8], zeros after them
 * lead: byte that is the first column of each record; 0: none
 * separator: ' ' for blanks, or ',', ';', '\t'
 * fields: columns of a record, 0: two or more; u, v: places of the ids
 * quotes: whether columns may be quoted
 * sizes: [capacity][2] bytes of each id that is text, NULL where ids are numbers
 * capacity: most pairs of this pass
 * at: byte of the first record not read; lines: before it; extra: read with more than two
 *     columns
 */
typedef struct {
    int64_t base, most_u, most_v, loops, canonical, lead;
    int64_t separator, fields, u, v, quotes;
    uint8_t comments[8];
    int64_t *sizes;
    int64_t capacity, at, lines, extra;
} rules;

#define LONGEST_COLUMN 100000 /* bytes; Python's csv has a limit above it */

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

/* Skip blanks that do not separate columns. */
static inline const uint8_t *skip_padding(const uint8_t *p, const rules *r)
{
    while (r->separator != ' ' && blank(*p) && *p != r->separator)
        p++;
    return p;
}

/* A column: its text without quotes around it; stop: NULL before it is known */
typedef struct {
    const uint8_t *text, *stop;
} column;

/* Read a quoted column from after its quote; return the byte after the closing one, or NULL
 * where quotes are doubled, or the line ends in it. */
static const uint8_t *quoted(const uint8_t *p, const uint8_t *stop, column *c)
{
    c->text = p;
    c->stop = memchr(p, '"', (size_t)(stop - p));
    if (!c->stop || c->stop[1] == '"' || memchr(p, '\n', (size_t)(c->stop - p)))
        return NULL;
    return c->stop + 1;
}

/* Take an id at the beginning of a column, and find the end of that column where it is not
 * known; return 0 where it is unusual. */
static inline int take_id(const rules *r, const uint8_t *text, column *c, int64_t *id,
                          int64_t *size)
{
    const uint8_t *begin, *stop = c->stop;
    begin = stop ? skip_blanks(c->text) : skip_padding(c->text, r);
    if (!r->sizes) {
        const uint8_t *end = number(begin, r->canonical, id);
        c->stop = stop ? stop : end;
        return end && (!stop || skip_blanks(end) == stop);
    }
    while (begin < stop && blank(stop[-1]))
        stop--;
    /* mutant: begin != c->text -> 0 : test_c_reads_what_python_reads */
    if (begin >= stop || (begin != c->text && *begin == '"'))
        return 0;
    *id = begin - text;
    *size = stop - begin;
    return 1;
}

/* Read a record; return its line end (\n), or NULL if it is unusual.
 *
 * text: of the block, [stop - text]; pair, sizes: [2]; extra: set to 1 where there are more
 * columns than two
 */
static inline const uint8_t *record(const uint8_t *p, const uint8_t *stop, const rules *r,
                                    const uint8_t *text, int64_t *pair, int64_t *sizes,
                                    int64_t *extra)
{
    const uint8_t separator = (uint8_t)r->separator, *line = p;
    const uint8_t tab = separator == ' ' ? '\t' : separator; /* separates, too */
    const int64_t last = r->u > r->v ? r->u : r->v;
    int64_t columns = 0, filled = 0;
    if (r->lead && !(*p == r->lead && blank(p[1])))
        return NULL;
    for (;; p++) {
        while (*p == ' ' || (*p == '\t' && separator == ' '))
            p++;
        if (separator == ' ' && columns && line_end(p))
            break;
        if (columns > last && filled > 1) {
            const uint8_t *end = memchr(p, '\n', (size_t)(stop - p));
            const uint8_t *cut = end[-1] == '\r' ? end - 1 : end;
            if (cut - p > LONGEST_COLUMN || memchr(p, '\r', (size_t)(cut - p)))
                return NULL;
            if (!r->quotes || !memchr(line, '"', (size_t)(cut - line))) {
                for (int64_t k = 0; r->fields && p + k < cut; k++)
                    columns += !blank(p[k]) && blank(p[k - 1]);
                while (p < cut && (blank(*p) || *p == separator))
                    p++;
                filled += p < cut;
                p = end;
                break;
            }
        }
        column c = {p, NULL};
        const int is_u = columns == r->u, is_v = columns == r->v;
        const int is_quoted = *p == '"' && r->quotes;
        const int is_number = (is_u || is_v) && !r->sizes && !is_quoted;
        if (is_quoted) {
            p = quoted(p + 1, stop, &c);
            if (!p)
                return NULL;
        } else if (!is_number) {
            while (*p != separator && *p != tab && *p != '\n' && *p != '\r')
                p++;
            c.stop = p;
        }
        if ((is_u && !take_id(r, text, &c, pair, sizes)) ||
            (is_v && !take_id(r, text, &c, pair + 1, sizes + 1)))
            return NULL;
        if (is_number)
            p = skip_padding(c.stop, r);
        if (c.stop - c.text > LONGEST_COLUMN)
            return NULL;
        columns++;
        filled += skip_blanks(c.text) < c.stop;
        if (line_end(p))
            break;
        if (*p != separator && *p != tab)
            return NULL;
    }
    p += *p == '\r';
    /* where there are quotes, Python makes blanks of only some of the tabs */
    if (separator == ' ' && r->quotes && memchr(line, '\t', (size_t)(p - line)) &&
        memchr(line, '"', (size_t)(p - line)))
        return NULL;
    /* mutant: filled > 2 -> filled > 1 : test_c_reads_what_python_reads */
    *extra = filled > 2 + (r->lead > 0);
    if (columns <= last || (r->fields && columns != r->fields))
        return NULL;
    if (r->sizes)
        return p;
    const int64_t u = pair[0], v = pair[1];
    if (u < r->base || u > r->most_u || v < r->base || v > r->most_v || (u == v && !r->loops))
        return NULL;
    pair[0] -= r->base;
    pair[1] -= r->base;
    return p;
}

/* Write the pairs of a block of whole lines until one is no good pair; return how many.
 *
 * text: [length] bytes, the last one \n
 * pairs: [r->capacity][2] ids that are numbers, less r->base, or where in the text they are
 */
int64_t parse(rules *r, int64_t length, const uint8_t *text, int64_t *pairs)
{
    const uint8_t *p = text, *stop = text + length;
    int64_t count = 0, *sizes = r->sizes ? r->sizes : pairs;
    r->lines = r->extra = 0;
    for (; p < stop; p++) {
        const uint8_t *line = p, *first = skip_blanks(p);
        int64_t extra = 0;
        if (line_end(first)) {
            p = first + (*first == '\r');
        } else if ((uint8_t)(*first - '0') > 9 &&
                   memchr(r->comments, *first, sizeof r->comments)) {
            p = memchr(first, '\n', (size_t)(stop - first));
        } else {
            p = count == r->capacity ? NULL
                                     : record(line, stop, r, text, pairs + 2 * count,
                                              sizes + 2 * count, &extra);
            if (!p) {
                r->at = line - text;
                return count;
            }
            r->extra += extra;
            count++;
        }
        r->lines++;
    }
    r->at = length;
    return count;
}
