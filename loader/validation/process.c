/* What calls leave behind in the process: threads and descriptors, and the state of the calling
 * thread that they must not change. */
#include "loader/validation/internal.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the calling thread ------------------------------------------------------------------ */

/* Rounding, flushing to zero and traps; not the flags of what happened. */
static uint32_t control_word(void) {
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr() & ~0x3fu;
#elif defined(__aarch64__)
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return (uint32_t)word;
#else
    return 0;
#endif
}

void tni_process_save(const tni_watch *w, tni_process_state *s) {
    if (w->level < 2)
        return;
    memset(s, 0, sizeof *s);
    s->control = control_word();
    pthread_sigmask(SIG_SETMASK, NULL, &s->signals);
    s->thread_locale = uselocale((locale_t)0);
    const char *name = setlocale(LC_ALL, NULL);
    snprintf(s->locale, sizeof s->locale, "%s", name ? name : "");
    struct stat here;
    if (stat(".", &here) == 0) {
        s->device = here.st_dev;
        s->directory = here.st_ino;
    }
}

static bool same_signals(const sigset_t *a, const sigset_t *b) {
    for (int n = 1; n < NSIG; n++)
        if (sigismember(a, n) != sigismember(b, n))
            return false;
    return true;
}

void tni_process_compare(const tni_watch *w, const tni_process_state *before, const char *slot,
                         const char *op) {
    if (w->level < 2)
        return;
    tni_process_state now;
    tni_process_save(w, &now);
    const char *changed = NULL;
    if (now.control != before->control)
        changed = "the floating-point environment (rounding, flushing to zero, traps)";
    else if (!same_signals(&now.signals, &before->signals))
        changed = "the signal mask";
    else if (now.thread_locale != before->thread_locale || strcmp(now.locale, before->locale) != 0)
        changed = "the locale";
    else if (now.device != before->device || now.directory != before->directory)
        changed = "the working directory";
    if (changed)
        tni_finding(w, TNP_PROCESS_STATE_KEPT, slot, op, "changed %s", changed);
}

/* ---- threads and descriptors ------------------------------------------------------------- */

/* Calls fn with each number that names an entry of the directory. */
static void each_number(const char *directory, void (*fn)(long number, tni_census *c),
                        tni_census *c) {
    DIR *d = opendir(directory);
    if (!d)
        return;
    int own = dirfd(d);
    for (struct dirent *e; (e = readdir(d));) {
        char *end;
        long n = strtol(e->d_name, &end, 10);
        if (*e->d_name != '.' && !*end && n != own)
            fn(n, c);
    }
    closedir(d);
}

static void add_thread(long n, tni_census *c) {
    if (c->n_threads < sizeof c->threads / sizeof *c->threads)
        c->threads[c->n_threads++] = (pid_t)n;
}

static void add_file(long n, tni_census *c) {
    if (n < TNI_MAX_FILES)
        c->files[n] = 1;
}

void tni_census_take(tni_census *c) {
    memset(c, 0, sizeof *c);
    each_number("/proc/self/task", add_thread, c);
    each_number("/proc/self/fd", add_file, c);
}

static bool has_thread(const tni_census *c, pid_t thread) {
    for (uint32_t i = 0; i < c->n_threads; i++)
        if (c->threads[i] == thread)
            return true;
    return false;
}

void tni_census_compare(tni_watch *w, const tni_census *before, uint8_t mark) {
    tni_census now;
    tni_census_take(&now);
    pthread_mutex_lock(&w->lock);
    for (uint32_t i = 0; i < now.n_threads && w->n_strays < TNI_MAX_STRAYS; i++)
        if (!has_thread(before, now.threads[i]))
            w->strays[w->n_strays++] = now.threads[i];
    for (int i = 0; i < TNI_MAX_FILES; i++)
        if (now.files[i] && !before->files[i])
            w->files[i] = mark;
    pthread_mutex_unlock(&w->lock);
}

/* How many of the plugin's threads are there? One that was joined may be listed a moment longer. */
static uint32_t count_strays(tni_watch *w, tni_census *now) {
    uint32_t n = 0;
    for (int attempt = 0; attempt < 200; attempt++) {
        tni_census_take(now);
        n = 0;
        for (uint32_t i = 0; i < w->n_strays; i++)
            n += has_thread(now, w->strays[i]);
        if (n == 0)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return n;
}

void tni_census_settle(tni_watch *w) {
    tni_census now;
    uint32_t n = count_strays(w, &now);
    if (n)
        tni_finding(w, TNI_WARNING | TNP_SHUTDOWN_NO_THREADS, "shutdown", "",
                    "%u %s started inside calls to this plugin still %s", n,
                    n == 1 ? "thread that was" : "threads that were", n == 1 ? "runs" : "run");
    uint32_t of_init = 0, of_open = 0;
    for (int i = 0; i < TNI_MAX_FILES; i++) {
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
