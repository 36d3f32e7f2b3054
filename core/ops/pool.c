/* Maximum and mean of sliding windows.
 *
 * The decompositions see all windows as one strided view [N, C, KH, KW, OH, OW] of padded planes
 * and reduce it. What depends on a window's place alone (which of its elements are real, how many)
 * is a small table made on the host.
 */
#include "base/alloc.h"
#include "core/ops/functions.h"
#include "core/ops/window.h"

#include <math.h>
#include <string.h>

/* ---- geometry ---------------------------------------------------------------------------- */

/* A window that begins in the padding may step over all of a short input. The first place at which it
 * could meet one is its start modulo the dilation, so there are at most as many to look at. */
static tn_status check_seen(const tni_window *w, const char *call) {
    for (int i = 0; i < 2; i++)
        for (int64_t o = 0; o < w->out[i] && o < w->dilation[i]; o++) {
            int64_t before = w->padding[i] - o * w->stride[i];
            if (before <= 0)
                break;
            if (w->dilation[i] - 1 - (before - 1) % w->dilation[i] >= w->in[i])
                return tni_fail(TN_ERR_INVALID_ARGUMENT,
                                "%s: a window of dilation %lld that begins %lld before the input "
                                "steps over all %lld of it; take less padding or dilation",
                                call, (long long)w->dilation[i], (long long)before,
                                (long long)w->in[i]);
        }
    return TN_OK;
}

/* The planes of [N, C, H, W] or [C, H, W], and the windows that kernel_size, stride and padding
 * describe; dilation NULL: 1. */
static tn_status pool_init(tni_window *w, const char *call, tn_ints sizes, const tn_cell *options,
                           const tn_cell *dilation, bool ceil_mode) {
    if (sizes.n != 3 && sizes.n != 4)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: the input must be [N, C, H, W] or [C, H, W], but has shape %s", call,
                        TNI_SHAPE_OF_INTS(sizes));
    w->n = sizes.n == 4 ? sizes.data[0] : 1;
    w->c = sizes.data[sizes.n - 3];
    memcpy(w->in, sizes.data + sizes.n - 2, sizeof w->in);
    w->dilation[0] = w->dilation[1] = 1;
    tn_ints stride = tni_arg_ints(&options[1]);
    if (!tni_window_pair(tni_arg_ints(&options[0]), 1, "kernel_size", call, w->kernel) ||
        !tni_window_pair(stride.n > 0 ? stride : tn_ints_of(w->kernel, 2), 1, "stride", call,
                         w->stride) ||
        !tni_window_pair(tni_arg_ints(&options[2]), 0, "padding", call, w->padding) ||
        (dilation && !tni_window_pair(tni_arg_ints(dilation), 1, "dilation", call, w->dilation)))
        return tni_failed();
    for (int i = 0; i < 2; i++) {
        int64_t reach = w->dilation[i] * (w->kernel[i] - 1) + 1;
        if (w->padding[i] > reach / 2)
            return tni_fail(TN_ERR_INVALID_ARGUMENT,
                            "%s: padding %lld is more than half of the window's reach of %lld, so "
                            "that a window could lie in the padding alone",
                            call, (long long)w->padding[i], (long long)reach);
    }
    return tni_window_finish(w, ceil_mode, call) ? check_seen(w, call) : tni_failed();
}

/* divisor_override, which kernels do not know. */
static tn_status check_divisor(tni_build *b, uint32_t arg) {
    b->decomposes = b->args[arg].tag != TN_CELL_NONE;
    return b->decomposes && b->args[arg].v.i64 == 0
               ? tni_build_fail(b, TN_ERR_INVALID_ARGUMENT, "divisor_override must not be 0")
               : TN_OK;
}

/* [N, C, h, w], or [C, h, w] when `like` has no N. */
static tn_ints planes(const tni_window *w, int64_t like, const int64_t hw[2], int64_t out[4]) {
    int64_t sizes[4] = {w->n, w->c, hw[0], hw[1]};
    memcpy(out, like == 4 ? sizes : sizes + 1, sizeof sizes - (like == 4 ? 0 : sizeof *sizes));
    return tn_ints_of(out, like);
}

