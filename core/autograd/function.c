/* Functions that a program writes together with their derivative.
 *
 * The context is the node's: it lives while the graph does. While forward runs it collects what is
 * to be saved; afterwards, when it is known which tensors are outputs, the node takes them over. */
#include "core/autograd/engine.h"
#include "base/alloc.h"

#include <string.h>

struct tn_function_context {
    const tn_function *function;
    void *user;
    tni_node_type type; /* with the function's name */
    tni_node *node;     /* not owned: the node owns the context; NULL in forward */
    uint64_t n_inputs;
    bool *needs;         /* [n_inputs] */
    tn_tensor **inputs;  /* [n_inputs]; borrowed, in forward */
    tn_tensor **to_save; /* owned, in forward */
    size_t n_to_save, save_capacity;
};

static void context_destroy(tn_function_context *c) {
    for (size_t i = 0; i < c->n_to_save; i++)
        tni_drop(c->to_save[i]);
    tni_free(c->to_save);
    tni_free(c->needs);
    tni_free(c->inputs);
    if (c->function->destroy)
        c->function->destroy(c->user);
    tni_free(c);
}

static void node_finish(tni_node *node) {
    context_destroy(node->extra);
}

tn_status tn_function_save(tn_function_context *c, tn_tensor *const *tensors, uint64_t n) {
    if (!c || c->node)
        return tni_fail(TN_ERR_STATE, "tn_function_save: tensors are saved in forward");
    if (!tensors && n > 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_function_save: tensors is NULL");
    for (uint64_t i = 0; i < n; i++) {
        if (tni_is_given_gone(tensors[i], "tn_function_save"))
            return tni_failed();
        if (c->n_to_save >= UINT16_MAX)
            return tni_fail(TN_ERR_UNSUPPORTED, "%s: more than %d saved tensors", c->function->name,
                            UINT16_MAX);
        if (!tni_grow(&c->to_save, c->n_to_save, &c->save_capacity, sizeof *c->to_save))
            return tni_fail_memory("a function's list of saved tensors");
        tn_tensor *t = tensors[i] == TN_NONE ? NULL : tensors[i];
        c->to_save[c->n_to_save++] = tni_keep_opt(t);
    }
    return TN_OK;
}

tn_tensor *tn_function_saved(tn_function_context *c, uint64_t i) {
    if (!c || !c->node || i >= c->node->n_saved)
        return tni_fail_null(TN_ERR_INVALID_ARGUMENT,
                             "tn_function_saved: there is no saved tensor %llu",
                             (unsigned long long)i);
    tn_tensor *t = tni_node_saved(c->node, (uint32_t)i);
    return tni_not_tensor(t) ? NULL : tni_scope_push(t);
}

bool tn_function_needs_grad(const tn_function_context *c, uint64_t i) {
    if (!c || i >= c->n_inputs)
        return false;
    return c->node ? tni_node_needs(c->node, (uint32_t)i) : c->needs[i];
}

static tn_status call_backward(tni_node *node, tn_tensor *const *grads, tn_tensor **out) {
    tn_function_context *c = node->extra;
    tn_thread_keys before = tni_keys_callback(tni_grad_mode());
    tni_callback_scope scope = tni_scope_enter();
    tn_status status =
        c->function->backward(c, grads, node->n_outputs, out, node->n_edges, c->user);
    if (status != TN_OK && tn_error_status() == TN_OK)
        tni_fail(status, "the function's backward failed without a message");
    /* What it filled in belongs to the scope. */
    for (uint32_t i = 0; i < node->n_edges; i++)
        out[i] = status == TN_OK && out[i] && out[i] != TN_NONE ? tni_keep(out[i]) : NULL;
    tni_scope_leave(scope);
    tni_thread_keys = before;
    return status;
}

static tn_function_context *context_new(const tn_function *function, void *user,
                                        tn_tensor *const *inputs, uint64_t n_inputs) {
    tn_function_context *c = tni_calloc(1, sizeof *c);
    bool *needs = tni_calloc(n_inputs, sizeof *needs);
    tn_tensor **copy = tni_alloc(n_inputs * sizeof *copy);
    if (!c || !needs || !copy) {
        tni_free(c);
        tni_free(needs);
        tni_free(copy);
        return tni_fail_memory_null("the context of a function");
    }
    c->function = function;
    c->user = user;
    c->type = (tni_node_type){function->name, call_backward, NULL, node_finish};
    c->needs = needs;
    c->inputs = copy;
    if (n_inputs)
        memcpy(copy, inputs, n_inputs * sizeof *copy);
    c->n_inputs = n_inputs;
    return c;
}

/* An output that is an input, or that shows up twice, becomes a tensor of its own: it gets a
 * history of its own. Outputs: owned references. */
static tn_status take_outputs(tn_function_context *c, tn_tensor *const *inputs, uint64_t n_inputs,
                              tn_tensor **outputs, uint64_t n_outputs) {
    for (uint64_t i = 0; i < n_outputs; i++) {
        tn_tensor *t = outputs[i];
        bool known = false;
        if (!t || t == TN_NONE) {
            for (uint64_t k = 0; k < i; k++)
                tni_drop(outputs[k]);
            return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: forward left output %llu unset",
                            c->function->name, (unsigned long long)i);
        }
        for (uint64_t k = 0; k < n_inputs; k++)
            known = known || inputs[k] == t;
        for (uint64_t k = 0; k < i; k++)
            known = known || outputs[k] == t;
        outputs[i] = known ? tni_tensor_alias(t) : tni_keep(t);
        if (!outputs[i]) {
            for (uint64_t k = 0; k < i; k++)
                tni_drop(outputs[k]);
            return tni_failed();
        }
    }
    return TN_OK;
}

