/* Tensors from nothing: empty, full, arange and their like. */
#include "core/ops/build.h"
#include "core/ops/boxed.h"

#include <math.h>

static tn_status check_shape(const char *call, tn_ints size) {
    char text[TNI_SHAPE_TEXT];
    if (size.n > TN_MAX_RANK)
        return tni_fail(TN_SHAPE, "%s: %lld dimensions, but %d are the most a tensor can have",
                        call, (long long)size.n, TN_MAX_RANK);
    for (int64_t d = 0; d < size.n; d++)
        if (size.data[d] < 0)
            return tni_fail(TN_SHAPE, "%s: size %lld of shape %s is negative", call,
                            (long long)size.data[d],
                            tni_shape_text((int32_t)size.n, size.data, text));
    return TN_OK;
}

static tn_tensor *make_empty(const char *call, tn_ints size, tn_dtype dtype, tn_device where) {
    if (check_shape(call, size) != TN_OK)
        return NULL;
    tni_device *device = tni_factory_device(where);
    return device ? tni_tensor_new(device, dtype == TN_DTYPE_NONE ? TN_F32 : dtype, (int32_t)size.n,
                                   size.data)
                  : NULL;
}

BOXED(run_empty) {
    return tni_return(rets, make_empty("tn_empty", tni_arg_ints(&args[0]), tni_arg_dtype(&args[1]),
                                       tni_arg_device(&args[2])));
}

static tn_status filled(const char *call, const tn_cell *args, tn_cell *rets, int64_t value) {
    tn_tensor *t =
        make_empty(call, tni_arg_ints(&args[0]), tni_arg_dtype(&args[1]), tni_arg_device(&args[2]));
    if (t && tni_fill_data(t, value ? tn_int(value) : tn_float(0)) != TN_OK) {
        tni_drop(t);
        t = NULL;
    }
    return tni_return(rets, t);
}

BOXED(run_zeros) {
    return filled("tn_zeros", args, rets, 0);
}

BOXED(run_ones) {
    return filled("tn_ones", args, rets, 1);
}

/* full(size, fill_value, dtype, device) */
INFER(infer_full) {
    tn_ints size = tni_arg_ints(&b->args[0]);
    tn_dtype dtype = tni_arg_dtype(&b->args[2]);
    if (check_shape(b->info->call, size) != TN_OK)
        return tni_failed();
    if (dtype == TN_DTYPE_NONE)
        dtype = b->args[1].tag == TN_CELL_F64   ? TN_F32
                : b->args[1].tag == TN_CELL_I64 ? TN_I64
                                                : TN_BOOL;
    if (dtype == TN_BOOL)
        b->kargs[0] = tni_cell_i64(tni_scalar_f64(b->args[1]) != 0);
    b->types[0] = dtype;
    tni_build_out(b, 0, (int32_t)size.n, size.data);
    return TN_OK;
}

/* ---- like another tensor: dtype and device unless given
 * ---------------------------------------------- */

static tn_dtype dtype_like(const tn_cell *args, uint32_t i) {
    tn_dtype dtype = tni_arg_dtype(&args[i]);
    return dtype == TN_DTYPE_NONE ? tni_arg_tensor(&args[0])->view.dtype : dtype;
}

static tn_device device_like(const tn_cell *args, uint32_t i) {
    tn_device device = tni_arg_device(&args[i]);
    return device.type == 0 ? tni_arg_tensor(&args[0])->device->id : device;
}

BOXED(run_empty_like) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    return tni_return(rets, tni_empty(tni_sizes(self), dtype_like(args, 1), device_like(args, 2)));
}

BOXED(run_full_like) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    return tni_return(
        rets, tni_full(tni_sizes(self), args[1], dtype_like(args, 2), device_like(args, 3)));
}

BOXED(run_zeros_like) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    return tni_return(rets, tni_zeros(tni_sizes(self), dtype_like(args, 1), device_like(args, 2)));
}

BOXED(run_ones_like) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    return tni_return(rets, tni_ones(tni_sizes(self), dtype_like(args, 1), device_like(args, 2)));
}

/* ---- ranges
 * ---------------------------------------------------------------------------------------------- */

BOXED(run_arange_end) {
    return tni_return(rets, tni_arange_start(tn_int(0), args[0], tn_int(1), tni_arg_dtype(&args[1]),
                                             tni_arg_device(&args[2])));
}

/* arange.start(start, end, step, dtype, device) */
INFER(infer_arange) {
    bool integers = true;
    for (uint32_t i = 0; i < 3; i++)
        integers &= b->args[i].tag != TN_CELL_F64;
    double step = tni_scalar_f64(b->args[2]);
    if (step == 0 || !isfinite(step))
        return tni_build_fail(b, TN_INVALID_ARGUMENT, "step must be finite and not zero, but is %g",
                              step);
    int64_t n;
    if (integers) {
        int64_t span = tni_scalar_i64(b->args[1]) - tni_scalar_i64(b->args[0]);
        int64_t by = tni_scalar_i64(b->args[2]);
        n = (span > 0) == (by > 0) ? (span + by - (by > 0 ? 1 : -1)) / by : 0;
    } else {
        double count = ceil((tni_scalar_f64(b->args[1]) - tni_scalar_f64(b->args[0])) / step);
        if (!(count < 1e15))
            return tni_build_fail(b, TN_SHAPE, "from %g to %g by %g is no range",
                                  tni_scalar_f64(b->args[0]), tni_scalar_f64(b->args[1]), step);
        n = count > 0 ? (int64_t)count : 0;
    }
    tn_dtype dtype = tni_arg_dtype(&b->args[3]);
    b->types[0] = dtype != TN_DTYPE_NONE ? dtype : integers ? TN_I64 : TN_F32;
    tni_build_out(b, 0, 1, &n);
    return TN_OK;
}

BOXED(run_linspace) {
    int64_t steps = args[2].v.i64;
    tn_dtype dtype = tni_arg_dtype(&args[3]);
    tn_device device = tni_arg_device(&args[4]);
    if (steps < 0)
        return tni_fail(TN_INVALID_ARGUMENT, "tn_linspace: steps is %lld; it must not be negative",
                        (long long)steps);
    tni_temps temps = {0};
    double start = tni_scalar_f64(args[0]), end = tni_scalar_f64(args[1]);
    double step = steps > 1 ? (end - start) / (double)(steps - 1) : 0;
    tn_tensor *i = OWN(tni_arange(tn_int(steps), dtype == TN_DTYPE_NONE ? TN_F32 : dtype, device));
    tn_tensor *scaled = OWN(tni_mul_scalar(i, tn_float(step)));
    return tni_temps_return(&temps, OWN(tni_add_scalar(scaled, tn_float(start), tn_int(1))), rets);
}

BOXED(run_eye) {
    tni_temps temps = {0};
    tn_dtype dtype = tni_arg_dtype(&args[1]);
    tn_tensor *i = OWN(tni_arange(tn_int(args[0].v.i64), TN_I64, tni_arg_device(&args[2])));
    tn_tensor *same = OWN(tni_eq(i, OWN(tni_unsqueeze(i, 1))));
    return tni_temps_return(&temps,
                            OWN(tni_to_dtype(same, dtype == TN_DTYPE_NONE ? TN_F32 : dtype)), rets);
}
