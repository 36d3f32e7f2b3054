/* Indexing by a list of tensors, one for each dimension or mask of several, as NumPy has it;
 * elements of the flattened tensor; and copies of which a view is written.
 *
 * The dimensions that are indexed are brought next to each other and joined to one, in which the
 * tensors' places count: index is index_select along it, index_put index_copy or index_add. */

#include "core/ops/functions.h"
#include "core/ops/scatter.h"

#include <string.h>

/* t on self's device, where it may come from the host if it is of rank 0; no operator that meets
 * both is called before t is asked for. */
static tn_tensor *beside(tni_temps *tmp, const char *call, const tn_tensor *self, tn_tensor *t) {
    if (t->device == self->device)
        return t;
    if (t->device->is_cpu && t->view.rank == 0)
        return tni_own(tmp, tni_to_device(t, self->device->id));
    return tni_fail_null(TN_ERR_DEVICE,
                         "%s: tensors on %s and on %s cannot be mixed; move one with tn_to_device",
                         call, self->device->name, t->device->name);
}

/* ---- the list ---------------------------------------------------------------------------- */

typedef struct plan {
    const char *call;
    tn_tensor *self;                 /* with a dimension of one for each mask of rank 0 */
    tn_tensor *columns[TN_MAX_RANK]; /* places in each of its dimensions; NULL: all are kept */
    bool is_sure[TN_MAX_RANK];       /* of a mask: places that there are */
    int32_t rank;                    /* of self */
    int32_t order[TN_MAX_RANK];      /* its dimensions, those with columns next to each other */
    int64_t moved[TN_MAX_RANK];      /* their sizes in that order */
    int32_t at, n_indexed;           /* where in the order the columns begin, how many there are */
    int64_t broadcast[TN_MAX_RANK];  /* shape of the columns */
    int32_t broadcast_rank;
    int64_t shape[TN_MAX_RANK]; /* of the result */
    int32_t shape_rank;
    int64_t joined[TN_MAX_RANK]; /* moved, with one dimension for those that are indexed */
    int32_t joined_rank;
    tn_tensor *place; /* [n] in that dimension */
} plan;

static bool refuse(const plan *p, tn_status status, const char *why, uint32_t i,
                   const tn_tensor *t) {
    tni_fail(status, "%s: element %u of indices, %s%s, %s self %s", p->call, i,
             tn_dtype_name(t->view.dtype), TNI_SHAPE_OF(t), why, TNI_SHAPE_OF(p->self));
    return false;
}

/* A mask over dimensions from d on: one column for each of them. */
static bool add_mask(plan *p, tni_temps *tmp, uint32_t i, tn_tensor *mask, int32_t *d) {
    bool fits = *d + mask->view.rank <= p->self->view.rank;
    for (int32_t k = 0; fits && k < mask->view.rank; k++)
        fits = mask->sizes[k] == p->self->sizes[*d + k];
    if (!fits)
        return refuse(p, TN_ERR_SHAPE, "is no mask of the dimensions it stands at in", i, mask);
    int32_t n = mask->view.rank ? mask->view.rank : 1;
    tn_tensor *outs[TN_MAX_RANK] = {NULL};
    if (mask->view.rank == 0) /* all or nothing, along a new dimension */
        p->self = tni_own(tmp, tni_unsqueeze(p->self, *d));
    if (!p->self || tni_nonzero_numpy(mask, outs, (uint64_t)n) != TN_OK)
        return false;
    bool made = true;
    for (int32_t k = 0; k < n; k++) {
        p->columns[*d + k] = tni_own(tmp, outs[k]);
        p->is_sure[*d + k] = true;
        made &= p->columns[*d + k] != NULL;
    }
    *d += n;
    return made;
}

