/* Allocations. A handle is the address of a cl_mem; the core caches and splits them. */
#include "plugins/opencl/opencl.h"

#include <stdio.h>
#include <string.h>

/* ---- the host's ------------------------------------------------------------------------- */

void *ocl_host_alloc(const tn_instance *self, uint64_t bytes, const char *what) {
    void *p = self->host->alloc(self->host, bytes, _Alignof(max_align_t));
    if (!p)
        ocl_fail(self, TN_ERR_OUT_OF_MEMORY, "no host memory for %s (%llu bytes)", what,
                 (unsigned long long)bytes);
    return p;
}

/* ---- accounts ---------------------------------------------------------------------------- */

/* Drivers give out more than there is and fail when it is touched; the sum is kept here. */
static tn_status take(tn_device_impl *device, uint64_t bytes) {
    const ocl_found *found = device->found;
    pthread_mutex_lock(&device->lock);
    uint64_t used = device->used_bytes;
    bool fits = bytes <= found->memory_bytes - used;
    if (fits)
        device->used_bytes += bytes;
    pthread_mutex_unlock(&device->lock);
    return fits ? TN_OK
                : ocl_fail(device->self, TN_ERR_OUT_OF_MEMORY,
                           "opencl:%u (%s): %llu bytes are wanted, %llu of its %llu are taken",
                           device->index, found->name, (unsigned long long)bytes,
                           (unsigned long long)used, (unsigned long long)found->memory_bytes);
}

static void give_back(tn_device_impl *device, uint64_t bytes) {
    pthread_mutex_lock(&device->lock);
    device->used_bytes -= bytes;
    pthread_mutex_unlock(&device->lock);
}

/* ---- pinned allocations ------------------------------------------------------------------ */

static tn_status pinned_add(tn_device_impl *device, cl_mem memory, void *host) {
    ocl_pinned *added = ocl_host_alloc(device->self, sizeof *added, "a pinned allocation");
    if (!added)
        return TN_ERR_OUT_OF_MEMORY;
    pthread_mutex_lock(&device->lock);
    *added = (ocl_pinned){device->pinned, memory, host};
    device->pinned = added;
    pthread_mutex_unlock(&device->lock);
    return TN_OK;
}

/* Forgets it; returns where the host sees it, or NULL. */
static void *pinned_remove(tn_device_impl *device, cl_mem memory) {
    pthread_mutex_lock(&device->lock);
    ocl_pinned **at = &device->pinned;
    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    ocl_pinned *found = *at;
    if (found)
        *at = found->next;
    pthread_mutex_unlock(&device->lock);
    void *host = found ? found->host : NULL;
    device->self->host->dealloc(device->self->host, found);
    return host;
}

/* Memory that the driver made for the host's sake, mapped for as long as it lives: transfers from
 * and to such addresses need no copy in between. */
static tn_status alloc_pinned(tn_device_impl *device, tn_allocation *a) {
    cl_int error;
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                   a->bytes, NULL, &error);
    if (!memory)
        return ocl_fail_driver(device, error, "allocating pinned memory");
    void *host = clEnqueueMapBuffer(device->transfers, memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                    0, a->bytes, 0, NULL, NULL, &error);
    tn_status status = TN_OK;
    if (!host)
        status = ocl_fail_driver(device, error, "mapping pinned memory");
    else if ((uint64_t)(uintptr_t)host % device->found->alignment)
        status = ocl_fail(device->self, TN_ERR_INTERNAL,
                          "opencl:%u (%s): the driver says that memory is aligned to %llu and gave "
                          "%p; another version of the driver may do",
                          device->index, device->found->name,
                          (unsigned long long)device->found->alignment, host);
    else
        status = pinned_add(device, memory, host);
    if (status != TN_OK) {
        if (host &&
            clEnqueueUnmapMemObject(device->transfers, memory, host, 0, NULL, NULL) == CL_SUCCESS)
            clFinish(device->transfers);
        clReleaseMemObject(memory);
        return status;
    }
    a->memory = (tn_memory)(uintptr_t)memory;
    a->host = host;
    return TN_OK;
}

/* ---- the table --------------------------------------------------------------------------- */

