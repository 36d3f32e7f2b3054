/* Windows of planes as columns, and columns added up to planes: each the other's gradient. Both run
 * below autograd, on data. */
#include "base/alloc.h"
#include "core/ops/functions.h"
#include "core/ops/window.h"

#include <string.h>

/* kernel_size, dilation, padding, stride; the sizes of w are set. */
static tn_status fold_init(tni_window *w, const char *call, const tn_cell *options) {
    return tni_window_pair(tni_arg_ints(&options[0]), 1, "kernel_size", call, w->kernel) &&
                   tni_window_pair(tni_arg_ints(&options[1]), 1, "dilation", call, w->dilation) &&
                   tni_window_pair(tni_arg_ints(&options[2]), 0, "padding", call, w->padding) &&
                   tni_window_pair(tni_arg_ints(&options[3]), 1, "stride", call, w->stride) &&
                   tni_window_finish(w, false, call)
               ? TN_OK
               : tni_failed();
}

static tn_status check_dtype(const tn_tensor *t, const char *call) {
    return tni_is_float(t->view.dtype)
               ? TN_OK
               : tni_fail(TN_ERR_DTYPE, "%s: not defined for %s; cast with tn_to_dtype", call,
                          tn_dtype_name(t->view.dtype));
}

/* [N, C * KH * KW, L], or without N; false with an error where that is too much. */
static bool column_sizes(const tni_window *w, bool has_batch, const char *call, int64_t sizes[3],
                         tn_ints *out) {
    sizes[0] = w->n;
    *out = tn_ints_of(sizes + !has_batch, 2 + has_batch);
    if (tni_mul_i64(w->c, w->kernel[0] * w->kernel[1], &sizes[1]) &&
        tni_mul_i64(w->out[0], w->out[1], &sizes[2]))
        return true;
    tni_fail(TN_ERR_SHAPE, "%s: windows of %s at %s places of %lld planes are too many", call,
             TNI_SHAPE_OF_SIZES(2, w->kernel), TNI_SHAPE_OF_SIZES(2, w->out), (long long)w->c);
    return false;
}

/* im2col(self, kernel_size, dilation, padding, stride) */
tn_status tni_run_im2col(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int32_t rank = self->view.rank;
    bool fits = rank == 3 || rank == 4;
    for (int32_t d = rank == 4; d < rank && fits; d++)
        fits = self->sizes[d] > 0;
    if (!fits)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_im2col: self must be [N, C, H, W] or [C, H, W] with none of them 0 but "
                        "N, but has shape %s",
                        TNI_SHAPE_OF_SIZES(rank, self->sizes));
    tni_window w = {.n = rank == 4 ? self->sizes[0] : 1, .c = self->sizes[rank - 3]};
    memcpy(w.in, self->sizes + rank - 2, sizeof w.in);
    TNI_TRY(self->view.dtype == TN_BOOL ? TN_OK : check_dtype(self, "tn_im2col"));
    TNI_TRY(fold_init(&w, "tn_im2col", args + 1));
    int64_t sizes[3];
    tn_ints columns;
    if (!column_sizes(&w, rank == 4, "tn_im2col", sizes, &columns))
        return tni_failed();
    if (self->view.numel == 0)
        return tni_return(
            rets, tni_tensor_new(self->device, self->view.dtype, (int32_t)columns.n, columns.data));
    tni_temps tmp = {0};
    tn_tensor *x = self;
    if (rank == 3) {
        const int64_t *d = self->sizes, *s = self->strides;
        x = tni_own(&tmp, tni_data_view(self, TN_SHAPE(1, d[0], d[1], d[2]),
                                        TN_SHAPE(0, s[0], s[1], s[2]), 0));
    }
    x = x ? tni_own(&tmp, tni_window_pad(&w, x, 0, w.n, tn_int(0))) : NULL;
    x = tni_own(&tmp, tni_window_view(&w, x));
    x = x ? tni_own(&tmp, tni_contiguous_data(x)) : NULL;
    return tni_temps_return(&tmp, tni_own(&tmp, tni_data_reshape(x, columns)), rets);
}

/* col2im(self, output_size, kernel_size, dilation, padding, stride) */
tn_status tni_run_col2im(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int32_t rank = self->view.rank;
    bool fits = rank == 2 || rank == 3;
    for (int32_t d = rank == 3; d < rank && fits; d++)
        fits = self->sizes[d] > 0;
    if (!fits)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_col2im: self must be [N, C * KH * KW, L] or [C * KH * KW, L] with none "
                        "of them 0 but N, but has shape %s",
                        TNI_SHAPE_OF_SIZES(rank, self->sizes));
    tni_window w = {.n = rank == 3 ? self->sizes[0] : 1};
    tn_status status = check_dtype(self, "tn_col2im");
    if (status == TN_OK &&
        !tni_window_pair(tni_arg_ints(&args[1]), 1, "output_size", "tn_col2im", w.in))
        status = tni_failed();
    if (status == TN_OK)
        status = fold_init(&w, "tn_col2im", args + 2);
    if (status != TN_OK)
        return status;
    int64_t sizes[3], each = w.kernel[0] * w.kernel[1];
    w.c = self->sizes[rank - 2] / each;
    tn_ints columns;
    if (!column_sizes(&w, rank == 3, "tn_col2im", sizes, &columns))
        return tni_failed();
    if (!tni_has_shape(self, rank, columns.data))
        return tni_fail(TN_ERR_SHAPE,
                        "tn_col2im: self has shape %s, but windows of %s in planes of %s are "
                        "%lld columns of a multiple of %lld elements",
                        TNI_SHAPE_OF_SIZES(rank, self->sizes), TNI_SHAPE_OF_SIZES(2, w.kernel),
                        TNI_SHAPE_OF_SIZES(2, w.in), (long long)sizes[2], (long long)each);
    int64_t planes[4] = {w.n, w.c, w.in[0], w.in[1]};
    int64_t parts[6] = {w.n, w.c, w.kernel[0], w.kernel[1], w.out[0], w.out[1]};
    tni_temps tmp = {0};
    tn_tensor *out = tni_own(&tmp, tni_tensor_new(self->device, self->view.dtype, 4, planes));
    if (self->view.numel > 0) {
        tn_tensor *x = tni_own(&tmp, tni_contiguous_data(self));
        x = tni_own(&tmp, tni_data_reshape(x, tn_ints_of(parts, 6)));
        if (!out || tni_window_add(&w, x, out, 0, w.n) != TN_OK)
            out = NULL;
    }
    if (rank == 2)
        out = tni_own(&tmp, tni_data_reshape(out, tn_ints_of(planes + 1, 3)));
    return tni_temps_return(&tmp, out, rets);
}

/* The gradient of im2col by planes of `sizes`. */
tn_tensor *tni_im2col_backward(tn_tensor *grad, tn_ints sizes, tn_ints kernel_size,
                               tn_ints dilation, tn_ints padding, tn_ints stride) {
    return tni_col2im(grad, tn_ints_of(sizes.data + sizes.n - 2, 2), kernel_size, dilation, padding,
                      stride);
}
