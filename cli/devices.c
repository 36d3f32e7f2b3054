/* tenon devices: every device that can be used, and which one is the default. */
#include "cli/cli.h"
#include "cli/devices.h"
#include "cli/guard.h"
#include "cli/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>

/* What a plugin offers, kept until the list of plugins is through: devices cannot be opened while
 * the loader is telling of its plugins. */
typedef struct offer {
    struct offer *next;
    char device_type[80], plugin[80];
    uint32_t n_devices;
} offer;

typedef struct offers {
    offer *first, **end;
} offers;

static void note_offer(const tn_plugin_info *info, void *user) {
    offers *all = user;
    if (strcmp(info->state, "ready") != 0)
        return;
    offer *o = calloc(1, sizeof(*o));
    if (!o)
        return;
    snprintf(o->device_type, sizeof(o->device_type), "%s", info->device_type);
    snprintf(o->plugin, sizeof(o->plugin), "%s", info->id);
    o->n_devices = info->n_devices;
    *all->end = o;
    all->end = &o->next;
}

static void open_devices(const offer *o, device_fn fn, void *user) {
    for (uint32_t i = 0; i < o->n_devices; i++) {
        char name[96];
        snprintf(name, sizeof(name), "%s:%u", o->device_type, i);
        fn(name, tn_device_parse(name), o->plugin, user);
        tn_error_clear();
    }
}

void for_each_device(device_fn fn, void *user) {
    offers all = {.end = &all.first};
    tn_plugin_list(true, note_offer, &all);
    for (offer *o = all.first, *next; o; o = next) {
        next = o->next;
        open_devices(o, fn, user);
        free(o);
    }
}

typedef struct listing {
    json_t *rows;
    tn_device standard; /* the default */
    int n_usable;
} listing;

static uint64_t dtype_mask(tn_device device) {
    uint64_t mask = 0;
    for (tn_dtype dtype = 0; dtype < TN_DTYPE_COUNT; dtype++) {
        if (tn_device_has_dtype(device, dtype))
            mask |= TN_DTYPE_BIT(dtype);
    }
    return mask;
}

static void list_device(const char *name, tn_device device, const char *plugin, void *user) {
    listing *l = user;
    bool opened = device.type != 0;
    bool is_default = opened && tn_device_equal(device, l->standard);
    const char *failure = opened ? "" : tn_error_message();
    const char *product = opened ? tn_device_product(device) : "";
    char dtypes[96] = "";
    if (opened)
        dtypes_text(dtype_mask(device), dtypes, sizeof(dtypes));
    l->n_usable += opened;

    json_array_append_new(l->rows, json_pack("{s:o, s:o, s:o, s:s, s:b, s:b, s:o}", "device",
                                             text(name), "product", text(product), "plugin",
                                             text(plugin), "dtypes", dtypes, "default", is_default,
                                             "usable", opened, "reason", text(failure)));
}

static int list_devices(const options *o) {
    static const column columns[] = {{.heading = " ", .key = "default", .yes = "*", .no = " "},
                                     {.heading = "DEVICE", .key = "device"},
                                     {.heading = "PRODUCT", .key = "product"},
                                     {.heading = "PLUGIN", .key = "plugin"},
                                     {.heading = "DTYPES", .key = "dtypes"},
                                     {0}};
    listing l = {.rows = json_array(), .standard = tn_default_device()};
    bool no_default = l.standard.type == 0;
    char why[4096] = "";
    if (no_default)
        snprintf(why, sizeof(why), "%s", tn_error_message());
    tn_error_clear();

    for_each_device(list_device, &l);
    if (o->json)
        print_json(l.rows);
    else
        print_table(l.rows, columns, 0);
    if (!o->json && !no_default)
        printf("\n* the default (TENON_DEVICE)\n");
    json_decref(l.rows);
    fflush(stdout); /* the notes come after the table, wherever each goes */
    if (no_default) {
        fputs("tenon: the default device cannot be used: ", stderr);
        put_safely(stderr, why, true);
        fputc('\n', stderr);
    }
    if (l.n_usable == 0)
        fprintf(stderr, "tenon: no device can be used; `tenon plugins` says why\n");
    return l.n_usable > 0 ? EXIT_OK : EXIT_FAILED;
}

int command_devices(const options *o) {
    return run_with_plugins(o, list_devices, true);
}
