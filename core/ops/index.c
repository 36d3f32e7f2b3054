/* Operators that read or write by index. Kernels see rank 1 at least and dims from 0. */

#include "core/ops/functions.h"

#include <string.h>

/* Dimension argument i of self, lifted; -1 with an error. */
static int32_t kernel_dim(tni_build *b, uint32_t i, const tn_tensor *self) {
    int32_t dim = tni_wrap_dim(b->args[i].v.i64, self->view.rank, b->info->call);
    if (dim >= 0)
        b->kargs[i] = tni_cell_i64(dim);
    return dim;
}

static tn_status lift(tni_build *b, uint32_t i) {
    tn_tensor *t = tni_build_lift(b, tni_arg_tensor(&b->kargs[i]));
    b->kargs[i] = tni_cell_tensor(t);
    return t ? TN_OK : tni_failed();
}

/* The result has the shape of t; the kernel sees it of rank 1 at least. */
static void out_like(tni_build *b, const tn_tensor *t) {
    static const int64_t one = 1;
    tni_build_out(b, 0, t->view.rank, t->sizes);
    if (t->view.rank == 0)
        tni_build_kernel_out(b, 0, 1, &one);
}

/* index fits `limit` in every dimension but `dim`. */
static tn_status check_index(tni_build *b, const tn_tensor *index, const tn_tensor *limit,
                             int32_t dim, const char *what) {
    bool fits = index->view.rank == limit->view.rank || index->view.rank + limit->view.rank == 1;
    for (int32_t d = 0; fits && d < index->view.rank && d < limit->view.rank; d++)
        fits = d == dim || index->sizes[d] <= limit->sizes[d];
    if (fits)
        return TN_OK;
    return tni_build_fail(b, TN_ERR_SHAPE,
                          "index %s must have as many dimensions as %s %s and be no "
                          "larger%s",
                          TNI_SHAPE_OF(index), what, TNI_SHAPE_OF(limit),
                          dim >= 0 ? " outside dim" : "");
}

/* gather(self, dim, index) */
tn_status tni_infer_gather(tni_build *b) {
    tn_tensor *self = tni_build_tensor(b, 0), *index = tni_build_tensor(b, 2);
    int32_t dim = kernel_dim(b, 1, self);
    if (dim < 0)
        return tni_failed();
    if (index->view.numel > 0) {
        TNI_TRY(check_index(b, index, self, dim, "self"));
    }
    out_like(b, index);
    return lift(b, 0) == TN_OK ? lift(b, 2) : tni_failed();
}

/* What is added to self has its dtype, which is the result's. */
static tn_status check_dtype(tni_build *b, const tn_tensor *self, const tn_tensor *added,
                             const char *name) {
    b->types[0] = self->view.dtype;
    return added->view.dtype == self->view.dtype
               ? TN_OK
               : tni_build_fail(b, TN_ERR_DTYPE, "%s is %s, but self is %s; they must be equal",
                                name, tn_dtype_name(added->view.dtype),
                                tn_dtype_name(self->view.dtype));
}

/* (self, dim, index, added): the result is like self, and a copy of it where the index is empty. No
 * kernel looks at indices where nothing is written: without elements along dim none is in range. */
static tn_status adds_onto(tni_build *b, tn_tensor *self, int32_t dim, const tn_tensor *index) {
    if (self->view.rank > 0 && self->sizes[dim] == 0 && index->view.numel > 0)
        return tni_build_fail(b, TN_ERR_INDEX_OUT_OF_RANGE,
                              "dimension %d of self has no elements, so that no index is in range",
                              dim);
    out_like(b, self);
    b->has_copy_value = index->view.numel == 0;
    b->copy_value = self;
    for (uint32_t i = 0; i < 4; i++)
        if (i != 1 && lift(b, i) != TN_OK)
            return tni_failed();
    return TN_OK;
}

/* scatter_add(self, dim, index, src) */
tn_status tni_infer_scatter_add(tni_build *b) {
    tn_tensor *self = tni_build_tensor(b, 0), *index = tni_build_tensor(b, 2);
    tn_tensor *src = tni_build_tensor(b, 3);
    int32_t dim = kernel_dim(b, 1, self);
    if (dim < 0)
        return tni_failed();
    TNI_TRY(check_dtype(b, self, src, "src"));
    if (index->view.numel > 0) {
        TNI_TRY(check_index(b, index, self, dim, "self"));
        TNI_TRY(check_index(b, index, src, -1, "src"));
    }
    return adds_onto(b, self, dim, index);
}

