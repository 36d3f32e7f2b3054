/* Group, instance and root-mean-square normalisation: by layer_norm's and batch_norm's. */
#include "base/alloc.h"
#include "core/ops/functions.h"
#include "core/ops/halves.h"

#include <string.h>

/* ---- groups ------------------------------------------------------------------------------ */

/* The input as [N, groups, K] is normalised over its last dimension. */
typedef struct groups {
    int64_t n, c, hw, group, length; /* length: K */
} groups;

static tn_status groups_init(groups *g, const char *call, const tn_tensor *input, int64_t n,
                             int64_t c, int64_t hw, int64_t group) {
    int64_t numel;
    *g = (groups){.n = n, .c = c, .hw = hw, .group = group};
    if (!tni_is_float(input->view.dtype))
        return tni_fail(TN_ERR_DTYPE, "%s: not defined for %s; cast with tn_to_dtype", call,
                        tn_dtype_name(input->view.dtype));
    if (group < 1 || c < 1 || c % group != 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: %lld channels cannot be divided into %lld groups", call, (long long)c,
                        (long long)group);
    if (n < 0 || hw < 1 || !tni_numel(3, (int64_t[]){n, c, hw}, 1, &numel) ||
        numel != input->view.numel)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: an input of shape %s is not %lld images of %lld channels of %lld "
                        "elements, one at least",
                        call, TNI_SHAPE_OF(input), (long long)n, (long long)c, (long long)hw);
    return tni_mul_i64(c / group, hw, &g->length)
               ? TN_OK
               : tni_fail(TN_ERR_SHAPE, "%s: %lld x %lld elements are too many", call,
                          (long long)(c / group), (long long)hw);
}

static tn_status check_channels(const char *call, const char *name, const tn_tensor *t,
                                int64_t channels) {
    if (tni_not_tensor(t) || tni_has_shape(t, 1, &channels))
        return TN_OK;
    return tni_fail(TN_ERR_SHAPE, "%s: %s must have shape [%lld], one for each channel, but has %s",
                    call, name, (long long)channels, TNI_SHAPE_OF(t));
}

static tn_tensor *in_groups(const groups *g, tni_temps *tmp, tn_tensor *t) {
    return tni_own(tmp, tni_reshape(t, TN_SHAPE(g->n, g->group, g->length)));
}

/* One value for each channel, beside [N, C, HW]. */
static tn_tensor *channels(const groups *g, tni_temps *tmp, tn_tensor *t) {
    return tni_own(tmp, tni_reshape(t, TN_SHAPE(1, g->c, 1)));
}

/* t times weight, one for each channel; in groups. */
static tn_tensor *weighted(const groups *g, tni_temps *tmp, tn_tensor *t, tn_tensor *weight) {
    if (tni_not_tensor(weight))
        return in_groups(g, tmp, t);
    t = tni_own(tmp, tni_reshape(t, TN_SHAPE(g->n, g->c, g->hw)));
    t = tni_own(tmp, tni_mul(t, channels(g, tmp, weight)));
    return in_groups(g, tmp, t);
}

/* The normalised input in its shape; mean and 1 / deviation, [N, group, 1], where they are asked
 * for. */
static tn_tensor *normalise(const groups *g, const char *call, tni_temps *tmp, tn_tensor *input,
                            tn_tensor *weight, tn_tensor *bias, double eps, tn_tensor **mean,
                            tn_tensor **rstd) {
    if (check_channels(call, "weight", weight, g->c) != TN_OK ||
        check_channels(call, "bias", bias, g->c) != TN_OK)
        return NULL;
    tn_tensor *x = in_groups(g, tmp, input), *out[3];
    if (!x || tni_native_layer_norm(x, TN_SHAPE(g->length), TN_NONE, TN_NONE, eps, &out[0], &out[1],
                                    &out[2]) != TN_OK)
        return NULL;
    for (int i = 0; i < 3; i++)
        tni_own(tmp, out[i]);
    if (mean) {
        *mean = out[1];
        *rstd = out[2];
    }
    if (mean && tn_grad_enabled() && tni_requires_grad(input)) { /* whose own have no history */
        *mean = tni_own(tmp, tni_mean_dim(x, TN_SHAPE(2), true, TN_DTYPE_NONE));
        tn_tensor *centred = tni_own(tmp, tni_sub(x, *mean, tn_int(1)));
        centred = tni_own(tmp, tni_mul(centred, centred));
        centred = tni_own(tmp, tni_mean_dim(centred, TN_SHAPE(2), true, TN_DTYPE_NONE));
        centred = tni_own(tmp, tni_add_scalar(centred, tn_float(eps), tn_int(1)));
        *rstd = tni_own(tmp, tni_rsqrt(centred));
    }
    x = tni_own(tmp, tni_reshape(out[0], TN_SHAPE(g->n, g->c, g->hw)));
    if (!tni_not_tensor(weight))
        x = tni_then(tmp, tni_mul(x, channels(g, tmp, weight)), x);
    if (!tni_not_tensor(bias))
        x = tni_then(tmp, tni_add(x, channels(g, tmp, bias), tn_int(1)), x);
    return tni_own(tmp, tni_reshape(x, tni_sizes(input)));
}

