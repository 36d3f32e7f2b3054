/* Pooling in two dimensions. Without a kernel of its own a device looks at every place of the
 * window in turn, as a strided view of the padded input. */
#include "core/ops/boxed.h"
#include "core/ops/build.h"
#include "core/ops/derivatives.h"

#include <math.h>

typedef struct window {
    int64_t n, c, h, w, oh, ow;
    int64_t kernel[2], stride[2], padding[2], dilation[2];
} window;

static int64_t pooled_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding,
                           int64_t dilation, bool ceil_mode) {
    int64_t span = in + 2 * padding - dilation * (kernel - 1) - 1;
    if (span < 0)
        return 0;
    int64_t n = (span + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    /* the last window must start inside the input or its left padding */
    return ceil_mode && (n - 1) * stride >= in + padding ? n - 1 : n;
}

/* Two values of an int[2] argument; an empty stride is the kernel's size. */
static void read_pair(const tn_cell *cell, const int64_t *fallback, int64_t *out) {
    for (int i = 0; i < 2; i++)
        out[i] = cell->n == 2 ? cell->v.ints[i] : fallback[i];
}

static tn_status read_window(const char *call, tn_ints size, const tn_cell *kernel,
                             const tn_cell *stride, const tn_cell *padding, const tn_cell *dilation,
                             bool ceil_mode, window *p) {
    static const int64_t one[2] = {1, 1};
    char text[TNI_SHAPE_TEXT];
    if (size.n != 4)
        return tni_fail(TN_SHAPE, "%s: self must be [N, C, H, W], but is %s", call,
                        tni_shape_text((int32_t)size.n, size.data, text));
    p->n = size.data[0];
    p->c = size.data[1];
    p->h = size.data[2];
    p->w = size.data[3];
    read_pair(kernel, one, p->kernel);
    read_pair(stride, p->kernel, p->stride);
    read_pair(padding, one, p->padding);
    if (dilation)
        read_pair(dilation, one, p->dilation);
    else
        p->dilation[0] = p->dilation[1] = 1;
    for (int i = 0; i < 2; i++)
        if (p->kernel[i] < 1 || p->stride[i] < 1 || p->dilation[i] < 1 || p->padding[i] < 0 ||
            2 * p->padding[i] > p->kernel[i])
            return tni_fail(TN_INVALID_ARGUMENT,
                            "%s: kernel, stride and dilation must be at least 1, "
                            "padding from 0 to half the kernel",
                            call);
    p->oh = pooled_size(p->h, p->kernel[0], p->stride[0], p->padding[0], p->dilation[0], ceil_mode);
    p->ow = pooled_size(p->w, p->kernel[1], p->stride[1], p->padding[1], p->dilation[1], ceil_mode);
    if (p->oh < 1 || p->ow < 1)
        return tni_fail(TN_SHAPE, "%s: the window [%lld, %lld] is larger than the padded input %s",
                        call, (long long)p->kernel[0], (long long)p->kernel[1],
                        tni_shape_text(4, size.data, text));
    return TN_OK;
}

/* max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode) */
INFER(infer_max_pool2d) {
    window p;
    tn_status status = read_window(b->info->call, tni_sizes(tni_build_tensor(b, 0)), &b->args[1],
                                   &b->args[2], &b->args[3], &b->args[4], b->args[5].v.boolean, &p);
    if (status != TN_OK)
        return status;
    int64_t *stride = tni_build_ints(b, 2);
    stride[0] = p.stride[0];
    stride[1] = p.stride[1];
    b->kargs[2] = tni_cell_ints(tn_ints_of(stride, 2));
    const int64_t out[4] = {p.n, p.c, p.oh, p.ow};
    tni_build_out(b, 0, 4, out);
    tni_build_out(b, 1, 4, out);
    return TN_OK;
}

/* (grad_output, indices, input_size) */
INFER(infer_max_pool2d_backward) {
    tn_ints size = tni_arg_ints(&b->args[2]);
    tn_tensor *grad = tni_build_tensor(b, 0), *indices = tni_build_tensor(b, 1);
    bool fits = size.n == 4 && grad->view.rank == 4 && indices->view.rank == 4;
    for (int d = 0; fits && d < 4; d++)
        fits = grad->sizes[d] == indices->sizes[d] && (d > 1 || grad->sizes[d] == size.data[d]);
    if (!fits)
        return tni_build_fail(b, TN_SHAPE,
                              "grad_output and indices must be [N, C, OH, OW] of one "
                              "shape, and input_size [N, C, H, W]");
    tni_build_out(b, 0, 4, size.data);
    b->has_empty_value = true;
    b->empty_value = tn_int(0);
    return TN_OK;
}

/* avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad) */
INFER(infer_avg_pool2d) {
    window p;
    tn_status status = read_window(b->info->call, tni_sizes(tni_build_tensor(b, 0)), &b->args[1],
                                   &b->args[2], &b->args[3], NULL, b->args[4].v.boolean, &p);
    if (status != TN_OK)
        return status;
    int64_t *stride = tni_build_ints(b, 2);
    stride[0] = p.stride[0];
    stride[1] = p.stride[1];
    b->kargs[2] = tni_cell_ints(tn_ints_of(stride, 2));
    const int64_t out[4] = {p.n, p.c, p.oh, p.ow};
    tni_build_out(b, 0, 4, out);
    return TN_OK;
}

/* (grad_output, input_size, kernel_size, stride, padding, ceil_mode, count_include_pad) */
INFER(infer_avg_pool2d_backward) {
    window p;
    tn_ints size = tni_arg_ints(&b->args[1]);
    tn_tensor *grad = tni_build_tensor(b, 0);
    tn_status status = read_window(b->info->call, size, &b->args[2], &b->args[3], &b->args[4], NULL,
                                   b->args[5].v.boolean, &p);
    if (status != TN_OK)
        return status;
    if (grad->view.rank != 4 || grad->sizes[0] != p.n || grad->sizes[1] != p.c ||
        grad->sizes[2] != p.oh || grad->sizes[3] != p.ow)
        return tni_build_fail(b, TN_SHAPE, "grad_output must be [%lld, %lld, %lld, %lld]",
                              (long long)p.n, (long long)p.c, (long long)p.oh, (long long)p.ow);
    int64_t *stride = tni_build_ints(b, 2);
    stride[0] = p.stride[0];
    stride[1] = p.stride[1];
    b->kargs[3] = tni_cell_ints(tn_ints_of(stride, 2));
    tni_build_out(b, 0, 4, size.data);
    return TN_OK;
}

/* ---- by strided views
 * ------------------------------------------------------------------------------------------ */

/* Height and width that hold every window, ceil_mode's included. */
static void padded_size(const window *p, int64_t out[2]) {
    const int64_t in[2] = {p->h, p->w}, n[2] = {p->oh, p->ow};
    for (int i = 0; i < 2; i++) {
        int64_t reach = (n[i] - 1) * p->stride[i] + p->dilation[i] * (p->kernel[i] - 1) + 1;
        out[i] = in[i] + 2 * p->padding[i] > reach ? in[i] + 2 * p->padding[i] : reach;
    }
}

/* self in the middle of [n, c, padded] filled with `value` */
static tn_tensor *pad(tni_temps *list, tn_tensor *self, const window *p, tn_scalar value) {
    tni_temps temps = {0};
    int64_t size[2];
    padded_size(p, size);
    tn_tensor *whole = OWN(tni_full(TN_SHAPE(p->n, p->c, size[0], size[1]), value, self->view.dtype,
                                    self->device->id));
    tn_tensor *rows = OWN(tni_narrow(whole, 2, p->padding[0], p->h));
    tn_tensor *middle = OWN(tni_narrow(rows, 3, p->padding[1], p->w));
    tn_tensor *written = OWN(tni_copy_(middle, self, false));
    return tni_own(list, tni_temps_keep(&temps, written ? whole : NULL));
}

/* Element (i, j) of every window: [n, c, oh, ow], a view of padded [n, c, ph, pw] */
static tn_tensor *corner(tni_temps *list, tn_tensor *padded, const window *p, int64_t i,
                         int64_t j) {
    if (!padded)
        return NULL;
    int64_t w = padded->sizes[3], plane = padded->sizes[2] * w;
    return tni_own(list,
                   tni_as_strided(padded, TN_SHAPE(p->n, p->c, p->oh, p->ow),
                                  TN_SHAPE(p->c * plane, plane, p->stride[0] * w, p->stride[1]),
                                  i * p->dilation[0] * w + j * p->dilation[1]));
}

/* The lowest value of a dtype, which no element is below. */
static tn_scalar lowest(tn_dtype dtype) {
    if (tni_is_float(dtype))
        return tn_float(-INFINITY);
    int64_t bits = 8 * tni_dtype_size(dtype);
    return tn_int(dtype == TN_U8 ? 0 : bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1)));
}

