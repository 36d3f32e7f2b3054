/* Lion (Chen et al., Symbolic discovery of optimization algorithms, arXiv:2302.06675, algorithm 2). */
#include "core/optim/optimizer.h"

static tn_status read_options(tn_lion_options *out, const tn_lion_options *given) {
    static const char call[] = "tn_lion_create";
    *out = tn_lion_defaults();
    if (given) {
        TNI_READ(tn_lion_options, out, given, lr);
        TNI_READ(tn_lion_options, out, given, beta1);
        TNI_READ(tn_lion_options, out, given, beta2);
        TNI_READ(tn_lion_options, out, given, weight_decay);
        TNI_READ(tn_lion_options, out, given, maximize);
    }
    tn_status status = tni_option_at_least_zero(call, "lr", out->lr);
    if (status == TN_OK)
        status = tni_option_beta(call, "beta1", out->beta1);
    if (status == TN_OK)
        status = tni_option_beta(call, "beta2", out->beta2);
    if (status == TN_OK)
        status = tni_option_at_least_zero(call, "weight_decay", out->weight_decay);
    return status;
}

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
    static const tni_algorithm algorithm = {2, factors, update};
    tn_lion_options read;
    if (read_options(&read, options) != TN_OK)
        return NULL;
    tn_optimizer *o = tni_optimizer_create("tn_lion_create", &algorithm, params, n);
    if (!o)
        return NULL;
    o->options.lion = read;
    o->lr = read.lr;
    tni_optimizer_add_state(o, "exp_avg");
    return o;
}
