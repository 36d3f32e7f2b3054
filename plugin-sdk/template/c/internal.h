/* internal.h: what the files of the plugin ask of each other.
 *
 * plugin.c says who we are, device.c counts and opens devices, memory.c allocates, transfer.c moves
 * bytes, stream.c has queues and events, kernels.c what the device computes, listed in kernels.h.
 * There are no globals: everything hangs on tn_instance, so that the plugin can be shut down and
 * started again. */
#ifndef YOURTYPE_INTERNAL_H
#define YOURTYPE_INTERNAL_H

#include <tenon/plugin.h>

/* ---- the handles of tenon/plugin.h, completed -------------------------------------------- */

struct tn_instance {
    const tn_host *host;
};

struct tn_device_impl {
    tn_instance *self;
    uint32_t index;
    /* yours: the driver's handle, a context, how much memory is used */
};

/* ---- plugin.c ---------------------------------------------------------------------------- */

/* Hands the formatted message to the host and returns `status`. */
tn_status yourtype_fail(const tn_instance *self, tn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For a slot that is still to be written: fails with TN_ERR_UNSUPPORTED and says what to do, and which
 * requirement says how the slot must behave. TENON_LOG=plugin=info shows each of them. */
tn_status yourtype_not_yet(tn_instance *self, const char *slot, const char *what_to_do,
                           const char *requirement);

/* ---- the tables -------------------------------------------------------------------------- */

extern const tn_device_ops yourtype_device_ops;
extern const tn_memory_ops yourtype_memory_ops;

/* ---- transfer.c -------------------------------------------------------------------------- */

tn_status yourtype_copy_from_host(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                                  uint64_t dst_offset, const void *src, tn_memory src_pinned,
                                  uint64_t bytes);
tn_status yourtype_copy_to_host(tn_device_impl *device, tn_stream_impl *stream, void *dst,
                                tn_memory dst_pinned, tn_memory src, uint64_t src_offset,
                                uint64_t bytes);
tn_status yourtype_copy(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                        uint64_t dst_offset, tn_memory src, uint64_t src_offset, uint64_t bytes);
tn_status yourtype_fill(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                        uint64_t dst_offset, uint8_t value, uint64_t bytes);

/* ---- memory.c ---------------------------------------------------------------------------- */

enum { YOURTYPE_ALIGNMENT = 64 };

/* The byte at `offset` of an allocation. */
void *yourtype_address(tn_memory memory, uint64_t offset);

/* ---- kernels.c --------------------------------------------------------------------------- */

tn_status yourtype_accepts(tn_device_impl *device, const tn_kernel *kernel);

#endif /* YOURTYPE_INTERNAL_H */