BOXED(run_max_pool2d_with_indices) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    window p;
    tn_status status = read_window("tn_max_pool2d", tni_sizes(self), &args[1], &args[2], &args[3],
                                   &args[4], args[5].v.boolean, &p);
    if (status != TN_OK)
        return status;
    tni_temps temps = {0};
    tn_device device = self->device->id;
    tn_tensor *padded = pad(&temps, self, &p, lowest(self->view.dtype));
    tn_tensor *rows =
        OWN(tni_reshape(OWN(tni_arange(tn_int(p.h), TN_I64, device)), TN_SHAPE(1, 1, p.h, 1)));
    tn_tensor *places =
        OWN(tni_add(OWN(tni_arange(tn_int(p.w), TN_I64, device)), rows, tn_int(p.w)));
    window flat = p;
    flat.n = flat.c = 1;
    tn_tensor *padded_places = places ? pad(&temps, places, &flat, tn_int(0)) : NULL;
    tn_tensor *best = NULL, *index = NULL;
    for (int64_t k = 0; k < p.kernel[0] * p.kernel[1]; k++) {
        tni_temps inner = {0};
        tn_tensor *value = corner(&inner, padded, &p, k / p.kernel[1], k % p.kernel[1]);
        tn_tensor *place = corner(&inner, padded_places, &flat, k / p.kernel[1], k % p.kernel[1]);
        tn_tensor *new_best, *new_index;
        if (k == 0) {
            new_best = tni_clone(value);
            place = tni_own(&inner, tni_expand(place, TN_SHAPE(p.n, p.c, p.oh, p.ow)));
            new_index = tni_clone(place);
        } else {
            /* larger, or the first NaN */
            tn_tensor *nan = tni_own(&inner, tni_ne(value, value));
            tn_tensor *still = tni_own(&inner, tni_eq(best, best));
            nan = tni_own(&inner, tni_bitwise_and(nan, still));
            tn_tensor *wins = tni_own(&inner, tni_gt(value, best));
            wins = tni_own(&inner, tni_bitwise_or(wins, nan));
            new_best = tni_where(wins, value, best);
            new_index = tni_where(wins, place, index);
        }
        tni_temps_drop(&inner);
        tni_drop(best);
        tni_drop(index);
        best = new_best;
        index = new_index;
    }
    tni_temps_drop(&temps);
    tn_tensor *both[2] = {best, index};
    return tni_return_many(rets, both, 2);
}

