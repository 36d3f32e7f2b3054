/* The slots of the plainest device there is, for the plugins of tests and benchmarks: one device, in
 * host memory, whose handles are addresses, and which has done everything when a call returns. A
 * plugin takes what it needs from here and writes what it is for.
 *
 * plain_host is the host; plain_init keeps it. Each plugin that includes this has its own. */
#ifndef TNI_TESTS_SUPPORT_HOST_MEMORY_DEVICE_H
#define TNI_TESTS_SUPPORT_HOST_MEMORY_DEVICE_H

#include <string.h>
#include <tenon/plugin.h>

static const tn_host *plain_host;
static int plain_starts;  /* self points to it */
static char plain_device; /* the device's handle does */

/* ---- memory ------------------------------------------------------------------------------ */

static inline char *plain_at(tn_memory memory, uint64_t offset) {
    return (char *)(uintptr_t)memory + offset;
}

static inline tn_status plain_alloc(tn_device_impl *device, tn_allocation *a) {
    if ((a->space != TN_SPACE_DEVICE && a->space != TN_SPACE_PINNED) || a->flags)
        return plain_host->fail(plain_host, TN_ERR_UNSUPPORTED, "no such memory");
    void *p = plain_host->alloc(plain_host, a->bytes, a->alignment > 64 ? a->alignment : 64);
    if (!p)
        return plain_host->fail(plain_host, TN_ERR_OUT_OF_MEMORY, "no host memory");
    a->memory = (tn_memory)(uintptr_t)p;
    a->host = p;
    return TN_OK;
}

static inline void plain_free(tn_device_impl *device, int32_t space, tn_memory memory) {
    plain_host->dealloc(plain_host, plain_at(memory, 0));
}

static inline tn_status plain_write(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                                    uint64_t dst_offset, const void *src, tn_memory src_pinned,
                                    uint64_t bytes) {
    memcpy(plain_at(dst, dst_offset), src, bytes);
    return TN_OK;
}

static inline tn_status plain_read(tn_device_impl *device, tn_stream_impl *stream, void *dst,
                                   tn_memory dst_pinned, tn_memory src, uint64_t src_offset,
                                   uint64_t bytes) {
    memcpy(dst, plain_at(src, src_offset), bytes);
    return TN_OK;
}

static inline tn_status plain_copy(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                                   uint64_t dst_offset, tn_memory src, uint64_t src_offset,
                                   uint64_t bytes) {
    memmove(plain_at(dst, dst_offset), plain_at(src, src_offset), bytes);
    return TN_OK;
}

static inline tn_status plain_fill(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                                   uint64_t dst_offset, uint8_t value, uint64_t bytes) {
    memset(plain_at(dst, dst_offset), value, bytes);
    return TN_OK;
}

static const tn_memory_ops plain_memory = {.struct_size = sizeof plain_memory,
                                           .alloc = plain_alloc,
                                           .dealloc = plain_free,
                                           .copy_from_host = plain_write,
                                           .copy_to_host = plain_read,
                                           .copy = plain_copy,
                                           .fill = plain_fill};

/* ---- the device and the plugin ----------------------------------------------------------- */

static inline tn_status plain_count(tn_instance *self, uint32_t *out_count) {
    *out_count = 1;
    return TN_OK;
}

static inline tn_status plain_open(tn_instance *self, uint32_t index, tn_device_impl **out_device) {
    *out_device = (tn_device_impl *)&plain_device;
    return TN_OK;
}

static inline void plain_close(tn_device_impl *device) {}

static inline tn_status plain_property(tn_instance *self, uint32_t index, int32_t which,
                                       tn_cell *out_value) {
    return TN_ERR_UNSUPPORTED;
}

static inline tn_status plain_init(const tn_host *host, const char *path, tn_instance **out_self) {
    plain_host = host;
    plain_starts++;
    *out_self = (tn_instance *)&plain_starts;
    return TN_OK;
}

static inline void plain_shutdown(tn_instance *self) {}

#endif
