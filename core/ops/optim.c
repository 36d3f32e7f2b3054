/* Optimizer steps: one fused kernel where the device has it and the tensors are plain, else a few
 * operators in place. Both compute what plugin-sdk/kernels.toml says. */

#include "core/ops/functions.h"
#include "core/ops/halves.h"

#include <math.h>

/* Tensors of one dtype, device and contiguous shape, as the fused kernels want them. */
static bool plain(tn_tensor *const *t, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (t[i]->device != t[0]->device || t[i]->view.dtype != t[0]->view.dtype ||
            t[i]->view.numel != t[0]->view.numel || !tni_is_contiguous(&t[i]->view))
            return false;
    return t[0]->view.numel > 0 && t[0]->view.numel <= INT32_MAX && !t[0]->device->is_meta;
}

static void flat(tn_tensor_view *out, const tn_tensor *t) {
    static const int64_t one = 1;
    *out = t->view;
    out->rank = 1;
    out->sizes = &t->view.numel;
    out->strides = &one;
}

/* The kernel with the first n_tensors cells being `t`; outputs are t but the gradient, t[1].
 * TN_ERR_UNSUPPORTED, without an error: do it by operators. */
static tn_status fused(int kernel_op, const char *call, tn_tensor **t, uint32_t n_tensors,
                       const tn_cell *args, uint32_t n_args, tni_temps *temps) {
    if (!tni_is_contiguous(
            &t[1]->view)) /* a transposed gradient, say: one copy beats many passes */
        t[1] = tni_own(temps, tni_contiguous_data(t[1]));
    if (!t[1])
        return tni_failed();
    if (!plain(t, n_tensors))
        return TN_ERR_UNSUPPORTED;
    tn_dtype types[TN_KERNEL_MAX_TYPES] = {t[0]->view.dtype};
    tn_cell cells[TNI_MAX_ARGS];
    tn_tensor_view views[4];
    const tn_tensor_view *outs[3];
    uint32_t n_outs = 0;
    for (uint32_t i = 0; i < n_args; i++)
        cells[i] = args[i];
    for (uint32_t i = 0; i < n_tensors; i++) {
        flat(&views[i], t[i]);
        cells[i] = (tn_cell){.tag = TN_CELL_TENSOR, .v.view = &views[i]};
        if (i != 1)
            outs[n_outs++] = &views[i];
    }
    tni_choice c;
    for (tni_choose(&c, t[0]->device, kernel_op, types);
         c.kernel && c.adaptation == TNI_AS_IS && !c.widened; tni_choose_next(&c)) {
        if (!(c.kernel->flags & TN_KERNEL_IN_PLACE) ||
            (tni_is_far(&views[0]) && !(c.kernel->flags & TN_KERNEL_INDEX64)))
            continue;
        tn_status status = tni_invoke(t[0]->device, c.kernel, call, cells, n_args, outs, n_outs);
        if (status != TNI_NOT_SUPPORTED)
            return status;
    }
    return TN_ERR_UNSUPPORTED;
}

static tn_status check_shapes(const char *call, tn_tensor *const *t, uint32_t n) {
    char a[TNI_SHAPE_TEXT], b[TNI_SHAPE_TEXT];
    for (uint32_t i = 1; i < n; i++)
        if (!tni_same_shape(t[i], t[0]))
            return tni_fail(TN_ERR_SHAPE, "%s: self is %s, but tensor argument %u is %s", call,
                            tni_shape_text(t[0]->view.rank, t[0]->sizes, a), i,
                            tni_shape_text(t[i]->view.rank, t[i]->sizes, b));
    return TN_OK;
}

/* The steps by operators record nothing: what they write are leaves. */
static tn_thread_keys without_autograd(void) {
    tn_thread_keys before = tni_thread_keys;
    tni_thread_keys.excluded |= TNI_KEYS_BELOW_AUTOGRAD;
    return before;
}

/* The tensors in which the steps compute: in the place of halves, where eps would be 0 and the
 * moments would lose what is added to them, copies in f32. */
typedef struct computed {
    uint32_t n;
    tn_tensor *given[4], *t[4];
} computed;

static computed widened(tni_temps *temps, tn_tensor *const *given, uint32_t n) {
    computed c = {.n = n};
    for (uint32_t i = 0; i < n; i++) {
        c.given[i] = given[i];
        c.t[i] = tni_widened(temps, given[i]);
    }
    return c;
}

/* Stores what was computed in copies; the gradient, t[1], is only read. */
static tn_status done(tni_temps *temps, tn_tensor *last, const computed *c, tn_thread_keys before) {
    tn_status status = last ? TN_OK : tni_failed();
    for (uint32_t i = 0; i < c->n && status == TN_OK; i++)
        if (i != 1 && c->t[i] != c->given[i])
            status = tni_copy_data(c->given[i], c->t[i]);
    tni_temps_finish(temps);
    tni_thread_keys = before;
    return status;
}

