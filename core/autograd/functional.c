/* Derivatives of whole functions, made of backward passes.
 *
 * Forward mode is two of them: the gradients g(u) = u J are linear in u, and their derivative by u
 * along v is J v. It is taken at ones, since at zeros some formulas are not what they are
 * elsewhere. Every operator that is differentiable twice has it so, and what is recorded of it is
 * differentiable again. */
#include "base/alloc.h"
#include "core/autograd/engine.h"
#include "core/call/wrap.h"

#include <tenon/ops.h>

#include <string.h>

static bool has_grad(const tn_tensor *t) {
    return t && tn_requires_grad(t);
}

static tn_tensor *or_zeros(tn_tensor *t, tn_tensor *like) {
    return t ? t : tn_zeros_like(like);
}

static tn_status check_tensors(const char *call, tn_tensor *const *tensors, uint64_t n,
                               const char *argument) {
    if (!tni_list_ok(tensors, n, call, argument))
        return tni_failed();
    for (uint64_t i = 0; i < n; i++)
        if (!tni_is_tensor(tensors[i], call))
            return tni_failed();
    return TN_OK;
}

/* What is differentiated by: the inputs, and with create_graph with their history. */
static tn_status take_inputs(const char *call, tn_tensor *const *inputs, uint64_t n,
                             bool create_graph, tn_tensor **out) {
    TNI_TRY(check_tensors(call, inputs, n, "inputs"));
    for (uint64_t i = 0; i < n; i++) {
        tn_tensor *t = inputs[i];
        if (!tni_is_float(t->view.dtype))
            return tni_fail(TN_ERR_DTYPE,
                            "%s: input %llu is %s; derivatives are by floating dtypes, so let the "
                            "function find it by `user`",
                            call, (unsigned long long)i, tn_dtype_name(t->view.dtype));
        out[i] = create_graph && tn_requires_grad(t) ? tn_alias(t)
                                                     : tn_set_requires_grad(tn_detach(t), true);
        if (!out[i])
            return tni_failed();
    }
    return TN_OK;
}

static tn_status call_function(const char *call, tn_tensors_fn fn, void *user,
                               tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                               uint64_t n_outputs) {
    tn_status status = fn(inputs, n_inputs, outputs, n_outputs, user);
    if (status != TN_OK)
        return tn_error_status() != TN_OK
                   ? status
                   : tni_fail(status, "%s: the function failed without a message", call);
    for (uint64_t i = 0; i < n_outputs; i++)
        if (tni_not_tensor(outputs[i]))
            return tn_error_status() != TN_OK ? tn_error_status()
                                              : tni_fail(TN_ERR_INVALID_ARGUMENT,
                                                         "%s: the function left output %llu unset",
                                                         call, (unsigned long long)i);
    return TN_OK;
}

static tn_status check_call(const char *call, tn_tensors_fn fn, tn_tensor *const *inputs,
                            uint64_t n_inputs, tn_tensor **out) {
    if (!fn)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: the function is NULL", call);
    if (n_inputs == 0 || !inputs)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: there are no inputs", call);
    if (!out)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: there is no room for results", call);
    return TN_OK;
}

/* Hands results on to the scope outside, without history where none is asked for. */
static tn_status hand_out(tn_tensor **results, uint64_t n, bool create_graph, tn_tensor **out) {
    for (uint64_t i = 0; i < n; i++) {
        tn_tensor *t = create_graph ? results[i] : tn_detach(results[i]);
        if (!t)
            return tni_failed();
        out[i] = t;
    }
    for (uint64_t i = 0; i < n; i++)
        tn_escape(out[i]);
    return TN_OK;
}

/* ---- forward mode ------------------------------------------------------------------------ */

static tn_status check_tangents(tn_tensor *const *inputs, tn_tensor *const *tangents, uint64_t n) {
    static const char call[] = "tn_jvp";
    TNI_TRY(check_tensors(call, tangents, n, "tangents"));
    for (uint64_t i = 0; i < n; i++) {
        const tn_tensor *x = inputs[i], *v = tangents[i];
        if (!tni_same_shape(x, v) || x->view.dtype != v->view.dtype || x->device != v->device)
            return tni_fail(TN_ERR_SHAPE,
                            "%s: tangent %llu is %s%s on %s, and input %llu %s%s on %s; they must "
                            "be alike",
                            call, (unsigned long long)i, tn_dtype_name(v->view.dtype),
                            TNI_SHAPE_OF(v), v->device->name, (unsigned long long)i,
                            tn_dtype_name(x->view.dtype), TNI_SHAPE_OF(x), x->device->name);
    }
    return TN_OK;
}

/* Arrays of one call, by inputs and by outputs. */
typedef struct passes {
    tn_tensor **x, **v, **g, **y, **u, **t;
} passes;

