/* Sliding windows as strided views: see window.h. */
#include "core/ops/functions.h"
#include "core/ops/window.h"

#include <string.h>

/* ---- views of data ----------------------------------------------------------------------- */

tn_tensor *tni_data_view(tn_tensor *t, tn_ints sizes, tn_ints strides, int64_t offset) {
    if (!t)
        return NULL;
    return tni_tensor_view(t, (int32_t)sizes.n, sizes.data, strides.data,
                           tni_offset_elements(t) + offset);
}

tn_tensor *tni_data_reshape(tn_tensor *contiguous, tn_ints sizes) {
    int64_t strides[TN_MAX_RANK];
    tni_contiguous_strides((int32_t)sizes.n, sizes.data, strides);
    return tni_data_view(contiguous, sizes, tn_ints_of(strides, sizes.n), 0);
}

tn_tensor *tni_data_narrow(tn_tensor *t, int32_t dim, int64_t start, int64_t length) {
    if (!t)
        return NULL;
    int64_t sizes[TN_MAX_RANK];
    memcpy(sizes, t->sizes, sizeof sizes);
    sizes[dim] = length;
    return tni_data_view(t, tn_ints_of(sizes, t->view.rank), tn_ints_of(t->strides, t->view.rank),
                         start * t->strides[dim]);
}

/* ---- geometry ---------------------------------------------------------------------------- */

bool tni_window_values(tn_ints given, int n, int64_t least, const char *name, const char *call,
                       int64_t *out) {
    if (given.n != 1 && given.n != n) {
        static const char *const words[] = {"", "one value", "one value or two",
                                            "one value or three"};
        tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: %s must be %s, but there are %lld", call, name,
                 words[n], (long long)(given.n < 0 ? 0 : given.n));
        return false;
    }
    for (int i = 0; i < n; i++) {
        out[i] = given.data[given.n == 1 ? 0 : i];
        if (out[i] < least || out[i] > INT32_MAX) {
            tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: %s is %s; it must lie in [%lld, %d]", call, name,
                     TNI_SHAPE_OF_INTS(given), (long long)least, INT32_MAX);
            return false;
        }
    }
    return true;
}

bool tni_window_pair(tn_ints given, int64_t least, const char *name, const char *call,
                     int64_t out[2]) {
    return tni_window_values(given, 2, least, name, call, out);
}

bool tni_window_finish(tni_window *w, bool ceil_mode, const char *call) {
    for (int i = 0; i < 2; i++) {
        int64_t reach = w->dilation[i] * (w->kernel[i] - 1) + 1;
        int64_t room = w->in[i] + 2 * w->padding[i] - reach + (ceil_mode ? w->stride[i] - 1 : 0);
        int64_t out = room < 0 ? 0 : room / w->stride[i] + 1;
        /* the last window must start in the input, or in the padding before it */
        if (ceil_mode && (out - 1) * w->stride[i] >= w->in[i] + w->padding[i])
            out--;
        if (out < 1) {
            tni_fail(TN_ERR_SHAPE,
                     "%s: a window of %lld x %lld (dilation %lld x %lld) does not fit into "
                     "planes of %lld x %lld with padding %lld x %lld",
                     call, (long long)w->kernel[0], (long long)w->kernel[1],
                     (long long)w->dilation[0], (long long)w->dilation[1], (long long)w->in[0],
                     (long long)w->in[1], (long long)w->padding[0], (long long)w->padding[1]);
            return false;
        }
        w->out[i] = out;
        int64_t needed = (out - 1) * w->stride[i] + reach;
        int64_t whole = w->in[i] + w->padding[i];
        w->padded[i] = needed > whole ? needed : whole;
    }
    return true;
}

tn_status tni_window_args(tni_build *b, uint32_t first, const int64_t *const *pairs, uint32_t n) {
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < n && status == TN_OK; i++)
        status = tni_build_list(b, first + i, tn_ints_of(pairs[i], 2));
    return status;
}

