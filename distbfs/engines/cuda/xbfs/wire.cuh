/* What devices put into each other's memory without a host: NVSHMEM.
 *
 * A share is a processing element of the same number.  Addresses are of the symmetric heap. */
#ifndef DISTBFS_WIRE_CUH
#define DISTBFS_WIRE_CUH
#include "../common/base.cuh"
/* not nvshmem.h, whose collectives NVRTC refuses before NVSHMEM 3.5 */
#include <device/nvshmem_defines.h>
#include <device/nvshmemx_defines.h>

/* A block puts bytes to another share; complete after `all_put`. */
INLINE void put_block(void *to, const void *from, u64 bytes, u32 share) {
    nvshmemx_putmem_nbi_block(to, from, bytes, (int)share);
}

INLINE void put_word(u64 *to, u64 x, u32 share) {
    nvshmem_uint64_p((uint64_t *)to, (uint64_t)x, (int)share);
}

/* What this block has put is there, when all its threads have come; all of them call it. */
INLINE void all_put() {
    __syncthreads();
    if (threadIdx.x == 0) nvshmem_quiet();
}

INLINE void set_signal(u64 *signal, u64 x, u32 share) {
    nvshmemx_signal_op((uint64_t *)signal, (uint64_t)x, NVSHMEM_SIGNAL_SET, (int)share);
}
#endif
