/* The checker checked: it passes what is right, and finds every way to be wrong. */
#include "tests/autograd/autograd_test.h"

static tn_status polynomial(tn_tensor *const *in, uint64_t n, tn_tensor **out, uint64_t *n_out,
                            void *user) {
    out[0] = tn_mul(tn_mul(in[0], in[0]), in[1]);
    out[1] = tn_sum(tn_exp(in[0]));
    *n_out = 2;
    return out[0] && out[1] ? TN_OK : tn_error_status();
}

static void right_derivatives_pass(void **state) {
    tn_tensor *in[] = {LEAF(TN_SHAPE(2, 3), 0.1, -0.4, 0.8, 1.1, -1.3, 0.5),
                       LEAF(TN_SHAPE(3), 0.7, -0.2, 1.9)};
    assert_ok(tn_gradcheck(polynomial, NULL, in, 2, NULL));
    assert_ok(tn_gradgradcheck(polynomial, NULL, in, 2, NULL));
    assert_null(tn_grad(in[0]));
    assert_values(in[0], 0.1, -0.4, 0.8, 1.1, -1.3, 0.5);
}

static void inputs_of_any_strides(void **state) {
    tn_tensor *x = VALUES(TN_SHAPE(3, 2), 0.1, -0.4, 0.8, 1.1, -1.3, 0.5);
    tn_tensor *y = VALUES(TN_SHAPE(1, 3), 0.7, -0.2, 1.9);
    tn_tensor *in[] = {tn_set_requires_grad(tn_detach(tn_transpose(x, 0, 1)), true),
                       tn_set_requires_grad(tn_detach(tn_expand(y, TN_SHAPE(2, 3))), true)};
    assert_ok(tn_gradcheck(polynomial, NULL, in, 2, NULL));
}

/* Wrong by a factor in element [1, 0] of its input. */
static tn_status forward(tn_function_context *c, tn_tensor *const *in, uint64_t n, tn_tensor **out,
                         uint64_t n_out, void *user) {
    out[0] = tn_mul(in[0], in[0]);
    return tn_function_save(c, in, 1);
}
static tn_status wrong_backward(tn_function_context *c, tn_tensor *const *g, uint64_t n_out,
                                tn_tensor **grads, uint64_t n, void *user) {
    tn_tensor *factor = VALUES(TN_SHAPE(2, 2), 2, 2, 2.5, 2);
    grads[0] = tn_mul(tn_mul(g[0], tn_function_saved(c, 0)), factor);
    return grads[0] ? TN_OK : tn_error_status();
}
static const tn_function wrong_square = {"WrongSquare", forward, wrong_backward, NULL};

/* Right once, but what it computes in backward is not recorded. */
static tn_status detached_backward(tn_function_context *c, tn_tensor *const *g, uint64_t n_out,
                                   tn_tensor **grads, uint64_t n, void *user) {
    grads[0] = tn_mul(g[0], tn_mul_scalar(tn_detach(tn_function_saved(c, 0)), tn_float(2)));
    return grads[0] ? TN_OK : tn_error_status();
}
static const tn_function once_only = {"OnceOnly", forward, detached_backward, NULL};

static tn_status fickle_backward(tn_function_context *c, tn_tensor *const *g, uint64_t n_out,
                                 tn_tensor **grads, uint64_t n, void *user) {
    static int calls;
    grads[0] =
        tn_mul(g[0], tn_mul_scalar(tn_function_saved(c, 0), tn_float(2 + 1e-9 * (double)calls++)));
    return grads[0] ? TN_OK : tn_error_status();
}
static const tn_function fickle = {"Fickle", forward, fickle_backward, NULL};

static tn_status run(tn_tensor *const *in, uint64_t n, tn_tensor **out, uint64_t *n_out,
                     void *user) {
    tn_tensor *t = in[n - 1];
    *n_out = 1;
    return tn_function_apply(user, NULL, &t, 1, out, 1);
}

static void a_wrong_derivative_is_found(void **state) {
    tn_tensor *in[] = {SCALAR(1), LEAF(TN_SHAPE(2, 2), 1, 2, 3, 4)};
    assert_int_equal(tn_gradcheck(run, (void *)&wrong_square, in, 2, NULL),
                     TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_gradcheck", "output 0, element 2", "input 1",
                 "element [1, 0]", "7.5 by the formula", "6", "1 of 16");
    tn_gradcheck_options loose = {.struct_size = sizeof loose, .atol = 2, .rtol = 0};
    assert_ok(tn_gradcheck(run, (void *)&wrong_square, in, 2, &loose));
}

static void a_wrong_second_derivative_is_found(void **state) {
    tn_tensor *in[] = {LEAF(TN_SHAPE(2, 2), 1, 2, 3, 4)};
    assert_ok(tn_gradcheck(run, (void *)&once_only, in, 1, NULL));
    assert_int_equal(tn_gradgradcheck(run, (void *)&once_only, in, 1, NULL),
                     TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_gradgradcheck", "input 0");
}

static void chance_in_backward_is_found(void **state) {
    tn_tensor *in[] = {LEAF(TN_SHAPE(2, 2), 1, 2, 3, 4)};
    assert_int_equal(tn_gradcheck(run, (void *)&fickle, in, 1, NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "not deterministic");
}

/* Right output by output, but the first output's gradient hides the second's. */
static tn_status two_forward(tn_function_context *c, tn_tensor *const *in, uint64_t n,
                             tn_tensor **out, uint64_t n_out, void *user) {
    out[0] = tn_mul_scalar(in[0], tn_float(2));
    out[1] = tn_mul_scalar(in[0], tn_float(3));
    return TN_OK;
}
static tn_status one_or_the_other(tn_function_context *c, tn_tensor *const *g, uint64_t n_out,
                                  tn_tensor **grads, uint64_t n, void *user) {
    grads[0] = g[0] ? tn_mul_scalar(g[0], tn_float(2)) : tn_mul_scalar(g[1], tn_float(3));
    return grads[0] ? TN_OK : tn_error_status();
}
static tn_status run_two(tn_tensor *const *in, uint64_t n, tn_tensor **out, uint64_t *n_out,
                         void *user) {
    static const tn_function two = {"Two", two_forward, one_or_the_other, NULL};
    *n_out = 2;
    return tn_function_apply(&two, NULL, in, 1, out, 2);
}

static void mishandled_undefined_gradients_are_found(void **state) {
    tn_tensor *in[] = {LEAF(TN_SHAPE(2), 1, 2)};
    assert_int_equal(tn_gradcheck(run_two, NULL, in, 1, NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "undefined gradients");
}

static void what_cannot_be_checked_is_told(void **state) {
    tn_tensor *plain[] = {VALUES(TN_SHAPE(2), 1, 2), VALUES(TN_SHAPE(2), 1, 2)};
    assert_int_equal(tn_gradcheck(polynomial, NULL, plain, 2, NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "no input");
    assert_int_equal(tn_gradcheck(NULL, NULL, plain, 2, NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "no function");
    tn_tensor *in[] = {LEAF(TN_SHAPE(2), 1, 2), VALUES(TN_SHAPE(3), 1, 2, 3)};
    assert_int_equal(tn_gradcheck(polynomial, NULL, in, 2, NULL), TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(right_derivatives_pass),         TEST(inputs_of_any_strides),
        TEST(a_wrong_derivative_is_found),    TEST(a_wrong_second_derivative_is_found),
        TEST(chance_in_backward_is_found),    TEST(mishandled_undefined_gradients_are_found),
        TEST(what_cannot_be_checked_is_told),
    };
    return cmocka_run_group_tests_name("gradcheck", tests, NULL, NULL);
}
