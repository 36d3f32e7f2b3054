/* What the tests of the plugin's libraries share: the plugin above doubles of the driver, of cuBLASLt
 * and of cuDNN; tensors of small integers, which every dtype holds and every order of a sum keeps. */
#ifndef TNI_TESTS_CUDA_LIBRARIES_RIG_H
#define TNI_TESTS_CUDA_LIBRARIES_RIG_H

#include "tests/cuda/double/double.h"
#include "tests/cuda/double/library.h"

#include <mini_test.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/kernels.h>

/* Each test program defines this; main is in libraries_rig.c. */
int all_tests(void);

/* From the command line. */
extern const char *rig_plugin, *rig_blaslt, *rig_dnn;

/* A test begins with the doubles as they are, and ends with nothing alive in them and no mistake
 * told. */
int rig_setup(void **state);
int rig_teardown(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

/* Opens the plugin's first device. */
void rig_open(mini *m);
void rig_close(mini *m);

#define assert_text(text, part) \
    do { \
        if (!strstr((text), (part))) \
            fail_msg("'%s' is not in '%s'", (part), (text)); \
    } while (0)

/* What was logged since `from`, a length of the log. */
const char *rig_logged(size_t from);

/* ---- tensors ----------------------------------------------------------------------------- */

enum { RIG_MAX = 1 << 16 }; /* elements of a tensor, with gaps */

/* A tensor, and its values in row-major order. */
typedef struct rig_tensor {
    mini_tensor *t;
    double *values;
} rig_tensor;

/* Of integers from -3 to 3, which `seed` picks; NULL strides are row-major. Freed with the mini, and
 * `values` by rig_free. */
rig_tensor rig_make(mini *m, tn_dtype dtype, int32_t rank, const int64_t *sizes,
                    const int64_t *strides, int64_t offset, unsigned seed);
void rig_fill(mini *m, rig_tensor *t, double value);
void rig_free(rig_tensor *t);

/* The tensor holds `expected`; what lies between its elements is as it was. */
void rig_compare(mini *m, const rig_tensor *t, const double *expected);

#endif
