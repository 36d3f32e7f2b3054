/* Streams run in order and apart from each other; events join them; errors are told once. */
#include "tests/sim/rig.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

static const int64_t one[] = {1};

static const tn_stream_ops *streams(void) {
    return rig.ops->streams;
}

static const tn_event_ops *events(void) {
    return rig.ops->events;
}

static tn_stream_impl *stream_create(tn_device_impl *device) {
    tn_stream_impl *stream;
    assert_ok(streams()->create(device, 0, &stream));
    return stream;
}

static tn_event_impl *event_create(tn_device_impl *device, uint32_t flags) {
    tn_event_impl *event;
    assert_ok(events()->create(device, flags, &event));
    return event;
}

/* Queues out = value. */
static void queue_fill(tn_device_impl *device, tn_stream_impl *stream, const mini_tensor *out,
                       double value) {
    const tn_cell args[] = {mini_f64(value)};
    assert_ok(rig_launch("fill", device, stream, 1, args, &out->view));
}

/* Queues out = in. */
static void queue_copy(tn_stream_impl *stream, const mini_tensor *out, const mini_tensor *in) {
    const tn_cell args[] = {mini_view(in)};
    assert_ok(rig_launch("copy", rig.device, stream, 1, args, &out->view));
}

static float value_of(const mini_tensor *t) {
    float x;
    assert_ok(mini_tensor_read(&rig, t, &x));
    return x;
}

static mini_tensor *scalar(void) {
    mini_tensor *t = mini_tensor_create(&rig, TN_F32, 1, one, NULL, 0);
    assert_non_null(t);
    return t;
}

static void a_stream_keeps_its_order(void **state) {
    mini_tensor *x = scalar(), *y = scalar(), *z = scalar();
    slow work = slow_create();
    const tn_cell args[] = {mini_view(x), mini_view(y), mini_f64(1)};
    slow_queue(&work, rig.stream, 2);
    queue_fill(rig.device, rig.stream, x, 0);
    queue_fill(rig.device, rig.stream, y, 1);
    for (int i = 0; i < 500; i++) {
        assert_ok(rig_launch("add", rig.device, rig.stream, 3, args, &z->view));
        queue_copy(rig.stream, x, z);
    }
    assert_true(value_of(x) == 500);
}

static void the_call_may_be_forgotten_once_queued(void **state) {
    mini_tensor *x = scalar(), *z = scalar();
    slow work = slow_create();
    queue_fill(rig.device, rig.stream, x, 5);
    slow_queue(&work, rig.stream, 2);
    {
        int64_t sizes[] = {1}, strides[] = {1}, dims[] = {0};
        tn_tensor_view in = x->view, out = z->view;
        in.sizes = out.sizes = sizes;
        in.strides = out.strides = strides;
        tn_cell args[] = {{.tag = TN_CELL_TENSOR, .v.view = &in}, mini_ints(dims, 1)};
        assert_ok(rig_launch("sum", rig.device, rig.stream, 2, args, &out));
        sizes[0] = strides[0] = dims[0] = 1000;
        memset(&in, 0xff, sizeof in);
        memset(&out, 0xff, sizeof out);
        memset(args, 0xff, sizeof args);
    }
    assert_true(value_of(z) == 5);
}

static void a_stream_waits_for_an_event_of_another(void **state) {
    mini_tensor *x = scalar(), *y = scalar();
    slow work = slow_create();
    tn_stream_impl *other = stream_create(rig.device);
    tn_event_impl *event = event_create(rig.device, 0);
    assert_status(events()->query(event), TN_OK); /* never recorded: done */
    assert_ok(events()->wait(other, event));
    queue_fill(rig.device, rig.stream, x, 0);
    assert_ok(mini_synchronize(&rig));
    slow_queue(&work, rig.stream, 25);
    queue_fill(rig.device, rig.stream, x, 7);
    assert_ok(events()->record(event, rig.stream));
    assert_ok(events()->wait(other, event));
    queue_copy(other, y, x);
    assert_status(streams()->query(other), TN_NOT_READY);
    assert_status(events()->query(event), TN_NOT_READY);
    assert_ok(streams()->synchronize(other));
    assert_ok(events()->query(event));
    assert_true(value_of(y) == 7);
    events()->destroy(event);
    streams()->destroy(other);
}