/* One place of self's dimension for each element of index; of a self without dimensions, the one.
 */
static tn_status check_index_1d(tni_build *b, const tn_tensor *index, const tn_tensor *self) {
    if (index->view.rank > 1)
        return tni_build_fail(b, TN_ERR_SHAPE, "index must be of rank 0 or 1, but is %s",
                              TNI_SHAPE_OF(index));
    if (self->view.rank == 0 && index->view.numel != 1)
        return tni_build_fail(b, TN_ERR_SHAPE,
                              "self has no dimensions, so index must name one element, but is %s",
                              TNI_SHAPE_OF(index));
    return TN_OK;
}

/* index_select(self, dim, index) */
tn_status tni_infer_index_select(tni_build *b) {
    tn_tensor *self = tni_build_tensor(b, 0), *index = tni_build_tensor(b, 2);
    int32_t dim = kernel_dim(b, 1, self);
    if (dim < 0 || check_index_1d(b, index, self) != TN_OK)
        return tni_failed();
    int64_t sizes[TN_MAX_RANK] = {1};
    memcpy(sizes, self->sizes, (size_t)self->view.rank * sizeof *sizes);
    sizes[dim] = index->view.numel;
    tni_build_out(b, 0, self->view.rank, sizes);
    if (self->view.rank == 0)
        tni_build_kernel_out(b, 0, 1, sizes);
    return lift(b, 0) == TN_OK ? lift(b, 2) : tni_failed();
}

/* index_add(self, dim, index, source, alpha) */
tn_status tni_infer_index_add(tni_build *b) {
    tn_tensor *self = tni_build_tensor(b, 0), *index = tni_build_tensor(b, 2);
    tn_tensor *source = tni_build_tensor(b, 3);
    int32_t dim = kernel_dim(b, 1, self);
    if (dim < 0 || check_index_1d(b, index, self) != TN_OK)
        return tni_failed();
    TNI_TRY(check_dtype(b, self, source, "source"));
    bool fits = source->view.rank == self->view.rank;
    for (int32_t d = 0; fits && d < self->view.rank; d++)
        fits = source->sizes[d] == (d == dim ? index->view.numel : self->sizes[d]);
    if (!fits)
        return tni_build_fail(b, TN_ERR_SHAPE,
                              "source %s must be shaped like self %s, with the length "
                              "of index (%lld) at dimension %d",
                              TNI_SHAPE_OF(source), TNI_SHAPE_OF(self),
                              (long long)index->view.numel, dim);
    return adds_onto(b, self, dim, index);
}

/* index [n] as [1, ..., n, ..., 1] expanded to t's shape with n at dim: what gather and scatter_add
 * take */
static tn_tensor *expand_index(tni_temps *list, tn_tensor *index, const tn_tensor *t, int32_t dim) {
    tni_temps tmp = {0};
    int64_t shape[TN_MAX_RANK], full[TN_MAX_RANK];
    for (int32_t d = 0; d < t->view.rank; d++) {
        shape[d] = d == dim ? index->view.numel : 1;
        full[d] = d == dim ? index->view.numel : t->sizes[d];
    }
    tn_tensor *column = tni_own(&tmp, tni_reshape(index, tn_ints_of(shape, t->view.rank)));
    tn_tensor *wide = tni_own(&tmp, tni_expand(column, tn_ints_of(full, t->view.rank)));
    return tni_own(list, tni_temps_keep(&tmp, wide));
}

tn_status tni_run_index_select(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int32_t dim = tni_wrap_dim(args[1].v.i64, self->view.rank, "tn_index_select");
    tn_tensor *index = tni_own(&tmp, tni_reshape(tni_arg_tensor(&args[2]), TN_SHAPE(-1)));
    if (dim < 0 || !index)
        return tni_temps_return(&tmp, NULL, rets);
    if (self->view.rank == 0)
        return tni_temps_return(
            &tmp,
            tni_own(
                &tmp,
                tni_reshape(tni_own(&tmp, tni_gather(tni_own(&tmp, tni_reshape(self, TN_SHAPE(1))),
                                                     0, index)),
                            TN_SCALAR_SHAPE)),
            rets);
    return tni_temps_return(
        &tmp, tni_own(&tmp, tni_gather(self, dim, expand_index(&tmp, index, self, dim))), rets);
}

