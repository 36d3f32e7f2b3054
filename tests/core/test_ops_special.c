/* Special functions keep the digits of their dtype: in tails, near zeros and between the parts of the
 * line that are computed apart. */
#include "tests/core/ops_test.h"

/* Every element within n units in the last place of the function's value. */
static void check_digits(tn_tensor *(*op)(tn_tensor *), double (*function)(double), double low,
                         double high, double units) {
    enum { N = 400 };
    double x[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)(low + (high - low) * i / (N - 1));
    for (int k = 0; k < 2; k++) {
        tn_dtype dtype = k == 0 ? TN_F64 : TN_F32;
        double unit = k == 0 ? 0x1p-52 : 0x1p-23, least = k == 0 ? 0x1p-1022 : 0x1p-126;
        double *got = values_of(op(of_values(dtype, TN_SHAPE(N), x, N)));
        for (int i = 0; i < N; i++) {
            double want = function(x[i]);
            if (fabs(want) > least && !(fabs(got[i] - want) <= units * unit * fabs(want)))
                fail_msg("%s at %.17g: %.17g, not %.17g", tn_dtype_name(dtype), x[i], got[i], want);
        }
        free(got);
    }
}

static void the_error_function_has_a_tail(void **state) {
    check_digits(tn_erfc, erfc, -6, 0, 4);
    check_digits(tn_erfc, erfc, 0, 4, 12);
    check_digits(tn_erfc, erfc, 4, 9, 12);
    check_digits(tn_erfc, erfc, 9, 26, 12);
    tn_tensor *ends = of(TN_F64, TN_SHAPE(4), -INFINITY, INFINITY, NAN, 40);
    assert_tensor(tn_erfc(ends), TN_F64, TN_SHAPE(4), 0, 2, 0, NAN, 0);
    tn_tensor *x = of(TN_F64, TN_SHAPE(4), -3, 0.1, 5, 1e10);
    assert_tensor(tn_special_erfcx(x), TN_F64, TN_SHAPE(4), 1e-14, 16205.988853999586,
                  0.89645697996912662, 0.11070463773306863, 5.6418958354775629e-11);
    tn_tensor *y = of(TN_F64, TN_SHAPE(5), 0.5, -0.999999999999, 1, -1, 1.5);
    /* beside 1 the digits are those of what is left */
    assert_tensor(tn_erfinv(y), TN_F64, TN_SHAPE(5), 1e-5, 0.47693627620446987, -5.0420297456390594,
                  INFINITY, -INFINITY, NAN);
}

static void the_gamma_function_near_its_zeros(void **state) {
    check_digits(tn_lgamma, lgamma, 0.01, 0.99, 8);
    check_digits(tn_lgamma, lgamma, 0.75, 1.25, 8);
    check_digits(tn_lgamma, lgamma, 1.75, 2.25, 8);
    check_digits(tn_lgamma, lgamma, 2.5, 60, 8);
    check_digits(tn_lgamma, lgamma, -0.9, -0.1, 8);
    tn_tensor *poles = of(TN_F64, TN_SHAPE(6), 0, -1, -8, -1e300, -INFINITY, INFINITY);
    assert_tensor(tn_lgamma(poles), TN_F64, TN_SHAPE(6), 0, INFINITY, INFINITY, INFINITY, INFINITY,
                  INFINITY, INFINITY);
    tn_tensor *x = of(TN_F64, TN_SHAPE(6), 1.4616321449683623, -0.5, 0.001, -7.25, 3.999, 1e6);
    assert_tensor(tn_digamma(x), TN_F64, TN_SHAPE(6), 1e-14, 0, 0.03648997397857652,
                  -1000.5755719318104, 5.1899772149562879, 1.2558338054487181, 13.815510057964191);
    tn_tensor *at_poles = of(TN_F64, TN_SHAPE(3), 0.0, -0.0, -3);
    assert_tensor(tn_digamma(at_poles), TN_F64, TN_SHAPE(3), 0, -INFINITY, INFINITY, NAN);
}

static void orders_that_there_are_not(void **state) {
    tn_tensor *x = of(TN_F32, TN_SHAPE(1), 1.5);
    assert_fails(tn_polygamma(-1, x), TN_ERR_INVALID_ARGUMENT, "tn_polygamma", "-1", "0 to 170");
    assert_fails(tn_polygamma(171, x), TN_ERR_INVALID_ARGUMENT, "tn_polygamma", "171");
    assert_fails(tn_mvlgamma(x, 0), TN_ERR_INVALID_ARGUMENT, "tn_mvlgamma", "p is 0");
    assert_same(tn_polygamma(0, x), tn_digamma(x));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(the_error_function_has_a_tail),
        OPS_TEST(the_gamma_function_near_its_zeros),
        OPS_TEST(orders_that_there_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
