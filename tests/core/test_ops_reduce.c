/* Reductions, running sums, sorting: shapes, dtypes and the values that are easily got wrong. */
#include "tests/core/ops_test.h"

/* ---- sums -------------------------------------------------------------------------------- */

static void sums_go_over_any_dimensions(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    assert_tensor(tn_sum(x), TN_F32, TN_SCALAR_SHAPE, 0, 21);
    assert_tensor(tn_sum_dim(x, TN_SCALAR_SHAPE), TN_F32, TN_SCALAR_SHAPE, 0, 21);
    assert_tensor(tn_sum_dim(x, TN_SCALAR_SHAPE, true), TN_F32, TN_SHAPE(1, 1), 0, 21);
    assert_tensor(tn_sum_dim(x, TN_DIMS(0)), TN_F32, TN_SHAPE(3), 0, 5, 7, 9);
    assert_tensor(tn_sum_dim(x, TN_DIMS(-1)), TN_F32, TN_SHAPE(2), 0, 6, 15);
    assert_tensor(tn_sum_dim(x, TN_DIMS(-2), true), TN_F32, TN_SHAPE(1, 3), 0, 5, 7, 9);
    assert_tensor(tn_sum_dim(x, TN_DIMS(1, 0)), TN_F32, TN_SCALAR_SHAPE, 0, 21);
    tn_tensor *turned = tn_transpose(x, 0, 1);
    assert_tensor(tn_sum_dim(turned, TN_DIMS(0)), TN_F32, TN_SHAPE(2), 0, 6, 15);
    tn_tensor *cube = noise(TN_F64, TN_SHAPE(3, 4, 5), 1);
    double *v = values_of(cube), middle[4] = {0};
    for (int i = 0; i < 60; i++)
        middle[i / 5 % 4] += v[i];
    check_tensor(tn_sum_dim(restrided(cube), TN_DIMS(2, 0)), TN_F64, TN_SHAPE(4), 1e-12, middle, 4,
                 __FILE__, __LINE__);
    free(v);
}

static void a_scalar_has_one_dimension_to_reduce(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F32, TN_SCALAR_SHAPE, 7);
    assert_tensor(tn_sum_dim(x, TN_DIMS(0)), TN_F32, TN_SCALAR_SHAPE, 0, 7);
    assert_tensor(tn_sum_dim(x, TN_DIMS(-1), true), TN_F32, TN_SCALAR_SHAPE, 0, 7);
    assert_tensor(tn_amax(x, TN_DIMS(0)), TN_F32, TN_SCALAR_SHAPE, 0, 7);
    assert_tensor(tn_prod_dim(x, -1), TN_F32, TN_SCALAR_SHAPE, 0, 7);
    assert_tensor(tn_argmax(x, 0), TN_I64, TN_SCALAR_SHAPE, 0, 0);
    assert_tensor(tn_cumsum(x, 0), TN_F32, TN_SCALAR_SHAPE, 0, 7);
    tn_tensor *values, *indices;
    assert_int_equal(tn_max_dim(x, 0, false, &values, &indices), TN_OK);
    assert_tensor(values, TN_F32, TN_SCALAR_SHAPE, 0, 7);
    assert_tensor(indices, TN_I64, TN_SCALAR_SHAPE, 0, 0);
    assert_int_equal(tn_sort(x, 0, false, &values, &indices), TN_OK);
    assert_tensor(values, TN_F32, TN_SCALAR_SHAPE, 0, 7);
    assert_int_equal(tn_topk(x, 1, 0, true, &values, &indices), TN_OK);
    assert_tensor(indices, TN_I64, TN_SCALAR_SHAPE, 0, 0);
}

