/* Errors after which a context answers nothing else: the device is lost, whoever notices first is
 * told what it ran last, and everything else goes on. A full device is not lost. */
#include "tests/cuda/life.h"

#include <pthread.h>
#include <tenon/ext/native.h>
#include <unistd.h>

enum { N = 1000, BYTES = N * sizeof(float) };

/* Both devices; device 0 has launched a kernel. */
typedef struct rig {
    mini m;
    tn_device_impl *peer;
    tn_stream_impl *peer_stream;
    tn_memory in, out;
} rig;

static void open_rig(rig *r) {
    rig_open(&r->m);
    assert_ok(r->m.ops->open(r->m.self, 1, &r->peer));
    assert_ok(r->m.ops->streams->create(r->peer, 0, &r->peer_stream));
    r->in = rig_alloc(&r->m, BYTES);
    r->out = rig_alloc(&r->m, BYTES);
    assert_ok(rig_negate(&r->m, r->m.stream, r->in, r->out, N));
    assert_ok(mini_synchronize(&r->m));
}

/* A device that was lost is closed like any other. What the driver kept of it is not looked for. */
static void close_rig(rig *r) {
    assert_ok(life_use(r->peer));
    rig_free(&r->m, r->in);
    rig_free(&r->m, r->out);
    r->m.ops->streams->destroy(r->peer_stream);
    r->m.ops->close(r->peer);
    assert_true(mini_close(&r->m));
    rig_forget();
}

/* Launches kernels, of which the last breaks the context with `error`. */
static void break_device(rig *r, CUresult error) {
    rig_say("fault=2:%d", (int)error);
    for (int i = 0; i < 2; i++)
        assert_ok(rig_negate(&r->m, r->m.stream, r->in, r->out, N));
}

/* Until the work of a stream is over, asked behind the plugin's back. */
static void wait_for_end(rig *r) {
    const tn_ext_native *native = r->m.plugin->extension(r->m.self, TN_EXT_NATIVE);
    CUstream stream = native->stream(r->m.stream);
    CUcontext popped;
    cuCtxPushCurrent(native->context(r->m.device));
    while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
        usleep(100);
    cuCtxPopCurrent(&popped);
}

static const char *name_of(CUresult error) {
    const char *name = NULL;
    cuGetErrorName(error, &name);
    return name;
}

static void assert_lost(tn_status status, CUresult error) {
    assert_int_equal(status, TN_ERR_DEVICE_LOST);
    assert_text(mini_error(), "cuda:0 (Tenon driver double 0)");
    assert_text(mini_error(), name_of(error));
    assert_text(mini_error(), "end the program");
}

static void assert_stays_lost(rig *r) {
    assert_status(life_use(r->m.device), TN_ERR_DEVICE_LOST);
    assert_text(mini_error(), "cuda:0 (Tenon driver double 0) is lost");
    assert_text(mini_error(), "end the program");
}

/* ---- what breaks it ---------------------------------------------------------------------- */

static void an_error_that_stays_loses_its_device_alone(void **state) {
    static const CUresult errors[] = {
        CUDA_ERROR_ECC_UNCORRECTABLE,
        CUDA_ERROR_NVLINK_UNCORRECTABLE,
        CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC,
        CUDA_ERROR_LAUNCH_FAILED,
    };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        rig r;
        open_rig(&r);
        break_device(&r, errors[i]);
        assert_lost(mini_synchronize(&r.m), errors[i]);
        assert_stays_lost(&r);
        close_rig(&r);
    }
}

