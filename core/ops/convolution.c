/* Convolution in two dimensions, its two gradients, and how a device without such kernels does
 * them: patches of the input as the rows of a matrix (im2col), a batched product, and back. */
#include "core/ops/boxed.h"
#include "core/ops/build.h"

/* Shapes of one convolution: input [n, c, h, w], weight [o, c / groups, kh, kw], output [n, o, oh,
 * ow] */
typedef struct geometry {
    int64_t n, c, h, w, o, kh, kw, oh, ow, groups;
    int64_t stride[2], padding[2], dilation[2];
} geometry;

static int64_t out_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding,
                        int64_t dilation) {
    int64_t span = in + 2 * padding - dilation * (kernel - 1) - 1;
    return span < 0 ? -1 : span / stride + 1;
}

/* Reads and checks; `first` is the position of stride in the arguments. */
static tn_status read_geometry(const char *call, tn_ints input, tn_ints weight, const tn_cell *args,
                               uint32_t first, geometry *g) {
    char a[TNI_SHAPE_TEXT], c[TNI_SHAPE_TEXT];
    if (input.n != 4 || weight.n != 4)
        return tni_fail(TN_SHAPE,
                        "%s: input %s and weight %s must be [N, C, H, W] and "
                        "[O, C / groups, KH, KW]",
                        call, tni_shape_text((int32_t)input.n, input.data, a),
                        tni_shape_text((int32_t)weight.n, weight.data, c));
    *g = (geometry){input.data[0],
                    input.data[1],
                    input.data[2],
                    input.data[3],
                    weight.data[0],
                    weight.data[2],
                    weight.data[3],
                    0,
                    0,
                    args[first + 3].v.i64,
                    {0},
                    {0},
                    {0}};
    for (int i = 0; i < 2; i++) {
        g->stride[i] = args[first].v.ints[i];
        g->padding[i] = args[first + 1].v.ints[i];
        g->dilation[i] = args[first + 2].v.ints[i];
        if (g->stride[i] < 1 || g->padding[i] < 0 || g->dilation[i] < 1)
            return tni_fail(TN_INVALID_ARGUMENT,
                            "%s: stride and dilation must be at least 1, padding "
                            "at least 0",
                            call);
    }
    if (g->groups < 1 || g->c % g->groups || g->o % g->groups || weight.data[1] != g->c / g->groups)
        return tni_fail(TN_SHAPE,
                        "%s: input %s has %lld channels in %lld groups, but weight is %s; "
                        "weight.size(1) must be channels / groups, and both sizes must "
                        "divide",
                        call, tni_shape_text(4, input.data, a), (long long)g->c,
                        (long long)g->groups, tni_shape_text(4, weight.data, c));
    g->oh = out_size(g->h, g->kh, g->stride[0], g->padding[0], g->dilation[0]);
    g->ow = out_size(g->w, g->kw, g->stride[1], g->padding[1], g->dilation[1]);
    if (g->oh < 1 || g->ow < 1 || g->kh < 1 || g->kw < 1)
        return tni_fail(TN_SHAPE, "%s: kernel [%lld, %lld] is larger than the padded input %s",
                        call, (long long)g->kh, (long long)g->kw, tni_shape_text(4, input.data, a));
    return TN_OK;
}

/* convolution(input, weight, bias, stride, padding, dilation, groups) */
INFER(infer_convolution) {
    tn_tensor *input = tni_build_tensor(b, 0), *weight = tni_build_tensor(b, 1);
    tn_tensor *bias = tni_build_tensor(b, 2);
    geometry g;
    tn_status status =
        read_geometry(b->info->call, tni_sizes(input), tni_sizes(weight), b->args, 3, &g);
    if (status != TN_OK)
        return status;
    if (bias && (bias->view.rank != 1 || bias->sizes[0] != g.o))
        return tni_build_fail(b, TN_SHAPE, "bias must be [%lld], one for each output channel",
                              (long long)g.o);
    const int64_t out[4] = {g.n, g.o, g.oh, g.ow};
    tni_build_out(b, 0, 4, out);
    b->has_empty_value = true; /* no input channels */
    b->empty_value = tn_int(0);
    return TN_OK;
}

static tn_status check_grad(tni_build *b, const geometry *g, const tn_tensor *grad) {
    char text[TNI_SHAPE_TEXT];
    if (grad->view.rank == 4 && grad->sizes[0] == g->n && grad->sizes[1] == g->o &&
        grad->sizes[2] == g->oh && grad->sizes[3] == g->ow)
        return TN_OK;
    return tni_build_fail(b, TN_SHAPE,
                          "grad_output is %s, but the convolution's output is [%lld, "
                          "%lld, %lld, %lld]",
                          tni_shape_text(grad->view.rank, grad->sizes, text), (long long)g->n,
                          (long long)g->o, (long long)g->oh, (long long)g->ow);
}

