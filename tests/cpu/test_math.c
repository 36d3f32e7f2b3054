/* How accurate the elementary functions of f32 are, over all of its numbers: vmath.h promises 2
 * units in the last place of the result, 3 for sigmoid, angles, sinh and cosh. */
#include "tests/cpu/cpu_test.h"

#include <math.h>
#include <string.h>

static double reciprocal_root(double x) {
    return 1 / sqrt(x);
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static const struct function {
    const char *op;
    double (*f)(double);
    double units;
} functions[] = {
    {"exp", exp, 2},         {"log", log, 2},
    {"log1p", log1p, 2},     {"expm1", expm1, 2},
    {"sin", sin, 2},         {"cos", cos, 2},
    {"tanh", tanh, 2},       {"erf", erf, 2},
    {"sqrt", sqrt, 0.5},     {"rsqrt", reciprocal_root, 2},
    {"sigmoid", sigmoid, 3}, {"exp2", exp2, 2},
    {"log2", log2, 1},       {"log10", log10, 1},
    {"tan", tan, 2},         {"asin", asin, 3},
    {"acos", acos, 3},       {"atan", atan, 3},
    {"sinh", sinh, 3},       {"cosh", cosh, 3},
    {"asinh", asinh, 1},     {"acosh", acosh, 1},
    {"atanh", atanh, 1},
};

/* The distance of two neighbouring f32 numbers at x. */
static double unit_at(double x) {
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

static void errors_are_as_small_as_promised(void **state) {
    enum { STEP = 4099 }; /* a prime: all exponents, all low bits */
    int64_t n = (int64_t)(UINT32_MAX / STEP) + 1;
    mini_tensor *x = tensor_create(TN_F32, 1, &n), *z = tensor_create(TN_F32, 1, &n);
    float *in = elements_of(x);
    const float *have = elements_of(z);
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)i * STEP;
        memcpy(&in[i], &bits, sizeof bits);
    }
    for (int k = 0; k < LENGTH(functions); k++) {
        const tn_kernel *kernel = mini_find(&cpu, functions[k].op, TN_F32, TN_DTYPE_NONE);
        tn_cell arg = mini_view(x);
        assert_ok(mini_run(&cpu, kernel, 1, &arg, 1, &z));
        double worst = 0, at = 0;
        for (int64_t i = 0; i < n; i++) {
            double want = functions[k].f(in[i]);
            float rounded = (float)want;
            double error = fabs(have[i] - want) / unit_at(want);
            if (isnan(rounded) || isinf(rounded))
                error = have[i] == rounded || (isnan(rounded) && isnan(have[i])) ? 0 : INFINITY;
            if (!(error <= worst))
                worst = error, at = in[i];
        }
        if (!(worst <= functions[k].units))
            fail_msg("%s: off by %.3f units at %.9g", functions[k].op, worst, at);
    }
}

/* x Phi(x) gets small at the left, but no less exact than its exponent -x^2 / 2 can be rounded. */
static void gelu_keeps_its_left_tail(void **state) {
    int64_t n = 4001;
    mini_tensor *x = tensor_create(TN_F32, 1, &n), *z = tensor_create(TN_F32, 1, &n);
    float *in = elements_of(x);
    const float *have = elements_of(z);
    for (int64_t i = 0; i < n; i++)
        in[i] = (float)i / 160 - 12.5f;
    const tn_kernel *kernel = mini_find(&cpu, "gelu", TN_F32, TN_DTYPE_NONE);
    tn_cell args[] = {mini_view(x), {.tag = TN_CELL_STRING, .v.string = "none"}};
    assert_ok(mini_run(&cpu, kernel, 2, args, 1, &z));
    for (int64_t i = 0; i < n; i++) {
        double want = in[i] * 0.5 * erfc(in[i] * -0.70710678118654752);
        if (!(fabs(have[i] - want) <= 1e-5 * fabs(want)))
            fail_msg("gelu: %.9g at %.9g; it is %.9g", have[i], in[i], want);
    }
}

int test_math(void) {
    const struct CMUnitTest tests[] = {
        TEST(errors_are_as_small_as_promised),
        TEST(gelu_keeps_its_left_tail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
