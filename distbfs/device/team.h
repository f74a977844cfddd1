/* A team of threads that share work as they arrive.
 *
 * team_run() calls a body on the calling thread and on each worker that arrives before
 * it is done.  A body takes its work from counters (team_chunk), so it is right
 * for any number of threads, and a worker that gets no core is not waited for.  Between
 * two calls, and at the end of one, a thread spins for SPIN_NS and then sleeps in the
 * kernel: where another process has the core, sleeping gives it back at once.
 *
 * One caller at a time has the team; another one meanwhile works alone.  A child process
 * starts workers of its own.  Where no thread can be started the caller works alone.
 *
 * A caller may be ended early (team_ask): then team_chunk gives nothing any more, on its
 * own thread and on its workers, and what the call wrote is not to be read.  Long loops
 * that take no chunks look at team_ended() themselves.
 *
 * state: OPEN | WAITING | places left (15 bits) | workers inside (15 bits)
 */
#ifndef DISTBFS_TEAM_H
#define DISTBFS_TEAM_H
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPIN_NS 200000 /* mutant: 200000 -> 60000000000 : test_workers_sleep_between_runs */
#define SPINS 16             /* looks between two readings of the clock */
#define TEAM_STACK (1 << 20) /* bytes of a worker's stack */
#define TEAM_MOST 4096       /* threads */
#define TEAM_ASK_NS 50000000 /* between two questions whether to end */

#define TEAM_OPEN 0x80000000u
#define TEAM_WAITING 0x40000000u /* the caller sleeps until nobody is inside */
#define TEAM_PLACE 0x8000u
#define TEAM_INSIDE 0x7fffu

/* id: 0 for the caller, else 1 … threads - 1, each once a run at most */
typedef void (*team_body)(void *argument, int id);

/* Whether a call ends early; ask: called on the caller's thread alone; next: when, in
 * seconds, 0 at first */
typedef struct {
    int (*ask)(void);
    double next;
    int32_t ended, pad;
} team_question;

static struct {
    uint32_t lock, ticket, state, sleepers; /* ticket: counts runs */
    int workers, registered;
    team_body body;
    void *argument;
    team_question *question;
} team;

static _Thread_local team_question *team_asked; /* of what this thread does, or NULL */
static _Thread_local int team_helps;            /* whether it is a worker */

/* Let calls on this thread be ended, NULL: no more.  Returns what was asked before. */
team_question *team_ask(team_question *question) {
    team_question *before = team_asked;
    team_asked = question;
    return before;
}

static inline double team_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Whether the call is to end now, for whatever reason. */
static inline int team_ended(void) {
    team_question *q = team_asked;
    if (!q) return 0;
    if (__atomic_load_n(&q->ended, __ATOMIC_RELAXED)) return 1;
    if (team_helps) return 0;
    double now = team_seconds();
    if (now < q->next) return 0;
    int asks = q->next != 0;
    q->next = now + 1e-9 * TEAM_ASK_NS;
    if (!asks || !q->ask()) return 0;
    __atomic_store_n(&q->ended, 1, __ATOMIC_RELAXED);
    return 1;
}

/* Whether a call ends between two levels, where a function, or NULL, may say so. */
static inline int team_stops(int (*stop)(void)) {
    return team_ended() || (stop && stop());
}

static inline void team_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Sleep while a word has a value, no longer than to the next question. */
static inline void team_sleep(uint32_t *word, uint32_t value) {
    const struct timespec limit = {0, TEAM_ASK_NS};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, team_asked ? &limit : NULL, NULL, 0);
}

static inline void team_wake(uint32_t *word, int threads) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

/* Call the body unless the run is over or has its threads. */
static void team_join(void) {
    uint32_t state = __atomic_load_n(&team.state, __ATOMIC_ACQUIRE), left;
    do {
        left = (state & ~(TEAM_OPEN | TEAM_WAITING)) / TEAM_PLACE;
        if (!(state & TEAM_OPEN) || !left) return;
    /* mutant: - TEAM_PLACE + -> + : test_threads_come_and_are_waited_for */
    } while (!__atomic_compare_exchange_n(&team.state, &state, state - TEAM_PLACE + 1, 0,
                                          __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE));
    team_asked = team.question;
    team.body(team.argument, (int)left);
    team_asked = NULL;
    state = __atomic_sub_fetch(&team.state, 1, __ATOMIC_ACQ_REL);
    if (state & TEAM_WAITING && !(state & TEAM_INSIDE)) team_wake(&team.state, 1);
}

/* Wait for a ticket other than `seen`. */
static void team_await(uint32_t seen) {
    double limit = team_seconds() + 1e-9 * SPIN_NS;
    do {
        for (int k = 0; k < SPINS; k++) {
            if (__atomic_load_n(&team.ticket, __ATOMIC_ACQUIRE) != seen) return;
            team_pause();
        }
    } while (team_seconds() < limit);
    __atomic_fetch_add(&team.sleepers, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&team.ticket, __ATOMIC_SEQ_CST) == seen)
        team_sleep(&team.ticket, seen);
    __atomic_fetch_sub(&team.sleepers, 1, __ATOMIC_SEQ_CST);
}

