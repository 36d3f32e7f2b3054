/* Operators whose shapes follow a rule of their own: `infer` says which, the rest is the same for
 * all.
 *
 * Kernel arguments by name, dtypes of the type variables, outputs, and what the kernel's flags ask
 * for. */
#include "core/call/call.h"
#include "core/profile/profile.h"

#include <string.h>

static void fill_kernel_args(tni_build *b) {
    for (uint32_t i = 0; i < b->types_of->n_args; i++) {
        uint8_t from = b->info->kernel_args[i];
        b->kargs[i] = from == TNI_ARG_INFERRED  ? (tn_cell){0}
                      : from < TNI_ARG_CONSTANT ? b->args[from]
                                                : b->info->constants[from - TNI_ARG_CONSTANT];
    }
}

/* The dtypes of the variables that infer left open, by the operator's rule. */
static tn_status find_types(tni_build *b) {
    const tni_kernel_types *kt = b->types_of;
    for (uint32_t v = 0; v < kt->n_types; v++) {
        if (b->types[v] == TN_DTYPE_NONE) {
            tni_promotion p = TNI_NO_PROMOTION;
            tn_dtype first = TN_DTYPE_NONE;
            for (uint32_t i = 0; i < kt->n_args; i++) {
                if (kt->args[i] != (int8_t)v || b->kargs[i].tag != TN_CELL_TENSOR)
                    continue;
                tn_dtype dtype = ((tn_tensor *)b->kargs[i].v.pointer)->view.dtype;
                if (first == TN_DTYPE_NONE)
                    first = dtype;
                else if (dtype != first && b->info->type_rule == TNI_TYPES_SAME)
                    return tni_build_fail(b, TN_ERR_DTYPE,
                                          "expected one dtype, but got %s and %s; cast one with "
                                          "tn_to_dtype",
                                          tn_dtype_name(first), tn_dtype_name(dtype));
                tni_promotion_add(&p, &b->kargs[i]);
            }
            b->types[v] = tni_promotion_result(&p);
            if (b->info->type_rule == TNI_TYPES_FLOAT && !tni_is_float(b->types[v]))
                b->types[v] = TN_F32;
        }
        if (b->types[v] == TN_DTYPE_NONE ||
            !(b->fills || (kt->dtypes[v] & TN_DTYPE_BIT(b->types[v]))))
            return tni_build_fail(b, TN_ERR_DTYPE, "not defined for %s; cast with tn_to_dtype",
                                  b->types[v] == TN_DTYPE_NONE ? "no dtype"
                                                               : tn_dtype_name(b->types[v]));
    }
    return TN_OK;
}

/* Checks and casts the inputs, as every record for these dtypes needs it. */
static tn_status cast_inputs(tni_build *b, const tn_dtype *types) {
    const tni_kernel_types *kt = b->types_of;
    for (uint32_t i = 0; i < kt->n_args; i++) {
        tn_tensor *t = tni_arg_tensor(&b->kargs[i]);
        if (!t)
            continue;
        if (t->device != b->device)
            return tni_build_fail(b, TN_ERR_DEVICE,
                                  "a tensor %s on %s cannot be used on %s; move it with "
                                  "tn_to_device",
                                  TNI_SHAPE_OF(t), t->device->name, b->device->name);
        tn_dtype dtype = tni_coded_dtype(kt->args[i], types);
        if (t->view.dtype == dtype)
            continue;
        if (kt->args[i] < 0 && !tni_can_cast(t->view.dtype, dtype))
            return tni_build_fail(b, TN_ERR_DTYPE, "an index must be an integer tensor, but is %s",
                                  tn_dtype_name(t->view.dtype));
        t = tni_own(&b->temps, tni_cast_data(t, dtype));
        if (!t)
            return tni_failed();
        b->kargs[i] = tni_cell_tensor(t);
    }
    return TN_OK;
}

/* What a record makes of a call: the inputs as it would get them. */
typedef struct plan {
    tn_cell cells[TNI_MAX_ARGS];        /* scalars of T's kind; views */
    uint32_t copied;                    /* mask of inputs that are made contiguous for it */
    tn_tensor_view views[TNI_MAX_ARGS]; /* of those, before they are made */
    int64_t strides[TNI_MAX_ARGS][TN_MAX_RANK];
} plan;

