/* convolution and its derivatives, as matrix products over columns ("im2col": K. Chellapilla et
 * al., 2006): column p of the matrix holds the inputs that output pixel p sees.
 *
 *     output [O, P] = weight [O, K] columns [K, P]             K = C KH KW, P = OH OW
 *
 * Work is cut into blocks of pixels, channels or images that depend on the shape alone; each block
 * is a product on one thread in scratch of its own.
 */
#include "convolution.h"
#include "matmul.h"

enum {
    COLUMNS_BYTES = 1 << 19, /* of a block of columns: half of a usual second-level cache */
    MAX_PARTS = 16           /* partial sums of the weight's gradient */
};

/* ---- columns -------------------------------------------------------------------------------- */

/* Output positions [*begin, *end) along dimension d at which tap k lies on the input. */
static void on_input(const conv *v, int d, int64_t k, int64_t *begin, int64_t *end) {
    int64_t shift = k * v->dilation[d] - v->padding[d], stride = v->stride[d];
    *begin = shift >= 0 ? 0 : tnc_min(v->out[d], tnc_ceil_div(-shift, stride));
    int64_t room = v->size[d] - shift;
    *end = room <= 0 ? 0 : tnc_min(v->out[d], tnc_ceil_div(room, stride));
    *end = tnc_max(*begin, *end);
}

/* What one tap sees of output pixels [first, first + n): a run in each row of the output. */
typedef struct runs {
    int64_t first, n;
    int64_t row, bottom;  /* of the output: the next one, and the end */
    int64_t left, right;  /* columns of the output at which the tap lies on the input */
    int64_t shift[2];     /* from output to input */
    int64_t at, x, count; /* the present run: its place in the block, on the input, its length */
} runs;

static runs runs_of(const conv *v, int64_t ky, int64_t kx, int64_t first, int64_t n) {
    runs r = {.first = first, .n = n};
    r.shift[0] = ky * v->dilation[0] - v->padding[0];
    r.shift[1] = kx * v->dilation[1] - v->padding[1];
    on_input(v, 0, ky, &r.row, &r.bottom);
    on_input(v, 1, kx, &r.left, &r.right);
    r.row = tnc_max(r.row, first / v->out[1]);
    r.bottom = tnc_min(r.bottom, tnc_ceil_div(first + n, v->out[1]));
    return r;
}

/* Goes on to the next run that is not empty; false when there is none. */
static bool next_run(const conv *v, runs *r) {
    for (; r->row < r->bottom; r->row++) {
        int64_t start = r->row * v->out[1] - r->first; /* of the row, in the block */
        int64_t left = tnc_max(r->left, -start), right = tnc_min(r->right, r->n - start);
        if (left >= right)
            continue;
        r->at = start + left;
        r->x =
            (r->row * v->stride[0] + r->shift[0]) * v->size[1] + left * v->stride[1] + r->shift[1];
        r->count = right - left;
        r->row++;
        return true;
    }
    return false;
}

/* columns [channels * taps, n] of pixels [first, first + n), from planes of the input's dtype */
static void gather_columns(const conv *v, const char *planes, int64_t channels, int64_t first,
                           int64_t n, char *columns) {
    for (int64_t c = 0; c < channels; c++)
        for (int64_t ky = 0; ky < v->kernel[0]; ky++)
            for (int64_t kx = 0; kx < v->kernel[1]; kx++) {
                const char *plane = planes + c * v->size[0] * v->size[1] * v->item;
                memset(columns, 0, (size_t)(n * v->cell));
                for (runs r = runs_of(v, ky, kx, first, n); next_run(v, &r);)
                    tnc_gather_run(columns + r.at * v->cell, plane + r.x * v->item,
                                   v->stride[1] * v->item, r.count, v->dtype);
                columns += n * v->cell;
            }
}

/* The reverse: adds columns [channels * taps, P] to planes of the computing type. */
#define SCATTER_COLUMNS(sfx, T) \
    static void scatter_columns_##sfx(const conv *v, T *planes, int64_t channels, \
                                      const T *columns) { \
        for (int64_t c = 0; c < channels; c++) \
            for (int64_t ky = 0; ky < v->kernel[0]; ky++) \
                for (int64_t kx = 0; kx < v->kernel[1]; kx++) { \
                    T *plane = planes + c * v->size[0] * v->size[1]; \
                    for (runs r = runs_of(v, ky, kx, 0, conv_pixels(v)); next_run(v, &r);) { \
                        T *to = plane + r.x; \
                        const T *from = columns + r.at; \
                        if (v->stride[1] == 1) \
                            for (int64_t i = 0; i < r.count; i++) \
                                to[i] += from[i]; \
                        else \
                            for (int64_t i = 0; i < r.count; i++) \
                                to[i * v->stride[1]] += from[i]; \
                    } \
                    columns += conv_pixels(v); \
                } \
    }
