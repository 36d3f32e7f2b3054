/* Complex tensors as tensors of their real and imaginary parts, and back: views. */
#include "core/autograd/engine.h"
#include "core/ops/functions.h"

static tn_status expect_complex(const char *call, const tn_tensor *self) {
    if (tni_is_complex(self->view.dtype))
        return TN_OK;
    return tni_fail(TN_ERR_DTYPE, "%s: self is %s; it must be complex, which tn_to_dtype makes it",
                    call, tn_dtype_name(self->view.dtype));
}

/* Of a real tensor itself. */
tn_status tni_run_real(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_dtype dtype = self->view.dtype;
    return tni_return(rets, tni_is_complex(dtype) ? tni_tensor_part(self, tni_real_dtype(dtype), 0)
                                                  : tni_keep(self));
}

tn_status tni_run_imag(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    TNI_TRY(expect_complex("tn_imag", self));
    return tni_return(rets, tni_tensor_part(self, tni_real_dtype(self->view.dtype), 1));
}

tn_status tni_run_view_as_real(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int32_t rank = self->view.rank;
    int64_t sizes[TN_MAX_RANK], strides[TN_MAX_RANK];
    TNI_TRY(expect_complex("tn_view_as_real", self));
    if (rank == TN_MAX_RANK)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_view_as_real: self has %d dimensions already, the most a"
                        " tensor can have; take tn_real and tn_imag",
                        rank);
    for (int32_t d = 0; d < rank; d++) {
        sizes[d] = self->sizes[d];
        strides[d] = 2 * self->strides[d];
    }
    sizes[rank] = 2;
    strides[rank] = 1;
    return tni_return(rets,
                      tni_tensor_over(self->storage, tni_real_dtype(self->view.dtype), rank + 1,
                                      sizes, strides, 2 * self->view.numel, self->view.offset));
}

tn_status tni_run_view_as_complex(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int32_t last = self->view.rank - 1;
    tn_dtype dtype = self->view.dtype == TN_F32   ? TN_C64
                     : self->view.dtype == TN_F64 ? TN_C128
                                                  : TN_DTYPE_NONE;
    if (dtype == TN_DTYPE_NONE)
        return tni_fail(TN_ERR_DTYPE,
                        "tn_view_as_complex: self is %s; it must be f32 or f64, which tn_to_dtype"
                        " makes it",
                        tn_dtype_name(self->view.dtype));
    if (tni_grad_mode() && tni_requires_grad(self))
        return tni_fail(TN_ERR_DTYPE, "tn_view_as_complex: self requires a gradient, and complex"
                                      " tensors have none; take tn_detach of it");
    bool fits = last >= 0 && self->sizes[last] == 2 && self->strides[last] == 1 &&
                self->view.offset % (uint64_t)tni_dtype_size(dtype) == 0;
    int64_t strides[TN_MAX_RANK];
    for (int32_t d = 0; d < last; d++) {
        fits &= self->strides[d] % 2 == 0 || self->sizes[d] == 1;
        strides[d] = self->strides[d] / 2;
    }
    if (!fits)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_view_as_complex: self of shape %s does not lie in pairs; the last size"
                        " must be 2 and its stride 1, the others and the offset even; take"
                        " tn_contiguous of it",
                        TNI_SHAPE_OF(self));
    return tni_return(rets, tni_tensor_over(self->storage, dtype, last, self->sizes, strides,
                                            self->view.numel / 2, self->view.offset));
}
