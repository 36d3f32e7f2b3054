/* Places in sorted sequences, and what is counted by them: searchsorted, isin, histc, bincount. */
#include "core/call/promote.h"
#include "core/ops/functions.h"
#include "core/ops/halves.h"

#include <math.h>

/* ---- places in sorted sequences ---------------------------------------------------------- */

/* How many elements of seq [.., n] along its last dimension lie before each of values [.., m],
 * whose other dimensions are the same: the largest steps are tried first. A NaN lies behind all. */
static tn_tensor *count_before(tn_tensor *seq, tn_tensor *sorter, tn_tensor *values, bool right) {
    tni_temps tmp = {0};
    int64_t n = seq->sizes[seq->view.rank - 1], step = 1;
    tn_tensor *at = tni_own(&tmp, tni_zeros(tni_sizes(values), TN_I64, values->device->id));
    while (step <= n / 2)
        step *= 2;
    for (; n > 0 && step > 0 && at; step /= 2) {
        tni_temps own = {0};
        tn_tensor *next = tni_own(&own, tni_add_scalar(at, tn_int(step), tn_int(1)));
        tn_tensor *last = tni_own(&own, tni_clamp_max(next, tn_int(n)));
        last = tni_own(&own, tni_add_scalar(last, tn_int(-1), tn_int(1)));
        if (sorter)
            last = tni_own(&own, tni_gather(sorter, -1, last));
        tn_tensor *probe = tni_own(&own, tni_gather(seq, -1, last));
        tn_tensor *stop = tni_own(&own, right ? tni_gt(probe, values) : tni_ge(probe, values));
        stop = tni_own(&own, tni_bitwise_or(stop, tni_own(&own, tni_gt_scalar(next, tn_int(n)))));
        at = tni_then(&tmp, tni_where(stop, at, next), at);
        tni_temps_finish(&own);
    }
    return tni_temps_keep(&tmp, at);
}

static tn_status check_sequence(const char *call, const tn_tensor *seq, const tn_tensor *values,
                                const tn_tensor *sorter) {
    bool fits = seq->view.rank == 1 || (seq->view.rank > 0 && seq->view.rank == values->view.rank);
    for (int32_t d = 0; fits && seq->view.rank > 1 && d < seq->view.rank - 1; d++)
        fits = seq->sizes[d] == values->sizes[d];
    if (!fits)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: the sorted sequence %s must be of rank 1, or shaped like the values "
                        "%s but for the last dimension",
                        call, TNI_SHAPE_OF(seq), TNI_SHAPE_OF(values));
    if (seq->view.dtype != values->view.dtype)
        return tni_fail(TN_ERR_DTYPE,
                        "%s: the sorted sequence is %s and the values are %s; they must be equal",
                        call, tn_dtype_name(seq->view.dtype), tn_dtype_name(values->view.dtype));
    if (sorter && (!tni_same_shape(sorter, seq) || sorter->view.dtype != TN_I64))
        return tni_fail(TN_ERR_SHAPE,
                        "%s: sorter must be i64 and shaped like the sorted sequence %s, but is %s "
                        "%s",
                        call, TNI_SHAPE_OF(seq), tn_dtype_name(sorter->view.dtype),
                        TNI_SHAPE_OF(sorter));
    return TN_OK;
}

static tn_status search(const char *call, tn_tensor *seq, tn_tensor *values, tn_tensor *sorter,
                        bool out_int32, bool right, tn_cell *rets) {
    if (check_sequence(call, seq, values, sorter) != TN_OK)
        return tni_failed();
    tni_temps tmp = {0};
    tn_tensor *x = seq->view.rank == 1 ? tni_own(&tmp, tni_reshape(values, TN_SHAPE(-1))) : values;
    if (values->view.numel == 0)
        return tni_temps_return(
            &tmp,
            tni_own(&tmp,
                    tni_empty(tni_sizes(values), out_int32 ? TN_I32 : TN_I64, values->device->id)),
            rets);
    tn_tensor *at = x ? tni_own(&tmp, count_before(seq, sorter, x, right)) : NULL;
    if (x != values)
        at = tni_own(&tmp, tni_reshape(at, tni_sizes(values)));
    return tni_temps_return(&tmp, out_int32 ? tni_own(&tmp, tni_to_dtype(at, TN_I32)) : at, rets);
}

