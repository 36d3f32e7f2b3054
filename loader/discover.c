/* Which files are candidates, and in what order. Opens none of them. */
#define _GNU_SOURCE /* dladdr */
#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "loader/internal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where a distribution's packages put plugins: <libdir>/tenon/plugins; the build says. */
#ifndef TNI_PLUGIN_DIR
#define TNI_PLUGIN_DIR "/usr/lib/tenon/plugins"
#endif

/* Made by the build beside its libtenon, and never installed: plugins lie in ../plugins/<name>. */
#define BUILD_TREE_MARKER ".tenon-build-tree"

/* ---- names ------------------------------------------------------------------------------- */

const char *tni_file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool tni_name_tells(const char *path) {
    return fnmatch("libtenon_*.so", tni_file_name(path), FNM_PERIOD) == 0;
}

bool tni_name_serves(const char *path, const char *type) {
    static const char prefix[] = "libtenon_";
    size_t n = strlen(type);
    if (!tni_name_tells(path))
        return false;
    const char *name = tni_file_name(path) + sizeof prefix - 1;
    return strncmp(name, type, n) == 0 && (name[n] == '.' || name[n] == '_');
}

bool tni_disabled(const char *name) {
    return tni_env_lists(TNI_ENV_PLUGINS_DISABLE, name);
}

/* ---- the catalog ------------------------------------------------------------------------- */

static void candidate_free(tni_candidate *candidate) {
    if (!candidate)
        return;
    tni_free(candidate->plugin.path);
    tni_free(candidate->plugin.reason);
    tni_free(candidate->plugin.key);
    tni_host_forget(candidate);
    tni_free(candidate);
}

static void free_places(tni_catalog *catalog) {
    for (tni_place *p = catalog->places, *next; p; p = next) {
        next = p->next;
        tni_free(p->name);
        tni_free(p->problem);
        tni_free(p);
    }
    catalog->places = NULL;
}

void tni_catalog_free(tni_catalog *catalog) {
    tni_plugin *lists[] = {catalog->first, catalog->retired};
    for (int i = 0; i < 2; i++) {
        for (tni_plugin *p = lists[i], *next; p; p = next) {
            next = p->next;
            candidate_free(tni_candidate_of(p));
        }
    }
    free_places(catalog);
    *catalog = (tni_catalog){0};
}

tn_status tni_candidate_stop(tni_plugin *plugin, tni_plugin_state state, tn_status status,
                             char *reason) {
    if (!reason)
        return TN_ERR_OUT_OF_MEMORY;
    tni_free(plugin->reason);
    tni_text_make_printable(reason);
    plugin->reason = reason;
    plugin->status = status;
    plugin->state = state;
    bool named = tni_candidate_of(plugin)->source == TNI_FROM_PLUGINS;
    if (named && state == TNI_PLUGIN_REFUSED)
        tni_log_once(TN_LOG_WARN, "env", "TENON_PLUGINS: %s", reason);
    else
        tni_log_line(state == TNI_PLUGIN_DISABLED ? TN_LOG_INFO : TN_LOG_WARN, "loader", "%s",
                     reason);
    return TN_OK;
}

static tni_candidate *new_candidate(const char *path, tni_source source) {
    tni_candidate *c = tni_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->source = source;
    c->plugin.state = TNI_PLUGIN_FOUND;
    c->plugin.backend = -1;
    tni_host_init(c);
    if (path && !(c->plugin.path = tni_strdup(path))) {
        tni_free(c);
        return NULL;
    }
    return c;
}

/* What is known of a path before it is opened. */
typedef struct file_facts {
    char path[PATH_MAX]; /* real, or as it was given when there is none */
    dev_t device;
    ino_t inode; /* 0: no such file */
    tn_status status;
    char problem[PATH_MAX + 512]; /* why it may not be opened, when status is not TN_OK */
} file_facts;

__attribute__((format(printf, 3, 4))) static void bad_file(file_facts *f, tn_status status,
                                                           const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(f->problem, sizeof f->problem, format, args);
    va_end(args);
    f->status = status;
}

