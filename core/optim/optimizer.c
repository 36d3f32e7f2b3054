/* See optimizer.h. */
#include "core/optim/optimizer.h"
#include "base/alloc.h"

#include <math.h>
#include <string.h>

/* ---- creation ---------------------------------------------------------------------------- */

static tn_status check(const char *call, tn_tensor *const *tensors, uint64_t i) {
    const tn_tensor *t = tensors[i];
    unsigned long long number = i;
    if (!t && tn_error_status() != TN_OK)
        return tn_error_status();
    if (tni_not_tensor(t))
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: parameter %llu is no tensor", call, number);
    if (!tni_is_tensor(t, call))
        return tni_failed();
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

static tn_status init(tn_optimizer *o, const char *call, tn_tensor *const *params, uint64_t n) {
    if (n == 0 || !params)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: there are no parameters", call);
    for (uint64_t i = 0; i < n; i++) {
        TNI_TRY(check(call, params, i));
    }
    o->params = tni_alloc(n * sizeof *o->params);
    o->states = tni_calloc(n, sizeof *o->states);
    if (!o->params || !o->states)
        return tni_fail_memory("an optimizer's list of parameters");
    for (; o->n < n; o->n++)
        o->params[o->n] = tni_keep(params[o->n]);
    return TN_OK;
}

tn_optimizer *tni_optimizer_create(const char *call, const tni_algorithm *algorithm,
                                   tn_tensor *const *params, uint64_t n, const void *options,
                                   size_t size) {
    tn_optimizer *o = tni_calloc(1, sizeof *o);
    if (!o)
        return tni_fail_memory_null("an optimizer");
    o->algorithm = algorithm;
    o->refs = 1;
    memcpy(&o->options, options, size);
    o->lr = o->options.any.lr;
    if (init(o, call, params, n) == TN_OK)
        return o;
    tn_optimizer_destroy(o);
    return NULL;
}

void tni_states_drop(const tn_optimizer *o, tni_param_state *state) {
    for (uint32_t k = 0; k < o->n_states; k++) {
        tni_drop(state->tensors[k]);
        state->tensors[k] = NULL;
    }
}

void tn_optimizer_destroy(tn_optimizer *o) {
    if (!o || atomic_fetch_sub(&o->refs, 1) != 1)
        return;
    for (uint64_t i = 0; i < o->n; i++) {
        tni_states_drop(o, &o->states[i]);
        tni_drop(o->params[i]);
    }
    tni_free(o->params);
    tni_free(o->states);
    tni_free(o);
}

/* ---- options ----------------------------------------------------------------------------- */

tn_status tni_option_at_least_zero(const char *call, const char *name, double value) {
    if (value >= 0 && isfinite(value))
        return TN_OK;
    return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: %s is %g; it must be at least 0, and finite",
                    call, name, value);
}

static tn_status check_option(const char *call, const tni_option *option, const char *at) {
    double value;
    if (option->range == TNI_OPTION_ANY)
        return TN_OK;
    memcpy(&value, at, sizeof value);
    if (option->range == TNI_OPTION_BETA && !(value >= 0 && value < 1))
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: %s is %g; it must be in [0, 1)", call,
                        option->name, value);
    if (option->range == TNI_OPTION_SHARE && value > 1)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: %s is %g; it must be at most 1", call,
                        option->name, value);
    return tni_option_at_least_zero(call, option->name, value);
}

tn_status tni_options_read(const char *call, const tni_option *table, const void *given,
                           void *out) {
    uint64_t there = given ? *(const uint64_t *)given : 0; /* struct_size */
    tn_status status = TN_OK;
    for (const tni_option *o = table; o->name; o++)
        if (there >= o->offset + o->size)
            memcpy((char *)out + o->offset, (const char *)given + o->offset, o->size);
    for (const tni_option *o = table; o->name && status == TN_OK; o++)
        status = check_option(call, o, (const char *)out + o->offset);
    return status;
}

/* ---- steps ------------------------------------------------------------------------------- */

/* Zeros, or what the state begins with, like the parameter. Beside a capture: replays must not
 * write them again. */
