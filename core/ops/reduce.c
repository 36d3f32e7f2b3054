/* Reductions, running sums and sorting: shapes and dtypes, and the derivatives of those that have
 * kernels.
 *
 * A kernel keeps the reduced dimensions with size 1 and never sees rank 0; what the caller gets is
 * the same elements in another shape. */
#include "core/ops/reduce.h"
#include "core/ops/build.h"
#include "core/ops/derivatives.h"

#include <math.h>

/* ---- which dimensions -------------------------------------------------------------------- */

bool tni_reduce_mask(tn_ints dim, int32_t rank, const char *call, uint32_t *out_mask) {
    uint32_t mask = 0;
    for (int64_t i = 0; i < dim.n; i++) {
        int32_t d = tni_wrap_dim(dim.data[i], rank, call);
        if (d < 0)
            return false;
        if (mask >> d & 1) {
            tni_fail(TN_INVALID_ARGUMENT,
                     "%s: dimension %d is named twice in dim; name each dimension once", call, d);
            return false;
        }
        mask |= 1u << d;
    }
    *out_mask = mask ? mask : (1u << (rank ? rank : 1)) - 1;
    return true;
}

int64_t tni_reduce_count(const tn_tensor *t, uint32_t mask) {
    int64_t count = 1;
    for (int32_t d = 0; d < t->view.rank; d++)
        if (mask >> d & 1)
            count *= t->sizes[d];
    return count;
}

tn_ints tni_reduce_dims(uint32_t mask, int64_t *out) {
    int64_t n = 0;
    for (int32_t d = 0; d < TN_MAX_RANK; d++)
        if (mask >> d & 1)
            out[n++] = d;
    return tn_ints_of(out, n);
}

tn_tensor *tni_reduce_restore(tn_tensor *reduced, tn_ints sizes, uint32_t mask, bool keepdim) {
    if (!reduced)
        return NULL;
    if (keepdim || reduced->view.rank == 0)
        return tni_keep(reduced);
    int64_t kept[TN_MAX_RANK];
    for (int64_t d = 0; d < sizes.n; d++)
        kept[d] = mask >> d & 1 ? 1 : sizes.data[d];
    return tni_reshape(reduced, tn_ints_of(kept, sizes.n));
}

/* ---- shapes ------------------------------------------------------------------------------ */

/* Sums and products of integers and bool are made in i64. */
static tn_dtype accumulator_dtype(tn_dtype dtype) {
    return tni_is_float(dtype) ? dtype : TN_I64;
}

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
        return tni_build_fail(b, TN_SHAPE,
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
    b->kargs[1] = tni_cell_ints(tni_reduce_dims(mask, tni_build_ints(b, TN_MAX_RANK)));
    return set_reduced(b, self, mask, keepdim);
}

/* sum(self, dim, keepdim, dtype) */
INFER(infer_sum) {
    tn_dtype dtype = tni_arg_dtype(&b->args[3]);
    b->types[0] =
        dtype != TN_DTYPE_NONE ? dtype : accumulator_dtype(tni_build_tensor(b, 0)->view.dtype);
    b->has_empty_value = true;
    b->empty_value = tn_int(0);
    return reduce_over(b, tni_arg_ints(&b->args[1]), b->args[2].v.boolean);
}

/* amax(self, dim, keepdim) */
INFER(infer_reduce_same) {
    return reduce_over(b, tni_arg_ints(&b->args[1]), b->args[2].v.boolean);
}

/* prod(self, dim, keepdim) of one dimension */
INFER(infer_prod) {
    b->types[0] = accumulator_dtype(tni_build_tensor(b, 0)->view.dtype);
    b->has_empty_value = true;
    b->empty_value = tn_int(1);
    return reduce_over(b, tn_ints_of(&b->args[1].v.i64, 1), b->args[2].v.boolean);
}

/* var(self, dim, correction, keepdim) */
INFER(infer_var) {
    b->has_empty_value = true;
    b->empty_value = tn_float(NAN);
    return reduce_over(b, tni_arg_ints(&b->args[1]), b->args[3].v.boolean);
}

/* argmax(self, dim, keepdim); without dim over the flattened tensor */
INFER(infer_arg) {
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
        return tni_build_fail(b, TN_SHAPE,
                              "the tensor has no elements, of which none can be found; give dim, "
                              "or test tn_numel first");
    static const int64_t one = 1;
    int64_t ones[TN_MAX_RANK];
    for (int32_t d = 0; d < self->view.rank; d++)
        ones[d] = 1;
    tn_tensor *dense = tni_build_own(b, tni_contiguous_data(self));
    tn_tensor *flat = dense ? tni_build_view(b, dense, 1, &self->view.numel, &one) : NULL;
    if (!flat)
        return tni_failed();
    tni_build_out(b, 0, keepdim ? self->view.rank : 0, ones);
    tni_build_kernel_out(b, 0, 1, &one);
    b->kargs[0] = tni_cell_tensor(flat);
    b->kargs[1] = tni_cell_i64(0);
    return TN_OK;
}