static bool add_columns(plan *p, tni_temps *tmp, tn_tensor *const *list, uint32_t n) {
    int32_t d = 0;
    for (uint32_t i = 0; i < n; i++) {
        tn_tensor *t = list[i];
        if (!t) {
            d++;
            continue;
        }
        t = beside(tmp, p->call, p->self, t);
        if (!t)
            return false;
        if (t->view.dtype == TN_BOOL) {
            if (!add_mask(p, tmp, i, t, &d))
                return false;
            continue;
        }
        bool is_unsigned = tni_is_storage_dtype(t->view.dtype) && !tni_is_complex(t->view.dtype);
        if (t->view.dtype != TN_I64 && t->view.dtype != TN_I32 && !is_unsigned)
            return refuse(p, TN_ERR_DTYPE, "must be i64, i32 or a mask of bool to index", i, t);
        if (d >= p->self->view.rank)
            return refuse(p, TN_ERR_SHAPE, "has no dimension left in", i, t);
        p->columns[d++] = tni_whole_index(tmp, t, p->call, "an index");
        if (!p->columns[d - 1])
            return false;
    }
    if (d <= p->self->view.rank)
        return true;
    tni_fail(TN_ERR_SHAPE, "%s: indices are for %d dimensions, but self has %d", p->call, d,
             p->self->view.rank);
    return false;
}

/* ---- the order of dimensions, and shapes ------------------------------------------------- */

static bool broadcast_columns(plan *p) {
    int64_t sizes[TN_MAX_RANK];
    for (int32_t d = 0; d < p->rank; d++) {
        const tn_tensor *t = p->columns[d];
        if (t && !tni_broadcast(t->view.rank, t->sizes, p->broadcast_rank, p->broadcast,
                                &p->broadcast_rank, sizes)) {
            tni_fail(TN_ERR_SHAPE, "%s: the shapes of indices, %s and %s, do not broadcast",
                     p->call, TNI_SHAPE_OF_SIZES(p->broadcast_rank, p->broadcast), TNI_SHAPE_OF(t));
            return false;
        }
        if (t)
            memcpy(p->broadcast, sizes, sizeof sizes);
    }
    return true;
}

/* Indexed dimensions next to each other stay in place, else they go first. */
static void order_dims(plan *p) {
    int32_t first = -1, last = -1, n = 0;
    for (int32_t d = 0; d < p->rank; d++) {
        if (!p->columns[d])
            continue;
        first = first < 0 ? d : first;
        last = d;
        p->n_indexed++;
    }
    bool stays = last - first + 1 == p->n_indexed || p->n_indexed == 0;
    for (int32_t d = 0; !stays && d < p->rank; d++)
        if (p->columns[d])
            p->order[n++] = d;
    for (int32_t d = 0; d < p->rank; d++)
        if (stays || !p->columns[d])
            p->order[n++] = d;
    p->at = stays && first > 0 ? first : 0;
}

static bool shape_result(plan *p) {
    int64_t total = 1;
    p->shape_rank = p->rank - p->n_indexed + p->broadcast_rank;
    if (p->shape_rank > TN_MAX_RANK) {
        tni_fail(TN_ERR_SHAPE, "%s: the result would have %d dimensions; there are %d at most",
                 p->call, p->shape_rank, TN_MAX_RANK);
        return false;
    }
    int32_t n = 0, j = 0;
    for (int32_t i = 0; i < p->rank; i++) {
        int64_t size = p->moved[i] = p->self->sizes[p->order[i]];
        if (i == p->at && p->n_indexed) {
            for (int32_t k = 0; k < p->broadcast_rank; k++)
                p->shape[n++] = p->broadcast[k];
            p->joined[j++] = 1;
        }
        if (i >= p->at && i < p->at + p->n_indexed)
            total *= size;
        else
            p->shape[n++] = p->joined[j++] = size;
    }
    p->joined_rank = j;
    if (p->n_indexed)
        p->joined[p->at] = total;
    return true;
}

/* Places in the joined dimension. One that is out of range in its own dimension would be another's
 * place there, and so becomes one that is out of range for all. */
