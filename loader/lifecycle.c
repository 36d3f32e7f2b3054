/* The life of plugins: found, loaded, started, shut down.
 *
 * One lock guards it all and is held while a plugin's query, init, count and shutdown run, so those
 * are never called twice at once. They may call everything in the host table; a call back into the
 * loader (from there, or from a callback of tn_plugin_list) is noticed and fails.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/log.h"
#include "dispatcher/registry.h"
#include "loader/internal.h"
#include "loader/validation/validation.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_DEVICES = 4096 /* a larger count is no count but garbage */ };

static tni_lock lock = TNI_LOCK_INITIALIZER;
static tni_catalog catalog;
static bool scanned;
static uint32_t starts;
static bool broken; /* a child of a fork in the middle of another thread's work here */

static void mend(bool whole) {
    broken = broken || !whole;
}

TNI_FORK_LOCK(LOADER, lock, mend)

/* Takes the lock, and puts the thread's standing error aside: what goes wrong with a candidate is
 * the candidate's, not the caller's. */
static tn_status enter(tni_saved_error *saved) {
    if (tni_lock_is_mine(&lock))
        return tni_fail(TN_ERR_STATE, "the plugin loader was called from inside itself: from a"
                                      " plugin's init or count, from a log function, or from a"
                                      " callback of tn_plugin_list; do that afterwards");
    if (broken)
        return tni_fail(TN_ERR_STATE,
                        "this process was forked while another thread was loading a"
                        " plugin and could not be waited for, so no plugin can be started"
                        " here; use plugins' devices once before other threads run, or"
                        " start the child with exec");
    tni_lock_take(&lock);
    tni_error_save(saved);
    return TN_OK;
}

static void leave(tni_saved_error *saved) {
    tni_error_restore(saved);
    tni_lock_give(&lock);
}

/* The host table that the plugin gets. */
static const tn_host *host_for(const tni_plugin *p) {
    const tni_candidate *c = tni_candidate_of(p);
    return c->watch ? tni_watch_host(c->watch) : &c->host;
}

static void end_watch(tni_plugin *p) {
    tni_watch_end(tni_candidate_of(p)->watch);
    tni_candidate_of(p)->watch = NULL;
}

/* Stops a candidate for the reason that stands as the thread's error. */
static tn_status stop_with_error(tni_plugin *p, tni_plugin_state state) {
    tn_status status = tn_error_status();
    char *reason = tni_strdup(tn_error_message());
    tn_error_clear();
    if (!p->table)
        end_watch(p); /* never called again */
    return tni_candidate_stop(p, state, status, reason);
}

/* "path (id)", for the beginning of reasons. */
static void name_plugin(const tni_plugin *p, char *out, size_t size) {
    const char *path = p->path ? p->path : "(linked into the program)";
    if (p->table)
        snprintf(out, size, "%s (%s)", path, p->table->id);
    else
        snprintf(out, size, "%s", path);
}

/* ---- from FOUND to LOADED ---------------------------------------------------------------- */

/* The type's name is the first plugin's; later ones are told apart by id. */
static char *make_key(const tni_plugin *plugin, const tn_plugin *table) {
    for (const tni_plugin *p = catalog.first; p; p = p->next)
        if (p != plugin && p->key && strcmp(p->key, table->device_type) == 0)
            return tni_format("%s@%s", table->device_type, table->id);
    return tni_strdup(table->device_type);
}

/* Checks that the id is allowed and new. Sets an error. */
static tn_status check_id(const tni_plugin *plugin, const tn_plugin *table, const char *where) {
    if (tni_disabled(table->id))
        return tni_fail(TN_ERR_NOT_FOUND,
                        "%s (%s): disabled by id by TENON_PLUGINS_DISABLE; change that variable"
                        " to use it",
                        where, table->id);
    for (const tni_plugin *p = catalog.first; p; p = p->next)
        if (p != plugin && p->table && strcmp(p->table->id, table->id) == 0)
            return tni_fail(TN_ERR_STATE,
                            "%s: its id '%s' is that of %s, which was found first; remove one of"
                            " the two files",
                            where, table->id,
                            p->path ? p->path : "a plugin linked into the program");
    return TN_OK;
}

