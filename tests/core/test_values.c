/* What a call gives where devices, frameworks and mathematics could each say something else: scalars
 * beyond a dtype, infinities and NaN, integers rounded, halves computed in several steps, and what
 * recording adds. docs/values.md says it in words; PyTorch 2.15 gives the same. */
#include "tests/core/ops_test.h"

#include <stdlib.h>
#include <string.h>

/* ---- comparisons ------------------------------------------------------------------------- */

typedef tn_tensor *compare_fn(tn_tensor *, tn_scalar);
static compare_fn *const comparisons[] = {tn_eq_scalar, tn_ne_scalar, tn_lt_scalar,
                                          tn_le_scalar, tn_gt_scalar, tn_ge_scalar};

/* The six answers, eq ne lt le gt ge, for each element. */
static void check_comparisons(tn_tensor *x, tn_scalar scalar, const double *expected) {
    int64_t n = tn_numel(x);
    for (int64_t i = 0; i < 6; i++) {
        tn_tensor *y = comparisons[i](x, scalar);
        assert_int_equal(tn_dtype_of(y), TN_BOOL);
        assert_values(y, TN_SHAPE(n), 0, expected + i * n);
    }
}

static void nothing_compares_with_nan(void **state) {
    const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16, TN_I64, TN_U8};
    const double expected[] = {0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0};
    for (int i = 0; i < 6; i++)
        check_comparisons(of(dtypes[i], TN_SHAPE(2), 1, 2), tn_float(NAN), expected);
    check_comparisons(of(TN_F32, TN_SHAPE(2), NAN, INFINITY), tn_float(INFINITY),
                      (const double[]){0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1});
}

static void a_scalar_becomes_an_element_first(void **state) {
    check_comparisons(of(TN_U8, TN_SHAPE(3), 1, 2, 255), tn_int(-1),
                      (const double[]){0, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0, 1});
    check_comparisons(of(TN_I8, TN_SHAPE(2), 1, 44), tn_int(300), /* 44 */
                      (const double[]){0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 0, 1});
    check_comparisons(of(TN_I16, TN_SHAPE(2), -1, 0), tn_int(65535), /* -1 */
                      (const double[]){1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 1});
    check_comparisons(of(TN_I32, TN_SHAPE(2), 5, 6), tn_int(((int64_t)1 << 32) + 5),
                      (const double[]){1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 1});
    for (int half = 0; half < 2; half++) {
        tn_tensor *x = of(half ? TN_F16 : TN_BF16, TN_SHAPE(2), 0.1, 0.2);
        check_comparisons(x, tn_float(0.1), (const double[]){1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 1});
    }
    /* strided, so that the call takes the long way */
    tn_tensor *x = tn_slice(of(TN_U8, TN_SHAPE(4), 1, 9, 255, 9), 0, TN_NO_INT, TN_NO_INT, 2);
    assert_elements(tn_gt_scalar(x, tn_int(-1)), TN_SHAPE(2), 0, 0);
    assert_elements(tn_bitwise_and_scalar(x, tn_int(-2)), TN_SHAPE(2), 0, 254);
    /* a floating scalar promotes, so nothing is beyond the dtype */
    assert_elements(tn_gt_scalar(of(TN_U8, TN_SHAPE(2), 1, 255), tn_float(-1)), TN_SHAPE(2), 1, 1);
    /* bounds do not wrap: beyond the dtype they bound nothing */
    assert_elements(tn_clamp(of(TN_U8, TN_SHAPE(2), 1, 255), tn_int(-300), tn_int(200)),
                    TN_SHAPE(2), 1, 200);
    assert_elements(tn_clamp(of(TN_I8, TN_SHAPE(2), -128, 127), tn_int(-300), tn_int(300)),
                    TN_SHAPE(2), -128, 127);
}

/* ---- arithmetic -------------------------------------------------------------------------- */

