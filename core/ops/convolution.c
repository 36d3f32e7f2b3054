/* Convolution in two dimensions, its gradients, and the shorter forms of it.
 *
 * Without a kernel for it a device gets one matrix product for all groups (im2col): with
 * CK = C / groups * KH * KW and L = OH * OW,
 *
 *     out      [G, O / G, n * L]  = weight [G, O / G, CK]       x columns [G, CK, n * L]
 *     columns' [G, CK, n * L]     = weight^T [G, CK, O / G]     x out' [G, O / G, n * L]
 *     weight'  [G, O / G, CK]    += out' [G, O / G, n * L]      x columns^T [G, n * L, CK]
 *
 * for as many images n at a time as keep the columns within a bound. These three run below
 * autograd, on data.
 */
#include "core/ops/functions.h"
#include "core/ops/window.h"

#include <string.h>

enum { COLUMNS_BYTES = 64 << 20 };

/* ---- geometry ---------------------------------------------------------------------------- */

typedef struct conv {
    tni_window window; /* .c: channels of the input */
    int64_t groups, out_channels;
    const char *call;
} conv;

static tn_status fail_rank(const conv *c, const char *name, const char *expected, tn_ints sizes) {
    return tni_fail(TN_ERR_SHAPE, "%s: %s must be %s, but has shape %s", c->call, name, expected,
                    TNI_SHAPE_OF_INTS(sizes));
}

/* From the shapes of input and weight, and the arguments stride, padding, dilation and groups,
 * which stand together. */
static tn_status conv_init(conv *c, const char *call, tn_ints input, tn_ints weight,
                           const tn_cell *options) {
    tni_window *w = &c->window;
    c->call = call;
    c->groups = options[3].v.i64;
    if (input.n != 4)
        return fail_rank(c, "input", "[N, C, H, W]", input);
    if (weight.n != 4)
        return fail_rank(c, "weight", "[O, C / groups, KH, KW]", weight);
    if (!tni_window_pair(tni_arg_ints(&options[0]), 1, "stride", call, w->stride) ||
        !tni_window_pair(tni_arg_ints(&options[1]), 0, "padding", call, w->padding) ||
        !tni_window_pair(tni_arg_ints(&options[2]), 1, "dilation", call, w->dilation) ||
        !tni_window_pair(tn_ints_of(weight.data + 2, 2), 1, "the size of the kernel", call,
                         w->kernel))
        return tni_failed();
    w->n = input.data[0];
    w->c = input.data[1];
    memcpy(w->in, input.data + 2, sizeof w->in);
    c->out_channels = weight.data[0];
    if (c->groups < 1 || c->out_channels % c->groups != 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: %lld output channels cannot be divided into %lld groups", call,
                        (long long)c->out_channels, (long long)c->groups);
    if (weight.data[1] * c->groups != w->c || w->c == 0)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: input %s and weight %s with %lld groups do not fit; input.size(1) "
                        "must equal groups * weight.size(1), and not be 0",
                        call, TNI_SHAPE_OF_SIZES(4, input.data), TNI_SHAPE_OF_SIZES(4, weight.data),
                        (long long)c->groups);
    return tni_window_finish(w, false, call) ? TN_OK : tni_failed();
}

static tn_status check_grad(const conv *c, const tn_tensor *grad) {
    int64_t sizes[4] = {c->window.n, c->out_channels, c->window.out[0], c->window.out[1]};
    if (tni_has_shape(grad, 4, sizes))
        return TN_OK;
    return tni_fail(TN_ERR_SHAPE,
                    "%s: grad_output has shape %s, but an output of these sizes has %s", c->call,
                    TNI_SHAPE_OF(grad), TNI_SHAPE_OF_SIZES(4, sizes));
}

/* The kernel gets two values for each of stride, padding and dilation. */
static tn_status set_pairs(tni_build *b, const conv *c) {
    const tni_window *w = &c->window;
    return tni_window_args(b, 3, (const int64_t *[]){w->stride, w->padding, w->dilation}, 3);
}

/* convolution(input, weight, bias, stride, padding, dilation, groups) */
tn_status tni_infer_convolution(tni_build *b) {
    tn_tensor *input = tni_build_tensor(b, 0), *weight = tni_build_tensor(b, 1);
    tn_tensor *bias = tni_build_tensor(b, 2);
    conv c;
    TNI_TRY(conv_init(&c, b->info->call, tni_sizes(input), tni_sizes(weight), b->args + 3));
    if (bias && (bias->view.rank != 1 || bias->sizes[0] != c.out_channels))
        return tni_build_fail(b, TN_ERR_SHAPE, "bias must have shape [%lld], but has %s",
                              (long long)c.out_channels, TNI_SHAPE_OF(bias));
    tni_build_out(b, 0, 4,
                  (int64_t[]){c.window.n, c.out_channels, c.window.out[0], c.window.out[1]});
    return set_pairs(b, &c);
}

