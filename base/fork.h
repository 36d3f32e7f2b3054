/* Forks of a process whose threads are busy: the order of the library's locks, and what each module
 * puts right in the child.
 *
 * A forked child has one thread, the one that called fork, and the memory of all. So fork first
 * takes every lock of the library, in the order of TNI_FORK_MAP; what the locks guard is whole then,
 * and parent and child give them back in reverse. In the child each module also drops what belonged
 * to the threads that are not there: their entries of lists go, blocks in their magazines go back to
 * the pools, free objects of their slabs and the tensors that they held stay where they are.
 *
 * Two kinds of locks:
 * - pthread_mutex_t, where nothing foreign is called under it: no function of a plugin, no callback,
 *   no line of the log. It is held for moments, and never by a thread that calls fork.
 * - tni_lock, where that may happen. A thread that forks while it holds one keeps it, in the child
 *   too. One that another thread does not give back within TNI_FORK_PATIENCE is left alone (that
 *   thread may be waiting for who forks); its module is then told that the child has nothing whole,
 *   and its functions fail there.
 *
 * Only fork pays for this. A lock that spins holds tni_fork_generation, see core/autograd. The core
 * makes no call in the child for what was open, unless the plugin says TN_PLUGIN_FORK_SAFE; then it
 * tells the plugin of forks (tenon/ext/fork.h).
 */
#ifndef TNI_BASE_FORK_H
#define TNI_BASE_FORK_H

#include "base/error.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Every lock of base, dispatcher, loader and core: level, file, name. Who holds one may take
 * those below it. tools/check_locks.py compares this table with the sources. */
#define TNI_FORK_MAP(X) \
    X(INIT, "init.c", lock) \
    X(ACCUMULATE, "accumulate.c", locks) \
    X(VIEWS, "view.c", refresh_lock) \
    X(DEVICES, "fork.c", tni_devices_lock) \
    X(CURRENT, "current.c", lock) \
    X(PINNED, "pinned.c", lock) \
    X(ALLOCATORS, "pool.h", lock) \
    X(LOADER, "lifecycle.c", lock) \
    X(FALLBACK, "fallback.c", lock) \
    X(PROFILE, "handler.c", lock) \
    X(PROFILE_EVENTS, "events.c", lock) \
    X(GENERATORS, "generator.c", lock) \
    X(HOST, "host.c", lock) \
    X(RECORDS, "objects.c", tni_records_lock) \
    X(FINDINGS, "findings.c", lock) \
    X(REGISTRY, "registry.c", tni_registry_lock) \
    X(KERNELS, "kernel_table.c", lock) \
    X(KERNEL_OPS, "kernel_ops.c", ops_lock) \
    X(HOOKS, "hooks.c", hooks_lock) \
    X(DEVICE, "device.h", lock) \
    X(LIFETIMES, "lifetimes.c", lock) \
    X(COUNTERS, "tensor.c", counters_lock) \
    X(SLAB_THREADS, "slab.c", threads_lock) \
    X(SLABS, "slab.c", lock) \
    X(LOG, "log.c", sink_lock)

typedef enum tni_fork_level {
#define ENTRY(level, file, name) TNI_FORK_##level,
    TNI_FORK_MAP(ENTRY)
#undef ENTRY
        TNI_FORK_LEVELS
} tni_fork_level;

enum { TNI_FORK_PATIENCE = 5 /* seconds, for all locks together */ };

/* 1, and one more in each forked child. */
extern uint32_t tni_fork_generation;

/* What fork does for the locks of one level. The last calls come in reverse order. */
typedef struct tni_fork_part {
    void (*before)(void);
    void (*after)(bool in_child);
} tni_fork_part;

void tni_fork_register(tni_fork_level level, const tni_fork_part *part);

/* ---- locks under which foreign code may run ---------------------------------------------- */

typedef struct tni_lock {
    pthread_mutex_t mutex;
    _Atomic(const void *) holder; /* its tni_thread_mark */
    int8_t fork;                  /* what became of it; of the thread that forks */
} tni_lock;

#define TNI_LOCK_INITIALIZER \
    { .mutex = PTHREAD_MUTEX_INITIALIZER }

extern TNI_TLS char tni_thread_mark; /* each thread's has another address, the same in a child */

static inline bool tni_lock_is_mine(const tni_lock *l) {
    return atomic_load_explicit(&l->holder, memory_order_relaxed) == &tni_thread_mark;
}

static inline void tni_lock_take(tni_lock *l) {
    pthread_mutex_lock(&l->mutex);
    atomic_store_explicit(&l->holder, &tni_thread_mark, memory_order_relaxed);
}

static inline void tni_lock_give(tni_lock *l) {
    atomic_store_explicit(&l->holder, NULL, memory_order_relaxed);
    pthread_mutex_unlock(&l->mutex);
}

/* Takes it for a call that a program may make from a log function, or another callback, that runs under
 * this very lock: TN_ERR_STATE then, instead of a wait for itself. `doing` is what goes on under it. */
tn_status tni_lock_enter(tni_lock *lock, const char *doing);

/* For `before`: takes it, unless it is the caller's already or is not to be had. */
void tni_fork_take(tni_lock *lock);
/* For `after`: undoes that. False when it was not to be had; in the child it is free then. */
bool tni_fork_give(tni_lock *lock, bool in_child);

/* ---- a level that is one lock ------------------------------------------------------------ */

#define TNI_FORK_PART(level) \
    __attribute__((constructor)) static void fork_register_##level(void) { \
        static const tni_fork_part part = {fork_before_##level, fork_after_##level}; \
        tni_fork_register(TNI_FORK_##level, &part); \
    }

/* `mend()` runs in the child. */
#define TNI_FORK_MUTEX(level, mutex, mend) \
    static void fork_before_##level(void) { \
        pthread_mutex_lock(&(mutex)); \
    } \
    static void fork_after_##level(bool in_child) { \
        pthread_mutex_unlock(&(mutex)); \
        if (in_child) \
            mend(); \
    } \
    TNI_FORK_PART(level)

/* `mend(whole)` runs in the child; not whole: another thread was in the middle of a change. */
#define TNI_FORK_LOCK(level, lock, mend) \
    static void fork_before_##level(void) { \
        tni_fork_take(&(lock)); \
    } \
    static void fork_after_##level(bool in_child) { \
        bool whole = tni_fork_give(&(lock), in_child); \
        if (in_child) \
            mend(whole); \
    } \
    TNI_FORK_PART(level)

/* Where the child has nothing to put right. */
static inline void tni_fork_no_mend(void) {}
static inline void tni_fork_as_it_is(bool whole) {
    (void)whole;
}

#endif
