/* The state of an optimizer, to be saved and put back. */
#include "core/optim/optimizer.h"

#include <string.h>

uint64_t tn_optimizer_n_states(const tn_optimizer *o) {
    return o ? o->n_states : 0;
}

const char *tn_optimizer_state_name(const tn_optimizer *o, uint64_t k) {
    if (o && k < o->n_states)
        return o->names[k];
    tni_fail(TN_ERR_INVALID_ARGUMENT,
             "tn_optimizer_state_name: no tensor %llu; the optimizer has %u for each parameter",
             (unsigned long long)k, o ? o->n_states : 0);
    return NULL;
}

static tni_param_state *state_of(const char *call, const tn_optimizer *o, uint64_t i) {
    if (o && i < o->n)
        return &o->states[i];
    if (!o)
        tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: the optimizer is NULL", call);
    else
        tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: no parameter %llu; the optimizer has %llu", call,
                 (unsigned long long)i, (unsigned long long)o->n);
    return NULL;
}

/* Where the tensor of that name stands, or NULL with an error. */
static tn_tensor **place_of(const char *call, const tn_optimizer *o, uint64_t i, const char *name) {
    tni_param_state *state = state_of(call, o, i);
    if (!state)
        return NULL;
    for (uint32_t k = 0; name && k < o->n_states; k++)
        if (strcmp(name, o->names[k]) == 0)
            return &state->tensors[k];
    const char *const *names = o->names;
    tni_fail(TN_ERR_NOT_FOUND, "%s: no state '%s'; this optimizer has %s%s%s%s%s", call,
             name ? name : "NULL", o->n_states ? names[0] : "none", o->n_states > 1 ? ", " : "",
             o->n_states > 1 ? names[1] : "", o->n_states > 2 ? ", " : "",
             o->n_states > 2 ? names[2] : "");
    return NULL;
}

tn_tensor *tn_optimizer_state(const tn_optimizer *o, uint64_t i, const char *name) {
    tn_tensor **place = place_of("tn_optimizer_state", o, i, name);
    return place ? *place : NULL;
}

/* It must look like its parameter. */
static tn_status check(const char *name, const tn_tensor *param, const tn_tensor *state) {
    static const char call[] = "tn_optimizer_set_state";
    if (tni_is_given_gone(state, call))
        return tni_failed();
    if (state != TN_NONE && tni_same_shape(state, param) &&
        state->view.dtype == param->view.dtype && state->device == param->device)
        return TN_OK;
    return tni_fail(TN_ERR_SHAPE, "%s: %s must be like its parameter: %s, shape %s, on %s", call,
                    name, tn_dtype_name(param->view.dtype), TNI_SHAPE_OF(param),
                    param->device->name);
}

tn_status tn_optimizer_set_state(tn_optimizer *o, uint64_t i, const char *name, tn_tensor *state) {
    tn_tensor **place = place_of("tn_optimizer_set_state", o, i, name);
    if (!place)
        return tni_failed();
    tn_status status = state ? check(name, o->params[i], state) : TN_OK;
    if (status == TN_OK) {
        tn_tensor *before = *place;
        *place = tni_keep_opt(state);
        tni_drop(before);
    }
    return status;
}

int64_t tn_optimizer_steps(const tn_optimizer *o, uint64_t i) {
    const tni_param_state *state = state_of("tn_optimizer_steps", o, i);
    return state ? state->steps : -1;
}

tn_status tn_optimizer_set_steps(tn_optimizer *o, uint64_t i, int64_t steps) {
    tni_param_state *state = state_of("tn_optimizer_set_steps", o, i);
    if (!state)
        return tni_failed();
    if (steps < 0 || steps == INT64_MAX)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_optimizer_set_steps: steps is %lld; it counts from 0",
                        (long long)steps);
    state->steps = steps;
    return TN_OK;
}