static void events_join_two_devices_and_peers_copy(void **state) {
    tn_device_impl *second;
    tn_memory there, here;
    void *host;
    const tn_memory_ops *memory = rig.ops->memory;
    uint32_t words[64] = {0};
    assert_ok(rig.ops->open(rig.self, 1, &second));
    tn_stream_impl *stream = stream_create(second);
    tn_event_impl *event = event_create(rig.device, 0);
    slow work = slow_create();
    assert_ok(mini_alloc(rig.ops->memory, second, TN_SPACE_DEVICE, sizeof words, &there, &host));
    assert_ok(mini_alloc(rig.ops->memory, rig.device, TN_SPACE_DEVICE, sizeof words, &here, &host));

    slow_queue(&work, rig.stream, 25);
    assert_ok(memory->fill(rig.device, rig.stream, here, 0, 3, sizeof words));
    assert_ok(events()->record(event, rig.stream));
    assert_ok(events()->wait(stream, event));
    assert_ok(memory->copy_peer(second, stream, there, 4, rig.device, here, 0, 100));
    assert_ok(memory->copy_to_host(second, stream, words, 0, there, 0, sizeof words));
    assert_int_equal(words[1], 0x03030303);
    assert_int_equal(words[25], 0x03030303);

    /* Handles, streams and events are their device's. */
    assert_status(memory->copy_to_host(second, stream, words, 0, here, 0, 4),
                  TN_ERR_INVALID_ARGUMENT);
    assert_message("sim:1");
    assert_status(memory->fill(second, rig.stream, there, 0, 0, 4), TN_ERR_INVALID_ARGUMENT);
    assert_status(events()->record(event, stream), TN_ERR_INVALID_ARGUMENT);
    assert_status(memory->copy_peer(second, stream, there, 200, rig.device, here, 0, 100),
                  TN_ERR_INVALID_ARGUMENT);

    memory->dealloc(second, TN_SPACE_DEVICE, there);
    memory->dealloc(rig.device, TN_SPACE_DEVICE, here);
    events()->destroy(event);
    streams()->destroy(stream);
    rig.ops->close(second);
}

static void a_wait_keeps_its_mark_when_the_event_moves_on(void **state) {
    mini_tensor *x = scalar();
    slow work = slow_create();
    tn_stream_impl *waiter = stream_create(rig.device), *later = stream_create(rig.device);
    tn_event_impl *event = event_create(rig.device, 0);
    /* Recorded on an idle stream: passed soon. Then again behind slow work. */
    assert_ok(events()->record(event, waiter));
    assert_ok(events()->synchronize(event));
    slow_queue(&work, rig.stream, 25);
    queue_fill(rig.device, rig.stream, x, 1);
    assert_ok(events()->wait(waiter, event));
    assert_ok(events()->record(event, rig.stream));
    assert_ok(events()->wait(later, event));
    assert_ok(streams()->synchronize(waiter)); /* the first mark was passed long ago */
    assert_status(events()->query(event), TN_NOT_READY);
    assert_status(streams()->query(later), TN_NOT_READY);
    assert_ok(events()->synchronize(event));
    assert_ok(streams()->synchronize(later));
    assert_true(value_of(x) == 1);
    events()->destroy(event);
    streams()->destroy(waiter);
    streams()->destroy(later);
}

static void a_destroyed_event_is_still_waited_for(void **state) {
    mini_tensor *x = scalar(), *y = scalar();
    slow work = slow_create();
    tn_stream_impl *other = stream_create(rig.device);
    tn_event_impl *event = event_create(rig.device, 0);
    slow_queue(&work, rig.stream, 2);
    queue_fill(rig.device, rig.stream, x, 4);
    assert_ok(events()->record(event, rig.stream));
    assert_ok(events()->wait(other, event));
    events()->destroy(event);
    queue_copy(other, y, x);
    assert_ok(streams()->synchronize(other));
    assert_true(value_of(y) == 4);
    streams()->destroy(other);
    events()->destroy(NULL);
    streams()->destroy(NULL);
}

static void destroying_a_stream_finishes_its_work(void **state) {
    mini_tensor *x = scalar();
    slow work = slow_create();
    tn_stream_impl *other = stream_create(rig.device);
    slow_queue(&work, other, 2);
    queue_fill(rig.device, other, x, 3);
    streams()->destroy(other);
    assert_true(value_of(x) == 3);
}

