/* memory.cpp: allocations of a device that has so much memory and no more. */
#include "internal.h"

namespace npu {

/* Part of a device's memory, from construction to destruction. */
class reservation {
  public:
    /* Several threads allocate at once, so the bytes are counted before they are taken. */
    reservation(tn_device_impl *device, uint64_t bytes) : device_(device), bytes_(bytes) {
        uint64_t used = device->used_bytes;
        do
            if (bytes > memory_bytes - used)
                throw tenon::error(
                    TN_ERR_OUT_OF_MEMORY,
                    "npu:%u has %u MiB, and not %llu bytes more; use a smaller batch",
                    device->index, static_cast<unsigned>(memory_bytes >> 20),
                    static_cast<unsigned long long>(bytes));
        while (!device->used_bytes.compare_exchange_weak(used, used + bytes));
    }
    reservation(const reservation &) = delete;
    ~reservation() {
        device_->used_bytes -= bytes_;
    }

  private:
    tn_device_impl *device_;
    uint64_t bytes_;
};

/* What a handle names. Where there is no host memory for `data`, what was reserved is given back. */
struct block {
    struct give_back {
        const tn_host *host;
        void operator()(void *p) const {
            host->dealloc(host, p);
        }
    };

    reservation reserved;
    std::unique_ptr<void, give_back> data;

    block(tn_device_impl *device, uint64_t bytes)
        : reserved(device, bytes),
          data(host_of(device)->alloc(host_of(device), bytes, alignment), {host_of(device)}) {
        if (!data)
            throw std::bad_alloc();
    }
};

static block *block_of(tn_memory memory) {
    return reinterpret_cast<block *>(memory);
}

void *address(tn_memory memory, uint64_t offset) {
    return static_cast<char *>(block_of(memory)->data.get()) + offset;
}

static void alloc(tn_device_impl *device, tn_allocation *a) {
    if (a->space != TN_SPACE_DEVICE || a->flags || a->alignment > alignment)
        throw tenon::error(
            TN_ERR_UNSUPPORTED, "npu:%u has no memory of space %d with flags %#x, aligned to %llu",
            device->index, a->space, a->flags, static_cast<unsigned long long>(a->alignment));
    a->memory = reinterpret_cast<tn_memory>(
        tenon::make_host<block>(host_of(device), device, a->bytes).release());
    a->host = nullptr; /* only the device reaches it */
}

static void dealloc(tn_device_impl *device, int32_t space, tn_memory memory) {
    tenon::destroy(host_of(device), block_of(memory));
}

static void info(tn_device_impl *device, int32_t space, tn_memory_info *out) {
    if (space != TN_SPACE_DEVICE)
        throw tenon::error(TN_ERR_UNSUPPORTED, "npu:%u has no memory of space %d", device->index,
                           space);
    if (TN_HAS(out, tn_memory_info, total_bytes))
        out->total_bytes = memory_bytes;
    if (TN_HAS(out, tn_memory_info, free_bytes))
        out->free_bytes = memory_bytes - device->used_bytes;
}

/* No copy_peer: there is one device. */
constexpr tn_memory_ops memory_ops = [] {
    auto ops = tenon::table<tn_memory_ops>();
    ops.alloc = tenon::slot<alloc>;
    ops.dealloc = tenon::slot<dealloc>;
    ops.copy_from_host = tenon::slot<copy_from_host>;
    ops.copy_to_host = tenon::slot<copy_to_host>;
    ops.copy = tenon::slot<copy_bytes>;
    ops.fill = tenon::slot<fill_bytes>;
    ops.info = tenon::slot<info>;
    return ops;
}();

} // namespace npu
