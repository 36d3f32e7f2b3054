/* Streams and events: whose they are, what a query tells, who waits for whom. */
#include "tests/core/core_test.h"

#include <pthread.h>

static tni_device *open_async(void) {
    fake.async = true;
    return open_fake();
}

/* ---- life -------------------------------------------------------------------------------- */

static void test_streams_have_dense_numbers(void **state) {
    tni_device *d = open_async();
    assert_int_equal(d->default_stream.id, 0);
    tn_stream *a = tn_stream_create(d->id, 0), *b = tn_stream_create(d->id, -1);
    assert_int_equal(a->id, 1);
    assert_int_equal(b->id, 2);
    tn_stream_drop(a);
    a = tn_stream_create(d->id, 0);
    assert_int_equal(a->id, 1);
    assert_int_equal(fake_count().n_streams, 3);
    assert_true(tn_device_equal(tn_stream_device(a), d->id));
    assert_int_equal(tn_stream_id(tn_current_stream(d->id)), 0);
    assert_int_equal(tn_stream_id(a), a->id);
    assert_ptr_equal(tn_stream_native(a), a->handle);
    assert_ptr_equal(tn_stream_keep(a), a);
    tn_stream_drop(a);
    assert_int_equal(fake_count().n_streams, 3);
    tn_stream_drop(a);
    tn_stream_drop(b);
    assert_int_equal(fake_count().n_streams, 1);
    tn_stream_drop(&d->default_stream);
    tn_stream_drop(NULL);
    assert_int_equal(fake_count().n_streams, 1);
}

static void test_making_one_survives_failures(void **state) {
    tni_device *d = open_async();
    fake_fail_at(1);
    assert_null(tn_stream_create(d->id, 0));
    assert_error(TN_ERR_OUT_OF_MEMORY, "fake:0: making a stream", "told to fail", NULL);
    tni_alloc_fail_at(1);
    assert_null(tn_stream_create(d->id, 0));
    assert_error(TN_ERR_OUT_OF_MEMORY, "a stream", NULL);
    tni_alloc_fail_at(1);
    assert_null(tn_event_create(d->id, true));
    assert_error(TN_ERR_OUT_OF_MEMORY, "an event", NULL);
    fake_fail_at(1);
    assert_null(tn_event_create(d->id, true));
    assert_error(TN_ERR_OUT_OF_MEMORY, "making an event", NULL);
}

