/* One call of an operator with a kernel, on its way from arguments to views.
 *
 * `infer` functions get it filled with device, arguments and kernel arguments, and set shapes,
 * dtypes and what else the kernel takes. Temporaries and small arrays made on the way belong to the
 * build.
 */
#ifndef TNI_CORE_CALL_CALL_H
#define TNI_CORE_CALL_CALL_H

#include "core/call/cells.h"
#include "core/call/copy.h"
#include "core/call/op_info.h"
#include "core/call/promote.h"
#include "core/call/temps.h"

enum { TNI_BUILD_INTS = 32 };

typedef struct tni_build {
    const tn_op *op;
    const tni_op_info *info;
    const tni_kernel_types *types_of; /* of the kernel operator */
    const tn_cell *args;
    tni_device *device;

    /* Kernel arguments in the order of its schema; TENSOR cells hold tn_tensor *. */
    tn_cell kargs[TNI_MAX_ARGS];
    /* dtypes of the type variables; TN_DTYPE_NONE: from the arguments, by the operator's rule */
    tn_dtype types[TN_KERNEL_MAX_TYPES];

    tni_spec outs[TNI_MAX_RETS]; /* what the caller gets */
    /* the same number of elements in the shape the kernel writes, when that differs (dimensions
     * kept for a reduction, a batch of one) */
    bool kernel_shaped;
    tni_spec kernel_outs[TNI_MAX_RETS];

    bool has_empty_value; /* an input without elements: fill the outputs with this */
    tn_scalar empty_value;
    bool fills; /* no kernel is needed: the outputs, which may be of a storage dtype, become
                   `empty_value` */
    bool has_copy_value; /* no kernel is needed: the output is a copy of this tensor */
    tn_tensor *copy_value;
    bool decomposes; /* the kernel lacks an argument that was given, or elements */

    bool adapted;              /* an input was copied for a record, which then declined */
    const tni_kernel *too_far; /* one that would have done, but for TN_KERNEL_INDEX64 */

    tni_temps temps;
    int64_t n_ints;
    int64_t ints[TNI_BUILD_INTS];
} tni_build;

/* Kernel argument `arg` is a copy of a list; TN_ERR_INTERNAL past TNI_BUILD_INTS integers. */
tn_status tni_build_list(tni_build *b, uint32_t arg, tn_ints list);

/* Argument i of the operator. */
static inline tn_tensor *tni_build_tensor(const tni_build *b, uint32_t i) {
    return tni_arg_tensor(&b->args[i]);
}
/* Sets output i. */
void tni_build_out(tni_build *b, uint32_t i, int32_t rank, const int64_t *sizes);
/* Sets the shape in which the kernel writes output i. */
void tni_build_kernel_out(tni_build *b, uint32_t i, int32_t rank, const int64_t *sizes);
/* The tensor as at least of rank 1 (a view where it was of rank 0). */
tn_tensor *tni_build_lift(tni_build *b, tn_tensor *t);
/* A view with other geometry over t's storage, in elements from t's first. */
tn_tensor *tni_build_view(tni_build *b, tn_tensor *t, int32_t rank, const int64_t *sizes,
                          const int64_t *strides);
