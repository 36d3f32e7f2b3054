/* Reductions, scans and sorting. Kernels see rank 1 at least, sorted distinct dimensions, and write
 * results in which the reduced dimensions have size 1. */
#include "core/ops/boxed.h"
#include "core/ops/build.h"

#include <math.h>

/* ---- shapes
 * ---------------------------------------------------------------------------------------------- */

/* The mask of dimensions that a list names; empty or left out: all. Zero with an error. */
static uint32_t reduced_mask(const char *call, const tn_tensor *self, tn_ints dim) {
    uint32_t all = self->view.rank ? (1u << self->view.rank) - 1 : 1, mask = 0;
    if (dim.n <= 0)
        return all;
    for (int64_t i = 0; i < dim.n; i++) {
        int32_t d = tni_wrap_dim(dim.data[i], self->view.rank, call);
        if (d < 0)
            return 0;
        if (mask & 1u << d) {
            tni_fail(TN_INVALID_ARGUMENT, "%s: dimension %d is named twice", call, d);
            return 0;
        }
        mask |= 1u << d;
    }
    return mask;
}

/* Sets outputs and kernel shapes of a reduction of b's argument 0, and returns the sorted dims. */
static tn_ints reduced_shape(tni_build *b, uint32_t mask, bool keepdim) {
    tn_tensor *self = tni_build_tensor(b, 0);
    int32_t rank = self->view.rank, kept = 0;
    int64_t sizes[TN_MAX_RANK], kernel[TN_MAX_RANK] = {1};
    int64_t *dims = tni_build_ints(b, TN_MAX_RANK), n = 0;
    for (int32_t d = 0; d < rank; d++) {
        bool gone = mask & 1u << d;
        kernel[d] = gone ? 1 : self->sizes[d];
        if (gone)
            dims[n++] = d;
        if (!gone || keepdim)
            sizes[kept++] = kernel[d];
    }
    if (rank == 0)
        dims[n++] = 0;
    for (uint32_t i = 0; i < b->info->n_outs; i++) {
        tni_build_out(b, i, kept, sizes);
        tni_build_kernel_out(b, i, rank ? rank : 1, kernel);
    }
    b->kargs[0] = tni_cell_tensor(tni_build_lift(b, self));
    return tn_ints_of(dims, n);
}

static tn_status reduce(tni_build *b, tn_ints dim, bool keepdim) {
    uint32_t mask = reduced_mask(b->info->call, tni_build_tensor(b, 0), dim);
    if (!mask)
        return tni_failed();
    b->kargs[1] = tni_cell_ints(reduced_shape(b, mask, keepdim));
    return b->kargs[0].tag == TN_CELL_TENSOR ? TN_OK : tni_failed();
}

/* An extremum of nothing does not exist. */
static tn_status refuse_empty(tni_build *b) {
    tn_tensor *self = tni_build_tensor(b, 0);
    char text[TNI_SHAPE_TEXT];
    bool empty_out = false;
    for (int32_t d = 0; d < b->outs[0].rank; d++)
        empty_out |= b->outs[0].sizes[d] == 0;
    if (self->view.numel > 0 || empty_out)
        return TN_OK;
    return tni_build_fail(b, TN_SHAPE,
                          "self %s has no elements to choose from along the reduced "
                          "dimensions",
                          tni_shape_text(self->view.rank, self->sizes, text));
}

static tn_dtype sum_dtype(const tn_tensor *self, const tn_cell *dtype) {
    return dtype->tag != TN_CELL_NONE       ? tni_arg_dtype(dtype)
           : tni_is_float(self->view.dtype) ? self->view.dtype
                                            : TN_I64;
}

/* sum.dim(self, dim, keepdim, dtype) */
INFER(infer_sum) {
    b->types[0] = sum_dtype(tni_build_tensor(b, 0), &b->args[3]);
    b->has_empty_value = true;
    b->empty_value = tn_int(0);
    return reduce(b, tni_arg_ints(&b->args[1]), b->args[2].v.boolean);
}

/* amax, amin(self, dim, keepdim) */
INFER(infer_reduce_same) {
    tn_status status = reduce(b, tni_arg_ints(&b->args[1]), b->args[2].v.boolean);
    return status == TN_OK ? refuse_empty(b) : status;
}

