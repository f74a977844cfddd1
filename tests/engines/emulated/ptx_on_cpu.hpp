/* What ptx.cuh has, for the emulator: the same names without PTX. */
#ifndef PTX_ON_CPU_HPP
#define PTX_ON_CPU_HPP
#include "cuda_on_cpu.hpp"

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef double f64;

#define INLINE static inline

INLINE u32 load_once(const u32 *p) { return *p; }
INLINE uint4 load_once4(const u32 *p) {
    if ((size_t)p % 16) emulated::stop("a load of 16 bytes that is not aligned");
    const volatile u32 *all = p; /* also words that nobody uses */
    return make_uint4(all[0], all[1], all[2], all[3]);
}
INLINE void prefetch(const void *) {}
INLINE u64 nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}
INLINE void reload() { __asm__ volatile("" ::: "memory"); }

INLINE void red_or(u32 *p, u32 bits) { atomicOr(p, bits); }
INLINE void add_release(u64 *p, u64 x) { __atomic_fetch_add(p, x, __ATOMIC_RELEASE); }
INLINE u64 add_acquire_release(u64 *p, u64 x) {
    return __atomic_fetch_add(p, x, __ATOMIC_ACQ_REL);
}
INLINE u64 look(const u64 *p) {
    const u64 x = __atomic_load_n(p, __ATOMIC_ACQUIRE);
    emulated::let_others_write();
    return x;
}
INLINE u64 look_acquire(const u64 *p) { return look(p); }
INLINE void store_relaxed(u64 *p, u64 x) { __atomic_store_n(p, x, __ATOMIC_RELAXED); }
INLINE int load_cached(const int *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
INLINE int load_relaxed(const int *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
INLINE void store_relaxed(int *p, int x) { __atomic_store_n(p, x, __ATOMIC_RELAXED); }

INLINE void fence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
INLINE void store_system(u64 *p, u64 x) { __atomic_store_n(p, x, __ATOMIC_RELEASE); }
INLINE u64 look_system(const u64 *p) { return look(p); }
INLINE void write_system(u64 *p, u64 x) { __atomic_store_n(p, x, __ATOMIC_RELAXED); }
INLINE void add_system(u64 *p, u64 x) { __atomic_fetch_add(p, x, __ATOMIC_RELAXED); }
INLINE void red_or_system(u32 *p, u32 bits) { atomicOr(p, bits); }

INLINE void copy_async(u32 *to, const u32 *from) {
    emulated::Thread &f = *emulated::self->now;
    if ((size_t)to % 16 || (size_t)from % 16) emulated::stop("a copy that is not aligned");
    if (f.copies == emulated::MOST_COPIES) emulated::stop("more copies than the emulator holds");
    f.copy[f.copies++] = {to, from, f.group};
}
INLINE void commit_copies() { emulated::self->now->group++; }
/* Copies arrive only here, and only those of groups that must have. */
template <int N> INLINE void wait_copies() {
    emulated::Thread &f = *emulated::self->now;
    int kept = 0;
    for (int k = 0; k < f.copies; k++) {
        if (f.copy[k].group + N < f.group) memcpy(f.copy[k].to, f.copy[k].from, 16);
        else f.copy[kept++] = f.copy[k];
    }
    f.copies = kept;
}

INLINE u32 cluster_rank() { return emulated::self->block.x; }
INLINE u32 cluster_size() { return emulated::self->cluster; }
INLINE void arrive() { emulated::arrive_at_cluster(); }
INLINE void wait() { emulated::wait_for_cluster(); }
/* Where block `to` of the cluster has what is at `local` here. */
template <class T> T *there(T *local, u32 to) {
    return (T *)emulated::address_in_cluster(local, to);
}
INLINE void tell(u32 *local, u32 to, u32 x) { *there(local, to) = x; }

/* The high half of a barrier counts how often it has opened, the low one what is awaited:
 * bytes, and that somebody says how many. */
constexpr int SAID = 1 << 20;
INLINE void make_barrier(u64 *barrier) { *barrier = SAID; }
INLINE void count_at(u64 *barrier, int change) {
    u64 old = __atomic_load_n(barrier, __ATOMIC_RELAXED), now;
    do {
        const int left = (int)old + change;
        now = left ? (old >> 32 << 32) | (u32)left : ((old >> 32) + 1) << 32 | SAID;
    } while (!__atomic_compare_exchange_n(barrier, &old, now, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
}
INLINE void send(uint2 *local, u64 *barrier, u32 to, u32 x, u32 y) {
    *there(local, to) = {x, y};
    count_at(there(barrier, to), -8);
}
INLINE void send(u32 *local, u64 *barrier, u32 to, u32 x) {
    *there(local, to) = x;
    count_at(there(barrier, to), -4);
}
INLINE void expect(u64 *barrier, u32 to, u32 bytes) {
    count_at(there(barrier, to), (int)bytes - SAID);
}
INLINE void await(u64 *barrier, u32 parity) {
    while ((__atomic_load_n(barrier, __ATOMIC_ACQUIRE) >> 32 & 1) == parity)
        emulated::let_others_write();
}
#endif
