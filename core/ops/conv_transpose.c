/* Transposed convolution, and convolution over three dimensions: by those over two.
 *
 * A transposed convolution is the gradient of a convolution by its input. Of three dimensions, the
 * depth taps go to the channels, so that one convolution of [N * OD, C * KD, H, W] adds up all
 * products:
 *
 *     conv3d              im2col over D:  [N, C, D, H * W]  ->  [N, C * KD, OD, H * W]
 *     conv_transpose3d    col2im over D:  [N, O * KD, D, OH * OW]  ->  [N, O, OD, OH * OW]
 */
#include "base/alloc.h"
#include "core/ops/functions.h"
#include "core/ops/window.h"

#include <string.h>

static tn_status fail_rank(const tn_tensor *t, const char *call, const char *name,
                           const char *expected) {
    return tni_fail(TN_ERR_SHAPE, "%s: %s must be %s, but has shape %s", call, name, expected,
                    TNI_SHAPE_OF(t));
}

/* ---- transposed, over the last n dimensions ---------------------------------------------- */

/* n of each of these, and what follows from them. */
typedef struct turned {
    int64_t stride[3], padding[3], more[3], dilation[3]; /* more: output_padding */
    int64_t groups, out_channels;
    int64_t out[3];   /* sizes of the output */
    int64_t zeros[3]; /* to put after the input, where output_padding adds whole windows */
} turned;

/* (input, weight, bias, stride, padding, output_padding, groups, dilation) of n dimensions */
static bool turned_init(turned *t, int n, const tn_cell *args, const char *call) {
    const tn_tensor *x = tni_arg_tensor(&args[0]), *weight = tni_arg_tensor(&args[1]);
    const tn_tensor *bias = tni_arg_tensor(&args[2]);
    static const char *const inputs[] = {"", "[N, C, L] or [C, L]", "[N, C, H, W] or [C, H, W]",
                                         "[N, C, D, H, W] or [C, D, H, W]"};
    static const char *const weights[] = {"", "[C, O / groups, K]", "[C, O / groups, KH, KW]",
                                          "[C, O / groups, KD, KH, KW]"};
    int32_t rank = x->view.rank;
    t->groups = args[6].v.i64;
    if (rank != n + 1 && rank != n + 2)
        return fail_rank(x, call, "input", inputs[n]), false;
    if (weight->view.rank != n + 2)
        return fail_rank(weight, call, "weight", weights[n]), false;
    if (!tni_window_values(tni_arg_ints(&args[3]), n, 1, "stride", call, t->stride) ||
        !tni_window_values(tni_arg_ints(&args[4]), n, 0, "padding", call, t->padding) ||
        !tni_window_values(tni_arg_ints(&args[5]), n, 0, "output_padding", call, t->more) ||
        !tni_window_values(tni_arg_ints(&args[7]), n, 1, "dilation", call, t->dilation))
        return false;
    int64_t channels = x->sizes[rank - n - 1];
    if (t->groups < 1 || channels < 1 || channels != weight->sizes[0] ||
        channels % t->groups != 0 || !tni_mul_i64(weight->sizes[1], t->groups, &t->out_channels)) {
        tni_fail(TN_ERR_SHAPE,
                 "%s: input %s and weight %s with %lld groups do not fit; the input's channels "
                 "must be weight.size(0), a multiple of groups, and not be 0",
                 call, TNI_SHAPE_OF_SIZES(rank, x->sizes), TNI_SHAPE_OF_SIZES(n + 2, weight->sizes),
                 (long long)t->groups);
        return false;
    }
    if (bias && !tni_has_shape(bias, 1, &t->out_channels)) {
        tni_fail(TN_ERR_SHAPE, "%s: bias must have shape [%lld], but has %s", call,
                 (long long)t->out_channels, TNI_SHAPE_OF(bias));
        return false;
    }
    for (int i = 0; i < n; i++) {
        int64_t in = x->sizes[rank - n + i], kernel = weight->sizes[2 + i];
        if (t->more[i] >= t->stride[i] && t->more[i] >= t->dilation[i]) {
            tni_fail(TN_ERR_INVALID_ARGUMENT,
                     "%s: output_padding %lld must be below stride %lld or dilation %lld", call,
                     (long long)t->more[i], (long long)t->stride[i], (long long)t->dilation[i]);
            return false;
        }
        int64_t reach = kernel > 0 && kernel <= INT32_MAX ? t->dilation[i] * (kernel - 1) + 1 : -1;
        if (reach < 0 || in < 1 || !tni_mul_i64(in - 1, t->stride[i], &t->out[i]) ||
            !tni_add_i64(t->out[i], reach - 2 * t->padding[i] + t->more[i], &t->out[i]) ||
            t->out[i] < 1) {
            tni_fail(TN_ERR_SHAPE,
                     "%s: input %s and weight %s with padding %lld give no output; each size of "
                     "it must be 1 at least",
                     call, TNI_SHAPE_OF_SIZES(rank, x->sizes),
                     TNI_SHAPE_OF_SIZES(n + 2, weight->sizes), (long long)t->padding[i]);
            return false;
        }
        t->zeros[i] = t->more[i] / t->stride[i];
    }
    return true;
}

