/* convolution and its derivatives, all three as indirect matrix products (see indirect.c).
 *
 *     output         [P, O] = input    [P, K]  weight   [K, O]     K = C KH KW, P = OH OW
 *     input gradient [P, C] = gradient [P, K'] weight   [K', C]    K' = O KH KW, P = H W
 *     weight gradient[K, O] = input    [K, P]  gradient [P, O]
 *
 * The left factor is read in place, or from a copy of an image with zeros round it. With a stride
 * the input's gradient falls into phases: the pixels (y, x) of one remainder by the stride see the
 * same taps of the kernel, and those alone.
 */
#include "plugins/cpu/convolution.h"

#include <math.h>

enum {
    CHUNK = 96,    /* pixels of a product: its result stays in the second-level cache */
    DEPTH = 64,    /* of one product: rows of B that stay in the first-level cache */
    TASKS = 16,    /* images are cut into blocks of rows until there are so many tasks */
    MAX_PARTS = 16 /* partial sums of the weight's gradient */
};

/* ---- what is read ------------------------------------------------------------------------ */

/* The tensor that the left factor lies in: planes [channels of a group][size], read as if `before`
 * and `after` zeros stood round each. */
typedef struct source {
    const char *data;
    int64_t channels;
    int64_t size[2], before[2], after[2];
    int64_t step[2]; /* from one pixel of the result to the next */
    int64_t pitch;   /* elements from row to row */
    int64_t plane;   /* elements from channel to channel */
    int64_t rows;    /* that a block sees */
    bool staged;     /* copied first */
} source;

typedef struct job {
    conv v;
    source from;
    int64_t outs;    /* channels of the result in a group */
    int64_t width;   /* the same in whole vectors */
    int64_t depth;   /* rows of B: channels of the source times taps */
    int64_t grid[2]; /* the result; phases share it out */
    int64_t block;   /* rows of a phase that a task makes */
    int64_t blocks, phases[2];
    int64_t parts; /* weight: groups of images summed apart */

    /* in the workspace */
    int64_t *steps;   /* [depth] where a row of A continues, in elements */
    int64_t *weights; /* [depth] where that weight lies in a group's */
    char *packed;     /* [groups][depth][width] the weight; or [parts][groups][...] sums */
    char *slots;      /* [slots] of slot_bytes: staged source, product, transposed product */
    int64_t packed_bytes, staged_bytes, product_bytes, slot_bytes, shared_bytes;
} job;

static int64_t aligned(int64_t bytes) {
    return (bytes + 63) & ~(int64_t)63;
}

static int64_t taps_of(const conv *v) {
    return v->kernel[0] * v->kernel[1];
}

/* Rows [first, first + from.rows) of an image's planes, where the product can read them. */
static const char *stage(const job *j, const char *planes, int64_t first, char *room) {
    const source *s = &j->from;
    if (!s->staged)
        return planes + first * s->pitch * j->v.item;
    int64_t cell = j->v.cell, row_bytes = s->pitch * cell;
    memset(room, 0, (size_t)(s->channels * s->plane * cell));
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t r = 0; r < s->rows; r++) {
            int64_t y = first + r - s->before[0];
            if (y >= 0 && y < s->size[0])
                tnc_gather_run(room + c * s->plane * cell + r * row_bytes + s->before[1] * cell,
                               planes + (c * s->size[0] + y) * s->size[1] * j->v.item, j->v.item,
                               s->size[1], j->v.dtype);
        }
    return room;
}

/* Offsets of n pixels from number `first` on, in a grid of `columns`: i step0 + j step1. */
static void pixel_offsets(int64_t first, int64_t n, int64_t columns, int64_t step0, int64_t step1,
                          int64_t *out) {
    int64_t i = first / columns, j = first % columns;
    for (int64_t p = 0; p < n; p++) {
        out[p] = i * step0 + j * step1;
        if (++j == columns) {
            j = 0;
            i++;
        }
    }
}

