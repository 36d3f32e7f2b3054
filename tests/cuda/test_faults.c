/* Every call of the driver fails, once and for good, in work that uses all that the plugin has; so does
 * every allocation on the host. */
#include "plugins/cuda/driver.h"
#include "tests/cuda/rig.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <tenon/ext/capture.h>

enum { N = 200, BYTES = N * sizeof(float), LARGE = 64 << 10, STREAMS = 3 };

/* A plugin's life: what is 0 is not there. */
typedef struct life {
    mini m; /* device 0, and the first stream */
    tn_device_impl *peer;
    tn_stream_impl *streams[STREAMS], *peer_stream;
    tn_event_impl *start, *end;
    tn_memory in, negated, index, selected, copied, large, pinned, peer_memory;
    void *host; /* of `pinned` */
    tn_graph_impl *graph, *another;
    const tn_ext_capture *capture;
    const char *step;  /* the call that was made last */
    bool is_reached;   /* the call that was to fail was made before the teardown */
    const char *wrong; /* what a call did that it must not */
} life;

static const tn_plugin *plugin;
static float numbers[LARGE / sizeof(float)], results[LARGE / sizeof(float)];
static int64_t indices[N];

/* ---- a life ------------------------------------------------------------------------------ */

static void forget_message(void) {
    const tn_host *host = mini_host_table();
    (host->fail)(host, TN_OK, "");
}

/* Nothing was current before. */
static void look_at_context(life *l) {
    int depth;
    if (double_current(&depth) || depth)
        l->wrong = l->step;
}

#define STEP(call) \
    do { \
        l->step = #call; \
        tn_status status_ = (call); \
        look_at_context(l); \
        if (status_ != TN_OK) \
            return status_; \
    } while (0)

#define STEP_QUERY(call) \
    do { \
        l->step = #call; \
        tn_status status_ = (call); \
        look_at_context(l); \
        if (status_ != TN_OK && status_ != TN_NOT_READY) \
            return status_; \
    } while (0)

static tn_status alloc(tn_device_impl *device, int32_t space, uint64_t bytes, tn_memory *out,
                       void **out_host) {
    return mini_alloc(plugin->devices->memory, device, space, bytes, out, out_host);
}

static tn_status start(life *l) {
    const tn_device_ops *ops = plugin->devices;
    tn_cell cell;
    uint32_t n = 0;
    void *none;
    l->m.plugin = plugin;
    l->m.ops = ops;
    STEP(plugin->init(mini_host_table(), NULL, &l->m.self));
    l->capture = plugin->extension(l->m.self, TN_EXT_CAPTURE);
    STEP(ops->count(l->m.self, &n));
    STEP(ops->property(l->m.self, 0, TN_PROP_NAME, &cell));
    STEP(ops->property(l->m.self, 1, TN_PROP_COMPUTE_UNITS, &cell));
    STEP(ops->open(l->m.self, 0, &l->m.device));
    STEP(ops->open(l->m.self, 1, &l->peer));
    for (int i = 0; i < STREAMS; i++)
        STEP(ops->streams->create(l->m.device, (i - 1) * 100, &l->streams[i]));
    l->m.stream = l->streams[0];
    STEP(ops->streams->create(l->peer, 0, &l->peer_stream));
    STEP(ops->events->create(l->m.device, TN_EVENT_TIMING, &l->start));
    STEP(ops->events->create(l->m.device, TN_EVENT_TIMING, &l->end));
    tn_memory *small[] = {&l->in, &l->negated, &l->index, &l->selected, &l->copied};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        STEP(alloc(l->m.device, TN_SPACE_DEVICE, 2 * BYTES, small[i], &none));
    STEP(alloc(l->m.device, TN_SPACE_DEVICE, LARGE, &l->large, &none));
    STEP(alloc(l->m.device, TN_SPACE_PINNED, LARGE, &l->pinned, &l->host));
    STEP(alloc(l->peer, TN_SPACE_DEVICE, BYTES, &l->peer_memory, &none));
    return TN_OK;
}

