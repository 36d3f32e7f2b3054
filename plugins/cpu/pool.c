/* Pooling over windows of images [N, C, H, W]. Threads share the N * C planes. */
#include "plugins/cpu/indices.h"
#include "plugins/cpu/iterate.h"

#include <math.h>

typedef struct pool {
    const char *in;
    char *out;
    int64_t *places; /* of the maxima; read by the derivative */
    tn_dtype dtype;
    int64_t h, w, oh, ow; /* H, W is the side of the input, also in a derivative */
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    bool count_include_pad;
    float *scratch; /* [slots][h * w + oh * ow], for halves */
} pool;

/* One plane from `in` to `out`, dense, of the computing type. */
typedef void (*plane)(const pool *p, const void *in, void *out, int64_t *places);

/* ---- max_pool2d -------------------------------------------------------------------------- */

/* A window that lies in the padding alone has the padding's value and no place. */
#define MAX_POOL(sfx, T, lowest) \
    static void max_any_##sfx(const pool *p, const void *in, void *out, int64_t *places) { \
        const T *x = in; \
        T *r = out; \
        for (int64_t oy = 0; oy < p->oh; oy++) \
            for (int64_t ox = 0; ox < p->ow; ox++) { \
                T best = lowest; \
                int64_t place = -1; \
                for (int64_t ky = 0; ky < p->kernel[0]; ky++) { \
                    int64_t y = oy * p->stride[0] - p->padding[0] + ky * p->dilation[0]; \
                    if (y < 0 || y >= p->h) \
                        continue; \
                    for (int64_t kx = 0; kx < p->kernel[1]; kx++) { \
                        int64_t c = ox * p->stride[1] - p->padding[1] + kx * p->dilation[1]; \
                        if (c < 0 || c >= p->w) \
                            continue; \
                        T v = x[y * p->w + c]; \
                        if (place < 0 || v > best || (v != v && best == best)) { \
                            best = v; \
                            place = y * p->w + c; \
                        } \
                    } \
                } \
                r[oy * p->ow + ox] = best; \
                places[oy * p->ow + ox] = place; \
            } \
    } \
    /* Windows of 2 x 2, side by side and all inside: no branches, so that rows vectorise. */ \
    static void max_2x2_##sfx(const pool *p, const void *in, void *out, int64_t *places) { \
        for (int64_t oy = 0; oy < p->oh; oy++) { \
            const T *x = (const T *)in + 2 * oy * p->w, *y = x + p->w; \
            T *r = (T *)out + oy * p->ow; \
            int64_t *place = places + oy * p->ow, first = 2 * oy * p->w; \
            TNC_INDEPENDENT \
            for (int64_t i = 0; i < p->ow; i++) { \
                T a = x[2 * i], b = x[2 * i + 1], c = y[2 * i], d = y[2 * i + 1]; \
                int32_t at = 0, below = (int32_t)p->w; \
                bool up = (b > a) | ((b != b) & (a == a)); \
                a = up ? b : a; \
                at = up ? 1 : at; \
                up = (c > a) | ((c != c) & (a == a)); \
                a = up ? c : a; \
                at = up ? below : at; \
                up = (d > a) | ((d != d) & (a == a)); \
                a = up ? d : a; \
                at = up ? below + 1 : at; \
                r[i] = a; \
                place[i] = first + 2 * i + at; \
            } \
        } \
    }
#define MAX_POOL_INT(sfx, T, U, DT) MAX_POOL(sfx, T, TNC_LOWEST(T))
MAX_POOL(f32, float, -INFINITY)
MAX_POOL(f64, double, -INFINITY)
TNC_INT_TYPES(MAX_POOL_INT)

/* Zeros, then each gradient at its maximum. */
#define MAX_POOL_BACKWARD(sfx, T) \
    static void max_backward_##sfx(const pool *p, const void *in, void *out, int64_t *places) { \
        const T *g = in; \
        T *r = out; \
        memset(r, 0, sizeof(T) * (size_t)(p->h * p->w)); \
        for (int64_t i = 0; i < p->oh * p->ow; i++) \
            r[places[i]] += g[i]; \
    }
