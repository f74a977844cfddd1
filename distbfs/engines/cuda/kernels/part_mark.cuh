/* A forward visit of dn from hubs, whose rows lead to many of the normal vertices.
 *
 * Columns rise in each row, so a row is cut where ranges of targets begin.  A block takes
 * a range, keeps its bits in shared memory, where repeats end, and walks the pieces of all
 * hubs of the frontier; each warp has those of a word at a time.
 */
#ifndef DISTBFS_PART_MARK_CUH
#define DISTBFS_PART_MARK_CUH
#include "part.cuh"

#define MARK_THREADS 1024

/* marked: hubs; seen: shared, [range_words].  Returns edge checks. */
INLINE u64 mark_range(const Params &p, u32 marked, u32 range, u32 *seen) {
    const Rows &rows = p.rows[DN_ROWS];
    const u32 *columns = (const u32 *)rows.columns;
    const u32 lane = threadIdx.x & 31;
    const u32 w0 = range * p.range_words;
    const u32 words = p.words - w0 < p.range_words ? p.words - w0 : p.range_words;
    u64 checks = 0;
    for (u32 w = threadIdx.x; w < words; w += MARK_THREADS)
        seen[w] = p.visited[w0 + w] | p.fresh[w0 + w];
    __syncthreads();
    for (u32 w = threadIdx.x >> 5; w * 32 < marked; w += MARK_THREADS / 32) {
        const u32 c = w * 32 + lane, bits = p.dfront[w] & p.dn_mask[w];
        if (!bits) continue;
        OFFSET begin = 0;
        u32 length = 0;
        VERTEX id = 0;
        if (bits >> lane & 1 && c < marked) {
            const u32 *cut = p.split + (u64)c * (p.ranges + 1) + range;
            begin = rows.offsets[c] + cut[0], length = cut[1] - cut[0];
            id = p.delegate_ids[c];
        }
        for (u32 todo = __ballot_sync(ALL, length); todo; todo &= todo - 1) {
            const u32 one = __ffs(todo) - 1, edges = __shfl_sync(ALL, length, one);
            const OFFSET row = __shfl_sync(ALL, begin, one);
            const VERTEX from = __shfl_sync(ALL, id, one);
            for (u32 e = lane; e < edges; e += 128) {
                u32 v[4];
#pragma unroll
                for (u32 j = 0; j < 4; j++)
                    v[j] = e + j * 32 < edges ? load_once(columns + row + e + j * 32) : NONE;
#pragma unroll
                for (u32 j = 0; j < 4; j++) {
                    if (v[j] == NONE) continue;
                    if (COUNT) checks++;
                    const u32 bit = 1u << (v[j] & 31);
                    u32 *word = seen + ((v[j] >> 5) - w0);
                    if (*(volatile u32 *)word & bit) continue;
                    if (!(atomicOr(word, bit) & bit) && p.parent) p.parent[p.vertices[v[j]]] = from;
                }
            }
            __syncwarp();
        }
    }
    __syncthreads();
    for (u32 w = threadIdx.x; w < words; w += MARK_THREADS)
        p.fresh[w0 + w] = seen[w] & ~p.visited[w0 + w];
    __syncthreads();
    return checks;
}
#endif
