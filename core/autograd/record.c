/* Recording: the handler of the Autograd key.
 *
 * It stands on the path of every call with an input that has, or may have, a history, so each step
 * looks at the operator's record alone, and a call of which nobody wants a gradient leaves after a
 * look at its differentiable arguments. */
#include "core/autograd/engine.h"
#include "core/call/call.h"
#include "core/ops/operators.h"
#include "base/alloc.h"

#include <string.h>

/* ---- operators without a derivative ------------------------------------------------------ */

static tn_status refuse_backward(tni_node *node, tn_tensor *const *grads, tn_tensor **out) {
    return tni_fail(TN_ERR_UNSUPPORTED,
                    "operator %s has no derivative; detach its inputs if no gradient should pass, "
                    "or write it as a tn_function with a backward of its own",
                    tn_op_name(node->extra));
}

static const tni_node_type not_differentiable_type = {"NotDifferentiable", refuse_backward, NULL,
                                                      NULL};

static uint32_t count_wanting(const tn_op *op, const tn_cell *args) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < (uint32_t)op->n_tensor_args + op->n_list_args; i++) {
        uint32_t n;
        tn_tensor *const *list = tni_arg_tensors(&args[op->tensor_args[i]], &n);
        for (uint32_t j = 0; j < n; j++)
            count += list[j] && tni_requires_grad(list[j]);
    }
    return count;
}

/* Which arguments an operator writes, for one that the core has no record of. */
static uint32_t written_args(const tn_op *op) {
    const tni_op_info *info = tni_info(op);
    if (info)
        return info->written;
    uint32_t mask = 0;
    for (uint32_t i = 0; i < op->schema->n_args && i < TNI_MAX_ARGS; i++)
        mask |= (uint32_t)op->schema->args[i].is_written << i;
    return mask;
}

static tn_status check_written(const tn_op *op, const tn_cell *args, uint32_t mask) {
    const tni_op_info *info = tni_info(op);
    tn_status status = TN_OK;
    for (; mask && status == TN_OK; mask &= mask - 1) {
        uint32_t n;
        tn_tensor *const *list = tni_arg_tensors(&args[__builtin_ctz(mask)], &n);
        for (uint32_t j = 0; j < n && status == TN_OK; j++)
            status = tni_check_inplace(list[j], info ? info->call : op->name);
    }
    return status;
}

/* The gradient of an argument would end in a complex result, and nobody be told. */
static tn_status check_real(const tni_op_info *info, const tn_tensor *result) {
    if (!result || !tni_is_complex(result->view.dtype))
        return TN_OK;
    return tni_fail(TN_ERR_DTYPE,
                    "%s: a tensor that requires a gradient becomes %s, and complex tensors have"
                    " none; take tn_detach of it",
                    info->call, tn_dtype_name(result->view.dtype));
}

/* A call of which nobody wants a gradient may still write a part of a tensor that has one, through a
 * view that autograd does not follow. */
static tn_status pass_by(const tn_op *op, tn_keyset below, const tn_cell *args, tn_cell *rets) {
    for (uint32_t mask = written_args(op); mask; mask &= mask - 1) {
        uint32_t n;
        tn_tensor *const *list = tni_arg_tensors(&args[__builtin_ctz(mask)], &n);
        for (uint32_t j = 0; j < n; j++) {
            tn_tensor *base = list[j] ? tni_base(list[j]) : NULL;
            if (!base || !tni_requires_grad(base))
                continue;
            TNI_TRY(check_written(op, args, mask & -mask));
        }
    }
    return tni_dispatch(op, below, args, rets);
}

static void drop_rets(const tn_op *op, tn_cell *rets) {
    for (uint32_t i = 0; i < op->schema->n_rets; i++) {
        uint32_t n;
        tn_tensor *const *list = tni_arg_tensors(&rets[i], &n);
        for (uint32_t j = 0; j < n; j++)
            tni_drop(list[j]);
        if (rets[i].tag == TN_CELL_TENSORS)
            tni_free(rets[i].v.pointer);
        rets[i] = (tn_cell){0};
    }
}

