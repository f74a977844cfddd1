/* Runs what is compiled with cuda_on_cpu.hpp.
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
#include "cuda_on_cpu.hpp"

#include <linux/futex.h>
#include <link.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace emulated {
__thread Place *self __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {
constexpr size_t STACK = (16 << 10) + 320; /* tops of stacks share no set of the cache */
constexpr size_t STACK_GUARD = 64;
constexpr size_t GUARD = 4096; /* bytes after dynamic shared memory */
constexpr unsigned char GARBAGE = 0xA5;

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
inline void change(Context &from, Context &to) { emulated_switch(&from.stack, to.stack); }
void begin(Context &c, char *stack, void (*entry)()) {
    void **top = (void **)(stack + STACK - 64);
    *--top = nullptr; /* the entry sees a stack as after a call */
    *--top = (void *)entry;
    for (int k = 0; k < 6; k++) *--top = nullptr;
    c.stack = top;
}
#else
inline void change(Context &from, Context &to) { swapcontext(&from.state, &to.state); }
void begin(Context &c, char *stack, void (*entry)()) {
    getcontext(&c.state);
    c.state.uc_stack.ss_sp = stack;
    c.state.uc_stack.ss_size = STACK;
    c.state.uc_link = nullptr;
    makecontext(&c.state, entry, 0);
}
#endif

struct Fiber : Thread {
    Context context;
    char *stack;    /* none before it first runs */
    unsigned round; /* of the cluster, that it has arrived for */
};

enum Kind { SHUFFLE, BALLOT, MATCH, SUM, MOST, SYNC };

struct Warp {
    unsigned live, ready, arrived, looking, at_block, at_cluster;
    unsigned turn; /* of meetings */
    Kind kind;
    unsigned met[2], made[2]; /* lanes that have met, and what was made of their words */
    Word value[2][LANES];
};

struct Launch {
    unsigned grid, threads, shared, cluster, seed;
    bool together;
    Call *call;
    Anchor *anchor;
    size_t anchored, statics; /* the anchor among the shared variables, and their size */
    void **arguments;
    std::atomic<int> failed{0};
    std::atomic<unsigned> met{0}, rounds{0}, finished{0};
    std::atomic<unsigned> waiting{0}; /* blocks that only look, or have ended */
    char *message;
    std::mutex lock;
    std::condition_variable ended;
    unsigned running;
    std::vector<struct Block *> blocks;
    timespec until;
};

struct Block : Place {
    Launch *launch;
    Context scheduler;
    std::vector<Fiber> fibers;
    std::vector<Copy> copies;
    std::vector<char *> stacks, idle; /* of fibers; of those that have returned */
    size_t begun;                     /* stacks that fibers have had */
    std::vector<Warp> warps;
    bool down;    /* lanes of a warp run last first */
    unsigned ran; /* lanes, in the present turn of all warps */
    unsigned live, at_block, at_cluster, cluster_round, vote;
    std::vector<char> room;
    char *statics;
};

inline Block &own() { return *(Block *)self; }
inline Warp &warp_of(Block &b, unsigned thread) { return b.warps[thread / LANES]; }
inline unsigned bit_of(unsigned thread) { return 1u << thread % LANES; }

void fail(Launch &l, const char *what, unsigned block, unsigned thread) {
    std::lock_guard<std::mutex> hold(l.lock);
    if (!l.failed.load()) snprintf(l.message, 256, "%s (block %u, thread %u)", what, block, thread);
    l.failed.store(1);
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
        one->fibers.resize(threads);
        one->copies.resize(threads * MOST_COPIES);
        return one;
    }
    void give(Block *one) {
        std::lock_guard<std::mutex> hold(lock);
        free.push_back(one);
    }
    char *stack() {
        std::lock_guard<std::mutex> hold(lock);
        if (stacks.empty()) {
            const size_t many = 256;
            char *all = (char *)mmap(nullptr, many * STACK, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (all == MAP_FAILED) abort();
            madvise(all, many * STACK, MADV_HUGEPAGE);
            for (size_t k = 0; k < many; k++) stacks.push_back(all + k * STACK);
        }
        char *one = stacks.back();
        stacks.pop_back();
        memset(one, GARBAGE, STACK_GUARD);
        return one;
    }
} kept;

