/* layer_norm with its gradients, and batch_norm. */
#include "core/ops/boxed.h"
#include "core/ops/build.h"
#include "core/ops/derivatives.h"

/* Does `shape` end `t`? */
static bool is_tail(const tn_tensor *t, tn_ints shape) {
    bool fits = shape.n >= 1 && shape.n <= t->view.rank;
    for (int64_t d = 0; fits && d < shape.n; d++)
        fits = shape.data[d] == t->sizes[t->view.rank - shape.n + d];
    return fits;
}

/* The last n dimensions of t, as negative numbers. */
static tn_ints last_dims(int64_t n, int64_t out[TN_MAX_RANK]) {
    for (int64_t d = 0; d < n; d++)
        out[d] = d - n;
    return tn_ints_of(out, n);
}

static tn_status check_shape(tni_build *b, const tn_tensor *input, tn_ints shape) {
    char a[TNI_SHAPE_TEXT], c[TNI_SHAPE_TEXT];
    if (is_tail(input, shape))
        return TN_OK;
    return tni_build_fail(b, TN_SHAPE, "normalized_shape %s must be the last sizes of input %s",
                          tni_shape_text((int32_t)shape.n, shape.data, c),
                          tni_shape_text(input->view.rank, input->sizes, a));
}

static tn_status check_parameter(tni_build *b, const tn_tensor *t, tn_ints shape,
                                 const char *name) {
    if (!t || (t->view.rank == shape.n && is_tail(t, shape)))
        return TN_OK;
    return tni_build_fail(b, TN_SHAPE, "%s must have normalized_shape", name);
}

/* native_layer_norm(input, normalized_shape, weight, bias, eps); the kernel takes the number of
 * dims */
INFER(infer_layer_norm) {
    tn_tensor *input = tni_build_tensor(b, 0);
    tn_ints shape = tni_arg_ints(&b->args[1]);
    if (check_shape(b, input, shape) != TN_OK ||
        check_parameter(b, tni_build_tensor(b, 2), shape, "weight") != TN_OK ||
        check_parameter(b, tni_build_tensor(b, 3), shape, "bias") != TN_OK)
        return tni_failed();
    int64_t stats[TN_MAX_RANK];
    for (int32_t d = 0; d < input->view.rank; d++)
        stats[d] = d < input->view.rank - shape.n ? input->sizes[d] : 1;
    b->kargs[TN_ARG_layer_norm_n_dims] = tni_cell_i64(shape.n);
    tni_build_out(b, 0, input->view.rank, input->sizes);
    tni_build_out(b, 1, input->view.rank, stats);
    tni_build_out(b, 2, input->view.rank, stats);
    b->has_empty_value = true; /* statistics of nothing */
    b->empty_value = tn_float(0);
    return TN_OK;
}

/* (grad_output, input, mean, rstd, weight, normalized_shape) */
INFER(infer_layer_norm_backward) {
    tn_tensor *input = tni_build_tensor(b, 1);
    tn_ints shape = tni_arg_ints(&b->args[5]);
    if (check_shape(b, input, shape) != TN_OK)
        return tni_failed();
    b->kargs[TN_ARG_layer_norm_backward_n_dims] = tni_cell_i64(shape.n);
    tni_build_out(b, 0, input->view.rank, input->sizes);
    return TN_OK;
}

BOXED(run_native_layer_norm) {
    tn_tensor *input = tni_arg_tensor(&args[0]), *weight = tni_arg_some(&args[2]);
    tn_tensor *bias = tni_arg_some(&args[3]);
    int64_t buffer[TN_MAX_RANK];
    tn_ints dims = last_dims(args[1].n, buffer);
    tni_temps temps = {0};
    tn_tensor *mean = OWN(tni_mean_dim(input, dims, true, TN_DTYPE_NONE));
    tn_tensor *centered = OWN(tni_sub(input, mean, tn_int(1)));
    tn_tensor *variance =
        OWN(tni_mean_dim(OWN(tni_mul(centered, centered)), dims, true, TN_DTYPE_NONE));
    tn_tensor *rstd =
        OWN(tni_rsqrt(OWN(tni_add_scalar(variance, tn_float(args[4].v.f64), tn_int(1)))));
    tn_tensor *out = OWN(tni_mul(centered, rstd));
    out = weight == TN_NONE ? out : OWN(tni_mul(out, weight));
    out = bias == TN_NONE ? out : OWN(tni_add(out, bias, tn_int(1)));
    tn_tensor *results[3] = {tni_keep_opt(out), tni_keep_opt(mean), tni_keep_opt(rstd)};
    tni_temps_drop(&temps);
    return tni_return_many(rets, results, 3);
}

