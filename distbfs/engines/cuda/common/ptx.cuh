/* Types, and every instruction that is not C++: nothing else in the kernels of the package
 * is PTX. */
#ifndef DISTBFS_PTX_CUH
#define DISTBFS_PTX_CUH

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

#define INLINE static __device__ __forceinline__

/* Loads of arrays that no kernel of a search writes; they bypass L1. */
INLINE u32 load_once(const u32 *p) {
    u32 r;
    asm volatile("ld.global.nc.L1::no_allocate.u32 %0,[%1];" : "=r"(r) : "l"(p));
    return r;
}
INLINE uint4 load_once4(const u32 *p) {
    uint4 r;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3},[%4];"
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                 : "l"(p));
    return r;
}
INLINE void prefetch(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

INLINE u64 nanoseconds() {
    u64 t;
    asm volatile("mov.u64 %0,%%globaltimer;" : "=l"(t));
    return t;
}

/* The compiler may not keep what is in memory in registers beyond this. */
INLINE void reload() { asm volatile("" ::: "memory"); }

/* Between blocks of the grid. */
INLINE void red_or(u32 *p, u32 bits) {
    asm volatile("red.relaxed.gpu.global.or.b32 [%0],%1;" ::"l"(p), "r"(bits) : "memory");
}
INLINE void add_release(u64 *p, u64 x) {
    asm volatile("red.release.gpu.global.add.u64 [%0],%1;" ::"l"(p), "l"(x) : "memory");
}
INLINE u64 add_acquire_release(u64 *p, u64 x) {
    u64 old;
    asm volatile("atom.acq_rel.gpu.global.add.u64 %0,[%1],%2;"
                 : "=l"(old)
                 : "l"(p), "l"(x)
                 : "memory");
    return old;
}
INLINE u64 look(const u64 *p) {
    u64 x;
    asm volatile("ld.relaxed.gpu.global.u64 %0,[%1];" : "=l"(x) : "l"(p) : "memory");
    return x;
}
INLINE u64 look_acquire(const u64 *p) {
    u64 x;
    asm volatile("ld.acquire.gpu.global.u64 %0,[%1];" : "=l"(x) : "l"(p) : "memory");
    return x;
}
INLINE void store_relaxed(u64 *p, u64 x) {
    asm volatile("st.relaxed.gpu.global.u64 [%0],%1;" ::"l"(p), "l"(x) : "memory");
}
INLINE int load_cached(const int *p) {
    int x;
    asm volatile("ld.global.ca.s32 %0,[%1];" : "=r"(x) : "l"(p));
    return x;
}
INLINE int load_relaxed(const int *p) {
    int x;
    asm volatile("ld.relaxed.gpu.global.s32 %0,[%1];" : "=r"(x) : "l"(p));
    return x;
}
INLINE void store_relaxed(int *p, int x) {
    asm volatile("st.relaxed.gpu.global.s32 [%0],%1;" ::"l"(p), "r"(x) : "memory");
}

/* Between devices, whose memory is mapped here. */
INLINE void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
INLINE void store_system(u64 *p, u64 x) {
    asm volatile("st.release.sys.global.u64 [%0],%1;" ::"l"(p), "l"(x) : "memory");
}
INLINE u64 look_system(const u64 *p) {
    u64 x;
    asm volatile("ld.acquire.sys.global.u64 %0,[%1];" : "=l"(x) : "l"(p) : "memory");
    return x;
}

INLINE void add_system(u64 *p, u64 x) {
    asm volatile("red.relaxed.sys.global.add.u64 [%0],%1;" ::"l"(p), "l"(x) : "memory");
}
INLINE void red_or_system(u32 *p, u32 bits) {
    asm volatile("red.relaxed.sys.global.or.b32 [%0],%1;" ::"l"(p), "r"(bits) : "memory");
}
INLINE void write_system(u64 *p, u64 x) {
    asm volatile("st.relaxed.sys.global.u64 [%0],%1;" ::"l"(p), "l"(x) : "memory");
}

/* Copies from global to shared memory that a warp waits for later. */
INLINE void copy_async(u32 *to, const u32 *from) {
    u32 at = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(at), "l"(from) : "memory");
}
INLINE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> INLINE void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* Clusters of blocks; a cluster of one where there are none. */
#if __CUDA_ARCH__ >= 900
INLINE u32 cluster_rank() {
    u32 r;
    asm volatile("mov.u32 %0,%%cluster_ctarank;" : "=r"(r));
    return r;
}
INLINE u32 cluster_size() {
    u32 r;
    asm volatile("mov.u32 %0,%%cluster_nctarank;" : "=r"(r));
    return r;
}
INLINE void arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
INLINE void wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
INLINE u32 there(const void *local, u32 to) {
    u32 at = (u32)__cvta_generic_to_shared(local), far;
    asm volatile("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(far) : "r"(at), "r"(to));
    return far;
}
INLINE void tell(u32 *local, u32 to, u32 x) {
    asm volatile("st.shared::cluster.u32 [%0],%1;" ::"r"(there(local, to)), "r"(x) : "memory");
}
/* A barrier in shared memory opens when somebody has said how many bytes it is to expect,
 * and so many have come; then again, for the next. */
INLINE void make_barrier(u64 *barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0],1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(
                     (u32)__cvta_generic_to_shared(barrier))
                 : "memory");
}
/* Words into the shared memory of block `to`, where this block has `local` and `barrier`. */
INLINE void send(uint2 *local, u64 *barrier, u32 to, u32 x, u32 y) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 "
                 "[%0],{%2,%3},[%1];" ::"r"(there(local, to)),
                 "r"(there(barrier, to)), "r"(x), "r"(y)
                 : "memory");
}
INLINE void send(u32 *local, u64 *barrier, u32 to, u32 x) {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0],%2,[%1];" ::"r"(
            there(local, to)),
        "r"(there(barrier, to)), "r"(x)
        : "memory");
}
INLINE void expect(u64 *barrier, u32 to, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cluster.b64 _,[%0],%1;" ::"r"(
                     there(barrier, to)),
                 "r"(bytes)
                 : "memory");
}
/* Wait until a barrier has opened for the time that has this parity; the first has 0. */
INLINE void await(u64 *barrier, u32 parity) {
    const u32 at = (u32)__cvta_generic_to_shared(barrier);
    u32 open;
    do asm volatile("{\n\t.reg .pred p;\n\t"
                    "mbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2;\n\t"
                    "selp.u32 %0,1,0,p;\n\t}"
                    : "=r"(open)
                    : "r"(at), "r"(parity)
                    : "memory");
    while (!open);
}
#else
INLINE u32 cluster_rank() { return 0; }
INLINE u32 cluster_size() { return 1; }
INLINE void arrive() {}
INLINE void wait() { __syncthreads(); }
INLINE void tell(u32 *local, u32, u32 x) { *local = x; }
INLINE void make_barrier(u64 *) {}
INLINE void send(uint2 *local, u64 *, u32, u32 x, u32 y) { *local = make_uint2(x, y); }
INLINE void send(u32 *local, u64 *, u32, u32 x) { *local = x; }
INLINE void expect(u64 *, u32, u32) {}
INLINE void await(u64 *, u32) { __syncwarp(); } /* one warp sends, and waits */
#endif
#endif