MAX_POOL_BACKWARD(f32, float)
MAX_POOL_BACKWARD(f64, double)

/* ---- avg_pool2d -------------------------------------------------------------------------- */

/* The part of a window that lies on the input, along one dimension, and what it counts for. */
typedef struct span {
    int64_t begin, end, count;
} span;

static span window(const pool *p, int d, int64_t size, int64_t o) {
    int64_t begin = o * p->stride[d] - p->padding[d];
    int64_t end = tnc_min(begin + p->kernel[d], size + p->padding[d]);
    span s = {tnc_max(begin, 0), tnc_min(end, size), end - begin};
    if (!p->count_include_pad)
        s.count = s.end - s.begin;
    return s;
}

/* The first that reaches element `at` of a dimension. */
static int64_t first_window(const pool *p, int d, int64_t at) {
    int64_t before = at + p->padding[d] - p->kernel[d];
    return before < 0 ? 0 : before / p->stride[d] + 1;
}

enum { RUNNING = 32 }; /* windows that may meet in a running sum */

/* How many windows there may be that an element is in. */
static int64_t windows_of_one(const pool *p) {
    return (p->kernel[0] + p->stride[0] - 1) / p->stride[0] *
           ((p->kernel[1] + p->stride[1] - 1) / p->stride[1]);
}

#define AVG_POOL(sfx, T) \
    static void avg_##sfx(const pool *p, const void *in, void *out, int64_t *places) { \
        const T *x = in; \
        T *r = out; \
        for (int64_t oy = 0; oy < p->oh; oy++) { \
            span v = window(p, 0, p->h, oy); \
            for (int64_t ox = 0; ox < p->ow; ox++) { \
                span u = window(p, 1, p->w, ox); \
                double sum = 0; \
                for (int64_t y = v.begin; y < v.end; y++) \
                    for (int64_t c = u.begin; c < u.end; c++) \
                        sum += x[y * p->w + c]; \
                r[oy * p->ow + ox] = (T)(sum / (double)(u.count * v.count)); \
            } \
        } \
    } \
    static void avg_backward_##sfx(const pool *p, const void *in, void *out, int64_t *places) { \
        const T *g = in; \
        T *r = out; \
        memset(r, 0, sizeof(T) * (size_t)(p->h * p->w)); \
        for (int64_t oy = 0; oy < p->oh; oy++) { \
            span v = window(p, 0, p->h, oy); \
            for (int64_t ox = 0; ox < p->ow; ox++) { \
                span u = window(p, 1, p->w, ox); \
                T share = g[oy * p->ow + ox] / (T)(u.count * v.count); \
                for (int64_t y = v.begin; y < v.end; y++) \
                    for (int64_t c = u.begin; c < u.end; c++) \
                        r[y * p->w + c] += share; \
            } \
        } \
    }
AVG_POOL(f32, float)
AVG_POOL(f64, double)

/* Where many windows meet in an element, a running sum in f32 would lose too much of them. */
static void avg_meet_f32(const pool *p, const void *in, void *out, int64_t *places) {
    const float *g = in;
    float *r = out;
    for (int64_t y = 0; y < p->h; y++)
        for (int64_t c = 0; c < p->w; c++) {
            double sum = 0;
            for (int64_t oy = first_window(p, 0, y); oy < p->oh; oy++) {
                span v = window(p, 0, p->h, oy);
                if (v.begin > y)
                    break;
                for (int64_t ox = first_window(p, 1, c); ox < p->ow; ox++) {
                    span u = window(p, 1, p->w, ox);
                    if (u.begin > c)
                        break;
                    sum += (double)g[oy * p->ow + ox] / (double)(u.count * v.count);
                }
            }
            r[y * p->w + c] = (float)sum;
        }
}

