/* The inner graph and the outer edges of a domain's part, or of a device's share of it.
 *
 * Method: count each row's edges inside the domain, number the normal vertices by that,
 * then write the keys of a range of rows, each row at its place, to be sorted; outer
 * edges are copied in their order.
 *
 * Data encoding: numbers and positions are those of inner_part.py; a key is row * 2^32 +
 * position, rows of delegates are positions, those of normal vertices are numbers; columns
 * of nn are share * 2^32 + number there, the number alone in 32 bits where there is one share;
 * device [shares] is the device of this domain that has a share, NONE for shares of others.
 *
 * Source: Pan, Pearce, Owens 2018, Section III-B (the subgraphs).
 *
 * All kernels take one-dimensional grids of any size and blocks of BLOCK threads; a row is
 * taken by a warp.
 */
#include "../../engines/cuda/common/base.cuh"

#define BLOCK 256
#define LONGEST 1024u /* delegates whose rows all warps share */
#define PIECE 1024u   /* edges of such a row that a warp takes */

INLINE u64 warp_of() { return thread_of(BLOCK) >> 5; }
INLINE u64 all_warps() { return threads_of(BLOCK) >> 5; }

/* Whether a column of nn stays in a domain. */
INLINE bool is_inner(u64 column, const u32 *device) {
    return device[column >> 32] != NONE;
}

/* The position of a column of nn that stays; see normal_keys. */
INLINE u32 position_of(u64 column, const u32 *device, const u64 *starts, const u32 *places) {
    return places[starts[device[column >> 32]] + (u32)column];
}

/* Counts the edges of normal vertices: inside (nd, nn), and to other parts.
 *
 * nn, nd: [active + 1], offsets; nn_columns: [edges]; inner, outer: [active]
 */
extern "C" __global__ void __launch_bounds__(BLOCK)
count_normals(u32 active, const u32 *device, Uints nn, Uints nn_columns, Uints nd, u32 *inner, u32 *outer) {
    const u32 lane = threadIdx.x & 31;
    for (u64 v = warp_of(); v < active; v += all_warps()) {
        const u64 begin = nn[v], end = nn[v + 1];
        u32 here = 0;
        for (u64 e = begin + lane; e < end; e += 32) here += is_inner(nn_columns[e], device);
        here = __reduce_add_sync(ALL, here);
        if (lane) continue;
        inner[v] = here + (u32)(nd[v + 1] - nd[v]);
        outer[v] = (u32)(end - begin) - here;
    }
}

/* Keys of edges from … to-1 of a delegate's row: dd, then dn. */
INLINE void row_keys(u64 row, u64 from, u64 to, u64 in_dd, const u32 *dd, const u32 *dn,
                     const u32 *spot, const u32 *place, u64 *keys, u32 lane) {
    for (u64 e = from + lane; e < to; e += 32)
        keys[e] = row | (e < in_dd ? spot[dd[e]] : place[dn[e - in_dd]]);
}

/* The keys of delegates; the first of them have the longest rows, which all warps share.
 *
 * low, high: the range of delegates; dd, dn: [d + 1], offsets; dd_columns, dn_columns:
 * [edges]; spot: [d], delegate -> position; place: [active], number here -> position
 * first: keys before the range; offsets: [d + 1], of this device's pieces of the rows
 * keys: [keys of the range]
 */
extern "C" __global__ void __launch_bounds__(BLOCK)
delegate_keys(u32 low, u32 high, Uints dd, const u32 *dd_columns, Uints dn,
              const u32 *dn_columns, const u32 *spot, const u32 *place, u64 first,
              const u64 *offsets, u64 *keys) {
    const u32 lane = threadIdx.x & 31, middle = low < LONGEST ? (high < LONGEST ? high : LONGEST) : low;
    for (u32 c = low; c < middle; c++) {
        const u64 dd0 = dd[c], dn0 = dn[c], in_dd = dd[c + 1] - dd0;
        const u64 row = (u64)spot[c] << 32, all = in_dd + (dn[c + 1] - dn0);
        for (u64 e = warp_of() * PIECE; e < all; e += all_warps() * PIECE)
            row_keys(row, e, e + PIECE < all ? e + PIECE : all, in_dd, dd_columns + dd0,
                     dn_columns + dn0, spot, place, keys + (offsets[c] - first), lane);
    }
    for (u64 c = middle + warp_of(); c < high; c += all_warps()) {
        const u64 dd0 = dd[c], dn0 = dn[c], in_dd = dd[c + 1] - dd0;
        row_keys((u64)spot[c] << 32, 0, in_dd + (dn[c + 1] - dn0), in_dd, dd_columns + dd0,
                 dn_columns + dn0, spot, place, keys + (offsets[c] - first), lane);
    }
}

/* The keys of normal vertices: nd, then the edges of nn that stay in the domain.
 *
 * low, high: the range of rows; normals: the first row of one; device: [shares], see above
 * order: [active], row - normals -> number; nn, nd: [active + 1], offsets;
 * nn_columns, nd_columns: [edges]; spot: [d], delegate -> position; starts: [devices] and
 * places: [normal vertices of the domain], start of a device, and its number -> position
 * first: keys before the range; offsets: [rows + 1]; keys: [keys of the range]
 */
extern "C" __global__ void __launch_bounds__(BLOCK)
normal_keys(u32 low, u32 high, u32 normals, const u32 *device, const u32 *order,
            Uints nn, Uints nn_columns, Uints nd, const u32 *nd_columns,
            const u32 *spot, const u64 *starts, const u32 *places, u64 first, const u64 *offsets,
            u64 *keys) {
    const u32 lane = threadIdx.x & 31;
    for (u64 p = low + warp_of(); p < high; p += all_warps()) {
        const u32 v = order[p - normals];
        const u64 row = p << 32, nd0 = nd[v], in_nd = nd[v + 1] - nd0;
        u64 at = offsets[p] - first;
        for (u64 e = lane; e < in_nd; e += 32) keys[at + e] = row | spot[nd_columns[nd0 + e]];
        at += in_nd;
        for (u64 e = nn[v]; e < nn[v + 1]; e += 32) {
            const bool some = e + lane < nn[v + 1];
            const u64 column = some ? nn_columns[e + lane] : 0;
            const bool inner = some && is_inner(column, device);
            const u32 who = __ballot_sync(ALL, inner);
            if (inner)
                keys[at + __popc(who & lanes_below(lane))] =
                    row | position_of(column, device, starts, places);
            at += __popc(who);
        }
    }
}

/* The outer edges of a range of normal vertices, by position.
 *
 * low, high: the range; order: [active], as in normal_keys; nn: [active + 1], offsets;
 * nn_columns: [edges]; offsets: [active + 1], of the outer edges
 * first: outer edges before the range; columns: [outer edges of the range], as in nn
 */
extern "C" __global__ void __launch_bounds__(BLOCK)
outer_rows(u32 low, u32 high, const u32 *device, const u32 *order, Uints nn,
           const u64 *nn_columns, const u64 *offsets, u64 first, u64 *columns) {
    const u32 lane = threadIdx.x & 31;
    for (u64 k = low + warp_of(); k < high; k += all_warps()) {
        const u32 v = order[k];
        u64 at = offsets[k] - first;
        for (u64 e = nn[v]; e < nn[v + 1]; e += 32) {
            const bool some = e + lane < nn[v + 1];
            const u64 column = some ? nn_columns[e + lane] : 0;
            const bool outer = some && !is_inner(column, device);
            const u32 who = __ballot_sync(ALL, outer);
            if (outer) columns[at + __popc(who & lanes_below(lane))] = column;
            at += __popc(who);
        }
    }
}
