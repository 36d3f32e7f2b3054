/* Pointwise operators that are put together from others where a device has no kernel, and optimizer
 * steps: against the C library, on a device with the kernels and on one without. */
#include "tests/core/ops_test.h"

#include <float.h>

/* Distance in f32 units in the last place. */
static double ulps(double have, double want) {
    if (have == want || (isnan(have) && isnan(want)))
        return 0;
    if (isnan(have) || isnan(want) || isinf(have) || isinf(want))
        return INFINITY;
    double unit = (double)(nextafterf(fabsf((float)want), INFINITY) - fabsf((float)want));
    return fabs(have - want) / unit;
}

static void check_function(tn_tensor *x, tn_tensor *y, double (*f)(double), double limit) {
    assert_non_null(y);
    double *in = values_of(x), *out = values_of(y);
    for (int64_t i = 0; i < tn_numel(x); i++) {
        double want = (double)(float)f(in[i]);
        if (ulps(out[i], want) > limit)
            fail_msg("f(%.9g) is %.9g, not %.9g: off by %g units", in[i], out[i], want,
                     ulps(out[i], want));
    }
    free(in);
    free(out);
}

/* Magnitudes from the least to the largest, both signs, and the special values. */
static tn_tensor *magnitudes(double limit) {
    enum { N = 1200 };
    double v[N];
    int n = 0;
    for (double m = 1e-38; m < limit && n + 2 < N - 8; m *= 1.18) {
        v[n++] = m;
        v[n++] = -m;
    }
    const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, limit, 1, -1};
    memcpy(&v[n], special, sizeof special);
    return of_values(TN_F32, TN_SHAPE(n + 8), v, (uint64_t)n + 8);
}

static void expm1_and_log1p_are_accurate(void **state) {
    tn_tensor *x = magnitudes(100);
    check_function(x, tn_expm1(x), expm1, 4);
    x = magnitudes(FLT_MAX);
    check_function(x, tn_log1p(x), log1p, 4);
    assert_elements(tn_expm1(of(TN_F32, TN_SHAPE(2), -200, 200)), TN_SHAPE(2), -1, INFINITY);
    assert_elements(tn_log1p(of(TN_F32, TN_SHAPE(2), -1, -2)), TN_SHAPE(2), -INFINITY, NAN);
    assert_close(tn_expm1(of(TN_F16, TN_SHAPE(2), 1e-3, 3)), 2e-3, TN_SHAPE(2), 1.0005e-3, 19.0855);
}

static double sign(double x) {
    return isnan(x) ? x : (x > 0) - (x < 0);
}

static void sign_and_rounding_are_exact(void **state) {
    tn_tensor *x = magnitudes(FLT_MAX);
    check_function(x, tn_sign(x), sign, 0);
    check_function(x, tn_round(x), nearbyint, 0);
    check_function(x, tn_ceil(x), ceil, 0);
    check_function(x, tn_trunc(x), trunc, 0);
    check_function(x, tn_abs(x), fabs, 0);
    tn_tensor *ties =
        of(TN_F32, TN_SHAPE(9), -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 8388607.5, 1e9);
    check_function(ties, tn_round(ties), nearbyint, 0);
    assert_elements(tn_sign(of(TN_I64, TN_SHAPE(3), -7, 0, INT32_MAX)), TN_SHAPE(3), -1, 0, 1);
    assert_elements(tn_sign(of(TN_U8, TN_SHAPE(2), 200, 0)), TN_SHAPE(2), 1, 0);
}

static void clamp_takes_either_bound(void **state) {
    tn_tensor *x = of(TN_F32, TN_SHAPE(4), -2, 0.5, 3, NAN);
    assert_elements(tn_clamp(x, tn_int(-1), tn_float(1)), TN_SHAPE(4), -1, 0.5, 1, NAN);
    assert_elements(tn_clamp(x, tn_float(0)), TN_SHAPE(4), 0, 0.5, 3, NAN);
    assert_elements(tn_clamp(x, tn_no_scalar(), tn_float(0)), TN_SHAPE(4), -2, 0, 0, NAN);
    assert_elements(tn_clamp(x, tn_float(2), tn_float(1)), TN_SHAPE(4), 1, 1, 1, NAN);
    assert_elements(tn_clamp(x), TN_SHAPE(4), -2, 0.5, 3, NAN);
    assert_elements(tn_clamp(of(TN_I64, TN_SHAPE(3), -5, 0, 5), tn_int(-1), tn_int(2)), TN_SHAPE(3),
                    -1, 0, 2);
    tn_clamp_(x, tn_int(0));
    assert_elements(x, TN_SHAPE(4), 0, 0.5, 3, NAN);
}