/* Not by words to the double, but by what a kernel does. */
static void a_kernel_that_reads_what_is_not_there_loses_its_device(void **state) {
    static const struct {
        uint64_t away;
        CUresult error;
    } cases[] = {{UINT64_C(1) << 30, CUDA_ERROR_ILLEGAL_ADDRESS},
                 {2, CUDA_ERROR_MISALIGNED_ADDRESS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig r;
        open_rig(&r);
        assert_ok(rig_negate(&r.m, r.m.stream, r.in + cases[i].away, r.out, N));
        assert_lost(mini_synchronize(&r.m), cases[i].error);
        assert_text(mini_error(), "launched last: op_neg with ");
        assert_stays_lost(&r);
        close_rig(&r);
    }
}

static void *wait_for_stream(void *user) {
    rig *r = user;
    static tn_status status;
    status = r->m.ops->streams->synchronize(r->m.stream);
    return &status;
}

static void who_waits_for_a_device_that_goes_away_is_told(void **state) {
    pthread_t thread;
    void *status;
    rig r;
    open_rig(&r);
    double_hold();
    assert_ok(rig_negate(&r.m, r.m.stream, r.in, r.out, N));
    uint64_t waits = double_waits();
    assert_int_equal(pthread_create(&thread, NULL, wait_for_stream, &r), 0);
    while (double_waits() == waits)
        usleep(100);
    double_lose(0, CUDA_ERROR_NVLINK_UNCORRECTABLE);
    double_let_go();
    pthread_join(thread, &status);
    assert_int_equal(*(tn_status *)status, TN_ERR_DEVICE_LOST);
    assert_stays_lost(&r);
    close_rig(&r);
    assert_false(mini_open(&r.m, rig_plugin, 0));
    assert_text(mini_error(),
                "cuda:0 (Tenon driver double 0): creating a context: CUDA_ERROR_NVLINK");
}

/* ---- who notices ------------------------------------------------------------------------- */

typedef struct seen {
    rig *r;
    tn_event_impl *event;   /* recorded before */
    tn_stream_impl *stream; /* another one */
} seen;

static tn_status by_query(seen *s) {
    return s->r->m.ops->streams->query(s->r->m.stream);
}

static tn_status by_waiting_for_another_stream(seen *s) {
    return s->r->m.ops->streams->synchronize(s->stream);
}

static tn_status by_event_query(seen *s) {
    return s->r->m.ops->events->query(s->event);
}

static tn_status by_event_wait(seen *s) {
    return s->r->m.ops->events->synchronize(s->event);
}

static tn_status by_event_create(seen *s) {
    tn_event_impl *none;
    return s->r->m.ops->events->create(s->r->m.device, 0, &none);
}

static tn_status by_stream_create(seen *s) {
    tn_stream_impl *none;
    return s->r->m.ops->streams->create(s->r->m.device, 0, &none);
}

static tn_status by_allocation(seen *s) {
    tn_memory memory;
    void *host;
    return mini_alloc(s->r->m.ops->memory, s->r->m.device, TN_SPACE_DEVICE, 8, &memory, &host);
}

static tn_status by_copy(seen *s) {
    char byte;
    return s->r->m.ops->memory->copy_to_host(s->r->m.device, s->stream, &byte, 0, s->r->in, 0, 1);
}

static tn_status by_launch(seen *s) {
    return rig_negate(&s->r->m, s->stream, s->r->in, s->r->out, N);
}

/* What was launched is named, whatever call the error comes to light in. */
static void the_first_who_notices_is_told_what_ran_last(void **state) {
    tn_status (*const ways[])(seen *) = {
        by_query,        by_waiting_for_another_stream,
        by_event_query,  by_event_wait,
        by_event_create, by_stream_create,
        by_allocation,   by_copy,
        by_launch,
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        rig r;
        seen s = {.r = &r};
        open_rig(&r);
        assert_ok(r.m.ops->streams->create(r.m.device, 0, &s.stream));
        assert_ok(r.m.ops->events->create(r.m.device, 0, &s.event));
        assert_ok(r.m.ops->events->record(s.event, r.m.stream));
        break_device(&r, CUDA_ERROR_ILLEGAL_ADDRESS);
        wait_for_end(&r);
        size_t logged = strlen(mini_log());
        assert_lost(ways[i](&s), CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_text(mini_error(), "launched last: op_neg with ");
        assert_text(mini_log() + logged, "launched last on a stream: op_neg with ");
        r.m.ops->events->destroy(s.event);
        r.m.ops->streams->destroy(s.stream);
        close_rig(&r);
    }
}

static void each_stream_is_named(void **state) {
    rig r;
    tn_stream_impl *other;
    open_rig(&r);
    tn_memory index = rig_alloc(&r.m, N * sizeof(int64_t));
    assert_ok(r.m.ops->streams->create(r.m.device, 0, &other));
    assert_ok(r.m.ops->memory->fill(r.m.device, other, index, 0, 0, N * sizeof(int64_t)));
    assert_ok(rig_select(&r.m, other, r.in, index, r.out, N));
    assert_ok(r.m.ops->streams->synchronize(other));
    break_device(&r, CUDA_ERROR_ASSERT);
    assert_lost(mini_synchronize(&r.m), CUDA_ERROR_ASSERT);
    assert_text(mini_error(), "launched last: gather_i32 with ");
    assert_text(mini_error(), "; on another stream: op_neg with ");
    r.m.ops->streams->destroy(other);
    rig_free(&r.m, index);
    close_rig(&r);
}

static void a_graph_is_named(void **state) {
    rig r;
    tn_graph_impl *graph;
    open_rig(&r);
    const tn_ext_capture *capture = r.m.plugin->extension(r.m.self, TN_EXT_CAPTURE);
    assert_ok(capture->begin(r.m.stream));
    assert_ok(rig_negate(&r.m, r.m.stream, r.in, r.out, N));
    assert_ok(capture->end(r.m.stream, &graph));
    rig_say("fault=1:%d", CUDA_ERROR_ILLEGAL_ADDRESS);
    /* The launch itself tells where the work was quicker than what it queues behind that. */
    tn_status status = capture->launch(graph, r.m.stream);
    assert_lost(status == TN_OK ? mini_synchronize(&r.m) : status, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_text(mini_error(), "launched last: a graph, op_neg with ");
    capture->destroy(graph);
    close_rig(&r);
}

/* ---- two devices ------------------------------------------------------------------------- */

/* The other device's error is not this one's. */
static void work_with_a_lost_device_fails_and_loses_nothing_else(void **state) {
    rig r;
    tn_event_impl *event;
    open_rig(&r);
    const tn_device_ops *ops = r.m.ops;
    tn_memory memory;
    void *none;
    assert_ok(mini_alloc(ops->memory, r.peer, TN_SPACE_DEVICE, BYTES, &memory, &none));
    assert_ok(ops->events->create(r.m.device, 0, &event));
    assert_ok(ops->events->record(event, r.m.stream));
    break_device(&r, CUDA_ERROR_LAUNCH_FAILED);
    wait_for_end(&r);
    /* Nobody knows of it yet. */
    assert_lost(
        ops->memory->copy_peer(r.peer, r.peer_stream, memory, 0, r.m.device, r.in, 0, BYTES),
        CUDA_ERROR_LAUNCH_FAILED);
    assert_ok(life_use(r.peer));
    assert_status(ops->events->wait(r.peer_stream, event), TN_ERR_DEVICE_LOST);
    assert_text(mini_error(), "cuda:0");
    assert_ok(life_use(r.peer));
    ops->events->destroy(event);
    ops->memory->dealloc(r.peer, TN_SPACE_DEVICE, memory);
    close_rig(&r);
}

/* ---- no loss ----------------------------------------------------------------------------- */

static void a_full_device_is_not_lost(void **state) {
    enum { PIECES = 64 };
    tn_memory pieces[PIECES];
    void *none;
    int n = 0;
    rig r;
    tn_status status = TN_OK;
    open_rig(&r);
    const tn_memory_ops *memory = r.m.ops->memory;
    while (n < PIECES && status == TN_OK)
        status = mini_alloc(memory, r.m.device, TN_SPACE_DEVICE, 32 << 20, &pieces[n++], &none);
    assert_int_equal(status, TN_ERR_OUT_OF_MEMORY);
    assert_text(mini_error(), "cuda:0 (");
    assert_text(mini_error(), "33554432 bytes are wanted, ");
    assert_text(mini_error(), "are free");
    rig_free(&r.m, pieces[0]);
    assert_ok(life_use(r.m.device));
    assert_ok(mini_alloc(memory, r.m.device, TN_SPACE_DEVICE, 32 << 20, &pieces[0], &none));
    for (int i = 0; i + 1 < n; i++)
        rig_free(&r.m, pieces[i]);
    rig_say("fail=cuMemHostAlloc:%llu:2", (unsigned long long)double_calls("cuMemHostAlloc") + 1);
    assert_status(mini_alloc(memory, r.m.device, TN_SPACE_PINNED, 64, &pieces[0], &none),
                  TN_ERR_OUT_OF_MEMORY);
    assert_text(mini_error(), "allocating pinned memory: CUDA_ERROR_OUT_OF_MEMORY");
    assert_ok(life_use(r.m.device));
    close_rig(&r);
}

int all_tests(void) {
    life_load();
    const struct CMUnitTest tests[] = {
        TEST(an_error_that_stays_loses_its_device_alone),
        TEST(a_kernel_that_reads_what_is_not_there_loses_its_device),
        TEST(the_first_who_notices_is_told_what_ran_last),
        TEST(each_stream_is_named),
        TEST(a_graph_is_named),
        TEST(work_with_a_lost_device_fails_and_loses_nothing_else),
        TEST(a_full_device_is_not_lost),
        TEST(who_waits_for_a_device_that_goes_away_is_told), /* for ever: the last */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
