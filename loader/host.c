/* The host table: everything a plugin may call, and the options it can ask for.
 *
 * None of it takes the loader's lock: a plugin may call it from its init, which runs under that
 * lock, and from threads of its own. The lock here is a leaf; nothing foreign is called under it.
 */
#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/log.h"
#include "loader/internal.h"

#include <stdio.h>
#include <string.h>

/* A value that was set, or that was read from the environment and is kept because the plugin may
 * hold on to it. */
typedef struct option {
    struct option *next;
    char *type; /* "npu" or "npu@com.acme" */
    char *name;
    char *value;
    bool from_environment;
} option;

static tni_lock lock = TNI_LOCK_INITIALIZER;
static option *options;
static tni_candidate *running;

/* Missed in a child: an option may be there twice or not yet. */
TNI_FORK_LOCK(HOST, lock, tni_fork_as_it_is)

void tni_host_started(tni_candidate *candidate) {
    tni_lock_take(&lock);
    candidate->next_running = running;
    running = candidate;
    tni_lock_give(&lock);
}

void tni_host_stopped(tni_candidate *candidate) {
    tni_lock_take(&lock);
    tni_candidate **at = &running;
    while (*at && *at != candidate)
        at = &(*at)->next_running;
    if (*at)
        *at = candidate->next_running;
    tni_lock_give(&lock);
}

static const tni_plugin *plugin_of(const tn_host *host) {
    const char *at = (const char *)host - offsetof(tni_candidate, host);
    return &((const tni_candidate *)(const void *)at)->plugin;
}

/* ---- the slots --------------------------------------------------------------------------- */

static void *host_alloc(const tn_host *host, uint64_t bytes, uint64_t alignment) {
    (void)host;
    if (alignment & (alignment - 1)) {
        tni_log_line(TN_LOG_ERROR, "plugin", "host->alloc: alignment %llu is no power of two",
                     (unsigned long long)alignment);
        return NULL;
    }
    return tni_alloc_aligned(bytes, alignment);
}

static void host_dealloc(const tn_host *host, void *p) {
    (void)host;
    tni_free(p);
}

static void host_log_message(const tn_host *host, int32_t level, const char *message) {
    if (level < TN_LOG_ERROR)
        level = TN_LOG_ERROR;
    if (level > TN_LOG_TRACE)
        level = TN_LOG_TRACE;
    if (!tni_log_on(level, "plugin"))
        return;
    const tni_plugin *plugin = plugin_of(host);
    const char *id = plugin->table  ? plugin->table->id
                     : plugin->path ? plugin->path
                                    : "(linked into the program)";
    tni_log_line(level, "plugin", "%s: %s", id, message ? message : "(no message)");
}

static tn_status host_fail(const tn_host *host, tn_status status, const char *message) {
    (void)host;
    return tni_error_plugin(status, message);
}

