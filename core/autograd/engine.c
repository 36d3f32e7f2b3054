/* The engine: walks the graph from the roots, in the caller's thread.
 *
 * First it counts, for each node it reaches, the gradients the node will get. Then nodes run as
 * their last gradient arrives, the one recorded last first. With captures (tn_gradients) a search
 * finds beforehand which nodes lead to one, and only those run. Passes in several threads may share
 * nodes and leaves; a formula, a hook or a custom function may itself call backward, which is then
 * a pass of its own on the same thread. */
#include "core/autograd/pass.h"
#include "core/autograd/streams.h"
#include "base/alloc.h"

typedef struct run {
    tni_pass *pass;
    tni_capture *captures;
    bool partial; /* there are captures: leaves do not accumulate */
    bool retain, create, looks_for_nan;
    const tni_node *failed; /* whose backward it was, for the message */
    tni_stream_use streams;
} run;

static uint32_t find_or_add(tni_pass *pass, tni_node *node, bool *out_new) {
    uint32_t i = tni_pass_find(pass, node);
    *out_new = i == TNI_NO_SLOT;
    return *out_new ? tni_pass_add(pass, node) : i;
}

/* ---- counting ---------------------------------------------------------------------------- */

/* Everything that the roots reach. */
static tn_status count_all(tni_pass *pass, const tni_edge *roots, uint64_t n_roots) {
    bool is_new;
    for (uint64_t r = 0; r < n_roots; r++) {
        uint32_t i = find_or_add(pass, roots[r].node, &is_new);
        if (i == TNI_NO_SLOT)
            return TN_ERR_OUT_OF_MEMORY;
        pass->slots[i].runs = true;
        if (is_new)
            pass->queue[pass->n_queue++] = i;
    }
    while (pass->n_queue > 0) {
        const tni_node *node = pass->slots[pass->queue[--pass->n_queue]].node;
        for (uint32_t e = 0; e < node->n_edges; e++) {
            tni_node *next = node->edges[e].node;
            if (!next)
                continue;
            uint32_t i = find_or_add(pass, next, &is_new);
            if (TNI_UNLIKELY(i == TNI_NO_SLOT))
                return TN_ERR_OUT_OF_MEMORY;
            pass->slots[i].waits++;
            if (is_new) {
                pass->slots[i].runs = true;
                pass->queue[pass->n_queue++] = i;
            }
        }
    }
    return TN_OK;
}

/* Takes part: leads to a capture, or is one. */
static bool takes_part(const tni_slot *s) {
    return s->runs || s->capture;
}

static tn_status start_visit(tni_pass *pass, tni_node *node, uint32_t *out_slot, bool *out_new) {
    uint32_t i = find_or_add(pass, node, out_new);
    if (i == TNI_NO_SLOT)
        return TN_ERR_OUT_OF_MEMORY;
    *out_new = !pass->slots[i].visited;
    if (*out_new) {
        pass->slots[i].visited = true;
        pass->queue[pass->n_queue++] = i;
    }
    *out_slot = i;
    return TN_OK;
}