/* The gradient in the shape `size`, which the checks make that of input or weight. */
static tn_status infer_backward(tni_build *b, tn_ints input, tn_ints weight, tn_ints size) {
    conv c;
    TNI_TRY(conv_init(&c, b->info->call, input, weight, b->args + 3));
    TNI_TRY(check_grad(&c, tni_build_tensor(b, 0)));
    tni_build_out(b, 0, 4, size.data);
    b->has_empty_value = true;
    b->empty_value = tn_int(0);
    return set_pairs(b, &c);
}

/* convolution_backward_input(grad_output, weight, input_size, stride, ...) */
tn_status tni_infer_convolution_backward_input(tni_build *b) {
    tn_ints size = tni_arg_ints(&b->args[2]);
    return infer_backward(b, size, tni_sizes(tni_build_tensor(b, 1)), size);
}

/* convolution_backward_weight(grad_output, input, weight_size, stride, ...) */
tn_status tni_infer_convolution_backward_weight(tni_build *b) {
    tn_ints size = tni_arg_ints(&b->args[2]);
    return infer_backward(b, tni_sizes(tni_build_tensor(b, 1)), size, size);
}

/* ---- by matrix products ------------------------------------------------------------------ */

static int64_t column_length(const conv *c) {
    return c->window.c / c->groups * c->window.kernel[0] * c->window.kernel[1];
}

static int64_t images_at_once(const conv *c, tn_dtype dtype) {
    int64_t bytes =
        column_length(c) * c->groups * c->window.out[0] * c->window.out[1] * tni_dtype_size(dtype);
    int64_t n = bytes < COLUMNS_BYTES ? COLUMNS_BYTES / bytes : 1;
    return n < c->window.n ? n : c->window.n;
}

/* A contiguous copy of what a view shows, as [groups, rows, columns]. */
static tn_tensor *as_matrices(const conv *c, tni_temps *tmp, tn_tensor *view, int64_t rows,
                              int64_t columns) {
    tn_tensor *dense = view ? tni_own(tmp, tni_contiguous_data(view)) : NULL;
    return tni_own(tmp, tni_data_reshape(dense, TN_SHAPE(c->groups, rows, columns)));
}

/* Columns of n images from `first`: [G, CK, n * L] */
static tn_tensor *columns_of(const conv *c, tni_temps *tmp, tn_tensor *input, int64_t first,
                             int64_t n) {
    const tni_window *w = &c->window;
    tn_tensor *padded = tni_own(tmp, tni_window_pad(w, input, first, n, tn_int(0)));
    tn_tensor *windows = tni_own(tmp, tni_window_view(w, padded));
    if (!windows)
        return NULL;
    const int64_t *d = windows->sizes, *s = windows->strides;
    tn_tensor *view =
        tni_own(tmp, tni_data_view(windows, TN_SHAPE(d[1], d[2], d[3], d[0], d[4], d[5]),
                                   TN_SHAPE(s[1], s[2], s[3], s[0], s[4], s[5]), 0));
    return as_matrices(c, tmp, view, column_length(c), n * w->out[0] * w->out[1]);
}

/* n images of [N, O, OH, OW] seen as [O, n, OH, OW] */
static tn_tensor *channels_first(tni_temps *tmp, tn_tensor *t, int64_t first, int64_t n) {
    tn_tensor *images = tni_own(tmp, tni_data_narrow(t, 0, first, n));
    if (!images)
        return NULL;
    const int64_t *d = images->sizes, *s = images->strides;
    return tni_own(tmp, tni_data_view(images, TN_SHAPE(d[1], d[0], d[2], d[3]),
                                      TN_SHAPE(s[1], s[0], s[2], s[3]), 0));
}

/* grad_output of n images: [G, O / G, n * L] */
static tn_tensor *grads_of(const conv *c, tni_temps *tmp, tn_tensor *grad, int64_t first,
                           int64_t n) {
    return as_matrices(c, tmp, channels_first(tmp, grad, first, n), c->out_channels / c->groups,
                       n * c->window.out[0] * c->window.out[1]);
}