/* ---- one call ---------------------------------------------------------------------------- */

typedef struct planes {
    pool pool;
    plane run;
    int64_t n_in, n_out; /* elements of a plane on either side */
} planes;

static void run_planes(void *context, int64_t begin, int64_t end, int slot) {
    const planes *t = context;
    const pool *p = &t->pool;
    int64_t item = tnc_dtype_bytes(p->dtype);
    bool half = tnc_is_half(p->dtype);
    float *in = half ? p->scratch + slot * (t->n_in + t->n_out) : NULL;
    float *out = half ? in + t->n_in : NULL;
    for (int64_t i = begin; i < end; i++) {
        const char *src = p->in + i * t->n_in * item;
        char *dst = p->out + i * t->n_out * item;
        int64_t *places = p->places ? p->places + i * p->oh * p->ow : NULL;
        if (!half) {
            t->run(p, src, dst, places);
            continue;
        }
        tnc_halves_to_floats(p->dtype, in, src, t->n_in);
        t->run(p, in, out, places);
        tnc_floats_to_halves(p->dtype, dst, out, t->n_out);
    }
}

static void pair(int64_t *out, const tn_cell *cell) {
    out[0] = cell->v.ints[0];
    out[1] = cell->v.ints[1];
}

static tn_status run(const tn_call *call, planes *t, const tn_tensor_view *in, bool backward) {
    const tn_tensor_view *large = backward ? call->outs[0] : in,
                         *small = backward ? in : call->outs[0];
    pool *p = &t->pool;
    p->in = tnc_data(in);
    p->out = tnc_data(call->outs[0]);
    p->dtype = in->dtype;
    p->h = large->sizes[2];
    p->w = large->sizes[3];
    p->oh = small->sizes[2];
    p->ow = small->sizes[3];
    p->scratch = (float *)(uintptr_t)(call->workspace + call->workspace_offset);
    int64_t n_planes = in->sizes[0] * in->sizes[1];
    t->n_in = in->numel / n_planes;
    t->n_out = call->outs[0]->numel / n_planes;
    int64_t slots = TNC_MAX_SLOTS, grain = TNC_GRAIN / 2 / (t->n_in + t->n_out);
    if (tnc_is_half(p->dtype))
        slots = (int64_t)call->workspace_bytes / (4 * (t->n_in + t->n_out));
    tnc_parallel(call, n_planes, tnc_max(1, grain), (int)slots, run_planes, t);
    return TN_OK;
}

static tn_status prepare(const tn_call *call, tn_plan *out) {
    const tn_tensor_view *in = tnc_view(call, 0);
    int64_t n_planes = in->sizes[0] * in->sizes[1];
    out->workspace_bytes = 0;
    if (tnc_is_half(in->dtype))
        out->workspace_bytes = (uint64_t)((in->numel + call->outs[0]->numel) / n_planes * 4 *
                                          tnc_min(n_planes, tnc_get_threads(call)));
    return TN_OK;
}

static tn_status max_pool2d(const tn_call *call) {
    static const plane any[TN_DTYPE_COUNT] = {
        max_any_f32, max_any_f64, max_any_f32, max_any_f32, max_any_i8,
        max_any_i16, max_any_i32, max_any_i64, max_any_u8,
    };
    static const plane two[TN_DTYPE_COUNT] = {
        max_2x2_f32, max_2x2_f64, max_2x2_f32, max_2x2_f32, max_2x2_i8,
        max_2x2_i16, max_2x2_i32, max_2x2_i64, max_2x2_u8,
    };
    const tn_tensor_view *in = tnc_view(call, TN_ARG_max_pool2d_self);
    planes t = {.pool.places = tnc_data(call->outs[1])};
    pool *p = &t.pool;
    pair(p->kernel, &call->args[TN_ARG_max_pool2d_kernel_size]);
    pair(p->stride, &call->args[TN_ARG_max_pool2d_stride]);
    pair(p->padding, &call->args[TN_ARG_max_pool2d_padding]);
    pair(p->dilation, &call->args[TN_ARG_max_pool2d_dilation]);
    bool tiles = true;
    for (int d = 0; d < 2; d++)
        tiles = tiles && p->kernel[d] == 2 && p->stride[d] == 2 && p->padding[d] == 0 &&
                p->dilation[d] == 1 && 2 * call->outs[0]->sizes[2 + d] <= in->sizes[2 + d];
    t.run = (tiles && in->sizes[3] < INT32_MAX ? two : any)[in->dtype];
    return run(call, &t, in, false);
}

