/* Layer and batch normalisation.
 *
 * layer_norm has kernels; its decompositions use means over the last dimensions. batch_norm is
 * made of other operators, and autograd looks through it. */

#include "core/ops/dims.h"
#include "core/ops/functions.h"
#include "core/ops/halves.h"
#include "core/ops/recomputed.h"

#include <string.h>

/* ---- layer norm: shapes ------------------------------------------------------------------ */

static bool ends_with(const tn_tensor *t, tn_ints shape) {
    return shape.n <= t->view.rank && memcmp(t->sizes + t->view.rank - shape.n, shape.data,
                                             (size_t)shape.n * sizeof(int64_t)) == 0;
}

static tn_status check_normalized(const tni_build *b, const tn_tensor *input, tn_ints shape) {
    if (shape.n < 1)
        return tni_build_fail(b, TN_ERR_INVALID_ARGUMENT,
                              "normalized_shape is empty; name the sizes of the last dimensions");
    if (!ends_with(input, shape))
        return tni_build_fail(b, TN_ERR_SHAPE,
                              "input has shape %s, which does not end with normalized_shape %s",
                              TNI_SHAPE_OF(input), TNI_SHAPE_OF_INTS(shape));
    return TN_OK;
}

static tn_status check_scale(const tni_build *b, uint32_t arg, const char *name, tn_ints shape) {
    const tn_tensor *t = tni_build_tensor(b, arg);
    if (!t || (t->view.rank == shape.n && ends_with(t, shape)))
        return TN_OK;
    return tni_build_fail(b, TN_ERR_SHAPE, "%s has shape %s, but must have normalized_shape %s",
                          name, TNI_SHAPE_OF(t), TNI_SHAPE_OF_INTS(shape));
}

/* input's sizes, 1 in the normalised dimensions */
static void statistics_sizes(const tn_tensor *input, tn_ints shape, int64_t *out) {
    for (int32_t d = 0; d < input->view.rank; d++)
        out[d] = d < input->view.rank - shape.n ? input->sizes[d] : 1;
}

/* native_layer_norm(input, normalized_shape, weight, bias, eps) -> out, mean, rstd */
tn_status tni_infer_layer_norm(tni_build *b) {
    tn_tensor *input = tni_build_tensor(b, 0);
    tn_ints shape = tni_arg_ints(&b->args[1]);
    TNI_TRY(check_normalized(b, input, shape));
    TNI_TRY(check_scale(b, 2, "weight", shape));
    TNI_TRY(check_scale(b, 3, "bias", shape));
    int64_t sizes[TN_MAX_RANK];
    statistics_sizes(input, shape, sizes);
    tni_build_out(b, 0, input->view.rank, input->sizes);
    tni_build_out(b, 1, input->view.rank, sizes);
    tni_build_out(b, 2, input->view.rank, sizes);
    b->has_empty_value = true; /* the statistics of nothing */
    b->empty_value = tn_int(0);
    b->kargs[3] = tni_cell_i64(shape.n);
    return TN_OK;
}

/* layer_norm_backward(grad_output, input, mean, rstd, weight, normalized_shape) */
tn_status tni_infer_layer_norm_backward(tni_build *b) {
    tn_tensor *grad = tni_build_tensor(b, 0), *input = tni_build_tensor(b, 1);
    tn_ints shape = tni_arg_ints(&b->args[5]);
    TNI_TRY(check_normalized(b, input, shape));
    TNI_TRY(check_scale(b, 4, "weight", shape));
    int64_t sizes[TN_MAX_RANK];
    statistics_sizes(input, shape, sizes);
    const char *names[] = {"grad_output", "", "mean", "rstd"};
    for (uint32_t i = 0; i < 4; i++) {
        const tn_tensor *t = i == 0 ? grad : tni_build_tensor(b, i);
        const int64_t *expected = i < 2 ? input->sizes : sizes;
        if (!tni_has_shape(t, input->view.rank, expected))
            return tni_build_fail(b, TN_ERR_SHAPE, "%s has shape %s, but must have %s", names[i],
                                  TNI_SHAPE_OF(t), TNI_SHAPE_OF_SIZES(input->view.rank, expected));
    }
    tni_build_out(b, 0, input->view.rank, input->sizes);
    b->kargs[5] = tni_cell_i64(shape.n);
    return TN_OK;
}

