/* The fallback policy, on a device that has memory and not one kernel: nothing silent, nothing
 * wrong, aliases kept. */
#include "tests/core/ops_test.h"

#include <tenon/fallback.h>

static int on_fake(void **state) {
    void *none = NULL;
    fresh(&none);
    assert_int_equal(tn_plugin_register(fake_query), TN_OK);
    dev = tn_device_parse("fake:0");
    assert_string_equal(tn_error_message(), "");
    assert_int_equal(tn_set_default_device(dev), TN_OK);
    tn_fallback_set_policy(TN_FALLBACK_CPU);
    tn_fallback_reset();
    return 0;
}

static int leave_fake(void **state) {
    tn_fallback_set_policy(TN_FALLBACK_ERROR);
    tn_log_set(-1, NULL, NULL);
    return leave_device(state);
}

typedef struct counted {
    const char *op;
    uint64_t n;
} counted;

static void add_up(const char *op, const char *device_type, uint64_t n, void *user) {
    counted *c = user;
    assert_string_equal(device_type, "fake");
    if (strcmp(op, c->op) == 0)
        c->n += n;
}

static uint64_t times(const char *op) {
    counted c = {.op = op};
    tn_fallback_report(add_up, &c);
    return c.n;
}

static void without_leave_a_call_is_refused(void **state) {
    tn_tensor *x = of(TN_F32, TN_SHAPE(2), 1, 2);
    tn_fallback_set_policy(TN_FALLBACK_ERROR);
    tn_fallback_reset();
    assert_fails(tn_exp(x), TN_ERR_UNSUPPORTED, "exp", "f32", "fake:0", "TENON_FALLBACK=cpu",
                 "vendor");
    assert_int_equal(tn_fallback_count(), 0);
}

static void results_are_the_cpu_s_and_counted(void **state) {
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 2), 1, 2, 3, 4);
    tn_fallback_reset();
    tn_tensor *y = tn_exp(x);
    assert_close(y, 1e-6, TN_SHAPE(2, 2), exp(1), exp(2), exp(3), exp(4));
    assert_true(tn_device_equal(tn_device_of(y), dev));
    assert_int_equal(times("exp"), 1);
    assert_non_null(tn_exp(x));
    assert_int_equal(times("exp"), 2);
    assert_true(tn_fallback_count() >= 2);
}

typedef struct missing {
    const char *kernel;
    tn_dtype dtype, to;
    uint64_t n;
} missing;

static void add_missing(const tn_fallback_info *info, void *user) {
    missing *m = user;
    assert_int_equal(info->struct_size, sizeof *info);
    if (strcmp(info->kernel, m->kernel) == 0 && info->dtype == m->dtype && info->to == m->to)
        m->n += info->count;
}

static uint64_t times_missing(const char *kernel, tn_dtype dtype, tn_dtype to) {
    missing m = {.kernel = kernel, .dtype = dtype, .to = to};
    tn_fallback_list(add_missing, &m);
    return m.n;
}

static void what_was_missing_is_told_by_kernel_and_dtype(void **state) {
    tn_tensor *x = of(TN_F32, TN_SHAPE(2), 1, 2), *i = of(TN_I64, TN_SHAPE(2), 1, 2);
    tn_fallback_reset();
    assert_non_null(tn_add(x, x));
    assert_non_null(tn_add(i, i));
    assert_non_null(tn_add_(i, i));
    assert_non_null(tn_to_dtype(x, TN_I64));
    assert_int_equal(times_missing("add", TN_F32, TN_DTYPE_NONE), 1);
    assert_int_equal(times_missing("add", TN_I64, TN_DTYPE_NONE), 2);
    assert_int_equal(times_missing("copy", TN_F32, TN_I64), 1);
    assert_int_equal(times("add.Tensor"), 2); /* of both dtypes in one line */
    assert_int_equal(tn_fallback_count(), 4);
}

/* The host converts, which leaves to the device what a conversion gives (docs/values.md): as x86 does. */
static void what_no_integer_holds_becomes_one(void **state) {
    tn_tensor *x = of(TN_F32, TN_SHAPE(7), NAN, INFINITY, -1e30, 0x1p63, -0x1p63, -1.9, 300);
    int64_t wide[7], expected[] = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, -1, 300};
    assert_ok(tn_to_host(tn_to_dtype(x, TN_I64), wide, sizeof wide));
    assert_memory_equal(wide, expected, sizeof wide);
    assert_elements(tn_to_dtype(x, TN_U8), TN_SHAPE(7), 0, 0, 0, 0, 0, 255, 44);
    assert_elements(tn_to_dtype(x, TN_BOOL), TN_SHAPE(7), 1, 1, 1, 1, 1, 1, 1);
}

static char warned[512];
static void keep_line(void *user, int32_t level, const char *subsystem, const char *line) {
    if (level == TN_LOG_WARN && strcmp(subsystem, "fallback") == 0)
        snprintf(warned, sizeof warned, "%s", line);
}

