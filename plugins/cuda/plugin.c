/* Who the plugin is: the one exported function, start and end, and the table of tables. */
#include "plugins/cuda/capture.h"
#include "plugins/cuda/libraries.h"

#include <string.h>
#include <tenon/ext/native.h>

/* Those that are read later are asked for now, so that the host knows that they are ours. */
static void name_options(const tn_host *host) {
    static const char *const names[] = {"driver", "nvrtc", "cublaslt", "cudnn", "tf32"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        host->option(host, names[i]);
}

static tn_status init(const tn_host *host, const char *path, tn_instance **out_self) {
    (void)path;
    *out_self = NULL;
    tn_instance *self = host->alloc(host, sizeof *self, _Alignof(tn_instance));
    if (!self)
        return host->fail(host, TN_ERR_OUT_OF_MEMORY, "no host memory to start the CUDA plugin");
    *self = (tn_instance){.host = host};
    gpu_cache_init(&self->cache, host, "cuda");
    name_options(host);
    pthread_mutex_init(&self->lock, NULL);
    pthread_mutex_init(&self->nvrtc_lock, NULL);
    *out_self = self;
    return TN_OK;
}

static void shutdown(tn_instance *self) {
    cuda_library_close(self->nvrtc.library);
    cuda_library_close(self->driver.library);
    pthread_mutex_destroy(&self->nvrtc_lock);
    pthread_mutex_destroy(&self->lock);
    self->host->dealloc(self->host, self);
}

/* ---- what CUDA calls them ---------------------------------------------------------------- */

static void *native_context(tn_device_impl *device) {
    return device->context;
}

static void *native_stream(tn_stream_impl *stream) {
    return stream->stream;
}

/* A handle is an address. */
static uint64_t native_memory(tn_device_impl *device, tn_memory memory) {
    (void)device;
    return memory;
}

static const tn_ext_native native = {
    .struct_size = sizeof native,
    .api = "cuda",
    .context = native_context,
    .stream = native_stream,
    .memory = native_memory,
};

static const void *extension(tn_instance *self, const char *id) {
    (void)self;
    if (strcmp(id, TN_EXT_NATIVE) == 0)
        return &native;
    return strcmp(id, TN_EXT_CAPTURE) == 0 ? &cuda_capture : NULL;
}

/* ---- the table --------------------------------------------------------------------------- */

static tn_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_version = TN_ABI_VERSION,
    .abi_required = TN_ABI_TARGET,
    .id = "org.tenon.cuda",
    .device_type = "cuda",
    .name = "CUDA",
    .version = TENON_VERSION,
    .init = init,
    .shutdown = shutdown,
    .devices = &cuda_device_ops,
    .extension = extension,
};

static void list_kernels(void) {
    plugin.kernels = cuda_records(&plugin.n_kernels);
}

const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    /* `option` is the last slot we call; a host that lacks it is older than we can work with. */
    if (!host || !TN_HAS(host, tn_host, option) || host->abi_version < plugin.abi_required)
        return NULL;
    pthread_once(&once, list_kernels);
    return &plugin;
}
