/* Every call of the driver fails, once and for good, in work that uses all that the plugin has; so does
 * every call of NVRTC, and every allocation on the host. */
#include "plugins/cuda/driver.h"
#include "tests/cuda/double/nvrtc_double.h"
#include "tests/cuda/life.h"

#include <stdlib.h>

enum { STREAMS = LIFE_STREAMS, N = LIFE_N };

static void forget_message(void) {
    const tn_host *host = mini_host_table();
    (host->fail)(host, TN_OK, "");
}

/* ---- a lost device ----------------------------------------------------------------------- */

static void assert_lost(tn_status status, const char *what) {
    if (status != TN_ERR_DEVICE_LOST)
        fail_msg("%s on a lost device: status %d, %s", what, status, mini_error());
}

/* Each call says that the device is lost. */
static void use_lost(life *l) {
    const tn_device_ops *ops = life_plugin->devices;
    tn_memory_info info = {.struct_size = sizeof info};
    tn_stream_impl *stream;
    tn_event_impl *event;
    tn_graph_impl *graph;
    tn_memory memory;
    void *none;
    char byte = 0;
    assert_lost(ops->memory->info(l->m.device, TN_SPACE_DEVICE, &info), "info");
    assert_lost(mini_alloc(ops->memory, l->m.device, TN_SPACE_DEVICE, 8, &memory, &none), "alloc");
    assert_lost(mini_alloc(ops->memory, l->m.device, TN_SPACE_PINNED, 8, &memory, &none),
                "alloc of pinned memory");
    assert_lost(ops->streams->create(l->m.device, 0, &stream), "create of a stream");
    assert_lost(ops->events->create(l->m.device, 0, &event), "create of an event");
    for (int i = 0; i < STREAMS; i++) {
        stream = l->streams[i];
        if (!stream)
            continue;
        assert_lost(ops->streams->query(stream), "query");
        assert_lost(ops->streams->synchronize(stream), "synchronize");
        if (l->end) {
            assert_lost(ops->events->record(l->end, stream), "record");
            assert_lost(ops->events->wait(stream, l->end), "wait");
            assert_lost(ops->events->query(l->end), "query of an event");
            assert_lost(ops->events->synchronize(l->end), "synchronize of an event");
        }
        assert_lost(ops->memory->fill(l->m.device, stream, l->in, 0, 0, 1), "fill");
        assert_lost(ops->memory->copy(l->m.device, stream, l->in, 0, l->in, 8, 1), "copy");
        assert_lost(ops->memory->copy_from_host(l->m.device, stream, l->in, 0, &byte, 0, 1),
                    "copy_from_host");
        assert_lost(ops->memory->copy_to_host(l->m.device, stream, &byte, 0, l->in, 0, 1),
                    "copy_to_host");
        l->m.stream = stream;
        assert_lost(rig_negate(&l->m, stream, l->in, l->negated, N), "run");
        if (l->graph)
            assert_lost(l->capture->launch(l->graph, stream), "launch");
        assert_lost(l->capture->begin(stream), "begin");
        assert_lost(l->capture->end(stream, &graph), "end");
    }
    if (l->graph && l->another)
        assert_lost(l->capture->update(l->graph, l->another), "update");
}

/* ---- what fails -------------------------------------------------------------------------- */

#define FUNCTION_NAME(function) #function,
static const char *const functions[] = {CUDA_DRIVER_FUNCTIONS(FUNCTION_NAME)};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static uint64_t n_calls[FUNCTIONS]; /* in a life without failures */

static bool is_of(const char *function, const char *const *list) {
    for (; *list; list++)
        if (strcmp(*list, function) == 0)
            return true;
    return false;
}

/* Called behind another failure alone; the tests below look at each. */
static const char *const behind_failures[] = {"cuGetErrorName", "cuGetErrorString",
                                              "cuCtxSetCurrent", NULL};

