/* Reductions: shapes and dtypes, those made of other operators, the decompositions of those whose
 * kernel is optional, and derivatives. mean, prod and logsumexp have none in the table: autograd
 * looks through them, so every step here has one.
 *
 * A kernel keeps the reduced dimensions with size 1 and never sees rank 0; what the caller gets is
 * the same elements in another shape. */
#include "core/ops/dims.h"
#include "core/ops/functions.h"
#include "core/ops/halves.h"

#include <math.h>

/* ---- shapes ------------------------------------------------------------------------------ */

/* Output 0 of a reduction of `self`, which the kernel gets as of at least rank 1. */
static tn_status set_reduced(tni_build *b, tn_tensor *self, uint32_t mask, bool keepdim) {
    int64_t kept[TN_MAX_RANK] = {1}, out[TN_MAX_RANK] = {1};
    int32_t rank = self->view.rank, out_rank = 0, empty_dim = -1;
    bool out_empty = false;
    for (int32_t d = 0; d < rank; d++) {
        bool reduced = mask >> d & 1;
        kept[d] = reduced ? 1 : self->sizes[d];
        if (reduced && self->sizes[d] == 0)
            empty_dim = d;
        out_empty |= kept[d] == 0;
        if (!reduced || keepdim)
            out[out_rank++] = kept[d];
    }
    if (empty_dim >= 0 && !out_empty && !b->has_empty_value)
        return tni_build_fail(b, TN_ERR_SHAPE,
                              "cannot reduce over dimension %d of size 0, for which there is no "
                              "result; reduce over others, or test tn_numel first",
                              empty_dim);
    tni_build_out(b, 0, out_rank, out);
    if (rank == 0 || out_rank != rank)
        tni_build_kernel_out(b, 0, rank ? rank : 1, kept);
    tn_tensor *lifted = tni_build_lift(b, self);
    if (!lifted)
        return tni_failed();
    b->kargs[0] = tni_cell_tensor(lifted);
    return TN_OK;
}

/* A reduction whose kernel takes a list of dimensions as argument 1. */
static tn_status reduce_over(tni_build *b, tn_ints dim, bool keepdim) {
    tn_tensor *self = tni_build_tensor(b, 0);
    uint32_t mask;
    if (!tni_reduce_mask(dim, self->view.rank, b->info->call, &mask))
        return tni_failed();
    int64_t list[TN_MAX_RANK];
    TNI_TRY(tni_build_list(b, 1, tni_reduce_dims(mask, list)));
    return set_reduced(b, self, mask, keepdim);
}

/* sum(self, dim, keepdim, dtype) */
tn_status tni_infer_sum(tni_build *b) {
    tn_dtype dtype = tni_arg_dtype(&b->args[3]);
    b->types[0] =
        dtype != TN_DTYPE_NONE ? dtype : tni_accumulator_dtype(tni_build_tensor(b, 0)->view.dtype);
    b->has_empty_value = true;
    b->empty_value = tn_int(0);
    return reduce_over(b, tni_arg_ints(&b->args[1]), b->args[2].v.boolean);
}

/* amax(self, dim, keepdim) */
tn_status tni_infer_reduce_same(tni_build *b) {
    return reduce_over(b, tni_arg_ints(&b->args[1]), b->args[2].v.boolean);
}

/* prod(self, dim, keepdim, dtype) of one dimension */
tn_status tni_infer_prod(tni_build *b) {
    tn_dtype dtype = tni_arg_dtype(&b->args[3]);
    b->types[0] =
        dtype != TN_DTYPE_NONE ? dtype : tni_accumulator_dtype(tni_build_tensor(b, 0)->view.dtype);
    b->has_empty_value = true;
    b->empty_value = tn_int(1);
    return reduce_over(b, tn_ints_of(&b->args[1].v.i64, 1), b->args[2].v.boolean);
}

/* var(self, dim, correction, keepdim) */
tn_status tni_infer_var(tni_build *b) {
    b->has_empty_value = true;
    b->empty_value = tn_float(NAN);
    return reduce_over(b, tni_arg_ints(&b->args[1]), b->args[3].v.boolean);
}