SCATTER_COLUMNS(f32, float)
SCATTER_COLUMNS(f64, double)

/* Elements as the computing type: themselves, or converted into `to`. */
static const char *computable(const conv *v, const char *x, int64_t n, char *to) {
    return tnc_load_run(to, x, v->item, n, v->dtype);
}

/* ---- a task's share ------------------------------------------------------------------------- */

typedef struct job {
    conv v;
    int64_t block;  /* pixels (forward, weight) or channels (input) of a task */
    int64_t blocks; /* of an image and group */
    int64_t parts;  /* weight: groups of images summed apart */
    int64_t slot_bytes;
    char *shared; /* weight as the computing type, or the partial sums */
    char *slots;  /* [slots] of slot_bytes */
    int64_t shared_bytes;
    /* Offsets in a slot: columns, then copies of halves. */
    int64_t second, third;
} job;

static void convert_range(void *context, int64_t begin, int64_t end, int slot) {
    job *j = context;
    (void)slot;
    tnc_gather_run(j->shared + begin * j->v.cell, j->v.w + begin * j->v.item, j->v.item,
                   end - begin, j->v.dtype);
}

/* The weight as the computing type. */
static const char *prepare_weight(job *j) {
    int64_t n = j->v.o * (j->v.c / j->v.groups) * conv_taps(&j->v);
    if (!tnc_is_half(j->v.dtype))
        return j->v.w;
    tnc_parallel(n, TNC_GRAIN, TNC_MAX_SLOTS, convert_range, j);
    return j->shared;
}

/* ---- convolution ---------------------------------------------------------------------------- */

/* Tasks: image, group, block of pixels. */
static void forward_tasks(void *context, int64_t begin, int64_t end, int slot) {
    const job *j = context;
    const conv *v = &j->v;
    int64_t pixels = conv_pixels(v), channels = v->c / v->groups, outs = v->o / v->groups;
    int64_t k = channels * conv_taps(v);
    char *columns = j->slots + slot * j->slot_bytes, *staged = columns + j->second;
    int entered = tnc_blas_enter();
    for (int64_t t = begin; t < end; t++) {
        int64_t first = t % j->blocks * j->block, n = tnc_min(j->block, pixels - first);
        int64_t g = t / j->blocks % v->groups, image = t / j->blocks / v->groups;
        const char *x = v->x + (image * v->c + g * channels) * v->size[0] * v->size[1] * v->item;
        char *y = v->result + ((image * v->o + g * outs) * pixels + first) * v->item;
        bool direct = !tnc_is_half(v->dtype);
        char *out = direct ? y : staged;
        int64_t row = direct ? pixels : n;
        gather_columns(v, x, channels, first, n, columns);
        if (v->bias)
            for (int64_t o = 0; o < outs; o++)
                tnc_gather_run(out + o * row * v->cell, v->bias + (g * outs + o) * v->item, 0, n,
                               v->dtype);
        tnc_gemm(v->type, false, false, outs, n, k, 1, v->w + g * outs * k * v->cell, k, columns, n,
                 v->bias ? 1 : 0, out, row);
        if (!direct)
            for (int64_t o = 0; o < outs; o++)
                tnc_scatter_run(y + o * pixels * v->item, v->item, staged + o * n * v->cell, n,
                                v->dtype);
    }
    tnc_blas_leave(entered);
}

/* ---- convolution_backward_input ------------------------------------------------------------- */

/* Tasks: image, group, block of channels. Gradients of the columns [channels taps, P] = weight^T
 * gradient, added back to where the columns came from. */
static void input_tasks(void *context, int64_t begin, int64_t end, int slot) {
    const job *j = context;
    const conv *v = &j->v;
    int64_t pixels = conv_pixels(v), channels = v->c / v->groups, outs = v->o / v->groups;
    int64_t taps = conv_taps(v), k = channels * taps, plane = v->size[0] * v->size[1];
    char *columns = j->slots + slot * j->slot_bytes;
    char *gradient = columns + j->second, *staged = columns + j->third;
    int entered = tnc_blas_enter();
    for (int64_t t = begin; t < end; t++) {
        int64_t first = t % j->blocks * j->block, n = tnc_min(j->block, channels - first);
        int64_t g = t / j->blocks % v->groups, image = t / j->blocks / v->groups;
        const char *y = v->y + (image * v->o + g * outs) * pixels * v->item;
        char *x = v->result + (image * v->c + g * channels + first) * plane * v->item;
        bool direct = !tnc_is_half(v->dtype);
        char *out = direct ? x : staged;
        y = computable(v, y, outs * pixels, gradient);
        tnc_gemm(v->type, true, false, n * taps, pixels, outs, 1,
                 v->w + (g * outs * k + first * taps) * v->cell, k, y, pixels, 0, columns, pixels);
        memset(out, 0, (size_t)(n * plane * v->cell));
        if (v->type == TN_F32)
            scatter_columns_f32(v, (float *)out, n, (const float *)columns);
        else
            scatter_columns_f64(v, (double *)out, n, (const double *)columns);
        if (!direct)
            tnc_scatter_run(x, v->item, staged, n * plane, v->dtype);
    }
    tnc_blas_leave(entered);
}

