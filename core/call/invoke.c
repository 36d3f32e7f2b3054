/* Finding a kernel and calling it. */
#include "core/call/call.h"

#include <stdio.h>
#include <string.h>

/* The wider dtype in which values of `dtype` can be computed and then rounded or truncated back:
 * integer arithmetic wraps, so the low bits are right; f16 and bf16 are computed in f32 anyway. */
static tn_dtype wider(tn_dtype dtype) {
    switch (dtype) {
    case TN_F16:
    case TN_BF16:
        return TN_F32;
    case TN_I8:
    case TN_I16:
    case TN_I32:
    case TN_U8:
        return TN_I64;
    default:
        return TN_DTYPE_NONE;
    }
}

static bool begin(tni_choice *c) {
    c->adaptation = TNI_AS_IS;
    c->kernel = tni_kernel_fitting(tni_kernel_lookup(c->table, (uint32_t)c->op, c->types[0]),
                                   c->types, c->n_types);
    return c->kernel != NULL;
}

static void widen(tni_choice *c) {
    /* random bits and copies mean their dtype; nothing else does */
    bool means_it = c->op == TNI_KERNEL_copy || c->op == TNI_KERNEL_random_bits ||
                    c->op == TNI_KERNEL_random_bits_from;
    tn_dtype wide = c->widened || means_it ? TN_DTYPE_NONE : wider(c->types[0]);
    c->widened = true;
    if (wide == TN_DTYPE_NONE)
        return;
    tn_dtype narrow = c->types[0];
    c->types[0] = wide;
    if (!begin(c))
        c->types[0] = narrow;
}

void tni_choose(tni_choice *c, tni_device *device, int kernel_op, const tn_dtype *types) {
    c->table = atomic_load_explicit(&device->kernels.table, memory_order_acquire);
    c->op = kernel_op;
    c->n_types = tni_kernel_types_of[kernel_op].n_types;
    c->widened = false;
    memcpy(c->types, types, sizeof c->types);
    if (TNI_UNLIKELY(!begin(c)))
        widen(c);
}

void tni_choose_next(tni_choice *c) {
    if (c->adaptation == TNI_BY_FLAGS) {
        c->adaptation = TNI_PLAIN;
        return;
    }
    c->kernel = tni_kernel_fitting(c->kernel->next, c->types, c->n_types);
    if (c->kernel) {
        c->adaptation = c->adaptation == TNI_AS_IS ? TNI_AS_IS : TNI_BY_FLAGS;
    } else if (c->adaptation == TNI_AS_IS) {
        begin(c);
        c->adaptation = TNI_BY_FLAGS;
    } else {
        widen(c);
    }
}

bool tni_is_far(const tn_tensor_view *v) {
    int64_t last = 0;
    for (int32_t d = 0; d < v->rank; d++)
        last += (v->sizes[d] - 1) * v->strides[d];
    return last >= INT32_MAX;
}

static bool any_broadcast(const tn_tensor_view *v) {
    for (int32_t d = 0; d < v->rank; d++)
        if (v->strides[d] == 0 && v->sizes[d] > 1)
            return true;
    return false;
}

bool tni_kernel_takes(const tni_kernel *kernel, const tn_tensor_view *v) {
    return (kernel->flags & TN_KERNEL_STRIDED)
               ? (kernel->flags & TN_KERNEL_BROADCAST) || !any_broadcast(v)
               : tni_is_contiguous(v);
}

static tn_status kernel_failed(tni_device *device, const tni_kernel *kernel, tn_status status,
                               const char *call_name) {
    char what[256];
    snprintf(what, sizeof what, "%s: kernel of %s", call_name, kernel->origin);
    return tni_device_fail(device, status, what);
}

static tn_call make_call(tni_device *device, tn_stream *stream, const tni_kernel *kernel,
                         const tn_cell *cells, uint32_t n_cells, const tn_tensor_view *const *outs,
                         uint32_t n_outs) {
    return (tn_call){
        .struct_size = sizeof(tn_call),
        .device = device->handle,
        .stream = stream->handle,
        .user = kernel->user,
        .args = cells,
        .outs = outs,
        .n_args = n_cells,
        .n_outs = n_outs,
    };
}

