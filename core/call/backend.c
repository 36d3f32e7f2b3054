/* The Backend handler: where a call leaves the dispatcher and becomes work.
 *
 * Views and composites run their C function. Pointwise and general operators find the kernel of
 * their device; without one the decomposition runs, and without that the fallback policy decides.
 */
#include "core/call/call.h"
#include "core/ops/operators.h"
#include "core/profile/profile.h"

#include <stdio.h>
#include <string.h>

/* Views and composites. */
static __attribute__((noinline)) tn_status run(const tn_op *op, const tn_cell *args,
                                               tn_cell *rets) {
    const tni_op_info *info = tni_info(op);
    /* What has a derivative of its own runs without recording; the rest differentiates through. */
    tn_thread_keys before = tni_thread_keys;
    if (info->derivative)
        tni_thread_keys.excluded |= TNI_KEYS_BELOW_AUTOGRAD;
    tn_status status = TNI_UNLIKELY(info->wide) ? tni_run_as(op, tni_promoted(op, args), args, rets)
                                                : info->run(args, rets);
    /* copy_ and its like write self in `run`; the in-place form of a functional composite is its
     * result copied into self. */
    if (status == TN_OK && info->form != TNI_FORM_FUNCTIONAL && op->schema->n_rets == 1)
        status = tni_store(info, tni_written_arg(info, op, args), rets[0].v.pointer, rets);
    tni_thread_keys = before;
    return status;
}

static __attribute__((noinline)) tn_status check_choice(const tni_op_info *info,
                                                        const tn_cell *args) {
    const tni_choices *c = info->choices;
    const char *given = args[c->arg].v.string;
    char allowed[128] = "";
    size_t n = 0;
    for (int i = 0; i < TNI_MAX_CHOICES && c->words[i]; i++) {
        if (given && strcmp(given, c->words[i]) == 0)
            return TN_OK;
        n +=
            (size_t)snprintf(allowed + n, sizeof allowed - n, "%s'%s'", i ? ", " : "", c->words[i]);
    }
    return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: %s is '%s'; it must be one of %s", info->call,
                    c->name, given ? given : "NULL", allowed);
}

tn_status tni_backend_handler(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                              void *user) {
    const tni_op_info *info = tni_info(op);
    if (TNI_UNLIKELY(!info))
        return tni_custom_unanswered(op, args, rets);
    if (TNI_UNLIKELY(info->choices != NULL) && check_choice(info, args) != TN_OK)
        return tni_failed();
    switch (info->kind) {
    case TNI_OP_POINTWISE:
        return tni_pointwise(op, args, rets);
    case TNI_OP_GENERAL:
        return tni_general(op, args, rets);
    case TNI_OP_VIEW:
        return info->run(args, rets); /* makes a tensor and calls nobody */
    default:
        return run(op, args, rets);
    }
}

/* ---- decompositions ---------------------------------------------------------------------- */

tn_dtype tni_promoted(const tn_op *op, const tn_cell *args) {
    for (uint32_t i = 0; i < op->schema->n_args; i++)
        if (op->schema->args[i].type == TNI_TYPE_DTYPE && args[i].tag != TN_CELL_NONE)
            return tni_arg_dtype(&args[i]);
    tni_promotion promotion = TNI_NO_PROMOTION;
    for (uint32_t i = 0; i < op->n_tensor_args; i++)
        if (args[op->tensor_args[i]].tag == TN_CELL_TENSOR)
            tni_promotion_add(&promotion, &args[op->tensor_args[i]]);
    return tni_promotion_result(&promotion);
}

/* Is result i of the dtype that the arguments have, and not of one of its own? */
static bool is_of_arguments(const tni_op_info *info, uint32_t i) {
    return info->kernel < 0 || tni_kernel_types_of[info->kernel].outs[i] == 0;
}

/* Rounds the results that were computed in f32 for a half. */
static tn_status narrow(const tn_op *op, tn_dtype dtype, tn_cell *rets) {
    for (uint32_t i = 0; i < op->schema->n_rets; i++) {
        tn_tensor *t = tni_arg_tensor(&rets[i]);
        if (!t || t->view.dtype != TN_F32 || !is_of_arguments(tni_info(op), i))
            continue;
        rets[i].v.pointer = tni_to_dtype(t, dtype);
        tni_drop(t);
        if (!rets[i].v.pointer) {
            for (uint32_t j = 0; j < op->schema->n_rets; j++)
                tni_drop(rets[j].v.pointer);
            return tni_failed();
        }
    }
    return TN_OK;
}

/* A formula about floats would wrap round in integers (1 / (1 + exp(-x)) of u8), and one of several
 * steps would round at each of them in a half: eps vanishes, small terms are lost. */