static tn_tensor *transposed(tni_temps *tmp, tn_tensor *t) {
    if (!t)
        return NULL;
    const int64_t *d = t->sizes, *s = t->strides;
    return tni_own(tmp,
                   tni_data_view(t, TN_SHAPE(d[0], d[2], d[1]), TN_SHAPE(s[0], s[2], s[1]), 0));
}

/* [G, O / G, CK] */
static tn_tensor *weights_of(const conv *c, tni_temps *tmp, tn_tensor *weight) {
    return as_matrices(c, tmp, weight, c->out_channels / c->groups, column_length(c));
}

static tn_status add_bias(const conv *c, tni_temps *tmp, tn_tensor *out, tn_tensor *bias) {
    tn_tensor *planes = tni_own(tmp, tni_data_view(bias, TN_SHAPE(1, c->out_channels, 1, 1),
                                                   TN_SHAPE(0, bias->strides[0], 0, 0), 0));
    return tni_own(tmp, tni_add_(out, planes, tn_int(1))) ? TN_OK : tni_failed();
}

/* One step of a loop over images: work on n of them from `first`. */
typedef tn_status (*step_fn)(const conv *c, tni_temps *tmp, tn_tensor *const *t, int64_t first,
                             int64_t n);

/* As many images at a time as fit; the temporaries of a step do not outlive it. */
static tn_status over_images(const conv *c, tn_dtype dtype, step_fn step, tn_tensor *const *t) {
    tn_status status = TN_OK;
    int64_t most = images_at_once(c, dtype);
    for (int64_t first = 0; first < c->window.n && status == TN_OK; first += most) {
        tni_temps tmp = {0};
        int64_t left = c->window.n - first;
        status = step(c, &tmp, t, first, left < most ? left : most);
        tni_temps_finish(&tmp);
    }
    return status;
}

/* t: weights [G, O / G, CK], input, out */
static tn_status forward_step(const conv *c, tni_temps *tmp, tn_tensor *const *t, int64_t first,
                              int64_t n) {
    const int64_t *out = c->window.out;
    tn_tensor *columns = columns_of(c, tmp, t[1], first, n);
    tn_tensor *product = tni_own(tmp, tni_bmm(t[0], columns));
    tn_tensor *part =
        tni_own(tmp, tni_data_reshape(product, TN_SHAPE(c->out_channels, n, out[0], out[1])));
    tn_tensor *into = channels_first(tmp, t[2], first, n);
    return part && into ? tni_copy_data(into, part) : tni_failed();
}

tn_status tni_run_convolution(const tn_cell *args, tn_cell *rets) {
    tn_tensor *input = tni_arg_tensor(&args[0]), *weight = tni_arg_tensor(&args[1]);
    tn_tensor *bias = tni_arg_tensor(&args[2]);
    conv c;
    TNI_TRY(conv_init(&c, "tn_convolution", tni_sizes(input), tni_sizes(weight), args + 3));
    const tni_window *w = &c.window;
    tni_temps tmp = {0};
    tn_tensor *weights = weights_of(&c, &tmp, weight);
    tn_tensor *out =
        tni_own(&tmp, tni_tensor_new(input->device, input->view.dtype, 4,
                                     (int64_t[]){w->n, c.out_channels, w->out[0], w->out[1]}));
    tn_status status = weights && out ? over_images(&c, input->view.dtype, forward_step,
                                                    (tn_tensor *[]){weights, input, out})
                                      : tni_failed();
    if (status == TN_OK && bias)
        status = add_bias(&c, &tmp, out, bias);
    return tni_temps_return(&tmp, status == TN_OK ? out : NULL, rets);
}

/* t: weights [G, CK, O / G], grad_output, out */
static tn_status backward_input_step(const conv *c, tni_temps *tmp, tn_tensor *const *t,
                                     int64_t first, int64_t n) {
    const tni_window *w = &c->window;
    tn_tensor *grads = grads_of(c, tmp, t[1], first, n);
    tn_tensor *columns = tni_own(tmp, tni_bmm(t[0], grads));
    /* [G, CK, n * L] as [n, C, KH, KW, OH, OW] */
    int64_t d[6] = {w->c, w->kernel[0], w->kernel[1], n, w->out[0], w->out[1]}, s[6];
    tni_contiguous_strides(6, d, s);
    tn_tensor *parts =
        tni_own(tmp, tni_data_view(columns, TN_SHAPE(d[3], d[0], d[1], d[2], d[4], d[5]),
                                   TN_SHAPE(s[3], s[0], s[1], s[2], s[4], s[5]), 0));
    return tni_window_add(w, parts, t[2], first, n);
}