static void integers_and_bool_are_summed_in_i64(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_U8, TN_SHAPE(3), 200, 200, 200);
    assert_tensor(tn_sum(x), TN_I64, TN_SCALAR_SHAPE, 0, 600);
    assert_tensor(tn_prod(x), TN_I64, TN_SCALAR_SHAPE, 0, 8e6);
    assert_tensor(tn_cumsum(x, 0), TN_I64, TN_SHAPE(3), 0, 200, 400, 600);
    assert_tensor(tn_sum(of(TN_BOOL, TN_SHAPE(3), 1, 0, 1)), TN_I64, TN_SCALAR_SHAPE, 0, 2);
    assert_tensor(tn_sum(x, TN_F32), TN_F32, TN_SCALAR_SHAPE, 0, 600);
    assert_tensor(tn_sum(x, TN_U8), TN_U8, TN_SCALAR_SHAPE, 0, 600 % 256);
    assert_tensor(tn_cumsum(x, 0, TN_F64), TN_F64, TN_SHAPE(3), 0, 200, 400, 600);
}

static void means_are_floating(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 2), 1, 2, 3, 6);
    assert_tensor(tn_mean(x), TN_F32, TN_SCALAR_SHAPE, 0, 3);
    assert_tensor(tn_mean_dim(x, TN_DIMS(-1), true), TN_F32, TN_SHAPE(2, 1), 0, 1.5, 4.5);
    tn_tensor *whole = of(TN_I32, TN_SHAPE(2), 1, 2);
    assert_tensor(tn_mean(whole, TN_F64), TN_F64, TN_SCALAR_SHAPE, 0, 1.5);
    assert_fails(tn_mean(whole), TN_ERR_DTYPE, "tn_mean", "i32", "dtype");
    assert_fails(tn_mean(x, TN_I64), TN_ERR_DTYPE, "tn_mean", "i64");
    /* 4 * 40000 is more than an f16 holds */
    tn_tensor *half = of(TN_F16, TN_SHAPE(4), 40000, 40000, 40000, 40000);
    assert_tensor(tn_mean(half), TN_F16, TN_SCALAR_SHAPE, 0, 40000);
}

static void nothing_has_a_sum_and_a_product_but_no_extreme(void **state) {
    TN_SCOPE;
    tn_tensor *none = tn_zeros(TN_SHAPE(0, 2), TN_F32, dev);
    assert_tensor(tn_sum_dim(none, TN_DIMS(0)), TN_F32, TN_SHAPE(2), 0, 0, 0);
    assert_tensor(tn_prod_dim(none, 0), TN_F32, TN_SHAPE(2), 0, 1, 1);
    assert_tensor(tn_mean_dim(none, TN_DIMS(0)), TN_F32, TN_SHAPE(2), 0, NAN, NAN);
    assert_tensor(tn_var_dim(none, TN_DIMS(0)), TN_F32, TN_SHAPE(2), 0, NAN, NAN);
    assert_tensor(tn_logsumexp(none, TN_DIMS(0)), TN_F32, TN_SHAPE(2), 0, -INFINITY, -INFINITY);
    assert_tensor(tn_any(none), TN_BOOL, TN_SCALAR_SHAPE, 0, 0);
    assert_tensor(tn_all(none), TN_BOOL, TN_SCALAR_SHAPE, 0, 1);
    assert_fails(tn_amax(none, TN_DIMS(0)), TN_ERR_SHAPE, "tn_amax", "dimension 0 of size 0");
    assert_fails(tn_amin(none), TN_ERR_SHAPE, "tn_amin", "size 0");
    assert_fails(tn_argmax(none, 0), TN_ERR_SHAPE, "tn_argmax", "dimension 0 of size 0");
    assert_fails(tn_argmin(none), TN_ERR_SHAPE, "tn_argmin", "no elements");
    tn_tensor *t = tn_amax(none, TN_DIMS(1));
    assert_int_equal(tn_size(t, 0), 0);
    assert_int_equal(tn_rank(t), 1);
    assert_int_equal(tn_numel(tn_argmax(none, 1, true)), 0);
}

static void dimensions_are_checked(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 1), 1, 2);
    assert_fails(tn_sum_dim(x, TN_DIMS(2)), TN_ERR_SHAPE, "tn_sum_dim", "dimension 2", "-2 to 1");
    assert_fails(tn_mean_dim(x, TN_DIMS(0, -2)), TN_ERR_INVALID_ARGUMENT, "tn_mean", "twice");
    assert_fails(tn_amax(x, TN_DIMS(1, 1)), TN_ERR_INVALID_ARGUMENT, "tn_amax", "dimension 1",
                 "twice");
    assert_fails(tn_cumsum(x, -3), TN_ERR_SHAPE, "tn_cumsum", "dimension -3");
    assert_fails(tn_softmax(x, 5), TN_ERR_SHAPE, "dimension 5");
}

