/* Two devices with queues of their own, and the CPU: copies between all of them, streams that wait
 * for each other, memory that outlives its stream, backward on the stream of its forward. */
#include "tests/core/ops_test.h"

#include <pthread.h>

static tn_device sim(int i) {
    return tn_device_parse(i ? "sim:1" : "sim:0");
}

/* Enough work that the queue is busy when the host comes back. */
static tn_tensor *busy(tn_tensor *x, int rounds) {
    for (int i = 0; i < rounds; i++)
        x = tn_add_scalar(x, tn_int(1));
    return x;
}

static void tensors_travel_between_all_devices(void **state) {
    const char *names[] = {"cpu:0", "sim:0", "sim:1"};
    tn_tensor *x = counting(TN_F32, TN_SHAPE(3, 4));
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 3; to++) {
            tn_device there = tn_device_parse(names[to]);
            tn_tensor *a = tn_to_device(tn_t(x), tn_device_parse(names[from])); /* strided */
            tn_tensor *b = tn_to_device(a, there);
            assert_true(tn_device_equal(tn_device_of(b), there));
            assert_same(b, tn_t(x));
            tn_tensor *target = tn_zeros(TN_SHAPE(2, 4, 3), TN_F64, there); /* casts, broadcasts */
            assert_non_null(tn_copy_(target, a));
            assert_same(tn_select(target, 0, 1), tn_to_dtype(tn_t(x), TN_F64));
        }
}

static void a_copy_waits_for_what_it_copies(void **state) {
    tn_tensor *x = busy(tn_zeros(TN_SHAPE(512, 512), TN_F32, sim(0)), 40);
    tn_tensor *y = busy(tn_to_device(x, sim(1)), 10); /* no wait of the host between */
    tn_tensor *z = tn_to_device(y, sim(0));
    assert_same(z, tn_full(TN_SHAPE(512, 512), tn_int(50), TN_F32, sim(0)));
}

static void streams_wait_by_events(void **state) {
    tn_device device = sim(0);
    tn_stream *side = tn_stream_create(device, 0), *main_stream = tn_current_stream(device);
    tn_event *ready = tn_event_create(device, false);
    tn_tensor *x = busy(tn_zeros(TN_SHAPE(512, 512), TN_F32, device), 40);
    assert_ok(tn_event_record(ready, main_stream));
    assert_ok(tn_event_wait(ready, side));
    assert_ok(tn_set_current_stream(side));
    tn_tensor *y = tn_add_scalar(x, tn_int(1));
    assert_ok(tn_record_stream(x, side));
    assert_ok(tn_set_current_stream(main_stream));
    assert_ok(tn_stream_synchronize(side));
    assert_same(y, tn_full(TN_SHAPE(512, 512), tn_int(41), TN_F32, device));
    tn_event_destroy(ready);
    tn_stream_drop(side);
}

/* Freed while another stream still reads it: without record_stream the next tensor would get the
 * memory at once, and the reader would see that tensor's values. */
static void memory_waits_for_the_streams_that_use_it(void **state) {
    tn_device device = sim(0);
    tn_stream *side = tn_stream_create(device, 0), *main_stream = tn_current_stream(device);
    tn_event *ready = tn_event_create(device, false);
    for (int round = 0; round < 20; round++) {
        TN_SCOPE;
        tn_tensor *x = tn_ones(TN_SHAPE(256, 256), TN_F32, device);
        assert_ok(tn_event_record(ready, main_stream));
        assert_ok(tn_event_wait(ready, side));
        assert_ok(tn_set_current_stream(side));
        tn_tensor *slow = busy(tn_zeros(TN_SHAPE(512, 512), TN_F32, device), 10);
        tn_tensor *y = tn_add(x, tn_slice(tn_slice(slow, 0, 0, 256), 1, 0, 256));
        assert_ok(tn_record_stream(x, side));
        assert_ok(tn_set_current_stream(main_stream));
        tn_free(x);
        tn_tensor *next = tn_full(TN_SHAPE(256, 256), tn_int(-100), TN_F32, device);
        assert_non_null(next);
        assert_ok(tn_stream_synchronize(side));
        assert_same(y, tn_full(TN_SHAPE(256, 256), tn_int(11), TN_F32, device));
    }
    tn_event_destroy(ready);
    tn_stream_drop(side);
}

