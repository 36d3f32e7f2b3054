/* Finding, checking and starting plugins.
 *
 * A candidate is a shared object (or a query function registered by the program). Each keeps what
 * became of it and why, in words a user can act on; nothing that goes wrong with one touches the
 * others.
 *
 * Search order: tn_plugin_register / tn_plugin_load; TENON_PLUGINS (paths; then nothing else is
 * searched); TENON_PLUGIN_PATH; the directory `tenon/plugins` beside libtenon (in a build tree:
 * what the build set); the system's plugin directory. Directories are read sorted; relative paths
 * in variables are refused. For type `npu` only files named libtenon_npu.so or libtenon_npu_*.so are
 * opened, and those of TENON_PLUGINS whose names tell nothing. A file of a directory that provides
 * another type than its name says is refused.
 *
 * Every function may be called from any thread. One lock is held while a plugin's query, init,
 * count and shutdown run: they may use the host table, but a call of theirs into the loader fails
 * with TN_ERR_STATE, as does one from a callback of tni_loader_for_each. Pointers to plugins stay good
 * until tni_loader_finish.
 */
#ifndef TNI_LOADER_LOADER_H
#define TNI_LOADER_LOADER_H

#include <stdbool.h>
#include <tenon/base.h>

typedef enum tni_plugin_state {
    TNI_PLUGIN_FOUND,    /* a file that was not opened yet */
    TNI_PLUGIN_DISABLED, /* by TENON_PLUGINS_DISABLE */
    TNI_PLUGIN_REFUSED,  /* could not be opened, or its tables are wrong: see reason */
    TNI_PLUGIN_LOADED,   /* opened and valid; not started */
    TNI_PLUGIN_FAILED,   /* init or count failed: see reason */
    TNI_PLUGIN_READY     /* started; n_devices is known, and may be 0: see reason */
} tni_plugin_state;

typedef struct tni_plugin {
    struct tni_plugin *next;
    tni_plugin_state state;
    tn_status status; /* why it is REFUSED or FAILED */
    char *path;       /* real path; NULL when linked into the program */
    char *reason;     /* what went wrong and what to do; NULL when all is well */
    char *key; /* "npu", or "npu@com.acme" when another plugin has the type; NULL before LOADED */
    const tn_plugin *table; /* NULL before LOADED */
    const tn_device_ops *devices;
    tn_instance *self;  /* NULL before READY */
    uint32_t n_devices; /* READY */
    uint32_t n_kernels; /* records accepted */
    uint32_t n_unknown; /* records for operators this core does not know, skipped */
    int backend;        /* dispatcher backend id, -1 before READY */
    tn_plugin_query_fn query;
    void *handle; /* of dlopen */
} tni_plugin;

/* Optional slots, read with TN_HAS: NULL when the plugin's table ends before them. */
#define TNI_SLOT(table, type, slot) (TN_HAS(table, type, slot) ? (table)->slot : NULL)

/* The dtypes that this core knows; TN_DTYPES_ALL never grows. */
#define TNI_DTYPES_KNOWN (TN_DTYPE_BIT(TN_DTYPE_COUNT) - 1)

/* Looks for candidates (once; again after tni_loader_rescan) without opening any. */
tn_status tni_loader_scan(void);

/* Forgets what was refused, disabled or failed, so that the next call searches and tries again.
 * Plugins that were loaded stay as they are. */
void tni_loader_rescan(void);

/* The plugin that serves `type` ("npu" or "npu@com.acme"), opened and started; NULL with an error
 * that lists every candidate tried and its reason. Of several that serve "npu", the first in search
 * order that starts and has devices; it keeps that name from then on, whatever a later search
 * finds. After "@" stands an id, or its first parts where they fit one plugin only. What failed is
 * not tried again before tni_loader_rescan. */
const tni_plugin *tni_loader_get(const char *type);

/* Was this plugin started in another process, whose fork this one is, without being fork-safe? Then
 * none of its functions may be called any more. */
bool tni_plugin_forked(const tni_plugin *plugin);

/* Opens and starts every candidate: for `tenon plugins` and `tenon devices`. Never fails as a
 * whole. */
void tni_loader_open_all(void);

/* Adds a candidate by path (opened at once; tried again if it was refused before), or by query
 * function. */
tn_status tni_loader_load(const char *path, const tni_plugin **out);
tn_status tni_loader_register(tn_plugin_query_fn query, const tni_plugin **out);

/* Makes a candidate that was not opened FAILED, for a reason that the program knows. */
tn_status tni_loader_exclude(const char *path, const char *reason);

/* Every candidate in search order. Under the loader's lock: fn must not call the loader. */
void tni_loader_for_each(void (*fn)(const tni_plugin *plugin, void *user), void *user);

/* A variable of the environment that begins as Tenon's do, and is none of them. */
typedef struct tni_other_setting {
    const char *name, *value; /* "TENON_SIM_MEMORY" */
    bool is_option;           /* of a plugin that was found */
    const char *near;         /* a variable that may be meant, or NULL */
} tni_other_setting;

/* Every such one; good during the callback, which runs under the loader's lock as that of for_each. */
void tni_loader_other_settings(void (*fn)(const tni_other_setting *other, void *user), void *user);

/* What is wrong with an entry of TENON_PLUGINS or TENON_PLUGIN_PATH, the first that could not be used;
 * "": nothing. */
void tni_loader_setting_problem(const char *variable, char *out, size_t size);

/* Sets option `name` for plugins of `type`, before they are loaded; wins over the environment. */
tn_status tni_loader_set_option(const char *type, const char *name, const char *value);

/* Shuts every plugin down, the last started first (their devices are closed already), and forgets
 * candidates and options; dlcloses only plugins that say they may be. The loader can be used again
 * afterwards. */
void tni_loader_finish(void);

/* Checks a plugin's tables: versions, sizes, required slots, ids, kernel records. On refusal sets
 * an error that names the plugin, the field and the fix. Reads nothing past a table's struct_size.
 * Pure. */
tn_status tni_plugin_validate(const tn_plugin *table, const char *where);

#endif