/* ---- products, variances, logarithms ----------------------------------------------------- */

static void products_of_any_length(void **state) {
    for (int64_t n = 1; n <= 9; n++) {
        TN_SCOPE;
        double values[9], product = 1;
        for (int64_t i = 0; i < n; i++)
            product *= values[i] = 1 + 0.25 * (double)i;
        tn_tensor *x = of_values(TN_F64, TN_SHAPE(1, n), values, (uint64_t)n);
        assert_tensor(tn_prod_dim(x, 1), TN_F64, TN_SHAPE(1), 1e-14, product);
        assert_tensor(tn_prod_dim(x, -1, true), TN_F64, TN_SHAPE(1, 1), 1e-14, product);
    }
    TN_SCOPE;
    assert_tensor(tn_prod(of(TN_BOOL, TN_SHAPE(2), 1, 1)), TN_I64, TN_SCALAR_SHAPE, 0, 1);
}

static void gradients_of_a_product_pass_through_a_zero(void **state) {
    TN_SCOPE;
    tn_tensor *x = requiring_grad(of(TN_F64, TN_SHAPE(3), 2, 0, 5));
    assert_int_equal(tn_backward(tn_prod(x)), TN_OK);
    assert_tensor(tn_grad(x), TN_F64, TN_SHAPE(3), 0, 0, 10, 0);
}

static void variances_divide_by_what_is_left_of_n(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F64, TN_SHAPE(2, 3), 1, 2, 6, 4, 4, 4);
    assert_tensor(tn_var_dim(x, TN_DIMS(1)), TN_F64, TN_SHAPE(2), 1e-15, 7, 0);
    assert_tensor(tn_var_dim(x, TN_DIMS(-1), 0.0, true), TN_F64, TN_SHAPE(2, 1), 1e-15, 14. / 3, 0);
    assert_tensor(tn_var_dim(x, TN_DIMS(1), 3.0), TN_F64, TN_SHAPE(2), 0, INFINITY, NAN);
    assert_tensor(tn_var_dim(x, TN_DIMS(1), 4.0), TN_F64, TN_SHAPE(2), 0, INFINITY, NAN);
    assert_tensor(tn_std_dim(x, TN_DIMS(1)), TN_F64, TN_SHAPE(2), 1e-15, sqrt(7), 0);
    /* far from zero */
    tn_tensor *far = of(TN_F32, TN_SHAPE(4), 16777214, 16777215, 16777215, 16777216);
    assert_tensor(tn_var_dim(far), TN_F32, TN_SCALAR_SHAPE, 1e-6, 2. / 3);
    assert_fails(tn_var_dim(of(TN_I32, TN_SHAPE(2), 1, 2)), TN_ERR_DTYPE, "tn_var", "i32");
}

static void logsumexp_neither_overflows_nor_vanishes(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F32, TN_SHAPE(4, 2), 1000, 1000, -1000, -1000, 0, -INFINITY, INFINITY, 3);
    double ln2 = log(2);
    assert_tensor(tn_logsumexp(x, TN_DIMS(1)), TN_F32, TN_SHAPE(4), 1e-6, 1000 + ln2, -1000 + ln2,
                  0, INFINITY);
    tn_tensor *none = of(TN_F32, TN_SHAPE(2), -INFINITY, -INFINITY);
    assert_tensor(tn_logsumexp(none, TN_DIMS(0), true), TN_F32, TN_SHAPE(1), 0, -INFINITY);
    assert_tensor(tn_logsumexp(of(TN_I64, TN_SHAPE(2), 3, 3), TN_DIMS(0)), TN_F32, TN_SCALAR_SHAPE,
                  1e-6, 3 + ln2);
}

/* ---- extremes ---------------------------------------------------------------------------- */

