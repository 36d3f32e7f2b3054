/* Optimizer steps: one fused kernel where the device has it and the tensors are plain, else a few
 * operators in place. Both compute what plugin-sdk/kernels.toml says. */

#include "core/ops/optim.h"
#include "core/ops/functions.h"
#include "core/ops/update.h"

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

/* The kernel with the first n_tensors cells being `t`, and `factors`, unless NULL, the one behind them;
 * outputs are t but the gradient, t[1]. TN_ERR_UNSUPPORTED, without an error: do it by operators. */
static tn_status fused(int kernel_op, const char *call, tn_tensor **t, uint32_t n_tensors,
                       const tn_tensor *factors, const tn_cell *args, uint32_t n_args,
                       tni_temps *temps) {
    if (!tni_is_contiguous(
            &t[1]->view)) /* a transposed gradient, say: one copy beats many passes */
        t[1] = tni_own(temps, tni_contiguous_data(t[1]));
    if (!t[1])
        return tni_failed();
    if (!plain(t, n_tensors) || (factors && !tni_is_contiguous(&factors->view)))
        return TN_ERR_UNSUPPORTED;
    tn_dtype types[TN_KERNEL_MAX_TYPES] = {t[0]->view.dtype};
    tn_cell cells[TNI_MAX_ARGS];
    tn_tensor_view views[4], factors_view;
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
    if (factors) {
        flat(&factors_view, factors);
        types[1] = factors_view.dtype;
        cells[n_tensors] = (tn_cell){.tag = TN_CELL_TENSOR, .v.view = &factors_view};
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
    for (uint32_t i = 1; i < n; i++)
        if (!tni_same_shape(t[i], t[0]))
            return tni_fail(TN_ERR_SHAPE, "%s: self is %s, but tensor argument %u is %s", call,
                            TNI_SHAPE_OF(t[0]), i, TNI_SHAPE_OF(t[i]));
    return TN_OK;
}

/* `factors` in the dtype that the step is computed in: the parameter's, f32 for a half. */
static tn_status check_factors(const char *call, const tn_tensor *factors, const tn_tensor *self,
                               int64_t n) {
    tn_dtype dtype = self->view.dtype == TN_F64 ? TN_F64 : TN_F32;
    if (factors->view.dtype == dtype && factors->view.numel == n &&
        (n == 1 || factors->view.rank == 1) && factors->device == self->device)
        return TN_OK;
    return tni_fail(
        TN_ERR_SHAPE, "%s: argument %s is %s of %s on %s; it must be %s of [%lld] on %s", call,
        n == 1 ? "lr" : "factors", tn_dtype_name(factors->view.dtype), TNI_SHAPE_OF(factors),
        factors->device->name, tn_dtype_name(dtype), (long long)n, self->device->name);
}

/* t: self, grad, momentum_buffer; attributes from `args` on: momentum, dampening, weight_decay,
 * nesterov, maximize */
static tn_status sgd(tni_temps *temps, tn_tensor *const *t, tni_factor lr, const tn_cell *args) {
    double momentum = args[0].v.f64, dampening = args[1].v.f64, decay = args[2].v.f64;
    tni_update u;
    tni_update_begin(&u, temps, t, 3);
    tn_tensor *g = tni_update_grad(&u, args[4].v.boolean, decay);
    tn_tensor *buffer = tni_own(temps, tni_mul_scalar_(u.t[2], tn_float(momentum)));
    buffer = tni_own(temps, tni_add_(buffer, g, tn_float(1 - dampening)));
    g = args[3].v.boolean ? tni_own(temps, tni_add(g, buffer, tn_float(momentum))) : buffer;
    return tni_update_end(&u, tni_subtract_scaled(temps, u.t[0], g, lr));
}

/* fused_sgd_(self, grad, momentum_buffer, lr, momentum, dampening, weight_decay, nesterov,
 * maximize) */
tn_status tni_run_fused_sgd_(const tn_cell *args, tn_cell *rets) {
    tn_tensor *t[3] = {tni_arg_tensor(&args[0]), tni_arg_tensor(&args[1]),
                       tni_arg_tensor(&args[2])};
    TNI_TRY(check_shapes("tn_fused_sgd_", t, 3));
    tni_temps tmp = {0};
    tn_status status = fused(TNI_KERNEL_fused_sgd, "tn_fused_sgd_", t, 3, NULL, args, 9, &tmp);
    if (status == TN_ERR_UNSUPPORTED)
        return sgd(&tmp, t, (tni_factor){.now = args[3].v.f64}, &args[4]);
    tni_temps_finish(&tmp);
    return status;
}

/* fused_sgd_from_: the same, lr a tensor */
tn_status tni_run_fused_sgd_from_(const tn_cell *args, tn_cell *rets) {
    tn_tensor *t[3] = {tni_arg_tensor(&args[0]), tni_arg_tensor(&args[1]),
                       tni_arg_tensor(&args[2])},
              *lr = tni_arg_tensor(&args[3]);
    TNI_TRY(check_shapes("tn_fused_sgd_from_", t, 3));
    TNI_TRY(check_factors("tn_fused_sgd_from_", lr, t[0], 1));
    tni_temps tmp = {0};
    tn_status status =
        fused(TNI_KERNEL_fused_sgd_from, "tn_fused_sgd_from_", t, 3, lr, args, 9, &tmp);
    if (status == TN_ERR_UNSUPPORTED)
        return sgd(&tmp, t, tni_factor_later(&tmp, lr, 0), &args[4]);
    tni_temps_finish(&tmp);
    return status;
}

/* What of a step of AdamW follows from its number and the learning rate. */
typedef struct adamw_factors {
    tni_factor shrink, step_size,
        root; /* 1 - lr * weight_decay, lr / (1 - beta1^step), 1 / (1 - beta2^step) */
} adamw_factors;

/* t: self, grad, exp_avg, exp_avg_sq */
static tn_status adamw(tni_temps *temps, tn_tensor *const *t, const adamw_factors *f, double beta1,
                       double beta2, double eps, bool maximize) {
    tni_update u;
    tni_update_begin(&u, temps, t, 4);
    tn_tensor *g = tni_update_grad(&u, maximize, 0);
    tn_tensor *m = tni_average(temps, u.t[2], g, beta1);
    tn_tensor *v = tni_average_square(temps, u.t[3], g, beta2);
    tn_tensor *root = tni_own(temps, tni_sqrt(tni_times(temps, v, f->root)));
    root = tni_own(temps, tni_add_scalar_(root, tn_float(eps), tn_int(1)));
    tn_tensor *ratio = tni_own(temps, tni_div(m, root));
    tn_tensor *self = tni_scale(temps, u.t[0], f->shrink);
    return tni_update_end(&u, tni_subtract_scaled(temps, self, ratio, f->step_size));
}

void tni_adamw_factors(double lr, double beta1, double beta2, double weight_decay, int64_t step,
                       double out[3]) {
    out[0] = 1 - lr * weight_decay;
    out[1] = lr / (1 - pow(beta1, (double)step));
    out[2] = 1 / (1 - pow(beta2, (double)step));
}

/* fused_adamw_(self, grad, exp_avg, exp_avg_sq, lr, beta1, beta2, eps, weight_decay, step,
 * maximize) */
tn_status tni_run_fused_adamw_(const tn_cell *args, tn_cell *rets) {
    tn_tensor *t[4] = {tni_arg_tensor(&args[0]), tni_arg_tensor(&args[1]), tni_arg_tensor(&args[2]),
                       tni_arg_tensor(&args[3])};
    TNI_TRY(check_shapes("tn_fused_adamw_", t, 4));
    if (args[9].v.i64 < 1)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_fused_adamw_: step is %lld; it counts from 1",
                        (long long)args[9].v.i64);
    tni_temps tmp = {0};
    tn_status status = fused(TNI_KERNEL_fused_adamw, "tn_fused_adamw_", t, 4, NULL, args, 11, &tmp);
    if (status != TN_ERR_UNSUPPORTED) {
        tni_temps_finish(&tmp);
        return status;
    }
    double f[3], beta1 = args[5].v.f64, beta2 = args[6].v.f64;
    tni_adamw_factors(args[4].v.f64, beta1, beta2, args[8].v.f64, args[9].v.i64, f);
    return adamw(&tmp, t, &(adamw_factors){{.now = f[0]}, {.now = f[1]}, {.now = f[2]}}, beta1,
                 beta2, args[7].v.f64, args[10].v.boolean);
}