/* The gradients of the inputs would end in a complex output, and nobody be told. */
static tn_status check_real(const tn_function_context *c, tn_tensor *const *outputs,
                            uint64_t n_outputs) {
    for (uint64_t i = 0; i < n_outputs; i++)
        if (tni_is_complex(outputs[i]->view.dtype))
            return tni_fail(TN_ERR_DTYPE,
                            "%s: an input requires a gradient, and output %llu is %s; complex"
                            " tensors have none; take tn_detach of the inputs",
                            c->function->name, (unsigned long long)i,
                            tn_dtype_name(outputs[i]->view.dtype));
    return TN_OK;
}

/* Makes the node; takes the context over in any case. */
static tn_status record(tn_function_context *c, tn_tensor *const *inputs, uint64_t n_inputs,
                        tn_tensor **outputs, uint64_t n_outputs) {
    tni_node *node = check_real(c, outputs, n_outputs) == TN_OK
                         ? tni_node_new(&c->type, (uint32_t)n_inputs, (uint32_t)n_outputs,
                                        (uint32_t)c->n_to_save, 0, 0)
                         : NULL;
    if (!node) {
        tn_status why = tni_failed();
        context_destroy(c);
        return why;
    }
    node->extra = c;
    c->node = node;
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < n_inputs && status == TN_OK; i++)
        if (c->needs[i])
            status = tni_node_set_edge(node, (uint32_t)i, inputs[i]);
    for (uint64_t i = 0; i < c->n_to_save && status == TN_OK; i++) {
        uint32_t output = 0;
        for (uint64_t k = 0; c->to_save[i] && k < n_outputs && !output; k++)
            output = outputs[k] == c->to_save[i] ? (uint32_t)k + 1 : 0;
        status = tni_node_save(node, (uint32_t)i, c->to_save[i], output);
        tni_drop(c->to_save[i]);
        c->to_save[i] = NULL;
    }
    for (uint64_t i = 0; i < n_outputs && status == TN_OK; i++)
        if (tni_is_float(outputs[i]->view.dtype))
            status = tni_set_history(outputs[i], node, (uint32_t)i);
    tni_node_drop(node);
    return status;
}

tn_status tn_function_apply(const tn_function *function, void *user, tn_tensor *const *inputs,
                            uint64_t n_inputs, tn_tensor **outputs, uint64_t n_outputs) {
    if (!function || !function->forward || !function->backward || !function->name) {
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_function_apply: a function needs a name, forward and backward");
    }
    if ((n_inputs && !inputs) || (n_outputs && !outputs)) {
        if (function->destroy)
            function->destroy(user);
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: the array of %s is NULL", function->name,
                        n_inputs && !inputs ? "inputs" : "outputs");
    }
    tn_function_context *c = context_new(function, user, inputs, n_inputs);
    if (!c) {
        if (function->destroy)
            function->destroy(user);
        return TN_ERR_OUT_OF_MEMORY;
    }
    /* The caller may give one array for both. */
    inputs = c->inputs;
    for (uint64_t i = 0; i < n_outputs; i++)
        outputs[i] = NULL;
    bool records = false;
    for (uint64_t i = 0; i < n_inputs; i++) {
        if (!inputs[i]) {
            context_destroy(c);
            return tn_error_status() != TN_OK
                       ? tn_error_status()
                       : tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: input %llu is NULL", function->name,
                                  (unsigned long long)i);
        }
        c->needs[i] = tni_grad_mode() && inputs[i] != TN_NONE && tni_requires_grad(inputs[i]);
        records = records || c->needs[i];
    }
    tn_thread_keys before = tni_keys_callback(false);
    tni_callback_scope scope = tni_scope_enter();
    tn_status status = function->forward(c, inputs, n_inputs, outputs, n_outputs, user);
    if (status != TN_OK && tn_error_status() == TN_OK)
        tni_fail(status, "%s: forward failed without a message", function->name);
    if (status == TN_OK)
        status = take_outputs(c, inputs, n_inputs, outputs, n_outputs);
    tni_scope_leave(scope);
    tni_thread_keys = before;
    bool owned = status == TN_OK;
    if (records && owned)
        status = record(c, inputs, n_inputs, outputs, n_outputs);
    else
        context_destroy(c);
    for (uint64_t i = 0; i < n_outputs; i++) {
        if (status == TN_OK) {
            outputs[i] = tni_scope_push(outputs[i]);
            if (!outputs[i])
                status = tni_failed();
        } else {
            if (owned)
                tni_drop(outputs[i]);
            outputs[i] = NULL;
        }
    }
    return status;
}
