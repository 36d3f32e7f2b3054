/* The least a device plugin can be: one device, host memory, no streams, no kernels. Built
 * outside the tree, against the installed header alone, so it shares nothing with the plugins of
 * other tests. */
#include <stdlib.h>
#include <string.h>
#include <tenon/plugin.h>

struct tn_instance {
    const tn_host *host;
};
struct tn_device_impl {
    const tn_host *host;
};

static tn_instance self;
static tn_device_impl device;

static void *address(tn_memory memory, uint64_t offset) {
    return (char *)(uintptr_t)memory + offset;
}

static tn_status memory_alloc(tn_device_impl *d, tn_allocation *a) {
    if (a->space != TN_SPACE_DEVICE || a->flags)
        return d->host->fail(d->host, TN_ERR_UNSUPPORTED, "a toy has plain memory alone");
    void *p = d->host->alloc(d->host, a->bytes, a->alignment > 64 ? a->alignment : 64);
    if (!p)
        return d->host->fail(d->host, TN_ERR_OUT_OF_MEMORY, "the host has no more memory");
    a->memory = (uintptr_t)p;
    a->host = p;
    return TN_OK;
}

static void memory_free(tn_device_impl *d, int32_t space, tn_memory memory) {
    d->host->dealloc(d->host, address(memory, 0));
}

static tn_status memory_write(tn_device_impl *d, tn_stream_impl *stream, tn_memory dst,
                              uint64_t dst_offset, const void *src, tn_memory src_pinned,
                              uint64_t bytes) {
    memcpy(address(dst, dst_offset), src, bytes);
    return TN_OK;
}

static tn_status memory_read(tn_device_impl *d, tn_stream_impl *stream, void *dst,
                             tn_memory dst_pinned, tn_memory src, uint64_t src_offset,
                             uint64_t bytes) {
    memcpy(dst, address(src, src_offset), bytes);
    return TN_OK;
}

static tn_status memory_copy(tn_device_impl *d, tn_stream_impl *stream, tn_memory dst,
                             uint64_t dst_offset, tn_memory src, uint64_t src_offset,
                             uint64_t bytes) {
    memcpy(address(dst, dst_offset), address(src, src_offset), bytes);
    return TN_OK;
}

static tn_status memory_fill(tn_device_impl *d, tn_stream_impl *stream, tn_memory dst,
                             uint64_t dst_offset, uint8_t value, uint64_t bytes) {
    memset(address(dst, dst_offset), value, bytes);
    return TN_OK;
}

static tn_status device_count(tn_instance *s, uint32_t *out_count) {
    *out_count = 1;
    return TN_OK;
}

static tn_status device_open(tn_instance *s, uint32_t index, tn_device_impl **out_device) {
    device.host = s->host;
    *out_device = &device;
    return TN_OK;
}

static void device_close(tn_device_impl *d) {}

static tn_status device_property(tn_instance *s, uint32_t index, int32_t property,
                                 tn_cell *out_value) {
    if (property != TN_PROP_NAME)
        return TN_ERR_UNSUPPORTED;
    out_value->tag = TN_CELL_STRING;
    out_value->v.string = "a toy";
    return TN_OK;
}

static tn_status init(const tn_host *host, const char *path, tn_instance **out_self) {
    self.host = host;
    *out_self = &self;
    return TN_OK;
}

static void shutdown(tn_instance *s) {}

static const tn_memory_ops memory_ops = {
    .struct_size = sizeof(memory_ops),
    .alloc = memory_alloc,
    .dealloc = memory_free,
    .copy_from_host = memory_write,
    .copy_to_host = memory_read,
    .copy = memory_copy,
    .fill = memory_fill,
};

static const tn_device_ops device_ops = {
    .struct_size = sizeof(device_ops),
    .count = device_count,
    .open = device_open,
    .close = device_close,
    .property = device_property,
    .memory = &memory_ops,
};

static const tn_plugin plugin = {
    .struct_size = sizeof(plugin),
    .abi_version = TN_ABI_VERSION,
    .abi_required = TN_ABI_TARGET,
    .id = "com.example.toy",
    .device_type = "toy",
    .name = "Toy",
    .version = "1.0",
    .init = init,
    .shutdown = shutdown,
    .devices = &device_ops,
};

const tn_plugin *tenon_plugin_query_v1(const tn_host *host) {
    return &plugin;
}