static bool join_columns(plan *p, tni_temps *tmp) {
    tn_tensor *place = NULL, *bad = NULL;
    int64_t stride = 1;
    for (int32_t i = p->at + p->n_indexed - 1; i >= p->at; i--) {
        int32_t d = p->order[i];
        tn_tensor *column = p->columns[d];
        if (!p->is_sure[d]) {
            column = tni_own(tmp, tni_wrap_places(column, p->moved[i]));
            if (!column)
                return false;
            if (p->n_indexed > 1) {
                tn_tensor *low = tni_own(tmp, tni_lt_scalar(column, tn_int(0)));
                tn_tensor *high = tni_own(tmp, tni_ge_scalar(column, tn_int(p->moved[i])));
                tn_tensor *out = tni_own(tmp, tni_bitwise_or(low, high));
                bad = bad ? tni_own(tmp, tni_bitwise_or(bad, out)) : out;
                if (!bad)
                    return false;
            }
        }
        if (stride != 1)
            column = tni_own(tmp, tni_mul_scalar(column, tn_int(stride)));
        place = place ? tni_own(tmp, tni_add(place, column, tn_int(1))) : column;
        if (!place)
            return false;
        stride *= p->moved[i];
    }
    if (bad) {
        tn_tensor *beyond = tni_own(
            tmp, tni_full(TN_SCALAR_SHAPE, tn_int(p->joined[p->at]), TN_I64, p->self->device->id));
        place = tni_own(tmp, tni_where(bad, beyond, place));
    }
    p->place = tni_own(tmp, tni_reshape(place, TN_SHAPE(-1)));
    return p->place != NULL;
}

static bool make_plan(plan *p, tni_temps *tmp, const char *call, const tn_cell *args) {
    uint32_t n;
    tn_tensor *const *list = tni_arg_tensors(&args[1], &n);
    *p = (plan){.call = call, .self = tni_arg_tensor(&args[0])};
    if (!add_columns(p, tmp, list, n))
        return false;
    p->rank = p->self->view.rank;
    order_dims(p);
    if (!broadcast_columns(p) || !shape_result(p))
        return false;
    if (p->n_indexed == 0)
        return true;
    if (!join_columns(p, tmp))
        return false;
    if (p->joined[p->at] > 0 || p->place->view.numel == 0)
        return true;
    tni_fail(TN_ERR_INDEX_OUT_OF_RANGE,
             "%s: a dimension that is indexed has no elements, so that no index is in range", call);
    return false;
}

static bool is_in_order(const plan *p) {
    for (int32_t i = 0; i < p->rank; i++)
        if (p->order[i] != i)
            return false;
    return true;
}

/* self with the indexed dimensions joined. */
static tn_tensor *joined(const plan *p, tni_temps *tmp) {
    int64_t order[TN_MAX_RANK];
    for (int32_t i = 0; i < p->rank; i++)
        order[i] = p->order[i];
    tn_tensor *x = p->self;
    if (!is_in_order(p))
        x = tni_own(tmp, tni_permute(x, tn_ints_of(order, p->rank)));
    return tni_own(tmp, tni_reshape(x, tn_ints_of(p->joined, p->joined_rank)));
}

/* ---- index and index_put ----------------------------------------------------------------- */

/* index(self, indices) */
tn_status tni_run_index(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    plan p;
    if (!make_plan(&p, &tmp, "tn_index", args))
        return tni_temps_return(&tmp, NULL, rets);
    if (p.n_indexed == 0)
        return tni_temps_return(&tmp, tni_own(&tmp, tni_clone(p.self)), rets);
    tn_tensor *x = tni_own(&tmp, tni_index_select(joined(&p, &tmp), p.at, p.place));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_reshape(x, tn_ints_of(p.shape, p.shape_rank))),
                            rets);
}

/* x [joined] with values at the places; sums of bool are `or`. */
static tn_tensor *put(const plan *p, tni_temps *tmp, tn_tensor *x, tn_tensor *values,
                      bool accumulate) {
    if (!x || !values)
        return NULL;
    if (!accumulate)
        return p->place ? tni_own(tmp, tni_index_copy(x, p->at, p->place, values)) : values;
    bool is_bool = x->view.dtype == TN_BOOL;
    if (is_bool) {
        x = tni_own(tmp, tni_to_dtype(x, TN_I64));
        values = tni_own(tmp, tni_to_dtype(values, TN_I64));
    }
    x = tni_own(tmp, p->place ? tni_index_add(x, p->at, p->place, values, tn_int(1))
                              : tni_add(x, values, tn_int(1)));
    return is_bool && x ? tni_own(tmp, tni_ne_scalar(x, tn_int(0))) : x;
}

