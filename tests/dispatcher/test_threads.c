/* Calls go on while handlers and operators come and go. */
#include "tests/dispatcher/dispatch_test.h"

#include <pthread.h>

enum { CHANGES = 100000, N_READERS = 2 };

static tn_op *op, *transient;
static _Atomic(bool) stop;

/* Its answer says which handler it was; `user` points to what a call must find there. */
static tn_status check_user(const tn_op *o, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                            void *user) {
    rets[0] = int_cell(*(const int *)user);
    return TN_OK;
}

static const int values[] = {0, 1, 2, 3, 4};

static void *call_on(void *unused) {
    tni_tensor_head t = tensor_on("npu", TN_KEY_BIT(TN_KEY_AUTOGRAD));
    tn_cell arg = tensor_cell(&t);
    int64_t wrong = 0;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        tn_cell ret = {.tag = TN_CELL_NONE};
        tn_status status = tni_call(op, &arg, &ret);
        wrong += status != TN_OK || ret.v.i64 < 0 || ret.v.i64 > 4;
        status = tn_op_call(transient, &arg, 1, &ret);
        if (status == TN_ERR_STATE)
            tn_error_clear();
        else
            wrong += status != TN_OK;
        wrong += tn_op_find("f") != op;
    }
    return (void *)(intptr_t)wrong;
}

static void calls_go_on_while_handlers_change(void **state) {
    tn_registration *definition;
    op = tn_op_define("f(Tensor x) -> int", "test", NULL);
    transient = tn_op_define("g(Tensor x) -> int", "test", &definition);
    tn_handler_register(NULL, TN_KEY_BACKEND, NULL, check_user, (void *)&values[0], "test");
    pthread_t readers[N_READERS];
    atomic_store(&stop, false);
    for (int i = 0; i < N_READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, call_on, NULL), 0);
    for (int i = 0; i < CHANGES / 4; i++) {
        static const struct {
            tn_key key;
            const char *device_type;
            bool on_all;
        } forms[] = {{TN_KEY_AUTOGRAD, NULL, false},
                     {TN_KEY_BACKEND, "npu", false},
                     {TN_KEY_AUTOGRAD, NULL, true},
                     {TN_KEY_AUTOGRAD, "npu", true}};
        tn_registration *r[4];
        for (int j = 0; j < 4; j++) {
            r[j] =
                tn_handler_register(forms[j].on_all ? NULL : op, forms[j].key, forms[j].device_type,
                                    check_user, (void *)&values[1 + j], "test");
            assert_non_null(r[j]);
        }
        for (int j = 0; j < 4; j++)
            tn_registration_drop(r[(i + j) % 4]);
        tn_registration_drop(definition);
        assert_ptr_equal(tn_op_define("g(Tensor x) -> int", "test", &definition), transient);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < N_READERS; i++) {
        void *wrong;
        pthread_join(readers[i], &wrong);
        assert_null(wrong);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(calls_go_on_while_handlers_change)};
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
