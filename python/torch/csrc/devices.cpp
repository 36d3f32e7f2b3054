#include "python/torch/csrc/bridge.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <tenon/plugins.h>

namespace tenon_torch {

namespace {

constexpr size_t most = 127; /* what PyTorch's index has room for */

/* Written under the lock; read without, up to `n`. */
struct Devices {
    std::mutex lock;
    std::atomic<bool> opened{false};
    std::atomic<size_t> n{0};
    tn_device list[most];
    std::string problem; /* why there are none */
};

/* Never destroyed: PyTorch's own threads may ask until the process ends. */
Devices &devices() {
    static auto *instance = new Devices;
    return *instance;
}

thread_local c10::DeviceIndex current = 0;

std::string name_of(tn_device device) {
    char name[128];
    return tn_device_name(device, name, sizeof name);
}

int find(const Devices &all, tn_device device) {
    size_t n = all.n.load(std::memory_order_acquire);
    for (size_t i = 0; i < n; i++)
        if (tn_device_equal(all.list[i], device))
            return static_cast<int>(i);
    return -1;
}

/* The lock is held. */
void add(Devices &all, tn_device device) {
    if (find(all, device) >= 0)
        return;
    size_t n = all.n;
    TORCH_CHECK(n < most, "PyTorch has room for ", most, " devices");
    all.list[n] = device;
    all.n.store(n + 1, std::memory_order_release);
}

void open_listed(Devices &all, const char *names) {
    std::istringstream stream(names);
    for (std::string name; std::getline(stream, name, ',');) {
        tn_device device = tn_device_parse(name.c_str());
        if (device.type == 0)
            throw_error();
        add(all, device);
    }
}

void note_type(const tn_plugin_info *info, void *types) {
    if (std::string(info->state) == "ready")
        static_cast<std::vector<std::string> *>(types)->push_back(info->device_type);
}

/* A plugin that does not work is left out here; `tenon plugins` says why. The default device has to work. */
void open_all(Devices &all) {
    tn_device first = tn_default_device();
    if (first.type == 0)
        throw_error();
    add(all, first);
    std::vector<std::string> types;
    tn_plugin_list(true, note_type, &types);
    for (const std::string &type : types) {
        uint32_t n = tn_device_count(type.c_str());
        for (uint32_t i = 0; i < n; i++) {
            tn_device device = tn_device_parse((type + ":" + std::to_string(i)).c_str());
            if (device.type != 0)
                add(all, device);
        }
    }
    tn_error_clear();
}

void open(Devices &all) {
    if (all.opened.load(std::memory_order_acquire))
        return;
    std::lock_guard<std::mutex> guard(all.lock);
    if (all.opened)
        return;
    try {
        const char *names = std::getenv("TENON_TORCH_DEVICES");
        if (names != nullptr && *names != 0)
            open_listed(all, names);
        else
            open_all(all);
    } catch (const c10::Error &e) {
        all.n = 0;
        all.problem = e.what_without_backtrace();
    }
    all.opened.store(true, std::memory_order_release);
}

} // namespace

c10::DeviceIndex device_count() noexcept {
    Devices &all = devices();
    open(all);
    return static_cast<c10::DeviceIndex>(all.n.load());
}

tn_device device_at(c10::DeviceIndex index) {
    if (index < 0)
        index = current;
    Devices &all = devices();
    open(all);
    size_t n = all.n.load(std::memory_order_acquire);
    TORCH_CHECK(n > 0, all.problem);
    TORCH_CHECK(
        static_cast<size_t>(index) < n, "device index ", static_cast<int>(index), " of ", n,
        " that Tenon has; tenon_torch.devices() lists them, TENON_TORCH_DEVICES chooses them");
    return all.list[index];
}

c10::DeviceIndex index_of(tn_device device) {
    Devices &all = devices();
    open(all);
    int found = find(all, device);
    if (found < 0) {
        std::lock_guard<std::mutex> guard(all.lock);
        add(all, device);
        found = find(all, device);
    }
    return static_cast<c10::DeviceIndex>(found);
}

std::vector<std::string> device_names() {
    std::vector<std::string> names;
    c10::DeviceIndex n = device_count();
    if (n == 0)
        device_at(0); /* says why */
    for (c10::DeviceIndex i = 0; i < n; i++)
        names.push_back(name_of(device_at(i)));
    return names;
}

std::string device_text(c10::DeviceIndex index) {
    return c10::Device(device_type, index).str() + " (" + name_of(device_at(index)) + ")";
}

c10::DeviceIndex current_device() noexcept {
    return current;
}

c10::DeviceIndex exchange_device(c10::DeviceIndex index) {
    c10::DeviceIndex before = current;
    if (index >= 0 && index != before) {
        device_at(index);
        current = index;
    }
    return before;
}

} // namespace tenon_torch
