/* Writing at places that an index tensor names. Which of several elements with the same target
 * wins, or what they reduce to, is told by a stable sort of the index: equal ones lie in a run, in
 * their order. What moves is told by whole numbers alone, so values keep their bits, and gradients
 * go through a gather of what was written. */

#include "core/ops/dims.h"
#include "core/ops/functions.h"
#include "core/ops/scatter.h"

#include <string.h>

/* Of u64, whose upper half i64 has no room for: that is beyond every dimension, not before the first. */
static tn_tensor *index_of_u64(tn_tensor *index) {
    tni_temps tmp = {0};
    tn_tensor *bits = tni_own(&tmp, tni_to_dtype(index, TN_I64));
    tn_tensor *beyond = bits ? tni_own(&tmp, tni_lt_scalar(bits, tn_int(0))) : NULL;
    tn_tensor *whole =
        beyond ? tni_own(&tmp, tni_where_scalarself(beyond, tn_int(INT64_MAX), bits)) : NULL;
    return tni_temps_keep(&tmp, whole);
}

tn_tensor *tni_whole_index(tni_temps *temps, tn_tensor *index, const char *call, const char *name) {
    switch (index->view.dtype) {
    case TN_I64:
        return index;
    case TN_I32:
    case TN_U16:
    case TN_U32:
        return tni_own(temps, tni_to_dtype(index, TN_I64));
    case TN_U64:
        return tni_own(temps, index_of_u64(index));
    default:
        return tni_fail_null(TN_ERR_DTYPE, "%s: %s is %s; it must be i64 or i32, or unsigned", call,
                             name, tn_dtype_name(index->view.dtype));
    }
}

/* ---- arguments --------------------------------------------------------------------------- */

typedef struct scatter {
    tn_tensor *self, *index, *src; /* of rank 1 at least; src cut to index's shape, or NULL */
    tn_ints shape;                 /* of the result */
    int32_t dim;
    bool is_empty; /* the index: the result is self */
} scatter;

static tn_tensor *lifted(tni_temps *tmp, tn_tensor *t) {
    return t && t->view.rank == 0 ? tni_own(tmp, tni_reshape(t, TN_SHAPE(1))) : t;
}

static bool fits_into(const tn_tensor *index, const tn_tensor *limit, int32_t but) {
    bool fits = index->view.rank == limit->view.rank;
    for (int32_t d = 0; fits && d < index->view.rank; d++)
        fits = d == but || index->sizes[d] <= limit->sizes[d];
    return fits;
}

/* A dimension without elements has no place for an index; no kernel is asked where nothing is
 * written. */
static bool has_places(const char *call, const scatter *s) {
    if (s->is_empty || s->self->sizes[s->dim] > 0)
        return true;
    tni_fail(TN_ERR_INDEX_OUT_OF_RANGE,
             "%s: dimension %d of self has no elements, so that no index is in range", call,
             s->dim);
    return false;
}

/* (self, dim, index, src); `src` NULL where there is none. */
static bool begin(scatter *s, tni_temps *tmp, const char *call, const tn_cell *args,
                  tn_tensor *src) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *index = tni_arg_tensor(&args[2]);
    *s = (scatter){.shape = tni_sizes(self), .is_empty = index->view.numel == 0};
    s->dim = tni_wrap_dim(args[1].v.i64, self->view.rank, call);
    if (s->dim < 0)
        return false;
    index = tni_whole_index(tmp, index, call, "index");
    if (!index)
        return false;
    if (src && src->view.dtype != self->view.dtype) {
        tni_fail(TN_ERR_DTYPE, "%s: src is %s, but self is %s; they must be equal", call,
                 tn_dtype_name(src->view.dtype), tn_dtype_name(self->view.dtype));
        return false;
    }
    if (s->is_empty)
        return true;
    s->self = lifted(tmp, self);
    s->index = lifted(tmp, index);
    s->src = lifted(tmp, src);
    if (!s->self || !s->index || (src && !s->src))
        return false;
    const tn_tensor *limit = NULL;
    if (!fits_into(s->index, s->self, s->dim))
        limit = self;
    else if (src && !fits_into(s->index, s->src, -1))
        limit = src;
    if (limit) {
        tni_fail(TN_ERR_SHAPE,
                 "%s: index %s must have as many dimensions as %s %s and be no larger%s", call,
                 TNI_SHAPE_OF(index), limit == self ? "self" : "src", TNI_SHAPE_OF(limit),
                 limit == self ? " outside dim" : "");
        return false;
    }
    if (!has_places(call, s))
        return false;
    for (int32_t d = 0; s->src && d < s->index->view.rank; d++)
        if (s->src->sizes[d] != s->index->sizes[d])
            s->src = tni_own(tmp, tni_narrow(s->src, d, 0, s->index->sizes[d]));
    return !src || s->src;
}