tn_status tni_run_as(const tn_op *op, tn_dtype dtype, const tn_cell *args, tn_cell *rets) {
    const tni_op_info *info = tni_info(op);
    bool widens = info->wide && tni_is_half(dtype);
    bool floats = info->type_rule == TNI_TYPES_FLOAT && info->kernel >= 0;
    bool pointwise = info->kind == TNI_OP_POINTWISE; /* as its kernel, in one dtype */
    if (TNI_LIKELY(!widens && !floats && !pointwise))
        return info->run(args, rets);
    tn_dtype in = widens ? TN_F32 : dtype;
    tn_cell cast[TNI_MAX_ARGS];
    tni_temps tmp = {0};
    tn_status status = TN_OK;
    memcpy(cast, args, op->schema->n_args * sizeof *cast);
    for (uint32_t i = 0; i < op->n_tensor_args && status == TN_OK; i++) {
        uint32_t arg = op->tensor_args[i];
        tn_tensor *t = tni_arg_tensor(&args[arg]);
        if (!t || t->view.dtype == in ||
            (op->schema->args[arg].is_written && info->form == TNI_FORM_OUT))
            continue;
        if (!pointwise &&
            !(tni_is_float(t->view.dtype) ? widens && tni_is_half(t->view.dtype) : floats))
            continue;
        cast[arg].v.pointer = tni_own(&tmp, tni_to_dtype(t, in));
        if (!cast[arg].v.pointer)
            status = tni_failed();
    }
    if (status == TN_OK)
        status = info->run(cast, rets);
    tni_temps_finish(&tmp);
    return status == TN_OK && widens ? narrow(op, dtype, rets) : status;
}

TNI_TLS const tn_cell *tni_kernel_or_nothing;

tn_status tni_without_kernel(const tn_op *op, tni_device *device, tn_dtype dtype,
                             const tn_cell *args, tn_cell *rets) {
    const tni_op_info *info = tni_info(op);
    if (tni_kernel_or_nothing == args)
        return TNI_NOT_SUPPORTED;
    bool decomposes = tni_decomposes(info, dtype);
    tni_note(decomposes ? TN_PROFILE_DECOMPOSITION : TN_PROFILE_FALLBACK);
    if (!decomposes)
        return tni_fallback(op, device, dtype, args, rets);
    tn_thread_keys before = tni_thread_keys;
    tni_thread_keys.excluded |= TNI_KEYS_BELOW_AUTOGRAD;
    tn_status status = tni_run_as(op, dtype, args, rets);
    tni_thread_keys = before;
    if (status == TN_OK && info->form != TNI_FORM_FUNCTIONAL)
        status = tni_store(info, tni_written_arg(info, op, args), rets[0].v.pointer, rets);
    return status;
}

tn_status tni_store(const tni_op_info *info, tn_tensor *dst, tn_tensor *result, tn_cell *rets) {
    if (!dst || dst == result)
        return tni_return(rets, result);
    rets[0] = (tn_cell){0};
    tn_status status = TN_OK;
    if (!tni_same_shape(dst, result))
        status =
            tni_fail(TN_ERR_SHAPE, "%s: the result has shape %s, but %s has %s; they must be equal",
                     info->call, TNI_SHAPE_OF(result),
                     info->form == TNI_FORM_INPLACE ? "self" : "out", TNI_SHAPE_OF(dst));
    else if (!tni_can_cast(result->view.dtype, dst->view.dtype))
        status =
            tni_fail(TN_ERR_DTYPE,
                     "%s: the result is %s and cannot be stored as %s; cast the "
                     "operands, or give another output",
                     info->call, tn_dtype_name(result->view.dtype), tn_dtype_name(dst->view.dtype));
    else
        status = tni_copy_data(dst, result);
    tni_drop(result);
    return status == TN_OK ? tni_return(rets, tni_keep(dst)) : status;
}

/* ---- devices of a call ------------------------------------------------------------------- */

/* A walk over every tensor argument: single tensors, then lists. */
typedef struct walk {
    const tn_op *op;
    const tn_cell *args;
    uint32_t arg, element;
} walk;

static tn_tensor *next_tensor(walk *w) {
    uint32_t n = w->op->n_tensor_args + w->op->n_list_args;
    while (w->arg < n) {
        const tn_cell *a = &w->args[w->op->tensor_args[w->arg]];
        while (a->tag == TN_CELL_TENSORS && w->element < a->n) {
            tn_tensor *t = ((tn_tensor *const *)a->v.pointer)[w->element++];
            if (t) /* not left out */
                return t;
        }
        w->arg++;
        w->element = 0;
        if (a->tag == TN_CELL_TENSOR)
            return a->v.pointer;
    }
    return NULL;
}

static bool defers(const tn_tensor *t) {
    return t->device->is_cpu && t->view.rank == 0;
}

tni_device *tni_call_device(const tn_op *op, const tn_cell *args) {
    walk w = {op, args, 0, 0};
    tni_device *device = NULL, *deferred = NULL;
    for (tn_tensor *t; (t = next_tensor(&w));) {
        if (defers(t))
            deferred = t->device;
        else if (!device)
            device = t->device;
        else if (device != t->device)
            return tni_fail_null(
                TN_ERR_DEVICE,
                "%s: tensors on %s and on %s cannot be mixed; move one with tn_to_device",
                tni_info(op) ? tni_info(op)->call : op->name, device->name, t->device->name);
    }
    return device ? device : deferred;
}

tni_device *tni_factory_device(tn_device device) {
    if (device.type == 0)
        device = tn_default_device();
    return device.type == 0 ? NULL : tni_device_get(device);
}