/* Make the first lane of a warp that can run the present one; false: none can. */
inline bool next_lane(Block &b, unsigned warp) {
    Warp &w = b.warps[warp];
    if (!w.ready) return false;
    const unsigned lane = b.down ? 31 - __builtin_clz(w.ready) : (unsigned)__builtin_ctz(w.ready);
    w.ready &= ~(1u << lane);
    b.now = &b.fibers[warp * LANES + lane];
    b.ran++;
    return true;
}

void entry();

/* Switch to the present fiber, which gets a stack where it has none. */
inline void enter(Block &b, Context &from) {
    Fiber &f = *(Fiber *)b.now;
    if (!f.stack) {
        if (b.idle.empty()) {
            if (b.begun == b.stacks.size()) b.stacks.push_back(kept.stack());
            f.stack = b.stacks[b.begun++];
        } else {
            f.stack = b.idle.back();
            b.idle.pop_back();
        }
        begin(f.context, f.stack, entry);
    }
    change(from, f.context);
}

/* Let the next lane of the warp run, else the scheduler. */
inline void leave(Block &b) {
    Fiber &from = *(Fiber *)b.now;
    if (next_lane(b, from.index.x / LANES)) enter(b, from.context);
    else change(from.context, b.scheduler);
}

inline void complete(Warp &w) {
    w.met[w.turn & 1] = w.arrived;
    w.ready |= w.arrived;
    w.arrived = 0;
    w.turn++;
}

void release_block(Block &b) {
    if (!b.at_block || b.at_block != b.live) return;
    for (Warp &w : b.warps) w.ready |= w.at_block, w.at_block = 0;
    b.at_block = 0;
}

void release_cluster(Block &b) {
    for (Warp &w : b.warps) w.ready |= w.at_cluster, w.at_cluster = 0;
    b.at_cluster = 0;
}

/* Run the kernel; a lane that begins after one that has returned takes its stack. */
void entry() {
    Block &b = own();
    const unsigned warp = b.now->index.x / LANES;
    Warp &w = b.warps[warp];
    while (true) {
        b.launch->call(b.launch->arguments);
        Fiber &done = *(Fiber *)b.now;
        w.live &= ~bit_of(done.index.x);
        b.live--;
        if (w.arrived && w.arrived == w.live) complete(w);
        release_block(b);
        const bool more = next_lane(b, warp);
        Fiber &next = *(Fiber *)b.now;
        if (more && !next.stack) {
            next.stack = done.stack;
            continue;
        }
        b.idle.push_back(done.stack);
        change(done.context, more ? next.context : b.scheduler);
    }
}

/* All live lanes give a word; what they gave is there until the next turn but one. */
template <Kind KIND> inline unsigned turn_of(unsigned mask, Word value, Warp *&warp) {
    Block &b = own();
    const unsigned thread = b.now->index.x, lane = thread % LANES, bit = 1u << lane;
    Warp &w = warp_of(b, thread);
    if (mask != ~0u) stop("a warp builtin whose mask is not all lanes");
    const unsigned turn = w.turn & 1;
    if (!w.arrived) w.kind = KIND, w.made[turn] = 0;
    if (w.kind != KIND) stop("lanes of a warp meet at different builtins");
    if (KIND == SHUFFLE || KIND == MATCH) w.value[turn][lane] = value;
    if (KIND == BALLOT) w.made[turn] |= (unsigned)value << lane;
    if (KIND == SUM) w.made[turn] += (unsigned)value;
    if (KIND == MOST && w.made[turn] < value) w.made[turn] = (unsigned)value;
    w.arrived |= bit;
    if (w.arrived == w.live) {
        complete(w);
        w.ready &= ~bit;
    } else {
        leave(b);
    }
    warp = &w;
    return turn;
}
} // namespace