/* t as [N, C, H, W]; a view where it had no N. */
static tn_tensor *with_batch(tni_build *b, tn_tensor *t) {
    if (t->view.rank != 3)
        return t;
    int64_t sizes[4] = {1, t->sizes[0], t->sizes[1], t->sizes[2]};
    int64_t strides[4] = {t->sizes[0] * t->strides[0], t->strides[0], t->strides[1], t->strides[2]};
    return tni_build_view(b, t, 4, sizes, strides);
}

/* Kernel argument i as [N, C, H, W]. */
static tn_status lift_arg(tni_build *b, uint32_t i) {
    tn_tensor *t = with_batch(b, b->kargs[i].v.pointer);
    if (!t)
        return tni_failed();
    b->kargs[i] = tni_cell_tensor(t);
    return TN_OK;
}

/* Output i: planes of hw. */
static void set_out(tni_build *b, uint32_t i, const tni_window *w, int64_t rank,
                    const int64_t hw[2]) {
    int64_t sizes[4];
    tni_build_out(b, i, (int32_t)rank, planes(w, rank, hw, sizes).data);
    if (rank == 3)
        tni_build_kernel_out(b, i, 4, planes(w, 4, hw, sizes).data);
}

static tn_status check_sizes(const char *call, const char *name, const tn_tensor *t,
                             tn_ints expected) {
    if (tni_has_shape(t, (int32_t)expected.n, expected.data))
        return TN_OK;
    return tni_fail(TN_ERR_SHAPE, "%s: %s has shape %s, but must have %s", call, name,
                    TNI_SHAPE_OF(t), TNI_SHAPE_OF_INTS(expected));
}

/* max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode) */
tn_status tni_infer_max_pool2d(tni_build *b) {
    tn_tensor *self = tni_build_tensor(b, 0);
    tni_window w;
    TNI_TRY(pool_init(&w, b->info->call, tni_sizes(self), b->args + 1, &b->args[4],
                      b->args[5].v.boolean));
    for (uint32_t i = 0; i < 2; i++)
        set_out(b, i, &w, self->view.rank, w.out);
    TNI_TRY(
        tni_window_args(b, 1, (const int64_t *[]){w.kernel, w.stride, w.padding, w.dilation}, 4));
    return lift_arg(b, 0);
}

/* max_pool2d_backward(grad_output, indices, input_size) */
tn_status tni_infer_max_pool2d_backward(tni_build *b) {
    tn_tensor *grad = tni_build_tensor(b, 0), *indices = tni_build_tensor(b, 1);
    tn_ints sizes = tni_arg_ints(&b->args[2]);
    TNI_TRY(check_sizes(b->info->call, "indices", indices, tni_sizes(grad)));
    int64_t rank = grad->view.rank, lead = rank - 2;
    if ((rank != 3 && rank != 4) || sizes.n != rank ||
        memcmp(sizes.data, grad->sizes, (size_t)lead * sizeof(int64_t)) != 0)
        return tni_build_fail(b, TN_ERR_SHAPE,
                              "grad_output of shape %s and input_size %s do not fit; both are "
                              "[N, C, H, W] with the same N and C, or [C, H, W]",
                              TNI_SHAPE_OF(grad), TNI_SHAPE_OF_INTS(sizes));
    tni_window w = {.n = rank == 4 ? sizes.data[0] : 1, .c = sizes.data[rank - 3]};
    set_out(b, 0, &w, rank, sizes.data + lead);
    b->has_empty_value = true;
    b->empty_value = tn_int(0);
    int64_t list[4];
    TNI_TRY(tni_build_list(b, 2, planes(&w, 4, sizes.data + lead, list)));
    TNI_TRY(lift_arg(b, 0));
    return lift_arg(b, 1);
}

/* avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) */
tn_status tni_infer_avg_pool2d(tni_build *b) {
    tn_tensor *self = tni_build_tensor(b, 0);
    tni_window w;
    TNI_TRY(pool_init(&w, b->info->call, tni_sizes(self), b->args + 1, NULL, b->args[4].v.boolean));
    TNI_TRY(check_divisor(b, 6));
    set_out(b, 0, &w, self->view.rank, w.out);
    TNI_TRY(tni_window_args(b, 1, (const int64_t *[]){w.kernel, w.stride, w.padding}, 3));
    return lift_arg(b, 0);
}

