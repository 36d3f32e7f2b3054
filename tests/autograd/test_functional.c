/* Derivatives of whole functions: against formulas, central differences and each other. */
#include "tests/autograd/autograd_test.h"

/* tanh(a b), and, where it is asked for, sum(a^2), which does not depend on b. */
static tn_status two(tn_tensor *const *in, uint64_t n_in, tn_tensor **out, uint64_t n_out,
                     void *user) {
    out[0] = tn_tanh(tn_matmul(in[0], in[1]));
    if (n_out > 1)
        out[1] = tn_sum(tn_mul(in[0], in[0]));
    return out[0] && out[n_out - 1] ? TN_OK : tn_error_status();
}

static tn_tensor *a(void) {
    return VALUES(TN_SHAPE(2, 2), 0.1, -0.4, 0.7, 0.2);
}

static tn_tensor *b(void) {
    return VALUES(TN_SHAPE(2, 1), 0.5, -0.3);
}

static const double step = 1e-6; /* of central differences */

static void tangents_are_differences(void **state) {
    TN_SCOPE;
    tn_tensor *in[] = {a(), b()}, *y[2], *t[2], *up[2] = {NULL}, *down[2] = {NULL};
    tn_tensor *v[] = {VALUES(TN_SHAPE(2, 2), 1, 2, -1, 0.5), VALUES(TN_SHAPE(2, 1), -2, 3)};
    assert_ok(tn_jvp(two, NULL, in, v, 2, false, y, t, 2));
    for (int side = 0; side < 2; side++) {
        tn_tensor *moved[2];
        for (int i = 0; i < 2; i++)
            moved[i] = tn_add(in[i], v[i], tn_float(side ? -step : step));
        assert_ok(two(moved, 2, side ? down : up, 2, NULL));
    }
    for (int j = 0; j < 2; j++) {
        assert_false(tn_requires_grad(t[j]));
        assert_false(tn_requires_grad(y[j]));
        tn_tensor *slope = tn_div_scalar(tn_sub(up[j], down[j]), tn_float(2 * step));
        tn_tensor *off = tn_reshape(tn_abs(tn_sub(slope, t[j])), TN_SHAPE(-1));
        assert_true(item(tn_amax(off, TN_SHAPE(0))) < 1e-8);
    }
    assert_values(t[1], 2 * (0.1 * 1 - 0.4 * 2 - 0.7 * 1 + 0.2 * 0.5));
    assert_false(tn_requires_grad(in[0]));
}

static tn_status cube(tn_tensor *const *in, uint64_t n_in, tn_tensor **out, uint64_t n_out,
                      void *user) {
    *(int *)user += 1;
    out[0] = tn_mul(tn_mul(in[0], in[0]), in[0]);
    return TN_OK;
}

/* (x^3)' v = 3 x^2 v, and its derivative 6 x v. */
static void tangents_can_be_differentiated(void **state) {
    TN_SCOPE;
    int runs = 0;
    tn_tensor *x = LEAF(TN_SHAPE(2), 2, -3), *v = VALUES(TN_SHAPE(2), 1, 10), *y, *t;
    assert_ok(tn_jvp(cube, &runs, &x, &v, 1, true, &y, &t, 1));
    assert_values(y, 8, -27);
    assert_values(t, 12, 270);
    assert_ok(tn_backward(tn_sum(t)));
    assert_values(tn_grad(x), 12, -180);
    assert_int_equal(runs, 1);
}

static tn_status constant(tn_tensor *const *in, uint64_t n_in, tn_tensor **out, uint64_t n_out,
                          void *user) {
    out[0] = tn_ones(TN_SHAPE(3), TN_F64, cpu());
    return TN_OK;
}

static tn_status linear(tn_tensor *const *in, uint64_t n_in, tn_tensor **out, uint64_t n_out,
                        void *user) {
    out[0] = tn_mul_scalar(in[0], tn_int(3));
    return TN_OK;
}

static void what_does_not_depend_is_zero(void **state) {
    TN_SCOPE;
    tn_tensor *x = VALUES(TN_SHAPE(2), 1, 2), *y, *t, *j;
    assert_ok(tn_jvp(constant, NULL, &x, &x, 1, false, &y, &t, 1));
    assert_values(t, 0, 0, 0);
    assert_ok(tn_jacobian(constant, NULL, &x, 1, false, &j));
    assert_int_equal(tn_rank(j), 2);
    assert_values(j, 0, 0, 0, 0, 0, 0);
    tn_tensor *one = VALUES(TN_SHAPE(1), 2);
    assert_ok(tn_hessian(linear, NULL, &one, 1, false, &j));
    assert_values(j, 0);
}

