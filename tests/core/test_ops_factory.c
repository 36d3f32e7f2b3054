/* Tensors from nothing. */
#include "tests/core/ops_test.h"

static void filled_tensors(void **state) {
    assert_elements(tn_zeros(TN_SHAPE(2, 2)), TN_SHAPE(2, 2), 0, 0, 0, 0);
    assert_int_equal(tn_dtype_of(tn_zeros(TN_SHAPE(1))), TN_F32);
    assert_elements(tn_ones(TN_SHAPE(2), TN_I8), TN_SHAPE(2), 1, 1);
    assert_elements(tn_ones(TN_SHAPE(2), TN_F16), TN_SHAPE(2), 1, 1);
    assert_elements(tn_ones(TN_SCALAR_SHAPE, TN_BOOL), TN_SCALAR_SHAPE, 1);
    assert_int_equal(tn_numel(tn_zeros(TN_SHAPE(3, 0))), 0);
    tn_tensor *like = tn_ones(TN_SHAPE(2), TN_F64);
    assert_int_equal(tn_dtype_of(tn_zeros_like(like)), TN_F64);
    assert_int_equal(tn_dtype_of(tn_ones_like(like, TN_I32)), TN_I32);
    assert_shape(tn_empty_like(like), 2);
    assert_elements(tn_full_like(like, tn_float(0.5)), TN_SHAPE(2), 0.5, 0.5);
    tn_tensor *there = tn_zeros_like(like, TN_DTYPE_NONE, tn_device_parse("cpu:0"));
    assert_true(tn_device_equal(tn_device_of(there), tn_device_parse("cpu:0")));
}

static void full_takes_the_value_s_kind(void **state) {
    assert_int_equal(tn_dtype_of(tn_full(TN_SHAPE(1), tn_float(1))), TN_F32);
    assert_int_equal(tn_dtype_of(tn_full(TN_SHAPE(1), tn_int(1))), TN_I64);
    assert_int_equal(tn_dtype_of(tn_full(TN_SHAPE(1), tn_bool(true))), TN_BOOL);
    assert_elements(tn_full(TN_SHAPE(2), tn_float(2.9), TN_I32), TN_SHAPE(2), 2, 2);
    assert_elements(tn_full(TN_SHAPE(1), tn_int(-1), TN_U8), TN_SHAPE(1), 255);
    assert_elements(tn_full(TN_SHAPE(1), tn_float(0.5), TN_BOOL), TN_SHAPE(1), 1);
    assert_elements(tn_full(TN_SHAPE(1), tn_float(-INFINITY), TN_BF16), TN_SHAPE(1), -INFINITY);
    assert_fails(tn_full(TN_SHAPE(1), tn_float(NAN), TN_I64), TN_ERR_DTYPE, "tn_full", "i64");
    assert_fails(tn_full(TN_SHAPE(1), tn_float(1e30), TN_I64), TN_ERR_DTYPE, "tn_full: fill_value");
}

static void what_cannot_be_made_is_said(void **state) {
    assert_fails(tn_zeros(TN_SHAPE(2, -1)), TN_ERR_SHAPE, "tn_zeros: size -1 of shape [2, -1]");
    assert_fails(tn_ones(tn_no_ints()), TN_ERR_SHAPE, "tn_ones: size is left out");
    assert_fails(tn_full(tn_no_ints(), tn_int(1)), TN_ERR_SHAPE, "tn_full: size is left out");
    assert_fails(tn_empty(TN_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)), TN_ERR_SHAPE,
                 "tn_empty: 13 dimensions");
    assert_fails(tn_full(TN_SHAPE(1), tn_int(1), (tn_dtype)99), TN_ERR_DTYPE, "99 is no dtype");
    assert_fails(tn_zeros(TN_SHAPE(1), (tn_dtype)99), TN_ERR_DTYPE, "99 is no dtype");
    assert_fails(tn_arange(tn_int(1), (tn_dtype)99), TN_ERR_DTYPE, "99 is no dtype");
    assert_fails(tn_zeros(TN_SHAPE(INT64_MAX, INT64_MAX)), TN_ERR_SHAPE, "63 bits");
}

