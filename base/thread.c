/* One pthread key whose destructor runs what the thread registered.
 *
 * The key's value says only that there is something to run; the list itself is thread-local. glibc
 * leaves a thread's values as they are in a child forked while another thread runs, or is about to
 * run, its destructors, and a new thread of the child that has its stack has them then, too. Its
 * thread-local variables are always new. */
#include "base/alloc.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct exit_entry {
    struct exit_entry *next;
    void (*fn)(void);
} exit_entry;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static TNI_TLS exit_entry *entries;

/* What is registered meanwhile is left for the next time. */
static void run(void *user) {
    exit_entry *e = entries, *next;
    entries = NULL;
    for (; e; e = next) {
        next = e->next;
        e->fn();
        tni_free(e);
    }
}

static void make_key(void) {
    pthread_key_create(&key, run);
}

_Bool tni_thread_at_exit(void (*fn)(void)) {
    pthread_once(&once, make_key);
    exit_entry *e = tni_alloc(sizeof *e);
    if (!e)
        return 0;
    if (pthread_setspecific(key, &key) != 0) {
        tni_free(e);
        return 0;
    }
    *e = (exit_entry){entries, fn};
    entries = e;
    return 1;
}

void tni_thread_run_exit(void) {
    pthread_once(&once, make_key);
    pthread_setspecific(key, NULL);
    run(NULL);
}