static void events_that_cannot_be_are_refused(void **state) {
    tn_device_impl *second;
    tn_stream_impl *stream, *urgent, *patient;
    tn_event_impl *event;
    double ns;
    assert_status(events()->create(rig.device, 2 | TN_EVENT_TIMING, &event), TN_ERR_UNSUPPORTED);
    assert_null(event);
    assert_message("flags 0x2");
    assert_ok(rig.ops->open(rig.self, 1, &second));
    assert_ok(streams()->create(second, 0, &stream));
    tn_event_impl *here = event_create(rig.device, TN_EVENT_TIMING);
    tn_event_impl *there = event_create(second, TN_EVENT_TIMING);
    assert_ok(events()->record(here, rig.stream));
    assert_ok(events()->record(there, stream));
    assert_ok(events()->synchronize(here));
    assert_ok(events()->synchronize(there));
    assert_status(events()->elapsed(here, there, &ns), TN_ERR_STATE);
    assert_message("sim:1");
    /* Any number is a priority. */
    assert_ok(streams()->create(rig.device, INT32_MIN, &urgent));
    assert_ok(streams()->create(rig.device, INT32_MAX, &patient));
    streams()->destroy(urgent);
    streams()->destroy(patient);
    events()->destroy(here);
    events()->destroy(there);
    streams()->destroy(stream);
    rig.ops->close(second);
}

static void elapsed_measures_the_work_between_two_marks(void **state) {
    slow work = slow_create();
    tn_event_impl *start = event_create(rig.device, TN_EVENT_TIMING);
    tn_event_impl *end = event_create(rig.device, TN_EVENT_TIMING);
    tn_event_impl *plain = event_create(rig.device, 0);
    struct timespec before, after;
    double ns;
    assert_status(events()->elapsed(start, end, &ns), TN_ERR_STATE);
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_ok(events()->record(start, rig.stream));
    slow_queue(&work, rig.stream, 25);
    assert_ok(events()->record(end, rig.stream));
    assert_ok(events()->record(plain, rig.stream));
    assert_status(events()->elapsed(start, end, &ns), TN_ERR_STATE);
    assert_message("not been passed");
    assert_ok(events()->synchronize(end));
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_ok(events()->elapsed(start, end, &ns));
    double host_ns =
        (double)(after.tv_sec - before.tv_sec) * 1e9 + (double)(after.tv_nsec - before.tv_nsec);
    assert_true(ns > 0 && ns <= host_ns);
    assert_status(events()->elapsed(start, plain, &ns), TN_ERR_STATE);
    events()->destroy(start);
    events()->destroy(end);
    events()->destroy(plain);
}

/* ---- errors of queued work --------------------------------------------------------------- */

static const int64_t five[] = {5};

/* gather(self [5], 0, index [5]) into out [5], with one index replaced. */
static void queue_gather(const array *self, array *index, const array *out, int64_t bad) {
    for (int64_t i = 0; i < 5; i++)
        ((int64_t *)index->host)[i] = i == 3 ? bad : i;
    array_upload(index);
    const tn_cell args[] = {mini_view(self->tensor), mini_i64(0), mini_view(index->tensor)};
    assert_ok(rig_launch("gather", rig.device, rig.stream, 3, args, &out->tensor->view));
}

static void an_index_out_of_range_is_told_once(void **state) {
    array self = array_ramp(1, five, 0), index = array_create(TN_I64, 1, five);
    array out = array_ramp(1, five, 5), after = array_create(TN_F32, 1, five);
    queue_gather(&self, &index, &out, 5);
    queue_gather(&self, &index, &out, -1);
    queue_fill(rig.device, rig.stream, after.tensor, 2);
    assert_status(mini_synchronize(&rig), TN_ERR_INDEX_OUT_OF_RANGE);
    assert_message("gather: index 5 (element 3 of the index tensor) is out of range for dimension "
                   "0 of size 5");
    assert_ok(mini_synchronize(&rig));
    assert_ok(streams()->query(rig.stream));
    /* No memory was touched, later work ran, and the device goes on. */
    array_download(&out);
    for (int i = 0; i < 5; i++)
        assert_true(((float *)out.host)[i] >= 5);
    array_download(&after);
    assert_true(((float *)after.host)[4] == 2);
    queue_gather(&self, &index, &out, 0);
    assert_ok(mini_synchronize(&rig));
    array_download(&out);
    assert_true(((float *)out.host)[3] == ((float *)self.host)[0]);

    queue_gather(&self, &index, &out, INT64_MAX);
    tn_status status;
    while ((status = streams()->query(rig.stream)) == TN_NOT_READY)
        ;
    assert_int_equal(status, TN_ERR_INDEX_OUT_OF_RANGE);
    assert_ok(streams()->query(rig.stream));
    array_free_host(&self);
    array_free_host(&index);
    array_free_host(&out);
    array_free_host(&after);
}

static void an_error_stays_with_its_stream(void **state) {
    array self = array_ramp(1, five, 0), index = array_create(TN_I64, 1, five);
    array out = array_create(TN_F32, 1, five);
    tn_stream_impl *other = stream_create(rig.device);
    queue_gather(&self, &index, &out, 77);
    assert_ok(streams()->synchronize(other));
    assert_status(mini_synchronize(&rig), TN_ERR_INDEX_OUT_OF_RANGE);
    assert_ok(streams()->synchronize(other));
    streams()->destroy(other);
    array_free_host(&self);
    array_free_host(&index);
    array_free_host(&out);
}

