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

/* ---- made of log2(n) steps --------------------------------------------------------------- */

/* x with its elements from `step` on along dim replaced. */
static tn_tensor *continued(tni_temps *tmp, tn_tensor *x, int32_t dim, int64_t step,
                            tn_tensor *rest) {
    tn_tensor *parts[2] = {tni_narrow(x, dim, 0, step), rest};
    tn_tensor *whole = parts[0] && rest ? tni_cat(parts, 2, dim) : NULL;
    tni_drop(parts[0]);
    return whole ? tni_then(tmp, whole, x) : NULL;
}

/* x joined with all before it along dim. */
static tn_tensor *running(tn_tensor *self, int32_t dim,
                          tn_tensor *(*join)(tn_tensor *before, tn_tensor *after)) {
    tni_temps tmp = {0};
    int64_t n = self->view.rank ? self->sizes[dim] : 1;
    tn_tensor *x = tni_own(&tmp, n < 2 ? tni_clone(self) : tni_alias(self));
    for (int64_t step = 1; step < n && x; step *= 2) {
        tni_temps own = {0};
        tn_tensor *before = tni_own(&own, tni_narrow(x, dim, 0, n - step));
        tn_tensor *after = tni_own(&own, tni_narrow(x, dim, step, n - step));
        x = continued(&tmp, x, dim, step, tni_own(&own, join(before, after)));
        tni_temps_finish(&own);
    }
    return tni_temps_keep(&tmp, x);
}

/* The places of the running extremes: after each step they are those of twice as many elements. Of
 * equals the last counts, and a NaN before all others. */
static tn_tensor *running_places(tn_tensor *self, int32_t dim, bool largest) {
    tni_temps tmp = {0};
    int64_t n = self->sizes[dim];
    tn_tensor *x = tni_own(&tmp, tni_detach(self));
    tn_tensor *at = tni_own(&tmp, tni_arange(tn_int(n), TN_I64, self->device->id));
    at = tni_along(&tmp, at, dim, self->view.rank);
    at = tni_own(&tmp, tni_expand(at, tni_sizes(self)));
    for (int64_t step = 1; step < n && x && at; step *= 2) {
        tni_temps own = {0};
        tn_tensor *before = tni_own(&own, tni_narrow(x, dim, 0, n - step));
        tn_tensor *after = tni_own(&own, tni_narrow(x, dim, step, n - step));
        tn_tensor *at_before = tni_own(&own, tni_narrow(at, dim, 0, n - step));
        tn_tensor *at_after = tni_own(&own, tni_narrow(at, dim, step, n - step));
        tn_tensor *later = tni_own(&own, largest ? tni_ge(after, before) : tni_le(after, before));
        if (tni_is_float(self->view.dtype))
            later = tni_own(&own, tni_bitwise_or(later, tni_own(&own, tni_isnan(after))));
        x = continued(&tmp, x, dim, step, tni_own(&own, tni_where(later, after, before)));
        at = continued(&tmp, at, dim, step, tni_own(&own, tni_where(later, at_after, at_before)));
        tni_temps_finish(&own);
    }
    return tni_temps_keep(&tmp, at);
}

/* cummax(self, dim) -> values, indices */
tn_status tni_run_running_extreme(const char *call, const tn_cell *args, tn_cell *rets,
                                  bool largest) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *results[2];
    int32_t dim = tni_wrap_dim(args[1].v.i64, self->view.rank, call);
    if (dim < 0)
        return tni_failed();
    tni_temps tmp = {0};
    if (self->view.rank == 0 || self->view.numel == 0) {
        results[0] = tni_own(&tmp, tni_clone(self));
        results[1] = tni_own(&tmp, tni_zeros(tni_sizes(self), TN_I64, self->device->id));
    } else {
        results[1] = tni_own(&tmp, running_places(self, dim, largest));
        if (results[1] && self->sizes[dim] == 1) /* a view of the table still */
            results[1] = tni_own(&tmp, tni_clone(results[1]));
        results[0] = results[1] ? tni_own(&tmp, tni_gather(self, dim, results[1])) : NULL;
    }
    return tni_temps_return_many(&tmp, results, 2, rets);
}

/* logcumsumexp(self, dim) */
tn_status tni_run_logcumsumexp(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int32_t dim = tni_wrap_dim(args[1].v.i64, self->view.rank, "tn_logcumsumexp: dim");
    if (dim < 0)
        return tni_failed();
    if (!tni_is_float(self->view.dtype))
        return tni_fail(TN_ERR_DTYPE, "tn_logcumsumexp: not defined for %s; cast with tn_to_dtype",
                        tn_dtype_name(self->view.dtype));
    return tni_return(rets, running(self, dim, tni_logaddexp));
}

/* cumprod(self, dim, dtype) */
tn_status tni_run_cumprod(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_dtype dtype = tni_arg_dtype(&args[2]);
    int32_t dim = tni_wrap_dim(args[1].v.i64, self->view.rank, "tn_cumprod: dim");
    if (dim < 0)
        return tni_failed();
    if (dtype == TN_DTYPE_NONE)
        dtype = tni_accumulator_dtype(self->view.dtype);
    tni_temps tmp = {0};
    tn_tensor *x = tni_own(&tmp, tni_to_dtype(self, dtype));
    return tni_temps_return(&tmp, x ? tni_own(&tmp, running(x, dim, tni_mul)) : NULL, rets);
}

/* ---- differences ------------------------------------------------------------------------- */

/* diff(self, n, dim, prepend, append) */
tn_status tni_run_diff(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *parts[3];
    tn_tensor *before = tni_arg_tensor(&args[3]), *behind = tni_arg_tensor(&args[4]);
    int64_t n = args[1].v.i64;
    if (self->view.rank == 0 || n < 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_diff: self has rank %d and n is %lld; self must have a dimension, and "
                        "n not be negative",
                        self->view.rank, (long long)n);
    int32_t dim = tni_wrap_dim(args[2].v.i64, self->view.rank, "tn_diff: dim");
    if (dim < 0)
        return tni_failed();
    tni_temps tmp = {0};
    tn_tensor *x = self;
    uint64_t n_parts = 0;
    if (before)
        parts[n_parts++] = before;
    parts[n_parts++] = self;
    if (behind)
        parts[n_parts++] = behind;
    if (n_parts > 1)
        x = tni_own(&tmp, tni_cat(parts, n_parts, dim));
    if (x == self && (n == 0 || self->sizes[dim] == 0))
        return tni_return(rets, tni_clone(self));
    for (; n > 0 && x && x->sizes[dim] > 0; n--) {
        int64_t length = x->sizes[dim] - 1;
        tni_temps own = {0};
        tn_tensor *low = tni_own(&own, tni_narrow(x, dim, 0, length));
        tn_tensor *high = tni_own(&own, tni_narrow(x, dim, 1, length));
        x = tni_then(&tmp,
                     self->view.dtype == TN_BOOL ? tni_logical_xor(high, low)
                                                 : tni_sub(high, low, tn_int(1)),
                     x);
        tni_temps_finish(&own);
    }
    return tni_temps_return(&tmp, x, rets);
}