/* ---- convolution_backward_weight ------------------------------------------------------------ */

/* Tasks: part of the images, group. Its own sum of gradient [O, P] columns^T [P, K]. */
static void weight_tasks(void *context, int64_t begin, int64_t end, int slot) {
    const job *j = context;
    const conv *v = &j->v;
    int64_t pixels = conv_pixels(v), channels = v->c / v->groups, outs = v->o / v->groups;
    int64_t k = channels * conv_taps(v);
    char *columns = j->slots + slot * j->slot_bytes, *gradient = columns + j->second;
    int entered = tnc_blas_enter();
    for (int64_t t = begin; t < end; t++) {
        int64_t part = t % j->parts, g = t / j->parts;
        int64_t image = v->n * part / j->parts, last = v->n * (part + 1) / j->parts;
        char *sum = j->shared + (part * v->o + g * outs) * k * v->cell;
        for (double beta = 0; image < last; image++) {
            const char *x =
                v->x + (image * v->c + g * channels) * v->size[0] * v->size[1] * v->item;
            const char *y = v->y + (image * v->o + g * outs) * pixels * v->item;
            y = computable(v, y, outs * pixels, gradient);
            for (int64_t first = 0; first < pixels; first += j->block, beta = 1) {
                int64_t n = tnc_min(j->block, pixels - first);
                gather_columns(v, x, channels, first, n, columns);
                tnc_gemm(v->type, false, true, outs, k, n, 1, y + first * v->cell, pixels, columns,
                         n, beta, sum, k);
            }
        }
    }
    tnc_blas_leave(entered);
}

/* Adds the parts in order and stores them as the tensor's dtype. */
static void weight_sum(void *context, int64_t begin, int64_t end, int slot) {
    const job *j = context;
    const conv *v = &j->v;
    (void)slot;
    int64_t total = v->o * (v->c / v->groups) * conv_taps(v), n;
    _Alignas(64) double sum[TNC_BLOCK];
    _Alignas(64) float narrow[TNC_BLOCK];
    for (int64_t i = begin; i < end; i += n) {
        n = tnc_min(TNC_BLOCK, end - i);
        memset(sum, 0, sizeof sum);
        for (int64_t part = 0; part < j->parts; part++) {
            const char *from = j->shared + (part * total + i) * v->cell;
            if (v->type == TN_F32)
                for (int64_t e = 0; e < n; e++)
                    sum[e] += ((const float *)from)[e];
            else
                for (int64_t e = 0; e < n; e++)
                    sum[e] += ((const double *)from)[e];
        }
        for (int64_t e = 0; e < n; e++)
            narrow[e] = (float)sum[e];
        tnc_scatter_run(v->result + i * v->item, v->item,
                        v->type == TN_F32 ? (const void *)narrow : sum, n, v->dtype);
    }
}

/* ---- calls ---------------------------------------------------------------------------------- */

static void pair(int64_t *out, const tn_cell *cell) {
    out[0] = cell->v.ints[0];
    out[1] = cell->v.ints[1];
}

/* x, w, y: those of the three that have the shapes; attributes start at argument `first`. */
static conv describe(const tn_call *call, const tn_tensor_view *x, const tn_tensor_view *w,
                     const tn_tensor_view *y, int first) {
    conv v = {
        .n = x->sizes[0],
        .c = x->sizes[1],
        .o = w->sizes[0],
        .groups = call->args[first + 3].v.i64,
        .size = {x->sizes[2], x->sizes[3]},
        .out = {y->sizes[2], y->sizes[3]},
        .kernel = {w->sizes[2], w->sizes[3]},
        .dtype = x->dtype,
        .type = tnc_is_half(x->dtype) ? TN_F32 : x->dtype,
        .item = tnc_dtype_bytes(x->dtype),
        .cell = tnc_cell_bytes(x->dtype),
        .x = tnc_data(x),
        .w = tnc_data(w),
        .y = tnc_data(y),
        .result = tnc_data(call->outs[0]),
    };
    pair(v.stride, &call->args[first]);
    pair(v.padding, &call->args[first + 1]);
    pair(v.dilation, &call->args[first + 2]);
    return v;
}

