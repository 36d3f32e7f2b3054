/* The table of open devices: how a device is opened once, found without a lock, and closed.
 *
 * A device type's id is its backend's plus one. For each there is an entry with a slot per device
 * of the plugin; entries and devices are published by pointer and stay until tni_devices_finish.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "core/device/open.h"
#include "core/graph/graph.h"
#include "core/memory/allocator.h"
#include "core/tensor/tensor.h"
#include "dispatcher/registry.h"

#include <stdio.h>
#include <string.h>
#include <tenon/ext/fork.h>

typedef struct device_type {
    const tni_plugin *plugin; /* NULL for meta */
    uint32_t n_devices;
    _Atomic(tni_device *) devices[];
} device_type;

static _Atomic(device_type *) types[TNI_MAX_BACKENDS + 1]; /* by tn_device.type */
static _Atomic(tni_device *) by_ordinal[TNI_MAX_DEVICES];
static uint32_t n_open;

/* ---- opening ----------------------------------------------------------------------------- */

/* A property, or `fallback` when the plugin leaves it out or answers with another kind of cell. */
static tn_cell property(const tni_plugin *plugin, uint32_t index, int32_t which, tn_cell fallback) {
    tn_cell value = {0};
    tn_status status = plugin->devices->property(plugin->self, index, which, &value);
    tni_error_plugin(TN_OK, NULL);
    return status == TN_OK && value.tag == fallback.tag ? value : fallback;
}

static int64_t integer_property(const tni_plugin *plugin, uint32_t index, int32_t which,
                                int64_t fallback) {
    return property(plugin, index, which, tn_int(fallback)).v.i64;
}

/* A storage dtype is there where its carrier is. */
static uint64_t with_storage_dtypes(uint64_t dtypes) {
    uint64_t all = dtypes;
    for (tn_dtype d = 0; d < TN_DTYPE_END; d++)
        if (tni_is_storage_dtype(d) && (dtypes & TN_DTYPE_BIT(tni_carrier_of(d).dtype)))
            all |= TN_DTYPE_BIT(d);
    return all;
}

static tn_status read_properties(tni_device *d) {
    const tni_plugin *p = d->plugin;
    uint32_t index = (uint32_t)d->id.index;
    tn_cell no_name = {.tag = TN_CELL_STRING, .v.string = ""};
    const char *product = property(p, index, TN_PROP_NAME, no_name).v.string;
    snprintf(d->product, sizeof d->product, "%s", product ? product : "");
    tni_text_make_printable(d->product);
    int64_t alignment = integer_property(p, index, TN_PROP_ALIGNMENT, 64);
    int64_t max_allocation = integer_property(p, index, TN_PROP_MAX_ALLOCATION, 0);
    if (alignment < 1 || (alignment & (alignment - 1)) || alignment > INT64_C(1) << 30)
        return tni_fail(TN_ERR_ABI,
                        "%s: property TN_PROP_ALIGNMENT is %lld; the plugin (%s) must give a power"
                        " of two up to 2^30",
                        d->name, (long long)alignment, p->table->id);
    if (max_allocation < 0)
        return tni_fail(TN_ERR_ABI,
                        "%s: property TN_PROP_MAX_ALLOCATION is %lld; the plugin (%s) must give 0"
                        " for no limit, or a number of bytes",
                        d->name, (long long)max_allocation, p->table->id);
    d->alignment = (uint64_t)alignment;
    d->max_allocation = (uint64_t)max_allocation;
    d->dtypes = with_storage_dtypes(
        (uint64_t)integer_property(p, index, TN_PROP_DTYPES, TN_DTYPES_ALL) & TNI_DTYPES_KNOWN);
    d->flushes = (uint64_t)integer_property(p, index, TN_PROP_FLUSHES_SUBNORMALS, 0);
    d->spaces = (uint64_t)integer_property(p, index, TN_PROP_SPACES, 1 << TN_SPACE_DEVICE);
    d->host_memory = property(p, index, TN_PROP_UNIFIED_MEMORY, tn_bool(false)).v.boolean != 0;
    return TN_OK;
}

/* What the plugin has of it. Undone by close_handle. */
static tn_status open_handle(tni_device *d) {
    const tni_plugin *p = d->plugin;
    d->ops = p->devices;
    d->memory = d->ops->memory;
    d->streams = TNI_SLOT(d->ops, tn_device_ops, streams);
    d->events = d->streams ? TNI_SLOT(d->ops, tn_device_ops, events) : NULL;
    tn_status status = read_properties(d);
    if (status)
        return status;
    tni_error_plugin(TN_OK, NULL);
    status = d->ops->open(p->self, (uint32_t)d->id.index, &d->handle);
    if (status)
        return tni_device_fail(d, status, "opening the device");
    status = tni_kernel_set_init(&d->kernels, p, d->handle);
    if (!status) {
        status = tni_program_kernels_attach(d);
        if (!status)
            return TN_OK;
        tni_kernel_set_finish(&d->kernels);
    }
    d->ops->close(d->handle);
    return status;
}

