/* What of the process and of the calling thread a plugin leaves as it found it. */
#include "plugin-sdk/conformance/worker/kernel/checks.h"
#include "plugin-sdk/conformance/worker/contract/capture.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"

#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* A flag of the C library's own on some machines: there once an action was set, be it the old one.
 */
enum { RESTORER = 0x04000000 };

/* ---- a record of it ---------------------------------------------------------------------- */

static const int signals[] = {SIGHUP,  SIGINT,   SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
                              SIGFPE,  SIGUSR1,  SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM,
                              SIGCHLD, SIGCONT,  SIGTSTP, SIGTTIN, SIGTTOU, SIGURG,  SIGXCPU,
                              SIGPROF, SIGWINCH, SIGIO,   SIGSYS};
static const int limits[] = {RLIMIT_AS,    RLIMIT_CORE,   RLIMIT_DATA,  RLIMIT_FSIZE,
                             RLIMIT_STACK, RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_MEMLOCK};
enum { N_SIGNALS = sizeof signals / sizeof *signals, N_LIMITS = sizeof limits / sizeof *limits };

typedef struct surroundings {
    char locale[512], cwd[1024], name[16];
    int rounding;
    uint32_t mxcsr;
    uint64_t control; /* of the x87 or of the FPCR */
    sigset_t mask;
    void *handlers[N_SIGNALS];
    int flags[N_SIGNALS];
    mode_t umask;
    uint64_t environment;
    struct rlimit limits[N_LIMITS];
    struct itimerval timers[3];
    int nice;
} surroundings;

static uint64_t environment_sum(void) {
    uint64_t sum = 7;
    for (char **e = environ; e && *e; e++)
        for (const char *c = *e;; c++) {
            sum = (sum ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
            if (!*c)
                break;
        }
    return sum;
}

static void look(surroundings *s) {
    memset(s, 0, sizeof *s);
    snprintf(s->locale, sizeof s->locale, "%s", setlocale(LC_ALL, NULL));
    if (!getcwd(s->cwd, sizeof s->cwd))
        s->cwd[0] = '\0';
    prctl(PR_GET_NAME, s->name);
    s->rounding = fegetround();
#if defined(__x86_64__)
    uint16_t x87;
    s->mxcsr = __builtin_ia32_stmxcsr() & 0xffc0; /* without the sticky flags */
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    s->control = x87;
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(s->control));
#endif
    pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
    for (int i = 0; i < N_SIGNALS; i++) {
        struct sigaction action;
        if (sigaction(signals[i], NULL, &action) != 0)
            continue;
        s->handlers[i] =
            action.sa_flags & SA_SIGINFO ? (void *)action.sa_sigaction : (void *)action.sa_handler;
        s->flags[i] = action.sa_flags & ~RESTORER;
    }
    s->umask = umask(022);
    umask(s->umask);
    s->environment = environment_sum();
    for (int i = 0; i < N_LIMITS; i++)
        getrlimit(limits[i], &s->limits[i]);
    for (int i = 0; i < 3; i++)
        getitimer(i, &s->timers[i]);
    s->nice = getpriority(PRIO_PROCESS, 0);
}

static bool same_mask(const sigset_t *a, const sigset_t *b) {
    for (int i = 1; i < 65; i++)
        if (sigismember(a, i) != sigismember(b, i))
            return false;
    return true;
}

#define CHANGED(k, what, ...) \
    TC_BROKEN(k, TNP_PROCESS_STATE_KEPT, what "; put it back before the call returns", __VA_ARGS__)