/* avg_pool2d_backward(grad_output, input_size, kernel_size, stride, padding, ceil_mode, ...) */
tn_status tni_infer_avg_pool2d_backward(tni_build *b) {
    tn_tensor *grad = tni_build_tensor(b, 0);
    tn_ints sizes = tni_arg_ints(&b->args[1]);
    tni_window w;
    TNI_TRY(pool_init(&w, b->info->call, sizes, b->args + 2, NULL, b->args[5].v.boolean));
    TNI_TRY(check_divisor(b, 7));
    int64_t expected[4];
    TNI_TRY(check_sizes(b->info->call, "grad_output", grad, planes(&w, sizes.n, w.out, expected)));
    set_out(b, 0, &w, sizes.n, w.in);
    int64_t list[4];
    TNI_TRY(tni_build_list(b, 1, planes(&w, 4, w.in, list)));
    TNI_TRY(tni_window_args(b, 2, (const int64_t *[]){w.kernel, w.stride, w.padding}, 3));
    return lift_arg(b, 0);
}

/* ---- maxima ------------------------------------------------------------------------------ */

/* For each element of each window, H * W minus its place in the plane, 0 outside of it: the largest
 * of these over the elements that are candidates is the first of them. i64 [KH, KW, OH, OW] */
static tn_tensor *places_from_end(const tni_window *w, tni_device *device) {
    int64_t sizes[4] = {w->kernel[0], w->kernel[1], w->out[0], w->out[1]};
    int64_t n = sizes[0] * sizes[1] * sizes[2] * sizes[3], at = 0;
    int64_t *table = tni_alloc((size_t)n * sizeof *table);
    if (!table)
        return tni_fail_memory_null("a table of pooling windows");
    for (int64_t i = 0; i < sizes[0]; i++)
        for (int64_t j = 0; j < sizes[1]; j++)
            for (int64_t y = 0; y < sizes[2]; y++)
                for (int64_t x = 0; x < sizes[3]; x++) {
                    int64_t h = y * w->stride[0] + i * w->dilation[0] - w->padding[0];
                    int64_t v = x * w->stride[1] + j * w->dilation[1] - w->padding[1];
                    bool inside = h >= 0 && h < w->in[0] && v >= 0 && v < w->in[1];
                    table[at++] = inside ? w->in[0] * w->in[1] - (h * w->in[1] + v) : 0;
                }
    tn_tensor *t = tni_tensor_new(device, TN_I64, 4, sizes);
    if (t && tni_tensor_write(t, table, (uint64_t)n * sizeof *table) != TN_OK) {
        tni_drop(t);
        t = NULL;
    }
    tni_free(table);
    return t;
}

static tn_scalar lowest(tn_dtype dtype) {
    switch (dtype) {
    case TN_I8:
        return tn_int(INT8_MIN);
    case TN_I16:
        return tn_int(INT16_MIN);
    case TN_I32:
        return tn_int(INT32_MIN);
    case TN_I64:
        return tn_int(INT64_MIN);
    case TN_U8:
        return tn_int(0);
    default:
        return tn_float(-INFINITY);
    }
}

/* self [N, C, H, W] or [C, H, W] as windows, with `value` around the planes. */
static tn_tensor *windows_of(tni_temps *tmp, const tni_window *w, tn_tensor *self,
                             tn_scalar value) {
    int64_t in[4];
    tn_tensor *x = self;
    if (self->view.rank == 3) {
        x = tni_own(tmp, tni_contiguous_data(self));
        x = tni_own(tmp, tni_data_reshape(x, planes(w, 4, w->in, in)));
    }
    tn_tensor *padded = x ? tni_own(tmp, tni_window_pad(w, x, 0, w->n, value)) : NULL;
    return tni_own(tmp, tni_window_view(w, padded));
}