static void a_warning_names_the_call(void **state) {
    tn_tensor *x = of(TN_F32, TN_SHAPE(2), 1, 2);
    warned[0] = '\0';
    tn_log_set(TN_LOG_WARN, keep_line, NULL);
    assert_non_null(tn_exp(x));
    assert_string_equal(warned, "");
    tn_fallback_set_policy(TN_FALLBACK_WARN);
    assert_non_null(tn_exp(x));
    assert_non_null(strstr(warned, "exp of f32 on fake:0 runs on the CPU"));
}

static void what_is_written_comes_back(void **state) {
    tn_tensor *whole = counting(TN_F32, TN_SHAPE(3, 4));
    tn_tensor *column = tn_select(whole, 1, 2); /* strided */
    assert_ptr_equal(tn_exp_(column), column);
    double e2 = exp(2), e6 = exp(6), e10 = exp(10);
    assert_close(whole, 1e-6, TN_SHAPE(3, 4), 0, 1, e2, 3, 4, 5, e6, 7, 8, 9, e10, 11);
    tn_tensor *out = tn_zeros(TN_SHAPE(3));
    assert_ptr_equal(tn_add_out(column, column, tn_int(1), out), out);
    assert_close(out, 1e-6, TN_SHAPE(3), 2 * e2, 2 * e6, 2 * e10);
}

static void arguments_that_share_memory_still_do(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(4));
    tn_tensor *head = tn_slice(x, 0, 0, 2), *tail = tn_slice(x, 0, 2, 4);
    assert_ptr_equal(tn_add_(head, tail), head); /* reads the one half, writes the other */
    assert_elements(x, TN_SHAPE(4), 2, 4, 2, 3);
    assert_ptr_equal(tn_mul_(x, x), x);
    assert_elements(x, TN_SHAPE(4), 4, 16, 4, 9);
    tn_tensor *list[] = {head, tail, head};
    assert_elements(tn_cat(list, 3), TN_SHAPE(6), 4, 16, 4, 9, 4, 16);
}

static void several_outputs_come_back(void **state) {
    tn_tensor *indices, *sorted;
    assert_ok(tn_sort(of(TN_F32, TN_SHAPE(2, 3), 3, 1, 2, 9, 7, 8), -1, true, &sorted, &indices));
    assert_elements(sorted, TN_SHAPE(2, 3), 3, 2, 1, 9, 8, 7);
    assert_elements(indices, TN_SHAPE(2, 3), 0, 2, 1, 0, 2, 1);
    assert_int_equal(times("sort"), 1);
}

static void gradients_pass_through(void **state) {
    tn_tensor *x = requiring_grad(of(TN_F32, TN_SHAPE(3), 1, 2, 3));
    assert_ok(tn_backward(tn_sum(tn_exp(tn_mul(x, x)))));
    assert_close(tn_grad(x), 1e-5, TN_SHAPE(3), 2 * exp(1), 4 * exp(4), 6 * exp(9));
}

static void a_failure_on_the_cpu_is_told_and_writes_nothing(void **state) {
    tn_tensor *x = of(TN_F32, TN_SHAPE(2), 1, 2);
    tn_tensor *index = of(TN_I64, TN_SHAPE(1), 7);
    assert_fails(tn_index_select(x, 0, index), TN_ERR_INDEX_OUT_OF_RANGE, "7", "out of range");
    assert_elements(x, TN_SHAPE(2), 1, 2);
}

/* Device calls that fail on the way: an error each time, the tensors as they were, nothing lost
 * (leave_clean looks). */
static void every_device_call_fails_once(void **state) {
    tn_tensor *x = of(TN_F32, TN_SHAPE(2), 1, 2);
    for (uint64_t n = 1;; n++) {
        TN_SCOPE;
        assert_ok(tn_empty_cache(dev)); /* the result needs memory of the device */
        fake_fail_at(n);
        tn_tensor *y = tn_exp(x);
        uint64_t made = fake_fail_at(0);
        if (made < n) {
            assert_non_null(y);
            assert_true(n > 1);
            break;
        }
        if (!y) {
            assert_true(tn_error_status() != TN_OK);
            assert_non_null(strstr(tn_error_message(), "fake:0"));
        }
        tn_error_clear();
        assert_elements(x, TN_SHAPE(2), 1, 2);
    }
}

#define FAKE_TEST(name) cmocka_unit_test_setup_teardown(name, on_fake, leave_fake)

int main(void) {
    const struct CMUnitTest tests[] = {
        FAKE_TEST(without_leave_a_call_is_refused),
        FAKE_TEST(results_are_the_cpu_s_and_counted),
        FAKE_TEST(what_was_missing_is_told_by_kernel_and_dtype),
        FAKE_TEST(what_no_integer_holds_becomes_one),
        FAKE_TEST(a_warning_names_the_call),
        FAKE_TEST(what_is_written_comes_back),
        FAKE_TEST(arguments_that_share_memory_still_do),
        FAKE_TEST(several_outputs_come_back),
        FAKE_TEST(gradients_pass_through),
        FAKE_TEST(a_failure_on_the_cpu_is_told_and_writes_nothing),
        FAKE_TEST(every_device_call_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
