/* A plugin whose one kernel does nothing: what is left of a call through it is Tenon's. */
#include "tests/support/host_memory_device.h"

#include <tenon/kernels.h>

static const tn_device_ops device_ops = {.struct_size = sizeof device_ops,
                                         .count = plain_count,
                                         .open = plain_open,
                                         .close = plain_close,
                                         .property = plain_property,
                                         .memory = &plain_memory};

static tn_status nothing(const tn_call *call) {
    return TN_OK;
}

static const tn_kernel add = {.struct_size = sizeof add,
                              .op = "add",
                              .schema_hash = TN_KERNEL_HASH_add,
                              .dtypes = {TN_DTYPE_BIT(TN_F32)},
                              .run = nothing};
static const tn_kernel *const kernels[] = {&add};

static const tn_plugin plugin = {.struct_size = sizeof plugin,
                                 .abi_version = TN_ABI_VERSION,
                                 .abi_required = TN_ABI_TARGET,
                                 .id = "org.tenon.bench",
                                 .device_type = "bench",
                                 .name = "A device that does nothing",
                                 .version = "0.9.0",
                                 .init = plain_init,
                                 .shutdown = plain_shutdown,
                                 .devices = &device_ops,
                                 .kernels = kernels,
                                 .n_kernels = 1};

const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    return host && TN_HAS(host, tn_host, fail) ? &plugin : NULL;
}