/* The statistics of the forward pass, or, where a derivative of the derivative is being recorded,
 * the same as functions of the input: mean and variance anew, eps being what 1 / rstd^2 is above
 * the variance. */
static void statistics(tni_temps *list, tn_tensor *input, tn_ints dims, tn_tensor **mean,
                       tn_tensor **rstd) {
    if (!input || !*mean || !*rstd || !tn_grad_enabled() || !tni_requires_grad(input))
        return;
    tni_temps temps = {0};
    tn_tensor *m = tni_mean_dim(input, dims, true, TN_DTYPE_NONE);
    tn_tensor *centered = OWN(tni_sub(input, m, tn_int(1)));
    tn_tensor *variance =
        OWN(tni_mean_dim(OWN(tni_mul(centered, centered)), dims, true, TN_DTYPE_NONE));
    tn_tensor *whole = OWN(tni_reciprocal(OWN(tni_mul(*rstd, *rstd))));
    tn_tensor *eps = OWN(tni_detach(OWN(tni_sub(whole, variance, tn_int(1)))));
    *mean = tni_own(list, m);
    *rstd = tni_own(list, tni_rsqrt(OWN(tni_add(variance, eps, tn_int(1)))));
    tni_temps_drop(&temps);
}

/* rstd (g - mean(g) - xhat mean(g xhat)), g = grad weight, xhat = (input - mean) rstd */
BOXED(run_layer_norm_backward) {
    tn_tensor *grad = tni_arg_tensor(&args[0]), *input = tni_arg_tensor(&args[1]);
    tn_tensor *mean = tni_arg_tensor(&args[2]), *rstd = tni_arg_tensor(&args[3]);
    tn_tensor *weight = tni_arg_some(&args[4]);
    int64_t buffer[TN_MAX_RANK];
    tn_ints dims = last_dims(args[5].n, buffer);
    tni_temps temps = {0};
    statistics(&temps, input, dims, &mean, &rstd);
    tn_tensor *g = weight == TN_NONE ? grad : OWN(tni_mul(grad, weight));
    tn_tensor *xhat = OWN(tni_mul(OWN(tni_sub(input, mean, tn_int(1))), rstd));
    tn_tensor *mean_g = OWN(tni_mean_dim(g, dims, true, TN_DTYPE_NONE));
    tn_tensor *mean_gx = OWN(tni_mean_dim(OWN(tni_mul(g, xhat)), dims, true, TN_DTYPE_NONE));
    tn_tensor *rest = OWN(tni_sub(g, mean_g, tn_int(1)));
    rest = OWN(tni_sub(rest, OWN(tni_mul(xhat, mean_gx)), tn_int(1)));
    RETURN(OWN(tni_mul(rest, rstd)));
}

/* Sums everything but the last dimensions. */
static tn_tensor *sum_leading(tni_temps *list, tn_tensor *t, int64_t n_last) {
    if (!t || t->view.rank == n_last)
        return t;
    int64_t dims[TN_MAX_RANK];
    for (int64_t d = 0; d < t->view.rank - n_last; d++)
        dims[d] = d;
    return tni_own(list,
                   tni_sum_dim(t, tn_ints_of(dims, t->view.rank - n_last), false, TN_DTYPE_NONE));
}

tn_tensor *tni_layer_norm_backward_weight(tn_tensor *grad, tn_tensor *input, tn_tensor *mean,
                                          tn_tensor *rstd, tn_ints normalized_shape) {
    tni_temps temps = {0};
    int64_t buffer[TN_MAX_RANK];
    statistics(&temps, input, last_dims(normalized_shape.n, buffer), &mean, &rstd);
    tn_tensor *xhat = OWN(tni_mul(OWN(tni_sub(input, mean, tn_int(1))), rstd));
    tn_tensor *product = OWN(tni_mul(grad, xhat));
    return tni_temps_keep(&temps, sum_leading(&temps, product, normalized_shape.n));
}

tn_tensor *tni_layer_norm_backward_bias(tn_tensor *grad, tn_ints normalized_shape) {
    tni_temps temps = {0};
    return tni_temps_keep(&temps, sum_leading(&temps, grad, normalized_shape.n));
}