/* (grad_output, weight, input_size, stride, padding, dilation, groups) */
INFER(infer_convolution_backward_input) {
    tn_ints size = tni_arg_ints(&b->args[2]);
    geometry g;
    tn_status status =
        read_geometry(b->info->call, size, tni_sizes(tni_build_tensor(b, 1)), b->args, 3, &g);
    if (status == TN_OK)
        status = check_grad(b, &g, tni_build_tensor(b, 0));
    if (status != TN_OK)
        return status;
    tni_build_out(b, 0, 4, size.data);
    b->has_empty_value = true;
    b->empty_value = tn_int(0);
    return TN_OK;
}

/* (grad_output, input, weight_size, stride, padding, dilation, groups) */
INFER(infer_convolution_backward_weight) {
    tn_ints size = tni_arg_ints(&b->args[2]);
    geometry g;
    tn_status status =
        read_geometry(b->info->call, tni_sizes(tni_build_tensor(b, 1)), size, b->args, 3, &g);
    if (status == TN_OK)
        status = check_grad(b, &g, tni_build_tensor(b, 0));
    if (status != TN_OK)
        return status;
    tni_build_out(b, 0, 4, size.data);
    b->has_empty_value = true;
    b->empty_value = tn_int(0);
    return TN_OK;
}

/* ---- by matrix products
 * ----------------------------------------------------------------------------------- */

/* t with zeros round its last two dimensions: [n, c, h + 2p, w + 2q] */
static tn_tensor *pad(tni_temps *list, tn_tensor *t, const geometry *g) {
    if (!t || (g->padding[0] == 0 && g->padding[1] == 0))
        return tni_own(list, tni_contiguous(t));
    tni_temps temps = {0};
    tn_tensor *whole =
        OWN(tni_zeros(TN_SHAPE(g->n, g->c, g->h + 2 * g->padding[0], g->w + 2 * g->padding[1]),
                      t->view.dtype, t->device->id));
    tn_tensor *rows = OWN(tni_narrow(whole, 2, g->padding[0], g->h));
    tn_tensor *middle = OWN(tni_narrow(rows, 3, g->padding[1], g->w));
    tn_tensor *written = OWN(tni_copy_(middle, t, false));
    return tni_own(list, tni_temps_keep(&temps, written ? whole : NULL));
}

/* The patches of a padded input, as a view: [n, groups, c / groups, kh, kw, oh, ow] */
static tn_tensor *patches(tni_temps *list, tn_tensor *padded, const geometry *g) {
    int64_t h = g->h + 2 * g->padding[0], w = g->w + 2 * g->padding[1], per = g->c / g->groups;
    return tni_own(
        list, tni_as_strided(padded, TN_SHAPE(g->n, g->groups, per, g->kh, g->kw, g->oh, g->ow),
                             TN_SHAPE(g->c * h * w, per * h * w, h * w, g->dilation[0] * w,
                                      g->dilation[1], g->stride[0] * w, g->stride[1]),
                             TN_NO_INT));
}

/* [groups, c / groups * kh * kw, n * oh * ow], a copy */
static tn_tensor *columns(tni_temps *list, tn_tensor *input, const geometry *g) {
    tni_temps temps = {0};
    tn_tensor *p = patches(&temps, pad(&temps, input, g), g);
    tn_tensor *ordered = OWN(tni_permute(p, TN_SHAPE(1, 2, 3, 4, 0, 5, 6)));
    tn_tensor *result = OWN(tni_reshape(
        ordered, TN_SHAPE(g->groups, g->c / g->groups * g->kh * g->kw, g->n * g->oh * g->ow)));
    return tni_own(list, tni_temps_keep(&temps, result));
}

/* grad_output [n, o, oh, ow] as [groups, o / groups, n * oh * ow] */
static tn_tensor *grad_rows(tni_temps *list, tn_tensor *grad, const geometry *g) {
    tn_tensor *swapped = tni_own(list, tni_transpose(grad, 0, 1));
    return tni_own(
        list, tni_reshape(swapped, TN_SHAPE(g->groups, g->o / g->groups, g->n * g->oh * g->ow)));
}

static tn_tensor *weight_rows(tni_temps *list, tn_tensor *weight, const geometry *g) {
    return tni_own(list, tni_reshape(weight, TN_SHAPE(g->groups, g->o / g->groups,
                                                      g->c / g->groups * g->kh * g->kw)));
}

BOXED(run_convolution) {
    tn_tensor *input = tni_arg_tensor(&args[0]), *weight = tni_arg_tensor(&args[1]);
    tn_tensor *bias = tni_arg_some(&args[2]);
    geometry g;
    tn_status status =
        read_geometry("tn_convolution", tni_sizes(input), tni_sizes(weight), args, 3, &g);
    if (status != TN_OK)
        return status;
    tni_temps temps = {0};
    tn_tensor *product = OWN(tni_bmm(weight_rows(&temps, weight, &g), columns(&temps, input, &g)));
    tn_tensor *split = OWN(tni_reshape(product, TN_SHAPE(g.o, g.n, g.oh, g.ow)));
    tn_tensor *result = OWN(tni_contiguous(OWN(tni_transpose(split, 0, 1))));
    if (bias != TN_NONE)
        result = OWN(tni_add(result, OWN(tni_reshape(bias, TN_SHAPE(g.o, 1, 1))), tn_int(1)));
    RETURN(result);
}

