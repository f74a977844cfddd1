/* CUDA on the CPU, for tests of kernels: what nvcc adds to C++; cuda_on_cpu.cpp runs it. */
#ifndef CUDA_ON_CPU_HPP
#define CUDA_ON_CPU_HPP
#include <cstddef>
#include <cstring>
#include <ctime> /* <utility> would double the time that it takes to read this */

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static thread_local

struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return {x, y, z, w};
}

namespace emulated {
typedef unsigned long long Word;

constexpr unsigned LANES = 32;
constexpr int MOST_COPIES = 16;

struct Index { unsigned x; };

struct Copy { unsigned *to; const unsigned *from; unsigned group; };

/* A CUDA thread, as far as kernels know it. */
struct Thread {
    Index index;
    unsigned group; /* of copies, that is open */
    int copies;
    Copy *copy;
};

/* A block, as far as kernels know it. */
struct Place {
    Index block, size, grid;
    unsigned cluster;
    Thread *now;
    uint4 *dynamic;
};

/* The block that this OS thread runs. */
extern __thread Place *self __attribute__((tls_model("initial-exec")));

/* All lanes of the warp meet: words of all, and what is made of them. */
const Word *shuffle(unsigned mask, Word value);
unsigned ballot(unsigned mask, bool value);
unsigned match(unsigned mask, unsigned value);
unsigned sum(unsigned mask, unsigned value);
unsigned most(unsigned mask, unsigned value);
void meet(unsigned mask);

void meet_block();
int any_of_block(int value);
void arrive_at_cluster();
void wait_for_cluster();
char *address_in_cluster(const void *local, unsigned block);

void to_others();        /* of the warp, or of the block */
void let_others_write(); /* in other blocks */
void stop(const char *what);

typedef void Call(void **arguments);
typedef char *Anchor();

template <class T> Word word_of(T x) {
    Word word = 0;
    static_assert(sizeof(T) <= sizeof(Word), "no builtin takes so much");
    memcpy(&word, &x, sizeof(T));
    return word;
}
template <class T> T from_word(Word word) {
    T x;
    memcpy(&x, &word, sizeof(T));
    return x;
}

/* Where the thread-local variables of this library are, which are the shared ones. */
static inline char *anchor() {
    static thread_local char here;
    return &here;
}

template <class... Types> struct Called {
    Called(void (*kernel)(Types...), Types &...arguments) { kernel(arguments...); }
};
template <class... Types> void call_with(void (*kernel)(Types...), void **arguments) {
    Called<Types...>{kernel, *(Types *)*arguments++...}; /* in this order: in braces */
}
} // namespace emulated

extern "C" int emulated_launch(emulated::Call *call, emulated::Anchor *anchor, void **arguments,
                               unsigned grid, unsigned threads, unsigned shared,
                               unsigned together, unsigned cluster, unsigned seed,
                               unsigned seconds, char *message);

/* A function `launch_NAME` that Python calls. */
#define EMULATED_KERNEL(name)                                                            \
    static void call_##name(void **arguments) { emulated::call_with(name, arguments); }  \
    extern "C" int launch_##name(void **arguments, unsigned grid, unsigned threads,      \
                                 unsigned shared, unsigned together, unsigned cluster,   \
                                 unsigned seed, unsigned seconds, char *message) {       \
        return emulated_launch(call_##name, emulated::anchor, arguments, grid, threads,  \
                               shared, together, cluster, seed, seconds, message);       \
    }

#define threadIdx (emulated::self->now->index)
#define blockIdx (emulated::self->block)
#define blockDim (emulated::self->size)
#define gridDim (emulated::self->grid)
#define EMULATED_DYNAMIC (emulated::self->dynamic)

/* Builtins of a warp. */
template <class T> T __shfl_sync(unsigned mask, T x, unsigned lane) {
    using namespace emulated;
    return from_word<T>(shuffle(mask, word_of(x))[lane % LANES]);
}
template <class T> T __shfl_up_sync(unsigned mask, T x, unsigned by) {
    using namespace emulated;
    const unsigned lane = threadIdx.x % LANES;
    const Word *all = shuffle(mask, word_of(x));
    return lane >= by ? from_word<T>(all[lane - by]) : x;
}
template <class T> T __shfl_down_sync(unsigned mask, T x, unsigned by) {
    using namespace emulated;
    const unsigned lane = threadIdx.x % LANES;
    const Word *all = shuffle(mask, word_of(x));
    return lane + by < LANES ? from_word<T>(all[lane + by]) : x;
}
template <class T> T __shfl_xor_sync(unsigned mask, T x, unsigned with) {
    using namespace emulated;
    const unsigned lane = threadIdx.x % LANES;
    return from_word<T>(shuffle(mask, word_of(x))[lane ^ with]);
}
static inline unsigned __ballot_sync(unsigned mask, bool x) { return emulated::ballot(mask, x); }
static inline bool __any_sync(unsigned mask, bool x) { return emulated::ballot(mask, x) != 0; }
static inline bool __all_sync(unsigned mask, bool x) { return emulated::ballot(mask, !x) == 0; }
static inline unsigned __match_any_sync(unsigned mask, unsigned x) {
    return emulated::match(mask, x);
}
static inline unsigned __reduce_add_sync(unsigned mask, unsigned x) {
    return emulated::sum(mask, x);
}
static inline unsigned __reduce_max_sync(unsigned mask, unsigned x) {
    return emulated::most(mask, x);
}
static inline unsigned __reduce_min_sync(unsigned mask, unsigned x) {
    return ~emulated::most(mask, ~x);
}
static inline void __syncwarp(unsigned mask = ~0u) { emulated::meet(mask); }

static inline void __syncthreads() { emulated::meet_block(); }
static inline int __syncthreads_or(int x) { return emulated::any_of_block(x); }
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((unsigned long long)a * b >> 32);
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __ldcs(const T *p) { return *p; }
template <class T> void __stcs(T *p, const T &x) { *p = x; }
template <class T> T __ldcg(const T *p) { return *(const volatile T *)p; }
/* A status that others may write meanwhile: the value is old when it comes. */
static inline int __ldcg(const int *p) {
    const int x = *(const volatile int *)p;
    emulated::let_others_write();
    return x;
}
static inline uint4 __ldcg(const uint4 *p) { return *p; }
static inline uint2 __ldcg(const uint2 *p) { return *p; }

/* Atomics. */
template <class T> T atomicOr(T *p, T x) { return __atomic_fetch_or(p, x, __ATOMIC_RELAXED); }
template <class T> T atomicAnd(T *p, T x) { return __atomic_fetch_and(p, x, __ATOMIC_RELAXED); }
template <class T> T atomicAdd(T *p, T x) { return __atomic_fetch_add(p, x, __ATOMIC_RELAXED); }
static inline double atomicAdd(double *p, double x) {
    double old = *p, sum = old + x;
    while (!__atomic_compare_exchange(p, &old, &sum, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        sum = old + x;
    return old;
}
template <class T> T atomicExch(T *p, T x) { return __atomic_exchange_n(p, x, __ATOMIC_RELAXED); }
template <class T> T atomicCAS(T *p, T old, T x) {
    __atomic_compare_exchange_n(p, &old, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return old;
}
template <class T> T atomicMin(T *p, T x) {
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (x < old &&
           !__atomic_compare_exchange_n(p, &old, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return old;
}
template <class T> T atomicMax(T *p, T x) {
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (old < x &&
           !__atomic_compare_exchange_n(p, &old, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return old;
}
#endif
