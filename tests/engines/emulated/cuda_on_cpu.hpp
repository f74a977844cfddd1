/* CUDA on the CPU, for tests of kernels: what nvcc adds to C++, and an executor.
 *
 * A block is an OS thread, so that `__shared__` is `static thread_local`; a CUDA thread
 * is a fiber of it.  A fiber runs until it must wait: for the lanes of its warp (the
 * builtins with a mask, which is all lanes; those that have returned are excepted), for
 * its block (__syncthreads), for its cluster, or because it looks at what other blocks
 * write.  Warps take turns in an order that `seed` chooses, so that one may be far ahead
 * of another.  Shared memory begins as garbage; copies by cp.async arrive as late as
 * they may.  Blocks of an ordinary launch run one after the other, those of a
 * cooperative one or a cluster at once, at times one of them later than the others.
 */
#ifndef CUDA_ON_CPU_HPP
#define CUDA_ON_CPU_HPP
#include <link.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>
#ifndef __x86_64__
#include <ucontext.h>
#endif

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

constexpr size_t STACK = (64 << 10) + 320; /* tops of stacks share no set of the cache */
constexpr size_t STACK_GUARD = 64;
constexpr size_t GUARD = 4096; /* bytes after dynamic shared memory */
constexpr unsigned char GARBAGE = 0xA5;
constexpr unsigned LANES = 32;
constexpr int MOST_COPIES = 16;

/* One place of execution that another can be switched to. */
struct Context {
#ifdef __x86_64__
    void *stack = nullptr;
#else
    ucontext_t state;
#endif
};

#ifdef __x86_64__
extern "C" void emulated_switch(void **save, void *to) __attribute__((visibility("hidden")));
__asm__(".text\n.hidden emulated_switch\n.globl emulated_switch\n"
        ".type emulated_switch,@function\nemulated_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
        ".size emulated_switch,.-emulated_switch\n");
static inline void change(Context &from, Context &to) { emulated_switch(&from.stack, to.stack); }
static void begin(Context &c, char *stack, void (*entry)()) {
    void **top = (void **)(stack + STACK - 64);
    *--top = nullptr; /* the entry sees a stack as after a call */
    *--top = (void *)entry;
    for (int k = 0; k < 6; k++) *--top = nullptr;
    c.stack = top;
}
#else
static inline void change(Context &from, Context &to) { swapcontext(&from.state, &to.state); }
static void begin(Context &c, char *stack, void (*entry)()) {
    getcontext(&c.state);
    c.state.uc_stack.ss_sp = stack;
    c.state.uc_stack.ss_size = STACK;
    c.state.uc_link = nullptr;
    makecontext(&c.state, entry, 0);
}
#endif

struct Index { unsigned x; };

struct Copy { unsigned *to; const unsigned *from; unsigned group; };

struct Fiber {
    Context context;
    Index thread;
    char *stack;
    unsigned group; /* of copies, that is open */
    unsigned round; /* of the cluster, that it has arrived for */
    int copies;
    Copy copy[MOST_COPIES];
};

enum Kind { NOTHING, SHUFFLE, BALLOT, MATCH, REDUCE, SYNC };

struct Warp {
    unsigned live, ready, arrived, looking, at_block, at_cluster;
    unsigned turn; /* of meetings */
    int kind;
    Word value[2][LANES];
};

struct Launch {
    unsigned grid, threads, shared, cluster, seed;
    bool together;
    void (*call)(void **);
    void **arguments;
    std::atomic<int> failed{0};
    std::atomic<unsigned> met{0}, rounds{0}, finished{0};
    char *message;
    std::mutex lock;
    std::vector<struct Block *> blocks;
    timespec until;
};

struct Block {
    Launch *launch;
    Index block, size, grid;
    Context scheduler;
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    Fiber *now;
    bool down;    /* lanes of a warp run last first */
    unsigned ran; /* lanes, in the present turn of all warps */
    unsigned live, at_block, at_cluster, cluster_round, vote;
    std::vector<char> room;
    uint4 *dynamic;
    char *statics;
    size_t statics_size;
};