static void arange_counts_as_pytorch(void **state) {
    assert_elements(tn_arange(tn_int(3)), TN_SHAPE(3), 0, 1, 2);
    assert_int_equal(tn_dtype_of(tn_arange(tn_int(3))), TN_I64);
    assert_int_equal(tn_dtype_of(tn_arange(tn_float(3))), TN_F32);
    assert_elements(tn_arange(tn_float(2.5)), TN_SHAPE(3), 0, 1, 2);
    assert_shape(tn_arange(tn_int(0)), 0);
    assert_elements(tn_arange_start(tn_int(7), tn_int(1), tn_int(-2)), TN_SHAPE(3), 7, 5, 3);
    assert_elements(tn_arange_start(tn_int(1), tn_int(8), tn_int(3)), TN_SHAPE(3), 1, 4, 7);
    assert_elements(tn_arange_start(tn_int(1), tn_int(7), tn_int(3)), TN_SHAPE(2), 1, 4);
    assert_close(tn_arange_start(tn_float(1), tn_float(0), tn_float(-0.25)), 0, TN_SHAPE(4), 1,
                 0.75, 0.5, 0.25);
    assert_elements(tn_arange_start(tn_int(0), tn_int(3), tn_int(1), TN_F64), TN_SHAPE(3), 0, 1, 2);
    /* of an integer dtype the floating range is counted and each element truncated */
    assert_tensor(tn_arange_start(tn_float(0.5), tn_float(2.5), tn_float(1.5), TN_I64), TN_I64,
                  TN_SHAPE(2), 0, 0, 2);
    assert_elements(tn_arange(tn_float(3.1), TN_I64), TN_SHAPE(4), 0, 1, 2, 3);
    assert_tensor(tn_arange_start(tn_int(0), tn_int(2), tn_float(0.5), TN_I32), TN_I32, TN_SHAPE(4),
                  0, 0, 0, 1, 1);
    assert_elements(tn_arange_start(tn_float(-1.5), tn_float(1.5), tn_int(1), TN_I8), TN_SHAPE(3),
                    -1, 0, 0);
    assert_shape(
        tn_arange_start(tn_float(0.5), tn_int(4), tn_int(1), TN_I64, tn_device_parse("meta")), 4);
    assert_shape(tn_arange_start(tn_int(INT64_MIN + 1), tn_int(INT64_MAX), tn_int(INT64_MAX)), 2);
    assert_fails(tn_arange(tn_int(-1)), TN_ERR_INVALID_ARGUMENT, "tn_arange", "from 0 to -1 by 1");
    assert_fails(tn_arange_start(tn_int(0), tn_int(1), tn_int(0)), TN_ERR_INVALID_ARGUMENT,
                 "step 0");
    assert_fails(tn_arange(tn_float(NAN)), TN_ERR_INVALID_ARGUMENT, "no range");
    assert_fails(tn_arange(tn_float(INFINITY)), TN_ERR_INVALID_ARGUMENT, "no range");
    assert_fails(tn_arange_start(tn_float(0.5), tn_float(0), tn_float(1)), TN_ERR_INVALID_ARGUMENT,
                 "no range");
    assert_fails(tn_arange_start(tn_int(INT64_MIN), tn_int(INT64_MAX), tn_int(1)),
                 TN_ERR_INVALID_ARGUMENT, "no range");
    assert_fails(tn_arange(tn_int(2), TN_BOOL), TN_ERR_DTYPE, "bool");
}

static void linspace_ends_where_it_should(void **state) {
    assert_elements(tn_linspace(tn_int(0), tn_int(1), 5), TN_SHAPE(5), 0, 0.25, 0.5, 0.75, 1);
    assert_elements(tn_linspace(tn_int(3), tn_int(9), 1), TN_SHAPE(1), 3);
    assert_shape(tn_linspace(tn_int(3), tn_int(9), 0), 0);
    for (int64_t steps = 2; steps < 60; steps++) {
        tn_scope scope = tn_scope_open();
        double *v = values_of(tn_linspace(tn_float(-1), tn_float(0.1), steps));
        assert_true(v[0] == -1 && v[steps - 1] == (double)0.1f);
        for (int64_t i = 0; i < steps; i++)
            assert_true(fabs(v[i] - (-1 + 1.1 * (double)i / (double)(steps - 1))) < 2e-7);
        free(v);
        tn_scope_close(scope);
    }
    tn_tensor *half = tn_linspace(tn_int(0), tn_int(3000), 3001, TN_F16);
    assert_int_equal(tn_dtype_of(half), TN_F16);
    assert_elements(tn_slice(half, 0, 2999), TN_SHAPE(2), 3000, 3000); /* rounded once */
    assert_elements(tn_linspace(tn_int(0), tn_int(10), 3, TN_I32), TN_SHAPE(3), 0, 5, 10);
    /* of an integer dtype the ends are truncated first: 0 to 5 in place of 0.9 to 5.9 */
    assert_tensor(tn_linspace(tn_float(0.9), tn_float(5.9), 3, TN_I64), TN_I64, TN_SHAPE(3), 0, 0,
                  2, 5);
    assert_elements(tn_linspace(tn_int(0), tn_int(-5), 4, TN_I8), TN_SHAPE(4), 0, -1, -3, -5);
    assert_elements(tn_linspace(tn_float(3.7), tn_int(9), 1, TN_I32), TN_SHAPE(1), 3);
    assert_fails(tn_linspace(tn_int(0), tn_float(INFINITY), 2, TN_I32), TN_ERR_DTYPE, "tn_linspace",
                 "i32");
    assert_fails(tn_linspace(tn_int(0), tn_int(1), -1), TN_ERR_INVALID_ARGUMENT,
                 "tn_linspace: steps");
}

static void eye_is_the_identity(void **state) {
    assert_elements(tn_eye(2), TN_SHAPE(2, 2), 1, 0, 0, 1);
    assert_int_equal(tn_dtype_of(tn_eye(2)), TN_F32);
    assert_elements(tn_eye(2, TN_BOOL), TN_SHAPE(2, 2), 1, 0, 0, 1);
    assert_shape(tn_eye(0), 0, 0);
    assert_fails(tn_eye(-1), TN_ERR_SHAPE, "tn_eye: n is -1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(filled_tensors),
        OPS_TEST(full_takes_the_value_s_kind),
        OPS_TEST(what_cannot_be_made_is_said),
        OPS_TEST(arange_counts_as_pytorch),
        OPS_TEST(linspace_ends_where_it_should),
        OPS_TEST(eye_is_the_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
