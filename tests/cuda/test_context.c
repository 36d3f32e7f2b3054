/* The contexts of a program that uses CUDA itself: what is current stays current, and what the
 * plugin makes can be used from outside. Devices together: their events, copies between them. Run
 * with devices that reach each other's memory, and with such that do not. */
#include "tests/cuda/life.h"

#include <pthread.h>
#include <stdlib.h>
#include <tenon/ext/native.h>

enum { N = 1000, BYTES = N * sizeof(float) };

static CUcontext primary(CUdevice device) {
    CUcontext context = NULL;
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    return context;
}

static const tn_ext_native *native(const mini *m) {
    const tn_ext_native *n = m->plugin->extension(m->self, TN_EXT_NATIVE);
    assert_non_null(n);
    assert_string_equal(n->api, "cuda");
    return n;
}

/* ---- what is current --------------------------------------------------------------------- */

/* Lives, beside what is current to the thread. */
static void live_beside(const char *what) {
    static _Thread_local life l;
    int before, after;
    CUcontext current = double_current(&before);
    l = (life){0};
    tn_status status = life_live(&l);
    life_end(&l);
    if (status != TN_OK || l.wrong[0])
        fail_msg("beside %s: %s: %s", what, l.step, l.wrong[0] ? l.wrong : mini_error());
    assert_ptr_equal(double_current(&after), current);
    assert_int_equal(after, before);
}

static void a_thread_without_a_context_stays_without(void **state) {
    int depth;
    live_beside("none");
    assert_null(double_current(&depth));
    assert_int_equal(depth, 0);
}

static void a_context_of_the_programs_own_stays_current(void **state) {
    for (CUdevice device = 0; device < 2; device++) {
        CUcontext own = rig_context(device);
        live_beside("a context of the program");
        assert_int_equal(cuCtxDestroy(own), CUDA_SUCCESS);
    }
}

static void a_primary_context_stays_current(void **state) {
    for (CUdevice device = 0; device < 2; device++) {
        CUcontext popped, context = primary(device);
        assert_int_equal(cuCtxPushCurrent(context), CUDA_SUCCESS);
        live_beside("a primary context");
        assert_int_equal(cuCtxPopCurrent(&popped), CUDA_SUCCESS);
        assert_ptr_equal(popped, context);
        assert_int_equal(cuDevicePrimaryCtxRelease(device), CUDA_SUCCESS);
    }
}

/* cmocka's assertions are for the main thread. */
typedef struct visitor {
    mini *m;
    CUcontext context; /* current to it, or NULL */
    tn_status status;
    bool is_kept;
} visitor;

static void *visit(void *user) {
    visitor *v = user;
    CUcontext popped = NULL;
    int depth;
    if (v->context)
        cuCtxPushCurrent(v->context);
    v->status = life_use(v->m->device);
    v->is_kept = double_current(&depth) == v->context && depth == (v->context != NULL);
    if (v->context)
        cuCtxPopCurrent(&popped);
    return NULL;
}

/* The thread that opened the device has its context current, another has none, or another one. */
static void threads_have_contexts_of_their_own(void **state) {
    mini m;
    rig_open(&m);
    CUcontext popped, own = rig_context(1);
    visitor visitors[] = {{.m = &m}, {.m = &m, .context = own}};
    cuCtxPushCurrent(native(&m)->context(m.device));
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, visit, &visitors[i]), 0);
        pthread_join(thread, NULL);
        assert_int_equal(visitors[i].status, TN_OK);
        assert_true(visitors[i].is_kept);
    }
    cuCtxPopCurrent(&popped);
    assert_int_equal(cuCtxDestroy(own), CUDA_SUCCESS);
    assert_true(mini_close(&m));
}

/* ---- what the program does beside -------------------------------------------------------- */

