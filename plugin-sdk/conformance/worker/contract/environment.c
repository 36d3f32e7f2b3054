/* State of the process and of the calling thread that a plugin must leave unchanged. */
#include "plugin-sdk/conformance/worker/kernel/checks.h"
#include "plugin-sdk/conformance/worker/contract/capture.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/contract/properties.h"
#include "plugin-sdk/conformance/worker/kernel/execute.h"
#include "plugin-sdk/process/state.h"

#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tenon/ext/threads.h>
#include <unistd.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

/* How the thread rounds, and whether it flushes. */
static uint32_t modes(void) {
#ifdef __SSE__
    return _mm_getcsr() & ~UINT32_C(0x3f); /* without what arithmetic has met */
#else
    return (uint32_t)fegetround();
#endif
}

static void compare(tc_contract *k, const tni_process_state *before, const char *call) {
    char text[512];
    if (tni_process_compare(before, text, sizeof text) != TNI_PROCESS_PARTS)
        TC_BROKEN(k, TNP_PROCESS_STATE_KEPT, "%s %s; put it back before the call returns", call,
                  text);
}

/* ---- a life, watched after each call ----------------------------------------------------- */

static void set_threads(tc_contract *k, tc_subject *s) {
    const tn_ext_threads *threads = tc_subject_extension(s, TN_EXT_THREADS);
    if (!threads)
        return;
    uint32_t n = threads->get_num_threads(s->self);
    uint64_t properties = tc_properties_sum(s, k->options->device);
    tc_must(k, TNP_THREADS_LIMIT, threads->set_num_threads(s->self, n + 1), "set_num_threads");
    if (tc_properties_sum(s, k->options->device) != properties)
        TC_BROKEN(k, TNP_PROPERTY_STABLE,
                  "set_num_threads changed a property, which stays until shutdown");
    tc_must(k, TNP_THREADS_LIMIT, threads->set_num_threads(s->self, n), "set_num_threads");
}

static void live(tc_contract *k, const tni_process_state *before) {
    char why[TC_MESSAGE];
    tc_subject s;
    uint32_t n;
    if (!tc_subject_load(&s, k->options->plugin, tc_host_table(), why)) {
        TC_BROKEN(k, s.broken, "%s", why);
        return;
    }
    compare(k, before, "dlopen or " TN_PLUGIN_QUERY_NAME);
    s.host = tc_host_table();
    tc_host_begin(s.host);
    if (!tc_must(k, TNP_INIT_RESULT, s.plugin->init(tc_host_table(), k->options->plugin, &s.self),
                 "init"))
        return;
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
        tc_lifecycle_probe(k, &s, TC_WORK_SMALL, TNP_NONE, "a small call", NULL);
        compare(k, before, "a transfer or a kernel");
        tc_lifecycle_probe(k, &s, TC_WORK_WIDE, TNP_NONE, "a larger call", NULL);
        compare(k, before, "a kernel over many elements");
    }
    tc_subject_close(&s);
    compare(k, before, "close or shutdown");
}

/* What all threads share, at each call of the host, too. */
static void watch(tc_contract *k, const tni_process_state *before) {
    tc_host_watch(before);
    live(k, before);
    tc_host_watch(NULL);
}

static void environment_unchanged(tc_contract *k) {
    tni_process_state before;
    tni_process_look(&before);
    watch(k, &before);
}

/* A locale that is not the one a process starts in, and writes numbers as that does. */
static bool set_unusual_locale(void) {
    return setlocale(LC_ALL, "C.UTF-8") || setlocale(LC_ALL, "C.utf8") ||
           setlocale(LC_ALL, "en_US.UTF-8") || setlocale(LC_ALL, "POSIX");
}

static void on_signal(int number) {
    (void)number;
}

static void set_unusual(tc_contract *k) {
    static const int signals[] = {SIGPIPE, SIGUSR1, SIGUSR2, SIGINT, SIGTERM};
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigaddset(&mask, SIGWINCH);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &(struct sigaction){.sa_handler = on_signal}, NULL);
    umask(027);
    prctl(PR_SET_NAME, "unusual");
    if (chdir("/") != 0)
        TC_CASE_ERROR(k->out, "the working directory cannot be changed");
    if (!set_unusual_locale())
        TC_CASE_ERROR(k->out, "there is no locale but C");
}

/* The same where the caller has set things otherwise, so that what a plugin restores is the
 * caller's and not the usual. */
static void environment_unusual(tc_contract *k) {
    tni_process_state usual, before;
    tni_process_look(&usual);
    set_unusual(k);
    tni_process_look(&before);
    watch(k, &before);
    tni_process_restore(&usual);
}

/* The same where nothing can be written: what is kept between runs has no place. A driver that then has
 * no device is not the plugin's. */
static void environment_nowhere(tc_contract *k) {
    static const char *const places[] = {"HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"};
    enum { N_PLACES = sizeof places / sizeof *places };
    char *usual[N_PLACES], why[TC_MESSAGE];
    tni_process_state before;
    tc_subject s;
    for (int i = 0; i < N_PLACES; i++) {
        usual[i] = getenv(places[i]) ? strdup(getenv(places[i])) : NULL;
        setenv(places[i], "/dev/null/none", 1);
    }
    if (tc_subject_open(&s, k->options->plugin, k->options->device, tc_host_table(), why)) {
        tc_subject_close(&s);
        tni_process_look(&before);
        watch(k, &before);
    } else {
        TC_NOT_OFFERED(k, "where no folder can be made, %.200s", why);
    }
    for (int i = 0; i < N_PLACES; i++) {
        if (usual[i])
            setenv(places[i], usual[i], 1);
        else
            unsetenv(places[i]);
        free(usual[i]);
    }
}