static tn_status finish(const scatter *s, tni_temps *tmp, tn_tensor *result, tn_cell *rets) {
    if (result && s->shape.n == 0)
        result = tni_own(tmp, tni_reshape(result, s->shape));
    return tni_temps_return(tmp, result, rets);
}

/* ---- runs -------------------------------------------------------------------------------- */

/* An index sorted along dim; all of index's shape. */
typedef struct runs {
    int32_t dim;
    tn_tensor *sorted; /* NULL after a failure */
    tn_tensor *order;  /* where along dim each came from */
    tn_tensor *last;   /* bool: is it the last of its run? */
} runs;

/* Is an element unlike the next along dim? The last is. */
static tn_tensor *ends_of(tni_temps *out, tn_tensor *sorted, int32_t dim) {
    tni_temps tmp = {0};
    int64_t n = sorted->sizes[dim], sizes[TN_MAX_RANK];
    memcpy(sizes, sorted->sizes, (size_t)sorted->view.rank * sizeof *sizes);
    sizes[dim] = 1;
    tn_tensor *here = tni_own(&tmp, tni_narrow(sorted, dim, 0, n - 1));
    tn_tensor *next = tni_own(&tmp, tni_narrow(sorted, dim, 1, n - 1));
    tn_tensor *list[2] = {
        tni_own(&tmp, tni_ne(here, next)),
        tni_own(&tmp, tni_ones(tn_ints_of(sizes, sorted->view.rank), TN_BOOL, sorted->device->id))};
    tn_tensor *joined = list[0] && list[1] ? tni_own(&tmp, tni_cat(list, 2, dim)) : NULL;
    return tni_own(out, tni_temps_keep(&tmp, joined));
}

/* Of an index that is not empty. */
static runs runs_of(tni_temps *tmp, tn_tensor *index, int32_t dim) {
    runs r = {.dim = dim};
    tn_tensor *sorted = NULL, *order = NULL;
    if (index->sizes[dim] == 1) {
        r.order = tni_own(tmp, tni_zeros_like(index, TN_I64, tn_no_device()));
        r.last = tni_own(tmp, tni_ones_like(index, TN_BOOL, tn_no_device()));
        r.sorted = r.order && r.last ? index : NULL;
        return r;
    }
    if (tni_sort(index, dim, false, &sorted, &order) != TN_OK)
        return r;
    sorted = tni_own(tmp, sorted);
    r.order = tni_own(tmp, order);
    if (sorted && r.order)
        r.last = ends_of(tmp, sorted, dim);
    r.sorted = r.last ? sorted : NULL;
    return r;
}

/* 1, 2, ... in row-major order of t's shape. */
static tn_tensor *numbers(tni_temps *tmp, tn_tensor *t) {
    tn_tensor *line = tni_own(tmp, tni_arange_start(tn_int(1), tn_int(t->view.numel + 1), tn_int(1),
                                                    TN_I64, t->device->id));
    return tni_own(tmp, tni_reshape(line, tni_sizes(t)));
}

/* For each place of a tensor of `sizes` what `number` is at the last element of the run that names
 * it, 0 where none does. Each run adds one number that is not 0: the sum is exact. */
static tn_tensor *placed(tni_temps *tmp, tn_ints sizes, const runs *r, tn_tensor *number) {
    if (!r->sorted || !number)
        return NULL;
    tn_tensor *kept = tni_own(tmp, tni_where(r->last, number, tni_own(tmp, tni_zero_of(number))));
    tn_tensor *zeros = tni_own(tmp, tni_zeros(sizes, TN_I64, number->device->id));
    return tni_own(tmp, tni_scatter_add(zeros, r->dim, r->sorted, kept));
}

/* For each place of a tensor of `sizes` the number (from 1, row-major) of the element of index that
 * writes it last; 0: none. */
