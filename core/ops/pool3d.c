/* Pooling over one dimension and three, and to sizes that are given: by that over two.
 *
 * One dimension is a plane of height one. Three are taken in two passes: over H and W of each
 * depth, and then over D, with planes [D, OH * OW]. The count of a window's elements is a product
 * over its dimensions, so the mean of means is the mean.
 */
#include "base/alloc.h"
#include "core/ops/functions.h"
#include "core/ops/window.h"

#include <string.h>

/* ---- one dimension ----------------------------------------------------------------------- */

/* [N, C, L] or [C, L] as planes of height one; owned by the list. */
static tn_tensor *lines(tni_temps *tmp, tn_tensor *self, const char *call) {
    if (self->view.rank == 2 || self->view.rank == 3)
        return tni_own(tmp, tni_unsqueeze(self, -2));
    tni_fail(TN_ERR_SHAPE, "%s: the input must be [N, C, L] or [C, L], but has shape %s", call,
             TNI_SHAPE_OF(self));
    return NULL;
}

/* kernel_size, stride, padding and, where there is one, dilation of planes of height one. */
static bool line_options(const tn_cell *args, bool has_dilation, const char *call,
                         int64_t out[4][2]) {
    static const char *const names[] = {"kernel_size", "stride", "padding", "dilation"};
    for (int i = 0; i < 3 + has_dilation; i++) {
        tn_ints given = tni_arg_ints(&args[i]);
        if (i == 1 && given.n < 1)
            given = tni_arg_ints(&args[0]);
        out[i][0] = i != 2;
        if (!tni_window_values(given, 1, i != 2, names[i], call, &out[i][1]))
            return false;
    }
    return true;
}

/* avg_pool1d(self, kernel_size, stride, padding, ceil_mode, count_include_pad) */
tn_status tni_run_avg_pool1d(const tn_cell *args, tn_cell *rets) {
    int64_t o[4][2];
    tni_temps tmp = {0};
    tn_tensor *x = lines(&tmp, tni_arg_tensor(&args[0]), "tn_avg_pool1d");
    if (!x || !line_options(args + 1, false, "tn_avg_pool1d", o))
        return tni_temps_return(&tmp, NULL, rets);
    x = tni_own(&tmp,
                tni_avg_pool2d(x, tn_ints_of(o[0], 2), tn_ints_of(o[1], 2), tn_ints_of(o[2], 2),
                               args[4].v.boolean, args[5].v.boolean, TN_NO_INT));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_squeeze_dim(x, -2)), rets);
}

/* max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode) */
tn_status tni_run_max_pools1d(const char *call, const tn_cell *args, tn_cell *rets,
                              bool with_indices) {
    int64_t o[4][2];
    tn_tensor *pooled[2] = {NULL, NULL};
    tni_temps tmp = {0};
    tn_tensor *x = lines(&tmp, tni_arg_tensor(&args[0]), call);
    if (x && line_options(args + 1, true, call, o) &&
        tni_max_pool2d_with_indices(x, tn_ints_of(o[0], 2), tn_ints_of(o[1], 2),
                                    tn_ints_of(o[2], 2), tn_ints_of(o[3], 2), args[5].v.boolean,
                                    &pooled[0], &pooled[1]) == TN_OK)
        for (uint32_t i = 0; i < 2; i++)
            pooled[i] = tni_own(&tmp, tni_squeeze_dim(tni_own(&tmp, pooled[i]), -2));
    return tni_temps_return_many(&tmp, pooled, with_indices ? 2 : 1, rets);
}

/* ---- three dimensions -------------------------------------------------------------------- */

/* [N, C, D, H, W] or [C, D, H, W], and the windows. */
typedef struct volume {
    int64_t planes, size[3]; /* N * C, and D, H, W */
    int64_t kernel[3], stride[3], padding[3], dilation[3];
    tn_ints lead; /* N and C, or C */
} volume;

