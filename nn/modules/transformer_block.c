/* A block of a transformer's encoder, or of a decoder alone: attention, then two linear layers. */
#include "nn/modules/module.h"

#include <inttypes.h>

static tn_status init_parts(tn_nn_transformer_block *m, const tn_nn_transformer_block_options *o,
                            tn_device device, tn_dtype dtype) {
    int64_t hidden = o->dim_feedforward ? o->dim_feedforward : 2048;
    tn_nn_multihead_attention_options attention = {o->d_model, o->nhead, o->dropout, o->no_bias,
                                                   o->is_causal};
    tn_nn_linear_options in = {o->d_model, hidden, o->no_bias};
    tn_nn_linear_options out = {hidden, o->d_model, o->no_bias};
    tn_nn_layer_norm_options norm = {
        .normalized_shape = TN_SHAPE(o->d_model), .eps = o->layer_norm_eps, .no_bias = o->no_bias};
    tn_nn_dropout_options dropout = {o->dropout};
    tn_status status = tn_nn_multihead_attention_init(&m->self_attn, &attention, device, dtype);
    if (status == TN_OK)
        status = tn_nn_linear_init(&m->linear1, &in, device, dtype);
    if (status == TN_OK)
        status = tn_nn_linear_init(&m->linear2, &out, device, dtype);
    if (status == TN_OK)
        status = tn_nn_layer_norm_init(&m->norm1, &norm, device, dtype);
    if (status == TN_OK)
        status = tn_nn_layer_norm_init(&m->norm2, &norm, device, dtype);
    if (status == TN_OK)
        status = tn_nn_dropout_init(&m->dropout, &dropout);
    m->dropout1 = m->dropout2 = m->dropout;
    return status;
}

tn_status tn_nn_transformer_block_init(tn_nn_transformer_block *m,
                                       const tn_nn_transformer_block_options *o, tn_device device,
                                       tn_dtype dtype) {
    if (!m || !o)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "tn_nn_transformer_block_init: m or options is NULL");
    *m = (tn_nn_transformer_block){0};
    if (o->activation != TN_NN_RELU && o->activation != TN_NN_GELU)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "tn_nn_transformer_block_init: activation is %d; it must be TN_NN_RELU or"
                       " TN_NN_GELU",
                       (int)o->activation);
    tn_status status = init_parts(m, o, device, dtype);
    if (status != TN_OK) {
        tn_nn_transformer_block_finish(m);
        return status;
    }
    m->module.training = true;
    m->activation = o->activation;
    m->norm_first = o->norm_first;
    return TN_OK;
}

static tn_tensor *attend(const tn_nn_transformer_block *m, tn_tensor *x, tn_tensor *mask) {
    return tn_nn_dropout_forward(&m->dropout1,
                                 tn_nn_multihead_attention_forward(&m->self_attn, x, x, x, mask));
}

static tn_tensor *feed_forward(const tn_nn_transformer_block *m, tn_tensor *x) {
    tn_tensor *y = tn_nn_linear_forward(&m->linear1, x);
    y = m->activation == TN_NN_GELU ? tn_gelu(y) : tn_relu(y);
    y = tn_nn_linear_forward(&m->linear2, tn_nn_dropout_forward(&m->dropout, y));
    return tn_nn_dropout_forward(&m->dropout2, y);
}

tn_tensor *tn_nn_transformer_block_forward(const tn_nn_transformer_block *m, tn_tensor *x,
                                           tn_tensor *mask) {
    if (!TNN_READY("tn_nn_transformer_block_forward", m, m->linear1.weight, x))
        return NULL;
    if (m->norm_first) {
        x = tn_add(x, attend(m, tn_nn_layer_norm_forward(&m->norm1, x), mask));
        return tn_add(x, feed_forward(m, tn_nn_layer_norm_forward(&m->norm2, x)));
    }
    x = tn_nn_layer_norm_forward(&m->norm1, tn_add(x, attend(m, x, mask)));
    return tn_nn_layer_norm_forward(&m->norm2, tn_add(x, feed_forward(m, x)));
}

void tn_nn_transformer_block_visit(tn_nn_transformer_block *m, const char *name, tn_nn_visitor *v) {
    if (!tnn_enter_module(v, name, m ? &m->module : NULL))
        return;
    tn_nn_multihead_attention_visit(&m->self_attn, "self_attn", v);
    tn_nn_linear_visit(&m->linear1, "linear1", v);
    tn_nn_linear_visit(&m->linear2, "linear2", v);
    tn_nn_layer_norm_visit(&m->norm1, "norm1", v);
    tn_nn_layer_norm_visit(&m->norm2, "norm2", v);
    tn_nn_dropout_visit(&m->dropout, "dropout", v);
    tn_nn_dropout_visit(&m->dropout1, "dropout1", v);
    tn_nn_dropout_visit(&m->dropout2, "dropout2", v);
    tn_nn_leave(v);
}

void tn_nn_transformer_block_finish(tn_nn_transformer_block *m) {
    TNN_FINISH(tn_nn_transformer_block_visit, m);
}