/* ---- phases ------------------------------------------------------------------------------ */

/* The pixels first + stride (i, j) of the result, and the taps they see. Without a stride, and in
 * the forward direction, there is one. */
typedef struct phase {
    int64_t first[2], grid[2];
    int64_t depth; /* rows of B */
    int64_t start; /* its first */
} phase;

/* Does phase r along dimension d see tap k? Then *offset is where, in rows or columns from the
 * pixel's own. */
static bool sees(const job *j, int d, int64_t r, int64_t k, int64_t *offset) {
    const conv *v = &j->v;
    if (v->x) { /* forward */
        *offset = k * v->dilation[d];
        return true;
    }
    int64_t at = r + v->padding[d] - k * v->dilation[d];
    *offset = at / v->stride[d] + j->from.before[d];
    return at % v->stride[d] == 0;
}

static int64_t count_taps(const job *j, int d, int64_t r) {
    int64_t n = 0, offset;
    for (int64_t k = 0; k < j->v.kernel[d]; k++)
        n += sees(j, d, r, k, &offset);
    return n;
}

/* Walks the phases: start with {.start = 0} and index 0. */
static phase phase_at(const job *j, int64_t index, int64_t start) {
    phase p = {.first = {index / j->phases[1], index % j->phases[1]}, .start = start};
    for (int d = 0; d < 2; d++)
        p.grid[d] = tnc_ceil_div(j->grid[d] - p.first[d], j->phases[d]);
    p.depth = j->from.channels * count_taps(j, 0, p.first[0]) * count_taps(j, 1, p.first[1]);
    return p;
}

/* Fills steps and weights, phase by phase. A tap that no phase sees, where the stride is longer
 * than the input, has no row: depth is what there is then. */
static void find_steps(job *j) {
    const conv *v = &j->v;
    int64_t n = 0, dy, dx;
    /* the group's weight is [O, C, taps]: the source's channels are C forward, O for the input */
    int64_t channel = v->x ? taps_of(v) : v->c / v->groups * taps_of(v);
    for (int64_t index = 0; index < j->phases[0] * j->phases[1]; index++) {
        phase p = phase_at(j, index, n);
        for (int64_t c = 0; c < j->from.channels; c++)
            for (int64_t ky = 0; ky < v->kernel[0]; ky++)
                for (int64_t kx = 0; kx < v->kernel[1]; kx++)
                    if (sees(j, 0, p.first[0], ky, &dy) && sees(j, 1, p.first[1], kx, &dx)) {
                        j->steps[n] = c * j->from.plane + dy * j->from.pitch + dx;
                        j->weights[n++] = c * channel + ky * v->kernel[1] + kx;
                    }
    }
    j->depth = n;
}

/* Rows [begin, end) of the packed weight of all groups. */
static void pack_weight(void *context, int64_t begin, int64_t end, int slot) {
    const job *j = context;
    const conv *v = &j->v;
    int64_t group = v->o / v->groups * (v->c / v->groups) * taps_of(v);
    int64_t out = v->x ? v->c / v->groups * taps_of(v) : taps_of(v);
    (void)slot;
    for (int64_t row = begin; row < end; row++) {
        char *to = j->packed + row * j->width * v->cell;
        int64_t from = row / j->depth * group + j->weights[row % j->depth];
        tnc_gather_run(to, v->w + from * v->item, out * v->item, j->outs, v->dtype);
        memset(to + j->outs * v->cell, 0, (size_t)((j->width - j->outs) * v->cell));
    }
}

/* ---- convolution, convolution_backward_input --------------------------------------------- */

/* Starts `n` rows of a product: with the bias, or zeros. */
static void start_product(const job *j, int64_t g, int64_t n, char *product) {
    const conv *v = &j->v;
    int64_t row = j->width * v->cell;
    memset(product, 0, (size_t)row);
    if (v->bias)
        tnc_gather_run(product, v->bias + g * j->outs * v->item, v->item, j->outs, v->dtype);
    for (int64_t i = 1; i < n; i++)
        memcpy(product + i * row, product, (size_t)row);
}

