/* Hooks: what they see, what they change, when they go. */
#include "tests/autograd/autograd_test.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct seen {
    int calls, destroyed;
    double value;
    double factor; /* 0: leave the gradient */
    int order, *clock;
} seen;

static tn_tensor *note(tn_tensor *grad, void *user) {
    seen *s = user;
    s->calls++;
    s->order = s->clock ? ++*s->clock : 0;
    double first[8];
    if (tn_to_host(grad, first, (uint64_t)tn_numel(grad) * sizeof(double)) != TN_OK)
        return NULL;
    s->value = first[0];
    return s->factor != 0 ? tn_mul_scalar(grad, tn_float(s->factor)) : grad;
}

static void gone(void *user) {
    ((seen *)user)->destroyed++;
}

static void a_hook_sees_the_complete_gradient(void **state) {
    seen s = {0}, of_leaf = {0};
    tn_tensor *x = LEAF(TN_SHAPE(1), 3), *h = tn_mul(x, x);
    tn_registration *r = tn_register_hook(h, note, &s, gone);
    tn_registration *l = tn_register_hook(x, note, &of_leaf, gone);
    assert_ok(tn_backward(tn_add(h, tn_mul(h, h)))); /* 1 + 2h */
    assert_int_equal(s.calls, 1);
    assert_true(s.value == 19);
    assert_int_equal(of_leaf.calls, 1);
    assert_true(of_leaf.value == 114);
    tn_registration_drop(r);
    tn_registration_drop(l);
    assert_int_equal(s.destroyed, 1);
    assert_int_equal(of_leaf.destroyed, 1);
}

static tn_tensor *record(tn_tensor *grad, void *weight) {
    bool before = tn_set_grad_enabled(true);
    tn_tensor *result =
        weight ? tn_mul(grad, weight) : tn_set_requires_grad(tn_mul_scalar(grad, tn_int(2)), true);
    tn_set_grad_enabled(before);
    return result;
}

/* Whatever a hook makes of it. */
static void a_gradient_has_no_history(void **state) {
    tn_tensor *w = LEAF(TN_SHAPE(2), 2, 2);
    for (int marks = 0; marks < 2; marks++) {
        tn_tensor *x = LEAF(TN_SHAPE(2), 3, 4);
        tn_registration *r = tn_register_hook(x, record, marks ? NULL : w, NULL);
        assert_ok(tn_backward(tn_sum(tn_square(x))));
        assert_false(tn_requires_grad(tn_grad(x)));
        assert_string_equal(tn_grad_fn_name(tn_grad(x)), "");
        assert_values(tn_grad(x), 12, 16);
        assert_non_null(tn_fill_(tn_grad(x), tn_float(0)));
        tn_registration_drop(r);
    }
}

static void hooks_run_in_order_and_replace(void **state) {
    int clock = 0;
    seen a = {.factor = 2, .clock = &clock}, b = {.factor = 5, .clock = &clock};
    tn_tensor *x = LEAF(TN_SHAPE(1), 3), *h = tn_mul(x, x);
    tn_registration *ra = tn_register_hook(h, note, &a, NULL);
    tn_registration *rb = tn_register_hook(h, note, &b, NULL);
    assert_ok(tn_retain_grad(h));
    assert_ok(tn_backward(h));
    assert_int_equal(a.order, 1);
    assert_int_equal(b.order, 2);
    assert_true(b.value == 2);
    assert_values(tn_grad(h), 10);
    assert_values(tn_grad(x), 60);
    tn_registration_drop(rb);
    tn_registration_drop(ra);
}

static void a_dropped_hook_is_not_called(void **state) {
    seen s = {0};
    tn_tensor *x = LEAF(TN_SHAPE(1), 3);
    tn_registration *r = tn_register_hook(x, note, &s, gone);
    tn_registration_drop(r);
    assert_ok(tn_backward(tn_mul(x, x)));
    assert_int_equal(s.calls, 0);
}

static void hooks_go_with_their_tensor(void **state) {
    seen s = {0};
    tn_registration *r;
    {
        TN_SCOPE;
        tn_tensor *x = LEAF(TN_SHAPE(1), 3);
        r = tn_register_hook(tn_mul(x, x), note, &s, gone);
        assert_non_null(r);
    }
    assert_int_equal(s.destroyed, 1);
    tn_registration_drop(r);
    assert_int_equal(s.destroyed, 1);
}

static void hooks_are_called_for_captures(void **state) {
    seen s = {.factor = 3};
    tn_tensor *x = LEAF(TN_SHAPE(1), 3), *y = tn_mul(x, x), *g;
    tn_registration *r = tn_register_hook(x, note, &s, NULL);
    assert_ok(tn_gradients(&y, NULL, 1, &x, 1, false, false, false, &g));
    assert_values(g, 18);
    tn_registration_drop(r);
}

static tn_tensor *stop(tn_tensor *grad, void *user) {
    tn_fail(TN_ERR_INVALID_ARGUMENT, "enough");
    return NULL;
}
static tn_tensor *misshape(tn_tensor *grad, void *user) {
    return VALUES(TN_SHAPE(2), 1, 2);
}
static tn_tensor *nothing(tn_tensor *grad, void *user) {
    return NULL;
}