static bool volume_init(volume *v, const tn_cell *args, const tn_cell *dilation, const char *call) {
    const tn_tensor *self = tni_arg_tensor(&args[0]);
    int32_t rank = self->view.rank;
    bool fits = rank == 4 || rank == 5;
    for (int32_t d = rank == 5; d < rank && fits; d++)
        fits = self->sizes[d] > 0;
    if (!fits) {
        tni_fail(TN_ERR_SHAPE,
                 "%s: the input must be [N, C, D, H, W] or [C, D, H, W] with none of them 0 but N, "
                 "but has shape %s",
                 call, TNI_SHAPE_OF_SIZES(rank, self->sizes));
        return false;
    }
    v->lead = tn_ints_of(self->sizes, rank - 3);
    v->planes = rank == 5 ? self->sizes[0] * self->sizes[1] : self->sizes[0];
    memcpy(v->size, self->sizes + rank - 3, sizeof v->size);
    v->dilation[0] = v->dilation[1] = v->dilation[2] = 1;
    tn_ints stride = tni_arg_ints(&args[2]);
    return tni_window_values(tni_arg_ints(&args[1]), 3, 1, "kernel_size", call, v->kernel) &&
           tni_window_values(stride.n > 0 ? stride : tn_ints_of(v->kernel, 3), 3, 1, "stride", call,
                             v->stride) &&
           tni_window_values(tni_arg_ints(&args[3]), 3, 0, "padding", call, v->padding) &&
           (!dilation ||
            tni_window_values(tni_arg_ints(dilation), 3, 1, "dilation", call, v->dilation));
}

static tn_tensor *depths(const volume *v, tni_temps *tmp, tn_tensor *self) {
    const int64_t *s = v->size;
    return tni_own(tmp, tni_reshape(self, TN_SHAPE(v->planes, s[0], s[1], s[2])));
}

/* What the first pass gave, [N * C, D, OH, OW], as planes of the second. */
static tn_tensor *columns(const volume *v, tni_temps *tmp, tn_tensor *t) {
    return !t ? NULL
              : tni_own(tmp,
                        tni_reshape(t, TN_SHAPE(v->planes, v->size[0], t->sizes[2] * t->sizes[3])));
}

/* What the second gave, [N * C, OD, OH * OW], in the shape of the result. */
static tn_tensor *result(const volume *v, tni_temps *tmp, tn_tensor *t, const tn_tensor *first) {
    if (!t || !first)
        return NULL;
    int64_t sizes[5];
    memcpy(sizes, v->lead.data, (size_t)v->lead.n * sizeof *sizes);
    sizes[v->lead.n] = t->sizes[1];
    sizes[v->lead.n + 1] = first->sizes[2];
    sizes[v->lead.n + 2] = first->sizes[3];
    return tni_own(tmp, tni_reshape(t, tn_ints_of(sizes, v->lead.n + 3)));
}