/* Those without which the work can go on, or that have another behind them; a context is entered for
 * such, too. */
static const char *const dispensable[] = {
    "cuCtxGetCurrent",       "cuCtxPushCurrent_v2",   "cuCtxPopCurrent_v2",
    "cuDeviceCanAccessPeer", "cuCtxEnablePeerAccess", "cuModuleLoadDataEx",
    "cuModuleGetFunction",   "cuPointerGetAttribute", NULL};

/* When one of these fails, what it was to give back stays. */
static const char *const releasing[] = {"cuMemFree_v2",
                                        "cuMemFreeHost",
                                        "cuEventDestroy_v2",
                                        "cuStreamDestroy_v2",
                                        "cuModuleUnload",
                                        "cuGraphDestroy",
                                        "cuGraphExecDestroy",
                                        "cuDevicePrimaryCtxRelease_v2",
                                        "cuCtxPushCurrent_v2",
                                        "cuCtxPopCurrent_v2",
                                        NULL};

/* For which not ready is an answer, and what comes before them. */
static const char *const queries[] = {"cuStreamQuery", "cuEventQuery", "cuEventElapsedTime",
                                      "cuCtxPushCurrent_v2", NULL};

typedef struct failure {
    const char *function;
    uint64_t at;
    bool is_lasting;
    CUresult error; /* CUDA_SUCCESS: nothing fails in the driver */
} failure;

/* "cuMemAlloc_v2 fails with 2 at call 3". */
static const char *text_of(const failure *f) {
    static char text[128];
    snprintf(text, sizeof text, "%s fails with %d at call %llu%s", f->function, f->error,
             (unsigned long long)f->at, f->is_lasting ? " and from then on" : "");
    return text;
}

static bool is_sticky(const failure *f) {
    return f->error == CUDA_ERROR_LAUNCH_FAILED;
}

/* What the plugin makes of it, once a device is open. */
static tn_status status_of(CUresult error) {
    return error == CUDA_ERROR_OUT_OF_MEMORY   ? TN_ERR_OUT_OF_MEMORY
           : error == CUDA_ERROR_INVALID_VALUE ? TN_ERR_INVALID_ARGUMENT
           : error == CUDA_ERROR_LAUNCH_FAILED ? TN_ERR_DEVICE_LOST
                                               : TN_ERR_INTERNAL;
}

static const char *name_of(CUresult error) {
    const char *name = NULL;
    cuGetErrorName(error, &name);
    return name;
}

/* Is one of "this|that" in the text? */
static bool names_one(const char *text, const char *names) {
    char name[64];
    for (; *names; names += strcspn(names, "|"), names += *names == '|') {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(names, "|"), names);
        if (strstr(text, name))
            return true;
    }
    return false;
}

/* ---- what it does ------------------------------------------------------------------------ */

/* Says the message what was called, where and why? */
static void check_message(const life *l, const failure *f, tn_status status) {
    const char *message = mini_error();
    bool is_short_of_memory = status == TN_ERR_OUT_OF_MEMORY && strstr(message, "are free");
    if (strstr(message, "is lost")) /* a call that nobody asked for failed before */
        return;
    if (!names_one(message, l->names))
        fail_msg("%s: %s: no %s in '%s'", text_of(f), l->step, l->names, message);
    if (!strstr(message, "cuda:") && !strstr(message, "CUDA driver"))
        fail_msg("%s: %s: what failed is not in '%s'", text_of(f), l->step, message);
    if (!strstr(message, name_of(f->error)) && !is_short_of_memory)
        fail_msg("%s: %s: no %s in '%s'", text_of(f), l->step, name_of(f->error), message);
}