/* native_group_norm(input, weight, bias, N, C, HxW, group, eps) */
tn_status tni_run_native_group_norm(const tn_cell *args, tn_cell *rets) {
    tn_tensor *input = tni_arg_tensor(&args[0]), *results[3] = {NULL, NULL, NULL};
    groups g;
    TNI_TRY(groups_init(&g, "tn_native_group_norm", input, args[3].v.i64, args[4].v.i64,
                        args[5].v.i64, args[6].v.i64));
    tni_temps tmp = {0};
    results[0] = normalise(&g, "tn_native_group_norm", &tmp, input, tni_arg_some(&args[1]),
                           tni_arg_some(&args[2]), args[7].v.f64, &results[1], &results[2]);
    for (int i = 1; i < 3 && results[0]; i++)
        results[i] = tni_own(&tmp, tni_reshape(results[i], TN_SHAPE(g.n, g.group)));
    return tni_temps_return_many(&tmp, results, 3, rets);
}

/* group_norm(input, num_groups, weight, bias, eps) */
tn_status tni_run_group_norm(const tn_cell *args, tn_cell *rets) {
    tn_tensor *input = tni_arg_tensor(&args[0]);
    int64_t hw = 1;
    bool fits = input->view.rank >= 2;
    for (int32_t d = 2; d < input->view.rank && fits; d++)
        fits = tni_mul_i64(hw, input->sizes[d], &hw);
    if (!fits)
        return tni_fail(TN_ERR_SHAPE, "tn_group_norm: input must be [N, C, ...], but has shape %s",
                        TNI_SHAPE_OF(input));
    groups g;
    TNI_TRY(groups_init(&g, "tn_group_norm", input, input->sizes[0], input->sizes[1], hw,
                        args[1].v.i64));
    tni_temps tmp = {0};
    tn_tensor *x = normalise(&g, "tn_group_norm", &tmp, input, tni_arg_some(&args[2]),
                             tni_arg_some(&args[3]), args[4].v.f64, NULL, NULL);
    return tni_temps_return(&tmp, x, rets);
}

static tn_status check_statistics(const groups *g, const char *name, const tn_tensor *t) {
    if (tni_has_shape(t, 2, (int64_t[]){g->n, g->group}))
        return TN_OK;
    return tni_fail(TN_ERR_SHAPE,
                    "tn_native_group_norm_backward: %s has shape %s, but must have [%lld, %lld]",
                    name, TNI_SHAPE_OF(t), (long long)g->n, (long long)g->group);
}

/* Sums over images and places: one for each channel. */
static tn_tensor *by_channel(const groups *g, tni_temps *tmp, tn_tensor *t) {
    t = tni_own(tmp, tni_reshape(t, TN_SHAPE(g->n, g->c, g->hw)));
    return tni_own(tmp, tni_sum_dim(t, TN_SHAPE(0, 2), false, TN_DTYPE_NONE));
}

