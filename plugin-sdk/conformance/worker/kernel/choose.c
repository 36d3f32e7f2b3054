/* See choose.h. */
#include "plugin-sdk/conformance/worker/kernel/choose.h"

#include "plugin-sdk/conformance/worker/subject/watch.h"

#include <math.h>
#include <string.h>

/* ---- what a call needs ------------------------------------------------------------------- */

static const char *flag_name(uint64_t flag) {
    return flag == TN_KERNEL_STRIDED     ? "TN_KERNEL_STRIDED"
           : flag == TN_KERNEL_BROADCAST ? "TN_KERNEL_BROADCAST"
           : flag == TN_KERNEL_IN_PLACE  ? "TN_KERNEL_IN_PLACE"
           : flag == TN_KERNEL_INDEX64   ? "TN_KERNEL_INDEX64"
           : flag == TN_KERNEL_SCALARS   ? "TN_KERNEL_SCALARS"
                                         : "a flag";
}

/* Strides of zero aside, does the tensor lie row-major? */
static bool dense_but_for_zeros(const tc_shape *s) {
    int64_t stride = 1;
    for (int32_t d = s->rank - 1; d >= 0; d--) {
        if (s->sizes[d] == 1 || s->strides[d] == 0)
            continue;
        if (s->strides[d] != stride)
            return false;
        stride *= s->sizes[d];
    }
    return true;
}

static uint64_t flags_of_shape(const tc_shape *s) {
    return (tc_has_zero_stride(s) ? TN_KERNEL_BROADCAST : 0) |
           (dense_but_for_zeros(s) ? 0 : TN_KERNEL_STRIDED) |
           (s->extent - s->offset > INT32_MAX ? TN_KERNEL_INDEX64 : 0);
}

uint64_t tc_needed_flags(const tc_invocation *call) {
    uint64_t flags = (call->in_place >= 0 ? TN_KERNEL_IN_PLACE : 0) |
                     (call->scalar >= 0 ? TN_KERNEL_SCALARS : 0);
    for (uint32_t a = 0; a < call->record->n_args; a++)
        if (call->record->args[a].kind == TC_ARG_TENSOR && !call->args[a].none &&
            call->scalar != (int32_t)a)
            flags |= flags_of_shape(&call->args[a].tensor.shape);
    for (uint32_t k = 0; k < call->record->n_outs; k++)
        flags |= flags_of_shape(&call->outs[k].tensor.shape);
    return flags;
}

/* ---- the call without memory ------------------------------------------------------------- */

tn_tensor_view tc_operand_view(const tc_operand *o, tn_memory memory) {
    return (tn_tensor_view){
        .struct_size = sizeof(tn_tensor_view),
        .memory = memory,
        .offset = (uint64_t)o->shape.offset * tc_dtype_bytes(o->dtype),
        .numel = o->shape.numel,
        .dtype = o->dtype,
        .rank = o->shape.rank,
        .sizes = o->shape.sizes,
        .strides = o->shape.strides,
    };
}

/* A NaN has all digits, which carry over where somebody rounds them. */
static tn_cell float_cell(double x) {
    uint64_t bits = ~UINT64_C(0) >> !signbit(x);
    tn_cell cell = {.tag = TN_CELL_F64, .v.f64 = x};
    if (isnan(x))
        memcpy(&cell.v.f64, &bits, sizeof bits);
    return cell;
}

/* A value as a scalar of dtype's category, or, where it is whole, as an integer: the contract
 * leaves that to the host. Zero stays, for integers lack its sign. */
static tn_cell scalar_cell(tn_dtype dtype, tc_number x) {
    if (tc_is_float(dtype) && x.f != 0 && truncl(x.f) == x.f && fabsl(x.f) < 0x1p63L)
        return (tn_cell){.tag = TN_CELL_I64, .v.i64 = (int64_t)x.f};
    if (tc_is_float(dtype))
        return float_cell((double)x.f);
    if (dtype == TN_BOOL)
        return (tn_cell){.tag = TN_CELL_BOOL, .v.boolean = x.i};
    return (tn_cell){.tag = TN_CELL_I64, .v.i64 = x.i};
}

static tn_cell attribute_cell(const tc_invocation *call, const tc_arg *arg, const tc_value *v) {
    switch (arg->kind) {
    case TC_ARG_SCALAR:
        return tc_is_float(call->types[0]) ? float_cell(v->f)
                                           : (tn_cell){.tag = TN_CELL_I64, .v.i64 = v->i};
    case TC_ARG_INT:
        return (tn_cell){.tag = TN_CELL_I64, .v.i64 = v->i};
    case TC_ARG_FLOAT:
        return float_cell(v->f);
    case TC_ARG_BOOL:
        return (tn_cell){.tag = TN_CELL_BOOL, .v.boolean = v->boolean};
    case TC_ARG_INTS: /* a list of none is NULL */
        return (tn_cell){.tag = TN_CELL_INTS,
                         .n = (uint32_t)v->n_ints,
                         .v.ints = v->n_ints > 0 ? v->ints : NULL};
    default:
        return (tn_cell){.tag = TN_CELL_STRING, .v.string = v->string};
    }
}

