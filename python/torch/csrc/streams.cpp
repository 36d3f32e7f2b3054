/* The guard: devices, streams and events, as PyTorch's generic code and its Python classes Stream and Event use them. */
#include "python/torch/csrc/bridge.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <map>
#include <mutex>

namespace tenon_torch {

namespace {

/* PyTorch names a stream by a number. Those that it made stay until the process ends, as its own pools do. */
struct Streams {
    std::mutex lock;
    std::map<std::pair<c10::DeviceIndex, c10::StreamId>, tn_stream *> by_id;
    struct Pool {
        std::vector<c10::StreamId> ids;
        size_t next = 0;
    };
    std::map<std::pair<c10::DeviceIndex, int>, Pool> pools; /* by priority */
};

Streams &streams() {
    static auto *instance = new Streams;
    return *instance;
}

constexpr size_t pool_size = 32;

c10::Device with_index(c10::Device device) {
    return {device_type, device.has_index() ? device.index() : current_device()};
}

/* Keeps the stream under its number and says it in PyTorch's words. */
c10::Stream note(tn_stream *stream, c10::DeviceIndex index) {
    c10::StreamId id = tn_stream_id(stream);
    Streams &all = streams();
    std::lock_guard<std::mutex> guard(all.lock);
    auto &place = all.by_id[{index, id}];
    if (place == nullptr)
        place = tn_stream_keep(stream);
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(device_type, index), id);
}

c10::Stream create(c10::DeviceIndex index, int priority) {
    tn_stream *stream = check(tn_stream_create(device_at(index), priority));
    c10::Stream result = note(stream, index);
    tn_stream_drop(stream);
    return result;
}

/* New streams until there are as many as PyTorch's own pools have, then those in turn: nobody says when one is
 * no longer used. */
c10::Stream from_pool(c10::DeviceIndex index, int priority) {
    Streams &all = streams();
    {
        std::lock_guard<std::mutex> guard(all.lock);
        Streams::Pool &pool = all.pools[{index, priority}];
        if (pool.ids.size() == pool_size)
            return c10::Stream(c10::Stream::UNSAFE, c10::Device(device_type, index),
                               pool.ids[pool.next++ % pool_size]);
    }
    c10::Stream stream = create(index, priority);
    std::lock_guard<std::mutex> guard(all.lock);
    Streams::Pool &pool = all.pools[{index, priority}];
    if (pool.ids.size() < pool_size)
        pool.ids.push_back(stream.id());
    return stream;
}

bool done(tn_status status) {
    if (status == TN_NOT_READY) {
        tn_error_clear();
        return false;
    }
    check(status);
    return true;
}

tn_event *event_of(void *event) {
    return static_cast<tn_event *>(event);
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
  public:
    c10::DeviceType type() const override {
        return device_type;
    }

    c10::Device exchangeDevice(c10::Device device) const override {
        return {device_type, exchange_device(device.index())};
    }
    c10::Device getDevice() const override {
        return {device_type, current_device()};
    }
    void setDevice(c10::Device device) const override {
        exchange_device(device.index());
    }
    void uncheckedSetDevice(c10::Device device) const noexcept override {
        try {
            exchange_device(device.index());
        } catch (const c10::Error
                     &) { /* it is asked to go back to where it was; if that is gone, it stays */
        }
    }
    c10::DeviceIndex deviceCount() const noexcept override {
        return device_count();
    }

    c10::Stream getStream(c10::Device device) const override {
        c10::DeviceIndex index = with_index(device).index();
        return note(check(tn_current_stream(device_at(index))), index);
    }
    c10::Stream getDefaultStream(c10::Device device) const override {
        return c10::Stream(c10::Stream::DEFAULT, with_index(device));
    }
    c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
        return from_pool(with_index(device).index(), 0);
    }
    c10::Stream getNewStream(c10::Device device, int priority) const override {
        return from_pool(with_index(device).index(), priority);
    }
    c10::Stream exchangeStream(c10::Stream stream) const override {
        c10::Stream before = getStream(stream.device());
        check(tn_set_current_stream(stream_of(stream)));
        return before;
    }
    void *getStreamNativeHandle(const c10::Stream stream) const override {
        return tn_stream_native(stream_of(stream));
    }
    bool queryStream(const c10::Stream &stream) const override {
        return done(tn_stream_query(stream_of(stream)));
    }
    void synchronizeStream(const c10::Stream &stream) const override {
        check(tn_stream_synchronize(stream_of(stream)));
    }
    void synchronizeDevice(const c10::DeviceIndex index) const override {
        check(tn_synchronize(device_at(index)));
    }
    void recordDataPtrOnStream(const c10::DataPtr &data, const c10::Stream &stream) const override {
        allocator()->recordStream(data, stream);
    }