/* Points results at outputs of the node, in order; what was written gets its new history. */
static tn_status set_histories(const tn_op *op, bool written, const tn_cell *rets, tni_node *node,
                               uint32_t without) {
    tn_status status = TN_OK;
    uint32_t output = 0;
    for (uint32_t i = 0; i < op->schema->n_rets; i++) {
        uint32_t n;
        tn_tensor *const *list = tni_arg_tensors(&rets[i], &n);
        for (uint32_t j = 0; j < n && status == TN_OK; j++, output++) {
            tn_tensor *t = list[j];
            if (!t || !tni_is_float(t->view.dtype) || (output < 32 && (without >> output & 1)))
                continue;
            status = written ? tni_rebase_history(t, node) : tni_set_history(t, node, output);
        }
    }
    return status;
}

static uint32_t count_results(const tn_op *op, const tn_cell *rets) {
    uint32_t count = 0, n;
    for (uint32_t i = 0; i < op->schema->n_rets; i++) {
        tni_arg_tensors(&rets[i], &n);
        count += rets[i].tag == TN_CELL_TENSORS ? n : 1;
    }
    return count;
}

static tn_status record_failing(const tn_op *op, tn_keyset below, const tn_cell *args,
                                tn_cell *rets) {
    uint32_t n_edges = count_wanting(op, args);
    if (n_edges == 0)
        return pass_by(op, below, args, rets);
    uint32_t written = written_args(op);
    TNI_TRY(check_written(op, args, written));
    TNI_TRY(tni_dispatch(op, below, args, rets));
    uint32_t n_results = count_results(op, rets);
    tni_node *node =
        tni_node_new(&not_differentiable_type, n_edges, n_results ? n_results : 1, 0, 0, 0);
    tn_status status = node ? TN_OK : TN_ERR_OUT_OF_MEMORY;
    uint32_t edge = 0;
    for (uint32_t i = 0; i < (uint32_t)op->n_tensor_args + op->n_list_args; i++) {
        uint32_t n;
        tn_tensor *const *list = tni_arg_tensors(&args[op->tensor_args[i]], &n);
        for (uint32_t j = 0; j < n && status == TN_OK && edge < n_edges; j++)
            if (list[j] && tni_requires_grad(list[j]))
                status = tni_node_set_edge(node, edge++, list[j]);
    }
    if (status == TN_OK) {
        node->extra = (void *)(uintptr_t)op;
        status = set_histories(op, false, rets, node, 0);
    }
    for (; written && status == TN_OK; written &= written - 1) {
        uint32_t n;
        tn_tensor *const *list = tni_arg_tensors(&args[__builtin_ctz(written)], &n);
        for (uint32_t j = 0; j < n && status == TN_OK; j++)
            if (list[j] && tni_is_float(list[j]->view.dtype))
                status = tni_rebase_history(list[j], node);
    }
    tni_node_drop(node);
    if (status != TN_OK)
        drop_rets(op, rets);
    return status;
}

/* ---- operators whose derivative is that of their decomposition --------------------------- */

/* Gives the values the histories, and drops what else came with those. */
static tn_status take_histories(const tn_op *op, tn_cell *values, tn_cell *histories) {
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < op->schema->n_rets; i++) {
        tn_tensor *value = tni_arg_tensor(&values[i]), *t = tni_arg_tensor(&histories[i]);
        if (status == TN_OK && tni_requires_grad(t))
            status = tni_set_history(value, t->autograd->node, t->autograd->output);
    }
    drop_rets(op, status == TN_OK ? histories : values);
    if (status != TN_OK)
        drop_rets(op, histories);
    return status;
}