static void compare(tc_contract *k, const surroundings *a, const char *call) {
    surroundings b;
    look(&b);
    if (strcmp(a->locale, b.locale) != 0)
        CHANGED(k, "%s changed the locale from %.100s to %.100s", call, a->locale, b.locale);
    if (strcmp(a->cwd, b.cwd) != 0)
        CHANGED(k, "%s changed the working directory to %.200s", call, b.cwd);
    if (strcmp(a->name, b.name) != 0)
        CHANGED(k, "%s renamed the calling thread from %s to %s", call, a->name, b.name);
    if (a->rounding != b.rounding)
        CHANGED(k, "%s changed the rounding mode", call);
    if (a->mxcsr != b.mxcsr)
        CHANGED(k,
                "%s changed MXCSR from 0x%x to 0x%x (flush to zero, denormals are zero, "
                "rounding, masks)",
                call, a->mxcsr, b.mxcsr);
    if (a->control != b.control)
        CHANGED(k, "%s changed the floating-point control word from 0x%llx to 0x%llx", call,
                (unsigned long long)a->control, (unsigned long long)b.control);
    if (!same_mask(&a->mask, &b.mask))
        CHANGED(k, "%s changed the thread's signal mask", call);
    for (int i = 0; i < N_SIGNALS; i++)
        if (a->handlers[i] != b.handlers[i] || a->flags[i] != b.flags[i])
            CHANGED(k, "%s changed what is done on signal %d (%s)", call, signals[i],
                    strsignal(signals[i]));
    if (a->umask != b.umask)
        CHANGED(k, "%s changed the umask from %o to %o", call, a->umask, b.umask);
    if (a->environment != b.environment)
        CHANGED(k, "%s changed the environment variables", call);
    for (int i = 0; i < N_LIMITS; i++)
        if (a->limits[i].rlim_cur > b.limits[i].rlim_cur ||
            a->limits[i].rlim_max > b.limits[i].rlim_max)
            CHANGED(k, "%s lowered a limit of the process (RLIMIT number %d)", call, limits[i]);
    for (int i = 0; i < 3; i++)
        if (a->timers[i].it_value.tv_sec == 0 && a->timers[i].it_value.tv_usec == 0 &&
            (b.timers[i].it_value.tv_sec != 0 || b.timers[i].it_value.tv_usec != 0))
            CHANGED(k, "%s started an interval timer", call);
    if (a->nice != b.nice)
        CHANGED(k, "%s changed the priority of the process", call);
}

/* ---- a life, watched after each call ----------------------------------------------------- */

static void set_threads(tc_contract *k, tc_subject *s) {
    const tn_ext_threads *threads = tc_subject_threads(s);
    if (!threads)
        return;
    uint32_t n = threads->get_num_threads(s->self);
    tc_must(k, TNP_THREADS_LIMIT, threads->set_num_threads(s->self, n + 1), "set_num_threads");
    tc_must(k, TNP_THREADS_LIMIT, threads->set_num_threads(s->self, n), "set_num_threads");
}

static void watch(tc_contract *k, const surroundings *before) {
    char why[TC_MESSAGE];
    tc_subject s;
    uint32_t n;
    if (!tc_subject_load(&s, k->options->plugin, tc_host_table(), why)) {
        TC_BROKEN(k, s.broken, "%s", why);
        return;
    }
    compare(k, before, "dlopen or " TN_PLUGIN_QUERY_NAME);
    tc_host_running(true);
    tc_host_expect_self(NULL);
    if (!tc_must(k, TNP_INIT_RESULT, s.plugin->init(tc_host_table(), k->options->plugin, &s.self),
                 "init"))
        return;
    tc_host_expect_self(s.self);
    compare(k, before, "init");
    tc_must(k, TNP_COUNT_DEVICES, s.ops->count(s.self, &n), "count");
    compare(k, before, "count");
    set_threads(k, &s);
    compare(k, before, "set_num_threads");
    if (tc_must(k, TNP_OPEN_DEVICE, s.ops->open(s.self, k->options->device, &s.device), "open")) {
        compare(k, before, "open");
        s.alignment = (uint64_t)tc_subject_property(&s, k->options->device, TN_PROP_ALIGNMENT, 64);
        s.dtypes = (uint64_t)tc_subject_property(&s, k->options->device, TN_PROP_DTYPES,
                                                 (int64_t)TN_DTYPES_ALL);
        if (s.ops->streams)
            tc_must(k, TNP_STREAM_CREATE, s.ops->streams->create(s.device, 0, &s.stream),
                    "stream create");
        compare(k, before, "stream create");
        tc_lifecycle_probe(k, &s, false, TNP_NONE, "a small call", NULL);
        compare(k, before, "a transfer or a kernel");
        tc_lifecycle_probe(k, &s, true, TNP_NONE, "a larger call", NULL);
        compare(k, before, "a kernel over many elements");
    }
    tc_subject_close(&s);
    compare(k, before, "close or shutdown");
}