/* index_put(self, indices, values, accumulate) */
tn_status tni_run_index_put(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *given = tni_arg_tensor(&args[2]);
    if (given->view.dtype != self->view.dtype)
        return tni_fail(TN_ERR_DTYPE,
                        "tn_index_put: values are %s, but self is %s; they must be equal",
                        tn_dtype_name(given->view.dtype), tn_dtype_name(self->view.dtype));
    tni_temps tmp = {0};
    plan p;
    if (!make_plan(&p, &tmp, "tn_index_put", args))
        return tni_temps_return(&tmp, NULL, rets);
    int32_t rank;
    int64_t sizes[TN_MAX_RANK];
    bool fits = tni_broadcast(given->view.rank, given->sizes, p.shape_rank, p.shape, &rank, sizes);
    if (!fits || rank != p.shape_rank ||
        memcmp(sizes, p.shape, (size_t)rank * sizeof *sizes) != 0) {
        tni_temps_finish(&tmp);
        return tni_fail(TN_ERR_SHAPE,
                        "tn_index_put: values %s do not broadcast to %s, the shape of what is "
                        "written",
                        TNI_SHAPE_OF(given), TNI_SHAPE_OF_SIZES(p.shape_rank, p.shape));
    }
    tn_tensor *values = beside(&tmp, "tn_index_put", self, given);
    values = tni_own(&tmp, tni_expand(values, tn_ints_of(p.shape, p.shape_rank)));
    memcpy(sizes, p.joined, sizeof sizes);
    if (p.place)
        sizes[p.at] = p.place->view.numel;
    values = tni_own(&tmp, tni_reshape(values, tn_ints_of(sizes, p.joined_rank)));
    tn_tensor *x = put(&p, &tmp, joined(&p, &tmp), values, args[3].v.boolean);
    if (x && !is_in_order(&p)) {
        int64_t back[TN_MAX_RANK];
        for (int32_t i = 0; i < p.rank; i++)
            back[p.order[i]] = i;
        x = tni_own(&tmp, tni_reshape(x, tn_ints_of(p.moved, p.rank)));
        x = tni_own(&tmp, tni_permute(x, tn_ints_of(back, p.rank)));
    }
    x = tni_own(&tmp, tni_reshape(x, tni_sizes(self)));
    /* without places x may be a view of the values */
    bool is_fresh = p.place || args[3].v.boolean;
    x = x ? tni_own(&tmp, is_fresh ? tni_contiguous(x) : tni_clone(x)) : NULL;
    return tni_temps_return(&tmp, x, rets);
}

/* ---- take -------------------------------------------------------------------------------- */

/* take(self, index) */
tn_status tni_run_take(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *index = tni_arg_tensor(&args[1]);
    tni_temps tmp = {0};
    index = tni_whole_index(&tmp, index, "tn_take", "index");
    if (!index)
        return tni_temps_return(&tmp, NULL, rets);
    tn_tensor *flat = tni_own(&tmp, tni_reshape(self, TN_SHAPE(-1)));
    tn_tensor *place = tni_own(&tmp, tni_wrap_places(index, self->view.numel));
    place = tni_own(&tmp, tni_reshape(place, TN_SHAPE(-1)));
    tn_tensor *taken = tni_own(&tmp, tni_index_select(flat, 0, place));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_reshape(taken, tni_sizes(index))), rets);
}

/* take_along_dim(self, indices, dim): gather, self and indices broadcast against each other but for
 * dim. */
