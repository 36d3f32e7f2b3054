/* softmax and log_softmax along one dimension, and their derivatives.
 *
 * Lines along the dimension are taken one by one where they are dense; where their neighbours are
 * closer than their elements, up to WIDTH lines at once.
 */
#include "plugins/cpu/iterate.h"
#include "plugins/cpu/vmath.h"

enum {
    LANES = 32,
    KEPT =
        2048, /* exponentials kept between the passes over a line; longer ones compute them again */
    WIDTH = 128
};

/* A tensor as lines see it: strides in bytes along a line and across neighbouring lines. */
typedef struct side {
    tn_dtype dtype;
    int64_t along, across;
} side;

typedef struct lines lines;

typedef struct variant {
    void (*row)(const lines *l, char *const *at);
    void (*columns)(const lines *l, char *const *at, int64_t width);
    uint32_t n_in;
    bool is_log;
} variant;

struct lines {
    const variant *op;
    tnc_plan plan; /* one element for each line: output, inputs */
    side out, in[2];
    int64_t length;
    int64_t width; /* lines taken at once */
    bool is_log;
};

/* Each of these knows all dtypes and strides: in line in every loop they were 200 KB of code, for calls
 * that are one for a block. */
#define OUT_OF_LINE __attribute__((noinline))

OUT_OF_LINE static const void *load(const side *s, const char *line, int64_t i, int64_t n,
                                    void *block) {
    return tnc_load_run(block, line + i * s->along, s->along, n, s->dtype);
}

OUT_OF_LINE static const void *load_across(const side *s, const char *line, int64_t i, int64_t n,
                                           void *block) {
    return tnc_load_run(block, line + i * s->along, s->across, n, s->dtype);
}

/* Where to compute elements i and on of a line: in place, or in `block` until they are stored. */
static void *target(const side *s, char *line, int64_t i, void *block) {
    return tnc_is_direct(s->along, s->dtype) ? line + i * s->along : block;
}

static void *target_across(const side *s, char *line, int64_t i, void *block) {
    return tnc_is_direct(s->across, s->dtype) ? line + i * s->along : block;
}

OUT_OF_LINE static void store(const side *s, char *line, int64_t i, const void *run, int64_t n) {
    tnc_store_run(line + i * s->along, s->along, run, n, s->dtype);
}

OUT_OF_LINE static void store_across(const side *s, char *line, int64_t i, const void *run,
                                     int64_t n) {
    tnc_store_run(line + i * s->along, s->across, run, n, s->dtype);
}

#define T float
#define EXP em_exp
#define LOG em_log
#define NAME(x) x##_f32
#include "plugins/cpu/softmax.inc"
#undef T
#undef EXP
#undef LOG
#undef NAME

#define T double
#define EXP exp
#define LOG log
#define NAME(x) x##_f64
#include "plugins/cpu/softmax.inc"

/* ---- one call ---------------------------------------------------------------------------- */

/* Tasks are groups of `width` lines, neighbours along the plan's last dimension. */
static void run_lines(void *context, int64_t begin, int64_t end, int slot) {
    const lines *l = context;
    const tnc_plan *p = &l->plan;
    (void)slot;
    int inner = p->rank - 1;
    int64_t per_run = tnc_ceil_div(p->sizes[inner], l->width), at[TN_MAX_RANK];
    for (int64_t t = begin; t < end; t++) {
        int64_t first = t % per_run * l->width;
        tnc_plan_seek(p, t / per_run * p->sizes[inner] + first, at);
        char *data[3];
        for (int k = 0; k < p->n_operands; k++)
            data[k] = tnc_plan_address(p, &p->operands[k], at);
        if (l->width == 1)
            l->op->row(l, data);
        else
            l->op->columns(l, data, tnc_min(l->width, p->sizes[inner] - first));
    }
}

static int64_t stride_of(const tn_tensor_view *v, int64_t dim) {
    return v->rank ? tnc_step(v, dim) : 0;
}

static tn_status run(const tn_call *call) {
    lines l = {.op = call->user};
    const tn_tensor_view *out = call->outs[0];
    int64_t dim = call->args[l.op->n_in].v.i64; /* the tensors come first */
    tnc_plan_init(&l.plan, out);
    l.is_log = l.op->is_log;
    l.length = out->rank ? out->sizes[dim] : 1;
    l.out = (side){out->dtype, stride_of(out, dim), 0};
    tnc_plan_add_view(&l.plan, out);
    for (uint32_t k = 0; k < l.op->n_in; k++) {
        const tn_tensor_view *in = tnc_view(call, (int)k);
        l.in[k] = (side){in->dtype, stride_of(in, dim), 0};
        tnc_plan_add_view(&l.plan, in);
    }
    if (out->rank)
        l.plan.sizes[dim] = 1;
    tnc_plan_finish(&l.plan, true);
    int inner = l.plan.rank - 1;
    l.out.across = l.plan.operands[0].strides[inner];
    for (uint32_t k = 0; k < l.op->n_in; k++)
        l.in[k].across = l.plan.operands[k + 1].strides[inner];
    bool columns = l.out.across < l.out.along && l.plan.sizes[inner] >= 8 && l.length > 1;
    l.width = columns ? tnc_min(WIDTH, l.plan.sizes[inner]) : 1;

    int64_t n_lines = out->numel / l.length;
    int64_t n_groups = n_lines / l.plan.sizes[inner] * tnc_ceil_div(l.plan.sizes[inner], l.width);
    tnc_parallel(call, n_groups, tnc_max(1, TNC_GRAIN / 4 / (l.length * l.width)), TNC_MAX_SLOTS,
                 run_lines, &l);
    return TN_OK;
}

#define VARIANT(op, DT, pass, sfx, n_in_, log_) \
    TNC_KERNEL(op, TN_DTYPE_BIT(TN_##DT), TNC_FLAGS_STRIDED | TN_KERNEL_IN_PLACE, run, \
               .user = (void *)&(const variant){.row = pass##_row_##sfx, \
                                                .columns = pass##_columns_##sfx, \
                                                .n_in = n_in_, \
                                                .is_log = log_})

#define VARIANTS(op, pass, n_in, is_log) \
    VARIANT(op, F32, pass, f32, n_in, is_log), VARIANT(op, F64, pass, f64, n_in, is_log), \
        VARIANT(op, F16, pass, f32, n_in, is_log), VARIANT(op, BF16, pass, f32, n_in, is_log)

static const tn_kernel records[] = {
    VARIANTS(softmax, forward, 1, false),
    VARIANTS(log_softmax, forward, 1, true),
    VARIANTS(softmax_backward, backward, 2, false),
    VARIANTS(log_softmax_backward, backward, 2, true),
};
TNC_PUBLISH(softmax, records);
