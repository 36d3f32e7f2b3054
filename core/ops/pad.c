/* Padding, and what moves whole slices: flip, roll, repeat. */
#include "base/alloc.h"
#include "core/ops/dims.h"
#include "core/ops/functions.h"
#include "core/ops/resample.h"
#include "core/ops/window.h"

/* ---- slices in another order ------------------------------------------------------------- */

/* x as a result: a copy where it is self, or shows self's elements as they lie. */
static tn_status return_fresh(tni_temps *tmp, tn_tensor *x, const tn_tensor *self, tn_cell *rets) {
    if (x && x->storage == self->storage)
        x = tni_own(tmp, tni_clone(x));
    return tni_temps_return(tmp, x, rets);
}

/* flip(self, dims) */
tn_status tni_run_flip(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *x = self;
    tn_ints dims = tni_arg_ints(&args[1]);
    uint32_t mask = 0;
    if (dims.n > 0 && !tni_reduce_mask(dims, self->view.rank, "tn_flip", &mask))
        return tni_failed();
    tni_temps tmp = {0};
    for (int32_t d = 0; d < self->view.rank && x; d++) {
        if (!(mask & 1u << d) || self->sizes[d] < 2)
            continue;
        tn_tensor *from_end = tni_own(&tmp, tni_arange_start(tn_int(self->sizes[d] - 1), tn_int(-1),
                                                             tn_int(-1), TN_I64, self->device->id));
        x = tni_then(&tmp, tni_index_select(x, d, from_end), x);
    }
    return return_fresh(&tmp, x, self, rets);
}

/* The last `shift` slices of x before the others. */
static tn_tensor *rolled(tni_temps *tmp, tn_tensor *x, int32_t dim, int64_t shift) {
    int64_t n = x->sizes[dim];
    shift = n ? shift % n : 0;
    shift += shift < 0 ? n : 0;
    if (shift == 0)
        return x;
    tn_tensor *parts[2] = {tni_own(tmp, tni_narrow(x, dim, n - shift, shift)),
                           tni_own(tmp, tni_narrow(x, dim, 0, n - shift))};
    return parts[0] && parts[1] ? tni_then(tmp, tni_cat(parts, 2, dim), x) : NULL;
}

/* roll(self, shifts, dims) */
tn_status tni_run_roll(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints shifts = tni_arg_ints(&args[1]), dims = tni_arg_ints(&args[2]);
    bool is_flat = dims.n <= 0 && shifts.n == 1;
    if (shifts.n < 1 || (!is_flat && shifts.n != dims.n))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_roll: shifts has %lld values and dims has %lld; give a shift for each "
                        "dimension, or one shift and no dimension",
                        (long long)shifts.n, (long long)(dims.n < 0 ? 0 : dims.n));
    if (!is_flat && self->view.rank == 0)
        return tni_fail(TN_ERR_SHAPE, "tn_roll: self has no dimensions to roll");
    for (int64_t i = 0; i < dims.n; i++)
        if (tni_wrap_dim(dims.data[i], self->view.rank, "tn_roll: dims") < 0)
            return tni_failed();
    tni_temps tmp = {0};
    tn_tensor *x = is_flat ? tni_own(&tmp, tni_reshape(self, TN_SHAPE(self->view.numel))) : self;
    for (int64_t i = 0; i < shifts.n && x; i++)
        x = rolled(&tmp, x,
                   is_flat ? 0 : tni_wrap_dim(dims.data[i], self->view.rank, "tn_roll: dims"),
                   shifts.data[i]);
    if (is_flat && x)
        x = tni_own(&tmp, tni_reshape(x, tni_sizes(self)));
    return return_fresh(&tmp, x, self, rets);
}

/* x, of shape `sizes` once 1 is put before it, repeated along dimensions [first, end); the
 * others are merged. Each of these is shown as two, of which the front one has no stride. */