enum { FORWARD, INPUT, WEIGHT };

static void plan(const tn_call *call, int what, job *j) {
    const tn_tensor_view *a = tnc_view(call, 0), *b = tnc_view(call, 1), *out = call->outs[0];
    if (what == FORWARD)
        j->v = describe(call, a, b, out, TN_ARG_convolution_stride);
    else if (what == INPUT)
        j->v = describe(call, out, b, a, TN_ARG_convolution_backward_input_stride);
    else
        j->v = describe(call, b, out, a, TN_ARG_convolution_backward_weight_stride);
    conv *v = &j->v;
    bool half = tnc_is_half(v->dtype);
    int64_t channels = v->c / v->groups, outs = v->o / v->groups, taps = conv_taps(v);
    int64_t pixels = conv_pixels(v), plane = v->size[0] * v->size[1], k = channels * taps;
    int64_t weights = v->o * k * v->cell;
    if (what == INPUT) {
        j->block = tnc_min(channels, tnc_max(1, COLUMNS_BYTES / (taps * pixels * v->cell)));
        j->blocks = tnc_ceil_div(channels, j->block);
        j->second = conv_aligned(j->block * taps * pixels * v->cell);
        j->third = j->second + (half ? conv_aligned(outs * pixels * v->cell) : 0);
        j->slot_bytes = j->third + (half ? conv_aligned(j->block * plane * v->cell) : 0);
        j->shared_bytes = half ? conv_aligned(weights) : 0;
        return;
    }
    j->block = tnc_min(pixels, tnc_max(64, COLUMNS_BYTES / (k * v->cell)));
    j->blocks = tnc_ceil_div(pixels, j->block);
    j->second = j->third = conv_aligned(k * j->block * v->cell);
    j->slot_bytes = j->second;
    if (half)
        j->slot_bytes += conv_aligned(outs * (what == FORWARD ? j->block : pixels) * v->cell);
    j->parts = tnc_max(1, tnc_min(tnc_min(v->n, MAX_PARTS), (1 << 26) / weights));
    j->shared_bytes = what == WEIGHT ? conv_aligned(j->parts * weights)
                      : half         ? conv_aligned(weights)
                                     : 0;
}

static tn_status workspace_of(const tn_call *call, int what, uint64_t *out_bytes) {
    job j;
    plan(call, what, &j);
    *out_bytes = (uint64_t)(j.shared_bytes + j.slot_bytes * tnc_get_threads());
    return TN_OK;
}

static tn_status run(const tn_call *call, int what, tnc_body tasks) {
    job j;
    plan(call, what, &j);
    j.shared = (char *)(uintptr_t)(call->workspace + call->workspace_offset);
    j.slots = j.shared + j.shared_bytes;
    int slots = (int)(((int64_t)call->workspace_bytes - j.shared_bytes) / j.slot_bytes);
    if (what == FORWARD) {
        const tn_tensor_view *bias = tnc_view(call, TN_ARG_convolution_bias);
        j.v.bias = bias ? tnc_data(bias) : NULL;
    }
    if (what == WEIGHT) {
        tnc_parallel(j.parts * j.v.groups, 1, slots, tasks, &j);
        tnc_parallel(call->outs[0]->numel, TNC_GRAIN, TNC_MAX_SLOTS, weight_sum, &j);
        return TN_OK;
    }
    j.v.w = prepare_weight(&j);
    tnc_parallel(j.v.n * j.v.groups * j.blocks, 1, slots, tasks, &j);
    return TN_OK;
}

#define KERNEL(name, what, tasks) \
    static tn_status name(const tn_call *call) { \
        return run(call, what, tasks); \
    } \
    static tn_status name##_workspace(const tn_call *call, uint64_t *out_bytes) { \
        return workspace_of(call, what, out_bytes); \
    }
KERNEL(convolution, FORWARD, forward_tasks)
KERNEL(convolution_backward_input, INPUT, input_tasks)
KERNEL(convolution_backward_weight, WEIGHT, weight_tasks)

#define RECORD(name) \
    TNC_KERNEL(name, TN_DTYPES_FLOAT, TNC_FLAGS_DENSE, name, .workspace = name##_workspace)

static const tn_kernel records[] = {
    RECORD(convolution),
    RECORD(convolution_backward_input),
    RECORD(convolution_backward_weight),
};
TNC_PUBLISH(convolution, records);
