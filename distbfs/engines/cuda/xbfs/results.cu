/* Results by id of a search by method `fast`, after its kernel: a block of threads for each
 * block of ids (results_by_id.cuh).  Where ids are few the search writes them itself
 * (search.cu).
 * Data: search.cuh.
 *
 * variants: IN_IDS=1 ID=u32 NAME=u32 | IN_IDS=1 ID=u64 NAME=u32,u64
 */
#define OFFSET u32 /* it reads no row */
#define MASKED 1 /* of searches that see some edges, too: bare_word */
#include "results_by_id.cuh"

#define GROUP 512 /* threads of a block */

extern "C" __global__ void __launch_bounds__(GROUP, 3) results(const Params p) {
    extern __shared__ uint4 dynamic[];
    if (p.state->phase != DONE) return;
    /* the host makes room and comes again */
    const bool wide = too_deep(p, p.state->depth);
    if (wide && !p.level_wide) return;
    u32 moved = 0; /* the root is in a tree of several edges, so that parents there are others */
    if (p.chain > 1) end_of(p, number_of(p, p.root), moved);
    clean(p, p.next_snapshot, p.next_by_first);
    const auto told = [&](u32 v, u32(&level)[4], u32(&from)[4]) {
        uint4 l4 = make_uint4(0, 0, 0, 0), f4 = l4;
        const u32 bytes = wide ? 0 : *(const u32 *)(tree_bytes(p) + (v - p.active));
        if (wide) l4 = load_once4(p.direct + v);
        if (p.parents) f4 = load_once4(moved ? p.parent + v : p.first_id + v);
        const u32 one[4] = {l4.x, l4.y, l4.z, l4.w}, f[4] = {f4.x, f4.y, f4.z, f4.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const u32 byte = bytes >> 8 * i & 255;
            level[i] = wide ? one[i] : byte == 255 ? NONE : byte, from[i] = f[i];
        }
    };
    const u32 top = put_blocks<1>(p, blockIdx.x, 1, GROUP, p.state->k, p.state->base, wide, moved,
                                  dynamic, told);
    tell_highest(p, top, threadIdx.x & 31);
}
