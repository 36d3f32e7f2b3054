/* Pairs of statistics of the same elements. */
#include "core/ops/dims.h"
#include "core/ops/functions.h"

/* aminmax(self, dim, keepdim) */
tn_status tni_run_aminmax(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *results[2];
    bool is_all = args[1].tag == TN_CELL_NONE;
    tn_ints dim = is_all ? TN_SCALAR_SHAPE : tn_ints_of(&args[1].v.i64, 1);
    tni_temps tmp = {0};
    results[0] = tni_own(&tmp, tni_amin(self, dim, args[2].v.boolean));
    results[1] = tni_own(&tmp, tni_amax(self, dim, args[2].v.boolean));
    return tni_temps_return_many(&tmp, results, 2, rets);
}

/* var_mean(self, dim, unbiased, keepdim) */
tn_status tni_run_var_mean(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *results[2];
    tn_ints dim = args[1].tag == TN_CELL_NONE ? TN_SCALAR_SHAPE : tni_arg_ints(&args[1]);
    bool keepdim = args[3].v.boolean;
    tni_temps tmp = {0};
    results[0] = tni_own(&tmp, tni_var_dim(self, dim, args[2].v.boolean ? 1 : 0, keepdim));
    results[1] = tni_own(&tmp, tni_mean_dim(self, dim, keepdim, TN_DTYPE_NONE));
    return tni_temps_return_many(&tmp, results, 2, rets);
}

/* std_mean(self, dim, unbiased, keepdim) */
tn_status tni_run_std_mean(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *results[2];
    tn_ints dim = args[1].tag == TN_CELL_NONE ? TN_SCALAR_SHAPE : tni_arg_ints(&args[1]);
    bool keepdim = args[3].v.boolean;
    tni_temps tmp = {0};
    results[0] = tni_own(&tmp, tni_std_dim(self, dim, args[2].v.boolean ? 1 : 0, keepdim));
    results[1] = tni_own(&tmp, tni_mean_dim(self, dim, keepdim, TN_DTYPE_NONE));
    return tni_temps_return_many(&tmp, results, 2, rets);
}

/* linalg_vector_norm(self, ord, dim, keepdim, dtype) */
tn_status tni_run_linalg_vector_norm(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_dtype from = self->view.dtype, dtype = tni_arg_dtype(&args[4]);
    tn_ints dim = args[2].tag == TN_CELL_NONE ? TN_SCALAR_SHAPE : tni_arg_ints(&args[2]);
    if (!tni_is_float(from) || (dtype != TN_DTYPE_NONE && !tni_is_float(dtype)))
        return tni_fail(
            TN_ERR_DTYPE, "tn_linalg_vector_norm: self is %s and dtype %s; both must be floating",
            tn_dtype_name(from), dtype == TN_DTYPE_NONE ? "left out" : tn_dtype_name(dtype));
    if (dtype != TN_DTYPE_NONE && dtype != from &&
        (from == TN_F64 || (tni_is_half(dtype) && from != dtype)))
        return tni_fail(
            TN_ERR_DTYPE,
            "tn_linalg_vector_norm: dtype %s holds less than self's %s; cast the result",
            tn_dtype_name(dtype), tn_dtype_name(from));
    tni_temps tmp = {0};
    tn_tensor *x = dtype == TN_DTYPE_NONE ? self : tni_own(&tmp, tni_to_dtype(self, dtype));
    return tni_temps_return(
        &tmp, tni_own(&tmp, tni_norm_scalaropt_dim(x, args[1], dim, args[3].v.boolean)), rets);
}

static tn_tensor *as_float(tni_temps *tmp, tn_tensor *x) {
    return tni_is_float(x->view.dtype) ? x : tni_own(tmp, tni_to_dtype(x, TN_F32));
}

