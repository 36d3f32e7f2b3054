/* Is a result what was expected? */
#ifndef TNI_TESTS_VALUES_COMPARE_H
#define TNI_TESTS_VALUES_COMPARE_H

#include "plugin-sdk/conformance/worker/core/outcome.h"
#include "tests/values/call.h"

/* What the table promises of a call's results. */
typedef struct promise {
    const tc_operator *op; /* NULL: exact */
    bool in_steps;         /* the device makes it of other operators */
    bool is_gradient;
    double n; /* elements of the longest input */
} promise;

typedef struct comparison {
    bool failed;
    bool is_disturbed;  /* an element was changed, as asked */
    bool is_no_better;  /* passes for being as near as PyTorch, not by the table's bound */
    int64_t n_anything; /* elements that PyTorch computes otherwise in this dtype than in f64 */
    char why[256];
} comparison;

/* Compares a tensor with what is expected of it; with `disturb`, after one of its elements is
 * changed. */
void compare(const promise *p, const expected *e, tn_tensor *got, bool disturb, comparison *out);

/* The row of the operator that a form belongs to, or NULL. */
const tc_operator *promised(const char *name);

#endif