/* A file that was found by its name is for the type that this says, and takes no other one's. Who
 * names the file, as in TENON_PLUGINS, may call it what he likes. */
static tn_status check_name(const tni_plugin *p, const tn_plugin *table) {
    const char *type = table->device_type;
    if (!p->path || tni_candidate_of(p)->source != TNI_FROM_DIRECTORY ||
        tni_name_serves(p->path, type))
        return TN_OK;
    return tni_fail(TN_ERR_NOT_FOUND,
                    "%s (%s): it provides '%s', which its name does not say; name it"
                    " libtenon_%s.so or libtenon_%s_*.so, or name the file in TENON_PLUGINS",
                    p->path, table->id, type, type, type);
}

/* What is left to do once the query function is known. */
static tn_status load_table(tni_plugin *p) {
    const char *where = p->path ? p->path : "(linked into the program)";
    if (!tni_watch_begin(where, &tni_candidate_of(p)->host, &tni_candidate_of(p)->watch))
        return TN_ERR_OUT_OF_MEMORY;
    tni_error_plugin(TN_OK, NULL);
    const tn_plugin *table = p->query(host_for(p));
    if (!table) {
        char context[4200];
        snprintf(context, sizeof context,
                 "%s: " TN_PLUGIN_QUERY_NAME " returned NULL, so it does not work with this Tenon"
                 " (plugin interface %u.%u); use a plugin built for it, or a newer Tenon",
                 where, TN_ABI_MAJOR, TN_ABI_MINOR);
        tni_error_take_plugin(TN_ERR_ABI, context);
        return stop_with_error(p, TNI_PLUGIN_REFUSED);
    }
    tni_error_plugin(TN_OK, NULL);
    if (tni_plugin_validate(table, where))
        return stop_with_error(p, TNI_PLUGIN_REFUSED);
    tn_status status = check_id(p, table, where);
    if (status)
        return stop_with_error(p, status == TN_ERR_NOT_FOUND ? TNI_PLUGIN_DISABLED
                                                             : TNI_PLUGIN_REFUSED);
    if (check_name(p, table))
        return stop_with_error(p, TNI_PLUGIN_REFUSED);
    table = tni_watch_tables(tni_candidate_of(p)->watch, table);
    char *key = table ? make_key(p, table) : NULL;
    if (!key)
        return TN_ERR_OUT_OF_MEMORY;
    p->key = key;
    p->table = table;
    p->devices = table->devices;
    tni_plugin_count_kernels(table, &p->n_kernels, &p->n_unknown);
    p->state = TNI_PLUGIN_LOADED;
    tni_log_line(TN_LOG_INFO, "loader",
                 "%s: %s %s provides '%s' with %u kernels (%u more are unknown)", where, table->id,
                 table->version, p->key, p->n_kernels, p->n_unknown);
    return TN_OK;
}

/* Opens a candidate that was not opened yet. Fails only without memory, and can then be repeated;
 * what is wrong with the plugin becomes its state and reason. */
static tn_status load(tni_plugin *p) {
    if (p->state != TNI_PLUGIN_FOUND)
        return TN_OK;
    if (!p->query && tni_object_open(p->path, &p->handle, &p->query))
        return stop_with_error(p, TNI_PLUGIN_REFUSED);
    return load_table(p);
}

/* ---- from LOADED to READY ---------------------------------------------------------------- */

/* Memory may be there the next time; whatever else is wrong stays so, and is kept as the reason. */
static tn_status fail_start(tni_plugin *p, tn_status status, const char *what) {
    char name[4200], context[4300];
    name_plugin(p, name, sizeof name);
    snprintf(context, sizeof context, "%s: %s", name, what);
    tni_error_take_plugin(status, context);
    return status == TN_ERR_OUT_OF_MEMORY ? status : stop_with_error(p, TNI_PLUGIN_FAILED);
}

static void stop(tni_plugin *p) {
    p->table->shutdown(p->self);
    tni_host_stopped(tni_candidate_of(p));
    p->self = NULL;
}

