/* Gradients of small graphs by hand: leaves, accumulation, roots, modes, saved tensors. */
#include "tests/autograd/autograd_test.h"

#include <tenon/dispatch.h>
#include <tenon/profile.h>

static void gradients_reach_leaves(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 2, 3), *y = LEAF(TN_SHAPE(2), 5, 7);
    tn_tensor *z = tn_mul(x, y);
    assert_true(tn_requires_grad(z));
    assert_false(tn_is_leaf(z));
    assert_true(tn_is_leaf(x));
    assert_string_equal(tn_grad_fn_name(z), "MulBackward");
    assert_string_equal(tn_grad_fn_name(x), "");
    assert_ok(tn_backward(tn_sum(z)));
    assert_values(tn_grad(x), 5, 7);
    assert_values(tn_grad(y), 2, 3);
    assert_null(tn_grad(z));
}

static void gradients_accumulate(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 2, 3);
    for (int i = 0; i < 3; i++)
        assert_ok(tn_backward(tn_sum(tn_mul(x, x))));
    assert_values(tn_grad(x), 12, 18);
    assert_ok(tn_set_grad(x, NULL));
    assert_null(tn_grad(x));
    assert_ok(tn_backward(tn_sum(x)));
    assert_values(tn_grad(x), 1, 1);
}

static void gradients_of_leaves_are_their_own(void **state) {
    /* One gradient goes to both; writing to one must not change the other. */
    tn_tensor *x = LEAF(TN_SHAPE(2), 2, 3), *y = LEAF(TN_SHAPE(2), 5, 7);
    assert_ok(tn_backward(tn_sum(tn_add(x, y))));
    assert_false(tn_shares_storage(tn_grad(x), tn_grad(y)));
    tn_mul_scalar_(tn_grad(x), tn_float(10));
    assert_values(tn_grad(y), 1, 1);
    /* The root's gradient that the caller gave stays the caller's. */
    tn_tensor *w = LEAF(TN_SHAPE(2), 1, 1), *given = VALUES(TN_SHAPE(2), 4, 5);
    assert_ok(tn_backward_full(&w, &given, 1, false, false));
    assert_false(tn_shares_storage(tn_grad(w), given));
    assert_values(tn_grad(w), 4, 5);
}

static void count_copy(const tn_profile_event *e, void *n) {
    *(int *)n += strcmp(e->op, "clone") == 0;
}

/* The copies that a pass makes of the gradients of its leaves. */
static int copies_in(tn_tensor *root) {
    int n = 0;
    assert_ok(tn_profile_start());
    assert_ok(tn_backward(root));
    assert_ok(tn_profile_stop());
    assert_ok(tn_profile_events(count_copy, &n, NULL));
    return n;
}

/* What arrives as the last view of a result is the gradient; what anything else sees, and a part of
 * more, is copied. */
static void gradients_that_are_views_are_not_copied(void **state) {
    tn_tensor *x = VALUES(TN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6), *w = LEAF(TN_SHAPE(1, 3), 1, 1, 1);
    tn_tensor *b = LEAF(TN_SHAPE(1), 0);
    assert_int_equal(copies_in(tn_sum(tn_linear(x, w, b))), 0);
    assert_values(tn_grad(w), 5, 7, 9);
    assert_values(tn_grad(b), 2);

    tn_tensor *p = LEAF(TN_SHAPE(3, 2), 1, 2, 3, 4, 5, 6),
              *q = LEAF(TN_SHAPE(2, 3), 1, 1, 1, 1, 1, 1);
    assert_int_equal(copies_in(tn_sum(tn_square(tn_add(tn_reshape(p, TN_SHAPE(2, 3)), q)))), 1);
    assert_non_null(tn_fill_(tn_grad(q), tn_float(0)));
    assert_values(tn_grad(p), 4, 6, 8, 10, 12, 14);

    tn_tensor *half = LEAF(TN_SHAPE(2), 1, 2);
    tn_tensor *both[] = {half, VALUES(TN_SHAPE(2), 3, 4)};
    assert_int_equal(copies_in(tn_sum(tn_square(tn_cat(both, 2, 0)))), 1);
    assert_values(tn_grad(half), 2, 4);
}