static void extremes_of_integers_reach_both_ends(void **state) {
    TN_SCOPE;
    tn_tensor *bytes = of(TN_U8, TN_SHAPE(3), 0, 255, 1);
    assert_tensor(tn_amin(bytes), TN_U8, TN_SCALAR_SHAPE, 0, 0);
    assert_tensor(tn_amax(bytes), TN_U8, TN_SCALAR_SHAPE, 0, 255);
    tn_tensor *small = of(TN_I8, TN_SHAPE(3), 127, -128, 0);
    assert_tensor(tn_min(small), TN_I8, TN_SCALAR_SHAPE, 0, -128);
    assert_tensor(tn_argmin(small), TN_I64, TN_SCALAR_SHAPE, 0, 1);
    tn_tensor *mixed = of(TN_BOOL, TN_SHAPE(2, 2), 1, 1, 0, 1);
    assert_tensor(tn_amin(mixed, TN_DIMS(1)), TN_BOOL, TN_SHAPE(2), 0, 1, 0);
    assert_tensor(tn_amax(mixed, TN_DIMS(1)), TN_BOOL, TN_SHAPE(2), 0, 1, 1);
    assert_tensor(tn_any(mixed), TN_BOOL, TN_SCALAR_SHAPE, 0, 1);
    assert_tensor(tn_all(mixed), TN_BOOL, TN_SCALAR_SHAPE, 0, 0);
    assert_tensor(tn_any(of(TN_F32, TN_SHAPE(2), 0, 0.5)), TN_BOOL, TN_SCALAR_SHAPE, 0, 1);
}

static void the_first_extreme_is_found_and_the_first_nan(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F32, TN_SHAPE(3, 4), 1, 3, 3, 2, /**/ -1, -1, -2, -2, /**/ 1, NAN, 9, NAN);
    assert_tensor(tn_argmax(x, 1), TN_I64, TN_SHAPE(3), 0, 1, 0, 1);
    assert_tensor(tn_argmin(x, -1, true), TN_I64, TN_SHAPE(3, 1), 0, 0, 2, 1);
    assert_tensor(tn_argmax(x), TN_I64, TN_SCALAR_SHAPE, 0, 9);
    assert_tensor(tn_argmax(x, TN_NO_INT, true), TN_I64, TN_SHAPE(1, 1), 0, 9);
    assert_tensor(tn_argmax(tn_transpose(tn_narrow(x, 0, 0, 2), 0, 1)), TN_I64, TN_SCALAR_SHAPE, 0,
                  2);
    assert_tensor(tn_amax(x, TN_DIMS(1)), TN_F32, TN_SHAPE(3), 0, 3, -1, NAN);
    assert_tensor(tn_amin(x, TN_DIMS(1)), TN_F32, TN_SHAPE(3), 0, 1, -2, NAN);
    tn_tensor *values, *indices;
    assert_int_equal(tn_max_dim(x, 1, false, &values, &indices), TN_OK);
    assert_tensor(values, TN_F32, TN_SHAPE(3), 0, 3, -1, NAN);
    assert_tensor(indices, TN_I64, TN_SHAPE(3), 0, 1, 0, 1);
    assert_int_equal(tn_max_dim(x, 0, true, &values, &indices), TN_OK);
    assert_tensor(indices, TN_I64, TN_SHAPE(1, 4), 0, 0, 2, 2, 2);
}

static void equals_share_the_gradient_of_an_extreme(void **state) {
    TN_SCOPE;
    tn_tensor *x = requiring_grad(of(TN_F32, TN_SHAPE(4), 5, 1, 5, 1));
    assert_int_equal(tn_backward(tn_amax(x)), TN_OK);
    assert_tensor(tn_grad(x), TN_F32, TN_SHAPE(4), 0, 0.5, 0, 0.5, 0);
}

/* ---- order ------------------------------------------------------------------------------- */