/* Pixels [first, first + n) of a phase to the planes of the result. */
static void store_product(const job *j, const phase *p, int64_t first, int64_t n,
                          const char *product, char *turned, char *planes) {
    const conv *v = &j->v;
    int64_t plane = j->grid[0] * j->grid[1];
    bool whole = j->phases[0] * j->phases[1] == 1;
    if (whole && !tnc_is_half(v->dtype)) {
        tnc_transpose(v->type, planes + first * v->item, plane, product, j->width, n, j->outs);
        return;
    }
    tnc_transpose(v->type, turned, CHUNK, product, j->width, n, j->outs);
    for (int64_t o = 0; o < j->outs; o++) {
        const char *values = turned + o * CHUNK * v->cell;
        for (int64_t i = 0, run; i < n; i += run) {
            int64_t y = (first + i) / p->grid[1], x = (first + i) % p->grid[1];
            run = whole ? n : tnc_min(n - i, p->grid[1] - x);
            int64_t to =
                (p->first[0] + y * j->phases[0]) * j->grid[1] + p->first[1] + x * j->phases[1];
            tnc_scatter_run(planes + (o * plane + to) * v->item, j->phases[1] * v->item,
                            values + i * v->cell, run, v->dtype);
        }
    }
}

/* Rows [top, bottom) of a phase from the staged source. */
static void make_rows(const job *j, const phase *p, int64_t g, int64_t top, int64_t bottom,
                      const char *staged, char *product, char *planes) {
    const conv *v = &j->v;
    int64_t rows[CHUNK], begin = top * p->grid[1], end = bottom * p->grid[1];
    for (int64_t first = begin, n; first < end; first += n) {
        n = tnc_min(CHUNK, end - first);
        pixel_offsets(first - begin, n, p->grid[1], j->from.step[0] * j->from.pitch,
                      j->from.step[1], rows);
        start_product(j, g, n, product);
        for (int64_t k = 0; k < p->depth; k += DEPTH)
            tnc_indirect_gemm(
                v->type, &(tnc_indirect){
                             .x = staged,
                             .rows = rows,
                             .steps = j->steps + p->start + k,
                             .b = j->packed + (g * j->depth + p->start + k) * j->width * v->cell,
                             .c = product,
                             .m = n,
                             .n = j->width,
                             .k = tnc_min(DEPTH, p->depth - k),
                             .ldb = j->width,
                             .ldc = j->width,
                         });
        store_product(j, p, first, n, product, product + j->product_bytes, planes);
    }
}

/* Tasks: image, group, block of rows. */
static void image_tasks(void *context, int64_t begin, int64_t end, int slot) {
    const job *j = context;
    const conv *v = &j->v;
    const source *s = &j->from;
    char *room = j->slots + slot * j->slot_bytes, *product = room + j->staged_bytes;
    for (int64_t t = begin; t < end; t++) {
        int64_t top = t % j->blocks * j->block, image_group = t / j->blocks;
        const char *planes =
            s->data + image_group * s->channels * s->size[0] * s->size[1] * v->item;
        char *result = v->result + image_group * j->outs * j->grid[0] * j->grid[1] * v->item;
        const char *staged = stage(j, planes, top * s->step[0], room);
        int64_t start = 0;
        for (int64_t index = 0; index < j->phases[0] * j->phases[1]; index++) {
            phase p = phase_at(j, index, start);
            start += p.depth;
            make_rows(j, &p, image_group % v->groups, top, tnc_min(top + j->block, p.grid[0]),
                      staged, product, result);
        }
    }
}

/* ---- convolution_backward_weight --------------------------------------------------------- */