static void remainder_is_exact(void **state) {
    const double x[] = {3,   -3,       16777217, 1e10, 100.5, 3e38,    -5.5,
                        5.5, INFINITY, NAN,      1,    7,     0x1p-140};
    const double y[] = {INFINITY, INFINITY, 0.1, 3, 1e-7, 7.25, 2, -2, 3, 1, 0, NAN, 0x1p-130};
    enum { N = sizeof x / sizeof *x };
    const tn_dtype dtypes[] = {TN_F32, TN_F64};
    for (int i = 0; i < 2; i++) {
        double expected[N];
        tn_tensor *a = of_values(dtypes[i], TN_SHAPE(N), x, N);
        tn_tensor *b = of_values(dtypes[i], TN_SHAPE(N), y, N);
        double *u = values_of(a), *v = values_of(b);
        for (int e = 0; e < N; e++) {
            expected[e] = fmod(u[e], v[e]);
            if (expected[e] != 0 && (expected[e] < 0) != (v[e] < 0))
                expected[e] += v[e];
        }
        assert_values(tn_remainder(a, b), TN_SHAPE(N), 0, expected);
        free(u);
        free(v);
    }
    assert_elements(tn_remainder(of(TN_I32, TN_SHAPE(4), 7, -7, 5, INT32_MIN),
                                 of(TN_I32, TN_SHAPE(4), 3, 3, 0, -1)),
                    TN_SHAPE(4), 1, 2, 0, 0);
}

static void check_signs(tn_tensor *t, const char *signs) {
    double *v = values_of(t);
    for (int i = 0; signs[i]; i++)
        if (v[i] != 0 || (signs[i] == '-') != (signbit(v[i]) != 0))
            fail_msg("element %d is %g, not a zero of sign %c", i, v[i], signs[i]);
    free(v);
}

static void zeros_keep_their_sign(void **state) {
    tn_tensor *zeros = of(TN_F32, TN_SHAPE(2), -0.0, 0.0);
    check_signs(tn_relu(zeros), "-+");
    check_signs(tn_clamp(zeros, tn_int(0)), "-+");
    check_signs(tn_clamp(zeros, tn_int(-1), tn_int(0)), "-+");
    check_signs(tn_floor_divide(zeros, tn_ones(TN_SHAPE(1))), "-+");
    tn_tensor *small = of(TN_F32, TN_SHAPE(4), -0.3, 0.3, -0.5, 0.5);
    check_signs(tn_round(small), "-+-+");
    check_signs(tn_trunc(small), "-+-+");
    check_signs(tn_ceil(tn_slice(small, 0, 0, 1)), "-");
    assert_elements(tn_clamp(of(TN_F32, TN_SHAPE(2), 1, NAN), tn_float(NAN)), TN_SHAPE(2), NAN,
                    NAN);
}

static void rounding_leaves_integers(void **state) {
    typedef tn_tensor *unary_fn(tn_tensor *);
    unary_fn *const functional[] = {tn_floor, tn_ceil, tn_trunc, tn_round};
    unary_fn *const in_place[] = {tn_floor_, tn_ceil_, tn_trunc_, tn_round_};
    const tn_dtype dtypes[] = {TN_I64, TN_I32, TN_I16, TN_I8, TN_U8};
    for (int i = 0; i < 4; i++) {
        for (int d = 0; d < 5; d++) {
            tn_tensor *x = of(dtypes[d], TN_SHAPE(2), 3, 7);
            assert_tensor(functional[i](x), dtypes[d], TN_SHAPE(2), 0, 3, 7);
            assert_ptr_equal(in_place[i](x), x);
            assert_elements(x, TN_SHAPE(2), 3, 7);
        }
        int64_t large = ((int64_t)1 << 53) + 1, back;
        tn_tensor *y = functional[i](tn_full(TN_SHAPE(1), tn_int(large)));
        assert_ok(tn_to_host(y, &back, sizeof back));
        assert_int_equal(back, large);
        assert_fails(functional[i](tn_ones(TN_SHAPE(1), TN_BOOL)), TN_ERR_DTYPE,
                     "not defined for bool");
    }
    tn_tensor *x = of(TN_I32, TN_SHAPE(2), 3, 7), *y = tn_floor(x);
    assert_ptr_not_equal(x, y);
    tn_add_scalar_(y, tn_int(1));
    assert_elements(x, TN_SHAPE(2), 3, 7);
    tn_tensor *out = tn_zeros(TN_SHAPE(2));
    assert_ptr_equal(tn_floor_out(x, out), out);
    assert_elements(out, TN_SHAPE(2), 3, 7);
    assert_fails(tn_floor_out(x, tn_zeros(TN_SHAPE(3))), TN_ERR_SHAPE, "tn_floor_out", "[3]");
}