/* Where drivers allocate on first use, that is now. */
static cl_int make_real(tn_device_impl *device, cl_mem memory) {
    if (device->found->type & CL_DEVICE_TYPE_CPU)
        return CL_SUCCESS;
    cl_int error = clEnqueueMigrateMemObjects(
        device->transfers, 1, &memory, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, NULL, NULL);
    return error != CL_SUCCESS ? error : clFinish(device->transfers);
}

static tn_status check_space(tn_device_impl *device, int32_t space) {
    return space == TN_SPACE_DEVICE || space == TN_SPACE_PINNED
               ? TN_OK
               : ocl_fail(device->self, TN_ERR_UNSUPPORTED, "opencl:%u (%s) has no memory space %d",
                          device->index, device->found->name, space);
}

static tn_status check_request(tn_device_impl *device, const tn_allocation *a) {
    const ocl_found *found = device->found;
    PLUGIN_TRY(check_space(device, a->space));
    if (a->flags)
        return ocl_fail(device->self, TN_ERR_UNSUPPORTED,
                        "opencl:%u (%s) knows no allocation flags %#x", device->index, found->name,
                        a->flags);
    if (a->alignment > found->alignment)
        return ocl_fail(device->self, TN_ERR_UNSUPPORTED,
                        "opencl:%u (%s): memory is aligned to %llu bytes, and %llu are wanted",
                        device->index, found->name, (unsigned long long)found->alignment,
                        (unsigned long long)a->alignment);
    if (a->bytes == 0)
        return ocl_fail(device->self, TN_ERR_INVALID_ARGUMENT, "an allocation has a byte at least");
    if (a->bytes > found->max_allocation)
        return ocl_fail(device->self, TN_ERR_OUT_OF_MEMORY,
                        "opencl:%u (%s): %llu bytes are wanted in one piece, and it has no more "
                        "than %llu",
                        device->index, found->name, (unsigned long long)a->bytes,
                        (unsigned long long)found->max_allocation);
    return TN_OK;
}

static tn_status alloc(tn_device_impl *device, tn_allocation *a) {
    PLUGIN_TRY(ocl_check_lost(device));
    PLUGIN_TRY(check_request(device, a));
    if (a->space == TN_SPACE_PINNED)
        return alloc_pinned(device, a);
    PLUGIN_TRY(take(device, a->bytes));
    cl_int error;
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, a->bytes, NULL, &error);
    if (memory)
        error = make_real(device, memory);
    if (error != CL_SUCCESS) {
        if (memory)
            clReleaseMemObject(memory);
        give_back(device, a->bytes);
        return ocl_fail_driver(device, error, "allocating memory");
    }
    a->memory = (tn_memory)(uintptr_t)memory;
    a->host = NULL;
    return TN_OK;
}

static void free_memory(tn_device_impl *device, int32_t space, tn_memory memory) {
    cl_mem mem = ocl_mem(memory);
    size_t bytes = 0;
    if (!mem)
        return;
    if (space == TN_SPACE_PINNED) {
        void *host = pinned_remove(device, mem);
        if (host &&
            clEnqueueUnmapMemObject(device->transfers, mem, host, 0, NULL, NULL) == CL_SUCCESS)
            clFinish(device->transfers);
    } else if (clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof bytes, &bytes, NULL) == CL_SUCCESS) {
        give_back(device, bytes);
    }
    atomic_fetch_add(&device->n_freed, 1);
    clReleaseMemObject(mem);
}

/* How much can be pinned is not known. */
static tn_status info(tn_device_impl *device, int32_t space, tn_memory_info *out) {
    PLUGIN_TRY(ocl_check_lost(device));
    PLUGIN_TRY(check_space(device, space));
    pthread_mutex_lock(&device->lock);
    uint64_t used = device->used_bytes;
    pthread_mutex_unlock(&device->lock);
    uint64_t total = space == TN_SPACE_DEVICE ? device->found->memory_bytes : 0;
    if (TN_HAS(out, tn_memory_info, total_bytes))
        out->total_bytes = total;
    if (TN_HAS(out, tn_memory_info, free_bytes))
        out->free_bytes = total ? total - used : 0;
    return TN_OK;
}

const tn_memory_ops ocl_memory_ops = {
    .struct_size = sizeof ocl_memory_ops,
    .alloc = alloc,
    .dealloc = free_memory,
    .copy_from_host = ocl_copy_from_host,
    .copy_to_host = ocl_copy_to_host,
    .copy = ocl_copy,
    .fill = ocl_fill,
    .info = info,
};