/* Backwards and forwards again. */
static tn_status transfer(life *l) {
    const tn_memory_ops *memory = plugin->devices->memory;
    tn_device_impl *device = l->m.device;
    tn_stream_impl *stream = l->m.stream;
    tn_memory_info info = {.struct_size = sizeof info};
    STEP(memory->info(device, TN_SPACE_DEVICE, &info));
    STEP(memory->copy_from_host(device, stream, l->large, 0, numbers, 0, LARGE));
    STEP(memory->copy_to_host(device, stream, results, 0, l->large, 0, LARGE));
    assert_memory_equal(results, numbers, LARGE);
    memcpy(l->host, numbers, LARGE);
    STEP(memory->fill(device, stream, l->large, 0, 7, LARGE));
    STEP(memory->copy_from_host(device, stream, l->large, BYTES, l->host, l->pinned, BYTES));
    STEP(memory->copy(device, stream, l->large, 0, l->large, BYTES, BYTES));
    STEP(memory->copy_to_host(device, stream, l->host, l->pinned, l->large, 0, BYTES));
    STEP(plugin->devices->streams->synchronize(stream));
    assert_memory_equal(l->host, numbers, BYTES);
    return TN_OK;
}

static tn_status compute(life *l) {
    const tn_memory_ops *memory = plugin->devices->memory;
    tn_device_impl *device = l->m.device;
    tn_stream_impl *stream = l->m.stream;
    STEP(memory->copy_from_host(device, stream, l->in, 0, numbers, 0, BYTES));
    STEP(memory->copy_from_host(device, stream, l->index, 0, indices, 0, sizeof indices));
    STEP(rig_negate(&l->m, stream, l->in, l->negated, N));
    STEP(rig_select(&l->m, stream, l->negated, l->index, l->selected, N));
    return TN_OK;
}

/* From a stream to another, from there to the other device. */
static tn_status hand_over(life *l) {
    const tn_memory_ops *memory = plugin->devices->memory;
    const tn_event_ops *events = plugin->devices->events;
    double ns;
    STEP(events->record(l->start, l->m.stream));
    STEP(events->wait(l->streams[1], l->start));
    STEP(memory->copy(l->m.device, l->streams[1], l->copied, 0, l->selected, 0, BYTES));
    STEP(events->record(l->end, l->streams[1]));
    STEP(events->wait(l->peer_stream, l->end));
    STEP(memory->copy_peer(l->peer, l->peer_stream, l->peer_memory, 0, l->m.device, l->copied, 0,
                           BYTES));
    STEP(memory->copy_to_host(l->peer, l->peer_stream, results, 0, l->peer_memory, 0, BYTES));
    for (int i = 0; i < N; i++)
        assert_true(results[i] == -numbers[N - 1 - i]);
    STEP_QUERY(events->query(l->end));
    STEP(events->synchronize(l->end));
    STEP(events->elapsed(l->start, l->end, &ns));
    STEP_QUERY(plugin->devices->streams->query(l->m.stream));
    STEP(plugin->devices->streams->synchronize(l->m.stream));
    return TN_OK;
}

/* in, negated, and every second of it after the first `n` floats are 0. */
static tn_status record(life *l, tn_memory in, tn_graph_impl **out) {
    const tn_memory_ops *memory = plugin->devices->memory;
    tn_stream_impl *stream = l->streams[2];
    STEP(l->capture->begin(stream));
    STEP(memory->fill(l->m.device, stream, l->negated, 0, 0, BYTES));
    STEP(rig_negate(&l->m, stream, in, l->negated, N));
    STEP(rig_select(&l->m, stream, l->negated, l->index, l->selected, N));
    STEP(memory->copy(l->m.device, stream, l->copied, 0, l->selected, 0, BYTES));
    STEP(memory->copy_to_host(l->m.device, stream, l->host, l->pinned, l->copied, 0, BYTES));
    STEP(l->capture->end(stream, out));
    return TN_OK;
}

static tn_status replay(life *l) {
    STEP(l->capture->launch(l->graph, l->streams[1]));
    STEP(l->capture->launch(l->graph, l->streams[0]));
    STEP(plugin->devices->streams->synchronize(l->streams[0]));
    for (int i = 0; i < N; i++)
        assert_true(((float *)l->host)[i] == -numbers[N - 1 - i]);
    STEP(l->capture->update(l->graph, l->another));
    STEP(l->capture->launch(l->graph, l->streams[1]));
    STEP(plugin->devices->streams->synchronize(l->streams[1]));
    for (int i = 0; i < N; i++)
        assert_true(((float *)l->host)[i] == numbers[N - 1 - i]);
    return TN_OK;
}

