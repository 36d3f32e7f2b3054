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

/* The first one that starts behind `p`. The caller locks. */
static uint32_t place_of(const tn_device_impl *device, uint64_t p) {
    uint32_t low = 0, high = device->n_pinned;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (device->pinned[middle].start <= p)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool ocl_is_pinned(tn_device_impl *device, const void *p, uint64_t bytes) {
    uint64_t start = (uint64_t)(uintptr_t)p;
    pthread_mutex_lock(&device->lock);
    uint32_t i = place_of(device, start);
    const ocl_pinned *before = i > 0 ? &device->pinned[i - 1] : NULL;
    bool inside =
        before && bytes <= before->bytes && start - before->start <= before->bytes - bytes;
    pthread_mutex_unlock(&device->lock);
    return inside;
}

static tn_status pinned_add(tn_device_impl *device, cl_mem memory, const void *host,
                            uint64_t bytes) {
    const tn_host *h = device->self->host;
    ocl_pinned added = {(uint64_t)(uintptr_t)host, bytes, memory};
    tn_status status = TN_OK;
    pthread_mutex_lock(&device->lock);
    if (device->n_pinned == device->room_pinned) {
        uint32_t room = device->room_pinned ? 2 * device->room_pinned : 16;
        ocl_pinned *larger =
            ocl_host_alloc(device->self, room * sizeof *larger, "the list of pinned memory");
        if (larger && device->n_pinned)
            memcpy(larger, device->pinned, device->n_pinned * sizeof *larger);
        if (larger) {
            h->dealloc(h, device->pinned);
            device->pinned = larger;
            device->room_pinned = room;
        } else {
            status = TN_ERR_OUT_OF_MEMORY;
        }
    }
    if (status == TN_OK) {
        uint32_t at = place_of(device, added.start);
        memmove(device->pinned + at + 1, device->pinned + at,
                (device->n_pinned - at) * sizeof added);
        device->pinned[at] = added;
        device->n_pinned++;
    }
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* Forgets it; returns where the host sees it, or NULL. */
static void *pinned_remove(tn_device_impl *device, cl_mem memory) {
    void *host = NULL;
    pthread_mutex_lock(&device->lock);
    for (uint32_t i = 0; i < device->n_pinned && !host; i++)
        if (device->pinned[i].memory == memory) {
            host = (void *)(uintptr_t)device->pinned[i].start;
            device->n_pinned--;
            memmove(device->pinned + i, device->pinned + i + 1,
                    (device->n_pinned - i) * sizeof *device->pinned);
        }
    pthread_mutex_unlock(&device->lock);
    return host;
}

/* Memory that the driver made for the host's sake, mapped for as long as it lives: transfers from
 * and to such addresses need no copy in between. */
static tn_status alloc_pinned(tn_device_impl *device, uint64_t bytes, tn_memory *out_memory,
                              void **out_host) {
    cl_int error;
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                   bytes, NULL, &error);
    if (!memory)
        return ocl_fail_driver(device, error, "allocating pinned memory");
    void *host = clEnqueueMapBuffer(device->transfers, memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                    0, bytes, 0, NULL, NULL, &error);
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
        status = pinned_add(device, memory, host, bytes);
    if (status != TN_OK) {
        if (host &&
            clEnqueueUnmapMemObject(device->transfers, memory, host, 0, NULL, NULL) == CL_SUCCESS)
            clFinish(device->transfers);
        clReleaseMemObject(memory);
        return status;
    }
    *out_memory = (tn_memory)(uintptr_t)memory;
    *out_host = host;
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

static tn_status alloc(tn_device_impl *device, int32_t space, uint64_t bytes, tn_memory *out_memory,
                       void **out_host) {
    *out_memory = 0;
    *out_host = NULL;
    tn_status status = ocl_check_lost(device);
    if (status != TN_OK)
        return status;
    if (space != TN_SPACE_DEVICE && space != TN_SPACE_PINNED)
        return ocl_fail(device->self, TN_ERR_INVALID_ARGUMENT, "there is no memory space %d",
                        space);
    if (bytes == 0)
        return ocl_fail(device->self, TN_ERR_INVALID_ARGUMENT, "an allocation has a byte at least");
    if (bytes > device->found->max_allocation)
        return ocl_fail(device->self, TN_ERR_OUT_OF_MEMORY,
                        "opencl:%u (%s): %llu bytes are wanted in one piece, and it has no more "
                        "than %llu",
                        device->index, device->found->name, (unsigned long long)bytes,
                        (unsigned long long)device->found->max_allocation);
    if (space == TN_SPACE_PINNED)
        return alloc_pinned(device, bytes, out_memory, out_host);
    status = take(device, bytes);
    if (status != TN_OK)
        return status;
    cl_int error;
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, bytes, NULL, &error);
    if (memory)
        error = make_real(device, memory);
    if (error != CL_SUCCESS) {
        if (memory)
            clReleaseMemObject(memory);
        give_back(device, bytes);
        return ocl_fail_driver(device, error, "allocating memory");
    }
    *out_memory = (tn_memory)(uintptr_t)memory;
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

static tn_status info(tn_device_impl *device, tn_memory_info *out) {
    tn_status status = ocl_check_lost(device);
    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&device->lock);
    uint64_t used = device->used_bytes;
    pthread_mutex_unlock(&device->lock);
    if (TN_HAS(out, tn_memory_info, total_bytes))
        out->total_bytes = device->found->memory_bytes;
    if (TN_HAS(out, tn_memory_info, free_bytes))
        out->free_bytes = device->found->memory_bytes - used;
    return TN_OK;
}

const tn_memory_ops ocl_memory_ops = {
    .struct_size = sizeof ocl_memory_ops,
    .alloc = alloc,
    .dealloc = free_memory,
    .copy_from_host = ocl_write,
    .copy_to_host = ocl_read,
    .copy = ocl_copy,
    .fill = ocl_fill,
    .info = info,
};