static void backward_runs_on_the_streams_of_its_forward(void **state) {
    tn_device device = sim(0);
    tn_stream *side = tn_stream_create(device, 0), *main_stream = tn_current_stream(device);
    tn_event *ready = tn_event_create(device, false), *done = tn_event_create(device, false);
    tn_tensor *w = requiring_grad(busy(tn_zeros(TN_SHAPE(256, 256), TN_F32, device), 20));
    tn_tensor *a = tn_mul(w, w); /* on the main stream */
    assert_ok(tn_event_record(ready, main_stream));
    assert_ok(tn_event_wait(ready, side));
    assert_ok(tn_set_current_stream(side));
    tn_tensor *b = tn_mul(busy(a, 20), a);
    assert_ok(tn_record_stream(a, side));
    assert_ok(tn_event_record(done, side));
    assert_ok(tn_set_current_stream(main_stream));
    assert_ok(tn_event_wait(done, main_stream));
    assert_ok(tn_backward(tn_sum(tn_mul(b, a))));
    /* w = 20, a = w^2, f = (a + 20) a^2: df/dw = (3 a^2 + 40 a) 2 w */
    double a0 = 400, slope = (3 * a0 * a0 + 40 * a0) * 2 * 20;
    assert_same(tn_grad(w), tn_full(TN_SHAPE(256, 256), tn_float(slope), TN_F32, device));
    tn_event_destroy(ready);
    tn_event_destroy(done);
    tn_stream_drop(side);
}

static void gradients_cross_devices(void **state) {
    tn_tensor *w = requiring_grad(counting(TN_F32, TN_SHAPE(8)));
    tn_tensor *there = tn_to_device(w, sim(1));
    tn_tensor *back = tn_to_device(tn_mul(there, there), sim(0));
    assert_ok(tn_backward(tn_sum(back)));
    assert_elements(tn_grad(w), TN_SHAPE(8), 0, 2, 4, 6, 8, 10, 12, 14);
    assert_true(tn_device_equal(tn_device_of(tn_grad(w)), dev));
}

/* A thread for each device, with the devices' memory going round between them. */
static void *go_round(void *start) {
    for (int round = 0; round < 10; round++) {
        TN_SCOPE;
        tn_device here = sim((int)(intptr_t)start), there = sim(!(intptr_t)start);
        tn_tensor *x = busy(tn_zeros(TN_SHAPE(64, 64), TN_F32, here), 5);
        tn_tensor *y = tn_to_device(busy(tn_to_device(x, there), 5), here);
        float values[64 * 64];
        if (tn_to_host(y, values, sizeof values) != TN_OK || values[0] != 10 || values[4095] != 10)
            return "wrong";
    }
    return NULL;
}

static void threads_use_both_at_once(void **state) {
    pthread_t threads[2];
    void *wrong[2];
    for (intptr_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, go_round, (void *)i), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], &wrong[i]);
    assert_null(wrong[0]);
    assert_null(wrong[1]);
}

#define SIM_TEST(name) \
    cmocka_unit_test_prestate_setup_teardown(name, on_device, leave_device, "sim:0")

int main(void) {
    const struct CMUnitTest tests[] = {
        SIM_TEST(tensors_travel_between_all_devices),
        SIM_TEST(a_copy_waits_for_what_it_copies),
        SIM_TEST(streams_wait_by_events),
        SIM_TEST(memory_waits_for_the_streams_that_use_it),
        SIM_TEST(backward_runs_on_the_streams_of_its_forward),
        SIM_TEST(gradients_cross_devices),
        SIM_TEST(threads_use_both_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
