/* memory.c: allocations. Here they are host memory, so that the device works from the first day;
 * replace it by the device's. The core caches, splits and reuses what it gets, so this need not be
 * fast. */
#include "internal.h"

/* A handle is whatever names an allocation: an address, a cl_mem, an index. Never 0. */
void *yourtype_address(tn_memory memory, uint64_t offset) {
    return (char *)(uintptr_t)memory + offset;
}

/* Device memory is all there is. TN_SPACE_PINNED may come later: TN_PROP_SPACES then says
 * so, and until it does the core takes plain host memory. A request for more than is known here is
 * refused. */
static tn_status alloc(tn_device_impl *device, tn_allocation *a) {
    if (a->space != TN_SPACE_DEVICE || a->flags || a->alignment > YOURTYPE_ALIGNMENT)
        return yourtype_fail(
            device->self, TN_ERR_UNSUPPORTED,
            "yourtype:%u has no memory of space %d with flags %#x, aligned to %llu", device->index,
            (int)a->space, (unsigned)a->flags, (unsigned long long)a->alignment);
    void *p = device->self->host->alloc(device->self->host, a->bytes, YOURTYPE_ALIGNMENT);
    if (!p)
        return yourtype_fail(device->self, TN_ERR_OUT_OF_MEMORY,
                             "yourtype:%u has no %llu bytes left; use a smaller batch",
                             device->index, (unsigned long long)a->bytes);
    a->memory = (uintptr_t)p;
    a->host = NULL; /* the host must not come to rely on reaching it */
    return TN_OK;
}

static void free_memory(tn_device_impl *device, int32_t space, tn_memory memory) {
    device->self->host->dealloc(device->self->host, yourtype_address(memory, 0));
}

static tn_status info(tn_device_impl *device, int32_t space, tn_memory_info *out) {
    return yourtype_not_yet(device->self, "tn_memory_ops.info",
                            "in memory.c, say how much memory the device has, and has left, or "
                            "leave the slot NULL",
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
    .copy_from_host = yourtype_copy_from_host,
    .copy_to_host = yourtype_copy_to_host,
    .copy = yourtype_copy,
    .copy_peer = copy_peer,
    .fill = yourtype_fill,
    .info = info,
};
