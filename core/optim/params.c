/* See params.h. */
#include "core/optim/params.h"
#include "base/alloc.h"

#include <math.h>

static tn_status check(const char *call, tn_tensor *const *tensors, uint64_t i) {
    const tn_tensor *t = tensors[i];
    unsigned long long number = i;
    if (!t && tn_error_status() != TN_OK)
        return tn_error_status();
    if (!t || t == TN_NONE)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: parameter %llu is no tensor", call, number);
    if (!tni_is_float(t->view.dtype))
        return tni_fail(TN_ERR_DTYPE, "%s: parameter %llu is %s; parameters are of floating dtypes",
                        call, number, tn_dtype_name(t->view.dtype));
    if (!tn_is_leaf(t))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: parameter %llu was made by %s; only leaves can be optimized, give the "
                        "tensors it was made from, or a tn_detach of it",
                        call, number, tn_grad_fn_name(t));
    for (uint64_t k = 0; k < i; k++)
        if (tensors[k] == t)
            return tni_fail(TN_ERR_INVALID_ARGUMENT,
                            "%s: parameters %llu and %llu are the same tensor; each is given once",
                            call, (unsigned long long)k, number);
    return TN_OK;
}

tn_status tni_params_init(tni_params *p, const char *call, tn_tensor *const *tensors, uint64_t n,
                          size_t state_bytes) {
    *p = (tni_params){.state_bytes = state_bytes};
    if (n == 0 || !tensors)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: there are no parameters", call);
    for (uint64_t i = 0; i < n; i++) {
        tn_status status = check(call, tensors, i);
        if (status != TN_OK)
            return status;
    }
    p->items = tni_alloc(n * sizeof *p->items);
    if (!p->items)
        return tni_fail_memory("an optimizer's list of parameters");
    for (; p->n < n; p->n++)
        p->items[p->n] = tni_keep(tensors[p->n]);
    p->states = tni_calloc(n, state_bytes);
    return p->states ? TN_OK : tni_fail_memory("an optimizer's state");
}

void tni_params_finish(tni_params *p) {
    for (uint64_t i = 0; i < p->n; i++)
        tni_drop(p->items[i]);
    tni_free(p->items);
    tni_free(p->states);
    *p = (tni_params){0};
}

tn_status tni_params_step(const tni_params *p, tni_step_fn step, const void *options) {
    tn_status status = TN_OK;
    bool before = tn_set_grad_enabled(false);
    for (uint64_t i = 0; i < p->n && status == TN_OK; i++) {
        tn_tensor *grad = tn_grad(p->items[i]);
        if (grad)
            status = step(options, p->items[i], grad, (char *)p->states + i * p->state_bytes);
    }
    tn_set_grad_enabled(before);
    return status;
}

void tni_params_zero_grad(tni_params *p) {
    for (uint64_t i = 0; i < p->n; i++)
        tn_set_grad(p->items[i], NULL); /* removing cannot fail */
}

tn_status tni_option_at_least_zero(const char *call, const char *name, double value) {
    if (value >= 0 && isfinite(value))
        return TN_OK;
    return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: %s is %g; it must be at least 0", call, name,
                    value);
}

tn_status tni_check_state(const char *call, const char *name, const tn_tensor *param,
                          const tn_tensor *state) {
    if (state != TN_NONE && tni_same_shape(state, param) &&
        state->view.dtype == param->view.dtype && state->device == param->device)
        return TN_OK;
    char text[TNI_SHAPE_TEXT];
    return tni_fail(TN_ERR_SHAPE, "%s: %s must be like its parameter: %s, shape %s, on %s", call,
                    name, tn_dtype_name(param->view.dtype),
                    tni_shape_text(param->view.rank, param->sizes, text), param->device->name);
}
