/* From init to shutdown, and devices. */
#include "base/error.h"
#include "loader/loader.h"
#include "loader/validation/internal.h"

#include <inttypes.h>
#include <string.h>

/* ---- init and shutdown ------------------------------------------------------------------- */

typedef struct block_sum {
    uint64_t n, bytes, largest;
} block_sum;

static block_sum blocks_of(tni_watch *w) {
    block_sum sum = {0};
    pthread_mutex_lock(&tni_records_lock);
    for (const tni_record *r = NULL; (r = tni_record_next(w, r));) {
        if (r->kind != TNI_RECORD_BLOCK)
            continue;
        sum.n++;
        sum.bytes += r->bytes;
        sum.largest = r->bytes > sum.largest ? r->bytes : sum.largest;
    }
    pthread_mutex_unlock(&tni_records_lock);
    return sum;
}

/* An id that nobody has. */
static void probe_extension(tni_watch *w) {
    if (w->real.plugin.extension && w->real.plugin.extension(w->self, "tenon.unknown/1"))
        tni_finding(w, TNP_EXTENSION_ANSWERS, "extension", "",
                    "answered an id that it cannot know, 'tenon.unknown/1', with a table");
}

static tn_status plugin_init(const tn_host *host, const char *path, tn_instance **out) {
    tni_watch *w = tni_watch_of(TNI_RECORD_HOST, host);
    tni_process_before process;
    if (!w || atomic_load(&w->state) != TNI_WATCH_LOADED)
        tni_finding(w, TNI_TENON, "init", "",
                    w ? "called on a plugin that was started already"
                      : "called with another host than the one for query");
    if (!w)
        return tni_watch_refuse("init: the host is no plugin's");
    block_sum before = blocks_of(w);
    tni_one_thread_enter(w, "init");
    tni_process_begin(w, &process);
    atomic_store(&w->state, TNI_WATCH_INIT);
    tn_status status = TNI_ASK(w, "init", NULL, 0, w->real.plugin.init(host, path, out));
    tni_process_end(w, &process, "init", "", 1);
    if (status == TN_OK) {
        tni_record like = {.kind = TNI_RECORD_SELF, .key = (uintptr_t)*out};
        status = tni_handle_keep(w, &like, TNP_INIT_RESULT, "init");
        if (status != TN_OK)
            w->real.plugin.shutdown(*out);
    }
    w->self = status == TN_OK ? *out : NULL;
    atomic_store(&w->state, status == TN_OK ? TNI_WATCH_STARTED : TNI_WATCH_LOADED);
    tni_one_thread_leave(w);
    if (status == TN_OK) {
        probe_extension(w);
        return status;
    }
    block_sum after = blocks_of(w);
    if (after.n > before.n)
        tni_finding(w, TNP_INIT_RESULT, "init", "",
                    "failed and left %" PRIu64 " blocks of host memory (%" PRIu64 " bytes)",
                    after.n - before.n, after.bytes - before.bytes);
    tni_process_settle(w);
    return status;
}

static void plugin_shutdown(tn_instance *self) {
    tni_watch *w = tni_watch_of(TNI_RECORD_SELF, self);
    if (!tni_expect_started(w, "shutdown", self))
        return;
    if (w->n_alive[TNI_RECORD_DEVICE])
        tni_finding(w, TNI_TENON, "shutdown", "", "%" PRIu64 " devices are still open",
                    w->n_alive[TNI_RECORD_DEVICE]);
    tni_one_thread_enter(w, "shutdown");
    atomic_store(&w->state, TNI_WATCH_SHUTDOWN);
    /* Before the call: after it the self may be another plugin's. */
    pthread_mutex_lock(&tni_records_lock);
    for (tni_record *r = tni_record_next(w, NULL), *next; r; r = next) {
        next = tni_record_next(w, r);
        if (r->kind != TNI_RECORD_HOST && r->kind != TNI_RECORD_BLOCK)
            tni_record_remove(w, r);
    }
    pthread_mutex_unlock(&tni_records_lock);
    TNI_TELL(w, "shutdown", NULL, w->real.plugin.shutdown(self));
    atomic_store(&w->state, TNI_WATCH_LOADED);
    w->self = NULL;
    tni_one_thread_leave(w);
    block_sum left = blocks_of(w);
    if (left.n)
        tni_finding(w, TNP_HOST_ALLOC_RETURNED, "shutdown", "",
                    "%" PRIu64 " blocks of host->alloc were not given back: %" PRIu64
                    " bytes, the largest block %" PRIu64,
                    left.n, left.bytes, left.largest);
    tni_lending_settle(w);
    tni_process_settle(w);
}