static void the_square_of_a_truth_is_a_number(void **state) {
    tn_tensor *x = of(TN_BOOL, TN_SHAPE(2), 1, 0);
    assert_tensor(tn_square(x), TN_I64, TN_SHAPE(2), 0, 1, 0);
    assert_fails(tn_square_(x), TN_ERR_DTYPE, "tn_square_");
}

/* ---- halves ------------------------------------------------------------------------------ */

static void formulas_on_halves_are_computed_in_f32(void **state) {
    assert_close(tn_sigmoid(of(TN_F16, TN_SHAPE(1), -15)), 3e-8, TN_SHAPE(1), 3.0591e-7);
    assert_close(tn_silu(of(TN_F16, TN_SHAPE(1), -12)), 6e-8, TN_SHAPE(1), -7.373e-5);
    assert_close(tn_gelu(of(TN_BF16, TN_SHAPE(1), -3)), 2e-5, TN_SHAPE(1), -0.00405);
    /* self + 0.5 (end - self), where end - self overflows f16 */
    assert_elements(tn_lerp_scalar(of(TN_F16, TN_SHAPE(1), -40000), of(TN_F16, TN_SHAPE(1), 40000),
                                   tn_float(0.5)),
                    TN_SHAPE(1), 0);
    tn_tensor *x = of(TN_F16, TN_SHAPE(2), 300, 400);
    assert_tensor(tn_norm(x), TN_F16, TN_SHAPE(), 0, 500);
    assert_tensor(tn_mse_loss(x, tn_zeros_like(x), "mean"), TN_F16, TN_SHAPE(), 0, INFINITY);
    x = of(TN_F16, TN_SHAPE(2), 200, 100);
    assert_tensor(tn_mse_loss(x, tn_zeros_like(x), "mean"), TN_F16, TN_SHAPE(), 0, 24992);
}

/* 0.025 has 0.02499 as its nearest; with a factor that is a half first it would be 0.02501. */
static void a_scalar_beside_halves_stays_exact(void **state) {
    const tn_dtype halves[] = {TN_F16, TN_BF16};
    const double expected[] = {-0.0249938965, -0.02502441};
    for (int i = 0; i < 2; i++) {
        tn_tensor *x = of(halves[i], TN_SHAPE(2), -2.5, 0);
        assert_tensor(tn_mul_scalar(x, tn_float(0.01)), halves[i], TN_SHAPE(2), 1e-8, expected[i],
                      0);
        assert_tensor(tn_leaky_relu(x, tn_float(0.01)), halves[i], TN_SHAPE(2), 1e-8, expected[i],
                      0);
    }
    tn_tensor *x = of(TN_F16, TN_SHAPE(1), 1);
    assert_elements(tn_add_scalar(x, tn_float(2049.5), tn_int(1)), TN_SHAPE(1), 2050);
    assert_elements(tn_add_scalar_(x, tn_float(2049.5), tn_int(1)), TN_SHAPE(1), 2050);
}

static void optimizers_step_halves_in_f32(void **state) {
    for (int half = 0; half < 2; half++) {
        tn_dtype dtype = half ? TN_F16 : TN_BF16;
        tn_tensor *param = of(dtype, TN_SHAPE(1), 1.0 / 3), *grad = of(dtype, TN_SHAPE(1), 1e-4);
        tn_tensor *mean = tn_zeros_like(param), *square = tn_zeros_like(param);
        assert_ok(
            tn_fused_adamw_(param, grad, mean, square, 1e-3, 0.9, 0.999, 1e-8, 0.01, 1, false));
        assert_close(param, half ? 2e-4 : 2e-3, TN_SHAPE(1), 0.3323);
        assert_int_equal(tn_dtype_of(param), dtype);
        /* 1 + 0.1 * 2^-8 is 1 in a half: what the momentum carries must not be lost on the way */
        param = of(dtype, TN_SHAPE(1), 1);
        tn_tensor *momentum = of(dtype, TN_SHAPE(1), 1);
        assert_ok(tn_fused_sgd_(param, of(dtype, TN_SHAPE(1), 0), momentum, 0.1, 0.5, 0, 0, false,
                                false));
        assert_close(param, half ? 1e-3 : 4e-3, TN_SHAPE(1), 0.95);
        assert_elements(momentum, TN_SHAPE(1), 0.5);
    }
}