static tn_tensor *writers(tni_temps *tmp, tn_ints sizes, int32_t dim, tn_tensor *index) {
    runs r = runs_of(tmp, index, dim);
    tn_tensor *number = r.sorted ? numbers(tmp, index) : NULL;
    if (index->sizes[dim] > 1)
        number = tni_own(tmp, tni_gather(number, dim, r.order));
    return placed(tmp, sizes, &r, number);
}

/* The elements of t that `number` counts from 1, in its shape; something where it is 0. */
static tn_tensor *numbered(tni_temps *tmp, tn_tensor *t, tn_tensor *number) {
    if (!t || !number)
        return NULL;
    tn_tensor *flat = tni_own(tmp, tni_reshape(t, TN_SHAPE(-1)));
    tn_tensor *place = tni_own(tmp, tni_add_scalar(number, tn_int(-1), tn_int(1)));
    place = tni_own(tmp, tni_clamp_min(place, tn_int(0)));
    place = tni_own(tmp, tni_reshape(place, TN_SHAPE(-1)));
    tn_tensor *taken = tni_own(tmp, tni_index_select(flat, 0, place));
    return tni_own(tmp, tni_reshape(taken, tni_sizes(number)));
}

/* bool, of `sizes`: does some element of index name the place? */
static tn_tensor *touched_by(tni_temps *tmp, tn_ints sizes, int32_t dim, tn_tensor *index) {
    tn_tensor *zeros = tni_own(tmp, tni_zeros(sizes, TN_BOOL, index->device->id));
    tn_tensor *one = tni_own(tmp, tni_ones_like(index, TN_BOOL, tn_no_device()));
    return tni_own(tmp, tni_scatter_add(zeros, dim, index, one));
}

/* ---- scatter ----------------------------------------------------------------------------- */

/* scatter(self, dim, index, src) */
tn_status tni_run_scatter_src(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    scatter s;
    if (!begin(&s, &tmp, "tn_scatter_src", args, tni_arg_tensor(&args[3])))
        return tni_temps_return(&tmp, NULL, rets);
    if (s.is_empty)
        return tni_return(rets, tni_clone(tni_arg_tensor(&args[0])));
    tn_tensor *number = writers(&tmp, tni_sizes(s.self), s.dim, s.index);
    tn_tensor *written = number ? tni_own(&tmp, tni_gt_scalar(number, tn_int(0))) : NULL;
    tn_tensor *value = numbered(&tmp, s.src, number);
    return finish(&s, &tmp, tni_own(&tmp, tni_where(written, value, s.self)), rets);
}

/* scatter(self, dim, index, value) */
tn_status tni_run_scatter_value(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    scatter s;
    if (!begin(&s, &tmp, "tn_scatter_value", args, NULL))
        return tni_temps_return(&tmp, NULL, rets);
    if (s.is_empty)
        return tni_return(rets, tni_clone(tni_arg_tensor(&args[0])));
    tn_tensor *written = touched_by(&tmp, tni_sizes(s.self), s.dim, s.index);
    return finish(&s, &tmp, tni_own(&tmp, tni_masked_fill_scalar(s.self, written, args[3])), rets);
}

/* ---- scatter_reduce ---------------------------------------------------------------------- */

typedef tn_tensor *combine(tn_tensor *a, tn_tensor *b);

/* Each element of x with those before it in its run: after the step of 2^k elements it has those of
 * the last 2^(k+1). x has the order of the runs. */
static tn_tensor *scanned(tni_temps *tmp, const runs *r, tn_tensor *x, combine *f) {
    int64_t n = x ? x->sizes[r->dim] : 0;
    for (int64_t step = 1; x && step < n; step *= 2) {
        tni_temps part = {0};
        tn_tensor *here = tni_own(&part, tni_narrow(x, r->dim, step, n - step));
        tn_tensor *before = tni_own(&part, tni_narrow(x, r->dim, 0, n - step));
        tn_tensor *alike =
            tni_own(&part, tni_eq(tni_own(&part, tni_narrow(r->sorted, r->dim, step, n - step)),
                                  tni_own(&part, tni_narrow(r->sorted, r->dim, 0, n - step))));
        tn_tensor *both = tni_own(&part, f(here, before));
        tn_tensor *list[2] = {tni_own(&part, tni_narrow(x, r->dim, 0, step)),
                              tni_own(&part, tni_where(alike, both, here))};
        tn_tensor *next = list[0] && list[1] ? tni_own(&part, tni_cat(list, 2, r->dim)) : NULL;
        x = tni_own(tmp, tni_temps_keep(&part, next));
    }
    return x;
}

