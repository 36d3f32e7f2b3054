/* What a program sees of a device that fails: the core above the plugin. */
#include "tests/opencl/rig.h"

#include <stdlib.h>
#include <tenon/plugins.h>
#include <tenon/tenon.h>

enum { MIB = 1 << 20 };

static tn_device device;

static int start(void **state) {
    rig_setup(state);
    tn_error_clear();
    return 0;
}

static int stop(void **state) {
    tn_error_clear();
    tn_scope_close(0); /* of a test that failed */
    if (tn_shutdown() != TN_OK) {
        print_error("%s\n", tn_error_message());
        return -1;
    }
    return rig_teardown(state);
}

#define CORE_TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

static void open_device(void) {
    assert_int_equal(tn_plugin_load(rig_plugin), TN_OK);
    device = tn_device_parse("opencl:0");
    if (device.type == 0)
        fail_msg("%s", tn_error_message());
}

static void assert_error(tn_status status, const char *first, const char *second) {
    assert_string_equal(tn_status_name(tn_error_status()), tn_status_name(status));
    assert_text(tn_error_message(), first);
    assert_text(tn_error_message(), second);
    tn_error_clear();
}

/* Kept by the caller. */
static tn_tensor *megabytes(int64_t n) {
    return tn_keep(tn_empty(TN_SHAPE(n * MIB), TN_U8, device));
}

static tn_memory_stats stats(void) {
    tn_memory_stats s = {.struct_size = sizeof s};
    assert_int_equal(tn_memory_stats_get(device, &s), TN_OK);
    return s;
}

/* ---- memory ------------------------------------------------------------------------------ */

static void a_full_device_gives_back_its_cache_and_is_asked_again(void **state) {
    TN_SCOPE;
    layer_say("small=memory:134217728");
    open_device();
    tn_tensor *t = megabytes(30);
    assert_non_null(t);
    tn_free(t);
    tn_drop(t);
    tn_memory_stats before = stats();
    assert_true(before.reserved_bytes >= 30 * MIB);
    layer_say("fail=clCreateBuffer:-4@1");
    t = megabytes(31);
    assert_non_null(t);
    tn_memory_stats after = stats();
    assert_int_equal(after.n_retries, before.n_retries + 1);
    assert_int_equal(after.n_device_frees, before.n_device_frees + 1);
    assert_true(after.reserved_bytes < 60 * MIB);
    tn_drop(t);
}

static void a_device_that_stays_full_is_told_with_figures(void **state) {
    TN_SCOPE;
    open_device();
    tn_tensor *kept = megabytes(20);
    assert_non_null(kept);
    layer_say("fail=clCreateBuffer:-4");
    assert_null(megabytes(50));
    assert_text(tn_error_message(), "no memory for 50");
    assert_text(tn_error_message(), "20.00 MiB allocated");
    assert_text(tn_error_message(), "held from the device");
    assert_error(TN_ERR_OUT_OF_MEMORY, "opencl:0", "CL_MEM_OBJECT_ALLOCATION_FAILURE");
    layer_say("");
    tn_tensor *now = megabytes(50);
    assert_non_null(now);
    tn_drop(now);
    tn_drop(kept);
}

/* ---- kernels ----------------------------------------------------------------------------- */

static void a_kernel_that_does_not_build_is_named(void **state) {
    TN_SCOPE;
    open_device();
    tn_tensor *x = tn_ones(TN_SHAPE(3), TN_F32, device);
    assert_non_null(x);
    layer_say("fail=clBuildProgram:-11;log=x.cl:2: error: no such type");
    assert_null(tn_cos(x));
    assert_text(tn_error_message(), "opencl:0");
    assert_text(tn_error_message(), "cos");
    assert_error(TN_ERR_INTERNAL, "pointwise", "x.cl:2: error: no such type");
    layer_say("");
    assert_non_null(tn_cos(x));
}

/* ---- no f64 ------------------------------------------------------------------------------ */

static void f64_on_a_device_without_it_is_told(void **state) {
    TN_SCOPE;
    layer_say("hide=fp64");
    open_device();
    assert_false(tn_device_has_dtype(device, TN_F64));
    assert_null(tn_ones(TN_SHAPE(3), TN_F64, device));
    assert_error(TN_ERR_DTYPE, "opencl:0 cannot store f64", "use another dtype");
    double sum = 0;
    assert_int_equal(tn_item(tn_neg(tn_ones(TN_SHAPE(1), TN_F32, device)), &sum), TN_OK);
    assert_true(sum == -1);
}

/* ---- a lost device ----------------------------------------------------------------------- */

static void a_lost_device_fails_every_call_and_no_other_device(void **state) {
    TN_SCOPE;
    open_device();
    tn_tensor *x = tn_ones(TN_SHAPE(3), TN_F32, device);
    tn_tensor *y = tn_neg(x);
    float numbers[3];
    assert_non_null(y);
    layer_say("lose=-36");
    assert_int_equal(tn_to_host(y, numbers, sizeof numbers), TN_ERR_DEVICE_LOST);
    assert_text(tn_error_message(), "end the program");
    assert_error(TN_ERR_DEVICE_LOST, "opencl:0 (", "CL_INVALID_COMMAND_QUEUE");
    layer_say(""); /* the driver answers again, and nothing is asked of it */
    assert_null(tn_neg(x));
    assert_error(TN_ERR_DEVICE_LOST, "opencl:0", "");
    assert_null(tn_ones(TN_SHAPE(3), TN_F32, device));
    assert_error(TN_ERR_DEVICE_LOST, "opencl:0", "");
    assert_int_equal(tn_synchronize(device), TN_ERR_DEVICE_LOST);
    assert_error(TN_ERR_DEVICE_LOST, "opencl:0", "");
    assert_int_equal(tn_empty_cache(device), TN_OK);

    double one = 0;
    assert_int_equal(tn_item(tn_ones(TN_SHAPE(1), TN_F32, tn_device_parse("cpu:0")), &one), TN_OK);
    assert_true(one == 1);
}

int all_tests(void) {
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_full_device_gives_back_its_cache_and_is_asked_again),
        CORE_TEST(a_device_that_stays_full_is_told_with_figures),
        CORE_TEST(a_kernel_that_does_not_build_is_named),
        CORE_TEST(f64_on_a_device_without_it_is_told),
        CORE_TEST(a_lost_device_fails_every_call_and_no_other_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
