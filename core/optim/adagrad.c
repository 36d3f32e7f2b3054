/* Adagrad (Duchi, Hazan and Singer, 2011), in PyTorch's form. */
#include "core/optim/optimizer.h"

static tn_status read_options(tn_adagrad_options *out, const tn_adagrad_options *given) {
    static const char call[] = "tn_adagrad_create";
    *out = tn_adagrad_defaults();
    if (given) {
        TNI_READ(tn_adagrad_options, out, given, lr);
        TNI_READ(tn_adagrad_options, out, given, lr_decay);
        TNI_READ(tn_adagrad_options, out, given, weight_decay);
        TNI_READ(tn_adagrad_options, out, given, initial_accumulator_value);
        TNI_READ(tn_adagrad_options, out, given, eps);
        TNI_READ(tn_adagrad_options, out, given, maximize);
    }
    tn_status status = tni_option_at_least_zero(call, "lr", out->lr);
    if (status == TN_OK)
        status = tni_option_at_least_zero(call, "lr_decay", out->lr_decay);
    if (status == TN_OK)
        status = tni_option_at_least_zero(call, "weight_decay", out->weight_decay);
    if (status == TN_OK)
        status = tni_option_at_least_zero(call, "initial_accumulator_value",
                                          out->initial_accumulator_value);
    if (status == TN_OK)
        status = tni_option_at_least_zero(call, "eps", out->eps);
    return status;
}

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
    static const tni_algorithm algorithm = {1, factors, update};
    tn_adagrad_options read;
    if (read_options(&read, options) != TN_OK)
        return NULL;
    tn_optimizer *o = tni_optimizer_create("tn_adagrad_create", &algorithm, params, n);
    if (!o)
        return NULL;
    o->options.adagrad = read;
    o->lr = read.lr;
    o->initial = read.initial_accumulator_value;
    tni_optimizer_add_state(o, "sum");
    return o;
}
