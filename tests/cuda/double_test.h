/* What the tests of the driver double share. A test begins with the primary context of device 0
 * current, and ends with nothing left alive. */
#ifndef TNI_TESTS_CUDA_DOUBLE_TEST_H
#define TNI_TESTS_CUDA_DOUBLE_TEST_H

#include "tests/cuda/double/double.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static inline const char *error_name(CUresult error) {
    const char *name = NULL;
    cuGetErrorName(error, &name);
    return name ? name : "an error without a name";
}

/* The call answers with `expected`, and a failure says what it answered with. */
#define assert_answer(call, expected) \
    do { \
        CUresult answer = (call); \
        if (answer != (expected)) \
            fail_msg("%s: %s", #call, error_name(answer)); \
    } while (0)

#define assert_good(call) assert_answer(call, CUDA_SUCCESS)

static inline int begin_double(void **state) {
    CUcontext context;
    assert_good(cuInit(0));
    assert_good(cuDevicePrimaryCtxRetain(&context, 0));
    assert_good(cuCtxPushCurrent(context));
    *state = context;
    return 0;
}

static inline int end_double(void **state) {
    CUcontext context;
    double_let_go();
    assert_true(double_configure("fail= fault= lose= delay=0ns"));
    uint64_t before[DOUBLE_KINDS];
    for (int i = 0; i < DOUBLE_KINDS; i++)
        before[i] = double_abandoned((double_kind)i);
    assert_good(cuCtxPopCurrent(&context));
    assert_ptr_equal(context, *state);
    assert_good(cuDevicePrimaryCtxRelease(0));
    for (int i = 0; i < DOUBLE_KINDS; i++) {
        assert_int_equal(double_alive((double_kind)i), 0);
        assert_int_equal(double_abandoned((double_kind)i), before[i]);
    }
    return 0;
}

/* A test that leaves the context broken, with what it had. */
static inline int end_broken(void **state) {
    CUcontext context;
    double_let_go();
    assert_true(double_configure("fail= fault= lose= delay=0ns"));
    assert_good(cuCtxPopCurrent(&context));
    assert_good(cuDevicePrimaryCtxRelease(0));
    for (int i = 0; i < DOUBLE_KINDS; i++)
        assert_int_equal(double_alive((double_kind)i), 0);
    return 0;
}

#define DOUBLE_TEST(test) cmocka_unit_test_setup_teardown(test, begin_double, end_double)
#define BROKEN_TEST(test) cmocka_unit_test_setup_teardown(test, begin_double, end_broken)

#endif