/* The gradient of pixels [first, first + n) as [n, width]. */
static void turn_gradient(const job *j, const char *planes, int64_t first, int64_t n, char *turned,
                          char *room) {
    const conv *v = &j->v;
    int64_t pixels = v->out[0] * v->out[1];
    const char *from = planes + first * v->item;
    int64_t stride = pixels;
    if (tnc_is_half(v->dtype)) {
        for (int64_t o = 0; o < j->outs; o++)
            tnc_gather_run(room + o * CHUNK * v->cell, from + o * pixels * v->item, v->item, n,
                           v->dtype);
        from = room;
        stride = CHUNK;
    }
    tnc_transpose(v->type, turned, j->width, from, stride, j->outs, n);
    if (j->width > j->outs)
        for (int64_t i = 0; i < n; i++)
            memset(turned + (i * j->width + j->outs) * v->cell, 0,
                   (size_t)((j->width - j->outs) * v->cell));
}

/* Tasks: part of the images, group. Its own sum [depth, width]. */
static void weight_tasks(void *context, int64_t begin, int64_t end, int slot) {
    const job *j = context;
    const conv *v = &j->v;
    const source *s = &j->from;
    int64_t pixels = v->out[0] * v->out[1], steps[CHUNK];
    char *room = j->slots + slot * j->slot_bytes, *turned = room + j->staged_bytes;
    for (int64_t t = begin; t < end; t++) {
        int64_t part = t / v->groups, g = t % v->groups;
        int64_t image = v->n * part / j->parts, last = v->n * (part + 1) / j->parts;
        char *sums = j->packed + t * j->depth * j->width * v->cell;
        memset(sums, 0, (size_t)(j->depth * j->width * v->cell));
        for (; image < last; image++) {
            int64_t at = image * v->groups + g;
            const char *x =
                stage(j, s->data + at * s->channels * s->size[0] * s->size[1] * v->item, 0, room);
            for (int64_t first = 0, n; first < pixels; first += n) {
                n = tnc_min(CHUNK, pixels - first);
                turn_gradient(j, v->y + at * j->outs * pixels * v->item, first, n, turned,
                              turned + j->product_bytes);
                pixel_offsets(first, n, v->out[1], s->step[0] * s->pitch, s->step[1], steps);
                tnc_indirect_gemm(v->type, &(tnc_indirect){
                                               .x = x,
                                               .rows = j->steps,
                                               .steps = steps,
                                               .b = turned,
                                               .c = sums,
                                               .m = j->depth,
                                               .n = j->width,
                                               .k = n,
                                               .ldb = j->width,
                                               .ldc = j->width,
                                           });
            }
        }
    }
}

/* Rows of the sums of all groups: adds the parts in order, stores them as the tensor's dtype. */
static void weight_sum(void *context, int64_t begin, int64_t end, int slot) {
    const job *j = context;
    const conv *v = &j->v;
    int64_t part_bytes = v->groups * j->depth * j->width * v->cell;
    _Alignas(64) double sum[TNC_BLOCK];
    (void)slot;
    for (int64_t row = begin; row < end; row++)
        for (int64_t o = 0; o < j->outs; o += TNC_BLOCK) {
            int64_t n = tnc_min(TNC_BLOCK, j->outs - o);
            for (int64_t part = 0; part < j->parts; part++) {
                const char *from = j->packed + part * part_bytes + (row * j->width + o) * v->cell;
                for (int64_t e = 0; e < n; e++)
                    sum[e] = (part ? sum[e] : 0) + (v->type == TN_F32 ? ((const float *)from)[e]
                                                                      : ((const double *)from)[e]);
            }
            if (v->type == TN_F32)
                for (int64_t e = 0; e < n; e++)
                    ((float *)sum)[e] = (float)sum[e];
            int64_t g = row / j->depth, k = row % j->depth;
            tnc_scatter_run(v->result + ((g * j->outs + o) * j->depth + k) * v->item,
                            j->depth * v->item, sum, n, v->dtype);
        }
}

