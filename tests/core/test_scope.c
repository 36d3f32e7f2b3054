/* Scopes: what they hold, in which order they let go, and what leaves them early. */
#include "tests/core/core_test.h"

#include "core/call/wrap.h"
#include "core/tensor/tensor.h"

#include <pthread.h>

static int order[64], n_released;

static void note(void *user) {
    order[n_released++] = (int)(intptr_t)user;
}

/* A tensor that notes its number when it dies, held by the innermost scope. */
static tn_tensor *numbered(tni_device *d, int number) {
    static float memory[1];
    return tni_scope_push(tni_tensor_foreign(d, TN_F32, 1, (int64_t[]){1}, (int64_t[]){1}, 1,
                                             memory, sizeof memory, note,
                                             (void *)(intptr_t)number));
}

static tni_device *begin(void) {
    n_released = 0;
    return open_fake();
}

static void assert_released(int n, ...) {
    va_list args;
    va_start(args, n);
    assert_int_equal(n_released, n);
    for (int i = 0; i < n; i++)
        assert_int_equal(order[i], va_arg(args, int));
    va_end(args);
    n_released = 0;
}

static void a_scope_lets_go_in_reverse(void **state) {
    tni_device *d = begin();
    {
        TN_SCOPE;
        for (int i = 1; i <= 3; i++)
            numbered(d, i);
        assert_int_equal(tn_scope_held(), 3);
    }
    assert_released(3, 3, 2, 1);
    assert_int_equal(tn_scope_held(), 0);
}

static int leave_by_return(tni_device *d) {
    TN_SCOPE;
    numbered(d, 1);
    return 5;
}

static void a_scope_ends_however_its_block_is_left(void **state) {
    tni_device *d = begin();
    for (int i = 0; i < 3; i++) {
        TN_SCOPE;
        numbered(d, i);
        if (i == 1)
            break;
        continue;
    }
    assert_released(2, 0, 1);
    assert_int_equal(leave_by_return(d), 5);
    assert_released(1, 1);
}

static void what_is_kept_survives_its_scope(void **state) {
    tni_device *d = begin();
    tn_tensor *kept;
    {
        TN_SCOPE;
        kept = tn_keep(numbered(d, 1));
        numbered(d, 2);
    }
    assert_released(1, 2);
    tn_drop(kept);
    assert_released(1, 1);
}

static void freeing_takes_one_reference_out_of_any_open_scope(void **state) {
    tni_device *d = begin();
    tn_scope outer = tn_scope_open();
    tn_tensor *a = numbered(d, 1);
    numbered(d, 2);
    tn_scope inner = tn_scope_open();
    tn_tensor *c = numbered(d, 3);
    numbered(d, 4);
    tn_free(a);
    assert_released(1, 1);
    tn_free(c);
    assert_released(1, 3);
    tn_scope_close(inner);
    assert_released(1, 4);
    tn_tensor *own = tni_tensor_new(d, TN_F32, 0, NULL);
    tn_free(own); /* held by no scope: left alone */
    assert_int_equal(tn_rank(own), 0);
    tn_drop(own);
    tn_scope_close(outer);
    assert_released(1, 2);
}

static void freeing_a_tensor_that_was_pushed_twice_frees_the_later(void **state) {
    tni_device *d = begin();
    tn_scope outer = tn_scope_open();
    tn_tensor *a = numbered(d, 1);
    tn_scope inner = tn_scope_open();
    tni_scope_push(tni_keep(a));
    tn_free(a);
    tn_scope_close(inner);
    assert_released(0);
    tn_scope_close(outer);
    assert_released(1, 1);
}

static void escaping_moves_to_the_parent_only(void **state) {
    tni_device *d = begin();
    tn_scope outer = tn_scope_open();
    tn_scope middle = tn_scope_open();
    tn_scope inner = tn_scope_open();
    numbered(d, 1);
    tn_tensor *b = numbered(d, 2);
    numbered(d, 3);
    assert_ptr_equal(tn_escape(b), b);
    tn_scope_close(inner);
    assert_released(2, 3, 1);
    tn_escape(b);
    tn_scope_close(middle);
    assert_released(0);
    assert_int_equal(tn_scope_held(), 1);
    tn_scope_close(outer);
    assert_released(1, 2);
}

