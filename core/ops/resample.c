/* Upsampling, and the tables that padding and resampling share.
 *
 * One dimension at a time, each element of the result is a sum over a few elements of the input.
 * Which ones, and their weights, depends on places alone: tables, made on the host in f64 and
 * written to the device once a call.
 */
#include "core/ops/resample.h"
#include "base/alloc.h"
#include "core/ops/functions.h"

#include <math.h>
#include <string.h>

tn_tensor *tni_table(tni_device *device, tn_dtype dtype, tn_ints sizes, const void *data,
                     uint64_t bytes) {
    tn_tensor *t = tni_tensor_new(device, dtype, (int32_t)sizes.n, sizes.data);
    if (t && bytes > 0 && tni_tensor_write(t, data, bytes) != TN_OK) {
        tni_drop(t);
        t = NULL;
    }
    return t;
}

tn_tensor *tni_number_table(tni_device *device, tn_dtype dtype, tn_ints sizes,
                            const double *numbers, int64_t n) {
    if (dtype == TN_F64)
        return tni_table(device, TN_F64, sizes, numbers, (uint64_t)n * sizeof *numbers);
    float *narrow = tni_alloc((size_t)n * sizeof *narrow);
    if (!narrow)
        return tni_fail_memory_null("a table of weights");
    for (int64_t i = 0; i < n; i++)
        narrow[i] = (float)numbers[i];
    tn_tensor *t = tni_table(device, TN_F32, sizes, narrow, (uint64_t)n * sizeof *narrow);
    tni_free(narrow);
    return t;
}

void *tni_new_table(tni_device *device, tn_dtype dtype, int64_t n, int64_t element_size) {
    int64_t bytes;
    void *table = NULL;
    if (tni_mul_i64(n, element_size, &bytes)) {
        /* asked first: a host lends memory that it does not have */
        tn_tensor *room = device->is_meta ? NULL : tni_tensor_new(device, dtype, 1, &n);
        if (!room && !device->is_meta)
            return NULL;
        tni_drop(room);
        table = tni_alloc((size_t)bytes);
    }
    if (!table)
        tni_fail_memory("a table of places");
    return table;
}

tn_status tni_resample_sizes(const char *call, const tn_tensor *self, tn_ints output_size,
                             int32_t n_dims, int64_t least, int64_t sizes[TN_MAX_RANK]) {
    int32_t rank = self->view.rank;
    int64_t numel;
    if (output_size.n != n_dims)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: output_size has %lld values; it must have %d, one for each dimension "
                        "after the channels",
                        call, (long long)(output_size.n < 0 ? 0 : output_size.n), n_dims);
    memcpy(sizes, self->sizes, (size_t)rank * sizeof *sizes);
    for (int32_t k = 0; k < n_dims; k++) {
        sizes[rank - n_dims + k] = output_size.data[k];
        if (output_size.data[k] < least)
            return tni_fail(TN_ERR_INVALID_ARGUMENT,
                            "%s: output_size is %s; its values must be at least %lld", call,
                            TNI_SHAPE_OF_SIZES(n_dims, output_size.data), (long long)least);
    }
    if (!tni_numel(rank, sizes, (int64_t)sizeof(double), &numel))
        return tni_fail(TN_ERR_SHAPE,
                        "%s: self %s of output_size %s has more elements than can be "
                        "counted",
                        call, TNI_SHAPE_OF_SIZES(rank, self->sizes),
                        TNI_SHAPE_OF_SIZES(n_dims, output_size.data));
    return TN_OK;
}

tn_status tni_resample_float(const char *call, const tn_tensor *self) {
    return tni_is_float(self->view.dtype)
               ? TN_OK
               : tni_fail(TN_ERR_DTYPE,
                          "%s: self is %s, but means are of floating dtypes; cast it "
                          "with tn_to_dtype",
                          call, tn_dtype_name(self->view.dtype));
}

/* [.., n, ...]: of rank n_after + 1, so that it broadcasts against what has n at a dimension
 * before n_after others. */
