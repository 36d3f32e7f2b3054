/* Elements and slices that differ. How many there are is read from the device, once. */
#include "core/ops/functions.h"

/* Of rows [n, k] the first of each run of equal ones. `starts` [m], `run` [n]: which run each row
 * is of. */
static bool find_runs(tni_temps *tmp, tn_tensor *rows, tn_tensor **starts, tn_tensor **run) {
    int64_t n = rows->sizes[0];
    tn_device device = rows->device->id;
    tn_tensor *differs = NULL, *first = tni_own(tmp, tni_ones(TN_SHAPE(1), TN_BOOL, device));
    if (n > 1) {
        tn_tensor *after = tni_own(tmp, tni_narrow(rows, 0, 1, n - 1));
        tn_tensor *before = tni_own(tmp, tni_narrow(rows, 0, 0, n - 1));
        differs = tni_own(tmp, tni_ne(after, before));
        differs = tni_own(tmp, tni_any_dim(differs, TN_SHAPE(1), false));
        tn_tensor *parts[2] = {first, differs};
        first = first && differs ? tni_own(tmp, tni_cat(parts, 2, 0)) : NULL;
    }
    tn_tensor *places = first ? tni_own(tmp, tni_nonzero(first)) : NULL;
    *starts = tni_own(tmp, tni_reshape(places, TN_SHAPE(-1)));
    *run = tni_own(tmp, tni_to_dtype(first, TN_I64));
    *run = tni_own(tmp, tni_cumsum(*run, 0, TN_DTYPE_NONE));
    *run = tni_own(tmp, tni_add_scalar(*run, tn_int(-1), tn_int(1)));
    return *starts && *run;
}

/* How long the runs are that begin at starts, of n rows. */
static tn_tensor *lengths(tni_temps *tmp, tn_tensor *starts, int64_t n) {
    tn_tensor *end = tni_own(tmp, tni_full(TN_SHAPE(1), tn_int(n), TN_I64, starts->device->id));
    return end ? tni_own(tmp, tni_diff(starts, 1, 0, TN_NONE, end)) : NULL;
}

static tn_tensor *nothing(tni_temps *tmp, tn_tensor *self) {
    return tni_own(tmp, tni_empty(TN_SHAPE(0), TN_I64, self->device->id));
}

/* One step of row_order: `order` so far, or NULL, by column c too. */
static tn_tensor *by_column(tn_tensor *rows, int64_t c, tn_tensor *order) {
    tni_temps tmp = {0};
    tn_tensor *key = tni_own(&tmp, tni_select(rows, 1, c)), *values, *indices, *next = NULL;
    if (order)
        key = tni_own(&tmp, tni_index_select(key, 0, order));
    if (key && tni_sort(key, 0, false, &values, &indices) == TN_OK) {
        tni_own(&tmp, values);
        next = order ? tni_index_select(order, 0, tni_own(&tmp, indices)) : indices;
    }
    tni_temps_finish(&tmp);
    return next;
}

/* Rows in lexicographic order: by each column from the last on, where equal ones stay. Places. */
static tn_tensor *row_order(tni_temps *tmp, tn_tensor *rows) {
    tn_tensor *order = NULL;
    for (int64_t c = rows->sizes[1]; c-- > 0;) {
        tn_tensor *next = by_column(rows, c, order);
        tni_drop(order);
        if (!next)
            return NULL;
        order = next;
    }
    return order ? tni_own(tmp, order)
                 : tni_own(tmp, tni_arange(tn_int(rows->sizes[0]), TN_I64, rows->device->id));
}

/* Distinct slices along dim, or distinct elements, flattened, when dim is left out. */
static tn_status distinct(const char *call, tn_tensor *self, int64_t dim_arg, bool sort,
                          bool inverse, bool counts, tn_cell *rets) {
    bool is_flat = dim_arg == TN_NO_INT;
    int32_t dim = is_flat ? 0 : tni_wrap_dim(dim_arg, self->view.rank, call);
    tn_tensor *results[3], *starts, *run, *order = NULL;
    if (dim < 0)
        return tni_failed();
    if (self->device->is_meta)
        return tni_fail(TN_ERR_DEVICE,
                        "%s: how many differ depends on data, which meta tensors do not have",
                        call);
    tni_temps tmp = {0};
    tn_tensor *x = tni_own(&tmp, tni_detach(self));
    if (is_flat || self->view.rank == 0)
        x = tni_own(&tmp, tni_reshape(x, TN_SHAPE(-1)));
    if (!x)
        return tni_temps_return(&tmp, NULL, rets);
    int64_t n = x->sizes[dim], width = 1;
    for (int32_t d = 0; d < x->view.rank; d++)
        width *= d == dim ? 1 : x->sizes[d];
    if (width == 0) {
        tni_temps_finish(&tmp);
        return tni_fail(TN_ERR_SHAPE, "%s: self has slices without elements along dimension %d",
                        call, dim);
    }
    if (n == 0) {
        results[0] = tni_own(&tmp, tni_clone(x));
        results[1] = inverse && is_flat
                         ? tni_own(&tmp, tni_empty(tni_sizes(self), TN_I64, self->device->id))
                         : nothing(&tmp, self);
        results[2] = nothing(&tmp, self);
        return tni_temps_return_many(&tmp, results, 3, rets);
    }
    tn_tensor *rows = x->view.rank > 1 ? tni_own(&tmp, tni_movedim_int(x, dim, 0)) : x;
    rows = tni_own(&tmp, tni_reshape(rows, TN_SHAPE(n, width)));
    if (sort && rows) {
        order = row_order(&tmp, rows);
        rows = order ? tni_own(&tmp, tni_index_select(rows, 0, order)) : NULL;
    }
    if (!rows || !find_runs(&tmp, rows, &starts, &run))
        return tni_temps_return(&tmp, NULL, rets);
    tn_tensor *chosen = order ? tni_own(&tmp, tni_index_select(order, 0, starts)) : starts;
    results[0] = chosen ? tni_own(&tmp, tni_index_select(x, dim, chosen)) : NULL;
    if (inverse && order) /* back to where each row was */
        run = tni_own(&tmp, tni_scatter_src(run, 0, order, run));
    if (inverse && is_flat)
        run = tni_own(&tmp, tni_reshape(run, tni_sizes(self)));
    results[1] = inverse ? run : nothing(&tmp, self);
    results[2] = counts ? lengths(&tmp, starts, n) : nothing(&tmp, self);
    return tni_temps_return_many(&tmp, results, 3, rets);
}

/* unique_consecutive(self, return_inverse, return_counts, dim) -> values, inverse, counts */
tn_status tni_run_unique_consecutive(const tn_cell *args, tn_cell *rets) {
    return distinct("tn_unique_consecutive", tni_arg_tensor(&args[0]), tni_arg_int(&args[3]), false,
                    args[1].v.boolean, args[2].v.boolean, rets);
}

/* unique2(self, sorted, return_inverse, return_counts): sorted always */
tn_status tni_run_unique2(const tn_cell *args, tn_cell *rets) {
    return distinct("tn_unique2", tni_arg_tensor(&args[0]), TN_NO_INT, true, args[2].v.boolean,
                    args[3].v.boolean, rets);
}

/* unique_dim(self, dim, sorted, return_inverse, return_counts): sorted always */
tn_status tni_run_unique_dim(const tn_cell *args, tn_cell *rets) {
    return distinct("tn_unique_dim", tni_arg_tensor(&args[0]), args[1].v.i64, true,
                    args[3].v.boolean, args[4].v.boolean, rets);
}
