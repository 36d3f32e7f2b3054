/* Lion (Chen et al., Symbolic discovery of optimization algorithms, arXiv:2302.06675, algorithm 2). */
#include "core/optim/optimizer.h"

static const tni_option settings[] = {
    TNI_OPTION(tn_lion_options, lr, AT_LEAST_ZERO),
    TNI_OPTION(tn_lion_options, beta1, BETA),
    TNI_OPTION(tn_lion_options, beta2, BETA),
    TNI_OPTION(tn_lion_options, weight_decay, AT_LEAST_ZERO),
    TNI_OPTION(tn_lion_options, maximize, ANY),
    {0},
};

static void factors(const tn_optimizer *optimizer, int64_t number, double *out) {
    out[0] = optimizer->lr;
    out[1] = 1 - optimizer->lr * optimizer->options.lion.weight_decay;
}

static tn_status update(const tn_optimizer *optimizer, const tni_param_step *step) {
    const tn_lion_options *o = &optimizer->options.lion;
    tni_temps tmp = {0};
    tni_update u;
    tni_step_begin(&u, &tmp, optimizer, step);
    tn_tensor *g = tni_update_grad(&u, o->maximize, 0), *param = u.t[0];
    /* Of the average as it was, with another beta than the average gets. */
    tn_tensor *direction = tni_own(&tmp, tni_mul_scalar(u.t[2], tn_float(o->beta1)));
    direction = tni_own(&tmp, tni_add_(direction, g, tn_float(1 - o->beta1)));
    direction = tni_own(&tmp, tni_sign_(direction));
    tn_tensor *average = tni_average(&tmp, u.t[2], g, o->beta2);
    if (o->weight_decay != 0)
        param = tni_scale(&tmp, param, tni_step_factor(&tmp, step, 1));
    param = tni_subtract_scaled(&tmp, param, direction, tni_step_factor(&tmp, step, 0));
    return tni_update_end(&u, average ? param : NULL);
}

tn_optimizer *tn_lion_create(tn_tensor *const *params, uint64_t n, const tn_lion_options *options) {
    static const char call[] = "tn_lion_create";
    static const tni_algorithm algorithm = {2, factors, update};
    tn_lion_options read = tn_lion_defaults();
    if (tni_options_read(call, settings, options, &read) != TN_OK)
        return NULL;
    tn_optimizer *o = tni_optimizer_create(call, &algorithm, params, n, &read, sizeof read);
    if (!o)
        return NULL;
    tni_optimizer_add_state(o, "exp_avg");
    return o;
}
