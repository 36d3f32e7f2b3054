/* Dropout, by the module's mode. */
#include "nn/modules/module.h"

tn_status tn_nn_dropout_init(tn_nn_dropout *m, const tn_nn_dropout_options *o) {
    if (!m || !o)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_nn_dropout_init: m or options is NULL");
    *m = (tn_nn_dropout){0};
    if (!(o->p >= 0 && o->p <= 1))
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_nn_dropout_init: p is %g; it must be in [0, 1]",
                       o->p);
    m->module.training = true;
    m->p = o->p;
    return TN_OK;
}

tn_tensor *tn_nn_dropout_forward(const tn_nn_dropout *m, tn_tensor *x) {
    if (!TNN_READY("tn_nn_dropout_forward", m, true, x))
        return NULL;
    bool clear = tnn_error_is_clear();
    return m->p > 0 ? tnn_named(&m->module, clear, tn_dropout(x, m->p, m->module.training)) : x;
}

void tn_nn_dropout_visit(tn_nn_dropout *m, const char *name, tn_nn_visitor *v) {
    if (!tnn_enter_module(v, name, m ? &m->module : NULL))
        return;
    tn_nn_leave(v);
}

void tn_nn_dropout_finish(tn_nn_dropout *m) {
    TNN_FINISH(tn_nn_dropout_visit, m);
}