/* What the elements of each run give, at the place that the run names. */
static tn_tensor *reduced(tni_temps *tmp, const scatter *s, combine *f, bool include_self) {
    runs r = runs_of(tmp, s->index, s->dim);
    if (!r.sorted)
        return NULL;
    tn_tensor *x = tni_own(tmp, tni_gather(s->src, s->dim, r.order));
    x = scanned(tmp, &r, x, f);
    tn_tensor *number = placed(tmp, tni_sizes(s->self), &r, numbers(tmp, s->index));
    tn_tensor *value = numbered(tmp, x, number);
    if (!value)
        return NULL;
    tn_tensor *written = tni_own(tmp, tni_gt_scalar(number, tn_int(0)));
    if (include_self)
        value = tni_own(tmp, f(s->self, value));
    return tni_own(tmp, tni_where(written, value, s->self));
}

static tn_tensor *sum_or_mean(tni_temps *tmp, const scatter *s, bool is_mean, bool include_self) {
    tn_tensor *base = s->self;
    if (!include_self) {
        tn_tensor *written = touched_by(tmp, tni_sizes(base), s->dim, s->index);
        base = tni_own(tmp, tni_masked_fill_scalar(base, written, tn_int(0)));
    }
    tn_tensor *sum = tni_own(tmp, tni_scatter_add(base, s->dim, s->index, s->src));
    if (!is_mean || !sum)
        return sum;
    tn_dtype dtype = tni_is_float(sum->view.dtype) ? sum->view.dtype : TN_I64;
    tn_tensor *one = tni_own(tmp, tni_ones_like(s->index, dtype, tn_no_device()));
    tn_tensor *count =
        tni_own(tmp, include_self ? tni_ones(tni_sizes(sum), dtype, sum->device->id)
                                  : tni_zeros(tni_sizes(sum), dtype, sum->device->id));
    count = tni_own(tmp, tni_scatter_add(count, s->dim, s->index, one));
    count = tni_own(tmp, tni_clamp_min(count, tn_int(1)));
    if (tni_is_float(dtype))
        return tni_own(tmp, tni_div(sum, count));
    tn_tensor *mean = tni_own(tmp, tni_floor_divide(sum, count));
    return mean ? tni_own(tmp, tni_to_dtype(mean, sum->view.dtype)) : NULL;
}

/* scatter_reduce(self, dim, index, src, reduce, include_self) */
tn_status tni_run_scatter_reduce_two(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    scatter s;
    const char *reduce = args[4].v.string;
    bool include_self = args[5].v.boolean, is_mean = strcmp(reduce, "mean") == 0;
    if (!begin(&s, &tmp, "tn_scatter_reduce_two", args, tni_arg_tensor(&args[3])))
        return tni_temps_return(&tmp, NULL, rets);
    if (s.is_empty)
        return tni_return(rets, tni_clone(tni_arg_tensor(&args[0])));
    if (is_mean && s.self->view.dtype == TN_BOOL) {
        tni_temps_finish(&tmp);
        return tni_fail(TN_ERR_DTYPE, "tn_scatter_reduce_two: there is no mean of bool; cast self "
                                      "and src");
    }
    tn_tensor *result;
    if (is_mean || strcmp(reduce, "sum") == 0)
        result = sum_or_mean(&tmp, &s, is_mean, include_self);
    else
        result = reduced(&tmp, &s,
                         strcmp(reduce, "prod") == 0   ? tni_mul
                         : strcmp(reduce, "amax") == 0 ? tni_maximum
                                                       : tni_minimum,
                         include_self);
    return finish(&s, &tmp, result, rets);
}

