/* From a kernel call to queued work.
 *
 * A call is borrowed, so all of it is copied: the values, the views with their sizes and strides,
 * the lists, in one block of memory that is also the command. Before that it is held against what
 * tenon/plugin.h promises to kernels. The chip takes nothing on trust: a host that breaks a promise
 * is told which. */
#include "plugins/sim/kernels/kernel.h"
#include "plugins/sim/dtype.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void sim_task_fail(sim_task *task, tn_status status, const char *format, ...) {
    if (task->error != TN_OK)
        return;
    task->error = status;
    int n = snprintf(task->message, SIM_MESSAGE, "%s: ", task->op);
    va_list list;
    va_start(list, format);
    vsnprintf(task->message + n, (size_t)(SIM_MESSAGE - n), format, list);
    va_end(list);
}

static tn_status run_task(sim_command *command, char message[SIM_MESSAGE]) {
    sim_task *task = (sim_task *)command;
    task->message = message;
    task->error = TN_OK;
    tn_status status = sim_kernel_fault(task->device, task->op, message);
    if (status != TN_OK)
        return status;
    task->compute(task);
    return task->error;
}

/* ---- checks ------------------------------------------------------------------------------ */

enum { MAX_TENSORS = SIM_MAX_USES - 1 }; /* of a signature; one more is the workspace */

/* In elements, so that their bytes can be counted. */
static const int64_t MAX_EXTENT = INT64_MAX / 16;

/* What is being checked, for the messages. */
typedef struct call_check {
    tn_device_impl *device;
    const char *op;
    sim_uses *uses; /* the memory that the call works on */
    uint64_t flags; /* of the kernel */
    tn_dtype dtype; /* of the type variable T, once known */
    int64_t numel;  /* of pointwise calls, once known; 0 before and for others */
    bool pointwise;
} call_check;

