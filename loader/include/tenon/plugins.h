/* tenon/plugins.h: loading plugins by hand, and asking what became of them.
 *
 * Most programs need none of this: a device's plugin is found and loaded when the device is first
 * asked for. All functions may be called from any thread.
 */
#ifndef TENON_PLUGINS_H
#define TENON_PLUGINS_H

#include <tenon/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loads a plugin from a file, before or besides the search. */
TN_API tn_status tn_plugin_load(const char *path);

/* Registers a plugin that is linked into the program (see TN_PLUGIN_QUERY in tenon/plugin.h). */
TN_API tn_status tn_plugin_register(tn_plugin_query_fn query);

/* Keeps a file that was found, and not opened, from being opened; `reason` is shown as that of
 * its failure. For programs that have seen it end a process. TN_ERR_NOT_FOUND when no such file
 * waits to be opened. */
TN_API tn_status tn_plugin_exclude(const char *path, const char *reason);

/* Sets option `name` of plugins of `device_type`; only before such a plugin is started. Wins over
 * the environment variable TENON_<TYPE>_<NAME>. */
TN_API tn_status tn_plugin_set_option(const char *device_type, const char *name, const char *value);

/* One candidate, as tn_plugin_list gives it; strings are valid during the callback. */
typedef struct tn_plugin_info {
    uint64_t struct_size;
    const char *state;       /* "found", "disabled", "refused", "loaded", "failed", "ready" */
    const char *reason;      /* why it does not work, and what to do; "" when it does */
    const char *path;        /* "" when linked into the program */
    const char *id;          /* "" when it could not be opened, so for the following */
    const char *device_type; /* "npu", or "npu@com.acme" where two plugins have the type */
    const char *name;
    const char *version;
    uint32_t abi_version;
    uint32_t n_devices;
    uint32_t n_kernels;
    uint32_t n_unknown_kernels;
} tn_plugin_info;

/* Calls fn for every candidate in search order. With `open` each is opened and started first;
 * without, only what is known already is told. fn runs under the loader's lock: it must not open
 * devices, load or register plugins, or call operators. */
TN_API void tn_plugin_list(bool open, void (*fn)(const tn_plugin_info *info, void *user),
                           void *user);

#ifdef __cplusplus
}
#endif

#endif /* TENON_PLUGINS_H */
