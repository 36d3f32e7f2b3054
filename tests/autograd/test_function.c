/* Functions written in C together with their derivative. */
#include "tests/autograd/autograd_test.h"

typedef struct probe {
    int forwards, backwards, destroyed;
    bool wants[4];
    bool grads_null[4];
    const char *fails; /* "forward", "backward" */
} probe;

static void probe_gone(void *user) {
    ((probe *)user)->destroyed++;
}

/* out0 = a^2 b, out1 = a + b */
static tn_status forward(tn_function_context *c, tn_tensor *const *in, uint64_t n, tn_tensor **out,
                         uint64_t n_out, void *user) {
    probe *p = user;
    p->forwards++;
    assert_false(tn_grad_enabled());
    for (uint64_t i = 0; i < n; i++)
        p->wants[i] = tn_function_needs_grad(c, i);
    if (p->fails && strcmp(p->fails, "forward") == 0)
        return tn_fail(TN_ERR_UNSUPPORTED, "no forward today");
    out[0] = tn_mul(tn_mul(in[0], in[0]), in[1]);
    out[1] = tn_add(in[0], in[1]);
    return tn_function_save(c, in, n);
}

static tn_status backward(tn_function_context *c, tn_tensor *const *g, uint64_t n_out,
                          tn_tensor **grads, uint64_t n, void *user) {
    probe *p = user;
    p->backwards++;
    p->grads_null[0] = !g[0];
    p->grads_null[1] = !g[1];
    if (p->fails && strcmp(p->fails, "backward") == 0)
        return tn_fail(TN_ERR_UNSUPPORTED, "no backward today");
    tn_tensor *a = tn_function_saved(c, 0), *b = tn_function_saved(c, 1);
    if (!a || !b)
        return tn_error_status();
    for (int i = 0; i < 2; i++) {
        if (!tn_function_needs_grad(c, (uint64_t)i))
            continue;
        tn_tensor *d = i == 0 ? tn_mul_scalar(tn_mul(a, b), tn_float(2)) : tn_mul(a, a);
        tn_tensor *sum = g[0] ? tn_mul(g[0], d) : NULL;
        if (g[1])
            sum = sum ? tn_add(sum, g[1]) : g[1];
        grads[i] = sum;
    }
    return TN_OK;
}

static const tn_function square_times = {"SquareTimesBackward", forward, backward, probe_gone};

static void gradients_come_from_backward(void **state) {
    probe p = {0};
    TN_SCOPE; /* the graph goes before the probe */
    tn_tensor *in[] = {LEAF(TN_SHAPE(1), 3), LEAF(TN_SHAPE(1), 5)}, *out[2];
    assert_ok(tn_function_apply(&square_times, &p, in, 2, out, 2));
    assert_values(out[0], 45);
    assert_string_equal(tn_grad_fn_name(out[0]), "SquareTimesBackward");
    assert_ok(tn_backward_full(out, NULL, 2, true, false));
    assert_values(tn_grad(in[0]), 31);
    assert_values(tn_grad(in[1]), 10);
    assert_false(p.grads_null[0] || p.grads_null[1]);
    assert_ok(tn_backward_full(out, NULL, 1, false, false));
    assert_values(tn_grad(in[0]), 61);
    assert_true(p.grads_null[1]);
    assert_int_equal(tn_backward(out[0]), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "SquareTimesBackward", "second time");
    assert_int_equal(p.destroyed, 0);
    tn_free(out[0]);
    tn_free(out[1]);
    assert_int_equal(p.destroyed, 1);
}

static void what_nobody_needs_is_not_recorded(void **state) {
    probe p = {0};
    TN_SCOPE; /* the graph goes before the probe */
    tn_tensor *in[] = {SCALAR(3), SCALAR(5)}, *out[2];
    assert_ok(tn_function_apply(&square_times, &p, in, 2, out, 2));
    assert_false(tn_requires_grad(out[0]));
    assert_int_equal(p.destroyed, 1);
    in[1] = LEAF(TN_SCALAR_SHAPE, 5);
    assert_ok(tn_function_apply(&square_times, &p, in, 2, out, 2));
    assert_false(p.wants[0]);
    assert_true(p.wants[1]);
    assert_ok(tn_backward(out[0]));
    assert_values(tn_grad(in[1]), 9);
    assert_null(tn_grad(in[0]));
}

static void failures_pass_on(void **state) {
    probe p = {.fails = "forward"};
    TN_SCOPE; /* the graph goes before the probe */
    tn_tensor *in[] = {LEAF(TN_SHAPE(1), 3), LEAF(TN_SHAPE(1), 5)}, *out[2];
    assert_int_equal(tn_function_apply(&square_times, &p, in, 2, out, 2), TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED, "no forward today");
    assert_null(out[0]);
    assert_int_equal(p.destroyed, 1);
    p.fails = "backward";
    assert_ok(tn_function_apply(&square_times, &p, in, 2, out, 2));
    assert_int_equal(tn_backward(out[0]), TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED, "SquareTimesBackward", "no backward today");
    assert_null(tn_grad(in[0]));
}

static void writes_to_saved_inputs_are_found(void **state) {
    probe p = {0};
    TN_SCOPE; /* the graph goes before the probe */
    tn_tensor *x = LEAF(TN_SHAPE(1), 3);
    tn_tensor *in[] = {tn_clone(x), LEAF(TN_SHAPE(1), 5)}, *out[2];
    assert_ok(tn_function_apply(&square_times, &p, in, 2, out, 2));
    tn_zero_(in[0]);
    assert_int_equal(tn_backward(out[0]), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "SquareTimesBackward", "written in place");
}

