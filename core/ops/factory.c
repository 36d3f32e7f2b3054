/* Tensors from nothing: empty, full, arange and their like. */

#include "base/alloc.h"
#include "core/ops/functions.h"

#include <math.h>

static tn_status check_shape(const char *call, tn_ints size) {
    if (size.n > TN_MAX_RANK)
        return tni_fail(TN_ERR_SHAPE, "%s: %lld dimensions, but %d are the most a tensor can have",
                        call, (long long)size.n, TN_MAX_RANK);
    for (int64_t d = 0; d < size.n; d++)
        if (size.data[d] < 0)
            return tni_fail(TN_ERR_SHAPE, "%s: size %lld of shape %s is negative", call,
                            (long long)size.data[d], TNI_SHAPE_OF_INTS(size));
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

tn_status tni_run_empty(const tn_cell *args, tn_cell *rets) {
    return tni_return(rets, make_empty("tn_empty", tni_arg_ints(&args[0]), tni_arg_dtype(&args[1]),
                                       tni_arg_device(&args[2])));
}

/* empty_strided(size, stride, dtype, device) */
tn_status tni_run_empty_strided(const tn_cell *args, tn_cell *rets) {
    tn_ints size = tni_arg_ints(&args[0]), stride = tni_arg_ints(&args[1]);
    tn_dtype dtype = tni_arg_dtype(&args[2]);
    tni_layout layout;
    if (dtype == TN_DTYPE_NONE)
        dtype = TN_F32;
    if (!tni_lay_out("tn_empty_strided", size, stride, dtype, &layout))
        return tni_failed();
    tni_device *device = tni_factory_device(tni_arg_device(&args[3]));
    return tni_return(rets, device ? tni_tensor_new_strided(device, dtype, (int32_t)size.n,
                                                            size.data, layout.strides)
                                   : NULL);
}

/* scalar_tensor(s, dtype, device) */
tn_status tni_run_scalar_tensor(const tn_cell *args, tn_cell *rets) {
    tn_dtype dtype = tni_arg_dtype(&args[1]);
    return tni_return(rets,
                      tni_full(TN_SCALAR_SHAPE, args[0], dtype == TN_DTYPE_NONE ? TN_F32 : dtype,
                               tni_arg_device(&args[2])));
}

tn_status tni_run_filled(const char *call, const tn_cell *args, tn_cell *rets, int64_t value) {
    tn_tensor *t =
        make_empty(call, tni_arg_ints(&args[0]), tni_arg_dtype(&args[1]), tni_arg_device(&args[2]));
    if (t && tni_fill_data(t, value ? tn_int(value) : tn_float(0)) != TN_OK) {
        tni_drop(t);
        t = NULL;
    }
    return tni_return(rets, t);
}

/* full(size, fill_value, dtype, device) */
tn_status tni_infer_full(tni_build *b) {
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
    else if (!tni_fits(b->args[1], dtype))
        return tni_build_fail(b, TN_ERR_DTYPE, "fill_value %g does not fit in %s", b->args[1].v.f64,
                              tn_dtype_name(dtype));
    b->types[0] = dtype;
    b->fills = b->has_empty_value = tni_is_storage_dtype(dtype);
    b->empty_value = b->args[1];
    tni_build_out(b, 0, (int32_t)size.n, size.data);
    return TN_OK;
}

/* ---- ranges ------------------------------------------------------------------------------ */

/* How many of start, start + step, ... lie before end, or -1: none could, or no number of them. */
static int64_t range_length(const tn_scalar *range, bool integers) {
    if (!integers) {
        double start = tni_scalar_f64(range[0]), end = tni_scalar_f64(range[1]);
        double step = tni_scalar_f64(range[2]), count = ceil((end - start) / step);
        bool leads = step > 0 ? start <= end : start >= end;
        return leads && count < 0x1p53 ? (int64_t)count : -1;
    }
    int64_t start = range[0].v.i64, end = range[1].v.i64, step = range[2].v.i64;
    if (step > 0 ? end < start : end > start)
        return -1;
    uint64_t span = step > 0 ? (uint64_t)end - (uint64_t)start : (uint64_t)start - (uint64_t)end;
    uint64_t by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    uint64_t n = span / by + (span % by != 0);
    return n <= INT64_MAX ? (int64_t)n : -1;
}

/* first + i * step for i < n - n_last, and after those counted back from `last`: in f64, truncated,
 * which no kernel is asked to do. */
static tn_tensor *truncated_range(double first, double last, double step, int64_t n, int64_t n_last,
                                  tni_device *device) {
    int64_t *values = tni_alloc((uint64_t)(n ? n : 1) * sizeof *values);
    if (!values) {
        tni_fail_memory("a range of integers");
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        values[i] = (int64_t)(i < n - n_last ? first + (double)i * step
                                             : last - (double)(n - 1 - i) * step);
    tn_tensor *t = tni_tensor_new(device, TN_I64, 1, &n);
    if (t && tni_tensor_write(t, values, (uint64_t)n * sizeof *values) != TN_OK) {
        tni_drop(t);
        t = NULL;
    }
    tni_free(values);
    return t;
}

/* arange.start(start, end, step, dtype, device). The kernel counts in integers where the dtype is
 * one, from a whole start by whole steps. */
tn_status tni_infer_arange(tni_build *b) {
    tn_dtype dtype = tni_arg_dtype(&b->args[3]);
    tn_scalar range[3] = {b->args[0], b->args[1], b->args[2]};
    bool integers = true, finite = true;
    for (uint32_t i = 0; i < 3; i++) {
        integers &= range[i].tag != TN_CELL_F64;
        finite &= fabs(tni_scalar_f64(range[i])) < 0x1p63 || range[i].tag != TN_CELL_F64;
    }
    if (dtype == TN_DTYPE_NONE)
        dtype = integers ? TN_I64 : TN_F32;
    double start = tni_scalar_f64(range[0]), step = tni_scalar_f64(range[2]);
    if (step == 0)
        return tni_build_fail(b, TN_ERR_INVALID_ARGUMENT, "step %g must not be zero", step);
    int64_t n = finite ? range_length(range, integers) : -1;
    if (n < 0)
        return tni_build_fail(b, TN_ERR_INVALID_ARGUMENT,
                              "from %g to %g by %g is no range; step must lead from start to end",
                              start, tni_scalar_f64(range[1]), step);
    b->kargs[0] = range[0];
    b->kargs[1] = range[2];
    b->types[0] = dtype;
    tni_build_out(b, 0, 1, &n);
    if (tni_is_float(dtype) || integers)
        return TN_OK;
    b->kargs[0] = tn_int(tni_scalar_i64(range[0]));
    b->kargs[1] = tn_int(tni_scalar_i64(range[2]));
    b->has_copy_value = !b->device->is_meta && (trunc(start) != start || trunc(step) != step);
    if (b->has_copy_value)
        b->copy_value = tni_own(&b->temps, truncated_range(start, 0, step, n, 0, b->device));
    return b->has_copy_value && !b->copy_value ? tni_failed() : TN_OK;
}

/* Both halves count from their own end, so that the last element is exactly `end`. Computed in f32
 * (f64 for f64 and integers) and rounded once. */
tn_status tni_run_linspace(const tn_cell *args, tn_cell *rets) {
    int64_t steps = args[2].v.i64;
    tn_dtype dtype = tni_arg_dtype(&args[3]);
    tn_dtype in = dtype == TN_F64 || dtype == TN_C128 ? TN_F64 : TN_F32;
    if (steps < 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_linspace: steps is %lld; it must not be negative", (long long)steps);
    tni_temps tmp = {0};
    double start = tni_scalar_f64(args[0]), end = tni_scalar_f64(args[1]);
    bool whole = dtype != TN_DTYPE_NONE && !tni_is_float(dtype) && !tni_is_complex(dtype);
    if (whole) {
        start = trunc(start);
        end = trunc(end);
        if (!(fabs(start) < 0x1p63 && fabs(end) < 0x1p63))
            return tni_fail(TN_ERR_DTYPE, "tn_linspace: from %g to %g does not fit in %s", start,
                            end, tn_dtype_name(dtype));
    }
    double step = steps > 1 ? (end - start) / (double)(steps - 1) : 0;
    if (whole) {
        tni_device *device = tni_factory_device(tni_arg_device(&args[4]));
        tn_tensor *values =
            device ? tni_own(&tmp, truncated_range(start, steps > 1 ? end : start, step, steps,
                                                   steps - steps / 2, device))
                   : NULL;
        return tni_temps_return(&tmp, tni_own(&tmp, tni_to_dtype(values, dtype)), rets);
    }
    tn_tensor *i = tni_own(&tmp, tni_arange(tn_int(steps), in, tni_arg_device(&args[4])));
    tn_tensor *left = tni_own(&tmp, tni_rsub_scalar(i, tn_float((double)(steps - 1)), tn_int(1)));
    tn_tensor *up = tni_own(&tmp, tni_mul_scalar(i, tn_float(step)));
    tn_tensor *down = tni_own(&tmp, tni_mul_scalar(left, tn_float(-step)));
    up = tni_own(&tmp, tni_add_scalar(up, tn_float(start), tn_int(1)));
    down = tni_own(&tmp, tni_add_scalar(down, tn_float(steps > 1 ? end : start), tn_int(1)));
    tn_tensor *first_half = tni_own(&tmp, tni_lt_scalar(i, tn_int(steps / 2)));
    tn_tensor *result = tni_own(&tmp, tni_where(first_half, up, down));
    return tni_temps_return(
        &tmp,
        dtype == TN_DTYPE_NONE || dtype == in ? result : tni_own(&tmp, tni_to_dtype(result, dtype)),
        rets);
}

/* One where the row's number is the column's. */
static tn_status make_eye(const char *call, int64_t n, int64_t m, tn_dtype dtype, tn_device device,
                          tn_cell *rets) {
    if (n < 0 || m < 0)
        return tni_fail(TN_ERR_SHAPE, "%s: %s is %lld; it must not be negative", call,
                        n < 0 ? "n" : "m", (long long)(n < 0 ? n : m));
    tni_temps tmp = {0};
    tn_tensor *column = tni_own(&tmp, tni_arange(tn_int(m), TN_I64, device));
    tn_tensor *row = n == m ? column : tni_own(&tmp, tni_arange(tn_int(n), TN_I64, device));
    tn_tensor *same = tni_own(&tmp, tni_eq(column, tni_own(&tmp, tni_unsqueeze(row, 1))));
    return tni_temps_return(
        &tmp, tni_own(&tmp, tni_to_dtype(same, dtype == TN_DTYPE_NONE ? TN_F32 : dtype)), rets);
}

tn_status tni_run_eye(const tn_cell *args, tn_cell *rets) {
    return make_eye("tn_eye", args[0].v.i64, args[0].v.i64, tni_arg_dtype(&args[1]),
                    tni_arg_device(&args[2]), rets);
}

tn_status tni_run_eye_m(const tn_cell *args, tn_cell *rets) {
    return make_eye("tn_eye_m", args[0].v.i64, args[1].v.i64, tni_arg_dtype(&args[2]),
                    tni_arg_device(&args[3]), rets);
}
