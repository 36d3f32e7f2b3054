/* What stands at a place of the sorted order: median, kthvalue, mode, quantile. */
#include "core/ops/dims.h"
#include "core/ops/functions.h"

#include <math.h>
#include <string.h>

/* self sorted along dim, and how many of each row are no NaN (these stand last); of rank 1 at
 * least. */
typedef struct sorted {
    tn_tensor *values, *indices; /* [.., n, ..] */
    tn_tensor *count;            /* [.., 1, ..], or NULL: all, of integers */
    int32_t dim;
    int64_t n;
} sorted;

static bool sort_along(tni_temps *tmp, const char *call, tn_tensor *self, int64_t dim, sorted *s) {
    s->dim = tni_wrap_dim(dim, self->view.rank, call);
    if (s->dim < 0)
        return false;
    tn_tensor *x = self->view.rank ? self : tni_own(tmp, tni_reshape(self, TN_SHAPE(1)));
    if (!x)
        return false;
    s->n = x->sizes[s->dim];
    if (s->n == 0) {
        tni_fail(TN_ERR_SHAPE, "%s: dimension %d has no elements, of which none can be taken", call,
                 s->dim);
        return false;
    }
    if (tni_sort(x, s->dim, false, &s->values, &s->indices) != TN_OK)
        return false;
    tni_own(tmp, s->values);
    tni_own(tmp, s->indices);
    s->count = NULL;
    if (tni_is_float(x->view.dtype)) {
        tn_tensor *number = tni_own(tmp, tni_eq(s->values, s->values));
        s->count = tni_own(tmp, tni_sum_dim(number, TN_SHAPE(s->dim), true, TN_DTYPE_NONE));
        return s->count != NULL;
    }
    return true;
}

/* Of two values none lies in the middle. */
static bool has_middle(const char *call, const tn_tensor *self) {
    if (self->view.dtype != TN_BOOL)
        return true;
    tni_fail(TN_ERR_DTYPE, "%s: not defined for bool; cast with tn_to_dtype", call);
    return false;
}

/* Elements `at` [.., 1, ..] of each sorted row: value, and where it came from. */
static tn_status take(tni_temps *tmp, const sorted *s, tn_tensor *self, tn_tensor *at, bool keepdim,
                      tn_cell *rets) {
    tn_tensor *results[2] = {at ? tni_own(tmp, tni_gather(s->values, s->dim, at)) : NULL,
                             at ? tni_own(tmp, tni_gather(s->indices, s->dim, at)) : NULL};
    for (int i = 0; i < 2 && (!keepdim || self->view.rank == 0); i++)
        results[i] = tni_own(tmp, tni_squeeze_dim(results[i], s->dim));
    return tni_temps_return_many(tmp, results, 2, rets);
}

/* One place for all rows. */
static tn_tensor *place(tni_temps *tmp, const sorted *s, int64_t at) {
    int64_t sizes[TN_MAX_RANK];
    memcpy(sizes, s->values->sizes, (size_t)s->values->view.rank * sizeof *sizes);
    sizes[s->dim] = 1;
    tn_tensor *one =
        tni_own(tmp, tni_full(TN_SCALAR_SHAPE, tn_int(at), TN_I64, s->values->device->id));
    return tni_own(tmp, tni_expand(one, tn_ints_of(sizes, s->values->view.rank)));
}

/* The lower of the two in the middle. A row with NaNs has the first of these, or, with `skip`, the
 * median of the others. */
static tn_tensor *middle(tni_temps *tmp, const sorted *s, bool skip) {
    if (!s->count)
        return place(tmp, s, (s->n - 1) / 2);
    if (!skip) {
        tn_tensor *full = tni_own(tmp, tni_eq_scalar(s->count, tn_int(s->n)));
        return tni_own(tmp, tni_where(full, place(tmp, s, (s->n - 1) / 2), s->count));
    }
    tn_tensor *at = tni_own(tmp, tni_add_scalar(s->count, tn_int(-1), tn_int(1)));
    at = tni_own(tmp, tni_clamp_min(at, tn_int(0)));
    at = tni_own(tmp, tni_div_scalar_mode(at, tn_int(2), "floor"));
    return at;
}

tn_status tni_run_medians_dim(const char *call, const tn_cell *args, tn_cell *rets, bool skip) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tni_temps tmp = {0};
    sorted s;
    if (!has_middle(call, self) || !sort_along(&tmp, call, self, args[1].v.i64, &s))
        return tni_temps_return(&tmp, NULL, rets);
    return take(&tmp, &s, self, middle(&tmp, &s, skip), args[2].v.boolean, rets);
}

tn_status tni_run_medians(const char *call, const tn_cell *args, tn_cell *rets, bool skip) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tni_temps tmp = {0};
    sorted s;
    tn_tensor *flat = tni_own(&tmp, tni_reshape(self, TN_SHAPE(self->view.numel)));
    if (flat && self->view.numel == 0 && tni_is_float(self->view.dtype))
        return tni_temps_return(&tmp,
                                tni_own(&tmp, tni_full(TN_SCALAR_SHAPE, tn_float(NAN),
                                                       self->view.dtype, self->device->id)),
                                rets);
    if (!flat || !has_middle(call, self) || !sort_along(&tmp, call, flat, 0, &s))
        return tni_temps_return(&tmp, NULL, rets);
    tn_tensor *at = middle(&tmp, &s, skip);
    tn_tensor *value = at ? tni_own(&tmp, tni_gather(s.values, 0, at)) : NULL;
    return tni_temps_return(&tmp, tni_own(&tmp, tni_squeeze_dim(value, 0)), rets);
}