/* searchsorted(sorted_sequence, self, out_int32, right, sorter) */
tn_status tni_run_searchsorted(const tn_cell *args, tn_cell *rets) {
    return search("tn_searchsorted", tni_arg_tensor(&args[0]), tni_arg_tensor(&args[1]),
                  tni_arg_tensor(&args[4]), args[2].v.boolean, args[3].v.boolean, rets);
}

/* bucketize(self, boundaries, out_int32, right) */
tn_status tni_run_bucketize(const tn_cell *args, tn_cell *rets) {
    tn_tensor *boundaries = tni_arg_tensor(&args[1]);
    if (boundaries->view.rank != 1)
        return tni_fail(TN_ERR_SHAPE, "tn_bucketize: boundaries must be of rank 1, but has rank %d",
                        boundaries->view.rank);
    return search("tn_bucketize", boundaries, tni_arg_tensor(&args[0]), NULL, args[2].v.boolean,
                  args[3].v.boolean, rets);
}

/* isin(elements, test_elements, assume_unique, invert): is the first of the sorted ones that is
 * not less the same? */
tn_status tni_run_isin_tensor_tensor(const tn_cell *args, tn_cell *rets) {
    tn_tensor *elements = tni_arg_tensor(&args[0]), *tests = tni_arg_tensor(&args[1]);
    bool invert = args[3].v.boolean;
    if (elements->view.numel == 0 || tests->view.numel == 0)
        return tni_return(
            rets, tni_full(tni_sizes(elements), tn_bool(invert), TN_BOOL, elements->device->id));
    tn_tensor *sorted, *order;
    tni_temps tmp = {0};
    tni_promotion promotion = TNI_NO_PROMOTION;
    tni_promotion_add(&promotion, &args[0]);
    tni_promotion_add(&promotion, &args[1]);
    tn_dtype dtype = tni_promotion_result(&promotion);
    tn_tensor *x = tni_as_dtype(&tmp, elements, dtype);
    x = tni_own(&tmp, tni_reshape(x, TN_SHAPE(-1)));
    tn_tensor *flat = tni_own(&tmp, tni_reshape(tni_as_dtype(&tmp, tests, dtype), TN_SHAPE(-1)));
    if (!x || !flat || tni_sort(flat, 0, false, &sorted, &order) != TN_OK)
        return tni_temps_return(&tmp, NULL, rets);
    tni_own(&tmp, order);
    tni_own(&tmp, sorted);
    tn_tensor *at = tni_own(&tmp, count_before(sorted, NULL, x, false));
    at = tni_own(&tmp, tni_clamp_max(at, tn_int(sorted->sizes[0] - 1)));
    tn_tensor *found = tni_own(&tmp, tni_index_select(sorted, 0, at));
    tn_tensor *hit = tni_own(&tmp, invert ? tni_ne(found, x) : tni_eq(found, x));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_reshape(hit, tni_sizes(elements))), rets);
}

/* ---- counts ------------------------------------------------------------------------------ */

/* The smallest and the largest element, from the device. */
static bool read_range(tni_temps *tmp, tn_tensor *x, tn_dtype dtype, void *out, uint64_t bytes,
                       const char *call) {
    tn_tensor *parts[2] = {tni_own(tmp, tni_amin(x, TN_SCALAR_SHAPE, false)),
                           tni_own(tmp, tni_amax(x, TN_SCALAR_SHAPE, false))};
    tn_tensor *both = parts[0] && parts[1] ? tni_own(tmp, tni_stack(parts, 2, 0)) : NULL;
    both = both ? tni_own(tmp, tni_to_dtype(both, dtype)) : NULL;
    return both && tni_tensor_read(both, out, bytes, call) == TN_OK;
}

