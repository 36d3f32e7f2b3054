/* Multi-head attention: projections into the heads and out of them. */
#include "nn/modules/attention.h"
#include "nn/modules/module.h"

#include <inttypes.h>
#include <math.h>

static bool make_tensors(tn_nn_multihead_attention *m, const tn_nn_multihead_attention_options *o,
                         tn_device device, tn_dtype dtype) {
    int64_t e = o->embed_dim;
    /* Glorot's bound, of the three projections as one matrix: fan_in e, fan_out 3 e. */
    m->in_proj_weight =
        tnn_uniform(TN_SHAPE(3 * e, e), sqrt(6.0 / (4.0 * (double)e)), device, dtype);
    if (!m->in_proj_weight)
        return false;
    tn_nn_linear_options out = {.in_features = e, .out_features = e, .no_bias = o->no_bias};
    if (tn_nn_linear_init(&m->out_proj, &out, device, dtype) != TN_OK)
        return false;
    if (o->no_bias)
        return true;
    tn_drop(m->out_proj.bias);
    m->out_proj.bias = tnn_constant(TN_SHAPE(e), 0, device, dtype);
    m->in_proj_bias = tnn_constant(TN_SHAPE(3 * e), 0, device, dtype);
    return m->out_proj.bias && m->in_proj_bias;
}

tn_status tn_nn_multihead_attention_init(tn_nn_multihead_attention *m,
                                         const tn_nn_multihead_attention_options *o,
                                         tn_device device, tn_dtype dtype) {
    static const char call[] = "tn_nn_multihead_attention_init";
    if (!m || !o)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: m or options is NULL", call);
    *m = (tn_nn_multihead_attention){0};
    if (o->embed_dim < 1 || o->num_heads < 1 || o->embed_dim % o->num_heads != 0 ||
        o->embed_dim > INT64_MAX / 3)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "%s: embed_dim is %" PRId64 " and num_heads %" PRId64
                       "; embed_dim must be a multiple of num_heads, and both at least 1",
                       call, o->embed_dim, o->num_heads);
    if (!(o->dropout >= 0 && o->dropout <= 1))
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: dropout is %g; it must be in [0, 1]", call,
                       o->dropout);
    m->module.training = true;
    m->embed_dim = o->embed_dim;
    m->num_heads = o->num_heads;
    m->dropout = o->dropout;
    m->is_causal = o->is_causal;
    if (make_tensors(m, o, device, dtype))
        return TN_OK;
    tn_nn_multihead_attention_finish(m);
    return tn_error_status();
}

/* Rows part * E to (part + 1) * E of the projections: x [N, L, E] to [N, heads, L, E / heads]. */
static tn_tensor *project(const tn_nn_multihead_attention *m, tn_tensor *x, int64_t part) {
    int64_t e = m->embed_dim, heads = m->num_heads;
    tn_tensor *weight = tn_narrow(m->in_proj_weight, 0, part * e, e);
    tn_tensor *bias = m->in_proj_bias ? tn_narrow(m->in_proj_bias, 0, part * e, e) : TN_NONE;
    tn_tensor *y = tn_linear(x, weight, bias);
    y = tn_reshape(y, TN_SHAPE(tn_size(x, 0), tn_size(x, 1), heads, e / heads));
    return tn_transpose(y, 1, 2);
}

static bool check_input(const tn_nn_multihead_attention *m, const char *name, const tn_tensor *x) {
    if (tn_rank(x) == 3 && tn_size(x, 2) == m->embed_dim)
        return true;
    tn_fail(TN_ERR_SHAPE,
            "tn_nn_multihead_attention_forward: %s: %s is %s; it must be [N, length, %" PRId64
            "], of embed_dim",
            tnn_name(&m->module), name, tnn_shape(x).text, m->embed_dim);
    return false;
}

tn_tensor *tn_nn_multihead_attention_forward(const tn_nn_multihead_attention *m, tn_tensor *query,
                                             tn_tensor *key, tn_tensor *value, tn_tensor *mask) {
    static const char call[] = "tn_nn_multihead_attention_forward";
    if (!mask || !TNN_READY(call, m, m->in_proj_weight, query) || !TNN_READY(call, m, true, key) ||
        !TNN_READY(call, m, true, value))
        return NULL;
    if (!check_input(m, "query", query) || !check_input(m, "key", key) ||
        !check_input(m, "value", value))
        return NULL;
    bool clear = tnn_error_is_clear();
    double dropout = m->module.training ? m->dropout : 0;
    tn_tensor *y = tnn_attention(project(m, query, 0), project(m, key, 1), project(m, value, 2),
                                 mask, dropout, m->is_causal);
    y = tn_reshape(tn_transpose(y, 1, 2), tn_sizes(query)); /* [N, L, E] */
    return tn_nn_linear_forward(&m->out_proj, tnn_named(&m->module, clear, y));
}

void tn_nn_multihead_attention_visit(tn_nn_multihead_attention *m, const char *name,
                                     tn_nn_visitor *v) {
    if (!tnn_enter_module(v, name, m ? &m->module : NULL))
        return;
    tn_nn_visit_parameter(v, "in_proj_weight", &m->in_proj_weight);
    tn_nn_visit_parameter(v, "in_proj_bias", &m->in_proj_bias);
    tn_nn_linear_visit(&m->out_proj, "out_proj", v);
    tn_nn_leave(v);
}

void tn_nn_multihead_attention_finish(tn_nn_multihead_attention *m) {
    TNN_FINISH(tn_nn_multihead_attention_visit, m);
}
