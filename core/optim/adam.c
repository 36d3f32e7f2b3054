/* Adam (Kingma and Ba, arXiv:1412.6980) and AdamW (Loshchilov and Hutter, arXiv:1711.05101), with
 * amsgrad (Reddi et al., arXiv:1904.09237), in PyTorch's form. */
#include "core/optim/optimizer.h"
#include "core/ops/optim.h"

static const tni_option settings[] = {
    TNI_OPTION(tn_adam_options, lr, AT_LEAST_ZERO),
    TNI_OPTION(tn_adam_options, eps, AT_LEAST_ZERO),
    TNI_OPTION(tn_adam_options, weight_decay, AT_LEAST_ZERO),
    TNI_OPTION(tn_adam_options, beta1, BETA),
    TNI_OPTION(tn_adam_options, beta2, BETA),
    TNI_OPTION(tn_adam_options, maximize, ANY),
    TNI_OPTION(tn_adam_options, amsgrad, ANY),
    {0},
};

/* 1 - lr * weight_decay, lr / (1 - beta1^t), 1 / (1 - beta2^t) */
static void adamw_factors(const tn_optimizer *optimizer, int64_t number, double *out) {
    const tn_adam_options *o = &optimizer->options.adam;
    tni_adamw_factors(optimizer->lr, o->beta1, o->beta2, o->weight_decay, number, out);
}

static void adam_factors(const tn_optimizer *optimizer, int64_t number, double *out) {
    const tn_adam_options *o = &optimizer->options.adam;
    tni_adamw_factors(optimizer->lr, o->beta1, o->beta2, 0, number, out);
}

/* The whole formula by operators; `shrink`, the first factor, may be 1. */
static tn_status by_operators(const tn_optimizer *optimizer, const tni_param_step *step,
                              double penalty, bool shrinks) {
    const tn_adam_options *o = &optimizer->options.adam;
    tni_temps tmp = {0};
    tni_update u;
    tni_step_begin(&u, &tmp, optimizer, step);
    tn_tensor *g = tni_update_grad(&u, o->maximize, penalty);
    tn_tensor *m = tni_average(&tmp, u.t[2], g, o->beta1);
    tn_tensor *v = tni_average_square(&tmp, u.t[3], g, o->beta2);
    if (o->amsgrad)
        v = tni_own(&tmp, tni_maximum_out(u.t[4], v, u.t[4]));
    tn_tensor *root = tni_own(&tmp, tni_sqrt(tni_times(&tmp, v, tni_step_factor(&tmp, step, 2))));
    root = tni_own(&tmp, tni_add_scalar_(root, tn_float(o->eps), tn_int(1)));
    tn_tensor *ratio = tni_own(&tmp, tni_div(m, root)), *param = u.t[0];
    if (shrinks)
        param = tni_scale(&tmp, param, tni_step_factor(&tmp, step, 0));
    return tni_update_end(&u,
                          tni_subtract_scaled(&tmp, param, ratio, tni_step_factor(&tmp, step, 1)));
}

/* By the fused step of AdamW, whose decay is another: `decay` for it, with that gradient. */
static tn_status fused(const tn_optimizer *optimizer, const tni_param_step *step, tn_tensor *grad,
                       bool maximize, double decay) {
    const tn_adam_options *o = &optimizer->options.adam;
    if (step->later)
        return tni_fused_adamw_from_(step->param, grad, step->states[0], step->states[1],
                                     step->later, o->beta1, o->beta2, o->eps, maximize);
    return tni_fused_adamw_(step->param, grad, step->states[0], step->states[1], optimizer->lr,
                            o->beta1, o->beta2, o->eps, decay, step->number, maximize);
}

static tn_status adamw_update(const tn_optimizer *optimizer, const tni_param_step *step) {
    const tn_adam_options *o = &optimizer->options.adam;
    if (o->amsgrad)
        return by_operators(optimizer, step, 0, o->weight_decay != 0);
    return fused(optimizer, step, step->grad, o->maximize, o->weight_decay);
}

static tn_status adam_update(const tn_optimizer *optimizer, const tni_param_step *step) {
    const tn_adam_options *o = &optimizer->options.adam;
    if (o->weight_decay == 0 && !o->amsgrad)
        return fused(optimizer, step, step->grad, o->maximize, 0);
    if (o->amsgrad || tni_is_half(step->param->view.dtype)) /* the sum would be rounded */
        return by_operators(optimizer, step, o->weight_decay, false);
    double sign = o->maximize ? -1 : 1; /* maximize has -g + penalty p = -(g - penalty p) */
    tn_tensor *grad = tni_add(step->grad, step->param, tn_float(sign * o->weight_decay));
    if (!grad)
        return tni_failed();
    tn_status status = fused(optimizer, step, grad, o->maximize, 0);
    tni_drop(grad);
    return status;
}

static tn_optimizer *create(const char *call, const tni_algorithm *algorithm,
                            tn_tensor *const *params, uint64_t n, tn_adam_options options,
                            const tn_adam_options *given) {
    if (tni_options_read(call, settings, given, &options) != TN_OK)
        return NULL;
    tn_optimizer *o = tni_optimizer_create(call, algorithm, params, n, &options, sizeof options);
    if (!o)
        return NULL;
    tni_optimizer_add_state(o, "exp_avg");
    tni_optimizer_add_state(o, "exp_avg_sq");
    if (options.amsgrad)
        tni_optimizer_add_state(o, "max_exp_avg_sq");
    return o;
}

tn_optimizer *tn_adam_create(tn_tensor *const *params, uint64_t n, const tn_adam_options *options) {
    static const tni_algorithm algorithm = {3, adam_factors, adam_update};
    return create("tn_adam_create", &algorithm, params, n, tn_adam_defaults(), options);
}

tn_optimizer *tn_adamw_create(tn_tensor *const *params, uint64_t n,
                              const tn_adam_options *options) {
    static const tni_algorithm algorithm = {3, adamw_factors, adamw_update};
    return create("tn_adamw_create", &algorithm, params, n, tn_adamw_defaults(), options);
}
