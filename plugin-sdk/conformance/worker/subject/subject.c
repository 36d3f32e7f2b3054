/* See subject.h. */
#include "plugin-sdk/conformance/worker/subject/subject.h"

#include "plugin-sdk/conformance/worker/subject/held.h"
#include "plugin-sdk/conformance/worker/subject/watch.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define WRONG(requirement, ...) \
    (s->broken = (requirement), snprintf(why, TC_MESSAGE, __VA_ARGS__), false)

const char *tc_tn_status_name(tn_status status) {
#define NAME(NAME, value, name, text) "TN_" #NAME,
    static const char *const names[] = {TN_STATUS_MAP(NAME)};
#undef NAME
    return status >= 0 && status < TN_STATUS_COUNT ? names[status] : "a status that is none";
}

char *tc_reason(tn_status status, char out[TC_MESSAGE]) {
    const char *message = tc_host_message();
    snprintf(out, TC_MESSAGE, "%s: %.200s", tc_tn_status_name(status),
             *message ? message : "no message");
    return out;
}

bool tc_subject_load(tc_subject *s, const char *path, const tn_host *host, char why[TC_MESSAGE]) {
    tc_watch w;
    memset(s, 0, sizeof *s);
    tc_watch_begin(&w);
    s->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    tc_watch_end(&w, "dlopen");
    if (!s->object)
        return WRONG(TNP_ENTRY_SELF_CONTAINED, "dlopen: %.200s", dlerror());
    tn_plugin_query_fn query;
    *(void **)&query = dlsym(s->object, TN_PLUGIN_QUERY_NAME);
    if (!query)
        return WRONG(TNP_ENTRY_ONLY_SYMBOL, "the object does not export %s", TN_PLUGIN_QUERY_NAME);
    s->plugin = query(host);
    if (!s->plugin)
        return WRONG(TNP_ENTRY_HOST_VERSIONS, "%s returned NULL", TN_PLUGIN_QUERY_NAME);
    if (!TN_HAS(s->plugin, tn_plugin, n_kernels) || !s->plugin->init || !s->plugin->shutdown ||
        !s->plugin->devices || !s->plugin->devices->memory || !s->plugin->device_type)
        return WRONG(TNP_TABLE_REQUIRED_MEMBERS, "the plugin's table lacks what is required");
    s->ops = tc_watch_devices(s->plugin->devices);
    s->memory = s->ops->memory;
    tc_host_set_type(s->plugin->device_type);
    return true;
}

int64_t tc_subject_property(const tc_subject *s, uint32_t index, int32_t property,
                            int64_t otherwise) {
    tn_cell value = {.tag = TN_CELL_NONE};
    if (s->ops->property(s->self, index, property, &value) != TN_OK)
        return otherwise;
    return value.tag == TN_CELL_BOOL  ? value.v.boolean
           : value.tag == TN_CELL_I64 ? value.v.i64
                                      : otherwise;
}

void tc_subject_describe(tc_subject *s, uint32_t index) {
    s->index = index;
    s->alignment = (uint64_t)tc_subject_property(s, index, TN_PROP_ALIGNMENT, 64);
    s->max_allocation = (uint64_t)tc_subject_property(s, index, TN_PROP_MAX_ALLOCATION, 0);
    s->dtypes = (uint64_t)tc_subject_property(s, index, TN_PROP_DTYPES, (int64_t)TN_DTYPES_ALL);
    s->flushes = (uint64_t)tc_subject_property(s, index, TN_PROP_FLUSHES_SUBNORMALS, 0);
    s->spaces = (uint64_t)tc_subject_property(s, index, TN_PROP_SPACES, 1 << TN_SPACE_DEVICE);
    s->host_memory = tc_subject_property(s, index, TN_PROP_UNIFIED_MEMORY, 0) != 0;
}

const void *tc_subject_extension(const tc_subject *s, const char *id) {
    return TN_HAS(s->plugin, tn_plugin, extension) && s->plugin->extension
               ? s->plugin->extension(s->self, id)
               : NULL;
}