/* g = u J of those outputs that have a history; out_n counts them. */
static tn_status first_pass(const passes *p, uint64_t n_inputs, uint64_t n_outputs,
                            uint64_t *out_n) {
    uint64_t n = 0;
    tn_tensor **roots = p->t;
    for (uint64_t j = 0; j < n_outputs; j++) {
        if (!has_grad(p->y[j]))
            continue;
        p->u[n] = tn_set_requires_grad(tn_ones_like(tn_detach(p->y[j])), true);
        roots[n] = p->y[j];
        if (!p->u[n++])
            return tni_failed();
    }
    *out_n = n;
    if (n == 0)
        return TN_OK;
    return tn_gradients(roots, p->u, n, p->x, n_inputs, true, true, true, p->g);
}

/* Gradients without a history are constant, which u J is not unless it is 0: what made them cannot
 * be differentiated again. */
static tn_status check_constant(tn_tensor *g, uint64_t i) {
    double largest = 0;
    if (!g || g->view.numel == 0)
        return TN_OK;
    TNI_TRY(tn_item(tn_norm(tn_reshape(g, TN_SHAPE(-1))), &largest));
    if (largest == 0)
        return TN_OK;
    return tni_fail(
        TN_ERR_UNSUPPORTED,
        "tn_jvp: what gives the gradient of input %llu records nothing, so it is "
        "differentiable once only (a tn_function whose backward runs without recording, "
        "perhaps); tn_jacobian can do without",
        (unsigned long long)i);
}

/* t = J v: the derivative of g by u along the tangents. */
static tn_status second_pass(const passes *p, uint64_t n_inputs, uint64_t n_roots,
                             bool create_graph) {
    uint64_t n = 0;
    for (uint64_t i = 0; i < n_inputs; i++) {
        if (!has_grad(p->g[i])) {
            TNI_TRY(check_constant(p->g[i], i));
            continue;
        }
        p->g[n] = p->g[i];
        p->v[n++] = p->v[i];
    }
    if (n == 0)
        return TN_OK;
    return tn_gradients(p->g, p->v, n, p->u, n_roots, create_graph, create_graph, true, p->t);
}

static tn_status jvp(tn_tensors_fn fn, void *user, tn_tensor *const *inputs, const passes *p,
                     uint64_t n_inputs, uint64_t n_outputs, bool create_graph) {
    static const char call[] = "tn_jvp";
    uint64_t n_roots = 0;
    TNI_TRY(take_inputs(call, inputs, n_inputs, create_graph, p->x));
    TNI_TRY(check_tangents(p->x, p->v, n_inputs));
    TNI_TRY(call_function(call, fn, user, p->x, n_inputs, p->y, n_outputs));
    TNI_TRY(first_pass(p, n_inputs, n_outputs, &n_roots));
    for (uint64_t j = 0; j < n_outputs; j++)
        p->t[j] = NULL;
    TNI_TRY(second_pass(p, n_inputs, n_roots, create_graph));
    /* From the end: those of roots stand at the head, in order. */
    for (uint64_t j = n_outputs; j-- > 0;) {
        tn_tensor *t = has_grad(p->y[j]) ? p->t[--n_roots] : NULL;
        p->t[j] = or_zeros(t, p->y[j]);
        if (!p->t[j])
            return tni_failed();
    }
    return TN_OK;
}

tn_status tn_jvp(tn_tensors_fn fn, void *user, tn_tensor *const *inputs, tn_tensor *const *tangents,
                 uint64_t n_inputs, bool create_graph, tn_tensor **outputs,
                 tn_tensor **out_tangents, uint64_t n_outputs) {
    static const char call[] = "tn_jvp";
    TNI_TRY(check_call(call, fn, inputs, n_inputs, outputs));
    if (!tangents || !out_tangents)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: %s is NULL", call,
                        tangents ? "out_tangents" : "tangents");
    tn_tensor **room = tni_calloc(3 * (n_inputs + n_outputs), sizeof *room);
    if (!room)
        return tni_fail_memory("the passes of a derivative");
    passes p = {.x = room, .v = room + n_inputs, .g = room + 2 * n_inputs};
    p.y = room + 3 * n_inputs;
    p.u = p.y + n_outputs;
    p.t = p.u + n_outputs;
    bool before = tn_set_grad_enabled(true);
    tn_scope scope = tn_scope_open();
    memcpy(p.v, tangents, n_inputs * sizeof *p.v);
    tn_status status = jvp(fn, user, inputs, &p, n_inputs, n_outputs, create_graph);
    if (status == TN_OK)
        status = hand_out(p.y, n_outputs, create_graph, outputs);
    if (status == TN_OK)
        status = hand_out(p.t, n_outputs, create_graph, out_tangents);
    tn_scope_close(scope);
    tn_set_grad_enabled(before);
    tni_free(room);
    for (uint64_t j = 0; j < n_outputs && status != TN_OK; j++)
        outputs[j] = out_tangents[j] = NULL;
    return status;
}

/* ---- Jacobians and Hessians -------------------------------------------------------------- */

/* Sizes of y, then those of x. */
static tn_tensor *shaped(tn_tensor *rows, const tn_tensor *y, const tn_tensor *x) {
    int64_t sizes[2 * TN_MAX_RANK];
    int32_t n = 0;
    for (int32_t d = 0; d < y->view.rank; d++)
        sizes[n++] = y->sizes[d];
    for (int32_t d = 0; d < x->view.rank; d++)
        sizes[n++] = x->sizes[d];
    return tn_reshape(rows, tn_ints_of(sizes, n));
}

