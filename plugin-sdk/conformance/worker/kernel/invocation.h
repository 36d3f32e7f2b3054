/* One call of a kernel operator, as a case's line describes it.
 *
 *     kernel/OP T=f32 ARG=VALUE … [out=SHAPE] [in-place=ARG] [shared=ARG] [scalar=ARG]
 *               [within=ARG] [memory=KIND] [data=KIND] [only=I]
 *
 * Every argument of the schema has a parameter of its name: tensors a shape (`none` where an
 * optional one is left out), attributes their value. Type variables have one each. `out` (out0,
 * out1, …) says how an output lies; its sizes must be those that follow. `in-place=self`: the
 * output is that argument's view. `shared=self`: all arguments of its dtype and sizes are its view.
 * `scalar=other`: that argument, of one value, arrives as a cell.
 * `within=self`: all other arguments of its dtype lie among its elements, each in its own way: its transpose, a row of
 * it for all rows, the same a few elements later.
 * `memory=one`: all tensors lie side by side in one allocation, as slices of one buffer do. `fenced`: each ends
 * where its memory does, and `fenced-before`: it begins there; where the device takes its memory from the host,
 * behind and before that is a page that cannot be touched. `apart`: neither, bytes that are looked at afterwards lie
 * behind each. In `kernel/` a line that says nothing is one of the latter three, by its seed.
 * `only=I`: of what each tensor would be filled with, element I (modulo their number) stays and the
 * others become 0, or 1 where the argument cannot be 0; indices stay.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_INVOCATION_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_INVOCATION_H

#include "plugin-sdk/conformance/worker/data/operand.h"

enum { TC_MAX_ARGS = 12, TC_MAX_OUTS = 3 };

typedef struct tc_record tc_record;

/* An argument. Scalars and numbers have `f` and `i` both. */
typedef struct tc_value {
    bool none;
    tc_operand tensor;
    double f;
    int64_t i;
    bool boolean;
    int64_t ints[TC_MAX_RANK];
    int32_t n_ints;
    const char *string; /* borrowed from the case */
} tc_value;

/* What an output must be. Elements may be off by `error` as a whole, and by `rounding` where the
 * arithmetic was not exact. */
typedef struct tc_expected {
    tc_operand tensor;
    tc_real *error, *rounding; /* [numel]; floating dtypes only */
} tc_expected;

typedef enum tc_data {
    TC_DATA_EXACT,   /* small whole numbers: sums are the same in any order */
    TC_DATA_RANDOM,  /* all bits of the significand, evenly over the argument's range */
    TC_DATA_WIDE,    /* all magnitudes, down to the tiniest */
    TC_DATA_CANCEL,  /* pairs that nearly cancel */
    TC_DATA_BIASED,  /* all positive and of one magnitude: lost low bits add up */
    TC_DATA_SPECIAL, /* NaN, infinities, zeros of both signs, subnormals, extremes, by position */
    TC_DATA_CARRY,   /* whole numbers whose sums leave a half's digits on the way, and come back */
    TC_DATA_EXPONENTS,  /* all exponents of the dtype, both signs, and what lies between integers */
    TC_DATA_NEAR,       /* the largest numbers, which differ in their last digits */
    TC_DATA_ONES,       /* 1, or true, everywhere */
    TC_DATA_NULL,       /* of two factors the second is 0, the first as of special */
    TC_DATA_NULL_FIRST, /* the other way round */
    TC_DATA_RISING,     /* whole numbers in order, some of them equal */
    TC_DATA_FALLING,    /* the other way round */
    TC_DATA_OUTLIER, /* near 0, but for one of a line that is far: the first, the last, one within */
    TC_DATA_EVERY,   /* element i has the bits of i: all values of a small dtype */
    /* What is drawn stands before EVERY. */
    TC_DATA_INFINITE,    /* finite, but for one infinity in each line, each at another place */
    TC_DATA_FAINT,       /* exact, but of two factors one is subnormal, or their products are */
    TC_DATA_FAINT_FIRST, /* the same, and 0 in the second half of the sum */
    TC_DATA_FAINT_ADDED, /* what is added to a product alone is subnormal, and products are 0 in every other row */
    TC_DATA_FAINT_LONE, /* a single number is subnormal */
    TC_DATA_FAINT_LEFT, /* products are normal, what is left of them is not */
    TC_DATA_TIES,       /* positive whole numbers whose sums have a digit more than a half has */
    TC_DATA_DIGITS, /* random, and a half's cell has the digits of f32, in which halves are computed */
    TC_DATA_ORDERED, /* terms that are exact in the order that is promised, and lost in others */
    TC_N_DATA
} tc_data;

