/* cumsum: running sums along one dimension. Floating sums are carried in f64. */
#include "plugins/cpu/iterate.h"

/* The sum of the elements before: of floating numbers f, of integers u, which wraps. */
typedef union carry {
    double f;
    uint64_t u;
} carry;

/* n elements of a line, dense. A is what the sum is carried in, as `member`. */
#define LINE(sfx, T, A, member) \
    static void line_##sfx(void *out, const void *in, int64_t n, carry *carried) { \
        const T *x = in; \
        T *r = out; \
        A sum = carried->member; \
        for (int64_t i = 0; i < n; i++) { \
            sum += (A)x[i]; \
            r[i] = (T)sum; \
        } \
        carried->member = sum; \
    }

/* Whole dense lines together: a line's sums wait for one another, those of several do not. The order within each is
 * that of `line`. */
#define LINES(sfx, T, A) \
    static void lines_##sfx(void *const *out, const void *const *in, int64_t n) { \
        A sums[TOGETHER] = {0}; \
        for (int64_t i = 0; i < n; i++) \
            for (int k = 0; k < TOGETHER; k++) { \
                sums[k] += (A)((const T *)in[k])[i]; \
                ((T *)out[k])[i] = (T)sums[k]; \
            } \
    }
enum { TOGETHER = 4 };
LINES(f32, float, double)
LINES(f64, double, double)
#define LINES_INT(sfx, T, U, DT) LINES(sfx, T, uint64_t)
TNC_INT_TYPES(LINES_INT)

#define LINE_INT(sfx, T, U, DT) LINE(sfx, T, uint64_t, u)
LINE(f32, float, double, f)
LINE(f64, double, double, f)
TNC_INT_TYPES(LINE_INT)

/* What a record's user pointer leads to. */
typedef struct line {
    void (*run)(void *out, const void *in, int64_t n, carry *carried);
    void (*together)(void *const *out, const void *const *in, int64_t n); /* NULL: one by one */
} line;

typedef struct scan {
    const line *line;
    tnc_plan plan; /* of the lines: output, input */
    int64_t length, out_stride, in_stride;
} scan;

/* Lines i to i + TOGETHER - 1. */
static void scan_together(const scan *s, int64_t i) {
    void *out[TOGETHER];
    const void *in[TOGETHER];
    int64_t at[TN_MAX_RANK];
    for (int k = 0; k < TOGETHER; k++) {
        tnc_plan_seek(&s->plan, i + k, at);
        out[k] = tnc_plan_address(&s->plan, &s->plan.operands[0], at);
        in[k] = tnc_plan_address(&s->plan, &s->plan.operands[1], at);
    }
    s->line->together(out, in, s->length);
}

static void scan_lines(void *context, int64_t begin, int64_t end, int slot) {
    const scan *s = context;
    const tnc_operand *out = &s->plan.operands[0], *in = &s->plan.operands[1];
    (void)slot;
    _Alignas(64) char block[TNC_BLOCK * 8];
    int64_t at[TN_MAX_RANK], i = begin;
    if (s->line->together && tnc_is_direct(s->out_stride, out->dtype) &&
        tnc_is_direct(s->in_stride, in->dtype))
        for (; i + TOGETHER <= end; i += TOGETHER)
            scan_together(s, i);
    for (; i < end; i++) {
        tnc_plan_seek(&s->plan, i, at);
        char *dst = tnc_plan_address(&s->plan, out, at);
        const char *src = tnc_plan_address(&s->plan, in, at);
        carry carried = {.u = 0}; /* f is zero as well */
        for (int64_t j = 0; j < s->length; j += TNC_BLOCK) {
            int64_t n = tnc_min(TNC_BLOCK, s->length - j);
            tnc_gather_run(block, src + j * s->in_stride, s->in_stride, n, in->dtype);
            s->line->run(block, block, n, &carried);
            tnc_scatter_run(dst + j * s->out_stride, s->out_stride, block, n, out->dtype);
        }
    }
}

static tn_status run(const tn_call *call) {
    const tn_tensor_view *in = tnc_view(call, TN_ARG_cumsum_self), *out = call->outs[0];
    int64_t dim = call->args[TN_ARG_cumsum_dim].v.i64;
    scan s;
    tnc_plan_init(&s.plan, out);
    tnc_plan_add_view(&s.plan, out);
    tnc_plan_add_view(&s.plan, in);
    s.line = call->user;
    s.length = in->rank ? in->sizes[dim] : 1;
    s.in_stride = in->rank ? tnc_step(in, dim) : 0;
    s.out_stride = in->rank ? tnc_step(out, dim) : 0;
    if (in->rank)
        s.plan.sizes[dim] = 1;
    tnc_plan_finish(&s.plan, true);
    tnc_parallel(call, in->numel / s.length, tnc_max(1, TNC_GRAIN / s.length), TNC_MAX_SLOTS,
                 scan_lines, &s);
    return TN_OK;
}

#define CUMSUM(DT, sfx) \
    TNC_KERNEL(cumsum, TN_DTYPE_BIT(TN_##DT), TNC_FLAGS_STRIDED | TN_KERNEL_IN_PLACE, run, \
               .user = (void *)&(const line){line_##sfx, lines_##sfx})
#define CUMSUM_INT(sfx, T, U, DT) CUMSUM(DT, sfx),

static const tn_kernel records[] = {CUMSUM(F32, f32), CUMSUM(F64, f64), CUMSUM(F16, f32),
                                    CUMSUM(BF16, f32), TNC_INT_TYPES(CUMSUM_INT)};
TNC_PUBLISH(scan, records);