/* How often each of 0, 1 ... n - 1 stands in places [m], or the sum of its weights; n itself takes
 * what does not count. */
static tn_tensor *tally(tni_temps *tmp, tn_tensor *places, tn_tensor *weights, int64_t n,
                        tn_dtype dtype) {
    tn_device device = places->device->id;
    tn_tensor *room = tni_own(tmp, tni_zeros(TN_SHAPE(n + 1), dtype, device));
    if (!weights) {
        weights = tni_own(tmp, tni_ones(TN_SHAPE(1), dtype, device));
        weights = tni_own(tmp, tni_expand(weights, tni_sizes(places)));
    }
    tn_tensor *sum = tni_own(tmp, tni_scatter_add(room, 0, places, weights));
    return tni_own(tmp, tni_clone(tni_own(tmp, tni_narrow(sum, 0, 0, n))));
}

/* histc(self, bins, min, max) */
tn_status tni_run_histc(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int64_t bins = args[1].v.i64;
    tn_dtype dtype = self->view.dtype;
    double range[2] = {tni_scalar_f64(args[2]), tni_scalar_f64(args[3])};
    if (!tni_is_float(dtype))
        return tni_fail(TN_ERR_DTYPE, "tn_histc: not defined for %s; cast with tn_to_dtype",
                        tn_dtype_name(dtype));
    if (bins < 1 || bins == INT64_MAX)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_histc: bins is %lld; it must be at least 1%s",
                        (long long)bins, bins < 1 ? "" : ", and less than can be counted");
    tni_temps tmp = {0};
    tn_tensor *x = tni_own(&tmp, tni_detach(tni_own(&tmp, tni_reshape(self, TN_SHAPE(-1)))));
    if (range[0] == range[1] && self->view.numel > 0 &&
        (!x || !read_range(&tmp, x, TN_F64, range, sizeof range, "tn_histc")))
        return tni_temps_return(&tmp, NULL, rets);
    if (range[0] == range[1]) {
        range[0] -= 1;
        range[1] += 1;
    }
    if (!isfinite(range[0]) || !isfinite(range[1]) || range[0] > range[1]) {
        tni_temps_finish(&tmp);
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_histc: the range is %g to %g; it must be finite, and min not above "
                        "max",
                        range[0], range[1]);
    }
    x = x ? tni_widened(&tmp, x) : NULL;
    if (self->view.numel == 0)
        return tni_temps_return(
            &tmp, x ? tni_own(&tmp, tni_zeros(TN_SHAPE(bins), dtype, self->device->id)) : NULL,
            rets);
    tn_tensor *inside =
        tni_own(&tmp, tni_bitwise_and(tni_own(&tmp, tni_ge_scalar(x, tn_float(range[0]))),
                                      tni_own(&tmp, tni_le_scalar(x, tn_float(range[1])))));
    tn_tensor *at = tni_own(&tmp, tni_sub_scalar(x, tn_float(range[0]), tn_int(1)));
    at = tni_own(&tmp, tni_mul_scalar(at, tn_float((double)bins)));
    at = tni_own(&tmp, tni_div_scalar(at, tn_float(range[1] - range[0])));
    at = tni_own(&tmp, tni_where_scalarother(inside, at, tn_int(0)));
    at = tni_own(&tmp, tni_to_dtype(at, TN_I64));
    at = tni_own(&tmp, tni_clamp_max(at, tn_int(bins - 1)));
    at = tni_own(&tmp, tni_where_scalarother(inside, at, tn_int(bins)));
    tn_tensor *counts = at ? tally(&tmp, at, NULL, bins, TN_I64) : NULL;
    return tni_temps_return(&tmp, counts ? tni_own(&tmp, tni_to_dtype(counts, dtype)) : NULL, rets);
}