/* None is no failure. The reason is what the plugin has told host->fail. */
static tn_status note_no_devices(tni_plugin *p) {
    const char *why = tni_error_plugin_message();
    char name[4200];
    name_plugin(p, name, sizeof name);
    p->reason = why ? tni_format("%s: no devices found: %s", name, why)
                    : tni_format("%s: no devices found (driver reported none)", name);
    if (!p->reason)
        return TN_ERR_OUT_OF_MEMORY;
    tni_log_line(TN_LOG_INFO, "loader", "%s", p->reason);
    return TN_OK;
}

/* The half of starting that follows init. */
static tn_status start_devices(tni_plugin *p) {
    uint32_t n = 0;
    tni_error_plugin(TN_OK, NULL);
    tn_status status = p->devices->count(p->self, &n);
    if (status)
        return fail_start(p, status, "devices->count failed");
    if (n > MAX_DEVICES) {
        char name[4200];
        name_plugin(p, name, sizeof name);
        tni_fail(TN_ERR_ABI,
                 "%s: devices->count says %u devices, more than %d; set *out_count to their number",
                 name, n, (int)MAX_DEVICES);
        return stop_with_error(p, TNI_PLUGIN_FAILED);
    }
    int backend = tni_backend_id(p->key);
    if (backend < 0)
        return tn_error_status() == TN_ERR_OUT_OF_MEMORY ? TN_ERR_OUT_OF_MEMORY
                                                         : stop_with_error(p, TNI_PLUGIN_FAILED);
    status = n == 0 ? note_no_devices(p) : TN_OK;
    if (status)
        return status;
    p->n_devices = n;
    p->backend = backend;
    p->state = TNI_PLUGIN_READY;
    tni_candidate_of(p)->pid = getpid();
    tni_candidate_of(p)->started = ++starts;
    tni_log_line(TN_LOG_INFO, "loader", "'%s' (%s) is ready with %u %s", p->key, p->table->id, n,
                 n == 1 ? "device" : "devices");
    return TN_OK;
}

/* Starts a plugin that was not started yet. Fails as load does. */
static tn_status start(tni_plugin *p) {
    if (p->state != TNI_PLUGIN_LOADED)
        return TN_OK;
    tni_error_plugin(TN_OK, NULL);
    tn_instance *self = NULL;
    tn_status status = p->table->init(host_for(p), p->path, &self);
    if (status) {
        status = fail_start(p, status, "init failed");
    } else {
        p->self = self;
        tni_host_started(tni_candidate_of(p));
        status = start_devices(p);
        if (p->state == TNI_PLUGIN_READY)
            tni_settings_check_options(p);
        else
            stop(p);
    }
    tni_error_plugin(TN_OK, NULL);
    return status;
}

/* ---- finding the plugin for a type ------------------------------------------------------- */

static tn_status scan(void) {
    if (scanned)
        return TN_OK;
    tn_status status = tni_discover(&catalog);
    scanned = !status;
    if (scanned)
        tni_settings_check(&catalog);
    return status;
}

static bool provides(const tni_plugin *p, const char *type) {
    return p->table && strcmp(p->table->device_type, type) == 0;
}

/* Opens what may serve `type`: files with its name, those that were named in TENON_PLUGINS under a
 * name that tells nothing, and, when all that brought no such plugin, the rest of TENON_PLUGINS. */
static tn_status load_for(const char *type) {
    tn_status status = TN_OK;
    bool there = false;
    for (int round = 0; round < 2 && !there; round++) {
        for (tni_plugin *p = catalog.first; p && !status; p = p->next) {
            bool listed = tni_candidate_of(p)->source == TNI_FROM_PLUGINS;
            if (!p->path || tni_name_serves(p->path, type) ||
                (listed && (round == 1 || !tni_name_tells(p->path))))
                status = load(p);
            there = there || provides(p, type);
        }
    }
    return status;
}

/* com.acme fits com.acme and com.acme.npu. */
static bool fits_id(const char *id, const char *asked) {
    size_t n = strlen(asked);
    return strncmp(id, asked, n) == 0 && (id[n] == '\0' || id[n] == '.');
}

