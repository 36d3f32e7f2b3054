/* memory.cpp: allocations. Here they are host memory, so that the device works from the first day;
 * replace it by the device's. The core caches, splits and reuses what it gets, so this need not be
 * fast. */
#include "internal.h"

namespace yourtype {

/* A handle is whatever names an allocation: an address, a cl_mem, an index. Never 0. */
void *address(tn_memory memory, uint64_t offset) {
    return reinterpret_cast<char *>(memory) + offset;
}

/* Device memory is all there is. TN_SPACE_PINNED may come later: TN_PROP_SPACES then says so, and until
 * it does the core takes plain host memory. What asks for more than is known here, or will ever be, is
 * refused. */
static void alloc(tn_device_impl *device, tn_allocation *a) {
    if (a->space != TN_SPACE_DEVICE || a->flags || a->alignment > alignment)
        throw tenon::error(TN_ERR_UNSUPPORTED,
                           "yourtype:%u has no memory of space %d with flags %#x, aligned to %llu",
                           device->index, a->space, a->flags,
                           static_cast<unsigned long long>(a->alignment));
    const tn_host *host = host_of(device);
    void *p = host->alloc(host, a->bytes, alignment);
    if (!p)
        throw tenon::error(TN_ERR_OUT_OF_MEMORY,
                           "yourtype:%u has no %llu bytes left; use a smaller batch", device->index,
                           static_cast<unsigned long long>(a->bytes));
    a->memory = reinterpret_cast<tn_memory>(p);
    a->host = nullptr; /* the host must not come to rely on reaching it */
}

static void dealloc(tn_device_impl *device, int32_t space, tn_memory memory) {
    const tn_host *host = host_of(device);
    host->dealloc(host, address(memory, 0));
}

static void info(tn_device_impl *device, int32_t space, tn_memory_info *out) {
    not_yet(
        host_of(device), "tn_memory_ops.info",
        "in memory.cpp, say how much memory the device has, and has left, or leave the slot NULL",
        "TNP-50");
}

static void copy_peer(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                      uint64_t dst_offset, tn_device_impl *src_device, tn_memory src,
                      uint64_t src_offset, uint64_t bytes) {
    not_yet(host_of(device), "tn_memory_ops.copy_peer",
            "in memory.cpp, copy between two devices, or leave the slot NULL", "TNP-49");
}

constexpr tn_memory_ops memory_ops = [] {
    auto ops = tenon::table<tn_memory_ops>();
    ops.alloc = tenon::slot<alloc>;
    ops.dealloc = tenon::slot<dealloc>;
    ops.copy_from_host = tenon::slot<copy_from_host>;
    ops.copy_to_host = tenon::slot<copy_to_host>;
    ops.copy = tenon::slot<copy_bytes>;
    ops.copy_peer = tenon::slot<copy_peer>;
    ops.fill = tenon::slot<fill_bytes>;
    ops.info = tenon::slot<info>;
    return ops;
}();

} // namespace yourtype