/* argmax, argmin(self, dim, keepdim): without dim over the flattened tensor */
INFER(infer_arg) {
    tn_tensor *self = tni_build_tensor(b, 0);
    tn_status status;
    if (b->args[1].tag != TN_CELL_NONE) {
        int64_t dim = b->args[1].v.i64;
        status = reduce(b, tn_ints_of(&dim, 1), b->args[2].v.boolean);
        b->kargs[1] = status == TN_OK ? tni_cell_i64(b->kargs[1].v.ints[0]) : b->kargs[1];
        return status == TN_OK ? refuse_empty(b) : status;
    }
    status = reduce(b, tn_no_ints(), b->args[2].v.boolean);
    if (status != TN_OK || (status = refuse_empty(b)) != TN_OK)
        return status;
    static const int64_t one = 1;
    tn_tensor *flat = tni_build_own(b, tni_reshape(self, TN_SHAPE(-1)));
    b->kargs[0] = tni_cell_tensor(flat);
    b->kargs[1] = tni_cell_i64(0);
    tni_build_kernel_out(b, 0, 1, &one);
    return flat ? TN_OK : tni_failed();
}

/* prod.dim(self, dim, keepdim) */
INFER(infer_prod) {
    int64_t dim = b->args[1].v.i64;
    b->types[0] = tni_is_float(tni_build_tensor(b, 0)->view.dtype)
                      ? tni_build_tensor(b, 0)->view.dtype
                      : TN_I64;
    b->has_empty_value = true;
    b->empty_value = tn_int(1);
    return reduce(b, tn_ints_of(&dim, 1), b->args[2].v.boolean);
}

/* var.dim(self, dim, correction, keepdim) */
INFER(infer_var) {
    b->has_empty_value = true;
    b->empty_value = tn_float(NAN);
    return reduce(b, tni_arg_ints(&b->args[1]), b->args[3].v.boolean);
}

/* Same shape out; dim wrapped; rank 0 lifted. Argument `dim_arg` is the dimension of both tables.
 */
static tn_status same_shape(tni_build *b, uint32_t dim_arg, uint32_t n_tensors) {
    static const int64_t one = 1;
    tn_tensor *self = tni_build_tensor(b, 0);
    int32_t dim = tni_wrap_dim(b->args[dim_arg].v.i64, self->view.rank, b->info->call);
    if (dim < 0)
        return tni_failed();
    b->kargs[dim_arg] = tni_cell_i64(dim);
    for (uint32_t i = 0; i < n_tensors; i++) {
        tn_tensor *t = tni_build_tensor(b, i);
        bool same = t->view.rank == self->view.rank;
        char have[TNI_SHAPE_TEXT], want[TNI_SHAPE_TEXT];
        for (int32_t d = 0; same && d < t->view.rank; d++)
            same = t->sizes[d] == self->sizes[d];
        if (!same)
            return tni_build_fail(b, TN_SHAPE,
                                  "argument %u is %s, but argument 0 is %s; they must be "
                                  "equal",
                                  i, tni_shape_text(t->view.rank, t->sizes, have),
                                  tni_shape_text(self->view.rank, self->sizes, want));
        b->kargs[i] = tni_cell_tensor(tni_build_lift(b, t));
        if (b->kargs[i].tag != TN_CELL_TENSOR)
            return tni_failed();
    }
    for (uint32_t i = 0; i < b->info->n_outs; i++) {
        tni_build_out(b, i, self->view.rank, self->sizes);
        if (self->view.rank == 0)
            tni_build_kernel_out(b, i, 1, &one);
    }
    return TN_OK;
}

/* cumsum(self, dim, dtype) */
INFER(infer_cumsum) {
    b->types[0] = sum_dtype(tni_build_tensor(b, 0), &b->args[2]);
    return same_shape(b, 1, 1);
}

/* sort(self, dim, descending) */
INFER(infer_sort) {
    return same_shape(b, 1, 1);
}

/* f(t, ..., dim) with one or two tensors of one shape: softmax and its like */
INFER(infer_dim) {
    uint32_t n = b->op->schema->n_args - 1;
    return same_shape(b, n, n);
}

/* ---- decompositions and composites
 * --------------------------------------------------------------------------- */

static double reduced_count(const tn_tensor *self, uint32_t mask) {
    double n = 1;
    for (int32_t d = 0; d < self->view.rank; d++)
        n *= mask & 1u << d ? (double)self->sizes[d] : 1;
    return n;
}

/* mean.dim(self, dim, keepdim, dtype) */
BOXED(run_mean_dim) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_dtype dtype = args[3].tag == TN_CELL_NONE ? self->view.dtype : tni_arg_dtype(&args[3]);
    if (!tni_is_float(dtype))
        return tni_fail(TN_DTYPE,
                        "tn_mean: the mean of %s is floating; give a dtype such as TN_F32, "
                        "or cast with tn_to_dtype",
                        tn_dtype_name(dtype));
    uint32_t mask = reduced_mask("tn_mean", self, tni_arg_ints(&args[1]));
    if (!mask)
        return tni_failed();
    tni_temps temps = {0};
    tn_ints dim = tni_arg_ints(&args[1]);
    tn_tensor *sum =
        OWN(tni_sum_dim(self, dim.n < 0 ? TN_SCALAR_SHAPE : dim, args[2].v.boolean != 0, dtype));
    RETURN(OWN(tni_div_scalar(sum, tn_float(reduced_count(self, mask)))));
}