/* Marks what leads to a capture, depth first, then counts along marked nodes only. */
static tn_status count_captured(tni_pass *pass, const tni_edge *roots, uint64_t n_roots,
                                tni_capture *captures, uint64_t n_captures) {
    bool is_new;
    uint32_t i;
    for (uint64_t c = 0; c < n_captures; c++) {
        i = find_or_add(pass, captures[c].node, &is_new);
        if (i == TNI_NO_SLOT)
            return TN_ERR_OUT_OF_MEMORY;
        captures[c].next = pass->slots[i].capture;
        pass->slots[i].capture = (uint32_t)c + 1;
    }
    for (uint64_t r = 0; r < n_roots; r++) {
        TNI_TRY(start_visit(pass, roots[r].node, &i, &is_new));
        while (pass->n_queue > 0) {
            uint32_t at = pass->queue[pass->n_queue - 1];
            const tni_node *node = pass->slots[at].node;
            bool down = false;
            while (!down && pass->slots[at].edge < node->n_edges) {
                tni_node *next = node->edges[pass->slots[at].edge++].node;
                if (!next)
                    continue;
                TNI_TRY(start_visit(pass, next, &i, &down));
                if (!down && takes_part(&pass->slots[i]))
                    pass->slots[at].runs = true;
            }
            if (down)
                continue;
            pass->n_queue--;
            if (takes_part(&pass->slots[at]) && pass->n_queue > 0)
                pass->slots[pass->queue[pass->n_queue - 1]].runs = true;
        }
    }
    for (uint32_t s = 0; s < pass->n_slots; s++) {
        const tni_node *node = pass->slots[s].node;
        for (uint32_t e = 0; pass->slots[s].runs && e < node->n_edges; e++) {
            if (!node->edges[e].node)
                continue;
            tni_slot *next = &pass->slots[tni_pass_find(pass, node->edges[e].node)];
            next->waits += takes_part(next);
        }
    }
    return TN_OK;
}

/* ---- one node ---------------------------------------------------------------------------- */

/* Gives `grad` (owned) to an edge's target; the target's stream is current meanwhile. */
static tn_status deliver(run *r, const tni_node *from, const tni_edge *edge, tn_tensor *grad) {
    tni_pass *pass = r->pass;
    tni_slot *to = &pass->slots[tni_pass_find(pass, edge->node)];
    if (TNI_UNLIKELY(!takes_part(to))) {
        tni_drop(grad);
        return TN_OK;
    }
    tn_status status = TN_OK;
    if (TNI_LIKELY(grad != NULL)) {
        const tni_output_meta *meta = &edge->node->outputs[edge->index];
        tn_tensor **sum = &pass->grads[to->grads + edge->index];
        status = tni_streams_pass_on(&r->streams, from, edge->node, grad);
        if (status == TN_OK)
            status = tni_fit_grad(&grad, meta, from ? from->type->name : "the caller");
        if (TNI_UNLIKELY(status != TN_OK)) {
            tni_drop(grad);
        } else if (!*sum) {
            *sum = grad;
        } else {
            *sum = tni_add_grads(*sum, grad, r->create);
            status = *sum ? TN_OK : tni_failed();
        }
    }
    return status;
}

static void arrived(tni_pass *pass, const tni_edge *edge) {
    uint32_t i = tni_pass_find(pass, edge->node);
    tni_slot *to = &pass->slots[i];
    if (takes_part(to) && --to->waits == 0)
        tni_pass_push(pass, i);
}

/* Hooks on the outputs' gradients, which are complete, and captures. */
static tn_status arrive_at(run *r, const tni_slot *slot) {
    tni_node *node = slot->node;
    tn_tensor **grads = &r->pass->grads[slot->grads];
    tni_hook **hooks = &node->hooks;
    if (node->type == &tni_accumulate_type)
        hooks = &tni_accumulator_leaf(node)->autograd->hooks;
    if (TNI_UNLIKELY(tni_hooks_any(hooks))) {
        for (uint32_t i = 0; i < node->n_outputs; i++) {
            TNI_TRY(grads[i] ? tni_hooks_run(hooks, i, &grads[i], r->create) : TN_OK);
        }
    }
    for (uint32_t c = slot->capture; c; c = r->captures[c - 1].next) {
        tni_capture *capture = &r->captures[c - 1];
        capture->grad = tni_keep_opt(grads[capture->index]);
    }
    return TN_OK;
}

/* The edges that a partial pass wants, as tni_node_needs tells. */
static uint64_t wanted_edges(const run *r, const tni_node *node) {
    uint64_t wanted = UINT64_MAX;
    for (uint32_t e = 0; r->partial && e < node->n_edges && e < 64; e++)
        if (!node->edges[e].node ||
            !takes_part(&r->pass->slots[tni_pass_find(r->pass, node->edges[e].node)]))
            wanted &= ~(UINT64_C(1) << e);
    return wanted;
}