static void escaping_what_is_not_of_the_scope_changes_nothing(void **state) {
    tni_device *d = begin();
    tn_tensor *a = numbered(d, 1);
    assert_ptr_equal(tn_escape(a), a); /* from the root scope there is no way out */
    {
        TN_SCOPE;
        tn_escape(a);
        numbered(d, 2);
        assert_null(tn_escape(NULL));
        assert_ptr_equal(tn_escape(TN_NONE), TN_NONE);
    }
    assert_released(1, 2);
    tn_scope_close(0);
    assert_released(1, 1);
}

static void closing_an_outer_scope_closes_the_inner_ones(void **state) {
    tni_device *d = begin();
    tn_scope outer = tn_scope_open();
    numbered(d, 1);
    tn_scope inner = tn_scope_open();
    numbered(d, 2);
    tn_scope_close(outer);
    assert_released(2, 2, 1);
    tn_scope again = tn_scope_open();
    numbered(d, 3);
    tn_scope_close(inner); /* went with the outer one; not the same as `again` */
    assert_released(0);
    tn_scope_close(again);
    assert_released(1, 3);
    tn_scope_close(again);
}

static void empty_scopes_within_scopes_stay_apart(void **state) {
    tni_device *d = begin();
    tn_scope a = tn_scope_open(), b = tn_scope_open(), c = tn_scope_open();
    tn_scope_close(c);
    tn_tensor *t = numbered(d, 1);
    tn_escape(t);
    tn_scope_close(b);
    assert_released(0);
    tn_scope_close(a);
    assert_released(1, 1);
}

static tni_device *of_callback;
static void push_more(void *user) {
    note((void *)1);
    TN_SCOPE;
    for (int i = 0; i < 100; i++)
        tni_scope_push(tni_tensor_new(of_callback, TN_F32, 0, NULL));
    numbered(of_callback, 2);
}

static void a_dying_tensor_may_run_code_that_makes_tensors(void **state) {
    of_callback = begin();
    static float memory[1];
    {
        TN_SCOPE;
        numbered(of_callback, 3);
        tni_scope_push(
            tni_tensor_foreign(of_callback, TN_F32, 0, NULL, NULL, 1, memory, 4, push_more, NULL));
    }
    assert_released(3, 1, 2, 3);
    assert_int_equal(tn_scope_held(), 0);
}

static void *hold_some(void *device) {
    tn_scope_open();
    numbered(device, 1);
    tn_scope_open();
    numbered(device, 2);
    assert_int_equal(tn_scope_held(), 2);
    return NULL;
}

static void the_end_of_a_thread_closes_its_scopes(void **state) {
    tni_device *d = begin();
    numbered(d, 3);
    pthread_t thread;
    pthread_create(&thread, NULL, hold_some, d);
    pthread_join(thread, NULL);
    assert_released(2, 2, 1);
    assert_int_equal(tn_scope_held(), 1);
    tn_scope_close(0);
    assert_released(1, 3);
}

static void without_memory_the_parent_scope_takes_over(void **state) {
    tni_device *d = begin();
    tn_scope_close(0);
    tni_scope_finish();
    tni_alloc_fail_at(1);
    tn_scope none = tn_scope_open();
    assert_int_equal(tn_error_status(), TN_OK);
    numbered(d, 1);
    tn_scope_close(none);
    assert_released(0);
    tn_scope_close(0);
    assert_released(1, 1);
    tni_scope_finish();
    tn_tensor *t = tni_tensor_new(d, TN_F32, 0, NULL);
    tni_alloc_fail_at(1);
    assert_null(tni_scope_push(t));
    assert_error(TN_ERR_OUT_OF_MEMORY, "scope", NULL);
    assert_int_equal(tni_tensors_alive(), 0);
    assert_null(tni_scope_push(NULL));
}

