/* tenon/plugins.h, the programs' door to the loader. */
#include "base/error.h"
#include "loader/internal.h"

#include <tenon/plugins.h>

tn_status tn_plugin_load(const char *path) {
    return tni_loader_load(path, NULL);
}

tn_status tn_plugin_register(tn_plugin_query_fn query) {
    return tni_loader_register(query, NULL);
}

tn_status tn_plugin_exclude(const char *path, const char *reason) {
    return tni_loader_exclude(path, reason);
}

tn_status tn_plugin_set_option(const char *device_type, const char *name, const char *value) {
    return tni_loader_set_option(device_type, name, value);
}

typedef struct listing {
    void (*fn)(const tn_plugin_info *info, void *user);
    void *user;
} listing;

static void list_one(const tni_plugin *p, void *user) {
    const listing *l = user;
    const tn_plugin *table = p->table;
    tn_plugin_info info = {
        .struct_size = sizeof info,
        .state = tni_plugin_state_name(p->state),
        .reason = p->reason ? p->reason : "",
        .path = p->path ? p->path : "",
        .id = table ? table->id : "",
        .device_type = p->key ? p->key : "",
        .name = table ? table->name : "",
        .version = table ? table->version : "",
        .abi_version = table ? table->abi_version : 0,
        .n_devices = p->n_devices,
        .n_kernels = p->n_kernels,
        .n_unknown_kernels = p->n_unknown,
    };
    l->fn(&info, l->user);
}

void tn_plugin_list(bool open, void (*fn)(const tn_plugin_info *info, void *user), void *user) {
    if (!fn) {
        tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_plugin_list: fn is NULL");
        return;
    }
    if (open)
        tni_loader_open_all();
    listing l = {fn, user};
    tni_loader_for_each(list_one, &l);
}
