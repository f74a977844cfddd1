/* What test_team.py asks of a team of threads. */
#include "../../distbfs/device/team.h"
#include <string.h>
#include <sys/time.h>

typedef struct {
    int64_t *marks; /* [count] */
    int64_t total;
} marking;

static void mark(void *argument, int64_t from, int64_t to) {
    marking *m = argument;
    for (int64_t k = from; k < to; k++) __atomic_fetch_add(m->marks + k, 1, __ATOMIC_RELAXED);
    team_add(&m->total, to - from);
}

/* Add one to each mark; returns how many were marked. */
int64_t mark_all(int threads, int64_t count, int64_t grain, int64_t *marks) {
    marking m = {marks, 0};
    team_for(threads, count, grain, mark, &m);
    return m.total;
}

/* Mark again and again, until the call is ended. */
int64_t endless(int threads, int64_t *marks) {
    int64_t total = 0;
    while (!team_ended()) total += mark_all(threads, 1 << 16, 1, marks);
    return total;
}

/* Ask again and again, until the answer is to end; returns how often.  An alarm rings
 * after some microseconds. */
int64_t asking(int microseconds, int (*ask)(void)) {
    struct itimerval soon = {{0, 0}, {0, microseconds}};
    int64_t times = 1;
    setitimer(ITIMER_REAL, &soon, NULL);
    while (!ask() && times < 10000) times++; /* a lost signal is not waited for */
    return times;
}

typedef struct {
    int64_t inside, most, left;
    int64_t *ids;
    int wait;
} meeting;

static void rest(long nanoseconds) {
    struct timespec t = {0, nanoseconds};
    nanosleep(&t, NULL);
}

static void meet(void *argument, int id) {
    meeting *m = argument;
    __atomic_fetch_add(m->ids + id, 1, __ATOMIC_RELAXED);
    int64_t inside = __atomic_add_fetch(&m->inside, 1, __ATOMIC_SEQ_CST);
    if (id == 0) /* the caller waits until as many as are wanted have come, at most 10 s */
        for (int k = 0; k < 10000 && __atomic_load_n(&m->inside, __ATOMIC_SEQ_CST) < m->wait; k++)
            rest(1000000);
    else /* workers are slower than the caller */
        rest(20000000);
    if (inside > m->most) m->most = inside;
    __atomic_fetch_add(&m->left, 1, __ATOMIC_SEQ_CST);
}

/* Wait for `wait` threads to be inside at once, of at most `threads`.
 * ids: [threads] how often each came; returns how many had left at the end. */
int64_t meet_all(int threads, int wait, int64_t *ids) {
    meeting m = {.ids = ids, .wait = wait};
    team_run(threads, meet, &m);
    return m.inside == m.left ? m.left : -1;
}

/* Mark all twice, the second time while somebody else has the team; returns how many
 * were marked, -1 where the team was called on then. */
int64_t mark_beside_another(int64_t *marks) {
    marking m = {marks, 0};
    team_for(4, 1000, 1, mark, &m);
    uint32_t runs = team.ticket;
    __atomic_store_n(&team.lock, 1, __ATOMIC_SEQ_CST);
    team_for(4, 1000, 1, mark, &m);
    __atomic_store_n(&team.lock, 0, __ATOMIC_SEQ_CST);
    return team.ticket == runs ? m.total : -1;
}

int workers(void) { return team.workers; }

/* Whether all workers sleep in the kernel within some seconds. */
int all_sleep(double seconds) {
    for (double end = team_seconds() + seconds; team_seconds() < end; rest(1000000))
        if ((int)__atomic_load_n(&team.sleepers, __ATOMIC_SEQ_CST) == team.workers) return 1;
    return 0;
}
