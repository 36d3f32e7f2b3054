/* A whole plugin: one synchronous device in host memory, one kernel that does nothing.
 *
 * The animals of the zoo include this file and change one thing each: ZOO_BREAK is run in the query
 * function, when all tables are filled in; ZOO_INIT and ZOO_COUNT are the bodies of those
 * functions. ZOO_ANIMAL is the file's name, given by the build. */
#ifdef ZOO_PLUGIN_HEADER
#include ZOO_PLUGIN_HEADER
#else
#include <tenon/plugin.h>
#endif
#include "tests/support/host_memory_device.h"

#include <tenon/kernels.h>

#ifndef ZOO_ID
#define ZOO_ID "org.tenon.zoo." ZOO_ANIMAL
#endif
#ifndef ZOO_TYPE
#define ZOO_TYPE "zoo"
#endif
#ifndef ZOO_INIT
#define ZOO_INIT return TN_OK;
#endif
#ifndef ZOO_COUNT
#define ZOO_COUNT \
    *out_count = 1; \
    return TN_OK;
#endif
#ifndef ZOO_BREAK
#define ZOO_BREAK
#endif

static tn_status count(tn_instance *self, uint32_t *out_count) {
    ZOO_COUNT
}
static tn_status run(const tn_call *call) {
    return TN_OK;
}

static tn_status init(const tn_host *host, const char *path, tn_instance **out_self) {
    plain_init(host, path, out_self);
    ZOO_INIT
}
static void shutdown_plugin(tn_instance *self) {
    plain_host->log_message(plain_host, TN_LOG_DEBUG, "shut down");
}

static tn_memory_ops memory_ops;
static tn_device_ops device_ops;
static tn_kernel kernels[2];
static const tn_kernel *kernel_list[] = {&kernels[0], &kernels[1]};
static tn_plugin plugin;

/* Written at each query, so that ZOO_BREAK always finds the tables whole. */
const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    plain_host = host;
    memory_ops = plain_memory;
    device_ops = (tn_device_ops){
        .struct_size = sizeof device_ops,
        .count = count,
        .open = plain_open,
        .close = plain_close,
        .property = plain_property,
        .memory = &memory_ops,
    };
    kernels[0] = (tn_kernel){
        .struct_size = sizeof kernels[0],
        .op = TN_KERNEL_add,
        .schema_hash = TN_KERNEL_HASH_add,
        .dtypes = {TN_DTYPE_BIT(TN_F32)},
        .run = run,
    };
    kernels[1] = kernels[0];
    kernels[1].dtypes[0] = TN_DTYPE_BIT(TN_I32) | TN_DTYPE_BIT(TN_I64);
    plugin = (tn_plugin){
        .struct_size = sizeof plugin,
        .abi_version = TN_ABI_VERSION,
        .abi_required = TN_ABI_TARGET,
        .id = ZOO_ID,
        .device_type = ZOO_TYPE,
        .name = "an animal of the zoo",
        .version = "1.0",
        .init = init,
        .shutdown = shutdown_plugin,
        .devices = &device_ops,
        .kernels = kernel_list,
        .n_kernels = 2,
    };
    ZOO_BREAK
    return &plugin;
}
