/* See signals.h. */
#include "plugins/shared/gpu/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Those that C libraries use themselves cannot be asked for. */
enum { SIGNALS = 65 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static int users;
static bool known[SIGNALS];
static struct sigaction actions[SIGNALS];

void gpu_signals_keep(void) {
    pthread_mutex_lock(&lock);
    if (users++ == 0)
        for (int s = 1; s < SIGNALS; s++)
            known[s] = sigaction(s, NULL, &actions[s]) == 0;
    pthread_mutex_unlock(&lock);
}

void gpu_signals_restore(void) {
    pthread_mutex_lock(&lock);
    if (--users == 0)
        for (int s = 1; s < SIGNALS; s++)
            if (known[s])
                sigaction(s, &actions[s], NULL);
    pthread_mutex_unlock(&lock);
}