BOXED(run_max_pool2d_backward) {
    tn_tensor *grad = tni_arg_tensor(&args[0]), *indices = tni_arg_tensor(&args[1]);
    tn_ints size = tni_arg_ints(&args[2]);
    tni_temps temps = {0};
    int64_t n = size.data[0], c = size.data[1];
    tn_tensor *zeros = OWN(
        tni_zeros(TN_SHAPE(n, c, size.data[2] * size.data[3]), grad->view.dtype, grad->device->id));
    int64_t outs = grad->sizes[2] * grad->sizes[3];
    tn_tensor *flat = OWN(tni_reshape(grad, TN_SHAPE(n, c, outs)));
    tn_tensor *where = OWN(tni_reshape(indices, TN_SHAPE(n, c, outs)));
    RETURN(OWN(tni_reshape(OWN(tni_scatter_add(zeros, 2, where, flat)), size)));
}

tn_tensor *tni_max_pool2d_double_backward(tn_tensor *grad, tn_tensor *indices) {
    if (!grad || !indices)
        return NULL;
    tni_temps temps = {0};
    int64_t n = grad->sizes[0], c = grad->sizes[1];
    tn_tensor *flat = OWN(tni_reshape(grad, TN_SHAPE(n, c, grad->sizes[2] * grad->sizes[3])));
    tn_tensor *where =
        OWN(tni_reshape(indices, TN_SHAPE(n, c, indices->sizes[2] * indices->sizes[3])));
    return tni_temps_keep(&temps,
                          OWN(tni_reshape(OWN(tni_gather(flat, 2, where)), tni_sizes(indices))));
}

BOXED(run_max_pool2d) {
    tni_temps temps = {0};
    tn_tensor *self = tni_arg_tensor(&args[0]), *values, *indices;
    bool single = self->view.rank == 3;
    if (single && !(self = OWN(tni_unsqueeze(self, 0))))
        RETURN(NULL);
    tn_status status = tni_max_pool2d_with_indices(
        self, tni_arg_ints(&args[1]), tni_arg_ints(&args[2]), tni_arg_ints(&args[3]),
        tni_arg_ints(&args[4]), args[5].v.boolean != 0, &values, &indices);
    if (status != TN_OK) {
        tni_temps_drop(&temps);
        return status;
    }
    OWN(values);
    OWN(indices);
    RETURN(single ? OWN(tni_squeeze_dim(values, 0)) : values);
}