static void the_context_is_the_primary_one_and_shared(void **state) {
    CUcontext popped, context = primary(0);
    CUdeviceptr address;
    float numbers[N], back[N];
    mini m;
    rig_open(&m);
    assert_ptr_equal(native(&m)->context(m.device), context);
    assert_int_equal(cuCtxPushCurrent(context), CUDA_SUCCESS);
    assert_int_equal(cuMemAlloc(&address, BYTES), CUDA_SUCCESS);
    for (int i = 0; i < N; i++)
        numbers[i] = (float)i;
    assert_int_equal(cuMemcpyHtoD(address, numbers, BYTES), CUDA_SUCCESS);
    tn_memory out = rig_alloc(&m, BYTES);
    assert_int_equal(native(&m)->memory(m.device, out), out);
    assert_ok(rig_negate(&m, m.stream, address, out, N));
    assert_ok(mini_synchronize(&m));
    assert_int_equal(cuMemcpyDtoH(back, native(&m)->memory(m.device, out), BYTES), CUDA_SUCCESS);
    for (int i = 0; i < N; i++)
        assert_true(back[i] == -numbers[i]);
    rig_free(&m, out);
    assert_int_equal(cuMemFree(address), CUDA_SUCCESS);
    assert_true(mini_close(&m));
    /* The program's hold of it outlives the plugin's. */
    assert_int_equal(cuMemAlloc(&address, BYTES), CUDA_SUCCESS);
    assert_int_equal(cuMemFree(address), CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent(&popped), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
}

/* What the program puts on a native stream, and what it has wait for one, comes in its turn. */
static void work_of_the_program_is_in_order_on_a_native_stream(void **state) {
    mini m;
    unsigned char seen[64];
    CUcontext popped;
    CUstream own;
    CUevent event;
    rig_open(&m);
    CUstream stream = native(&m)->stream(m.stream);
    tn_memory memory = rig_alloc(&m, sizeof seen), copy = rig_alloc(&m, sizeof seen);
    CUdeviceptr address = native(&m)->memory(m.device, memory);
    assert_int_equal(cuCtxPushCurrent(native(&m)->context(m.device)), CUDA_SUCCESS);
    assert_int_equal(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    assert_int_equal(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    for (int seed = 0; seed < 20; seed++) {
        rig_say("seed=%d delay=200us", seed);
        double_hold(); /* nothing begins before all is queued */
        assert_ok(m.ops->memory->fill(m.device, m.stream, memory, 0, 1, sizeof seen));
        assert_int_equal(cuMemsetD8Async(address, 2, sizeof seen / 2, stream), CUDA_SUCCESS);
        assert_ok(m.ops->memory->copy(m.device, m.stream, copy, 0, memory, 0, sizeof seen));
        assert_int_equal(cuEventRecord(event, stream), CUDA_SUCCESS);
        assert_int_equal(cuStreamWaitEvent(own, event, 0), CUDA_SUCCESS);
        assert_int_equal(cuMemsetD8Async(copy, 3, 1, own), CUDA_SUCCESS);
        assert_int_equal(cuEventRecord(event, own), CUDA_SUCCESS);
        assert_int_equal(cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
        double_let_go();
        assert_ok(m.ops->memory->copy_to_host(m.device, m.stream, seen, 0, copy, 0, sizeof seen));
        assert_int_equal(seen[0], 3);
        assert_int_equal(seen[1], 2);
        assert_int_equal(seen[sizeof seen - 1], 1);
    }
    cuEventDestroy(event);
    cuStreamDestroy(own);
    cuCtxPopCurrent(&popped);
    rig_free(&m, memory);
    rig_free(&m, copy);
    assert_true(mini_close(&m));
}

static void priorities_are_the_drivers_where_it_has_them(void **state) {
    static const struct {
        int32_t asked;
        int given;
    } cases[] = {{0, 0}, {-1, -1}, {-5, -5}, {-6, -5}, {INT32_MIN, -5}, {1, 0}, {INT32_MAX, 0}};
    mini m;
    CUcontext popped;
    rig_open(&m);
    cuCtxPushCurrent(native(&m)->context(m.device));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_stream_impl *stream;
        int priority = 1;
        unsigned flags = 0;
        assert_ok(m.ops->streams->create(m.device, cases[i].asked, &stream));
        CUstream handle = native(&m)->stream(stream);
        assert_int_equal(cuStreamGetPriority(handle, &priority), CUDA_SUCCESS);
        assert_int_equal(priority, cases[i].given);
        assert_int_equal(cuStreamGetFlags(handle, &flags), CUDA_SUCCESS);
        assert_int_equal(flags, CU_STREAM_NON_BLOCKING); /* does not wait for the legacy stream */
        m.ops->streams->destroy(stream);
    }
    cuCtxPopCurrent(&popped);
    assert_true(mini_close(&m));
}

/* ---- two devices ------------------------------------------------------------------------- */

/* Both, with a stream and memory each. */
typedef struct pair {
    mini m; /* device 0 */
    tn_device_impl *devices[2];
    tn_stream_impl *streams[2];
    tn_memory memory[2];
} pair;

static void open_pair(pair *p) {
    void *none;
    rig_open(&p->m);
    p->devices[0] = p->m.device;
    p->streams[0] = p->m.stream;
    assert_ok(p->m.ops->open(p->m.self, 1, &p->devices[1]));
    assert_ok(p->m.ops->streams->create(p->devices[1], 0, &p->streams[1]));
    for (int i = 0; i < 2; i++)
        assert_ok(mini_alloc(p->m.ops->memory, p->devices[i], TN_SPACE_DEVICE, BYTES, &p->memory[i],
                             &none));
}

static void close_pair(pair *p) {
    for (int i = 0; i < 2; i++)
        p->m.ops->memory->dealloc(p->devices[i], TN_SPACE_DEVICE, p->memory[i]);
    p->m.ops->streams->destroy(p->streams[1]);
    p->m.ops->close(p->devices[1]);
    assert_true(mini_close(&p->m));
}

/* Fills on one, hands over by an event, copies to the other, hands back by another event: and the next
 * fill comes behind the copy. */
static void events_and_copies_order_the_work_of_two_devices(void **state) {
    enum { ROUNDS = 24 };
    static unsigned char seen[BYTES];
    tn_event_impl *events[2];
    pair p;
    open_pair(&p);
    const tn_memory_ops *memory = p.m.ops->memory;
    for (int i = 0; i < 2; i++)
        assert_ok(p.m.ops->events->create(p.devices[i], 0, &events[i]));
    for (int round = 0; round < ROUNDS; round++) {
        int from = round % 2, to = !from;
        rig_say("seed=%d delay=200us", round);
        assert_ok(memory->fill(p.devices[from], p.streams[from], p.memory[from], 0, (uint8_t)round,
                               BYTES));
        assert_ok(p.m.ops->events->record(events[from], p.streams[from]));
        assert_ok(p.m.ops->events->wait(p.streams[to], events[from]));
        assert_ok(memory->copy_peer(p.devices[to], p.streams[to], p.memory[to], 0, p.devices[from],
                                    p.memory[from], 0, BYTES));
        assert_ok(p.m.ops->events->record(events[to], p.streams[to]));
        assert_ok(p.m.ops->events->wait(p.streams[from], events[to]));
        assert_ok(memory->fill(p.devices[from], p.streams[from], p.memory[from], 0, 255, BYTES));
        assert_ok(
            memory->copy_to_host(p.devices[to], p.streams[to], seen, 0, p.memory[to], 0, BYTES));
        for (int i = 0; i < BYTES; i++)
            assert_int_equal(seen[i], round);
    }
    for (int i = 0; i < 2; i++)
        p.m.ops->events->destroy(events[i]);
    close_pair(&p);
}

static void an_event_is_of_one_device(void **state) {
    tn_event_impl *events[2];
    double ns;
    pair p;
    open_pair(&p);
    for (int i = 0; i < 2; i++)
        assert_ok(p.m.ops->events->create(p.devices[i], TN_EVENT_TIMING, &events[i]));
    assert_status(p.m.ops->events->record(events[0], p.streams[1]), TN_ERR_INVALID_ARGUMENT);
    assert_text(mini_error(), "an event of cuda:0 cannot be recorded in a stream of cuda:1");
    for (int i = 0; i < 2; i++)
        assert_ok(p.m.ops->events->record(events[i], p.streams[i]));
    assert_status(p.m.ops->events->elapsed(events[0], events[1], &ns), TN_ERR_STATE);
    assert_text(mini_error(), "the clocks of cuda:0 and cuda:1 have nothing in common");
    for (int i = 0; i < 2; i++)
        p.m.ops->events->destroy(events[i]);
    close_pair(&p);
}

/* Reach is asked for once for each direction, where there is any. */
static void copies_between_devices_go_directly_where_they_can(void **state) {
    int can;
    pair p;
    open_pair(&p);
    assert_int_equal(cuDeviceCanAccessPeer(&can, 0, 1), CUDA_SUCCESS);
    uint64_t before = double_calls("cuCtxEnablePeerAccess");
    for (int i = 0; i < 2; i++)
        assert_ok(p.m.ops->memory->copy_peer(p.devices[1], p.streams[1], p.memory[1], 0,
                                             p.devices[0], p.memory[0], 0, BYTES));
    assert_int_equal(double_calls("cuCtxEnablePeerAccess") - before, can ? 2 : 0);
    for (int i = 0; i < 2; i++)
        assert_ok(p.m.ops->streams->synchronize(p.streams[i]));
    close_pair(&p);
}

static void reach_that_the_program_asked_for_is_no_failure(void **state) {
    CUcontext popped, contexts[2];
    pair p;
    open_pair(&p);
    for (int i = 0; i < 2; i++)
        contexts[i] = native(&p.m)->context(p.devices[i]);
    for (int i = 0; i < 2; i++) {
        cuCtxPushCurrent(contexts[i]);
        cuCtxEnablePeerAccess(contexts[!i], 0);
        cuCtxPopCurrent(&popped);
    }
    assert_ok(p.m.ops->memory->copy_peer(p.devices[1], p.streams[1], p.memory[1], 0, p.devices[0],
                                         p.memory[0], 0, BYTES));
    assert_ok(p.m.ops->streams->synchronize(p.streams[1]));
    close_pair(&p);
}

int all_tests(void) {
    life_load();
    const struct CMUnitTest tests[] = {
        TEST(a_thread_without_a_context_stays_without),
        TEST(a_context_of_the_programs_own_stays_current),
        TEST(a_primary_context_stays_current),
        TEST(threads_have_contexts_of_their_own),
        TEST(the_context_is_the_primary_one_and_shared),
        TEST(work_of_the_program_is_in_order_on_a_native_stream),
        TEST(priorities_are_the_drivers_where_it_has_them),
        TEST(events_and_copies_order_the_work_of_two_devices),
        TEST(an_event_is_of_one_device),
        TEST(copies_between_devices_go_directly_where_they_can),
        TEST(reach_that_the_program_asked_for_is_no_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