/* The largest of what is negated is the smallest; integers are complemented, which loses none. */
BOXED(run_amin) {
    tni_temps temps = {0};
    tn_tensor *self = tni_arg_tensor(&args[0]);
    bool real = tni_is_float(self->view.dtype);
    tn_tensor *turned = real ? OWN(tni_neg(self)) : OWN(tni_bitwise_not(self));
    tn_tensor *most = OWN(tni_amax(turned, tni_arg_ints(&args[1]), args[2].v.boolean != 0));
    RETURN(real ? OWN(tni_neg(most)) : OWN(tni_bitwise_not(most)));
}

/* max.dim(self, dim, keepdim) */
BOXED(run_max_dim) {
    tni_temps temps = {0};
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int64_t dim = args[1].v.i64;
    tn_tensor *index = OWN(tni_argmax(self, dim, true));
    tn_tensor *values = OWN(tni_gather(self, dim, index));
    if (!args[2].v.boolean && self->view.rank > 0) {
        index = OWN(tni_squeeze_dim(index, dim));
        values = OWN(tni_squeeze_dim(values, dim));
    }
    return tni_temps_return2(&temps, values, index, rets);
}

/* The first place that holds the extremum: the smallest index where self equals it, or is NaN. */
static tn_status first_place(const tn_cell *args, tn_cell *rets, bool largest) {
    tni_temps temps = {0};
    tn_tensor *self = tni_arg_tensor(&args[0]);
    bool flat = args[1].tag == TN_CELL_NONE || self->view.rank == 0;
    tn_tensor *x = flat ? OWN(tni_reshape(self, TN_SHAPE(-1))) : self;
    int64_t dim = flat ? 0 : args[1].v.i64;
    if (!x)
        RETURN(NULL);
    int32_t d = tni_wrap_dim(dim, x->view.rank, "tn_argmax");
    tn_tensor *best =
        largest ? OWN(tni_amax(x, TN_SHAPE(d), true)) : OWN(tni_amin(x, TN_SHAPE(d), true));
    tn_tensor *hit = OWN(tni_bitwise_or(OWN(tni_eq(x, best)), OWN(tni_ne(x, x))));
    int64_t shape[TN_MAX_RANK];
    for (int32_t i = 0; i < x->view.rank; i++)
        shape[i] = i == d ? x->sizes[d] : 1;
    tn_tensor *places = OWN(tni_reshape(OWN(tni_arange(tn_int(x->sizes[d]), TN_I64, x->device->id)),
                                        tn_ints_of(shape, x->view.rank)));
    tn_tensor *none = OWN(tni_full(TN_SCALAR_SHAPE, tn_int(x->sizes[d]), TN_I64, x->device->id));
    tn_tensor *index = OWN(
        tni_amin(OWN(tni_where(hit, places, none)), TN_SHAPE(d), args[2].v.boolean != 0 && !flat));
    if (flat && index) {
        int64_t ones[TN_MAX_RANK];
        for (int32_t i = 0; i < self->view.rank; i++)
            ones[i] = 1;
        index = OWN(tni_reshape(index, args[2].v.boolean ? tn_ints_of(ones, self->view.rank)
                                                         : TN_SCALAR_SHAPE));
    }
    RETURN(index);
}

BOXED(run_argmax) {
    return first_place(args, rets, true);
}

BOXED(run_argmin) {
    return first_place(args, rets, false);
}

/* Folds the dimension in halves: about log2(n) products, each differentiable. */
BOXED(run_prod_dim) {
    tni_temps temps = {0};
    tn_tensor *x = tni_arg_tensor(&args[0]);
    bool keepdim = args[2].v.boolean != 0;
    if (!tni_is_float(x->view.dtype))
        x = OWN(tni_to_dtype(x, TN_I64));
    if (!x || x->view.rank == 0)
        RETURN(x);
    int32_t d = tni_wrap_dim(args[1].v.i64, x->view.rank, "tn_prod_dim");
    while (x && x->sizes[d] > 1) {
        int64_t n = x->sizes[d], half = n / 2;
        tn_tensor *folded =
            OWN(tni_mul(OWN(tni_slice(x, d, 0, half, 1)), OWN(tni_slice(x, d, half, 2 * half, 1))));
        if (n % 2) {
            tn_tensor *both[2] = {folded, OWN(tni_slice(x, d, n - 1, n, 1))};
            folded = both[0] && both[1] ? OWN(tni_cat(both, 2, d)) : NULL;
        }
        x = folded;
    }
    RETURN(keepdim || !x ? x : OWN(tni_squeeze_dim(x, d)));
}