static thread_local Block *self;

static void fail(Launch &l, const char *what, unsigned block, unsigned thread) {
    std::lock_guard<std::mutex> hold(l.lock);
    if (!l.failed.load()) snprintf(l.message, 256, "%s (block %u, thread %u)", what, block, thread);
    l.failed.store(1);
}

/* Make the first lane of a warp that can run the present one; false: none can. */
static inline bool next_lane(Block &b, unsigned warp) {
    Warp &w = b.warps[warp];
    if (!w.ready) return false;
    const unsigned lane = b.down ? 31 - __builtin_clz(w.ready) : (unsigned)__builtin_ctz(w.ready);
    w.ready &= ~(1u << lane);
    b.now = &b.fibers[warp * LANES + lane];
    b.ran++;
    return true;
}

static Warp &own_warp() { return self->warps[self->now->thread.x / LANES]; }
static unsigned own_bit() { return 1u << self->now->thread.x % LANES; }

/* Let the next lane of the warp run, else the scheduler. */
static __attribute__((noinline)) void to_others() {
    Block &b = *self;
    Fiber &from = *b.now;
    change(from.context, next_lane(b, from.thread.x / LANES) ? b.now->context : b.scheduler);
}

/* Stop for good: the launch has failed. */
static void stop(const char *what) {
    fail(*self->launch, what, self->block.x, self->now->thread.x);
    while (true) to_others();
}

static void complete(Warp &w) {
    w.ready |= w.arrived;
    w.arrived = 0;
    w.turn++;
}

/* All live lanes give a word; the words of all are there until the next but one. */
static const Word *meet(unsigned mask, int kind, Word value) {
    Block &b = *self;
    const unsigned thread = b.now->thread.x, bit = 1u << thread % LANES;
    Warp &w = b.warps[thread / LANES];
    if (mask != ~0u) stop("a warp builtin whose mask is not all lanes");
    if (!w.arrived) w.kind = kind;
    if (w.kind != kind) stop("lanes of a warp meet at different builtins");
    const unsigned turn = w.turn & 1;
    w.value[turn][thread % LANES] = value;
    w.arrived |= bit;
    if (w.arrived == w.live) {
        complete(w);
        w.ready &= ~bit;
    } else {
        to_others();
    }
    return w.value[turn];
}

static void release_block(Block &b) {
    if (!b.at_block || b.at_block != b.live) return;
    for (Warp &w : b.warps) w.ready |= w.at_block, w.at_block = 0;
    b.at_block = 0;
}

static void release_cluster(Block &b) {
    for (Warp &w : b.warps) w.ready |= w.at_cluster, w.at_cluster = 0;
    b.at_cluster = 0;
}

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

static void entry() {
    self->launch->call(self->launch->arguments);
    Block &b = *self;
    Warp &w = own_warp();
    w.live &= ~own_bit();
    b.live--;
    if (w.arrived && w.arrived == w.live) complete(w);
    release_block(b);
    while (true) to_others();
}

