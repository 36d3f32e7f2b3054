/* Views and writes in place: whose history changes, whose follows, and what is refused. */
#include "tests/autograd/autograd_test.h"

static void a_write_keeps_the_gradient_right(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 2, 3), *w = LEAF(TN_SHAPE(2), 5, 7);
    tn_tensor *y = tn_clone(x);
    assert_ptr_equal(tn_mul_(y, w), y); /* needs the old y for w */
    assert_string_equal(tn_grad_fn_name(y), "MulBackward");
    tn_exp_(tn_mul_scalar_(y, tn_float(0.1)));
    assert_ok(tn_backward(tn_sum(y)));
    double a = 0.1 * exp(1.0), b = 0.1 * exp(2.1);
    assert_values(tn_grad(x), 5 * a, 7 * b);
    assert_values(tn_grad(w), 2 * a, 3 * b);
}

static void versions_count_writes(void **state) {
    tn_tensor *x = VALUES(TN_SHAPE(2), 2, 3), *v = tn_select(x, 0, 1), *d = tn_detach(x);
    assert_int_equal(tn_version_of(x), 0);
    tn_add_(v, v);
    assert_int_equal(tn_version_of(x), 1);
    assert_int_equal(tn_version_of(d), 1);
    tn_zero_(x);
    assert_int_equal(tn_version_of(v), 2);
    assert_values(v, 0);
}

static void leaves_are_refused(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 2, 3);
    assert_null(tn_add_(x, x));
    assert_error(TN_ERR_STATE, "tn_add_",
                 "a leaf that requires a gradient cannot be written in place", "TN_NO_GRAD");
    assert_values(x, 2, 3);
    {
        TN_NO_GRAD;
        assert_ptr_equal(tn_add_(x, x), x);
    }
    assert_values(x, 4, 6);
    assert_true(tn_is_leaf(x));
    tn_tensor *v = tn_select(x, 0, 0);
    assert_null(tn_mul_(v, v));
    assert_error(TN_ERR_STATE, "a view of a leaf that requires a gradient");
}

static void a_leaf_that_needs_none_gets_a_history(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 2, 3), *sum = VALUES(TN_SHAPE(2), 0, 0);
    assert_true(tn_is_leaf(sum));
    tn_add_(sum, x);
    tn_add_(sum, tn_mul(x, x));
    assert_true(tn_requires_grad(sum));
    assert_ok(tn_backward(tn_sum(sum)));
    assert_values(tn_grad(x), 5, 7);
}

static void a_write_to_a_view_rewrites_its_base(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2, 2), 1, 2, 3, 4), *w = LEAF(TN_SHAPE(2), 10, 100);
    tn_tensor *y = tn_clone(x);
    tn_tensor *row = tn_select(y, 0, 1);
    tn_mul_(row, w);
    assert_string_equal(tn_grad_fn_name(y), "CopySlices");
    assert_values(y, 1, 2, 30, 400);
    assert_ok(tn_backward(tn_sum(tn_mul(y, y))));
    assert_values(tn_grad(x), 2, 4, 2 * 30 * 10, 2 * 400 * 100);
    assert_values(tn_grad(w), 2 * 30 * 3, 2 * 400 * 4);
}

static void the_view_itself_goes_on(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(3), 1, 2, 3);
    tn_tensor *y = tn_clone(x), *v = tn_slice(y, 0, 1, 3);
    tn_mul_scalar_(v, tn_float(5));
    assert_string_equal(tn_grad_fn_name(v), "AsStridedBackward");
    assert_ok(tn_backward(tn_sum(tn_mul(v, v))));
    assert_values(tn_grad(x), 0, 2 * 10 * 5, 2 * 15 * 5);
}

static void views_follow_their_base(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2, 2), 1, 2, 3, 4);
    tn_tensor *y = tn_clone(x);
    tn_tensor *column = tn_select(y, 1, 0), *across = tn_transpose(y, 0, 1);
    tn_mul_(y, y);
    assert_values(column, 1, 9);
    tn_tensor *loss = tn_add(tn_sum(column), tn_sum(tn_mul(across, across)));
    assert_ok(tn_backward(loss));
    /* sum of x[:,0]^2, and of x^4 */
    assert_values(tn_grad(x), 2 * 1 + 4 * 1, 4 * 8, 2 * 3 + 4 * 27, 4 * 64);
}

