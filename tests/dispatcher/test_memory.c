/* The registry without memory, and in a loop. */
#include "tests/dispatcher/dispatch_test.h"

#include <stdio.h>

enum { LOOPS = 20000 };

static tn_registration *hang(const tn_op *op, const char *device_type, intptr_t n) {
    return tn_handler_register(op, TN_KEY_BACKEND, device_type, answer, number(n), "test");
}

static void registering_in_a_loop_does_not_grow(void **state) {
    tn_op *op = tn_op_define("f(Tensor x) -> int", "test", NULL);
    tn_registration *first = hang(NULL, NULL, 1), *definition;
    int64_t before = 0;
    for (int i = 0; i < LOOPS; i++) {
        tn_registration *own = hang(op, NULL, 2), *backend = hang(op, "npu", 3);
        tn_registration *all = hang(NULL, "gpu", 4);
        assert_non_null(tn_op_define("g(Tensor x) -> int", "test", &definition));
        tn_registration_drop(own); /* not the newest */
        tn_registration_drop(definition);
        tn_registration_drop(all);
        tn_registration_drop(backend);
        if (i == 10)
            before = tni_alloc_outstanding();
    }
    assert_int_equal(tni_alloc_outstanding(), before);
    assert_int_equal(tni_op_count(), 2);
    tn_registration_drop(first);
}

static void many_registrations_for_one_backend_are_one_entry(void **state) {
    enum { MANY = 600 }; /* more than a row has room for */
    static tn_registration *all[MANY];
    tn_op *f = tn_op_define("f(Tensor x) -> int", "test", NULL);
    tni_tensor_head t = tensor_on("npu", 0);
    for (int i = 0; i < MANY; i++)
        all[i] = hang(i % 2 ? f : NULL, "npu", i);
    assert_int_equal(atomic_load(&f->row)->n_backend_entries, 1);
    for (int i = MANY - 1; i > 2; i--) {
        if (i % 2)
            assert_int_equal(who_answers(f, &t), i);
        tn_registration_drop(all[i]);
    }
}

static void the_same_state_publishes_the_same_row(void **state) {
    tn_op *f = tn_op_define("f(Tensor x) -> int", "test", NULL);
    tn_op *g = tn_op_define("g(Tensor x) -> int", "test", NULL);
    tn_registration *all = hang(NULL, NULL, 1);
    const tni_row *row = atomic_load(&f->row);
    assert_ptr_equal(atomic_load(&g->row), row); /* shared */
    tn_registration *own = hang(f, NULL, 2);
    const tni_row *retired = atomic_load(&f->row);
    assert_ptr_not_equal(retired, row);
    tn_registration_drop(own);
    assert_ptr_equal(atomic_load(&f->row), row);
    assert_ptr_equal(retired->entries[TN_KEY_BACKEND].user, number(2)); /* still readable */
    own = hang(f, NULL, 2);
    assert_ptr_equal(atomic_load(&f->row), retired);
    tn_registration_drop(own);
    tn_registration_drop(all);
}

/* What a failing call could have disturbed. */
typedef struct snapshot {
    const tni_row *f, *g;
    uint32_t n_ops;
    int64_t outstanding;
    const char *backend;
} snapshot;

static snapshot take(const tn_op *f, const tn_op *g) {
    return (snapshot){atomic_load(&f->row), atomic_load(&g->row), tni_op_count(),
                      tni_alloc_outstanding(), tni_backend_name(1)};
}

static void failing_allocations_change_nothing(void **state) {
    static const struct {
        bool define, on_all;
        const char *device_type;
    } steps[] = {{.define = true},
                 {.on_all = false},
                 {.on_all = true},
                 {.device_type = "npu"},
                 {.on_all = true, .device_type = "gpu"}};
    for (size_t step = 0; step < N_OF(steps); step++) {
        for (uint64_t n = 1;; n++) {
            tn_op *f = tn_op_define("f(Tensor x) -> int", "test", NULL);
            tn_op *g = tn_op_define("g(Tensor x) -> int", "test", NULL);
            tn_registration *a = hang(f, NULL, 1), *b = hang(NULL, NULL, 2);
            tn_registration *made = NULL;
            snapshot before = take(f, g);
            tni_alloc_fail_at(n);
            if (steps[step].define)
                tn_op_define("h(Tensor x) -> int", "test", &made);
            else
                made = hang(steps[step].on_all ? NULL : f, steps[step].device_type, 3);
            uint64_t n_made = tni_alloc_fail_at(0);
            if (made) {
                assert_true(n > n_made); /* every allocation had its turn */
                tn_registration_drop(made);
                tn_registration_drop(a);
                tn_registration_drop(b);
                tni_registry_finish();
                break;
            }
            assert_int_equal(tn_error_status(), TN_ERR_OUT_OF_MEMORY);
            tn_error_clear();
            snapshot after = take(f, g);
            assert_ptr_equal(after.f, before.f);
            assert_ptr_equal(after.g, before.g);
            assert_int_equal(after.n_ops, before.n_ops);
            assert_ptr_equal(after.backend, before.backend);
            assert_null(tni_op_lookup("h"));
            /* It works once there is memory, and dropping restores, without any. */
            tn_registration *again = hang(NULL, "gpu", 9);
            assert_non_null(again);
            tni_alloc_fail_at(0);
            tn_registration_drop(a);
            tn_registration_drop(again);
            tn_registration_drop(b);
            assert_int_equal(tni_alloc_fail_at(0), 0);
            tni_tensor_head t = tensor_on("npu", 0);
            assert_int_equal(who_answers(f, &t), -1);
            tni_registry_finish();
        }
    }
}

static void a_backend_without_memory_takes_no_id(void **state) {
    tni_alloc_fail_at(1);
    assert_int_equal(tni_backend_id("npu"), -1);
    tni_alloc_fail_at(0);
    assert_int_equal(tn_error_status(), TN_ERR_OUT_OF_MEMORY);
    assert_null(tni_backend_name(1));
    assert_int_equal(tni_backend_id("npu"), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(registering_in_a_loop_does_not_grow),
        TEST(many_registrations_for_one_backend_are_one_entry),
        TEST(the_same_state_publishes_the_same_row),
        TEST(failing_allocations_change_nothing),
        TEST(a_backend_without_memory_takes_no_id),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