/* The first failure that the plugin told of, as `status` and in its message. */
static void check_status(const life *l, const failure *f, tn_status status, bool is_reached) {
    if (status == TN_OK) {
        if (is_reached && !is_of(f->function, dispensable) && !is_of(f->function, releasing))
            fail_msg("%s, and nobody says so", text_of(f));
        return;
    }
    check_message(l, f, status);
    if (l->m.device && status != status_of(f->error) &&
        !(status == TN_ERR_DEVICE && strstr(mini_error(), "does not answer")))
        fail_msg("%s: %s: status %d: %s", text_of(f), l->step, status, mini_error());
}

/* What a failure of one device does to it and to the other. */
static void check_devices(life *l, const failure *f) {
    tn_device_impl *const devices[] = {l->m.device, l->peer};
    int n_lost = 0;
    for (int i = 0; i < 2; i++) {
        tn_status status = devices[i] ? life_use(devices[i]) : TN_OK;
        n_lost += status == TN_ERR_DEVICE_LOST;
        if (status != TN_OK && (!is_sticky(f) || status != TN_ERR_DEVICE_LOST))
            fail_msg("%s (%s), and device %d does not work any more: status %d, %s", text_of(f),
                     l->step, i, status, mini_error());
        if (i == 0 && status == TN_ERR_DEVICE_LOST)
            use_lost(l);
    }
    if (n_lost > 1)
        fail_msg("%s (%s), and both devices are lost", text_of(f), l->step);
}

/* What the driver still holds where giving it back failed, or nothing works any more. */
static void give_back(void) {
    for (int i = 0; i < 2; i++)
        while (cuDevicePrimaryCtxRelease(i) == CUDA_SUCCESS) {
        }
    for (int depth = 1; depth && double_current(&depth);)
        cuCtxPopCurrent(&(CUcontext){NULL});
    rig_forget();
}

static void fail_once(const failure *f) {
    static life l;
    l = (life){.names = ""};
    rig_say("fail=");
    rig_forget();
    uint64_t at = double_calls(f->function) + f->at;
    forget_message();
    rig_watch(60);
    rig_say("fail=%s:%llu%s:%d", f->function, (unsigned long long)at, f->is_lasting ? "+" : "",
            (int)f->error);
    tn_status status = life_live(&l);
    bool is_reached = double_calls(f->function) >= at;
    const char *step = l.step;
    check_status(&l, f, status, is_reached);
    if (!f->is_lasting) {
        rig_say("fail=");
        check_devices(&l, f);
        if (!is_reached) /* it is in the teardown */
            rig_say("fail=%s:%llu:%d", f->function, (unsigned long long)at, (int)f->error);
    }
    life_end(&l);
    rig_rest();
    rig_say("fail=");
    if (l.wrong[0])
        fail_msg("%s: %s", text_of(f), l.wrong);
    if (mini_outstanding())
        fail_msg("%s (%s), and %lld pieces of host memory are left", text_of(f), step,
                 (long long)mini_outstanding());
    if (is_of(f->function, releasing) || (f->is_lasting && is_sticky(f)))
        give_back();
    else if (is_sticky(f))
        rig_forget();
    else if (rig_teardown(NULL))
        fail_msg("%s (%s)", text_of(f), step);
}

/* ---- calls of the driver ----------------------------------------------------------------- */

static void count_calls(void) {
    static life l;
    l = (life){0};
    assert_status(life_live(&l), TN_OK); /* whatever must be built is */
    life_end(&l);
    l = (life){0};
    for (int i = 0; i < FUNCTIONS; i++)
        n_calls[i] = double_calls(functions[i]);
    assert_status(life_live(&l), TN_OK);
    life_end(&l);
    assert_string_equal(l.wrong, "");
    for (int i = 0; i < FUNCTIONS; i++)
        n_calls[i] = double_calls(functions[i]) - n_calls[i];
}

static void every_function_of_the_driver_is_called(void **state) {
    count_calls();
    for (int i = 0; i < FUNCTIONS; i++)
        if ((n_calls[i] == 0) != is_of(functions[i], behind_failures))
            fail_msg("%s is called %llu times", functions[i], (unsigned long long)n_calls[i]);
}