static void siblings_follow_each_other(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(3), 1, 2, 3);
    tn_tensor *y = tn_clone(x);
    tn_tensor *left = tn_slice(y, 0, 0, 2), *right = tn_slice(y, 0, 1, 3);
    tn_mul_scalar_(left, tn_float(10));
    tn_mul_(right, right);
    assert_values(y, 10, 400, 9);
    assert_values(left, 10, 400);
    assert_ok(tn_backward(tn_sum(left)));
    assert_values(tn_grad(x), 10, 2 * 20 * 10, 0);
}

static void views_of_views_have_the_root_as_base(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    tn_tensor *y = tn_mul_scalar(x, tn_float(1));
    tn_tensor *corner = tn_select(tn_slice(tn_transpose(y, 0, 1), 0, 1, 3), 1, 1); /* 5, 6 */
    tn_mul_(corner, corner);
    assert_values(y, 1, 2, 3, 4, 25, 36);
    assert_ok(tn_backward(tn_sum(y)));
    assert_values(tn_grad(x), 1, 1, 1, 1, 10, 12);
}

static void a_transposed_base(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2, 2), 1, 2, 3, 4);
    tn_tensor *y = tn_mul_scalar(tn_transpose(x, 0, 1), tn_float(3));
    tn_mul_scalar_(tn_select(y, 0, 0), tn_float(2));
    assert_ok(tn_backward(tn_sum(y)));
    assert_values(tn_grad(x), 6, 3, 6, 3);
}

static void filling_a_fresh_tensor_piece_by_piece(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 2, 3), *out = tn_zeros(TN_SHAPE(2, 2), TN_F64, cpu());
    tn_copy_(tn_select(out, 0, 0), x);
    tn_copy_(tn_select(out, 0, 1), tn_mul(x, x));
    assert_values(out, 2, 3, 4, 9);
    assert_ok(tn_backward(tn_sum(tn_mul(out, out))));
    assert_values(tn_grad(x), 2 * 2 + 4 * 8, 2 * 3 + 4 * 27);
}

static void overwritten_values_get_no_gradient(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(3), 1, 2, 3);
    tn_tensor *y = tn_mul(x, x);
    tn_zero_(tn_select(y, 0, 1));
    assert_ok(tn_backward(tn_sum(y)));
    assert_values(tn_grad(x), 2, 0, 6);
}

static void views_without_a_base_history_stay_plain(void **state) {
    tn_tensor *x = VALUES(TN_SHAPE(2), 1, 2), *v = tn_select(x, 0, 0);
    tn_add_(x, x);
    assert_false(tn_requires_grad(v));
    tn_tensor *w = LEAF(TN_SHAPE(2), 1, 2), *u = tn_select(w, 0, 0);
    {
        TN_NO_GRAD;
        tn_add_(w, w); /* an optimizer's step changes values, not history */
    }
    assert_string_equal(tn_grad_fn_name(u), "SelectBackward");
}

static void views_of_several_outputs_are_refused(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2, 2), 1, 2, 3, 4), *rows[2];
    tn_tensor *y = tn_clone(x);
    assert_ok(tn_unbind(y, 0, rows, 2));
    assert_null(tn_mul_(rows[0], rows[0]));
    assert_error(TN_ERR_STATE, "several views", "tn_select");
    assert_null(tn_mul_(tn_slice(rows[0], 0, 0, 1), rows[0]));
    assert_error(TN_ERR_STATE, "several views");
}

static void views_made_without_recording_are_refused(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 1, 2), *y = tn_clone(x), *v;
    {
        TN_NO_GRAD;
        v = tn_select(y, 0, 0);
        tn_add_(v, v);
    }
    assert_null(tn_add_(v, tn_select(x, 0, 0)));
    assert_error(TN_ERR_STATE, "recording was off");
}

