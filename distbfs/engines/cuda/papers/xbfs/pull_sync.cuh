/* The step of a pull for one unvisited vertex, level by level, and the scan of a row
 * by one thread.  XBFS (Gaihre et al., HPDC 2019), Section 2.2. */
#ifndef DISTBFS_PULL_SYNC_CUH
#define DISTBFS_PULL_SYNC_CUH
#include "paper_tally.cuh"
#include "status.cuh"

struct Synchronous {
    static constexpr bool ASYNCHRONOUS = false;

    static __device__ __forceinline__ int load(const int *at) { return load_status(at); }
    /* Look at a neighbour that is not of level - 1. */
    __device__ __forceinline__ void note(int, u32, int) {}
    /* A neighbour of `level`, or NONE. */
    __device__ __forceinline__ u32 same_level() const { return NONE; }
};

/* Write the result for v: `found` is a neighbour of level - 1, or NONE.
 * degree: of the row that was looked at */
template <class Rule>
INLINE void settle(const Params &p, u32 v, u32 degree, u32 found,
                   const Rule &rule, int level, Tally &tally) {
    const bool late = found == NONE;
    const u32 parent = late ? rule.same_level() : found;
    if (parent == NONE) return;
    store_status(p.level + v, late ? level + 1 : level);
    if (p.parent) p.parent[v] = parent;
    if (p.in_row.at != p.row.at) degree = degree_of(p, v);
    if (late) {
        tally.early++;
        tally.early_edges += degree;
    } else {
        tally.found++;
        tally.edges += degree;
    }
}

/* One thread looks for a parent of v, up to the first of level - 1. */
template <class Rule>
INLINE void traverse(const Params &p, u32 v, int level, Tally &tally) {
    Rule rule;
    const u32 degree = in_degree_of(p, v);
    const u32 *row = p.in_adj + p.in_row[v];
    u32 found = NONE, k = 0;
    while (k < degree && found == NONE) {
        const u32 neighbour = __ldg(row + k++);
        const int status = Rule::load(p.level + neighbour);
        if (status == level - 1)
            found = neighbour;
        else
            rule.note(status, neighbour, level);
    }
    count_pulled(p, degree, k);
    settle(p, v, degree, found, rule, level, tally);
}
#endif
