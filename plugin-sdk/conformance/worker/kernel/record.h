/* What the suite knows of a kernel operator. The records are made from kernels.toml, whose `check`
 * field has what is not in the schema; an operator without one fails the build, and one without a
 * reference function does not link.
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

/* Random floating data lies between these where a record gives no range. */
enum { TC_USUAL_LOW = -8, TC_USUAL_HIGH = 8 };

typedef struct tc_arg {
    const char *name;
    tc_arg_kind kind;
    bool optional;
    double low, high; /* values that random data has in floating dtypes */
} tc_arg;

/* Values without which a case would not show much; generate_records.py says what they are. */
typedef enum tc_record_fill {
    TC_FILL_USUAL,
    TC_FILL_FAR,
    TC_FILL_PRODUCT,
    TC_FILL_POWER,
    TC_FILL_LARGEST,
    TC_FILL_SMALLEST,
    TC_FILL_TURNS
} tc_record_fill;

/* What is timed beyond the usual. */
enum { TC_TIMED_FLOATS = 1, TC_TIMED_INTEGERS = 2, TC_TIMED_SIZES = 4, TC_TIMED_HUGE = 8 };

/* A dimension along which a call falls apart into calls of their own: for each argument and output
 * which of its dimensions that is, counted from 1; 0: each of the calls needs all of it. */
enum { TC_AXIS_OUT = TC_MAX_ARGS, TC_MAX_AXES = 3, TC_MAX_ATTRIBUTES = 12 };

typedef struct tc_axis {
    uint8_t along[TC_MAX_ARGS + TC_MAX_OUTS];
} tc_axis;

/* Whose lines are asked for: those of one choice of dtypes, for a set. */
typedef struct tc_sampler {
    const tc_record *record;
    const tn_dtype *types;
    tc_set set;
    tc_sink *sink;
} tc_sampler;

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

    /* The lines of any set but perf, and those of perf. */
    void (*list)(const tc_sampler *m);
    void (*list_timed)(const tc_sampler *m);
} tc_family;

struct tc_record {
    const char *op, *schema;
    uint64_t hash;
    bool small, pointwise;
    bool zero_signed; /* the sign of a zero is part of the result */
    bool extremes;    /* the largest and tiniest numbers are among its special values */
    bool adds;        /* elements are added up, which may lose bits */
    bool batch;       /* the indices of the first dimension are calls of their own */
    bool slices;      /* an index picks what is at it of all other dimensions */
    bool constant;    /* one value is all of the result */
    int32_t rank;     /* of the output where arguments do not tell it; 0: any */
    double ulps;      /* what the function may be off, in spacings of the arithmetic's dtype */
    tc_record_fill fill;
    uint32_t timed; /* TC_TIMED_... */
    const tc_family *family;
    void (*reference)(tc_invocation *call);
    uint32_t n_types, n_args, n_outs;
    const char *type_names[TN_KERNEL_MAX_TYPES];
    uint64_t dtypes[TN_KERNEL_MAX_TYPES];                  /* what each type variable is of */
    int8_t arg_types[TC_MAX_ARGS], out_types[TC_MAX_OUTS]; /* coded as in tenon/kernels.h */
    const char *attributes[TC_MAX_ATTRIBUTES];             /* "alpha=2"; NULL behind the last */
    const char *alike[TC_MAX_ATTRIBUTES]; /* the same, with which elements come out alike */
    tc_axis axes[TC_MAX_AXES];            /* none: along[TC_AXIS_OUT] is 0 */
    tc_arg args[TC_MAX_ARGS];
};

extern const tc_record tc_records[];
extern const uint32_t tc_n_records;

const tc_record *tc_record_find(const char *op); /* NULL where there is none */
/* The position of an argument, or -1. */
int32_t tc_record_arg(const tc_record *record, const char *name);
/* Does the argument hold places in a dimension, which a kernel has to check? */
bool tc_holds_indices(const tc_arg *arg);
/* What lines call output k: "out", or "out0" and so on where there are more. */
enum { TC_OUT_NAME = 16 };
const char *tc_record_out(const tc_record *record, uint32_t k, char name[TC_OUT_NAME]);
/* An argument of a call; NULL where the operator has none of the name. */
tc_value *tc_invocation_arg(tc_invocation *call, const char *name);

/* The dtype of an argument or output, by its code. */
static inline tn_dtype tc_dtype_of(int32_t type, const tn_dtype *types) {
    return type < 0 ? (tn_dtype)TN_KERNEL_FIXED(type) : types[type];
}

/* Plain arithmetic, to which any number is as good as another. */
static inline bool tc_is_arithmetic(const tc_record *r) {
    return r->pointwise && r->extremes && r->ulps <= 0 &&
           r->out_types[0] != TN_KERNEL_FIXED(TN_BOOL);
}

/* The references, one for each kernel operator: oracle/reference/. */
#define TC_REFERENCE(name, hash, small, kind, schema) void tc_reference_##name(tc_invocation *call);
TN_KERNEL_TABLE(TC_REFERENCE)
#undef TC_REFERENCE

/* Families, one for each file in samples/. */
extern const tc_family tc_family_pointwise, tc_family_factory, tc_family_reduce, tc_family_scan,
    tc_family_sort, tc_family_softmax, tc_family_index, tc_family_matmul, tc_family_norm,
    tc_family_attention, tc_family_convolution, tc_family_pool, tc_family_step, tc_family_loss;

#endif
