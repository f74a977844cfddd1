/* Forest-fire graphs (Leskovec, Kleinberg, Faloutsos 2007, Section 5.1).
 *
 * The fires of the vertices run one after the other; forest_fire.py defines a fire.  The
 * tuples of a vertex are contiguous: first[v] is where they begin.  Links to a vertex are a
 * list from the latest to the first: head[v] is a tuple, next[t] the one before it.
 */
#include "hashing.h"

typedef struct {
    uint64_t base, count;
} draws;

static inline uint64_t draw(draws *d) { return mix64(d->base + d->count++ * GOLDEN); }

static inline int64_t below(draws *d, int64_t limit) {
    return (int64_t)((unsigned __int128)draw(d) * (uint64_t)limit >> 64);
}

static inline int64_t run(draws *d, uint64_t limit) {
    int64_t length = 0;
    while (draw(d) >> 11 < limit) length++;
    return length;
}

/* Burn some of the candidates open[0 … size-1]; returns how many. */
static int64_t burn(draws *d, int64_t wanted, int64_t *open, int64_t size, int64_t vertex,
                    int64_t *seen, int64_t *burning) {
    int64_t k = 0;
    for (; k < wanted && k < size; k++) {
        int64_t other = k + below(d, size - k), swap = open[k];
        burning[k] = open[k] = open[other];
        open[other] = swap;
        seen[burning[k]] = vertex;
    }
    return k;
}

/* Runs the fires of the vertices begin … end - 1, after all earlier ones.
 *
 * u, v, next: [room]; first: [n + 1], up to first[begin]; head, seen: [n], -1 before the
 * first fire; open, burning: [n]
 * Returns the first vertex without a fire: end, or one whose tuples have no room. */
int64_t forest_fire(int64_t begin, int64_t end, uint64_t key, uint64_t forward,
                    uint64_t backward, int64_t room, int64_t *u, int64_t *v, int64_t *next,
                    int64_t *first, int64_t *head, int64_t *seen, int64_t *open,
                    int64_t *burning) {
    for (int64_t vertex = begin; vertex < end; vertex++) {
        int64_t tuples = first[vertex];
        draws d = {mix64(key + (uint64_t)vertex * GOLDEN), 0};
        int64_t count = 1;
        burning[0] = below(&d, vertex);
        seen[vertex] = seen[burning[0]] = vertex;
        for (int64_t k = 0; k < count; k++) {
            int64_t at = burning[k], size = 0;
            int64_t ahead = run(&d, forward), back = run(&d, backward);
            for (int64_t t = first[at]; t < first[at + 1]; t++)
                if (seen[v[t]] != vertex) open[size++] = v[t];
            count += burn(&d, ahead, open, size, vertex, seen, burning + count);
            size = 0;
            for (int64_t t = head[at]; t >= 0; t = next[t])
                if (seen[u[t]] != vertex) open[size++] = u[t];
            count += burn(&d, back, open, size, vertex, seen, burning + count);
        }
        if (tuples + count > room) {
            seen[vertex] = -1;
            for (int64_t k = 0; k < count; k++) seen[burning[k]] = -1;
            return vertex;
        }
        for (int64_t k = 0; k < count; k++, tuples++) {
            u[tuples] = vertex;
            v[tuples] = burning[k];
            next[tuples] = head[burning[k]];
            head[burning[k]] = tuples;
        }
        first[vertex + 1] = tuples;
    }
    return end;
}