/* ---- threads ----------------------------------------------------------------------------- */

enum { ROUNDS = 2000 };

/* A stream of its own, and memory, pinned memory and events made and freed all the time. */
static void *use_a_stream(void *argument) {
    const tn_memory_ops *memory = rig.ops->memory;
    intptr_t id = (intptr_t)argument;
    intptr_t failures = 0;
    tn_stream_impl *stream;
    tn_event_impl *event;
    void *ignored, *host;
    if (streams()->create(rig.device, 0, &stream) != TN_OK ||
        events()->create(rig.device, 0, &event) != TN_OK)
        return (void *)1;
    for (int i = 0; i < ROUNDS; i++) {
        tn_memory m, pinned;
        uint64_t bytes = 64 + (uint64_t)(i * 37 % 1000);
        int32_t seen = 0;
        if (mini_alloc(rig.ops->memory, rig.device, TN_SPACE_DEVICE, bytes, &m, &ignored) !=
                TN_OK ||
            mini_alloc(rig.ops->memory, rig.device, TN_SPACE_PINNED, 64, &pinned, &host) != TN_OK)
            return (void *)1;
        int64_t size = 1, stride = 1;
        tn_tensor_view view = {.struct_size = sizeof view,
                               .memory = m,
                               .numel = 1,
                               .dtype = TN_I32,
                               .rank = 1,
                               .sizes = &size,
                               .strides = &stride};
        const tn_cell args[] = {mini_i64(id * ROUNDS + i)};
        failures += rig_launch("fill", rig.device, stream, 1, args, &view) != TN_OK;
        failures += memory->copy_to_host(rig.device, stream, host, pinned, m, 0, 4) != TN_OK;
        failures += events()->record(event, stream) != TN_OK;
        failures += events()->synchronize(event) != TN_OK;
        memcpy(&seen, host, 4);
        failures += seen != id * ROUNDS + i;
        memory->dealloc(rig.device, TN_SPACE_DEVICE, m);
        memory->dealloc(rig.device, TN_SPACE_PINNED, pinned);
    }
    events()->destroy(event);
    streams()->destroy(stream);
    return (void *)failures;
}

static void two_threads_use_two_streams(void **state) {
    pthread_t threads[2];
    void *failures;
    for (intptr_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_a_stream, (void *)i), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], &failures), 0);
        assert_null(failures);
    }
}

struct shared {
    mini_tensor *out;
    tn_event_impl *event;
};

/* Everything on one stream and one event. */
static void *share_a_stream(void *argument) {
    const struct shared *shared = argument;
    intptr_t failures = 0;
    const tn_cell args[] = {mini_f64(1)};
    for (int i = 0; i < ROUNDS; i++) {
        failures +=
            rig_launch("fill", rig.device, rig.stream, 1, args, &shared->out->view) != TN_OK;
        failures += events()->record(shared->event, rig.stream) != TN_OK;
        failures += events()->wait(rig.stream, shared->event) != TN_OK;
        if (i % 64 == 0)
            failures += streams()->synchronize(rig.stream) != TN_OK;
        (void)events()->query(shared->event);
        (void)streams()->query(rig.stream);
    }
    return (void *)failures;
}

static void two_threads_share_a_stream_and_an_event(void **state) {
    struct shared shared = {scalar(), event_create(rig.device, 0)};
    pthread_t threads[2];
    void *failures;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, share_a_stream, &shared), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], &failures), 0);
        assert_null(failures);
    }
    assert_ok(mini_synchronize(&rig));
    assert_true(value_of(shared.out) == 1);
    events()->destroy(shared.event);
}

int all_tests(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_stream_keeps_its_order),
        TEST(the_call_may_be_forgotten_once_queued),
        TEST(a_stream_waits_for_an_event_of_another),
        TEST(events_join_two_devices_and_peers_copy),
        TEST(a_wait_keeps_its_mark_when_the_event_moves_on),
        TEST(a_destroyed_event_is_still_waited_for),
        TEST(destroying_a_stream_finishes_its_work),
        TEST(events_that_cannot_be_are_refused),
        TEST(elapsed_measures_the_work_between_two_marks),
        TEST(an_index_out_of_range_is_told_once),
        TEST(an_error_stays_with_its_stream),
        TEST(two_threads_use_two_streams),
        TEST(two_threads_share_a_stream_and_an_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