static void minimum_passes_nan_on(void **state) {
    tn_tensor *a = of(TN_F32, TN_SHAPE(4), 1, NAN, 3, -INFINITY),
              *b = of(TN_F32, TN_SHAPE(4), 2, 1, NAN, 0);
    assert_elements(tn_minimum(a, b), TN_SHAPE(4), 1, NAN, NAN, -INFINITY);
    assert_elements(tn_maximum(a, b), TN_SHAPE(4), 2, NAN, NAN, 0);
    tn_tensor *mixed =
        tn_minimum(of(TN_I64, TN_SHAPE(2, 1), 1, 3), of(TN_F32, TN_SHAPE(2), 2, 0.5));
    assert_elements(mixed, TN_SHAPE(2, 2), 1, 0.5, 2, 0.5);
    assert_int_equal(tn_dtype_of(mixed), TN_F32);
    assert_elements(tn_minimum(of(TN_BOOL, TN_SHAPE(2), 1, 1), of(TN_BOOL, TN_SHAPE(2), 0, 1)),
                    TN_SHAPE(2), 0, 1);
}

static void bits_are_turned_over(void **state) {
    const tn_dtype signed_ones[] = {TN_I8, TN_I16, TN_I32, TN_I64};
    for (int i = 0; i < 4; i++)
        assert_elements(tn_bitwise_not(of(signed_ones[i], TN_SHAPE(3), 0, 5, -1)), TN_SHAPE(3), -1,
                        -6, 0);
    assert_elements(tn_bitwise_not(of(TN_U8, TN_SHAPE(2), 0, 200)), TN_SHAPE(2), 255, 55);
    assert_elements(tn_bitwise_not(of(TN_BOOL, TN_SHAPE(2), 0, 1)), TN_SHAPE(2), 1, 0);
    assert_fails(tn_bitwise_not(tn_ones(TN_SHAPE(1))), TN_ERR_DTYPE, "tn_bitwise_not", "f32");
}

/* ---- activations ------------------------------------------------------------------------- */

