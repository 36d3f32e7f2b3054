/* softmax and log_softmax: what a caller asks for, and the decompositions of the kernels. */
#include "core/ops/dims.h"
#include "core/ops/functions.h"
#include "core/ops/halves.h"

/* softmax(self, dim) and softmax_backward(grad_output, output, dim) */
tn_status tni_infer_dim(tni_build *b) {
    uint32_t n_tensors = b->types_of->n_args - 1u;
    if (n_tensors == 2) {
        tn_tensor *grad = tni_build_tensor(b, 0), *output = tni_build_tensor(b, 1);
        if (!tni_same_shape(grad, output))
            return tni_build_fail(b, TN_ERR_SHAPE,
                                  "grad_output has shape %s, but output has %s; they must be equal",
                                  TNI_SHAPE_OF(grad), TNI_SHAPE_OF(output));
    }
    return tni_infer_along(b, n_tensors);
}

/* self as the dtype in which the result is wanted: the argument `dtype`, else its own, f32 for
 * integers and bool. */
static tn_tensor *as_wanted(tni_temps *tmp, const tn_cell *args) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_dtype dtype = tni_arg_dtype(&args[2]);
    if (dtype == TN_DTYPE_NONE)
        dtype = tni_is_float(self->view.dtype) ? self->view.dtype : TN_F32;
    return tni_as_dtype(tmp, self, dtype);
}

/* softmax(self, dim, dtype) */
tn_status tni_run_softmax(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *x = as_wanted(&tmp, args);
    x = tni_own(&tmp, tni_softmax_forward(x, args[1].v.i64));
    return tni_temps_return(&tmp, x, rets);
}

tn_status tni_run_log_softmax(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *x = as_wanted(&tmp, args);
    x = tni_own(&tmp, tni_log_softmax_forward(x, args[1].v.i64));
    return tni_temps_return(&tmp, x, rets);
}