static tn_tensor *before_dims(tni_temps *tmp, tn_tensor *row, int64_t n, int32_t n_after) {
    int64_t sizes[TN_MAX_RANK] = {n};
    for (int32_t d = 1; d <= n_after; d++)
        sizes[d] = 1;
    return tni_own(tmp, tni_reshape(row, tn_ints_of(sizes, n_after + 1)));
}

/* ---- upsampling -------------------------------------------------------------------------- */

typedef enum filter { NEAREST = 1, LINEAR = 2, CUBIC = 4 } filter; /* as many taps */

typedef struct resampling {
    filter filter;
    bool align_corners, is_double; /* the input's dtype: places of nearest are found in it */
    int32_t n_dims;
    tn_scalar scales[3];
} resampling;

/* From the result's places to the input's. */
static double step_of(const resampling *r, int32_t k, int64_t in, int64_t out) {
    double scale = r->scales[k].tag == TN_CELL_NONE ? 0 : tni_scalar_f64(r->scales[k]);
    if (r->align_corners)
        return out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
    return scale > 0 ? 1 / scale : (double)in / (double)out;
}

/* Keys' (1981) kernel with a = -0.75, at distances t + 1, t, 1 - t, 2 - t. */
static void cubic_weights(double t, double weights[4]) {
    double a = -0.75;
    double near[2] = {t, 1 - t};
    for (int i = 0; i < 2; i++) {
        double x = near[i], far = x + 1;
        weights[i ? 2 : 1] = ((a + 2) * x - (a + 3)) * x * x + 1;
        weights[i ? 3 : 0] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
    }
}