static void sorting_is_stable_and_puts_nan_last(void **state) {
    TN_SCOPE;
    tn_tensor *values, *indices, *x = of(TN_F32, TN_SHAPE(5), 2, NAN, 1, 2, -1);
    assert_int_equal(tn_sort(x, 0, false, &values, &indices), TN_OK);
    assert_tensor(values, TN_F32, TN_SHAPE(5), 0, -1, 1, 2, 2, NAN);
    assert_tensor(indices, TN_I64, TN_SHAPE(5), 0, 4, 2, 0, 3, 1);
    assert_tensor(tn_argsort(x, -1, true), TN_I64, TN_SHAPE(5), 0, 1, 0, 3, 2, 4);
    tn_tensor *columns = of(TN_I32, TN_SHAPE(2, 2), 3, 1, 2, 4);
    assert_int_equal(tn_sort(columns, 0, false, &values, &indices), TN_OK);
    assert_tensor(values, TN_I32, TN_SHAPE(2, 2), 0, 2, 1, 3, 4);
    assert_tensor(indices, TN_I64, TN_SHAPE(2, 2), 0, 1, 0, 0, 1);
}

static void the_top_is_in_order(void **state) {
    TN_SCOPE;
    tn_tensor *values, *indices, *x = of(TN_F32, TN_SHAPE(2, 3), 1, 3, 2, 6, 5, 4);
    assert_int_equal(tn_topk(x, 2, -1, true, &values, &indices), TN_OK);
    assert_tensor(values, TN_F32, TN_SHAPE(2, 2), 0, 3, 2, 6, 5);
    assert_tensor(indices, TN_I64, TN_SHAPE(2, 2), 0, 1, 2, 0, 1);
    assert_true(tn_is_contiguous(values));
    assert_int_equal(tn_topk(x, 1, 0, false, &values, &indices), TN_OK);
    assert_tensor(values, TN_F32, TN_SHAPE(1, 3), 0, 1, 3, 2);
    assert_int_equal(tn_topk(x, 0, 1, true, &values, &indices), TN_OK);
    assert_int_equal(tn_size(values, 1), 0);
    assert_int_equal(tn_topk(x, 4, 1, true, &values, &indices), TN_ERR_INVALID_ARGUMENT);
    assert_null(values);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_topk", "k is 4", "[0, 3]", NULL);
}

static void running_sums_send_gradients_back_exactly(void **state) {
    TN_SCOPE;
    tn_tensor *x = requiring_grad(of(TN_F32, TN_SHAPE(3), 1, 2, 3));
    tn_tensor *factor = of(TN_F32, TN_SHAPE(3), INFINITY, 1, 1e-6);
    assert_int_equal(tn_backward(tn_sum(tn_mul(tn_cumsum(x, 0), factor))), TN_OK);
    assert_tensor(tn_grad(x), TN_F32, TN_SHAPE(3), 0, INFINITY, 1.0f + 1e-6f, 1e-6f);
}

static void products_run_over_zeros_and_in_i64(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 5), 2, 3, 0, 4, 5, -1, 2, -3, 4, 0.5);
    assert_tensor(tn_cumprod(x, 1), TN_F32, TN_SHAPE(2, 5), 0, 2, 6, 0, 0, 0, -1, -2, 6, 24, 12);
    assert_tensor(tn_cumprod(x, 0), TN_F32, TN_SHAPE(2, 5), 0, 2, 3, 0, 4, 5, -2, 6, 0, 16, 2.5);
    assert_tensor(tn_cumprod(of(TN_U8, TN_SHAPE(3), 200, 200, 200), 0), TN_I64, TN_SHAPE(3), 0, 200,
                  40000, 8000000);
    assert_tensor(tn_cumprod(of(TN_I32, TN_SHAPE(2), 3, 5), -1, TN_F32), TN_F32, TN_SHAPE(2), 0, 3,
                  15);
    assert_shape(tn_cumprod(tn_ones(TN_SHAPE(2, 0)), 1), 2, 0);
    tn_tensor *w = requiring_grad(of(TN_F64, TN_SHAPE(3), 2, 0, 3));
    assert_ok(tn_backward(tn_sum(tn_cumprod(w, 0))));
    assert_tensor(tn_grad(w), TN_F64, TN_SHAPE(3), 0, 1, 8, 0);
    assert_fails(tn_cumprod(x, 2), TN_ERR_SHAPE, "tn_cumprod: dim");
}