/* Every place of the kernel adds its gradients to a strided view of the padded input. */
BOXED(run_convolution_backward_input) {
    tn_tensor *grad = tni_arg_tensor(&args[0]), *weight = tni_arg_tensor(&args[1]);
    geometry g;
    tn_status status = read_geometry("tn_convolution_backward_input", tni_arg_ints(&args[2]),
                                     tni_sizes(weight), args, 3, &g);
    if (status != TN_OK)
        return status;
    tni_temps temps = {0};
    int64_t h = g.h + 2 * g.padding[0], w = g.w + 2 * g.padding[1];
    tn_tensor *turned = OWN(tni_transpose(weight_rows(&temps, weight, &g), 1, 2));
    tn_tensor *product = OWN(tni_bmm(turned, grad_rows(&temps, grad, &g)));
    tn_tensor *parts = OWN(tni_reshape(product, TN_SHAPE(g.c, g.kh * g.kw, g.n, g.oh, g.ow)));
    tn_tensor *whole = OWN(tni_zeros(TN_SHAPE(g.n, g.c, h, w), grad->view.dtype, grad->device->id));
    for (int64_t k = 0; whole && parts && k < g.kh * g.kw; k++) {
        tni_temps inner = {0};
        int64_t first = k / g.kw * g.dilation[0] * w + k % g.kw * g.dilation[1];
        tn_tensor *place = tni_own(
            &inner,
            tni_as_strided(whole, TN_SHAPE(g.n, g.c, g.oh, g.ow),
                           TN_SHAPE(g.c * h * w, h * w, g.stride[0] * w, g.stride[1]), first));
        tn_tensor *part = tni_own(&inner, tni_select(parts, 1, k));
        part = tni_own(&inner, tni_transpose(part, 0, 1));
        tn_tensor *written = tni_own(&inner, tni_add_(place, part, tn_int(1)));
        whole = written ? whole : NULL;
        tni_temps_drop(&inner);
    }
    if (!parts)
        whole = NULL;
    tn_tensor *rows = OWN(tni_narrow(whole, 2, g.padding[0], g.h));
    RETURN(OWN(tni_contiguous(OWN(tni_narrow(rows, 3, g.padding[1], g.w)))));
}

BOXED(run_convolution_backward_weight) {
    tn_tensor *grad = tni_arg_tensor(&args[0]), *input = tni_arg_tensor(&args[1]);
    tn_ints size = tni_arg_ints(&args[2]);
    geometry g;
    tn_status status =
        read_geometry("tn_convolution_backward_weight", tni_sizes(input), size, args, 3, &g);
    if (status != TN_OK)
        return status;
    tni_temps temps = {0};
    tn_tensor *turned = OWN(tni_transpose(columns(&temps, input, &g), 1, 2));
    tn_tensor *product = OWN(tni_bmm(grad_rows(&temps, grad, &g), turned));
    RETURN(OWN(tni_reshape(product, size)));
}

/* ---- with defaults, without a batch, in one dimension
 * -------------------------------------------------------- */

/* conv2d(input, weight, bias, stride, padding, dilation, groups); input may lack N */
BOXED(run_conv2d) {
    tni_temps temps = {0};
    tn_tensor *input = tni_arg_tensor(&args[0]);
    bool single = input->view.rank == 3;
    if (single && !(input = OWN(tni_unsqueeze(input, 0))))
        RETURN(NULL);
    tn_tensor *result = OWN(tni_convolution(input, tni_arg_tensor(&args[1]), tni_arg_some(&args[2]),
                                            tni_arg_ints(&args[3]), tni_arg_ints(&args[4]),
                                            tni_arg_ints(&args[5]), args[6].v.i64));
    RETURN(single ? OWN(tni_squeeze_dim(result, 0)) : result);
}

/* conv1d: a height of one */
BOXED(run_conv1d) {
    tn_tensor *input = tni_arg_tensor(&args[0]), *weight = tni_arg_tensor(&args[1]);
    char a[TNI_SHAPE_TEXT], c[TNI_SHAPE_TEXT];
    if (input->view.rank != 3 || weight->view.rank != 3)
        return tni_fail(TN_SHAPE,
                        "tn_conv1d: input %s and weight %s must be [N, C, L] and "
                        "[O, C / groups, K]",
                        tni_shape_text(input->view.rank, input->sizes, a),
                        tni_shape_text(weight->view.rank, weight->sizes, c));
    tni_temps temps = {0};
    tn_tensor *plane = OWN(tni_unsqueeze(input, 2)), *kernel = OWN(tni_unsqueeze(weight, 2));
    tn_tensor *result = OWN(tni_convolution(
        plane, kernel, tni_arg_some(&args[2]), TN_SHAPE(1, args[3].v.ints[0]),
        TN_SHAPE(0, args[4].v.ints[0]), TN_SHAPE(1, args[5].v.ints[0]), args[6].v.i64));
    RETURN(OWN(tni_squeeze_dim(result, 2)));
}