/* argmax(self, dim, keepdim); without dim over the flattened tensor */
tn_status tni_infer_arg(tni_build *b) {
    tn_tensor *self = tni_build_tensor(b, 0);
    bool keepdim = b->args[2].v.boolean;
    if (b->args[1].tag != TN_CELL_NONE) {
        int32_t dim = tni_wrap_dim(b->args[1].v.i64, self->view.rank, b->info->call);
        if (dim < 0)
            return tni_failed();
        b->kargs[1] = tni_cell_i64(dim);
        return set_reduced(b, self, 1u << dim, keepdim);
    }
    if (self->view.numel == 0)
        return tni_build_fail(b, TN_ERR_SHAPE,
                              "the tensor has no elements, of which none can be found; give dim, "
                              "or test tn_numel first");
    static const int64_t one = 1;
    int64_t ones[TN_MAX_RANK];
    for (int32_t d = 0; d < self->view.rank; d++)
        ones[d] = 1;
    tn_tensor *dense = tni_own(&b->temps, tni_contiguous_data(self));
    tn_tensor *flat = dense ? tni_build_view(b, dense, 1, &self->view.numel, &one) : NULL;
    if (!flat)
        return tni_failed();
    tni_build_out(b, 0, keepdim ? self->view.rank : 0, ones);
    tni_build_kernel_out(b, 0, 1, &one);
    b->kargs[0] = tni_cell_tensor(flat);
    b->kargs[1] = tni_cell_i64(0);
    return TN_OK;
}

/* ---- sums -------------------------------------------------------------------------------- */

/* mean(self, dim, keepdim, dtype). Halves are summed and divided in f32: their sum may overflow. */
tn_status tni_run_mean_dim(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints dim = tni_arg_ints(&args[1]);
    tn_dtype dtype = tni_arg_dtype(&args[3]);
    uint32_t mask;
    if (dtype == TN_DTYPE_NONE)
        dtype = self->view.dtype;
    if (!tni_is_float(dtype))
        return tni_fail(TN_ERR_DTYPE,
                        "tn_mean: a mean is floating, but the dtype is %s; give a floating dtype, "
                        "or cast with tn_to_dtype",
                        tn_dtype_name(dtype));
    if (!tni_reduce_mask(dim, self->view.rank, "tn_mean", &mask))
        return tni_failed();
    double count = (double)tni_reduce_count(self, mask);
    tni_temps tmp = {0};
    tn_tensor *x = tni_own(
        &tmp, tni_sum_dim(self, dim, args[2].v.boolean, tni_is_half(dtype) ? TN_F32 : dtype));
    x = tni_then(&tmp, tni_div_scalar(x, tn_float(count)), x);
    return tni_temps_return(&tmp, tni_as_dtype(&tmp, x, dtype), rets);
}

/* var(self, dim, correction, keepdim) */
tn_status tni_run_var_dim(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints dim = tni_arg_ints(&args[1]);
    uint32_t mask;
    if (!tni_is_float(self->view.dtype))
        return tni_fail(TN_ERR_DTYPE, "tn_var: not defined for %s; cast with tn_to_dtype",
                        tn_dtype_name(self->view.dtype));
    if (!tni_reduce_mask(dim, self->view.rank, "tn_var", &mask))
        return tni_failed();
    double n = fmax(0, (double)tni_reduce_count(self, mask) - args[2].v.f64);
    tni_temps tmp = {0};
    tn_tensor *mean = tni_own(&tmp, tni_mean_dim(self, dim, true, TN_DTYPE_NONE));
    tn_tensor *x = tni_own(&tmp, tni_sub(self, mean, tn_int(1)));
    x = tni_then(&tmp, tni_mul(x, x), x);
    x = tni_then(&tmp, tni_sum_dim(x, dim, args[3].v.boolean, TN_DTYPE_NONE), x);
    return tni_temps_return(&tmp, tni_then(&tmp, tni_div_scalar(x, tn_float(n)), x), rets);
}

/* logsumexp(self, dim, keepdim) = m + log(sum(exp(self - m))), m the largest, as a constant: it
 * cancels out of the derivative. An infinite m is made finite, so that inf - inf does not arise. */