/* native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group) */
tn_status tni_run_native_group_norm_backward(const tn_cell *args, tn_cell *rets) {
    static const char *const call = "tn_native_group_norm_backward";
    tn_tensor *grad = tni_arg_tensor(&args[0]), *input = tni_arg_tensor(&args[1]), *results[3];
    tn_tensor *mean = tni_arg_tensor(&args[2]), *rstd = tni_arg_tensor(&args[3]);
    tn_tensor *weight = tni_arg_some(&args[4]);
    groups g;
    TNI_TRY(
        groups_init(&g, call, input, args[5].v.i64, args[6].v.i64, args[7].v.i64, args[8].v.i64));
    if (!tni_same_shape(grad, input))
        return tni_fail(TN_ERR_SHAPE, "%s: grad_out has shape %s, but input has %s", call,
                        TNI_SHAPE_OF(grad), TNI_SHAPE_OF(input));
    TNI_TRY(check_statistics(&g, "mean", mean));
    TNI_TRY(check_statistics(&g, "rstd", rstd));
    TNI_TRY(check_channels(call, "weight", weight, g.c));
    tni_temps tmp = {0};
    tn_tensor *x = in_groups(&g, &tmp, input), *scaled = weighted(&g, &tmp, grad, weight);
    mean = tni_own(&tmp, tni_unsqueeze(mean, 2));
    rstd = tni_own(&tmp, tni_unsqueeze(rstd, 2));
    tn_tensor *out =
        tni_own(&tmp, tni_layer_norm_backward(scaled, x, mean, rstd, TN_NONE, TN_SHAPE(g.length)));
    results[0] = tni_own(&tmp, tni_reshape(out, tni_sizes(input)));
    x = tni_then(&tmp, tni_sub(x, mean, tn_int(1)), x);
    x = tni_then(&tmp, tni_mul(x, rstd), x);
    x = tni_then(&tmp, tni_mul(x, in_groups(&g, &tmp, grad)), x);
    results[1] = by_channel(&g, &tmp, x);
    results[2] = by_channel(&g, &tmp, grad);
    return tni_temps_return_many(&tmp, results, 3, rets);
}

/* ---- instances --------------------------------------------------------------------------- */

/* One for each channel, as many times as there are images. */
static tn_tensor *repeated(tni_temps *tmp, tn_tensor *t, int64_t n, int64_t c) {
    if (tni_not_tensor(t))
        return TN_NONE;
    t = tni_own(tmp, tni_expand(t, TN_SHAPE(n, c)));
    return tni_own(tmp, tni_reshape(t, TN_SHAPE(n * c)));
}

/* A running statistic becomes the mean of what it is for each image. */
static tn_status store_mean(tn_tensor *running, tn_tensor *each, int64_t n, int64_t c) {
    if (tni_not_tensor(running))
        return TN_OK;
    tni_temps tmp = {0};
    tn_tensor *mean = tni_own(&tmp, tni_reshape(each, TN_SHAPE(n, c)));
    mean = tni_own(&tmp, tni_mean_dim(mean, TN_SHAPE(0), false, TN_DTYPE_NONE));
    tn_tensor *stored = mean ? tni_own(&tmp, tni_copy_(running, mean, false)) : NULL;
    tni_temps_finish(&tmp);
    return stored ? TN_OK : tni_failed();
}

/* instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps):
 * batch_norm of images as channels. */