/* ---- layer norm: decompositions ---------------------------------------------------------- */

/* The last n of `rank` dimensions, or with `rest` the others. */
static tn_ints last_dims(int32_t rank, int64_t n, bool rest, int64_t *out) {
    int64_t first = rest ? 0 : rank - n, end = rest ? rank - n : rank;
    for (int64_t d = first; d < end; d++)
        out[d - first] = d;
    return tn_ints_of(out, end - first);
}

static tn_tensor *centred(tni_temps *tmp, tn_tensor *x, tn_tensor *mean) {
    return tni_then(tmp, tni_sub(x, mean, tn_int(1)), x);
}

static tn_tensor *mean_of_squares(tni_temps *tmp, tn_tensor *x, tn_ints dims) {
    tn_tensor *squares = tni_own(tmp, tni_mul(x, x));
    return tni_then(tmp, tni_mean_dim(squares, dims, true, TN_DTYPE_NONE), squares);
}

/* Runs below autograd. */
tn_status tni_run_native_layer_norm(const tn_cell *args, tn_cell *rets) {
    tn_tensor *input = tni_arg_tensor(&args[0]), *results[3];
    tn_tensor *weight = tni_arg_tensor(&args[2]), *bias = tni_arg_tensor(&args[3]);
    int64_t list[TN_MAX_RANK];
    tn_ints dims = last_dims(input->view.rank, tni_arg_ints(&args[1]).n, false, list);
    tni_temps tmp = {0};
    tn_tensor *mean = tni_own(&tmp, tni_mean_dim(input, dims, true, TN_DTYPE_NONE));
    tn_tensor *x = centred(&tmp, input, mean);
    tn_tensor *rstd = mean_of_squares(&tmp, x, dims);
    rstd = tni_own(&tmp, tni_add_scalar(rstd, tn_float(args[4].v.f64), tn_int(1)));
    rstd = tni_own(&tmp, tni_rsqrt(rstd));
    x = tni_then(&tmp, tni_mul(x, rstd), x);
    if (weight)
        x = tni_then(&tmp, tni_mul(x, weight), x);
    if (bias)
        x = tni_then(&tmp, tni_add(x, bias, tn_int(1)), x);
    results[0] = x;
    results[1] = mean;
    results[2] = rstd;
    return tni_temps_return_many(&tmp, results, 3, rets);
}

/* mean and rstd as they were computed. Where a second derivative may be taken they are computed
 * again from the input, so that it passes through them: eps is what 1 / rstd^2 has beyond the
 * variance. */
static void statistics(tni_temps *tmp, tn_tensor *input, tn_ints dims, tn_tensor **mean,
                       tn_tensor **rstd) {
    *mean = tni_widened(tmp, *mean);
    *rstd = tni_widened(tmp, *rstd);
    if (!tn_grad_enabled() || !tni_requires_grad(input))
        return;
    tn_tensor *x = tni_widened(tmp, input);
    tn_tensor *centre = tni_own(tmp, tni_mean_dim(x, dims, true, TN_DTYPE_NONE));
    *mean = tni_with_history(tmp, *mean, centre);
    x = centred(tmp, x, centre);
    tn_tensor *variance = mean_of_squares(tmp, x, dims);
    tn_tensor *constant = tni_own(tmp, tni_detach(variance));
    tn_tensor *eps = tni_own(tmp, tni_pow_scalar(*rstd, tn_float(-2)));
    eps = tni_own(tmp, tni_sub(eps, constant, tn_int(1)));
    variance = tni_own(tmp, tni_add(variance, eps, tn_int(1)));
    *rstd = tni_with_history(tmp, *rstd, tni_own(tmp, tni_rsqrt(variance)));
}

