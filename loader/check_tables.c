/* Checks a plugin's tables before anything in them is used, so that a mistake is found when the
 * plugin is loaded and not when some call first reaches the hole. Nothing past a table's
 * struct_size is read, and nothing is called. */
#include "base/error.h"
#include "base/log.h"
#include "dispatcher/kernel_ops.h"
#include "loader/internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_TABLE_BYTES = 1 << 16, /* a struct_size beyond is no size but garbage */
    MAX_KERNELS = 1 << 16,
    ENTRY_MAJOR = 1, /* the last major version of tenon_plugin_query_v1 */
    MAX_ID = 127,
    MAX_TYPE = 31,
    MAX_TEXT = 255
};

/* Whose tables are looked at. */
typedef struct subject {
    const char *where;
    const char *id;   /* NULL until it was checked */
    bool newer;       /* built against a newer minor than this core */
    uint32_t version; /* abi_version */
} subject;

static tn_status refuse(const subject *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static tn_status refuse(const subject *s, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (s->id)
        return tni_fail(TN_ERR_ABI, "%s (%s): %s", s->where, s->id, text);
    return tni_fail(TN_ERR_ABI, "%s: %s", s->where, text);
}

/* Tables only grow: any version since `oldest` fits, unless the plugin itself says that it needs a
 * newer host. */
const char *tni_abi_misfit(uint32_t oldest, uint32_t host, uint32_t built, uint32_t required) {
    if (built < oldest)
        return "the plugin was built against an interface that is no longer taken; rebuild it"
               " against this Tenon's tenon/plugin.h";
    if (required > host)
        return "the plugin requires a newer Tenon (abi_required); update Tenon, or lower"
               " abi_required if the plugin can do without";
    if (built >> 16 > ENTRY_MAJOR)
        return "tables of that major version do not come from " TN_PLUGIN_QUERY_NAME
               "; set abi_version to TN_ABI_VERSION";
    return NULL;
}

static tn_status check_version(const subject *s, uint32_t required) {
    const char *misfit = tni_abi_misfit(TN_ABI_OLDEST, TN_ABI_VERSION, s->version, required);
    if (!misfit)
        return TN_OK;
    return refuse(s,
                  "abi_version is %" PRIu32 ".%" PRIu32 " and abi_required %" PRIu32 ".%" PRIu32
                  ", this Tenon has %u.%u and takes %u.%u or later: %s",
                  s->version >> 16, s->version & 0xffff, required >> 16, required & 0xffff,
                  TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_OLDEST >> 16, TN_ABI_OLDEST & 0xffff, misfit);
}

/* A table is there, aligned, and its size is one that a compiler could have given. */
static tn_status check_table(const subject *s, const char *field, const char *type,
                             const void *table) {
    if (!table)
        return refuse(s, "%s is NULL, but required; point it to a %s", field, type);
    if ((uintptr_t)table % 8 != 0)
        return refuse(s, "%s is not aligned to 8 bytes; do not pack %s", field, type);
    uint64_t size = *(const uint64_t *)table;
    if (size == 0)
        return refuse(s, "%s->struct_size is 0; set it to sizeof(%s)", field, type);
    if (size % 8 != 0 || size > MAX_TABLE_BYTES)
        return refuse(s,
                      "%s->struct_size is %" PRIu64
                      ", which is no multiple of 8 up to %d; set it to sizeof(%s)",
                      field, size, (int)MAX_TABLE_BYTES, type);
    return TN_OK;
}

/* ... and reaches the end of the last required member. */
static tn_status check_reach(const subject *s, const char *field, const char *type,
                             const void *table, uint64_t minimum, const char *last) {
    uint64_t size = *(const uint64_t *)table;
    if (size >= minimum)
        return TN_OK;
    return refuse(s,
                  "%s->struct_size is %" PRIu64 ", but %s->%s ends at %" PRIu64
                  " and is required; set struct_size to sizeof(%s)",
                  field, size, field, last, minimum, type);
}

#define END_OF(type, member) (offsetof(type, member) + sizeof(((const type *)0)->member))

/* CHECK_TABLE(field as the plugin's author writes it, table, type, last required member) */
#define CHECK_TABLE(field, table, type, last) \
    do { \
        tn_status status_ = check_table(s, field, #type, table); \
        if (!status_) \
            status_ = check_reach(s, field, #type, table, END_OF(type, last), #last); \
        if (status_) \
            return status_; \
    } while (0)

#define CHECK_SLOT(field, table, type, slot) \
    if (!TNI_SLOT(table, type, slot)) \
        return refuse(s, \
                      "%s" #slot " is NULL, but required; implement it as " #type "." #slot \
                      " of tenon/plugin.h says", \
                      field);

static tn_status check_memory(const subject *s, const tn_memory_ops *memory) {
    const char *field = "devices->memory->";
    CHECK_TABLE("devices->memory", memory, tn_memory_ops, fill);
    CHECK_SLOT(field, memory, tn_memory_ops, alloc)
    CHECK_SLOT(field, memory, tn_memory_ops, dealloc)
    CHECK_SLOT(field, memory, tn_memory_ops, copy_from_host)
    CHECK_SLOT(field, memory, tn_memory_ops, copy_to_host)
    CHECK_SLOT(field, memory, tn_memory_ops, copy)
    CHECK_SLOT(field, memory, tn_memory_ops, fill)
    return TN_OK;
}

static tn_status check_streams(const subject *s, const tn_stream_ops *streams,
                               const tn_event_ops *events) {
    if (!streams)
        return TN_OK;
    const char *field = "devices->streams->";
    CHECK_TABLE("devices->streams", streams, tn_stream_ops, synchronize);
    CHECK_SLOT(field, streams, tn_stream_ops, create)
    CHECK_SLOT(field, streams, tn_stream_ops, destroy)
    CHECK_SLOT(field, streams, tn_stream_ops, query)
    CHECK_SLOT(field, streams, tn_stream_ops, synchronize)
    if (!events)
        return refuse(s, "devices->events is NULL, but a device with streams needs events; provide"
                         " a tn_event_ops, or set devices->streams to NULL for a synchronous"
                         " device");
    field = "devices->events->";
    CHECK_TABLE("devices->events", events, tn_event_ops, synchronize);
    CHECK_SLOT(field, events, tn_event_ops, create)
    CHECK_SLOT(field, events, tn_event_ops, destroy)
    CHECK_SLOT(field, events, tn_event_ops, record)
    CHECK_SLOT(field, events, tn_event_ops, wait)
    CHECK_SLOT(field, events, tn_event_ops, query)
    CHECK_SLOT(field, events, tn_event_ops, synchronize)
    return TN_OK;
}

static tn_status check_devices(const subject *s, const tn_device_ops *devices) {
    const char *field = "devices->";
    CHECK_TABLE("devices", devices, tn_device_ops, memory);
    CHECK_SLOT(field, devices, tn_device_ops, count)
    CHECK_SLOT(field, devices, tn_device_ops, open)
    CHECK_SLOT(field, devices, tn_device_ops, close)
    CHECK_SLOT(field, devices, tn_device_ops, property)
    tn_status status = check_memory(s, devices->memory);
    if (status)
        return status;
    return check_streams(s, TNI_SLOT(devices, tn_device_ops, streams),
                         TNI_SLOT(devices, tn_device_ops, events));
}

/* ---- names ------------------------------------------------------------------------------- */

static bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}
static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool tni_type_name_ok(const char *name) {
    size_t n = 0;
    while (n <= MAX_TYPE && (is_lower(name[n]) || (n > 0 && (is_digit(name[n]) || name[n] == '_'))))
        n++;
    return n > 0 && n <= MAX_TYPE && name[n] == '\0';
}

/* com.acme.npu: at least two labels of lower-case letters, digits, - and _. */
static bool id_ok(const char *id) {
    size_t labels = 0, length = 0;
    size_t n = 0;
    if (!is_lower(id[0]))
        return false;
    for (; n <= MAX_ID && id[n]; n++) {
        if (id[n] == '.') {
            if (length == 0)
                return false;
            labels++;
            length = 0;
        } else if (is_lower(id[n]) || is_digit(id[n]) || id[n] == '-' || id[n] == '_') {
            length++;
        } else {
            return false;
        }
    }
    return n <= MAX_ID && labels >= 1 && length > 0;
}

static tn_status check_text(const subject *s, const char *field, const char *text) {
    if (!text)
        return refuse(s, "%s is NULL, but required; set it to a string", field);
    size_t n = strnlen(text, MAX_TEXT + 1);
    if (n == 0 || n > MAX_TEXT)
        return refuse(s, "%s is %s; write 1 to %d bytes", field, n ? "too long" : "empty",
                      (int)MAX_TEXT);
    return TN_OK;
}

static tn_status check_identity(subject *s, const tn_plugin *table) {
    tn_status status = check_text(s, "id", table->id);
    if (!status && !id_ok(table->id))
        status = refuse(s,
                        "id is '%.127s', which is no reverse domain name; write one like"
                        " 'com.acme.npu': two or more parts of lower-case letters, digits, - and"
                        " _, joined by dots",
                        table->id);
    if (status)
        return status;
    s->id = table->id;
    status = check_text(s, "device_type", table->device_type);
    if (!status && !tni_type_name_ok(table->device_type))
        status = refuse(s,
                        "device_type is '%.127s'; write what users put before the colon in"
                        " TENON_DEVICE=npu:0: a lower-case letter, then lower-case letters,"
                        " digits or _, at most %d characters",
                        table->device_type, (int)MAX_TYPE);
    if (!status && strcmp(table->device_type, "meta") == 0)
        status = refuse(s, "device_type is 'meta', which is Tenon's own; choose another name");
    if (!status)
        status = check_text(s, "name", table->name);
    if (!status)
        status = check_text(s, "version", table->version);
    return status;
}

/* ---- kernels ----------------------------------------------------------------------------- */

/* Can this core use the record? A plugin may bring operators, versions of them and dtypes that it has
 * not heard of. */
static const tni_kernel_op *usable(const tn_kernel *record) {
    const tni_kernel_op *op = tni_kernel_op_find(record->op);
    return op && record->schema_hash == op->hash && (record->dtypes[0] & TNI_DTYPES_KNOWN) ? op
                                                                                           : NULL;
}

static const uint64_t KNOWN_FLAGS = TN_KERNEL_STRIDED | TN_KERNEL_BROADCAST | TN_KERNEL_IN_PLACE |
                                    TN_KERNEL_INDEX64 | TN_KERNEL_SCALARS | TN_KERNEL_DETERMINISTIC;

/* "f32, f64" */
static const char *dtype_names(uint64_t mask, char out[128]) {
    static const char *const names[] = {
#define X(NAME, value, name, bytes, category) [value] = name,
        TN_DTYPE_MAP(X)
#undef X
    };
    size_t n = 0;
    for (int32_t d = 0; d < TN_DTYPE_COUNT; d++)
        if (mask & TN_DTYPE_BIT(d))
            n += (size_t)snprintf(out + n, 128 - n, "%s%s", n ? ", " : "", names[d]);
    return out;
}

/* One mask for each type variable, of dtypes that it takes. Of an operator that a program has defined
 * nothing is known but that it has one. */
static tn_status check_dtypes(const subject *s, const char *field, const tn_kernel *record,
                              const tni_kernel_op *op) {
    static const tni_kernel_types any = {.n_types = 1, .dtypes = {TNI_DTYPES_KNOWN}};
    const tni_kernel_types *types =
        op->index < TNI_KERNEL_COUNT ? &tni_kernel_types_of[op->index] : &any;
    for (uint32_t i = 0; i < TN_KERNEL_MAX_TYPES; i++) {
        uint64_t mask = record->dtypes[i], taken = i < types->n_types ? types->dtypes[i] : 0;
        char wrong[128], right[128];
        if ((mask & ~TNI_DTYPES_KNOWN) && !s->newer)
            return refuse(s,
                          "%s: dtypes[%u] is %#" PRIx64
                          ", with bits that are no dtype; build it from TN_DTYPE_BIT(...)",
                          field, i, mask);
        if (i < types->n_types && mask == 0)
            return refuse(s,
                          "%s: dtypes[%u] is 0, so it would never run; set the mask of dtypes it"
                          " accepts",
                          field, i);
        if (i >= types->n_types && mask && types != &any)
            return refuse(s,
                          "%s: dtypes[%u] is set, but the operator has only %u type variable%s;"
                          " leave it 0",
                          field, i, types->n_types, types->n_types == 1 ? "" : "s");
        if (i < types->n_types && (mask & ~taken) && !s->newer)
            return refuse(s,
                          "%s: dtypes[%u] has %s, and the operator takes %s there; leave the others"
                          " out",
                          field, i, dtype_names(mask & ~taken, wrong), dtype_names(taken, right));
    }
    return TN_OK;
}

static tn_status check_kernel(const subject *s, const tn_kernel *record, uint64_t position) {
    char field[160];
    snprintf(field, sizeof field, "kernels[%" PRIu64 "]", position);
    tn_status status = check_table(s, field, "tn_kernel", record);
    if (!status)
        status = check_reach(s, field, "tn_kernel", record, END_OF(tn_kernel, run), "run");
    if (status)
        return status;
    if (!record->op || !*record->op)
        return refuse(s, "%s->op is %s; set it to a TN_KERNEL_... of tenon/kernels.h", field,
                      record->op ? "empty" : "NULL");
    const tni_kernel_op *op = tni_kernel_op_find(record->op);
    if (!op)
        return TN_OK;
    snprintf(field, sizeof field, "kernels[%" PRIu64 "] '%.80s'", position, record->op);
    if (record->schema_hash != op->hash) {
        tni_log_line(TN_LOG_WARN, "loader",
                     "%s: %s is skipped: schema_hash is %#018" PRIx64
                     ", but this core's schema %s has %#018" PRIx64
                     "; rebuild against this Tenon's tenon/kernels.h and use TN_KERNEL_HASH_...",
                     s->where, field, record->schema_hash, op->schema, op->hash);
        return TN_OK;
    }
    status = check_dtypes(s, field, record, op);
    if (status)
        return status;
    if (op->index == TNI_KERNEL_copy && !(record->flags & TN_KERNEL_STRIDED))
        return refuse(
            s,
            "%s: flags lack TN_KERNEL_STRIDED, and the core brings tensors into shape with"
            " copy; take any strides, and set it",
            field);
    if ((record->flags & ~KNOWN_FLAGS) && !s->newer)
        tni_log_line(TN_LOG_WARN, "loader",
                     "%s: %s: flags are %#" PRIx64 ", of which %#" PRIx64
                     " means nothing; build them from TN_KERNEL_... alone",
                     s->where, field, record->flags, record->flags & ~KNOWN_FLAGS);
    if (!record->run)
        return refuse(s, "%s: run is NULL, but required; set it, or leave the record out", field);
    return TN_OK;
}

/* Does the earlier record take every call that the later one takes as it is, so that the later one's
 * turn never comes? */
static bool hides(const tn_kernel *earlier, const tn_kernel *later) {
    if ((later->flags & ~earlier->flags) || TNI_SLOT(earlier, tn_kernel, supports) ||
        TNI_SLOT(earlier, tn_kernel, prepare))
        return false;
    for (uint32_t i = 0; i < TN_KERNEL_MAX_TYPES; i++)
        if (later->dtypes[i] & ~earlier->dtypes[i])
            return false;
    return true;
}

static tn_status check_kernels(const subject *s, const tn_kernel *const *kernels, uint64_t n) {
    if (n == 0)
        return TN_OK;
    if (!kernels)
        return refuse(s, "kernels is NULL, but n_kernels is %" PRIu64 "; set both or neither", n);
    if ((uintptr_t)kernels % 8 != 0)
        return refuse(s, "kernels is not aligned to 8 bytes; make it an array of pointers");
    if (n > MAX_KERNELS)
        return refuse(s, "n_kernels is %" PRIu64 ", more than %d; set it to the length of kernels",
                      n, (int)MAX_KERNELS);
    for (uint64_t i = 0; i < n; i++) {
        tn_status status = check_kernel(s, kernels[i], i);
        if (status)
            return status;
        if (!usable(kernels[i]))
            continue;
        for (uint64_t j = 0; j < i; j++) {
            const tn_kernel *a = kernels[j], *b = kernels[i];
            /* Equal hashes first: a string comparison for each pair would be slow. */
            if (a->schema_hash == b->schema_hash && strcmp(a->op, b->op) == 0 && hides(a, b))
                tni_log_line(TN_LOG_WARN, "loader",
                             "%s: kernels[%" PRIu64 "] '%.80s' is never reached, unless run of"
                             " kernels[%" PRIu64
                             "] declines: that takes the same dtypes with the same flags; leave one"
                             " out, or put the special one first",
                             s->where, i, b->op, j);
        }
    }
    return TN_OK;
}

static uint64_t kernels_of(const tn_plugin *table, const tn_kernel *const **out) {
    *out = TNI_SLOT(table, tn_plugin, kernels);
    return TN_HAS(table, tn_plugin, n_kernels) ? table->n_kernels : 0;
}

tn_status tni_plugin_validate(const tn_plugin *table, const char *where) {
    subject subject_ = {.where = where};
    subject *s = &subject_;
    tn_status status = check_table(s, "tn_plugin", "tn_plugin", table);
    if (status)
        return status;
    /* The version before the size, which a plugin of another version has a right to differ in. */
    CHECK_TABLE("tn_plugin", table, tn_plugin, abi_required);
    s->version = table->abi_version;
    s->newer = table->abi_version > TN_ABI_VERSION;
    status = check_version(s, table->abi_required);
    if (status)
        return status;
    CHECK_TABLE("tn_plugin", table, tn_plugin, devices);
    status = check_identity(s, table);
    if (status)
        return status;
    CHECK_SLOT("", table, tn_plugin, init)
    CHECK_SLOT("", table, tn_plugin, shutdown)
    status = check_devices(s, table->devices);
    if (status)
        return status;
    const tn_kernel *const *kernels;
    uint64_t n = kernels_of(table, &kernels);
    return check_kernels(s, kernels, n);
}

void tni_plugin_count_kernels(const tn_plugin *table, uint32_t *out_known, uint32_t *out_unknown) {
    const tn_kernel *const *kernels;
    uint64_t n = kernels_of(table, &kernels);
    *out_known = *out_unknown = 0;
    for (uint64_t i = 0; i < n; i++)
        ++*(usable(kernels[i]) ? out_known : out_unknown);
}