tn_status tni_run_instance_norm(const tn_cell *args, tn_cell *rets) {
    tn_tensor *input = tni_arg_tensor(&args[0]), *each[2];
    int32_t rank = input->view.rank;
    if (rank < 2)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_instance_norm: input must be [N, C, ...], but has shape %s",
                        TNI_SHAPE_OF_SIZES(rank, input->sizes));
    bool by_input = args[5].v.boolean;
    static const char *const names[] = {"", "weight", "bias", "running_mean", "running_var"};
    for (int i = 1; i < 5; i++) {
        TNI_TRY(
            check_channels("tn_instance_norm", names[i], tni_arg_some(&args[i]), input->sizes[1]));
        if (i > 2 && !by_input && !tni_arg_tensor(&args[i]))
            return tni_fail(TN_ERR_INVALID_ARGUMENT,
                            "tn_instance_norm: running_mean and running_var cannot be left out "
                            "where use_input_stats is false");
    }
    if (!tni_is_float(input->view.dtype))
        return tni_fail(TN_ERR_DTYPE, "tn_instance_norm: not defined for %s; cast with tn_to_dtype",
                        tn_dtype_name(input->view.dtype));
    int64_t sizes[TN_MAX_RANK], n = input->sizes[0], c = input->sizes[1];
    memcpy(sizes, input->sizes, (size_t)rank * sizeof *sizes);
    sizes[0] = 1;
    if (!tni_mul_i64(n, c, &sizes[1]))
        return tni_fail(TN_ERR_SHAPE, "tn_instance_norm: %s are too many channels",
                        TNI_SHAPE_OF_SIZES(rank, input->sizes));
    if (by_input && input->view.numel > 0 && input->view.numel == sizes[1])
        return tni_fail(TN_ERR_SHAPE,
                        "tn_instance_norm: needs more than one value for each channel of an image, "
                        "but the input has shape %s",
                        TNI_SHAPE_OF_SIZES(rank, input->sizes));
    tni_temps tmp = {0};
    for (int i = 0; i < 2; i++) {
        tn_tensor *running = tni_arg_tensor(&args[3 + i]);
        each[i] = TN_NONE;
        if (running) { /* memory of its own, as batch_norm writes it */
            each[i] = repeated(&tmp, tni_widened(&tmp, running), n, c);
            each[i] = each[i] ? tni_own(&tmp, tni_clone(each[i])) : NULL;
        }
        if (!each[i])
            return tni_temps_return(&tmp, NULL, rets);
    }
    tn_tensor *x = tni_own(&tmp, tni_reshape(input, tn_ints_of(sizes, rank)));
    x = tni_own(&tmp, tni_batch_norm(x, repeated(&tmp, tni_arg_some(&args[1]), n, c),
                                     repeated(&tmp, tni_arg_some(&args[2]), n, c), each[0], each[1],
                                     by_input, args[6].v.f64, args[7].v.f64));
    for (int i = 0; i < 2 && x && by_input && input->view.numel > 0; i++)
        if (store_mean(tni_arg_some(&args[3 + i]), each[i], n, c) != TN_OK)
            x = NULL;
    return tni_temps_return(&tmp, tni_own(&tmp, tni_reshape(x, tni_sizes(input))), rets);
}

/* ---- root mean square -------------------------------------------------------------------- */

/* rms_norm(input, normalized_shape, weight, eps) */
tn_status tni_run_rms_norm(const tn_cell *args, tn_cell *rets) {
    tn_tensor *input = tni_arg_tensor(&args[0]), *weight = tni_arg_tensor(&args[2]);
    tn_ints shape = tni_arg_ints(&args[1]);
    int32_t rank = input->view.rank, first = rank - (int32_t)shape.n;
    if (!tni_is_float(input->view.dtype))
        return tni_fail(TN_ERR_DTYPE, "tn_rms_norm: not defined for %s; cast with tn_to_dtype",
                        tn_dtype_name(input->view.dtype));
    if (shape.n < 1)
        return tni_fail(
            TN_ERR_INVALID_ARGUMENT,
            "tn_rms_norm: normalized_shape is empty; name the sizes of the last dimensions");
    if (shape.n > rank ||
        memcmp(input->sizes + first, shape.data, (size_t)shape.n * sizeof(int64_t)) != 0)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_rms_norm: input has shape %s, which does not end with "
                        "normalized_shape %s",
                        TNI_SHAPE_OF_SIZES(rank, input->sizes), TNI_SHAPE_OF_INTS(shape));
    if (weight && !tni_has_shape(weight, (int32_t)shape.n, shape.data))
        return tni_fail(TN_ERR_SHAPE,
                        "tn_rms_norm: weight has shape %s, but must have normalized_shape %s",
                        TNI_SHAPE_OF(weight), TNI_SHAPE_OF_INTS(shape));
    double eps =
        input->view.dtype == TN_F64 ? 0x1p-52 : 0x1p-23; /* of what halves are computed in */
    if (args[3].tag != TN_CELL_NONE)
        eps = tni_scalar_f64(args[3]);
    int64_t dims[TN_MAX_RANK];
    for (int32_t d = first; d < rank; d++)
        dims[d - first] = d;
    tni_temps tmp = {0};
    tn_tensor *squares = tni_own(&tmp, tni_mul(input, input));
    tn_tensor *scale =
        tni_own(&tmp, tni_mean_dim(squares, tn_ints_of(dims, shape.n), true, TN_DTYPE_NONE));
    scale = tni_own(&tmp, tni_add_scalar(scale, tn_float(eps), tn_int(1)));
    scale = tni_own(&tmp, tni_rsqrt(scale));
    tn_tensor *x = tni_own(&tmp, tni_mul(input, scale));
    if (weight)
        x = tni_own(&tmp, tni_mul(x, weight));
    return tni_temps_return(&tmp, x, rets);
}