#define REFUSE(check, status, format, ...) \
    sim_fail((check)->device->self, (status), "%s: " format, (check)->op, ##__VA_ARGS__)

static bool is_tensor(char kind) {
    return kind == 'T' || kind == 'B' || kind == 'L' || kind == 'A';
}

static tn_status check_dtype(call_check *check, const tn_tensor_view *view, char kind,
                             const char *role, uint32_t i) {
    if (view->dtype < 0 || view->dtype >= TN_DTYPE_COUNT)
        return REFUSE(check, TN_ERR_DTYPE, "%s %u has the unknown dtype %d", role, i, view->dtype);
    tn_dtype wanted = kind == 'B'   ? TN_BOOL
                      : kind == 'L' ? TN_I64
                      : kind == 'A' ? view->dtype
                                    : check->dtype;
    if ((kind == 'T' || kind == 'A') && check->dtype == TN_DTYPE_NONE)
        wanted = check->dtype = view->dtype;
    if (view->dtype != wanted)
        return REFUSE(check, TN_ERR_DTYPE, "%s %u is %s and should be %s", role, i,
                      sim_dtype_name(view->dtype), sim_dtype_name(wanted));
    return TN_OK;
}

/* Checks one view and finds its bytes. */
static tn_status check_view(call_check *check, const tn_tensor_view *view, char kind, bool is_out,
                            uint32_t i, char **out_data) {
    const char *role = is_out ? "output" : "argument";
    if (!view)
        return REFUSE(check, TN_ERR_INVALID_ARGUMENT, "%s %u is no tensor", role, i);
    tn_status status = check_dtype(check, view, kind, role, i);
    if (status != TN_OK)
        return status;
    if (view->layout != 0 || view->rank < 0 || view->rank > SIM_MAX_RANK)
        return REFUSE(check, TN_ERR_UNSUPPORTED, "%s %u has layout %u and rank %d", role, i,
                      view->layout, view->rank);

    bool contiguous = true, repeats = false;
    int64_t numel = 1, last = 0;
    for (int32_t d = view->rank - 1; d >= 0; d--) {
        int64_t size = view->sizes[d], stride = view->strides[d];
        if (size < 1 || stride < 0)
            return REFUSE(check, TN_ERR_INVALID_ARGUMENT, "%s %u has size %lld, stride %lld at %d",
                          role, i, (long long)size, (long long)stride, d);
        contiguous &= size == 1 || stride == numel;
        repeats |= size > 1 && stride == 0;
        int64_t reach;
        if (__builtin_mul_overflow(numel, size, &numel) ||
            __builtin_mul_overflow(size - 1, stride, &reach) ||
            __builtin_add_overflow(last, reach, &last) || last > MAX_EXTENT)
            return REFUSE(check, TN_ERR_SHAPE, "%s %u reaches further than any memory", role, i);
    }
    if (numel != view->numel)
        return REFUSE(check, TN_ERR_SHAPE, "%s %u says numel %lld, its sizes say %lld", role, i,
                      (long long)view->numel, (long long)numel);
    if (repeats && (is_out || !(check->flags & TN_KERNEL_BROADCAST)))
        return REFUSE(check, TN_ERR_INVALID_ARGUMENT,
                      "%s %u has a stride of zero, which this kernel does not take", role, i);
    if (!contiguous && !(check->flags & TN_KERNEL_STRIDED))
        return REFUSE(check, TN_ERR_INVALID_ARGUMENT,
                      "%s %u is not contiguous, and this kernel does not take strides", role, i);
    if (check->pointwise && check->numel && numel != check->numel)
        return REFUSE(check, TN_ERR_SHAPE, "%s %u has %lld elements, others %lld", role, i,
                      (long long)numel, (long long)check->numel);
    check->numel = numel;

    uint64_t size = sim_dtype_bytes(view->dtype);
    if (view->offset % size)
        return REFUSE(check, TN_ERR_INVALID_ARGUMENT, "%s %u starts at byte %llu, within a %s",
                      role, i, (unsigned long long)view->offset, sim_dtype_name(view->dtype));
    return sim_resolve(check->device, check->op, view->memory, view->offset,
                       ((uint64_t)last + 1) * size, check->uses, out_data);
}

static tn_status check_value(call_check *check, const tn_cell *cell, char kind, uint32_t i) {
    bool number = cell->tag == TN_CELL_I64 || cell->tag == TN_CELL_F64;
    bool fits = kind == 's'   ? number || cell->tag == TN_CELL_BOOL
                : kind == 'i' ? cell->tag == TN_CELL_I64
                : kind == 'b' ? cell->tag == TN_CELL_BOOL
                              : cell->tag == TN_CELL_INTS;
    return fits ? TN_OK
                : REFUSE(check, TN_ERR_INVALID_ARGUMENT, "argument %u came as a cell of tag %u", i,
                         cell->tag);
}

/* Checks arguments and outputs against the kernel's signature; the addresses of all tensors,
 * outputs first, go to `data`. */
static tn_status check_call(call_check *check, const tn_call *call, const char *signature,
                            char **data) {
    const char *outs = strchr(signature, '>') + 1;
    size_t n_args = (size_t)(outs - 1 - signature), n_outs = strlen(outs);
    tn_status status = TN_OK;
    if (call->n_args != n_args || call->n_outs != n_outs)
        return REFUSE(check, TN_ERR_INVALID_ARGUMENT,
                      "%u arguments and %u outputs, should be %zu, %zu", call->n_args, call->n_outs,
                      n_args, n_outs);
    char **arg_data = data + n_outs;
    for (uint32_t i = 0; i < n_args && status == TN_OK; i++) {
        const tn_cell *cell = &call->args[i];
        if (!is_tensor(signature[i]))
            status = check_value(check, cell, signature[i], i);
        else if (cell->tag != TN_CELL_TENSOR)
            status = REFUSE(check, TN_ERR_INVALID_ARGUMENT, "argument %u is no tensor", i);
        else
            status = check_view(check, cell->v.view, signature[i], false, i, arg_data++);
    }
    for (uint32_t i = 0; i < n_outs && status == TN_OK; i++)
        status = check_view(check, call->outs[i], outs[i], true, i, &data[i]);
    return status;
}

/* A kernel that neither works in place nor takes strides (with which views may interleave) has
 * outputs that meet no other tensor. */
static tn_status check_overlap(call_check *check, const sim_tensor *tensors, uint32_t n_outs,
                               uint32_t n_tensors) {
    if (check->flags & (TN_KERNEL_IN_PLACE | TN_KERNEL_STRIDED))
        return TN_OK;
    for (uint32_t i = 0; i < n_outs; i++)
        for (uint32_t j = i + 1; j < n_tensors; j++) {
            const sim_tensor *a = &tensors[i], *b = &tensors[j];
            const char *a_start = a->data, *b_start = b->data;
            if (a_start < b_start + (uint64_t)b->numel * sim_dtype_bytes(b->dtype) &&
                b_start < a_start + (uint64_t)a->numel * sim_dtype_bytes(a->dtype))
                return REFUSE(check, TN_ERR_INVALID_ARGUMENT,
                              "output %u shares memory with another tensor, and this kernel does "
                              "not work in place",
                              i);
        }
    return TN_OK;
}

static tn_status check_workspace(call_check *check, const tn_call *call, const tn_kernel *record,
                                 char **out_workspace) {
    tn_plan plan = {.struct_size = sizeof plan};
    *out_workspace = NULL;
    tn_status status = record->prepare ? record->prepare(call, &plan) : TN_OK;
    uint64_t bytes = plan.workspace_bytes;
    if (status != TN_OK || bytes == 0)
        return status;
    if (call->workspace_bytes < bytes || call->workspace_offset % sizeof(int64_t))
        return REFUSE(check, TN_ERR_INVALID_ARGUMENT,
                      "a workspace of %llu bytes at %llu, should be %llu bytes, aligned to 8",
                      (unsigned long long)call->workspace_bytes,
                      (unsigned long long)call->workspace_offset, (unsigned long long)bytes);
    return sim_resolve(check->device, check->op, call->workspace, call->workspace_offset, bytes,
                       check->uses, out_workspace);
}

/* ---- the copy ---------------------------------------------------------------------------- */

static uint32_t count_tensors(const tn_call *call) {
    uint32_t n = call->n_outs;
    for (uint32_t i = 0; i < call->n_args; i++)
        n += call->args[i].tag == TN_CELL_TENSOR;
    return n;
}

/* Sizes, strides and lists of the call. */
static uint64_t count_ints(const tn_call *call) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < call->n_outs; i++)
        n += 2 * (uint64_t)call->outs[i]->rank;
    for (uint32_t i = 0; i < call->n_args; i++) {
        const tn_cell *cell = &call->args[i];
        if (cell->tag == TN_CELL_TENSOR)
            n += 2 * (uint64_t)cell->v.view->rank;
        else if (cell->tag == TN_CELL_INTS)
            n += cell->n;
    }
    return n;
}

