/* Device times in PyTorch's profiler, by an event before and behind each operator: torch.autograd.profiler.profile(use_device="tenon",
 * use_kineto=False). With Kineto, as torch.profiler has it, there are none: it wants a profiler of the device's maker. */
#include "python/torch/csrc/bridge.h"

#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

namespace tenon_torch {

namespace {

tn_event *event_of(const torch::profiler::impl::ProfilerVoidEventStub *event) {
    return static_cast<tn_event *>(event->get());
}

struct Methods final : public torch::profiler::impl::ProfilerStubs {
    void record(c10::DeviceIndex *device, torch::profiler::impl::ProfilerVoidEventStub *event,
                int64_t *cpu_ns) const override {
        c10::DeviceIndex index = current_device();
        tn_device on = device_at(index);
        if (device != nullptr)
            *device = index;
        *event = std::shared_ptr<void>(check(tn_event_create(on, true)), [](void *made) {
            tn_event_destroy(static_cast<tn_event *>(made));
        });
        if (cpu_ns != nullptr)
            *cpu_ns = c10::getTime();
        check(tn_event_record(event_of(event), check(tn_current_stream(on))));
    }
    /* Microseconds; 0 where the device they are on changed in between, as an operator that copies between devices may do. */
    float elapsed(const torch::profiler::impl::ProfilerVoidEventStub *start,
                  const torch::profiler::impl::ProfilerVoidEventStub *end) const override {
        double ns = 0;
        check(tn_event_synchronize(event_of(end)));
        if (tn_event_elapsed(event_of(start), event_of(end), &ns) != TN_OK)
            tn_error_clear();
        return static_cast<float>(ns / 1e3);
    }
    /* Ranges of a vendor's own tools, which Tenon does not know. */
    void mark(const char *) const override {}
    void rangePush(const char *) const override {}
    void rangePop() const override {}
    bool enabled() const override {
        return true;
    }
    void onEachDevice(std::function<void(int)> op) const override {
        for (c10::DeviceIndex i = 0; i < device_count(); i++)
            op(i);
    }
    void synchronize() const override {
        for (c10::DeviceIndex i = 0; i < device_count(); i++)
            check(tn_synchronize(device_at(i)));
    }
};

} // namespace

void register_profiler() {
    torch::profiler::impl::registerPrivateUse1Methods(new Methods);
}

} // namespace tenon_torch