/* fused_adamw_from_(self, grad, exp_avg, exp_avg_sq, factors, beta1, beta2, eps, maximize) */
tn_status tni_run_fused_adamw_from_(const tn_cell *args, tn_cell *rets) {
    tn_tensor *t[4] = {tni_arg_tensor(&args[0]), tni_arg_tensor(&args[1]), tni_arg_tensor(&args[2]),
                       tni_arg_tensor(&args[3])},
              *factors = tni_arg_tensor(&args[4]);
    TNI_TRY(check_shapes("tn_fused_adamw_from_", t, 4));
    TNI_TRY(check_factors("tn_fused_adamw_from_", factors, t[0], 3));
    tni_temps tmp = {0};
    tn_status status =
        fused(TNI_KERNEL_fused_adamw_from, "tn_fused_adamw_from_", t, 4, factors, args, 9, &tmp);
    if (status != TN_ERR_UNSUPPORTED) {
        tni_temps_finish(&tmp);
        return status;
    }
    adamw_factors f = {tni_factor_later(&tmp, factors, 0), tni_factor_later(&tmp, factors, 1),
                       tni_factor_later(&tmp, factors, 2)};
    return adamw(&tmp, t, &f, args[5].v.f64, args[6].v.f64, args[7].v.f64, args[8].v.boolean);
}