/* kthvalue(self, k, dim, keepdim): the k-th smallest, counted from 1; NaNs are the largest */
tn_status tni_run_kthvalue(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int64_t k = args[1].v.i64;
    tni_temps tmp = {0};
    sorted s;
    if (!has_middle("tn_kthvalue", self) ||
        !sort_along(&tmp, "tn_kthvalue", self, args[2].v.i64, &s))
        return tni_temps_return(&tmp, NULL, rets);
    if (k < 1 || k > s.n) {
        tni_temps_finish(&tmp);
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_kthvalue: k is %lld, but dimension %d has %lld elements; k must lie in "
                        "[1, %lld]",
                        (long long)k, s.dim, (long long)s.n, (long long)s.n);
    }
    return take(&tmp, &s, self, place(&tmp, &s, k - 1), args[3].v.boolean, rets);
}

/* ---- what occurs most often -------------------------------------------------------------- */

/* The last place of the longest run of equals in each sorted row, of the first of the longest. */
static tn_tensor *longest_run(tni_temps *tmp, const sorted *s) {
    tn_tensor *starts, *ignored;
    int32_t dim = s->dim;
    if (s->n == 1)
        return place(tmp, s, 0);
    tn_tensor *before = tni_own(tmp, tni_narrow(s->values, dim, 0, s->n - 1));
    tn_tensor *after = tni_own(tmp, tni_narrow(s->values, dim, 1, s->n - 1));
    tn_tensor *is_new = tni_own(tmp, tni_to_dtype(tni_own(tmp, tni_ne(after, before)), TN_I64));
    tn_tensor *at = tni_own(
        tmp, tni_arange_start(tn_int(1), tn_int(s->n), tn_int(1), TN_I64, s->values->device->id));
    at = tni_along(tmp, at, dim, s->values->view.rank);
    tn_tensor *start = at ? tni_own(tmp, tni_mul(is_new, at)) : NULL; /* 0 within a run */
    if (!start || tni_cummax(start, dim, &starts, &ignored) != TN_OK)
        return NULL;
    tni_own(tmp, starts);
    tni_own(tmp, ignored);
    tn_tensor *length = tni_own(tmp, tni_sub(at, starts, tn_int(1)));
    tn_tensor *most = length ? tni_own(tmp, tni_amax(length, TN_SHAPE(dim), true)) : NULL;
    tn_tensor *found = length ? tni_own(tmp, tni_argmax(length, dim, true)) : NULL;
    found = tni_own(tmp, tni_add_scalar(found, tn_int(1), tn_int(1)));
    /* of none that occurs twice the first, which has no place among those behind another */
    tn_tensor *twice =
        tni_own(tmp, tni_to_dtype(tni_own(tmp, tni_gt_scalar(most, tn_int(0))), TN_I64));
    return tni_own(tmp, tni_mul(found, twice));
}

/* mode(self, dim, keepdim) */
tn_status tni_run_mode(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tni_temps tmp = {0};
    sorted s;
    if (!sort_along(&tmp, "tn_mode", self, args[1].v.i64, &s))
        return tni_temps_return(&tmp, NULL, rets);
    return take(&tmp, &s, self, longest_run(&tmp, &s), args[2].v.boolean, rets);
}

/* ---- quantiles --------------------------------------------------------------------------- */

static tn_status check_quantile(const char *call, const tn_tensor *self, const tn_tensor *q) {
    if (self->view.dtype != TN_F32 && self->view.dtype != TN_F64)
        return tni_fail(TN_ERR_DTYPE, "%s: self is %s; it must be f32 or f64", call,
                        tn_dtype_name(self->view.dtype));
    if (q && (q->view.dtype != self->view.dtype || q->view.rank > 1))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: q is %s of rank %d; it must have self's dtype %s, and rank 0 or 1",
                        call, tn_dtype_name(q->view.dtype), q->view.rank,
                        tn_dtype_name(self->view.dtype));
    if (self->view.numel == 0)
        return tni_fail(TN_ERR_SHAPE, "%s: self has no elements", call);
    return TN_OK;
}

/* Between sorted elements [.., n]: q [m] of the way, [.., m]. A q outside of [0, 1] names places
 * that there are not, which gather refuses. */