tn_status tni_run_index_add(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int32_t dim = tni_wrap_dim(args[1].v.i64, self->view.rank, "tn_index_add");
    tn_tensor *index = tni_own(&tmp, tni_reshape(tni_arg_tensor(&args[2]), TN_SHAPE(-1)));
    if (dim < 0 || !index)
        return tni_temps_return(&tmp, NULL, rets);
    tn_scalar alpha = tni_kernel_scalar(args[4], self->view.dtype); /* as the kernel's */
    tn_tensor *source = tni_own(&tmp, tni_scaled(tni_arg_tensor(&args[3]), alpha));
    if (self->view.rank == 0)
        return tni_temps_return(
            &tmp,
            tni_own(&tmp,
                    tni_reshape(
                        tni_own(&tmp, tni_scatter_add(
                                          tni_own(&tmp, tni_reshape(self, TN_SHAPE(1))), 0, index,
                                          tni_own(&tmp, tni_reshape(source, TN_SHAPE(1))))),
                        TN_SCALAR_SHAPE)),
            rets);
    return tni_temps_return(
        &tmp,
        tni_own(&tmp, tni_scatter_add(self, dim, expand_index(&tmp, index, self, dim), source)),
        rets);
}

/* masked_fill(self, mask, value) */
tn_status tni_run_masked_fill(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *value = tni_arg_tensor(&args[2]);
    if (value->view.rank != 0)
        return tni_fail(TN_ERR_SHAPE, "tn_masked_fill: value must be of rank 0, but has shape %s",
                        TNI_SHAPE_OF(value));
    TNI_TRY(tni_check_keeps_imaginary("tn_masked_fill", "value", value, self));
    tni_temps tmp = {0};
    value = tni_own(&tmp, tni_to_dtype(value, self->view.dtype));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_where(tni_arg_tensor(&args[1]), value, self)),
                            rets);
}

/* Flat places [n] of the elements that are not zero: the running count of the mask says where each
 * goes; those that do not count go to a slot behind the last. One wait for the device, for the
 * count. */
static tn_tensor *flat_nonzero(tn_tensor *self) {
    tni_temps tmp = {0};
    tn_device device = self->device->id;
    int64_t numel = self->view.numel, count = 0;
    if (self->device->is_meta)
        return tni_fail_null(
            TN_ERR_DEVICE, "how many elements are not zero depends on data, which meta tensors do "
                           "not have");
    if (numel == 0)
        return tni_empty(TN_SHAPE(0), TN_I64, device);
    tn_tensor *flat = tni_own(&tmp, tni_reshape(self, TN_SHAPE(numel)));
    tn_tensor *mask = tni_own(&tmp, tni_logical_not(tni_own(&tmp, tni_logical_not(flat))));
    tn_tensor *ends =
        tni_own(&tmp, tni_cumsum(tni_own(&tmp, tni_to_dtype(mask, TN_I64)), 0, TN_DTYPE_NONE));
    tn_tensor *last = tni_own(&tmp, tni_select(ends, 0, numel - 1));
    if (!last || tn_item_i64(last, &count) != TN_OK) {
        tni_temps_finish(&tmp);
        return NULL;
    }
    tn_tensor *spill = tni_own(&tmp, tni_full(TN_SCALAR_SHAPE, tn_int(count), TN_I64, device));
    tn_tensor *slot = tni_own(
        &tmp, tni_where(mask, tni_own(&tmp, tni_add_scalar(ends, tn_int(-1), tn_int(1))), spill));
    tn_tensor *places = tni_own(&tmp, tni_arange(tn_int(numel), TN_I64, device));
    tn_tensor *room = tni_own(&tmp, tni_zeros(TN_SHAPE(count + 1), TN_I64, device));
    tn_tensor *placed = tni_own(&tmp, tni_scatter_add(room, 0, slot, places));
    return tni_temps_keep(
        &tmp, tni_own(&tmp, tni_clone(tni_own(&tmp, tni_slice(placed, 0, 0, count, 1)))));
}