/* bincount(self, weights, minlength) */
tn_status tni_run_bincount(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *weights = tni_arg_tensor(&args[1]);
    int64_t least = args[2].v.i64, range[2] = {0, -1};
    if (self->view.rank != 1 || tni_is_float(self->view.dtype) || self->view.dtype == TN_BOOL)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_bincount: self must be a vector of integers, but is %s of rank %d",
                        tn_dtype_name(self->view.dtype), self->view.rank);
    if (weights && !tni_same_shape(weights, self))
        return tni_fail(TN_ERR_SHAPE,
                        "tn_bincount: weights has shape %s; it must have a weight for each of the "
                        "%lld elements of self",
                        TNI_SHAPE_OF(weights), (long long)self->sizes[0]);
    if (least < 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_bincount: minlength is %lld; it must not be negative",
                        (long long)least);
    tni_temps tmp = {0};
    tn_dtype dtype = !weights ? TN_I64 : weights->view.dtype == TN_F32 ? TN_F32 : TN_F64;
    tn_tensor *places = tni_own(&tmp, tni_to_dtype(self, TN_I64));
    if (!places || (self->view.numel > 0 &&
                    !read_range(&tmp, places, TN_I64, range, sizeof range, "tn_bincount")))
        return tni_temps_return(&tmp, NULL, rets);
    int64_t n = range[1] < least ? least : range[1] == INT64_MAX ? INT64_MAX : range[1] + 1;
    if (range[0] < 0 || n == INT64_MAX) {
        tni_temps_finish(&tmp);
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_bincount: the elements of self go from %lld to %lld, with minlength "
                        "%lld; none may be negative, nor the counts more than can be counted",
                        (long long)range[0], (long long)range[1], (long long)least);
    }
    if (self->view.numel == 0)
        return tni_temps_return(
            &tmp, tni_own(&tmp, tni_zeros(TN_SHAPE(n), dtype, self->device->id)), rets);
    weights = weights ? tni_own(&tmp, tni_detach(weights)) : NULL;
    weights = weights ? tni_as_dtype(&tmp, weights, dtype) : NULL;
    if (args[1].tag == TN_CELL_TENSOR && !weights)
        return tni_temps_return(&tmp, NULL, rets);
    return tni_temps_return(&tmp, tally(&tmp, places, weights, n, dtype), rets);
}

/* one_hot(self, num_classes) */
tn_status tni_run_one_hot(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int64_t n = args[1].v.i64, range[2] = {0, -1};
    if (tni_is_float(self->view.dtype) || self->view.dtype == TN_BOOL)
        return tni_fail(TN_ERR_DTYPE, "tn_one_hot: not defined for %s; the classes are integers",
                        tn_dtype_name(self->view.dtype));
    if (n < -1 || (n <= 0 && self->view.numel > 0 && n != -1) || (n == -1 && self->view.numel == 0))
        return tni_fail(
            TN_ERR_INVALID_ARGUMENT,
            "tn_one_hot: num_classes is %lld for %lld elements; it must be 1 or more, or "
            "-1 where there are elements",
            (long long)n, (long long)self->view.numel);
    tni_temps tmp = {0};
    tn_tensor *places = tni_own(&tmp, tni_to_dtype(self, TN_I64));
    if (!places ||
        (n == -1 && !read_range(&tmp, places, TN_I64, range, sizeof range, "tn_one_hot")))
        return tni_temps_return(&tmp, NULL, rets);
    if (range[0] < 0 || range[1] == INT64_MAX) {
        tni_temps_finish(&tmp);
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_one_hot: self has elements from %lld to %lld; without num_classes they "
                        "must not be negative",
                        (long long)range[0], (long long)range[1]);
    }
    n = n == -1 ? range[1] + 1 : n;
    tn_tensor *classes = tni_own(&tmp, tni_arange(tn_int(n), TN_I64, self->device->id));
    tn_tensor *hot = tni_own(&tmp, tni_eq(tni_own(&tmp, tni_unsqueeze(places, -1)), classes));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_to_dtype(hot, TN_I64)), rets);
}