/* ---- planes and windows ------------------------------------------------------------------ */

/* The planes without what is padded around them. */
static tn_tensor *inner(tni_temps *tmp, const tni_window *w, tn_tensor *padded) {
    tn_tensor *rows = tni_own(tmp, tni_data_narrow(padded, 2, w->padding[0], w->in[0]));
    return tni_own(tmp, tni_data_narrow(rows, 3, w->padding[1], w->in[1]));
}

tn_tensor *tni_window_pad(const tni_window *w, tn_tensor *input, int64_t first, int64_t n,
                          tn_scalar value) {
    tni_temps tmp = {0};
    tn_tensor *images = tni_own(&tmp, tni_data_narrow(input, 0, first, n));
    if (!images || (w->padded[0] == w->in[0] && w->padded[1] == w->in[1]))
        return tni_temps_keep(&tmp, images);
    tn_tensor *padded =
        tni_own(&tmp, tni_tensor_new(input->device, input->view.dtype, 4,
                                     (int64_t[]){n, w->c, w->padded[0], w->padded[1]}));
    if (padded && tni_fill_data(padded, value) != TN_OK)
        padded = NULL;
    tn_tensor *middle = inner(&tmp, w, padded);
    if (!middle || tni_copy_data(middle, images) != TN_OK)
        padded = NULL;
    return tni_temps_keep(&tmp, padded);
}

tn_tensor *tni_window_view(const tni_window *w, tn_tensor *padded) {
    if (!padded)
        return NULL;
    const int64_t *s = padded->strides;
    return tni_data_view(
        padded, TN_SHAPE(padded->sizes[0], w->c, w->kernel[0], w->kernel[1], w->out[0], w->out[1]),
        TN_SHAPE(s[0], s[1], s[2] * w->dilation[0], s[3] * w->dilation[1], s[2] * w->stride[0],
                 s[3] * w->stride[1]),
        0);
}

/* padded's windows at kernel position (i, j) += the same position of parts */
static tn_status add_position(tn_tensor *windows, tn_tensor *parts, int64_t i, int64_t j) {
    tn_tensor *pair[2] = {windows, parts};
    tni_temps tmp = {0};
    for (int k = 0; k < 2; k++) {
        const int64_t *n = pair[k]->sizes, *s = pair[k]->strides;
        pair[k] =
            tni_own(&tmp, tni_data_view(pair[k], TN_SHAPE(n[0], n[1], n[4], n[5]),
                                        TN_SHAPE(s[0], s[1], s[4], s[5]), i * s[2] + j * s[3]));
    }
    tn_tensor *sum = tni_own(&tmp, tni_add_(pair[0], pair[1], tn_int(1)));
    tni_temps_finish(&tmp);
    return sum ? TN_OK : tni_failed();
}

tn_status tni_window_add(const tni_window *w, tn_tensor *parts, tn_tensor *into, int64_t first,
                         int64_t n) {
    if (!parts)
        return tni_failed();
    tni_temps tmp = {0};
    tn_tensor *padded =
        tni_own(&tmp, tni_tensor_new(into->device, into->view.dtype, 4,
                                     (int64_t[]){n, w->c, w->padded[0], w->padded[1]}));
    tn_tensor *windows = tni_own(&tmp, tni_window_view(w, padded));
    tn_status status = windows ? tni_fill_data(padded, tn_int(0)) : tni_failed();
    for (int64_t i = 0; i < w->kernel[0] && status == TN_OK; i++)
        for (int64_t j = 0; j < w->kernel[1] && status == TN_OK; j++)
            status = add_position(windows, parts, i, j);
    if (status == TN_OK) {
        tn_tensor *middle = inner(&tmp, w, padded);
        tn_tensor *images = tni_own(&tmp, tni_data_narrow(into, 0, first, n));
        status = middle && images ? tni_copy_data(images, middle) : tni_failed();
    }
    tni_temps_finish(&tmp);
    return status;
}
