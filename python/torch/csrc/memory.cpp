#include "python/torch/csrc/bridge.h"

#include <tenon/storage.h>

namespace tenon_torch {

namespace {

void drop_tensor(void *context) {
    tn_drop(static_cast<tn_tensor *>(context));
}

/* Where the address is one of ours, the context is this. */
struct Opaque {
    tn_tensor *tensor;
    void *address;
    size_t bytes;
};

void drop_opaque(void *context) {
    auto *opaque = static_cast<Opaque *>(context);
    tn_drop(opaque->tensor);
    release_address(opaque->address, opaque->bytes);
    delete opaque;
}

class DeviceAllocator final : public c10::DeviceAllocator {
  public:
    c10::DataPtr allocate(size_t bytes) override {
        c10::DeviceIndex index = current_device();
        tn_device device = device_at(index);
        if (bytes == 0)
            return {nullptr, c10::Device(device_type, index)};
        TN_SCOPE;
        int64_t size = static_cast<int64_t>(bytes);
        tn_tensor *t = check(tn_empty(tn_ints_of(&size, 1), TN_U8, device));
        return data_of(tn_keep(t), index);
    }
    c10::DeleterFnPtr raw_deleter() const override {
        return nullptr; /* an address alone does not say whose it is */
    }
    void copy_data(void *, const void *, std::size_t) const override {
        TORCH_CHECK(false, "memory of a device is copied as tensors, not by address");
    }
    bool initialized() override {
        return true;
    }
    void emptyCache(c10::MempoolId_t) override {
        for (c10::DeviceIndex i = 0; i < device_count(); i++)
            check(tn_empty_cache(device_at(i)));
    }
    void recordStream(const c10::DataPtr &data, c10::Stream stream) override;
    c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override;
    void resetAccumulatedStats(c10::DeviceIndex) override {
        TORCH_CHECK_NOT_IMPLEMENTED(false,
                                    "Tenon counts allocations from the start; look at differences");
    }
    void resetPeakStats(c10::DeviceIndex index) override {
        check(tn_memory_reset_peaks(device_at(index)));
    }
};

void DeviceAllocator::recordStream(const c10::DataPtr &data, c10::Stream stream) {
    tn_storage *storage = storage_of(data);
    if (storage == nullptr)
        return;
    TN_SCOPE;
    int64_t size = static_cast<int64_t>(tn_storage_bytes(storage));
    tn_tensor *t = check(tn_from_storage(storage, tn_ints_of(&size, 1), tn_no_ints(), 0, TN_U8));
    check(tn_record_stream(t, stream_of(stream)));
}

void set(c10::CachingAllocator::StatArray &array, uint64_t now, uint64_t peak, uint64_t allocated,
         uint64_t freed) {
    auto &stat = array[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
    stat.current = static_cast<int64_t>(now);
    stat.peak = static_cast<int64_t>(peak);
    stat.allocated = static_cast<int64_t>(allocated);
    stat.freed = static_cast<int64_t>(freed);
}

c10::CachingDeviceAllocator::DeviceStats DeviceAllocator::getDeviceStats(c10::DeviceIndex index) {
    tn_memory_stats stats = {};
    stats.struct_size = sizeof stats;
    check(tn_memory_stats_get(device_at(index), &stats));
    c10::CachingDeviceAllocator::DeviceStats out;
    set(out.allocated_bytes, stats.allocated_bytes, stats.allocated_peak, 0, 0);
    set(out.reserved_bytes, stats.reserved_bytes, stats.reserved_peak, 0, 0);
    set(out.active_bytes, stats.active_bytes, stats.active_peak, 0, 0);
    set(out.requested_bytes, stats.requested_bytes, stats.requested_bytes, 0, 0);
    set(out.allocation, stats.n_allocations - stats.n_frees, 0, stats.n_allocations, stats.n_frees);
    set(out.segment, stats.n_device_allocs - stats.n_device_frees, 0, stats.n_device_allocs,
        stats.n_device_frees);
    out.num_alloc_retries = static_cast<int64_t>(stats.n_retries);
    out.num_ooms = static_cast<int64_t>(stats.n_out_of_memory);
    out.num_device_alloc = static_cast<int64_t>(stats.n_device_allocs);
    out.num_device_free = static_cast<int64_t>(stats.n_device_frees);
    return out;
}

class PinnedAllocator final : public c10::Allocator {
  public:
    c10::DataPtr allocate(size_t bytes) override {
        if (bytes == 0)
            return {nullptr, c10::Device(c10::DeviceType::CPU)};
        void *p = check(tn_pinned_alloc(device_at(-1), bytes));
        return {p, p, tn_pinned_free, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override {
        return tn_pinned_free;
    }
    void copy_data(void *to, const void *from, std::size_t bytes) const override {
        default_copy_data(to, from, bytes);
    }
};

/* Is the device's memory host memory? Asked of a storage, once for each device. */
bool has_addresses(tn_storage *storage, c10::DeviceIndex index) {
    static std::atomic<int8_t> known[128]; /* 0: not asked yet */
    auto &answer = known[static_cast<size_t>(index)];
    if (answer == 0) {
        answer = tn_storage_address(storage) != nullptr ? 1 : -1;
        if (answer < 0)
            tn_error_clear();
    }
    return answer > 0;
}

} // namespace

c10::DeviceAllocator *allocator() {
    static auto *instance = new DeviceAllocator;
    return instance;
}

c10::Allocator *pinned_allocator() {
    static auto *instance = new PinnedAllocator;
    return instance;
}

c10::DataPtr data_of(tn_tensor *owned, c10::DeviceIndex index) {
    Reference reference(owned, tn_drop);
    c10::Device device(device_type, index);
    tn_storage *storage = tn_storage_of(owned);
    size_t bytes = tn_storage_bytes(storage);
    if (bytes == 0)
        return {nullptr, device};
    if (has_addresses(storage, index))
        return {tn_storage_address(storage), reference.release(), drop_tensor, device};
    auto *opaque = new Opaque{owned, reserve_address(bytes), bytes};
    reference.release();
    return {opaque->address, opaque, drop_opaque, device};
}

tn_tensor *tensor_of(const c10::DataPtr &data) {
    if (data.get_context() == nullptr)
        return nullptr;
    if (data.get_deleter() == drop_tensor)
        return static_cast<tn_tensor *>(data.get_context());
    TORCH_CHECK(data.get_deleter() == drop_opaque,
                "this memory is not Tenon's, although its tensor says so");
    return static_cast<Opaque *>(data.get_context())->tensor;
}

tn_storage *storage_of(const c10::DataPtr &data) {
    tn_tensor *t = tensor_of(data);
    return t != nullptr ? tn_storage_of(t) : nullptr;
}

void resize_storage(c10::StorageImpl &storage, size_t bytes) {
    c10::DeviceIndex before = exchange_device(storage.device().index());
    c10::DataPtr larger;
    try {
        larger = allocator()->allocate(bytes);
    } catch (...) {
        exchange_device(before);
        throw;
    }
    exchange_device(before);
    int64_t both = static_cast<int64_t>(std::min(bytes, storage.nbytes()));
    if (both > 0) {
        TN_SCOPE;
        tn_tensor *to = check(
            tn_from_storage(storage_of(larger), tn_ints_of(&both, 1), tn_no_ints(), 0, TN_U8));
        tn_tensor *from = check(tn_from_storage(storage_of(storage.data_ptr()),
                                                tn_ints_of(&both, 1), tn_no_ints(), 0, TN_U8));
        check(tn_copy_(to, from, false));
    }
    storage.set_data_ptr_noswap(std::move(larger));
    storage.set_nbytes(bytes);
}

} // namespace tenon_torch