/* False: there are more elements than the record can count. */
static bool plan_inputs(tni_build *b, const tni_choice *c, plan *p) {
    const tni_kernel_types *kt = b->types_of;
    bool far_ok = (c->kernel->flags & TN_KERNEL_INDEX64) != 0;
    p->copied = 0;
    for (uint32_t i = 0; i < kt->n_args; i++) {
        const tn_cell *cell = &b->kargs[i];
        p->cells[i] = *cell;
        if (kt->args[i] == TN_KERNEL_SCALAR && cell->tag != TN_CELL_NONE)
            p->cells[i] = tni_kernel_scalar(*cell, c->types[0]);
        const tn_tensor *t = tni_arg_tensor(cell);
        if (!t)
            continue;
        const tn_tensor_view *v = &t->view;
        bool suits = tni_kernel_takes(c->kernel, v) && (far_ok || !tni_is_far(v));
        if (!suits || (c->adaptation == TNI_PLAIN && !tni_is_contiguous(v))) {
            if (v->numel > INT32_MAX && !far_ok) {
                b->too_far = c->kernel;
                return false;
            }
            p->copied |= 1u << i;
            p->views[i] = *v;
            tni_contiguous_strides(v->rank, v->sizes, p->strides[i]);
            p->views[i].strides = p->strides[i];
            p->views[i].memory = p->views[i].offset = 0;
            v = &p->views[i];
        }
        p->cells[i].v.view = v;
    }
    return true;
}

static tn_status copy_inputs(tni_build *b, plan *p) {
    for (uint32_t m = p->copied; m; m &= m - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(m);
        tn_tensor *t = tni_own(&b->temps, tni_contiguous_data(b->kargs[i].v.pointer));
        if (!t)
            return tni_failed();
        b->kargs[i] = tni_cell_tensor(t);
        b->adapted = true;
        p->cells[i].v.view = &t->view;
    }
    return TN_OK;
}

/* Are the bytes of `dst` read through another view than dst itself, or not welcome in place? */
static bool must_not_write(const tni_build *b, const tni_kernel *kernel, const tn_tensor *dst) {
    for (uint32_t i = 0; i < b->types_of->n_args; i++) {
        const tn_tensor *t = tni_arg_tensor(&b->kargs[i]);
        if (!t || t->storage != dst->storage)
            continue;
        bool same = t->view.offset == dst->view.offset && tni_same_shape(t, dst) &&
                    memcmp(t->strides, dst->strides, (size_t)t->view.rank * sizeof(int64_t)) == 0;
        if (!same || i != 0 || !(kernel->flags & TN_KERNEL_IN_PLACE))
            return true;
    }
    return false;
}

/* Gives a fresh contiguous tensor the shape the caller expects. */
static void reshape_fresh(tn_tensor *t, const tni_spec *spec) {
    t->view.rank = spec->rank;
    memcpy(t->sizes, spec->sizes, (size_t)spec->rank * sizeof(int64_t));
    tni_contiguous_strides(spec->rank, spec->sizes, t->strides);
}

/* Outputs of the right shapes, in the dtypes `types` give. */
static tn_status make_outputs(tni_build *b, const tn_dtype *types, bool kernel_shape,
                              tn_tensor **results) {
    uint32_t n = b->info->n_outs;
    for (uint32_t i = 0; i < n; i++) {
        const tni_spec *spec = kernel_shape ? &b->kernel_outs[i] : &b->outs[i];
        tn_dtype dtype = tni_coded_dtype(b->types_of->outs[i], types);
        results[i] = tni_tensor_new(b->device, dtype, spec->rank, spec->sizes);
        if (!results[i]) {
            tni_drop_all(results, i);
            return tni_failed();
        }
    }
    return TN_OK;
}

static tn_status finish_outputs(tni_build *b, tn_tensor **results, tn_cell *rets) {
    const tni_op_info *info = b->info;
    if (info->form != TNI_FORM_FUNCTIONAL)
        return tni_store(info, tni_written_arg(info, b->op, b->args), results[0], rets);
    return tni_return_many(rets, results, info->n_outs);
}

static bool is_empty(const tni_spec *spec) {
    for (int32_t d = 0; d < spec->rank; d++)
        if (spec->sizes[d] == 0)
            return true;
    return false;
}

