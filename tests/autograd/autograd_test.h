/* What the tests of autograd share: cmocka's preamble, tensors from numbers, and the check that a
 * test leaves nothing behind. */
#ifndef TNI_TESTS_AUTOGRAD_AUTOGRAD_TEST_H
#define TNI_TESTS_AUTOGRAD_AUTOGRAD_TEST_H

/* cmocka wants these before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "core/tensor/tensor.h"

#include <tenon/autograd.h>
#include <tenon/device.h>
#include <tenon/ops.h>
#include <tenon/optim.h>
#include <tenon/tensor.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nothing stands at the start; at the end no tensor, no error and no memory is left. */
int fresh(void **state);
int leave_clean(void **state);

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, leave_clean)

/* f64 tensors on cpu:0: of given values; the same as a leaf that requires a gradient. */
tn_tensor *values(tn_ints shape, const double *data);
tn_tensor *leaf(tn_ints shape, const double *data);
#define VALUES(shape, ...) values(shape, (const double[]){__VA_ARGS__})
#define LEAF(shape, ...) leaf(shape, (const double[]){__VA_ARGS__})
#define SCALAR(value) values(TN_SCALAR_SHAPE, (const double[]){value})
tn_device cpu(void);

/* The elements of t, row-major, are these (within 1e-9 relative). */
void check_values(tn_tensor *t, const double *expected, uint64_t n, const char *file, int line);
#define assert_values(t, ...) \
    check_values(t, (const double[]){__VA_ARGS__}, \
                 sizeof((const double[]){__VA_ARGS__}) / sizeof(double), __FILE__, __LINE__)

double item(tn_tensor *t);

/* The call succeeded; shows the message otherwise. */
void check_ok(tn_status status, const char *file, int line);
#define assert_ok(call) check_ok(call, __FILE__, __LINE__)

/* The standing error has this status and every one of these texts (up to NULL); forgets it. */
void check_error(const char *file, int line, tn_status status, ...);
#define assert_error(status, ...) check_error(__FILE__, __LINE__, status, __VA_ARGS__, NULL)

#endif