static void a_leaf_can_be_a_root(void **state) {
    tn_tensor *x = LEAF(TN_SCALAR_SHAPE, 3);
    assert_ok(tn_backward(x));
    assert_values(tn_grad(x), 1);
}

static void a_diamond_sums_its_paths(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 3);
    tn_tensor *a = tn_mul(x, x);                    /* x^2 */
    tn_tensor *b = tn_add(tn_mul(a, x), a);         /* x^3 + x^2 */
    tn_tensor *c = tn_mul(b, tn_exp(tn_sub(x, x))); /* times 1 */
    assert_ok(tn_backward(c));
    assert_values(tn_grad(x), 3 * 9 + 2 * 3);
}

static void broadcast_gradients_are_summed(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2, 1), 1, 2), *y = LEAF(TN_SHAPE(3), 1, 10, 100);
    tn_tensor *s = LEAF(TN_SCALAR_SHAPE, 2);
    assert_ok(tn_backward(tn_sum(tn_mul(tn_mul(x, y), s))));
    assert_values(tn_grad(x), 222, 222);
    assert_values(tn_grad(y), 6, 6, 6);
    assert_values(tn_grad(s), 333);
    assert_int_equal(tn_rank(tn_grad(x)), 2);
    assert_int_equal(tn_rank(tn_grad(s)), 0);
}

static void gradients_have_the_dtype_of_their_input(void **state) {
    tn_tensor *x =
        tn_set_requires_grad(tn_from_data((const float[]){1, 2}, TN_SHAPE(2), TN_F32, cpu()), true);
    tn_tensor *y = LEAF(TN_SHAPE(2), 3, 4);
    assert_ok(tn_backward(tn_sum(tn_mul(x, y))));
    assert_int_equal(tn_dtype_of(tn_grad(x)), TN_F32);
    assert_int_equal(tn_dtype_of(tn_grad(y)), TN_F64);
    assert_values(tn_grad(x), 3, 4);
}

static void roots_need_a_gradient(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    tn_tensor *y = tn_mul(x, x);
    assert_int_equal(tn_backward(y), TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "[2, 3]", "tn_sum", "tn_backward_full");
    tn_tensor *wrong = VALUES(TN_SHAPE(2), 1, 1);
    assert_int_equal(tn_backward_full(&y, &wrong, 1, false, false), TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "[2]", "[2, 3]");
    tn_tensor *constant = SCALAR(1);
    assert_int_equal(tn_backward(constant), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "tn_set_requires_grad");
    assert_int_equal(tn_backward_full(NULL, NULL, 0, false, false), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "root");
    assert_null(tn_grad(x));
}

static void several_roots_are_summed(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 2, 3);
    tn_tensor *square = tn_mul(x, x);
    tn_tensor *roots[] = {square, tn_sum(square), square};
    tn_tensor *grads[] = {VALUES(TN_SHAPE(2), 1, 10), NULL, VALUES(TN_SHAPE(2), 100, 1000)};
    assert_ok(tn_backward_full(roots, grads, 3, false, false));
    assert_values(tn_grad(x), 4 * 102, 6 * 1011);
}

static void a_graph_is_used_once(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 2, 3);
    tn_tensor *y = tn_sum(tn_mul(x, x));
    assert_ok(tn_backward_full(&y, NULL, 1, true, false));
    assert_ok(tn_backward(y));
    assert_values(tn_grad(x), 8, 12);
    assert_int_equal(tn_backward(y), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "MulBackward", "second time", "retain");
    assert_values(tn_grad(x), 8, 12);
}

static void nothing_saved_nothing_freed(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 2);
    tn_tensor *y = tn_add(x, x);
    assert_ok(tn_backward(y));
    assert_ok(tn_backward(y));
    assert_values(tn_grad(x), 4);
}