/* cov(self, correction, fweights, aweights) of variables [n, m], m times seen */
tn_status tni_run_cov(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_tensor *times = tni_arg_tensor(&args[2]), *weights = tni_arg_tensor(&args[3]);
    int64_t correction = args[1].v.i64, m = self->view.rank ? self->sizes[self->view.rank - 1] : 1;
    if (self->view.rank > 2 || self->view.dtype == TN_BOOL)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_cov: self is %s of rank %d; it must be of numbers, and of rank 0 to 2",
                        tn_dtype_name(self->view.dtype), self->view.rank);
    for (int i = 0; i < 2; i++) {
        tn_tensor *w = i ? weights : times;
        if (w && (w->view.rank > 1 || w->view.numel != m || w->view.dtype == TN_BOOL ||
                  tni_is_float(w->view.dtype) != (i == 1)))
            return tni_fail(TN_ERR_INVALID_ARGUMENT,
                            "tn_cov: %s is %s of %lld elements; it must be a vector of %s, one for "
                            "each of the %lld observations",
                            i ? "aweights" : "fweights", tn_dtype_name(w->view.dtype),
                            (long long)w->view.numel, i ? "floating numbers" : "integers",
                            (long long)m);
    }
    tni_temps tmp = {0};
    tn_tensor *x = as_float(&tmp, self), *w = times ? times : weights, *shares = x, *mean, *c;
    if (x && self->view.rank < 2)
        x = shares = tni_own(&tmp, tni_reshape(x, TN_SHAPE(1, m)));
    if (times && weights)
        w = tni_own(&tmp, tni_mul(times, weights));
    w = w && x ? tni_own(&tmp, tni_to_dtype(w, x->view.dtype)) : NULL;
    if (!x || ((times || weights) && !w))
        return tni_temps_return(&tmp, NULL, rets);
    tn_tensor *total = w ? tni_own(&tmp, tni_sum(w, TN_DTYPE_NONE)) : NULL, *norm = total;
    if (w)
        shares = tni_own(&tmp, tni_mul(x, w));
    mean = tni_own(&tmp, tni_sum_dim(shares, TN_SHAPE(1), true, TN_DTYPE_NONE));
    mean = tni_own(&tmp, w ? tni_div(mean, total) : tni_div_scalar(mean, tn_float((double)m)));
    if (w && weights && correction != 0) {
        tn_tensor *squares =
            tni_own(&tmp, tni_sum(tni_own(&tmp, tni_mul(w, weights)), TN_DTYPE_NONE));
        squares = tni_own(&tmp, tni_div(squares, total));
        norm = tni_own(&tmp, tni_sub(total, squares, tn_float((double)correction)));
    } else if (w) {
        norm = tni_own(&tmp, tni_sub_scalar(total, tn_float((double)correction), tn_int(1)));
    }
    x = tni_own(&tmp, tni_sub(x, mean, tn_int(1)));
    shares = w ? tni_own(&tmp, tni_mul(x, w)) : x;
    c = tni_own(&tmp, tni_mm(x, tni_own(&tmp, tni_t(shares))));
    if (w)
        c = tni_own(&tmp, tni_div(c, tni_own(&tmp, tni_clamp_min(norm, tn_int(0)))));
    else
        c = tni_own(
            &tmp, tni_div_scalar(c, tn_float(correction < m ? (double)m - (double)correction : 0)));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_squeeze(c)), rets);
}

tn_status tni_run_corrcoef(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    if (self->view.rank > 2 || self->view.dtype == TN_BOOL)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_corrcoef: self is %s of rank %d; it must be of numbers, and of rank 0 "
                        "to 2",
                        tn_dtype_name(self->view.dtype), self->view.rank);
    tni_temps tmp = {0};
    tn_tensor *c = tni_own(&tmp, tni_cov(self, 1, TN_NONE, TN_NONE));
    if (c && c->view.rank == 0)
        return tni_temps_return(&tmp, tni_own(&tmp, tni_div(c, c)), rets);
    tn_tensor *root = c ? tni_own(&tmp, tni_sqrt(tni_own(&tmp, tni_diagonal(c, 0, 0, 1)))) : NULL;
    c = tni_own(&tmp, tni_div(c, tni_own(&tmp, tni_unsqueeze(root, 1))));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_div(c, root)), rets);
}

