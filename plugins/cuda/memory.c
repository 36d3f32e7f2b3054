/* Allocations. A handle is an address, the device's or, of pinned memory, the host's, which are
 * distinct: CUDA has one space of addresses. The core caches and splits allocations. */
#include "plugins/cuda/cuda.h"

#include <stddef.h>

void *cuda_host_alloc(const tn_instance *self, uint64_t bytes, const char *what) {
    void *p = self->host->alloc(self->host, bytes, _Alignof(max_align_t));
    if (!p)
        cuda_fail(self, TN_ERR_OUT_OF_MEMORY, "no host memory for %s (%llu bytes)", what,
                  (unsigned long long)bytes);
    return p;
}

static tn_status check_space(tn_device_impl *device, int32_t space) {
    return space == TN_SPACE_DEVICE || space == TN_SPACE_PINNED
               ? TN_OK
               : cuda_fail(device->self, TN_ERR_UNSUPPORTED, "cuda:%u (%s) has no memory space %d",
                           device->index, device->found->name, space);
}

static tn_status check_request(tn_device_impl *device, const tn_allocation *a) {
    PLUGIN_TRY(check_space(device, a->space));
    if (a->flags)
        return cuda_fail(device->self, TN_ERR_UNSUPPORTED,
                         "cuda:%u (%s) knows no allocation flags %#x", device->index,
                         device->found->name, a->flags);
    if (a->alignment > CUDA_ALIGNMENT)
        return cuda_fail(device->self, TN_ERR_UNSUPPORTED,
                         "cuda:%u (%s): memory is aligned to %d bytes, and %llu are wanted",
                         device->index, device->found->name, CUDA_ALIGNMENT,
                         (unsigned long long)a->alignment);
    if (a->bytes == 0)
        return cuda_fail(device->self, TN_ERR_INVALID_ARGUMENT,
                         "an allocation has a byte at least");
    return TN_OK;
}

/* Says how much there is beside. */
static tn_status fail_alloc(tn_device_impl *device, const tn_allocation *a, CUresult error) {
    size_t free_bytes = 0, total = 0;
    if (error != CUDA_ERROR_OUT_OF_MEMORY || a->space == TN_SPACE_PINNED ||
        CUDA_CALL(device, cuMemGetInfo_v2, &free_bytes, &total) != CUDA_SUCCESS)
        return cuda_fail_driver(device, error,
                                a->space == TN_SPACE_PINNED ? "allocating pinned memory"
                                                            : "allocating memory");
    return cuda_fail(device->self, TN_ERR_OUT_OF_MEMORY,
                     "cuda:%u (%s): %llu bytes are wanted, %llu of its %llu are free, other "
                     "programs' taken off",
                     device->index, device->found->name, (unsigned long long)a->bytes,
                     (unsigned long long)free_bytes, (unsigned long long)total);
}

static tn_status alloc(tn_device_impl *device, tn_allocation *a) {
    CUdeviceptr address = 0;
    void *host = NULL;
    CUresult error;
    PLUGIN_TRY(cuda_check_lost(device));
    PLUGIN_TRY(check_request(device, a));
    if (a->space == TN_SPACE_PINNED)
        error = CUDA_CALL(device, cuMemHostAlloc, &host, a->bytes, CU_MEMHOSTALLOC_PORTABLE);
    else
        error = CUDA_CALL(device, cuMemAlloc_v2, &address, a->bytes);
    if (error != CUDA_SUCCESS)
        return fail_alloc(device, a, error);
    atomic_fetch_add(&device->n_allocations, 1);
    a->memory = host ? (tn_memory)(uintptr_t)host : (tn_memory)address;
    a->host = host;
    return TN_OK;
}

/* Of a lost device the driver frees nothing, and everything when the process ends. */
static void free_memory(tn_device_impl *device, int32_t space, tn_memory memory) {
    CUresult error = CUDA_SUCCESS;
    if (!memory)
        return;
    atomic_fetch_sub(&device->n_allocations, 1);
    if (cuda_is_lost(device))
        return;
    if (space == TN_SPACE_PINNED)
        error = CUDA_CALL(device, cuMemFreeHost, (void *)(uintptr_t)memory);
    else
        error = CUDA_CALL(device, cuMemFree_v2, (CUdeviceptr)memory);
    if (error != CUDA_SUCCESS) /* there is nobody to return it to */
        cuda_fail_driver(device, error, "freeing memory");
}

/* How much can be pinned is not known. */
static tn_status info(tn_device_impl *device, int32_t space, tn_memory_info *out) {
    size_t free_bytes = 0, total = 0;
    PLUGIN_TRY(cuda_check_lost(device));
    PLUGIN_TRY(check_space(device, space));
    if (space == TN_SPACE_DEVICE) {
        CUresult error = CUDA_CALL(device, cuMemGetInfo_v2, &free_bytes, &total);
        if (error != CUDA_SUCCESS)
            return cuda_fail_driver(device, error, "asking for free memory");
    }
    if (TN_HAS(out, tn_memory_info, total_bytes))
        out->total_bytes = total;
    if (TN_HAS(out, tn_memory_info, free_bytes))
        out->free_bytes = free_bytes;
    return TN_OK;
}

const tn_memory_ops cuda_memory_ops = {
    .struct_size = sizeof cuda_memory_ops,
    .alloc = alloc,
    .dealloc = free_memory,
    .copy_from_host = cuda_copy_from_host,
    .copy_to_host = cuda_copy_to_host,
    .copy = cuda_copy,
    .copy_peer = cuda_copy_peer,
    .fill = cuda_fill,
    .info = info,
};
