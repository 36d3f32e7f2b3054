/* How many chips there are, what each is like, opening and closing one. */
#include "plugins/sim/sim.h"

#include <stdio.h>
#include <sys/mman.h>

/* Handles are given out in turn and reused late, so the reservation is larger than the memory. It
 * is address space only and costs nothing. */
enum { RESERVATION_FACTOR = 8 };
static const uint64_t MIN_RESERVATION = UINT64_C(1) << 30;

static tn_status count(tn_instance *self, uint32_t *out_count) {
    *out_count = (uint32_t)self->options.devices;
    return TN_OK;
}

static tn_status check_index(tn_instance *self, uint32_t index) {
    uint32_t n = (uint32_t)self->options.devices;
    return index < n
               ? TN_OK
               : sim_fail(self, TN_ERR_DEVICE,
                          "there is no sim:%u; TENON_SIM_DEVICES makes it %u devices", index, n);
}

static tn_status open_device(tn_instance *self, uint32_t index, tn_device_impl **out_device) {
    *out_device = NULL;
    uint64_t limit = self->options.memory;
    tn_status status = check_index(self, index);
    if (status != TN_OK)
        return status;

    tn_device_impl *device = sim_host_alloc(self, sizeof *device, "a device");
    if (!device)
        return TN_ERR_OUT_OF_MEMORY;
    *device = (tn_device_impl){.self = self, .index = index, .limit_bytes = limit};
    device->reserved_bytes =
        limit > MIN_RESERVATION / RESERVATION_FACTOR ? limit * RESERVATION_FACTOR : MIN_RESERVATION;
    device->reservation = mmap(NULL, device->reserved_bytes, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (device->reservation == MAP_FAILED) {
        status = sim_fail(self, TN_ERR_OUT_OF_MEMORY,
                          "sim:%u: cannot reserve %llu bytes of address space for handles; lower "
                          "TENON_SIM_MEMORY or raise the limit of the process (ulimit -v)",
                          index, (unsigned long long)device->reserved_bytes);
        self->host->dealloc(self->host, device);
        return status;
    }
    device->cursor = (uint64_t)(uintptr_t)device->reservation;
    pthread_mutex_init(&device->lock, NULL);
    *out_device = device;
    return TN_OK;
}

/* Streams, events and memory were released before; what was forgotten is told. */
static void close_device(tn_device_impl *device) {
    tn_instance *self = device->self;
    if (device->n_streams || device->n_events || device->n_graphs || device->allocations.n) {
        char line[SIM_MESSAGE];
        snprintf(
            line, sizeof line,
            "sim:%u is closed with %u streams, %u events, %u graphs and %llu allocations alive",
            device->index, device->n_streams, device->n_events, device->n_graphs,
            (unsigned long long)device->allocations.n);
        self->host->log_message(self->host, TN_LOG_ERROR, line);
    }
    sim_memory_finish(device);
    munmap(device->reservation, device->reserved_bytes);
    pthread_mutex_destroy(&device->lock);
    self->host->dealloc(self->host, device);
}

static tn_status property(tn_instance *self, uint32_t index, int32_t name, tn_cell *out_value) {
    PLUGIN_TRY(check_index(self, index));
    switch (name) {
    case TN_PROP_NAME:
        *out_value = (tn_cell){.tag = TN_CELL_STRING, .v.string = "Tenon simulated chip"};
        return TN_OK;
    case TN_PROP_ALIGNMENT:
        *out_value = (tn_cell){.tag = TN_CELL_I64, .v.i64 = SIM_ALIGNMENT};
        return TN_OK;
    case TN_PROP_MAX_ALLOCATION:
        *out_value = (tn_cell){.tag = TN_CELL_I64, .v.i64 = (int64_t)self->options.memory};
        return TN_OK;
    case TN_PROP_COMPUTE_UNITS:
        *out_value = (tn_cell){.tag = TN_CELL_I64, .v.i64 = 1};
        return TN_OK;
    case TN_PROP_SPACES:
        *out_value = (tn_cell){.tag = TN_CELL_I64, .v.i64 = 1 << TN_SPACE_DEVICE};
        if (sim_has_space(self, TN_SPACE_PINNED))
            out_value->v.i64 |= 1 << TN_SPACE_PINNED;
        return TN_OK;
    case TN_PROP_DRIVER_VERSION:
        *out_value = (tn_cell){.tag = TN_CELL_STRING, .v.string = SIM_VERSION};
        return TN_OK;
    case TN_PROP_FIRMWARE_VERSION:
        *out_value = (tn_cell){.tag = TN_CELL_STRING, .v.string = "simulated"};
        return TN_OK;
    default: /* no fail(): "the default holds" is an answer */
        return TN_ERR_UNSUPPORTED;
    }
}

const tn_device_ops sim_device_ops = {
    .struct_size = sizeof sim_device_ops,
    .count = count,
    .open = open_device,
    .close = close_device,
    .property = property,
    .memory = &sim_memory_ops,
    .streams = &sim_stream_ops,
    .events = &sim_event_ops,
};