bool tni_option_variable(char *out, size_t size, const char *type, const char *name) {
    int n = snprintf(out, size, "TENON_%s_%s", type, name);
    if (n < 0 || (size_t)n >= size)
        return false;
    for (char *p = out; *p; p++) {
        if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
        else if (!((*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9')))
            *p = '_';
    }
    for (int i = 0; i < TNI_ENV_COUNT; i++)
        if (strcmp(tni_env_table[i].name, out) == 0)
            return false;
    return true;
}

/* Both under the lock. */
static option *find_option(const char *type, const char *name) {
    for (option *o = options; o; o = o->next)
        if (strcmp(o->type, type) == 0 && strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

static option *add_option(const char *type, const char *name, const char *value) {
    option *o = tni_calloc(1, sizeof *o);
    if (!o)
        return NULL;
    *o = (option){.type = tni_strdup(type), .name = tni_strdup(name), .value = tni_strdup(value)};
    if (!o->type || !o->name || !o->value) {
        tni_free(o->type);
        tni_free(o->name);
        tni_free(o->value);
        tni_free(o);
        return NULL;
    }
    o->next = options;
    options = o;
    return o;
}

/* Under the lock. Without memory one is forgotten, and at worst told to be none of the plugin's. */
static void note_asked(tni_candidate *candidate, const char *name) {
    for (const tni_asked *a = candidate->asked; a; a = a->next)
        if (strcmp(a->name, name) == 0)
            return;
    tni_asked *a = tni_alloc(sizeof *a + strlen(name) + 1);
    if (!a)
        return;
    strcpy(a->name, name);
    a->next = candidate->asked;
    candidate->asked = a;
}

const tni_asked *tni_host_asked(const tni_plugin *plugin) {
    tni_lock_take(&lock);
    const tni_asked *asked = tni_candidate_of(plugin)->asked;
    tni_lock_give(&lock);
    return asked;
}

void tni_host_forget(tni_candidate *candidate) {
    tni_lock_take(&lock);
    tni_asked *asked = candidate->asked;
    candidate->asked = NULL;
    tni_lock_give(&lock);
    for (tni_asked *next; asked; asked = next) {
        next = asked->next;
        tni_free(asked);
    }
}

static const char *host_option(const tn_host *host, const char *name) {
    const tni_plugin *plugin = plugin_of(host);
    if (!name || !plugin->table)
        return NULL;
    const char *type = plugin->table->device_type;
    tni_lock_take(&lock);
    note_asked(tni_candidate_of(plugin), name);
    option *o = plugin->key ? find_option(plugin->key, name) : NULL;
    if (!o)
        o = find_option(type, name);
    char variable[256];
    if (!o && tni_option_variable(variable, sizeof variable, type, name)) {
        /* Copied: the environment may change, and the plugin may keep the string. */
        const char *value = tni_env_raw(variable);
        if (value && (o = add_option(type, name, value)))
            o->from_environment = true;
    }
    const char *value = o ? o->value : NULL;
    tni_lock_give(&lock);
    return value;
}

static const void *host_extension(const tn_host *host, const char *id) {
    (void)host;
    (void)id; /* none is offered yet; an id that is not known has no table */
    return NULL;
}

void tni_host_init(tni_candidate *candidate) {
    candidate->host = (tn_host){
        .struct_size = sizeof(tn_host),
        .abi_version = TN_ABI_VERSION,
        .alloc = host_alloc,
        .dealloc = host_dealloc,
        .log_message = host_log_message,
        .fail = host_fail,
        .option = host_option,
        .extension = host_extension,
    };
}

/* ---- the program's side of options ------------------------------------------------------- */

tn_status tni_loader_set_option(const char *type, const char *name, const char *value) {
    if (!type || !*type || !name || !*name || !value)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_plugin_set_option: device_type, name and value must be strings, the"
                        " first two not empty");
    tn_status status = TN_OK;
    tni_lock_take(&lock);
    for (const tni_candidate *c = running; c && !status; c = c->next_running)
        if (strcmp(c->plugin.table->device_type, type) == 0 ||
            (c->plugin.key && strcmp(c->plugin.key, type) == 0))
            status = TN_ERR_STATE;
    if (!status) {
        option *o = find_option(type, name);
        char *copy = o ? tni_strdup(value) : NULL;
        if (copy) {
            tni_free(o->value);
            o->value = copy;
            o->from_environment = false;
        } else if (o || !add_option(type, name, value)) {
            status = TN_ERR_OUT_OF_MEMORY;
        }
    }
    tni_lock_give(&lock);
    if (status == TN_ERR_STATE)
        return tni_fail(TN_ERR_STATE,
                        "tn_plugin_set_option: a plugin for '%s' is running already; set '%s'"
                        " before the first device of that type is asked for",
                        type, name);
    return status ? tni_fail_memory("a plugin's option") : TN_OK;
}

void tni_host_finish(void) {
    tni_lock_take(&lock);
    option *o = options;
    options = NULL;
    tni_lock_give(&lock);
    while (o) {
        option *next = o->next;
        tni_free(o->type);
        tni_free(o->name);
        tni_free(o->value);
        tni_free(o);
        o = next;
    }
}
