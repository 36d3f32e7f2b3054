/* device.c: how many devices there are, what each is like, opening and closing one. */
#include "internal.h"
#include "stream.h"

/* Ask the driver here. No hardware is TN_OK with 0; a driver that does not start is a failure, with
 * a message that says how to mend it (TNP-27, TNP-28). */
static tn_status count(tn_instance *self, uint32_t *out_count) {
    *out_count = 1;
    return TN_OK;
}

static tn_status check_index(tn_instance *self, uint32_t index) {
    uint32_t n;
    tn_status status = count(self, &n);
    if (status == TN_OK && index >= n)
        status =
            yourtype_fail(self, TN_ERR_DEVICE, "there is no yourtype:%u; there are %u", index, n);
    return status;
}

static tn_status open_device(tn_instance *self, uint32_t index, tn_device_impl **out_device) {
    *out_device = NULL;
    tn_status status = check_index(self, index);
    if (status != TN_OK)
        return status;
    tn_device_impl *device =
        self->host->alloc(self->host, sizeof *device, _Alignof(tn_device_impl));
    if (!device)
        return yourtype_fail(self, TN_ERR_OUT_OF_MEMORY, "no host memory to open a device");
    *device = (tn_device_impl){.self = self, .index = index};
    *out_device = device;
    return TN_OK;
}

/* Streams, events and memory were released before. */
static void close_device(tn_device_impl *device) {
    device->self->host->dealloc(device->self->host, device);
}

static tn_status property(tn_instance *self, uint32_t index, int32_t name, tn_cell *out_value) {
    tn_status status = check_index(self, index);
    if (status != TN_OK)
        return status;
    switch (name) {
    case TN_PROP_NAME:
        *out_value = (tn_cell){.tag = TN_CELL_STRING, .v.string = "yourvendor yourtype"};
        return TN_OK;
    case TN_PROP_ALIGNMENT:
        *out_value = (tn_cell){.tag = TN_CELL_I64, .v.i64 = YOURTYPE_ALIGNMENT};
        return TN_OK;
    default: /* no message: "the default holds" is an answer */
        return TN_ERR_UNSUPPORTED;
    }
}

const tn_device_ops yourtype_device_ops = {
    .struct_size = sizeof yourtype_device_ops,
    .count = count,
    .open = open_device,
    .close = close_device,
    .property = property,
    .accepts = yourtype_accepts,
    .memory = &yourtype_memory_ops,
    .streams = YOURTYPE_STREAMS,
    .events = YOURTYPE_EVENTS,
};