BOXED(run_layer_norm) {
    tn_tensor *out, *mean, *rstd;
    tn_status status = tni_native_layer_norm(tni_arg_tensor(&args[0]), tni_arg_ints(&args[1]),
                                             tni_arg_some(&args[2]), tni_arg_some(&args[3]),
                                             args[4].v.f64, &out, &mean, &rstd);
    if (status != TN_OK)
        return status;
    tni_drop(mean);
    tni_drop(rstd);
    return tni_return(rets, out);
}

/* [C] as [1, C, 1, ...] for a tensor of `rank` dimensions */
static tn_tensor *per_channel(tni_temps *list, tn_tensor *t, int32_t rank) {
    int64_t shape[TN_MAX_RANK];
    if (!t)
        return NULL;
    for (int32_t d = 0; d < rank; d++)
        shape[d] = d == 1 ? t->view.numel : 1;
    return tni_own(list, tni_reshape(t, tn_ints_of(shape, rank)));
}

/* running = (1 - momentum) running + momentum value, without recording */
static tn_status update_running(tn_tensor *running, tn_tensor *value, double momentum) {
    if (running == TN_NONE || !value)
        return value ? TN_OK : tni_failed();
    tni_temps temps = {0};
    bool before = tn_set_grad_enabled(false);
    tn_tensor *flat = OWN(tni_reshape(OWN(tni_detach(value)), TN_SHAPE(-1)));
    tn_tensor *old = OWN(tni_mul_scalar_(running, tn_float(1 - momentum)));
    tn_tensor *now = OWN(tni_add_(old, flat, tn_float(momentum)));
    tn_set_grad_enabled(before);
    tni_temps_drop(&temps);
    return now ? TN_OK : tni_failed();
}

/* batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps) */
BOXED(run_batch_norm) {
    tn_tensor *input = tni_arg_tensor(&args[0]), *weight = tni_arg_some(&args[1]);
    tn_tensor *bias = tni_arg_some(&args[2]), *running_mean = tni_arg_some(&args[3]);
    tn_tensor *running_var = tni_arg_some(&args[4]);
    bool training = args[5].v.boolean != 0;
    int32_t rank = input->view.rank;
    if (rank < 2)
        return tni_fail(TN_SHAPE, "tn_batch_norm: input needs at least 2 dimensions, [N, C, ...]");
    tn_tensor *parameters[4] = {weight, bias, running_mean, running_var};
    for (int i = 0; i < 4; i++)
        if (parameters[i] != TN_NONE &&
            (parameters[i]->view.rank != 1 || parameters[i]->sizes[0] != input->sizes[1]))
            return tni_fail(TN_SHAPE,
                            "tn_batch_norm: weight, bias and running statistics must be "
                            "[%lld], one for each channel",
                            (long long)input->sizes[1]);
    if (!training && (running_mean == TN_NONE || running_var == TN_NONE))
        return tni_fail(TN_INVALID_ARGUMENT, "tn_batch_norm: without training the running "
                                             "statistics are needed");
    tni_temps temps = {0};
    tn_tensor *mean, *variance;
    if (training) {
        int64_t dims[TN_MAX_RANK], n = 0;
        for (int32_t d = 0; d < rank; d++)
            if (d != 1)
                dims[n++] = d;
        int64_t count = input->sizes[1] ? input->view.numel / input->sizes[1] : 0;
        if (count < 2)
            return tni_fail(TN_SHAPE, "tn_batch_norm: training needs more than one value for each "
                                      "channel");
        mean = OWN(tni_mean_dim(input, tn_ints_of(dims, n), true, TN_DTYPE_NONE));
        variance = OWN(tni_var_dim(input, tn_ints_of(dims, n), 0.0, true));
        double bessel = (double)count / (double)(count - 1);
        tn_tensor *unbiased = OWN(tni_mul_scalar(variance, tn_float(bessel)));
        if (update_running(running_mean, mean, args[6].v.f64) != TN_OK ||
            update_running(running_var, unbiased, args[6].v.f64) != TN_OK)
            RETURN(NULL);
    } else {
        mean = per_channel(&temps, running_mean, rank);
        variance = per_channel(&temps, running_var, rank);
    }
    tn_tensor *rstd =
        OWN(tni_rsqrt(OWN(tni_add_scalar(variance, tn_float(args[7].v.f64), tn_int(1)))));
    tn_tensor *out = OWN(tni_mul(OWN(tni_sub(input, mean, tn_int(1))), rstd));
    if (weight != TN_NONE)
        out = OWN(tni_mul(out, per_channel(&temps, weight, rank)));
    if (bias != TN_NONE)
        out = OWN(tni_add(out, per_channel(&temps, bias, rank), tn_int(1)));
    RETURN(out);
}