static void second_derivatives(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 3);
    tn_tensor *y = tn_mul(tn_mul(x, x), x), *first, *second, *third;
    assert_ok(tn_gradients(&y, NULL, 1, &x, 1, false, true, false, &first));
    assert_values(first, 27);
    assert_true(tn_requires_grad(first));
    assert_ok(tn_gradients(&first, NULL, 1, &x, 1, false, true, false, &second));
    assert_values(second, 18);
    assert_ok(tn_gradients(&second, NULL, 1, &x, 1, false, false, false, &third));
    assert_values(third, 6);
    assert_false(tn_requires_grad(third));
    assert_null(tn_grad(x));
}

static void second_derivatives_through_saved_outputs(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 0.5);
    tn_tensor *y = tn_exp(x), *first, *second;
    assert_ok(tn_gradients(&y, NULL, 1, &x, 1, false, true, false, &first));
    assert_ok(tn_gradients(&first, NULL, 1, &x, 1, false, false, false, &second));
    assert_values(second, exp(0.5));
}

static void backward_can_record_itself(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 3);
    tn_tensor *y = tn_mul(x, x);
    assert_ok(tn_backward_full(&y, NULL, 1, false, true));
    tn_tensor *g = tn_keep(tn_grad(x));
    assert_true(tn_requires_grad(g));
    assert_ok(tn_set_grad(x, NULL));
    assert_ok(tn_backward(g));
    assert_values(tn_grad(x), 2);
    /* x holds g, whose graph holds x, if nobody lets go: */
    assert_ok(tn_set_grad(x, NULL));
    tn_drop(g);
}

static void gradients_by_chosen_inputs(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 2, 3), *y = LEAF(TN_SHAPE(2), 5, 7);
    tn_tensor *a = tn_mul(x, y), *loss = tn_sum(tn_mul(a, a));
    tn_tensor *inputs[] = {a, x, a}, *grads[3];
    assert_ok(tn_gradients(&loss, NULL, 1, inputs, 3, false, false, false, grads));
    assert_values(grads[0], 20, 42);
    assert_values(grads[1], 100, 294);
    assert_values(grads[2], 20, 42);
    assert_null(tn_grad(x));
    assert_null(tn_grad(y));
}

static void unused_inputs_are_told(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 2), *y = LEAF(TN_SHAPE(1), 5), *z = SCALAR(1);
    tn_tensor *loss = tn_mul(x, x), *inputs[] = {x, y}, *grads[2];
    assert_int_equal(tn_gradients(&loss, NULL, 1, inputs, 2, true, false, false, grads),
                     TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "input 1", "allow_unused");
    assert_null(grads[0]);
    assert_ok(tn_gradients(&loss, NULL, 1, inputs, 2, true, false, true, grads));
    assert_values(grads[0], 4);
    assert_null(grads[1]);
    inputs[1] = z;
    assert_int_equal(tn_gradients(&loss, NULL, 1, inputs, 2, true, false, true, grads),
                     TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "input 1", "tn_set_requires_grad");
}

static void a_partial_pass_frees_only_what_it_ran(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 2), *y = LEAF(TN_SHAPE(1), 5), *g;
    tn_tensor *left = tn_mul(x, x), *right = tn_mul(y, y), *loss = tn_add(left, right);
    assert_ok(tn_gradients(&loss, NULL, 1, &x, 1, false, false, false, &g));
    assert_values(g, 4);
    assert_ok(tn_backward(right));
    assert_values(tn_grad(y), 10);
    assert_int_equal(tn_backward(left), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "second time");
}

static void no_grad_records_nothing(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 2), *y;
    {
        TN_NO_GRAD;
        assert_false(tn_grad_enabled());
        y = tn_mul(x, x);
    }
    assert_true(tn_grad_enabled());
    assert_false(tn_requires_grad(y));
    assert_true(tn_is_leaf(y));
}

