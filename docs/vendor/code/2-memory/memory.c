/* memory.c: allocations of a device that has so much memory and no more. */
#include "internal.h"

#include <stdbool.h>

/* What a handle names. */
struct block {
    void *data;
    uint64_t bytes;
};

void *npu_address(tn_memory memory, uint64_t offset) {
    const struct block *block = (const struct block *)(uintptr_t)memory;
    return (char *)block->data + offset;
}

/* Several threads allocate at once, so the bytes are counted before they are taken. */
static bool reserve(tn_device_impl *device, uint64_t bytes) {
    uint64_t used = atomic_load(&device->used_bytes);
    do
        if (bytes > NPU_MEMORY - used)
            return false;
    while (!atomic_compare_exchange_weak(&device->used_bytes, &used, used + bytes));
    return true;
}

static tn_status alloc(tn_device_impl *device, tn_allocation *a) {
    const tn_host *host = device->self->host;
    if (a->space != TN_SPACE_DEVICE || a->flags || a->alignment > NPU_ALIGNMENT)
        return npu_fail(device->self, TN_ERR_UNSUPPORTED,
                        "npu:%u has no memory of space %d with flags %#x, aligned to %llu",
                        device->index, (int)a->space, (unsigned)a->flags,
                        (unsigned long long)a->alignment);
    if (!reserve(device, a->bytes))
        return npu_fail(device->self, TN_ERR_OUT_OF_MEMORY,
                        "npu:%u has %u MiB, and not %llu bytes more; use a smaller batch",
                        device->index, NPU_MEMORY >> 20, (unsigned long long)a->bytes);
    struct block *block = host->alloc(host, sizeof *block, _Alignof(struct block));
    void *data = block ? host->alloc(host, a->bytes, NPU_ALIGNMENT) : NULL;
    if (!data) {
        host->dealloc(host, block);
        atomic_fetch_sub(&device->used_bytes, a->bytes);
        return npu_fail(device->self, TN_ERR_OUT_OF_MEMORY, "no host memory for npu:%u",
                        device->index);
    }
    *block = (struct block){.data = data, .bytes = a->bytes};
    a->memory = (uintptr_t)block;
    a->host = NULL; /* only the device reaches it */
    return TN_OK;
}

static void free_memory(tn_device_impl *device, int32_t space, tn_memory memory) {
    struct block *block = (struct block *)(uintptr_t)memory;
    atomic_fetch_sub(&device->used_bytes, block->bytes);
    device->self->host->dealloc(device->self->host, block->data);
    device->self->host->dealloc(device->self->host, block);
}

static tn_status info(tn_device_impl *device, int32_t space, tn_memory_info *out) {
    if (space != TN_SPACE_DEVICE)
        return npu_fail(device->self, TN_ERR_UNSUPPORTED, "npu:%u has no memory of space %d",
                        device->index, (int)space);
    if (TN_HAS(out, tn_memory_info, total_bytes))
        out->total_bytes = NPU_MEMORY;
    if (TN_HAS(out, tn_memory_info, free_bytes))
        out->free_bytes = NPU_MEMORY - atomic_load(&device->used_bytes);
    return TN_OK;
}

/* No copy_peer: there is one device. */
const tn_memory_ops npu_memory_ops = {
    .struct_size = sizeof npu_memory_ops,
    .alloc = alloc,
    .dealloc = free_memory,
    .copy_from_host = npu_copy_from_host,
    .copy_to_host = npu_copy_to_host,
    .copy = npu_copy,
    .fill = npu_fill,
    .info = info,
};
