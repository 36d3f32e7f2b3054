/* How accurate the elementary functions of f32 are, over all of its numbers: vmath.h promises 2
 * units in the last place of the result, 3 for sigmoid. */
#include "kernels_test.h"

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
    {"sigmoid", sigmoid, 3},
};

/* The distance of two neighbouring f32 numbers at x. */
static double unit_at(double x) {
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

static void errors_are_as_small_as_promised(void **state) {
    enum { STEP = 4099 }; /* a prime: all exponents, all low bits */
    const int64_t n = (int64_t)(UINT32_MAX / STEP) + 1;
    operand *x = operand_create(TN_F32, 1, &n, DENSE);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)i * STEP;
        float value;
        memcpy(&value, &bits, sizeof value);
        operand_set(x, i, (number){.f = value});
    }
    operand_upload(x);
    for (int k = 0; k < LENGTH(functions); k++) {
        operand *z = operand_out(TN_F32, 1, &n, DENSE);
        const tn_cell arg = cell_of(x);
        assert_ok(call_kernel(functions[k].op, TN_F32, TN_DTYPE_NONE, 1, &arg, 1, &z));
        const float *have = elements_of(z);
        double worst = 0, at = 0;
        for (int64_t i = 0; i < n; i++) {
            const double want = functions[k].f(x->values[i].f);
            const float rounded = (float)want;
            double error = fabs(have[i] - want) / unit_at(want);
            if (isnan(rounded) || isinf(rounded))
                error = have[i] == rounded || (isnan(rounded) && isnan(have[i])) ? 0 : INFINITY;
            if (!(error <= worst))
                worst = error, at = x->values[i].f;
        }
        if (!(worst <= functions[k].units))
            fail_msg("%s: off by %.3f units at %.9g", functions[k].op, worst, at);
    }
}

static void values_near_zero_and_one_are_exact_enough(void **state) {
    /* Results that a formula without care would round to 0 or to 1. */
    static const struct {
        const char *op;
        double x;
    } cases[] = {{"log1p", 1e-7}, {"log1p", -3e-9}, {"expm1", 1e-7},   {"expm1", -2e-10},
                 {"tanh", 1e-5},  {"erf", 1e-6},    {"log", 1.0000001}};
    for (int i = 0; i < LENGTH(cases); i++)
        for (tn_dtype dtype = TN_F32; dtype <= TN_F64; dtype++) {
            const int64_t one = 1;
            operand *x = operand_create(dtype, 1, &one, DENSE);
            operand_set(x, 0, (number){.f = cases[i].x});
            operand_upload(x);
            operand *z = operand_out(dtype, 1, &one, DENSE);
            const tn_cell arg = cell_of(x);
            int k = 0;
            while (strcmp(functions[k].op, cases[i].op) != 0)
                k++;
            describe("%s(%g), dtype %d", cases[i].op, cases[i].x, dtype);
            assert_ok(call_kernel(cases[i].op, dtype, TN_DTYPE_NONE, 1, &arg, 1, &z));
            check_elements(z, &(number){.f = functions[k].f(x->values[0].f)}, NULL, 2);
        }
}

int test_math(void) {
    const struct CMUnitTest tests[] = {
        TEST(errors_are_as_small_as_promised),
        TEST(values_near_zero_and_one_are_exact_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
