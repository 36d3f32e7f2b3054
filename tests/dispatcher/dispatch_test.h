/* What the dispatcher's tests share: tensors that are only heads, and handlers that leave a trace.
 */
#ifndef TNI_TESTS_DISPATCHER_DISPATCH_TEST_H
#define TNI_TESTS_DISPATCHER_DISPATCH_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "dispatcher/registry.h"

#define N_OF(array) (sizeof(array) / sizeof *(array))

static inline tni_tensor_head tensor_on(const char *device_type, uint32_t keys) {
    return (tni_tensor_head){UINT64_C(1) << tni_backend_id(device_type), keys};
}

static inline tn_cell tensor_cell(const tni_tensor_head *t) {
    return (tn_cell){.tag = TN_CELL_TENSOR, .v.pointer = (void *)(uintptr_t)t};
}

static inline tn_cell int_cell(int64_t i) {
    return (tn_cell){.tag = TN_CELL_I64, .v.i64 = i};
}

static inline tn_cell float_cell(double f) {
    return (tn_cell){.tag = TN_CELL_F64, .v.f64 = f};
}

/* Answers with `user`, a number, as its first return. */
static inline tn_status answer(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                               void *user) {
    rets[0] = int_cell((int64_t)(intptr_t)user);
    return TN_OK;
}

static inline void *number(intptr_t n) {
    return (void *)n;
}

/* Who answers a call of `op` (one Tensor argument, one return) on t; -1 when nobody does. */
static inline int64_t who_answers(const tn_op *op, const tni_tensor_head *t) {
    tn_cell arg = tensor_cell(t), ret;
    if (tn_op_call(op, &arg, 1, &ret) != TN_OK) {
        tn_error_clear();
        return -1;
    }
    return ret.v.i64;
}

static inline void assert_error(tn_status status, const char *message) {
    assert_int_equal(tn_error_status(), status);
    assert_string_equal(tn_error_message(), message);
    tn_error_clear();
}

/* Every test starts from an empty registry, and leaves no memory behind. */
static inline int start_empty(void **outstanding) {
    tn_error_clear();
    tn_thread_keys_set((tn_thread_keys){0, 0});
    *outstanding = (void *)(intptr_t)tni_alloc_outstanding();
    return 0;
}

static inline int end_empty(void **outstanding) {
    tn_error_clear();
    tni_registry_finish();
    return tni_alloc_outstanding() == (int64_t)(intptr_t)*outstanding ? 0 : -1;
}

/* So that the bookkeeping of the thread's first error is not taken for a leak. */
static inline int warm_up(void **state) {
    tn_fail(TN_ERR_INTERNAL, "warm up");
    tn_error_clear();
    return 0;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, start_empty, end_empty)

#endif
