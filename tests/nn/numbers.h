/* What the tests of loaders read: a dataset of numbers, a transform that draws, and the trace of what a
 * loader gave. */
#ifndef TNI_TESTS_NN_NUMBERS_H
#define TNI_TESTS_NN_NUMBERS_H

#include "tests/nn/nn_test.h"

#include <stdatomic.h>
#include <tenon/data.h>

/* Sample i is the number 10 i, and {i, i + 0.5}. */
typedef struct numbers {
    atomic_int n_reads;
    _Atomic int64_t fails_at; /* -1: nowhere */
    tn_status status;
    const char *text; /* NULL: tn_fail is not called */
} numbers;

tn_status read_number(void *user, int64_t index, void *const *out);
tn_dataset dataset_of(numbers *n, int64_t length);

/* A loader on the device that the test is on. */
tn_data_loader *loader_of(const tn_dataset *d, tn_data_loader_options options);

/* The batch is made of the samples that it names. */
void check_batch(const tn_data_batch *b);

static const uint32_t worker_counts[] = {0, 1, 4};

/* Three halves of chance, and the number; fails at the sample that `user` points to. */
tn_status draw(void *user, int64_t index, tn_data_random *random, const void *const *in,
               void *const *out);
tn_data_loader_options drawing(int64_t *fails_at);

enum { MANY = 256 };

/* What a loader gave: the samples' numbers, -1 at the end of each epoch. */
typedef struct trace {
    int64_t n, at[MANY];
} trace;

void follow(tn_data_loader *l, int n_calls, trace *out);
void assert_same_trace(const trace *a, const trace *b);

#define assert_trace(t, ...) \
    check_ints(tn_ints_of((t)->at, (t)->n), TN_SHAPE(__VA_ARGS__), __FILE__, __LINE__)

#endif