static const int64_t *copy_ints(int64_t **rest, const int64_t *from, uint64_t n) {
    int64_t *to = *rest;
    *rest += n;
    if (n)
        memcpy(to, from, n * sizeof *to);
    return to;
}

static sim_tensor copy_view(int64_t **rest, const tn_tensor_view *view, char *data) {
    return (sim_tensor){
        .data = data,
        .dtype = view->dtype,
        .rank = view->rank,
        .numel = view->numel,
        .sizes = copy_ints(rest, view->sizes, (uint64_t)view->rank),
        .strides = copy_ints(rest, view->strides, (uint64_t)view->rank),
    };
}

/* One block: the task, its values, its tensors (outputs first), its integers. */
static sim_task *task_create(tn_instance *self, const tn_call *call, char *const *data) {
    uint32_t n_tensors = count_tensors(call);
    sim_task *task =
        sim_host_alloc(self,
                       sizeof *task + call->n_args * sizeof(sim_value) +
                           n_tensors * sizeof(sim_tensor) + count_ints(call) * sizeof(int64_t),
                       "a kernel call");
    if (!task)
        return NULL;
    sim_value *args = (sim_value *)(task + 1);
    sim_tensor *tensors = (sim_tensor *)(args + call->n_args);
    int64_t *ints = (int64_t *)(tensors + n_tensors);
    *task = (sim_task){.command.run = run_task, .args = args, .outs = tensors};

    for (uint32_t i = 0; i < call->n_outs; i++)
        *tensors++ = copy_view(&ints, call->outs[i], *data++);
    for (uint32_t i = 0; i < call->n_args; i++) {
        const tn_cell *cell = &call->args[i];
        args[i] = (sim_value){.tag = cell->tag, .n = cell->n};
        if (cell->tag == TN_CELL_TENSOR) {
            *tensors = copy_view(&ints, cell->v.view, *data++);
            args[i].v.tensor = tensors++;
        } else if (cell->tag == TN_CELL_INTS) {
            args[i].v.ints = copy_ints(&ints, cell->v.ints, cell->n);
        } else {
            args[i].v.i64 = cell->v.i64; /* the bits of any number */
        }
    }
    return task;
}

tn_status sim_launch(const tn_call *call) {
    const sim_kernel *kernel = call->user;
    sim_uses uses = {0};
    call_check check = {
        .uses = &uses,
        .device = call->device,
        .op = kernel->record.op,
        .flags = kernel->record.flags,
        .pointwise = kernel->pointwise,
        .dtype = TN_DTYPE_NONE,
    };
    char *data[MAX_TENSORS], *workspace;
    sim_task *task = NULL;
    tn_status status = sim_enter(call->device, SIM_FAULT_run);
    if (status == TN_OK)
        status = sim_stream_check(call->device, call->stream, check.op);
    if (status == TN_OK)
        status = check_call(&check, call, kernel->signature, data);
    if (status == TN_OK)
        status = check_workspace(&check, call, &kernel->record, &workspace);
    if (status == TN_OK && !kernel->compute[check.dtype])
        status = REFUSE(&check, TN_ERR_DTYPE, "no kernel for %s", sim_dtype_name(check.dtype));
    if (status != TN_OK)
        goto fail;
    status = TN_ERR_OUT_OF_MEMORY;
    task = task_create(call->device->self, call, data);
    if (!task)
        goto fail;
    task->command.uses = uses;
    task->device = call->device;
    task->op = check.op;
    task->compute = kernel->compute[check.dtype];
    task->workspace = workspace;
    status = check_overlap(&check, task->outs, call->n_outs, count_tensors(call));
    if (status != TN_OK)
        goto fail;
    sim_stream_push(call->stream, &task->command);
    return TN_OK;
fail:
    call->device->self->host->dealloc(call->device->self->host, task);
    sim_uses_drop(&uses);
    return status;
}