/* index_reduce(self, dim, index, source, reduce, include_self) */
tn_status tni_run_index_reduce(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *index = tni_arg_tensor(&args[2]);
    tn_tensor *source = tni_arg_tensor(&args[3]);
    int32_t rank = self->view.rank;
    int32_t dim = tni_wrap_dim(args[1].v.i64, rank, "tn_index_reduce");
    if (dim < 0)
        return tni_failed();
    bool fits = source->view.rank == rank && index->view.rank <= 1;
    for (int32_t i = 0; i < rank && fits; i++)
        fits = source->sizes[i] == (i == dim ? index->view.numel : self->sizes[i]);
    if (rank == 0)
        fits = fits && index->view.numel == 1;
    if (!fits)
        return tni_fail(
            TN_ERR_SHAPE,
            "tn_index_reduce: self %s, index %s and source %s along %d; index must be a "
            "list, and source have a slice for each of its places",
            TNI_SHAPE_OF(self), TNI_SHAPE_OF(index), TNI_SHAPE_OF(source), dim);
    int64_t column[TN_MAX_RANK];
    for (int32_t i = 0; i < rank; i++)
        column[i] = i == dim ? index->view.numel : 1;
    tni_temps tmp = {0};
    tn_tensor *places = tni_own(&tmp, tni_reshape(index, tn_ints_of(column, rank)));
    places = tni_own(&tmp, tni_expand(places, tni_sizes(source)));
    return tni_temps_return(
        &tmp,
        tni_own(&tmp, tni_scatter_reduce_two(self, dim, places, source, args[4].v.string,
                                             args[5].v.boolean)),
        rets);
}

/* ---- slices ------------------------------------------------------------------------------ */

/* A list of places along dim, of rank 1, and self of rank 1 at least; negative places count from
 * the end where `wraps`. */
static bool begin_slices(scatter *s, tni_temps *tmp, const char *call, const tn_cell *args,
                         bool wraps) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *index = tni_arg_tensor(&args[2]);
    *s = (scatter){.shape = tni_sizes(self), .is_empty = index->view.numel == 0};
    s->dim = tni_wrap_dim(args[1].v.i64, self->view.rank, call);
    if (s->dim < 0)
        return false;
    index = tni_whole_index(tmp, index, call, "index");
    if (!index)
        return false;
    if (index->view.rank > 1) {
        tni_fail(TN_ERR_SHAPE, "%s: index must be of rank 0 or 1, but is %s", call,
                 TNI_SHAPE_OF(index));
        return false;
    }
    s->self = lifted(tmp, self);
    s->index = lifted(tmp, index);
    if (!s->self || !s->index || !has_places(call, s))
        return false;
    if (wraps)
        s->index = tni_own(tmp, tni_wrap_places(s->index, s->self->sizes[s->dim]));
    return s->index != NULL;
}

/* Places with negative ones counted from the end; those below that stay negative. */
tn_tensor *tni_wrap_places(tn_tensor *index, int64_t size) {
    tni_temps tmp = {0};
    tn_tensor *wrapped = tni_own(&tmp, tni_add_scalar(index, tn_int(size), tn_int(1)));
    tn_tensor *negative = tni_own(&tmp, tni_lt_scalar(index, tn_int(0)));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_where(negative, wrapped, index)));
}

/* index_fill(self, dim, index, value) */
tn_status tni_run_index_fill_int_scalar(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    scatter s;
    if (!begin_slices(&s, &tmp, "tn_index_fill_int_scalar", args, true))
        return tni_temps_return(&tmp, NULL, rets);
    tn_ints size = TN_SHAPE(s.self->sizes[s.dim]);
    tn_tensor *written = s.is_empty ? tni_own(&tmp, tni_zeros(size, TN_BOOL, s.self->device->id))
                                    : touched_by(&tmp, size, 0, s.index);
    written = tni_along(&tmp, written, s.dim, s.self->view.rank);
    return finish(&s, &tmp, tni_own(&tmp, tni_masked_fill_scalar(s.self, written, args[3])), rets);
}

