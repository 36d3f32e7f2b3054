/* What the operators' tests share: tensors from numbers and back, on every device that computes.
 *
 * cpu:0 has kernels for everything; sim:0 has only the small set, so that the same test looks at an
 * operator's kernel on the one and at its decomposition on the other.
 */
#ifndef OPS_TEST_H
#define OPS_TEST_H

#include "core_test.h"

#include <math.h>
#include <tenon/tenon.h>

extern tn_device dev; /* the device of the running test */

/* A test that runs once on each device, in a scope of its own. */
#define OPS_TEST(name) \
    cmocka_unit_test_prestate_setup_teardown(name, on_device, leave_device, "cpu:0"), \
        cmocka_unit_test_prestate_setup_teardown(name, on_device, leave_device, "sim:0")
int on_device(void **state);
int leave_device(void **state);

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

/* t's elements as doubles, row-major; of the test, freed with free(). Fails the test for NULL. */
double *values_of(tn_tensor *t);

/* t has dtype, shape and values, each within tolerance * max(1, |value|); NaN equals NaN. */
#define assert_tensor(t, dtype, shape, tolerance, ...) \
    check_tensor(t, dtype, shape, tolerance, (const double[]){__VA_ARGS__}, \
                 sizeof((const double[]){__VA_ARGS__}) / sizeof(double), __FILE__, __LINE__)
void check_tensor(tn_tensor *t, tn_dtype dtype, tn_ints shape, double tolerance,
                  const double *values, uint64_t n, const char *file, int line);

/* The call failed with this status and every one of these texts. */
#define assert_fails(call, status, ...) \
    do { \
        assert_null(call); \
        assert_error(status, __VA_ARGS__, NULL); \
    } while (0)

#endif