static void jacobians_have_both_shapes(void **state) {
    TN_SCOPE;
    tn_tensor *in[] = {a(), b()}, *j[2], *y[2], *t[2];
    assert_ok(tn_jacobian(two, NULL, in, 2, false, j));
    assert_int_equal(tn_rank(j[0]), 4);
    assert_int_equal(tn_rank(j[1]), 4);
    /* contracted with a tangent it is forward mode's */
    tn_tensor *v[] = {VALUES(TN_SHAPE(2, 2), 1, 2, -1, 0.5), VALUES(TN_SHAPE(2, 1), -2, 3)};
    assert_ok(tn_jvp(two, NULL, in, v, 2, false, y, t, 2));
    tn_tensor *sum =
        tn_add(tn_matmul(tn_reshape(j[0], TN_SHAPE(2, 4)), tn_reshape(v[0], TN_SHAPE(4))),
               tn_matmul(tn_reshape(j[1], TN_SHAPE(2, 2)), tn_reshape(v[1], TN_SHAPE(2))));
    tn_tensor *off = tn_abs(tn_sub(sum, tn_reshape(t[0], TN_SHAPE(2))));
    assert_true(item(tn_amax(off, TN_SHAPE(0))) < 1e-14);
}

/* sum(x^3) + sum(x) sum(w^2): blocks 6 diag(x), 2 w, 2 sum(x) I. */
static tn_status mixed(tn_tensor *const *in, uint64_t n_in, tn_tensor **out, uint64_t n_out,
                       void *user) {
    tn_tensor *x = in[0], *w = in[1];
    out[0] = tn_add(tn_sum(tn_mul(tn_mul(x, x), x)), tn_mul(tn_sum(x), tn_sum(tn_mul(w, w))));
    return TN_OK;
}

static void hessians_have_blocks(void **state) {
    TN_SCOPE;
    tn_tensor *in[] = {VALUES(TN_SHAPE(2), 1, 2), VALUES(TN_SHAPE(1), 5)}, *h[4];
    assert_ok(tn_hessian(mixed, NULL, in, 2, false, h));
    assert_values(h[0], 6, 0, 0, 12);
    assert_values(h[1], 10, 10);
    assert_values(h[2], 10, 10);
    assert_values(h[3], 6);
    assert_int_equal(tn_rank(h[1]), 2);
    assert_int_equal(tn_size(h[1], 0), 2);
    assert_false(tn_requires_grad(h[0]));
    /* the third derivative */
    tn_tensor *x = LEAF(TN_SHAPE(2), 1, 2), *with[] = {x, in[1]};
    assert_ok(tn_hessian(mixed, NULL, with, 2, true, h));
    assert_ok(tn_backward(tn_sum(h[0])));
    assert_values(tn_grad(x), 6, 6);
}

static tn_status by_log(tn_tensor *const *in, uint64_t n_in, tn_tensor **out, uint64_t n_out,
                        void *user) {
    out[0] = tn_xlogy(in[0], tn_zeros_like(in[0]));
    return TN_OK;
}

/* Formulas may have a special case of gradients that are 0: x log(0) has the slope -inf. */
static void tangents_are_not_those_at_zero(void **state) {
    TN_SCOPE;
    tn_tensor *x = VALUES(TN_SHAPE(1), 0.5), *v = VALUES(TN_SHAPE(1), 1), *y, *t;
    assert_ok(tn_jvp(by_log, NULL, &x, &v, 1, false, &y, &t, 1));
    assert_true(item(t) == -INFINITY);
}

static tn_status save_and_double(tn_function_context *context, tn_tensor *const *inputs,
                                 uint64_t n_inputs, tn_tensor **outputs, uint64_t n_outputs,
                                 void *user) {
    outputs[0] = tn_mul_scalar(inputs[0], tn_int(2));
    return TN_OK;
}

static tn_status double_unseen(tn_function_context *context, tn_tensor *const *output_grads,
                               uint64_t n_outputs, tn_tensor **grads, uint64_t n_inputs,
                               void *user) {
    TN_NO_GRAD;
    grads[0] = tn_mul_scalar(output_grads[0], tn_int(2));
    return TN_OK;
}

