/* Bytes from and to the host, within a device and between two. */
#include "plugins/sim/sim.h"

#include <string.h>

typedef struct transfer {
    sim_command command;
    char *dst;
    const char *src;
    uint64_t bytes;
    uint8_t value;               /* of a fill */
    _Alignas(16) char payload[]; /* what came from the host and is not pinned */
} transfer;

static tn_status run_copy(sim_command *command, char message[SIM_MESSAGE]) {
    transfer *t = (transfer *)command;
    memcpy(t->dst, t->src, t->bytes);
    return TN_OK;
}

static tn_status run_fill(sim_command *command, char message[SIM_MESSAGE]) {
    transfer *t = (transfer *)command;
    memset(t->dst, t->value, t->bytes);
    return TN_OK;
}

static tn_status enter(tn_device_impl *device, tn_stream_impl *stream, enum sim_fault fault,
                       const char *what) {
    tn_status status = sim_enter(device, fault);
    return status == TN_OK ? sim_stream_check(device, stream, what) : status;
}

/* Takes over `uses`, also when it fails. */
static tn_status transfer_create(tn_instance *self, uint64_t payload, sim_uses *uses,
                                 transfer **out_transfer) {
    *out_transfer = sim_host_alloc(self, sizeof(transfer) + payload, "a transfer");
    if (!*out_transfer) {
        sim_uses_drop(uses);
        return TN_ERR_OUT_OF_MEMORY;
    }
    **out_transfer = (transfer){.command = {.run = run_copy, .uses = *uses}};
    return TN_OK;
}

/* Finds both ends of a transfer between a device and the host, whose memory is at `host`, in the
 * allocation `pinned` where it is not 0. */
static tn_status find_ends(tn_device_impl *device, const char *what, tn_memory memory,
                           uint64_t offset, const void *host, tn_memory pinned, uint64_t bytes,
                           sim_uses *uses, char **out_data) {
    tn_status status = sim_resolve(device, what, memory, offset, bytes, uses, out_data);
    if (status == TN_OK && pinned)
        status = sim_resolve_pinned(device, what, pinned, host, bytes, uses);
    return status;
}

tn_status sim_copy_from_host(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                             uint64_t dst_offset, const void *src, tn_memory src_pinned,
                             uint64_t bytes) {
    static const char what[] = "copy_from_host";
    sim_uses uses = {0};
    char *to;
    transfer *t;
    tn_status status = enter(device, stream, SIM_FAULT_write, what);
    if (status == TN_OK && !src_pinned)
        status = sim_check_capture(stream, "copy_from_host of memory that is not pinned");
    if (status == TN_OK)
        status = find_ends(device, what, dst, dst_offset, src, src_pinned, bytes, &uses, &to);
    if (status != TN_OK || bytes == 0) {
        sim_uses_drop(&uses);
        return status;
    }

    status = transfer_create(device->self, src_pinned ? 0 : bytes, &uses, &t);
    if (status != TN_OK)
        return status;
    if (!src_pinned)
        memcpy(t->payload, src, bytes);
    t->dst = to;
    t->src = src_pinned ? src : t->payload;
    t->bytes = bytes;
    t->command.never_recorded = !src_pinned;
    sim_stream_push(stream, &t->command);
    return TN_OK;
}

tn_status sim_copy_to_host(tn_device_impl *device, tn_stream_impl *stream, void *dst,
                           tn_memory dst_pinned, tn_memory src, uint64_t src_offset,
                           uint64_t bytes) {
    static const char what[] = "copy_to_host";
    sim_uses uses = {0};
    char *from;
    transfer *t;
    tn_status status = enter(device, stream, SIM_FAULT_read, what);
    if (status == TN_OK && !dst_pinned)
        status = sim_check_capture(stream, "copy_to_host of memory that is not pinned");
    if (status == TN_OK)
        status = find_ends(device, what, src, src_offset, dst, dst_pinned, bytes, &uses, &from);
    if (status != TN_OK || bytes == 0) {
        sim_uses_drop(&uses);
        return status;
    }

    status = transfer_create(device->self, 0, &uses, &t);
    if (status != TN_OK)
        return status;
    t->dst = dst;
    t->src = from;
    t->bytes = bytes;
    t->command.never_recorded = !dst_pinned;
    uint64_t place = sim_stream_push(stream, &t->command);
    if (dst_pinned)
        return TN_OK;
    sim_stream_wait(stream, place);
    return sim_check_lost(device);
}