/* What needs no kernel: outputs without elements, and reductions of nothing. */
static bool trivial(tni_build *b, tn_cell *rets, tn_status *status) {
    bool empty_in = false, empty_out = true;
    for (uint32_t i = 0; i < b->types_of->n_args; i++) {
        const tn_tensor *t = tni_arg_tensor(&b->kargs[i]);
        empty_in |= t && t->view.numel == 0;
    }
    for (uint32_t i = 0; i < b->info->n_outs; i++)
        empty_out &= is_empty(&b->outs[i]);
    bool decomposes = empty_in && b->decomposes && !b->has_empty_value;
    if ((!empty_in || decomposes) && !empty_out && !b->has_copy_value && !b->fills &&
        !b->device->is_meta)
        return false;
    tn_tensor *results[TNI_MAX_RETS] = {NULL};
    *status = make_outputs(b, b->types, false, results);
    if (*status == TN_OK && !empty_out && !b->device->is_meta) {
        if (b->has_copy_value)
            *status = tni_copy_data(results[0], b->copy_value);
        else if (!b->has_empty_value)
            *status = tni_build_fail(b, TN_ERR_SHAPE, "an argument has no elements");
        for (uint32_t i = 0; b->has_empty_value && i < b->info->n_outs && *status == TN_OK; i++)
            *status = tni_fill_data(results[i], b->empty_value);
    }
    if (*status == TN_OK)
        *status = finish_outputs(b, results, rets);
    else
        tni_drop_all(results, b->info->n_outs);
    return true;
}

/* Can the kernel write into dst, whose shape and dtype are right? */
static bool writes_directly(const tni_build *b, const tni_kernel *kernel, const tn_tensor *dst) {
    return ((kernel->flags & TN_KERNEL_STRIDED) || tni_is_contiguous(&dst->view)) &&
           ((kernel->flags & TN_KERNEL_INDEX64) || !tni_is_far(&dst->view)) &&
           !must_not_write(b, kernel, dst);
}

/* Before anything is copied: would the kernel take the call? */
static bool would_take(tni_build *b, const tni_choice *c, const plan *p, const tn_tensor *dst,
                       tn_status *status) {
    tn_tensor_view views[TNI_MAX_RETS];
    int64_t strides[TNI_MAX_RETS][TN_MAX_RANK];
    const tn_tensor_view *outs[TNI_MAX_RETS];
    uint32_t n = b->info->n_outs;
    for (uint32_t i = 0; i < n; i++) {
        const tni_spec *spec = b->kernel_shaped ? &b->kernel_outs[i] : &b->outs[i];
        tni_contiguous_strides(spec->rank, spec->sizes, strides[i]);
        views[i] = (tn_tensor_view){.struct_size = sizeof views[i],
                                    .numel = 1,
                                    .dtype = tni_coded_dtype(b->types_of->outs[i], c->types),
                                    .rank = spec->rank,
                                    .sizes = spec->sizes,
                                    .strides = strides[i]};
        for (int32_t d = 0; d < spec->rank; d++)
            views[i].numel *= spec->sizes[d];
        outs[i] = &views[i];
    }
    if (dst)
        outs[0] = &dst->view;
    return tni_kernel_supports(b->device, c->kernel, b->info->call, p->cells, b->types_of->n_args,
                               outs, n, status);
}

