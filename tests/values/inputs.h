/* Values of inputs, made from a seed: inputs.py in C, so that a call is stored without them. */
#ifndef TNI_TESTS_VALUES_INPUTS_H
#define TNI_TESTS_VALUES_INPUTS_H

#include "plugin-sdk/conformance/worker/core/sample.h"

enum { INPUT_RANK = 6, KIND_LENGTH = 24 };

typedef struct input {
    char kind[KIND_LENGTH]; /* "any", "idx9", ... */
    tn_dtype dtype;
    int32_t rank;
    int64_t sizes[INPUT_RANK];
    tc_layout layout;
    uint64_t seed;
} input;

/* The tensor, of its layout, on the device; of the scope. NULL with an error. */
tn_tensor *input_place(const input *in, tn_device device);

/* Elements of a floating dtype; store_real takes a number that the dtype holds. */
double real_at(const void *data, tn_dtype dtype, int64_t i);
void store_real(void *data, tn_dtype dtype, int64_t i, double x);
/* Of another. */
int64_t whole_at(const void *data, tn_dtype dtype, int64_t i);

#endif
