/* A plugin that is linked into a program beside another of its kind: LINKED_NAME says which, LINKED_BYTES how
 * large its device is. */
#include <tenon/plugin.hpp>

struct tn_instance {
    const tn_host *host;
};
struct tn_device_impl {
    tn_instance *self;
    char bytes[LINKED_BYTES];
};
inline const tn_host *host_of(const tn_instance *self) {
    return self->host;
}
inline const tn_host *host_of(const tn_device_impl *device) {
    return device->self->host;
}

namespace LINKED_NAME {

static void init(const tn_host *host, const char *path, tn_instance **out_self) {
    *out_self = tenon::make_host<tn_instance>(host, host).release();
}
static void shutdown(tn_instance *self) {
    tenon::destroy(self->host, self);
}
static void open(tn_instance *self, uint32_t index, tn_device_impl **out_device) {
    *out_device = tenon::make_host<tn_device_impl>(self->host, self).release();
}
static void close(tn_device_impl *device) {
    tenon::destroy(host_of(device), device);
}

static constexpr tn_device_ops device_ops = [] {
    auto ops = tenon::table<tn_device_ops>();
    ops.open = tenon::slot<open>;
    ops.close = tenon::slot<close>;
    return ops;
}();
static constexpr tn_plugin plugin = [] {
    auto p = tenon::table<tn_plugin>();
    p.init = tenon::slot<init>;
    p.shutdown = tenon::slot<shutdown>;
    p.devices = &device_ops;
    return p;
}();

} // namespace LINKED_NAME

const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    return &LINKED_NAME::plugin;
}
