/* The plugin under test, opened through plugin.h alone. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_SUBJECT_SUBJECT_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_SUBJECT_SUBJECT_H

#include "plugin-sdk/conformance/case.h"
#include "plugin-sdk/conformance/verdict.h"
#include "plugin-sdk/conformance/worker/worker.h"
#include "plugin-sdk/conformance/worker/subject/host.h"

typedef struct tc_subject {
    void *object; /* from dlopen; stays mapped until the process ends */
    const tn_plugin *plugin;
    const tn_host *host; /* that init was given */
    tn_instance *self;
    const tn_device_ops *ops;
    const tn_memory_ops *memory;
    tn_device_impl *device;
    tn_stream_impl *stream; /* NULL on a device without streams */
    uint32_t index, n_devices;
    uint64_t alignment;
    uint64_t dtypes;  /* that the device can store */
    uint64_t flushes; /* whose subnormal numbers it may take for zero */
    uint64_t max_allocation;
    uint64_t spaces; /* that alloc serves */
    bool host_memory;
    tn_requirement broken; /* the requirement for which it could not be loaded or opened; 0: none */
} tc_subject;

/* The dtypes that this suite knows. */
#define TC_DTYPES_KNOWN (TN_DTYPE_BIT(TN_DTYPE_COUNT) - 1)

/* Built against a later version? Then what it has and this suite does not know is no mistake. */
static inline bool tc_is_newer(const tn_plugin *plugin) {
    return plugin->abi_version > TN_ABI_VERSION;
}

/* Loads and queries the shared object: no init. False with `why` and `broken`. */
bool tc_subject_load(tc_subject *s, const char *path, const tn_host *host, char why[TC_MESSAGE]);

/* From a loaded plugin to an open device with a stream. On failure undoes what it did. */
bool tc_subject_open(tc_subject *s, const char *path, uint32_t index, const tn_host *host,
                     char why[TC_MESSAGE]);

/* Undoes tc_subject_open. */
void tc_subject_close(tc_subject *s);

/* The subject that a worker keeps open from case to case; opened at the first call. On failure
 * fills `out` (a FAIL, or an ERROR where there is no such device) and returns NULL. */
tc_subject *tc_subject_shared(const tc_options *options, tc_verdict *out);
void tc_subject_shared_close(void);

/* Does the device say how much memory there is? */
bool tc_has_info(const tc_subject *s);

/* What a refused alloc may leave behind: what was asked for, and what it gives out as it was or cleared. */
bool tc_is_as_asked(tn_allocation now, const tn_allocation *asked);

/* Memory of the device's own alignment, without flags; where there is none both outputs are cleared.
 * More than TN_PROP_MAX_ALLOCATION is not asked for, and is TN_ERR_OUT_OF_MEMORY. */
tn_status tc_alloc(const tc_subject *s, int32_t space, uint64_t bytes, tn_memory *out_memory,
                   void **out_host);

/* The same, asked for whatever the size: for what is to be refused. */
tn_status tc_alloc_any(const tc_subject *s, int32_t space, uint64_t bytes, tn_memory *out_memory,
                       void **out_host);

/* Has tc_alloc come to nothing, with that status, last on this thread, by no fault of the device's: too
 * much in one for it, or all that it has is held (held.h)? */
bool tc_lacks(tn_status status);

/* Then the case is `unsupported`. That what was freed is there again, TNP_FREE_RETURNS_MEMORY, is excused
 * by the size only. */
bool tc_excuses(tc_verdict *verdict, tn_requirement requirement, tn_status status,
                const char *what);

/* What `info` says is free of device memory; the largest number where it does not say, or where the
 * memory is the host's, of which everybody takes all the time. */
uint64_t tc_free_bytes(const tc_subject *s);

/* Waits for the stream and returns its error; TN_OK without streams. */
tn_status tc_subject_sync(tc_subject *s);

/* An integer or boolean property, or `otherwise` where the plugin does not answer it. */
int64_t tc_subject_property(const tc_subject *s, uint32_t index, int32_t property,
                            int64_t otherwise);

/* Makes it the one of that index: what the plugin says of it, which each device of one may say otherwise. */
void tc_subject_describe(tc_subject *s, uint32_t index);

/* A table of the plugin's, see tenon/ext/; NULL where it has none. */
const void *tc_subject_extension(const tc_subject *s, const char *id);

const char *tc_tn_status_name(tn_status status); /* "TN_ERR_OUT_OF_MEMORY"; never NULL */

/* "status TN_…: message" of the last failure on this thread. Returns out. */
char *tc_reason(tn_status status, char out[TC_MESSAGE]);

#endif
