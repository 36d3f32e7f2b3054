/* Finding a kernel and calling it. */
#include "core/call/call.h"

#include <stdio.h>

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

const tni_kernel *tni_find_kernel(tni_device *device, int kernel, tn_dtype *types) {
    const tni_kernel_table *table =
        atomic_load_explicit(&device->kernels.table, memory_order_acquire);
    uint32_t n_types = tni_kernel_types_of[kernel].n_types;
    const tni_kernel *k = tni_kernel_match(table, (uint32_t)kernel, types, n_types);
    if (TNI_LIKELY(k != NULL))
        return k;
    /* random bits and copies mean their dtype; nothing else does */
    tn_dtype wide = wider(types[0]);
    if (wide == TN_DTYPE_NONE || kernel == TNI_KERNEL_copy || kernel == TNI_KERNEL_random_bits)
        return NULL;
    tn_dtype narrow = types[0];
    types[0] = wide;
    k = tni_kernel_match(table, (uint32_t)kernel, types, n_types);
    if (!k)
        types[0] = narrow;
    return k;
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

/* Of a kernel that must be asked about the call first. */
static __attribute__((noinline)) tn_status ask_and_run(tni_device *device, tn_stream *stream,
                                                       const tni_kernel *kernel,
                                                       const char *call_name, tn_call *call) {
    tn_status status;
    if (kernel->supports) {
        status = kernel->supports(call);
        if (status == TN_ERR_UNSUPPORTED) {
            tni_error_plugin(TN_OK, NULL); /* its reason is no error of this call */
            return TNI_NOT_SUPPORTED;
        }
        if (status != TN_OK)
            return kernel_failed(device, kernel, status, call_name);
    }
    tni_block *workspace = NULL;
    if (kernel->workspace) {
        uint64_t bytes = 0;
        status = kernel->workspace(call, &bytes);
        if (status != TN_OK)
            return kernel_failed(device, kernel, status, call_name);
        if (bytes > 0) {
            workspace = tni_block_alloc(device, stream, bytes);
            if (!workspace)
                return tni_failed();
            call->workspace = workspace->memory;
            call->workspace_offset = workspace->offset;
            call->workspace_bytes = bytes;
        }
    }
    tni_stream_note(stream, call_name);
    status = kernel->run(call);
    if (workspace)
        tni_block_free(workspace); /* in stream order: reused only after this kernel */
    return TNI_LIKELY(status == TN_OK) ? TN_OK : kernel_failed(device, kernel, status, call_name);
}

tn_status tni_invoke(tni_device *device, const tni_kernel *kernel, const char *call_name,
                     const tn_cell *cells, uint32_t n_cells, const tn_tensor_view *const *outs,
                     uint32_t n_outs) {
    tn_status status = tni_device_check(device);
    if (TNI_UNLIKELY(status != TN_OK))
        return status;
    tn_stream *stream = tni_stream_current(device);
    tn_call call = {
        .struct_size = sizeof call,
        .device = device->handle,
        .stream = stream->handle,
        .user = kernel->user,
        .args = cells,
        .outs = outs,
        .n_args = n_cells,
        .n_outs = n_outs,
    };
    if (TNI_UNLIKELY(kernel->supports || kernel->workspace))
        return ask_and_run(device, stream, kernel, call_name, &call);
    tni_stream_note(stream, call_name);
    status = kernel->run(&call);
    return TNI_LIKELY(status == TN_OK) ? TN_OK : kernel_failed(device, kernel, status, call_name);
}