static tn_status live(life *l) {
    tn_status status = start(l);
    if (status == TN_OK)
        status = transfer(l);
    if (status == TN_OK)
        status = compute(l);
    if (status == TN_OK)
        status = hand_over(l);
    if (status == TN_OK)
        status = record(l, l->in, &l->graph);
    if (status == TN_OK) /* `negated` of what was negated */
        status = record(l, l->large, &l->another);
    if (status == TN_OK) {
        for (int i = 0; i < N; i++)
            results[i] = -numbers[i];
        l->step = "the last copy_from_host";
        status = plugin->devices->memory->copy_from_host(l->m.device, l->m.stream, l->large, 0,
                                                         results, 0, BYTES);
    }
    return status == TN_OK ? replay(l) : status;
}

/* All that there is, in the order in which it may go. */
static void end(life *l) {
    const tn_device_ops *ops = plugin->devices;
    const tn_memory device[] = {l->in, l->negated, l->index, l->selected, l->copied, l->large};
    for (int i = 0; i < STREAMS; i++)
        if (l->streams[i])
            l->capture->abandon(l->streams[i]);
    if (l->graph)
        l->capture->destroy(l->graph);
    if (l->another)
        l->capture->destroy(l->another);
    ops->events->destroy(l->start);
    ops->events->destroy(l->end);
    for (int i = 0; i < STREAMS; i++)
        ops->streams->destroy(l->streams[i]);
    ops->streams->destroy(l->peer_stream);
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (device[i])
            ops->memory->dealloc(l->m.device, TN_SPACE_DEVICE, device[i]);
    if (l->pinned)
        ops->memory->dealloc(l->m.device, TN_SPACE_PINNED, l->pinned);
    if (l->peer_memory)
        ops->memory->dealloc(l->peer, TN_SPACE_DEVICE, l->peer_memory);
    if (l->m.device)
        ops->close(l->m.device);
    if (l->peer)
        ops->close(l->peer);
    if (l->m.self)
        plugin->shutdown(l->m.self);
    l->step = "the teardown";
    look_at_context(l);
}

/* ---- after a failure --------------------------------------------------------------------- */

/* A device that is not lost does what it did before. */
static tn_status use(tn_device_impl *device) {
    const tn_device_ops *ops = plugin->devices;
    tn_stream_impl *stream = NULL;
    tn_memory memory = 0;
    void *none;
    uint8_t bytes[64] = {0};
    tn_status status = ops->streams->create(device, 0, &stream);
    if (status == TN_OK)
        status = alloc(device, TN_SPACE_DEVICE, sizeof bytes, &memory, &none);
    if (status == TN_OK)
        status = ops->memory->fill(device, stream, memory, 0, 9, sizeof bytes);
    if (status == TN_OK)
        status = ops->memory->copy_to_host(device, stream, bytes, 0, memory, 0, sizeof bytes);
    if (status == TN_OK)
        status = ops->streams->synchronize(stream);
    if (status == TN_OK)
        assert_int_equal(bytes[sizeof bytes - 1], 9);
    ops->streams->destroy(stream);
    if (memory)
        ops->memory->dealloc(device, TN_SPACE_DEVICE, memory);
    return status;
}

static void assert_lost(tn_status status, const char *what) {
    if (status != TN_ERR_DEVICE_LOST)
        fail_msg("%s on a lost device: status %d, %s", what, status, mini_error());
}

/* Each call says that the device is lost. */
static void use_lost(life *l) {
    const tn_device_ops *ops = plugin->devices;
    tn_memory_info info = {.struct_size = sizeof info};
    tn_stream_impl *stream;
    tn_event_impl *event;
    tn_graph_impl *graph;
    tn_memory memory;
    void *none;
    char byte = 0;
    assert_lost(ops->memory->info(l->m.device, TN_SPACE_DEVICE, &info), "info");
    assert_lost(alloc(l->m.device, TN_SPACE_DEVICE, 8, &memory, &none), "alloc");
    assert_lost(alloc(l->m.device, TN_SPACE_PINNED, 8, &memory, &none), "alloc of pinned memory");
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

/* ---- one failure ------------------------------------------------------------------------- */

#define FUNCTION_NAME(function) #function,
static const char *const functions[] = {CUDA_DRIVER_FUNCTIONS(FUNCTION_NAME)};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static uint64_t n_calls[FUNCTIONS];
static int n_failures;

static bool is_of(const char *function, const char *const *list) {
    for (; *list; list++)
        if (strcmp(*list, function) == 0)
            return true;
    return false;
}

/* Those without which the work can go on, or that have another behind them; a context is entered for
 * such, too. */
static const char *const dispensable[] = {"cuCtxGetCurrent",
                                          "cuCtxPushCurrent_v2",
                                          "cuCtxPopCurrent_v2",
                                          "cuDeviceCanAccessPeer",
                                          "cuCtxEnablePeerAccess",
                                          "cuModuleLoadDataEx",
                                          "cuModuleGetFunction",
                                          "cuGetErrorName",
                                          "cuGetErrorString",
                                          "cuPointerGetAttribute",
                                          NULL};

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
    const char *function; /* NULL: nothing fails in the driver */
    uint64_t at;
    bool is_lasting;
    CUresult error;
} failure;

