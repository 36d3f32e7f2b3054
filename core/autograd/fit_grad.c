/* Gradients made to fit: summed down where the forward call broadcast, cast and moved to what the
 * input was. */
#include "core/autograd/engine.h"
#include "core/ops/operators.h"

/* Sums `grad` down to `sizes` (undoes broadcasting), or returns another reference to it; owned. */
static tn_tensor *sum_to_size(tn_tensor *grad, int32_t rank, const int64_t *sizes) {
    int32_t lead = grad->view.rank - rank;
    int64_t dims[TN_MAX_RANK];
    int64_t n = 0;
    for (int32_t i = 0; i < lead; i++)
        dims[n++] = i;
    for (int32_t i = 0; i < rank; i++)
        if (sizes[i] == 1 && grad->sizes[lead + i] != 1)
            dims[n++] = lead + i;
    if (n == 0)
        return tni_keep(grad);
    tn_tensor *sum = tni_sum_dim(grad, tn_ints_of(dims, n), true, TN_DTYPE_NONE);
    if (lead == 0)
        return sum;
    tn_tensor *result = tni_reshape(sum, tn_ints_of(sizes, rank));
    tni_drop(sum);
    return result;
}

static bool sums_to(const tn_tensor *t, const tni_output_meta *meta) {
    int32_t lead = t->view.rank - meta->rank;
    if (lead < 0)
        return false;
    for (int32_t i = 0; i < meta->rank; i++)
        if (meta->sizes[i] != 1 && meta->sizes[i] != t->sizes[lead + i])
            return false;
    return true;
}

/* Puts `after` (owned or NULL) in the place of *grad. */
static tn_status replace(tn_tensor **grad, tn_tensor *after) {
    tni_drop(*grad);
    *grad = after;
    return after ? TN_OK : tni_failed();
}

tn_status tni_fit_grad(tn_tensor **grad, const tni_output_meta *meta, const char *source) {
    tn_tensor *g = *grad;
    if (TNI_LIKELY(tni_has_shape(g, meta->rank, meta->sizes) && g->view.dtype == meta->dtype &&
                   g->device == meta->device))
        return TN_OK;
    if (!meta->device)
        return TN_OK; /* of an output without gradient: nothing uses it */
    tn_status status = TN_OK;
    if (!tni_has_shape(g, meta->rank, meta->sizes)) {
        if (!sums_to(g, meta))
            return tni_fail(TN_ERR_SHAPE,
                            "%s made a gradient of shape %s for an input of shape %s; it must have "
                            "the input's shape, or one that sums to it",
                            source, TNI_SHAPE_OF(g), TNI_SHAPE_OF_SIZES(meta->rank, meta->sizes));
        status = replace(grad, sum_to_size(g, meta->rank, meta->sizes));
    }
    if (status == TN_OK && (*grad)->view.dtype != meta->dtype) {
        if (!tni_is_float((*grad)->view.dtype))
            return tni_fail(TN_ERR_DTYPE,
                            "%s made a gradient of %s; gradients are of floating dtypes", source,
                            tn_dtype_name((*grad)->view.dtype));
        status = replace(grad, tni_to_dtype(*grad, meta->dtype));
    }
    if (status == TN_OK && (*grad)->device != meta->device)
        status = replace(grad, tni_to_device(*grad, meta->device->id));
    return status;
}
