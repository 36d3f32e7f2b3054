/* What the operators' tests share: tensors from numbers and back, on every device that computes.
 *
 * cpu:0 has kernels for everything; sim:0 has only the small set, so that the same test looks at an
 * operator's kernel on the one and at its decomposition on the other.
 */
#ifndef TNI_TESTS_CORE_OPS_TEST_H
#define TNI_TESTS_CORE_OPS_TEST_H

#include "tests/core/core_test.h"

#include <math.h>
#include <tenon/tenon.h>

extern tn_device dev; /* the device of the running test, and the default device */

/* A test that runs once on each device, in a scope of its own. */
#define OPS_TEST(name) \
    cmocka_unit_test_prestate_setup_teardown(name, on_device, leave_device, "cpu:0"), \
        cmocka_unit_test_prestate_setup_teardown(name, on_device, leave_device, "sim:0")
int on_device(void **state);
int leave_device(void **state);

/* The device that a test's command line names, instead of `name` (room for 32). False: it cannot be opened here, which was said;
 * the test ends with 77. */
bool device_named(int argc, char **argv, char *name);

/* A tensor of the values given, of any dtype: of(TN_F32, TN_SHAPE(2), 1, 2). */
#define of(dtype, shape, ...) \
    of_values(dtype, shape, (const double[]){__VA_ARGS__}, \
              sizeof((const double[]){__VA_ARGS__}) / sizeof(double))
tn_tensor *of_values(tn_dtype dtype, tn_ints shape, const double *values, uint64_t n);
/* Reproducible values between -2 and 2, multiples of 1/64, which every floating dtype holds. */
tn_tensor *noise(tn_dtype dtype, tn_ints shape, uint32_t seed);
tn_tensor *requiring_grad(tn_tensor *t);
/* The same elements with other strides: dimensions 0 and -1 exchanged in memory. */
tn_tensor *restrided(tn_tensor *t);
/* 0, 1, 2, ... */
tn_tensor *counting(tn_dtype dtype, tn_ints shape);

/* t's elements as doubles, row-major; of the test, freed with free(). Fails the test for NULL. */
double *values_of(tn_tensor *t);

/* t has dtype, shape and values, each within tolerance * max(1, |value|); NaN equals NaN. */
#define assert_tensor(t, dtype, shape, tolerance, ...) \
    check_tensor(t, dtype, shape, tolerance, (const double[]){__VA_ARGS__}, \
                 sizeof((const double[]){__VA_ARGS__}) / sizeof(double), __FILE__, __LINE__)
void check_tensor(tn_tensor *t, tn_dtype dtype, tn_ints shape, double tolerance,
                  const double *values, uint64_t n, const char *file, int line);

/* t has this shape and these values, whatever its dtype. */
#define assert_values(t, shape, tolerance, values) \
    check_values(t, shape, tolerance, values, __FILE__, __LINE__)
#define assert_elements(t, shape, ...) assert_values(t, shape, 0, ((const double[]){__VA_ARGS__}))
#define assert_close(t, tolerance, shape, ...) \
    assert_values(t, shape, tolerance, ((const double[]){__VA_ARGS__}))
void check_values(tn_tensor *t, tn_ints shape, double tolerance, const double *values,
                  const char *file, int line);

/* The same dtype, shape and elements, bit by bit; the devices may differ. */
#define assert_same(a, b) check_same(a, b, __FILE__, __LINE__)
void check_same(tn_tensor *a, tn_tensor *b, const char *file, int line);

#define assert_shape(t, ...) check_ints(tn_sizes(t), TN_SHAPE(__VA_ARGS__), __FILE__, __LINE__)
#define assert_strides(t, ...) check_ints(tn_strides(t), TN_SHAPE(__VA_ARGS__), __FILE__, __LINE__)
void check_ints(tn_ints have, tn_ints want, const char *file, int line);

#define assert_ok(call) check_ok(call, __FILE__, __LINE__)
void check_ok(tn_status status, const char *file, int line);

/* The next of a series of numbers below `below`, the same in every run. */
uint32_t next_case(uint64_t *state, uint32_t below);

/* The call failed with this status and every one of these texts. */
#define assert_fails(call, status, ...) \
    do { \
        assert_null(call); \
        assert_error(status, __VA_ARGS__, NULL); \
    } while (0)

#endif