static void environment_unchanged(tc_contract *k) {
    surroundings before;
    look(&before);
    watch(k, &before);
}

/* The same where the caller has set things otherwise, so that what a plugin restores is the
 * caller's and not the usual. */
static void environment_unusual(tc_contract *k) {
    surroundings before;
    sigset_t mask, was;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigaddset(&mask, SIGWINCH);
    pthread_sigmask(SIG_BLOCK, &mask, &was);
    mode_t usual = umask(027);
    if (chdir("/") != 0)
        tc_verdict_set(k->out, TC_ERROR, TNP_NONE, "the working directory cannot be changed");
    look(&before);
    watch(k, &before);
    umask(usual);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
}

static void environment_output(tc_contract *k) {
    tc_capture out;
    char text[64];
    surroundings before;
    look(&before);
    if (!tc_capture_start(&out, 1)) {
        tc_verdict_set(k->out, TC_ERROR, TNP_NONE, "stdout cannot be captured");
        return;
    }
    watch(k, &before);
    if (tc_capture_stop(&out, text) > 0)
        TC_BROKEN(k, TNP_NO_OUTPUT,
                  "the plugin printed to stdout: %s; what it says goes to host->log", text);
}

static void environment_children(tc_contract *k) {
    surroundings before;
    look(&before);
    watch(k, &before);
    if (waitpid(-1, NULL, WNOHANG) >= 0)
        TC_BROKEN(k, TNP_SHUTDOWN_NO_THREADS, "a child process is left after shutdown");
}

/* ---- a caller with a small stack --------------------------------------------------------- */

enum { STACK = 1 << 20 };

typedef struct caller {
    tc_subject *s;
    const tn_kernel *kernel;
    const tn_call *call;
    tn_status status;
} caller;

static void *call_kernel(void *context) {
    caller *c = context;
    c->status = c->kernel->run(c->call);
    tn_status later = tc_subject_sync(c->s);
    if (c->status == TN_OK)
        c->status = later;
    return NULL;
}

static void run_small(tc_contract *k, tc_subject *s, bool wide) {
    tc_invocation call;
    tc_placed placed;
    pthread_attr_t attributes;
    pthread_t thread;
    const tn_kernel *kernel = tc_lifecycle_call(k, s, wide, &call);
    if (!kernel || kernel->workspace)
        return;
    if (tc_place_call(s, s->stream, kernel, &call, &placed, k->out)) {
        caller c = {s, kernel, &placed.tn, TN_OK};
        tc_subject_sync(s);
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, STACK);
        if (pthread_create(&thread, &attributes, call_kernel, &c) == 0) {
            tc_result result = {0};
            pthread_join(thread, NULL);
            if (c.status != TN_OK)
                TC_BROKEN(k, TNP_KERNEL_STACK,
                          "a kernel called from a thread with a stack of %d KiB failed with "
                          "%s",
                          STACK >> 10, tc_tn_status_name(c.status));
            else if (tc_read_back(&placed, &result, k->out))
                tc_check_outputs(&call, &result, s, k->out);
        }
        pthread_attr_destroy(&attributes);
    }
    tc_unplace(&placed);
}

static void environment_stack(tc_contract *k) {
    tc_subject s;
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_NONE, "for a caller with a small stack"))
        return;
    run_small(k, &s, false);
    run_small(k, &s, true);
    tc_subject_close(&s);
}

const tc_contract_row tc_environment_rows[] = {
    {"environment-unchanged", "", TC_SMOKE, environment_unchanged},
    {"environment-unusual", "", TC_STANDARD, environment_unusual},
    {"environment-output", "", TC_STANDARD, environment_output},
    {"environment-children", "", TC_STANDARD, environment_children},
    {"environment-stack", "", TC_STANDARD, environment_stack},
    {0},
};
