/* The device: one, synchronous, whose memory is host memory. The shortest complete tn_device_ops.
 */
#include "plugins/cpu/cpu.h"
#include "plugins/cpu/gemm.h"

#include <string.h>
#include <unistd.h>

enum { ALIGNMENT = 64 };

/* ---- memory: a handle is the address ----------------------------------------------------- */

static void *at(tn_memory memory, uint64_t offset) {
    return (void *)(uintptr_t)(memory + offset);
}

/* Pinned memory is memory like any other. */
static bool is_offered(int32_t space) {
    return space == TN_SPACE_DEVICE || space == TN_SPACE_PINNED;
}

static tn_status memory_alloc(tn_device_impl *device, tn_allocation *a) {
    const tn_host *host = device->self->host;
    if (!is_offered(a->space))
        return tnc_fail(device->self, TN_ERR_UNSUPPORTED, "cpu:0 has no memory space %d", a->space);
    if (a->flags)
        return tnc_fail(device->self, TN_ERR_UNSUPPORTED, "cpu:0 knows no allocation flags %#x",
                        (unsigned)a->flags);
    void *p = host->alloc(host, a->bytes, a->alignment > ALIGNMENT ? a->alignment : ALIGNMENT);
    if (!p)
        return tnc_fail(device->self, TN_ERR_OUT_OF_MEMORY, "no host memory for %llu bytes",
                        (unsigned long long)a->bytes);
    a->memory = (tn_memory)(uintptr_t)p;
    a->host = p;
    return TN_OK;
}

static void memory_free(tn_device_impl *device, int32_t space, tn_memory memory) {
    (void)space;
    device->self->host->dealloc(device->self->host, at(memory, 0));
}

/* One core does not fill the memory's bandwidth. */
enum { COPY_GRAIN = 1 << 17 /* bytes worth a thread: about 10 us */ };

typedef struct copied {
    char *dst;
    const char *src;
} copied;

static void copy_part(void *context, int64_t begin, int64_t end, int slot) {
    const copied *c = context;
    (void)slot;
    memcpy(c->dst + begin, c->src + begin, (size_t)(end - begin));
}

static void copy_bytes(tn_device_impl *device, void *dst, const void *src, uint64_t bytes) {
    tnc_parallel(&(tn_call){.device = device}, (int64_t)bytes, COPY_GRAIN, TNC_MAX_SLOTS, copy_part,
                 &(copied){dst, src});
}

static tn_status memory_write(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                              uint64_t dst_offset, const void *src, tn_memory src_pinned,
                              uint64_t bytes) {
    (void)stream, (void)src_pinned;
    copy_bytes(device, at(dst, dst_offset), src, bytes);
    return TN_OK;
}

static tn_status memory_read(tn_device_impl *device, tn_stream_impl *stream, void *dst,
                             tn_memory dst_pinned, tn_memory src, uint64_t src_offset,
                             uint64_t bytes) {
    (void)stream, (void)dst_pinned;
    copy_bytes(device, dst, at(src, src_offset), bytes);
    return TN_OK;
}

static tn_status memory_copy(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                             uint64_t dst_offset, tn_memory src, uint64_t src_offset,
                             uint64_t bytes) {
    (void)stream;
    copy_bytes(device, at(dst, dst_offset), at(src, src_offset), bytes);
    return TN_OK;
}

static tn_status memory_fill(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                             uint64_t dst_offset, uint8_t value, uint64_t bytes) {
    (void)device, (void)stream;
    memset(at(dst, dst_offset), value, bytes);
    return TN_OK;
}

static tn_status memory_info(tn_device_impl *device, int32_t space, tn_memory_info *out) {
    if (!is_offered(space))
        return tnc_fail(device->self, TN_ERR_UNSUPPORTED, "cpu:0 has no memory space %d", space);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (TN_HAS(out, tn_memory_info, total_bytes))
        out->total_bytes = page * (uint64_t)sysconf(_SC_PHYS_PAGES);
    if (TN_HAS(out, tn_memory_info, free_bytes))
        out->free_bytes = page * (uint64_t)sysconf(_SC_AVPHYS_PAGES);
    return TN_OK;
}

static const tn_memory_ops memory_ops = {
    .struct_size = sizeof memory_ops,
    .alloc = memory_alloc,
    .dealloc = memory_free,
    .copy_from_host = memory_write,
    .copy_to_host = memory_read,
    .copy = memory_copy,
    .fill = memory_fill,
    .info = memory_info,
};

/* ---- the device -------------------------------------------------------------------------- */

static tn_status device_count(tn_instance *self, uint32_t *out_count) {
    (void)self;
    *out_count = 1;
    return TN_OK;
}

static tn_status device_open(tn_instance *self, uint32_t index, tn_device_impl **out_device) {
    *out_device = NULL;
    if (index != 0)
        return tnc_fail(self, TN_ERR_DEVICE, "cpu:%u: there is one CPU device, cpu:0",
                        (unsigned)index);
    tn_device_impl *device = self->host->alloc(self->host, sizeof *device, 16);
    if (!device)
        return tnc_fail(self, TN_ERR_OUT_OF_MEMORY, "no host memory for the device's state");
    device->self = self;
    *out_device = device;
    return TN_OK;
}

static void device_close(tn_device_impl *device) {
    device->self->host->dealloc(device->self->host, device);
}

static tn_status device_property(tn_instance *self, uint32_t index, int32_t property,
                                 tn_cell *out_value) {
    (void)self, (void)index;
    switch (property) {
    case TN_PROP_NAME:
        *out_value = (tn_cell){.tag = TN_CELL_STRING, .v.string = "host processor"};
        return TN_OK;
    case TN_PROP_ALIGNMENT:
        *out_value = (tn_cell){.tag = TN_CELL_I64, .v.i64 = ALIGNMENT};
        return TN_OK;
    case TN_PROP_COMPUTE_UNITS:
        *out_value = (tn_cell){.tag = TN_CELL_I64, .v.i64 = sysconf(_SC_NPROCESSORS_ONLN)};
        return TN_OK;
    case TN_PROP_UNIFIED_MEMORY:
        *out_value = (tn_cell){.tag = TN_CELL_BOOL, .v.boolean = 1};
        return TN_OK;
    case TN_PROP_SPACES:
        *out_value =
            (tn_cell){.tag = TN_CELL_I64, .v.i64 = 1 << TN_SPACE_DEVICE | 1 << TN_SPACE_PINNED};
        return TN_OK;
    case TN_PROP_DRIVER_VERSION: /* the library that multiplies matrices */
        if (!*tnc_blas_version())
            return TN_ERR_UNSUPPORTED;
        *out_value = (tn_cell){.tag = TN_CELL_STRING, .v.string = tnc_blas_version()};
        return TN_OK;
    default: /* the documented default holds */
        return TN_ERR_UNSUPPORTED;
    }
}

const tn_device_ops tnc_device_ops = {
    .struct_size = sizeof tnc_device_ops,
    .count = device_count,
    .open = device_open,
    .close = device_close,
    .property = device_property,
    .memory = &memory_ops,
};