static tn_status max_pool2d_backward(const tn_call *call) {
    const tn_tensor_view *grad = tnc_view(call, TN_ARG_max_pool2d_backward_grad_output);
    const tn_tensor_view *indices = tnc_view(call, TN_ARG_max_pool2d_backward_indices);
    planes t = {.pool.places = tnc_data(indices)};
    t.run = grad->dtype == TN_F64 ? max_backward_f64 : max_backward_f32;
    int64_t bad, n = call->outs[0]->sizes[2] * call->outs[0]->sizes[3];
    if (tnc_find_bad_index(call, indices, n, &bad))
        return tnc_fail(call->device->self, TN_ERR_INDEX_OUT_OF_RANGE,
                        "max_pool2d_backward: index %lld is out of range for planes of %lld "
                        "elements",
                        (long long)bad, (long long)n);
    return run(call, &t, grad, true);
}

static tn_status avg_pool2d(const tn_call *call) {
    const tn_tensor_view *in = tnc_view(call, TN_ARG_avg_pool2d_self);
    planes t = {.run = in->dtype == TN_F64 ? avg_f64 : avg_f32};
    pair(t.pool.kernel, &call->args[TN_ARG_avg_pool2d_kernel_size]);
    pair(t.pool.stride, &call->args[TN_ARG_avg_pool2d_stride]);
    pair(t.pool.padding, &call->args[TN_ARG_avg_pool2d_padding]);
    t.pool.count_include_pad = call->args[TN_ARG_avg_pool2d_count_include_pad].v.boolean;
    return run(call, &t, in, false);
}

static tn_status avg_pool2d_backward(const tn_call *call) {
    const tn_tensor_view *grad = tnc_view(call, TN_ARG_avg_pool2d_backward_grad_output);
    planes t = {.run = grad->dtype == TN_F64 ? avg_backward_f64 : avg_backward_f32};
    pair(t.pool.kernel, &call->args[TN_ARG_avg_pool2d_backward_kernel_size]);
    pair(t.pool.stride, &call->args[TN_ARG_avg_pool2d_backward_stride]);
    pair(t.pool.padding, &call->args[TN_ARG_avg_pool2d_backward_padding]);
    t.pool.count_include_pad = call->args[TN_ARG_avg_pool2d_backward_count_include_pad].v.boolean;
    if (grad->dtype != TN_F64 && windows_of_one(&t.pool) > RUNNING)
        t.run = avg_meet_f32;
    return run(call, &t, grad, true);
}

static const tn_kernel records[] = {
    TNC_KERNEL(max_pool2d, TN_DTYPES_NUMBER, TNC_FLAGS_DENSE, max_pool2d, .prepare = prepare),
    TNC_KERNEL(max_pool2d_backward, TN_DTYPES_FLOAT, TNC_FLAGS_DENSE, max_pool2d_backward,
               .prepare = prepare),
    TNC_KERNEL(avg_pool2d, TN_DTYPES_FLOAT, TNC_FLAGS_DENSE, avg_pool2d, .prepare = prepare),
    TNC_KERNEL(avg_pool2d_backward, TN_DTYPES_FLOAT, TNC_FLAGS_DENSE, avg_pool2d_backward,
               .prepare = prepare),
};
TNC_PUBLISH(pool, records);
