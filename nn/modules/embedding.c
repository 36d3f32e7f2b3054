/* Rows of a table by their number. */
#include "nn/modules/module.h"

#include <inttypes.h>

/* N(0, 1), and zeros in the padding's row. */
static tn_tensor *make_weight(const tn_nn_embedding_options *o, tn_device device, tn_dtype dtype) {
    TN_SCOPE;
    tn_tensor *weight =
        tn_normal_(tn_empty(TN_SHAPE(o->num_embeddings, o->embedding_dim), dtype, device), 0, 1);
    if (o->has_padding_idx && !tn_zero_(tn_select(weight, 0, o->padding_idx)))
        return NULL;
    return tn_nn_parameter(weight);
}

tn_status tn_nn_embedding_init(tn_nn_embedding *m, const tn_nn_embedding_options *o,
                               tn_device device, tn_dtype dtype) {
    if (!m || !o)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_nn_embedding_init: m or options is NULL");
    *m = (tn_nn_embedding){0};
    if (o->num_embeddings < 1 || o->embedding_dim < 1)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "tn_nn_embedding_init: num_embeddings is %" PRId64
                       " and embedding_dim %" PRId64 "; each must be at least 1",
                       o->num_embeddings, o->embedding_dim);
    if (o->has_padding_idx && (o->padding_idx < 0 || o->padding_idx >= o->num_embeddings))
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "tn_nn_embedding_init: padding_idx is %" PRId64
                       "; it must be in [0, %" PRId64 "), num_embeddings",
                       o->padding_idx, o->num_embeddings);
    m->module.training = true;
    m->padding_idx = o->has_padding_idx ? o->padding_idx : -1;
    m->weight = make_weight(o, device, dtype);
    if (m->weight)
        return TN_OK;
    tn_nn_embedding_finish(m);
    return tn_error_status();
}

tn_tensor *tn_nn_embedding_forward(const tn_nn_embedding *m, tn_tensor *indices) {
    if (!TNN_READY("tn_nn_embedding_forward", m, m->weight, indices))
        return NULL;
    bool clear = tnn_error_is_clear();
    return tnn_named(&m->module, clear, tn_embedding(m->weight, indices, m->padding_idx));
}

void tn_nn_embedding_visit(tn_nn_embedding *m, const char *name, tn_nn_visitor *v) {
    if (!tnn_enter_module(v, name, m ? &m->module : NULL))
        return;
    tn_nn_visit_parameter(v, "weight", &m->weight);
    tn_nn_leave(v);
}

void tn_nn_embedding_finish(tn_nn_embedding *m) {
    TNN_FINISH(tn_nn_embedding_visit, m);
}