void to_others() { leave(own()); }

/* Stop for good: the launch has failed. */
void stop(const char *what) {
    fail(*own().launch, what, self->block.x, self->now->index.x);
    while (true) to_others();
}

const Word *shuffle(unsigned mask, Word value) {
    Warp *w;
    const unsigned turn = turn_of<SHUFFLE>(mask, value, w);
    return w->value[turn];
}
/* What the lanes make together of their words. */
template <Kind KIND> static inline unsigned made_by(unsigned mask, Word value) {
    Warp *w;
    const unsigned turn = turn_of<KIND>(mask, value, w);
    return w->made[turn];
}
unsigned ballot(unsigned mask, bool value) { return made_by<BALLOT>(mask, value); }
unsigned match(unsigned mask, unsigned value) {
    Warp *w;
    const unsigned turn = turn_of<MATCH>(mask, value, w);
    unsigned bits = 0;
    for (unsigned k = 0; k < LANES; k++) bits |= (unsigned)(w->value[turn][k] == value) << k;
    return bits & w->met[turn];
}
unsigned sum(unsigned mask, unsigned value) { return made_by<SUM>(mask, value); }
unsigned most(unsigned mask, unsigned value) { return made_by<MOST>(mask, value); }
void meet(unsigned mask) {
    Warp *w;
    turn_of<SYNC>(mask, 0, w);
}

void meet_block() {
    Block &b = own();
    const unsigned bit = bit_of(b.now->index.x);
    Warp &w = warp_of(b, b.now->index.x);
    w.at_block |= bit;
    b.at_block++;
    release_block(b);
    if (w.ready & bit) w.ready &= ~bit;
    else leave(b);
}
int any_of_block(int value) {
    Block &b = own();
    if (value) b.vote = 1;
    meet_block();
    const int any = b.vote;
    meet_block();
    b.vote = 0;
    meet_block();
    return any;
}

void let_others_write() {
    Block &b = own();
    warp_of(b, b.now->index.x).looking |= bit_of(b.now->index.x);
    leave(b);
}

void arrive_at_cluster() {
    Launch &l = *own().launch;
    const unsigned round = l.rounds.load();
    ((Fiber *)self->now)->round = round;
    if (l.met.fetch_add(1) + 1 != l.grid * l.threads) return;
    l.met.store(0);
    l.rounds.store(round + 1);
}
void wait_for_cluster() {
    Block &b = own();
    const unsigned round = ((Fiber *)b.now)->round;
    if (b.launch->rounds.load() != round) return;
    if (b.at_cluster && b.cluster_round != round) release_cluster(b);
    b.cluster_round = round;
    b.at_cluster++;
    warp_of(b, b.now->index.x).at_cluster |= bit_of(b.now->index.x);
    leave(b);
}
char *address_in_cluster(const void *local, unsigned block) {
    Block &mine = own(), &other = *mine.launch->blocks[block];
    const char *at = (const char *)local;
    const size_t dynamic = at - (const char *)mine.dynamic, fixed = at - mine.statics;
    if (dynamic < mine.launch->shared) return (char *)other.dynamic + dynamic;
    if (fixed >= mine.launch->statics) stop("an address that is not in shared memory");
    return other.statics + fixed;
}

