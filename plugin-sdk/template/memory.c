/* memory.c: allocations. Here they are host memory, so that the device works from the first day;
 * replace it by the device's. The core caches, splits and reuses what it gets, so this need not be
 * fast. */
#include "internal.h"

/* A handle is whatever names an allocation: an address, a cl_mem, an index. Never 0. */
void *yourtype_address(tn_memory memory, uint64_t offset) {
    return (char *)(uintptr_t)memory + offset;
}

static tn_status alloc(tn_device_impl *device, int32_t space, uint64_t bytes, tn_memory *out_memory,
                       void **out_host) {
    *out_memory = 0;
    *out_host = NULL;
    void *p = device->self->host->alloc(device->self->host, bytes, YOURTYPE_ALIGNMENT);
    if (!p)
        return yourtype_fail(device->self, TN_ERR_OUT_OF_MEMORY,
                             "yourtype:%u has no %llu bytes left; use a smaller batch",
                             device->index, (unsigned long long)bytes);
    *out_memory = (uintptr_t)p;
    /* The host reaches pinned memory only: it must not come to rely on more. */
    if (space == TN_SPACE_PINNED)
        *out_host = p;
    return TN_OK;
}

static void free_memory(tn_device_impl *device, int32_t space, tn_memory memory) {
    device->self->host->dealloc(device->self->host, yourtype_address(memory, 0));
}

static tn_status info(tn_device_impl *device, tn_memory_info *out) {
    return yourtype_not_yet(device->self, "tn_memory_ops.info",
                            "in memory.c, say how much memory the device has, and has left",
                            "TNP-50");
}

static tn_status copy_peer(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                           uint64_t dst_offset, tn_device_impl *src_device, tn_memory src,
                           uint64_t src_offset, uint64_t bytes) {
    return yourtype_not_yet(device->self, "tn_memory_ops.copy_peer",
                            "in memory.c, copy between two devices, or leave the slot NULL",
                            "TNP-49");
}

const tn_memory_ops yourtype_memory_ops = {
    .struct_size = sizeof yourtype_memory_ops,
    .alloc = alloc,
    .dealloc = free_memory,
    .copy_from_host = yourtype_write,
    .copy_to_host = yourtype_read,
    .copy = yourtype_copy,
    .copy_peer = copy_peer,
    .fill = yourtype_fill,
    .info = info,
};
