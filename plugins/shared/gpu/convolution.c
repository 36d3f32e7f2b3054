/* Convolution and its derivatives as products, groups being their batch.
 *
 *     output          [N OH OW, O] = input    [N OH OW, C KH KW]  weight   [C KH KW, O]
 *     weight gradient [C KH KW, O] = input    [C KH KW, N OH OW]  gradient [N OH OW, O]
 *     input gradient  [N H W, C]   = gradient [N H W, O KH KW]    weight   [O KH KW, C]
 *
 * The left factor is the patches of an image, which are strides; what lies outside of the image is
 * read from a copy with zeros round it. With a stride of the convolution the input's gradient falls
 * into phases: the pixels of one remainder by the stride see the same taps of the kernel, and those
 * alone. */
#include "plugins/shared/gpu/gemm.h"

enum { ROWS = 0, COLUMNS = 1 };

typedef struct geometry {
    int64_t images, channels, outs; /* of all groups */
    int64_t in[2], out[2], kernel[2];
    int64_t stride[2], padding[2], dilation[2], groups;
} geometry;

/* The image that is read: a tensor, or its padded copy. */
typedef struct image {
    gpu_operand at; /* memory, dtype, offset */
    int64_t strides[4];
} image;

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* `v` with zeros before and behind its rows and columns, copied where there are any, or where its
 * dtype is not computed in. */
static image image_of(const tn_call *call, const tn_tensor_view *v, const int64_t before[2],
                      const int64_t after[2], gpu_pad *pad, gpu_bump *bump) {
    tn_dtype type = gpu_computed(v->dtype);
    image i = {.at = {.memory = v->memory, .dtype = type, .offset = gpu_offset(v)}};
    for (int d = 0; d < 4; d++)
        i.strides[d] = v->strides[d];
    if (v->dtype == type && !before[0] && !before[1] && !after[0] && !after[1])
        return i;
    *pad = (gpu_pad){
        .memory = v->memory,
        .dtype = v->dtype,
        .offset = gpu_offset(v),
        .strides = {v->strides[0], v->strides[1], v->strides[2], v->strides[3]},
        .inside = {v->sizes[2], v->sizes[3]},
        .before = {before[0], before[1]},
        .sizes = {v->sizes[0], v->sizes[1], before[0] + v->sizes[2] + after[0],
                  before[1] + v->sizes[3] + after[1]},
    };
    int64_t numel = 1;
    for (int d = 3; d >= 0; d--) {
        i.strides[d] = numel;
        numel *= pad->sizes[d];
    }
    pad->at = gpu_bump_take(bump, (uint64_t)numel * gpu_dtype_sizes[type]);
    i.at.memory = call->workspace;
    i.at.offset = gpu_piece(call, pad->at, type);
    return i;
}

/* An operand of a view: memory, dtype and offset. */
static gpu_operand operand(const tn_tensor_view *v) {
    return (gpu_operand){.memory = v->memory, .dtype = v->dtype, .offset = gpu_offset(v)};
}

static void set(int64_t to[3], int64_t outer, int64_t middle, int64_t inner) {
    to[0] = outer;
    to[1] = middle;
    to[2] = inner;
}

static void pair(int64_t to[2], const tn_cell *cell) {
    to[0] = cell->v.ints[0];
    to[1] = cell->v.ints[1];
}

static geometry geometry_of(const tn_call *call, const int64_t *in, const int64_t *weight,
                            const int64_t *out, int stride) {
    const tn_cell *a = call->args;
    geometry g = {.images = in[0],
                  .channels = in[1],
                  .outs = weight[0],
                  .in = {in[2], in[3]},
                  .out = {out[2], out[3]},
                  .kernel = {weight[2], weight[3]},
                  .groups = a[stride + 3].v.i64};
    pair(g.stride, &a[stride]);
    pair(g.padding, &a[stride + 1]);
    pair(g.dilation, &a[stride + 2]);
    return g;
}

/* Zeros behind the image that the last tap of the last pixel sees. */
static void zeros_behind(const geometry *g, int64_t after[2]) {
    for (int d = 0; d < 2; d++)
        after[d] = larger(0, (g->out[d] - 1) * g->stride[d] + (g->kernel[d] - 1) * g->dilation[d] +
                                 1 - g->padding[d] - g->in[d]);
}

/* ---- forward ----------------------------------------------------------------------------- */

/* The input as all taps see it. */
static image read_input(const tn_call *call, const tn_tensor_view *x, const geometry *g,
                        gpu_gemm_job *j) {
    int64_t after[2];
    zeros_behind(g, after);
    return image_of(call, x, g->padding, after, &j->pad, &j->bump);
}