static void test_null_is_refused_by_name(void **state) {
    tni_device *d = open_async();
    double ns;
    assert_int_equal(tn_stream_query(NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_stream_query", NULL);
    assert_int_equal(tn_stream_synchronize(NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_stream_synchronize", NULL);
    assert_int_equal(tn_set_current_stream(NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_set_current_stream", NULL);
    assert_int_equal(tn_event_record(NULL, &d->default_stream), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_event_record: event", NULL);
    assert_int_equal(tn_event_wait(NULL, &d->default_stream), TN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tn_event_query(NULL), TN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tn_event_synchronize(NULL), TN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tn_event_elapsed(NULL, NULL, &ns), TN_ERR_INVALID_ARGUMENT);
    tn_event_destroy(NULL);
    assert_null(tn_stream_native(NULL));
    assert_null(tn_current_stream(tn_no_device()));
    assert_int_equal(tn_stream_id(NULL), -1);
}

/* ---- the current stream ------------------------------------------------------------------ */

typedef struct seen {
    tni_device *device;
    tn_stream *at_start, *chosen;
} seen;

static void *look(void *arg) {
    seen *s = arg;
    s->at_start = tn_current_stream(s->device->id);
    tn_stream *mine = tn_stream_create(s->device->id, 0);
    tn_set_current_stream(mine);
    s->chosen = tn_current_stream(s->device->id);
    tn_stream_drop(mine); /* the thread's table holds it until the thread ends */
    return NULL;
}

static void test_each_thread_has_its_current_stream(void **state) {
    tni_device *d = open_async();
    assert_ptr_equal(tn_current_stream(d->id), &d->default_stream);
    assert_int_equal(tn_set_current_stream(&d->default_stream), TN_OK);
    tn_stream *s = tn_stream_create(d->id, 0);
    assert_int_equal(tn_set_current_stream(s), TN_OK);
    tn_stream_drop(s);
    assert_ptr_equal(tn_current_stream(d->id), s);
    assert_ptr_equal(tni_stream_current(d), s);
    seen other = {.device = d};
    pthread_t thread;
    pthread_create(&thread, NULL, look, &other);
    pthread_join(thread, NULL);
    assert_ptr_equal(other.at_start, &d->default_stream);
    assert_ptr_not_equal(other.chosen, &d->default_stream);
    assert_ptr_not_equal(other.chosen, s);
    assert_int_equal(fake_count().n_streams, 2);
    assert_int_equal(tn_set_current_stream(&d->default_stream), TN_OK);
    assert_ptr_equal(tn_current_stream(d->id), &d->default_stream);
    assert_int_equal(fake_count().n_streams, 1);
}

static void test_shutdown_forgets_current_streams(void **state) {
    tni_device *d = open_async();
    tn_stream *s = tn_stream_create(d->id, 0);
    tn_set_current_stream(s);
    tn_stream_drop(s);
    assert_int_equal(tn_shutdown(), TN_OK);
    d = open_async();
    assert_ptr_equal(tn_current_stream(d->id), &d->default_stream);
}

/* ---- errors ------------------------------------------------------------------------------ */

static void test_a_query_tells_whether_work_is_left(void **state) {
    tni_device *d = open_async();
    tn_stream *s = &d->default_stream;
    fake_hold(true);
    assert_int_equal(tn_stream_query(s), TN_OK);
    d->memory->fill(d->handle, s->handle, 0, 0, 0, 0);
    assert_int_equal(tn_stream_query(s), TN_NOT_READY);
    assert_int_equal(tn_error_status(), TN_OK);
    fake_advance(s->handle);
    assert_int_equal(tn_stream_query(s), TN_OK);
    d->memory->fill(d->handle, s->handle, 0, 0, 0, 0);
    assert_int_equal(tn_stream_synchronize(s), TN_OK);
    assert_int_equal(tn_stream_query(s), TN_OK);
}

static void test_an_error_comes_once_with_the_trail(void **state) {
    tni_device *d = open_async();
    tn_stream *s = tn_stream_create(d->id, 0);
    tni_stream_note(s, "matmul");
    assert_int_equal(tn_stream_synchronize(s), TN_OK);
    tni_stream_note(s, "gather");
    tni_stream_note(s, "sum");
    tni_stream_note(s, "add");
    fake_stream_error(s->handle, TN_ERR_INDEX_OUT_OF_RANGE, "index 7 is not below 5");
    assert_int_equal(tn_stream_query(s), TN_ERR_INDEX_OUT_OF_RANGE);
    assert_null(strstr(tn_error_message(), "matmul"));
    assert_error(TN_ERR_INDEX_OUT_OF_RANGE, "fake:0: work on stream 1 failed",
                 "(gather, sum, add were enqueued since the last good point)",
                 ": index 7 is not below 5", NULL);
    assert_int_equal(tn_stream_query(s), TN_OK);
    assert_int_equal(tn_stream_synchronize(s), TN_OK);
    tni_stream_note(s, "neg");
    fake_stream_error(s->handle, TN_ERR_INTERNAL, "x");
    assert_int_equal(tn_synchronize(d->id), TN_ERR_INTERNAL);
    assert_error(TN_ERR_INTERNAL, "(neg was enqueued since", NULL);
    fake_stream_error(s->handle, TN_ERR_INTERNAL, "x");
    assert_int_equal(tn_synchronize(d->id), TN_ERR_INTERNAL);
    assert_error(TN_ERR_INTERNAL, "no operator was enqueued", NULL);
    tn_stream_drop(s);
}

static void test_a_long_trail_keeps_the_last(void **state) {
    tni_device *d = open_async();
    static const char *const names[] = {"a0", "a1", "a2", "a3", "a4", "a5",
                                        "a6", "a7", "a8", "a9", "a10"};
    for (int i = 0; i < 11; i++)
        tni_stream_note(&d->default_stream, names[i]);
    fake_stream_error(d->default_stream.handle, TN_ERR_INTERNAL, "x");
    assert_int_equal(tn_synchronize(d->id), TN_ERR_INTERNAL);
    assert_null(strstr(tn_error_message(), "a2,"));
    assert_error(TN_ERR_INTERNAL, "3 operators, a3, a4, a5, a6, a7, a8, a9, a10 were enqueued",
                 NULL);
}

static void test_synchronize_reports_every_stream(void **state) {
    tni_device *d = open_async();
    tn_stream *s = tn_stream_create(d->id, 0);
    fake_stream_error(d->default_stream.handle, TN_ERR_INTERNAL, "first");
    fake_stream_error(s->handle, TN_ERR_INTERNAL, "second");
    assert_int_equal(tn_synchronize(d->id), TN_ERR_INTERNAL);
    assert_int_equal(tn_error_suppressed(), 1);
    assert_error(TN_ERR_INTERNAL, "stream 0", "first", NULL);
    assert_int_equal(tn_synchronize(d->id), TN_OK);
    tn_stream_drop(s);
}

/* ---- events and waiting ------------------------------------------------------------------ */

static void test_an_event_is_done_when_its_mark_is_passed(void **state) {
    tni_device *d = open_async();
    tn_stream *s = &d->default_stream;
    tn_event *e = tn_event_create(d->id, false);
    fake_hold(true);
    assert_int_equal(tn_event_query(e), TN_OK); /* never recorded */
    assert_int_equal(tn_event_record(e, s), TN_OK);
    assert_int_equal(tn_event_query(e), TN_NOT_READY);
    fake_advance(s->handle);
    assert_int_equal(tn_event_query(e), TN_OK);
    assert_int_equal(tn_event_record(e, s), TN_OK);
    assert_int_equal(tn_event_synchronize(e), TN_OK);
    assert_int_equal(tn_event_query(e), TN_OK);
    tn_event_destroy(e);
}

static void test_elapsed_refuses_what_cannot_be_timed(void **state) {
    tni_device *d = open_async();
    tn_event *plain = tn_event_create(d->id, false), *start = tn_event_create(d->id, true),
             *end = tn_event_create(d->id, true);
    double ns;
    assert_int_equal(tn_event_elapsed(plain, end, &ns), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "start", "timing", NULL);
    assert_int_equal(tn_event_elapsed(start, end, &ns), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "never recorded", NULL);
    fake_hold(true);
    tn_event_record(start, &d->default_stream);
    tn_event_record(end, &d->default_stream);
    assert_int_equal(tn_event_elapsed(start, end, &ns), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "tn_event_synchronize", NULL);
    fake_advance(d->default_stream.handle);
    assert_int_equal(tn_event_elapsed(start, end, &ns), TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED, "fake:0", NULL);
    tn_event_destroy(plain);
    tn_event_destroy(start);
    tn_event_destroy(end);
}

static void test_an_event_is_recorded_on_its_own_device(void **state) {
    fake.n_devices = 2;
    tni_device *d = open_async(), *other = tni_device_get(tn_device_parse("fake:1"));
    tn_event *e = tn_event_create(d->id, false);
    assert_int_equal(tn_event_record(e, &other->default_stream), TN_ERR_DEVICE);
    assert_error(TN_ERR_DEVICE, "fake:0", "fake:1", NULL);
    tn_event_record(e, &d->default_stream);
    assert_int_equal(tn_event_wait(e, &other->default_stream), TN_OK);
    assert_int_equal(fake_count().n_waits, 1);
    tn_event_destroy(e);
}

static void test_a_stream_waits_for_a_stream_without_the_host(void **state) {
    fake.n_devices = 2;
    tni_device *d = open_async(), *other = tni_device_get(tn_device_parse("fake:1"));
    tn_stream *s = tn_stream_create(d->id, 0);
    fake_hold(true);
    assert_int_equal(tni_stream_wait_stream(s, s), TN_OK);
    assert_int_equal(fake_count().n_waits, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(tni_stream_wait_stream(s, &d->default_stream), TN_OK);
    assert_int_equal(tni_stream_wait_stream(&other->default_stream, s), TN_OK);
    assert_int_equal(fake_count().n_waits, 101);
    assert_int_equal(fake_count().n_events, 1); /* from the pool */
    assert_int_equal(tn_stream_query(s), TN_NOT_READY);
    fake_fail_at(1);
    assert_int_equal(tni_stream_wait_stream(s, &d->default_stream), TN_ERR_OUT_OF_MEMORY);
    assert_error(TN_ERR_OUT_OF_MEMORY, "fake:0: recording an event", NULL);
    tn_stream_drop(s);
}

static void test_between_plugins_the_host_waits(void **state) {
    tni_device *d = open_async(), *sim = tni_device_get(tn_device_parse("sim:0"));
    assert_non_null(sim);
    fake_hold(true);
    tn_event *e = tn_event_create(d->id, false);
    tn_event_record(e, &d->default_stream);
    assert_int_equal(tn_event_query(e), TN_NOT_READY);
    assert_int_equal(tn_event_wait(e, &sim->default_stream), TN_OK);
    assert_int_equal(tn_event_query(e), TN_OK);
    tn_event_record(e, &d->default_stream);
    fake_stream_error(d->default_stream.handle, TN_ERR_INTERNAL, "kept");
    assert_int_equal(tni_stream_wait_stream(&sim->default_stream, &d->default_stream), TN_OK);
    assert_int_equal(tn_event_query(e), TN_OK);
    /* Waiting took nobody's error. */
    assert_int_equal(tn_stream_query(&d->default_stream), TN_ERR_INTERNAL);
    assert_error(TN_ERR_INTERNAL, "kept", NULL);
    tn_event_destroy(e);
}

/* ---- synchronous devices ----------------------------------------------------------------- */

static void test_on_a_synchronous_device_all_is_done(void **state) {
    tni_device *d = open_fake();
    tn_stream *s = tn_stream_create(d->id, 0);
    assert_non_null(s);
    assert_null(s->handle);
    assert_null(tn_stream_native(s));
    tni_stream_note(s, "add");
    assert_int_equal(tn_stream_query(s), TN_OK);
    assert_int_equal(tn_stream_synchronize(s), TN_OK);
    assert_int_equal(tn_set_current_stream(s), TN_OK);
    assert_ptr_equal(tn_current_stream(d->id), s);
    tn_event *start = tn_event_create(d->id, true), *end = tn_event_create(d->id, true);
    assert_int_equal(tn_event_record(start, s), TN_OK);
    usleep(2000);
    assert_int_equal(tn_event_record(end, s), TN_OK);
    assert_int_equal(tn_event_wait(start, s), TN_OK);
    assert_int_equal(tn_event_query(end), TN_OK);
    assert_int_equal(tn_event_synchronize(end), TN_OK);
    double ns = 0;
    assert_int_equal(tn_event_elapsed(start, end, &ns), TN_OK);
    assert_true(ns >= 2e6 && ns < 60e9);
    assert_int_equal(tni_stream_wait_stream(s, &d->default_stream), TN_OK);
    tn_event_destroy(start);
    tn_event_destroy(end);
    tn_set_current_stream(&d->default_stream);
    tn_stream_drop(s);
}

/* ---- the simulated chip ------------------------------------------------------------------ */

static void test_the_simulated_chip_times_its_work(void **state) {
    tni_device *d = tni_device_get(tn_device_parse("sim:0"));
    tn_stream *s = tn_stream_create(d->id, 0);
    tni_block *b = tni_block_alloc(d, s, 8 << 20);
    tn_event *start = tn_event_create(d->id, true), *end = tn_event_create(d->id, true);
    assert_int_equal(tn_event_record(start, s), TN_OK);
    for (int i = 0; i < 8; i++)
        assert_int_equal(d->memory->fill(d->handle, s->handle, b->memory, b->offset, 1, b->bytes),
                         TN_OK);
    assert_int_equal(tn_event_record(end, s), TN_OK);
    assert_int_equal(tn_event_wait(end, &d->default_stream), TN_OK);
    assert_int_equal(tn_synchronize(d->id), TN_OK);
    double ns = 0;
    assert_int_equal(tn_event_elapsed(start, end, &ns), TN_OK);
    assert_true(ns > 0);
    tn_event_destroy(start);
    tn_event_destroy(end);
    tni_block_free(b);
    tn_stream_drop(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_streams_have_dense_numbers),
        TEST(test_making_one_survives_failures),
        TEST(test_null_is_refused_by_name),
        TEST(test_each_thread_has_its_current_stream),
        TEST(test_shutdown_forgets_current_streams),
        TEST(test_a_query_tells_whether_work_is_left),
        TEST(test_an_error_comes_once_with_the_trail),
        TEST(test_a_long_trail_keeps_the_last),
        TEST(test_synchronize_reports_every_stream),
        TEST(test_an_event_is_done_when_its_mark_is_passed),
        TEST(test_elapsed_refuses_what_cannot_be_timed),
        TEST(test_an_event_is_recorded_on_its_own_device),
        TEST(test_a_stream_waits_for_a_stream_without_the_host),
        TEST(test_between_plugins_the_host_waits),
        TEST(test_on_a_synchronous_device_all_is_done),
        TEST(test_the_simulated_chip_times_its_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