/* A sanitizer makes all of it five times as long, and contexts are made current in most calls. */
#ifdef __SANITIZE_ADDRESS__
enum { ALL = 5 };
#else
enum { ALL = 1 };
#endif

/* At the first `most` calls of each function, and of those around contexts at every `each`th. */
static void fail_with(CUresult error, bool is_lasting, uint64_t most, uint64_t each) {
    count_calls();
    for (int i = 0; i < FUNCTIONS; i++) {
        uint64_t step = strncmp(functions[i], "cuCtx", 5) == 0 ? each : 1;
        if (error == CUDA_ERROR_NOT_READY && is_of(functions[i], queries))
            continue;
        for (uint64_t at = 1; at <= n_calls[i] && at <= most; at += step)
            fail_once(&(failure){functions[i], at, is_lasting, error});
    }
}

static void a_call_that_fails_once_is_told_and_leaves_nothing(void **state) {
    fail_with(CUDA_ERROR_UNKNOWN, false, UINT64_MAX, ALL);
}

static void a_call_that_breaks_its_context_loses_that_device(void **state) {
    fail_with(CUDA_ERROR_LAUNCH_FAILED, false, UINT64_MAX, 9);
}

static void a_call_that_fails_means_what_its_error_says(void **state) {
    fail_with(CUDA_ERROR_OUT_OF_MEMORY, false, 2, 1);
    fail_with(CUDA_ERROR_INVALID_VALUE, false, 2, 1);
    fail_with(CUDA_ERROR_NOT_READY, false, 2, 1);
}

static void a_call_that_fails_for_good_is_told_and_ends(void **state) {
    fail_with(CUDA_ERROR_LAUNCH_FAILED, true, 3, 9);
    fail_with(CUDA_ERROR_UNKNOWN, true, 3, 9);
}

/* ---- failures behind failures ------------------------------------------------------------ */

static void an_error_that_the_driver_does_not_know_is_told_by_its_number(void **state) {
    mini m;
    rig_open(&m);
    rig_say("fail=cuMemsetD8Async:0+:998"); /* there is none */
    assert_status(life_use(m.device), TN_ERR_INTERNAL);
    assert_text(mini_error(), "fill: an unknown error (998): the driver does not say what it is");
    rig_say(
        "fail= fail=cuMemsetD8Async:0+:999 fail=cuGetErrorName:0+:1 fail=cuGetErrorString:0+:1");
    assert_status(life_use(m.device), TN_ERR_INTERNAL);
    assert_text(mini_error(), "fill: an unknown error (999): the driver does not say what it is");
    rig_say("fail=");
    assert_ok(life_use(m.device));
    assert_true(mini_close(&m));
}

/* The context that cannot be taken off is replaced by what was there. */
static void a_context_that_stays_is_put_back(void **state) {
    CUcontext own = rig_context(0), popped;
    mini m;
    int depth;
    rig_open(&m);
    for (int fails = 0; fails < 2; fails++) {
        uint64_t before = double_calls("cuCtxSetCurrent");
        rig_say("fail=cuCtxPopCurrent_v2:%llu:999",
                (unsigned long long)double_calls("cuCtxPopCurrent_v2") + 1);
        if (fails) /* nothing is left to be done; the call itself went well */
            rig_say("fail=cuCtxSetCurrent:%llu:999", (unsigned long long)before + 1);
        assert_ok(life_use(m.device));
        rig_say("fail=");
        assert_int_equal(double_calls("cuCtxSetCurrent"), before + 1);
        assert_true((double_current(&depth) == own) == !fails);
        assert_int_equal(depth, 2 + fails);
    }
    for (int i = 0; i < 2; i++)
        cuCtxPopCurrent(&popped);
    assert_ok(life_use(m.device));
    assert_true(mini_close(&m));
    assert_ptr_equal(double_current(&depth), own);
    assert_int_equal(cuCtxDestroy(own), CUDA_SUCCESS);
}

