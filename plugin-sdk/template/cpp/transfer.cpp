/* transfer.cpp: bytes to, from and within the device. Without streams (`stream` is NULL) each is
 * complete when it returns, and whether the host's memory is pinned does not matter. */
#include "internal.h"

#include <cstring>

namespace yourtype {

void copy_from_host(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                    uint64_t dst_offset, const void *src, tn_memory src_pinned, uint64_t bytes) {
    std::memcpy(address(dst, dst_offset), src, bytes);
}

void copy_to_host(tn_device_impl *device, tn_stream_impl *stream, void *dst, tn_memory dst_pinned,
                  tn_memory src, uint64_t src_offset, uint64_t bytes) {
    std::memcpy(dst, address(src, src_offset), bytes);
}

void copy_bytes(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst, uint64_t dst_offset,
                tn_memory src, uint64_t src_offset, uint64_t bytes) {
    std::memcpy(address(dst, dst_offset), address(src, src_offset), bytes);
}

void fill_bytes(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst, uint64_t dst_offset,
                uint8_t value, uint64_t bytes) {
    std::memset(address(dst, dst_offset), value, bytes);
}

} // namespace yourtype
