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
#include <stdint.h>
#include <string.h>

/* The rules for lines, and the state of a pass over them.
 *
 * base, most_u, most_v: least and largest ids as written, of each column; base is taken
 *      away; loops: whether both may be the same; canonical: whether none has leading zeros
 * comment_a, comment_b: bytes that begin a comment line
 * lead: byte that begins each line with a pair, with blanks after it; 0: none
 * separator: ' ' for blanks, or ',', ';', '\t'
 * fields: columns of a line, 0: two or more; u, v: places of the ids
 * quotes: whether columns may be quoted, which makes records of a line and all after it
 * sizes: [capacity][2] bytes of each id that is text, NULL where ids are numbers
 * capacity: most pairs of this pass
 * records: whether lines are records
 * at: byte of the first line not read; lines: before it; extra: read with more than two
 *     columns; end: why the pass ended
 */
typedef struct {
    int64_t base, most_u, most_v, loops, canonical, comment_a, comment_b, lead;
    int64_t separator, fields, u, v, quotes;
    int64_t *sizes;
    int64_t capacity, records, at, lines, extra, end;
} rules;

enum { DONE, UNUSUAL, CUT }; /* why a pass ends */

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

static inline int in_range(const rules *r, int64_t u, int64_t v)
{
    return r->base <= u && u <= r->most_u && r->base <= v && v <= r->most_v;
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
    if (!p || !in_range(r, *u, *v))
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

/* A column: its text without quotes around it, whether quotes are doubled in it */
typedef struct {
    const uint8_t *text;
    int64_t size;
    int doubled;
} column;

/* Read a quoted column from after its quote; return the byte after the closing one, or NULL
 * and set r->end. */
static const uint8_t *quoted(const uint8_t *p, const uint8_t *stop, rules *r, column *c)
{
    for (c->text = p;; p += 2) {
        const uint8_t *quote = memchr(p, '"', (size_t)(stop - p));
        if ((quote ? quote : stop) - c->text > LONGEST_COLUMN)
            return NULL;
        if (!quote) {
            r->end = CUT;
            return NULL;
        }
        c->size = quote - c->text;
        p = quote;
        if (p[1] != '"')
            return p + 1;
        c->doubled = 1;
    }
}

/* Read the columns of ids of a record, as Python's csv does with skipinitialspace and
 * strict; return its line end (\n), or NULL and set r->end.  extra: set to 1 where there are
 * more columns than two */
static const uint8_t *record(const uint8_t *p, const uint8_t *stop, rules *r, column ids[2],
                             int64_t *extra)
{
    const uint8_t separator = (uint8_t)r->separator, *begin = p;
    const uint8_t tab = separator == ' ' ? '\t' : separator; /* separates, too */
    int64_t columns = 0, filled = 0;
    for (;; p++) {
        column c = {NULL, 0, 0};
        while (*p == ' ' || (*p == '\t' && separator == ' '))
            p++;
        if (*p == '"') {
            p = quoted(p + 1, stop, r, &c);
            if (!p)
                return NULL;
        } else {
            for (c.text = p; *p != separator && *p != tab && *p != '\n' && *p != '\r';)
                p++;
            c.size = p - c.text;
        }
        if (columns == r->u)
            ids[0] = c;
        if (columns == r->v)
            ids[1] = c;
        columns++;
        filled += c.size > 0;
        if (c.size > LONGEST_COLUMN)
            return NULL;
        if (line_end(p))
            break;
        if (*p != separator && *p != tab)
            return NULL;
    }
    p += *p == '\r';
    const size_t size = (size_t)(p - begin);
    /* where there are quotes, Python makes blanks of only some of the tabs */
    if (separator == ' ' && memchr(begin, '\t', size) && memchr(begin, '"', size))
        return NULL;
    /* mutant: filled > 2 -> filled > 1 : test_c_reads_what_python_reads */
    *extra = columns > 2 && filled > 2;
    return columns < 2 || columns <= r->u || columns <= r->v ? NULL : p;
}

/* Read the ids of a record; return 0 where it is unusual.  Where quotes are doubled in an id
 * that is text, the text is changed. */
static int take_ids(const rules *r, const column ids[2], const uint8_t *text, int64_t *pair,
                    int64_t *sizes)
{
    for (int side = 0; side < (r->u == r->v ? 1 : 2); side++) {
        const uint8_t *begin = ids[side].text, *stop = begin + ids[side].size;
        const int led = begin < stop && blank(*begin);
        if (ids[side].doubled && r->sizes) {
            uint8_t *to = (uint8_t *)begin;
            for (const uint8_t *p = begin; p < stop; p += 1 + (*p == '"'))
                *to++ = *p;
            stop = to;
        }
        while (begin < stop && blank(*begin))
            begin++;
        while (begin < stop && blank(stop[-1]))
            stop--;
        /* mutant: led && -> 0 && : test_c_reads_what_python_reads */
        if (begin == stop || (led && *begin == '"'))
            return 0;
        if (r->sizes) {
            pair[side] = begin - text;
            sizes[side] = stop - begin;
        } else if (number(begin, r->canonical, pair + side) != stop) {
            return 0;
        }
    }
    if (r->u == r->v) {
        pair[1] = pair[0];
        if (r->sizes)
            sizes[1] = sizes[0];
    }
    return r->sizes || in_range(r, pair[0], pair[1]);
}

/* Write the pairs of a block of whole lines until one is no good pair; return how many.
 *
 * text: [length] bytes, the last one \n; changed where ids are text
 * pairs: [r->capacity][2] ids that are numbers, less r->base, or where in the text they are
 */
int64_t parse(rules *r, int64_t length, const uint8_t *text, int64_t *pairs)
{
    const uint8_t *p = text, *stop = text + length;
    int64_t count = 0;
    r->lines = r->extra = 0;
    for (; p < stop; p++) {
        const uint8_t *line = p, *rest = skip_blanks(p), *first = r->lead ? line : rest;
        if (line_end(rest)) {
            p = rest + (*rest == '\r');
        } else if (*first == r->comment_a || *first == r->comment_b) {
            p = memchr(rest, '\n', (size_t)(stop - rest));
        } else {
            int64_t extra = 0, *to = pairs + 2 * count;
            column ids[2];
            p = NULL;
            r->end = UNUSUAL;
            if (count < r->capacity && !r->records) {
                const int led = !r->lead || (*line == r->lead && blank(line[1]));
                if (r->lead && led)
                    rest = skip_blanks(line + 1);
                if (led && (r->separator != '\t' || !memchr(line, '\t', (size_t)(rest - line))))
                    p = pair(rest, stop, r, to, to + 1, &extra);
                if (!p && r->quotes) {
                    const uint8_t *end = memchr(line, '\n', (size_t)(stop - line));
                    r->records = memchr(line, '"', (size_t)(end - line)) != NULL;
                }
            }
            if (count < r->capacity && r->records) {
                p = record(line, stop, r, ids, &extra);
                int64_t lines = 0;
                for (const uint8_t *q = line; p && (q = memchr(q, '\n', (size_t)(p - q))); q++)
                    lines++;
                if (p && take_ids(r, ids, text, to, r->sizes + 2 * count))
                    r->lines += lines;
                else
                    p = NULL;
            }
            if (!p) {
                r->at = line - text;
                return count;
            }
            if (!r->sizes) {
                to[0] -= r->base;
                to[1] -= r->base;
            }
            r->extra += extra;
            count++;
        }
        r->lines++;
    }
    r->end = DONE;
    r->at = length;
    return count;
}
