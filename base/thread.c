/* One pthread key whose destructor runs what the thread registered. */
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

static void run(void *list) {
    for (exit_entry *e = list, *next; e; e = next) {
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
    *e = (exit_entry){pthread_getspecific(key), fn};
    if (pthread_setspecific(key, e) != 0) {
        tni_free(e);
        return 0;
    }
    return 1;
}

void tni_thread_run_exit(void) {
    pthread_once(&once, make_key);
    exit_entry *list = pthread_getspecific(key);
    pthread_setspecific(key, NULL);
    run(list);
}
