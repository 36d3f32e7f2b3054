/* Scaling of losses for f16 (Micikevicius et al., arXiv:1710.03740), as torch.amp.GradScaler does
 * it. */
#include "base/alloc.h"
#include "core/call/temps.h"
#include "core/call/wrap.h"
#include "core/ops/halves.h"
#include "core/ops/operators.h"
#include "core/optim/optimizer.h"

#include <math.h>

/* What was done for an optimizer since the last update. */
typedef struct progress {
    tn_optimizer *optimizer; /* a reference: nobody else gets its address */
    bool finite, stepped;
} progress;

struct tn_grad_scaler {
    tn_grad_scaler_options options;
    double factor;
    int64_t good_steps;
    progress *done;
    size_t n_done, capacity;
};

static const tni_option fields[] = {
    TNI_OPTION(tn_grad_scaler_options, init_scale, AT_LEAST_ZERO),
    TNI_OPTION(tn_grad_scaler_options, growth_factor, AT_LEAST_ZERO),
    TNI_OPTION(tn_grad_scaler_options, backoff_factor, AT_LEAST_ZERO),
    TNI_OPTION(tn_grad_scaler_options, growth_interval, ANY),
    {0},
};

/* Losses are f32. */
static bool is_factor(double x) {
    return x > 0 && (float)x > 0 && isfinite((float)x);
}

static tn_status check_options(const char *call, const tn_grad_scaler_options *o) {
    if (!is_factor(o->init_scale))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: init_scale is %g; it must be above 0, and a number that f32 has", call,
                        o->init_scale);
    if (!(o->growth_factor > 1))
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: growth_factor is %g; it must be above 1",
                        call, o->growth_factor);
    if (!(o->backoff_factor > 0 && o->backoff_factor < 1))
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: backoff_factor is %g; it must be in (0, 1)",
                        call, o->backoff_factor);
    if (o->growth_interval < 1)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: growth_interval is %lld; it must be 1 or more", call,
                        (long long)o->growth_interval);
    return TN_OK;
}

tn_grad_scaler *tn_grad_scaler_create(const tn_grad_scaler_options *options) {
    static const char call[] = "tn_grad_scaler_create";
    tn_grad_scaler_options o = tn_grad_scaler_defaults();
    if (tni_options_read(call, fields, options, &o) != TN_OK || check_options(call, &o) != TN_OK)
        return NULL;
    tn_grad_scaler *s = tni_calloc(1, sizeof *s);
    if (!s)
        return tni_fail_memory_null("a scaler of losses");
    s->options = o;
    s->factor = o.init_scale;
    return s;
}

static void forget_progress(tn_grad_scaler *s) {
    for (size_t i = 0; i < s->n_done; i++)
        tn_optimizer_destroy(s->done[i].optimizer);
    s->n_done = 0;
}

void tn_grad_scaler_destroy(tn_grad_scaler *s) {
    if (!s)
        return;
    forget_progress(s);
    tni_free(s->done);
    tni_free(s);
}

static tn_status check_scaler(const tn_grad_scaler *s, const char *call) {
    return s ? TN_OK : tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: the scaler is NULL", call);
}

tn_tensor *tn_grad_scaler_scale(tn_grad_scaler *s, tn_tensor *loss) {
    static const char call[] = "tn_grad_scaler_scale";
    if (check_scaler(s, call) != TN_OK || tni_no_tensor(loss, call))
        return NULL;
    tni_temps tmp = {0};
    tn_tensor *wide = tni_widened(&tmp, tni_own(&tmp, tni_keep(loss)));
    tn_tensor *scaled = tni_own(&tmp, wide ? tni_mul_scalar(wide, tn_float(s->factor)) : NULL);
    return tni_public(tni_temps_keep(&tmp, scaled), call);
}

/* ---- unscaling --------------------------------------------------------------------------- */

static tn_status check_grads(const char *call, const tn_optimizer *o) {
    for (uint64_t i = 0; i < o->n; i++) {
        const tn_tensor *grad = tn_grad(o->params[i]);
        if (grad && grad->view.dtype == TN_F16)
            return tni_fail(
                TN_ERR_DTYPE,
                "%s: the gradient of parameter %llu is f16, in which it cannot be "
                "unscaled; keep parameters in f32 and cast in the model (tn_set_autocast)",
                call, (unsigned long long)i);
    }
    return TN_OK;
}

static tn_tensor *grad_of(const tn_optimizer *o, uint64_t i) {
    tn_tensor *grad = tn_grad(o->params[i]);
    return grad && grad->view.numel > 0 ? grad : NULL;
}

/* Adds 0, or NaN where a gradient is not finite, to *sum; on the device of the first. */
static tn_status look(tni_temps *temps, tn_tensor *grad, tn_tensor **sum) {
    tn_tensor *zeros = tni_own(temps, tni_mul_scalar(grad, tn_float(0)));
    tn_tensor *here = tni_then(temps, tni_sum(zeros, TN_F32), zeros);
    if (here && *sum && here->device != (*sum)->device)
        here = tni_then(temps, tni_to_device(here, tn_device_of(*sum)), here);
    *sum = *sum ? tni_then(temps, tni_add(*sum, here, tn_int(1)), here) : here;
    return *sum ? TN_OK : tni_failed();
}