static tn_tensor *new_state(const tn_optimizer *o, tn_tensor *param) {
    tni_capture_pause pause;
    bool captures = tni_capturing;
    if (captures && tni_capture_leave(&pause) != TN_OK)
        return NULL;
    tn_tensor *made =
        o->initial == 0 ? tni_zeros_like(param, TN_DTYPE_NONE, tn_no_device())
                        : tni_full_like(param, tn_float(o->initial), TN_DTYPE_NONE, tn_no_device());
    if (captures)
        tni_capture_enter(&pause);
    return made;
}

tn_status tni_states_ready(tn_optimizer *o, uint64_t i, bool *out_made) {
    tni_param_state *state = &o->states[i];
    uint32_t there = 0;
    const char *missing = NULL;
    for (uint32_t k = 0; k < o->n_states; k++) {
        there += state->tensors[k] != NULL;
        missing = state->tensors[k] ? missing : o->names[k];
    }
    *out_made = false;
    if (there == o->n_states)
        return TN_OK;
    if (there > 0 || state->steps > 0)
        return tni_fail(TN_ERR_STATE,
                        "tn_optimizer_step: parameter %llu has taken %lld steps and has %u of its "
                        "%u tensors of state; put '%s' back with tn_optimizer_set_state",
                        (unsigned long long)i, (long long)state->steps, there, o->n_states,
                        missing);
    for (uint32_t k = 0; k < o->n_states; k++) {
        state->tensors[k] = new_state(o, o->params[i]);
        if (!state->tensors[k]) {
            tni_states_drop(o, state);
            return tni_failed();
        }
    }
    *out_made = true;
    return TN_OK;
}

static tn_status step_one(tn_optimizer *o, uint64_t i, tn_tensor *grad) {
    tni_param_state *state = &o->states[i];
    tni_param_step step = {
        .param = o->params[i], .grad = grad, .states = state->tensors, .number = state->steps + 1};
    TNI_TRY(tni_states_ready(o, i, &step.is_first));
    o->algorithm->factors(o, step.number, step.now);
    tn_status status = o->algorithm->update(o, &step);
    if (status == TN_OK)
        state->steps++;
    else if (step.is_first)
        tni_states_drop(o, state);
    return status;
}

tn_status tn_optimizer_step(tn_optimizer *o) {
    if (!o)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_optimizer_step: the optimizer is NULL");
    if (tni_capturing)
        return tni_optimizer_capture(o);
    tn_status status = TN_OK;
    bool before = tn_set_grad_enabled(false);
    for (uint64_t i = 0; i < o->n && status == TN_OK; i++) {
        tn_tensor *grad = tn_grad(o->params[i]);
        if (grad)
            status = step_one(o, i, grad);
    }
    tn_set_grad_enabled(before);
    return status;
}

tni_factor tni_step_factor(tni_temps *temps, const tni_param_step *step, int64_t i) {
    return step->later ? tni_factor_later(temps, step->later, i)
                       : (tni_factor){.now = step->now[i]};
}

void tni_step_begin(tni_update *u, tni_temps *temps, const tn_optimizer *o,
                    const tni_param_step *step) {
    tn_tensor *given[TNI_UPDATE_TENSORS] = {step->param, step->grad};
    for (uint32_t k = 0; k < o->n_states; k++)
        given[2 + k] = step->states[k];
    tni_update_begin(u, temps, given, 2 + o->n_states);
}

tn_status tn_optimizer_zero_grad(tn_optimizer *o) {
    if (!o)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_optimizer_zero_grad: the optimizer is NULL");
    for (uint64_t i = 0; i < o->n; i++)
        tn_set_grad(o->params[i], NULL); /* removing cannot fail */
    return TN_OK;
}

double tn_optimizer_lr(const tn_optimizer *o) {
    return o ? o->lr : 0;
}

tn_status tn_optimizer_set_lr(tn_optimizer *o, double lr) {
    if (!o)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_optimizer_set_lr: the optimizer is NULL");
    if (isnan(lr) && tn_error_status() != TN_OK) /* of a schedule, which says more */
        return tn_error_status();
    tn_status status = tni_option_at_least_zero("tn_optimizer_set_lr", "lr", lr);
    if (status == TN_OK)
        o->lr = lr;
    return status;
}