/* Another pass may run the same node now; whoever is last frees what it saved. */
static tn_status enter(tni_node *node) {
    uint32_t before = atomic_fetch_add_explicit(&node->users, 1, memory_order_acquire);
    if (TNI_LIKELY(!(before & TNI_NODE_RELEASED)))
        return TN_OK;
    atomic_fetch_sub_explicit(&node->users, 1, memory_order_release);
    return tni_fail(TN_ERR_STATE,
                    "backward through the graph a second time, but what it saved was freed after "
                    "the first; ask the first pass to retain the graph (tn_backward_full with "
                    "retain_graph)");
}

static void leave(tni_node *node, bool release) {
    if (release)
        atomic_fetch_or_explicit(&node->users, TNI_NODE_RELEASED, memory_order_relaxed);
    uint32_t before = atomic_fetch_sub_explicit(&node->users, 1, memory_order_acq_rel);
    if (before == (TNI_NODE_RELEASED | 1))
        tni_node_release(node);
}

static tn_status call_formula(run *r, tni_node *node, tn_tensor *const *grads, tn_tensor **outs) {
    bool saves = node->n_saved || node->type->release;
    tn_status status = saves ? enter(node) : TN_OK;
    if (TNI_UNLIKELY(status != TN_OK))
        return status;
    uint64_t before = tni_wanted_edges;
    tni_wanted_edges = TNI_UNLIKELY(r->partial) ? wanted_edges(r, node) : UINT64_MAX;
    status = node->type->backward(node, grads, outs);
    tni_wanted_edges = before;
    if (saves)
        leave(node, status == TN_OK && !r->retain);
    if (TNI_UNLIKELY(r->looks_for_nan) && status == TN_OK)
        status = tni_anomaly_check(node, outs);
    return status;
}

static tn_status run_node(run *r, uint32_t index) {
    tni_pass *pass = r->pass;
    tni_slot slot = pass->slots[index];
    tni_node *node = slot.node;
    r->failed = node;
    tn_status status = tni_streams_enter(&r->streams, node);
    if (status == TN_OK)
        status = arrive_at(r, &slot);
    tn_tensor **grads = &pass->grads[slot.grads];
    if (TNI_UNLIKELY(r->looks_for_nan) && status == TN_OK)
        status = tni_anomaly_arrived(node, grads);
    if (status == TN_OK && node->type == &tni_accumulate_type) {
        tn_tensor *grad = grads[0];
        grads[0] = NULL;
        if (grad && r->partial)
            tni_drop(grad);
        else if (grad)
            status = tni_accumulate(tni_accumulator_leaf(node), grad, r->create);
        return status;
    }
    bool any = false;
    for (uint32_t i = 0; i < node->n_outputs; i++)
        any = any || grads[i];
    tn_tensor **outs = NULL;
    if (status == TN_OK && slot.runs) {
        outs = tni_pass_outs(pass, node->n_edges);
        status = outs ? TN_OK : TN_ERR_OUT_OF_MEMORY;
        if (any && status == TN_OK)
            status = call_formula(r, node, grads, outs);
    }
    /* Before they go on, so that the only holder of a gradient is where it is going. */
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        tni_drop(grads[i]);
        grads[i] = NULL;
    }
    if (!outs)
        return status;
    if (status == TN_OK && any && TNI_UNLIKELY(tni_hooks_any(&node->hooks)))
        status = tni_hooks_run_node(node, outs, r->create);
    for (uint32_t e = 0; e < node->n_edges; e++) {
        const tni_edge *edge = &node->edges[e];
        if (TNI_UNLIKELY(status != TN_OK || !edge->node)) {
            tni_drop(outs[e]);
            continue;
        }
        status = deliver(r, node, edge, outs[e]);
        if (TNI_LIKELY(status == TN_OK))
            arrived(pass, edge);
    }
    return status;
}

