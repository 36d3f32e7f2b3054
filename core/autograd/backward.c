/* The public ways into the engine: tn_backward and tn_gradients. */
#include "core/autograd/engine.h"
#include "core/ops/operators.h"
#include "base/alloc.h"

enum { FEW_ROOTS = 4 };

/* Roots as edges, and the gradients that start there. */
typedef struct roots {
    tni_edge few_edges[FEW_ROOTS], *edges;
    tn_tensor *few_grads[FEW_ROOTS], **grads;
    uint64_t n;
} roots;

static void roots_finish(roots *r) {
    for (uint64_t i = 0; i < r->n; i++) {
        tni_node_drop(r->edges[i].node);
        tni_drop(r->grads[i]);
    }
    if (r->edges != r->few_edges)
        tni_free(r->edges);
    if (r->grads != r->few_grads)
        tni_free(r->grads);
}

/* The gradient of a root: what the caller gave, or one. */
static tn_status root_grad(const char *call, tn_tensor *root, tn_tensor *given, tn_tensor **out) {
    if (!given || given == TN_NONE) {
        if (root->view.numel != 1)
            return tni_fail(TN_ERR_SHAPE,
                            "%s: a root of shape %s has %lld elements, so its gradient must be "
                            "given; reduce it to one element (tn_sum, tn_mean), or give a gradient "
                            "of its shape to tn_backward_full",
                            call, TNI_SHAPE_OF(root), (long long)root->view.numel);
        *out =
            tni_ones(tn_ints_of(root->sizes, root->view.rank), root->view.dtype, root->device->id);
        return *out ? TN_OK : tni_failed();
    }
    if (!tni_is_tensor(given, call))
        return tni_failed();
    bool same = given->view.rank == root->view.rank;
    for (int32_t i = 0; same && i < root->view.rank; i++)
        same = given->sizes[i] == root->sizes[i];
    if (!same)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: a gradient of shape %s was given for a root of shape %s; "
                        "they must be equal",
                        call, TNI_SHAPE_OF(given), TNI_SHAPE_OF(root));
    *out = tni_keep(given);
    return TN_OK;
}

static tn_status roots_init(roots *r, const char *call, tn_tensor *const *tensors,
                            tn_tensor *const *grads, uint64_t n) {
    r->n = 0;
    r->edges = r->few_edges;
    r->grads = r->few_grads;
    if (n == 0 || !tensors)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: there is no root to start from", call);
    if (n > FEW_ROOTS) {
        r->edges = tni_calloc(n, sizeof *r->edges);
        r->grads = tni_calloc(n, sizeof *r->grads);
        if (!r->edges || !r->grads)
            return tni_fail_memory("the roots of a backward pass");
    }
    for (uint64_t i = 0; i < n; i++) {
        tn_tensor *root = tensors[i];
        if (tni_is_given_gone(root, call))
            return tni_failed();
        if (tni_not_tensor(root))
            return tn_error_status() != TN_OK && !root
                       ? tn_error_status()
                       : tni_fail(TN_ERR_INVALID_ARGUMENT,
                                  "%s: root %llu is %s; check the call that made it", call,
                                  (unsigned long long)i, root ? "TN_NONE" : "NULL");
        r->grads[i] = NULL;
        TNI_TRY(tni_gradient_edge(root, &r->edges[i]));
        if (!r->edges[i].node)
            return tni_fail(TN_ERR_STATE,
                            "%s: root %llu does not depend on anything that requires a gradient; "
                            "mark leaves with tn_set_requires_grad, and compute with recording on",
                            call, (unsigned long long)i);
        r->n = i + 1;
        TNI_TRY(root_grad(call, root, grads ? grads[i] : NULL, &r->grads[i]));
    }
    return TN_OK;
}

tn_status tn_backward_full(tn_tensor *const *tensors, tn_tensor *const *grads, uint64_t n,
                           bool retain_graph, bool create_graph) {
    roots r;
    tn_status status = roots_init(&r, "tn_backward", tensors, grads, n);
    if (TNI_LIKELY(status == TN_OK))
        status = tni_engine_run(r.edges, r.grads, r.n, NULL, 0, retain_graph, create_graph);
    roots_finish(&r);
    return status;
}

tn_status tn_backward(tn_tensor *loss) {
    return tn_backward_full(&loss, NULL, 1, false, false);
}

static tn_status captures_init(tni_capture *captures, tn_tensor *const *inputs, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        tni_edge edge;
        if (tni_is_given_gone(inputs[i], "tn_gradients"))
            return tni_failed();
        if (tni_not_tensor(inputs[i]))
            return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_gradients: input %llu is no tensor",
                            (unsigned long long)i);
        TNI_TRY(tni_gradient_edge(inputs[i], &edge));
        if (!edge.node)
            return tni_fail(TN_ERR_STATE,
                            "tn_gradients: input %llu requires no gradient; mark it with "
                            "tn_set_requires_grad before it is used",
                            (unsigned long long)i);
        captures[i].node = edge.node;
        captures[i].index = edge.index;
    }
    return TN_OK;
}

tn_status tn_gradients(tn_tensor *const *tensors, tn_tensor *const *grads, uint64_t n,
                       tn_tensor *const *inputs, uint64_t n_inputs, bool retain_graph,
                       bool create_graph, bool allow_unused, tn_tensor **out_grads) {
    roots r = {.n = 0, .edges = r.few_edges, .grads = r.few_grads};
    if (n_inputs == 0 || !inputs || !out_grads)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_gradients: %s",
                        n_inputs == 0 ? "there are no inputs"
                        : inputs      ? "out_grads is NULL"
                                      : "inputs is NULL");
    for (uint64_t i = 0; i < n_inputs; i++)
        out_grads[i] = NULL;
    tni_capture *captures = tni_calloc(n_inputs, sizeof *captures);
    tn_status status = captures ? TN_OK : tni_fail_memory("the captures of tn_gradients");
    if (status == TN_OK)
        status = captures_init(captures, inputs, n_inputs);
    if (status == TN_OK)
        status = roots_init(&r, "tn_gradients", tensors, grads, n);
    if (status == TN_OK)
        status =
            tni_engine_run(r.edges, r.grads, r.n, captures, n_inputs, retain_graph, create_graph);
    roots_finish(&r);
    for (uint64_t i = 0; i < n_inputs && status == TN_OK; i++)
        if (!captures[i].grad && !allow_unused)
            status =
                tni_fail(TN_ERR_STATE,
                         "tn_gradients: input %llu was not used by the roots; set allow_unused "
                         "to get NULL for it",
                         (unsigned long long)i);
    for (uint64_t i = 0; captures && i < n_inputs; i++) {
        tni_node_drop(captures[i].node);
        if (status == TN_OK && captures[i].grad) {
            out_grads[i] = tni_scope_push(captures[i].grad);
            if (!out_grads[i])
                status = tni_failed();
        } else {
            tni_drop(captures[i].grad);
        }
    }
    for (uint64_t i = 0; i < n_inputs && status != TN_OK; i++)
        out_grads[i] = NULL; /* what was pushed is the scope's */
    tni_free(captures);
    return status;
}