/* ---- recording --------------------------------------------------------------------------- */

static tn_tensor *sum_of(tn_tensor *t) {
    return tn_sum(t);
}

static void a_product_of_nothing_has_a_gradient(void **state) {
    tn_tensor *x = requiring_grad(tn_zeros(TN_SHAPE(0)));
    assert_ok(tn_backward(tn_prod(x)));
    assert_shape(tn_grad(x), 0);
    x = requiring_grad(tn_zeros(TN_SHAPE(2, 0)));
    assert_ok(tn_backward(sum_of(tn_prod_dim(x, 1))));
    assert_shape(tn_grad(x), 2, 0);
    assert_elements(tn_prod_dim(x, 1), TN_SHAPE(2), 1, 1);
}

typedef struct recorded {
    tn_tensor *x, *y, *z;
} recorded;

static tn_tensor *call(int which, const recorded *r) {
    switch (which) {
    case 0:
        return tn_prod_dim(r->x, 1);
    case 1:
        return tn_prod(tn_slice(r->x, 0, 0, 1));
    case 2:
        return tn_var_dim(r->x, TN_SHAPE(1));
    case 3:
        return tn_std_dim(r->x, TN_SHAPE(1));
    case 4:
        return tn_softmax_backward(r->x, r->y, 1);
    case 5:
        return tn_log_softmax_backward(r->x, r->y, 1);
    case 6:
        return tn_sigmoid_backward(r->x, r->y);
    case 7:
        return tn_tanh_backward(r->x, r->y);
    case 8:
        return tn_silu_backward(r->x, r->y);
    case 9:
        return tn_gelu_backward(r->x, r->y, "none");
    case 10:
        return tn_gelu_backward(r->x, r->y, "tanh");
    case 11:
        return tn_layer_norm_backward(r->x, r->y, tn_mean_dim(r->y, TN_SHAPE(1), true),
                                      tn_narrow(r->z, 1, 0, 1), TN_NONE, TN_SHAPE(5));
    default:
        return NULL;
    }
}

static void recording_changes_no_bit(void **state) {
    const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
    for (int d = 0; d < 4; d++) {
        recorded plain = {
            .x = tn_mul_scalar(noise(dtypes[d], TN_SHAPE(64, 5), 1), tn_float(0.7)),
            .y = tn_mul_scalar(noise(dtypes[d], TN_SHAPE(64, 5), 2), tn_float(0.7)),
        };
        plain.z = tn_exp(plain.x);
        recorded r = {.x = requiring_grad(tn_clone(plain.x)),
                      .y = requiring_grad(tn_clone(plain.y)),
                      .z = plain.z};
        for (int which = 0; which < 12; which++) {
            tn_tensor *a = call(which, &plain), *b = call(which, &r);
            assert_true(tn_requires_grad(b) && !tn_requires_grad(a));
            assert_same(a, tn_detach(b));
            assert_ok(tn_backward(sum_of(b)));
        }
    }
}

