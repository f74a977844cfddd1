/* Integer types and warp constants of the paper's kernels; NVRTC has no headers. */
#ifndef DISTBFS_TYPES_CUH
#define DISTBFS_TYPES_CUH
#include "ptx.cuh"

typedef u32 uint32_t;
typedef u64 uint64_t;

#define DEVICE static __device__ __forceinline__

constexpr uint32_t FULL = 0xffffffffu; /* all lanes of a warp */
constexpr uint32_t NONE = 0xffffffffu; /* no vertex, no parent */
constexpr uint32_t BLOCK = 256;        /* threads of a block; the same in paper.py */

#ifndef OFFSET
#define OFFSET uint32_t /* type of row offsets: uint64_t from 2^32 edges on */
#endif
#ifndef COUNT
#define COUNT 0 /* 1: count edge checks, repeats and work by degree */
#endif

DEVICE uint32_t lane_id() { return threadIdx.x & 31; }
DEVICE uint32_t all_threads() { return gridDim.x * BLOCK; }
DEVICE uint32_t thread_id() { return blockIdx.x * BLOCK + threadIdx.x; }
DEVICE uint32_t lanes_below() { return (1u << lane_id()) - 1; }
#endif