static const void *plugin_extension(tn_instance *self, const char *id) {
    tni_watch *w = tni_watch_of(TNI_RECORD_SELF, self);
    const void *table;
    if (!tni_expect_started(w, "extension", self))
        return NULL;
    TNI_TELL(w, "extension", NULL, table = w->real.plugin.extension(self, id));
    return table && strcmp(id, TN_EXT_CAPTURE) == 0 ? tni_watch_capture(w, table) : table;
}

/* ---- devices ----------------------------------------------------------------------------- */

static tn_status device_count(tn_instance *self, uint32_t *out) {
    tni_watch *w = tni_watch_of(TNI_RECORD_SELF, self);
    tni_process_before process;
    const char *slot = "devices->count";
    if (!tni_expect_started(w, slot, self))
        return tni_watch_refuse("devices->count: the plugin is not started");
    tni_one_thread_enter(w, slot);
    tni_process_begin(w, &process);
    tn_status status = TNI_ASK(w, slot, NULL, 0, w->real.devices.count(self, out));
    tni_process_end(w, &process, slot, "", 1);
    tni_one_thread_leave(w);
    if (status == TN_OK)
        w->n_devices = *out;
    return status;
}

/* An answer of the plugin itself, for what the layer must know of a device. */
static int64_t integer_of(tni_watch *w, uint32_t index, int32_t property, int64_t fallback) {
    tn_cell value = {0};
    tn_status status = w->real.devices.property(w->self, index, property, &value);
    return status == TN_OK && (value.tag == TN_CELL_I64 || value.tag == TN_CELL_BOOL) ? value.v.i64
                                                                                      : fallback;
}

static tn_status device_open(tn_instance *self, uint32_t index, tn_device_impl **out) {
    tni_watch *w = tni_watch_of(TNI_RECORD_SELF, self);
    tni_process_before process;
    const char *slot = "devices->open";
    if (!tni_expect_started(w, slot, self))
        return tni_watch_refuse("devices->open: the plugin is not started");
    if (index >= w->n_devices)
        tni_finding(w, TNI_TENON, slot, "", "index %u, but count said %u devices", index,
                    w->n_devices);
    tni_one_thread_enter(w, slot);
    tni_process_begin(w, &process);
    tn_status status = TNI_ASK(w, slot, NULL, 0, w->real.devices.open(self, index, out));
    tni_process_end(w, &process, slot, "", 2);
    tni_one_thread_leave(w);
    if (status != TN_OK)
        return status;
    int64_t alignment = integer_of(w, index, TN_PROP_ALIGNMENT, 64);
    tni_record like = {
        .kind = TNI_RECORD_DEVICE,
        .key = (uintptr_t)*out,
        .index = index,
        .alignment = alignment ? (uint64_t)alignment : 1,
        .max_allocation = (uint64_t)integer_of(w, index, TN_PROP_MAX_ALLOCATION, 0),
        .dtypes = (uint64_t)integer_of(w, index, TN_PROP_DTYPES, TN_DTYPES_ALL),
        .spaces = (uint64_t)integer_of(w, index, TN_PROP_SPACES, 1 << TN_SPACE_DEVICE),
        .host_memory = integer_of(w, index, TN_PROP_UNIFIED_MEMORY, 0) != 0,
    };
    status = tni_handle_keep(w, &like, TNP_OPEN_DEVICE, slot);
    if (status != TN_OK && *out) {
        w->real.devices.close(*out);
        *out = NULL;
    }
    return status;
}