static tn_tensor *repeated(tni_temps *tmp, tn_tensor *x, tn_ints repeats, int64_t *sizes,
                           int64_t first, int64_t end) {
    int64_t before[TN_MAX_RANK] = {1, 1}, after[TN_MAX_RANK], n = 1;
    for (int64_t d = 0; d < first; d++)
        before[0] *= sizes[d];
    after[0] = before[0];
    for (int64_t d = first; d < end; d++) {
        if (repeats.data[d] != 1) {
            before[n] = 1;
            after[n++] = repeats.data[d];
        }
        if (sizes[d] != 1) {
            before[n] = sizes[d];
            after[n++] = sizes[d];
        }
        sizes[d] *= repeats.data[d];
    }
    before[n] = 1;
    for (int64_t d = end; d < repeats.n; d++)
        before[n] *= sizes[d];
    after[n] = before[n];
    x = tni_own(tmp, tni_reshape(x, tn_ints_of(before, n + 1)));
    x = tni_own(tmp, tni_expand(x, tn_ints_of(after, n + 1)));
    x = tni_own(tmp, tni_clone(x));
    return tni_own(tmp, tni_reshape(x, tn_ints_of(sizes, repeats.n)));
}

/* repeat(self, repeats) */
tn_status tni_run_repeat(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints repeats = tni_arg_ints(&args[1]);
    int64_t lead = repeats.n - self->view.rank, sizes[TN_MAX_RANK], total[TN_MAX_RANK], numel;
    if (lead < 0 || repeats.n > TN_MAX_RANK)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_repeat: repeats has %lld values; it must have at least one for each of "
                        "the %d dimensions of self, and at most %d",
                        (long long)repeats.n, self->view.rank, TN_MAX_RANK);
    bool fits = true;
    for (int64_t d = 0; d < repeats.n; d++) {
        if (repeats.data[d] < 0)
            return tni_fail(TN_ERR_INVALID_ARGUMENT,
                            "tn_repeat: repeats is %s; none may be negative",
                            TNI_SHAPE_OF_INTS(repeats));
        sizes[d] = d < lead ? 1 : self->sizes[d - lead];
        fits &= tni_mul_i64(sizes[d], repeats.data[d], &total[d]);
    }
    if (!fits || !tni_numel((int32_t)repeats.n, total, tni_dtype_size(self->view.dtype), &numel))
        return tni_fail(TN_ERR_SHAPE,
                        "tn_repeat: self %s repeated %s has more elements than can be counted",
                        TNI_SHAPE_OF(self), TNI_SHAPE_OF_INTS(repeats));
    tni_temps tmp = {0};
    tn_tensor *x = self;
    /* as many dimensions at once as can be shown as two */
    for (int64_t end = repeats.n, first; x && (end > 0 || x == self); end = first) {
        int64_t shown = 2; /* what is before and behind */
        for (first = end; first > 0 && shown + 2 <= TN_MAX_RANK; first--)
            shown += (repeats.data[first - 1] != 1) + (sizes[first - 1] != 1);
        x = repeated(&tmp, x, repeats, sizes, first, end);
    }
    return tni_temps_return(&tmp, x, rets);
}

/* ---- a constant around ------------------------------------------------------------------- */

/* What of self a pad of pairs, from the last dimension on, leaves (start, length) and what it
 * makes of its sizes (start of that, length); pads below zero crop. */
typedef struct placement {
    int64_t from[TN_MAX_RANK], to[TN_MAX_RANK], length[TN_MAX_RANK], sizes[TN_MAX_RANK];
} placement;

