/* plugin.c: who the plugin is. The one exported function, start and end, and the table of tables.
 */
#include "internal.h"
#include "kernels.h"

#include <stdarg.h>
#include <stdio.h>

tn_status yourtype_fail(const tn_instance *self, tn_status status, const char *format, ...) {
    char message[320];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    return self->host->fail(self->host, status, message);
}

tn_status yourtype_not_yet(tn_instance *self, const char *slot, const char *what_to_do,
                           const char *requirement) {
    char message[320];
    snprintf(message, sizeof message, "%s is not written yet: %s (%s)", slot, what_to_do,
             requirement);
    self->host->log_message(self->host, TN_LOG_INFO, message);
    return self->host->fail(self->host, TN_ERR_UNSUPPORTED, message);
}

/* Touches no hardware: the first call that may is `count` of device.c. */
static tn_status init(const tn_host *host, const char *path, tn_instance **out_self) {
    *out_self = NULL;
    tn_instance *self = host->alloc(host, sizeof *self, _Alignof(tn_instance));
    if (!self)
        return host->fail(host, TN_ERR_OUT_OF_MEMORY, "no host memory to start the plugin");
    *self = (tn_instance){.host = host};
    *out_self = self;
    return TN_OK;
}

static void shutdown(tn_instance *self) {
    self->host->dealloc(self->host, self);
}

static const tn_kernel *const kernels[] = {
#define KERNEL(name) &yourtype_kernel_##name,
    YOURTYPE_KERNELS(KERNEL)
#undef KERNEL
};

static const tn_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_version = TN_ABI_VERSION,
    .abi_required = TN_ABI_TARGET,
    .id = "com.yourvendor.yourtype",
    .device_type = "yourtype",
    .name = "yourvendor yourtype",
    .version = PLUGIN_VERSION,
    .init = init,
    .shutdown = shutdown,
    .devices = &yourtype_device_ops,
    .kernels = kernels,
    .n_kernels = sizeof kernels / sizeof kernels[0],
};

const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    /* `option` is the last slot we need; a host that lacks it is older than we can work with. */
    if (!host || !TN_HAS(host, tn_host, option) || host->abi_version < plugin.abi_required)
        return NULL;
    return &plugin;
}
