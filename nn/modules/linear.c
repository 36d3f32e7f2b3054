/* A linear layer. */
#include "nn/modules/module.h"

#include <inttypes.h>

tn_status tn_nn_linear_init(tn_nn_linear *m, const tn_nn_linear_options *o, tn_device device,
                            tn_dtype dtype) {
    if (!m || !o)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_nn_linear_init: m or options is NULL");
    *m = (tn_nn_linear){0};
    if (o->in_features < 1 || o->out_features < 1)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "tn_nn_linear_init: in_features is %" PRId64 " and out_features %" PRId64
                       "; each must be at least 1",
                       o->in_features, o->out_features);
    m->module.training = true;
    m->in_features = o->in_features;
    m->out_features = o->out_features;
    double bound = tnn_fan_in_bound((double)o->in_features);
    m->weight = tnn_uniform(TN_SHAPE(o->out_features, o->in_features), bound, device, dtype);
    if (m->weight && !o->no_bias)
        m->bias = tnn_uniform(TN_SHAPE(o->out_features), bound, device, dtype);
    if (m->weight && (m->bias || o->no_bias))
        return TN_OK;
    tn_nn_linear_finish(m);
    return tn_error_status();
}

tn_tensor *tn_nn_linear_forward(const tn_nn_linear *m, tn_tensor *x) {
    if (!TNN_READY("tn_nn_linear_forward", m, m->weight, x))
        return NULL;
    if (tn_rank(x) < 1 || tn_size(x, -1) != m->in_features) {
        tn_fail(TN_ERR_SHAPE,
                "tn_nn_linear_forward: %s: the input is %s; its last size must be %" PRId64
                ", in_features",
                tnn_name(&m->module), tnn_shape(x).text, m->in_features);
        return NULL;
    }
    bool clear = tnn_error_is_clear();
    return tnn_named(&m->module, clear, tn_linear(x, m->weight, m->bias ? m->bias : TN_NONE));
}

void tn_nn_linear_visit(tn_nn_linear *m, const char *name, tn_nn_visitor *v) {
    if (!tnn_enter_module(v, name, m ? &m->module : NULL))
        return;
    tn_nn_visit_parameter(v, "weight", &m->weight);
    tn_nn_visit_parameter(v, "bias", &m->bias);
    tn_nn_leave(v);
}

void tn_nn_linear_finish(tn_nn_linear *m) {
    TNN_FINISH(tn_nn_linear_visit, m);
}
