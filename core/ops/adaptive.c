/* Adaptive pooling: means of windows that share the input out as evenly as they can. */
#include "base/alloc.h"
#include "core/ops/functions.h"
#include "core/ops/resample.h"

#include <string.h>

/* Window i of `out` over `in` elements: [floor(i in / out), ceil((i + 1) in / out)). An element
 * of the input is in the windows that the same formula gives with `in` and `out` exchanged. The
 * product fits. */
static int64_t window_start(int64_t i, int64_t in, int64_t out) {
    return i * in / out;
}

static int64_t window_length(int64_t i, int64_t in, int64_t out) {
    int64_t end = (i + 1) * in;
    return end / out + (end % out != 0) - window_start(i, in, out);
}

/* Where `out` does not divide `in`. All windows begin at multiples of the divisor that both
 * have, in parts 1 / out of an element. */
static int64_t longest_window(int64_t in, int64_t out) {
    int64_t a = in, divisor = out;
    while (a % divisor != 0) {
        int64_t rest = a % divisor;
        a = divisor;
        divisor = rest;
    }
    return in / out + (in % out > divisor ? 2 : 1);
}

/* Sums of windows of dimension dim whose lengths differ: all are as long as the longest, and
 * what is not in one is masked, as infinities would else show. */
static tn_tensor *uneven_sums(tni_temps *tmp, tn_tensor *x, int32_t dim, int64_t out) {
    int64_t in = x->sizes[dim], longest = longest_window(in, out), n, sizes[TN_MAX_RANK];
    int64_t *index = tni_new_table(x->device, TN_I64, tni_mul_i64(out, longest, &n) ? n : INT64_MAX,
                                   sizeof *index);
    bool *counts = index ? tni_new_table(x->device, TN_BOOL, n, sizeof *counts) : NULL;
    tn_tensor *places = NULL, *mask = NULL;
    if (counts) {
        for (int64_t i = 0; i < out; i++)
            for (int64_t j = 0; j < longest; j++) {
                counts[i * longest + j] = j < window_length(i, in, out);
                index[i * longest + j] =
                    window_start(i, in, out) + (counts[i * longest + j] ? j : 0);
            }
        places = tni_own(
            tmp, tni_table(x->device, TN_I64, TN_SHAPE(n), index, (uint64_t)n * sizeof *index));
        if (longest > 1)
            mask = tni_own(tmp, tni_table(x->device, TN_BOOL, TN_SHAPE(out, longest), counts,
                                          (uint64_t)n * sizeof *counts));
    }
    tni_free(counts);
    tni_free(index);
    if (!places || (longest > 1 && !mask))
        return NULL;
    int32_t rank = x->view.rank, n_after = rank - 1 - dim;
    tn_tensor *windows = tni_own(tmp, tni_index_select(x, dim, places));
    if (longest < 2)
        return windows;
    memcpy(sizes, x->sizes, (size_t)dim * sizeof *sizes);
    memcpy(sizes + dim + 2, x->sizes + dim + 1, (size_t)n_after * sizeof *sizes);
    sizes[dim] = out;
    sizes[dim + 1] = longest;
    windows = tni_then(tmp, tni_reshape(windows, tn_ints_of(sizes, rank + 1)), windows);
    int64_t *beside = sizes + dim; /* of what is masked, from dim on */
    for (int32_t d = 0; d < n_after; d++)
        beside[2 + d] = 1;
    mask = tni_own(tmp, tni_reshape(mask, tn_ints_of(beside, n_after + 2)));
    windows = tni_then(tmp, tni_where_scalarother(mask, windows, tn_int(0)), windows);
    return tni_then(tmp, tni_sum_dim(windows, TN_SHAPE(dim + 1), false, TN_DTYPE_NONE), windows);
}

/* x with the sums of `out` windows at dimension dim. */
static tn_tensor *window_sums(tni_temps *tmp, tn_tensor *x, int32_t dim, int64_t out) {
    int64_t in = x->sizes[dim], sizes[TN_MAX_RANK];
    int32_t rank = x->view.rank;
    if (in == out)
        return x;
    if (out == 0)
        return tni_own(tmp, tni_narrow(x, dim, 0, 0));
    if (in % out != 0)
        return uneven_sums(tmp, x, dim, out);
    memcpy(sizes, x->sizes, (size_t)dim * sizeof *sizes);
    memcpy(sizes + dim + 2, x->sizes + dim + 1, (size_t)(rank - 1 - dim) * sizeof *sizes);
    sizes[dim] = out;
    sizes[dim + 1] = in / out;
    tn_tensor *windows = tni_own(tmp, tni_reshape(x, tn_ints_of(sizes, rank + 1)));
    return tni_then(tmp, tni_sum_dim(windows, TN_SHAPE(dim + 1), false, TN_DTYPE_NONE), windows);
}

