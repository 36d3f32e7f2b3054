/* Stochastic gradient descent with momentum (Sutskever et al., 2013), in PyTorch's form. */
#include "core/optim/params.h"
#include "base/alloc.h"
#include "core/call/temps.h"

struct tn_sgd {
    tni_params params; /* state: the buffer, owned; NULL before a parameter's first step */
    tn_sgd_options options;
    _Atomic uint32_t refs;       /* the program's, and of graphs that captured a step */
    tni_captured_step *captured; /* the one under way, or NULL */
};

static tn_status read_options(tn_sgd_options *out, const tn_sgd_options *given) {
    static const char call[] = "tn_sgd_create";
    *out = tn_sgd_defaults();
    if (given) {
#define READ(member) \
    if (TN_HAS(given, tn_sgd_options, member)) \
    out->member = given->member
        READ(lr);
        READ(momentum);
        READ(dampening);
        READ(weight_decay);
        READ(nesterov);
        READ(maximize);
#undef READ
    }
    tn_status status = tni_option_at_least_zero(call, "lr", out->lr);
    if (status == TN_OK)
        status = tni_option_at_least_zero(call, "momentum", out->momentum);
    if (status == TN_OK)
        status = tni_option_at_least_zero(call, "weight_decay", out->weight_decay);
    if (status == TN_OK && out->nesterov && (out->momentum <= 0 || out->dampening != 0))
        status = tni_fail(TN_ERR_INVALID_ARGUMENT,
                          "%s: nesterov needs a momentum above 0 (it is %g) and no dampening (it "
                          "is %g)",
                          call, out->momentum, out->dampening);
    return status;
}

tn_sgd *tn_sgd_create(tn_tensor *const *params, uint64_t n, const tn_sgd_options *options) {
    tn_sgd *sgd = tni_calloc(1, sizeof *sgd);
    if (!sgd)
        return tni_fail_memory_null("an optimizer");
    sgd->refs = 1;
    tn_status status = read_options(&sgd->options, options);
    if (status == TN_OK)
        status = tni_params_init(&sgd->params, "tn_sgd_create", params, n, sizeof(tn_tensor *));
    if (status != TN_OK) {
        tn_sgd_destroy(sgd);
        return NULL;
    }
    return sgd;
}

static tn_tensor **buffer_of(const tn_sgd *sgd, uint64_t i) {
    return (tn_tensor **)sgd->params.states + i;
}

void tn_sgd_destroy(tn_sgd *sgd) {
    if (!sgd || atomic_fetch_sub(&sgd->refs, 1) != 1)
        return;
    for (uint64_t i = 0; sgd->params.states && i < sgd->params.n; i++)
        tni_drop(*buffer_of(sgd, i));
    tni_params_finish(&sgd->params);
    tni_free(sgd);
}

/* Without momentum there is no state: param -= lr * (grad + weight_decay * param). `lr` is a
 * tensor where the step is captured. */
static tn_status plain_step(const tn_sgd_options *o, tn_tensor *param, tn_tensor *grad,
                            tn_tensor *lr) {
    double sign = o->maximize ? 1 : -1;
    tni_temps tmp = {0};
    tn_tensor *direction = grad;
    if (o->weight_decay != 0)
        direction = tni_own(&tmp, tni_add(grad, param, tn_float(-sign * o->weight_decay)));
    if (lr)
        direction = tni_own(&tmp, tni_mul(direction, lr));
    tn_tensor *done = tni_own(&tmp, tni_add_(param, direction, tn_float(lr ? sign : sign * o->lr)));
    tni_temps_finish(&tmp);
    return done ? TN_OK : tni_failed();
}

static tn_status momentum_step(const tn_sgd_options *o, tn_tensor *param, tn_tensor *grad,
                               tn_tensor **buffer) {
    /* The first buffer is the gradient itself: nothing before it, and no dampening. */
    bool first = !*buffer;
    tn_tensor *b = first ? tni_zeros_like(param, TN_DTYPE_NONE, tn_no_device()) : tni_keep(*buffer);
    tn_status status =
        b ? tni_fused_sgd_(param, grad, b, o->lr, o->momentum, first ? 0 : o->dampening,
                           o->weight_decay, o->nesterov, o->maximize)
          : tni_failed();
    if (first && status == TN_OK)
        *buffer = b;
    else
        tni_drop(b);
    return status;
}