/* avg_pool3d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) */
tn_status tni_run_avg_pool3d(const tn_cell *args, tn_cell *rets) {
    volume v;
    if (!volume_init(&v, args, NULL, "tn_avg_pool3d"))
        return tni_failed();
    bool ceil_mode = args[4].v.boolean, with_padding = args[5].v.boolean;
    int64_t divisor = tni_arg_int(&args[6]);
    if (divisor == 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_avg_pool3d: divisor_override must not be 0");
    tni_temps tmp = {0};
    tn_tensor *first = depths(&v, &tmp, tni_arg_tensor(&args[0]));
    first =
        tni_own(&tmp, tni_avg_pool2d(first, tn_ints_of(v.kernel + 1, 2),
                                     tn_ints_of(v.stride + 1, 2), tn_ints_of(v.padding + 1, 2),
                                     ceil_mode, with_padding, divisor == TN_NO_INT ? divisor : 1));
    tn_tensor *x = columns(&v, &tmp, first);
    x = tni_own(&tmp, tni_avg_pool2d(x, TN_SHAPE(v.kernel[0], 1), TN_SHAPE(v.stride[0], 1),
                                     TN_SHAPE(v.padding[0], 0), ceil_mode, with_padding, divisor));
    return tni_temps_return(&tmp, result(&v, &tmp, x, first), rets);
}

/* d * H * W + the place within that depth, of places d * OH * OW + column of the second pass. */
static tn_tensor *whole_places(const volume *v, tni_temps *tmp, tn_tensor *within, tn_tensor *at) {
    if (!within || !at)
        return NULL;
    int64_t columns = at->sizes[2];
    tn_tensor *flat = tni_own(tmp, tni_reshape(within, TN_SHAPE(v->planes, v->size[0] * columns)));
    tn_tensor *index = tni_own(tmp, tni_reshape(at, TN_SHAPE(v->planes, at->sizes[1] * columns)));
    tn_tensor *depth = tni_own(tmp, tni_floor_divide_scalar(index, tn_int(columns)));
    tn_tensor *place = tni_own(tmp, tni_gather(flat, 1, index));
    place = tni_own(tmp, tni_add(place, depth, tn_int(v->size[1] * v->size[2])));
    return tni_own(tmp, tni_reshape(place, tni_sizes(at)));
}

/* max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode) */
tn_status tni_run_max_pools3d(const char *call, const tn_cell *args, tn_cell *rets,
                              bool with_indices) {
    volume v;
    if (!volume_init(&v, args, &args[4], call))
        return tni_failed();
    bool ceil_mode = args[5].v.boolean;
    tni_temps tmp = {0};
    tn_tensor *first = NULL, *within = NULL, *x = NULL, *at = NULL, *results[2] = {NULL, NULL};
    if (tni_max_pool2d_with_indices(depths(&v, &tmp, tni_arg_tensor(&args[0])),
                                    tn_ints_of(v.kernel + 1, 2), tn_ints_of(v.stride + 1, 2),
                                    tn_ints_of(v.padding + 1, 2), tn_ints_of(v.dilation + 1, 2),
                                    ceil_mode, &first, &within) == TN_OK) {
        tni_own(&tmp, first);
        tni_own(&tmp, within);
        if (tni_max_pool2d_with_indices(columns(&v, &tmp, first), TN_SHAPE(v.kernel[0], 1),
                                        TN_SHAPE(v.stride[0], 1), TN_SHAPE(v.padding[0], 0),
                                        TN_SHAPE(v.dilation[0], 1), ceil_mode, &x, &at) == TN_OK) {
            tni_own(&tmp, x);
            tni_own(&tmp, at);
            results[0] = result(&v, &tmp, x, first);
            if (with_indices)
                results[1] = result(&v, &tmp, whole_places(&v, &tmp, within, at), first);
        }
    }
    return tni_temps_return_many(&tmp, results, with_indices ? 2 : 1, rets);
}

/* ---- to sizes that are given ------------------------------------------------------------- */

/* Along one dimension, window o is [o * in / out, ceil((o + 1) * in / out)). All are seen as
 * `length` long: past its end a window has its last element again, which is never the first of the
 * largest. */
typedef struct adaptive {
    int64_t in, out, length;
} adaptive;

static int64_t first_of(const adaptive *a, int64_t o) {
    return o * a->in / a->out;
}

static int64_t end_of(const adaptive *a, int64_t o) {
    return ((o + 1) * a->in + a->out - 1) / a->out;
}

static bool adaptive_init(adaptive *a, int64_t in, int64_t out, const char *call) {
    int64_t product;
    *a = (adaptive){.in = in, .out = out, .length = 1};
    if (!tni_mul_i64(in + 1, out, &product)) {
        tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: output_size has %lld, which is too much", call,
                 (long long)out);
        return false;
    }
    for (int64_t o = 0; o < out; o++) {
        int64_t length = end_of(a, o) - first_of(a, o);
        a->length = length > a->length ? length : a->length;
    }
    return true;
}

/* The place of each element of each window, [out * length]; owned. */
static tn_tensor *adaptive_places(const adaptive *a, tni_device *device) {
    int64_t n, at = 0;
    if (!tni_mul_i64(a->out, a->length, &n) || n > INT64_MAX / 8)
        return tni_fail_memory_null("a table of pooling windows");
    int64_t *table = tni_alloc((size_t)(n ? n : 1) * sizeof *table);
    if (!table)
        return tni_fail_memory_null("a table of pooling windows");
    for (int64_t o = 0; o < a->out; o++)
        for (int64_t i = 0; i < a->length; i++) {
            int64_t place = first_of(a, o) + i, end = end_of(a, o);
            table[at++] = place < end ? place : end - 1;
        }
    tn_tensor *t = tni_tensor_new(device, TN_I64, 1, &n);
    if (t && n > 0 && tni_tensor_write(t, table, (uint64_t)n * sizeof *table) != TN_OK) {
        tni_drop(t);
        t = NULL;
    }
    tni_free(table);
    return t;
}

