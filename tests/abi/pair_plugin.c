/* A plugin of one side of a pairing, built from the header of this version and from those of the next
 * (next_minor.py): one device in host memory whose streams have done everything at once, and records
 * that another version need not know. Each table ends where its page does, the next page cannot be read:
 * who reads a member that is not there is caught.
 *
 * PAIR_RAISED: TN_ABI_TARGET is the next version, and abi_required the oldest: whatever the next version
 * added is used, where the host has it. PAIR_REQUIRES: no older host will do. */
#define _GNU_SOURCE
#include "tests/abi/pair_plugin.h"
#include "tests/support/host_memory_device.h"

#include <string.h>
#include <sys/mman.h>
#include <tenon/kernels.h>

TN_PLUGIN_EXPORT extern pair_counts pair_seen;
pair_counts pair_seen;

#ifdef PAIR_RAISED
/* A struct of the host has what was added where the host is as new as that, and only there. */
#define LATER(p, type) \
    (pair_seen.n_wrong += TN_HAS(p, type, later) != (plain_host->abi_version >= TN_ABI_VERSION))
#else
#define LATER(p, type) (void)(p)
#endif

/* ---- streams and events: done at once ---------------------------------------------------- */

struct tn_stream_impl {
    char one;
};
struct tn_event_impl {
    char one;
};

static tn_status create_stream(tn_device_impl *device, int32_t priority, tn_stream_impl **out) {
    *out = plain_host->alloc(plain_host, sizeof **out, 8);
    return *out ? TN_OK : plain_host->fail(plain_host, TN_ERR_OUT_OF_MEMORY, "no host memory");
}
static void destroy_stream(tn_stream_impl *stream) {
    plain_host->dealloc(plain_host, stream);
}
static tn_status stream_done(tn_stream_impl *stream) {
    return TN_OK;
}

static tn_status create_event(tn_device_impl *device, uint32_t flags, tn_event_impl **out) {
    *out = NULL;
    if (flags & ~(uint32_t)TN_EVENT_TIMING)
        return plain_host->fail(plain_host, TN_ERR_UNSUPPORTED, "no such event");
    *out = plain_host->alloc(plain_host, sizeof **out, 8);
    return *out ? TN_OK : plain_host->fail(plain_host, TN_ERR_OUT_OF_MEMORY, "no host memory");
}
static void destroy_event(tn_event_impl *event) {
    plain_host->dealloc(plain_host, event);
}
static tn_status record(tn_event_impl *event, tn_stream_impl *stream) {
    return TN_OK;
}
static tn_status wait(tn_stream_impl *stream, tn_event_impl *event) {
    return TN_OK;
}
static tn_status event_done(tn_event_impl *event) {
    return TN_OK;
}

/* ---- memory and properties --------------------------------------------------------------- */

static tn_status alloc(tn_device_impl *device, tn_allocation *a) {
    LATER(a, tn_allocation);
    if (a->space != TN_SPACE_DEVICE)
        return plain_host->fail(plain_host, TN_ERR_UNSUPPORTED, "no such memory");
    return plain_alloc(device, a);
}

static tn_status info(tn_device_impl *device, int32_t space, tn_memory_info *out) {
    LATER(out, tn_memory_info);
    if (space != TN_SPACE_DEVICE)
        return plain_host->fail(plain_host, TN_ERR_UNSUPPORTED, "only of the device's memory");
    out->total_bytes = UINT64_C(1) << 30;
    out->free_bytes = UINT64_C(1) << 29;
    return TN_OK;
}

static tn_status property(tn_instance *self, uint32_t index, int32_t which, tn_cell *out) {
    if (which > pair_seen.highest_property)
        pair_seen.highest_property = which;
    switch (which) {
    case TN_PROP_NAME:
        *out = (tn_cell){.tag = TN_CELL_STRING, .v.string = "one of a pair"};
        return TN_OK;
#ifdef PAIR_RAISED
    case TN_PROP_DTYPES:
        *out = (tn_cell){.tag = TN_CELL_I64, .v.i64 = TN_DTYPES_ALL | TN_DTYPE_BIT(TN_U16)};
        return TN_OK;
    case TN_PROP_SPACES:
        *out = (tn_cell){.tag = TN_CELL_I64, .v.i64 = 1 << TN_SPACE_DEVICE | 1 << TN_SPACE_LATER};
        return TN_OK;
    case TN_PROP_LATER:
        *out = (tn_cell){.tag = TN_CELL_LATER, .v.i64 = 1};
        return TN_OK;
#endif
    default:
        return TN_ERR_UNSUPPORTED;
    }
}

/* ---- kernels ----------------------------------------------------------------------------- */

static float *floats(const tn_tensor_view *view) {
    LATER(view, tn_tensor_view);
    return (float *)(void *)plain_at(view->memory, view->offset);
}

static tn_status prepare(const tn_call *call, tn_plan *out) {
    LATER(call, tn_call);
    LATER(out, tn_plan);
    out->workspace_bytes = 64;
    out->cookie = 7;
    return TN_OK;
}