static inline bool tc_is_null(tc_data data) {
    return data == TC_DATA_NULL || data == TC_DATA_NULL_FIRST;
}

typedef enum tc_memory {
    TC_MEMORY_ANY, /* the line does not say */
    TC_MEMORY_APART,
    TC_MEMORY_ONE,
    TC_MEMORY_FENCED,
    TC_MEMORY_FENCED_BEFORE,
} tc_memory;

typedef struct tc_invocation {
    const tc_record *record;
    tn_dtype types[TN_KERNEL_MAX_TYPES];
    tc_data data;
    bool whole; /* all inputs are whole numbers so small that arithmetic is exact */
    int32_t in_place, shared, scalar; /* the argument, or -1 */
    uint32_t sharing;                 /* bit A: argument A's view is that of `shared` */
    int32_t within;                   /* the argument whose memory others lie in, or -1 */
    uint32_t inner;                   /* bit A: argument A lies in the memory of `within` */
    tc_memory memory;
    uint64_t flushes; /* no line says so: dtypes that the device may flush; no input is subnormal */
    bool newer;   /* no line says so: the host's structs have members behind those that there are */
    int64_t only; /* the element that is filled, or -1 for all */
    tc_value args[TC_MAX_ARGS];
    tc_expected outs[TC_MAX_OUTS];
    uint64_t seed;
    tc_arena *arena;
} tc_invocation;

/* The argument whose tensor is `a`'s, mostly itself. */
static inline uint32_t tc_owner(const tc_invocation *call, uint32_t a) {
    return call->sharing >> a & 1 ? (uint32_t)call->shared : a;
}

static inline bool tc_lies_within(const tc_invocation *call, uint32_t a) {
    return call->inner >> a & 1;
}

/* Does the line give a seed of its own, or was it drawn (draw.h)? It is for its class alone: others
 * make nothing of it. */
bool tc_is_extra(const tc_case *c, const tc_invocation *call);

/* Is it a line of far.c, of which a device may have no room for a tensor? */
bool tc_reaches_far(const tc_invocation *call);

/* Reads a case's parameters; operands have shapes and no values yet. False with `why`. */
bool tc_invocation_parse(const tc_case *c, tc_arena *arena, tc_invocation *out,
                         char why[TC_MESSAGE]);

/* Makes the operands and fills the inputs, all following from `seed`, and computes what the outputs
 * must be. Of a few fillings the first is taken whose result can be told from wrong ones
 * (tc_check_conclusive). Which bytes lie round the elements follows from `surroundings`. */
bool tc_invocation_fill(tc_invocation *call, uint64_t surroundings, char why[TC_MESSAGE]);

/* The first filling, without what the outputs must be: for those who compare otherwise. */
bool tc_invocation_fill_inputs(tc_invocation *call, uint64_t surroundings, char why[TC_MESSAGE]);

/* The same numbers once more, without drawing them: `call` is of the same line as `like`, of which its
 * tensors may lie otherwise. Its values are those of `like`, whose arena is to live as long. */
bool tc_invocation_fill_like(const tc_invocation *like, tc_invocation *call, uint64_t surroundings,
                             char why[TC_MESSAGE]);

/* Of an operand's values, rounded to its dtype, each that the device may take for zero becomes one of that sign that it
 * may not: zero itself would be another question, and no divisor. */
void tc_spare_subnormals(const tc_invocation *call, tc_operand *o);

/* Gives `to`, which has been filled, the values of `from`, a call of the same sizes. */
void tc_invocation_mirror(const tc_invocation *from, tc_invocation *to);

const char *tc_data_name(tc_data data);

#endif
