/* Memory rates of a device, for the limit of a search: random bit tests, and reads of host
 * memory in its order.
 *
 * Method: every thread draws pseudo-random places (a linear congruential generator, its high
 * half scaled to the range) and has UNROLL loads in flight.  The values read are
 * summed, so that the compiler cannot omit a load.  Loads go through L1.
 * Data: words of bits, all of which may be drawn. */
#include "../engines/cuda/common/base.cuh"

#define UNROLL 8

INLINE u32 draw(u32 &state) {
    state = state * 1664525u + 1013904223u;
    return state;
}

INLINE u32 first_state(u32 seed) {
    return (thread_of<u32>() + 1) * 2654435761u ^ seed * 40503u;
}

/* words: [ceil(bits / 32)], nowhere written; rounds: of UNROLL tests in each thread;
 * sum: [1] */
extern "C" __global__ void __launch_bounds__(1024)
    bit_tests(const u32 *__restrict__ words, u32 bits, u32 rounds, u32 seed, u64 *sum) {
    u32 state = first_state(seed), found = 0;
    for (u32 round = 0; round < rounds; round++) {
        u32 at[UNROLL], word[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; k++) at[k] = __umulhi(draw(state), bits);
#pragma unroll
        for (int k = 0; k < UNROLL; k++) word[k] = words[at[k] >> 5];
#pragma unroll
        for (int k = 0; k < UNROLL; k++) found += word[k] >> (at[k] & 31) & 1;
    }
    if (found == NONE) atomicAdd(sum, 1ull);
}

/* values: [count] of 16 bytes, in pinned host memory, nowhere written; sum: [1], their words
 * added up */
extern "C" __global__ void __launch_bounds__(1024)
    stream(const uint4 *__restrict__ values, u64 count, u64 *sum) {
    const u64 all = (u64)gridDim.x * blockDim.x;
    u64 total = 0;
    for (u64 i = thread_of<u64>(); i < count; i += all) {
        const uint4 x = values[i];
        total += (u64)x.x + x.y + x.z + x.w;
    }
    if (total) atomicAdd(sum, total);
}
