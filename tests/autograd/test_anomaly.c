/* Anomaly mode: NaN among gradients is found where it is made. */
#include "tests/autograd/autograd_test.h"

/* 0 * infinity, in the formula of sqrt. */
static tn_tensor *root_of_zero(tn_tensor *x) {
    return tn_sum(tn_mul(tn_sqrt(x), VALUES(TN_SHAPE(3), 0, 1, 0)));
}

static void a_nan_is_found_where_it_is_made(void **state) {
    assert_false(tn_set_anomaly_mode(true));
    assert_true(tn_anomaly_mode());
    tn_tensor *x = LEAF(TN_SHAPE(3), 0, 4, 0);
    tn_tensor *loss = root_of_zero(tn_exp(tn_mul(x, x)));
    assert_ok(tn_backward(loss)); /* has none */
    x = LEAF(TN_SHAPE(3), 0, 4, 0);
    loss = root_of_zero(tn_mul_scalar(x, tn_float(2)));
    assert_int_equal(tn_backward(loss), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "SqrtBackward", "gradient of input 0, shape [3]",
                 "NaN in 2 of its elements", "recorded by", "test_anomaly");
    assert_null(tn_grad(x));
    assert_true(tn_set_anomaly_mode(false));
}

static void a_call_from_before_the_mode_has_no_place(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(3), 0, 4, 0), *loss = root_of_zero(x);
    assert_false(tn_set_anomaly_mode(true));
    assert_int_equal(tn_backward(loss), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "SqrtBackward", "told if the mode is on by then");
    tn_set_anomaly_mode(false);
}

static void without_the_mode_it_goes_on(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(3), 0, 4, 0);
    assert_ok(tn_backward(root_of_zero(x)));
    double first = 0, second = 0;
    assert_ok(tn_item(tn_select(tn_grad(x), 0, 0), &first));
    assert_ok(tn_item(tn_select(tn_grad(x), 0, 1), &second));
    assert_true(isnan(first));
    assert_true(second == 0.25);
}

static void a_sum_that_no_operator_made_is_found(void **state) {
    tn_set_anomaly_mode(true);
    tn_tensor *x = LEAF(TN_SHAPE(1), 0); /* infinity and minus infinity, added up at the leaf */
    assert_int_equal(tn_backward(tn_sum(tn_sub(tn_sqrt(x), tn_sqrt(x)))), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "arrives here", "no operator made", "infinities of both signs");
    assert_null(tn_grad(x));
    x = LEAF(TN_SHAPE(1), 0); /* and at a node */
    tn_tensor *y = tn_neg(x);
    assert_int_equal(tn_backward(tn_sum(tn_sub(tn_sqrt(y), tn_sqrt(y)))), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "NegBackward", "arrives here", "recorded by");
    tn_tensor *root = tn_mul(x, x), *nan = VALUES(TN_SHAPE(1), NAN);
    assert_int_equal(tn_backward_full(&root, &nan, 1, false, false), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "MulBackward", "given to backward");
    tn_set_anomaly_mode(false);
}

static void infinities_and_hooks_pass(void **state) {
    tn_set_anomaly_mode(true);
    tn_tensor *x = LEAF(TN_SHAPE(2), 0, 1), *y = tn_sqrt(x), *g;
    assert_ok(tn_retain_grad(y));
    tn_tensor *loss = tn_sum(y);
    assert_ok(tn_gradients(&loss, NULL, 1, &x, 1, false, true, false, &g));
    double first = 0;
    assert_ok(tn_item(tn_select(g, 0, 0), &first));
    assert_true(isinf(first));
    tn_set_anomaly_mode(false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_nan_is_found_where_it_is_made), TEST(a_call_from_before_the_mode_has_no_place),
        TEST(without_the_mode_it_goes_on),     TEST(a_sum_that_no_operator_made_is_found),
        TEST(infinities_and_hooks_pass),
    };
    return cmocka_run_group_tests_name("anomaly mode", tests, NULL, NULL);
}
