/* What calls into a plugin leave behind: threads, descriptors, and the state of the process and of the
 * calling thread that they must not change. */
#include "loader/validation/internal.h"

#include <string.h>
#include <time.h>

void tni_process_begin(const tni_watch *w, tni_process_before *before) {
    tni_census_take(&before->census);
    if (w->level >= 2)
        tni_process_look(&before->state);
}

void tni_process_end(tni_watch *w, const tni_process_before *before, const char *slot,
                     const char *op, uint8_t mark) {
    char text[256];
    if (w->level >= 2 &&
        tni_process_compare(&before->state, text, sizeof text) != TNI_PROCESS_PARTS)
        tni_finding(w, TNP_PROCESS_STATE_KEPT, slot, op, "%s", text);
    tni_census now;
    tni_census_take(&now);
    pthread_mutex_lock(&tni_records_lock);
    for (uint32_t i = 0; i < now.n_threads && i < TNI_CENSUS_THREADS; i++)
        if (!tni_census_has_thread(&before->census, now.threads[i]) && w->n_strays < TNI_MAX_STRAYS)
            w->strays[w->n_strays++] = now.threads[i];
    for (int i = 0; i < TNI_CENSUS_FILES; i++)
        if (now.files[i] && !before->census.files[i])
            w->files[i] = mark;
    pthread_mutex_unlock(&tni_records_lock);
}

/* How many of the plugin's threads are there? One that was joined may be listed a moment longer. */
static uint32_t count_strays(tni_watch *w, tni_census *now) {
    uint32_t n = 0;
    for (int attempt = 0; attempt < 200; attempt++) {
        tni_census_take(now);
        n = 0;
        for (uint32_t i = 0; i < w->n_strays; i++)
            n += tni_census_has_thread(now, w->strays[i]);
        if (n == 0)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return n;
}

void tni_process_settle(tni_watch *w) {
    tni_census now;
    uint32_t n = count_strays(w, &now);
    if (n)
        tni_finding(w, TNI_WARNING | TNP_SHUTDOWN_NO_THREADS, "shutdown", "",
                    "%u %s started inside calls to this plugin still %s", n,
                    n == 1 ? "thread that was" : "threads that were", n == 1 ? "runs" : "run");
    uint32_t of_init = 0, of_open = 0;
    for (int i = 0; i < TNI_CENSUS_FILES; i++) {
        of_init += now.files[i] && w->files[i] == 1;
        of_open += now.files[i] && w->files[i] == 2;
    }
    if (of_init)
        tni_finding(w, TNI_WARNING | TNP_INIT_AGAIN, "shutdown", "",
                    "%u file descriptors that came up inside init or count are still open",
                    of_init);
    if (of_open)
        tni_finding(w, TNI_WARNING | TNP_CLOSE_RETURNS_ALL, "devices->close", "",
                    "%u file descriptors that came up inside open or later calls are still open",
                    of_open);
    w->n_strays = 0;
    memset(w->files, 0, sizeof w->files);
}