/* Fails with "tn_x: ..." in front. */
tn_status tni_build_fail(const tni_build *b, tn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The device of a call: of the first tensor argument; 0-dim CPU tensors defer to others. */
tni_device *tni_call_device(const tn_op *op, const tn_cell *args);
/* What the device argument of a factory means: the device, or the default device. NULL with an
 * error. */
tni_device *tni_factory_device(tn_device device);

/* ---- the steps of a call ----------------------------------------------------------------- */

tn_status tni_pointwise(const tn_op *op, const tn_cell *args, tn_cell *rets);
tn_status tni_general(const tn_op *op, const tn_cell *args, tn_cell *rets);

/* Where an operator that a program defined has no handler: the fallback policy. */
tn_status tni_custom_unanswered(const tn_op *op, const tn_cell *args, tn_cell *rets);

/* Runs `info->run`, in `dtype` as the operator's T: with halves as f32 and the results rounded once
 * where the operator is `wide`, with integers as floats where it computes those. */
tn_status tni_run_as(const tn_op *op, tn_dtype dtype, const tn_cell *args, tn_cell *rets);
/* The dtype argument where there is one and it is given, else what the tensors promote to. */
tn_dtype tni_promoted(const tn_op *op, const tn_cell *args);

/* The call with these arguments is TNI_NOT_SUPPORTED where it finds no kernel, without an error, and
 * nothing is done. By its arguments, as the kernel may call the same operator. */
extern TNI_TLS const tn_cell *tni_kernel_or_nothing;

/* No kernel for these dtypes: decomposition, else the fallback policy. */
tn_status tni_without_kernel(const tn_op *op, tni_device *device, tn_dtype dtype,
                             const tn_cell *args, tn_cell *rets);
tn_status tni_fallback(const tn_op *op, tni_device *device, tn_dtype dtype, const tn_cell *args,
                       tn_cell *rets);

/* ---- choosing the kernel ----------------------------------------------------------------- */

/* How a call is brought to a kernel. */
typedef enum tni_adaptation {
    TNI_AS_IS,    /* not at all, but for casts, which all records need alike */
    TNI_BY_FLAGS, /* what the record's flags exclude is copied */
    TNI_PLAIN /* every input is made contiguous, for a record that declined the call otherwise */
} tni_adaptation;

/* A walk over the records for one call, in the order of tenon/plugin.h: those that take it as it is,
 * then adapted; then the same for the next wider dtype in types[0], f32 for f16 and bf16, i64 for
 * small integers. */
typedef struct tni_choice {
    const tni_kernel *kernel; /* the record to try; NULL: none is left */
    tni_adaptation adaptation;
    bool widened;
    int op;
    uint32_t n_types;
    const tni_kernel_table *table;
    tn_dtype types[TN_KERNEL_MAX_TYPES]; /* for this record */
} tni_choice;

/* The first record for the dtypes, of all of which `types` has room. */
void tni_choose(tni_choice *c, tni_device *device, int kernel_op, const tn_dtype *types);
/* The one before declined. */
void tni_choose_next(tni_choice *c);

/* Does the tensor extend over 2^31 elements or more, so that TN_KERNEL_INDEX64 is needed? */
bool tni_is_far(const tn_tensor_view *v);

/* A Scalar argument as kernels of this dtype get it: F64 or I64. */
static inline tn_cell tni_kernel_scalar(tn_cell scalar, tn_dtype dtype) {
    return tni_is_float(dtype) ? tni_cell_f64(tni_scalar_f64(scalar))
                               : tni_cell_i64(tni_scalar_i64(scalar));
}
/* Can the kernel walk these strides, by its flags? */
bool tni_kernel_takes(const tni_kernel *kernel, const tn_tensor_view *v);

/* Asks the kernel about a call whose tensors need not exist: handles are not looked at. False also
 * with an error in *out_status. */
bool tni_kernel_supports(tni_device *device, const tni_kernel *kernel, const char *call_name,
                         const tn_cell *cells, uint32_t n_cells, const tn_tensor_view *const *outs,
                         uint32_t n_outs, tn_status *out_status);

/* Calls a kernel: supports, prepare, the plugin's function, its error. cells and outs are views.
 * TNI_NOT_SUPPORTED, without an error: the kernel declined, and has done nothing. */
enum { TNI_NOT_SUPPORTED = -1 };
tn_status tni_invoke(tni_device *device, const tni_kernel *kernel, const char *call_name,
                     const tn_cell *cells, uint32_t n_cells, const tn_tensor_view *const *outs,
                     uint32_t n_outs);

/* The argument that a written form writes: self, or out. */
static inline tn_tensor *tni_written_arg(const tni_op_info *info, const tn_op *op,
                                         const tn_cell *args) {
    if (info->form == TNI_FORM_FUNCTIONAL)
        return NULL;
    return tni_arg_tensor(&args[info->form == TNI_FORM_INPLACE ? 0 : op->schema->n_args - 1]);
}
/* Finishes an in-place or out form: checks shape and dtype, copies `result` into dst, returns dst.
 * Drops result. With a NULL dst the result itself is returned. */
tn_status tni_store(const tni_op_info *info, tn_tensor *dst, tn_tensor *result, tn_cell *rets);

#endif