/* The derivatives of each element of y by each x: rows[k * n + i] is that of element k by x[i]. */
static tn_status rows_of(tn_tensor *y, tn_tensor *const *x, uint64_t n, bool create_graph,
                         tn_tensor **rows) {
    tn_tensor *flat = tn_reshape(y, TN_SHAPE(-1));
    for (int64_t k = 0; k < y->view.numel; k++, rows += n) {
        tn_tensor *root = tn_select(flat, 0, k);
        TNI_TRY(tn_gradients(&root, NULL, 1, x, n, true, create_graph, true, rows));
        for (uint64_t i = 0; i < n; i++)
            if (!(rows[i] = or_zeros(rows[i], x[i])))
                return tni_failed();
    }
    return TN_OK;
}

/* dy / dx for each x, into out, in the scope. */
static tn_status jacobian_of(tn_tensor *y, tn_tensor *const *x, uint64_t n, bool create_graph,
                             tn_tensor **out) {
    uint64_t n_rows = has_grad(y) ? (uint64_t)y->view.numel : 0;
    tn_tensor **rows = tni_alloc((n + 1) * (n_rows + 1) * sizeof *rows);
    if (!rows)
        return tni_fail_memory("the rows of a Jacobian");
    tn_tensor **column = rows + n * n_rows; /* of one x */
    tn_status status = n_rows ? rows_of(y, x, n, create_graph, rows) : TN_OK;
    for (uint64_t i = 0; i < n && status == TN_OK; i++) {
        for (uint64_t k = 0; k < n_rows; k++)
            column[k] = rows[k * n + i];
        tn_tensor *whole = n_rows ? tn_stack(column, n_rows, 0)
                                  : tn_zeros(TN_SHAPE(y->view.numel, x[i]->view.numel),
                                             y->view.dtype, tn_device_of(y));
        out[i] = shaped(whole, y, x[i]);
        status = out[i] ? TN_OK : tni_failed();
    }
    tni_free(rows);
    return status;
}

typedef tn_status (*derive_fn)(tn_tensor *y, tn_tensor *const *x, uint64_t n, bool create_graph,
                               tn_tensor **out);

/* The second derivatives of y: the Jacobian of each of its gradients. */
static tn_status hessian_of(tn_tensor *y, tn_tensor *const *x, uint64_t n, bool create_graph,
                            tn_tensor **out) {
    if (y->view.numel != 1)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_hessian: the output has shape %s; it must have one element",
                        TNI_SHAPE_OF(y));
    tn_tensor **grads = tni_calloc(n, sizeof *grads);
    if (!grads)
        return tni_fail_memory("the gradients of a function");
    tn_status status =
        has_grad(y) ? tn_gradients(&y, NULL, 1, x, n, true, true, true, grads) : TN_OK;
    for (uint64_t i = 0; i < n && status == TN_OK; i++) {
        tn_tensor *g = or_zeros(grads[i], x[i]);
        status = g ? jacobian_of(g, x, n, create_graph, out + i * n) : tni_failed();
    }
    tni_free(grads);
    return status;
}

static tn_status derive(const char *call, derive_fn how, uint64_t n_results, tn_tensors_fn fn,
                        void *user, tn_tensor *const *inputs, uint64_t n_inputs, bool create_graph,
                        tn_tensor **out) {
    tn_tensor **x = tni_calloc(n_inputs + n_results, sizeof *x), *y = NULL;
    if (!x)
        return tni_fail_memory("the results of a derivative");
    tn_tensor **made = x + n_inputs;
    bool before = tn_set_grad_enabled(true);
    tn_scope scope = tn_scope_open();
    tn_status status = take_inputs(call, inputs, n_inputs, create_graph, x);
    if (status == TN_OK)
        status = call_function(call, fn, user, x, n_inputs, &y, 1);
    if (status == TN_OK)
        status = how(y, x, n_inputs, create_graph, made);
    if (status == TN_OK)
        status = hand_out(made, n_results, create_graph, out);
    tn_scope_close(scope);
    tn_set_grad_enabled(before);
    tni_free(x);
    for (uint64_t i = 0; i < n_results && status != TN_OK; i++)
        out[i] = NULL;
    return status;
}

tn_status tn_jacobian(tn_tensors_fn fn, void *user, tn_tensor *const *inputs, uint64_t n_inputs,
                      bool create_graph, tn_tensor **out) {
    static const char call[] = "tn_jacobian";
    TNI_TRY(check_call(call, fn, inputs, n_inputs, out));
    return derive(call, jacobian_of, n_inputs, fn, user, inputs, n_inputs, create_graph, out);
}

tn_status tn_hessian(tn_tensors_fn fn, void *user, tn_tensor *const *inputs, uint64_t n_inputs,
                     bool create_graph, tn_tensor **out) {
    static const char call[] = "tn_hessian";
    TNI_TRY(check_call(call, fn, inputs, n_inputs, out));
    return derive(call, hessian_of, n_inputs * n_inputs, fn, user, inputs, n_inputs, create_graph,
                  out);
}