static tn_status place(const tn_tensor *self, tn_ints pad, placement *p) {
    if (pad.n % 2 || pad.n > 2 * (int64_t)self->view.rank)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_constant_pad_nd: pad has %lld values; it has two for each dimension, "
                        "from the last on, and self has %d dimensions",
                        (long long)pad.n, self->view.rank);
    for (int32_t d = 0; d < self->view.rank; d++) {
        int64_t pair = 2 * (int64_t)(self->view.rank - 1 - d);
        int64_t low = pair < pad.n ? pad.data[pair] : 0;
        int64_t high = pair < pad.n ? pad.data[pair + 1] : 0;
        int64_t rest = self->sizes[d] + (low < 0 ? low : 0);
        if (rest >= 0)
            rest += high < 0 ? high : 0;
        if (rest < 0)
            return tni_fail(TN_ERR_INVALID_ARGUMENT,
                            "tn_constant_pad_nd: pad (%lld, %lld) crops more of dimension %d than "
                            "self %s has",
                            (long long)low, (long long)high, d, TNI_SHAPE_OF(self));
        p->from[d] = low < 0 ? -low : 0;
        p->to[d] = low > 0 ? low : 0;
        p->length[d] = rest;
        if (!tni_add_i64(rest, p->to[d], &p->sizes[d]) ||
            !tni_add_i64(p->sizes[d], high > 0 ? high : 0, &p->sizes[d]))
            return tni_fail(TN_ERR_SHAPE,
                            "tn_constant_pad_nd: pad (%lld, %lld) makes dimension %d of self %s "
                            "longer than can be counted",
                            (long long)low, (long long)high, d, TNI_SHAPE_OF(self));
    }
    return TN_OK;
}

/* `length` elements of t along each dimension, from `start`; a view of data. */
static tn_tensor *part(tn_tensor *t, const int64_t *start, const int64_t *length) {
    int64_t offset = 0;
    for (int32_t d = 0; d < t->view.rank; d++)
        offset += start[d] * t->strides[d];
    return tni_data_view(t, tn_ints_of(length, t->view.rank), tn_ints_of(t->strides, t->view.rank),
                         offset);
}

/* constant_pad_nd(self, pad, value), below autograd, on data */
tn_status tni_run_constant_pad_nd(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    placement p;
    TNI_TRY(place(self, tni_arg_ints(&args[1]), &p));
    tni_temps tmp = {0};
    tn_tensor *out =
        tni_own(&tmp, tni_tensor_new(self->device, self->view.dtype, self->view.rank, p.sizes));
    bool is_empty = false, is_same = true;
    for (int32_t d = 0; d < self->view.rank; d++) {
        is_empty |= p.length[d] == 0;
        is_same &= p.length[d] == p.sizes[d];
    }
    if (out && !is_same && tni_fill_data(out, args[2]) != TN_OK)
        out = NULL;
    if (out && !is_empty) {
        tn_tensor *inner = tni_own(&tmp, part(out, p.to, p.length));
        tn_tensor *kept = tni_own(&tmp, part(self, p.from, p.length));
        if (!inner || !kept || tni_copy_data(inner, kept) != TN_OK)
            out = NULL;
    }
    return tni_temps_return(&tmp, out, rets);
}

/* The gradient by self: what was put around is cropped, and what was cropped has none. */
tn_tensor *tni_constant_pad_nd_backward(tn_tensor *grad, tn_ints pad) {
    int64_t back[2 * TN_MAX_RANK];
    for (int64_t i = 0; i < pad.n; i++)
        back[i] = -pad.data[i];
    return grad ? tni_constant_pad_nd(grad, tn_ints_of(back, pad.n), tn_int(0)) : NULL;
}

/* ---- elements around --------------------------------------------------------------------- */

/* Where each of n + low + high elements is taken from: of what lies outside, the nearest or the
 * mirrored. */
static void fill_places(int64_t *table, int64_t out, int64_t n, int64_t low, bool reflects) {
    for (int64_t j = 0; j < out; j++) {
        int64_t i = j - low;
        if (i < 0)
            i = reflects ? -i : 0;
        table[j] = i < n ? i : reflects ? n - 1 - (i - (n - 1)) : n - 1;
    }
}