/* x, whose last dimensions are windows over elements of `in`, by how many each window has. */
static tn_tensor *divided(tni_temps *tmp, tn_tensor *x, const int64_t *in, int32_t n_dims) {
    if (!x)
        return NULL;
    const int64_t *out = x->sizes + x->view.rank - n_dims;
    int64_t n = 1;
    double same = 1;
    bool is_same = true;
    for (int32_t k = 0; k < n_dims; k++) {
        n *= out[k]; /* of a tensor that there is */
        is_same &= out[k] > 0 && in[k] % out[k] == 0;
        same *= is_same ? (double)in[k] / (double)out[k] : 1;
    }
    if (is_same || n == 0)
        return tni_own(tmp, tni_div_scalar(x, tn_float(same)));
    double *counts = tni_new_table(x->device, x->view.dtype, n, sizeof *counts);
    if (!counts)
        return NULL;
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i;
        counts[i] = 1;
        for (int32_t k = n_dims - 1; k >= 0; rest /= out[k--])
            counts[i] *= (double)window_length(rest % out[k], in[k], out[k]);
    }
    tn_tensor *table = tni_own(
        tmp, tni_number_table(x->device, x->view.dtype, tn_ints_of(out, n_dims), counts, n));
    tni_free(counts);
    return tni_own(tmp, tni_div(x, table));
}

/* Floating [N, C, ...] or [C, ...] with n_dims dimensions behind, none of which is empty. */
static tn_status check_planes(const char *call, const char *name, const tn_tensor *t,
                              int32_t n_dims, int32_t first_full) {
    static const char *const shapes[] = {"[N, C, W] or [C, W]", "[N, C, H, W] or [C, H, W]",
                                         "[N, C, D, H, W] or [C, D, H, W]"};
    int32_t rank = t->view.rank;
    bool fits = rank == n_dims + 1 || rank == n_dims + 2;
    for (int32_t d = first_full < 0 ? rank + first_full : first_full; fits && d < rank; d++)
        fits = t->sizes[d] > 0;
    if (!fits)
        return tni_fail(TN_ERR_SHAPE, "%s: %s must be %s, with no empty planes, but has shape %s",
                        call, name, shapes[n_dims - 1], TNI_SHAPE_OF_SIZES(rank, t->sizes));
    return tni_resample_float(call, t);
}

/* Can the places of windows be worked out? */
static tn_status check_windows(const char *call, const int64_t *a, const int64_t *b,
                               int32_t n_dims) {
    int64_t product, sum;
    for (int32_t k = 0; k < n_dims; k++)
        if (!tni_mul_i64(a[k], b[k], &product) || !tni_add_i64(product, a[k], &sum) ||
            !tni_add_i64(product, b[k], &sum))
            return tni_fail(TN_ERR_SHAPE, "%s: %lld elements in %lld windows are too many to count",
                            call, (long long)a[k], (long long)b[k]);
    return TN_OK;
}

/* (self, output_size) */
tn_status tni_run_adaptive_avg_pool(const char *call, const tn_cell *args, tn_cell *rets,
                                    int64_t dims) {
    int32_t n_dims = (int32_t)dims;
    tn_tensor *self = tni_arg_tensor(&args[0]), *x = self;
    tn_ints out = tni_arg_ints(&args[1]);
    int64_t sizes[TN_MAX_RANK];
    int32_t first = self->view.rank - n_dims;
    TNI_TRY(check_planes(call, "self", self, n_dims, n_dims == 3 ? 1 : -n_dims));
    TNI_TRY(tni_resample_sizes(call, self, out, n_dims, 0, sizes));
    TNI_TRY(check_windows(call, self->sizes + first, out.data, n_dims));
    tni_temps tmp = {0};
    for (int32_t k = n_dims - 1; k >= 0 && x; k--)
        x = window_sums(&tmp, x, first + k, out.data[k]);
    return tni_temps_return(&tmp, divided(&tmp, x, self->sizes + first, n_dims), rets);
}

/* adaptive_avg_pool2d_backward(grad_output, self) */
tn_status tni_run_adaptive_avg_pool2d_backward(const tn_cell *args, tn_cell *rets) {
    const char *call = "tn_adaptive_avg_pool2d_backward";
    tn_tensor *grad = tni_arg_tensor(&args[0]), *self = tni_arg_tensor(&args[1]);
    int32_t first = self->view.rank - 2;
    TNI_TRY(check_planes(call, "self", self, 2, -2));
    TNI_TRY(check_planes(call, "grad_output", grad, 2, self->view.rank));
    if (grad->view.rank != self->view.rank ||
        memcmp(grad->sizes, self->sizes, (size_t)first * sizeof *self->sizes) != 0 ||
        grad->view.dtype != self->view.dtype)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: grad_output of shape %s and self of shape %s do not fit; they are "
                        "[N, C, H, W] with the same N and C, or [C, H, W], of one dtype",
                        call, TNI_SHAPE_OF(grad), TNI_SHAPE_OF(self));
    TNI_TRY(check_windows(call, self->sizes + first, grad->sizes + first, 2));
    tni_temps tmp = {0};
    if (grad->sizes[first] == 0 || grad->sizes[first + 1] == 0)
        return tni_temps_return(
            &tmp, tni_own(&tmp, tni_zeros_like(self, TN_DTYPE_NONE, tn_no_device())), rets);
    tn_tensor *x = divided(&tmp, grad, self->sizes + first, 2);
    for (int32_t k = 0; k < 2 && x; k++)
        x = window_sums(&tmp, x, first + k, self->sizes[first + k]);
    return tni_temps_return(&tmp, x, rets);
}

/* The gradient by grad_output, of whose shape it is. */
tn_tensor *tni_adaptive_avg_pool2d_double_backward(tn_tensor *grad, tn_tensor *grad_output) {
    if (!grad || !grad_output)
        return NULL;
    return tni_adaptive_avg_pool2d(grad,
                                   tn_ints_of(grad_output->sizes + grad_output->view.rank - 2, 2));
}
