/* What the loader's own files share; nobody else includes this.
 *
 *   discover.c       which files are candidates, and in what order
 *   trust.c          may a file be loaded, or could others have put it there
 *   object.c         from a file to its query function
 *   check_tables.c   are the tables right
 *   host.c           what a plugin calls, and its options
 *   settings.c       what is wrong with the environment
 *   missing.c        the words when a device type cannot be had
 *   lifecycle.c      candidates: found, loaded, started, shut down
 *   plugins.c        what programs call
 *   validation/      tables that check each call into a plugin, and hand it on
 *
 * All of it runs under the lock of lifecycle.c, but for host.c, which has its own.
 */
#ifndef TNI_LOADER_INTERNAL_H
#define TNI_LOADER_INTERNAL_H

#include "loader/loader.h"

#include <stddef.h>
#include <sys/types.h>

/* ---- candidates -------------------------------------------------------------------------- */

typedef enum tni_source {
    TNI_FROM_PROGRAM,   /* tn_plugin_load, tn_plugin_register */
    TNI_FROM_PLUGINS,   /* TENON_PLUGINS */
    TNI_FROM_DIRECTORY, /* one of the directories */
} tni_source;

/* The name of an option that a plugin has asked for. */
typedef struct tni_asked {
    struct tni_asked *next;
    char name[];
} tni_asked;

/* A plugin with what only the loader needs of it. */
typedef struct tni_candidate {
    tni_plugin plugin; /* the first member: the loader hands out pointers to it */
    tni_source source;
    dev_t device; /* of the file; with inode 0 there is none */
    ino_t inode;
    pid_t pid;               /* the process that started it */
    uint32_t started;        /* which start this was, from 1: shutdown goes backwards */
    struct tni_watch *watch; /* of the validation layer; NULL when TENON_VALIDATE was off */
    tn_host host;            /* what the plugin calls, unless it is watched */
    struct tni_candidate *next_running; /* host.c, as the next */
    tni_asked *asked;
} tni_candidate;

static inline tni_candidate *tni_candidate_of(const tni_plugin *plugin) {
    return (tni_candidate *)plugin;
}

/* Something that was searched, or was to be. */
typedef struct tni_place {
    struct tni_place *next;
    char *name;       /* directory, or the entry as it was written */
    char *problem;    /* why it was not searched; NULL when it was */
    const char *from; /* "TENON_PLUGIN_PATH", "system directory" ... */
    bool expected;    /* a user named it: a problem with it is worth a warning */
    bool again;       /* it stands further ahead under another name */
    uint32_t n_files;
    dev_t device;
    ino_t inode;
} tni_place;

typedef struct tni_catalog {
    tni_plugin *first;   /* in search order */
    tni_plugin *retired; /* gone from the disk; kept until finish, for who still has a pointer */
    tni_place *places;
} tni_catalog;

/* Searches anew. Candidates known already keep their object; without memory the catalog is whole
 * and the search can be repeated. */
tn_status tni_discover(tni_catalog *catalog);

/* Finds or makes the candidate for a file that the program named, last of those. A file that may
 * not be opened becomes a REFUSED candidate. */
tn_status tni_catalog_add_file(tni_catalog *catalog, const char *path, tni_candidate **out);
/* The same for a query function. */
tn_status tni_catalog_add_query(tni_catalog *catalog, tn_plugin_query_fn query,
                                tni_candidate **out);

void tni_catalog_free(tni_catalog *catalog);

/* Makes a candidate REFUSED or DISABLED with a reason; `reason` is owned from here on. Out of
 * memory when it is NULL: then nothing changes. */
tn_status tni_candidate_stop(tni_plugin *plugin, tni_plugin_state state, tn_status status,
                             char *reason);

/* May a plugin be loaded from this real path (a file, or a directory of plugins)? Others must not
 * be able to change it; with `secure`, as for set-uid programs, neither the group, and it belongs
 * to root or the effective user. When not, says so in `why`. */
bool tni_trusted(const char *path, bool secure, char *why, size_t size);

/* Does one of the comma-separated globs of TENON_PLUGINS_DISABLE match? */
bool tni_disabled(const char *name);

/* "libtenon_npu.so" of a path. */
const char *tni_file_name(const char *path);
/* Does the file's name say that it serves `type`: libtenon_<type>.so, libtenon_<type>_*.so? */
bool tni_name_serves(const char *path, const char *type);
/* Does it say which type it serves at all: libtenon_*.so? */
bool tni_name_tells(const char *path);

/* ---- objects ----------------------------------------------------------------------------- */

/* dlopens a file and finds the query function. On failure sets an error that begins with the path.
 */
tn_status tni_object_open(const char *path, void **out_handle, tn_plugin_query_fn *out_query);

/* ---- tables ------------------------------------------------------------------------------ */

/* The version rule: NULL when a plugin built against `built` that needs at least `required` works
 * with a host of version `host` that takes plugins since `oldest`; else why not, and what to do. */
const char *tni_abi_misfit(uint32_t oldest, uint32_t host, uint32_t built, uint32_t required);

/* How many kernel records of a valid table this core can use, and how many it skips. */
void tni_plugin_count_kernels(const tn_plugin *table, uint32_t *out_known, uint32_t *out_unknown);

/* Is `name` a device type: [a-z][a-z0-9_]*, at most 31 characters? */
bool tni_type_name_ok(const char *name);

/* ---- the host's side --------------------------------------------------------------------- */

/* Fills the candidate's host table. */
void tni_host_init(tni_candidate *candidate);
/* From now on the plugin's options stay as they are; until it has stopped. */
void tni_host_started(tni_candidate *candidate);
void tni_host_stopped(tni_candidate *candidate);
/* Forgets all options. */
void tni_host_finish(void);

/* The options that the plugin asked for so far; good until tni_host_forget. */
const tni_asked *tni_host_asked(const tni_plugin *plugin);
void tni_host_forget(tni_candidate *candidate);
/* TENON_<TYPE>_<NAME> in capitals, other characters as _; false when it is too long, or one of
 * Tenon's own variables (type `plugin`, option `path`). */
bool tni_option_variable(char *out, size_t size, const char *type, const char *name);

/* ---- settings ---------------------------------------------------------------------------- */

/* Calls fn for each variable of the environment that looks like Tenon's and is not in its table. */
void tni_settings_others(const tni_catalog *catalog,
                         void (*fn)(const tni_other_setting *other, void *user), void *user);
/* The first entry of a variable that names places or files that could not be used; "" where all could. */
void tni_settings_problem(const tni_catalog *catalog, const char *variable, char *out, size_t size);
/* Says what values of Tenon's variables are not allowed, and what names are nearly those of one. */
void tni_settings_check(const tni_catalog *catalog);
/* Says what options of a plugin that has started are set and not its. */
void tni_settings_check_options(const tni_plugin *plugin);

/* ---- reports ----------------------------------------------------------------------------- */

/* Why no plugin serves `type` (or the one called `id` of them), in lines: every candidate and its
 * reason, where was searched, what to do. NULL without memory. */
char *tni_report_missing(const tni_catalog *catalog, const char *type, const char *id,
                         tn_status *out_status);

/* "found", "refused" ... */
const char *tni_plugin_state_name(tni_plugin_state state);

#endif
