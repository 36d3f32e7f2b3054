/* Tensors over memory that is a program's own: which devices can, and when it is let go. */
#include "core/tensor/foreign.h"
#include "base/error.h"

#include <tenon/validation.h>

/* A device that names memory by the host's addresses does so for its own allocations, too. */
static tn_status check_addresses(tni_device *d, const char *call) {
    tn_status status = tni_device_check(d);
    if (status)
        return status;
    if (tn_validation_level() > 0)
        return tni_fail(TN_ERR_UNSUPPORTED,
                        "%s: TENON_VALIDATE knows the memory that plugins give out, and not a"
                        " program's own; copy it, or leave TENON_VALIDATE unset",
                        call);
    bool named = d->host_memory && !d->is_meta;
    if (named) {
        tni_block *block = tni_block_alloc(d, tni_stream_current(d), 1);
        if (!block)
            return tn_error_status();
        named = block->host && block->memory + block->offset == (uintptr_t)block->host;
        tni_block_free(block);
    }
    return named ? TN_OK
                 : tni_fail(TN_ERR_UNSUPPORTED,
                            "%s: %s cannot use the host's memory as its own; make the tensor on"
                            " cpu:0, or copy with tn_from_data",
                            call, d->name);
}

/* ---- letting go -------------------------------------------------------------------------- */

/* On a device with streams: what is queued may still use the memory. */
typedef struct held {
    tni_device *device;
    void (*release)(void *);
    void *context;
} held;

static void wait_for(tn_stream *stream, void *user) {
    tni_stream_drain(stream);
}

static void release_when_done(void *user) {
    held h = *(held *)user;
    tni_free(user);
    tni_device_for_each_stream(h.device, wait_for, NULL);
    h.release(h.context);
}

/* ---- making ------------------------------------------------------------------------------ */

tn_tensor *tni_tensor_at(const char *call, void *data, tn_ints sizes, tn_ints strides,
                         tn_dtype dtype, tni_device *device, void (*release)(void *),
                         void *context) {
    tni_layout layout;
    if (!tni_lay_out(call, sizes, strides, dtype, &layout) || check_addresses(device, call) ||
        !tni_scope_reserve())
        return NULL;
    uintptr_t at = (uintptr_t)data;
    if (layout.numel && (!data || at % (uint64_t)tni_dtype_size(dtype)))
        return tni_fail_null(
            TN_ERR_INVALID_ARGUMENT,
            "%s: data is %p; it must be the address of the first element, a multiple of the"
            " %lld bytes of %s",
            call, data, (long long)tni_dtype_size(dtype), tn_dtype_name(dtype));
    if (layout.numel && (uint64_t)layout.bytes > UINTPTR_MAX - at)
        return tni_fail_null(TN_ERR_INVALID_ARGUMENT,
                             "%s: %lld bytes from %p on leave the address space", call,
                             (long long)layout.bytes, data);
    held *h = NULL;
    if (release && device->streams) {
        h = tni_alloc(sizeof *h);
        if (!h)
            return tni_fail_memory_null("a note of whose memory it is");
        *h = (held){device, release, context};
    }
    tn_tensor *t = tni_tensor_foreign(device, dtype, layout.rank, sizes.data, layout.strides,
                                      layout.numel ? at : 0, layout.numel ? data : NULL,
                                      (uint64_t)layout.bytes, h ? release_when_done : release,
                                      h ? h : context);
    if (!t)
        tni_free(h);
    return tni_scope_push(t);
}

tn_tensor *tn_from_blob(void *data, tn_ints sizes, tn_ints strides, tn_dtype dtype,
                        tn_device device, void (*release)(void *context), void *context) {
    if (device.type == 0)
        device = tn_default_device();
    tni_device *on = device.type ? tni_device_get(device) : NULL;
    return on ? tni_tensor_at("tn_from_blob", data, sizes, strides, dtype, on, release, context)
              : NULL;
}
