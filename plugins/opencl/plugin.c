/* Who the plugin is: the one exported function, start and end, and the table of tables. */
#include "plugins/opencl/capture.h"
#include "plugins/shared/gpu/gpu.h"

#include <string.h>
#include <tenon/ext/native.h>

static tn_status init(const tn_host *host, const char *path, tn_instance **out_self) {
    (void)path;
    *out_self = NULL;
    tn_instance *self = host->alloc(host, sizeof *self, _Alignof(tn_instance));
    if (!self)
        return host->fail(host, TN_ERR_OUT_OF_MEMORY, "no host memory to start the OpenCL plugin");
    *self = (tn_instance){.host = host};
    gpu_cache_init(&self->cache, host, "opencl");
    pthread_mutex_init(&self->lock, NULL);
    *out_self = self;
    return TN_OK;
}

static void shutdown(tn_instance *self) {
    pthread_mutex_destroy(&self->lock);
    self->host->dealloc(self->host, self);
}

/* ---- what OpenCL calls them -------------------------------------------------------------- */

static void *native_context(tn_device_impl *device) {
    return device->context;
}

static void *native_stream(tn_stream_impl *stream) {
    atomic_store(&stream->is_lent, true);
    return stream->queue;
}

/* A handle is the address of the cl_mem. */
static uint64_t native_memory(tn_device_impl *device, tn_memory memory) {
    (void)device;
    return memory;
}

static const tn_ext_native native = {
    .struct_size = sizeof native,
    .api = "opencl",
    .context = native_context,
    .stream = native_stream,
    .memory = native_memory,
};

static const void *extension(tn_instance *self, const char *id) {
    (void)self;
    return strcmp(id, TN_EXT_NATIVE) == 0    ? (const void *)&native
           : strcmp(id, TN_EXT_CAPTURE) == 0 ? &ocl_capture
                                             : NULL;
}

/* ---- the table --------------------------------------------------------------------------- */

static tn_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_version = TN_ABI_VERSION,
    .abi_required = TN_ABI_TARGET,
    .id = "org.tenon.opencl",
    .device_type = "opencl",
    .name = "OpenCL 1.2",
    .version = TENON_VERSION,
    .init = init,
    .shutdown = shutdown,
    .devices = &ocl_device_ops,
    .extension = extension,
};

static void list_kernels(void) {
    plugin.kernels = gpu_records(&plugin.n_kernels);
}

const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    /* `option` is the last slot we call; a host that lacks it is older than we can work with. */
    if (!host || !TN_HAS(host, tn_host, option) || host->abi_version < plugin.abi_required)
        return NULL;
    pthread_once(&once, list_kernels);
    return &plugin;
}
