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