static void the_mode_is_the_smallest_of_the_most_frequent(void **state) {
    TN_SCOPE;
    tn_tensor *values, *indices;
    tn_tensor *x =
        of(TN_F32, TN_SHAPE(3, 6), 1, 3, 2, 3, 1, 7, 5, 4, 3, 2, 1, 0, NAN, 6, NAN, 6, 8, NAN);
    assert_ok(tn_mode(x, 1, false, &values, &indices));
    assert_tensor(values, TN_F32, TN_SHAPE(3), 0, 1, 0, 6);
    assert_tensor(indices, TN_I64, TN_SHAPE(3), 0, 4, 5, 3);
    assert_ok(tn_mode(of(TN_I8, TN_SHAPE(3, 1), -3, -3, 9), 0, true, &values, &indices));
    assert_tensor(values, TN_I8, TN_SHAPE(1, 1), 0, -3);
    assert_tensor(indices, TN_I64, TN_SHAPE(1, 1), 0, 1);
    assert_ok(tn_mode(of(TN_F64, TN_SCALAR_SHAPE, 4), 0, false, &values, &indices));
    assert_tensor(values, TN_F64, TN_SCALAR_SHAPE, 0, 4);
    assert_int_equal(tn_mode(tn_ones(TN_SHAPE(0)), 0, false, &values, &indices), TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "tn_mode", NULL);
}

static void whole_tensors_are_compared(void **state) {
    TN_SCOPE;
    bool is = false;
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 2), 1, 2, 3, 4);
    assert_ok(tn_equal(x, tn_t(of(TN_F32, TN_SHAPE(2, 2), 1, 3, 2, 4)), &is));
    assert_true(is);
    assert_ok(tn_equal(x, tn_to_dtype(x, TN_I32), &is));
    assert_true(is);
    assert_ok(tn_equal(x, of(TN_F32, TN_SHAPE(2, 2), 1, 2, 3, 5), &is));
    assert_false(is);
    is = true;
    assert_ok(tn_equal(x, tn_reshape(x, TN_SHAPE(4)), &is));
    assert_false(is);
    assert_ok(tn_equal(tn_ones(TN_SHAPE(0)), tn_zeros(TN_SHAPE(0)), &is));
    assert_true(is);
    tn_tensor *n = of(TN_F32, TN_SHAPE(1), NAN);
    assert_ok(tn_equal(n, n, &is));
    assert_false(is);
    assert_ok(tn_allclose(n, n, 0, 0, true, &is));
    assert_true(is);
    assert_ok(tn_allclose(x, tn_add(x, of(TN_F32, TN_SHAPE(1), 1e-3)), 0, 1e-2, false, &is));
    assert_true(is);
    assert_ok(tn_allclose(x, tn_add(x, of(TN_F32, TN_SHAPE(1), 1e-3)), 1e-4, 0, false, &is));
    assert_false(is);
    assert_int_equal(tn_equal(x, x, NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_equal: out is NULL", NULL);
    assert_int_equal(tn_allclose(x, of(TN_F32, TN_SHAPE(3), 1, 2, 3), 0, 0, false, &is),
                     TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "[3]", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(sums_go_over_any_dimensions),
        OPS_TEST(a_scalar_has_one_dimension_to_reduce),
        OPS_TEST(integers_and_bool_are_summed_in_i64),
        OPS_TEST(means_are_floating),
        OPS_TEST(nothing_has_a_sum_and_a_product_but_no_extreme),
        OPS_TEST(dimensions_are_checked),
        OPS_TEST(products_of_any_length),
        OPS_TEST(gradients_of_a_product_pass_through_a_zero),
        OPS_TEST(variances_divide_by_what_is_left_of_n),
        OPS_TEST(logsumexp_neither_overflows_nor_vanishes),
        OPS_TEST(extremes_of_integers_reach_both_ends),
        OPS_TEST(the_first_extreme_is_found_and_the_first_nan),
        OPS_TEST(equals_share_the_gradient_of_an_extreme),
        OPS_TEST(sorting_is_stable_and_puts_nan_last),
        OPS_TEST(the_top_is_in_order),
        OPS_TEST(products_run_over_zeros_and_in_i64),
        OPS_TEST(the_mode_is_the_smallest_of_the_most_frequent),
        OPS_TEST(whole_tensors_are_compared),
        OPS_TEST(running_sums_send_gradients_back_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
