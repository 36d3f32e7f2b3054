/* See execute.h. */
#include "plugin-sdk/conformance/worker/kernel/execute.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- choosing the record ----------------------------------------------------------------- */

const char *tc_flag_name(uint32_t flag) {
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

static uint32_t flags_of_shape(const tc_shape *s) {
    return (tc_has_zero_stride(s) ? TN_KERNEL_BROADCAST : 0) |
           (dense_but_for_zeros(s) ? 0 : TN_KERNEL_STRIDED) |
           (s->numel > INT32_MAX || s->extent > INT32_MAX ? TN_KERNEL_INDEX64 : 0);
}

uint32_t tc_needed_flags(const tc_invocation *call) {
    uint32_t flags = (call->in_place >= 0 ? TN_KERNEL_IN_PLACE : 0) |
                     (call->scalar >= 0 ? TN_KERNEL_SCALARS : 0);
    for (uint32_t a = 0; a < call->record->n_args; a++)
        if (call->record->args[a].kind == TC_ARG_TENSOR && !call->args[a].none &&
            call->scalar != (int32_t)a)
            flags |= flags_of_shape(&call->args[a].tensor.shape);
    for (uint32_t k = 0; k < call->record->n_outs; k++)
        flags |= flags_of_shape(&call->outs[k].tensor.shape);
    return flags;
}

static bool takes_dtypes(const tc_subject *s, const tc_invocation *call, const tn_kernel *kernel) {
    for (uint32_t t = 0; t < call->record->n_types; t++)
        if (!(kernel->dtypes[t] & s->dtypes & TN_DTYPE_BIT(call->types[t])))
            return false;
    return true;
}

tc_claim tc_find_kernel(const tc_subject *s, const tc_invocation *call, const tn_kernel **out) {
    uint32_t needed = tc_needed_flags(call);
    tc_claim claim = TC_NO_DTYPE;
    for (uint64_t i = 0; i < s->plugin->n_kernels; i++) {
        const tn_kernel *kernel = s->plugin->kernels[i];
        if (strcmp(kernel->op, call->record->op) != 0 || !takes_dtypes(s, call, kernel) ||
            (s->ops->accepts && s->ops->accepts(s->device, kernel) != TN_OK))
            continue;
        *out = kernel;
        if ((kernel->flags & needed) == needed)
            return TC_CLAIMED;
        claim = TC_NO_FLAG;
    }
    return claim;
}

/* ---- placing ----------------------------------------------------------------------------- */

static bool set_up_failed(tc_verdict *verdict, tn_requirement requirement, const char *what,
                          tn_status status) {
    char reason[TC_MESSAGE];
    return tc_verdict_set(verdict, TC_FAIL, requirement, "%s: %s", what, tc_reason(status, reason));
}

static bool place_tensor(tc_placed *p, const tc_operand *o, tn_tensor_view *view,
                         tc_verdict *verdict) {
    tc_subject *s = p->subject;
    void *host = NULL;
    tn_memory memory = 0;
    tn_status status = s->memory->alloc(s->device, TN_SPACE_DEVICE, o->bytes, &memory, &host);
    if (status != TN_OK)
        return set_up_failed(verdict, TNP_ALLOC_HANDLE, "alloc for a tensor", status);
    p->memory[p->n_memory++] = memory;
    status = s->memory->copy_from_host(s->device, p->tn.stream, memory, 0, o->image, o->bytes);
    if (status != TN_OK)
        return set_up_failed(verdict, TNP_TRANSFER_RANGE, "write of a tensor", status);
    *view = (tn_tensor_view){
        .struct_size = sizeof *view,
        .memory = memory,
        .offset = (uint64_t)o->shape.offset * tc_dtype_bytes(o->dtype),
        .numel = o->shape.numel,
        .dtype = o->dtype,
        .rank = o->shape.rank,
        .sizes = o->shape.sizes,
        .strides = o->shape.strides,
    };
    return true;
}

/* A value as a scalar of dtype's category, or, where it is whole, as an integer: the contract
 * leaves that to the host. Zero stays, for integers lack its sign. */
static tn_cell scalar_cell(tn_dtype dtype, tc_number x) {
    if (tc_is_float(dtype) && x.f != 0 && truncl(x.f) == x.f && fabsl(x.f) < 0x1p63L)
        return (tn_cell){.tag = TN_CELL_I64, .v.i64 = (int64_t)x.f};
    if (tc_is_float(dtype))
        return (tn_cell){.tag = TN_CELL_F64, .v.f64 = (double)x.f};
    if (dtype == TN_BOOL)
        return (tn_cell){.tag = TN_CELL_BOOL, .v.boolean = x.i};
    return (tn_cell){.tag = TN_CELL_I64, .v.i64 = x.i};
}

static tn_cell attribute_cell(const tc_invocation *call, const tc_arg *arg, const tc_value *v) {
    switch (arg->kind) {
    case TC_ARG_SCALAR:
        return tc_is_float(call->types[0]) ? (tn_cell){.tag = TN_CELL_F64, .v.f64 = v->f}
                                           : (tn_cell){.tag = TN_CELL_I64, .v.i64 = v->i};
    case TC_ARG_INT:
        return (tn_cell){.tag = TN_CELL_I64, .v.i64 = v->i};
    case TC_ARG_FLOAT:
        return (tn_cell){.tag = TN_CELL_F64, .v.f64 = v->f};
    case TC_ARG_BOOL:
        return (tn_cell){.tag = TN_CELL_BOOL, .v.boolean = v->boolean};
    case TC_ARG_INTS:
        return (tn_cell){.tag = TN_CELL_INTS, .n = (uint32_t)v->n_ints, .v.ints = v->ints};
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

static bool place_args(tc_placed *p, tc_verdict *verdict) {
    tc_invocation *call = p->call;
    for (uint32_t a = 0; a < call->record->n_args; a++) {
        const tc_arg *arg = &call->record->args[a];
        const tc_value *v = &call->args[a];
        if (v->none || arg->kind != TC_ARG_TENSOR || call->scalar == (int32_t)a)
            p->cells[a] = tc_value_cell(call, a);
        else if (place_tensor(p, &v->tensor, &p->arg_views[a], verdict))
            p->cells[a] = (tn_cell){.tag = TN_CELL_TENSOR, .v.view = &p->arg_views[a]};
        else
            return false;
    }
    return true;
}

static bool place_outs(tc_placed *p, tc_verdict *verdict) {
    tc_invocation *call = p->call;
    for (uint32_t k = 0; k < call->record->n_outs; k++) {
        if (k == 0 && call->in_place >= 0)
            p->out_views[0] = p->arg_views[call->in_place];
        else if (!place_tensor(p, &call->outs[k].tensor, &p->out_views[k], verdict))
            return false;
        p->outs[k] = &p->out_views[k];
    }
    return true;
}

/* Full of ones (NaN in every floating dtype), between guards of the alignment. */
static bool place_workspace(tc_placed *p, tc_verdict *verdict) {
    tc_subject *s = p->subject;
    uint64_t bytes = 0;
    if (!p->kernel->workspace)
        return true;
    tn_status status = p->kernel->workspace(&p->tn, &bytes);
    if (status != TN_OK) {
        char reason[TC_MESSAGE];
        return tc_verdict_set(verdict, TC_FAIL, TNP_KERNEL_WORKSPACE, "workspace: %s",
                              tc_reason(status, reason));
    }
    if (bytes == 0)
        return true;
    void *host;
    p->workspace_room = bytes + 2 * s->alignment;
    status =
        s->memory->alloc(s->device, TN_SPACE_DEVICE, p->workspace_room, &p->tn.workspace, &host);
    if (status != TN_OK)
        return set_up_failed(verdict, TNP_ALLOC_HANDLE, "alloc of the workspace", status);
    p->memory[p->n_memory++] = p->tn.workspace;
    p->tn.workspace_offset = s->alignment;
    p->tn.workspace_bytes = bytes;
    status = s->memory->fill(s->device, p->tn.stream, p->tn.workspace, 0, 0xff, p->workspace_room);
    return status == TN_OK
               ? true
               : set_up_failed(verdict, TNP_TRANSFER_RANGE, "fill of the workspace", status);
}

bool tc_place_call(tc_subject *s, tn_stream_impl *stream, const tn_kernel *kernel,
                   tc_invocation *call, tc_placed *p, tc_verdict *verdict) {
    memset(p, 0, sizeof *p);
    p->subject = s;
    p->kernel = kernel;
    p->call = call;
    p->tn = (tn_call){.struct_size = sizeof p->tn,
                      .device = s->device,
                      .stream = stream,
                      .user = kernel->user,
                      .args = p->cells,
                      .outs = p->outs,
                      .n_args = call->record->n_args,
                      .n_outs = call->record->n_outs};
    return place_args(p, verdict) && place_outs(p, verdict);
}

void tc_unplace(tc_placed *p) {
    for (uint32_t i = 0; i < p->n_memory; i++)
        p->subject->memory->dealloc(p->subject->device, TN_SPACE_DEVICE, p->memory[i]);
    p->n_memory = 0;
}

/* ---- afterwards -------------------------------------------------------------------------- */

static unsigned char *read_image(tc_placed *p, const tn_tensor_view *view, uint64_t bytes,
                                 tc_verdict *verdict) {
    tc_subject *s = p->subject;
    unsigned char *image = tc_arena_array(p->call->arena, bytes, 1);
    if (!image) {
        TC_CASE_ERROR(verdict, "the host has no memory for a case of this size");
        return NULL;
    }
    tn_status status =
        s->memory->copy_to_host(s->device, p->tn.stream, image, view->memory, 0, bytes);
    if (status == TN_OK)
        return image;
    set_up_failed(verdict, TNP_TRANSFER_RANGE, "read of a tensor", status);
    return NULL;
}

static bool read_workspace(tc_placed *p, tc_result *out, tc_verdict *verdict) {
    if (!p->tn.workspace)
        return true;
    tn_tensor_view view = {.memory = p->tn.workspace};
    const unsigned char *image = read_image(p, &view, p->workspace_room, verdict);
    if (!image)
        return false;
    uint64_t guard = p->subject->alignment;
    for (uint64_t i = 0; i < guard; i++)
        if (image[i] != 0xff || image[p->workspace_room - 1 - i] != 0xff)
            out->workspace_overrun = true;
    return true;
}

bool tc_read_back(tc_placed *p, tc_result *out, tc_verdict *verdict) {
    tc_invocation *call = p->call;
    for (uint32_t a = 0; a < call->record->n_args; a++)
        if (p->cells[a].tag == TN_CELL_TENSOR) {
            out->args[a] = read_image(p, &p->arg_views[a], call->args[a].tensor.bytes, verdict);
            if (!out->args[a])
                return false;
        }
    return tc_read_outs(p, out, verdict) && read_workspace(p, out, verdict);
}

bool tc_read_outs(tc_placed *p, tc_result *out, tc_verdict *verdict) {
    tc_invocation *call = p->call;
    for (uint32_t k = 0; k < call->record->n_outs; k++) {
        out->outs[k] = k == 0 && call->in_place >= 0
                           ? out->args[call->in_place]
                           : read_image(p, &p->out_views[k], call->outs[k].tensor.bytes, verdict);
        if (!out->outs[k])
            return false;
    }
    return true;
}

/* A call and all that it points to. */
typedef struct expendable {
    tn_call call;
    tn_cell cells[TC_MAX_ARGS];
    const tn_tensor_view *outs[TC_MAX_OUTS];
    tn_tensor_view views[TC_MAX_ARGS + TC_MAX_OUTS];
    int64_t lists[2 * (TC_MAX_ARGS + TC_MAX_OUTS)][TC_MAX_RANK];
    char strings[TC_MAX_ARGS][32];
} expendable;

static const tn_tensor_view *copy_view(expendable *e, uint32_t at, const tn_tensor_view *view) {
    size_t bytes = (size_t)view->rank * sizeof *view->sizes;
    e->views[at] = *view;
    e->views[at].sizes = memcpy(e->lists[2 * at], view->sizes, bytes);
    e->views[at].strides = memcpy(e->lists[2 * at + 1], view->strides, bytes);
    return &e->views[at];
}

static void copy_cell(expendable *e, uint32_t a, const tn_cell *cell) {
    e->cells[a] = *cell;
    if (cell->tag == TN_CELL_TENSOR)
        e->cells[a].v.view = copy_view(e, a, cell->v.view);
    else if (cell->tag == TN_CELL_INTS)
        e->cells[a].v.ints = memcpy(e->lists[2 * a], cell->v.ints, cell->n * sizeof *cell->v.ints);
    else if (cell->tag == TN_CELL_STRING && strlen(cell->v.string) < sizeof e->strings[a])
        e->cells[a].v.string = strcpy(e->strings[a], cell->v.string);
}

tn_status tc_run_placed(const tc_placed *p) {
    expendable e;
    e.call = p->tn;
    e.call.args = e.cells;
    e.call.outs = e.outs;
    for (uint32_t a = 0; a < p->tn.n_args; a++)
        copy_cell(&e, a, &p->tn.args[a]);
    for (uint32_t k = 0; k < p->tn.n_outs; k++)
        e.outs[k] = copy_view(&e, TC_MAX_ARGS + k, p->tn.outs[k]);
    tn_status status = p->kernel->run(&e.call);
    memset(&e, 0xa5, sizeof e);
    __asm__ volatile("" : : "r"(&e) : "memory"); /* the compiler may not leave it out */
    return status;
}

static void run(tc_placed *p, tc_result *out) {
    tc_host_forget();
    out->run = tc_run_placed(p);
    out->sync = TN_OK;
    if (out->run != TN_OK)
        tc_reason(out->run, out->message);
    tc_host_forget();
    tn_status later = tc_subject_sync(p->subject);
    out->sync = later;
    if (out->run == TN_OK && later != TN_OK)
        tc_reason(later, out->message);
}

/* Asks `supports`, twice. False with the verdict failed where the answers are none or differ. */
static bool ask_support(tc_placed *p, bool *said_no, tc_verdict *verdict) {
    *said_no = false;
    if (!p->kernel->supports)
        return true;
    tn_status answer = p->kernel->supports(&p->tn), again = p->kernel->supports(&p->tn);
    *said_no = answer == TN_ERR_UNSUPPORTED;
    if (answer != TN_OK && answer != TN_ERR_UNSUPPORTED)
        tc_verdict_set(verdict, TC_FAIL, TNP_SUPPORTS_ANSWER,
                       "supports answered %s; it is TN_OK or TN_ERR_UNSUPPORTED",
                       tc_tn_status_name(answer));
    else if (again != answer)
        tc_verdict_set(verdict, TC_FAIL, TNP_SUPPORTS_ANSWER,
                       "supports answered %s and then %s to the same question",
                       tc_tn_status_name(answer), tc_tn_status_name(again));
    return verdict->status == TC_PASS;
}

bool tc_ready_call(tc_placed *p, bool *out_said_no, tc_verdict *verdict) {
    return ask_support(p, out_said_no, verdict) && (*out_said_no || place_workspace(p, verdict));
}

bool tc_execute(tc_subject *s, const tn_kernel *kernel, tc_invocation *call, tc_result *out,
                tc_verdict *verdict) {
    tc_placed p;
    memset(out, 0, sizeof *out);
    bool ok = tc_place_call(s, s->stream, kernel, call, &p, verdict) &&
              tc_ready_call(&p, &out->said_no, verdict);
    if (ok) {
        run(&p, out);
        ok = tc_read_back(&p, out, verdict);
    }
    if (!ok)
        tc_subject_sync(s);
    tc_unplace(&p);
    return ok;
}
