/* AdamW (Loshchilov and Hutter, arXiv:1711.05101), in PyTorch's form. */
#include "core/optim/params.h"
#include "base/alloc.h"
#include "core/ops/optim.h"

typedef struct moments {
    tn_tensor *exp_avg, *exp_avg_sq; /* owned; NULL before the first step */
    int64_t step;                    /* steps taken */
} moments;

struct tn_adamw {
    tni_params params; /* state: moments */
    tn_adamw_options options;
    _Atomic uint32_t refs;       /* the program's, and of graphs that captured a step */
    tni_captured_step *captured; /* the one under way, or NULL */
};

static tn_status check_beta(const char *name, double value) {
    if (value >= 0 && value < 1)
        return TN_OK;
    return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_adamw_create: %s is %g; it must be in [0, 1)",
                    name, value);
}

static tn_status read_options(tn_adamw_options *out, const tn_adamw_options *given) {
    static const char call[] = "tn_adamw_create";
    *out = tn_adamw_defaults();
    if (given) {
#define READ(member) \
    if (TN_HAS(given, tn_adamw_options, member)) \
    out->member = given->member
        READ(lr);
        READ(beta1);
        READ(beta2);
        READ(eps);
        READ(weight_decay);
        READ(maximize);
#undef READ
    }
    tn_status status = tni_option_at_least_zero(call, "lr", out->lr);
    if (status == TN_OK)
        status = tni_option_at_least_zero(call, "eps", out->eps);
    if (status == TN_OK)
        status = tni_option_at_least_zero(call, "weight_decay", out->weight_decay);
    if (status == TN_OK)
        status = check_beta("beta1", out->beta1);
    if (status == TN_OK)
        status = check_beta("beta2", out->beta2);
    return status;
}

tn_adamw *tn_adamw_create(tn_tensor *const *params, uint64_t n, const tn_adamw_options *options) {
    tn_adamw *adamw = tni_calloc(1, sizeof *adamw);
    if (!adamw)
        return tni_fail_memory_null("an optimizer");
    adamw->refs = 1;
    tn_status status = read_options(&adamw->options, options);
    if (status == TN_OK)
        status = tni_params_init(&adamw->params, "tn_adamw_create", params, n, sizeof(moments));
    if (status != TN_OK) {
        tn_adamw_destroy(adamw);
        return NULL;
    }
    return adamw;
}

static moments *moments_of(const tn_adamw *adamw, uint64_t i) {
    return (moments *)adamw->params.states + i;
}

void tn_adamw_destroy(tn_adamw *adamw) {
    if (!adamw || atomic_fetch_sub(&adamw->refs, 1) != 1)
        return;
    for (uint64_t i = 0; adamw->params.states && i < adamw->params.n; i++) {
        tni_drop(moments_of(adamw, i)->exp_avg);
        tni_drop(moments_of(adamw, i)->exp_avg_sq);
    }
    tni_params_finish(&adamw->params);
    tni_free(adamw);
}

static tn_status step_one(void *adamw, tn_tensor *param, tn_tensor *grad, void *state) {
    const tn_adamw_options *o = &((tn_adamw *)adamw)->options;
    moments *m = state;
    moments next = *m;
    if (!m->exp_avg) {
        next.exp_avg = tni_zeros_like(param, TN_DTYPE_NONE, tn_no_device());
        next.exp_avg_sq = tni_zeros_like(param, TN_DTYPE_NONE, tn_no_device());
    }
    next.step++;
    tn_status status =
        next.exp_avg && next.exp_avg_sq
            ? tni_fused_adamw_(param, grad, next.exp_avg, next.exp_avg_sq, o->lr, o->beta1,
                               o->beta2, o->eps, o->weight_decay, next.step, o->maximize)
            : tni_failed();
    if (status == TN_OK) {
        *m = next;
    } else if (!m->exp_avg) {
        tni_drop(next.exp_avg);
        tni_drop(next.exp_avg_sq);
    }
    return status;
}

/* ---- captured ---------------------------------------------------------------------------- */

/* The numbers of the steps that the next launch takes, and what follows from them. */
static void fill(tni_graph_source *source) {
    const tni_captured_step *s = (tni_captured_step *)source;
    const tn_adamw_options *o = &((tn_adamw *)s->optimizer)->options;
    int64_t known = 0;
    double factors[3];
    for (uint64_t i = 0; i < s->n; i++) {
        int64_t step = ((moments *)s->items[i].state)->step + s->items[i].ahead;
        if (step != known) /* mostly they are all the same */
            tni_adamw_factors(o->lr, o->beta1, o->beta2, o->weight_decay, step, factors);
        known = step;
        tni_captured_write(&s->items[i], factors, 3);
    }
}