static tn_status run_square_times(tn_tensor *const *in, uint64_t n, tn_tensor **out,
                                  uint64_t *n_out, void *user) {
    *n_out = 2;
    return tn_function_apply(&square_times, user, in, 2, out, 2);
}

static void functions_can_be_differentiated_twice(void **state) {
    probe p = {0};
    TN_SCOPE; /* the graph goes before the probe */
    tn_tensor *in[] = {LEAF(TN_SHAPE(2), 0.5, -1.5), LEAF(TN_SHAPE(2), 2, 0.7)};
    assert_ok(tn_gradcheck(run_square_times, &p, in, 2, NULL));
    assert_ok(tn_gradgradcheck(run_square_times, &p, in, 2, NULL));
    assert_int_equal(p.destroyed, p.forwards);
}

/* exp, with its output saved. */
static tn_status exp_forward(tn_function_context *c, tn_tensor *const *in, uint64_t n,
                             tn_tensor **out, uint64_t n_out, void *user) {
    out[0] = tn_exp(in[0]);
    return tn_function_save(c, out, 1);
}
static tn_status exp_backward(tn_function_context *c, tn_tensor *const *g, uint64_t n_out,
                              tn_tensor **grads, uint64_t n, void *user) {
    grads[0] = tn_mul(g[0], tn_function_saved(c, 0));
    return grads[0] ? TN_OK : tn_error_status();
}
static const tn_function my_exp = {"MyExpBackward", exp_forward, exp_backward, NULL};

static tn_status run_exp(tn_tensor *const *in, uint64_t n, tn_tensor **out, uint64_t *n_out,
                         void *user) {
    *n_out = 1;
    return tn_function_apply(&my_exp, NULL, in, 1, out, 1);
}

static void saved_outputs_make_no_cycle(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 0.5, 1), *y;
    assert_ok(tn_function_apply(&my_exp, NULL, &x, 1, &y, 1));
    assert_ok(tn_gradcheck(run_exp, NULL, &x, 1, NULL));
    assert_ok(tn_gradgradcheck(run_exp, NULL, &x, 1, NULL));
}

/* Passes its input through. */
static tn_status same_forward(tn_function_context *c, tn_tensor *const *in, uint64_t n,
                              tn_tensor **out, uint64_t n_out, void *user) {
    out[0] = in[0];
    return TN_OK;
}
static tn_status reverse_backward(tn_function_context *c, tn_tensor *const *g, uint64_t n_out,
                                  tn_tensor **grads, uint64_t n, void *user) {
    grads[0] = tn_neg(g[0]);
    return grads[0] ? TN_OK : tn_error_status();
}
static const tn_function reversal = {"ReversalBackward", same_forward, reverse_backward, NULL};

static void an_input_may_be_an_output(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 3), *y;
    assert_ok(tn_function_apply(&reversal, NULL, &x, 1, &y, 1));
    assert_ptr_not_equal(y, x);
    assert_true(tn_is_leaf(x));
    assert_ok(tn_backward(y));
    assert_values(tn_grad(x), -1);
}

/* Checkpointing: backward runs forward again, with recording, and calls backward inside. */
static tn_status block(tn_tensor *x, tn_tensor **out) {
    *out = tn_mul(tn_exp(x), x);
    return *out ? TN_OK : tn_error_status();
}
static tn_status checkpoint_forward(tn_function_context *c, tn_tensor *const *in, uint64_t n,
                                    tn_tensor **out, uint64_t n_out, void *user) {
    tn_status status = block(in[0], &out[0]);
    return status == TN_OK ? tn_function_save(c, in, 1) : status;
}
static tn_status checkpoint_backward(tn_function_context *c, tn_tensor *const *g, uint64_t n_out,
                                     tn_tensor **grads, uint64_t n, void *user) {
    tn_tensor *x = tn_set_requires_grad(tn_detach(tn_function_saved(c, 0)), true), *y;
    bool before = tn_set_grad_enabled(true);
    tn_status status = block(x, &y);
    if (status == TN_OK)
        status = tn_backward_full(&y, g, 1, false, false);
    tn_set_grad_enabled(before);
    grads[0] = tn_grad(x);
    return status;
}
static const tn_function checkpoint = {"CheckpointBackward", checkpoint_forward,
                                       checkpoint_backward, NULL};

static void checkpointing(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 0.5), *y = x;
    for (int i = 0; i < 3; i++)
        assert_ok(tn_function_apply(&checkpoint, NULL, &y, 1, &y, 1));
    assert_ok(tn_backward(y));
    tn_tensor *z = LEAF(TN_SHAPE(1), 0.5), *direct = z;
    for (int i = 0; i < 3; i++)
        assert_ok(block(direct, &direct));
    assert_ok(tn_backward(direct));
    assert_values(tn_grad(x), item(tn_grad(z)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(gradients_come_from_backward),
        TEST(what_nobody_needs_is_not_recorded),
        TEST(failures_pass_on),
        TEST(writes_to_saved_inputs_are_found),
        TEST(functions_can_be_differentiated_twice),
        TEST(saved_outputs_make_no_cycle),
        TEST(an_input_may_be_an_output),
        TEST(checkpointing),
    };
    return cmocka_run_group_tests_name("functions", tests, NULL, NULL);
}
