/* A plugin whose one kernel does nothing: what is left of a call through it is Tenon's. */
#include <tenon/kernels.h>
#include <tenon/plugin.h>

#include <stdlib.h>
#include <string.h>

struct tn_pself {
    const tn_host *host;
};

static tn_pself self;

/* ---- memory, which is the host's --------------------------------------------------------- */

static tn_status alloc(tn_pdevice *device, int32_t space, uint64_t bytes, tn_memory *out_memory,
                       void **out_host) {
    void *p = self.host->alloc(bytes, 64);
    *out_memory = (tn_memory)(uintptr_t)p;
    *out_host = p;
    return p ? TN_OK : self.host->fail(TN_OUT_OF_MEMORY, "no host memory");
}

static void release(tn_pdevice *device, int32_t space, tn_memory memory) {
    self.host->free((void *)(uintptr_t)memory);
}

static char *at(tn_memory memory, uint64_t offset) {
    return (char *)(uintptr_t)memory + offset;
}

static tn_status write(tn_pdevice *device, tn_pstream *stream, tn_memory dst, uint64_t dst_offset,
                       const void *src, uint64_t bytes) {
    memcpy(at(dst, dst_offset), src, bytes);
    return TN_OK;
}

static tn_status read(tn_pdevice *device, tn_pstream *stream, void *dst, tn_memory src,
                      uint64_t src_offset, uint64_t bytes) {
    memcpy(dst, at(src, src_offset), bytes);
    return TN_OK;
}

static tn_status copy(tn_pdevice *device, tn_pstream *stream, tn_memory dst, uint64_t dst_offset,
                      tn_memory src, uint64_t src_offset, uint64_t bytes) {
    memcpy(at(dst, dst_offset), at(src, src_offset), bytes);
    return TN_OK;
}

static tn_status fill(tn_pdevice *device, tn_pstream *stream, tn_memory dst, uint64_t dst_offset,
                      uint32_t value, uint64_t bytes) {
    memset(at(dst, dst_offset), (int)value, bytes);
    return TN_OK;
}

static const tn_memory_ops memory_ops = {.struct_size = sizeof memory_ops,
                                         .alloc = alloc,
                                         .free = release,
                                         .write = write,
                                         .read = read,
                                         .copy = copy,
                                         .fill = fill};

/* ---- the device -------------------------------------------------------------------------- */

static tn_status count(tn_pself *s, uint32_t *out_count) {
    *out_count = 1;
    return TN_OK;
}

static tn_status open_device(tn_pself *s, uint32_t index, tn_pdevice **out_device) {
    *out_device = (tn_pdevice *)s;
    return TN_OK;
}

static void close_device(tn_pdevice *device) {}

static tn_status property(tn_pself *s, uint32_t index, int32_t which, tn_cell *out_value) {
    return TN_UNSUPPORTED;
}

static const tn_device_ops device_ops = {.struct_size = sizeof device_ops,
                                         .count = count,
                                         .open = open_device,
                                         .close = close_device,
                                         .property = property,
                                         .memory = &memory_ops};

/* ---- the plugin -------------------------------------------------------------------------- */

static tn_status nothing(const tn_call *call) {
    return TN_OK;
}

static const tn_kernel add = {.struct_size = sizeof add,
                              .op = "add",
                              .schema_hash = TN_KERNEL_HASH_add,
                              .dtypes = {TN_DTYPE_BIT(TN_F32)},
                              .run = nothing};
static const tn_kernel *const kernels[] = {&add};

static tn_status init(const tn_host *host, const char *path, tn_pself **out_self) {
    self.host = host;
    *out_self = &self;
    return TN_OK;
}

static void shutdown(tn_pself *s) {}

static const tn_plugin plugin = {.struct_size = sizeof plugin,
                                 .abi_version = TN_ABI_VERSION,
                                 .abi_required = TN_ABI_VERSION,
                                 .id = "org.tenon.bench",
                                 .device_type = "bench",
                                 .name = "A device that does nothing",
                                 .version = "0.9.0",
                                 .init = init,
                                 .shutdown = shutdown,
                                 .devices = &device_ops,
                                 .kernels = kernels,
                                 .n_kernels = 1};

const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    return host && TN_HAS(host, tn_host, fail) ? &plugin : NULL;
}
