/* Activations and their like that one expression in the table does not say. */
#include "core/ops/dims.h"
#include "core/ops/functions.h"
#include "core/ops/halves.h"

/* prelu(self, weight) */
tn_status tni_run_prelu(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *weight = tni_arg_tensor(&args[1]);
    int64_t channels = self->view.rank < 2 ? 1 : self->sizes[1];
    if (weight->view.rank > 1 || (weight->view.numel != 1 && weight->view.numel != channels))
        return tni_fail(
            TN_ERR_SHAPE,
            "tn_prelu: weight %s must have one element, or one for each channel of self "
            "%s (%lld)",
            TNI_SHAPE_OF(weight), TNI_SHAPE_OF(self), (long long)channels);
    if (weight->view.dtype != self->view.dtype)
        return tni_fail(TN_ERR_DTYPE, "tn_prelu: weight is %s, but self is %s; they must be equal",
                        tn_dtype_name(weight->view.dtype), tn_dtype_name(self->view.dtype));
    tni_temps tmp = {0};
    tn_tensor *slope = tni_along(&tmp, weight, 1, self->view.rank);
    tn_tensor *positive = tni_own(&tmp, tni_gt_scalar(self, tn_int(0)));
    tn_tensor *bent = tni_own(&tmp, tni_mul(self, slope));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_where(positive, self, bent)), rets);
}

/* glu(self, dim) */
tn_status tni_run_glu(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    if (self->view.rank == 0)
        return tni_fail(TN_ERR_SHAPE, "tn_glu: self needs a dimension to be halved");
    int32_t dim = tni_wrap_dim(args[1].v.i64, self->view.rank, "tn_glu");
    if (dim < 0)
        return tni_failed();
    int64_t half = self->sizes[dim] / 2;
    if (self->sizes[dim] % 2)
        return tni_fail(TN_ERR_SHAPE, "tn_glu: dimension %d of self %s must be even", dim,
                        TNI_SHAPE_OF(self));
    tni_temps tmp = {0};
    tn_tensor *kept = tni_own(&tmp, tni_narrow(self, dim, 0, half));
    tn_tensor *gate = tni_own(&tmp, tni_narrow(self, dim, half, half));
    gate = tni_own(&tmp, tni_sigmoid(gate));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_mul(kept, gate)), rets);
}

/* `value` where `mask` holds; the bound of the dtype where none is given. */
static tn_tensor *replaced(tni_temps *list, tn_tensor *x, tn_tensor *mask, tn_scalar value,
                           double otherwise) {
    if (value.tag == TN_CELL_NONE)
        value = tn_float(otherwise);
    return tni_own(list, tni_masked_fill_scalar(x, mask, value));
}

/* nan_to_num(self, nan, posinf, neginf) */
tn_status tni_run_nan_to_num(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    if (!tni_is_float(self->view.dtype))
        return tni_return(rets, tni_clone(self));
    tni_temps tmp = {0};
    double most = tni_largest_finite(self->view.dtype);
    tn_tensor *nan = tni_own(&tmp, tni_isnan(self));
    tn_tensor *high = tni_own(&tmp, tni_isposinf(self));
    tn_tensor *low = tni_own(&tmp, tni_isneginf(self));
    tn_tensor *x = replaced(&tmp, self, nan, args[1], 0);
    x = replaced(&tmp, x, high, args[2], most);
    return tni_temps_return(&tmp, replaced(&tmp, x, low, args[3], -most), rets);
}