static tn_status all_finite(const tn_optimizer *o, bool *out_finite) {
    tni_temps tmp = {0};
    tn_tensor *sum = NULL;
    tn_status status = TN_OK;
    double value = 0;
    for (uint64_t i = 0; i < o->n && status == TN_OK; i++) {
        tn_tensor *grad = grad_of(o, i);
        status = grad ? look(&tmp, grad, &sum) : TN_OK;
    }
    if (status == TN_OK && sum)
        status = tn_item(sum, &value);
    tni_temps_finish(&tmp);
    *out_finite = isfinite(value);
    return status;
}

static tn_status multiply(tn_optimizer *o, uint64_t n, double by, uint64_t *out_n) {
    for (*out_n = 0; *out_n < n; ++*out_n) {
        tn_tensor *grad = grad_of(o, *out_n);
        tn_tensor *done = grad ? tni_mul_scalar_(grad, tn_float(by)) : NULL;
        if (grad && !done)
            return tni_failed();
        tni_drop_opt(done);
    }
    return TN_OK;
}

/* After an error the gradients are as they were, for another try. */
static tn_status unscale(const tn_grad_scaler *s, tn_optimizer *o) {
    uint64_t n;
    tni_saved_error saved;
    tn_status status = multiply(o, o->n, 1 / s->factor, &n);
    if (status == TN_OK)
        return TN_OK;
    tni_error_save(&saved);
    multiply(o, n, s->factor, &n);
    tni_error_restore(&saved);
    return status;
}

static progress *progress_of(const tn_grad_scaler *s, const tn_optimizer *o) {
    for (size_t i = 0; i < s->n_done; i++)
        if (s->done[i].optimizer == o)
            return &s->done[i];
    return NULL;
}

static tn_status unscale_once(tn_grad_scaler *s, tn_optimizer *o, const char *call) {
    TNI_TRY(check_grads(call, o));
    if (!tni_reserve(&s->done, s->n_done + 1, &s->capacity, sizeof *s->done))
        return tni_fail_memory("a scaler's list of optimizers");
    progress p = {.optimizer = o};
    bool before = tn_set_grad_enabled(false);
    tn_status status = all_finite(o, &p.finite);
    if (status == TN_OK)
        status = unscale(s, o);
    tn_set_grad_enabled(before);
    if (status != TN_OK)
        return status;
    atomic_fetch_add(&o->refs, 1);
    s->done[s->n_done++] = p;
    return TN_OK;
}

static tn_status check_both(const tn_grad_scaler *s, const tn_optimizer *o, const char *call) {
    TNI_TRY(check_scaler(s, call));
    return o ? TN_OK : tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: the optimizer is NULL", call);
}

tn_status tn_grad_scaler_unscale_(tn_grad_scaler *s, tn_optimizer *o) {
    static const char call[] = "tn_grad_scaler_unscale_";
    TNI_TRY(check_both(s, o, call));
    if (progress_of(s, o))
        return tni_fail(TN_ERR_STATE,
                        "%s: the gradients are unscaled already; tn_grad_scaler_update ends a step",
                        call);
    return unscale_once(s, o, call);
}

/* ---- steps ------------------------------------------------------------------------------- */

tn_status tn_grad_scaler_step(tn_grad_scaler *s, tn_optimizer *o, bool *out_stepped) {
    static const char call[] = "tn_grad_scaler_step";
    if (out_stepped)
        *out_stepped = false;
    TNI_TRY(check_both(s, o, call));
    if (!progress_of(s, o))
        TNI_TRY(unscale_once(s, o, call));
    progress *p = progress_of(s, o);
    if (p->stepped)
        return tni_fail(TN_ERR_STATE,
                        "%s: the optimizer has taken its step; tn_grad_scaler_update comes before "
                        "the next",
                        call);
    if (p->finite)
        TNI_TRY(tn_optimizer_step(o));
    p->stepped = true;
    if (out_stepped)
        *out_stepped = p->finite;
    return TN_OK;
}

tn_status tn_grad_scaler_update(tn_grad_scaler *s) {
    static const char call[] = "tn_grad_scaler_update";
    TNI_TRY(check_scaler(s, call));
    if (s->n_done == 0)
        return tni_fail(TN_ERR_STATE, "%s: no gradients were unscaled since the last one", call);
    bool finite = true;
    for (size_t i = 0; i < s->n_done; i++)
        finite &= s->done[i].finite;
    forget_progress(s);
    s->good_steps = finite ? s->good_steps + 1 : 0;
    double factor = s->factor;
    if (!finite)
        factor *= s->options.backoff_factor;
    else if (s->good_steps >= s->options.growth_interval)
        factor *= s->options.growth_factor;
    if (finite && factor != s->factor)
        s->good_steps = 0;
    if (is_factor(factor))
        s->factor = factor;
    return TN_OK;
}

/* ---- state ------------------------------------------------------------------------------- */

double tn_grad_scaler_factor(const tn_grad_scaler *s) {
    return s ? s->factor : 0;
}

int64_t tn_grad_scaler_good_steps(const tn_grad_scaler *s) {
    return s ? s->good_steps : -1;
}

tn_status tn_grad_scaler_set(tn_grad_scaler *s, double factor, int64_t good_steps) {
    static const char call[] = "tn_grad_scaler_set";
    TNI_TRY(check_scaler(s, call));
    if (!is_factor(factor))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: the factor is %g; it must be above 0, and a number that f32 has", call,
                        factor);
    if (good_steps < 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: good_steps is %lld; it must be at least 0",
                        call, (long long)good_steps);
    s->factor = factor;
    s->good_steps = good_steps;
    return TN_OK;
}
