/* RMSprop (Hinton's lectures; centered: Graves, arXiv:1308.0850), in PyTorch's form. */
#include "core/optim/optimizer.h"

static const tni_option settings[] = {
    TNI_OPTION(tn_rmsprop_options, lr, AT_LEAST_ZERO),
    TNI_OPTION(tn_rmsprop_options, alpha, SHARE),
    TNI_OPTION(tn_rmsprop_options, eps, AT_LEAST_ZERO),
    TNI_OPTION(tn_rmsprop_options, weight_decay, AT_LEAST_ZERO),
    TNI_OPTION(tn_rmsprop_options, momentum, AT_LEAST_ZERO),
    TNI_OPTION(tn_rmsprop_options, centered, ANY),
    TNI_OPTION(tn_rmsprop_options, maximize, ANY),
    {0},
};

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
    static const char call[] = "tn_rmsprop_create";
    static const tni_algorithm algorithm = {1, factors, update};
    tn_rmsprop_options read = tn_rmsprop_defaults();
    if (tni_options_read(call, settings, options, &read) != TN_OK)
        return NULL;
    tn_optimizer *o = tni_optimizer_create(call, &algorithm, params, n, &read, sizeof read);
    if (!o)
        return NULL;
    tni_optimizer_add_state(o, "square_avg");
    if (read.momentum != 0)
        tni_optimizer_add_state(o, "momentum_buffer");
    if (read.centered)
        tni_optimizer_add_state(o, "grad_avg");
    return o;
}
