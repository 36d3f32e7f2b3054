/* What the suite knows of a kernel operator. The records are made from kernels.toml,
 * whose `check` field has what is not in the schema; an operator without one fails the build, and
 * one without a reference function does not link.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_RECORD_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_RECORD_H

#include "plugin-sdk/conformance/worker/worker.h"
#include "plugin-sdk/conformance/worker/kernel/invocation.h"

#include <tenon/kernels.h>

typedef enum tc_arg_kind {
    TC_ARG_TENSOR,
    TC_ARG_SCALAR, /* F64 where the first type variable is floating, else I64 */
    TC_ARG_INT,
    TC_ARG_FLOAT,
    TC_ARG_BOOL,
    TC_ARG_INTS,
    TC_ARG_STRING
} tc_arg_kind;

typedef struct tc_arg {
    const char *name;
    tc_arg_kind kind;
    bool optional;
    int32_t type;     /* a tensor's type variable; -1: fixed */
    tn_dtype fixed;   /* its dtype where type is -1 */
    double low, high; /* values that random data has in floating dtypes */
} tc_arg;

typedef struct tc_out_arg {
    int32_t type;
    tn_dtype fixed;
} tc_out_arg;

/* A family of operators whose calls have the same shape rule and the same samples. */
typedef struct tc_family {
    const char *name;

    /* Fills in the shapes of the outputs (dense) from the arguments; false with `why` where these
     * do not fit each other. */
    bool (*shapes)(tc_invocation *call, char why[TC_MESSAGE]);

    /* How many products or terms one output element adds up; 1 where there is no sum. */
    int64_t (*terms)(const tc_invocation *call);

    /* Fills an argument that random data would not do for (indices); false: the usual fill. */
    bool (*fill)(tc_invocation *call, uint32_t arg, tc_random *r);

    /* The lines of a set, for one choice of dtypes. */
    void (*list)(const tc_record *record, const tn_dtype *types, tc_set set, tc_sink *sink);
} tc_family;

struct tc_record {
    const char *op, *schema;
    uint64_t hash;
    bool small, pointwise;
    bool zero_signed; /* the sign of a zero is part of the result */
    bool extremes;    /* the largest and tiniest numbers are among its special values */
    double ulps;      /* what the function may be off, in spacings of the arithmetic's dtype */
    const tc_family *family;
    void (*reference)(tc_invocation *call);
    uint32_t n_types, n_args, n_outs;
    const char *type_names[TN_KERNEL_MAX_TYPES];
    uint64_t dtypes[TN_KERNEL_MAX_TYPES]; /* what each type variable ranges over */
    tc_arg args[TC_MAX_ARGS];
    tc_out_arg outs[TC_MAX_OUTS];
};

extern const tc_record tc_records[];
extern const uint32_t tc_n_records;

const tc_record *tc_record_find(const char *op); /* NULL where there is none */
/* The position of an argument, or -1. */
int32_t tc_record_arg(const tc_record *record, const char *name);

/* Plain arithmetic, to which any number is as good as another. */
static inline bool tc_is_arithmetic(const tc_record *r) {
    return r->pointwise && r->extremes && r->ulps <= 0 &&
           (r->outs[0].type >= 0 || r->outs[0].fixed != TN_BOOL);
}

/* The references, one for each kernel operator: oracle/reference/. */
#define TC_REFERENCE(name, hash, small, kind, schema) void tc_reference_##name(tc_invocation *call);
TN_KERNEL_TABLE(TC_REFERENCE)
#undef TC_REFERENCE

/* Families, one for each file in samples/. */
extern const tc_family tc_family_pointwise, tc_family_factory, tc_family_reduce, tc_family_along,
    tc_family_index, tc_family_matmul, tc_family_norm, tc_family_convolution, tc_family_pool;

#endif