/* x with n zeros after dim */
static tn_tensor *with_zeros(tni_temps *tmp, tn_tensor *x, int32_t dim, int64_t n) {
    if (!x || n == 0)
        return x;
    int64_t sizes[TN_MAX_RANK];
    memcpy(sizes, x->sizes, (size_t)x->view.rank * sizeof *sizes);
    sizes[dim] = n;
    tn_tensor *zeros =
        tni_own(tmp, tni_zeros(tn_ints_of(sizes, x->view.rank), x->view.dtype, x->device->id));
    return zeros ? tni_own(tmp, tni_cat((tn_tensor *[]){x, zeros}, 2, dim)) : NULL;
}

/* Of x [N, C, H, W], without bias; `first` is the first of the two dimensions in t. */
static tn_tensor *turned_planes(const turned *t, int first, tni_temps *tmp, tn_tensor *x,
                                tn_tensor *weight, int64_t out_channels) {
    for (int i = 0; i < 2; i++)
        x = with_zeros(tmp, x, 2 + i, t->zeros[first + i]);
    if (!x)
        return NULL;
    return tni_own(tmp, tni_convolution_backward_input(
                            x, weight,
                            TN_SHAPE(x->sizes[0], out_channels, t->out[first], t->out[first + 1]),
                            tn_ints_of(t->stride + first, 2), tn_ints_of(t->padding + first, 2),
                            tn_ints_of(t->dilation + first, 2), t->groups));
}

/* x [N, O, ...] plus bias; n dimensions follow. */
static tn_tensor *with_bias(tni_temps *tmp, tn_tensor *x, tn_tensor *bias, int n) {
    if (!x || !bias)
        return x;
    int64_t sizes[4] = {bias->sizes[0], 1, 1, 1};
    bias = tni_own(tmp, tni_reshape(bias, tn_ints_of(sizes, 1 + n)));
    return tni_own(tmp, tni_add(x, bias, tn_int(1)));
}

tn_status tni_run_conv_transpose2d(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = tni_arg_tensor(&args[0]);
    bool single = x->view.rank == 3;
    turned t;
    if (!turned_init(&t, 2, args, "tn_conv_transpose2d"))
        return tni_failed();
    tni_temps tmp = {0};
    if (single)
        x = tni_own(&tmp, tni_unsqueeze(x, 0));
    x = turned_planes(&t, 0, &tmp, x, tni_arg_tensor(&args[1]), t.out_channels);
    x = with_bias(&tmp, x, tni_arg_tensor(&args[2]), 2);
    if (single)
        x = tni_own(&tmp, tni_squeeze_dim(x, 0));
    return tni_temps_return(&tmp, x, rets);
}

