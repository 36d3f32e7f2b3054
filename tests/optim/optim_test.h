/* What the tests of optimizers share: the optimizers and what PyTorch gives, on the device that
 * TENON_DEVICE names. */
#ifndef TNI_TESTS_OPTIM_OPTIM_TEST_H
#define TNI_TESTS_OPTIM_OPTIM_TEST_H

#include "tests/autograd/autograd_test.h"

/* The device of the test. */
tn_device here(void);
bool on_sim(void);

/* A leaf of `dtype` there. */
tn_tensor *param_of(tn_dtype dtype, const double *data, int64_t n);
/* Gives it a gradient of its dtype. */
void give_grad(tn_tensor *param, const double *data);
/* Its elements. */
void read_values(tn_tensor *t, double *out, int64_t n);
/* The same elements, to the last bit. */
void assert_same(tn_tensor *a, tn_tensor *b);

#endif