tn_status tni_run_logsumexp(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints dim = tni_arg_ints(&args[1]);
    bool keepdim = args[2].v.boolean;
    uint32_t mask;
    if (!tni_reduce_mask(dim, self->view.rank, "tn_logsumexp", &mask))
        return tni_failed();
    tn_dtype dtype = tni_is_float(self->view.dtype) ? self->view.dtype : TN_F32;
    tni_temps tmp = {0};
    tn_tensor *x = tni_as_dtype(&tmp, self, dtype);
    if (self->view.numel == 0) {
        x = tni_own(&tmp, tni_exp(x));
        x = tni_own(&tmp, tni_sum_dim(x, dim, keepdim, TN_DTYPE_NONE));
        return tni_temps_return(&tmp, tni_own(&tmp, tni_log(x)), rets);
    }
    double limit = tni_largest_finite(dtype);
    tn_tensor *m = tni_own(&tmp, tni_detach(x));
    m = tni_then(&tmp, tni_amax(m, dim, true), m);
    m = tni_then(&tmp, tni_clamp(m, tn_float(-limit), tn_float(limit)), m);
    x = tni_then(&tmp, tni_sub(x, m, tn_int(1)), x);
    x = tni_then(&tmp, tni_exp(x), x);
    x = tni_then(&tmp, tni_sum_dim(x, dim, true, TN_DTYPE_NONE), x);
    x = tni_then(&tmp, tni_log(x), x);
    x = tni_then(&tmp, tni_add(x, m, tn_int(1)), x);
    if (!keepdim && self->view.rank > 0) {
        int64_t sizes[TN_MAX_RANK], rank = 0;
        for (int32_t d = 0; d < self->view.rank; d++)
            if (!(mask >> d & 1))
                sizes[rank++] = self->sizes[d];
        x = tni_then(&tmp, tni_reshape(x, tn_ints_of(sizes, rank)), x);
    }
    return tni_temps_return(&tmp, x, rets);
}

static tn_tensor *product_of_halves(tn_tensor *x, int32_t dim, int64_t n) {
    tni_temps tmp = {0};
    tn_tensor *low = tni_own(&tmp, tni_narrow(x, dim, 0, n / 2));
    tn_tensor *high = tni_own(&tmp, tni_narrow(x, dim, n / 2, n / 2));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_mul(low, high)));
}

/* prod(self, dim, keepdim): the halves of the dimension are multiplied until one element is left,
 * which takes log2(n) steps. */
tn_status tni_run_prod_dim(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int32_t dim = tni_wrap_dim(args[1].v.i64, self->view.rank, "tn_prod");
    if (dim < 0)
        return tni_failed();
    tn_dtype dtype = tni_arg_dtype(&args[3]);
    if (dtype == TN_DTYPE_NONE)
        dtype = tni_accumulator_dtype(self->view.dtype);
    if (self->view.rank == 0)
        return tni_return(rets, tni_to_copy(self, dtype, tn_no_device()));
    tni_temps tmp = {0};
    tn_tensor *x = tni_as_dtype(&tmp, self, dtype);
    int64_t n = self->sizes[dim];
    if (n == 0) { /* ones, which depend on x: its gradient is empty, but there is one */
        x = tni_then(&tmp, tni_sum_dim(x, TN_SHAPE(dim), true, TN_DTYPE_NONE), x);
        x = tni_then(&tmp, tni_add_scalar(x, tn_int(1), tn_int(1)), x);
    } else if (n == 1) {
        x = tni_own(&tmp, tni_clone(x));
    }
    tn_tensor *odd = NULL; /* the product of elements that found no partner */
    for (; n > 1 && x; n /= 2) {
        if (n % 2) {
            tn_tensor *last = tni_own(&tmp, tni_narrow(x, dim, n - 1, 1));
            odd = odd ? tni_then(&tmp, tni_mul(odd, last), odd) : last;
        }
        x = tni_then(&tmp, product_of_halves(x, dim, n), x);
    }
    if (odd)
        x = tni_then(&tmp, tni_mul(x, odd), x);
    if (!args[2].v.boolean)
        x = tni_then(&tmp, tni_squeeze_dim(x, dim), x);
    return tni_temps_return(&tmp, x, rets);
}

/* ---- extremes ---------------------------------------------------------------------------- */

/* The index of the first element of self [.., n, ..] along dim that equals `extreme` (with size 1
 * there); where that is NaN, of the first NaN. n - 1 - the largest of n - 1 - i over the hits. */
static tn_tensor *first_hit(tn_tensor *self, tn_tensor *extreme, int32_t dim, bool keepdim) {
    if (!extreme)
        return NULL;
    int32_t rank = self->view.rank;
    int64_t n = rank ? self->sizes[dim] : 1;
    tni_temps tmp = {0};
    tn_tensor *hit = tni_own(&tmp, tni_eq(self, extreme));
    if (tni_is_float(self->view.dtype)) {
        tn_tensor *nan = tni_own(&tmp, tni_isnan(self));
        hit = tni_then(&tmp, tni_bitwise_or(hit, nan), hit);
    }
    tn_tensor *order = tni_own(
        &tmp, tni_arange_start(tn_int(n - 1), tn_int(-1), tn_int(-1), TN_I64, self->device->id));
    order = tni_along(&tmp, order, dim, rank);
    tn_tensor *x = tni_own(&tmp, tni_where(hit, order, tni_own(&tmp, tni_zero_of(order))));
    x = tni_then(&tmp, tni_amax(x, TN_SHAPE(dim), keepdim), x);
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_rsub_scalar(x, tn_int(n - 1), tn_int(1))));
}

