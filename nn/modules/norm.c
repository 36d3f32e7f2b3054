/* Norms over the last dimensions: layer norm and root mean square norm. */
#include "nn/modules/module.h"

#include <inttypes.h>

/* Copies the shape; its sizes must be at least 1. */
static tn_status read_shape(const char *call, tn_ints shape, int64_t *out, int64_t *out_n) {
    if (shape.n < 1 || shape.n > TN_MAX_RANK || !shape.data)
        return tn_fail(
            TN_ERR_INVALID_ARGUMENT,
            "%s: normalized_shape has %" PRId64
            " sizes; give those of the last dimensions, 1 to %d of them, as TN_SHAPE(512)",
            call, shape.n, TN_MAX_RANK);
    for (int64_t i = 0; i < shape.n; i++) {
        if (shape.data[i] < 1)
            return tn_fail(TN_ERR_INVALID_ARGUMENT,
                           "%s: size %" PRId64 " of normalized_shape is %" PRId64
                           "; it must be at least 1",
                           call, i, shape.data[i]);
        out[i] = shape.data[i];
    }
    *out_n = shape.n;
    return TN_OK;
}

/* Does x end in the shape? */
static bool check_input(const char *call, const tn_nn_module *module, const tn_tensor *x,
                        const int64_t *shape, int64_t n) {
    bool fits = tn_rank(x) >= n;
    for (int64_t i = 0; i < n && fits; i++)
        fits = tn_size(x, i - n) == shape[i];
    if (!fits)
        tn_fail(TN_ERR_SHAPE,
                "%s: %s: the input is %s; its last %" PRId64
                " sizes must be normalized_shape, whose last is %" PRId64,
                call, tnn_name(module), tnn_shape(x).text, n, shape[n - 1]);
    return fits;
}

/* ---- layer norm -------------------------------------------------------------------------- */

tn_status tn_nn_layer_norm_init(tn_nn_layer_norm *m, const tn_nn_layer_norm_options *o,
                                tn_device device, tn_dtype dtype) {
    if (!m || !o)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_nn_layer_norm_init: m or options is NULL");
    *m = (tn_nn_layer_norm){0};
    tn_status status =
        read_shape("tn_nn_layer_norm_init", o->normalized_shape, m->normalized_shape, &m->n_dims);
    if (status != TN_OK)
        return status;
    m->module.training = true;
    m->eps = o->eps > 0 ? o->eps : 1e-5;
    if (o->no_affine)
        return TN_OK;
    tn_ints shape = tn_ints_of(m->normalized_shape, m->n_dims);
    m->weight = tnn_constant(shape, 1, device, dtype);
    if (m->weight && !o->no_bias)
        m->bias = tnn_constant(shape, 0, device, dtype);
    if (m->weight && (m->bias || o->no_bias))
        return TN_OK;
    tn_nn_layer_norm_finish(m);
    return tn_error_status();
}

tn_tensor *tn_nn_layer_norm_forward(const tn_nn_layer_norm *m, tn_tensor *x) {
    static const char call[] = "tn_nn_layer_norm_forward";
    if (!TNN_READY(call, m, m->n_dims > 0, x) ||
        !check_input(call, &m->module, x, m->normalized_shape, m->n_dims))
        return NULL;
    bool clear = tnn_error_is_clear();
    return tnn_named(&m->module, clear,
                     tn_layer_norm(x, tn_ints_of(m->normalized_shape, m->n_dims),
                                   m->weight ? m->weight : TN_NONE, m->bias ? m->bias : TN_NONE,
                                   m->eps));
}

void tn_nn_layer_norm_visit(tn_nn_layer_norm *m, const char *name, tn_nn_visitor *v) {
    if (!tnn_enter_module(v, name, m ? &m->module : NULL))
        return;
    tn_nn_visit_parameter(v, "weight", &m->weight);
    tn_nn_visit_parameter(v, "bias", &m->bias);
    tn_nn_leave(v);
}

void tn_nn_layer_norm_finish(tn_nn_layer_norm *m) {
    TNN_FINISH(tn_nn_layer_norm_visit, m);
}

/* ---- root mean square norm --------------------------------------------------------------- */

tn_status tn_nn_rms_norm_init(tn_nn_rms_norm *m, const tn_nn_rms_norm_options *o, tn_device device,
                              tn_dtype dtype) {
    if (!m || !o)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_nn_rms_norm_init: m or options is NULL");
    *m = (tn_nn_rms_norm){0};
    tn_status status =
        read_shape("tn_nn_rms_norm_init", o->normalized_shape, m->normalized_shape, &m->n_dims);
    if (status != TN_OK)
        return status;
    m->module.training = true;
    m->eps = o->eps;
    if (o->no_affine)
        return TN_OK;
    m->weight = tnn_constant(tn_ints_of(m->normalized_shape, m->n_dims), 1, device, dtype);
    if (m->weight)
        return TN_OK;
    tn_nn_rms_norm_finish(m);
    return tn_error_status();
}

tn_tensor *tn_nn_rms_norm_forward(const tn_nn_rms_norm *m, tn_tensor *x) {
    static const char call[] = "tn_nn_rms_norm_forward";
    if (!TNN_READY(call, m, m->n_dims > 0, x) ||
        !check_input(call, &m->module, x, m->normalized_shape, m->n_dims))
        return NULL;
    bool clear = tnn_error_is_clear();
    return tnn_named(&m->module, clear,
                     tn_rms_norm(x, tn_ints_of(m->normalized_shape, m->n_dims),
                                 m->weight ? m->weight : TN_NONE,
                                 m->eps > 0 ? tn_float(m->eps) : tn_no_scalar()));
}

void tn_nn_rms_norm_visit(tn_nn_rms_norm *m, const char *name, tn_nn_visitor *v) {
    if (!tnn_enter_module(v, name, m ? &m->module : NULL))
        return;
    tn_nn_visit_parameter(v, "weight", &m->weight);
    tn_nn_leave(v);
}

void tn_nn_rms_norm_finish(tn_nn_rms_norm *m) {
    TNN_FINISH(tn_nn_rms_norm_visit, m);
}