/* Planes of height one. */
tn_status tni_run_conv_transpose1d(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = tni_arg_tensor(&args[0]), *weight = tni_arg_tensor(&args[1]);
    bool single = x->view.rank == 2;
    turned t;
    if (!turned_init(&t, 1, args, "tn_conv_transpose1d"))
        return tni_failed();
    turned planes = {.stride = {1, t.stride[0]},
                     .padding = {0, t.padding[0]},
                     .dilation = {1, t.dilation[0]},
                     .groups = t.groups,
                     .out = {1, t.out[0]},
                     .zeros = {0, t.zeros[0]}};
    tni_temps tmp = {0};
    if (single)
        x = tni_own(&tmp, tni_unsqueeze(x, 0));
    x = tni_own(&tmp, tni_unsqueeze(x, 2));
    weight = tni_own(&tmp, tni_unsqueeze(weight, 2));
    x = turned_planes(&planes, 0, &tmp, x, weight, t.out_channels);
    x = tni_own(&tmp, tni_squeeze_dim(x, 2));
    x = with_bias(&tmp, x, tni_arg_tensor(&args[2]), 1);
    if (single)
        x = tni_own(&tmp, tni_squeeze_dim(x, 0));
    return tni_temps_return(&tmp, x, rets);
}

/* ---- three dimensions -------------------------------------------------------------------- */

/* [N, C, D, H, W] as [N * D, C, H, W]. */
static tn_tensor *by_depth(tni_temps *tmp, tn_tensor *x) {
    x = tni_own(tmp, tni_permute(x, TN_SHAPE(0, 2, 1, 3, 4)));
    if (!x)
        return NULL;
    const int64_t *d = x->sizes;
    return tni_own(tmp, tni_reshape(x, TN_SHAPE(d[0] * d[1], d[2], d[3], d[4])));
}

/* The inverse. */
static tn_tensor *of_depths(tni_temps *tmp, tn_tensor *x, int64_t n, int64_t depth) {
    if (!x)
        return NULL;
    const int64_t *d = x->sizes;
    x = tni_own(tmp, tni_reshape(x, TN_SHAPE(n, depth, d[1], d[2], d[3])));
    return tni_own(tmp, tni_permute(x, TN_SHAPE(0, 2, 1, 3, 4)));
}

/* Weights [A, B, KD, KH, KW] as [A, B * KD, KH, KW]. */
static tn_tensor *flat_taps(tni_temps *tmp, tn_tensor *weight) {
    const int64_t *d = weight->sizes;
    return tni_own(tmp, tni_reshape(weight, TN_SHAPE(d[0], d[1] * d[2], d[3], d[4])));
}

