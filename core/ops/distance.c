/* Distances between rows: p-norms of their differences. */
#include "base/alloc.h"
#include "core/ops/functions.h"

#include <math.h>

/* The p-norm of x along its last dimension. */
static tn_tensor *norm_of_rows(tni_temps *tmp, tn_tensor *x, double p) {
    if (!x)
        return NULL;
    if (x->sizes[x->view.rank - 1] == 0)
        return tni_own(tmp, tni_sum_dim(x, TN_SHAPE(-1), false, TN_DTYPE_NONE));
    if (p == 0) { /* a count, with a history in which nothing moves it */
        tn_tensor *differs = tni_own(tmp, tni_ne_scalar(x, tn_int(0)));
        differs = tni_own(tmp, tni_to_dtype(differs, x->view.dtype));
        tn_tensor *always = tni_own(tmp, tni_ones(TN_SCALAR_SHAPE, TN_BOOL, x->device->id));
        differs = tni_own(tmp, tni_where(always, differs, x));
        return tni_own(tmp, tni_sum_dim(differs, TN_SHAPE(-1), false, TN_DTYPE_NONE));
    }
    if (p >= 1)
        return tni_own(tmp, tni_norm_scalaropt_dim(x, tn_float(p), TN_SHAPE(-1), false));
    /* what two rows share stays away from the power, whose slope is infinite there */
    tn_tensor *size = tni_own(tmp, tni_abs(x));
    tn_tensor *zero = tni_own(tmp, tni_eq_scalar(size, tn_int(0)));
    tn_tensor *safe = tni_own(tmp, tni_masked_fill_scalar(size, zero, tn_int(1)));
    safe = tni_own(tmp, tni_pow_scalar(safe, tn_float(p)));
    safe = tni_own(tmp, tni_masked_fill_scalar(safe, zero, tn_int(0)));
    safe = tni_own(tmp, tni_sum_dim(safe, TN_SHAPE(-1), false, TN_DTYPE_NONE));
    return tni_own(tmp, tni_pow_scalar(safe, tn_float(1 / p)));
}

static tn_status check_rows(const tn_tensor *t, double p, const char *call) {
    if (!(p >= 0))
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: p is %g; it must not be negative", call, p);
    if (!tni_is_float(t->view.dtype))
        return tni_fail(TN_ERR_DTYPE, "%s: not defined for %s; cast with tn_to_dtype", call,
                        tn_dtype_name(t->view.dtype));
    return TN_OK;
}

/* cdist(x1 [..., P, M], x2 [..., R, M], p) */
tn_status tni_run_cdist(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x1 = tni_arg_tensor(&args[0]), *x2 = tni_arg_tensor(&args[1]);
    double p = args[2].v.f64;
    int32_t ranks[2] = {x1->view.rank, x2->view.rank};
    TNI_TRY(check_rows(x1, p, "tn_cdist"));
    TNI_TRY(check_rows(x2, p, "tn_cdist"));
    if (ranks[0] < 2 || ranks[1] < 2 || x1->sizes[ranks[0] - 1] != x2->sizes[ranks[1] - 1])
        return tni_fail(TN_ERR_SHAPE,
                        "tn_cdist: x1 and x2 must be [..., P, M] and [..., R, M] with the same M, "
                        "but have shapes %s and %s",
                        TNI_SHAPE_OF_SIZES(ranks[0], x1->sizes),
                        TNI_SHAPE_OF_SIZES(ranks[1], x2->sizes));
    tni_temps tmp = {0};
    tn_tensor *rows = tni_own(&tmp, tni_unsqueeze(x1, -2));
    tn_tensor *others = tni_own(&tmp, tni_unsqueeze(x2, -3));
    tn_tensor *x = tni_own(&tmp, tni_sub(rows, others, tn_int(1)));
    return tni_temps_return(&tmp, norm_of_rows(&tmp, x, p), rets);
}

/* The rows i < j of all pairs in order, n of them: i of side 0, j of side 1; owned. */
static tn_tensor *pairs(int64_t rows, int64_t n, int side, tni_device *device) {
    int64_t *table = tni_alloc((size_t)(n ? n : 1) * sizeof *table), at = 0;
    if (!table)
        return tni_fail_memory_null("a table of pairs");
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i + 1; j < rows; j++)
            table[at++] = side ? j : i;
    tn_tensor *t = tni_tensor_new(device, TN_I64, 1, &n);
    if (t && n > 0 && tni_tensor_write(t, table, (uint64_t)n * sizeof *table) != TN_OK) {
        tni_drop(t);
        t = NULL;
    }
    tni_free(table);
    return t;
}

/* pdist(self [N, M], p) */
tn_status tni_run_pdist(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    double p = args[1].v.f64;
    TNI_TRY(check_rows(self, p, "tn_pdist"));
    if (self->view.rank != 2)
        return tni_fail(TN_ERR_SHAPE, "tn_pdist: self must be [N, M], but has shape %s",
                        TNI_SHAPE_OF(self));
    int64_t rows = self->sizes[0];
    if (rows > INT32_MAX)
        return tni_fail(TN_ERR_SHAPE, "tn_pdist: the pairs of %lld rows are too many",
                        (long long)rows);
    int64_t n = rows * (rows - 1) / 2;
    tni_temps tmp = {0};
    tn_tensor *left = tni_own(&tmp, pairs(rows, n, 0, self->device));
    left = tni_own(&tmp, tni_index_select(self, 0, left));
    tn_tensor *right = left ? tni_own(&tmp, pairs(rows, n, 1, self->device)) : NULL;
    right = tni_own(&tmp, tni_index_select(self, 0, right));
    tn_tensor *x = tni_own(&tmp, tni_sub(left, right, tn_int(1)));
    return tni_temps_return(&tmp, norm_of_rows(&tmp, x, p), rets);
}
