/* What is wrong with the environment, said once: values that are not allowed, names that are nearly one
 * of Tenon's, options that a plugin does not have. */
#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "base/text.h"
#include "loader/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

extern char **environ;

static const char prefix[] = "TENON_";
enum { PREFIX = sizeof prefix - 1, MAX_NAME = 64 };

/* The part of "TENON_DEVICE=cpu:0" between prefix and =, in `out`; false for other variables. */
static bool variable_name(const char *setting, char out[MAX_NAME]) {
    size_t n = strcspn(setting, "=");
    if (strncmp(setting, prefix, PREFIX) != 0 || n <= PREFIX || n - PREFIX >= MAX_NAME)
        return false;
    memcpy(out, setting + PREFIX, n - PREFIX);
    out[n - PREFIX] = '\0';
    return true;
}

static bool is_known(const char *name) {
    for (int i = 0; i < TNI_ENV_COUNT; i++)
        if (strcmp(tni_env_table[i].name + PREFIX, name) == 0)
            return true;
    return false;
}

/* Does the first word of `name` (SIM of SIM_MEMORY) begin a type, or a plugin's file name? */
static bool is_of_type(const char *name, const char *type) {
    size_t n = strcspn(name, "_");
    for (size_t i = 0; i < n; i++)
        if (toupper((unsigned char)type[i]) != name[i])
            return false;
    return name[n] == '_' && !isalnum((unsigned char)type[n]);
}

static bool is_option(const tni_catalog *catalog, const char *name) {
    static const char file[] = "libtenon_";
    for (const tni_plugin *p = catalog->first; p; p = p->next)
        if ((p->table && is_of_type(name, p->table->device_type)) ||
            (p->path && tni_name_tells(p->path) &&
             is_of_type(name, tni_file_name(p->path) + sizeof file - 1)))
            return true;
    return false;
}

static const char *nearest(const char *name) {
    for (int i = 0; i < TNI_ENV_COUNT; i++)
        if (tni_text_is_near(name, tni_env_table[i].name + PREFIX))
            return tni_env_table[i].name;
    return NULL;
}

/* What of the environment looks like Tenon's and is not in its table. */
void tni_settings_others(const tni_catalog *catalog,
                         void (*fn)(const tni_other_setting *other, void *user), void *user) {
    char name[MAX_NAME];
    for (char **setting = environ; setting && *setting; setting++) {
        if (!variable_name(*setting, name) || is_known(name))
            continue;
        bool option = is_option(catalog, name);
        char whole[PREFIX + MAX_NAME];
        snprintf(whole, sizeof whole, "%s%s", prefix, name);
        fn(&(tni_other_setting){whole, *setting + strlen(whole) + 1, option,
                                option ? NULL : nearest(name)},
           user);
    }
}

void tni_settings_problem(const tni_catalog *catalog, const char *variable, char *out,
                          size_t size) {
    for (const tni_place *p = catalog->places; p && !*out; p = p->next)
        if (p->problem && strcmp(p->from, variable) == 0)
            snprintf(out, size, "'%s': %s", p->name, p->problem);
    bool files = strcmp(variable, tni_env_table[TNI_ENV_PLUGINS].name) == 0;
    for (const tni_plugin *p = catalog->first; p && files && !*out; p = p->next)
        if (p->state == TNI_PLUGIN_REFUSED && tni_candidate_of(p)->source == TNI_FROM_PLUGINS)
            snprintf(out, size, "%s", p->reason ? p->reason : p->path);
}

static void tell_of(const tni_other_setting *other, void *user) {
    if (other->near)
        tni_log_once(TN_LOG_WARN, "env",
                     "%s is set, but nothing reads it; did you mean %s? `tenon env` lists all",
                     other->name, other->near);
}

void tni_settings_check(const tni_catalog *catalog) {
    tni_log_check();
    for (int i = 0; i < TNI_ENV_COUNT; i++)
        tni_env((tni_env_id)i); /* says what is wrong with it */
    tni_settings_others(catalog, tell_of, NULL);
}

/* ---- options of plugins ------------------------------------------------------------------ */

static const char *nearest_option(const char *name, const tni_asked *asked, const char *type) {
    char variable[256];
    for (; asked; asked = asked->next)
        if (tni_option_variable(variable, sizeof variable, type, asked->name) &&
            tni_text_is_near(name, variable + PREFIX))
            return asked->name;
    return NULL;
}

static bool was_asked(const char *name, const tni_asked *asked, const char *type) {
    char variable[256];
    for (; asked; asked = asked->next)
        if (tni_option_variable(variable, sizeof variable, type, asked->name) &&
            strcmp(variable + PREFIX, name) == 0)
            return true;
    return false;
}

void tni_settings_check_options(const tni_plugin *plugin) {
    const tni_asked *asked = tni_host_asked(plugin);
    const char *type = plugin->table->device_type;
    char begin[MAX_NAME], name[MAX_NAME];
    if (tni_env_is_secure() || !tni_option_variable(begin, sizeof begin, type, ""))
        return;
    for (char **setting = environ; setting && *setting; setting++) {
        if (strncmp(*setting, begin, strlen(begin)) != 0 || !variable_name(*setting, name) ||
            is_known(name) || was_asked(name, asked, type))
            continue;
        const char *near = nearest_option(name, asked, type);
        tni_text all = {0};
        for (const tni_asked *a = asked; a; a = a->next)
            tni_text_add(&all, "%s%s", a == asked ? "" : ", ", a->name);
        tni_log_once(TN_LOG_WARN, "env", "TENON_%s is set, but %s has no such option%s%s%s: %s",
                     name, plugin->table->id, near ? "; did you mean " : "", near ? near : "",
                     asked ? "; it has" : "", all.data ? all.data : "none");
        tni_free(all.data);
    }
}
