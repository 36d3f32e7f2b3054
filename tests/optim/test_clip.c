/* Clipping of gradients; numbers are of the formula, which is torch.nn.utils'. */
#include "tests/optim/optim_test.h"

#include <tenon/graph.h>

/* Two parameters with gradients (3, -4) and (12), and one without. */
static void three_params(tn_tensor *params[3], tn_dtype first, tn_dtype second) {
    params[0] = param_of(first, (const double[]){0, 0}, 2);
    params[1] = param_of(first, (const double[]){0}, 1);
    params[2] = param_of(second, (const double[]){0}, 1);
    give_grad(params[0], (const double[]){3, -4});
    give_grad(params[2], (const double[]){12});
}

static void check_scaled(tn_tensor *params[3], double factor, double tolerance) {
    double a[2], b[1];
    read_values(tn_grad(params[0]), a, 2);
    read_values(tn_grad(params[2]), b, 1);
    assert_true(fabs(a[0] - 3 * factor) <= tolerance && fabs(a[1] + 4 * factor) <= tolerance);
    assert_true(fabs(b[0] - 12 * factor) <= tolerance);
    assert_null(tn_grad(params[1]));
}

static void norms_are_clipped(void **state) {
    static const struct { double type, norm; } norms[] = {{1, 19}, {2, 13}, {INFINITY, 12}};
    for (int i = 0; i < 3; i++) {
        TN_SCOPE;
        tn_tensor *params[3], *total;
        double value[1];
        three_params(params, TN_F64, TN_F64);
        assert_ok(tn_clip_grad_norm_(params, 3, 100, norms[i].type, true, &total));
        check_scaled(params, 1, 0);
        assert_ok(tn_clip_grad_norm_(params, 3, 2, norms[i].type, false, &total));
        read_values(total, value, 1);
        assert_true(fabs(value[0] - norms[i].norm) < 1e-12);
        assert_int_equal(tn_rank(total), 0);
        assert_false(tn_requires_grad(total));
        check_scaled(params, 2 / (norms[i].norm + 1e-6), 1e-14);
    }
}

static void dtypes_may_differ(void **state) {
    TN_SCOPE;
    tn_tensor *params[3], *total;
    double value[1];
    three_params(params, TN_BF16, TN_F32);
    assert_ok(tn_clip_grad_norm_(params, 3, 6.5, 2, false, &total));
    read_values(total, value, 1);
    assert_int_equal(tn_dtype_of(total), TN_F32);
    assert_true(value[0] == 13);
    check_scaled(params, 0.5, 1e-5);
    three_params(params, TN_F16, TN_F16);
    assert_ok(tn_clip_grad_norm_(params, 3, 6.5, 2, false, &total));
    assert_int_equal(tn_dtype_of(total), TN_F16);
    check_scaled(params, 0.5, 1e-2);
}

static void devices_may_differ(void **state) {
    TN_SCOPE;
    tn_tensor *params[] = {param_of(TN_F32, (const double[]){0, 0}, 2),
                           tn_set_requires_grad(tn_zeros(TN_SHAPE(1), TN_F32, cpu()), true)},
              *total;
    give_grad(params[0], (const double[]){3, -4});
    assert_ok(tn_set_grad(params[1], tn_full(TN_SHAPE(1), tn_float(12), TN_F32, cpu())));
    assert_ok(tn_clip_grad_norm_(params, 2, 6.5, 2, false, &total));
    assert_true(tn_device_equal(tn_device_of(total), here()));
    double a[2], b[1];
    read_values(tn_grad(params[0]), a, 2);
    read_values(tn_grad(params[1]), b, 1);
    assert_true(fabs(a[0] - 1.5) < 1e-5 && fabs(a[1] + 2) < 1e-5 && fabs(b[0] - 6) < 1e-5);
}

static void norms_that_are_not_finite(void **state) {
    TN_SCOPE;
    tn_tensor *params[3], *total = NULL;
    double a[2];
    three_params(params, TN_F32, TN_F32);
    give_grad(params[2], (const double[]){INFINITY});
    assert_int_equal(tn_clip_grad_norm_(params, 3, 1, 2, true, &total), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "the 2-norm of the gradients is inf",
                 "error_if_nonfinite");
    assert_null(total);
    read_values(tn_grad(params[0]), a, 2);
    assert_true(a[0] == 3); /* nothing was scaled */
    assert_ok(tn_clip_grad_norm_(params, 3, 1, 2, false, &total));
    read_values(tn_grad(params[0]), a, 2);
    assert_true(a[0] == 0);
    double last[1];
    read_values(tn_grad(params[2]), last, 1);
    assert_true(isnan(last[0]));
}