/* ---- calls ------------------------------------------------------------------------------- */

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
        .w = tnc_data(w),
        .result = tnc_data(call->outs[0]),
    };
    pair(v.stride, &call->args[first]);
    pair(v.padding, &call->args[first + 1]);
    pair(v.dilation, &call->args[first + 2]);
    return v;
}

enum { FORWARD, INPUT, WEIGHT };

/* What the input looks like to its convolution. */
static source input_source(const conv *v) {
    source s = {.data = v->x, .channels = v->c / v->groups};
    for (int d = 0; d < 2; d++) {
        s.size[d] = v->size[d];
        s.step[d] = v->stride[d];
        s.before[d] = v->padding[d];
        int64_t end = (v->out[d] - 1) * v->stride[d] + (v->kernel[d] - 1) * v->dilation[d] + 1;
        s.after[d] = tnc_max(0, end - v->padding[d] - v->size[d]);
    }
    return s;
}

/* What the output's gradient looks like to the convolution that gives the input's. */
static source gradient_source(const conv *v) {
    source s = {.data = v->y, .channels = v->o / v->groups, .step = {1, 1}};
    for (int d = 0; d < 2; d++) {
        s.size[d] = v->out[d];
        int64_t reach = (v->kernel[d] - 1) * v->dilation[d] - v->padding[d];
        s.before[d] = reach > 0 ? reach / v->stride[d] : 0;
        s.after[d] = tnc_max(0, (v->size[d] - 1 + v->padding[d]) / v->stride[d] - (v->out[d] - 1));
    }
    return s;
}

static void plan(const tn_call *call, int what, job *j) {
    const tn_tensor_view *a = tnc_view(call, 0), *b = tnc_view(call, 1), *out = call->outs[0];
    *j = (job){.parts = 1};
    conv *v = &j->v;
    if (what == FORWARD)
        *v = describe(call, a, b, out, TN_ARG_convolution_stride);
    else if (what == INPUT)
        *v = describe(call, out, b, a, TN_ARG_convolution_backward_input_stride);
    else
        *v = describe(call, b, out, a, TN_ARG_convolution_backward_weight_stride);
    if (what == FORWARD)
        v->x = tnc_data(a);
    if (what == WEIGHT)
        v->x = tnc_data(b);
    if (what != FORWARD)
        v->y = tnc_data(a);

    source *s = &j->from;
    *s = what == INPUT ? gradient_source(v) : input_source(v);
    j->outs = (what == INPUT ? v->c : v->o) / v->groups;
    int64_t lanes = tnc_indirect_lanes(v->type);
    j->width = tnc_ceil_div(j->outs, lanes) * lanes;
    j->depth = s->channels * taps_of(v);
    for (int d = 0; d < 2; d++) {
        j->grid[d] = what == INPUT ? v->size[d] : v->out[d];
        j->phases[d] = what == INPUT ? tnc_min(v->stride[d], v->size[d]) : 1;
    }
    int64_t phase_rows = tnc_ceil_div(j->grid[0], j->phases[0]);
    j->blocks =
        what == WEIGHT ? 1 : tnc_min(phase_rows, tnc_ceil_div(TASKS, tnc_max(1, v->n * v->groups)));
    j->block = tnc_ceil_div(phase_rows, j->blocks);
    j->blocks = tnc_ceil_div(phase_rows, j->block);

    int64_t all = s->before[0] + s->size[0] + s->after[0];
    s->pitch = s->before[1] + s->size[1] + s->after[1];
    s->staged = tnc_is_half(v->dtype) || all > s->size[0] || s->pitch > s->size[1];
    /* a block sees its own rows and those its taps reach, all of them when there is one block */
    s->rows = j->blocks == 1
                  ? all
                  : tnc_min(all, j->block * s->step[0] +
                                     (what == INPUT ? all - phase_rows
                                                    : (v->kernel[0] - 1) * v->dilation[0]) +
                                     1);
    s->plane = s->staged ? s->rows * s->pitch : s->size[0] * s->size[1];

    int64_t sums = v->groups * j->depth * j->width * v->cell;
    if (what == WEIGHT)
        j->parts = tnc_max(1, tnc_min(tnc_min(v->n, MAX_PARTS), (1 << 26) / tnc_max(1, sums)));
    j->packed_bytes = aligned(j->parts * sums);
    j->staged_bytes = s->staged ? aligned(s->channels * s->plane * v->cell) : 0;
    j->product_bytes = aligned(CHUNK * j->width * v->cell);
    j->slot_bytes = j->staged_bytes + 2 * j->product_bytes;
    j->shared_bytes = j->packed_bytes + 2 * aligned(j->depth * (int64_t)sizeof(int64_t));
}