static void a_hook_can_stop_backward(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 3), *y = tn_mul(x, x);
    tn_registration *r = tn_register_hook(y, stop, NULL, NULL);
    assert_int_equal(tn_backward(y), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "MulBackward", "enough");
    assert_null(tn_grad(x));
    tn_registration_drop(r);
    r = tn_register_hook(y, misshape, NULL, NULL);
    assert_int_equal(tn_backward(y), TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "[1]", "[2]");
    tn_registration_drop(r);
    r = tn_register_hook(y, nothing, NULL, NULL);
    assert_int_equal(tn_backward(y), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "returned NULL");
    tn_registration_drop(r);
    assert_ok(tn_backward(y));
}

static void hooks_need_something_to_hang_on(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 3), *plain = SCALAR(1);
    assert_null(tn_register_hook(plain, stop, NULL, NULL));
    assert_error(TN_ERR_STATE, "tn_set_requires_grad");
    assert_null(tn_register_node_hook(x, NULL, NULL, NULL));
    assert_error(TN_ERR_INVALID_ARGUMENT, "function");
    assert_null(tn_register_hook(NULL, stop, NULL, NULL));
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_register_hook", "NULL");
}

static tn_status drop_second(tn_tensor **grads, uint64_t n, void *user) {
    assert_int_equal(n, 2);
    grads[0] = tn_mul_scalar(grads[0], tn_float(100));
    grads[1] = NULL;
    (*(int *)user)++;
    return TN_OK;
}
static tn_status refuse(tn_tensor **grads, uint64_t n, void *user) {
    grads[0] = NULL;
    return tn_fail(TN_ERR_UNSUPPORTED, "no more");
}

static void node_hooks_change_input_gradients(void **state) {
    int calls = 0;
    tn_tensor *x = LEAF(TN_SHAPE(1), 3), *w = LEAF(TN_SHAPE(1), 5), *y = tn_mul(x, w);
    tn_registration *r = tn_register_node_hook(y, drop_second, &calls, NULL);
    assert_ok(tn_backward_full(&y, NULL, 1, true, false));
    assert_int_equal(calls, 1);
    assert_values(tn_grad(x), 500);
    assert_null(tn_grad(w));
    tn_registration_drop(r);
    r = tn_register_node_hook(y, refuse, NULL, NULL);
    assert_int_equal(tn_backward(y), TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED, "MulBackward", "no more");
    tn_registration_drop(r);
    assert_null(tn_register_node_hook(x, drop_second, NULL, NULL));
    assert_error(TN_ERR_STATE, "tn_register_hook");
}

/* Backward inside backward: of a graph of its own, and of nodes that the pass around it owns. */
typedef struct inner {
    tn_tensor *a, *x;
} inner;

static tn_tensor *nested(tn_tensor *grad, void *user) {
    inner *in = user;
    tn_tensor *own = LEAF(TN_SHAPE(1), 4), *g;
    bool before = tn_set_grad_enabled(true);
    tn_status status = tn_backward(tn_mul(own, own));
    tn_set_grad_enabled(before);
    if (status != TN_OK ||
        tn_gradients(&in->a, NULL, 1, &in->x, 1, true, false, false, &g) != TN_OK)
        return NULL;
    return tn_mul(tn_mul(grad, tn_grad(own)), g);
}

static void backward_may_be_called_in_a_hook(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 3), *a = tn_mul(x, x), *h = tn_mul_scalar(a, tn_float(2));
    inner in = {a, x};
    tn_registration *r = tn_register_hook(h, nested, &in, NULL);
    assert_ok(tn_backward(tn_mul(h, h)));
    /* 2h times 2 times 2x, and what the hook puts in between: 8 times 2x */
    assert_values(tn_grad(x), 36 * 2 * 6 * 8 * 6);
    tn_registration_drop(r);
}

typedef struct dropped {
    tn_registration *registration;
    int destroyed, destroyed_while_it_ran;
} dropped;

static tn_tensor *drops_itself(tn_tensor *grad, void *user) {
    dropped *d = user;
    tn_registration_drop(d->registration);
    d->registration = NULL;
    d->destroyed_while_it_ran = d->destroyed;
    return grad;
}

static void count_destroyed(void *user) {
    ((dropped *)user)->destroyed++;
}

static void a_hook_may_take_itself_off(void **state) {
    dropped d = {0};
    tn_tensor *x = LEAF(TN_SHAPE(1), 3);
    d.registration = tn_register_hook(x, drops_itself, &d, count_destroyed);
    assert_ok(tn_backward(tn_mul(x, x)));
    assert_null(d.registration);
    assert_int_equal(d.destroyed_while_it_ran, 0); /* what it uses stays until it has returned */
    assert_int_equal(d.destroyed, 1);
    assert_ok(tn_backward(tn_mul(x, x)));
    assert_values(tn_grad(x), 12);
}