static double gelu(double x) {
    return 0.5 * x * erfc(-x / sqrt(2));
}
static double gelu_tanh(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
static double silu(double x) {
    return x / (1 + exp(-x));
}

static double slope(double (*f)(double), double x) {
    return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5;
}

static void activations_and_their_slopes(void **state) {
    enum { N = 41 };
    double x[N], ones[N], y[3][N], s[3][N];
    double (*functions[])(double) = {gelu, gelu_tanh, silu};
    for (int i = 0; i < N; i++) {
        x[i] = (i - N / 2) / 4.0;
        ones[i] = 2;
        for (int k = 0; k < 3; k++) {
            y[k][i] = functions[k](x[i]);
            s[k][i] = 2 * slope(functions[k], x[i]);
        }
    }
    tn_tensor *t = of_values(TN_F32, TN_SHAPE(N), x, N),
              *g = of_values(TN_F32, TN_SHAPE(N), ones, N);
#define CHECK(tensor, values) assert_values(tensor, TN_SHAPE(N), 2e-6, values)
    CHECK(tn_gelu(t), y[0]);
    CHECK(tn_gelu(t, "tanh"), y[1]);
    CHECK(tn_silu(t), y[2]);
    CHECK(tn_gelu_backward(g, t), s[0]);
    CHECK(tn_gelu_backward(g, t, "tanh"), s[1]);
    CHECK(tn_silu_backward(g, t), s[2]);
#undef CHECK
    assert_fails(tn_gelu(t, "fast"), TN_ERR_INVALID_ARGUMENT, "gelu", "'fast'");
}

/* ---- optimizer steps --------------------------------------------------------------------- */

enum { N_PARAMS = 6, N_STEPS = 4 };

static double gradient(int i, int step) {
    return sin(1.7 * i + step) * 0.5;
}

static tn_tensor *gradients(int step, bool transposed) {
    double v[N_PARAMS];
    for (int i = 0; i < N_PARAMS; i++)
        v[transposed ? i % 3 * 2 + i / 3 : i] = gradient(i, step);
    return transposed ? tn_t(of_values(TN_F32, TN_SHAPE(3, 2), v, N_PARAMS))
                      : of_values(TN_F32, TN_SHAPE(2, 3), v, N_PARAMS);
}

/* The parameter, or a transposed tensor of its shape. */
static tn_tensor *plain_or_not(bool transposed) {
    return transposed ? tn_t(tn_zeros(TN_SHAPE(3, 2))) : tn_zeros(TN_SHAPE(2, 3));
}

static void sgd_steps_as_written(void **state) {
    for (int variant = 0; variant < 16; variant++) {
        bool nesterov = variant & 1, maximize = variant & 2;
        double lr = 0.1, momentum = 0.9, dampening = 0.3, decay = 0.01;
        double p[N_PARAMS] = {0}, buffer[N_PARAMS] = {0};
        tn_tensor *param = plain_or_not(variant & 4), *moved = tn_zeros(TN_SHAPE(2, 3));
        tn_set_requires_grad(param, true); /* and no tn_set_grad_enabled(false) */
        for (int step = 0; step < N_STEPS; step++) {
            tn_tensor *grad = gradients(step, variant & 8);
            assert_ok(tn_fused_sgd_(param, grad, moved, lr, momentum, dampening, decay, nesterov,
                                    maximize));
            for (int i = 0; i < N_PARAMS; i++) {
                double g = (maximize ? -1 : 1) * gradient(i, step) + decay * p[i];
                buffer[i] = momentum * buffer[i] + (1 - dampening) * g;
                p[i] -= lr * (nesterov ? g + momentum * buffer[i] : buffer[i]);
            }
        }
        assert_values(param, TN_SHAPE(2, 3), 1e-6, p);
        assert_values(moved, TN_SHAPE(2, 3), 1e-6, buffer);
        assert_true(tn_is_leaf(param) && tn_version_of(param) > 0);
    }
    tn_tensor *a = tn_ones(TN_SHAPE(2)), *b = tn_ones(TN_SHAPE(3));
    assert_int_equal(tn_fused_sgd_(a, b, a, 1, 0, 0, 0, false, false), TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "tn_fused_sgd_: self is [2]", "[3]", NULL);
}

static void adamw_steps_as_written(void **state) {
    for (int variant = 0; variant < 8; variant++) {
        bool maximize = variant & 1;
        double lr = 0.1, beta1 = 0.9, beta2 = 0.99, eps = 1e-6, decay = 0.05;
        double p[N_PARAMS] = {0}, m[N_PARAMS] = {0}, v[N_PARAMS] = {0};
        tn_tensor *param = plain_or_not(variant & 2), *mean = tn_zeros(TN_SHAPE(2, 3));
        tn_tensor *square = tn_zeros(TN_SHAPE(2, 3));
        tn_set_requires_grad(param, true);
        for (int step = 1; step <= N_STEPS; step++) {
            assert_ok(tn_fused_adamw_(param, gradients(step, variant & 4), mean, square, lr, beta1,
                                      beta2, eps, decay, step, maximize));
            for (int i = 0; i < N_PARAMS; i++) {
                double g = (maximize ? -1 : 1) * gradient(i, step);
                m[i] = beta1 * m[i] + (1 - beta1) * g;
                v[i] = beta2 * v[i] + (1 - beta2) * g * g;
                p[i] = p[i] * (1 - lr * decay) - lr / (1 - pow(beta1, step)) * m[i] /
                                                     (sqrt(v[i] / (1 - pow(beta2, step))) + eps);
            }
        }
        assert_values(param, TN_SHAPE(2, 3), 2e-6, p);
        assert_values(mean, TN_SHAPE(2, 3), 1e-6, m);
        assert_values(square, TN_SHAPE(2, 3), 1e-6, v);
    }
    tn_tensor *a = tn_ones(TN_SHAPE(2));
    assert_int_equal(tn_fused_adamw_(a, a, a, a, 1, 0, 0, 0, 0, 0, false), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_fused_adamw_: step is 0", NULL);
}

/* ---- scalars in a tensor's place --------------------------------------------------------- */

static void quotients_and_remainders_of_scalars(void **state) {
    tn_tensor *x = of(TN_I32, TN_SHAPE(4), 7, -7, 0, 100);
    assert_tensor(tn_floor_divide_scalar(x, tn_int(2)), TN_I32, TN_SHAPE(4), 0, 3, -4, 0, 50);
    assert_tensor(tn_floor_divide_scalar(x, tn_float(2.5)), TN_F32, TN_SHAPE(4), 0, 2, -3, 0, 40);
    assert_tensor(tn_floor_divide_scalar(x, tn_int(0)), TN_I32, TN_SHAPE(4), 0, 0, 0, 0, 0);
    assert_tensor(tn_remainder_scalar(x, tn_int(-4)), TN_I32, TN_SHAPE(4), 0, -1, -3, 0, 0);
    assert_tensor(tn_remainder_scalar_tensor(tn_int(-5), x), TN_I32, TN_SHAPE(4), 0, 2, -5, 0, 95);
    assert_tensor(tn_remainder_scalar_tensor(tn_float(7.5), x), TN_F32, TN_SHAPE(4), 0, 0.5, -6.5,
                  NAN, 7.5);
    assert_tensor(tn_div_scalar_mode(x, tn_int(2), "trunc"), TN_I32, TN_SHAPE(4), 0, 3, -3, 0, 50);
    assert_tensor(tn_div_scalar_mode(x, tn_float(2.5), "trunc"), TN_F32, TN_SHAPE(4), 0, 2, -2, 0,
                  40);
    assert_tensor(tn_div_scalar_mode(x, tn_int(-2), "floor"), TN_I32, TN_SHAPE(4), 0, -4, 3, 0,
                  -50);
    assert_ptr_equal(tn_div_scalar_mode_(x, tn_int(2), "floor"), x);
    assert_elements(x, TN_SHAPE(4), 3, -4, 0, 50);
    assert_ptr_equal(tn_div_tensor_mode_(x, of(TN_I32, TN_SHAPE(1), -2), "trunc"), x);
    assert_elements(x, TN_SHAPE(4), -1, 2, 0, -25);
    assert_ptr_equal(tn_remainder_scalar_(x, tn_int(10)), x);
    assert_ptr_equal(tn_floor_divide_scalar_(x, tn_int(2)), x);
    assert_elements(x, TN_SHAPE(4), 4, 1, 0, 2);
    assert_fails(tn_floor_divide_scalar_(x, tn_float(2)), TN_ERR_DTYPE, "f32", "i32");
    assert_fails(tn_div_scalar_mode_(x, tn_float(2), "floor"), TN_ERR_DTYPE, "f32", "i32");
    assert_fails(tn_div_scalar_mode(x, tn_int(2), "up"), TN_ERR_INVALID_ARGUMENT,
                 "'trunc', 'floor'");
    tn_tensor *leaf = requiring_grad(of(TN_F32, TN_SHAPE(2), 2, -3));
    assert_ok(tn_backward(tn_sum(tn_remainder_scalar_tensor(tn_int(7), leaf))));
    assert_elements(tn_grad(leaf), TN_SHAPE(2), -3, 3);
}

static void the_larger_and_smaller_of_scalars(void **state) {
    tn_tensor *x = requiring_grad(of(TN_F32, TN_SHAPE(4), -1, 2, 3, NAN));
    assert_elements(tn_minimum_scalar(x, tn_int(2)), TN_SHAPE(4), -1, 2, 2, NAN);
    tn_tensor *y = tn_maximum_scalar(x, tn_int(2));
    assert_elements(y, TN_SHAPE(4), 2, 2, 3, NAN);
    assert_ok(tn_backward(tn_sum(y)));
    assert_elements(tn_grad(x), TN_SHAPE(4), 0, 0.5, 1, 1);
    assert_elements(tn_maximum_scalar(tn_detach(x), tn_float(NAN)), TN_SHAPE(4), NAN, NAN, NAN,
                    NAN);
    tn_tensor *whole = of(TN_U8, TN_SHAPE(2), 1, 200);
    assert_tensor(tn_maximum_scalar(whole, tn_float(1.5)), TN_F32, TN_SHAPE(2), 0, 1.5, 200);
    assert_tensor(tn_minimum_scalar(whole, tn_int(-1)), TN_U8, TN_SHAPE(2), 0, 1, 200); /* 255 */
}

static void differences_from_scalars_and_tensors(void **state) {
    tn_tensor *u = of(TN_U8, TN_SHAPE(2), 1, 2);
    assert_tensor(tn_rsub_scalar(u, tn_int(1), tn_int(2)), TN_U8, TN_SHAPE(2), 0, 255, 253);
    assert_tensor(tn_rsub_scalar(u, tn_float(1.5)), TN_F32, TN_SHAPE(2), 0, 0.5, -0.5);
    assert_tensor(tn_rsub_scalar(u, tn_float(1.5), tn_int(2)), TN_F32, TN_SHAPE(2), 0, -0.5, -2.5);
    assert_tensor(tn_rsub(u, of(TN_F32, TN_SHAPE(2, 1), 1.5, 2), tn_int(2)), TN_F32, TN_SHAPE(2, 2),
                  0, -0.5, -2.5, 0, -2);
    assert_fails(tn_rsub_scalar(u, tn_int(1), tn_float(2.5)), TN_ERR_DTYPE, "tn_rsub_scalar",
                 "floating factor");
}

static void bits_of_scalars(void **state) {
    tn_tensor *x = of(TN_I16, TN_SHAPE(2), 5, -1), *truths = of(TN_BOOL, TN_SHAPE(2), 1, 0);
    assert_tensor(tn_bitwise_or_scalar(x, tn_int(2)), TN_I16, TN_SHAPE(2), 0, 7, -1);
    assert_tensor(tn_bitwise_xor_scalar(x, tn_int(-1)), TN_I16, TN_SHAPE(2), 0, -6, 0);
    assert_tensor(tn_bitwise_or_scalar(truths, tn_bool(true)), TN_BOOL, TN_SHAPE(2), 0, 1, 1);
    assert_tensor(tn_bitwise_xor_scalar(truths, tn_int(2)), TN_I64, TN_SHAPE(2), 0, 3, 2);
    assert_ptr_equal(tn_bitwise_xor_scalar_(x, tn_int(1)), x);
    assert_ptr_equal(tn_bitwise_or_scalar_(x, tn_int(8)), x);
    assert_ptr_equal(tn_bitwise_and_scalar_(x, tn_int(13)), x);
    assert_elements(x, TN_SHAPE(2), 12, 12);
    assert_fails(tn_bitwise_or_scalar_(truths, tn_int(2)), TN_ERR_DTYPE, "i64", "bool");
    assert_fails(tn_bitwise_or_scalar(x, tn_float(1)), TN_ERR_DTYPE, "tn_bitwise_or_scalar", "f32");
}

/* ---- one bound, decimals ----------------------------------------------------------------- */

static void one_bound_of_clamp(void **state) {
    tn_tensor *x = requiring_grad(of(TN_F32, TN_SHAPE(4), -1, 0, 1, NAN));
    tn_tensor *low = tn_clamp_min(x, tn_int(0)), *high = tn_clamp_max(x, tn_int(0));
    assert_elements(low, TN_SHAPE(4), 0, 0, 1, NAN);
    assert_elements(high, TN_SHAPE(4), -1, 0, 0, NAN);
    assert_ok(tn_backward(tn_sum(tn_add(low, high, tn_int(2)))));
    assert_elements(tn_grad(x), TN_SHAPE(4), 2, 0, 1, 0); /* nothing at the bound */
    tn_tensor *bound = requiring_grad(of(TN_F32, TN_SHAPE(1), 0));
    x = requiring_grad(of(TN_F32, TN_SHAPE(3), -1, 0, 1));
    low = tn_clamp_min_tensor(x, bound);
    assert_elements(low, TN_SHAPE(3), 0, 0, 1);
    assert_ok(tn_backward(tn_sum(low)));
    assert_elements(tn_grad(x), TN_SHAPE(3), 0, 0.5, 1); /* where they meet they share */
    assert_elements(tn_grad(bound), TN_SHAPE(1), 1.5);
    assert_elements(tn_clamp_max_tensor(x, bound), TN_SHAPE(3), -1, 0, 0);
    tn_tensor *y = of(TN_I32, TN_SHAPE(3), -5, 0, 5), *out = tn_zeros(TN_SHAPE(3), TN_I32);
    assert_ptr_equal(tn_clamp_max_out(y, tn_int(2), out), out);
    assert_elements(out, TN_SHAPE(3), -5, 0, 2);
    tn_clamp_min_(tn_clamp_max_(y, tn_int(3)), tn_int(-4));
    assert_elements(y, TN_SHAPE(3), -4, 0, 3);
    tn_clamp_min_tensor_(tn_clamp_max_tensor_(y, of(TN_I32, TN_SHAPE(1), 1)),
                         of(TN_I32, TN_SHAPE(1), -1));
    assert_elements(y, TN_SHAPE(3), -1, 0, 1);
}

static void gradients_of_bounds_that_are_tensors(void **state) {
    tn_tensor *x = requiring_grad(of(TN_F32, TN_SHAPE(5), -1, 0, 0.5, 1, 7));
    tn_tensor *low = requiring_grad(tn_zeros(TN_SHAPE(5)));
    tn_tensor *high = requiring_grad(of(TN_F32, TN_SHAPE(5), 1, 1, 1, 1, -2));
    tn_tensor *y = tn_clamp_tensor(x, low, high);
    assert_elements(y, TN_SHAPE(5), 0, 0, 0.5, 1, -2);
    assert_ok(tn_backward(tn_sum(y)));
    assert_elements(tn_grad(x), TN_SHAPE(5), 0, 0.5, 1, 0.5, 0);
    assert_elements(tn_grad(low), TN_SHAPE(5), 1, 0.5, 0, 0, 0);
    assert_elements(tn_grad(high), TN_SHAPE(5), 0, 0, 0, 0.5, 1);
    tn_tensor *square = tn_mul(x, x); /* saved, and then written */
    tn_set_requires_grad(high, true);
    assert_ptr_equal(tn_clamp_tensor_(square, TN_NONE, tn_detach(high)), square);
    assert_elements(square, TN_SHAPE(5), 1, 0, 0.25, 1, -2);
    assert_fails(tn_clamp_tensor_(of(TN_I32, TN_SHAPE(1), 1), of(TN_F32, TN_SHAPE(1), 1.5)),
                 TN_ERR_DTYPE, "f32", "i32");
}

static void numbers_are_rounded_to_decimals(void **state) {
    tn_tensor *x = of(TN_F64, TN_SHAPE(5), 1.25, -2.348, 0.005, 12345.678, INFINITY);
    assert_tensor(tn_round_decimals(x, 1), TN_F64, TN_SHAPE(5), 1e-15, 1.2, -2.3, 0, 12345.7,
                  INFINITY);
    assert_tensor(tn_round_decimals(x, 0), TN_F64, TN_SHAPE(5), 0, 1, -2, 0, 12346, INFINITY);
    assert_tensor(tn_round_decimals(x, -2), TN_F64, TN_SHAPE(5), 0, 0, 0, 0, 12300, INFINITY);
    /* 654.4 * 100 is 65440; 655.5 * 100 would be infinite in f16 */
    tn_tensor *half = of(TN_F16, TN_SHAPE(2), 655.5, 0.123);
    assert_tensor(tn_round_decimals(half, 2), TN_F16, TN_SHAPE(2), 1e-4, 655.5, 0.12);
    tn_tensor *out = tn_zeros(TN_SHAPE(5), TN_F64);
    assert_ptr_equal(tn_round_decimals_out(x, 2, out), out);
    assert_ptr_equal(tn_round_decimals_(x, 2), x);
    assert_same(x, out);
    assert_fails(tn_round_decimals(of(TN_I32, TN_SHAPE(1), 15), -1), TN_ERR_DTYPE,
                 "tn_round_decimals", "i32");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(expm1_and_log1p_are_accurate),
        OPS_TEST(sign_and_rounding_are_exact),
        OPS_TEST(clamp_takes_either_bound),
        OPS_TEST(minimum_passes_nan_on),
        OPS_TEST(bits_are_turned_over),
        OPS_TEST(activations_and_their_slopes),
        OPS_TEST(quotients_and_remainders_of_scalars),
        OPS_TEST(the_larger_and_smaller_of_scalars),
        OPS_TEST(differences_from_scalars_and_tensors),
        OPS_TEST(bits_of_scalars),
        OPS_TEST(one_bound_of_clamp),
        OPS_TEST(gradients_of_bounds_that_are_tensors),
        OPS_TEST(numbers_are_rounded_to_decimals),
        OPS_TEST(sgd_steps_as_written),
        OPS_TEST(adamw_steps_as_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