static bool start(tc_subject *s, const char *path, uint32_t index, const tn_host *host,
                  char why[TC_MESSAGE]) {
    char reason[TC_MESSAGE];
    tc_host_forget();
    tc_host_begin(host);
    s->host = host;
    tc_watch w;
    tc_watch_begin(&w);
    tn_status status = s->plugin->init(host, path, &s->self);
    tc_watch_end(&w, "init");
    if (status != TN_OK || !s->self)
        return WRONG(TNP_INIT_RESULT, "init: %.200s", tc_reason(status, reason));
    status = s->ops->count(s->self, &s->n_devices);
    if (status != TN_OK)
        return WRONG(TNP_COUNT_DEVICES, "count: %.200s", tc_reason(status, reason));
    if (index >= s->n_devices)
        return WRONG(TNP_NONE, "there is no device %u: the plugin counts %u%s%.200s", index,
                     s->n_devices, *tc_host_message() ? ": " : "", tc_host_message());
    status = s->ops->open(s->self, index, &s->device);
    if (status != TN_OK || !s->device)
        return WRONG(TNP_OPEN_DEVICE, "open of device %u: %.200s", index,
                     tc_reason(status, reason));
    tc_subject_describe(s, index);
    if (!s->ops->streams)
        return true;
    status = s->ops->streams->create(s->device, 0, &s->stream);
    return status == TN_OK && s->stream
               ? true
               : WRONG(TNP_STREAM_CREATE, "stream create: %.200s", tc_reason(status, reason));
}

bool tc_subject_open(tc_subject *s, const char *path, uint32_t index, const tn_host *host,
                     char why[TC_MESSAGE]) {
    if (!tc_subject_load(s, path, host, why))
        return false;
    if (start(s, path, index, host, why))
        return true;
    tc_subject_close(s);
    return false;
}

void tc_subject_close(tc_subject *s) {
    if (s->stream)
        s->ops->streams->destroy(s->stream);
    if (s->device)
        s->ops->close(s->device);
    if (s->self) {
        tc_watch w;
        tc_watch_begin(&w);
        s->plugin->shutdown(s->self);
        tc_watch_end(&w, "shutdown");
    }
    s->stream = NULL;
    s->device = NULL;
    s->self = NULL;
    tc_host_end(s->host);
}

/* What alloc gives is as it was, or cleared, where it fails; what was asked of it is as it was. */
bool tc_has_info(const tc_subject *s) {
    return TN_HAS(s->memory, tn_memory_ops, info) && s->memory->info;
}

bool tc_is_as_asked(tn_allocation now, const tn_allocation *asked) {
    if (now.memory == 0)
        now.memory = asked->memory;
    if (!now.host)
        now.host = asked->host;
    return memcmp(&now, asked, sizeof now) == 0;
}

static void check_refused(const tn_allocation *asked, const tn_allocation *now) {
    if (!tc_is_as_asked(*now, asked))
        tc_host_blame(TNP_ALLOC_OUT_OF_MEMORY,
                      "alloc of %llu bytes failed, and changed the tn_allocation",
                      (unsigned long long)asked->bytes);
}

/* Why this thread's last allocation came to nothing, where that is no fault of the device's. */
typedef struct lacking {
    bool too_large, full;
    uint64_t bytes, most;
} lacking;
static _Thread_local lacking lack;

/* `info` may fail with a message of its own: that of the refusal stays. */
static bool fills(const tc_subject *s, int32_t space, uint64_t bytes, uint64_t given) {
    char message[TC_MESSAGE];
    tn_status status = tc_host_message_status();
    snprintf(message, sizeof message, "%s", tc_host_message());
    bool full = tc_held_fills(s->memory, s->device, space, bytes, given);
    tc_host_remember(status, message);
    return full;
}

bool tc_lacks(tn_status status) {
    return status == TN_ERR_OUT_OF_MEMORY && (lack.too_large || lack.full);
}