/* ---- a pass ------------------------------------------------------------------------------ */

/* Puts the node's name in front of the message. An error that stood before the pass is put back, so
 * that this one replaces it, or is counted behind it, as any other would. */
static tn_status name_failure(const run *r, tn_status status, bool stood, tni_saved_error *saved) {
    char *message =
        r->failed ? tni_format("%s, in backward: %s", r->failed->type->name, tn_error_message())
                  : tni_strdup(tn_error_message());
    char *operator_name = tni_strdup(tn_error_operator());
    if (!message && !stood) {
        tni_free(operator_name);
        return status; /* no memory for more words */
    }
    tn_error_clear();
    if (stood)
        tni_error_restore(saved);
    tni_fail(status, "%s",
             message ? message : "backward failed, and there is no memory to say how");
    if (operator_name && *operator_name)
        tni_error_operator(operator_name);
    else if (r->failed)
        tni_error_operator(r->failed->type->name);
    tni_free(operator_name);
    tni_free(message);
    return status;
}

static tn_status seed(run *r, const tni_edge *roots, tn_tensor **grads, uint64_t n_roots) {
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < n_roots; i++) {
        tn_tensor *grad = grads[i];
        grads[i] = NULL;
        if (status == TN_OK)
            status = deliver(r, NULL, &roots[i], grad);
        else
            tni_drop(grad);
    }
    for (uint64_t i = 0; i < n_roots && status == TN_OK; i++) {
        uint32_t s = tni_pass_find(r->pass, roots[i].node);
        tni_slot *slot = &r->pass->slots[s];
        /* `edge` of a root is done with: it tells that a root named twice is in the heap. */
        if (takes_part(slot) && slot->waits == 0 && slot->edge != UINT32_MAX) {
            slot->edge = UINT32_MAX;
            tni_pass_push(r->pass, s);
        }
    }
    return status;
}

tn_status tni_engine_run(const tni_edge *roots, tn_tensor **grads, uint64_t n_roots,
                         tni_capture *captures, uint64_t n_captures, bool retain_graph,
                         bool create_graph) {
    run r;
    r.captures = captures;
    r.partial = captures != NULL;
    r.retain = retain_graph || create_graph;
    r.looks_for_nan = tn_anomaly_mode();
    r.create = create_graph;
    r.failed = NULL;
    r.streams.n_devices = r.streams.n_used = 0;
    tni_saved_error saved;
    bool stood = TNI_UNLIKELY(tn_error_status() != TN_OK);
    if (stood)
        tni_error_save(&saved);
    tn_thread_keys keys = tni_keys_formula(create_graph);
    tn_status status = (r.pass = tni_pass_begin()) ? TN_OK : TN_ERR_OUT_OF_MEMORY;
    if (status == TN_OK)
        status = r.partial ? count_captured(r.pass, roots, n_roots, captures, n_captures)
                           : count_all(r.pass, roots, n_roots);
    if (status == TN_OK)
        status = seed(&r, roots, grads, n_roots);
    while (status == TN_OK && r.pass->n_queue > 0)
        status = run_node(&r, tni_pass_pop(r.pass));
    for (uint64_t i = 0; i < n_roots; i++) {
        tni_drop(grads[i]);
        grads[i] = NULL;
    }
    if (r.pass)
        tni_pass_end(r.pass);
    tn_status joined = tni_streams_join(&r.streams);
    if (status == TN_OK && joined != TN_OK) {
        r.failed = NULL;
        status = joined;
    }
    tni_thread_keys = keys;
    if (TNI_UNLIKELY(status != TN_OK))
        return name_failure(&r, status, stood, &saved);
    if (stood)
        tni_error_restore(&saved);
    return TN_OK;
}