/* Lets `p` have the plain name of its type, when the plugin that has it cannot be started. */
static tn_status pass_key(tni_plugin *p) {
    const char *type = p->table->device_type;
    for (tni_plugin *q = catalog.first; q; q = q->next) {
        if (q == p || !q->key || strcmp(q->key, type) != 0 || q->state != TNI_PLUGIN_FAILED)
            continue;
        char *key = tni_format("%s@%s", type, q->table->id);
        if (!key)
            return TN_ERR_OUT_OF_MEMORY;
        tni_free(p->key);
        p->key = q->key;
        q->key = key;
    }
    return TN_OK;
}

static void tell_of_others(const tni_plugin *first, const tni_plugin *used) {
    const char *type = used->table->device_type;
    for (const tni_plugin *p = first; p; p = p->next)
        if (p != used && p->state != TNI_PLUGIN_FAILED && provides(p, type))
            tni_log_line(TN_LOG_INFO, "loader",
                         "several plugins provide '%s': %s is used; %s is reached as '%s@%s'", type,
                         used->table->id, p->table->id, type, p->table->id);
    if (used != first)
        tni_log_line(TN_LOG_WARN, "loader", "'%s' is served by %s, because %s, found first, %s",
                     type, used->table->id, first->table->id,
                     first->state == TNI_PLUGIN_FAILED ? "failed" : "has no devices");
}

/* Starts plugins for `type` in search order until one has devices. `*out` is that one, else the
 * first that started. */
static tn_status choose_by_type(const char *type, tni_plugin **out) {
    tni_plugin *first = NULL;
    uint32_t before = starts;
    *out = NULL;
    /* Who has the name keeps it, whatever a later search found in front of it. */
    for (tni_plugin *p = catalog.first; p; p = p->next)
        if (p->state == TNI_PLUGIN_READY && p->n_devices > 0 && strcmp(p->key, type) == 0)
            return *out = p, TN_OK;
    for (tni_plugin *p = catalog.first; p; p = p->next) {
        if (!provides(p, type))
            continue;
        if (!first)
            first = p;
        tn_status status = p->state == TNI_PLUGIN_LOADED ? pass_key(p) : TN_OK;
        if (!status)
            status = start(p);
        if (status)
            return status;
        if (p->state == TNI_PLUGIN_READY && (!*out || p->n_devices > 0))
            *out = p;
        if (*out && (*out)->n_devices > 0)
            break;
    }
    if (*out && starts != before)
        tell_of_others(first, *out);
    return TN_OK;
}

static tn_status choose_by_id(const char *type, const char *id, tni_plugin **out) {
    tni_plugin *exact = NULL, *prefixed = NULL;
    *out = NULL;
    for (tni_plugin *p = catalog.first; p; p = p->next) {
        if (!provides(p, type) || !fits_id(p->table->id, id))
            continue;
        if (strcmp(p->table->id, id) == 0)
            exact = p;
        else if (prefixed)
            return tni_fail(TN_ERR_INVALID_ARGUMENT, "'%s@%s' may be %s or %s; write the whole id",
                            type, id, prefixed->table->id, p->table->id);
        else
            prefixed = p;
    }
    tni_plugin *p = exact ? exact : prefixed;
    tn_status status = p ? start(p) : TN_OK;
    if (!status && p && p->state == TNI_PLUGIN_READY)
        *out = p;
    return status;
}

bool tni_plugin_forked(const tni_plugin *plugin) {
    return plugin->state == TNI_PLUGIN_READY && !(plugin->table->flags & TN_PLUGIN_FORK_SAFE) &&
           tni_candidate_of(plugin)->pid != getpid();
}

/* Sets an error for all that is wrong but memory; that is returned. */
static tn_status find(const char *type, const char *id, tni_plugin **out) {
    *out = NULL;
    tn_status status = scan();
    if (!status)
        status = load_for(type);
    if (!status)
        status = id ? choose_by_id(type, id, out) : choose_by_type(type, out);
    if (status)
        return status;
    if (!*out) {
        char *text = tni_report_missing(&catalog, type, id, &status);
        if (!text)
            return TN_ERR_OUT_OF_MEMORY;
        tni_fail(status, "%s", text);
        tni_free(text);
        return status;
    }
    if (tni_plugin_forked(*out)) {
        char name[4200];
        name_plugin(*out, name, sizeof name);
        *out = NULL;
        return tni_fail(TN_ERR_STATE,
                        "%s: was started before this process was forked, and its devices do not"
                        " outlive a fork; fork before '%s' is first used, or start the child with"
                        " exec",
                        name, type);
    }
    return TN_OK;
}