/* Below autograd, on data. */
tn_status tni_run_max_pool2d_with_indices(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *results[2];
    tni_window w;
    TNI_TRY(pool_init(&w, "tn_max_pool2d", tni_sizes(self), args + 1, &args[4], args[5].v.boolean));
    int64_t out[4], rank = self->view.rank;
    tn_ints out_sizes = planes(&w, rank, w.out, out);
    tni_temps tmp = {0};
    tn_tensor *windows = windows_of(&tmp, &w, self, lowest(self->view.dtype));
    tn_tensor *largest = tni_own(&tmp, tni_amax(windows, TN_SHAPE(2, 3), true));
    tn_tensor *hit = tni_own(&tmp, tni_eq(windows, largest));
    if (tni_is_float(self->view.dtype)) {
        tn_tensor *nan = tni_own(&tmp, tni_isnan(windows));
        hit = tni_then(&tmp, tni_bitwise_or(hit, nan), hit);
    }
    tn_tensor *places = tni_own(&tmp, places_from_end(&w, self->device));
    tn_tensor *zero = tni_own(&tmp, tni_zero_of(places));
    tn_tensor *first = tni_then(&tmp, tni_where(hit, places, zero), hit);
    first = tni_then(&tmp, tni_amax(first, TN_SHAPE(2, 3), false), first);
    first = tni_then(&tmp, tni_rsub_scalar(first, tn_int(w.in[0] * w.in[1]), tn_int(1)), first);
    results[0] = tni_own(&tmp, tni_data_reshape(largest, out_sizes));
    results[1] = rank == 4 ? first : tni_own(&tmp, tni_data_reshape(first, out_sizes));
    return tni_temps_return_many(&tmp, results, 2, rets);
}

/* [N, C, H, W] as [N, C, H * W] */
static tn_ints flat_planes(tn_ints sizes, int64_t *out) {
    memcpy(out, sizes.data, (size_t)sizes.n * sizeof *out);
    out[sizes.n - 2] = sizes.data[sizes.n - 2] * sizes.data[sizes.n - 1];
    return tn_ints_of(out, sizes.n - 1);
}

tn_status tni_run_max_pool2d_backward(const tn_cell *args, tn_cell *rets) {
    tn_tensor *grad = tni_arg_tensor(&args[0]), *indices = tni_arg_tensor(&args[1]);
    tn_ints sizes = tni_arg_ints(&args[2]);
    int64_t flat_in[TN_MAX_RANK], flat_out[TN_MAX_RANK];
    tn_ints out_shape = flat_planes(tni_sizes(grad), flat_out);
    tni_temps tmp = {0};
    tn_tensor *g = tni_own(&tmp, tni_reshape(grad, out_shape));
    tn_tensor *index = tni_own(&tmp, tni_reshape(indices, out_shape));
    tn_tensor *x =
        tni_own(&tmp, tni_zeros(flat_planes(sizes, flat_in), grad->view.dtype, grad->device->id));
    x = tni_then(&tmp, tni_scatter_add(x, out_shape.n - 1, index, g), x);
    return tni_temps_return(&tmp, tni_own(&tmp, tni_view(x, sizes)), rets);
}

tn_tensor *tni_max_pool2d_double_backward(tn_tensor *grad, tn_tensor *indices) {
    if (!grad || !indices)
        return NULL;
    int64_t flat_in[TN_MAX_RANK], flat_out[TN_MAX_RANK];
    tn_ints out_shape = flat_planes(tni_sizes(indices), flat_out);
    tni_temps tmp = {0};
    tn_tensor *g = tni_own(&tmp, tni_reshape(grad, flat_planes(tni_sizes(grad), flat_in)));
    tn_tensor *index = tni_own(&tmp, tni_reshape(indices, out_shape));
    tn_tensor *x = tni_own(&tmp, tni_gather(g, out_shape.n - 1, index));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_view(x, tni_sizes(indices))));
}

/* ---- means ------------------------------------------------------------------------------- */

/* How many elements of a window that starts at `start` count. */
static int64_t extent(const tni_window *w, int i, int64_t index, bool count_include_pad) {
    int64_t start = index * w->stride[i] - w->padding[i], end = start + w->kernel[i];
    int64_t limit = w->in[i] + (count_include_pad ? w->padding[i] : 0);
    if (end > limit)
        end = limit;
    return end - (start < 0 && !count_include_pad ? 0 : start);
}