static void look_at(file_facts *f, const char *path, tni_source source) {
    struct stat st;
    *f = (file_facts){.status = TN_OK};
    snprintf(f->path, sizeof f->path, "%s", path);
    if (source == TNI_FROM_PLUGINS && path[0] != '/') {
        bad_file(f, TN_ERR_INVALID_ARGUMENT,
                 "a relative path in TENON_PLUGINS is refused, since the working directory may be "
                 "anyone's; write the absolute path");
        return;
    }
    if (source == TNI_FROM_PROGRAM && !strchr(path, '/')) {
        bad_file(f, TN_ERR_INVALID_ARGUMENT,
                 "a bare file name is refused, since the working directory may be anyone's; give "
                 "the plugin's path");
        return;
    }
    char real[PATH_MAX];
    if (!realpath(path, real) || stat(real, &st) != 0) {
        bad_file(f, errno == ENOENT ? TN_ERR_NOT_FOUND : TN_ERR_IO,
                 "%s; see that the path is right",
                 errno == ENOENT ? "no such file" : strerror(errno));
        return;
    }
    snprintf(f->path, sizeof f->path, "%s", real);
    f->device = st.st_dev;
    f->inode = st.st_ino;
    if (S_ISDIR(st.st_mode))
        bad_file(f, TN_ERR_INVALID_ARGUMENT,
                 "this is a directory; name the plugin's file, or put the directory into "
                 "TENON_PLUGIN_PATH");
    else if (!S_ISREG(st.st_mode))
        bad_file(f, TN_ERR_INVALID_ARGUMENT, "this is no regular file; name the plugin's file");
    else if (!tni_trusted(real, tni_env_is_secure(), f->problem, sizeof f->problem))
        f->status = TN_ERR_STATE;
}

static bool is_file(const tni_plugin *plugin, const file_facts *f) {
    const tni_candidate *c = tni_candidate_of(plugin);
    if (!plugin->path)
        return false;
    if (f->inode && c->inode)
        return c->inode == f->inode && c->device == f->device;
    return strcmp(plugin->path, f->path) == 0;
}

/* Takes the candidate of this file out of `list`, or makes one. NULL without memory. */
static tni_candidate *take_or_make(tni_plugin **list, const file_facts *f, tni_source source) {
    for (tni_plugin **at = list; *at; at = &(*at)->next) {
        if (is_file(*at, f)) {
            tni_plugin *found = *at;
            *at = found->next;
            found->next = NULL;
            return tni_candidate_of(found);
        }
    }
    tni_candidate *c = new_candidate(f->path, source);
    if (c) {
        c->device = f->device;
        c->inode = f->inode;
    }
    return c;
}

/* Says what can be said of a candidate without opening it. */
static tn_status judge(tni_candidate *c, const file_facts *f) {
    tni_plugin *p = &c->plugin;
    if (p->state != TNI_PLUGIN_FOUND)
        return TN_OK;
    if (f->status)
        return tni_candidate_stop(p, TNI_PLUGIN_REFUSED, f->status,
                                  tni_format("%s: %s", f->path, f->problem));
    if (tni_disabled(tni_file_name(p->path)))
        return tni_candidate_stop(p, TNI_PLUGIN_DISABLED, TN_ERR_NOT_FOUND,
                                  tni_format("%s: disabled by TENON_PLUGINS_DISABLE=%s; change"
                                             " that variable to use it",
                                             p->path, tni_env(TNI_ENV_PLUGINS_DISABLE)));
    return TN_OK;
}

static void append(tni_plugin **list, tni_plugin *plugin) {
    while (*list)
        list = &(*list)->next;
    *list = plugin;
    plugin->next = NULL;
}

/* Behind those that the program named before, in front of what was searched for. */
static void insert_programs(tni_catalog *catalog, tni_candidate *c) {
    tni_plugin **at = &catalog->first;
    while (*at && tni_candidate_of(*at)->source == TNI_FROM_PROGRAM)
        at = &(*at)->next;
    c->plugin.next = *at;
    *at = &c->plugin;
}