/* Another rounding mode, and subnormal numbers flushed where the machine can (x86). */
static uint32_t set_unusual_modes(void) {
    fesetround(FE_TOWARDZERO);
#ifdef __SSE__
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
    return modes();
}

/* A call under other modes, whatever it comes to. */
static void keep_modes(tc_contract *k, tc_subject *s, tc_probe work) {
    tc_invocation *call = tc_arena_array(&k->arena, 1, sizeof *call);
    tc_placed placed = {0};
    fenv_t usual;
    if (!call || !tc_lifecycle_call(k, s, work, call) ||
        !tc_place_call(s, s->stream, call, &placed, k->out))
        return;
    fegetenv(&usual);
    uint32_t set = set_unusual_modes();
    tc_call_placed(&placed);
    tc_subject_sync(s);
    uint32_t now = modes();
    fesetenv(&usual);
    if (now != set)
        TC_BROKEN(k, TNP_PROCESS_STATE_KEPT,
                  "a kernel changed the caller's floating-point modes from 0x%x to 0x%x", set, now);
    tc_unplace(&placed);
}

/* And where the caller sets them while a device works: what was looked up before is not put back. */
static void environment_changed(tc_contract *k) {
    tni_process_state usual, before;
    tc_subject s;
    tni_process_look(&usual);
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_NONE, "before the caller's state changes"))
        return;
    tc_lifecycle_probe(k, &s, TC_WORK_SMALL, TNP_NONE, "a small call", NULL);
    set_unusual(k);
    tni_process_look(&before);
    tc_lifecycle_probe(k, &s, TC_WORK_WIDE, TNP_NONE, "a larger call", NULL);
    tc_lifecycle_probe(k, &s, TC_WORK_PRODUCT, TNP_NONE, "a product", NULL);
    compare(k, &before, "a kernel after the caller had changed it");
    for (int work = TC_WORK_SMALL; work <= TC_WORK_PRODUCT; work++)
        keep_modes(k, &s, (tc_probe)work);
    tc_subject_close(&s);
    compare(k, &before, "close or shutdown");
    tni_process_restore(&usual);
}

static void environment_output(tc_contract *k) {
    tc_capture out;
    char text[64];
    tni_process_state before;
    tni_process_look(&before);
    if (!tc_capture_start(&out, 1)) {
        TC_CASE_ERROR(k->out, "stdout cannot be captured");
        return;
    }
    watch(k, &before);
    if (tc_capture_stop(&out, text) > 0)
        TC_BROKEN(k, TNP_NO_OUTPUT,
                  "the plugin printed to stdout: %s; what it says goes to host->log_message", text);
}

static void environment_children(tc_contract *k) {
    tni_process_state before;
    tni_process_look(&before);
    watch(k, &before);
    if (waitpid(-1, NULL, WNOHANG) >= 0)
        TC_BROKEN(k, TNP_SHUTDOWN_NO_THREADS, "a child process is left after shutdown");
}

/* ---- a caller with a small stack --------------------------------------------------------- */

enum { STACK = 1 << 20 };

typedef struct caller {
    tc_subject *s;
    tc_placed placed;
    tn_status status;
} caller;

static void *call_kernel(void *context) {
    caller *c = context;
    c->status = tc_call_placed(&c->placed);
    tn_status later = tc_subject_sync(c->s);
    if (c->status == TN_OK)
        c->status = later;
    return NULL;
}

static void run_small(tc_contract *k, tc_subject *s, tc_probe work) {
    tc_invocation call;
    pthread_attr_t attributes;
    pthread_t thread;
    caller c = {.s = s};
    if (!tc_lifecycle_call(k, s, work, &call))
        return;
    if (tc_place_call(s, s->stream, &call, &c.placed, k->out)) {
        tc_subject_sync(s);
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, STACK);
        if (pthread_create(&thread, &attributes, call_kernel, &c) == 0) {
            tc_result result = {0};
            pthread_join(thread, NULL);
            if (c.status == TN_OK && tc_read_back(&c.placed, &result, k->out))
                tc_check_outputs(&call, &result, s, k->out);
            if (c.status != TN_OK && c.status != TN_ERR_UNSUPPORTED)
                TC_BROKEN(k, TNP_KERNEL_STACK,
                          "a kernel called from a thread with a stack of %d KiB failed with "
                          "%s",
                          STACK >> 10, tc_tn_status_name(c.status));
        }
        pthread_attr_destroy(&attributes);
    }
    tc_unplace(&c.placed);
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
    {"environment-nowhere", "", TC_STANDARD, environment_nowhere},
    {"environment-changed", "", TC_STANDARD, environment_changed},
    {"environment-output", "", TC_STANDARD, environment_output},
    {"environment-children", "", TC_STANDARD, environment_children},
    {"environment-stack", "", TC_STANDARD, environment_stack},
    {0},
};