tn_status tni_run_take_along_dim(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *index = tni_arg_tensor(&args[1]);
    tni_temps tmp = {0};
    index = tni_whole_index(&tmp, index, "tn_take_along_dim", "indices");
    if (!index)
        return tni_temps_return(&tmp, NULL, rets);
    if (args[2].tag == TN_CELL_NONE || self->view.rank + index->view.rank == 0) {
        tn_tensor *flat = tni_own(&tmp, tni_reshape(self, TN_SHAPE(-1)));
        tn_tensor *place = tni_own(&tmp, tni_reshape(index, TN_SHAPE(-1)));
        place = place ? tni_own(&tmp, tni_wrap_places(place, self->view.numel)) : NULL;
        if (args[2].tag != TN_CELL_NONE && tni_wrap_dim(args[2].v.i64, 0, "tn_take_along_dim") < 0)
            flat = NULL;
        tn_tensor *taken = tni_own(&tmp, tni_index_select(flat, 0, place));
        if (args[2].tag != TN_CELL_NONE)
            taken = tni_own(&tmp, tni_reshape(taken, TN_SCALAR_SHAPE));
        return tni_temps_return(&tmp, taken, rets);
    }
    int32_t rank = self->view.rank, dim = tni_wrap_dim(args[2].v.i64, rank, "tn_take_along_dim");
    if (dim < 0)
        return tni_temps_return(&tmp, NULL, rets);
    int64_t of_self[TN_MAX_RANK], of_index[TN_MAX_RANK], common[TN_MAX_RANK];
    bool fits = rank > 0 && index->view.rank == rank;
    if (fits) {
        memcpy(of_self, self->sizes, (size_t)rank * sizeof *of_self);
        memcpy(of_index, index->sizes, (size_t)rank * sizeof *of_index);
        of_self[dim] = of_index[dim] = 1;
        fits = tni_broadcast(rank, of_self, rank, of_index, &rank, common);
    }
    if (!fits) {
        tni_fail(TN_ERR_SHAPE,
                 "tn_take_along_dim: indices %s must have as many dimensions as self %s and "
                 "broadcast with it but for dim",
                 TNI_SHAPE_OF(index), TNI_SHAPE_OF(self));
        return tni_temps_return(&tmp, NULL, rets);
    }
    common[dim] = self->sizes[dim];
    tn_tensor *wide = tni_own(&tmp, tni_expand(self, tn_ints_of(common, rank)));
    common[dim] = index->sizes[dim];
    index = tni_own(&tmp, tni_expand(index, tn_ints_of(common, rank)));
    index = index ? tni_own(&tmp, tni_wrap_places(index, self->sizes[dim])) : NULL;
    return tni_temps_return(&tmp, tni_own(&tmp, tni_gather(wide, dim, index)), rets);
}

/* ---- into a view ------------------------------------------------------------------------- */

/* A copy of self whose part `part` (a view of it, owned) is src. */
static tn_status written_view(const char *call, tn_tensor *copy, tn_tensor *part, tn_tensor *src,
                              tn_cell *rets) {
    tni_temps tmp = {0};
    copy = tni_own(&tmp, copy);
    part = tni_own(&tmp, part);
    if (part && !tni_same_shape(part, src)) {
        tni_fail(TN_ERR_SHAPE, "%s: src is %s, but the part of self is %s; they must be equal",
                 call, TNI_SHAPE_OF(src), TNI_SHAPE_OF(part));
        part = NULL;
    }
    if (part && tni_check_keeps_imaginary(call, "src", src, copy) != TN_OK)
        part = NULL;
    src = part ? beside(&tmp, call, copy, src) : NULL;
    tn_tensor *written = src ? tni_own(&tmp, tni_copy_(part, src, false)) : NULL;
    return tni_temps_return(&tmp, written ? copy : NULL, rets);
}

/* select_scatter(self, src, dim, index) */
tn_status tni_run_select_scatter(const tn_cell *args, tn_cell *rets) {
    tn_tensor *copy = tni_clone(tni_arg_tensor(&args[0]));
    tn_tensor *part = copy ? tni_select(copy, args[2].v.i64, args[3].v.i64) : NULL;
    return written_view("tn_select_scatter", copy, part, tni_arg_tensor(&args[1]), rets);
}

/* slice_scatter(self, src, dim, start, end, step) */
tn_status tni_run_slice_scatter(const tn_cell *args, tn_cell *rets) {
    tn_tensor *copy = tni_clone(tni_arg_tensor(&args[0]));
    tn_tensor *part = copy ? tni_slice(copy, args[2].v.i64, tni_arg_int(&args[3]),
                                       tni_arg_int(&args[4]), args[5].v.i64)
                           : NULL;
    return written_view("tn_slice_scatter", copy, part, tni_arg_tensor(&args[1]), rets);
}

/* diagonal_scatter(self, src, offset, dim1, dim2) */
tn_status tni_run_diagonal_scatter(const tn_cell *args, tn_cell *rets) {
    tn_tensor *copy = tni_clone(tni_arg_tensor(&args[0]));
    tn_tensor *part = copy ? tni_diagonal(copy, args[2].v.i64, args[3].v.i64, args[4].v.i64) : NULL;
    return written_view("tn_diagonal_scatter", copy, part, tni_arg_tensor(&args[1]), rets);
}