static tn_status add(const tn_call *call) {
    LATER(call, tn_call);
    const float *a = floats(call->args[TN_ARG_add_self].v.view);
    const float *b = floats(call->args[TN_ARG_add_other].v.view);
    float alpha = (float)call->args[TN_ARG_add_alpha].v.f64;
    float *out = floats(call->outs[0]);
    pair_seen.n_calls++;
    pair_seen.n_wrong += call->cookie != 7 || !call->workspace;
    for (int64_t i = 0; i < call->outs[0]->numel; i++)
        out[i] = a[i] + alpha * b[i];
    return TN_OK;
}

/* The one that fails. */
static tn_status neg(const tn_call *call) {
#ifdef PAIR_RAISED
    return plain_host->fail(plain_host, TN_ERR_LATER, "the coolant is warm");
#else
    return plain_host->fail(plain_host, TN_ERR_IO, "the coolant is warm");
#endif
}

#ifdef PAIR_RAISED
#define ADD_DTYPES (TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_U16))
#define ADD_FLAGS TN_KERNEL_LATER
static void later(void) {}
#define WITH_LATER .later = later,
#define PLUGIN_FLAGS TN_PLUGIN_LATER
#define REQUIRED TN_ABI_OLDEST
#else
#define ADD_DTYPES TN_DTYPE_BIT(TN_F32)
#define ADD_FLAGS 0
#define WITH_LATER
#define PLUGIN_FLAGS 0
#ifdef PAIR_REQUIRES
#define REQUIRED TN_ABI_VERSION
#else
#define REQUIRED TN_ABI_TARGET
#endif
#endif

#define RECORD(name, ...) \
    { \
        .struct_size = sizeof(tn_kernel), .op = TN_KERNEL_##name, \
        .schema_hash = TN_KERNEL_HASH_##name, WITH_LATER __VA_ARGS__ \
    }

static const tn_kernel records[] = {
    RECORD(add, .dtypes = {ADD_DTYPES}, .flags = ADD_FLAGS, .run = add, .prepare = prepare),
    RECORD(neg, .dtypes = {TN_DTYPE_BIT(TN_F32)}, .run = neg),
    RECORD(cumsum, .dtypes = {TN_DTYPE_BIT(TN_F32)}, .run = neg),
    {.struct_size = sizeof(tn_kernel),
     .op = "acme::fuse",
     .schema_hash = 1,
     .dtypes = {TN_DTYPE_BIT(TN_F32)},
     .run = neg},
#ifdef PAIR_RAISED
    RECORD(entangle, .dtypes = {TN_DTYPE_BIT(TN_F32)}, .run = neg),
    RECORD(mul, .dtypes = {TN_DTYPE_BIT(TN_U16)}, .run = neg),
#endif
};
enum { N_RECORDS = sizeof records / sizeof *records };

/* ---- the tables -------------------------------------------------------------------------- */

static const tn_kernel *kernels[N_RECORDS];

enum { PAGE = 4096 };
static const tn_plugin *plugin;

/* Two pages, of which the second cannot be read: not static ones, which LeakSanitizer reads. */
static void *before_page(const void *table, size_t size) {
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + PAGE, PAGE, PROT_NONE);
    return memcpy(pages + PAGE - size, table, size);
}
#define BEFORE_PAGE(type, ...) \
    before_page(&(type){.struct_size = sizeof(type), WITH_LATER __VA_ARGS__}, sizeof(type))

__attribute__((constructor)) static void make_tables(void) {
    const tn_memory_ops *memory = BEFORE_PAGE(
        tn_memory_ops, .alloc = alloc, .dealloc = plain_free, .copy_from_host = plain_write,
        .copy_to_host = plain_read, .copy = plain_copy, .fill = plain_fill, .info = info);
    const tn_stream_ops *streams =
        BEFORE_PAGE(tn_stream_ops, .create = create_stream, .destroy = destroy_stream,
                    .query = stream_done, .synchronize = stream_done);
    const tn_event_ops *events =
        BEFORE_PAGE(tn_event_ops, .create = create_event, .destroy = destroy_event,
                    .record = record, .wait = wait, .query = event_done, .synchronize = event_done);
    const tn_device_ops *devices =
        BEFORE_PAGE(tn_device_ops, .count = plain_count, .open = plain_open, .close = plain_close,
                    .property = property, .memory = memory, .streams = streams, .events = events);
    for (int i = 0; i < N_RECORDS; i++)
        kernels[i] = before_page(&records[i], sizeof records[i]);
    plugin = BEFORE_PAGE(tn_plugin, .abi_version = TN_ABI_VERSION, .abi_required = REQUIRED,
                         .flags = PLUGIN_FLAGS, .id = "org.tenon.pair", .device_type = "pair",
                         .name = "one of a pair", .version = "1.0", .init = plain_init,
                         .shutdown = plain_shutdown, .devices = devices, .kernels = kernels,
                         .n_kernels = N_RECORDS);
}

const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
#ifndef PAIR_REQUIRES /* that one leaves it to the host to say so */
    if (!TN_HAS(host, tn_host, option) || host->abi_version < plugin->abi_required)
        return NULL;
#endif
#ifdef PAIR_RAISED
    pair_seen.n_wrong += TN_HAS(host, tn_host, later) != (host->abi_version >= TN_ABI_VERSION);
#endif
    return plugin;
}