static tn_status step_one(void *sgd, tn_tensor *param, tn_tensor *grad, void *buffer) {
    const tn_sgd_options *o = &((tn_sgd *)sgd)->options;
    return o->momentum == 0 ? plain_step(o, param, grad, NULL)
                            : momentum_step(o, param, grad, buffer);
}

/* ---- captured ---------------------------------------------------------------------------- */

static void fill(tni_graph_source *source) {
    const tni_captured_step *s = (tni_captured_step *)source;
    for (uint64_t i = 0; i < s->n; i++)
        tni_captured_write(&s->items[i], &((tn_sgd *)s->optimizer)->options.lr, 1);
}

static void launched(tni_graph_source *source) {}

/* The buffer is there before any replay, which would make it zero each time. */
static tn_status make_buffer(const tn_sgd_options *o, tn_tensor *param, tn_tensor **buffer) {
    if (*buffer)
        return TN_OK;
    if (o->dampening != 0)
        return tni_capture_refuse("tn_sgd_step", "the first step with dampening differs from those "
                                                 "after it; take it before the capture");
    *buffer = tni_captured_zeros(param);
    return *buffer ? TN_OK : tni_failed();
}

static tn_status capture_one(void *optimizer, tn_tensor *param, tn_tensor *grad, void *state) {
    tn_sgd *sgd = optimizer;
    const tn_sgd_options *o = &sgd->options;
    tn_tensor **buffer = state;
    tn_status status = o->momentum == 0 ? TN_OK : make_buffer(o, param, buffer);
    tn_tensor *lr = status == TN_OK ? tni_captured_values(sgd->captured, param, state, 1) : NULL;
    if (!lr)
        return tni_failed();
    status = o->momentum == 0
                 ? plain_step(o, param, grad, lr)
                 : tni_fused_sgd_from_(param, grad, *buffer, lr, o->momentum, o->dampening,
                                       o->weight_decay, o->nesterov, o->maximize);
    tni_drop(lr);
    return status;
}

static void drop(void *sgd) {
    tn_sgd_destroy(sgd);
}

tn_status tn_sgd_step(tn_sgd *sgd) {
    static const tni_graph_source source = {.fill = fill, .launched = launched};
    if (!sgd)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_sgd_step: the optimizer is NULL");
    if (!tni_capturing)
        return tni_params_step(&sgd->params, step_one, sgd);
    atomic_fetch_add(&sgd->refs, 1);
    return tni_params_capture(&sgd->params, capture_one, sgd, drop, &source, &sgd->captured);
}

tn_status tn_sgd_zero_grad(tn_sgd *sgd) {
    if (!sgd)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_sgd_zero_grad: the optimizer is NULL");
    tni_params_zero_grad(&sgd->params);
    return TN_OK;
}

double tn_sgd_lr(const tn_sgd *sgd) {
    return sgd ? sgd->options.lr : 0;
}

tn_status tn_sgd_set_lr(tn_sgd *sgd, double lr) {
    if (!sgd)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_sgd_set_lr: the optimizer is NULL");
    tn_status status = tni_option_at_least_zero("tn_sgd_set_lr", "lr", lr);
    if (status == TN_OK)
        sgd->options.lr = lr;
    return status;
}

tn_tensor *tn_sgd_momentum_buffer(const tn_sgd *sgd, uint64_t i) {
    return sgd && i < sgd->params.n ? *buffer_of(sgd, i) : NULL;
}

tn_status tn_sgd_set_momentum_buffer(tn_sgd *sgd, uint64_t i, tn_tensor *buffer) {
    if (!sgd || i >= sgd->params.n)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_sgd_set_momentum_buffer: no parameter %llu",
                        (unsigned long long)i);
    tn_status status = buffer ? tni_check_state("tn_sgd_set_momentum_buffer", "the buffer",
                                                sgd->params.items[i], buffer)
                              : TN_OK;
    if (status == TN_OK) {
        tn_tensor **place = buffer_of(sgd, i), *before = *place;
        *place = tni_keep_opt(buffer);
        tni_drop(before);
    }
    return status;
}