static void make_forward(const tn_call *call, gpu_gemm_job *j) {
    const tn_tensor_view *x = gpu_arg(call, TN_ARG_convolution_input),
                         *w = gpu_arg(call, TN_ARG_convolution_weight),
                         *bias = gpu_arg(call, TN_ARG_convolution_bias), *out = call->outs[0];
    geometry g = geometry_of(call, x->sizes, w->sizes, out->sizes, TN_ARG_convolution_stride);
    int64_t depth = g.channels / g.groups, width = g.outs / g.groups;
    image read = read_input(call, x, &g, j);
    const int64_t *xs = read.strides;
    gpu_gemm *p = &j->product;
    *p = (gpu_gemm){.n_batch = g.groups,
                    .n = width,
                    .a = read.at,
                    .b = operand(w),
                    .c = operand(out),
                    .alpha = gpu_number_i(out->dtype, 1),
                    .beta = gpu_number_i(out->dtype, 1)};
    set(p->m, g.images, g.out[0], g.out[1]);
    set(p->k, depth, g.kernel[0], g.kernel[1]);
    p->a.batch = depth * xs[1];
    set(p->a.m, xs[0], g.stride[0] * xs[2], g.stride[1] * xs[3]);
    set(p->a.k, xs[1], g.dilation[0] * xs[2], g.dilation[1] * xs[3]);
    p->b.batch = width * w->strides[0];
    set(p->b.k, w->strides[1], w->strides[2], w->strides[3]);
    p->b.n = w->strides[0];
    p->c.batch = width * out->strides[1];
    set(p->c.m, out->strides[0], out->strides[2], out->strides[3]);
    p->c.n = out->strides[1];
    if (bias) {
        p->s = operand(bias);
        p->s.batch = width * bias->strides[0];
        p->s.n = bias->strides[0];
    }
    gpu_gemm_prepare(gpu_device_traits(call->device), p, &j->bump);
}

static void make_weight(const tn_call *call, gpu_gemm_job *j) {
    const tn_tensor_view *grad = gpu_arg(call, TN_ARG_convolution_backward_weight_grad_output),
                         *x = gpu_arg(call, TN_ARG_convolution_backward_weight_input),
                         *out = call->outs[0];
    geometry g = geometry_of(call, x->sizes, out->sizes, grad->sizes,
                             TN_ARG_convolution_backward_weight_stride);
    int64_t depth = g.channels / g.groups, width = g.outs / g.groups;
    image read = read_input(call, x, &g, j);
    const int64_t *xs = read.strides;
    gpu_gemm *p = &j->product;
    *p = (gpu_gemm){.n_batch = g.groups,
                    .n = width,
                    .a = read.at,
                    .b = operand(grad),
                    .c = operand(out),
                    .alpha = gpu_number_i(out->dtype, 1)};
    set(p->m, depth, g.kernel[0], g.kernel[1]);
    set(p->k, g.images, g.out[0], g.out[1]);
    p->a.batch = depth * xs[1];
    set(p->a.m, xs[1], g.dilation[0] * xs[2], g.dilation[1] * xs[3]);
    set(p->a.k, xs[0], g.stride[0] * xs[2], g.stride[1] * xs[3]);
    p->b.batch = width * grad->strides[1];
    set(p->b.k, grad->strides[0], grad->strides[2], grad->strides[3]);
    p->b.n = grad->strides[1];
    p->c.batch = width * out->strides[0];
    set(p->c.m, out->strides[1], out->strides[2], out->strides[3]);
    p->c.n = out->strides[0];
    gpu_gemm_prepare(gpu_device_traits(call->device), p, &j->bump);
}

static const gpu_gemm_maker forward = {make_forward}, weight = {make_weight};

/* ---- the input's gradient ---------------------------------------------------------------- */

/* Along one dimension, the pixels r, r + stride, ...: pixel number q sees, for each t of `taps`,
 * the kernel's tap first + t * step, in the gradient's place q + at - t * back. */
typedef struct phase {
    int64_t pixels, taps, first, step, at, back;
} phase;

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static phase phase_of(const geometry *g, int d, int64_t r) {
    int64_t s = g->stride[d], by = g->dilation[d], both = common_divisor(s, by);
    phase p = {.step = s / both, .back = by / both};
    p.pixels = r < g->in[d] ? gpu_ceil_div(g->in[d] - r, s) : 0;
    while (p.first < p.step && (r + g->padding[d] - p.first * by) % s != 0)
        p.first++;
    if (p.first < p.step && p.first < g->kernel[d]) {
        p.taps = gpu_ceil_div(g->kernel[d] - p.first, p.step);
        p.at = (r + g->padding[d] - p.first * by) / s;
    }
    return p;
}

/* Zeros round the gradient that some pixel sees. */
static void zeros_round(const geometry *g, int64_t before[2], int64_t after[2]) {
    for (int d = 0; d < 2; d++) {
        before[d] = after[d] = 0;
        for (int64_t r = 0; r < smaller(g->stride[d], g->in[d]); r++) {
            phase p = phase_of(g, d, r);
            if (!p.taps)
                continue;
            before[d] = larger(before[d], (p.taps - 1) * p.back - p.at);
            after[d] = larger(after[d], p.pixels + p.at - g->out[d]);
        }
    }
}