static void close_handle(tni_device *d) {
    tni_kernel_set_finish(&d->kernels);
    d->ops->close(d->handle);
}

static tn_status open_parts(tni_device *d) {
    tn_status status = open_handle(d);
    if (status)
        return status;
    status = tni_streams_init(d);
    if (!status) {
        status = tni_allocator_create(d, &d->allocator);
        if (!status)
            return TN_OK;
        tni_streams_finish(d);
    }
    tni_events_finish(d);
    close_handle(d);
    return status;
}

static void destroy(tni_device *d) {
    pthread_mutex_destroy(&d->lock);
    tni_free(d);
}

static tn_status make_device(const device_type *type, tn_device id, tni_device **out) {
    const tni_plugin *plugin = type->plugin;
    *out = NULL;
    if (n_open == TNI_MAX_DEVICES)
        return tni_fail(TN_ERR_UNSUPPORTED,
                        "more than %d devices are open; close some programs' worth"
                        " of them with tn_shutdown",
                        (int)TNI_MAX_DEVICES);
    tni_device *d = tni_alloc_aligned(sizeof *d, 64);
    if (!d)
        return tni_fail_memory("a device");
    memset(d, 0, sizeof *d);
    d->id = id;
    d->ordinal = n_open;
    d->backend = id.type - 1;
    d->backends = (uint64_t)1 << d->backend;
    d->plugin = plugin;
    d->is_meta = !plugin;
    d->is_cpu = plugin && strcmp(plugin->key, "cpu") == 0;
    d->dtypes = with_storage_dtypes(TN_DTYPES_ALL);
    d->alignment = 64;
    snprintf(d->name, sizeof d->name, "%s:%d", plugin ? plugin->key : "meta", id.index);
    pthread_mutex_init(&d->lock, NULL);
    tn_status status = plugin ? open_parts(d) : tni_streams_init(d);
    if (status) {
        destroy(d);
        return status;
    }
    if (plugin) {
        tni_threads_apply(d);
        if (plugin->table->flags & TN_PLUGIN_FORK_SAFE)
            d->fork = tni_device_extension(d, TN_EXT_FORK);
    }
    tni_log_line(TN_LOG_INFO, "device", "%s is open%s%s", d->name, *d->product ? ": " : "",
                 d->product);
    *out = d;
    return TN_OK;
}

const void *tni_device_extension(const tni_device *d, const char *id) {
    const void *(*extension)(tn_instance *, const char *) =
        d->plugin ? TNI_SLOT(d->plugin->table, tn_plugin, extension) : NULL;
    return extension ? extension(d->plugin->self, id) : NULL;
}

/* Opens the device and publishes it. The caller holds the lock. */
static tni_device *open_locked(device_type *type, tn_device id) {
    tni_device *d = atomic_load_explicit(&type->devices[id.index], memory_order_acquire);
    if (d || make_device(type, id, &d))
        return d;
    atomic_store_explicit(&by_ordinal[n_open++], d, memory_order_release);
    atomic_store_explicit(&type->devices[id.index], d, memory_order_release);
    return d;
}

/* ---- types ------------------------------------------------------------------------------- */

/* The entry of `type` ("npu", "npu@com.acme", "meta"), starting its plugin. */
static device_type *type_named(const char *name, int32_t *out_id) {
    const tni_plugin *plugin = NULL;
    uint32_t n = 1;
    int backend;
    if (strcmp(name, "meta") == 0) {
        backend = tni_backend_id("meta");
    } else {
        plugin = tni_loader_get(name);
        if (!plugin)
            return NULL;
        backend = tni_backend_id(plugin->key);
        n = plugin->n_devices;
    }
    if (backend < 0)
        return NULL;
    *out_id = backend + 1;
    device_type *type = atomic_load_explicit(&types[backend + 1], memory_order_acquire);
    if (type)
        return type;
    if (tni_devices_enter())
        return NULL;
    type = atomic_load_explicit(&types[backend + 1], memory_order_acquire);
    if (!type) {
        type = tni_calloc(1, sizeof *type + n * sizeof type->devices[0]);
        if (type) {
            type->plugin = plugin;
            type->n_devices = n;
            atomic_store_explicit(&types[backend + 1], type, memory_order_release);
        } else {
            tni_fail_memory("the list of devices");
        }
    }
    tni_lock_give(&tni_devices_lock);
    return type;
}

tn_status tni_device_type_count(const char *type, int32_t *out_type, uint32_t *out_n) {
    const device_type *t = type_named(type, out_type);
    *out_n = t ? t->n_devices : 0;
    return t ? TN_OK : tn_error_status();
}

const char *tni_device_type_reason(int32_t type) {
    const device_type *t = atomic_load_explicit(&types[type], memory_order_acquire);
    return t->plugin && t->plugin->reason ? t->plugin->reason : "no devices found";
}

