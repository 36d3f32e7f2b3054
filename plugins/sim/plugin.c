/* Who the plugin is: the one exported function, start and end, and the table of tables. */
#include "plugins/sim/sim.h"
#include "plugins/sim/kernels/kernel.h"

#include <tenon/ext/capture.h>

#include <string.h>

static tn_status init(const tn_host *host, const char *path, tn_instance **out_self) {
    *out_self = NULL;
    tn_instance *self = host->alloc(host, sizeof *self, _Alignof(tn_instance));
    if (!self)
        return host->fail(host, TN_ERR_OUT_OF_MEMORY, "no host memory to start the simulated chip");
    *self = (tn_instance){.host = host};
    tn_status status = sim_options_read(host, &self->options);
    if (status != TN_OK) {
        host->dealloc(host, self);
        return status;
    }
    sim_schedule_init(&self->schedule);
    *out_self = self;
    return TN_OK;
}

static void shutdown(tn_instance *self) {
    sim_schedule_finish(&self->schedule);
    self->host->dealloc(self->host, self);
}

static const void *extension(tn_instance *self, const char *id) {
    return strcmp(id, TN_EXT_CAPTURE) == 0 ? &sim_ext_capture : NULL;
}

static const tn_kernel *const kernels[] = {
#define KERNEL(name) &sim_kernel_##name.record,
    SIM_KERNELS(KERNEL)
#undef KERNEL
};

static const tn_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_version = TN_ABI_VERSION,
    .abi_required = TN_ABI_TARGET,
    .flags = TN_PLUGIN_UNLOADABLE,
    .id = "org.tenon.sim",
    .device_type = "sim",
    .name = "Tenon's simulated chip",
    .version = SIM_VERSION,
    .init = init,
    .shutdown = shutdown,
    .devices = &sim_device_ops,
    .kernels = kernels,
    .n_kernels = sizeof kernels / sizeof kernels[0],
    .extension = extension,
};

const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    /* `option` is the last slot we call; a host that lacks it is older than we can work with. */
    if (!host || !TN_HAS(host, tn_host, option) || host->abi_version < plugin.abi_required)
        return NULL;
    return &plugin;
}
