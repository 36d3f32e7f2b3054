/* Stochastic gradient descent with momentum (Sutskever et al., 2013), in PyTorch's form. */
#include "core/optim/optimizer.h"

static const tni_option settings[] = {
    TNI_OPTION(tn_sgd_options, lr, AT_LEAST_ZERO),
    TNI_OPTION(tn_sgd_options, momentum, AT_LEAST_ZERO),
    TNI_OPTION(tn_sgd_options, dampening, ANY),
    TNI_OPTION(tn_sgd_options, weight_decay, AT_LEAST_ZERO),
    TNI_OPTION(tn_sgd_options, nesterov, ANY),
    TNI_OPTION(tn_sgd_options, maximize, ANY),
    {0},
};

static void factors(const tn_optimizer *optimizer, int64_t number, double *out) {
    out[0] = optimizer->lr;
}

/* Without momentum there is no state. */
static tn_status plain_update(const tn_optimizer *optimizer, const tni_param_step *step) {
    const tn_sgd_options *o = &optimizer->options.sgd;
    double sign = o->maximize ? 1 : -1;
    tni_temps tmp = {0};
    tni_update u;
    if (o->weight_decay == 0 && !step->later) { /* rounds once, so halves need no copy */
        tn_tensor *done =
            tni_own(&tmp, tni_add_(step->param, step->grad, tn_float(sign * step->now[0])));
        tni_temps_finish(&tmp);
        return done ? TN_OK : tni_failed();
    }
    tni_step_begin(&u, &tmp, optimizer, step);
    tn_tensor *g = tni_update_grad(&u, o->maximize, o->weight_decay);
    return tni_update_end(&u, tni_subtract_scaled(&tmp, u.t[0], g, tni_step_factor(&tmp, step, 0)));
}

static tn_status update(const tn_optimizer *optimizer, const tni_param_step *step) {
    const tn_sgd_options *o = &optimizer->options.sgd;
    if (o->momentum == 0)
        return plain_update(optimizer, step);
    if (step->later) {
        if (step->is_first && o->dampening != 0)
            return tni_capture_refuse("tn_optimizer_step",
                                      "the first step with dampening differs from those after it; "
                                      "take it before the capture");
        return tni_fused_sgd_from_(step->param, step->grad, step->states[0], step->later,
                                   o->momentum, o->dampening, o->weight_decay, o->nesterov,
                                   o->maximize);
    }
    /* The first buffer is the gradient itself: nothing before it, and no dampening. */
    return tni_fused_sgd_(step->param, step->grad, step->states[0], step->now[0], o->momentum,
                          step->is_first ? 0 : o->dampening, o->weight_decay, o->nesterov,
                          o->maximize);
}

tn_optimizer *tn_sgd_create(tn_tensor *const *params, uint64_t n, const tn_sgd_options *options) {
    static const char call[] = "tn_sgd_create";
    static const tni_algorithm algorithm = {1, factors, update};
    tn_sgd_options read = tn_sgd_defaults();
    if (tni_options_read(call, settings, options, &read) != TN_OK)
        return NULL;
    if (read.nesterov && (read.momentum <= 0 || read.dampening != 0)) {
        tni_fail(TN_ERR_INVALID_ARGUMENT,
                 "%s: nesterov needs a momentum above 0 (it is %g) and no dampening (it is %g)",
                 call, read.momentum, read.dampening);
        return NULL;
    }
    tn_optimizer *o = tni_optimizer_create(call, &algorithm, params, n, &read, sizeof read);
    if (!o)
        return NULL;
    if (read.momentum != 0)
        tni_optimizer_add_state(o, "momentum_buffer");
    return o;
}