/* Blocks are kept from launch to launch, with their stacks. */
struct Blocks {
    std::mutex lock;
    std::vector<Block *> free;
    std::vector<char *> stacks;
    Block *take(unsigned threads) {
        std::lock_guard<std::mutex> hold(lock);
        Block *one = free.empty() ? new Block : free.back();
        if (!free.empty()) free.pop_back();
        while (one->fibers.size() < threads) {
            one->fibers.emplace_back();
            one->fibers.back().stack = stack();
        }
        return one;
    }
    void give(Block *one) {
        std::lock_guard<std::mutex> hold(lock);
        free.push_back(one);
    }

private:
    char *stack() {
        if (stacks.empty()) {
            const size_t many = 256;
            char *all = (char *)mmap(nullptr, many * STACK, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (all == MAP_FAILED) abort();
            for (size_t k = 0; k < many; k++) stacks.push_back(all + k * STACK);
        }
        char *one = stacks.back();
        stacks.pop_back();
        memset(one, GARBAGE, STACK_GUARD);
        return one;
    }
};
static Blocks kept;

/* The thread-local variables of this library, which are the shared ones. */
static int find_statics(dl_phdr_info *info, size_t, void *data) {
    Block &b = *(Block *)data;
    for (int k = 0; k < info->dlpi_phnum; k++) {
        const ElfW(Phdr) &h = info->dlpi_phdr[k];
        char *at = (char *)info->dlpi_tls_data;
        if (h.p_type != PT_TLS || !at) continue;
        if ((char *)&self < at || (char *)&self >= at + h.p_memsz) continue;
        b.statics = at, b.statics_size = h.p_memsz;
        return 1;
    }
    return 0;
}

/* Let other blocks have the core; who has waited for long sleeps, since there may be
 * fewer cores than blocks. */
static void give_way(unsigned &turns) {
    if (++turns < 64) sched_yield();
    else usleep(20);
}

/* Run all fibers of a block to their ends; false where the launch has failed. */
static bool schedule(Block &b) {
    Launch &l = *b.launch;
    unsigned random = l.seed * 2654435761u + b.block.x * 40503u + 12345u;
    const unsigned count = b.warps.size();
    unsigned idle = 0, turns = 0;
    while (b.live) {
        if (l.failed.load()) return false;
        b.ran = 0;
        random = random * 1664525u + 1013904223u;
        const unsigned from = l.seed ? (random >> 8) % count : 0;
        b.down = l.seed && random >> 30 & 1;
        for (unsigned k = 0; k < count; k++)
            while (next_lane(b, (from + (b.down ? count - k : k)) % count))
                change(b.scheduler, b.now->context);
        bool looking = false;
        for (Warp &w : b.warps) {
            looking |= w.looking != 0;
            b.ran -= __builtin_popcount(w.looking);
            w.ready |= w.looking, w.looking = 0;
        }
        if (b.at_cluster) {
            looking = true;
            if (l.rounds.load(std::memory_order_acquire) != b.cluster_round) release_cluster(b);
        }
        if (b.ran) turns = 0; /* some lanes have done more than look */
        if (!b.ran && !looking && b.live) {
            unsigned stuck = 0;
            for (unsigned k = 0; k < count; k++)
                if (b.warps[k].arrived) stuck = k * LANES;
            fail(l, "threads wait for others that never come", b.block.x, stuck);
            return false;
        }
        if (looking) {
            give_way(turns);
            timespec time;
            if ((++idle & 255) == 0) {
                clock_gettime(CLOCK_MONOTONIC, &time);
                if (time.tv_sec > l.until.tv_sec) {
                    fail(l, "no end after the time allowed", b.block.x, 0);
                    return false;
                }
            }
        }
    }
    return true;
}

static void meet_blocks(Launch &l, unsigned time) {
    unsigned turns = 0;
    l.finished++;
    while (l.finished.load() < time * l.grid) give_way(turns);
}

static void run_block(Launch &l, unsigned index) {
    Block &b = *kept.take(l.threads);
    b.launch = &l, b.block.x = index, b.size.x = l.threads, b.grid.x = l.grid;
    b.room.assign(l.shared + 16 + GUARD, (char)GARBAGE);
    b.dynamic = (uint4 *)(((size_t)b.room.data() + 15) & ~(size_t)15);
    b.statics = nullptr;
    self = &b; /* makes the variables of this thread */
    dl_iterate_phdr(find_statics, &b);
    if (b.statics) memset(b.statics, GARBAGE, b.statics_size);
    self = &b;
    b.warps.assign((l.threads + LANES - 1) / LANES, Warp());
    b.live = l.threads, b.at_block = b.at_cluster = b.cluster_round = b.vote = 0;
    for (unsigned t = 0; t < l.threads; t++) {
        Fiber &f = b.fibers[t];
        f.thread.x = t, f.group = 0, f.copies = 0, f.round = 0;
        begin(f.context, f.stack, entry);
        Warp &w = b.warps[t / LANES];
        w.live |= 1u << t % LANES, w.ready |= 1u << t % LANES;
    }
    l.blocks[index] = &b;
    if (l.together) {
        meet_blocks(l, 1);
        const unsigned late = l.seed % 8; /* the first block begins late, or all others */
        if (late == 3 ? index == 0 : late == 6 && index) usleep(1500);
    }
    schedule(b);
    if (l.together) meet_blocks(l, 2); /* others may write here until all have ended */
    char garbage[GUARD];
    memset(garbage, GARBAGE, GUARD);
    if (memcmp((char *)b.dynamic + l.shared, garbage, GUARD - 16))
        fail(l, "a write past the end of shared memory", index, 0);
    for (unsigned t = 0; t < l.threads; t++)
        if (memcmp(b.fibers[t].stack, garbage, STACK_GUARD)) {
            fail(l, "a stack of the emulator is too small", index, t);
            memcpy(b.fibers[t].stack, garbage, STACK_GUARD);
        }
    kept.give(&b);
}

/* together: all blocks at once; else one after the other.  Returns 0, or 1 with a
 * message [256]. */
static int launch(void (*call)(void **), void **arguments, unsigned grid, unsigned threads,
                  unsigned shared, unsigned together, unsigned cluster, unsigned seed,
                  unsigned seconds, char *message) {
    Launch l;
    l.grid = grid, l.threads = threads, l.shared = shared, l.cluster = cluster, l.seed = seed;
    l.call = call, l.arguments = arguments, l.message = message;
    l.blocks.resize(grid), l.together = together;
    clock_gettime(CLOCK_MONOTONIC, &l.until);
    l.until.tv_sec += seconds;
    if (together) {
        std::vector<std::thread> all;
        for (unsigned k = 0; k < grid; k++) all.emplace_back([&l, k] { run_block(l, k); });
        for (std::thread &one : all) one.join();
    } else { /* another thread: its variables are new, and none is the caller's */
        std::thread([&l] {
            for (unsigned k = 0; k < l.grid && !l.failed.load(); k++) run_block(l, k);
        }).join();
    }
    return l.failed.load();
}

template <class... Types, size_t... At>
void call_with(void (*kernel)(Types...), void **arguments, std::index_sequence<At...>) {
    kernel(*(std::remove_cv_t<Types> *)arguments[At]...);
}
template <class... Types> void call_with(void (*kernel)(Types...), void **arguments) {
    call_with(kernel, arguments, std::index_sequence_for<Types...>());
}
} // namespace emulated