static tn_status record_decomposed(const tn_op *op, tn_keyset below, const tn_cell *args,
                                   tn_cell *rets) {
    const tni_op_info *info = tni_info(op);
    tn_cell histories[TNI_MAX_RETS] = {{0}};
    tn_status status = TNI_NOT_SUPPORTED;
    /* Recording must not change the bits. A form that writes its argument would have written what the
     * history is then computed from. */
    if (info->kernel >= 0 && info->form == TNI_FORM_FUNCTIONAL) {
        const tn_cell *outer = tni_kernel_or_nothing;
        tni_kernel_or_nothing = args;
        status = tni_dispatch(op, below, args, rets);
        tni_kernel_or_nothing = outer;
    }
    if (status == TN_OK) {
        status = tni_run_as(op, tni_promoted(op, args), args, histories);
        if (status == TN_OK)
            return take_histories(op, rets, histories);
        drop_rets(op, rets);
        return status;
    }
    if (status != TNI_NOT_SUPPORTED)
        return status;
    status = tni_run_as(op, tni_promoted(op, args), args, rets);
    if (status == TN_OK && info->form != TNI_FORM_FUNCTIONAL && op->schema->n_rets == 1) {
        tn_tensor *dst = tni_written_arg(info, op, args), *result = rets[0].v.pointer;
        if (dst && result != dst) {
            rets[0] = (tn_cell){0};
            tn_tensor *written = tni_copy_(dst, result, false);
            tni_drop(result);
            status = tni_return(rets, written);
        }
    }
    return status;
}

tn_status tni_autograd_decomposed(const tn_op *op, tn_keyset keys, const tn_cell *args,
                                  tn_cell *rets, void *user) {
    tn_keyset below = tn_keyset_below(keys, TN_KEY_AUTOGRAD);
    if (count_wanting(op, args) == 0)
        return pass_by(op, below, args, rets);
    /* of the dtypes that it would have without recording */
    tn_thread_keys before = tni_thread_keys;
    tni_thread_keys.excluded |= TN_KEY_BIT(TN_KEY_AUTOCAST);
    tn_status status = record_decomposed(op, below, args, rets);
    tni_thread_keys = before;
    return status;
}

/* ---- operators with one ------------------------------------------------------------------ */

/* Bytes the lists among the attrs need. */
static uint32_t attr_bytes(const tni_derivative *d, const tn_cell *args, const tn_cell *rets) {
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < d->n_attrs; i++) {
        const tn_cell *cell = &args[d->attrs[i].arg];
        switch ((tni_attr_source)d->attrs[i].source) {
        case TNI_ATTR_CELL:
            if (cell->tag == TN_CELL_INTS)
                bytes += cell->n * (uint32_t)sizeof(int64_t);
            else if (cell->tag == TN_CELL_STRING)
                bytes += ((uint32_t)strlen(cell->v.string) + 8) & ~7u;
            break;
        case TNI_ATTR_OUT_SIZES:
            cell = &rets[d->attrs[i].arg];
            /* fall through */
        case TNI_ATTR_SIZES:
        case TNI_ATTR_STRIDES:
            if (cell->tag == TN_CELL_TENSOR)
                bytes += (uint32_t)(tni_arg_tensor(cell)->view.rank * (int32_t)sizeof(int64_t));
            break;
        case TNI_ATTR_LENGTHS:
            bytes += cell->n * (uint32_t)sizeof(int64_t);
            break;
        case TNI_ATTR_OFFSET:
        case TNI_ATTR_DTYPE:
            break;
        }
    }
    return bytes;
}

/* cell is the list, the cell behind it the dimension. */
static tn_status set_lengths(tni_node *node, uint32_t i, const tn_cell *cell) {
    tn_tensor *const *list = cell->v.pointer;
    int64_t *lengths = tni_alloc((cell->n + 1) * sizeof *lengths);
    if (!lengths)
        return tni_fail_memory("a node of the graph");
    for (uint32_t j = 0; j < cell->n; j++) {
        int64_t dim = cell[1].v.i64 < 0 ? cell[1].v.i64 + list[j]->view.rank : cell[1].v.i64;
        lengths[j] = dim >= 0 && dim < list[j]->view.rank ? list[j]->sizes[dim] : 0;
    }
    tn_cell made = tni_cell_ints(tn_ints_of(lengths, cell->n));
    tn_status status = tni_node_set_attr(node, i, &made);
    tni_free(lengths);
    return status;
}