tn_cell tc_value_cell(const tc_invocation *call, uint32_t a) {
    const tc_arg *arg = &call->record->args[a];
    const tc_value *v = &call->args[a];
    if (v->none)
        return (tn_cell){.tag = TN_CELL_NONE};
    return arg->kind == TC_ARG_TENSOR ? scalar_cell(v->tensor.dtype, v->tensor.values[0])
                                      : attribute_cell(call, arg, v);
}

/* Another answer than the two there are is found out when the call is placed, and asked again. */
static bool declines(const tc_subject *s, const tc_invocation *call, const tn_kernel *kernel) {
    tn_cell cells[TC_MAX_ARGS];
    tn_tensor_view views[TC_MAX_ARGS + TC_MAX_OUTS];
    const tn_tensor_view *outs[TC_MAX_OUTS];
    uint32_t n_args = call->record->n_args, n_outs = call->record->n_outs;
    if (!kernel->supports)
        return false;
    for (uint32_t a = 0; a < n_args; a++) {
        const tc_value *v = &call->args[a];
        bool tensor = call->record->args[a].kind == TC_ARG_TENSOR && !v->none;
        if (tensor && call->scalar != (int32_t)a) {
            views[a] = tc_operand_view(&v->tensor, 0);
            cells[a] = (tn_cell){.tag = TN_CELL_TENSOR, .v.view = &views[a]};
        } else if (tensor && !v->tensor.values) { /* not filled yet */
            cells[a] = scalar_cell(v->tensor.dtype, (tc_number){0});
        } else {
            cells[a] = tc_value_cell(call, a);
        }
    }
    for (uint32_t k = 0; k < n_outs; k++) {
        views[n_args + k] = k == 0 && call->in_place >= 0
                                ? views[call->in_place]
                                : tc_operand_view(&call->outs[k].tensor, 0);
        outs[k] = &views[n_args + k];
    }
    tn_call asked = {.struct_size = sizeof asked,
                     .device = s->device,
                     .user = kernel->user,
                     .args = cells,
                     .outs = outs,
                     .n_args = n_args,
                     .n_outs = n_outs};
    return tc_watch_supports(kernel, &asked) == TN_ERR_UNSUPPORTED;
}

/* ---- the choice -------------------------------------------------------------------------- */

static bool takes_dtypes(const tc_subject *s, const tc_invocation *call, const tn_kernel *kernel) {
    for (uint32_t t = 0; t < call->record->n_types; t++)
        if (!(kernel->dtypes[t] & s->dtypes & TN_DTYPE_BIT(call->types[t])))
            return false;
    return true;
}

static bool is_offered(const tc_subject *s, const tc_invocation *call, const tn_kernel *kernel) {
    return kernel->schema_hash == call->record->hash && strcmp(kernel->op, call->record->op) == 0 &&
           takes_dtypes(s, call, kernel) &&
           (!s->ops->accepts || s->ops->accepts(s->device, kernel) == TN_OK);
}

const tn_kernel *tc_next_fitting(const tc_subject *s, const tc_invocation *call,
                                 const tn_kernel *after) {
    uint64_t needed = tc_needed_flags(call), i = 0;
    while (after && s->plugin->kernels[i++] != after)
        ;
    for (; i < s->plugin->n_kernels; i++) {
        const tn_kernel *kernel = s->plugin->kernels[i];
        if ((kernel->flags & needed) == needed && is_offered(s, call, kernel))
            return kernel;
    }
    return NULL;
}

tc_claim tc_find_kernel(const tc_subject *s, const tc_invocation *call, const tn_kernel *after,
                        const tn_kernel **out) {
    *out = after;
    while ((*out = tc_next_fitting(s, call, *out)))
        if (!declines(s, call, *out))
            return TC_CLAIMED;
    if (tc_next_fitting(s, call, NULL))
        return TC_NO_SHAPE;
    for (uint64_t i = 0; i < s->plugin->n_kernels && !*out; i++)
        if (is_offered(s, call, s->plugin->kernels[i]))
            *out = s->plugin->kernels[i];
    return *out ? TC_NO_FLAG : TC_NO_DTYPE;
}

const tn_kernel *tc_claimed_kernel(const tc_subject *s, const tc_invocation *call,
                                   tc_verdict *out) {
    const tn_kernel *kernel = NULL;
    switch (tc_find_kernel(s, call, NULL, &kernel)) {
    case TC_CLAIMED:
        return kernel;
    case TC_NO_FLAG: {
        uint64_t missing = tc_needed_flags(call) & ~kernel->flags;
        tc_verdict_set(out, TC_UNSUPPORTED, TNP_NONE, "the kernel does not declare %s",
                       flag_name(missing & -missing));
        return NULL;
    }
    case TC_NO_SHAPE:
        tc_verdict_set(out, TC_UNSUPPORTED, TNP_NONE, "the kernel's supports says no");
        return NULL;
    default:
        tc_verdict_set(out, TC_UNSUPPORTED, TNP_NONE, "no kernel for these dtypes");
        return NULL;
    }
}
