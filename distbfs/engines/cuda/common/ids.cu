/* Converts results by number to results by id, if a search has not.
 *
 * Method: a thread an id, which reads at its number.
 * Data: numbers as in graph/device_graph.py.
 */
#include "base.cuh"

struct Ids {
    const u32 *numbers;  /* [n], id -> number or NONE */
    const u32 *vertices; /* [active], number -> id */
    const int *level;    /* [active], by number, -1: unreached */
    const u32 *parent;   /* [active], by number, or null */
    int *level_out;      /* [n], by id */
    u32 *parent_out;     /* [n], by id, NONE where unreached; or null */
    u32 n, root;         /* root: id, of `alone` */
};

extern "C" __global__ void to_ids(const Ids p) {
    for (u64 i = thread_of(); i < p.n; i += threads_of()) {
        const u32 v = p.numbers[i];
        const int l = v == NONE ? -1 : p.level[v];
        p.level_out[i] = l;
        if (p.parent_out) p.parent_out[i] = l < 0 ? NONE : p.vertices[p.parent[v]];
    }
}

/* A root without edges */
extern "C" __global__ void alone(const Ids p) {
    for (u64 i = thread_of(); i < p.n; i += threads_of()) {
        p.level_out[i] = i == p.root ? 0 : -1;
        if (p.parent_out) p.parent_out[i] = i == p.root ? p.root : NONE;
    }
}