/* A record that is passed over has given a reason, which is no error of this call; a program's own
 * kernel gives it by tn_fail. An error that stood before is another call's, and goes on standing. */
static tn_status declined(const tni_kernel *kernel, bool stood) {
    tni_error_plugin(TN_OK, NULL);
    if (kernel->is_own && !stood && tn_error_status() == TN_ERR_UNSUPPORTED)
        tn_error_clear();
    return TNI_NOT_SUPPORTED;
}

static tn_status ask(tni_device *device, const tni_kernel *kernel, const char *call_name,
                     const tn_call *call) {
    bool stood = tni_error_stands();
    tn_status status = kernel->supports ? kernel->supports(call) : TN_OK;
    return status == TN_OK                ? TN_OK
           : status == TN_ERR_UNSUPPORTED ? declined(kernel, stood)
                                          : kernel_failed(device, kernel, status, call_name);
}

bool tni_kernel_supports(tni_device *device, const tni_kernel *kernel, const char *call_name,
                         const tn_cell *cells, uint32_t n_cells, const tn_tensor_view *const *outs,
                         uint32_t n_outs, tn_status *out_status) {
    tn_call call =
        make_call(device, tni_stream_current(device), kernel, cells, n_cells, outs, n_outs);
    tn_status status = ask(device, kernel, call_name, &call);
    *out_status = status == TNI_NOT_SUPPORTED ? TN_OK : status;
    return status == TN_OK;
}

static tn_status ran(tni_device *device, const tni_kernel *kernel, const char *call_name,
                     bool stood, tn_status status) {
    return status == TN_ERR_UNSUPPORTED ? declined(kernel, stood)
                                        : kernel_failed(device, kernel, status, call_name);
}

/* Of a kernel that must be asked about the call first, and of a program's own. */
static __attribute__((noinline)) tn_status ask_and_run(tni_device *device, tn_stream *stream,
                                                       const tni_kernel *kernel,
                                                       const char *call_name, tn_call *call) {
    bool stood = tni_error_stands();
    tn_status status = ask(device, kernel, call_name, call);
    if (status != TN_OK)
        return status;
    tni_block *workspace = NULL;
    if (kernel->prepare) {
        tn_plan plan = {.struct_size = sizeof plan};
        status = kernel->prepare(call, &plan);
        if (status != TN_OK)
            return ran(device, kernel, call_name, stood, status);
        call->cookie = plan.cookie;
        if (plan.workspace_bytes > 0) {
            workspace = tni_block_alloc(device, stream, plan.workspace_bytes);
            if (!workspace) {
                if (kernel->abandon)
                    kernel->abandon(call);
                return tni_failed();
            }
            call->workspace = workspace->memory;
            call->workspace_offset = workspace->offset;
            call->workspace_bytes = plan.workspace_bytes;
        }
    }
    tni_stream_note(stream, call_name);
    status = kernel->run(call);
    if (workspace)
        tni_block_free(workspace); /* in stream order: reused only after this kernel */
    return TNI_LIKELY(status == TN_OK) ? TN_OK : ran(device, kernel, call_name, stood, status);
}

tn_status tni_invoke(tni_device *device, const tni_kernel *kernel, const char *call_name,
                     const tn_cell *cells, uint32_t n_cells, const tn_tensor_view *const *outs,
                     uint32_t n_outs) {
    tn_status status = tni_device_check(device);
    if (TNI_UNLIKELY(status != TN_OK))
        return status;
    tn_stream *stream = tni_stream_current(device);
    tn_call call = make_call(device, stream, kernel, cells, n_cells, outs, n_outs);
    if (TNI_UNLIKELY(!kernel->is_plain))
        return ask_and_run(device, stream, kernel, call_name, &call);
    tni_stream_note(stream, call_name);
    status = kernel->run(&call);
    return TNI_LIKELY(status == TN_OK) ? TN_OK : ran(device, kernel, call_name, false, status);
}
