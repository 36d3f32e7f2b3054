/* The words when a device type cannot be had: every candidate with its reason, where was searched,
 * and what to do about it. */
#include "base/alloc.h"
#include "base/env.h"
#include "base/text.h"
#include "loader/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tni_plugin_state_name(tni_plugin_state state) {
    static const char *const names[] = {
        [TNI_PLUGIN_FOUND] = "found",     [TNI_PLUGIN_DISABLED] = "disabled",
        [TNI_PLUGIN_REFUSED] = "refused", [TNI_PLUGIN_LOADED] = "loaded",
        [TNI_PLUGIN_FAILED] = "failed",   [TNI_PLUGIN_READY] = "ready",
    };
    return names[state];
}

/* Does the candidate have to do with the type, as far as can be told? */
static bool concerns(const tni_plugin *p, const char *type) {
    if (p->table)
        return strcmp(p->table->device_type, type) == 0;
    return !p->path || tni_candidate_of(p)->source != TNI_FROM_DIRECTORY ||
           tni_name_serves(p->path, type);
}

static void add_candidate(tni_text *text, const tni_plugin *p) {
    const char *path = p->path ? p->path : "(linked into the program)";
    if (p->state == TNI_PLUGIN_FOUND)
        return; /* named for another type, and not opened */
    if (p->state == TNI_PLUGIN_LOADED || p->state == TNI_PLUGIN_READY)
        tni_text_add(text, "\n  %s: provides '%s' (as '%s@%s')", path, p->table->device_type,
                     p->table->device_type, p->table->id);
    else /* a reason begins with the path */
        tni_text_add(text, "\n  %s", p->reason ? p->reason : path);
}

/* What stands for the type in a file's name: libtenon_TYPE.so. */
static void type_of_name(const char *path, char *out, size_t size) {
    const char *name = tni_file_name(path) + strlen("libtenon_");
    size_t n = strcspn(name, ".");
    snprintf(out, size, "%.*s", (int)n, name);
}

/* The types of plugins that are there and were not opened, and which of them was perhaps meant. */
static void add_others(tni_text *text, const tni_catalog *catalog, const char *type) {
    char name[64], near[64] = "", last[64] = "", lower[64];
    size_t n = 0;
    for (; n < sizeof lower - 1 && type[n]; n++)
        lower[n] = (char)(type[n] >= 'A' && type[n] <= 'Z' ? type[n] + 'a' - 'A' : type[n]);
    lower[n] = '\0';
    for (const tni_plugin *p = catalog->first; p; p = p->next) {
        if (p->state != TNI_PLUGIN_FOUND || !p->path)
            continue;
        type_of_name(p->path, name, sizeof name);
        if (strcmp(lower, name) == 0 || (!*near && tni_text_is_near(lower, name)))
            snprintf(near, sizeof near, "%s", name);
        if (strcmp(last, name) != 0)
            tni_text_add(text, "%s%s", *last ? ", " : "\n  there are plugins for ", name);
        snprintf(last, sizeof last, "%s", name);
    }
    if (*near)
        tni_text_add(text, "; did you mean '%s'?", near);
}

static void add_place(tni_text *text, const tni_place *place) {
    if (!place->problem)
        tni_text_add(text, "\n  searched: %s (%u %s; %s)", place->name, place->n_files,
                     place->n_files == 1 ? "plugin" : "plugins", place->from);
    else
        tni_text_add(text, "\n  %s: '%s' (%s): %s", place->expected ? "not searched" : "searched",
                     place->name, place->from, place->problem);
}

static void add_advice(tni_text *text, const char *type, bool tried) {
    if (tni_env_is_secure() && (getenv("TENON_PLUGINS") || getenv("TENON_PLUGIN_PATH")))
        tni_text_add(text, "\n  TENON_PLUGINS and TENON_PLUGIN_PATH are ignored, because this"
                           " program runs with raised privileges");
    if (tni_env_is_set(TNI_ENV_PLUGINS))
        tni_text_add(text,
                     "\n  TENON_PLUGINS is set, so only the files it names are"
                     " looked at; add the plugin for '%s' to it, or unset it",
                     type);
    else if (tried)
        tni_text_add(text, "\n  put that right, or choose another device");
    else
        tni_text_add(text,
                     "\n  put libtenon_%s.so or libtenon_%s_*.so into a directory that is searched,"
                     " add its directory to TENON_PLUGIN_PATH, or name the file in TENON_PLUGINS",
                     type, type);
}

char *tni_report_missing(const tni_catalog *catalog, const char *type, const char *id,
                         tn_status *out_status) {
    bool tried = false;
    *out_status = TN_ERR_NOT_FOUND;
    for (const tni_plugin *p = catalog->first; p; p = p->next) {
        bool stopped = p->state == TNI_PLUGIN_REFUSED || p->state == TNI_PLUGIN_FAILED ||
                       p->state == TNI_PLUGIN_DISABLED;
        bool other = id && p->table && strcmp(p->table->id, id) != 0;
        if (!stopped || other || !concerns(p, type))
            continue;
        if (!tried && p->status)
            *out_status = p->status;
        tried = true;
    }
    tni_text text = {0};
    if (id)
        tni_text_add(&text, "no plugin '%s' provides device type '%s'", id, type);
    else if (tried)
        tni_text_add(&text, "no working plugin for device type '%s'", type);
    else
        tni_text_add(&text, "no plugin provides device type '%s'", type);
    /* What was tried for this type first; the rest only shows that the search itself worked. */
    for (int round = 0; round < 2; round++)
        for (const tni_plugin *p = catalog->first; p; p = p->next)
            if (concerns(p, type) == (round == 0))
                add_candidate(&text, p);
    add_others(&text, catalog, type);
    for (const tni_place *place = catalog->places; place; place = place->next)
        if (!place->again || place->expected)
            add_place(&text, place);
    add_advice(&text, type, tried);
    if (!text.failed)
        return text.data;
    tni_free(text.data);
    return NULL;
}