static void launched(tni_graph_source *source) {
    const tni_captured_step *s = (tni_captured_step *)source;
    for (uint64_t i = 0; i < s->n; i++)
        ((moments *)s->items[i].state)->step++;
}

/* The averages are there before any replay, which would make them zero each time. */
static tn_status make_averages(tn_tensor *param, moments *m) {
    if (m->exp_avg)
        return TN_OK;
    m->exp_avg = tni_captured_zeros(param);
    m->exp_avg_sq = m->exp_avg ? tni_captured_zeros(param) : NULL;
    if (m->exp_avg_sq)
        return TN_OK;
    tni_drop(m->exp_avg);
    m->exp_avg = NULL;
    return tni_failed();
}

static tn_status capture_one(void *optimizer, tn_tensor *param, tn_tensor *grad, void *state) {
    tn_adamw *adamw = optimizer;
    const tn_adamw_options *o = &adamw->options;
    moments *m = state;
    tn_status status = make_averages(param, m);
    tn_tensor *factors =
        status == TN_OK ? tni_captured_values(adamw->captured, param, state, 3) : NULL;
    if (!factors)
        return tni_failed();
    status = tni_fused_adamw_from_(param, grad, m->exp_avg, m->exp_avg_sq, factors, o->beta1,
                                   o->beta2, o->eps, o->maximize);
    tni_drop(factors);
    return status;
}

static void drop(void *adamw) {
    tn_adamw_destroy(adamw);
}

tn_status tn_adamw_step(tn_adamw *adamw) {
    static const tni_graph_source source = {.fill = fill, .launched = launched};
    if (!adamw)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_adamw_step: the optimizer is NULL");
    if (!tni_capturing)
        return tni_params_step(&adamw->params, step_one, adamw);
    atomic_fetch_add(&adamw->refs, 1);
    return tni_params_capture(&adamw->params, capture_one, adamw, drop, &source, &adamw->captured);
}

tn_status tn_adamw_zero_grad(tn_adamw *adamw) {
    if (!adamw)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_adamw_zero_grad: the optimizer is NULL");
    tni_params_zero_grad(&adamw->params);
    return TN_OK;
}

double tn_adamw_lr(const tn_adamw *adamw) {
    return adamw ? adamw->options.lr : 0;
}

tn_status tn_adamw_set_lr(tn_adamw *adamw, double lr) {
    if (!adamw)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_adamw_set_lr: the optimizer is NULL");
    tn_status status = tni_option_at_least_zero("tn_adamw_set_lr", "lr", lr);
    if (status == TN_OK)
        adamw->options.lr = lr;
    return status;
}

tn_status tn_adamw_get_state(const tn_adamw *adamw, uint64_t i, tn_adamw_state *out) {
    if (!adamw || i >= adamw->params.n || !out)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_adamw_get_state: no parameter %llu",
                        (unsigned long long)i);
    const moments *m = moments_of(adamw, i);
    if (TN_HAS(out, tn_adamw_state, step))
        out->step = m->step;
    if (TN_HAS(out, tn_adamw_state, exp_avg))
        out->exp_avg = m->exp_avg;
    if (TN_HAS(out, tn_adamw_state, exp_avg_sq))
        out->exp_avg_sq = m->exp_avg_sq;
    return TN_OK;
}

tn_status tn_adamw_set_state(tn_adamw *adamw, uint64_t i, const tn_adamw_state *state) {
    static const char call[] = "tn_adamw_set_state";
    if (!adamw || i >= adamw->params.n || !state || !TN_HAS(state, tn_adamw_state, exp_avg_sq))
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: no parameter %llu, or an incomplete state",
                        call, (unsigned long long)i);
    bool fresh = state->step == 0 && !state->exp_avg && !state->exp_avg_sq;
    if (!fresh && (state->step < 1 || !state->exp_avg || !state->exp_avg_sq))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: a state has a step of at least 1 and both averages, or is all zero",
                        call);
    const tn_tensor *param = adamw->params.items[i];
    tn_status status = TN_OK;
    if (!fresh)
        status = tni_check_state(call, "exp_avg", param, state->exp_avg);
    if (!fresh && status == TN_OK)
        status = tni_check_state(call, "exp_avg_sq", param, state->exp_avg_sq);
    if (status != TN_OK)
        return status;
    moments *place = moments_of(adamw, i), before = *place;
    *place = (moments){tni_keep_opt(state->exp_avg), tni_keep_opt(state->exp_avg_sq), state->step};
    tni_drop(before.exp_avg);
    tni_drop(before.exp_avg_sq);
    return TN_OK;
}
