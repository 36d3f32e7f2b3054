/* The negative log likelihood of target classes, and its gradient. Targets are checked before anything
 * is written. */
#include "plugins/cpu/iterate.h"

#include <string.h>

enum { PART = 4096, MAX_PARTS = 128 }; /* targets that a thread adds up; parts of a call */

typedef struct targets {
    const char *data;
    int64_t stride; /* bytes */
    int64_t n, n_classes, ignored;
} targets;

static targets targets_of(const tn_tensor_view *v, int64_t n_classes, const tn_cell *ignored) {
    return (targets){tnc_data(v), tnc_step(v, 0), v->numel, n_classes, ignored->v.i64};
}

static int64_t class_at(const targets *t, int64_t i) {
    int64_t k;
    memcpy(&k, t->data + i * t->stride, sizeof k);
    return k;
}

static tn_status check(const tn_call *call, const char *op, const targets *t) {
    for (int64_t i = 0; i < t->n; i++) {
        int64_t k = class_at(t, i);
        if ((uint64_t)k >= (uint64_t)t->n_classes && k != t->ignored)
            return tnc_fail(call->device->self, TN_ERR_INDEX_OUT_OF_RANGE,
                            "%s: index %lld is out of range for dimension 1 with size %lld", op,
                            (long long)k, (long long)t->n_classes);
    }
    return TN_OK;
}

/* As the walker reads and writes an element: halves as floats, the others as they are. */
typedef union element {
    float f32;
    double f64;
} element;

static double load(const char *p, tn_dtype dtype) {
    element x;
    tnc_gather_run(&x, p, tnc_dtype_bytes(dtype), 1, dtype);
    return dtype == TN_F64 ? x.f64 : (double)x.f32;
}

static void store(void *p, tn_dtype dtype, double wide) {
    element x;
    if (dtype == TN_F64)
        x.f64 = wide;
    else
        x.f32 = (float)wide;
    tnc_scatter_run(p, tnc_dtype_bytes(dtype), &x, 1, dtype);
}

/* ---- the loss ---------------------------------------------------------------------------- */

/* A sum, what additions lost of it (D. E. Knuth, The Art of Computer Programming, volume 2, 4.2.2), and
 * the number of its terms. */
typedef struct part {
    double sum, lost;
    int64_t n;
} part;

static void add(part *p, double x) {
    double sum = p->sum + x, more = sum - p->sum;
    p->lost += (p->sum - (sum - more)) + (x - more);
    p->sum = sum;
}

typedef struct losses {
    targets t;
    const char *self;
    tn_dtype dtype;
    int64_t row, along; /* strides of self, bytes */
    int64_t length;     /* of a part, which does not depend on the number of threads */
    part parts[MAX_PARTS];
} losses;

static void add_parts(void *context, int64_t begin, int64_t end, int slot) {
    losses *l = context;
    (void)slot;
    for (int64_t p = begin; p < end; p++) {
        part sum = {0};
        int64_t last = tnc_min((p + 1) * l->length, l->t.n);
        for (int64_t i = p * l->length; i < last; i++) {
            int64_t k = class_at(&l->t, i);
            if (k == l->t.ignored)
                continue;
            add(&sum, -load(l->self + i * l->row + k * l->along, l->dtype));
            sum.n++;
        }
        l->parts[p] = sum;
    }
}

static tn_status nll_loss(const tn_call *call) {
    const tn_tensor_view *self = tnc_view(call, TN_ARG_nll_loss_self);
    losses l = {.t = targets_of(tnc_view(call, TN_ARG_nll_loss_target), self->sizes[1],
                                &call->args[TN_ARG_nll_loss_ignore_index]),
                .self = tnc_data(self),
                .dtype = self->dtype,
                .row = tnc_step(self, 0),
                .along = tnc_step(self, 1)};
    PLUGIN_TRY(check(call, "nll_loss", &l.t));
    l.length = tnc_max(PART, tnc_ceil_div(l.t.n, MAX_PARTS));
    int64_t n_parts = tnc_ceil_div(l.t.n, l.length);
    tnc_parallel(call, n_parts, 1, TNC_MAX_SLOTS, add_parts, &l);
    part all = l.parts[0];
    for (int64_t p = 1; p < n_parts; p++) {
        add(&all, l.parts[p].sum);
        all.lost += l.parts[p].lost;
        all.n += l.parts[p].n;
    }
    /* of infinities and NaN only the sum is right */
    double sum = all.sum - all.sum == 0 ? all.sum + all.lost : all.sum;
    if (call->args[TN_ARG_nll_loss_mean].v.boolean)
        sum /= (double)all.n;
    store(tnc_data(call->outs[0]), self->dtype, sum);
    memcpy(tnc_data(call->outs[1]), &all.n, sizeof all.n);
    return TN_OK;
}

/* ---- its gradient ------------------------------------------------------------------------ */

typedef struct gradient {
    targets t;
    char *out; /* [n, n_classes], dense */
    int64_t item;
    _Alignas(8) char share[8]; /* of a target, as it is stored */
} gradient;

static void write_rows(void *context, int64_t begin, int64_t end, int slot) {
    const gradient *g = context;
    (void)slot;
    int64_t row = g->t.n_classes * g->item;
    memset(g->out + begin * row, 0, (size_t)((end - begin) * row));
    for (int64_t i = begin; i < end; i++) {
        int64_t k = class_at(&g->t, i);
        if (k != g->t.ignored)
            memcpy(g->out + i * row + k * g->item, g->share, (size_t)g->item);
    }
}

static tn_status nll_loss_backward(const tn_call *call) {
    const tn_tensor_view *grad = tnc_view(call, TN_ARG_nll_loss_backward_grad_output);
    const tn_tensor_view *target = tnc_view(call, TN_ARG_nll_loss_backward_target);
    int64_t n_classes = call->args[TN_ARG_nll_loss_backward_n_classes].v.i64, total;
    gradient g = {
        .t = targets_of(target, n_classes, &call->args[TN_ARG_nll_loss_backward_ignore_index]),
        .out = tnc_data(call->outs[0]),
        .item = tnc_dtype_bytes(grad->dtype)};
    PLUGIN_TRY(check(call, "nll_loss_backward", &g.t));
    double share = -load(tnc_data(grad), grad->dtype);
    memcpy(&total, tnc_data(tnc_view(call, TN_ARG_nll_loss_backward_total_weight)), sizeof total);
    if (call->args[TN_ARG_nll_loss_backward_mean].v.boolean)
        share /= (double)total;
    store(g.share, grad->dtype, share);
    tnc_parallel(call, g.t.n, tnc_max(1, TNC_GRAIN / n_classes), TNC_MAX_SLOTS, write_rows, &g);
    return TN_OK;
}

static const tn_kernel records[] = {
    TNC_KERNEL(nll_loss, TN_DTYPES_FLOAT, TNC_FLAGS_STRIDED, nll_loss),
    TNC_KERNEL(nll_loss_backward, TN_DTYPES_FLOAT, TNC_FLAGS_DENSE, nll_loss_backward),
};
TNC_PUBLISH(loss, records);