/* ---- results that belong to the caller --------------------------------------------------- */

static void owned_results_are_the_callers(void **state) {
    tni_device *d = begin();
    assert_false(tn_results_owned());
    assert_int_equal(tn_set_results_owned(true), TN_OK);
    assert_true(tn_results_owned());
    tn_tensor *t = numbered(d, 1);
    assert_ptr_equal(tn_give(t), t);
    assert_int_equal(tn_scope_held(), 0);
    tn_free(t); /* no scope has it */
    tn_scope_close(0);
    assert_released(0);
    tn_drop(t);
    assert_released(1, 1);
    assert_int_equal(tn_set_results_owned(false), TN_OK);
    numbered(d, 2);
    assert_int_equal(tn_scope_held(), 1);
    tn_scope_close(0);
    assert_released(1, 2);
}

static void scopes_hold_what_is_made_in_them_though_results_are_owned(void **state) {
    tni_device *d = begin();
    assert_int_equal(tn_set_results_owned(true), TN_OK);
    for (int i = 0; i < 2; i++) { /* the second time the marks have room already */
        tn_scope outer = tn_scope_open();
        numbered(d, 1);
        {
            TN_SCOPE;
            numbered(d, 2);
            assert_int_equal(tn_scope_held(), 2);
        }
        assert_released(1, 2);
        tn_tensor *escaped = tn_escape(numbered(d, 3));
        tn_scope_close(outer);
        assert_released(1, 1);
        tn_scope_close(outer); /* it is closed */
        tn_tensor *t = numbered(d, 4);
        assert_int_equal(tn_scope_held(), 0);
        tn_scope_close(outer);
        tn_drop(escaped);
        tn_drop(t);
        assert_released(2, 3, 4);
    }
    tn_scope_open();
    tn_scope_open();
    numbered(d, 5);
    tn_scope_close(0); /* both */
    assert_released(1, 5);
    tn_drop(numbered(d, 6));
    assert_released(1, 6);
}

static void ownership_changes_only_where_nothing_is_held(void **state) {
    tni_device *d = begin();
    tn_scope scope = tn_scope_open();
    assert_int_equal(tn_set_results_owned(true), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "tn_set_results_owned", "a scope is open", NULL);
    tn_scope_close(scope);
    numbered(d, 1);
    assert_int_equal(tn_set_results_owned(true), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "1 tensors", "tn_scope_close(0)", NULL);
    assert_false(tn_results_owned());
    tn_scope_close(0);
    assert_int_equal(tn_set_results_owned(true), TN_OK);
    scope = tn_scope_open();
    assert_int_equal(tn_set_results_owned(false), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "a scope is open", NULL);
    assert_true(tn_results_owned());
    tn_scope_close(scope);
}

static void a_dying_tensor_may_make_tensors_though_results_are_owned(void **state) {
    of_callback = begin();
    static float memory[1];
    assert_int_equal(tn_set_results_owned(true), TN_OK);
    {
        TN_SCOPE;
        numbered(of_callback, 3);
        tni_scope_push(
            tni_tensor_foreign(of_callback, TN_F32, 0, NULL, NULL, 1, memory, 4, push_more, NULL));
    }
    assert_released(3, 1, 2, 3);
    tn_drop(tni_tensor_foreign(of_callback, TN_F32, 0, NULL, NULL, 1, memory, 4, push_more, NULL));
    assert_released(2, 1, 2);
    assert_int_equal(tni_tensors_alive(), 0);
}

static void *own_one(void *device) {
    assert_false(tn_results_owned()); /* the setting is each thread's own */
    assert_int_equal(tn_set_results_owned(true), TN_OK);
    tn_scope_open();
    numbered(device, 1);
    return NULL;
}

static void ownership_is_of_one_thread(void **state) {
    tni_device *d = begin();
    assert_int_equal(tn_set_results_owned(true), TN_OK);
    pthread_t thread;
    pthread_create(&thread, NULL, own_one, d);
    pthread_join(thread, NULL);
    assert_released(1, 1); /* by the scope it had open */
    tn_drop(numbered(d, 2));
    assert_released(1, 2);
    assert_int_equal(tn_shutdown(), TN_OK);
    assert_false(tn_results_owned());
}

