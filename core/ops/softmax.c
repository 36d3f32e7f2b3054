/* softmax and log_softmax: of any dtype, and as decompositions of their kernels. */
#include "core/ops/boxed.h"

/* In dtype, else in self's when that is floating, else in f32. */
static tn_tensor *floating(tni_temps *list, tn_tensor *self, const tn_cell *dtype) {
    tn_dtype to = dtype->tag != TN_CELL_NONE       ? tni_arg_dtype(dtype)
                  : tni_is_float(self->view.dtype) ? self->view.dtype
                                                   : TN_F32;
    return to == self->view.dtype ? self : tni_own(list, tni_to_dtype(self, to));
}

BOXED(run_softmax) {
    tni_temps temps = {0};
    tn_tensor *x = floating(&temps, tni_arg_tensor(&args[0]), &args[2]);
    RETURN(OWN(tni_softmax_forward(x, args[1].v.i64)));
}

BOXED(run_log_softmax) {
    tni_temps temps = {0};
    tn_tensor *x = floating(&temps, tni_arg_tensor(&args[0]), &args[2]);
    RETURN(OWN(tni_log_softmax_forward(x, args[1].v.i64)));
}

/* self less its largest along dim */
static tn_tensor *shifted(tni_temps *list, tn_tensor *self, int64_t dim) {
    tn_tensor *top = tni_own(list, tni_amax(self, TN_SHAPE(dim), true));
    return tni_own(list, tni_sub(self, top, tn_int(1)));
}

BOXED(run_softmax_forward) {
    tni_temps temps = {0};
    int64_t dim = args[1].v.i64;
    tn_tensor *e = OWN(tni_exp(shifted(&temps, tni_arg_tensor(&args[0]), dim)));
    RETURN(OWN(tni_div(e, OWN(tni_sum_dim(e, TN_SHAPE(dim), true, TN_DTYPE_NONE)))));
}

BOXED(run_log_softmax_forward) {
    tni_temps temps = {0};
    int64_t dim = args[1].v.i64;
    tn_tensor *x = shifted(&temps, tni_arg_tensor(&args[0]), dim);
    tn_tensor *sum = OWN(tni_sum_dim(OWN(tni_exp(x)), TN_SHAPE(dim), true, TN_DTYPE_NONE));
    RETURN(OWN(tni_sub(x, OWN(tni_log(sum)), tn_int(1))));
}