/* (input - mean) * rstd; also gives rstd */
static tn_tensor *normalised(tni_temps *tmp, tn_tensor *input, tn_tensor *mean, tn_tensor *rstd,
                             tn_ints dims, tn_tensor **out_rstd) {
    statistics(tmp, input, dims, &mean, &rstd);
    tn_tensor *x = tni_widened(tmp, input);
    x = centred(tmp, x, mean);
    *out_rstd = rstd;
    return tni_then(tmp, tni_mul(x, rstd), x);
}

/* rstd * (g - mean(g) - xhat * mean(g * xhat)), g = grad_output * weight; differentiable. */
tn_status tni_run_layer_norm_backward(const tn_cell *args, tn_cell *rets) {
    tn_tensor *grad = tni_arg_tensor(&args[0]), *input = tni_arg_tensor(&args[1]), *rstd;
    tn_tensor *weight = tni_arg_tensor(&args[4]);
    int64_t list[TN_MAX_RANK];
    tn_ints dims = last_dims(input->view.rank, tni_arg_ints(&args[5]).n, false, list);
    tni_temps tmp = {0};
    tn_tensor *xhat =
        normalised(&tmp, input, tni_arg_tensor(&args[2]), tni_arg_tensor(&args[3]), dims, &rstd);
    tn_tensor *g = weight ? tni_own(&tmp, tni_mul(grad, weight)) : grad;
    tn_tensor *along = tni_own(&tmp, tni_mul(g, xhat));
    along = tni_then(&tmp, tni_mean_dim(along, dims, true, TN_DTYPE_NONE), along);
    along = tni_then(&tmp, tni_mul(xhat, along), xhat);
    tn_tensor *mean = tni_own(&tmp, tni_mean_dim(g, dims, true, TN_DTYPE_NONE));
    g = tni_then(&tmp, tni_sub(g, mean, tn_int(1)), g);
    g = tni_then(&tmp, tni_sub(g, along, tn_int(1)), g);
    return tni_temps_return(&tmp, tni_then(&tmp, tni_mul(g, rstd), g), rets);
}

tn_tensor *tni_layer_norm_backward_weight(tn_tensor *grad, tn_tensor *input, tn_tensor *mean,
                                          tn_tensor *rstd, tn_ints normalized_shape) {
    if (!grad || !input || !mean || !rstd)
        return NULL;
    int64_t list[TN_MAX_RANK];
    tn_ints dims = last_dims(input->view.rank, normalized_shape.n, false, list);
    tni_temps tmp = {0};
    tn_tensor *used, *x = normalised(&tmp, input, mean, rstd, dims, &used);
    x = tni_then(&tmp, tni_mul(x, grad), x);
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_layer_norm_backward_bias(x, normalized_shape)));
}

tn_tensor *tni_layer_norm_backward_bias(tn_tensor *grad, tn_ints normalized_shape) {
    if (!grad || grad->view.rank == normalized_shape.n)
        return grad ? tni_keep(grad) : NULL;
    int64_t list[TN_MAX_RANK];
    tn_ints dims = last_dims(grad->view.rank, normalized_shape.n, true, list);
    return tni_sum_dim(grad, dims, false, TN_DTYPE_NONE);
}

/* native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias) */
tn_status tni_run_native_layer_norm_backward(const tn_cell *args, tn_cell *rets) {
    tn_tensor *grad = tni_arg_tensor(&args[0]), *input = tni_arg_tensor(&args[1]), *results[3];
    tn_tensor *mean = tni_arg_tensor(&args[3]), *rstd = tni_arg_tensor(&args[4]);
    tn_ints shape = tni_arg_ints(&args[2]);
    tni_temps tmp = {0};
    results[0] = tni_own(
        &tmp, tni_layer_norm_backward(grad, input, mean, rstd, tni_arg_some(&args[5]), shape));
    if (!results[0]) /* which checks the arguments */
        return tni_failed();
    results[1] = tni_own(&tmp, tni_layer_norm_backward_weight(grad, input, mean, rstd, shape));
    results[2] = tni_own(&tmp, tni_layer_norm_backward_bias(grad, shape));
    return tni_temps_return_many(&tmp, results, 3, rets);
}

