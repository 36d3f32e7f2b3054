/* What PyTorch is told when the bridge is loaded, and what its Python half asks. */
#include "python/torch/csrc/hand.h"

#include <ATen/autocast_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <tenon/fallback.h>
#include <tenon/plugins.h>
#include <torch/csrc/Generator.h>

namespace tenon_torch {

namespace {

struct Hooks final : public at::PrivateUse1HooksInterface {
    bool isBuilt() const override {
        return true;
    }
    bool isAvailable() const override {
        return device_count() > 0;
    }
    bool hasPrimaryContext(c10::DeviceIndex index) const override {
        return index < device_count(); /* all are open */
    }
    void init() const override {
        device_at(0);
    }
    c10::DeviceIndex deviceCount() const override {
        return device_count();
    }
    void setCurrentDevice(c10::DeviceIndex index) const override {
        exchange_device(index);
    }
    c10::DeviceIndex getCurrentDevice() const override {
        return current_device();
    }
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
        return exchange_device(index);
    }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
        return exchange_device(index);
    }
    const at::Generator &getDefaultGenerator(c10::DeviceIndex index) const override {
        return default_generator(index);
    }
    at::Generator getNewGenerator(c10::DeviceIndex index) const override {
        return new_generator(index);
    }
    bool isPinnedPtr(const void *data) const override {
        return tn_pinned_owner(data).type != 0;
    }
    c10::Allocator *getPinnedMemoryAllocator() const override {
        return pinned_allocator();
    }
    at::Device getDeviceFromPtr(void *) const override {
        TORCH_CHECK_NOT_IMPLEMENTED(false,
                                    "an address does not say on which device of Tenon it is");
    }
    void resizePrivateUse1Bytes(const c10::Storage &storage, size_t bytes) const override {
        resize_storage(*storage.unsafeGetStorageImpl(), bytes);
    }
};

void register_all() {
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    c10::SetAllocator(device_type, allocator());
    register_profiler();
    static auto *library =
        new torch::Library(torch::Library::IMPL, "aten", backend_key, __FILE__, __LINE__);
    Hand hand(*library);
    add_factories(hand);
    add_copies(hand);
    add_random(hand);
    add_networks(hand);
    add_scaling(hand);
    register_operators(hand.names);
}

std::vector<std::tuple<std::string, std::string, std::string>> report() {
    std::vector<std::tuple<std::string, std::string, std::string>> lines;
    for (const Outcome &outcome : outcomes())
        lines.emplace_back(outcome.name, outcome.how, outcome.tenon);
    return lines;
}

/* The device type of the plugin in that file, as a device's name has it. */
std::string load_plugin(const std::string &path) {
    check(tn_plugin_load(path.c_str()));
    std::pair<std::string, std::string> found{path, ""};
    tn_plugin_list(
        false,
        [](const tn_plugin_info *info, void *user) {
            auto *wanted = static_cast<std::pair<std::string, std::string> *>(user);
            if (wanted->first == info->path)
                wanted->second = info->device_type;
        },
        &found);
    TORCH_CHECK(!found.second.empty(), path, ": it was loaded, and is not among the plugins");
    return found.second;
}

pybind11::object generator_object(int index) {
    return pybind11::reinterpret_steal<pybind11::object>(
        THPGenerator_initDefaultGenerator(default_generator(static_cast<c10::DeviceIndex>(index))));
}

} // namespace

} // namespace tenon_torch

/* PyTorch's lists of what autocast casts, by its own kernels. */
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
    m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
    using namespace at::autocast;
    using namespace at;
#define TENON_LOW(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define TENON_F32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define TENON_SET(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define TENON_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
    AT_FORALL_LOWER_PRECISION_FP(TENON_LOW)
    AT_FORALL_FP32(TENON_F32)
    AT_FORALL_FP32_SET_OPT_DTYPE(TENON_SET)
    AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
    AT_FORALL_PROMOTE(TENON_PROMOTE)
}

PYBIND11_MODULE(_C, m) {
    using namespace tenon_torch;
    m.def("register_all", register_all);
    m.def("devices", device_names);
    m.def("device_count", [] { return static_cast<int>(device_count()); });
    m.def("current_device", [] { return static_cast<int>(current_device()); });
    m.def("exchange_device", [](int index) {
        return static_cast<int>(exchange_device(static_cast<c10::DeviceIndex>(index)));
    });
    m.def("product", [](int index) {
        return std::string(tn_device_product(device_at(static_cast<c10::DeviceIndex>(index))));
    });
    m.def("default_generator", generator_object);
    m.def("load_plugin", load_plugin);
    m.def("report", report);
    m.def("fallback_count", tn_fallback_count);
    bind_graphs(m);
    m.def("version", [] { return std::string(tn_version()); });
}