static void retire(tni_catalog *catalog, tni_plugin *plugin) {
    tni_plugin **at = &catalog->first;
    while (*at != plugin)
        at = &(*at)->next;
    *at = plugin->next;
    append(&catalog->retired, plugin);
}

tn_status tni_catalog_add_file(tni_catalog *catalog, const char *path, tni_candidate **out) {
    file_facts f;
    look_at(&f, path, TNI_FROM_PROGRAM);
    *out = NULL;
    tni_plugin *old = catalog->first, *none = NULL;
    while (old && !is_file(old, &f))
        old = old->next;
    /* One that was refused is looked at afresh: the program asks again, perhaps having put it
     * right.
     */
    bool again = old && (old->state == TNI_PLUGIN_REFUSED || old->state == TNI_PLUGIN_DISABLED);
    if (old && !again) {
        *out = tni_candidate_of(old);
        return judge(*out, &f);
    }
    tni_candidate *c = take_or_make(&none, &f, TNI_FROM_PROGRAM);
    if (!c)
        return TN_ERR_OUT_OF_MEMORY;
    tn_status status = judge(c, &f);
    if (status) {
        candidate_free(c);
        return status;
    }
    if (old)
        retire(catalog, old);
    insert_programs(catalog, c);
    *out = c;
    return TN_OK;
}

tn_status tni_catalog_add_query(tni_catalog *catalog, tn_plugin_query_fn query,
                                tni_candidate **out) {
    *out = NULL;
    for (tni_plugin *p = catalog->first; p; p = p->next) {
        if (!p->path && p->query == query) {
            *out = tni_candidate_of(p);
            return TN_OK;
        }
    }
    tni_candidate *c = new_candidate(NULL, TNI_FROM_PROGRAM);
    if (!c)
        return TN_ERR_OUT_OF_MEMORY;
    c->plugin.query = query;
    insert_programs(catalog, c);
    *out = c;
    return TN_OK;
}

/* ---- the search -------------------------------------------------------------------------- */

/* A search under way: candidates move from `old` to `found`. */
typedef struct search {
    tni_catalog *catalog;
    tni_plugin *old, *found;
} search;

static tn_status add_found(search *s, const char *path, tni_source source) {
    file_facts f;
    look_at(&f, path, source);
    for (tni_plugin *p = s->found; p; p = p->next)
        if (is_file(p, &f))
            return TN_OK;
    tni_candidate *c = take_or_make(&s->old, &f, source);
    if (!c)
        return TN_ERR_OUT_OF_MEMORY;
    append(&s->found, &c->plugin);
    return judge(c, &f);
}

static tni_place *add_place(search *s, const char *name, const char *from, bool expected) {
    tni_place *place = tni_calloc(1, sizeof *place);
    if (!place)
        return NULL;
    place->from = from;
    place->expected = expected;
    place->name = tni_strdup(name);
    if (!place->name) {
        tni_free(place);
        return NULL;
    }
    tni_place **at = &s->catalog->places;
    while (*at)
        at = &(*at)->next;
    *at = place;
    return place;
}