/* nonzero(self) -> [n, rank] */
tn_status tni_run_nonzero(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tni_temps tmp = {0};
    tn_tensor *flat = tni_own(&tmp, flat_nonzero(self));
    if (!flat || self->view.rank == 0)
        return tni_temps_return(
            &tmp,
            flat ? tni_own(&tmp, tni_empty(TN_SHAPE(flat->view.numel, 0), TN_I64, self->device->id))
                 : NULL,
            rets);
    tn_tensor *columns[TN_MAX_RANK], *rest = flat;
    for (int32_t d = self->view.rank - 1; d >= 0; d--) {
        tn_tensor *size =
            tni_own(&tmp, tni_full(TN_SCALAR_SHAPE, tn_int(self->sizes[d] ? self->sizes[d] : 1),
                                   TN_I64, self->device->id));
        columns[d] = tni_own(&tmp, tni_remainder(rest, size));
        rest = tni_own(&tmp, tni_floor_divide(rest, size));
        if (!columns[d] || !rest)
            return tni_temps_return(&tmp, NULL, rets);
    }
    return tni_temps_return(&tmp, tni_own(&tmp, tni_stack(columns, (uint64_t)self->view.rank, 1)),
                            rets);
}

tn_status tni_run_nonzero_numpy(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tni_temps tmp = {0};
    tn_tensor *x = self->view.rank == 0 ? tni_own(&tmp, tni_reshape(self, TN_SHAPE(1))) : self;
    tn_tensor *places = tni_own(&tmp, tni_nonzero(x));
    tn_cell unbind_args[2] = {tni_cell_tensor(places), tni_cell_i64(1)};
    tn_status status = places ? tni_call(tni_ops[TNI_OP_unbind], unbind_args, rets) : tni_failed();
    tni_temps_finish(&tmp);
    return status;
}

tn_status tni_run_masked_select(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *mask = tni_arg_tensor(&args[1]);
    if (mask->view.dtype != TN_BOOL)
        return tni_fail(TN_ERR_DTYPE, "tn_masked_select: mask is %s; it must be bool",
                        tn_dtype_name(mask->view.dtype));
    int32_t rank;
    int64_t sizes[TN_MAX_RANK];
    if (!tni_broadcast(self->view.rank, self->sizes, mask->view.rank, mask->sizes, &rank, sizes))
        return tni_fail(TN_ERR_SHAPE, "tn_masked_select: shapes %s and %s do not broadcast",
                        TNI_SHAPE_OF(self), TNI_SHAPE_OF(mask));
    tni_temps tmp = {0};
    tn_ints shape = tn_ints_of(sizes, rank);
    tn_tensor *flat =
        tni_own(&tmp, tni_reshape(tni_own(&tmp, tni_expand(self, shape)), TN_SHAPE(-1)));
    tn_tensor *wide = tni_own(&tmp, tni_expand(mask, shape));
    tn_tensor *places = wide ? tni_own(&tmp, flat_nonzero(wide)) : NULL;
    return tni_temps_return(&tmp, tni_own(&tmp, tni_index_select(flat, 0, places)), rets);
}

/* Zeroes what lies above (tril) or below (triu) a diagonal of the last two dimensions. */
tn_status tni_run_triangle(const char *call, const tn_cell *args, tn_cell *rets, bool lower) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    if (self->view.rank < 2)
        return tni_fail(TN_ERR_SHAPE, "%s: self must have at least 2 dimensions", call);
    tni_temps tmp = {0};
    tn_device device = self->device->id;
    int64_t rows = self->sizes[self->view.rank - 2], columns = self->sizes[self->view.rank - 1];
    tn_tensor *i =
        tni_own(&tmp, tni_unsqueeze(tni_own(&tmp, tni_arange(tn_int(rows), TN_I64, device)), 1));
    tn_tensor *j = tni_own(&tmp, tni_arange(tn_int(columns), TN_I64, device));
    /* beyond the corners every diagonal is the same */
    int64_t diagonal = args[1].v.i64 < -rows     ? -rows
                       : args[1].v.i64 > columns ? columns
                                                 : args[1].v.i64;
    i = tni_own(&tmp, tni_add_scalar(i, tn_int(diagonal), tn_int(1)));
    tn_tensor *keep = lower ? tni_own(&tmp, tni_le(j, i)) : tni_own(&tmp, tni_ge(j, i));
    return tni_temps_return(
        &tmp, tni_own(&tmp, tni_where(keep, self, tni_own(&tmp, tni_zero_of(self)))), rets);
}