static void gradients_at_the_edges(void **state) {
    tn_tensor *x = requiring_grad(of(TN_F32, TN_SHAPE(5), -2, -1, 0, 1, 2));
    assert_ok(tn_backward(sum_of(tn_clamp(x, tn_int(-1), tn_int(1)))));
    assert_elements(tn_grad(x), TN_SHAPE(5), 0, 0, 1, 0, 0);
    x = requiring_grad(
        of(TN_F32, TN_SHAPE(1), 3e-26)); /* 1 / sqrt(x)^3 is 1.9e38, half of it 0.96e38 */
    assert_ok(tn_backward(sum_of(tn_rsqrt(x))));
    assert_close(tn_div_scalar(tn_grad(x), tn_float(1e38)), 1e-3, TN_SHAPE(1), -0.9623);
    x = requiring_grad(
        of(TN_F32, TN_SHAPE(1), 1.6e-26)); /* 4.94e38, which is no f32, and 2.47e38 */
    assert_ok(tn_backward(sum_of(tn_rsqrt(x))));
    assert_close(tn_div_scalar(tn_grad(x), tn_float(1e38)), 1e-3, TN_SHAPE(1), -2.4705);
    /* 1 / 300^2 in f16 by way of 300 * 300, which f16 has not */
    x = requiring_grad(of(TN_F16, TN_SHAPE(1), 300));
    assert_ok(tn_backward(sum_of(tn_div(tn_full_like(x, tn_int(3)), x))));
    assert_close(tn_grad(x), 3e-8, TN_SHAPE(1), -3.0 / 90000);
    tn_tensor *a = requiring_grad(of(TN_F16, TN_SHAPE(1), 1)), *b = of(TN_F16, TN_SHAPE(1), 60000);
    tn_tensor *c = requiring_grad(of(TN_F16, TN_SHAPE(1), 1000));
    assert_ok(tn_backward(sum_of(tn_addcdiv(a, b, c, tn_int(10)))));
    assert_close(tn_grad(c), 4e-4, TN_SHAPE(1), -0.6); /* 600000 on the way */
}

/* The gradient of a sum of y by x. */
static tn_tensor *slope(tn_tensor *y, tn_tensor *x) {
    assert_ok(tn_backward(sum_of(y)));
    return tn_grad(x);
}

static void gradients_at_a_minimum(void **state) {
    tn_tensor *x = requiring_grad(of(TN_F32, TN_SHAPE(2, 2), 0, 0, 3, 4));
    assert_close(slope(tn_norm_scalaropt_dim(x, tn_int(2), TN_DIMS(1)), x), 1e-7, TN_SHAPE(2, 2), 0,
                 0, 0.6, 0.8);
    x = requiring_grad(of(TN_F32, TN_SHAPE(2), 0, 0));
    assert_elements(slope(tn_norm_scalaropt_dim(x, tn_int(3), TN_DIMS(0)), x), TN_SHAPE(2), 0, 0);
    x = requiring_grad(of(TN_F64, TN_SHAPE(2), 0, 0));
    assert_elements(slope(tn_norm(x), x), TN_SHAPE(2), 0, 0);
    x = requiring_grad(of(TN_F16, TN_SHAPE(3), 5, 5, 5));
    assert_elements(slope(tn_std_dim(x, TN_DIMS(0)), x), TN_SHAPE(3), 0, 0, 0);
}

/* The narrow operand joins in the dtype of the result, in the formula too. */
static void formulas_of_several_dtypes(void **state) {
    tn_tensor *g = requiring_grad(of(TN_F32, TN_SHAPE(2), 1, 1));
    tn_tensor *y = of(TN_U8, TN_SHAPE(2), 2, 3);
    assert_elements(slope(tn_tanh_backward(g, y), g), TN_SHAPE(2), -3, -8);
    g = requiring_grad(of(TN_F32, TN_SHAPE(1), 1));
    y = of(TN_BF16, TN_SHAPE(1), 0.8125);
    assert_elements(slope(tn_tanh_backward(g, y), g), TN_SHAPE(1), 1 - 0.8125 * 0.8125);
    tn_tensor *exponent = requiring_grad(of(TN_F64, TN_SHAPE(1), 2));
    assert_close(slope(tn_pow(of(TN_I8, TN_SHAPE(1), 3), exponent), exponent), 1e-15, TN_SHAPE(1),
                 9 * log(3));
}

static void a_rounded_quotient_has_no_slope(void **state) {
    tn_tensor *x = requiring_grad(of(TN_F32, TN_SHAPE(3), 1, INFINITY, NAN));
    assert_elements(slope(tn_div_tensor_mode(x, of(TN_F32, TN_SHAPE(3), 0, 2, 1), "trunc"), x),
                    TN_SHAPE(3), 0, 0, 0);
}

static void note_gradient(const tn_op_info *info, void *user) {
    snprintf(user, 16, "%s", info->gradient);
}