static void without_gradients_the_norm_is_zero(void **state) {
    TN_SCOPE;
    tn_tensor *param = param_of(TN_F32, (const double[]){1}, 1), *total;
    double value[1];
    assert_ok(tn_clip_grad_norm_(&param, 1, 1, 2, true, &total));
    read_values(total, value, 1);
    assert_true(value[0] == 0);
    assert_ok(tn_clip_grad_norm_(NULL, 0, 1, 2, true, NULL));
    assert_ok(tn_clip_grad_value_(NULL, 0, 1));
}

static void values_are_clipped(void **state) {
    TN_SCOPE;
    tn_tensor *params[3];
    double a[2], b[1];
    three_params(params, TN_F32, TN_BF16);
    assert_ok(tn_clip_grad_value_(params, 3, 3.5));
    read_values(tn_grad(params[0]), a, 2);
    read_values(tn_grad(params[2]), b, 1);
    assert_true(a[0] == 3 && a[1] == -3.5 && b[0] == 3.5);
}

static void what_cannot_be_is_refused(void **state) {
    tn_tensor *params[3];
    three_params(params, TN_F32, TN_F32);
    assert_int_equal(tn_clip_grad_norm_(params, 3, -1, 2, false, NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "max_norm is -1");
    assert_int_equal(tn_clip_grad_norm_(params, 3, 1, 3, false, NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "norm_type is 3", "INFINITY");
    assert_int_equal(tn_clip_grad_norm_(NULL, 3, 1, 2, false, NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "params is NULL");
    params[1] = NULL;
    assert_int_equal(tn_clip_grad_value_(params, 3, 1), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "parameter 1 is no tensor");
    assert_int_equal(tn_clip_grad_value_(params, 3, NAN), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "clip_value is nan");
}

static void empty_gradients_have_no_greatest(void **state) {
    TN_SCOPE;
    tn_tensor *params[2], *total;
    double value[1];
    params[0] = param_of(TN_F32, NULL, 0);
    params[1] = param_of(TN_F32, (const double[]){1}, 1);
    give_grad(params[0], NULL);
    give_grad(params[1], (const double[]){-2});
    assert_ok(tn_clip_grad_norm_(params, 2, 4, 2, false, &total));
    read_values(total, value, 1);
    assert_true(value[0] == 2);
    assert_int_not_equal(tn_clip_grad_norm_(params, 2, 4, INFINITY, false, &total), TN_OK);
    assert_error(TN_ERR_SHAPE, "tn_clip_grad_norm_: the gradient of parameter 0", "no elements");
}

/* ---- captured ---------------------------------------------------------------------------- */

typedef struct captured {
    tn_tensor *params[3], *total;
    bool checked;
} captured;

static tn_status clip(void *user) {
    captured *c = user;
    TN_SCOPE;
    tn_tensor *total;
    tn_status status = tn_clip_grad_norm_(c->params, 3, 6.5, 2, c->checked, &total);
    return status == TN_OK && !tn_copy_(c->total, total) ? tn_error_status() : status;
}

/* Nothing is read from the device, so clipping can be captured; what reads is refused. */
static void clipping_can_be_captured(void **state) {
    TN_SCOPE;
    captured c = {.checked = true};
    tn_graph *graph = NULL;
    double value[1];
    three_params(c.params, TN_F32, TN_F32);
    c.total = tn_zeros(TN_SCALAR_SHAPE, TN_F32, here());
    tn_status status = tn_graph_capture(here(), clip, &c, &graph);
    assert_true(status == TN_ERR_UNSUPPORTED || status == TN_ERR_STATE);
    tn_error_clear();
    if (status == TN_ERR_UNSUPPORTED) /* the device captures nothing */
        return;
    c.checked = false;
    assert_ok(tn_graph_capture(here(), clip, &c, &graph));
    assert_ok(tn_graph_replay(graph));
    read_values(c.total, value, 1);
    assert_true(value[0] == 13);
    check_scaled(c.params, 0.5, 1e-5);
    tn_graph_destroy(graph);
}

static void any_allocation_may_fail(void **state) {
    uint64_t made, at = 1;
    do {
        TN_SCOPE;
        tn_tensor *params[3], *total;
        three_params(params, TN_BF16, TN_F32);
        tni_alloc_fail_at(at);
        tn_status status = tn_clip_grad_norm_(params, 3, 1, 2, false, &total);
        if (status == TN_OK)
            status = tn_clip_grad_value_(params, 3, 1);
        made = tni_alloc_fail_at(0);
        if (status != TN_OK)
            assert_error(TN_ERR_OUT_OF_MEMORY, ""); /* a driver has words of its own */
    } while (made >= at++);
    assert_true(at > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(norms_are_clipped),
        TEST(dtypes_may_differ),
        TEST(devices_may_differ),
        TEST(norms_that_are_not_finite),
        TEST(without_gradients_the_norm_is_zero),
        TEST(values_are_clipped),
        TEST(what_cannot_be_is_refused),
        TEST(empty_gradients_have_no_greatest),
        TEST(clipping_can_be_captured),
        TEST(any_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("clipping", tests, NULL, NULL);
}
