/* RMSprop (Hinton's lectures; centered: Graves, arXiv:1308.0850), in PyTorch's form. */
#include "core/optim/optimizer.h"

static tn_status read_options(tn_rmsprop_options *out, const tn_rmsprop_options *given) {
    static const char call[] = "tn_rmsprop_create";
    *out = tn_rmsprop_defaults();
    if (given) {
        TNI_READ(tn_rmsprop_options, out, given, lr);
        TNI_READ(tn_rmsprop_options, out, given, alpha);
        TNI_READ(tn_rmsprop_options, out, given, eps);
        TNI_READ(tn_rmsprop_options, out, given, weight_decay);
        TNI_READ(tn_rmsprop_options, out, given, momentum);
        TNI_READ(tn_rmsprop_options, out, given, centered);
        TNI_READ(tn_rmsprop_options, out, given, maximize);
    }
    tn_status status = tni_option_at_least_zero(call, "lr", out->lr);
    if (status == TN_OK)
        status = tni_option_at_least_zero(call, "alpha", out->alpha);
    if (status == TN_OK && out->alpha > 1)
        status = tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: alpha is %g; it must be at most 1", call,
                          out->alpha);
    if (status == TN_OK)
        status = tni_option_at_least_zero(call, "eps", out->eps);
    if (status == TN_OK)
        status = tni_option_at_least_zero(call, "weight_decay", out->weight_decay);
    if (status == TN_OK)
        status = tni_option_at_least_zero(call, "momentum", out->momentum);
    return status;
}

static void factors(const tn_optimizer *optimizer, int64_t number, double *out) {
    out[0] = optimizer->lr;
}

/* States: square_avg, then momentum_buffer, if any, then grad_avg, if any. */
static tn_status update(const tn_optimizer *optimizer, const tni_param_step *step) {
    const tn_rmsprop_options *o = &optimizer->options.rmsprop;
    tni_temps tmp = {0};
    tni_update u;
    tni_step_begin(&u, &tmp, optimizer, step);
    tn_tensor *g = tni_update_grad(&u, o->maximize, o->weight_decay);
    tn_tensor *v = tni_average_square(&tmp, u.t[2], g, o->alpha);
    if (o->centered) {
        tn_tensor *mean = tni_average(&tmp, u.t[u.n - 1], g, o->alpha);
        v = tni_own(&tmp, tni_addcmul(v, mean, mean, tn_float(-1)));
    }
    tn_tensor *root = tni_own(&tmp, tni_sqrt(v));
    root = tni_own(&tmp, tni_add_scalar_(root, tn_float(o->eps), tn_int(1)));
    tn_tensor *ratio = tni_own(&tmp, tni_div(g, root));
    if (o->momentum != 0) {
        tn_tensor *buffer = tni_own(&tmp, tni_mul_scalar_(u.t[3], tn_float(o->momentum)));
        ratio = tni_own(&tmp, tni_add_(buffer, ratio, tn_int(1)));
    }
    return tni_update_end(&u,
                          tni_subtract_scaled(&tmp, u.t[0], ratio, tni_step_factor(&tmp, step, 0)));
}

tn_optimizer *tn_rmsprop_create(tn_tensor *const *params, uint64_t n,
                                const tn_rmsprop_options *options) {
    static const tni_algorithm algorithm = {1, factors, update};
    tn_rmsprop_options read;
    if (read_options(&read, options) != TN_OK)
        return NULL;
    tn_optimizer *o = tni_optimizer_create("tn_rmsprop_create", &algorithm, params, n);
    if (!o)
        return NULL;
    o->options.rmsprop = read;
    o->lr = read.lr;
    tni_optimizer_add_state(o, "square_avg");
    if (read.momentum != 0)
        tni_optimizer_add_state(o, "momentum_buffer");
    if (read.centered)
        tni_optimizer_add_state(o, "grad_avg");
    return o;
}
