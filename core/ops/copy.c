/* Copies, casts and moves as operators; copy.c does the work. */

#include "core/ops/functions.h"

tn_status tni_run_copy_(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *src = tni_arg_tensor(&args[1]);
    if (!tni_check_distinct("tn_copy_", self))
        return tni_failed();
    TNI_TRY(tni_copy_data(self, src));
    return tni_return(rets, tni_keep(self));
}

tn_status tni_run_fill_(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    if (!tni_check_distinct("tn_fill_", self))
        return tni_failed();
    if (!tni_fits(args[1], self->view.dtype))
        return tni_fail(TN_ERR_DTYPE, "tn_fill_: value %g does not fit in %s", args[1].v.f64,
                        tn_dtype_name(self->view.dtype));
    TNI_TRY(tni_fill_data(self, args[1]));
    return tni_return(rets, tni_keep(self));
}

tn_status tni_run_zero_(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    if (!tni_check_distinct("tn_zero_", self))
        return tni_failed();
    TNI_TRY(tni_fill_data(self, tn_float(0)));
    return tni_return(rets, tni_keep(self));
}

/* to_copy(self, dtype, device): row-major, or dense like self */
tn_status tni_run_to_copy(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_dtype dtype = tni_arg_dtype(&args[1]);
    tn_device where = tni_arg_device(&args[2]);
    tni_device *device = where.type == 0 ? self->device : tni_device_get(where);
    if (!device)
        return tni_failed();
    dtype = dtype == TN_DTYPE_NONE ? self->view.dtype : dtype;
    tn_tensor *copy =
        tni_is_dense(&self->view)
            ? tni_tensor_new_strided(device, dtype, self->view.rank, self->sizes, self->strides)
            : tni_tensor_new(device, dtype, self->view.rank, self->sizes);
    if (copy && tni_copy_data(copy, self) != TN_OK) {
        tni_drop(copy);
        copy = NULL;
    }
    return tni_return(rets, copy);
}

static tn_tensor *to(tn_tensor *self, tn_dtype dtype, tn_device device, bool copy) {
    bool same = (dtype == TN_DTYPE_NONE || dtype == self->view.dtype) &&
                (device.type == 0 || tn_device_equal(device, self->device->id));
    return same && !copy ? tni_keep(self) : tni_to_copy(self, dtype, device);
}

tn_status tni_run_to(const tn_cell *args, tn_cell *rets) {
    return tni_return(rets, to(tni_arg_tensor(&args[0]), tni_arg_dtype(&args[1]),
                               tni_arg_device(&args[2]), args[3].v.boolean != 0));
}

tn_status tni_run_to_dtype(const tn_cell *args, tn_cell *rets) {
    return tni_return(rets,
                      to(tni_arg_tensor(&args[0]), tni_arg_dtype(&args[1]), tn_no_device(), false));
}

tn_status tni_run_to_device(const tn_cell *args, tn_cell *rets) {
    return tni_return(rets,
                      to(tni_arg_tensor(&args[0]), TN_DTYPE_NONE, tni_arg_device(&args[1]), false));
}

tn_status tni_run_contiguous(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    if (tni_is_contiguous(&self->view))
        return tni_return(rets, tni_keep(self));
    tn_tensor *fresh = tni_empty_like(self, TN_DTYPE_NONE, tn_no_device());
    tn_tensor *copy = tni_copy_(fresh, self, false);
    tni_drop(fresh);
    return tni_return(rets, copy);
}

/* fill(self, value) */
tn_status tni_run_fill_tensor(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *value = tni_arg_tensor(&args[1]);
    if (value->view.rank != 0)
        return tni_fail(TN_ERR_SHAPE, "tn_fill_tensor: value must be of rank 0, but has shape %s",
                        TNI_SHAPE_OF(value));
    TNI_TRY(tni_check_keeps_imaginary("tn_fill_tensor", "value", value, self));
    return tni_return(rets, tni_copy(self, value, false));
}