/* argmax(self, dim, keepdim) from amax, argmin from amin. */
tn_status tni_run_arg(const char *call, const tn_cell *args, tn_cell *rets, bool largest) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    bool flat = args[1].tag == TN_CELL_NONE, keepdim = args[2].v.boolean;
    int32_t dim = flat ? 0 : tni_wrap_dim(args[1].v.i64, self->view.rank, call);
    if (dim < 0)
        return tni_failed();
    tni_temps tmp = {0};
    tn_tensor *x = flat ? tni_own(&tmp, tni_flatten(self, 0, -1)) : self;
    tn_ints dims = TN_SHAPE(dim);
    tn_tensor *extreme = tni_own(&tmp, largest ? tni_amax(x, dims, true) : tni_amin(x, dims, true));
    tn_tensor *index = tni_own(&tmp, first_hit(x, extreme, dim, keepdim && !flat));
    if (flat && keepdim) {
        int64_t ones[TN_MAX_RANK];
        for (int32_t d = 0; d < self->view.rank; d++)
            ones[d] = 1;
        index = tni_own(&tmp, tni_reshape(index, tn_ints_of(ones, self->view.rank)));
    }
    return tni_temps_return(&tmp, index, rets);
}

/* max or min(self, dim, keepdim) -> values, indices: gather passes the gradient to the element
 * found. */
tn_status tni_run_extreme_dim(const char *call, const tn_cell *args, tn_cell *rets, bool largest) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *results[2];
    int32_t dim = tni_wrap_dim(args[1].v.i64, self->view.rank, call);
    if (dim < 0)
        return tni_failed();
    tni_temps tmp = {0};
    results[1] = tni_own(&tmp, largest ? tni_argmax(self, dim, true) : tni_argmin(self, dim, true));
    if (self->view.rank == 0) {
        results[0] = tni_own(&tmp, tni_clone(self));
    } else {
        results[0] = tni_own(&tmp, tni_gather(self, dim, results[1]));
        for (int i = 0; i < 2 && !args[2].v.boolean; i++)
            results[i] = tni_own(&tmp, tni_squeeze_dim(results[i], dim));
    }
    return tni_temps_return_many(&tmp, results, 2, rets);
}

/* any from amax, all from amin; `none` makes the answer for no elements. */
tn_status tni_run_truth(const char *call, const tn_cell *args, tn_cell *rets, bool all) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    if (self->view.numel == 0)
        return tni_return(rets, tni_full(TN_SCALAR_SHAPE, tn_bool(all), TN_BOOL, self->device->id));
    tni_temps tmp = {0};
    bool is_bool = self->view.dtype == TN_BOOL;
    tn_tensor *x = is_bool ? self : tni_own(&tmp, tni_ne_scalar(self, tn_int(0)));
    return tni_temps_return(&tmp,
                            tni_own(&tmp, all ? tni_amin(x, TN_SCALAR_SHAPE, false)
                                              : tni_amax(x, TN_SCALAR_SHAPE, false)),
                            rets);
}

/* The same over dimensions: the number of truths, or of the others, which is 0 of no elements too. */
tn_status tni_run_truth_dim(const char *call, const tn_cell *args, tn_cell *rets, bool all) {
    tni_temps tmp = {0};
    tn_tensor *self = tni_arg_tensor(&args[0]);
    uint32_t mask;
    if (!tni_reduce_mask(tni_arg_ints(&args[1]), self->view.rank, call, &mask))
        return tni_failed();
    tn_tensor *x = tni_own(&tmp, all ? tni_logical_not(self) : tni_ne_scalar(self, tn_int(0)));
    x = tni_then(&tmp, tni_sum_dim(x, tni_arg_ints(&args[1]), args[2].v.boolean, TN_DTYPE_NONE), x);
    x = tni_then(&tmp, all ? tni_eq_scalar(x, tn_int(0)) : tni_ne_scalar(x, tn_int(0)), x);
    return tni_temps_return(&tmp, x, rets);
}

/* x^(1 / p), whose derivative at 0 is 0 and not infinite: norm and std have a minimum there. */
static tn_tensor *rooted(tn_tensor *x, double p) {
    tni_temps tmp = {0};
    tn_tensor *zero = tni_own(&tmp, tni_eq_scalar(x, tn_int(0)));
    tn_tensor *safe = tni_own(&tmp, tni_masked_fill_scalar(x, zero, tn_int(1)));
    tn_tensor *root =
        tni_own(&tmp, p == 2 ? tni_sqrt(safe) : tni_pow_scalar(safe, tn_float(1 / p)));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_masked_fill_scalar(root, zero, tn_int(0))));
}

