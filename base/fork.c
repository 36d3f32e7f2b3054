/* The library's one pthread_atfork. */
#include "base/fork.h"

#include <time.h>

TNI_TLS char tni_thread_mark;
uint32_t tni_fork_generation = 1;

static const tni_fork_part *parts[TNI_FORK_LEVELS];
static pthread_mutex_t one_fork = PTHREAD_MUTEX_INITIALIZER; /* guards all here; taken first */
static struct timespec until;                                /* the end of patience */

enum { FORK_NOT_HAD, FORK_TAKEN, FORK_MINE };

tn_status tni_lock_enter(tni_lock *l, const char *doing) {
    if (tni_lock_is_mine(l))
        return tni_fail(
            TN_ERR_STATE,
            "called from a log function, or another callback, that runs while %s; do that"
            " afterwards",
            doing);
    tni_lock_take(l);
    return TN_OK;
}

void tni_fork_take(tni_lock *l) {
    if (tni_lock_is_mine(l)) {
        l->fork = FORK_MINE;
    } else if (pthread_mutex_timedlock(&l->mutex, &until) == 0) {
        atomic_store_explicit(&l->holder, &tni_thread_mark, memory_order_relaxed);
        l->fork = FORK_TAKEN;
    } else {
        l->fork = FORK_NOT_HAD;
    }
}

bool tni_fork_give(tni_lock *l, bool in_child) {
    int8_t was = l->fork;
    l->fork = FORK_NOT_HAD;
    if (was == FORK_TAKEN)
        tni_lock_give(l);
    else if (was != FORK_MINE && in_child)
        *l = (tni_lock)TNI_LOCK_INITIALIZER;
    return was == FORK_TAKEN || was == FORK_MINE;
}

static void before(void) {
    pthread_mutex_lock(&one_fork);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TNI_FORK_PATIENCE;
    for (int i = 0; i < TNI_FORK_LEVELS; i++)
        if (parts[i])
            parts[i]->before();
}

static void after(bool in_child) {
    for (int i = TNI_FORK_LEVELS - 1; i >= 0; i--)
        if (parts[i])
            parts[i]->after(in_child);
    pthread_mutex_unlock(&one_fork);
}

static void after_in_parent(void) {
    after(false);
}

static void after_in_child(void) {
    tni_fork_generation++;
    after(true);
}

void tni_fork_register(tni_fork_level level, const tni_fork_part *part) {
    static bool watching;
    pthread_mutex_lock(&one_fork);
    if (!watching)
        watching = pthread_atfork(before, after_in_parent, after_in_child) == 0;
    parts[level] = part;
    pthread_mutex_unlock(&one_fork);
}
