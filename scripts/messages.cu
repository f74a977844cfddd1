/* Rounds of messages to a partner, which stands for many: each is a put and a signal.
 *
 * A block waits for the signals of the same block there before its next round. */
#include "../distbfs/engines/cuda/xbfs/wire.cuh"

#define PATIENCE 4000000000ull /* ns */

extern "C" __global__ void rounds(u64 *boxes, u64 *signals, const u64 *from, u32 count, u32 words,
                                  u32 times, u64 turn, u32 other, u64 *late) {
    for (u32 r = 0; r < times; r++, turn++) {
        for (u32 k = blockIdx.x; k < count; k += gridDim.x)
            put_block(boxes + (u64)k * words, from, 8ull * words, other);
        all_put();
        for (u32 k = blockIdx.x + threadIdx.x * gridDim.x; k < count; k += blockDim.x * gridDim.x)
            set_signal(signals + k, turn, other);
        for (u32 k = blockIdx.x + threadIdx.x * gridDim.x; k < count; k += blockDim.x * gridDim.x) {
            const u64 since = nanoseconds();
            while (look_system(signals + k) < turn)
                if (nanoseconds() - since > PATIENCE) {
                    *late = 1;
                    return;
                }
        }
        __syncthreads();
    }
}
