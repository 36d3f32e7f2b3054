/* Scans: running values along one dimension. */
#include "core/ops/dims.h"
#include "core/ops/functions.h"

/* cumsum(self, dim, dtype) */
tn_status tni_infer_cumsum(tni_build *b) {
    tn_dtype dtype = tni_arg_dtype(&b->args[2]);
    b->types[0] =
        dtype != TN_DTYPE_NONE ? dtype : tni_accumulator_dtype(tni_build_tensor(b, 0)->view.dtype);
    return tni_infer_along(b, 1);
}

/* A running sum from the other end. */
tn_tensor *tni_cumsum_backward(tn_tensor *grad, int64_t dim) {
    if (!grad)
        return NULL;
    int32_t d = tni_wrap_dim(dim, grad->view.rank, "tn_cumsum");
    if (d < 0 || grad->view.rank == 0 || grad->view.numel == 0)
        return d < 0 ? NULL : tni_keep(grad);
    int64_t last = grad->sizes[d] - 1;
    tni_temps tmp = {0};
    tn_tensor *reversal = tni_own(
        &tmp, tni_arange_start(tn_int(last), tn_int(-1), tn_int(-1), TN_I64, grad->device->id));
    tn_tensor *x = tni_own(&tmp, tni_index_select(grad, d, reversal));
    x = tni_then(&tmp, tni_cumsum(x, d, TN_DTYPE_NONE), x);
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_index_select(x, d, reversal)));
}
