/* Batch norm, with running statistics. */
#include "nn/modules/module.h"

#include <inttypes.h>

static tn_tensor *make_buffer(tn_ints shape, tn_scalar value, tn_device device, tn_dtype dtype) {
    TN_SCOPE;
    return tn_keep(tn_full(shape, value, dtype, device));
}

/* Everything that the options ask for; false with an error. */
static bool make_tensors(tn_nn_batch_norm *m, const tn_nn_batch_norm_options *o, tn_device device,
                         tn_dtype dtype) {
    tn_ints shape = TN_SHAPE(o->num_features);
    if (!o->no_affine && (!(m->weight = tnn_constant(shape, 1, device, dtype)) ||
                          !(m->bias = tnn_constant(shape, 0, device, dtype))))
        return false;
    return o->no_running_stats ||
           ((m->running_mean = make_buffer(shape, tn_float(0), device, dtype)) &&
            (m->running_var = make_buffer(shape, tn_float(1), device, dtype)) &&
            (m->num_batches_tracked = make_buffer(TN_SCALAR_SHAPE, tn_int(0), device, TN_I64)));
}

tn_status tn_nn_batch_norm_init(tn_nn_batch_norm *m, const tn_nn_batch_norm_options *o,
                                tn_device device, tn_dtype dtype) {
    if (!m || !o)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_nn_batch_norm_init: m or options is NULL");
    *m = (tn_nn_batch_norm){0};
    if (o->num_features < 1)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "tn_nn_batch_norm_init: num_features is %" PRId64 "; it must be at least 1",
                       o->num_features);
    m->module.training = true;
    m->num_features = o->num_features;
    m->eps = o->eps > 0 ? o->eps : 1e-5;
    m->momentum = o->momentum > 0 ? o->momentum : 0.1;
    if (make_tensors(m, o, device, dtype))
        return TN_OK;
    tn_nn_batch_norm_finish(m);
    return tn_error_status();
}

/* One more batch; false with an error. */
static bool count_batch(const tn_nn_batch_norm *m) {
    TN_SCOPE;
    TN_NO_GRAD;
    return !m->module.training || !m->num_batches_tracked ||
           tn_add_scalar_(m->num_batches_tracked, tn_int(1));
}

static tn_tensor *or_none(tn_tensor *t) {
    return t ? t : TN_NONE;
}

tn_tensor *tn_nn_batch_norm_forward(tn_nn_batch_norm *m, tn_tensor *x) {
    if (!TNN_READY("tn_nn_batch_norm_forward", m, m->num_features > 0, x))
        return NULL;
    if (tn_rank(x) < 2 || tn_size(x, 1) != m->num_features) {
        tn_fail(TN_ERR_SHAPE,
                "tn_nn_batch_norm_forward: %s: the input is %s; it must be [N, %" PRId64
                ", ...], of num_features",
                tnn_name(&m->module), tnn_shape(x).text, m->num_features);
        return NULL;
    }
    bool clear = tnn_error_is_clear();
    tn_tensor *y = tn_batch_norm(x, or_none(m->weight), or_none(m->bias), or_none(m->running_mean),
                                 or_none(m->running_var), m->module.training || !m->running_mean,
                                 m->momentum, m->eps);
    if (y && !count_batch(m))
        y = NULL;
    return tnn_named(&m->module, clear, y);
}

void tn_nn_batch_norm_visit(tn_nn_batch_norm *m, const char *name, tn_nn_visitor *v) {
    if (!tnn_enter_module(v, name, m ? &m->module : NULL))
        return;
    tn_nn_visit_parameter(v, "weight", &m->weight);
    tn_nn_visit_parameter(v, "bias", &m->bias);
    tn_nn_visit_buffer(v, "running_mean", &m->running_mean);
    tn_nn_visit_buffer(v, "running_var", &m->running_var);
    tn_nn_visit_buffer(v, "num_batches_tracked", &m->num_batches_tracked);
    tn_nn_leave(v);
}

void tn_nn_batch_norm_finish(tn_nn_batch_norm *m) {
    TNN_FINISH(tn_nn_batch_norm_visit, m);
}