/* How many of `tasks` equal ones are worth a thread. */
static int64_t grain_of(const job *j, int64_t tasks) {
    double work = (double)(j->v.n * j->v.groups) * (double)(j->grid[0] * j->grid[1]) *
                  (double)(j->depth * j->width) / (double)(j->phases[0] * j->phases[1]);
    return (int64_t)fmax(1, (double)TNC_GRAIN_MULTIPLICATIONS * (double)tasks / fmax(1, work));
}

static tn_status prepare(const tn_call *call, int what, tn_plan *out) {
    job j;
    out->workspace_bytes = 0;
    if (call->outs[0]->numel == 0)
        return TN_OK;
    plan(call, what, &j);
    out->workspace_bytes = (uint64_t)(j.shared_bytes + j.slot_bytes * tnc_get_threads(call));
    return TN_OK;
}

static tn_status run(const tn_call *call, int what) {
    job j;
    if (call->outs[0]->numel == 0)
        return TN_OK;
    plan(call, what, &j);
    j.packed = (char *)(uintptr_t)(call->workspace + call->workspace_offset);
    j.steps = (int64_t *)(j.packed + j.packed_bytes);
    j.weights = (int64_t *)((char *)j.steps + aligned(j.depth * (int64_t)sizeof *j.steps));
    j.slots = j.packed + j.shared_bytes;
    int slots = (int)(((int64_t)call->workspace_bytes - j.shared_bytes) / j.slot_bytes);
    find_steps(&j);
    int64_t rows = j.v.groups * j.depth;
    if (what == WEIGHT) {
        int64_t tasks = j.parts * j.v.groups;
        tnc_parallel(call, tasks, grain_of(&j, tasks), slots, weight_tasks, &j);
        tnc_parallel(call, rows, tnc_max(1, TNC_GRAIN / (j.parts * j.width)), TNC_MAX_SLOTS,
                     weight_sum, &j);
        return TN_OK;
    }
    if (what == FORWARD) {
        const tn_tensor_view *bias = tnc_view(call, TN_ARG_convolution_bias);
        j.v.bias = bias ? tnc_data(bias) : NULL;
    }
    tnc_parallel(call, rows, tnc_max(1, TNC_GRAIN / j.width), TNC_MAX_SLOTS, pack_weight, &j);
    int64_t tasks = j.v.n * j.v.groups * j.blocks;
    tnc_parallel(call, tasks, grain_of(&j, tasks), slots, image_tasks, &j);
    return TN_OK;
}

#define KERNEL(name, what) \
    static tn_status name(const tn_call *call) { \
        return run(call, what); \
    } \
    static tn_status name##_prepare(const tn_call *call, tn_plan *out) { \
        return prepare(call, what, out); \
    }
KERNEL(convolution, FORWARD)
KERNEL(convolution_backward_input, INPUT)
KERNEL(convolution_backward_weight, WEIGHT)

#define RECORD(name) \
    TNC_KERNEL(name, TN_DTYPES_FLOAT, TNC_FLAGS_DENSE, name, .prepare = name##_prepare)

static const tn_kernel records[] = {
    RECORD(convolution),
    RECORD(convolution_backward_input),
    RECORD(convolution_backward_weight),
};
TNC_PUBLISH(convolution, records);