/* Nothing in the call requires a gradient, but what the view is a part of does. */
static void untracked_writes_to_a_tracked_base_are_refused(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 1, 2), *y = tn_clone(x), *plain = VALUES(TN_SHAPE(2), 5, 6);
    tn_tensor *v, *late = tn_select(plain, 0, 0);
    {
        TN_NO_GRAD;
        v = tn_slice(y, 0, 0, 1);
    }
    assert_null(tn_mul_scalar_(v, tn_float(3)));
    assert_error(TN_ERR_STATE, "tn_mul_scalar_", "recording was off");
    assert_null(tn_zero_(v));
    assert_error(TN_ERR_STATE, "recording was off");
    assert_null(tn_uniform_(v));
    assert_error(TN_ERR_STATE, "recording was off");
    assert_values(y, 1, 2);
    tn_set_requires_grad(plain, true);
    assert_null(tn_mul_scalar_(late, tn_float(3)));
    assert_error(TN_ERR_STATE, "a view of a leaf that requires a gradient");
    {
        TN_NO_GRAD;
        assert_ptr_equal(tn_mul_scalar_(late, tn_float(3)), late);
        assert_ptr_equal(tn_mul_scalar_(v, tn_float(1)), v);
    }
    assert_values(plain, 15, 6);
    tn_tensor *free_of_it = tn_select(VALUES(TN_SHAPE(2), 1, 2), 0, 0);
    assert_ptr_equal(tn_mul_scalar_(free_of_it, tn_float(3)), free_of_it);
}

static void expanded_memory_is_refused(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 2), *y = tn_expand(tn_clone(x), TN_SHAPE(3));
    assert_null(tn_mul_(y, y));
    assert_error(TN_ERR_STATE, "expanded", "tn_clone");
}

static void out_forms_do_not_record(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 2), *out = SCALAR(0);
    out = VALUES(TN_SHAPE(1), 0);
    assert_null(tn_mul_out(x, x, out));
    assert_error(TN_ERR_UNSUPPORTED, "tn_mul_out", "out");
    TN_NO_GRAD;
    assert_ptr_equal(tn_mul_out(x, x, out), out);
    assert_values(out, 4);
}

static void writes_through_detach_are_found(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 2), *y = tn_clone(x), *z = tn_mul(y, y);
    tn_zero_(tn_detach(y));
    assert_int_equal(tn_backward(z), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "written in place");
}

static void a_write_after_a_save_leaks_nothing(void **state) {
    /* The write's history holds the node that saved the old value; without care they would hold
     * each other for ever. leave_clean counts the tensors. */
    tn_tensor *x = LEAF(TN_SHAPE(2), 1, 2), *w = LEAF(TN_SHAPE(2), 3, 4);
    tn_tensor *h = tn_exp(x);
    tn_add_(h, tn_mul(h, w));
    assert_int_equal(tn_backward(tn_sum(h)), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "MulBackward", "written in place");
    tn_tensor *base = tn_exp(x), *v = tn_select(base, 0, 0);
    tn_add_(v, tn_mul(tn_sum(base), tn_sum(tn_mul(v, v))));
}

static void retained_gradients_follow_a_write(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 2), *y = tn_clone(x);
    assert_ok(tn_retain_grad(y));
    tn_mul_scalar_(y, tn_float(3));
    assert_ok(tn_backward(tn_mul(y, y)));
    assert_values(tn_grad(y), 12);
    assert_values(tn_grad(x), 36);
}

/* ---- second derivatives ------------------------------------------------------------------ */

static tn_status write_to_a_view(tn_tensor *const *in, uint64_t n, tn_tensor **outputs,
                                 uint64_t *n_outputs, void *user) {
    tn_tensor *y = tn_mul(in[0], in[0]);
    tn_tensor *before = tn_select(y, 1, 0);
    tn_mul_(tn_select(y, 0, 1), in[1]);
    outputs[0] = tn_mul(y, y);
    outputs[1] = tn_mul(before, before);
    *n_outputs = 2;
    return outputs[0] && outputs[1] ? TN_OK : tn_error_status();
}

