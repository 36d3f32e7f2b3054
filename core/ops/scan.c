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

tn_tensor *tni_cumsum_backward(tn_tensor *grad, int64_t dim) {
    if (!grad)
        return NULL;
    int32_t d = tni_wrap_dim(dim, grad->view.rank, "tn_cumsum");
    if (d < 0 || grad->view.rank == 0 || grad->view.numel == 0)
        return d < 0 ? NULL : tni_keep(grad);
    int64_t n = grad->sizes[d];
    tn_tensor *reversal =
        tni_arange_start(tn_int(n - 1), tn_int(-1), tn_int(-1), TN_I64, grad->device->id);
    tn_tensor *t = tni_index_select(grad, d, reversal);
    t = tni_then(tni_cumsum(t, d, TN_DTYPE_NONE), t);
    return tni_then2(tni_index_select(t, d, reversal), t, reversal);
}