static tn_tensor *between(tni_temps *tmp, const sorted *s, tn_tensor *q, const char *how,
                          bool skip) {
    tn_dtype dtype = s->values->view.dtype;
    int64_t sizes[TN_MAX_RANK];
    memcpy(sizes, s->values->sizes, (size_t)s->values->view.rank * sizeof *sizes);
    sizes[s->dim] = q->view.numel;
    tn_tensor *count = tni_own(tmp, tni_to_dtype(s->count, dtype)), *rank;
    tn_tensor *whole = tni_own(tmp, tni_eq_scalar(s->count, tn_int(s->n)));
    if (skip) {
        rank = tni_own(tmp, tni_sub_scalar(count, tn_int(1), tn_int(1)));
        rank = tni_own(tmp, tni_mul(q, rank));
        tn_tensor *any = tni_own(tmp, tni_gt_scalar(count, tn_int(0)));
        rank = tni_own(tmp, tni_where_scalarother(any, rank, tn_int(0)));
    } else { /* the last of a row with NaNs is one */
        rank = tni_own(tmp, tni_mul_scalar(q, tn_int(s->n - 1)));
        rank = tni_own(tmp, tni_where_scalarother(whole, rank, tn_int(s->n - 1)));
    }
    rank = tni_own(tmp, tni_expand(rank, tn_ints_of(sizes, s->values->view.rank)));
    if (strcmp(how, "lower") == 0)
        rank = tni_own(tmp, tni_floor(rank));
    else if (strcmp(how, "higher") == 0)
        rank = tni_own(tmp, tni_ceil(rank));
    else if (strcmp(how, "nearest") == 0)
        rank = tni_own(tmp, tni_round(rank));
    tn_tensor *low = tni_own(tmp, tni_floor(rank));
    tn_tensor *below = tni_own(tmp, tni_to_dtype(low, TN_I64));
    below = below ? tni_own(tmp, tni_gather(s->values, s->dim, below)) : NULL;
    bool is_linear = strcmp(how, "linear") == 0;
    if (!is_linear && strcmp(how, "midpoint") != 0)
        return below;
    tn_tensor *above = tni_own(tmp, tni_to_dtype(tni_own(tmp, tni_ceil(rank)), TN_I64));
    above = above ? tni_own(tmp, tni_gather(s->values, s->dim, above)) : NULL;
    if (!is_linear)
        return tni_own(tmp, tni_lerp_scalar(below, above, tn_float(0.5)));
    tn_tensor *weight = tni_own(tmp, tni_sub(rank, low, tn_int(1)));
    return tni_own(tmp, tni_lerp(below, above, weight));
}

/* Quantiles of the dimension, or of all elements; those of a q with a dimension are the first of
 * the result. */
static tn_status quantile(const char *call, const tn_cell *args, tn_tensor *q, tn_cell *rets,
                          bool skip) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    bool is_flat = args[2].tag == TN_CELL_NONE, keepdim = args[3].v.boolean;
    tni_temps tmp = {0};
    sorted s;
    tn_tensor *x = is_flat ? tni_own(&tmp, tni_reshape(self, TN_SHAPE(self->view.numel))) : self;
    int32_t dim = is_flat ? 0 : tni_wrap_dim(args[2].v.i64, self->view.rank, call);
    if (!x || !q || dim < 0)
        return tni_temps_return(&tmp, NULL, rets);
    if (x->view.rank > 1 && dim != x->view.rank - 1) /* q broadcasts along the last */
        x = tni_own(&tmp, tni_movedim_int(x, dim, -1));
    if (!x || !sort_along(&tmp, call, x, -1, &s))
        return tni_temps_return(&tmp, NULL, rets);
    tn_tensor *many = tni_own(&tmp, tni_reshape(q, TN_SHAPE(-1)));
    tn_tensor *y = many ? between(&tmp, &s, many, args[4].v.string, skip) : NULL;
    if (!y)
        return tni_temps_return(&tmp, NULL, rets);
    int64_t sizes[TN_MAX_RANK + 1], n = 0;
    y = tni_own(&tmp, y->view.rank > 1 ? tni_movedim_int(y, -1, 0) : tni_alias(y));
    if (q->view.rank == 1)
        sizes[n++] = q->view.numel;
    for (int32_t d = 0; d < self->view.rank; d++) {
        if (!is_flat && d != dim)
            sizes[n++] = self->sizes[d];
        else if (keepdim)
            sizes[n++] = 1;
    }
    return tni_temps_return(&tmp, tni_own(&tmp, tni_reshape(y, tn_ints_of(sizes, n))), rets);
}

tn_status tni_run_quantiles(const char *call, const tn_cell *args, tn_cell *rets, bool skip) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *q = tni_arg_tensor(&args[1]);
    if (check_quantile(call, self, q) != TN_OK)
        return tni_failed();
    return quantile(call, args, q, rets, skip);
}

tn_status tni_run_quantiles_scalar(const char *call, const tn_cell *args, tn_cell *rets,
                                   bool skip) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    double q = args[1].v.f64;
    if (check_quantile(call, self, NULL) != TN_OK)
        return tni_failed();
    if (!(q >= 0 && q <= 1))
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: q is %g; it must lie in [0, 1]", call, q);
    tni_temps tmp = {0};
    tn_tensor *one =
        tni_own(&tmp, tni_full(TN_SCALAR_SHAPE, tn_float(q), self->view.dtype, self->device->id));
    tn_status status = quantile(call, args, one, rets, skip);
    tni_temps_finish(&tmp);
    return status;
}
