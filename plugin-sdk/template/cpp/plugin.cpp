/* plugin.cpp: who the plugin is. The one exported function, start and end, and the table of tables.
 */
#include "internal.h"
#include "kernels.h"

#include <iterator>

namespace yourtype {

void not_yet(const tn_host *host, const char *slot, const char *what_to_do,
             const char *requirement) {
    tenon::error error(TN_ERR_UNSUPPORTED, "%s is not written yet: %s (%s)", slot, what_to_do,
                       requirement);
    host->log_message(host, TN_LOG_INFO, error.what());
    throw error;
}

/* Touches no hardware: the first call that may is `count` of device.cpp. */
static void init(const tn_host *host, const char *path, tn_instance **out_self) {
    *out_self = nullptr;
    *out_self = tenon::make_host<tn_instance>(host, host).release();
}

static void shutdown(tn_instance *self) {
    tenon::destroy(self->host, self);
}

static constexpr const tn_kernel *kernels[] = {
#define KERNEL(name) &kernel_##name,
    YOURTYPE_KERNELS(KERNEL)
#undef KERNEL
};

static constexpr tn_plugin plugin = [] {
    auto p = tenon::table<tn_plugin>();
    p.id = "com.yourvendor.yourtype";
    p.device_type = "yourtype";
    p.name = "yourvendor yourtype";
    p.version = PLUGIN_VERSION;
    p.init = tenon::slot<init>;
    p.shutdown = tenon::slot<shutdown>;
    p.devices = &device_ops;
    p.kernels = kernels;
    p.n_kernels = std::size(kernels);
    return p;
}();

} // namespace yourtype

const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    /* `option` is the last slot we need; a host that lacks it is older than we can work with. */
    if (!host || !TN_HAS(host, tn_host, option) ||
        host->abi_version < yourtype::plugin.abi_required)
        return nullptr;
    return &yourtype::plugin;
}