/* "cuMemAlloc_v2 fails with 2 at call 3". */
static const char *text_of(const failure *f) {
    static char text[128];
    snprintf(text, sizeof text, "%s fails with %d at call %llu%s", f->function, f->error,
             (unsigned long long)f->at, f->is_lasting ? " and from then on" : "");
    return text;
}

static bool is_sticky(const failure *f) {
    return f->function && f->error == CUDA_ERROR_LAUNCH_FAILED;
}

static const char *name_of(CUresult error) {
    const char *name = NULL;
    cuGetErrorName(error, &name);
    return name;
}

/* The first failure that the plugin told of, as `status` and in its message. */
static void check_status(const life *l, const failure *f, tn_status status) {
    const char *message = mini_error();
    if (status == TN_OK) {
        if (l->is_reached && !is_of(f->function, dispensable) && !is_of(f->function, releasing))
            fail_msg("%s, and nobody says so", text_of(f));
        return;
    }
    if (status == TN_NOT_READY)
        fail_msg("%s: %s answers TN_NOT_READY", text_of(f), l->step);
    if (!strstr(message, "cuda:") && !strstr(message, "CUDA driver"))
        fail_msg("%s: %s: what failed is not in '%s'", text_of(f), l->step, message);
    if (!strstr(message, name_of(f->error)) && !strstr(message, "is lost") &&
        !(status == TN_ERR_OUT_OF_MEMORY && strstr(message, "are free")) &&
        strncmp(f->function, "cuGetError", 10) != 0)
        fail_msg("%s: %s: no %s in '%s'", text_of(f), l->step, name_of(f->error), message);
    if (is_sticky(f) != (status == TN_ERR_DEVICE_LOST) && l->m.device)
        fail_msg("%s: %s: status %d: %s", text_of(f), l->step, status, message);
}

