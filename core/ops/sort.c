/* Sorting along one dimension, and what is taken from a sorted tensor. */
#include "core/ops/dims.h"
#include "core/ops/functions.h"

/* sort(self, dim, descending) */
tn_status tni_infer_sort(tni_build *b) {
    return tni_infer_along(b, 1);
}

/* topk(self, k, dim, largest) -> values, indices */
tn_status tni_run_topk(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *results[2];
    int32_t rank = self->view.rank, dim = tni_wrap_dim(args[2].v.i64, rank, "tn_topk");
    if (dim < 0)
        return tni_failed();
    int64_t k = args[1].v.i64, n = rank ? self->sizes[dim] : 1;
    if (k < (rank ? 0 : 1) || k > n)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_topk: k is %lld, but dimension %d has %lld elements; k must lie in "
                        "[%d, %lld]",
                        (long long)k, dim, (long long)n, rank ? 0 : 1, (long long)n);
    TNI_TRY(tni_sort(self, dim, args[3].v.boolean, &results[0], &results[1]));
    tni_temps tmp = {0};
    for (int i = 0; i < 2; i++) {
        tni_own(&tmp, results[i]);
        if (k < n) {
            results[i] = tni_then(&tmp, tni_narrow(results[i], dim, 0, k), results[i]);
            results[i] = tni_then(&tmp, tni_contiguous(results[i]), results[i]);
        }
    }
    return tni_temps_return_many(&tmp, results, 2, rets);
}
