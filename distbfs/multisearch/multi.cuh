/* The state of a search in its own block, and loops over its vertices and edges.
 *
 * Vertices are numbers (graph/device_graph.py) and, behind those, vertices without edges.
 * A block keeps the order in which vertices were found, which is its queue: those below
 * `split` (degree of T or more) from the end, others from the front; a level is a range
 * of each.  A warp takes the next vertex from the end, or the next 32 from the front, by
 * a counter in shared memory.
 * Source: McLaughlin, Riedy, Bader 2015, Section III and Algorithm 1.
 */
#ifndef DISTBFS_MULTI_CUH
#define DISTBFS_MULTI_CUH
#include "../engines/cuda/common/base.cuh"

#define UNREACHED ((LEVEL)-1)
#define DEEPEST (sizeof(LEVEL) == 1 ? 126u : sizeof(LEVEL) == 2 ? 32767u : 0x7ffffffeu)

struct Params {
    Uints row;            /* [active + 1] */
    const u32 *adj;       /* [m + pad] */
    const u32 *from;      /* [m], the row of each edge, with EDGES */
    const u32 *numbers;   /* [n], id -> number, vertices without edges too */
    const u32 *vertices;  /* [n], number -> id */
    const u32 *sources;   /* [k], ids */
    LEVEL *level;         /* [searches or blocks][stride], with LEVELS */
    u32 *order;           /* [blocks][active + 1] */
    u32 *starts;          /* [blocks][2][active + 3], of levels in the order, with POST */
    u32 *bits;            /* [blocks][words] visited, or null: in shared memory */
    u32 *control;         /* [2]: next search; 1 where levels passed DEEPEST, 2 where the host
                             ended the searches */
    const u64 *stop;      /* [1], of the host: 1 to end the searches; null: nobody asks */
    u64 m, stride;        /* of level and of state by pair: a multiple of 16 */
    u32 n, active, words, split;
    u32 first, count;     /* searches of this launch; of all are k */
    u32 level_by_search;
    u32 most;             /* levels beyond it are not searched */
};

/* Shared by the threads of a block. */
struct Block {
    u32 small, large; /* ends of the order, from its front and from its end */
    u32 small_next, large_next, search;
    u32 stop; /* what was seen of the host's word at this level */
};

struct Base {
    u32 index;  /* of the search, 0 … k-1 */
    u32 source; /* its number */
    u32 n;
    u32 depth;  /* the level being expanded; in end the deepest */
    u32 size;   /* vertices of that level, in prior and visit_vertex */
    LEVEL *level;
    const Params *p;
    Block *block;
    u32 *order, *starts, *bits;

    __device__ __forceinline__ u32 thread() const { return threadIdx.x; }
    __device__ __forceinline__ u32 threads() const { return THREADS; }
    __device__ __forceinline__ u32 id(u32 v) const { return __ldg(p->vertices + v); }
    __device__ __forceinline__ u32 degree(u32 v) const { return row_of(v).count; }
    __device__ __forceinline__ Columns row_of(u32 v) const {
        if (v >= p->active) return {p->adj, 0};
        return columns_of(p->row, p->adj, v);
    }

    /* Begin a round of grabs: all threads call it, and meet twice. */
    __device__ __forceinline__ void rewind() const {
        __syncthreads();
        if (threadIdx.x == 0) block->small_next = block->large_next = 0;
        __syncthreads();
    }

    /* Call f(u, lane, large) for the vertices in the two ranges of the order: `large` once
     * for all lanes of a warp, otherwise for one vertex a lane, NONE where there is none. */
    template <class F>
    __device__ __forceinline__ void grab(u32 small, u32 small_end, u32 large, u32 large_end,
                                         F f) const {
        const u32 lane = lane_id();
        for (;;) {
            u32 i = 0;
            if (lane == 0) i = atomicAdd(&block->large_next, 1u);
            i = __shfl_sync(ALL, i, 0);
            if (i >= large_end - large) break;
            f(order[p->active - (large + i)], lane, true);
        }
        for (;;) {
            u32 i = 0;
            if (lane == 0) i = atomicAdd(&block->small_next, 32u);
            i = __shfl_sync(ALL, i, 0);
            if (i >= small_end - small) break;
            f(i + lane < small_end - small ? order[small + i + lane] : NONE, lane, false);
        }
    }

    /* Call f(u, v, there) for all edges out of two ranges; all lanes of a warp at once. */
    template <class F>
    __device__ __forceinline__ void edges(u32 small, u32 small_end, u32 large, u32 large_end,
                                          F f) const {
        grab(small, small_end, large, large_end, [&](u32 u, u32 lane, bool wide) {
            const Columns row = row_of(u);
            if (wide) /* all lanes have the same row */
                for (u32 k = lane; k - lane < row.count; k += 32)
                    f(u, k < row.count ? __ldg(row.at + k) : 0, k < row.count);
            else
                for (u32 k = 0; __any_sync(ALL, k < row.count); k++)
                    f(u, k < row.count ? __ldg(row.at + k) : 0, k < row.count);
        });
    }

    /* In end: call f(v), a thread each, for the vertices of a level. */
    template <class F> __device__ __forceinline__ void each(u32 d, F f) const {
        const u32 *large = starts + p->active + 3;
        for (u32 i = starts[d] + threadIdx.x; i < starts[d + 1]; i += THREADS) f(order[i]);
        for (u32 i = large[d] + threadIdx.x; i < large[d + 1]; i += THREADS)
            f(order[p->active - i]);
        __syncthreads();
    }

    /* In end: for each vertex u of a level call g(u, sum of f(u, v) over its edges). */
    template <class F, class G> __device__ __forceinline__ void each_sum(u32 d, F f, G g) const {
        const u32 *starts_large = starts + p->active + 3;
        rewind();
        grab(starts[d], starts[d + 1], starts_large[d], starts_large[d + 1],
             [&](u32 u, u32 lane, bool wide) {
                 if (u == NONE) return;
                 const Columns row = row_of(u);
                 decltype(f(u, u)) sum = 0;
                 for (u32 k = wide ? lane : 0; k < row.count; k += wide ? 32 : 1)
                     sum += f(u, __ldg(row.at + k));
                 if (wide) {
                     __syncwarp();
                     sum = warp_sum(sum);
                 }
                 if (!wide || lane == 0) g(u, sum);
             });
        __syncthreads();
    }
};

/* For finalize: all threads of a launch. */
struct WholeBase {
    u32 n, k;
    const u32 *vertices;
    __device__ __forceinline__ u64 thread() const { return thread_of(); }
    __device__ __forceinline__ u64 threads() const { return threads_of(); }
    __device__ __forceinline__ u32 id(u32 v) const { return vertices[v]; }
};
#endif