/* How many elements each window's mean divides by: [1, 1, oh, ow]. Windows that ceil_mode lets hang
 * over the padding count it no further than the padding goes. */
static tn_tensor *divisors(tni_temps *list, const window *p, bool count_pad, tn_dtype dtype,
                           tn_device device) {
    tni_temps temps = {0};
    window flat = *p;
    flat.n = flat.c = 1;
    tn_tensor *sum = NULL, *padded = NULL;
    if (count_pad) { /* ones over the input and its padding */
        window outer = flat;
        outer.h += 2 * p->padding[0];
        outer.w += 2 * p->padding[1];
        outer.padding[0] = outer.padding[1] = 0;
        tn_tensor *ones = OWN(tni_ones(TN_SHAPE(1, 1, outer.h, outer.w), dtype, device));
        padded = ones ? pad(&temps, ones, &outer, tn_int(0)) : NULL;
    } else {
        tn_tensor *ones = OWN(tni_ones(TN_SHAPE(1, 1, p->h, p->w), dtype, device));
        padded = ones ? pad(&temps, ones, &flat, tn_int(0)) : NULL;
    }
    sum = OWN(tni_zeros(TN_SHAPE(1, 1, p->oh, p->ow), dtype, device));
    for (int64_t k = 0; sum && padded && k < p->kernel[0] * p->kernel[1]; k++) {
        tni_temps inner = {0};
        tn_tensor *part = corner(&inner, padded, &flat, k / p->kernel[1], k % p->kernel[1]);
        tn_tensor *written = tni_own(&inner, tni_add_(sum, part, tn_int(1)));
        sum = written ? sum : NULL;
        tni_temps_drop(&inner);
    }
    return tni_own(list, tni_temps_keep(&temps, padded ? sum : NULL));
}

BOXED(run_avg_pool2d) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    window p;
    tn_status status = read_window("tn_avg_pool2d", tni_sizes(self), &args[1], &args[2], &args[3],
                                   NULL, args[4].v.boolean, &p);
    if (status != TN_OK)
        return status;
    tni_temps temps = {0};
    tn_device device = self->device->id;
    tn_tensor *padded = pad(&temps, self, &p, tn_int(0));
    tn_tensor *sum = OWN(tni_zeros(TN_SHAPE(p.n, p.c, p.oh, p.ow), self->view.dtype, device));
    for (int64_t k = 0; sum && padded && k < p.kernel[0] * p.kernel[1]; k++) {
        tni_temps inner = {0};
        tn_tensor *part = corner(&inner, padded, &p, k / p.kernel[1], k % p.kernel[1]);
        tn_tensor *written = tni_own(&inner, tni_add_(sum, part, tn_int(1)));
        sum = written ? sum : NULL;
        tni_temps_drop(&inner);
    }
    tn_tensor *count = divisors(&temps, &p, args[5].v.boolean, self->view.dtype, device);
    RETURN(padded ? OWN(tni_div(sum, count)) : NULL);
}

BOXED(run_avg_pool2d_backward) {
    tn_tensor *grad = tni_arg_tensor(&args[0]);
    window p;
    tn_status status = read_window("tn_avg_pool2d_backward", tni_arg_ints(&args[1]), &args[2],
                                   &args[3], &args[4], NULL, args[5].v.boolean, &p);
    if (status != TN_OK)
        return status;
    tni_temps temps = {0};
    int64_t size[2];
    padded_size(&p, size);
    tn_tensor *count = divisors(&temps, &p, args[6].v.boolean, grad->view.dtype, grad->device->id);
    tn_tensor *share = OWN(tni_div(grad, count));
    tn_tensor *whole =
        OWN(tni_zeros(TN_SHAPE(p.n, p.c, size[0], size[1]), grad->view.dtype, grad->device->id));
    for (int64_t k = 0; share && whole && k < p.kernel[0] * p.kernel[1]; k++) {
        tni_temps inner = {0};
        tn_tensor *place = corner(&inner, whole, &p, k / p.kernel[1], k % p.kernel[1]);
        tn_tensor *written = tni_own(&inner, tni_add_(place, share, tn_int(1)));
        whole = written ? whole : NULL;
        tni_temps_drop(&inner);
    }
    tn_tensor *rows = share ? OWN(tni_narrow(whole, 2, p.padding[0], p.h)) : NULL;
    RETURN(OWN(tni_contiguous(OWN(tni_narrow(rows, 3, p.padding[1], p.w)))));
}
