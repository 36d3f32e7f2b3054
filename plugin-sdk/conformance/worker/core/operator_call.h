/* A line of operator/, parsed, and the lists of these lines. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CORE_OPERATOR_CALL_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CORE_OPERATOR_CALL_H

#include "plugin-sdk/conformance/worker/core/outcome.h"
#include "plugin-sdk/conformance/worker/core/refuse.h"

typedef struct tc_operator_call {
    const tc_operator *op;
    tn_dtype dtype;
    tc_layout layout;
    tc_form form;
    bool whole, decomposed, invalid;
    int64_t scale;
    tc_mutation mutation;
} tc_operator_call;

/* False with the verdict set. */
bool tc_operator_call_read(const tc_case *c, tc_operator_call *p, tc_verdict *out);

/* The call on `meta`, which knows what operators take and has no kernels. */
void tc_operator_call_shapes(const tc_operator_call *p, tc_outcome *out);

/* The lines of a set, as tc_class has it. */
void tc_operator_list(tc_set set, tc_sink *sink);

#endif