static void owning_results_needs_memory_once(void **state) {
    tni_device *d = begin();
    tni_scope_finish();
    tni_alloc_fail_at(1);
    assert_int_equal(tn_set_results_owned(true), TN_ERR_OUT_OF_MEMORY);
    assert_error(TN_ERR_OUT_OF_MEMORY, "scope", NULL);
    assert_false(tn_results_owned());
    assert_int_equal(tn_set_results_owned(true), TN_OK);
    tn_tensor *made[2] = {tni_tensor_new(d, TN_F32, 0, NULL), tni_tensor_new(d, TN_F32, 0, NULL)};
    tni_alloc_fail_at(1);
    assert_ptr_equal(tni_scope_push(made[0]), made[0]);
    tn_scope scope = tn_scope_open(); /* has its mark */
    assert_int_equal(tni_alloc_fail_at(0), 0);
    tni_alloc_fail_at(1);
    assert_null(tni_scope_push(made[1])); /* the scope has no room, and the tensor is gone */
    assert_error(TN_ERR_OUT_OF_MEMORY, "scope", NULL);
    tn_scope_close(scope);
    tn_drop(made[0]);
    assert_int_equal(tni_tensors_alive(), 0);
}

static void nothing(void *user) {}

static tn_tensor *small(tni_device *d) {
    static float memory[1];
    return tni_tensor_foreign(d, TN_F32, 1, (int64_t[]){1}, (int64_t[]){1}, 1, memory,
                              sizeof memory, nothing, NULL);
}

/* The scope's stack grows between the results of one call: none is left over. */
static void results_come_together_or_not_at_all(void **state) {
    tni_device *d = begin();
    int failed = 0;
    for (int filler = 0; filler < 70; filler++) {
        tni_scope_finish(); /* the stack starts anew */
        TN_SCOPE;
        for (int i = 0; i < filler; i++)
            tni_scope_push(small(d));
        int64_t alive = tni_tensors_alive();
        tn_scope scope = tn_scope_open();
        tn_tensor *results[3];
        for (int i = 0; i < 3; i++)
            results[i] = small(d);
        tni_alloc_fail_at(1);
        bool made = results[0] && results[1] && results[2];
        tn_status status = made ? tni_public_status(TN_OK, results, 3, "three") : TN_OK;
        tni_alloc_fail_at(0);
        tn_error_clear();
        assert_true(made);
        tn_scope_close(scope);
        assert_int_equal(tni_tensors_alive(), alive);
        for (int i = 0; i < 3 && status != TN_OK; i++)
            assert_null(results[i]);
        failed += status != TN_OK;
    }
    assert_true(failed >= 3); /* before each of them */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_scope_lets_go_in_reverse),
        TEST(a_scope_ends_however_its_block_is_left),
        TEST(what_is_kept_survives_its_scope),
        TEST(freeing_takes_one_reference_out_of_any_open_scope),
        TEST(freeing_a_tensor_that_was_pushed_twice_frees_the_later),
        TEST(escaping_moves_to_the_parent_only),
        TEST(escaping_what_is_not_of_the_scope_changes_nothing),
        TEST(closing_an_outer_scope_closes_the_inner_ones),
        TEST(empty_scopes_within_scopes_stay_apart),
        TEST(a_dying_tensor_may_run_code_that_makes_tensors),
        TEST(the_end_of_a_thread_closes_its_scopes),
        TEST(without_memory_the_parent_scope_takes_over),
        TEST(owned_results_are_the_callers),
        TEST(scopes_hold_what_is_made_in_them_though_results_are_owned),
        TEST(ownership_changes_only_where_nothing_is_held),
        TEST(a_dying_tensor_may_make_tensors_though_results_are_owned),
        TEST(ownership_is_of_one_thread),
        TEST(owning_results_needs_memory_once),
        TEST(results_come_together_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