static tn_status add_problem(tni_place *place, char *problem) {
    if (!problem)
        return TN_ERR_OUT_OF_MEMORY;
    place->problem = problem;
    if (place->expected)
        tni_log_once(TN_LOG_WARN, "env", "%s: '%s': %s", place->from, place->name, problem);
    else
        tni_log_line(TN_LOG_DEBUG, "loader", "%s: %s (%s)", place->name, problem, place->from);
    return TN_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a directory that `wanted` accepts, sorted; read() order is the file system's whim.
 */
static tn_status list_directory(DIR *dir, bool (*wanted)(const char *), char ***out,
                                size_t *out_n) {
    char **names = NULL;
    size_t n = 0, capacity = 0;
    tn_status status = TN_OK;
    for (struct dirent *e; !status && (e = readdir(dir));) {
        if (!wanted(e->d_name))
            continue;
        char *name = tni_grow(&names, n, &capacity, sizeof *names) ? tni_strdup(e->d_name) : NULL;
        if (name)
            names[n++] = name;
        else
            status = TN_ERR_OUT_OF_MEMORY;
    }
    if (n > 1)
        qsort(names, n, sizeof *names, by_name);
    *out = names;
    *out_n = n;
    return status;
}

static void free_names(char **names, size_t n) {
    for (size_t i = 0; i < n; i++)
        tni_free(names[i]);
    tni_free(names);
}

static bool searched_already(const search *s, const tni_place *place) {
    for (const tni_place *p = s->catalog->places; p && p != place; p = p->next)
        if (p->inode == place->inode && p->device == place->device)
            return true;
    return false;
}

static tn_status search_open_directory(search *s, tni_place *place, DIR *dir) {
    char **names;
    size_t n;
    tn_status status = list_directory(dir, tni_name_tells, &names, &n);
    for (size_t i = 0; i < n && !status; i++) {
        char *path = tni_format("%s/%s", place->name, names[i]);
        status = path ? add_found(s, path, TNI_FROM_DIRECTORY) : TN_ERR_OUT_OF_MEMORY;
        tni_free(path);
        place->n_files++;
    }
    free_names(names, n);
    return status;
}

static tn_status search_directory(search *s, const char *name, const char *from, bool expected) {
    tni_place *place = add_place(s, name, from, expected);
    if (!place)
        return TN_ERR_OUT_OF_MEMORY;
    if (!*name)
        return add_problem(place, tni_strdup("an empty entry would mean the working directory,"
                                             " which is never searched; remove it"));
    if (*name != '/')
        return add_problem(place, tni_strdup("a relative path is refused, since the working"
                                             " directory may be anyone's; write the absolute"
                                             " path"));
    char real[PATH_MAX], why[PATH_MAX + 512];
    struct stat st;
    if (!realpath(name, real) || stat(real, &st) != 0)
        return add_problem(place, errno == ENOENT ? tni_strdup("no such directory")
                                                  : tni_format("cannot be read: %s; put its"
                                                               " permissions right, or remove it"
                                                               " from the search",
                                                               strerror(errno)));
    if (!S_ISDIR(st.st_mode))
        return add_problem(place, tni_strdup("this is no directory; files are named in"
                                             " TENON_PLUGINS"));
    place->device = st.st_dev;
    place->inode = st.st_ino;
    place->again = searched_already(s, place);
    if (place->again)
        return add_problem(place, tni_strdup("searched already under another name"));
    if (!tni_trusted(real, tni_env_is_secure(), why, sizeof why))
        return add_problem(place, tni_strdup(why));
    DIR *dir = opendir(real);
    if (!dir)
        return add_problem(place, tni_format("cannot be read: %s; put its permissions right, or"
                                             " remove it from the search",
                                             strerror(errno)));
    char *real_name = tni_strdup(real);
    tn_status status = TN_ERR_OUT_OF_MEMORY;
    if (real_name) {
        tni_free(place->name);
        place->name = real_name;
        status = search_open_directory(s, place, dir);
    }
    closedir(dir);
    return status;
}

/* Calls `fn` for each entry of a colon-separated variable. */
static tn_status for_each_entry(search *s, tni_env_id id,
                                tn_status (*fn)(search *s, const char *entry, const char *from)) {
    const char *p = tni_env(id);
    if (!*p)
        return TN_OK;
    for (;;) {
        size_t n = strcspn(p, ":");
        char *entry = tni_format("%.*s", (int)n, p);
        tn_status status = entry ? fn(s, entry, tni_env_table[id].name) : TN_ERR_OUT_OF_MEMORY;
        tni_free(entry);
        if (status || !p[n])
            return status;
        p += n + 1;
    }
}

static tn_status search_path_entry(search *s, const char *entry, const char *from) {
    return search_directory(s, entry, from, true);
}

static tn_status add_plugins_entry(search *s, const char *entry, const char *from) {
    if (*entry)
        return add_found(s, entry, TNI_FROM_PLUGINS);
    tni_place *place = add_place(s, "", from, true);
    return place ? add_problem(place, tni_strdup("an empty entry names no plugin; remove it"))
                 : TN_ERR_OUT_OF_MEMORY;
}

static bool visible(const char *name) {
    return name[0] != '.';
}

/* <dir>/../plugins/<each>/ of a build tree. */
static tn_status search_build_tree(search *s, const char *library_dir) {
    char *plugins = tni_format("%s/../plugins", library_dir);
    if (!plugins)
        return TN_ERR_OUT_OF_MEMORY;
    tn_status status = TN_OK;
    DIR *dir = opendir(plugins);
    if (dir) {
        char **names;
        size_t n;
        status = list_directory(dir, visible, &names, &n);
        for (size_t i = 0; i < n && !status; i++) {
            struct stat st;
            char *path = tni_format("%s/%s", plugins, names[i]);
            if (!path)
                status = TN_ERR_OUT_OF_MEMORY;
            else if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
                status = search_directory(s, path, "build tree", false);
            tni_free(path);
        }
        free_names(names, n);
        closedir(dir);
    }
    tni_free(plugins);
    return status;
}

/* The directory of the object this code is in; false when it cannot be told. */
static bool library_directory(char *out) {
    Dl_info info;
    char real[PATH_MAX];
    /* For a program, dladdr gives argv[0], which may be relative and is anyone's to choose. */
    bool shared = dladdr((const void *)&tni_file_name, &info) && info.dli_fname &&
                  info.dli_fname[0] == '/' && realpath(info.dli_fname, real);
    if (!shared && !realpath("/proc/self/exe", real))
        return false;
    *strrchr(real, '/') = '\0';
    memcpy(out, real, strlen(real) + 1);
    return true;
}

static tn_status search_beside_library(search *s) {
    char here[PATH_MAX];
    if (!library_directory(here))
        return TN_OK;
    char *path = tni_format("%s/tenon/plugins", here);
    char *marker = tni_format("%s/" BUILD_TREE_MARKER, here);
    tn_status status = TN_ERR_OUT_OF_MEMORY;
    if (path && marker) {
        bool build_tree = access(marker, F_OK) == 0;
        status = build_tree ? search_build_tree(s, here)
                            : search_directory(s, path, "beside libtenon", false);
    }
    tni_free(path);
    tni_free(marker);
    return status;
}

static tn_status run_search(search *s) {
    if (tni_env_is_set(TNI_ENV_PLUGINS))
        return for_each_entry(s, TNI_ENV_PLUGINS, add_plugins_entry);
    tn_status status = for_each_entry(s, TNI_ENV_PLUGIN_PATH, search_path_entry);
    if (!status)
        status = search_beside_library(s);
    if (!status)
        status = search_directory(s, TNI_PLUGIN_DIR, "system directory", false);
    return status;
}

/* What the program named is not searched for, but judged like the rest. */
static tn_status look_again(tni_candidate *c) {
    tni_plugin *p = &c->plugin;
    if (!p->path || p->state != TNI_PLUGIN_FOUND)
        return TN_OK;
    file_facts f;
    look_at(&f, p->path, TNI_FROM_PROGRAM);
    char *path = tni_strdup(f.path);
    if (!path)
        return TN_ERR_OUT_OF_MEMORY;
    tni_free(p->path);
    p->path = path;
    c->device = f.device;
    c->inode = f.inode;
    return judge(c, &f);
}

tn_status tni_discover(tni_catalog *catalog) {
    search s = {.catalog = catalog};
    free_places(catalog);
    for (tni_plugin *p = catalog->first, *next; p; p = next) {
        next = p->next;
        append(tni_candidate_of(p)->source == TNI_FROM_PROGRAM ? &s.found : &s.old, p);
    }
    tn_status status = TN_OK;
    for (tni_plugin *p = s.found; p && !status; p = p->next)
        status = look_again(tni_candidate_of(p));
    if (!status)
        status = run_search(&s);
    /* What was not found again stays when it is in use, or when the search was not finished. */
    for (tni_plugin *p = s.old, *next; p; p = next) {
        next = p->next;
        bool keep = status || p->state == TNI_PLUGIN_LOADED || p->state == TNI_PLUGIN_READY;
        append(keep ? &s.found : &catalog->retired, p);
    }
    catalog->first = s.found;
    return status;
}