static void inference_takes_no_part(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 2);
    assert_false(tn_set_inference_mode(true));
    assert_true(tn_inference_mode());
    tn_tensor *y = tn_mul(x, x);
    uint64_t version = tn_version_of(y);
    tn_add_(y, y);
    assert_int_equal(tn_version_of(y), version);
    assert_true(tn_set_inference_mode(false));
    assert_true(tn_grad_enabled());
    assert_false(tn_requires_grad(y));
    assert_null(tn_set_requires_grad(y, true));
    assert_error(TN_ERR_STATE, "inference");
}

static void detach_stops_gradients(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 3);
    tn_tensor *y = tn_mul(x, x), *d = tn_detach(y);
    assert_false(tn_requires_grad(d));
    assert_true(tn_shares_storage(d, y));
    assert_ok(tn_backward(tn_mul(y, d)));
    assert_values(tn_grad(x), 9 * 6);
}

static void writes_to_saved_tensors_are_found(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 3), *w = LEAF(TN_SHAPE(1), 2);
    tn_tensor *h = tn_mul(x, x), *y = tn_mul(h, w);
    tn_add_scalar_(h, tn_float(1));
    assert_int_equal(tn_backward(y), TN_ERR_STATE);
    assert_string_equal(tn_error_operator(), "MulBackward");
    assert_error(TN_ERR_STATE, "MulBackward", "version 1", "expected 0");
    tn_tensor *e = tn_exp(x), *z = tn_mul_scalar(e, tn_float(2));
    tn_mul_scalar_(tn_detach(e), tn_float(2));
    assert_int_equal(tn_backward(z), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "ExpBackward", "an output");
}

static void retained_gradients(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 3);
    tn_tensor *h = tn_mul(x, x), *y = tn_mul(h, h);
    assert_ok(tn_retain_grad(h));
    assert_ok(tn_retain_grad(x));
    assert_ok(tn_backward_full(&y, NULL, 1, true, false));
    assert_values(tn_grad(h), 18);
    assert_ok(tn_backward(y));
    assert_values(tn_grad(h), 36);
    assert_values(tn_grad(x), 2 * 108);
    assert_int_equal(tn_retain_grad(SCALAR(1)), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "tn_retain_grad");
}

static void only_floats_and_leaves_can_be_marked(void **state) {
    tn_tensor *i = tn_from_data((const int64_t[]){1}, TN_SHAPE(1), TN_I64, cpu());
    assert_null(tn_set_requires_grad(i, true));
    assert_error(TN_ERR_DTYPE, "i64");
    tn_tensor *x = LEAF(TN_SHAPE(1), 3), *y = tn_mul(x, x);
    assert_null(tn_set_requires_grad(y, false));
    assert_error(TN_ERR_STATE, "MulBackward", "tn_detach");
    assert_ptr_equal(tn_set_requires_grad(y, true), y);
    assert_ptr_equal(tn_set_requires_grad(x, false), x);
    assert_false(tn_requires_grad(tn_mul(x, x)));
    assert_false(tn_requires_grad(tn_gt(y, y)));
}

static void a_gradient_must_fit(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 2, 3);
    assert_int_equal(tn_set_grad(x, VALUES(TN_SHAPE(3), 1, 2, 3)), TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "[2]", "[3]");
    assert_ok(tn_set_grad(x, VALUES(TN_SHAPE(2), 1, 2)));
    assert_ok(tn_backward(tn_sum(x)));
    assert_values(tn_grad(x), 2, 3);
}

static void some_outputs_without_gradient(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(3, 2), 1, 2, 3, 4, 5, 6), *rows[3];
    assert_ok(tn_unbind(x, 0, rows, 3));
    assert_ok(tn_backward(tn_sum(tn_mul(rows[2], rows[0]))));
    assert_values(tn_grad(x), 5, 6, 0, 0, 1, 2);
}

static void expanded_gradients_become_dense(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2, 2), 1, 2, 3, 4);
    assert_ok(tn_backward(tn_sum(x)));
    assert_true(tn_is_contiguous(tn_grad(x)));
    tn_mul_scalar_(tn_grad(x), tn_float(3));
    assert_values(tn_grad(x), 3, 3, 3, 3);
}