BOXED(run_any) {
    tni_temps temps = {0};
    tn_tensor *self = tni_arg_tensor(&args[0]);
    if (self->view.numel == 0)
        return tni_return(rets, tni_zeros(TN_SCALAR_SHAPE, TN_BOOL, self->device->id));
    RETURN(OWN(tni_amax(OWN(tni_to_dtype(self, TN_BOOL)), TN_SCALAR_SHAPE, false)));
}

BOXED(run_all) {
    tni_temps temps = {0};
    RETURN(OWN(tni_logical_not(OWN(tni_any(OWN(tni_logical_not(tni_arg_tensor(&args[0]))))))));
}

/* var.dim(self, dim, correction, keepdim), in two passes */
BOXED(run_var_dim) {
    tni_temps temps = {0};
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints dim = tni_arg_ints(&args[1]);
    dim = dim.n < 0 ? TN_SCALAR_SHAPE : dim;
    uint32_t mask = reduced_mask("tn_var_dim", self, dim);
    if (!mask)
        return tni_failed();
    double n = reduced_count(self, mask) - args[2].v.f64;
    tn_tensor *mean = OWN(tni_mean_dim(self, dim, true, TN_DTYPE_NONE));
    tn_tensor *distance = OWN(tni_sub(self, mean, tn_int(1)));
    tn_tensor *squares = OWN(tni_mul(distance, distance));
    tn_tensor *sum = OWN(tni_sum_dim(squares, dim, args[3].v.boolean != 0, TN_DTYPE_NONE));
    RETURN(OWN(tni_div_scalar(sum, tn_float(n > 0 ? n : 0))));
}

/* logsumexp(self, dim, keepdim): the largest is taken out first, unless it is infinite */
BOXED(run_logsumexp) {
    tni_temps temps = {0};
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints dim = tni_arg_ints(&args[1]);
    tn_tensor *top = OWN(tni_amax(OWN(tni_detach(self)), dim, true));
    tn_tensor *finite = OWN(tni_lt_scalar(OWN(tni_abs(top)), tn_float(INFINITY)));
    top = OWN(tni_where(finite, top, OWN(tni_zero_of(top))));
    tn_tensor *sum = OWN(
        tni_sum_dim(OWN(tni_exp(OWN(tni_sub(self, top, tn_int(1))))), dim, true, TN_DTYPE_NONE));
    tn_tensor *result = OWN(tni_add(OWN(tni_log(sum)), top, tn_int(1)));
    if (args[2].v.boolean || !result)
        RETURN(result);
    uint32_t mask = reduced_mask("tn_logsumexp", self, dim);
    int64_t sizes[TN_MAX_RANK], n = 0;
    for (int32_t d = 0; d < self->view.rank; d++)
        if (!(mask & 1u << d))
            sizes[n++] = self->sizes[d];
    RETURN(OWN(tni_reshape(result, tn_ints_of(sizes, n))));
}

BOXED(run_argsort) {
    tn_tensor *values, *indices;
    tn_status status = tni_sort(tni_arg_tensor(&args[0]), args[1].v.i64, args[2].v.boolean != 0,
                                &values, &indices);
    if (status != TN_OK)
        return status;
    tni_drop(values);
    return tni_return(rets, indices);
}

/* topk(self, k, dim, largest) */
BOXED(run_topk) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *values, *indices;
    int64_t k = args[1].v.i64;
    int32_t dim = tni_wrap_dim(args[2].v.i64, self->view.rank, "tn_topk");
    if (dim < 0)
        return tni_failed();
    int64_t n = self->view.rank ? self->sizes[dim] : 1;
    if (k < 0 || k > n)
        return tni_fail(TN_INVALID_ARGUMENT,
                        "tn_topk: k is %lld, but dimension %d has %lld elements", (long long)k, dim,
                        (long long)n);
    tn_status status = tni_sort(self, dim, args[3].v.boolean != 0, &values, &indices);
    if (status != TN_OK)
        return status;
    tni_temps temps = {0};
    OWN(values);
    OWN(indices);
    if (self->view.rank > 0) {
        values = OWN(tni_slice(values, dim, 0, k, 1));
        indices = OWN(tni_slice(indices, dim, 0, k, 1));
    }
    return tni_temps_return2(&temps, values, indices, rets);
}