/* conv3d(input, weight, bias, stride, padding, dilation, groups) */
tn_status tni_run_conv3d(const tn_cell *args, tn_cell *rets) {
    static const char *const call = "tn_conv3d";
    tn_tensor *x = tni_arg_tensor(&args[0]), *weight = tni_arg_tensor(&args[1]);
    int32_t rank = x->view.rank;
    int64_t stride[3], padding[3], dilation[3], groups = args[6].v.i64, product;
    if (rank != 4 && rank != 5)
        return fail_rank(x, call, "input", "[N, C, D, H, W] or [C, D, H, W]");
    if (weight->view.rank != 5)
        return fail_rank(weight, call, "weight", "[O, C / groups, KD, KH, KW]");
    if (!tni_window_values(tni_arg_ints(&args[3]), 3, 1, "stride", call, stride) ||
        !tni_window_values(tni_arg_ints(&args[4]), 3, 0, "padding", call, padding) ||
        !tni_window_values(tni_arg_ints(&args[5]), 3, 1, "dilation", call, dilation))
        return tni_failed();
    int64_t channels = x->sizes[rank - 4], kernel = weight->sizes[2];
    if (groups < 1 || channels < 1 || weight->sizes[0] % groups != 0 ||
        !tni_mul_i64(weight->sizes[1], groups, &product) || product != channels)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: input %s and weight %s with %lld groups do not fit; the input's "
                        "channels must be groups * weight.size(1), and not be 0, and "
                        "weight.size(0) a multiple of groups",
                        call, TNI_SHAPE_OF_SIZES(rank, x->sizes),
                        TNI_SHAPE_OF_SIZES(5, weight->sizes), (long long)groups);
    const int64_t *size = x->sizes + rank - 3;
    if (kernel < 1 || size[0] < 1 || size[1] < 1 || size[2] < 1 || size[1] > INT64_MAX / size[2])
        return tni_fail(TN_ERR_SHAPE,
                        "%s: neither input %s nor weight %s may have a size of 0 but N", call,
                        TNI_SHAPE_OF_SIZES(rank, x->sizes), TNI_SHAPE_OF_SIZES(5, weight->sizes));
    int64_t n = rank == 5 ? x->sizes[0] : 1;
    tni_temps tmp = {0};
    x = tni_own(&tmp, tni_reshape(x, TN_SHAPE(n, channels, size[0], size[1] * size[2])));
    x = tni_own(&tmp, tni_im2col(x, TN_SHAPE(kernel, 1), TN_SHAPE(dilation[0], 1),
                                 TN_SHAPE(padding[0], 0), TN_SHAPE(stride[0], 1)));
    if (!x)
        return tni_temps_return(&tmp, NULL, rets);
    int64_t depth = x->sizes[2] / (size[1] * size[2]);
    x = tni_own(&tmp, tni_reshape(x, TN_SHAPE(n, channels * kernel, depth, size[1], size[2])));
    x = by_depth(&tmp, x);
    x = tni_own(&tmp, tni_convolution(x, flat_taps(&tmp, weight), tni_arg_some(&args[2]),
                                      tn_ints_of(stride + 1, 2), tn_ints_of(padding + 1, 2),
                                      tn_ints_of(dilation + 1, 2), groups));
    x = tni_own(&tmp, tni_contiguous(of_depths(&tmp, x, n, depth)));
    if (rank == 4)
        x = tni_own(&tmp, tni_squeeze_dim(x, 0));
    return tni_temps_return(&tmp, x, rets);
}

/* conv_transpose3d(input, weight, bias, stride, padding, output_padding, groups, dilation) */
tn_status tni_run_conv_transpose3d(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = tni_arg_tensor(&args[0]), *weight = tni_arg_tensor(&args[1]);
    bool single = x->view.rank == 4;
    turned t;
    int64_t taps, plane;
    if (!turned_init(&t, 3, args, "tn_conv_transpose3d"))
        return tni_failed();
    int64_t kernel = weight->sizes[2], out = t.out_channels;
    if (!tni_mul_i64(out, kernel, &taps) || !tni_mul_i64(t.out[1], t.out[2], &plane))
        return tni_fail(TN_ERR_SHAPE, "tn_conv_transpose3d: the output is too large");
    tni_temps tmp = {0};
    if (single)
        x = tni_own(&tmp, tni_unsqueeze(x, 0));
    x = with_zeros(&tmp, x, 2, t.zeros[0]);
    if (!x)
        return tni_temps_return(&tmp, NULL, rets);
    int64_t n = x->sizes[0], depth = x->sizes[2];
    x = turned_planes(&t, 1, &tmp, by_depth(&tmp, x), flat_taps(&tmp, weight), taps);
    x = of_depths(&tmp, x, n, depth); /* [N, O * KD, D, OH, OW] */
    x = tni_own(&tmp, tni_reshape(x, TN_SHAPE(n, taps, depth * plane)));
    x = tni_own(&tmp, tni_col2im(x, TN_SHAPE(t.out[0], plane), TN_SHAPE(kernel, 1),
                                 TN_SHAPE(t.dilation[0], 1), TN_SHAPE(t.padding[0], 0),
                                 TN_SHAPE(t.stride[0], 1)));
    x = tni_own(&tmp, tni_reshape(x, TN_SHAPE(n, out, t.out[0], t.out[1], t.out[2])));
    x = with_bias(&tmp, x, tni_arg_tensor(&args[2]), 3);
    if (single)
        x = tni_own(&tmp, tni_squeeze_dim(x, 0));
    return tni_temps_return(&tmp, x, rets);
}