static tni_device *get_slow(tn_device id) {
    if (!tni_registry_ready())
        return NULL;
    const char *key =
        id.type > 0 && id.type <= TNI_MAX_BACKENDS ? tni_backend_name(id.type - 1) : NULL;
    if (!key)
        return tni_fail_null(
            TN_ERR_DEVICE,
            "{%d, %d} is no device; make one with tn_device_parse or tn_default_device", id.type,
            id.index);
    int32_t type_id;
    device_type *type = type_named(key, &type_id);
    if (!type)
        return NULL;
    if (id.index < 0 || (uint32_t)id.index >= type->n_devices)
        return tni_fail_null(TN_ERR_DEVICE, "%s:%d: there %s %u %s of type %s", key, id.index,
                             type->n_devices == 1 ? "is" : "are", type->n_devices,
                             type->n_devices == 1 ? "device" : "devices", key);
    if (tni_devices_enter())
        return NULL;
    tni_device *d = open_locked(type, id);
    tni_lock_give(&tni_devices_lock);
    return d;
}

tni_device *tni_device_get(tn_device id) {
    if (TNI_LIKELY(id.type > 0 && id.type <= TNI_MAX_BACKENDS)) {
        const device_type *type = atomic_load_explicit(&types[id.type], memory_order_acquire);
        if (TNI_LIKELY(type && (uint32_t)id.index < type->n_devices)) {
            tni_device *d = atomic_load_explicit(&type->devices[id.index], memory_order_acquire);
            if (TNI_LIKELY(d != NULL))
                return d;
        }
    }
    return get_slow(id);
}

tni_device *tni_device_at(uint32_t ordinal) {
    return ordinal < TNI_MAX_DEVICES
               ? atomic_load_explicit(&by_ordinal[ordinal], memory_order_acquire)
               : NULL;
}

/* ---- failing ----------------------------------------------------------------------------- */

tn_status tni_device_unusable(tni_device *d) {
    if (atomic_load(&d->forked))
        return tni_fail(TN_ERR_STATE,
                        "%s: was opened before this process was forked, and its plugin does not"
                        " say that devices outlive a fork; fork before the device is first used,"
                        " or start the child with exec",
                        d->name);
    return tni_fail(TN_ERR_DEVICE_LOST,
                    "%s: the device was lost and what it held is gone; use another device, or"
                    " start the program again",
                    d->name);
}

tn_status tni_device_fail(tni_device *d, tn_status status, const char *what) {
    char context[1536];
    snprintf(context, sizeof context, "%s: %s", d->name, what);
    status = tni_error_take_plugin(tni_device_notice(d, status), context);
    tni_capture_note_failure(d);
    return status;
}

/* ---- the end ----------------------------------------------------------------------------- */

/* A device of the parent is forgotten, not closed: its plugin's threads are not in this process. */
static void close_device(tni_device *d) {
    if (atomic_load(&d->forked)) {
        if (d->allocator)
            tni_allocator_abandon(d->allocator);
        tni_kernel_set_finish(&d->kernels);
        tni_streams_finish(d);
    } else {
        if (d->allocator)
            tni_allocator_destroy(d->allocator);
        tni_streams_finish(d);
        tni_events_finish(d);
        if (d->plugin)
            close_handle(d);
    }
    tni_error_plugin(TN_OK, NULL);
    tni_log_line(TN_LOG_INFO, "device", "%s is closed", d->name);
    destroy(d);
}

/* Waits for a stream. An error that nobody asked for is told to the log at least. */
static void finish_work(tn_stream *s, void *user) {
    tni_device *d = s->device;
    if (!s->handle || atomic_load(&d->lost))
        return;
    tni_saved_error saved;
    tni_error_save(&saved);
    if (tn_stream_synchronize(s))
        tni_log_line(TN_LOG_WARN, "device", "at the end: %s", tn_error_message());
    tni_error_restore(&saved);
}

/* First all devices come to rest, since blocks of one may wait for streams of another. */
static void rest(void) {
    for (uint32_t i = 0; i < n_open; i++)
        tni_device_for_each_stream(atomic_load(&by_ordinal[i]), finish_work, NULL);
    for (uint32_t i = 0; i < n_open; i++) {
        tni_device *d = atomic_load(&by_ordinal[i]);
        if (d->allocator && !atomic_load(&d->forked))
            tni_allocator_settle(d->allocator);
    }
}

void tni_devices_finish(void) {
    tni_lock_take(&tni_devices_lock);
    tni_current_streams_finish();
    rest();
    tni_pinned_finish();
    for (uint32_t i = n_open; i-- > 0;)
        close_device(atomic_exchange(&by_ordinal[i], NULL));
    n_open = 0;
    for (int i = 0; i <= TNI_MAX_BACKENDS; i++)
        tni_free(atomic_exchange(&types[i], NULL));
    tni_program_kernels_finish();
    tni_default_device_forget();
    tni_threads_finish();
    tni_lock_give(&tni_devices_lock);
}