static void *team_worker(void *unused) {
    (void)unused;
    team_helps = 1;
    for (;;) {
        uint32_t seen = __atomic_load_n(&team.ticket, __ATOMIC_ACQUIRE);
        team_join();
        team_await(seen);
    }
    return NULL;
}

/* In a child process: the workers are the parent's. */
static void team_forget(void) {
    /* mutant: team.workers = 0 -> (void)team.workers
     * : test_a_child_process_searches_after_its_parent */
    team.workers = 0;
    team.lock = team.state = team.sleepers = 0;
}

/* Start workers up to a number, with all signals blocked, for the program's own threads. */
static void team_start(int wanted) {
    pthread_attr_t attributes;
    sigset_t all, before;
    if (!team.registered) team.registered = !pthread_atfork(NULL, NULL, team_forget);
    if (!team.registered || pthread_attr_init(&attributes)) return;
    pthread_attr_setstacksize(&attributes, TEAM_STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    /* mutant: sigfillset -> sigemptyset : test_threads_leave_signals_to_the_program */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (pthread_t thread; team.workers < wanted; team.workers++)
        if (pthread_create(&thread, &attributes, team_worker, NULL)) break;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

/* Admit no more workers, and wait for those inside. */
static void team_close(void) {
    uint32_t state = __atomic_and_fetch(&team.state, ~TEAM_OPEN, __ATOMIC_ACQ_REL);
    /* mutant: !(state & TEAM_INSIDE) -> state : test_threads_come_and_are_waited_for */
    if (!(state & TEAM_INSIDE)) return;
    double limit = team_seconds() + 1e-9 * SPIN_NS;
    do {
        for (int k = 0; k < SPINS; k++) {
            if (!(__atomic_load_n(&team.state, __ATOMIC_ACQUIRE) & TEAM_INSIDE)) return;
            team_pause();
        }
    } while (team_seconds() < limit);
    state = __atomic_or_fetch(&team.state, TEAM_WAITING, __ATOMIC_ACQ_REL);
    while (state & TEAM_INSIDE) {
        team_sleep(&team.state, state);
        team_ended(); /* the workers look at the answer */
        state = __atomic_load_n(&team.state, __ATOMIC_ACQUIRE);
    }
}

/* Call a body on this thread and on up to threads - 1 others; returns after all. */
static inline void team_run(int threads, team_body body, void *argument) {
    if (threads > TEAM_MOST) threads = TEAM_MOST;
    /* mutant: 2 || __atomic_exchange_n(&team.lock, 1, __ATOMIC_ACQUIRE) -> 2
     * : test_a_second_caller_works_alone */
    if (threads < 2 || __atomic_exchange_n(&team.lock, 1, __ATOMIC_ACQUIRE)) {
        body(argument, 0);
        return;
    }
    team.body = body;
    team.argument = argument;
    team.question = team_asked;
    __atomic_store_n(&team.state, TEAM_OPEN | TEAM_PLACE * (uint32_t)(threads - 1),
                     __ATOMIC_RELEASE);
    __atomic_fetch_add(&team.ticket, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&team.sleepers, __ATOMIC_SEQ_CST))
        team_wake(&team.ticket, threads - 1);
    if (team.workers < threads - 1) team_start(threads - 1);
    body(argument, 0);
    team_close();
    __atomic_store_n(&team.lock, 0, __ATOMIC_RELEASE);
}

/* Take the next `grain` of 0 … count - 1; returns 0 where none is left, or at the end. */
static inline int team_chunk(int64_t *next, int64_t count, int64_t grain, int64_t *from,
                             int64_t *to) {
    if (team_ended()) return 0;
    *from = __atomic_fetch_add(next, grain, __ATOMIC_RELAXED);
    /* mutant: grain < count ? *from + grain : count -> grain : test_every_piece_is_taken_once */
    *to = *from + grain < count ? *from + grain : count;
    return *from < count;
}

static inline void team_add(int64_t *sum, int64_t value) {
    if (value) __atomic_fetch_add(sum, value, __ATOMIC_RELAXED);
}

/* Call range(argument, from, to) for pieces of 0 … count - 1 that together are all. */
typedef void (*team_range)(void *argument, int64_t from, int64_t to);
typedef struct {
    int64_t next, count, grain;
    team_range range;
    void *argument;
} team_loop;

static void team_pieces(void *argument, int id) {
    (void)id;
    team_loop *loop = argument;
    int64_t from, to;
    while (team_chunk(&loop->next, loop->count, loop->grain, &from, &to))
        loop->range(loop->argument, from, to);
}

static inline void team_for(int threads, int64_t count, int64_t grain, team_range range,
                            void *argument) {
    team_loop loop = {0, count, grain, range, argument};
    if (count <= grain || (threads < 2 && !team_asked))
        range(argument, 0, count);
    else
        team_run(threads, team_pieces, &loop);
}
#endif