tn_tensor *tni_root(tn_tensor *x) {
    return rooted(x, 2);
}

/* norm(self, p, dim, keepdim) */
tn_status tni_run_norm_scalaropt_dim(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints dim = tni_arg_ints(&args[2]);
    bool keepdim = args[3].v.boolean;
    double p = args[1].tag == TN_CELL_NONE ? 2 : tni_scalar_f64(args[1]);
    uint32_t mask;
    if (!tni_is_float(self->view.dtype))
        return tni_fail(TN_ERR_DTYPE, "tn_norm: not defined for %s; cast with tn_to_dtype",
                        tn_dtype_name(self->view.dtype));
    if (!tni_reduce_mask(dim, self->view.rank, "tn_norm", &mask))
        return tni_failed();
    tni_temps tmp = {0};
    tn_tensor *x = tni_own(&tmp, p == 2 ? tni_mul(self, self) : tni_abs(self));
    if (isinf(p)) {
        x = tni_then(&tmp, p > 0 ? tni_amax(x, dim, keepdim) : tni_amin(x, dim, keepdim), x);
        return tni_temps_return(&tmp, x, rets);
    }
    if (p == 0)
        x = tni_then(&tmp, tni_ne_scalar(x, tn_int(0)), x);
    else if (p != 1 && p != 2)
        x = tni_then(&tmp, tni_pow_scalar(x, tn_float(p)), x);
    x = tni_then(&tmp, tni_sum_dim(x, dim, keepdim, self->view.dtype), x);
    if (p > 1)
        x = tni_then(&tmp, rooted(x, p), x);
    else if (p != 0 && p != 1)
        x = tni_then(&tmp, tni_pow_scalar(x, tn_float(1 / p)), x);
    return tni_temps_return(&tmp, x, rets);
}

/* ---- derivatives ------------------------------------------------------------------------- */

/* Each element's share in a sum; `dim` as the caller gave it, empty for all. */
tn_tensor *tni_sum_backward(tn_tensor *grad, tn_ints sizes, tn_ints dim, bool keepdim) {
    uint32_t mask;
    if (!grad || !tni_reduce_mask(dim, (int32_t)sizes.n, "tn_sum", &mask))
        return NULL;
    tni_temps tmp = {0};
    tn_tensor *restored = tni_own(&tmp, tni_reduce_restore(grad, sizes, mask, keepdim));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_expand(restored, sizes)));
}

/* 2 (self - mean) / (n - correction) */
tn_tensor *tni_var_backward(tn_tensor *grad, tn_tensor *self, tn_ints dim, double correction,
                            bool keepdim) {
    uint32_t mask;
    if (!grad || !self || !tni_reduce_mask(dim, self->view.rank, "tn_var", &mask))
        return NULL;
    double n = fmax(0, (double)tni_reduce_count(self, mask) - correction);
    tni_temps tmp = {0};
    tn_tensor *x = tni_widened(&tmp, self);
    tn_tensor *mean = tni_own(&tmp, tni_mean_dim(x, dim, true, TN_DTYPE_NONE));
    x = tni_then(&tmp, tni_sub(x, mean, tn_int(1)), x);
    grad = tni_widened(&tmp, grad);
    tn_tensor *share = tni_own(&tmp, tni_reduce_restore(grad, tni_sizes(self), mask, keepdim));
    share = tni_own(&tmp, tni_mul_scalar(share, tn_float(2 / n)));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_mul(x, share)));
}

/* The elements that equal the extreme share its gradient evenly. */
tn_tensor *tni_amax_backward(tn_tensor *grad, tn_tensor *self, tn_tensor *result, tn_ints dim,
                             bool keepdim) {
    uint32_t mask;
    if (!grad || !self || !result || !tni_reduce_mask(dim, self->view.rank, "tn_amax", &mask))
        return NULL;
    int64_t list[TN_MAX_RANK];
    tni_temps tmp = {0};
    tn_ints sizes = tni_sizes(self);
    tn_tensor *extreme = tni_own(&tmp, tni_reduce_restore(result, sizes, mask, keepdim));
    tn_tensor *hit = tni_own(&tmp, tni_eq(self, extreme));
    hit = tni_as_dtype(&tmp, hit, grad->view.dtype);
    tn_tensor *count =
        tni_own(&tmp, tni_sum_dim(hit, tni_reduce_dims(mask, list), true, TN_DTYPE_NONE));
    tn_tensor *share = tni_own(&tmp, tni_reduce_restore(grad, sizes, mask, keepdim));
    share = tni_own(&tmp, tni_div(share, count));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_mul(share, hit)));
}