/* Both ends of a copy are found; queues it on `stream`. */
static tn_status push_copy(tn_stream_impl *stream, sim_uses *uses, char *to, const char *from,
                           uint64_t bytes, bool is_peer) {
    transfer *t;
    if (bytes == 0) {
        sim_uses_drop(uses);
        return TN_OK;
    }
    tn_status status = transfer_create(stream->device->self, 0, uses, &t);
    if (status != TN_OK)
        return status;
    t->command.never_recorded = is_peer;
    t->dst = to;
    t->src = from;
    t->bytes = bytes;
    sim_stream_push(stream, &t->command);
    return TN_OK;
}

tn_status sim_copy(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                   uint64_t dst_offset, tn_memory src, uint64_t src_offset, uint64_t bytes) {
    sim_uses uses = {0};
    char *to, *from;
    tn_status status = enter(device, stream, SIM_FAULT_copy, "copy");
    if (status == TN_OK)
        status = sim_resolve(device, "copy to", dst, dst_offset, bytes, &uses, &to);
    if (status == TN_OK)
        status = sim_resolve(device, "copy from", src, src_offset, bytes, &uses, &from);
    if (status == TN_OK && dst == src && dst_offset < src_offset + bytes &&
        src_offset < dst_offset + bytes)
        status = sim_fail(device->self, TN_ERR_INVALID_ARGUMENT,
                          "copy: the ranges at %llu and %llu of handle %#llx overlap in %llu bytes",
                          (unsigned long long)dst_offset, (unsigned long long)src_offset,
                          (unsigned long long)dst, (unsigned long long)bytes);
    if (status == TN_OK)
        return push_copy(stream, &uses, to, from, bytes, false);
    sim_uses_drop(&uses);
    return status;
}

tn_status sim_copy_peer(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                        uint64_t dst_offset, tn_device_impl *src_device, tn_memory src,
                        uint64_t src_offset, uint64_t bytes) {
    sim_uses uses = {0};
    char *to, *from;
    tn_status status = enter(device, stream, SIM_FAULT_copy_peer, "copy_peer");
    if (status == TN_OK)
        status = sim_check_lost(src_device);
    if (status == TN_OK)
        status = sim_check_capture(stream, "copy_peer");
    if (status == TN_OK)
        status = sim_resolve(device, "copy_peer to", dst, dst_offset, bytes, &uses, &to);
    if (status == TN_OK)
        status = sim_resolve(src_device, "copy_peer from", src, src_offset, bytes, &uses, &from);
    if (status == TN_OK)
        return push_copy(stream, &uses, to, from, bytes, true);
    sim_uses_drop(&uses);
    return status;
}

tn_status sim_fill(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                   uint64_t dst_offset, uint8_t value, uint64_t bytes) {
    sim_uses uses = {0};
    char *to;
    transfer *t;
    tn_status status = enter(device, stream, SIM_FAULT_fill, "fill");
    if (status == TN_OK)
        status = sim_resolve(device, "fill", dst, dst_offset, bytes, &uses, &to);
    if (status != TN_OK || bytes == 0) {
        sim_uses_drop(&uses);
        return status;
    }
    status = transfer_create(device->self, 0, &uses, &t);
    if (status != TN_OK)
        return status;
    t->command.run = run_fill;
    t->dst = to;
    t->value = value;
    t->bytes = bytes;
    sim_stream_push(stream, &t->command);
    return TN_OK;
}