static tn_status set_attrs(tni_node *node, const tni_derivative *d, const tn_cell *args,
                           const tn_cell *rets) {
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < d->n_attrs && status == TN_OK; i++) {
        const tn_cell *cell = &args[d->attrs[i].arg];
        tn_cell made = {0};
        switch ((tni_attr_source)d->attrs[i].source) {
        case TNI_ATTR_CELL:
            made = *cell;
            break;
        case TNI_ATTR_OUT_SIZES:
            cell = &rets[d->attrs[i].arg];
            /* fall through */
        case TNI_ATTR_SIZES:
            if (cell->tag == TN_CELL_TENSOR)
                made = tni_cell_ints(tn_sizes(tni_arg_tensor(cell)));
            break;
        case TNI_ATTR_STRIDES:
            if (cell->tag == TN_CELL_TENSOR)
                made = tni_cell_ints(tn_strides(tni_arg_tensor(cell)));
            break;
        case TNI_ATTR_OFFSET:
            if (cell->tag == TN_CELL_TENSOR)
                made = tni_cell_i64(tni_offset_elements(tni_arg_tensor(cell)));
            break;
        case TNI_ATTR_DTYPE:
            if (cell->tag == TN_CELL_TENSOR)
                made = tni_cell_i64(tni_arg_tensor(cell)->view.dtype);
            break;
        case TNI_ATTR_LENGTHS:
            status = set_lengths(node, i, cell);
            continue;
        }
        status = tni_node_set_attr(node, i, &made);
    }
    return status;
}

/* The tensor inputs of the node: one for each edge. */
static uint32_t n_edges_of(const tni_derivative *d, const tn_cell *args) {
    return d->is_list ? args[d->inputs[0]].n : d->n_inputs;
}
static inline tn_tensor *edge_input(const tni_derivative *d, const tn_cell *args, uint32_t i) {
    return d->is_list ? ((tn_tensor *const *)args[d->inputs[0]].v.pointer)[i]
                      : tni_arg_tensor(&args[d->inputs[i]]);
}

typedef struct call {
    const tn_op *op;
    const tni_op_info *info;
    const tni_derivative *d;
    const tn_cell *args;
    uint32_t wanted;       /* differentiable inputs that require a gradient; all ones for a list */
    tn_tensor **originals; /* copies of saved inputs that it writes; NULL: it writes nothing */
} call;

/* Node, edges, saved inputs, attrs. `rets` NULL: before the call. */
static tni_node *make_node(const call *c, uint32_t n_outputs, const tn_cell *rets) {
    const tni_derivative *d = c->d;
    const tn_cell *args = c->args;
    uint32_t n_edges = n_edges_of(d, args);
    tni_node *node = tni_node_new(&d->node, n_edges, n_outputs, d->n_saved, d->n_attrs,
                                  d->n_attrs ? attr_bytes(d, args, rets) : 0);
    if (TNI_UNLIKELY(!node))
        return NULL;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < n_edges && status == TN_OK; i++)
        status = tni_node_set_edge(node, i, edge_input(d, args, i));
    for (uint32_t i = 0; i < d->n_saved && status == TN_OK; i++) {
        if (!d->saved[i].is_output && (d->saved[i].only_for & c->wanted))
            status = tni_node_save(node, i,
                                   c->originals && c->originals[i]
                                       ? c->originals[i]
                                       : tni_arg_tensor(&args[d->saved[i].arg]),
                                   0);
    }
    if (d->n_attrs && status == TN_OK)
        status = set_attrs(node, d, args, rets);
    if (TNI_UNLIKELY(status != TN_OK)) {
        tni_node_drop(node);
        return NULL;
    }
    return node;
}

static tn_status save_outputs(const call *c, tni_node *node, const tn_cell *rets) {
    const tni_derivative *d = c->d;
    for (uint32_t i = 0; i < d->n_saved; i++) {
        if (!d->saved[i].is_output || !(d->saved[i].only_for & c->wanted))
            continue;
        uint32_t output = d->saved[i].arg;
        tn_status status = tni_node_save(node, i, tni_arg_tensor(&rets[output]), output + 1);
        if (TNI_UNLIKELY(status != TN_OK))
            return status;
    }
    return TN_OK;
}

/* Does the call write to the memory of t? */
static bool overwrites(const call *c, const tn_tensor *t) {
    for (uint32_t mask = c->info->written; t && mask; mask &= mask - 1) {
        const tn_tensor *written = tni_arg_tensor(&c->args[__builtin_ctz(mask)]);
        if (written && written->storage == t->storage)
            return true;
    }
    return false;
}