static void what_decomposes_is_differentiable(void **state) {
    const char *const names[] = {
        "prod.dim",      "softmax_backward", "sigmoid_backward",    "tanh_backward",
        "silu_backward", "gelu_backward",    "layer_norm_backward", "log_softmax_backward"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char gradient[16];
        assert_ok(tn_op_describe(names[i], note_gradient, gradient));
        assert_string_equal(gradient, "composite");
    }
}

/* ---- more arguments ---------------------------------------------------------------------- */

static void truths_over_dimensions(void **state) {
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 3), 0, NAN, 0, 0, 2, 3);
    assert_tensor(tn_any_dim(x, TN_SHAPE(0)), TN_BOOL, TN_SHAPE(3), 0, 0, 1, 1);
    assert_tensor(tn_all_dim(x, TN_SHAPE(0)), TN_BOOL, TN_SHAPE(3), 0, 0, 1, 0);
    assert_tensor(tn_any_dim(x, TN_SHAPE(-1, 0), true), TN_BOOL, TN_SHAPE(1, 1), 0, 1);
    x = tn_zeros(TN_SHAPE(2, 0), TN_U8);
    assert_elements(tn_any_dim(x, TN_SHAPE(1)), TN_SHAPE(2), 0, 0);
    assert_elements(tn_all_dim(x, TN_SHAPE(1)), TN_SHAPE(2), 1, 1);
    assert_fails(tn_any_dim(x, TN_SHAPE(2)), TN_ERR_SHAPE, "tn_any_dim");
}

static void the_smallest_and_its_place(void **state) {
    tn_tensor *values, *indices, *x = requiring_grad(of(TN_F32, TN_SHAPE(2, 3), 3, 1, 1, -1, 0, 5));
    assert_ok(tn_min_dim(x, 1, false, &values, &indices));
    assert_elements(values, TN_SHAPE(2), 1, -1);
    assert_tensor(indices, TN_I64, TN_SHAPE(2), 0, 1, 0);
    assert_ok(tn_backward(tn_sum(values)));
    assert_elements(tn_grad(x), TN_SHAPE(2, 3), 0, 1, 0, 1, 0, 0);
}

static void bounds_and_weights_that_are_tensors(void **state) {
    tn_tensor *x = requiring_grad(of(TN_F32, TN_SHAPE(4), -2, 0.5, 3, NAN));
    tn_tensor *low = of(TN_F32, TN_SHAPE(4), -1, 1, 0, 0), *high = of(TN_F32, TN_SHAPE(1), 2);
    tn_tensor *y = tn_clamp_tensor(x, low, high);
    assert_elements(y, TN_SHAPE(4), -1, 1, 2, NAN);
    assert_ok(tn_backward(tn_sum(tn_slice(y, 0, 0, 3))));
    assert_elements(tn_grad(x), TN_SHAPE(4), 0, 0, 0, 0);
    assert_elements(tn_clamp_tensor(tn_detach(x), TN_NONE, of(TN_F32, TN_SHAPE(), NAN)),
                    TN_SHAPE(4), NAN, NAN, NAN, NAN);
    assert_elements(tn_lerp(of(TN_F32, TN_SHAPE(2), 1, 10), of(TN_F32, TN_SHAPE(2), 3, 20),
                            of(TN_F32, TN_SHAPE(2), 0.5, 0.25)),
                    TN_SHAPE(2), 2, 12.5);
}

static void quotients_are_rounded_both_ways(void **state) {
    const tn_dtype dtypes[] = {TN_F32, TN_I32, TN_I8};
    for (int i = 0; i < 3; i++) {
        tn_tensor *a = of(dtypes[i], TN_SHAPE(5), 7, -7, 7, -7, 6);
        tn_tensor *b = of(dtypes[i], TN_SHAPE(5), 2, 2, -2, -2, -3);
        assert_tensor(tn_div_tensor_mode(a, b, "trunc"), dtypes[i], TN_SHAPE(5), 0, 3, -3, -3, 3,
                      -2);
        assert_tensor(tn_div_tensor_mode(a, b, "floor"), dtypes[i], TN_SHAPE(5), 0, 3, -4, -4, 3,
                      -2);
    }
    assert_elements(
        tn_div_tensor_mode(of(TN_I64, TN_SHAPE(1), -5), of(TN_I64, TN_SHAPE(1), 0), "trunc"),
        TN_SHAPE(1), 0);
    assert_fails(tn_div_tensor_mode(tn_ones(TN_SHAPE(1)), tn_ones(TN_SHAPE(1)), "up"),
                 TN_ERR_INVALID_ARGUMENT, "rounding_mode");
}

