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
#include <tenon/kernels.h>

#include <string.h>

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

struct tn_pself {
    int starts;
};
struct tn_pdevice {
    int unused;
};

static const tn_host *host;
static struct tn_pself the_plugin;
static struct tn_pdevice the_device;

static tn_status memory_alloc(tn_pdevice *device, int32_t space, uint64_t bytes,
                              tn_memory *out_memory, void **out_host) {
    void *p = host->alloc(bytes, 64);
    *out_memory = (tn_memory)(uintptr_t)p;
    *out_host = p;
    return p ? TN_OK : host->fail(TN_OUT_OF_MEMORY, "no host memory");
}
static void memory_free(tn_pdevice *device, int32_t space, tn_memory memory) {
    host->free((void *)(uintptr_t)memory);
}
static tn_status memory_write(tn_pdevice *device, tn_pstream *stream, tn_memory dst,
                              uint64_t dst_offset, const void *src, uint64_t bytes) {
    memcpy((char *)(uintptr_t)dst + dst_offset, src, bytes);
    return TN_OK;
}
static tn_status memory_read(tn_pdevice *device, tn_pstream *stream, void *dst, tn_memory src,
                             uint64_t src_offset, uint64_t bytes) {
    memcpy(dst, (char *)(uintptr_t)src + src_offset, bytes);
    return TN_OK;
}
static tn_status memory_copy(tn_pdevice *device, tn_pstream *stream, tn_memory dst,
                             uint64_t dst_offset, tn_memory src, uint64_t src_offset,
                             uint64_t bytes) {
    memcpy((char *)(uintptr_t)dst + dst_offset, (char *)(uintptr_t)src + src_offset, bytes);
    return TN_OK;
}
static tn_status memory_fill(tn_pdevice *device, tn_pstream *stream, tn_memory dst,
                             uint64_t dst_offset, uint32_t value, uint64_t bytes) {
    memset((char *)(uintptr_t)dst + dst_offset, (int)value, bytes);
    return TN_OK;
}

static tn_status count(tn_pself *self, uint32_t *out_count) {
    ZOO_COUNT
}
static tn_status open_device(tn_pself *self, uint32_t index, tn_pdevice **out_device) {
    *out_device = &the_device;
    return TN_OK;
}
static void close_device(tn_pdevice *device) {}
static tn_status property(tn_pself *self, uint32_t index, int32_t which, tn_cell *out_value) {
    return TN_UNSUPPORTED;
}

static tn_status run(const tn_call *call) {
    return TN_OK;
}

static tn_status init(const tn_host *h, const char *path, tn_pself **out_self) {
    host = h;
    the_plugin.starts++;
    *out_self = &the_plugin;
    ZOO_INIT
}
static void shutdown_plugin(tn_pself *self) {
    host->log(self, TN_LOG_DEBUG, "shut down");
}

static tn_memory_ops memory_ops;
static tn_device_ops device_ops;
static tn_kernel kernels[2];
static const tn_kernel *kernel_list[] = {&kernels[0], &kernels[1]};
static tn_plugin plugin;

/* Written at each query, so that ZOO_BREAK always finds the tables whole. */
const tn_plugin *TN_PLUGIN_QUERY(const tn_host *h) {
    host = h;
    memory_ops = (tn_memory_ops){
        .struct_size = sizeof memory_ops,
        .alloc = memory_alloc,
        .free = memory_free,
        .write = memory_write,
        .read = memory_read,
        .copy = memory_copy,
        .fill = memory_fill,
    };
    device_ops = (tn_device_ops){
        .struct_size = sizeof device_ops,
        .count = count,
        .open = open_device,
        .close = close_device,
        .property = property,
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
        .abi_required = TN_ABI_VERSION,
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