/* One record's turn. TNI_NOT_SUPPORTED: the next one's. */
static tn_status attempt(tni_build *b, const tni_choice *c, tn_cell *rets) {
    const tni_op_info *info = b->info;
    const tni_kernel *kernel = c->kernel;
    plan p;
    tn_status status = cast_inputs(b, c->types);
    if (status != TN_OK)
        return status;
    if (!plan_inputs(b, c, &p))
        return TNI_NOT_SUPPORTED;

    tn_tensor *results[TNI_MAX_RETS] = {NULL};
    tn_tensor *dst = tni_written_arg(info, b->op, b->args);
    if (dst && (b->kernel_shaped || !tni_has_shape(dst, b->outs[0].rank, b->outs[0].sizes) ||
                dst->view.dtype != tni_coded_dtype(b->types_of->outs[0], c->types) ||
                tni_may_overlap(&dst->view)))
        dst = NULL;
    bool direct = dst && writes_directly(b, kernel, dst);
    bool as_is = p.copied == 0 && !b->adapted && (!dst || direct);
    if (c->adaptation == TNI_PLAIN ? p.copied == 0 : as_is != (c->adaptation == TNI_AS_IS))
        return TNI_NOT_SUPPORTED; /* another turn's, or had already */
    if (p.copied && kernel->supports && !would_take(b, c, &p, direct ? dst : NULL, &status))
        return status == TN_OK ? TNI_NOT_SUPPORTED : status;
    TNI_TRY(copy_inputs(b, &p));
    if (direct)
        results[0] = tni_keep(dst);
    else if ((status = make_outputs(b, c->types, b->kernel_shaped, results)) != TN_OK)
        return status;
    const tn_tensor_view *outs[TNI_MAX_RETS];
    for (uint32_t i = 0; i < info->n_outs; i++) {
        outs[i] = &results[i]->view;
        if (outs[i]->numel > INT32_MAX && !(kernel->flags & TN_KERNEL_INDEX64)) {
            b->too_far = kernel;
            status = TNI_NOT_SUPPORTED;
        }
    }
    if (status == TN_OK) {
        tni_note_kernel(kernel);
        status = tni_invoke(b->device, kernel, info->call, p.cells, b->types_of->n_args, outs,
                            info->n_outs);
    }
    for (uint32_t i = 0; i < info->n_outs && status == TN_OK; i++) {
        if (b->kernel_shaped)
            reshape_fresh(results[i], &b->outs[i]);
        tn_dtype wanted = tni_coded_dtype(b->types_of->outs[i], b->types);
        if (!direct && results[i]->view.dtype != wanted) {
            tn_tensor *narrowed = tni_cast_data(results[i], wanted);
            tni_drop(results[i]);
            results[i] = narrowed;
            status = narrowed ? TN_OK : tni_failed();
        }
    }
    if (status != TN_OK) {
        tni_drop_all(results, info->n_outs);
        return status;
    }
    return finish_outputs(b, results, rets);
}

static tn_status run(tni_build *b, tn_cell *rets) {
    tn_status status = b->info->infer(b);
    if (status == TN_OK)
        status = find_types(b);
    if (status != TN_OK || trivial(b, rets, &status))
        return status;
    if (b->decomposes)
        return tni_without_kernel(b->op, b->device, b->types[0], b->args, rets);
    tni_choice c;
    for (tni_choose(&c, b->device, b->info->kernel, b->types); c.kernel; tni_choose_next(&c)) {
        status = attempt(b, &c, rets);
        if (status != TNI_NOT_SUPPORTED)
            return status;
    }
    if (b->too_far && !tni_decomposes(b->info, b->types[0]))
        return tni_build_fail(
            b, TN_ERR_UNSUPPORTED,
            "the kernel of %s counts elements in 32 bits and cannot take a tensor "
            "of 2^31 and more; split it",
            b->too_far->origin);
    return tni_without_kernel(b->op, b->device, b->types[0], b->args, rets);
}

tn_status tni_general(const tn_op *op, const tn_cell *args, tn_cell *rets) {
    tni_build b;
    b.op = op;
    b.info = tni_info(op);
    b.types_of = &tni_kernel_types_of[b.info->kernel];
    b.args = args;
    b.kernel_shaped = b.has_empty_value = b.fills = b.has_copy_value = b.decomposes = false;
    b.too_far = NULL;
    b.adapted = false;
    b.temps.n = b.n_ints = 0;
    b.temps.before = NULL;
    for (int i = 0; i < TN_KERNEL_MAX_TYPES; i++)
        b.types[i] = TN_DTYPE_NONE;
    for (uint32_t i = 0; i < b.info->n_outs; i++)
        b.outs[i].dtype = b.kernel_outs[i].dtype = TN_DTYPE_NONE;
    b.device = op->n_tensor_args + op->n_list_args > 0 ? tni_call_device(op, args)
               : op->device_arg >= 0 ? tni_factory_device(tni_arg_device(&args[op->device_arg]))
                                     : tni_factory_device(tn_no_device());
    if (!b.device)
        return tni_failed();
    fill_kernel_args(&b);
    tn_status status = run(&b, rets);
    tni_temps_finish(&b.temps);
    return status;
}