/* t [N, C, OH, OW] divided by `divisor`, or without one by the number of elements of each window;
 * owned. */
static tn_tensor *divided(const tni_window *w, tn_tensor *t, bool count_include_pad,
                          tn_scalar divisor) {
    if (!t || divisor.tag != TN_CELL_NONE)
        return t ? tni_div_scalar(t, divisor) : NULL;
    int64_t rows = w->out[0], columns = w->out[1], n = rows * columns;
    float *counts = tni_alloc((size_t)n * sizeof *counts);
    if (!counts)
        return tni_fail_memory_null("a table of pooling windows");
    bool all_equal = true;
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < columns; x++) {
            float count =
                (float)(extent(w, 0, y, count_include_pad) * extent(w, 1, x, count_include_pad));
            counts[y * columns + x] = count;
            all_equal &= count == counts[0];
        }
    tni_temps tmp = {0};
    tn_tensor *result = NULL;
    if (all_equal) {
        result = tni_own(&tmp, tni_div_scalar(t, tn_float(counts[0])));
    } else {
        tn_tensor *table = tni_own(&tmp, tni_tensor_new(t->device, TN_F32, 2, w->out));
        if (table && tni_tensor_write(table, counts, (uint64_t)n * sizeof *counts) == TN_OK) {
            table = tni_own(&tmp, tni_cast_data(table, t->view.dtype));
            result = tni_own(&tmp, tni_div(t, table));
        }
    }
    tni_free(counts);
    return tni_temps_keep(&tmp, result);
}

/* Below autograd, on data. */
tn_status tni_run_avg_pool2d(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tni_window w;
    TNI_TRY(pool_init(&w, "tn_avg_pool2d", tni_sizes(self), args + 1, NULL, args[4].v.boolean));
    int64_t out[4];
    tni_temps tmp = {0};
    tn_tensor *windows = windows_of(&tmp, &w, self, tn_int(0));
    tn_tensor *x = tni_own(&tmp, tni_sum_dim(windows, TN_SHAPE(2, 3), false, TN_DTYPE_NONE));
    x = tni_own(&tmp, divided(&w, x, args[5].v.boolean, args[6]));
    if (self->view.rank == 3)
        x = tni_own(&tmp, tni_data_reshape(x, planes(&w, 3, w.out, out)));
    return tni_temps_return(&tmp, x, rets);
}

/* Below autograd, on data: each window's share goes to all of its elements. */
tn_status tni_run_avg_pool2d_backward(const tn_cell *args, tn_cell *rets) {
    tn_tensor *grad = tni_arg_tensor(&args[0]);
    tn_ints sizes = tni_arg_ints(&args[1]);
    tni_window w;
    TNI_TRY(pool_init(&w, "tn_avg_pool2d_backward", sizes, args + 2, NULL, args[5].v.boolean));
    int64_t in[4];
    tni_temps tmp = {0};
    tn_tensor *dense = tni_own(&tmp, tni_contiguous_data(grad));
    tn_tensor *share = tni_own(&tmp, divided(&w, dense, args[6].v.boolean, args[7]));
    int64_t d[6] = {w.n, w.c, w.kernel[0], w.kernel[1], w.out[0], w.out[1]};
    int64_t plane = w.out[0] * w.out[1];
    int64_t s[6] = {w.c * plane, plane, 0, 0, w.out[1], 1};
    tn_tensor *parts = tni_own(&tmp, tni_data_view(share, tn_ints_of(d, 6), tn_ints_of(s, 6), 0));
    tn_tensor *out = tni_own(
        &tmp, tni_tensor_new(grad->device, grad->view.dtype, 4, planes(&w, 4, w.in, in).data));
    if (!out || tni_window_add(&w, parts, out, 0, w.n) != TN_OK)
        out = NULL;
    if (sizes.n == 3)
        out = tni_own(&tmp, tni_data_reshape(out, sizes));
    return tni_temps_return(&tmp, out, rets);
}