/* index_copy(self, dim, index, source) */
tn_status tni_run_index_copy(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    scatter s;
    tn_tensor *self = tni_arg_tensor(&args[0]), *given = tni_arg_tensor(&args[3]);
    if (!begin_slices(&s, &tmp, "tn_index_copy", args, false))
        return tni_temps_return(&tmp, NULL, rets);
    tn_tensor *source = lifted(&tmp, given);
    bool fits = source && source->view.rank == s.self->view.rank;
    for (int32_t d = 0; fits && d < source->view.rank; d++)
        fits = source->sizes[d] == (d == s.dim ? s.index->view.numel : s.self->sizes[d]);
    if (!fits || given->view.dtype != self->view.dtype) {
        tni_temps_finish(&tmp);
        return fits ? tni_fail(TN_ERR_DTYPE,
                               "tn_index_copy: source is %s, but self is %s; they must be equal",
                               tn_dtype_name(given->view.dtype), tn_dtype_name(self->view.dtype))
                    : tni_fail(TN_ERR_SHAPE,
                               "tn_index_copy: source %s must be shaped like self %s, with the "
                               "length of index at dimension %d",
                               TNI_SHAPE_OF(given), TNI_SHAPE_OF(self), s.dim);
    }
    if (s.is_empty) {
        tni_temps_finish(&tmp);
        return tni_return(rets, tni_clone(self));
    }
    tn_tensor *number = writers(&tmp, TN_SHAPE(s.self->sizes[s.dim]), 0, s.index);
    if (!number)
        return tni_temps_return(&tmp, NULL, rets);
    tn_tensor *place = tni_own(&tmp, tni_add_scalar(number, tn_int(-1), tn_int(1)));
    place = tni_own(&tmp, tni_clamp_min(place, tn_int(0)));
    tn_tensor *value = tni_own(&tmp, tni_index_select(source, s.dim, place));
    tn_tensor *written = tni_own(&tmp, tni_gt_scalar(number, tn_int(0)));
    written = tni_along(&tmp, written, s.dim, s.self->view.rank);
    return finish(&s, &tmp, tni_own(&tmp, tni_where(written, value, s.self)), rets);
}

/* ---- masked_scatter ---------------------------------------------------------------------- */

/* masked_scatter(self, mask, source): the running count of the mask says which element of source
 * goes where. A count beyond the last is out of range, which the device finds out. */
tn_status tni_run_masked_scatter(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *mask = tni_arg_tensor(&args[1]);
    tn_tensor *source = tni_arg_tensor(&args[2]);
    int32_t rank;
    int64_t sizes[TN_MAX_RANK];
    if (mask->view.dtype != TN_BOOL)
        return tni_fail(TN_ERR_DTYPE, "tn_masked_scatter: mask is %s; it must be bool",
                        tn_dtype_name(mask->view.dtype));
    if (source->view.dtype != self->view.dtype)
        return tni_fail(TN_ERR_DTYPE,
                        "tn_masked_scatter: source is %s, but self is %s; they must be equal",
                        tn_dtype_name(source->view.dtype), tn_dtype_name(self->view.dtype));
    if (!tni_broadcast(self->view.rank, self->sizes, mask->view.rank, mask->sizes, &rank, sizes))
        return tni_fail(TN_ERR_SHAPE, "tn_masked_scatter: shapes %s and %s do not broadcast",
                        TNI_SHAPE_OF(self), TNI_SHAPE_OF(mask));
    tni_temps tmp = {0};
    tn_ints shape = tn_ints_of(sizes, rank);
    self = tni_own(&tmp, tni_expand(self, shape));
    mask = tni_own(&tmp, tni_expand(mask, shape));
    if (!self || !mask || self->view.numel == 0)
        return tni_temps_return(&tmp, self && mask ? tni_own(&tmp, tni_clone(self)) : NULL, rets);
    tn_tensor *flat = tni_own(&tmp, tni_reshape(mask, TN_SHAPE(-1)));
    tn_tensor *count = tni_own(&tmp, tni_to_dtype(flat, TN_I64));
    count = tni_own(&tmp, tni_cumsum(count, 0, TN_DTYPE_NONE));
    bool is_empty =
        source->view.numel == 0; /* one element stands for those that are not asked for */
    tn_tensor *line =
        is_empty ? tni_own(&tmp, tni_zeros(TN_SHAPE(1), source->view.dtype, source->device->id))
                 : tni_own(&tmp, tni_reshape(source, TN_SHAPE(-1)));
    if (!is_empty)
        count = tni_own(&tmp, tni_add_scalar(count, tn_int(-1), tn_int(1)));
    tn_tensor *place =
        count ? tni_own(&tmp, tni_where(flat, count, tni_own(&tmp, tni_zero_of(count)))) : NULL;
    tn_tensor *value = tni_own(&tmp, tni_index_select(line, 0, place));
    value = tni_own(&tmp, tni_reshape(value, shape));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_where(mask, value, self)), rets);
}