/* ---- batch norm -------------------------------------------------------------------------- */

/* running = (1 - momentum) * running + momentum * value [1, C, 1, ...] */
static tn_status update(tn_tensor *running, tn_tensor *value, double momentum) {
    if (!running)
        return TN_OK;
    tni_temps tmp = {0};
    tn_tensor *flat = tni_own(&tmp, tni_detach(value));
    flat = tni_own(&tmp, tni_reshape(flat, tni_sizes(running)));
    tn_tensor *next =
        tni_own(&tmp, tni_mul_scalar(tni_widened(&tmp, running), tn_float(1 - momentum)));
    next = tni_own(&tmp, tni_add(next, flat, tn_float(momentum)));
    tn_tensor *stored = next ? tni_own(&tmp, tni_copy_(running, next, false)) : NULL;
    tni_temps_finish(&tmp);
    return stored ? TN_OK : tni_failed();
}

/* A tensor of C elements as [1, C, 1, ...] of the input's rank; [C] of rank 1. */
static tn_tensor *per_channel(tni_temps *tmp, tn_tensor *t, int32_t rank) {
    return tni_along(tmp, t, rank > 1, rank);
}

static tn_status check_batch_norm(const tn_cell *args, const char *call) {
    const tn_tensor *input = tni_arg_tensor(&args[0]);
    int32_t rank = input->view.rank;
    if (rank < 2 && !(rank == 1 && input->view.numel == 0)) /* as PyTorch takes [0] */
        return tni_fail(TN_ERR_SHAPE, "%s: input must be [N, C, ...], but has shape %s", call,
                        TNI_SHAPE_OF(input));
    if (!tni_is_float(input->view.dtype))
        return tni_fail(TN_ERR_DTYPE, "%s: not defined for %s; cast with tn_to_dtype", call,
                        tn_dtype_name(input->view.dtype));
    int64_t channels = rank > 1 ? input->sizes[1] : 0;
    static const char *const names[] = {"", "weight", "bias", "running_mean", "running_var"};
    for (int i = 1; i < 5; i++) {
        const tn_tensor *t = tni_arg_tensor(&args[i]);
        if (t && (t->view.rank != 1 || t->sizes[0] != channels))
            return tni_fail(TN_ERR_SHAPE,
                            "%s: %s must have shape [%lld], one for each channel, but "
                            "has %s",
                            call, names[i], (long long)channels, TNI_SHAPE_OF(t));
    }
    bool training = args[5].v.boolean;
    if (!training && (!tni_arg_tensor(&args[3]) || !tni_arg_tensor(&args[4])))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: running_mean and running_var cannot be left out where "
                        "training is false",
                        call);
    if (training && input->view.numel > 0 && input->view.numel == channels)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: training needs more than one value for each channel, but "
                        "the input has shape %s",
                        call, TNI_SHAPE_OF(input));
    return TN_OK;
}

/* A batch without elements has no statistics, and leaves the running ones; the result depends on
 * weight and bias, whose gradients are zero. */
static tn_tensor *norm_of_nothing(tni_temps *tmp, tn_tensor *input, tn_tensor *weight,
                                  tn_tensor *bias) {
    int32_t rank = input->view.rank;
    tn_tensor *x = tni_own(tmp, tni_clone(input));
    if (weight)
        x = tni_own(tmp, tni_mul(x, per_channel(tmp, weight, rank)));
    if (bias)
        x = tni_own(tmp, tni_add(x, per_channel(tmp, bias, rank), tn_int(1)));
    return tni_as_dtype(tmp, x, input->view.dtype);
}

/* (input, weight, bias, running_mean, running_var, training, momentum, eps). results: the
 * normalised input and, where they are the input's own, [1, C, 1, ...] of mean and 1 / deviation,
 * else NULL. */
