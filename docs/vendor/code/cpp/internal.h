/* internal.h: what the files of the plugin ask of each other.
 *
 * plugin.cpp says who we are, device.cpp counts and opens devices, memory.cpp allocates, transfer.cpp
 * moves bytes, stream.cpp has queues and events, kernels.cpp what the device computes, listed in
 * kernels.h. There are no globals but tables, which are constexpr: everything hangs on tn_instance, so
 * that the plugin can be shut down and started again. What a slot throws, tenon::slot turns into a
 * status and a message. */
#ifndef NPU_INTERNAL_H
#define NPU_INTERNAL_H

#include <atomic>
#include <tenon/plugin.hpp>

/* ---- the handles of tenon/plugin.h, completed -------------------------------------------- */

struct tn_instance {
    const tn_host *host;
};

struct tn_device_impl {
    tn_instance *self;
    uint32_t index;
    std::atomic<uint64_t> used_bytes{0}; /* of npu::memory_bytes */
};

/* How tenon::slot reaches the host, to tell it what went wrong. */
inline const tn_host *host_of(const tn_instance *self) {
    return self->host;
}
inline const tn_host *host_of(const tn_device_impl *device) {
    return device->self->host;
}

namespace npu {

/* ---- plugin.cpp -------------------------------------------------------------------------- */

/* For a slot that is still to be written: throws TN_ERR_UNSUPPORTED and says what to do, and which
 * requirement says how the slot must behave. TENON_LOG=plugin=info shows each of them. */
[[noreturn]] void not_yet(const tn_host *host, const char *slot, const char *what_to_do,
                          const char *requirement);

/* ---- the tables -------------------------------------------------------------------------- */

extern const tn_device_ops device_ops;
extern const tn_memory_ops memory_ops;

/* ---- transfer.cpp ------------------------------------------------------------------------ */

void copy_from_host(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                    uint64_t dst_offset, const void *src, tn_memory src_pinned, uint64_t bytes);
void copy_to_host(tn_device_impl *device, tn_stream_impl *stream, void *dst, tn_memory dst_pinned,
                  tn_memory src, uint64_t src_offset, uint64_t bytes);
void copy_bytes(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst, uint64_t dst_offset,
                tn_memory src, uint64_t src_offset, uint64_t bytes);
void fill_bytes(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst, uint64_t dst_offset,
                uint8_t value, uint64_t bytes);

/* ---- memory.cpp -------------------------------------------------------------------------- */

constexpr uint64_t alignment = 64;
constexpr uint64_t memory_bytes = 64 << 20; /* that a device has */

/* The byte at `offset` of an allocation. */
void *address(tn_memory memory, uint64_t offset);

/* ---- kernels.cpp ------------------------------------------------------------------------- */

tn_status accepts(tn_device_impl *device, const tn_kernel *kernel);

} // namespace npu

#endif /* NPU_INTERNAL_H */
