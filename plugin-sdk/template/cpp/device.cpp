/* device.cpp: how many devices there are, what each is like, opening and closing one. */
#include "internal.h"
#include "stream.h"

namespace yourtype {

/* Ask the driver here. No hardware is TN_OK with 0; a driver that does not start is a failure, with
 * a message that says how to mend it (TNP-27, TNP-28). */
static void count(tn_instance *self, uint32_t *out_count) {
    *out_count = 1;
}

static void check_index(tn_instance *self, uint32_t index) {
    uint32_t n;
    count(self, &n);
    if (index >= n)
        throw tenon::error(TN_ERR_DEVICE, "there is no yourtype:%u; there are %u", index, n);
}

static void open(tn_instance *self, uint32_t index, tn_device_impl **out_device) {
    *out_device = nullptr;
    check_index(self, index);
    *out_device = tenon::make_host<tn_device_impl>(self->host, self, index).release();
}

/* Streams, events and memory were released before. */
static void close(tn_device_impl *device) {
    tenon::destroy(host_of(device), device);
}

static tn_status property(tn_instance *self, uint32_t index, int32_t name, tn_cell *out_value) {
    check_index(self, index);
    switch (name) {
    case TN_PROP_NAME:
        *out_value = tenon::cell("yourvendor yourtype");
        return TN_OK;
    case TN_PROP_ALIGNMENT:
        *out_value = tenon::cell(alignment);
        return TN_OK;
    default: /* no message: "the default holds" is an answer */
        return TN_ERR_UNSUPPORTED;
    }
}

constexpr tn_device_ops device_ops = [] {
    auto ops = tenon::table<tn_device_ops>();
    ops.count = tenon::slot<count>;
    ops.open = tenon::slot<open>;
    ops.close = tenon::slot<close>;
    ops.property = tenon::slot<property>;
    ops.accepts = tenon::slot<accepts>;
    ops.memory = &memory_ops;
    ops.streams = streams;
    ops.events = events;
    return ops;
}();

} // namespace yourtype
