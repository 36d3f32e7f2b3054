/* The outcome of an operator call, and whether it is right.
 *
 * Bounds, with u the unit roundoff of a result's dtype, U that of its accumulator (f32 for f32, f16
 * and bf16; f64 for f64), r the reference, M the same operator on magnitudes, n the longest input:
 *
 *   exact      the reference rounded to the dtype
 *   ulp2 ulp4  2 or 4 units in the last place of r; 1 (2 where numbers cancel) where the dtype is
 *              narrower than its accumulator, since the error of the wider computation disappears
 *              in the rounding
 *   sum dot    one rounding of r and n U M: an accumulator of the dtype itself, or a missing
 *              element, is outside
 *   composite  16 u of the larger of |r| and the output's largest element, as much of u times the
 *              largest input, and 4 u S
 *
 * S is how far r moves for inputs that move a little (TC_DISTURBANCE), in parts of that: a mean
 * that is taken off may be known no better. It is the largest of three tries.
 *
 * Formulas in which numbers cancel (gelu, addcmul and the like) are as good as their largest term:
 * r is then the largest element of output and inputs, and there is no S. A call that the device
 * makes of other operators, for want of a kernel, counts as composite. An operator made of
 * others (kind composite) rounds between its steps: 3 u M is added to what its class gives. Against
 * f64 the bounds are doubled, since the reference has f64's errors itself.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CORE_OUTCOME_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CORE_OUTCOME_H

#include "plugin-sdk/conformance/worker/core/sample.h"
#include "plugin-sdk/conformance/verdict.h"

enum { TC_MAX_RESULTS = 40 };

typedef enum tc_form { TC_FUNCTIONAL, TC_INPLACE, TC_OUT } tc_form;

typedef struct tc_result {
    tn_dtype dtype;
    int32_t rank;
    int64_t sizes[TN_MAX_RANK], numel;
    uint8_t *bytes; /* row-major elements; NULL from a device without data */
    double *reals;  /* the same as numbers */
    int64_t *wholes;
} tc_result;

typedef struct tc_outcome {
    tn_status status;
    char message[512];
    bool no_memory;
    bool in_steps; /* made of other operators on that device; the caller says so */
    uint32_t n;
    tc_result results[TC_MAX_RESULTS]; /* what it returned, then what a functional form wrote */
} tc_outcome;

/* Calls a form of the operator with the sample as it was placed on `device`; `shape` says what an
 * out tensor is to be. Results are read through the CPU (not from `meta`). `out` is initialised
 * here; tc_outcome_finish is due also after a failure. The standing error is cleared. */
void tc_call(const tc_operator *op, tc_form form, tc_sample *s, tn_device device, tn_device cpu,
             const tc_outcome *shape, tc_outcome *out);
void tc_outcome_finish(tc_outcome *o);

/* Is the operator's bound to have an S? Where that is, `magnitude` below is S, not M. */
bool tc_is_sensitive(const tc_operator *op);
/* Makes S of a reference with inputs that moved, or adds it to what `out` has from others. */
void tc_add_sensitivity(const tc_outcome *reference, tc_outcome *moved, tc_outcome *out);

/* What the bound of an element depends on beside itself. */
typedef struct tc_scale {
    tc_tolerance tolerance;
    bool steps; /* of kind composite */
    tn_dtype dtype;
    double n;            /* terms of a sum */
    double largest;      /* magnitude in this output */
    double input;        /* in the inputs */
    double most_flushed; /* up to where a result may be zero as well; below 0: nowhere */
    bool cancels, is_sensitive;
} tc_scale;

/* How far a result may be from r; m is M, or S. */
double tc_bound(const tc_scale *s, double r, double m);
/* x, or infinity where it overflows the dtype. */
double tc_clip(double x, tn_dtype dtype);
/* Has the device a kernel of this dtype for an operator, so that it makes no other calls for it? */
bool tc_has_kernel(const char *op, const char *device, tn_dtype dtype);

/* Compares `got` with the shapes and dtypes of `shape` (NULL: of `reference`, dtypes apart) and the
 * values of `reference`. `magnitude` may be NULL. Fills share, bias, worst and, where something is
 * wrong, status and message. */
void tc_compare(const tc_operator *op, const tc_sample *s, const tc_outcome *got,
                const tc_outcome *shape, const tc_outcome *reference, const tc_outcome *magnitude,
                tc_verdict *v);
/* What an integer becomes in a dtype. */
int64_t tc_wrap(int64_t x, tn_dtype dtype);
/* The same bits, dtypes and shapes? Subnormal numbers of the dtypes of `flushes` are as good as zero. */
bool tc_same_bits(const tc_outcome *a, const tc_outcome *b, uint64_t flushes, uint32_t *out_result,
                  int64_t *out_element);

#endif