/* Half the sum of neighbours along dim, times the steps between them. */
static tn_status trapezoid(const char *call, tn_tensor *y, tn_tensor *x, tn_scalar dx,
                           int64_t dim_arg, tn_cell *rets) {
    int32_t rank = y->view.rank, dim = rank ? tni_wrap_dim(dim_arg, rank, call) : -1;
    if (rank == 0)
        return tni_fail(TN_ERR_SHAPE, "%s: y has no dimensions to go along", call);
    if (dim < 0)
        return tni_failed();
    int32_t dim_x = x && x->view.rank == 1 ? 0 : dim;
    int64_t n = y->sizes[dim];
    if (y->view.dtype == TN_BOOL ||
        (x && (x->view.dtype == TN_BOOL || x->view.rank <= dim_x || x->sizes[dim_x] != n ||
               (x->view.rank != 1 && x->view.rank != rank))))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: y must be of numbers, and x have one for each of the %lld along "
                        "dimension %d",
                        call, (long long)n, dim);
    tni_temps tmp = {0};
    y = as_float(&tmp, y);
    tn_tensor *step = NULL;
    int64_t before = n > 0 ? n - 1 : 0;
    if (x && y) {
        step = as_float(&tmp, x); /* before a difference of u8 wraps */
        step = step ? tni_own(&tmp, tni_diff(step, 1, dim_x, TN_NONE, TN_NONE)) : NULL;
        for (int32_t d = dim + 1; x->view.rank == 1 && d < rank; d++)
            step = tni_own(&tmp, tni_unsqueeze(step, -1));
    }
    tn_tensor *low = y ? tni_own(&tmp, tni_narrow(y, dim, 0, before)) : NULL;
    tn_tensor *high = y ? tni_own(&tmp, tni_narrow(y, dim, n - before, before)) : NULL;
    tn_tensor *sum = tni_own(&tmp, tni_add(low, high, tn_int(1)));
    sum = x ? tni_own(&tmp, tni_mul(sum, step)) : sum;
    sum = tni_own(&tmp, tni_sum_dim(sum, TN_SHAPE(dim), false, TN_DTYPE_NONE));
    sum = x ? sum : tni_own(&tmp, tni_mul_scalar(sum, dx));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_div_scalar(sum, tn_int(2))), rets);
}

tn_status tni_run_trapezoid_x(const tn_cell *args, tn_cell *rets) {
    return trapezoid("tn_trapezoid_x", tni_arg_tensor(&args[0]), tni_arg_tensor(&args[1]),
                     tn_int(1), args[2].v.i64, rets);
}

tn_status tni_run_trapezoid_dx(const tn_cell *args, tn_cell *rets) {
    return trapezoid("tn_trapezoid_dx", tni_arg_tensor(&args[0]), NULL, args[1], args[2].v.i64,
                     rets);
}

/* renorm(self, p, dim, maxnorm): slices along dim of a larger norm brought down to it */
tn_status tni_run_renorm(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int32_t rank = self->view.rank, dim = tni_wrap_dim(args[2].v.i64, rank, "tn_renorm: dim");
    double p = tni_scalar_f64(args[1]), most = tni_scalar_f64(args[3]);
    int64_t others[TN_MAX_RANK], n = 0;
    if (dim < 0)
        return tni_failed();
    if (rank < 2 || !tni_is_float(self->view.dtype) || !(p > 0) || !(most >= 0))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_renorm: self is %s of rank %d, p %g and maxnorm %g; self must be "
                        "floating and have 2 dimensions at least, p be above 0 and maxnorm not "
                        "below",
                        tn_dtype_name(self->view.dtype), rank, p, most);
    for (int32_t d = 0; d < rank; d++)
        if (d != dim)
            others[n++] = d;
    tni_temps tmp = {0};
    tn_tensor *norm =
        tni_own(&tmp, tni_norm_scalaropt_dim(self, tn_float(p), tn_ints_of(others, n), true));
    tn_tensor *large = tni_own(&tmp, tni_gt_scalar(norm, tn_float(most)));
    tn_tensor *factor = tni_own(&tmp, tni_add_scalar(norm, tn_float(1e-7), tn_int(1)));
    factor = tni_own(&tmp, tni_reciprocal(factor));
    factor = tni_own(&tmp, tni_mul_scalar(factor, tn_float(most)));
    factor = tni_own(&tmp, tni_where_scalarother(large, factor, tn_int(1)));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_mul(self, factor)), rets);
}
