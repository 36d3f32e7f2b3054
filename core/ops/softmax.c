/* softmax and log_softmax: what a caller asks for, and the decompositions of the kernels. */
#include "core/ops/dims.h"
#include "core/ops/functions.h"

/* softmax(self, dim) and softmax_backward(grad_output, output, dim) */
tn_status tni_infer_dim(tni_build *b) {
    uint32_t n_tensors = b->types_of->n_args - 1u;
    if (n_tensors == 2) {
        tn_tensor *grad = tni_build_tensor(b, 0), *output = tni_build_tensor(b, 1);
        bool same = grad->view.rank == output->view.rank;
        for (int32_t d = 0; same && d < grad->view.rank; d++)
            same = grad->sizes[d] == output->sizes[d];
        char text[2][TNI_SHAPE_TEXT];
        if (!same)
            return tni_build_fail(b, TN_SHAPE,
                                  "grad_output has shape %s, but output has %s; they must be equal",
                                  tni_shape_text(grad->view.rank, grad->sizes, text[0]),
                                  tni_shape_text(output->view.rank, output->sizes, text[1]));
    }
    return tni_infer_along(b, n_tensors);
}

/* self as the dtype in which the result is wanted: the argument `dtype`, else its own, f32 for
 * integers and bool; owned. */
static tn_tensor *as_wanted(const tn_cell *args) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_dtype dtype = tni_arg_dtype(&args[2]);
    if (dtype == TN_DTYPE_NONE)
        dtype = tni_is_float(self->view.dtype) ? self->view.dtype : TN_F32;
    return self->view.dtype == dtype ? tni_keep(self) : tni_to_dtype(self, dtype);
}

/* softmax(self, dim, dtype) */
tn_status tni_run_softmax(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = as_wanted(args);
    return tni_return(rets, tni_then(tni_softmax_forward(x, args[1].v.i64), x));
}

tn_status tni_run_log_softmax(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = as_wanted(args);
    return tni_return(rets, tni_then(tni_log_softmax_forward(x, args[1].v.i64), x));
}

/* self - its largest along dim; halves as f32, in which the steps that follow are computed. */
static tn_tensor *shifted(tn_tensor *self, tn_ints dim) {
    tn_tensor *x = tni_is_half(self->view.dtype) ? tni_to_dtype(self, TN_F32) : tni_keep(self);
    tn_tensor *largest = tni_amax(x, dim, true);
    return tni_then2(tni_sub(x, largest, tn_int(1)), x, largest);
}

tn_status tni_run_softmax_forward(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints dim = tn_ints_of(&args[1].v.i64, 1);
    tn_tensor *x = shifted(self, dim);
    x = tni_then(tni_exp(x), x);
    tn_tensor *sum = tni_sum_dim(x, dim, true, TN_DTYPE_NONE);
    x = tni_then2(tni_div(x, sum), x, sum);
    return tni_return(rets, tni_as_dtype(x, self->view.dtype));
}

tn_status tni_run_log_softmax_forward(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints dim = tn_ints_of(&args[1].v.i64, 1);
    tn_tensor *x = shifted(self, dim);
    tn_tensor *sum = tni_exp(x);
    sum = tni_then(tni_sum_dim(sum, dim, true, TN_DTYPE_NONE), sum);
    sum = tni_then(tni_log(sum), sum);
    x = tni_then2(tni_sub(x, sum, tn_int(1)), x, sum);
    return tni_return(rets, tni_as_dtype(x, self->view.dtype));
}
