/* Adagrad (Duchi, Hazan and Singer, 2011), in PyTorch's form. */
#include "core/optim/optimizer.h"

static const tni_option settings[] = {
    TNI_OPTION(tn_adagrad_options, lr, AT_LEAST_ZERO),
    TNI_OPTION(tn_adagrad_options, lr_decay, AT_LEAST_ZERO),
    TNI_OPTION(tn_adagrad_options, weight_decay, AT_LEAST_ZERO),
    TNI_OPTION(tn_adagrad_options, initial_accumulator_value, AT_LEAST_ZERO),
    TNI_OPTION(tn_adagrad_options, eps, AT_LEAST_ZERO),
    TNI_OPTION(tn_adagrad_options, maximize, ANY),
    {0},
};

static void factors(const tn_optimizer *optimizer, int64_t number, double *out) {
    out[0] = optimizer->lr / (1 + (double)(number - 1) * optimizer->options.adagrad.lr_decay);
}

static tn_status update(const tn_optimizer *optimizer, const tni_param_step *step) {
    const tn_adagrad_options *o = &optimizer->options.adagrad;
    tni_temps tmp = {0};
    tni_update u;
    tni_step_begin(&u, &tmp, optimizer, step);
    tn_tensor *g = tni_update_grad(&u, o->maximize, o->weight_decay);
    tn_tensor *sum = tni_own(&tmp, tni_addcmul_(u.t[2], g, g, tn_int(1)));
    tn_tensor *root = tni_own(&tmp, tni_sqrt(sum));
    root = tni_own(&tmp, tni_add_scalar_(root, tn_float(o->eps), tn_int(1)));
    tn_tensor *ratio = tni_own(&tmp, tni_div(g, root));
    return tni_update_end(&u,
                          tni_subtract_scaled(&tmp, u.t[0], ratio, tni_step_factor(&tmp, step, 0)));
}

tn_optimizer *tn_adagrad_create(tn_tensor *const *params, uint64_t n,
                                const tn_adagrad_options *options) {
    static const char call[] = "tn_adagrad_create";
    static const tni_algorithm algorithm = {1, factors, update};
    tn_adagrad_options read = tn_adagrad_defaults();
    if (tni_options_read(call, settings, options, &read) != TN_OK)
        return NULL;
    tn_optimizer *o = tni_optimizer_create(call, &algorithm, params, n, &read, sizeof read);
    if (!o)
        return NULL;
    o->initial = read.initial_accumulator_value;
    tni_optimizer_add_state(o, "sum");
    return o;
}