/* A function `launch_NAME` that Python calls. */
#define EMULATED_KERNEL(name)                                                            \
    static void call_##name(void **arguments) { emulated::call_with(name, arguments); }  \
    extern "C" int launch_##name(void **arguments, unsigned grid, unsigned threads,      \
                                 unsigned shared, unsigned together, unsigned cluster,   \
                                 unsigned seed, unsigned seconds, char *message) {       \
        return emulated::launch(call_##name, arguments, grid, threads, shared, together, \
                                cluster, seed, seconds, message);                        \
    }

#define threadIdx (emulated::self->now->thread)
#define blockIdx (emulated::self->block)
#define blockDim (emulated::self->size)
#define gridDim (emulated::self->grid)
#define EMULATED_DYNAMIC (emulated::self->dynamic)

/* Builtins of a warp. */
template <class T> T __shfl_sync(unsigned mask, T x, unsigned lane) {
    using namespace emulated;
    return from_word<T>(meet(mask, SHUFFLE, word_of(x))[lane % LANES]);
}
template <class T> T __shfl_up_sync(unsigned mask, T x, unsigned by) {
    using namespace emulated;
    const unsigned lane = threadIdx.x % LANES;
    const Word *all = meet(mask, SHUFFLE, word_of(x));
    return lane >= by ? from_word<T>(all[lane - by]) : x;
}
template <class T> T __shfl_down_sync(unsigned mask, T x, unsigned by) {
    using namespace emulated;
    const unsigned lane = threadIdx.x % LANES;
    const Word *all = meet(mask, SHUFFLE, word_of(x));
    return lane + by < LANES ? from_word<T>(all[lane + by]) : x;
}
template <class T> T __shfl_xor_sync(unsigned mask, T x, unsigned with) {
    using namespace emulated;
    const unsigned lane = threadIdx.x % LANES;
    return from_word<T>(meet(mask, SHUFFLE, word_of(x))[lane ^ with]);
}
static inline unsigned __ballot_sync(unsigned mask, bool x) {
    using namespace emulated;
    const unsigned live = own_warp().live;
    const Word *all = meet(mask, BALLOT, x);
    unsigned bits = 0;
    for (unsigned k = 0; k < LANES; k++) bits |= (unsigned)(all[k] & 1) << k;
    return bits & live;
}
static inline bool __any_sync(unsigned mask, bool x) { return __ballot_sync(mask, x) != 0; }
static inline bool __all_sync(unsigned mask, bool x) { return __ballot_sync(mask, !x) == 0; }
static inline unsigned __match_any_sync(unsigned mask, unsigned x) {
    using namespace emulated;
    const unsigned live = own_warp().live;
    const Word *all = meet(mask, MATCH, x);
    unsigned bits = 0;
    for (unsigned k = 0; k < LANES; k++) bits |= (unsigned)((unsigned)all[k] == x) << k;
    return bits & live;
}
static inline unsigned __reduce_add_sync(unsigned mask, unsigned x) {
    using namespace emulated;
    const unsigned live = own_warp().live;
    const Word *all = meet(mask, REDUCE, x);
    unsigned sum = 0;
    for (unsigned k = 0; k < LANES; k++)
        if (live >> k & 1) sum += (unsigned)all[k];
    return sum;
}
static inline unsigned __reduce_max_sync(unsigned mask, unsigned x) {
    using namespace emulated;
    const unsigned live = own_warp().live;
    const Word *all = meet(mask, REDUCE, x);
    unsigned most = 0;
    for (unsigned k = 0; k < LANES; k++)
        if (live >> k & 1 && (unsigned)all[k] > most) most = (unsigned)all[k];
    return most;
}
static inline unsigned __reduce_min_sync(unsigned mask, unsigned x) {
    return ~__reduce_max_sync(mask, ~x);
}
static inline void __syncwarp(unsigned mask = ~0u) { emulated::meet(mask, emulated::SYNC, 0); }

static inline void __syncthreads() {
    using namespace emulated;
    Warp &w = own_warp();
    const unsigned bit = own_bit();
    w.at_block |= bit;
    self->at_block++;
    release_block(*self);
    if (w.ready & bit) w.ready &= ~bit;
    else to_others();
}
static inline int __syncthreads_or(int x) {
    emulated::Block &b = *emulated::self;
    if (x) b.vote = 1;
    __syncthreads();
    const int any = b.vote;
    __syncthreads();
    b.vote = 0;
    __syncthreads();
    return any;
}
static inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __ldcs(const T *p) { return *p; }
template <class T> T __ldcg(const T *p) { return *(const volatile T *)p; }
/* A status that others may write meanwhile: the value is old when it comes. */
static inline int __ldcg(const int *p) {
    const int x = *(const volatile int *)p;
    emulated::own_warp().looking |= emulated::own_bit();
    emulated::to_others();
    return x;
}
static inline uint4 __ldcg(const uint4 *p) { return *p; }
static inline uint2 __ldcg(const uint2 *p) { return *p; }

/* Atomics. */
template <class T> T atomicOr(T *p, T x) { return __atomic_fetch_or(p, x, __ATOMIC_RELAXED); }
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
