/* Arguments of an operator call, made from operators.toml's samples.
 *
 * The generated tc_operators has a row for each sample; its `make` tells a tc_sample which tensors
 * and attributes the arguments are. The sample then makes values of them, once, on the host and
 * rounded to the case's dtype, and places these on any device as often as asked: the subject and
 * the reference compute on the same numbers.
 *
 * One thread. Tensors belong to the scope that is open when they are placed.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CORE_SAMPLE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CORE_SAMPLE_H

#include <tenon/tenon.h>

enum { TC_MAX_ARGS = 16, TC_MAX_TENSORS = 16, TC_MAX_LIST = 8, TC_SAMPLE_RANK = 6 };

/* The exponent of a floating dtype's smallest normal number. */
static inline int tc_least_exponent(tn_dtype dtype) {
    return dtype == TN_F64 ? -1022 : dtype == TN_F16 ? -14 : -126;
}

typedef enum tc_fill {
    FILL_ANY,      /* [-2, 2] */
    FILL_POSITIVE, /* [0.5, 2] */
    FILL_AWAY,     /* +-[0.3, 2] */
    FILL_APART,    /* distinct, 0.1 apart, none near a whole number */
    FILL_UNIT,     /* [0.1, 0.9] */
    FILL_ABOVE,    /* [1.5, 3] */
    FILL_MASK,     /* bool */
    FILL_INDEX     /* i64 below a limit */
} tc_fill;

/* How a tensor lies in its allocation. */
typedef enum tc_layout {
    TC_DENSE,
    TC_STRIDED,    /* every second element, and a gap after each row */
    TC_TRANSPOSED, /* the first dimension is the fastest */
    TC_OFFSET,     /* dense, from the third element on */
    TC_EXPANDED,   /* the first dimension repeats one slice */
    TC_N_LAYOUTS
} tc_layout;

typedef enum tc_differentiable { TC_CONSTANT, TC_FIRST_ORDER, TC_SECOND_ORDER } tc_differentiable;

/* The words of operators.toml. */
typedef enum tc_tolerance {
    TC_TOLERANCE_EXACT,
    TC_TOLERANCE_ULP2,
    TC_TOLERANCE_ULP4,
    TC_TOLERANCE_SUM,
    TC_TOLERANCE_DOT,
    TC_TOLERANCE_COMPOSITE
} tc_tolerance;

enum {
    TC_POINTWISE = 1,
    TC_GENERAL = 2,
    TC_VIEW = 4,
    TC_COMPOSITE = 8,
    TC_GROWS = 16, /* sizes may be multiplied */
    TC_RANDOM = 32,
    TC_GEOMETRY = 64,      /* asks how its argument lies */
    TC_DATA = 128,         /* the result's shape follows from elements, and `meta` refuses it */
    TC_CANCELS = 256,      /* a difference of numbers that may be much larger than it */
    TC_CROSS_DEVICE = 512, /* takes tensors of two devices */
    TC_DERIVATIVE = 1024,  /* called by derivatives only, with what those made */
    TC_SIGNED_ZERO = 2048  /* the sign of a zero is that of kernels.toml, or of what is copied */
};

typedef struct tc_sample tc_sample;

typedef struct tc_operator {
    const char *name, *inplace, *out; /* NULL where there is no such form */
    int32_t index;                    /* of the sample among the operator's */
    const char *text;
    void (*make)(tc_sample *s);
    tc_differentiable order;
    tc_tolerance tolerance;
    uint32_t flags;
    uint32_t written;              /* arguments that the functional form writes, as a mask */
    int32_t device_arg, dtype_arg; /* -1: none */
} tc_operator;

extern const tc_operator tc_operators[];
extern const uint32_t tc_n_operators;

/* One tensor of a sample. */
typedef struct tc_input {
    tc_fill fill;
    int64_t limit;
    int32_t rank;
    int64_t sizes[TC_SAMPLE_RANK], numel;
    tn_dtype dtype;    /* as the case has it */
    double *reals;     /* the values; rounded where dtype is floating */
    uint8_t *bytes;    /* the same as elements of dtype */
    tn_cell *cell;     /* where it stands among the arguments */
    uint32_t arg;      /* of which argument */
    tn_tensor *placed; /* by the last tc_sample_place */
    tn_tensor *flat;   /* its whole allocation, gaps included */
    uint8_t *image;    /* what `flat` was filled with */
    int64_t image_bytes;
} tc_input;

struct tc_sample {
    tn_dtype dtype;   /* of what is FILL_ANY ... FILL_APART */
    tc_layout layout; /* decides which values repeat (TC_EXPANDED) */
    int64_t scale;    /* every size above 1 is multiplied by it */
    bool whole;       /* small integers, exact in every dtype */
    uint64_t flushes; /* dtypes that have no subnormal numbers here: the subject may flush them */
    uint64_t state;   /* of the numbers; starts as the case's seed */
    tn_cell args[TC_MAX_ARGS];
    tn_cell elements[TC_MAX_ARGS][TC_MAX_LIST]; /* of lists, before they are gathered */
    tn_tensor *lists[TC_MAX_ARGS][TC_MAX_LIST];
    int64_t ints[TC_MAX_ARGS * 8];
    uint32_t n_ints, n_inputs;
    bool failed; /* no memory, or too much of something */
    tc_input inputs[TC_MAX_TENSORS];
};

/* Called by the generated functions. */
void tc_make_tensor(tc_sample *s, tn_cell *cell, tc_fill fill, int64_t limit, int rank,
                    const int64_t *sizes);
void tc_make_list(tc_sample *s, tn_cell *cell, unsigned n);
tn_cell *tc_list_element(tc_sample *s, tn_cell *list, unsigned i);
void tc_make_ints(tc_sample *s, tn_cell *cell, unsigned n, const int64_t *values);
void tc_make_string(tn_cell *cell, const char *text);

/* Makes the values; dtype, layout, scale, whole, flushes and state are set. False with an error of libtenon,
 * or after `failed`. tc_sample_finish frees them, also then. */
bool tc_sample_init(tc_sample *s, const tc_operator *op, tn_device cpu);
void tc_sample_finish(tc_sample *s);

#define TC_DISTURBANCE 0x1p-20

/* How the arguments are placed. */
typedef enum tc_place {
    TC_PLACE_CASE,     /* the case's dtype and layout */
    TC_PLACE_DENSE,    /* the case's dtype, densely */
    TC_PLACE_WIDE,     /* densely; f64 in place of the case's dtype */
    TC_PLACE_WHOLE,    /* densely; i64 in place of it */
    TC_PLACE_ABSOLUTE, /* as WIDE, magnitudes */
    TC_PLACE_DISTURBED /* as WIDE, each number moved by TC_DISTURBANCE of itself, up or down at
                          random, and otherwise each time */
} tc_place;

/* Puts the arguments on a device: cells of s->args hold tensors afterwards. False with an error. */
bool tc_sample_place(tc_sample *s, const tc_operator *op, tn_device device, tc_place place);
/* Puts what the cells of lists hold into the lists; after cells were changed by hand. */
void tc_sample_gather(tc_sample *s);

/* Strides of a layout, and the elements that the allocation needs. */
int64_t tc_layout_strides(tc_layout layout, int32_t rank, const int64_t *sizes, int64_t *strides,
                          int64_t *out_offset);
const char *tc_layout_name(tc_layout layout);
bool tc_layout_find(const char *name, tc_layout *out);

#endif