static tn_status once_only(tn_tensor *const *in, uint64_t n_in, tn_tensor **out, uint64_t n_out,
                           void *user) {
    static const tn_function doubling = {"DoubleBackward", save_and_double, double_unseen, NULL};
    return tn_function_apply(&doubling, NULL, in, 1, out, 1);
}

static tn_status steps(tn_tensor *const *in, uint64_t n_in, tn_tensor **out, uint64_t n_out,
                       void *user) {
    out[0] = tn_floor(in[0]);
    return TN_OK;
}

/* Two passes need derivatives of derivatives; where there are none that is an error and no 0. */
static void what_is_differentiable_once_is_told(void **state) {
    TN_SCOPE;
    tn_tensor *x = VALUES(TN_SHAPE(2), 1.5, 2.5), *y, *t, *j;
    assert_int_equal(tn_jvp(once_only, NULL, &x, &x, 1, false, &y, &t, 1), TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED, "input 0", "once only", "tn_jacobian");
    assert_ok(tn_jacobian(once_only, NULL, &x, 1, false, &j));
    assert_values(j, 2, 0, 0, 2);
    assert_ok(tn_jvp(steps, NULL, &x, &x, 1, false, &y, &t, 1));
    assert_values(t, 0, 0);
}

static tn_status fails(tn_tensor *const *in, uint64_t n_in, tn_tensor **out, uint64_t n_out,
                       void *user) {
    return user ? tn_fail(TN_ERR_UNSUPPORTED, "not today") : TN_OK;
}

static void wrong_calls_are_told(void **state) {
    TN_SCOPE;
    tn_tensor *x = VALUES(TN_SHAPE(2), 1, 2), *whole = tn_to_dtype(x, TN_I64), *out[4], *t[4];
    tn_tensor *other = VALUES(TN_SHAPE(3), 1, 2, 3);
    assert_int_equal(tn_hessian(linear, NULL, &x, 1, false, out), TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "tn_hessian", "[2]", "one element");
    assert_int_equal(tn_jacobian(linear, NULL, &whole, 1, false, out), TN_ERR_DTYPE);
    assert_error(TN_ERR_DTYPE, "input 0 is i64");
    assert_int_equal(tn_jvp(linear, NULL, &x, &other, 1, false, out, t, 1), TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "tangent 0", "f64[3]", "f64[2]");
    assert_int_equal(tn_jacobian(fails, "", &x, 1, false, out), TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED, "not today");
    assert_null(out[0]);
    assert_int_equal(tn_jacobian(fails, NULL, &x, 1, false, out), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "output 0 unset");
    assert_int_equal(tn_jacobian(linear, NULL, NULL, 0, false, out), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "no inputs");
    {
        TN_NO_GRAD;
        assert_ok(tn_jacobian(linear, NULL, &x, 1, false, out));
        assert_values(out[0], 3, 0, 0, 3);
        assert_false(tn_grad_enabled());
    }
}

static tn_status all(void) {
    TN_SCOPE;
    tn_tensor *in[] = {a(), b()}, *y[2], *t[2], *h[4];
    tn_status status = in[1] ? tn_jvp(two, NULL, in, in, 2, false, y, t, 2) : tn_error_status();
    if (status == TN_OK)
        status = tn_hessian(mixed, NULL, in, 2, false, h);
    return status;
}

static void every_allocation_fails_once(void **state) {
    assert_ok(all());
    uint64_t failed = 0;
    for (uint64_t n = 1;; n++) {
        int64_t alive = tni_tensors_alive();
        tn_scope outer = tn_scope_open();
        tni_alloc_fail_at(n);
        tn_status status = all();
        bool whole = tni_alloc_fail_at(0) < n;
        tn_scope_close(outer);
        if (status != TN_OK)
            assert_error(TN_ERR_OUT_OF_MEMORY, "memory");
        tn_error_clear();
        assert_int_equal(tni_tensors_alive(), alive);
        failed += status != TN_OK;
        if (whole)
            break;
    }
    assert_true(failed >= 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(tangents_are_differences),
        TEST(tangents_can_be_differentiated),
        TEST(what_does_not_depend_is_zero),
        TEST(jacobians_have_both_shapes),
        TEST(hessians_have_blocks),
        TEST(tangents_are_not_those_at_zero),
        TEST(what_is_differentiable_once_is_told),
        TEST(wrong_calls_are_told),
        TEST(every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