static void many_hooks(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 3);
    seen s[20];
    tn_registration *r[20];
    for (int i = 0; i < 20; i++) {
        s[i] = (seen){.factor = 2};
        r[i] = tn_register_hook(x, note, &s[i], NULL);
    }
    assert_ok(tn_backward(tn_sum(x)));
    assert_values(tn_grad(x), 1048576);
    for (int i = 0; i < 20; i++)
        tn_registration_drop(r[(i * 7) % 20]);
}

/* What an operator in a hook fails with says which operator it was, also behind the node's name. */
static tn_tensor *add_what_does_not_fit(tn_tensor *grad, void *user) {
    return tn_add(grad, VALUES(TN_SHAPE(3), 1, 2, 3));
}

static void the_operator_that_failed_in_a_hook_is_named(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 3, 4);
    tn_tensor *y = tn_mul(x, x);
    tn_registration *r = tn_register_hook(y, add_what_does_not_fit, NULL, NULL);
    assert_int_equal(tn_backward(tn_sum(y)), TN_ERR_SHAPE);
    assert_string_equal(tn_error_operator(), "add.Tensor");
    assert_error(TN_ERR_SHAPE, "MulBackward, in backward: ");
    tn_registration_drop(r);
}

/* ---- scopes of others -------------------------------------------------------------------- */

static tn_scope outer;

static tn_tensor *close_all(tn_tensor *grad, void *user) {
    {
        TN_SCOPE; /* its own may be closed */
        tn_mul(grad, grad);
    }
    tn_scope_close(*(tn_scope *)user);
    assert_error(TN_ERR_STATE, "opened outside");
    return tn_mul(grad, grad);
}

static tn_status close_all_forward(tn_function_context *c, tn_tensor *const *inputs,
                                   uint64_t n_inputs, tn_tensor **outputs, uint64_t n_outputs,
                                   void *user) {
    tn_scope_close(0);
    assert_error(TN_ERR_STATE, "opened outside");
    outputs[0] = tn_mul(inputs[0], inputs[0]);
    return TN_OK;
}

static tn_status close_all_backward(tn_function_context *c, tn_tensor *const *grads,
                                    uint64_t n_grads, tn_tensor **out, uint64_t n, void *user) {
    tn_scope_close(outer);
    assert_error(TN_ERR_STATE, "opened outside");
    out[0] = tn_mul(grads[0], grads[0]);
    return TN_OK;
}

static void a_callback_cannot_close_the_scopes_of_its_caller(void **state) {
    static const tn_function square = {"SquareBackward", close_all_forward, close_all_backward,
                                       NULL};
    tn_scope root = 0;
    outer = tn_scope_open();
    tn_tensor *x = LEAF(TN_SHAPE(2), 3, 4), *y = tn_mul(x, x), *z;
    assert_ok(tn_function_apply(&square, NULL, &y, 1, &z, 1));
    tn_registration *a = tn_register_hook(y, close_all, &root, NULL);
    tn_registration *b = tn_register_hook(z, close_all, &outer, NULL);
    uint64_t held = tn_scope_held();
    assert_ok(tn_backward(tn_sum(z)));
    assert_int_equal(tn_scope_held(), held + 1); /* the sum */
    assert_values(z, 81, 256);
    assert_values(tn_grad(x), 6, 8);
    tn_registration_drop(a);
    tn_registration_drop(b);
    tn_scope_close(outer);
    assert_int_equal(tn_scope_held(), 0);
}

/* ---- threads ----------------------------------------------------------------------------- */

static tn_tensor *of_all;
static atomic_bool enough;

static tn_tensor *same(tn_tensor *grad, void *user) {
    return grad;
}

static void *hang_up_and_take_off(void *user) {
    while (!atomic_load(&enough))
        tn_registration_drop(tn_register_hook(of_all, same, NULL, NULL));
    return NULL;
}

static void hooks_come_and_go_while_backward_runs(void **state) {
    of_all = LEAF(TN_SHAPE(1), 3);
    pthread_t thread;
    atomic_store(&enough, false);
    assert_int_equal(pthread_create(&thread, NULL, hang_up_and_take_off, NULL), 0);
    for (int i = 0; i < 500; i++) {
        TN_SCOPE;
        assert_ok(tn_backward(tn_mul(of_all, of_all)));
    }
    atomic_store(&enough, true);
    pthread_join(thread, NULL);
    assert_values(tn_grad(of_all), 3000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_hook_sees_the_complete_gradient),
        TEST(a_gradient_has_no_history),
        TEST(hooks_run_in_order_and_replace),
        TEST(a_dropped_hook_is_not_called),
        TEST(hooks_go_with_their_tensor),
        TEST(hooks_are_called_for_captures),
        TEST(a_hook_can_stop_backward),
        TEST(hooks_need_something_to_hang_on),
        TEST(node_hooks_change_input_gradients),
        TEST(backward_may_be_called_in_a_hook),
        TEST(a_hook_may_take_itself_off),
        TEST(many_hooks),
        TEST(the_operator_that_failed_in_a_hook_is_named),
        TEST(a_callback_cannot_close_the_scopes_of_its_caller),
        TEST(hooks_come_and_go_while_backward_runs),
    };
    return cmocka_run_group_tests_name("hooks", tests, NULL, NULL);
}