static void device_close(tn_device_impl *device) {
    tni_watch *w = tni_watch_of(TNI_RECORD_DEVICE, device);
    tni_record d;
    const char *slot = "devices->close";
    if (!tni_live_device(w, slot, "", device, &d))
        return;
    tni_aside_finish(w, device);
    uint64_t n[TNI_RECORD_BLOCK + 1] = {0}, bytes = 0;
    pthread_mutex_lock(&tni_records_lock);
    for (tni_record *r = tni_record_next(w, NULL), *next; r; r = next) {
        next = tni_record_next(w, r);
        bool is_it = r->kind == TNI_RECORD_DEVICE && r->key == (uintptr_t)device;
        if (!is_it && r->device != (uintptr_t)device)
            continue;
        n[r->kind]++;
        bytes += r->bytes;
        tni_record_remove(w, r);
    }
    pthread_mutex_unlock(&tni_records_lock);
    if (n[TNI_RECORD_STREAM] || n[TNI_RECORD_EVENT] || n[TNI_RECORD_GRAPH] || n[TNI_RECORD_MEMORY])
        tni_finding(w, TNI_TENON, slot, "",
                    "device %u still has %" PRIu64 " streams, %" PRIu64 " events, %" PRIu64
                    " graphs and %" PRIu64 " allocations (%" PRIu64 " bytes)",
                    d.index, n[TNI_RECORD_STREAM], n[TNI_RECORD_EVENT], n[TNI_RECORD_GRAPH],
                    n[TNI_RECORD_MEMORY], bytes);
    tni_one_thread_enter(w, slot);
    TNI_TELL(w, slot, NULL, w->real.devices.close(device));
    tni_one_thread_leave(w);
}

/* ---- properties -------------------------------------------------------------------------- */

static bool same_value(const tn_cell *a, const tn_cell *b) {
    if (a->tag != b->tag)
        return false;
    if (a->tag == TN_CELL_STRING)
        return !a->v.string || !b->v.string ? a->v.string == b->v.string
                                            : strcmp(a->v.string, b->v.string) == 0;
    return a->v.i64 == b->v.i64;
}

static uint32_t tag_of(int32_t property) {
    switch (property) {
    case TN_PROP_NAME:
    case TN_PROP_DRIVER_VERSION:
    case TN_PROP_FIRMWARE_VERSION:
        return TN_CELL_STRING;
    case TN_PROP_UNIFIED_MEMORY:
        return TN_CELL_BOOL;
    default:
        return TN_CELL_I64;
    }
}

/* What is wrong with a value; NULL when it is right. A newer plugin may have bits that are not
 * known. */
static const char *why_wrong(int32_t property, const tn_cell *value, bool newer) {
    int64_t n = value->v.i64;
    if (value->tag != tag_of(property))
        return "the cell has another tag than tn_device_property says";
    if (value->n)
        return "n of the cell is not 0";
    switch (property) {
    case TN_PROP_NAME:
    case TN_PROP_DRIVER_VERSION:
    case TN_PROP_FIRMWARE_VERSION:
        return value->v.string && *value->v.string ? NULL : "the string is NULL or empty";
    case TN_PROP_ALIGNMENT:
        return n > 0 && (n & (n - 1)) == 0 ? NULL : "it is no power of two";
    case TN_PROP_MAX_ALLOCATION:
        return n >= 0 ? NULL : "it is negative";
    case TN_PROP_COMPUTE_UNITS:
        return n >= 1 ? NULL : "it is less than 1";
    case TN_PROP_DTYPES:
        return n != 0 && (newer || ((uint64_t)n & ~TNI_DTYPES_KNOWN) == 0)
                   ? NULL
                   : "it is no mask of known dtypes";
    case TN_PROP_FLUSHES_SUBNORMALS:
        return newer || ((uint64_t)n & ~TN_DTYPES_FLOAT) == 0 ? NULL
                                                              : "it is no mask of floating dtypes";
    case TN_PROP_SPACES:
        return (n & 1 << TN_SPACE_DEVICE) &&
                       (newer || n <= (1 << TN_SPACE_DEVICE | 1 << TN_SPACE_PINNED))
                   ? NULL
                   : "it is no mask of known spaces with TN_SPACE_DEVICE";
    default:
        return n == 0 || n == 1 ? NULL : "it is neither 0 nor 1";
    }
}