namespace {
/* How often blocks have done something that others may wait for, of all launches. */
std::atomic<unsigned> steps{0}, sleepers{0};

void step() {
    steps++;
    if (sleepers.load()) syscall(SYS_futex, &steps, FUTEX_WAKE_PRIVATE, INT_MAX, 0, 0, 0);
}

/* Let other blocks have the core.  Who has waited for long sleeps until one has done a step
 * since `seen`, since there may be fewer cores than blocks; the longer, the longer at most:
 * what the host writes is no step, and not all who look wait. */
void give_way(unsigned &turns, unsigned seen) {
    constexpr unsigned YIELDS = 16, DOUBLED = 6;
    if (turns++ < YIELDS) {
        sched_yield();
        return;
    }
    const timespec most = {0, 20000L << std::min(turns - YIELDS, DOUBLED)};
    sleepers++;
    syscall(SYS_futex, &steps, FUTEX_WAIT_PRIVATE, seen, &most, 0, 0);
    sleepers--;
}

/* Run all fibers of a block to their ends, or until the launch fails. */
void schedule(Block &b) {
    Launch &l = *b.launch;
    unsigned random = l.seed * 2654435761u + b.block.x * 40503u + 12345u;
    const unsigned count = b.warps.size();
    unsigned idle = 0, turns = 0;
    bool waits = false;
    while (b.live && !l.failed.load()) {
        const unsigned seen = steps.load();
        b.ran = 0;
        random = random * 1664525u + 1013904223u;
        const unsigned from = l.seed ? (random >> 8) % count : 0;
        b.down = l.seed && random >> 30 & 1;
        for (unsigned k = 0; k < count; k++)
            while (next_lane(b, (from + (b.down ? count - k : k)) % count))
                enter(b, b.scheduler);
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
        const bool waited = waits;
        waits = !b.ran && turns;
        l.waiting += waits - waited;
        if (b.ran ? looking : waits && !waited) step();
        if (!b.ran && !looking && b.live) {
            unsigned stuck = 0;
            for (unsigned k = 0; k < count; k++)
                if (b.warps[k].arrived) stuck = k * LANES;
            fail(l, "threads wait for others that never come", b.block.x, stuck);
        }
        if (looking) {
            if (l.together) give_way(turns, seen);
            timespec time;
            if ((++idle & 255) == 0) {
                clock_gettime(CLOCK_MONOTONIC, &time);
                if (time.tv_sec > l.until.tv_sec)
                    fail(l, "no end after the time allowed", b.block.x, 0);
            }
        }
    }
    l.waiting += !waits;
    step();
}

void meet_blocks(Launch &l, unsigned time) {
    unsigned turns = 0;
    l.finished++;
    step();
    while (true) {
        const unsigned seen = steps.load();
        if (l.finished.load() >= time * l.grid) return;
        give_way(turns, seen);
    }
}

void run_block(Launch &l, unsigned index) {
    Block &b = *kept.take(l.threads);
    b.launch = &l, b.block.x = index, b.size.x = l.threads, b.grid.x = l.grid;
    b.cluster = l.cluster;
    b.room.assign(l.shared + 16 + GUARD, (char)GARBAGE);
    b.dynamic = (uint4 *)(((size_t)b.room.data() + 15) & ~(size_t)15);
    b.statics = l.anchor() - l.anchored;
    memset(b.statics, GARBAGE, l.statics);
    b.warps.assign((l.threads + LANES - 1) / LANES, Warp());
    b.live = l.threads, b.at_block = b.at_cluster = b.cluster_round = b.vote = 0;
    b.idle.clear(), b.begun = 0;
    for (unsigned t = 0; t < l.threads; t++) {
        Fiber &f = b.fibers[t];
        f.index.x = t, f.group = 0, f.copies = 0, f.round = 0, f.stack = nullptr;
        f.copy = &b.copies[t * MOST_COPIES];
        Warp &w = warp_of(b, t);
        w.live |= bit_of(t), w.ready |= bit_of(t);
    }
    self = &b;
    l.blocks[index] = &b;
    if (l.cluster > 1) meet_blocks(l, 1);
    if (l.together) { /* the first block begins when all others wait, or they when it does */
        const unsigned late = l.seed % 8;
        const unsigned before = late == 3 && !index ? l.grid - 1 : late == 6 && index ? 1 : 0;
        unsigned turns = 0;
        while (true) {
            const unsigned seen = steps.load();
            if (l.waiting.load() >= before || l.failed.load()) break;
            give_way(turns, seen);
        }
    }
    schedule(b);
    if (l.cluster > 1) meet_blocks(l, 2); /* others may write here until all have ended */
    static const std::vector<char> garbage(GUARD, (char)GARBAGE);
    if (memcmp((char *)b.dynamic + l.shared, garbage.data(), GUARD - 16))
        fail(l, "a write past the end of shared memory", index, 0);
    for (size_t k = 0; k < b.begun; k++)
        if (memcmp(b.stacks[k], garbage.data(), STACK_GUARD)) {
            fail(l, "a stack of the emulator is too small", index, k);
            memcpy(b.stacks[k], garbage.data(), STACK_GUARD);
        }
    kept.give(&b);
}

/* OS threads that are kept from launch to launch. */
struct Team {
    struct Member {
        std::mutex lock;
        std::condition_variable wake;
        std::function<void()> work;
    };
    std::mutex lock;
    std::vector<Member *> idle;