/* "npu@com.acme" into "npu" and "com.acme"; false when it is no such thing. */
static bool split_type(const char *text, char type[32], const char **out_id) {
    size_t n = strcspn(text, "@");
    if (n > 31)
        return false;
    memcpy(type, text, n);
    type[n] = '\0';
    *out_id = text[n] ? text + n + 1 : NULL;
    return tni_type_name_ok(type) && (!*out_id || **out_id);
}

/* Leaves, with the error that stands now as the caller's. */
static void leave_failed(tni_saved_error *saved, tn_status status) {
    char *message = tn_error_status() ? tni_strdup(tn_error_message()) : NULL;
    tn_error_clear();
    leave(saved);
    if (message)
        tni_fail(status, "%s", message);
    else
        tni_fail_memory("the list of plugins");
    tni_free(message);
}

const tni_plugin *tni_loader_get(const char *type) {
    char base[32];
    const char *id;
    if (!type || !split_type(type, base, &id))
        return tni_fail_null(
            TN_ERR_INVALID_ARGUMENT,
            "'%s' is no device type; write one like 'npu', or 'npu@com.acme' for the plugin"
            " of that id",
            type ? type : "(null)");
    if (strcmp(base, "meta") == 0)
        return tni_fail_null(TN_ERR_INVALID_ARGUMENT,
                             "device type 'meta' is Tenon's own and has no plugin");
    tni_saved_error saved;
    if (enter(&saved))
        return NULL;
    tni_plugin *found;
    tn_status status = find(base, id, &found);
    if (status) {
        leave_failed(&saved, status);
        return NULL;
    }
    leave(&saved);
    return found;
}

tn_status tni_loader_scan(void) {
    tni_saved_error saved;
    if (enter(&saved))
        return TN_ERR_STATE;
    tn_status status = scan();
    leave(&saved);
    return status ? tni_fail_memory("the list of plugins") : TN_OK;
}

/* dlcloses, when the plugin says that it may be. */
static void close_object(tni_plugin *p) {
    if (p->handle && p->table && (p->table->flags & TN_PLUGIN_UNLOADABLE))
        dlclose(p->handle);
    p->handle = NULL;
    if (p->path)
        p->query = NULL;
    end_watch(p);
    p->table = NULL;
    p->devices = NULL;
}

void tni_loader_rescan(void) {
    tni_saved_error saved;
    if (enter(&saved))
        return;
    for (tni_plugin *p = catalog.first; p; p = p->next) {
        if (p->state == TNI_PLUGIN_LOADED || p->state == TNI_PLUGIN_READY)
            continue;
        close_object(p);
        tni_free(p->key);
        tni_free(p->reason);
        p->key = p->reason = NULL;
        p->status = TN_OK;
        p->state = TNI_PLUGIN_FOUND;
    }
    scanned = false;
    leave(&saved);
}

void tni_loader_open_all(void) {
    tni_saved_error saved;
    if (enter(&saved))
        return;
    scan();
    for (tni_plugin *p = catalog.first; p; p = p->next)
        if (!load(p))
            start(p);
    tn_error_clear();
    leave(&saved);
}

void tni_loader_for_each(void (*fn)(const tni_plugin *plugin, void *user), void *user) {
    tni_saved_error saved;
    if (enter(&saved))
        return;
    scan();
    tn_error_clear();
    tni_error_restore(&saved); /* what fn fails at is the caller's */
    for (tni_plugin *p = catalog.first; p; p = p->next)
        fn(p, user);
    tni_lock_give(&lock);
}

void tni_loader_other_settings(void (*fn)(const tni_other_setting *other, void *user), void *user) {
    tni_saved_error saved;
    if (enter(&saved))
        return;
    scan();
    tn_error_clear();
    tni_error_restore(&saved);
    tni_settings_others(&catalog, fn, user);
    tni_lock_give(&lock);
}