static tn_status device_property(tn_instance *self, uint32_t index, int32_t property,
                                 tn_cell *out) {
    tni_watch *w = tni_watch_of(TNI_RECORD_SELF, self);
    const char *slot = "devices->property";
    tn_status second;
    if (!tni_expect_started(w, slot, self))
        return tni_watch_refuse("devices->property: the plugin is not started");
    if (index >= w->n_devices)
        tni_finding(w, TNI_TENON, slot, "", "index %u, but count said %u devices", index,
                    w->n_devices);
    tn_cell unset = {.tag = 0x7e7e7e7e, .n = 0x7e7e7e7e, .v.i64 = 0x7e7e7e7e7e7e7e7e};
    tn_cell first = unset, again = unset;
    tn_status status = TNI_ASK(w, slot, NULL, TNI_MAY_DECLINE,
                               w->real.devices.property(self, index, property, &first));
    TNI_TELL(w, slot, NULL, second = w->real.devices.property(self, index, property, &again));
    if (second != status || (status == TN_OK && !same_value(&first, &again)))
        tni_finding(w, TNP_PROPERTY_STABLE, slot, "",
                    "property %d of device %u was answered in two ways", property, index);
    bool is_set = first.tag != unset.tag || first.n != unset.n || first.v.i64 != unset.v.i64;
    if (status == TN_ERR_UNSUPPORTED && is_set)
        tni_finding(w, TNP_PROPERTY_UNKNOWN, slot, "",
                    "answered TN_ERR_UNSUPPORTED to property %d and set *out_value", property);
    if (status != TN_OK)
        return status;
    const char *wrong = property >= 0 && property <= TN_PROP_FIRMWARE_VERSION
                            ? why_wrong(property, &first, tni_is_newer(w))
                            : NULL;
    if (wrong)
        tni_finding(w, TNP_PROPERTY_RANGE, slot, "",
                    "property %d of device %u: %s (tag %u, value %" PRId64 ")", property, index,
                    wrong, first.tag, first.tag == TN_CELL_STRING ? 0 : first.v.i64);
    *out = first;
    return status;
}

/* ---- which kernels ----------------------------------------------------------------------- */

static const tni_watched_kernel *watched(const tni_watch *w, const tn_kernel *kernel) {
    for (uint64_t i = 0; i < w->n_kernels; i++)
        if (&w->kernels[i].proxy == kernel)
            return &w->kernels[i];
    return NULL;
}

static tn_status device_accepts(tn_device_impl *device, const tn_kernel *kernel) {
    tni_watch *w = tni_watch_of(TNI_RECORD_DEVICE, device);
    tni_record d;
    tn_status again;
    const char *slot = "devices->accepts";
    if (!tni_live_device(w, slot, "", device, &d))
        return tni_watch_refuse("devices->accepts: the device is not open");
    const tni_watched_kernel *k = watched(w, kernel);
    const char *op = kernel->op ? kernel->op : "";
    if (!k)
        tni_finding(w, TNI_TENON, slot, op, "asked about a record that is not the plugin's");
    const tn_kernel *record = k ? k->record : kernel;
    tni_one_thread_enter(w, slot);
    tn_status status =
        TNI_ASK(w, slot, op, TNI_MAY_DECLINE, w->real.devices.accepts(device, record));
    TNI_TELL(w, slot, op, again = w->real.devices.accepts(device, record));
    tni_one_thread_leave(w);
    tni_judge_choice(w, TNP_DEVICE_SUPPORTS, slot, op, status, again);
    return status;
}

/* ---- the tables -------------------------------------------------------------------------- */

const tn_plugin tni_checked_plugin = {
    .init = plugin_init,
    .shutdown = plugin_shutdown,
    .extension = plugin_extension,
};
TN_LAST_MEMBER(tn_plugin, extension);

const tn_device_ops tni_checked_devices = {
    .count = device_count,
    .open = device_open,
    .close = device_close,
    .property = device_property,
    .accepts = device_accepts,
};
TN_LAST_MEMBER(tn_device_ops, events);