static tn_status twice(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                       void *user) {
    tn_tensor *t = tn_keep(tn_add(args[0].v.pointer, args[0].v.pointer));
    rets[0] = (tn_cell){.tag = TN_CELL_TENSOR, .v.pointer = t};
    return t ? TN_OK : tn_error_status();
}

static void operators_without_derivative_fail_by_name(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 3);
    tn_registration *definition;
    const tn_op *op = tn_op_define("t::twice(Tensor x) -> Tensor", "test", &definition);
    assert_non_null(op);
    tn_registration *handler = tn_handler_register(op, TN_KEY_BACKEND, NULL, twice, NULL, "test");
    tn_cell args[] = {{.tag = TN_CELL_TENSOR, .v.pointer = x}}, rets[1];
    assert_ok(tn_op_call(op, args, 1, rets));
    tn_tensor *y = rets[0].v.pointer;
    assert_values(y, 6);
    assert_int_equal(tn_backward(y), TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED, "t::twice", "no derivative");
    tn_drop(y);
    tn_registration_drop(handler);
    tn_registration_drop(definition);
}

static void long_chains_do_not_overflow_the_stack(void **state) {
    const char *given = getenv("TEST_CHAIN");
    long n = given ? atol(given) : 200000;
    tn_tensor *x = LEAF(TN_SCALAR_SHAPE, 1), *one = SCALAR(1), *y = tn_mul(x, one);
    for (long i = 1; i < n; i++) {
        tn_tensor *next = tn_mul(y, one);
        tn_free(y);
        y = next;
    }
    assert_ok(tn_backward_full(&y, NULL, 1, true, false));
    assert_values(tn_grad(x), 1);
    tn_free(y);
}

/* Every allocation of a pass fails once: an error each time, and nothing is lost. */
static void backward_survives_without_memory(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 2, 3), *w = LEAF(TN_SHAPE(2), 1, 2);
    bool done = false;
    for (uint64_t at = 1; !done && at < 1000; at++) {
        TN_SCOPE;
        tni_alloc_fail_at(at);
        tn_tensor *loss = tn_sum(tn_exp(tn_mul(x, w)));
        tn_status status = loss ? tn_backward(loss) : tn_error_status();
        done = tni_alloc_fail_at(0) < at;
        if (status != TN_OK)
            assert_error(TN_ERR_OUT_OF_MEMORY, "memory");
        tn_set_grad(x, NULL);
        tn_set_grad(w, NULL);
    }
    assert_true(done);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(gradients_reach_leaves),
        TEST(gradients_accumulate),
        TEST(gradients_of_leaves_are_their_own),
        TEST(gradients_that_are_views_are_not_copied),
        TEST(a_leaf_can_be_a_root),
        TEST(a_diamond_sums_its_paths),
        TEST(broadcast_gradients_are_summed),
        TEST(gradients_have_the_dtype_of_their_input),
        TEST(roots_need_a_gradient),
        TEST(several_roots_are_summed),
        TEST(a_graph_is_used_once),
        TEST(nothing_saved_nothing_freed),
        TEST(second_derivatives),
        TEST(second_derivatives_through_saved_outputs),
        TEST(backward_can_record_itself),
        TEST(gradients_by_chosen_inputs),
        TEST(unused_inputs_are_told),
        TEST(a_partial_pass_frees_only_what_it_ran),
        TEST(no_grad_records_nothing),
        TEST(inference_takes_no_part),
        TEST(detach_stops_gradients),
        TEST(writes_to_saved_tensors_are_found),
        TEST(retained_gradients),
        TEST(only_floats_and_leaves_can_be_marked),
        TEST(a_gradient_must_fit),
        TEST(some_outputs_without_gradient),
        TEST(expanded_gradients_become_dense),
        TEST(operators_without_derivative_fail_by_name),
        TEST(long_chains_do_not_overflow_the_stack),
        TEST(backward_survives_without_memory),
    };
    return cmocka_run_group_tests_name("autograd", tests, NULL, NULL);
}
