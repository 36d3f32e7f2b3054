/* TENON_SCOPE_DEBUG=1: tensors that are no longer there are refused, by whatever takes a tensor. */
#include "tests/core/core_test.h"

#include <tenon/tenon.h>

#include <pthread.h>

static tni_device *watched(void) {
    setenv("TENON_SCOPE_DEBUG", "1", 1);
    tni_device *d = open_fake();
    assert_non_null(tn_op_find("add.Tensor")); /* the first use of the library */
    assert_true(tni_lifetimes_watched);
    return d;
}

static tn_tensor *made(tni_device *d) {
    return tni_tensor_new(d, TN_F32, 2, (int64_t[]){2, 3});
}

static tn_tensor *gone(tni_device *d) {
    tn_tensor *t = made(d);
    tn_drop(t);
    return t;
}

static void assert_gone(const char *call) {
    assert_error(TN_ERR_STATE, call, "no longer there", "[2, 3] of f32", NULL);
}

static void an_operator_refuses_what_its_scope_let_go(void **state) {
    tni_device *d = watched();
    tn_tensor *t, *here = made(d), *list[2] = {here};
    {
        TN_SCOPE;
        t = tni_scope_push(made(d));
        assert_int_equal(tn_rank(t), 2);
    }
    assert_null(tn_add(here, t));
    assert_error(TN_ERR_STATE, "add", "argument 'other'", "no longer there", NULL);
    list[1] = t;
    assert_null(tn_cat(list, 2));
    assert_error(TN_ERR_STATE, "cat", "argument 'tensors'", "no longer there", NULL);
    assert_null(tn_neg_(t));
    assert_gone("neg_");
    tn_drop(here);
}

static void a_function_refuses_it(void **state) {
    tni_device *d = watched();
    tn_tensor *t = gone(d);
    float value[6];
    double item;
    assert_int_equal(tn_rank(t), -1);
    assert_gone("tn_rank");
    assert_int_equal(tn_numel(t), -1);
    assert_gone("tn_numel");
    assert_null(tn_data(t));
    assert_gone("tn_data");
    assert_int_equal(tn_to_host(t, value, sizeof value), TN_ERR_STATE);
    assert_gone("tn_to_host");
    assert_int_equal(tn_item(t, &item), TN_ERR_STATE);
    assert_gone("tn_item");
    assert_null(tn_to_string(t));
    assert_gone("tn_to_string");
    assert_null(tn_storage_of(t));
    assert_gone("tn_storage_of");
    assert_null(tn_set_requires_grad(t, true));
    assert_gone("tn_set_requires_grad");
    assert_int_equal(tn_backward(t), TN_ERR_STATE);
    assert_gone("tn_backward");
    assert_null(tn_sgd_create(&t, 1, NULL));
    assert_gone("tn_sgd");
}

static void a_reference_too_many_is_told(void **state) {
    tni_device *d = watched();
    tn_tensor *t = gone(d);
    tn_drop(t);
    assert_gone("tn_drop");
    assert_null(tn_keep(t));
    assert_gone("tn_keep");
    {
        TN_SCOPE;
        tn_drop(tni_scope_push(made(d))); /* the scope's */
    }
    assert_error(TN_ERR_STATE, "tn_scope_close", "that the scope holds", NULL);
}

static void what_others_hold_is_there(void **state) {
    tni_device *d = watched();
    tn_tensor *base = made(d);
    tn_tensor *view = tni_tensor_view_all(base, 2, base->sizes, base->strides);
    tn_tensor *alias = tni_tensor_alias(base);
    tn_drop(base); /* the view holds it */
    assert_int_equal(tn_rank(base), 2);
    tn_drop(view);
    assert_int_equal(tn_rank(base), -1); /* though its storage lives */
    assert_gone("tn_rank");
    assert_int_equal(tn_rank(alias), 2);
    tn_drop(alias);
}

enum { MORE = 70000 };

/* More than wait: slots come back, and the last ones are still known to be gone. */
static void slots_come_back(void **state) {
    tni_device *d = watched();
    tn_tensor *first = gone(d), *last = NULL;
    bool again = false;
    for (int i = 0; i < MORE; i++) {
        last = gone(d);
        again |= last == first;
    }
#if !defined(TNI_HARD)
    assert_true(again);
#endif
    assert_int_equal(tn_rank(last), -1);
    assert_gone("tn_rank");
}

static void *drop_many(void *device) {
    for (int i = 0; i < MORE / 2; i++)
        gone(device);
    return NULL;
}

static void threads_share_the_queue(void **state) {
    tni_device *d = watched();
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, drop_many, d), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

static void nobody_asks_and_nothing_waits(void **state) {
    open_fake();
    assert_non_null(tn_op_find("add.Tensor"));
    assert_false(tni_lifetimes_watched);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_operator_refuses_what_its_scope_let_go),
        TEST(a_function_refuses_it),
        TEST(a_reference_too_many_is_told),
        TEST(what_others_hold_is_there),
        TEST(slots_come_back),
        TEST(threads_share_the_queue),
        TEST(nobody_asks_and_nothing_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