/* What a failure of one device does to it and to the other. */
static void check_devices(life *l, const failure *f) {
    tn_device_impl *const devices[] = {l->m.device, l->peer};
    int n_lost = 0;
    for (int i = 0; i < 2; i++) {
        tn_status status = devices[i] ? use(devices[i]) : TN_OK;
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

static void fail_once(const failure *f) {
    static life l;
    tn_status status;
    l = (life){0};
    rig_say("fail=");
    rig_forget();
    uint64_t before = double_calls(f->function);
    forget_message();
    rig_watch(60);
    rig_say("fail=%s:%llu%s:%d", f->function, (unsigned long long)(before + f->at),
            f->is_lasting ? "+" : "", (int)f->error);
    status = live(&l);
    l.is_reached = double_calls(f->function) >= before + f->at;
    char *step = strdup(l.step);
    check_status(&l, f, status);
    if (!f->is_lasting) {
        rig_say("fail=");
        check_devices(&l, f);
        if (!l.is_reached)
            rig_say("fail=%s:%llu:%d", f->function, (unsigned long long)(before + f->at),
                    (int)f->error);
    }
    end(&l);
    rig_rest();
    if (l.wrong)
        fail_msg("%s: %s leaves another context current", text_of(f), l.wrong);
    rig_say("fail=");
    if (mini_outstanding())
        fail_msg("%s (%s), and %lld pieces of host memory are left", text_of(f), step,
                 (long long)mini_outstanding());
    if (is_of(f->function, releasing) || (f->is_lasting && is_sticky(f))) {
        for (int i = 0; i < 2; i++)
            while (cuDevicePrimaryCtxRelease(i) == CUDA_SUCCESS) {
            }
        for (int depth = 1; depth && double_current(&depth);)
            cuCtxPopCurrent(&(CUcontext){NULL});
        rig_forget();
    } else if (is_sticky(f)) {
        rig_forget();
    } else if (rig_teardown(NULL)) {
        fail_msg("%s (%s)", text_of(f), step);
    }
    free(step);
}

/* ---- tests ------------------------------------------------------------------------------- */

static void count_calls(void) {
    life l = {0};
    assert_status(live(&l), TN_OK); /* whatever must be built is */
    end(&l);
    l = (life){0};
    for (int i = 0; i < FUNCTIONS; i++)
        n_calls[i] = double_calls(functions[i]);
    assert_status(live(&l), TN_OK);
    end(&l);
    assert_null(l.wrong);
    for (int i = 0; i < FUNCTIONS; i++)
        n_calls[i] = double_calls(functions[i]) - n_calls[i];
}

/* At the first `most` calls of each function, and of those around contexts at every `each`th. */
static void fail_with(CUresult error, bool is_lasting, uint64_t most, uint64_t each) {
    for (int i = 0; i < FUNCTIONS; i++) {
        uint64_t step = strncmp(functions[i], "cuCtx", 5) == 0 ? each : 1;
        if (error == CUDA_ERROR_NOT_READY && is_of(functions[i], queries))
            continue;
        for (uint64_t at = 1; at <= n_calls[i] && at <= most; at += step, n_failures++)
            fail_once(&(failure){functions[i], at, is_lasting, error});
    }
}

static void a_call_that_fails_once_is_told_and_leaves_nothing(void **state) {
    count_calls();
    n_failures = 0;
    fail_with(CUDA_ERROR_UNKNOWN, false, UINT64_MAX, 1);
    fail_with(CUDA_ERROR_LAUNCH_FAILED, false, UINT64_MAX, 9);
    fail_with(CUDA_ERROR_OUT_OF_MEMORY, false, 2, 1);
    fail_with(CUDA_ERROR_INVALID_VALUE, false, 2, 1);
    fail_with(CUDA_ERROR_NOT_READY, false, 2, 1);
    print_message("%d failures\n", n_failures);
}

static void a_call_that_fails_for_good_is_told_and_ends(void **state) {
    count_calls();
    n_failures = 0;
    fail_with(CUDA_ERROR_LAUNCH_FAILED, true, UINT64_MAX, 9);
    fail_with(CUDA_ERROR_UNKNOWN, true, 3, 9);
    print_message("%d failures\n", n_failures);
}

static void a_failing_host_allocation_is_told_and_leaves_nothing(void **state) {
    enum { MANY = 100000 };
    const tn_host *host = mini_host_table();
    life l = {0};
    int64_t n = MANY, n_failed = 0;
    count_calls();
    mini_fail_alloc_after(MANY);
    assert_status(live(&l), TN_OK);
    end(&l);
    for (void *p; (p = host->alloc(host, 1, 1)); n--)
        host->dealloc(host, p);
    n--; /* what was left of them */
    n = MANY - n;
    for (int64_t at = 0; at < n; at++) {
        l = (life){0};
        forget_message();
        mini_fail_alloc_after(at);
        tn_status status = live(&l);
        mini_fail_alloc_after(-1);
        n_failed += status != TN_OK;
        if (status != TN_OK && status != TN_ERR_OUT_OF_MEMORY)
            fail_msg("without memory at allocation %lld %s: status %d, %s", (long long)at, l.step,
                     status, mini_error());
        if (status != TN_OK)
            assert_text(mini_error(), "memory");
        check_devices(&l, &(failure){0});
        end(&l);
        assert_null(l.wrong);
        assert_int_equal(mini_outstanding(), 0);
        assert_int_equal(rig_teardown(NULL), 0);
    }
    print_message("%lld allocations, %lld of them cannot fail unnoticed\n", (long long)n,
                  (long long)n_failed);
    assert_true(n_failed > 10);
}

int all_tests(void) {
    void *object = dlopen(rig_plugin, RTLD_NOW | RTLD_LOCAL);
    tn_plugin_query_fn query;
    assert_non_null(object);
    *(void **)&query = dlsym(object, TN_PLUGIN_QUERY_NAME);
    plugin = query(mini_host_table());
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        numbers[i] = (float)(i + 1);
    for (int i = 0; i < N; i++)
        indices[i] = N - 1 - i;
    const struct CMUnitTest tests[] = {
        TEST(a_call_that_fails_once_is_told_and_leaves_nothing),
        TEST(a_call_that_fails_for_good_is_told_and_ends),
        TEST(a_failing_host_allocation_is_told_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