bool tc_excuses(tc_verdict *verdict, tn_requirement requirement, tn_status status,
                const char *what) {
    if (!tc_lacks(status) || (requirement == TNP_FREE_RETURNS_MEMORY && !lack.too_large))
        return false;
    if (lack.too_large)
        tc_verdict_set(verdict, TC_UNSUPPORTED, TNP_NONE,
                       "%s: it takes %llu bytes in one, and TN_PROP_MAX_ALLOCATION is %llu", what,
                       (unsigned long long)lack.bytes, (unsigned long long)lack.most);
    else
        tc_verdict_set(verdict, TC_UNSUPPORTED, TNP_NONE,
                       "%s: the device has no %llu bytes beside all that the case holds", what,
                       (unsigned long long)lack.bytes);
    return true;
}

tn_status tc_alloc(const tc_subject *s, int32_t space, uint64_t bytes, tn_memory *out_memory,
                   void **out_host) {
    uint64_t most = space == TN_SPACE_DEVICE ? s->max_allocation : 0;
    if (!most || bytes <= most)
        return tc_alloc_any(s, space, bytes, out_memory, out_host);
    lack = (lacking){.too_large = true, .bytes = bytes, .most = most};
    tc_host_remember(TN_ERR_OUT_OF_MEMORY, "more than TN_PROP_MAX_ALLOCATION in one");
    *out_memory = 0;
    *out_host = NULL;
    return TN_ERR_OUT_OF_MEMORY;
}

tn_status tc_alloc_any(const tc_subject *s, int32_t space, uint64_t bytes, tn_memory *out_memory,
                       void **out_host) {
    tn_allocation allocation = {.struct_size = sizeof allocation,
                                .bytes = bytes,
                                .alignment = s->alignment,
                                .space = space,
                                .memory = UINT64_C(0x5a5a5a5a5a5a5a5a),
                                .host = &allocation};
    tn_allocation asked = allocation;
    uint64_t given = tc_held_given();
    tn_status status = s->memory->alloc(s->device, &allocation);
    lack = (lacking){0};
    if (status != TN_OK)
        check_refused(&asked, &allocation);
    if (status == TN_ERR_OUT_OF_MEMORY) {
        lack.full = fills(s, space, bytes, given);
        lack.bytes = bytes;
    }
    if (status == TN_OK && allocation.memory == 0) { /* which nobody may give back */
        tc_host_blame(TNP_ALLOC_HANDLE, "alloc: TN_OK with handle 0, which is no memory");
        status = TN_ERR_INTERNAL;
    }
    *out_memory = status == TN_OK ? allocation.memory : 0;
    *out_host = status == TN_OK ? allocation.host : NULL;
    return status;
}

uint64_t tc_free_bytes(const tc_subject *s) {
    tn_memory_info info = {.struct_size = sizeof info};
    bool known = !s->host_memory && tc_has_info(s) &&
                 s->memory->info(s->device, TN_SPACE_DEVICE, &info) == TN_OK;
    return known && info.free_bytes ? info.free_bytes : UINT64_MAX;
}

tn_status tc_subject_sync(tc_subject *s) {
    return s->stream ? s->ops->streams->synchronize(s->stream) : TN_OK;
}

/* ---- the shared one ---------------------------------------------------------------------- */

static tc_subject shared;
static bool shared_open;

tc_subject *tc_subject_shared(const tc_options *options, tc_verdict *out) {
    char why[TC_MESSAGE];
    lack = (lacking){0}; /* of the case before */
    if (shared_open)
        return &shared;
    if (!tc_subject_open(&shared, options->plugin, options->device, tc_host_table(), why)) {
        tc_verdict_set(out, shared.broken ? TC_FAIL : TC_ERROR, shared.broken,
                       TC_CANNOT_OPEN ": %s", why);
        return NULL;
    }
    shared_open = true;
    return &shared;
}

void tc_subject_shared_close(void) {
    if (shared_open)
        tc_subject_close(&shared);
    shared_open = false;
}
