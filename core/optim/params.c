/* See params.h. */
#include "core/optim/params.h"
#include "base/alloc.h"

#include <math.h>

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

tn_status tni_params_step(const tni_params *p, tni_step_fn step, void *optimizer) {
    tn_status status = TN_OK;
    bool before = tn_set_grad_enabled(false);
    for (uint64_t i = 0; i < p->n && status == TN_OK; i++) {
        tn_tensor *grad = tn_grad(p->items[i]);
        if (grad)
            status = step(optimizer, p->items[i], grad, (char *)p->states + i * p->state_bytes);
    }
    tn_set_grad_enabled(before);
    return status;
}

/* ---- captured ---------------------------------------------------------------------------- */

static void captured_destroy(tni_graph_source *source) {
    tni_captured_step *s = (tni_captured_step *)source;
    s->drop(s->optimizer);
    tni_free(s);
}

tn_status tni_params_capture(const tni_params *p, tni_step_fn step, void *optimizer,
                             void (*drop)(void *optimizer), const tni_graph_source *source,
                             tni_captured_step **place) {
    tni_captured_step *s = tni_calloc(1, sizeof *s + p->n * sizeof s->items[0]);
    if (!s) {
        drop(optimizer);
        return tni_fail_memory("a captured step of an optimizer");
    }
    s->source = *source;
    s->source.destroy = captured_destroy;
    s->optimizer = optimizer;
    s->drop = drop;
    tni_graph_add_source(tni_capturing, &s->source);
    *place = s;
    tn_status status = tni_params_step(p, step, optimizer);
    *place = NULL;
    return status;
}

tn_tensor *tni_captured_values(tni_captured_step *s, const tn_tensor *param, void *state,
                               int64_t n) {
    tni_captured_item *item = &s->items[s->n];
    *item = (tni_captured_item){.state = state, .is_f64 = param->view.dtype == TN_F64, .ahead = 1};
    for (tni_graph_source *before = s->source.next; before; before = before->next)
        for (uint64_t i = 0; before->fill == s->source.fill && i < ((tni_captured_step *)before)->n;
             i++)
            item->ahead += ((tni_captured_step *)before)->items[i].state == state;
    tn_tensor *values =
        tni_graph_values(tni_capturing, item->is_f64 ? TN_F64 : TN_F32, n, &item->host);
    s->n += values != NULL;
    return values;
}

void tni_captured_write(const tni_captured_item *item, const double *values, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (item->is_f64)
            ((double *)item->host)[i] = values[i];
        else
            ((float *)item->host)[i] = (float)values[i];
    }
}

tn_tensor *tni_captured_zeros(tn_tensor *param) {
    tni_capture_pause pause;
    tn_tensor *zeros = NULL;
    if (tni_capture_leave(&pause) == TN_OK) {
        zeros = tni_zeros_like(param, TN_DTYPE_NONE, tn_no_device());
        tni_capture_enter(&pause);
    }
    return zeros;
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
    if (tni_is_given_gone(state, call))
        return tni_failed();
    if (state != TN_NONE && tni_same_shape(state, param) &&
        state->view.dtype == param->view.dtype && state->device == param->device)
        return TN_OK;
    char text[TNI_SHAPE_TEXT];
    return tni_fail(TN_ERR_SHAPE, "%s: %s must be like its parameter: %s, shape %s, on %s", call,
                    name, tn_dtype_name(param->view.dtype),
                    tni_shape_text(param->view.rank, param->sizes, text), param->device->name);
}