    void run(std::function<void()> work) {
        Member *one = nullptr;
        {
            std::lock_guard<std::mutex> hold(lock);
            if (!idle.empty()) one = idle.back(), idle.pop_back();
        }
        if (!one) {
            one = new Member;
            std::thread([this, one] { serve(one); }).detach();
        }
        std::lock_guard<std::mutex> hold(one->lock);
        one->work = std::move(work);
        one->wake.notify_one();
    }
    void serve(Member *one) {
        while (true) {
            std::unique_lock<std::mutex> hold(one->lock);
            one->wake.wait(hold, [one] { return (bool)one->work; });
            const std::function<void()> work = std::move(one->work);
            one->work = nullptr;
            hold.unlock();
            work();
            std::lock_guard<std::mutex> all(lock);
            idle.push_back(one);
        }
    }
};
Team &team = *new Team; /* its threads outlive what ends with the process */

/* The library whose thread-local variables have an address. */
struct Search { char *address, *at; size_t size; };
int find_library(dl_phdr_info *info, size_t, void *data) {
    Search &s = *(Search *)data;
    for (int k = 0; k < info->dlpi_phnum; k++) {
        const ElfW(Phdr) &h = info->dlpi_phdr[k];
        char *at = (char *)info->dlpi_tls_data;
        if (h.p_type != PT_TLS || !at || s.address < at || s.address >= at + h.p_memsz) continue;
        s.at = at, s.size = h.p_memsz;
        return 1;
    }
    return 0;
}

void find_statics(Launch &l) {
    static std::mutex lock;
    static std::map<Anchor *, std::pair<size_t, size_t>> known;
    std::lock_guard<std::mutex> hold(lock);
    if (!known.count(l.anchor)) {
        Search s = {l.anchor(), nullptr, 0};
        if (!dl_iterate_phdr(find_library, &s)) abort();
        known[l.anchor] = {s.address - s.at, s.size};
    }
    l.anchored = known[l.anchor].first, l.statics = known[l.anchor].second;
}
} // namespace
} // namespace emulated

/* together: all blocks at once; else one after the other.  Returns 0, or 1 with a
 * message [256]. */
extern "C" int emulated_launch(emulated::Call *call, emulated::Anchor *anchor, void **arguments,
                               unsigned grid, unsigned threads, unsigned shared,
                               unsigned together, unsigned cluster, unsigned seed,
                               unsigned seconds, char *message) {
    using namespace emulated;
    Launch l;
    l.grid = grid, l.threads = threads, l.shared = shared, l.cluster = cluster, l.seed = seed;
    l.call = call, l.anchor = anchor, l.arguments = arguments, l.message = message;
    l.blocks.resize(grid), l.together = together;
    find_statics(l);
    clock_gettime(CLOCK_MONOTONIC, &l.until);
    l.until.tv_sec += seconds;
    if (!together) {
        for (unsigned k = 0; k < grid && !l.failed.load(); k++) run_block(l, k);
        return l.failed.load();
    }
    l.running = grid - 1;
    for (unsigned k = 1; k < grid; k++)
        team.run([&l, k] {
            run_block(l, k);
            std::lock_guard<std::mutex> hold(l.lock);
            if (!--l.running) l.ended.notify_one();
        });
    run_block(l, 0);
    std::unique_lock<std::mutex> hold(l.lock);
    l.ended.wait(hold, [&l] { return !l.running; });
    return l.failed.load();
}