/* [..., OH * KH, OW * KW] of `planes` planes as [planes, OH, OW, KH * KW] */
static tn_tensor *adaptive_windows(tni_temps *tmp, const adaptive a[2], tn_tensor *x,
                                   int64_t planes) {
    x = tni_own(tmp,
                tni_reshape(x, TN_SHAPE(planes, a[0].out, a[0].length, a[1].out, a[1].length)));
    x = tni_own(tmp, tni_permute(x, TN_SHAPE(0, 1, 3, 2, 4)));
    return tni_own(tmp,
                   tni_reshape(x, TN_SHAPE(planes, a[0].out, a[1].out, a[0].length * a[1].length)));
}

/* Of self [N, C, H, W] or [C, H, W]: the largest and its place in the plane. */
static bool adaptive_max(tni_temps *tmp, tn_tensor *self, const int64_t size[2], const char *call,
                         tn_tensor *results[2]) {
    int32_t rank = self->view.rank;
    const int64_t *in = self->sizes + rank - 2;
    adaptive a[2];
    if (!adaptive_init(&a[0], in[0], size[0], call) || !adaptive_init(&a[1], in[1], size[1], call))
        return false;
    int64_t planes = self->sizes[rank - 3] * (rank == 4 ? self->sizes[0] : 1), sizes[4];
    memcpy(sizes, self->sizes, (size_t)(rank - 2) * sizeof *sizes);
    memcpy(sizes + rank - 2, size, 2 * sizeof *size);
    tn_tensor *rows = tni_own(tmp, adaptive_places(&a[0], self->device));
    tn_tensor *columns = rows ? tni_own(tmp, adaptive_places(&a[1], self->device)) : NULL;
    tn_tensor *x = tni_own(tmp, tni_index_select(self, rank - 2, rows));
    x = tni_own(tmp, tni_index_select(x, rank - 1, columns));
    x = adaptive_windows(tmp, a, x, planes);
    tn_tensor *values, *at;
    if (!x || tni_max_dim(x, 3, true, &values, &at) != TN_OK)
        return false;
    tni_own(tmp, values);
    tni_own(tmp, at);
    rows = tni_own(tmp, tni_unsqueeze(rows, 1));
    rows = tni_own(tmp, tni_mul_scalar(rows, tn_int(in[1])));
    tn_tensor *places = tni_own(tmp, tni_add(rows, columns, tn_int(1)));
    places = adaptive_windows(tmp, a, places, 1);
    places = tni_own(
        tmp, tni_expand(places, TN_SHAPE(planes, a[0].out, a[1].out, a[0].length * a[1].length)));
    places = tni_own(tmp, tni_gather(places, 3, at));
    results[0] = tni_own(tmp, tni_reshape(values, tn_ints_of(sizes, rank)));
    results[1] = tni_own(tmp, tni_reshape(places, tn_ints_of(sizes, rank)));
    return true;
}

/* adaptive_max_pool of n dimensions (self, output_size) */
tn_status tni_run_adaptive_max_pool(const char *call, const tn_cell *args, tn_cell *rets,
                                    int64_t dims) {
    int n = (int)dims;
    tn_tensor *self = tni_arg_tensor(&args[0]), *results[2] = {NULL, NULL};
    int32_t rank = self->view.rank;
    bool fits = rank == n + 1 || rank == n + 2;
    for (int32_t d = rank == n + 2; d < rank && fits; d++)
        fits = self->sizes[d] > 0;
    if (!fits)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: the input must be %s with none of them 0 but N, but has shape %s",
                        call, n == 2 ? "[N, C, H, W] or [C, H, W]" : "[N, C, L] or [C, L]",
                        TNI_SHAPE_OF_SIZES(rank, self->sizes));
    if (!tni_is_float(self->view.dtype))
        return tni_fail(TN_ERR_DTYPE, "%s: not defined for %s; cast with tn_to_dtype", call,
                        tn_dtype_name(self->view.dtype));
    int64_t size[2] = {1, 1};
    if (!tni_window_values(tni_arg_ints(&args[1]), n, 0, "output_size", call, size + 2 - n))
        return tni_failed();
    tni_temps tmp = {0};
    tn_tensor *x = n == 1 ? tni_own(&tmp, tni_unsqueeze(self, -2)) : self;
    if (x && adaptive_max(&tmp, x, size, call, results))
        for (int i = 0; i < 2 && n == 1; i++)
            results[i] = tni_own(&tmp, tni_squeeze_dim(results[i], -2));
    return tni_temps_return_many(&tmp, results, 2, rets);
}
