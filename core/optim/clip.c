/* Clipping of gradients (Pascanu, Mikolov and Bengio, 2013), as torch.nn.utils does it. */
#include "base/alloc.h"
#include "base/error.h"
#include "core/call/temps.h"
#include "core/ops/halves.h"
#include "core/ops/operators.h"

#include <tenon/optim.h>

#include <math.h>

/* The gradients of parameters, those that have one; borrowed. */
typedef struct grads {
    tn_tensor **items;
    uint64_t n;
} grads;

static tn_status not_empty(const char *call, tn_tensor *const *params, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        if (tn_grad(params[i]) && params[i]->view.numel == 0)
            return tni_fail(TN_ERR_SHAPE,
                            "%s: the gradient of parameter %llu has no elements, so there is no "
                            "greatest for norm_type INFINITY; leave the parameter out",
                            call, (unsigned long long)i);
    return TN_OK;
}

static tn_status collect(grads *out, const char *call, tn_tensor *const *params, uint64_t n) {
    *out = (grads){0};
    if (n > 0 && !params)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: params is NULL, and n is %llu", call,
                        (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) {
        if (!params[i] && tn_error_status() != TN_OK)
            return tn_error_status();
        if (tni_not_tensor(params[i]))
            return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: parameter %llu is no tensor", call,
                            (unsigned long long)i);
        if (!tni_is_tensor(params[i], call))
            return tni_failed();
    }
    out->items = n > 0 ? tni_alloc(n * sizeof *out->items) : NULL;
    if (n > 0 && !out->items)
        return tni_fail_memory("a list of gradients");
    for (uint64_t i = 0; i < n; i++) {
        tn_tensor *grad = tn_grad(params[i]);
        if (grad)
            out->items[out->n++] = grad;
    }
    return TN_OK;
}

/* The norm of the norms, on the first's device; owned by the list. Those of several dtypes meet in
 * the one they promote to. */
static tn_tensor *total_norm(tni_temps *temps, const grads *g, double norm_type) {
    const tn_tensor *first = g->n > 0 ? g->items[0] : NULL;
    if (!first)
        return tni_own(temps, tni_zeros(TN_SCALAR_SHAPE, TN_F32, tn_no_device()));
    tn_dtype dtype = first->view.dtype;
    for (uint64_t i = 1; i < g->n; i++)
        dtype = tn_promote(dtype, g->items[i]->view.dtype);
    tn_tensor **norms = tni_alloc(g->n * sizeof *norms), *total = NULL;
    if (!norms)
        return tni_fail_memory_null("norms of gradients");
    bool all = true;
    for (uint64_t i = 0; i < g->n && all; i++) {
        tn_tensor *norm = tni_own(temps, tni_norm_scalaropt_dim(g->items[i], tn_float(norm_type),
                                                                TN_SCALAR_SHAPE, false));
        norm = norm ? tni_as_dtype(temps, norm, dtype) : NULL;
        if (norm && norm->device != first->device)
            norm = tni_own(temps, tni_to_device(norm, tn_device_of(first)));
        norms[i] = norm;
        all = norm != NULL;
    }
    if (all && g->n == 1)
        total = norms[0];
    else if (all)
        total = tni_own(temps, tni_norm_scalaropt_dim(tni_own(temps, tni_stack(norms, g->n, 0)),
                                                      tn_float(norm_type), TN_SCALAR_SHAPE, false));
    tni_free(norms);
    return total;
}

/* gradient *= min(max_norm / (total + 1e-6), 1); always, so that nothing is read from the device. */
static tn_status scale(tni_temps *temps, const grads *g, tn_tensor *total, double max_norm) {
    tn_tensor *above = tni_own(temps, tni_add_scalar(total, tn_float(1e-6), tn_int(1)));
    tn_tensor *factor = tni_own(temps, tni_reciprocal(above));
    factor = tni_own(temps, tni_mul_scalar(factor, tn_float(max_norm)));
    factor = tni_own(temps, tni_clamp_max(factor, tn_float(1)));
    if (!factor)
        return tni_failed();
    tn_tensor *here = factor; /* on the device and in the dtype of the gradient before */
    for (uint64_t i = 0; i < g->n; i++) {
        tn_tensor *grad = g->items[i];
        if (here->device != grad->device || here->view.dtype != grad->view.dtype) {
            here = tni_own(temps, tni_to_dtype(factor, grad->view.dtype));
            if (here && here->device != grad->device)
                here = tni_own(temps, tni_to_device(here, tn_device_of(grad)));
        }
        if (!here || !tni_own(temps, tni_mul_(grad, here)))
            return tni_failed();
    }
    return TN_OK;
}

static tn_status check_finite(const char *call, tn_tensor *total, double norm_type) {
    double value;
    tn_status status = tn_item(total, &value);
    if (status == TN_OK && !isfinite(value))
        status = tni_fail(TN_ERR_INVALID_ARGUMENT,
                          "%s: the %g-norm of the gradients is %g; nothing was scaled, give "
                          "error_if_nonfinite = false to scale all the same",
                          call, norm_type, value);
    return status;
}

tn_status tn_clip_grad_norm_(tn_tensor *const *params, uint64_t n, double max_norm,
                             double norm_type, bool error_if_nonfinite,
                             tn_tensor **out_total_norm) {
    static const char call[] = "tn_clip_grad_norm_";
    if (out_total_norm)
        *out_total_norm = NULL;
    if (!(max_norm >= 0))
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: max_norm is %g; it must be at least 0", call,
                        max_norm);
    if (norm_type != 1 && norm_type != 2 && norm_type != INFINITY)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: norm_type is %g; it must be 1, 2 or INFINITY",
                        call, norm_type);
    grads g;
    tn_status status = collect(&g, call, params, n);
    if (status == TN_OK && norm_type == INFINITY)
        status = not_empty(call, params, n);
    if (status != TN_OK) {
        tni_free(g.items);
        return status;
    }
    tni_temps tmp = {0};
    bool before = tn_set_grad_enabled(false);
    tn_tensor *total = total_norm(&tmp, &g, norm_type);
    status = total ? TN_OK : tni_failed();
    if (status == TN_OK && error_if_nonfinite)
        status = check_finite(call, total, norm_type);
    if (status == TN_OK)
        status = scale(&tmp, &g, total, max_norm);
    if (status == TN_OK && out_total_norm) {
        *out_total_norm = tni_scope_push(tni_keep(total));
        status = *out_total_norm ? TN_OK : tni_failed();
    }
    tn_set_grad_enabled(before);
    tni_temps_finish(&tmp);
    tni_free(g.items);
    return status;
}

tn_status tn_clip_grad_value_(tn_tensor *const *params, uint64_t n, double clip_value) {
    static const char call[] = "tn_clip_grad_value_";
    if (!(clip_value >= 0))
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: clip_value is %g; it must be at least 0",
                        call, clip_value);
    grads g;
    tn_status status = collect(&g, call, params, n);
    bool before = tn_set_grad_enabled(false);
    for (uint64_t i = 0; i < g.n && status == TN_OK; i++) {
        tn_tensor *clamped = tni_clamp_(g.items[i], tn_float(-clip_value), tn_float(clip_value));
        status = clamped ? TN_OK : tni_failed();
        tni_drop(clamped);
    }
    tn_set_grad_enabled(before);
    tni_free(g.items);
    return status;
}