static tn_status check_pad(const char *call, const tn_tensor *self, tn_ints padding, int32_t n_dims,
                           bool reflects, int64_t *out) {
    static const char *const shapes[] = {"[N, C, W] or [C, W]", "[N, C, H, W] or [C, H, W]",
                                         "[N, C, D, H, W] or [C, D, H, W]"};
    int64_t limit = INT64_C(1) << 60; /* so that places do not overflow */
    int32_t rank = self->view.rank;
    bool fits = rank == n_dims + 1 || rank == n_dims + 2;
    for (int32_t d = rank == n_dims + 2; fits && d < rank; d++)
        fits = self->sizes[d] > 0;
    if (!fits)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: self must be %s, where N alone may be 0, but has shape %s", call,
                        shapes[n_dims - 1], TNI_SHAPE_OF_SIZES(rank, self->sizes));
    if (padding.n != 2 * (int64_t)n_dims)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: padding has %lld values; it must have %d, two for each dimension from "
                        "the last on",
                        call, (long long)(padding.n < 0 ? 0 : padding.n), 2 * n_dims);
    for (int32_t k = 0; k < n_dims; k++) {
        int64_t low = padding.data[2 * k], high = padding.data[2 * k + 1];
        int64_t n = self->sizes[rank - 1 - k];
        if (low < -limit || high < -limit || low > limit || high > limit)
            return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: padding (%lld, %lld) is too large", call,
                            (long long)low, (long long)high);
        if (reflects && (low >= n || high >= n))
            return tni_fail(TN_ERR_INVALID_ARGUMENT,
                            "%s: padding (%lld, %lld) of dimension %d must be less than its length "
                            "of %lld, for no element is mirrored twice",
                            call, (long long)low, (long long)high, rank - 1 - k, (long long)n);
        if (!tni_add_i64(n, low + high, &out[k]) || out[k] < 1)
            return tni_fail(TN_ERR_SHAPE,
                            "%s: padding (%lld, %lld) leaves nothing of dimension %d of self %s, "
                            "or makes it longer than can be counted",
                            call, (long long)low, (long long)high, rank - 1 - k,
                            TNI_SHAPE_OF_SIZES(rank, self->sizes));
    }
    return TN_OK;
}

/* (self, padding) over the last n_dims dimensions */
tn_status tni_run_pad_with_own(const char *call, const tn_cell *args, tn_cell *rets, int64_t dims,
                               bool reflects) {
    int32_t n_dims = (int32_t)dims;
    tn_tensor *self = tni_arg_tensor(&args[0]), *x = self;
    tn_ints padding = tni_arg_ints(&args[1]);
    int64_t out[3], total = 0;
    TNI_TRY(check_pad(call, self, padding, n_dims, reflects, out));
    bool counts = true;
    for (int32_t k = 0; k < n_dims; k++)
        counts &= tni_add_i64(total, out[k], &total);
    int64_t *table = tni_new_table(self->device, TN_I64, counts ? total : INT64_MAX, sizeof *table);
    if (!table)
        return tni_failed();
    int64_t start[3], at = 0;
    for (int32_t k = 0; k < n_dims; at += out[k++]) {
        start[k] = at;
        fill_places(table + at, out[k], self->sizes[self->view.rank - 1 - k], padding.data[2 * k],
                    reflects);
    }
    tni_temps tmp = {0};
    tn_tensor *places = tni_own(&tmp, tni_table(self->device, TN_I64, TN_SHAPE(total), table,
                                                (uint64_t)total * sizeof *table));
    tni_free(table);
    for (int32_t k = 0; k < n_dims && places && x; k++) {
        if (padding.data[2 * k] == 0 && padding.data[2 * k + 1] == 0)
            continue;
        tn_tensor *along = tni_own(&tmp, tni_narrow(places, 0, start[k], out[k]));
        x = tni_then(&tmp, tni_index_select(x, self->view.rank - 1 - k, along), x);
    }
    return return_fresh(&tmp, places ? x : NULL, self, rets);
}