/* In place: the node is made before the call, while self has its old history, and a formula that
 * needs what is overwritten gets a copy, with history, so that second derivatives are right. */
static __attribute__((noinline)) tn_status record_written(call *c, tn_keyset below, tn_cell *rets) {
    const tni_derivative *d = c->d;
    tn_tensor *originals[TNI_MAX_SAVED] = {NULL};
    c->originals = originals;
    tn_status status = check_written(c->op, c->args, c->info->written);
    if (status == TN_OK)
        status = check_real(c->info, tni_arg_tensor(&c->args[0]));
    for (uint32_t i = 0; i < d->n_saved && status == TN_OK; i++) {
        if (d->saved[i].is_output || !(d->saved[i].only_for & c->wanted))
            continue;
        tn_tensor *t = tni_arg_tensor(&c->args[d->saved[i].arg]);
        if (!overwrites(c, t))
            continue;
        c->originals[i] = tni_clone(t);
        status = c->originals[i] ? TN_OK : tni_failed();
    }
    tni_node *node = status == TN_OK ? make_node(c, c->info->n_outs, NULL) : NULL;
    for (uint32_t i = 0; i < d->n_saved; i++)
        tni_drop(originals[i]);
    c->originals = NULL;
    if (!node)
        return tni_failed();
    status = tni_dispatch(c->op, below, c->args, rets);
    if (status == TN_OK) {
        status = save_outputs(c, node, rets);
        if (status == TN_OK)
            status = set_histories(c->op, true, rets, node, d->nondifferentiable_outputs);
        if (status != TN_OK)
            drop_rets(c->op, rets);
    }
    tni_node_drop(node);
    return status;
}

static tn_status record_fresh(call *c, tn_keyset below, tn_cell *rets) {
    tn_status status = tni_dispatch(c->op, below, c->args, rets);
    if (TNI_UNLIKELY(status != TN_OK))
        return status;
    const tni_derivative *d = c->d;
    tn_tensor *only = c->info->n_outs == 1 ? tni_arg_tensor(&rets[0]) : NULL;
    if (only && !tni_is_float(only->view.dtype)) {
        status = check_real(c->info, only);
        if (status != TN_OK)
            drop_rets(c->op, rets);
        return status;
    }
    tni_node *node = make_node(c, only ? 1 : count_results(c->op, rets), rets);
    status = node ? save_outputs(c, node, rets) : tni_failed();
    if (TNI_LIKELY(status == TN_OK && only)) {
        status = tni_take_history(only, node, 0);
    } else {
        if (status == TN_OK)
            status = set_histories(c->op, false, rets, node, d->nondifferentiable_outputs);
        tni_node_drop(node);
    }
    if (TNI_UNLIKELY(status != TN_OK))
        drop_rets(c->op, rets);
    return status;
}

tn_status tni_autograd_handler(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                               void *user) {
    const tni_op_info *info = tni_info(op);
    const tni_derivative *d = info ? info->derivative : NULL;
    tn_keyset below = tn_keyset_below(keys, TN_KEY_AUTOGRAD);
    if (TNI_UNLIKELY(!d))
        return info && info->not_differentiable ? pass_by(op, below, args, rets)
                                                : record_failing(op, below, args, rets);
    uint32_t wanted = 0;
    uint32_t n_edges = n_edges_of(d, args);
    for (uint32_t i = 0; i < n_edges; i++) {
        tn_tensor *t = edge_input(d, args, i);
        if (t && tni_requires_grad(t))
            wanted |= d->is_list ? ~0u : 1u << i;
    }
    if (!wanted)
        return pass_by(op, below, args, rets);
    call c = {.op = op, .info = info, .d = d, .args = args, .wanted = wanted};
    if (TNI_LIKELY(info->form == TNI_FORM_FUNCTIONAL))
        return record_fresh(&c, below, rets);
    if (info->form == TNI_FORM_INPLACE)
        return record_written(&c, below, rets);
    return tni_fail(TN_ERR_UNSUPPORTED,
                    "%s: an input requires a gradient, and a result written into `out` has none; "
                    "use the form that returns a new tensor, or TN_NO_GRAD",
                    info->call);
}