/* ---- along one dimension: running sums, sorting, softmax --------------------------------- */

/* All outputs have the shape of argument 0; tensor arguments are lifted; kernel argument `at` is
 * the dimension. */
static tn_status along(tni_build *b, uint32_t at) {
    tn_tensor *self = tni_build_tensor(b, 0);
    static const int64_t one = 1;
    for (uint32_t i = 0; i < at; i++) {
        tn_tensor *t = b->kargs[i].v.pointer;
        tn_tensor *lifted = tni_build_lift(b, t);
        if (!lifted)
            return tni_failed();
        b->kargs[i] = tni_cell_tensor(lifted);
    }
    int32_t dim = tni_wrap_dim(b->kargs[at].v.i64, self->view.rank, b->info->call);
    if (dim < 0)
        return tni_failed();
    b->kargs[at] = tni_cell_i64(dim);
    for (uint32_t i = 0; i < b->info->n_outs; i++) {
        tni_build_out(b, i, self->view.rank, self->sizes);
        if (self->view.rank == 0)
            tni_build_kernel_out(b, i, 1, &one);
    }
    return TN_OK;
}

/* cumsum(self, dim, dtype) */
INFER(infer_cumsum) {
    tn_dtype dtype = tni_arg_dtype(&b->args[2]);
    b->types[0] =
        dtype != TN_DTYPE_NONE ? dtype : accumulator_dtype(tni_build_tensor(b, 0)->view.dtype);
    return along(b, 1);
}

/* sort(self, dim, descending) */
INFER(infer_sort) {
    return along(b, 1);
}

/* softmax(self, dim) and softmax_backward(grad_output, output, dim) */
INFER(infer_dim) {
    uint32_t n_tensors = b->types_of->n_args - 1u;
    if (n_tensors == 2) {
        tn_tensor *grad = tni_build_tensor(b, 0), *output = tni_build_tensor(b, 1);
        bool same = grad->view.rank == output->view.rank;
        for (int32_t d = 0; same && d < grad->view.rank; d++)
            same = grad->sizes[d] == output->sizes[d];
        char text[2][TNI_SHAPE_TEXT];
        if (!same)
            return tni_build_fail(b, TN_SHAPE,
                                  "grad_output has shape %s, but output has %s; they must be equal",
                                  tni_shape_text(grad->view.rank, grad->sizes, text[0]),
                                  tni_shape_text(output->view.rank, output->sizes, text[1]));
    }
    return along(b, n_tensors);
}

/* ---- derivatives ------------------------------------------------------------------------- */

tn_tensor *tni_sum_backward(tn_tensor *grad, tn_ints sizes, tn_ints dim, bool keepdim) {
    uint32_t mask;
    if (!grad || !tni_reduce_mask(dim, (int32_t)sizes.n, "tn_sum", &mask))
        return NULL;
    tn_tensor *restored = tni_reduce_restore(grad, sizes, mask, keepdim);
    return tni_then(tni_expand(restored, sizes), restored);
}

tn_tensor *tni_amax_backward(tn_tensor *grad, tn_tensor *self, tn_tensor *result, tn_ints dim,
                             bool keepdim) {
    uint32_t mask;
    if (!grad || !self || !result || !tni_reduce_mask(dim, self->view.rank, "tn_amax", &mask))
        return NULL;
    int64_t list[TN_MAX_RANK];
    tn_ints sizes = tn_ints_of(self->sizes, self->view.rank);
    tn_tensor *extreme = tni_reduce_restore(result, sizes, mask, keepdim);
    tn_tensor *hit = tni_then(tni_eq(self, extreme), extreme);
    hit = tni_as_dtype(hit, grad->view.dtype);
    tn_tensor *count = tni_sum_dim(hit, tni_reduce_dims(mask, list), true, TN_DTYPE_NONE);
    tn_tensor *share = tni_reduce_restore(grad, sizes, mask, keepdim);
    share = tni_then2(tni_div(share, count), share, count);
    return tni_then2(tni_mul(share, hit), share, hit);
}

tn_tensor *tni_cumsum_backward(tn_tensor *grad, int64_t dim) {
    if (!grad)
        return NULL;
    int32_t d = tni_wrap_dim(dim, grad->view.rank, "tn_cumsum");
    if (d < 0 || grad->view.rank == 0 || grad->view.numel == 0)
        return d < 0 ? NULL : tni_keep(grad);
    int64_t n = grad->sizes[d];
    tn_tensor *reversal =
        tni_arange_start(tn_int(n - 1), tn_int(-1), tn_int(-1), TN_I64, grad->device->id);
    tn_tensor *t = tni_index_select(grad, d, reversal);
    t = tni_then(tni_cumsum(t, d, TN_DTYPE_NONE), t);
    return tni_then2(tni_index_select(t, d, reversal), t, reversal);
}