static tn_status normalise_batch(const tn_cell *args, const char *call, tni_temps *tmp,
                                 tn_tensor *results[3]) {
    tn_status status = check_batch_norm(args, call);
    if (status != TN_OK)
        return status;
    tn_tensor *input = tni_arg_tensor(&args[0]);
    tn_tensor *weight = tni_arg_tensor(&args[1]), *bias = tni_arg_tensor(&args[2]);
    tn_tensor *running_mean = tni_arg_tensor(&args[3]), *running_var = tni_arg_tensor(&args[4]);
    double momentum = args[6].v.f64;
    int32_t rank = input->view.rank;
    if (input->view.numel == 0) {
        results[0] = norm_of_nothing(tmp, input, weight, bias);
        return results[0] ? TN_OK : tni_failed();
    }
    tn_tensor *x = tni_widened(tmp, input), *mean, *variance;
    if (args[5].v.boolean) {
        int64_t list[TN_MAX_RANK] = {0};
        for (int32_t d = 2; d < rank; d++)
            list[d - 1] = d;
        tn_ints dims = tn_ints_of(list, rank - 1);
        mean = tni_own(tmp, tni_mean_dim(x, dims, true, TN_DTYPE_NONE));
        x = centred(tmp, x, mean);
        variance = mean_of_squares(tmp, x, dims);
        double n = (double)input->view.numel / (double)input->sizes[1];
        if (mean && variance && running_mean)
            status = update(running_mean, mean, momentum);
        if (mean && variance && running_var && status == TN_OK) {
            tn_tensor *unbiased = tni_own(tmp, tni_mul_scalar(variance, tn_float(n / (n - 1))));
            status = update(running_var, unbiased, momentum);
        }
    } else {
        mean = per_channel(tmp, tni_widened(tmp, running_mean), rank);
        variance = per_channel(tmp, tni_widened(tmp, running_var), rank);
        x = centred(tmp, x, mean);
    }
    tn_tensor *scale = tni_own(tmp, tni_add_scalar(variance, tn_float(args[7].v.f64), tn_int(1)));
    scale = tni_own(tmp, tni_rsqrt(scale));
    if (args[5].v.boolean) {
        results[1] = mean;
        results[2] = scale;
    }
    if (weight)
        scale = tni_own(tmp, tni_mul(scale, per_channel(tmp, weight, rank)));
    if (bias)
        x = tni_then(tmp, tni_addcmul(per_channel(tmp, bias, rank), x, scale, tn_int(1)), x);
    else
        x = tni_then(tmp, tni_mul(x, scale), x);
    results[0] = tni_as_dtype(tmp, x, input->view.dtype);
    return status != TN_OK || results[0] ? status : tni_failed();
}

tn_status tni_run_batch_norm(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *results[3] = {NULL, NULL, NULL};
    tn_status status = normalise_batch(args, "tn_batch_norm", &tmp, results);
    return tni_temps_return(&tmp, status == TN_OK ? results[0] : NULL, rets);
}

/* native_batch_norm: the statistics used are of no elements where they are the running ones. */
tn_status tni_run_native_batch_norm(const tn_cell *args, tn_cell *rets) {
    tn_tensor *input = tni_arg_tensor(&args[0]), *results[3] = {NULL, NULL, NULL};
    const tn_tensor *weight = tni_arg_tensor(&args[1]);
    if (input->view.numel == 0)
        return tni_fail(TN_ERR_SHAPE, "tn_native_batch_norm: the input has no elements");
    tni_temps tmp = {0};
    tn_status status = normalise_batch(args, "tn_native_batch_norm", &tmp, results);
    tn_dtype dtype = (weight ? weight : input)->view.dtype;
    for (int i = 1; i < 3 && status == TN_OK; i++) {
        if (args[5].v.boolean) {
            tn_tensor *own = tni_own(&tmp, tni_detach(results[i]));
            own = tni_own(&tmp, tni_reshape(own, TN_SHAPE(input->sizes[1])));
            results[i] = own ? tni_as_dtype(&tmp, own, dtype) : NULL;
        } else {
            results[i] = tni_own(&tmp, tni_zeros(TN_SHAPE(0), dtype, input->device->id));
        }
    }
    if (status != TN_OK)
        results[0] = NULL;
    return tni_temps_return_many(&tmp, results, 3, rets);
}
