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