    void record(void **event, const c10::Stream &stream, const c10::DeviceIndex index,
                const c10::EventFlag flag) const override {
        TORCH_CHECK(index == -1 || index == stream.device_index(), "an event of ",
                    device_text(index), " is recorded on a stream of ",
                    device_text(stream.device_index()));
        tn_stream *on = stream_of(stream);
        if (*event == nullptr)
            *event = check(
                tn_event_create(tn_stream_device(on), flag == c10::EventFlag::BACKEND_DEFAULT));
        check(tn_event_record(event_of(*event), on));
    }
    void block(void *event, const c10::Stream &stream) const override {
        if (event != nullptr)
            check(tn_event_wait(event_of(event), stream_of(stream)));
    }
    bool queryEvent(void *event) const override {
        return event == nullptr || done(tn_event_query(event_of(event)));
    }
    void synchronizeEvent(void *event) const override {
        if (event != nullptr)
            check(tn_event_synchronize(event_of(event)));
    }
    void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override {
        tn_event_destroy(event_of(event));
    }
    double elapsedTime(void *start, void *end, const c10::DeviceIndex) const override {
        TORCH_CHECK(start != nullptr && end != nullptr, "both events must have been recorded");
        double ns = 0;
        check(tn_event_elapsed(event_of(start), event_of(end), &ns));
        return ns / 1e6; /* PyTorch counts milliseconds */
    }

    c10::DeviceCapability getDeviceCapability(c10::Device device) const override;
};

c10::DeviceCapability Guard::getDeviceCapability(c10::Device device) const {
    tn_device d = device_at(with_index(device).index());
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = 0;
    for (int i = 0; i < static_cast<int>(c10::ScalarType::NumOptions) && i < 64; i++) {
        auto type = static_cast<c10::ScalarType>(i);
        tn_dtype dtype = TN_DTYPE_NONE;
        try {
            dtype = dtype_of(type);
        } catch (const c10::Error &) {
            continue;
        }
        if (tn_device_has_dtype(d, dtype))
            capability.capability_data.capability_bits |= uint64_t{1} << i;
    }
    return capability;
}

c10::impl::DeviceGuardImplRegistrar registered(device_type, new Guard);

} // namespace

tn_stream *stream_of(const c10::Stream &stream) {
    c10::DeviceIndex index = stream.device_index();
    Streams &all = streams();
    {
        std::lock_guard<std::mutex> guard(all.lock);
        auto found = all.by_id.find({index, stream.id()});
        if (found != all.by_id.end())
            return found->second;
    }
    TORCH_CHECK(stream.id() == 0, "there is no stream ", stream.id(), " on ", device_text(index));
    /* The default stream is the one that a thread has which never set another. */
    tn_stream *now = tn_stream_keep(check(tn_current_stream(device_at(index))));
    TORCH_CHECK(tn_stream_id(now) == 0, "the default stream of ", device_text(index),
                " is not known: another was set before it was seen");
    note(now, index);
    tn_stream_drop(now);
    return stream_of(stream);
}

} // namespace tenon_torch