tn_status tni_run_convolution_backward_input(const tn_cell *args, tn_cell *rets) {
    tn_tensor *grad = tni_arg_tensor(&args[0]), *weight = tni_arg_tensor(&args[1]);
    tn_ints sizes = tni_arg_ints(&args[2]);
    conv c;
    TNI_TRY(conv_init(&c, "tn_convolution_backward_input", sizes, tni_sizes(weight), args + 3));
    tni_temps tmp = {0};
    tn_tensor *turned = transposed(&tmp, weights_of(&c, &tmp, weight));
    tn_tensor *out = tni_own(&tmp, tni_tensor_new(grad->device, grad->view.dtype, 4, sizes.data));
    tn_status status = turned && out ? over_images(&c, grad->view.dtype, backward_input_step,
                                                   (tn_tensor *[]){turned, grad, out})
                                     : tni_failed();
    return tni_temps_return(&tmp, status == TN_OK ? out : NULL, rets);
}

/* sum [G, O / G, CK], or NULL, plus the share of n images; owned */
static tn_tensor *plus_images(const conv *c, tn_tensor *sum, tn_tensor *grad, tn_tensor *input,
                              int64_t first, int64_t n) {
    tni_temps tmp = {0};
    tn_tensor *turned = transposed(&tmp, columns_of(c, &tmp, input, first, n));
    tn_tensor *part = tni_own(&tmp, tni_bmm(grads_of(c, &tmp, grad, first, n), turned));
    return tni_temps_keep(&tmp, sum ? tni_own(&tmp, tni_add(sum, part, tn_int(1))) : part);
}

tn_status tni_run_convolution_backward_weight(const tn_cell *args, tn_cell *rets) {
    tn_tensor *grad = tni_arg_tensor(&args[0]), *input = tni_arg_tensor(&args[1]), *sum = NULL;
    tn_ints sizes = tni_arg_ints(&args[2]);
    conv c;
    TNI_TRY(conv_init(&c, "tn_convolution_backward_weight", tni_sizes(input), sizes, args + 3));
    tni_temps tmp = {0};
    int64_t images = c.window.n, step = images_at_once(&c, grad->view.dtype);
    for (int64_t first = 0; first < images && (sum || first == 0); first += step) {
        int64_t n = first + step < images ? step : images - first;
        sum = tni_then(&tmp, plus_images(&c, sum, grad, input, first, n), sum);
    }
    return tni_temps_return(&tmp, tni_own(&tmp, tni_data_reshape(sum, sizes)), rets);
}

/* ---- shorter forms ----------------------------------------------------------------------- */

static tn_status fail_input(const tn_tensor *input, const char *call, const char *expected) {
    return tni_fail(TN_ERR_SHAPE, "%s: input must be %s, but has shape %s", call, expected,
                    TNI_SHAPE_OF(input));
}

/* conv2d(input, weight, bias, stride, padding, dilation, groups); a single image may lack N */
tn_status tni_run_conv2d(const tn_cell *args, tn_cell *rets) {
    tn_tensor *input = tni_arg_tensor(&args[0]);
    int32_t rank = input->view.rank;
    if (rank != 3 && rank != 4)
        return fail_input(input, "tn_conv2d", "[N, C, H, W] or [C, H, W]");
    tni_temps tmp = {0};
    tn_tensor *x = rank == 3 ? tni_own(&tmp, tni_unsqueeze(input, 0)) : input;
    tn_tensor *out =
        tni_own(&tmp, tni_convolution(x, tni_arg_tensor(&args[1]), tni_arg_some(&args[2]),
                                      tni_arg_ints(&args[3]), tni_arg_ints(&args[4]),
                                      tni_arg_ints(&args[5]), args[6].v.i64));
    if (rank == 3)
        out = tni_own(&tmp, tni_squeeze_dim(out, 0));
    return tni_temps_return(&tmp, out, rets);
}