void tni_loader_setting_problem(const char *variable, char *out, size_t size) {
    tni_saved_error saved;
    *out = '\0';
    if (enter(&saved))
        return;
    scan();
    tn_error_clear();
    tni_error_restore(&saved);
    tni_settings_problem(&catalog, variable, out, size);
    tni_lock_give(&lock);
}

/* ---- plugins that the program brings ----------------------------------------------------- */

/* Loads a candidate and says what came of it. */
static tn_status load_named(tni_saved_error *saved, tni_candidate *c, const tni_plugin **out) {
    tn_status status = load(&c->plugin);
    if (!status && !c->plugin.table)
        status = tni_fail(c->plugin.status, "%s", c->plugin.reason);
    if (status) {
        leave_failed(saved, status);
        return status;
    }
    if (out)
        *out = &c->plugin;
    leave(saved);
    return TN_OK;
}

tn_status tni_loader_load(const char *path, const tni_plugin **out) {
    if (out)
        *out = NULL;
    if (!path || !*path)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_plugin_load: path is %s; give the plugin's file",
                        path ? "empty" : "NULL");
    tni_saved_error saved;
    if (enter(&saved))
        return TN_ERR_STATE;
    tni_candidate *c;
    tn_status status = tni_catalog_add_file(&catalog, path, &c);
    if (status) {
        leave_failed(&saved, status);
        return status;
    }
    return load_named(&saved, c, out);
}

tn_status tni_loader_register(tn_plugin_query_fn query, const tni_plugin **out) {
    if (out)
        *out = NULL;
    if (!query)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_plugin_register: query is NULL; give the"
                                                 " function that TN_PLUGIN_QUERY names");
    tni_saved_error saved;
    if (enter(&saved))
        return TN_ERR_STATE;
    tni_candidate *c;
    tn_status status = tni_catalog_add_query(&catalog, query, &c);
    if (status) {
        leave_failed(&saved, status);
        return status;
    }
    return load_named(&saved, c, out);
}

tn_status tni_loader_exclude(const char *path, const char *reason) {
    if (!path || !reason)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_plugin_exclude: path and reason must be strings");
    tni_saved_error saved;
    if (enter(&saved))
        return TN_ERR_STATE;
    tni_plugin *p = catalog.first;
    while (p && !(p->state == TNI_PLUGIN_FOUND && p->path && strcmp(p->path, path) == 0))
        p = p->next;
    tn_status status = p ? tni_candidate_stop(p, TNI_PLUGIN_FAILED, TN_ERR_DEVICE,
                                              tni_format("%s: %s", path, reason))
                         : TN_ERR_NOT_FOUND;
    leave(&saved);
    if (status == TN_ERR_NOT_FOUND)
        return tni_fail(status, "tn_plugin_exclude: %s is no plugin that was found and not opened",
                        path);
    return status ? tni_fail_memory("the list of plugins") : TN_OK;
}

/* ---- the end ----------------------------------------------------------------------------- */

/* The plugin that was started last and still runs. */
static tni_plugin *last_started(void) {
    tni_plugin *last = NULL;
    for (tni_plugin *p = catalog.first; p; p = p->next)
        if (p->state == TNI_PLUGIN_READY &&
            (!last || tni_candidate_of(p)->started > tni_candidate_of(last)->started))
            last = p;
    return last;
}

void tni_loader_finish(void) {
    tni_saved_error saved;
    if (broken || enter(&saved))
        return;
    for (tni_plugin *p; (p = last_started());) {
        /* In a forked child the plugin's threads are gone; its shutdown might wait for them. */
        if (tni_plugin_forked(p))
            tni_host_stopped(tni_candidate_of(p));
        else
            stop(p);
        p->state = TNI_PLUGIN_LOADED;
    }
    tni_validation_summary();
    for (tni_plugin *p = catalog.first; p; p = p->next)
        close_object(p);
    tni_catalog_free(&catalog);
    tni_host_finish();
    tni_error_plugin(TN_OK, NULL);
    scanned = false;
    starts = 0;
    leave(&saved);
}