typedef struct input_job {
    geometry g;
    const tn_tensor_view *weight, *out;
    int64_t before[2];
    image image;
    gpu_pad pad;
    gpu_bump bump;
} input_job;

static void make_input(const tn_call *call, input_job *j) {
    const tn_tensor_view *grad = gpu_arg(call, TN_ARG_convolution_backward_input_grad_output);
    int64_t after[2];
    *j = (input_job){.weight = gpu_arg(call, TN_ARG_convolution_backward_input_weight),
                     .out = call->outs[0]};
    j->g = geometry_of(call, j->out->sizes, j->weight->sizes, grad->sizes,
                       TN_ARG_convolution_backward_input_stride);
    zeros_round(&j->g, j->before, after);
    j->image = image_of(call, grad, j->before, after, &j->pad, &j->bump);
}

/* The product of phase (r0, r1); `bump` is moved by what it needs. */
static gpu_gemm phase_product(const tn_call *call, const input_job *j, int64_t r0, int64_t r1,
                              gpu_bump *bump) {
    const geometry *g = &j->g;
    const tn_tensor_view *w = j->weight, *out = j->out;
    phase y = phase_of(g, ROWS, r0), x = phase_of(g, COLUMNS, r1);
    int64_t depth = g->outs / g->groups, width = g->channels / g->groups;
    const int64_t *gs = j->image.strides;
    gpu_gemm p = {.n_batch = g->groups,
                  .n = width,
                  .a = j->image.at,
                  .b = operand(w),
                  .c = operand(out),
                  .alpha = gpu_number_i(out->dtype, 1)};
    set(p.m, g->images, y.pixels, x.pixels);
    set(p.k, depth, y.taps, x.taps);
    p.a.offset += (y.at + j->before[0]) * gs[2] + (x.at + j->before[1]) * gs[3];
    p.a.batch = depth * gs[1];
    set(p.a.m, gs[0], gs[2], gs[3]);
    set(p.a.k, gs[1], -y.back * gs[2], -x.back * gs[3]);
    p.b.offset += y.first * w->strides[2] + x.first * w->strides[3];
    p.b.batch = depth * w->strides[0];
    set(p.b.k, w->strides[0], y.step * w->strides[2], x.step * w->strides[3]);
    p.b.n = w->strides[1];
    p.c.offset += r0 * out->strides[2] + r1 * out->strides[3];
    p.c.batch = width * out->strides[1];
    set(p.c.m, out->strides[0], g->stride[0] * out->strides[2], g->stride[1] * out->strides[3]);
    p.c.n = out->strides[1];
    gpu_gemm_prepare(gpu_device_traits(call->device), &p, bump);
    return p;
}

/* Phases run one after the other in the stream and share what they need of the workspace. */
static tn_status run_input(const tn_call *call) {
    input_job j;
    make_input(call, &j);
    tn_status status = gpu_pad_run(call, &j.pad);
    for (int64_t r0 = 0; r0 < smaller(j.g.stride[0], j.g.in[0]); r0++)
        for (int64_t r1 = 0; status == TN_OK && r1 < smaller(j.g.stride[1], j.g.in[1]); r1++) {
            gpu_bump bump = j.bump;
            gpu_gemm p = phase_product(call, &j, r0, r1, &bump);
            status = gpu_gemm_run(call, &p);
        }
    return status;
}

static tn_status input_prepare(const tn_call *call, tn_plan *out) {
    input_job j;
    make_input(call, &j);
    out->workspace_bytes = j.bump;
    for (int64_t r0 = 0; r0 < smaller(j.g.stride[0], j.g.in[0]); r0++)
        for (int64_t r1 = 0; r1 < smaller(j.g.stride[1], j.g.in[1]); r1++) {
            gpu_bump bump = j.bump;
            phase_product(call, &j, r0, r1, &bump);
            if (bump > out->workspace_bytes)
                out->workspace_bytes = bump;
        }
    return TN_OK;
}

#define FLAGS (TN_KERNEL_STRIDED | TN_KERNEL_INDEX64)

static const tn_kernel records[] = {
    GPU_KERNEL(convolution, TN_DTYPES_FLOAT, FLAGS, gpu_gemm_job_run, GPU_GEMM_JOB(forward)),
    GPU_KERNEL(convolution_backward_input, TN_DTYPES_FLOAT, FLAGS, run_input,
               .prepare = input_prepare),
    GPU_KERNEL(convolution_backward_weight, TN_DTYPES_FLOAT, FLAGS, gpu_gemm_job_run,
               GPU_GEMM_JOB(weight)),
};
GPU_PUBLISH(convolution, records);