/* ---- NVRTC ------------------------------------------------------------------------------- */

/* What must not fail, and what is asked where something did. */
static const char *const of_nvrtc[] = {"nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs",
                                       "nvrtcCreateProgram",        "nvrtcCompileProgram",
                                       "nvrtcGetCUBINSize",         "nvrtcGetCUBIN"};

static void a_failing_call_of_nvrtc_is_told_and_leaves_nothing(void **state) {
    mini m;
    mini_option("cache", "off");
    for (size_t i = 0; i < sizeof of_nvrtc / sizeof *of_nvrtc; i++) {
        char words[96];
        snprintf(words, sizeof words, "fail=%s:%llu", of_nvrtc[i],
                 (unsigned long long)double_nvrtc_calls(of_nvrtc[i]) + 1);
        rig_open(&m);
        assert_true(double_nvrtc_configure(words));
        tn_status status = rig_work(&m);
        assert_true(double_nvrtc_configure("fail="));
        if (strstr(of_nvrtc[i], "Archs")) { /* without the list nothing can be chosen from it */
            assert_int_equal(status, TN_ERR_UNSUPPORTED);
            assert_text(mini_error(), "this NVRTC");
        } else {
            assert_int_equal(status, TN_ERR_INTERNAL);
            assert_text(mini_error(), "NVRTC does not compile pointwise");
            assert_text(mini_error(), "NVRTC_ERROR_INTERNAL_ERROR");
        }
        assert_true(mini_close(&m));
    }
    mini_option("cache", rig_cache);
}

/* ---- host memory ------------------------------------------------------------------------- */

static int64_t count_allocations(void) {
    enum { MANY = 100000 };
    const tn_host *host = mini_host_table();
    static life l;
    int64_t n_left = 0;
    l = (life){0};
    mini_fail_alloc_after(MANY);
    assert_status(life_live(&l), TN_OK);
    life_end(&l);
    for (void *p; (p = host->alloc(host, 1, 1)); n_left++)
        host->dealloc(host, p);
    return MANY - n_left;
}

static void a_failing_host_allocation_is_told_and_leaves_nothing(void **state) {
    static life l;
    int64_t n_failed = 0;
    count_calls();
    int64_t n = count_allocations();
    for (int64_t at = 0; at < n; at++) {
        l = (life){0};
        forget_message();
        mini_fail_alloc_after(at);
        tn_status status = life_live(&l);
        mini_fail_alloc_after(-1);
        n_failed += status != TN_OK;
        if (status != TN_OK && status != TN_ERR_OUT_OF_MEMORY)
            fail_msg("without memory at allocation %lld %s: status %d, %s", (long long)at, l.step,
                     status, mini_error());
        if (status != TN_OK)
            assert_text(mini_error(), "memory");
        check_devices(&l, &(failure){.function = "an allocation", .at = (uint64_t)at});
        life_end(&l);
        assert_string_equal(l.wrong, "");
        assert_int_equal(mini_outstanding(), 0);
        assert_int_equal(rig_teardown(NULL), 0);
    }
    print_message("%lld allocations, of which %lld cannot be done without\n", (long long)n,
                  (long long)n_failed);
    assert_true(n_failed > 10);
}

int all_tests(void) {
    life_load();
    const struct CMUnitTest tests[] = {
        TEST(every_function_of_the_driver_is_called),
        TEST(a_call_that_fails_once_is_told_and_leaves_nothing),
        TEST(a_call_that_breaks_its_context_loses_that_device),
        TEST(a_call_that_fails_means_what_its_error_says),
        TEST(a_call_that_fails_for_good_is_told_and_ends),
        TEST(an_error_that_the_driver_does_not_know_is_told_by_its_number),
        TEST(a_context_that_stays_is_put_back),
        TEST(a_failing_call_of_nvrtc_is_told_and_leaves_nothing),
        TEST(a_failing_host_allocation_is_told_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
