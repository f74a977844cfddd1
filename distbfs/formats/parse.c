/* Pairs of unsigned ids from lines of text.
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