static void writes_to_views_pass_gradcheck(void **state) {
    tn_tensor *in[] = {LEAF(TN_SHAPE(2, 2), 0.5, -1.2, 0.7, 0.9), LEAF(TN_SHAPE(2), 1.5, -0.8)};
    assert_ok(tn_gradcheck(write_to_a_view, NULL, in, 2, NULL));
    assert_ok(tn_gradgradcheck(write_to_a_view, NULL, in, 2, NULL));
}

static tn_status tanh_in_a_view(tn_tensor *const *in, uint64_t n, tn_tensor **outputs,
                                uint64_t *n_outputs, void *user) {
    tn_tensor *y = tn_mul(in[0], in[0]);
    tn_tanh_(tn_select(y, 0, 1));
    outputs[0] = tn_mul(y, y);
    *n_outputs = 1;
    return outputs[0] ? TN_OK : tn_error_status();
}

static tn_tensor *tanh_beside(tn_tensor *x) {
    tn_tensor *square = tn_mul(x, x), *first = tn_select(square, 0, 0),
              *second = tn_tanh(tn_select(square, 0, 1));
    return tn_add(tn_sum(tn_mul(first, first)), tn_sum(tn_mul(second, second)));
}

/* Second pass and third, each the last of its graph: what the operator saved of its result leads by
 * way of the whole, and is met once. */
static void a_saved_result_in_a_view_is_differentiated_again(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2, 2), 0.5, -1.2, 0.7, 0.9), *out, *g[2], *gg[2], *ggg[2];
    uint64_t n_out;
    for (int k = 0; k < 2; k++) {
        tn_tensor *loss = tanh_beside(x);
        if (k == 0) {
            assert_ok(tanh_in_a_view(&x, 1, &out, &n_out, NULL));
            loss = tn_sum(out);
        }
        assert_ok(tn_gradients(&loss, NULL, 1, &x, 1, false, true, false, &g[k]));
        tn_tensor *next = tn_sum(tn_mul(g[k], g[k]));
        assert_ok(tn_gradients(&next, NULL, 1, &x, 1, false, true, false, &gg[k]));
        next = tn_sum(tn_mul(gg[k], gg[k]));
        assert_ok(tn_gradients(&next, NULL, 1, &x, 1, false, false, false, &ggg[k]));
    }
    tn_tensor *pairs[][2] = {{g[0], g[1]}, {gg[0], gg[1]}, {ggg[0], ggg[1]}};
    for (int i = 0; i < 3; i++) {
        double far = 1;
        assert_ok(tn_item(tn_max(tn_abs(tn_sub(pairs[i][0], pairs[i][1]))), &far));
        assert_true(far <= 1e-9);
    }
    assert_ok(tn_gradgradcheck(tanh_in_a_view, NULL, &x, 1, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_write_keeps_the_gradient_right),
        TEST(versions_count_writes),
        TEST(leaves_are_refused),
        TEST(a_leaf_that_needs_none_gets_a_history),
        TEST(a_write_to_a_view_rewrites_its_base),
        TEST(the_view_itself_goes_on),
        TEST(views_follow_their_base),
        TEST(siblings_follow_each_other),
        TEST(views_of_views_have_the_root_as_base),
        TEST(a_transposed_base),
        TEST(filling_a_fresh_tensor_piece_by_piece),
        TEST(overwritten_values_get_no_gradient),
        TEST(views_without_a_base_history_stay_plain),
        TEST(views_of_several_outputs_are_refused),
        TEST(views_made_without_recording_are_refused),
        TEST(untracked_writes_to_a_tracked_base_are_refused),
        TEST(expanded_memory_is_refused),
        TEST(out_forms_do_not_record),
        TEST(writes_through_detach_are_found),
        TEST(a_write_after_a_save_leaks_nothing),
        TEST(retained_gradients_follow_a_write),
        TEST(writes_to_views_pass_gradcheck),
        TEST(a_saved_result_in_a_view_is_differentiated_again),
    };
    return cmocka_run_group_tests_name("in place and views", tests, NULL, NULL);
}