/* g = maximize ? -grad : grad */
static tn_tensor *signed_grad(tni_temps *list, tn_tensor *grad, bool maximize) {
    return maximize ? tni_own(list, tni_neg(grad)) : grad;
}

/* fused_sgd_(self, grad, momentum_buffer, lr, momentum, dampening, weight_decay, nesterov,
 * maximize) */
tn_status tni_run_fused_sgd_(const tn_cell *args, tn_cell *rets) {
    tn_tensor *t[3] = {tni_arg_tensor(&args[0]), tni_arg_tensor(&args[1]),
                       tni_arg_tensor(&args[2])};
    tn_status status = check_shapes("tn_fused_sgd_", t, 3);
    if (status != TN_OK)
        return status;
    tni_temps tmp = {0};
    status = fused(TNI_KERNEL_fused_sgd, "tn_fused_sgd_", t, 3, args, 9, &tmp);
    if (status != TN_ERR_UNSUPPORTED) {
        tni_temps_finish(&tmp);
        return status;
    }
    double lr = args[3].v.f64, momentum = args[4].v.f64, dampening = args[5].v.f64;
    double decay = args[6].v.f64;
    tn_thread_keys before = without_autograd();
    computed c = widened(&tmp, t, 3);
    tn_tensor *g = signed_grad(&tmp, c.t[1], args[8].v.boolean);
    g = tni_own(&tmp, tni_add(g, c.t[0], tn_float(decay)));
    tn_tensor *buffer = tni_own(&tmp, tni_mul_scalar_(c.t[2], tn_float(momentum)));
    buffer = tni_own(&tmp, tni_add_(buffer, g, tn_float(1 - dampening)));
    g = args[7].v.boolean ? tni_own(&tmp, tni_add(g, buffer, tn_float(momentum))) : buffer;
    return done(&tmp, tni_own(&tmp, tni_add_(c.t[0], g, tn_float(-lr))), &c, before);
}

/* fused_adamw_(self, grad, exp_avg, exp_avg_sq, lr, beta1, beta2, eps, weight_decay, step,
 * maximize) */
tn_status tni_run_fused_adamw_(const tn_cell *args, tn_cell *rets) {
    tn_tensor *t[4] = {tni_arg_tensor(&args[0]), tni_arg_tensor(&args[1]), tni_arg_tensor(&args[2]),
                       tni_arg_tensor(&args[3])};
    tn_status status = check_shapes("tn_fused_adamw_", t, 4);
    if (status != TN_OK)
        return status;
    if (args[9].v.i64 < 1)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_fused_adamw_: step is %lld; it counts from 1",
                        (long long)args[9].v.i64);
    tni_temps tmp = {0};
    status = fused(TNI_KERNEL_fused_adamw, "tn_fused_adamw_", t, 4, args, 11, &tmp);
    if (status != TN_ERR_UNSUPPORTED) {
        tni_temps_finish(&tmp);
        return status;
    }
    double lr = args[4].v.f64, beta1 = args[5].v.f64, beta2 = args[6].v.f64, eps = args[7].v.f64;
    double decay = args[8].v.f64, step = (double)args[9].v.i64;
    tn_thread_keys before = without_autograd();
    computed c = widened(&tmp, t, 4);
    tn_tensor *g = signed_grad(&tmp, c.t[1], args[10].v.boolean);
    tn_tensor *m = tni_own(&tmp, tni_mul_scalar_(c.t[2], tn_float(beta1)));
    m = tni_own(&tmp, tni_add_(m, g, tn_float(1 - beta1)));
    tn_tensor *v = tni_own(&tmp, tni_mul_scalar_(c.t[3], tn_float(beta2)));
    v = tni_own(&tmp, tni_add_(v, tni_own(&tmp, tni_mul(g, g)), tn_float(1 - beta2)));
    tn_tensor *root =
        tni_own(&tmp, tni_sqrt(tni_own(&tmp, tni_div_scalar(v, tn_float(1 - pow(beta2, step))))));
    tn_tensor *ratio =
        tni_own(&tmp, tni_div(m, tni_own(&tmp, tni_add_scalar(root, tn_float(eps), tn_int(1)))));
    tn_tensor *self = tni_own(&tmp, tni_mul_scalar_(c.t[0], tn_float(1 - lr * decay)));
    return done(&tmp, tni_own(&tmp, tni_add_(self, ratio, tn_float(-lr / (1 - pow(beta1, step))))),
                &c, before);
}
