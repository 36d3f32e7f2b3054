/* A device with queues whose memory the host can reach: a copy from it to another device, or to it, is
 * no copy of what lies there while work is still queued. */
#include "tests/core/ops_test.h"

static tn_device sim(void) {
    return tn_device_parse("sim:0");
}

static tn_tensor *busy(tn_tensor *x, int rounds) {
    for (int i = 0; i < rounds; i++)
        x = tn_add_scalar(x, tn_int(1));
    return x;
}

static void the_host_can_reach_it(void **state) {
    tn_tensor *x = tn_full(TN_SHAPE(4), tn_int(7), TN_F32, sim());
    const float *p = tn_data(x);
    assert_non_null(p);
    assert_ok(tn_stream_synchronize(tn_current_stream(sim())));
    assert_true(p[0] == 7 && p[3] == 7);
}

static void a_copy_from_it_waits_for_its_work(void **state) {
    tn_tensor *x = busy(tn_zeros(TN_SHAPE(512, 512), TN_F32, sim()), 40);
    tn_tensor *y = tn_to_device(x, tn_device_parse("cpu:0"));
    assert_same(y, tn_full(TN_SHAPE(512, 512), tn_int(40), TN_F32, tn_device_parse("cpu:0")));
}

static void a_copy_to_it_waits_for_its_work(void **state) {
    tn_tensor *source = tn_full(TN_SHAPE(512, 512), tn_int(-5), TN_F32, tn_device_parse("cpu:0"));
    tn_tensor *x = tn_zeros(TN_SHAPE(512, 512), TN_F32, sim());
    tn_tensor *sum = x;
    for (int i = 0; i < 40; i++)
        sum = tn_add(sum, x); /* reads x until the queue has passed */
    assert_non_null(tn_copy_(x, source));
    assert_same(sum, tn_zeros(TN_SHAPE(512, 512), TN_F32, sim()));
    assert_same(x, tn_full(TN_SHAPE(512, 512), tn_int(-5), TN_F32, sim()));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(the_host_can_reach_it, on_device, leave_device,
                                                 "cpu:0"),
        cmocka_unit_test_prestate_setup_teardown(a_copy_from_it_waits_for_its_work, on_device,
                                                 leave_device, "cpu:0"),
        cmocka_unit_test_prestate_setup_teardown(a_copy_to_it_waits_for_its_work, on_device,
                                                 leave_device, "cpu:0"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