static int64_t clamped(int64_t i, int64_t n) {
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* The nearest place at or before; PyTorch finds it in f32, but of f64 in f64. */
static void fill_nearest(const resampling *r, int32_t k, int64_t in, int64_t out, int64_t *index) {
    double step = step_of(r, k, in, out);
    float narrow = (float)step;
    if (step == (double)in / (double)out)
        narrow = (float)in / (float)out;
    for (int64_t i = 0; i < out; i++) {
        double at = r->is_double ? floor((double)i * step) : (double)floorf((float)i * narrow);
        index[i] = at < (double)in ? clamped((int64_t)at, in) : in - 1;
    }
}

/* Rows of taps: index[t * out + i] and its weight, for place i of dimension k. */
static void fill_taps(const resampling *r, int32_t k, int64_t in, int64_t out, int64_t *index,
                      double *weight) {
    double step = step_of(r, k, in, out);
    if (r->filter == NEAREST) {
        fill_nearest(r, k, in, out, index);
        return;
    }
    for (int64_t i = 0; i < out; i++) {
        double at = r->align_corners ? step * (double)i : step * ((double)i + 0.5) - 0.5;
        if (r->filter == LINEAR && (at < 0 || in == out))
            at = in == out ? (double)i : 0;
        /* a scale of the program's may lead beyond the end, where the last element is */
        double low = floor(at) < (double)(in - 1) ? floor(at) : (double)(in - 1);
        double t = at - low < 0 ? 0 : at - low > 1 ? 1 : at - low, weights[4] = {1 - t, t};
        if (r->filter == CUBIC)
            cubic_weights(t, weights);
        for (int64_t j = 0; j < (int64_t)r->filter; j++) {
            index[j * out + i] = clamped((int64_t)low + j - (r->filter == CUBIC), in);
            weight[j * out + i] = weights[j];
        }
    }
}

/* The tables of one call: of each dimension, from `start` on, as many rows as taps. */
typedef struct tap_tables {
    tn_tensor *index, *weight;
    int64_t start[3];
} tap_tables;

static tn_status make_taps(tni_temps *tmp, const resampling *r, const tn_tensor *x,
                           const int64_t *sizes, tap_tables *out) {
    int64_t n = 0;
    int32_t first = x->view.rank - r->n_dims;
    bool counts = true;
    for (int32_t k = 0; k < r->n_dims; k++) {
        int64_t taps;
        out->start[k] = n;
        counts &=
            tni_mul_i64(sizes[first + k], (int64_t)r->filter, &taps) && tni_add_i64(n, taps, &n);
    }
    int64_t *index = tni_new_table(x->device, TN_I64, counts ? n : INT64_MAX, sizeof *index);
    double *weight = index ? tni_new_table(x->device, x->view.dtype, n, sizeof *weight) : NULL;
    if (weight) {
        for (int32_t k = 0; k < r->n_dims; k++)
            fill_taps(r, k, x->sizes[first + k], sizes[first + k], index + out->start[k],
                      weight + out->start[k]);
        out->index = tni_own(
            tmp, tni_table(x->device, TN_I64, TN_SHAPE(n), index, (uint64_t)n * sizeof *index));
        if (r->filter != NEAREST)
            out->weight =
                tni_own(tmp, tni_number_table(x->device, x->view.dtype, TN_SHAPE(n), weight, n));
    }
    bool made = weight && out->index && (r->filter == NEAREST || out->weight);
    tni_free(weight);
    tni_free(index);
    return made ? TN_OK : tni_failed();
}

/* x along dimension k of those that are resampled, with `out` elements there; owned. */
static tn_tensor *along(tni_temps *tmp, const resampling *r, const tap_tables *tables, tn_tensor *x,
                        int32_t k, int64_t out) {
    int32_t dim = x->view.rank - r->n_dims + k;
    tn_tensor *sum = NULL;
    for (int64_t j = 0; j < (int64_t)r->filter; j++) {
        int64_t start = tables->start[k] + j * out;
        tn_tensor *index = tni_own(tmp, tni_narrow(tables->index, 0, start, out));
        tn_tensor *picked = tni_index_select(x, dim, index);
        if (r->filter == NEAREST)
            return picked;
        tn_tensor *weight = tni_own(tmp, tni_narrow(tables->weight, 0, start, out));
        weight = before_dims(tmp, weight, out, r->n_dims - 1 - k);
        tn_tensor *more =
            j == 0 ? tni_mul(picked, weight) : tni_addcmul(sum, picked, weight, tn_int(1));
        tni_drop(picked);
        tni_drop(sum);
        sum = more;
    }
    return sum;
}

tn_status tni_run_upsample(const char *call, const tn_cell *args, tn_cell *rets, int64_t dims,
                           int64_t taps) {
    resampling r = {.filter = (filter)taps, .n_dims = (int32_t)dims};
    static const char *const shapes[] = {"[N, C, W]", "[N, C, H, W]", "[N, C, D, H, W]"};
    tn_tensor *self = tni_arg_tensor(&args[0]), *x = self;
    int64_t sizes[TN_MAX_RANK];
    int32_t rank = self->view.rank;
    bool fits = rank == r.n_dims + 2;
    for (int32_t d = 1; fits && d < rank; d++)
        fits = self->sizes[d] > 0;
    if (!fits)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: self must be %s, where N alone may be 0, but has shape "
                        "%s",
                        call, shapes[r.n_dims - 1], TNI_SHAPE_OF_SIZES(rank, self->sizes));
    TNI_TRY(tni_resample_sizes(call, self, tni_arg_ints(&args[1]), r.n_dims, 1, sizes));
    if (r.filter != NEAREST)
        TNI_TRY(tni_resample_float(call, self));
    uint32_t at = 2;
    r.align_corners = r.filter != NEAREST && args[at++].v.boolean;
    for (int32_t k = 0; k < r.n_dims; k++)
        r.scales[k] = args[at + (uint32_t)k];
    r.is_double = self->view.dtype == TN_F64;
    tni_temps tmp = {0};
    tap_tables tables = {0};
    if (make_taps(&tmp, &r, self, sizes, &tables) != TN_OK)
        x = NULL;
    for (int32_t k = 0; k < r.n_dims && x; k++)
        x = tni_then(&tmp, along(&tmp, &r, &tables, x, k, sizes[2 + k]), x);
    return tni_temps_return(&tmp, x, rets);
}

/* (self, output_size, scales...) */
/* (self, output_size, align_corners, scales...) */