static void norms_of_any_order(void **state) {
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 2), 3, -4, 0, 2);
    tn_ints last = TN_SHAPE(1);
    assert_elements(tn_norm_scalaropt_dim(x, tn_no_scalar(), last), TN_SHAPE(2), 5, 2);
    assert_elements(tn_norm_scalaropt_dim(x, tn_int(1), last, true), TN_SHAPE(2, 1), 7, 2);
    assert_elements(tn_norm_scalaropt_dim(x, tn_int(0), last), TN_SHAPE(2), 2, 1);
    assert_elements(tn_norm_scalaropt_dim(x, tn_float(INFINITY), last), TN_SHAPE(2), 4, 2);
    assert_elements(tn_norm_scalaropt_dim(x, tn_float(-INFINITY), last), TN_SHAPE(2), 3, 0);
    assert_close(tn_norm_scalaropt_dim(x, tn_int(3), TN_SCALAR_SHAPE), 1e-6, TN_SHAPE(),
                 4.62606501);
    assert_tensor(
        tn_norm_scalaropt_dim(of(TN_F16, TN_SHAPE(2), 300, 400), tn_int(2), TN_SCALAR_SHAPE),
        TN_F16, TN_SHAPE(), 0, 500);
}

static void products_in_a_dtype(void **state) {
    tn_tensor *x = of(TN_F16, TN_SHAPE(2), 300, 400);
    assert_tensor(tn_prod(x), TN_F16, TN_SHAPE(), 0, INFINITY);
    assert_tensor(tn_prod(x, TN_F32), TN_F32, TN_SHAPE(), 0, 120000);
    assert_tensor(tn_prod_dim(of(TN_U8, TN_SHAPE(2), 16, 17), 0, false, TN_U8), TN_U8, TN_SHAPE(),
                  0, 16);
    x = requiring_grad(x);
    assert_ok(tn_backward(tn_prod(x, TN_F32)));
    assert_tensor(tn_grad(x), TN_F16, TN_SHAPE(2), 0, 400, 300);
    assert_tensor(tn_eye_m(2, 3, TN_I32), TN_I32, TN_SHAPE(2, 3), 0, 1, 0, 0, 0, 1, 0);
    assert_shape(tn_eye_m(0, 3), 0, 3);
    assert_fails(tn_eye_m(2, -1), TN_ERR_SHAPE, "tn_eye_m: m is -1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(nothing_compares_with_nan),
        OPS_TEST(a_scalar_becomes_an_element_first),
        OPS_TEST(remainder_is_exact),
        OPS_TEST(zeros_keep_their_sign),
        OPS_TEST(rounding_leaves_integers),
        OPS_TEST(the_square_of_a_truth_is_a_number),
        OPS_TEST(formulas_on_halves_are_computed_in_f32),
        OPS_TEST(a_scalar_beside_halves_stays_exact),
        OPS_TEST(optimizers_step_halves_in_f32),
        OPS_TEST(a_product_of_nothing_has_a_gradient),
        OPS_TEST(recording_changes_no_bit),
        OPS_TEST(gradients_at_the_edges),
        OPS_TEST(gradients_at_a_minimum),
        OPS_TEST(formulas_of_several_dtypes),
        OPS_TEST(a_rounded_quotient_has_no_slope),
        OPS_TEST(what_decomposes_is_differentiable),
        OPS_TEST(truths_over_dimensions),
        OPS_TEST(the_smallest_and_its_place),
        OPS_TEST(bounds_and_weights_that_are_tensors),
        OPS_TEST(quotients_are_rounded_both_ways),
        OPS_TEST(norms_of_any_order),
        OPS_TEST(products_in_a_dtype),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