/* conv1d: planes of height one */
tn_status tni_run_conv1d(const tn_cell *args, tn_cell *rets) {
    tn_tensor *input = tni_arg_tensor(&args[0]), *weight = tni_arg_tensor(&args[1]);
    int32_t rank = input->view.rank;
    if (rank != 2 && rank != 3)
        return fail_input(input, "tn_conv1d", "[N, C, L] or [C, L]");
    if (weight->view.rank != 3)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_conv1d: weight must be [O, C / groups, K], but has shape %s",
                        TNI_SHAPE_OF(weight));
    int64_t options[3][2] = {{1, 1}, {0, 0}, {1, 1}};
    for (int i = 0; i < 3; i++) {
        tn_ints given = tni_arg_ints(&args[3 + i]);
        if (given.n != 1)
            return tni_fail(TN_ERR_INVALID_ARGUMENT,
                            "tn_conv1d: %s must be one value, but there are %lld",
                            (const char *[]){"stride", "padding", "dilation"}[i],
                            (long long)(given.n < 0 ? 0 : given.n));
        options[i][1] = given.data[0];
    }
    tni_temps tmp = {0};
    tn_tensor *batch = rank == 2 ? tni_own(&tmp, tni_unsqueeze(input, 0)) : input;
    tn_tensor *planes = tni_own(&tmp, tni_unsqueeze(batch, 2));
    tn_tensor *kernels = tni_own(&tmp, tni_unsqueeze(weight, 2));
    tn_tensor *out = tni_own(
        &tmp, tni_convolution(planes, kernels, tni_arg_some(&args[2]), tn_ints_of(options[0], 2),
                              tn_ints_of(options[1], 2), tn_ints_of(options[2], 2), args[6].v.i64));
    out = tni_own(&tmp, tni_squeeze_dim(out, 2));
    if (rank == 2)
        out = tni_own(&tmp, tni_squeeze_dim(out, 0));
    return tni_temps_return(&tmp, out, rets);
}

/* ---- padding by word --------------------------------------------------------------------- */

typedef tn_tensor *(*conv_fn)(tn_tensor *input, tn_tensor *weight, tn_tensor *bias, tn_ints stride,
                              tn_ints padding, tn_ints dilation, int64_t groups);

/* x with one zero more at the end of dim */
static tn_tensor *with_zero(tni_temps *tmp, tn_tensor *x, int32_t dim) {
    int64_t sizes[TN_MAX_RANK];
    memcpy(sizes, x->sizes, (size_t)x->view.rank * sizeof *sizes);
    sizes[dim] = 1;
    tn_tensor *zeros =
        tni_own(tmp, tni_zeros(tn_ints_of(sizes, x->view.rank), x->view.dtype, x->device->id));
    return zeros ? tni_own(tmp, tni_cat((tn_tensor *[]){x, zeros}, 2, dim)) : NULL;
}

/* (input, weight, bias, stride, padding, dilation, groups) of the last n dimensions: 'same' is
 * dilation * (kernel - 1) around them, of which the half rounded down comes first. */
tn_status tni_run_conv_padding(const char *call, const tn_cell *args, tn_cell *rets, int64_t dims) {
    int32_t n = (int32_t)dims;
    tn_tensor *x = tni_arg_tensor(&args[0]), *weight = tni_arg_tensor(&args[1]);
    int64_t stride[2], dilation[2], padding[2] = {0};
    bool same = args[4].v.string[0] == 's';
    if (!tni_window_pair(tni_arg_ints(&args[3]), 1, "stride", call, stride) ||
        !tni_window_pair(tni_arg_ints(&args[5]), 1, "dilation", call, dilation))
        return tni_failed();
    if (same && (stride[0] != 1 || stride[1] != 1))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: padding 'same' keeps the size where stride is 1, but it is (%lld, "
                        "%lld); give the padding as numbers",
                        call, (long long)stride[0], (long long)stride[1]);
    tni_temps tmp = {0};
    int32_t rank = x->view.rank;
    /* else the convolution says what does not fit */
    bool fits = (rank == n + 1 || rank == n + 2) && weight->view.rank == n + 2;
    for (int32_t i = 0; i < n && same && fits && x; i++) {
        int64_t kernel = weight->sizes[i + 2];
        int64_t whole = kernel > 0 && kernel <= INT32_MAX ? dilation[i] * (kernel - 1) : 0;
        padding[i] = whole / 2;
        if (whole % 2)
            x = with_zero(&tmp, x, rank - n + i);
    }
    return tni_temps_return(
        &tmp,
        tni_own(&tmp, (n == 1 ? tni_conv1d : tni_conv2d)(
                          x, weight, tni_arg_some(&args[2]), tni_arg_ints(&args[3]),
                          tn_ints_of(padding, n), tni_arg_ints(&args[5]), args[6].v.i64)),
        rets);
}
