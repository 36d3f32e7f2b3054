/* Nodes: one block each, usually from the slab; destruction without recursion, however long the
 * chain that dies. */
#include "core/autograd/checkpoint.h"
#include "core/autograd/engine.h"
#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

TNI_TLS uint64_t tni_wanted_edges = UINT64_MAX;

static TNI_TLS uint64_t sequence;
static TNI_TLS tni_node *dead; /* waiting for the destruction under way in this thread */
static TNI_TLS bool destroying;

tni_node *tni_node_new(const tni_node_type *type, uint32_t n_edges, uint32_t n_outputs,
                       uint32_t n_saved, uint32_t n_attrs, uint32_t int_bytes) {
    if (TNI_UNLIKELY(n_saved > UINT16_MAX || n_attrs > UINT16_MAX))
        return tni_fail_null(TN_ERR_UNSUPPORTED,
                             "%s: a node cannot save %u tensors and %u attributes; at most %u",
                             type->name, n_saved, n_attrs, UINT16_MAX);
    size_t outputs = (size_t)n_outputs * sizeof(tni_output_meta);
    size_t edges = (size_t)n_edges * sizeof(tni_edge);
    size_t saved = (size_t)n_saved * sizeof(tni_saved);
    size_t attrs = (size_t)n_attrs * sizeof(tn_cell);
    size_t bytes = sizeof(tni_node) + outputs + edges + saved + attrs + int_bytes;
    bool from_slab = bytes <= TNI_SLAB_NODE_BYTES;
    tni_node *node = from_slab ? tni_slab_alloc(TNI_SLAB_NODE) : tni_alloc(bytes);
    if (TNI_UNLIKELY(!node))
        return tni_fail_memory_null("a node of the graph");
    atomic_init(&node->refs, 1);
    node->n_edges = n_edges;
    node->n_outputs = n_outputs;
    node->n_saved = (uint16_t)n_saved;
    node->n_attrs = (uint16_t)n_attrs;
    node->bytes_left = int_bytes;
    node->slot = 0;
    atomic_init(&node->users, 0);
    node->from_slab = from_slab;
    node->type = type;
    node->sequence = ++sequence;
    char *at = (char *)node->outputs;
    for (uint32_t i = 0; i < n_outputs; i++) {
        node->outputs[i].device = NULL;
        node->outputs[i].stream = NULL;
    }
    node->edges = (tni_edge *)(at + outputs);
    node->saved = (tni_saved *)(at + outputs + edges);
    node->attrs = (tn_cell *)(at + outputs + edges + saved);
    /* A few words each: a call of memset would cost more. */
    for (uint32_t i = 0; i < n_edges; i++)
        node->edges[i] = (tni_edge){NULL, 0, 0};
    for (uint32_t i = 0; i < n_saved; i++)
        node->saved[i] = (tni_saved){.tensor = NULL};
    for (uint32_t i = 0; i < n_attrs; i++)
        node->attrs[i] = (tn_cell){0};
    node->extra = NULL;
    node->hooks = NULL;
    atomic_init(&node->owner, 0);
    if (TNI_UNLIKELY(atomic_load_explicit(&tni_anomaly, memory_order_relaxed)))
        return tni_anomaly_recorded(node);
    return node;
}

void tni_node_release(tni_node *node) {
    for (uint32_t i = 0; i < node->n_saved; i++) {
        tni_saved *s = &node->saved[i];
        tn_tensor *t = s->tensor;
        if (!t)
            continue;
        tni_checkpoint *checkpoint = TNI_UNLIKELY(s->again) ? s->checkpoint : NULL;
        s->tensor = NULL;
        s->released = 1;
        if (TNI_UNLIKELY(checkpoint != NULL))
            tni_checkpoint_drop(checkpoint);
        else
            tni_drop(t);
    }
    if (node->type->release)
        node->type->release(node);
}

static void destroy_one(tni_node *node) {
    if (TNI_UNLIKELY(tni_hooks_any(&node->hooks)))
        tni_hooks_destroy(&node->hooks);
    tni_node_release(node);
    if (node->type->finish)
        node->type->finish(node);
    for (uint32_t i = 0; i < node->n_edges; i++)
        tni_node_drop(node->edges[i].node);
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        const tni_output_meta *m = &node->outputs[i];
        if (TNI_UNLIKELY(m->stream && m->stream != &m->device->default_stream))
            tn_stream_drop(m->stream);
    }
    if (node->from_slab)
        tni_slab_free(TNI_SLAB_NODE, node);
    else
        tni_free(node);
}

/* What a dying node holds may be the last to hold other nodes, through edges and through saved
 * tensors: they come back here and are queued. */
void tni_node_destroy(tni_node *node) {
    if (node->type == &tni_accumulate_type && !tni_accumulator_unhook(node))
        return; /* the leaf gave it to another graph in the meantime */
    if (destroying) {
        node->next_dead = dead;
        dead = node;
        return;
    }
    destroying = true;
    destroy_one(node);
    while (dead) {
        node = dead;
        dead = node->next_dead;
        destroy_one(node);
    }
    destroying = false;
}

tn_status tni_node_set_edge(tni_node *node, uint32_t i, tn_tensor *input) {
    tni_edge *edge = &node->edges[i];
    if (!input || input == TN_NONE)
        return TN_OK;
    if (TNI_UNLIKELY(!tni_view_current(input)))
        return tn_error_status();
    tni_autograd *a = input->autograd;
    if (!a)
        return TN_OK;
    if (a->node) {
        edge->node = tni_node_keep(a->node);
        edge->index = a->output;
    } else if (a->requires_grad) {
        edge->index = 0;
        edge->node = tni_accumulator_of(input);
        if (TNI_UNLIKELY(!edge->node))
            return tn_error_status();
    }
    return TN_OK;
}

tn_status tni_node_set_attr(tni_node *node, uint32_t i, const tn_cell *cell) {
    tn_cell *attr = &node->attrs[i];
    *attr = *cell;
    size_t bytes;
    const void *from;
    if (cell->tag == TN_CELL_INTS) {
        bytes = cell->n * sizeof(int64_t);
        from = cell->v.ints;
    } else if (cell->tag == TN_CELL_STRING) {
        bytes = (strlen(cell->v.string) + 8) & ~(size_t)7; /* with its end, in whole words */
        from = cell->v.string;
    } else {
        return TN_OK;
    }
    if (bytes > node->bytes_left)
        return tni_fail(TN_ERR_INTERNAL, "%s: attribute %u needs %zu bytes, the node has %u left",
                        node->type->name, i, bytes, node->bytes_left);
    /* The lists lie behind the attrs, the first one last. */
    node->bytes_left -= (uint32_t)bytes;
    char *at = (char *)(node->attrs + node->n_attrs) + node->bytes_left;
    if (cell->tag == TN_CELL_STRING)
        bytes = strlen(cell->v.string) + 1;
    if (bytes)
        memcpy(at, from, bytes);
    attr->v.pointer = at;
    return TN_OK;
}
