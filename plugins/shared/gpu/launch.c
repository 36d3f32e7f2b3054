/* The kernels that were built for a device, by key. A table that only grows: it is searched
 * without a lock, as every call does, and written under one. */
#include "plugins/shared/gpu/gpu.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { TABLE = 4096 }; /* kernels of a device; more than there are operators, dtypes and forms */

/* An entry of the table. */
typedef struct entry {
    _Atomic uint64_t key; /* 0: free; else with USED */
    gpu_kernel *kernel;
} entry;

struct gpu_kernel_table {
    pthread_mutex_t building;
    entry entries[TABLE];
};

static const uint64_t USED = UINT64_C(1) << 63;

/* Where `key` is, or would be; NULL where the table is full. */
static entry *entry_of(gpu_kernel_table *kernels, uint64_t key) {
    uint64_t at = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 52;
    for (int i = 0; i < TABLE; i++, at = (at + 1) % TABLE) {
        uint64_t there = atomic_load_explicit(&kernels->entries[at].key, memory_order_acquire);
        if (there == 0 || there == key)
            return &kernels->entries[at];
    }
    return NULL;
}

/* The kernel under `key`, or NULL. */
static gpu_kernel *find(gpu_kernel_table *kernels, uint64_t key) {
    entry *e = entry_of(kernels, key);
    /* An entry that was free may just have been taken for another key. */
    return e && atomic_load_explicit(&e->key, memory_order_acquire) == key ? e->kernel : NULL;
}

/* `text` is the kernel's name and the options. */
static tn_status build(tn_device_impl *device, uint64_t key, const gpu_source *source, char *text,
                       gpu_kernel **out) {
    const gpu_device *d = (const gpu_device *)device;
    char *options = strchr(text, ' ');
    *options++ = '\0';
    gpu_variant variant = {.source = source, .entry = text, .options = options};
    tn_status status = TN_OK;
    pthread_mutex_lock(&d->kernels->building);
    entry *e = entry_of(d->kernels, key);
    if (!e) {
        status = d->host->fail(d->host, TN_ERR_INTERNAL,
                               "as many kernels as can be kept were built for a device");
    } else if (atomic_load(&e->key) == 0) {
        status = d->driver->build(device, &variant, &e->kernel);
        if (status == TN_OK)
            atomic_store_explicit(&e->key, key, memory_order_release);
    }
    pthread_mutex_unlock(&d->kernels->building);
    if (status == TN_OK)
        *out = e->kernel;
    return status;
}

tn_status gpu_run(const tn_call *call, const gpu_launch *launch, uint64_t key,
                  const gpu_source *source, const char *format, ...) {
    const gpu_device *device = (const gpu_device *)call->device;
    gpu_kernel *kernel = find(device->kernels, key | USED);
    if (!kernel) {
        char text[64 + GPU_OPTIONS];
        va_list list;
        va_start(list, format);
        vsnprintf(text, sizeof text, format, list);
        va_end(list);
        PLUGIN_TRY(build(call->device, key | USED, source, text, &kernel));
    }
    if (launch->groups[0] > INT32_MAX || launch->groups[1] > GPU_MAX_GROUPS ||
        launch->groups[2] > GPU_MAX_GROUPS)
        return device->host->fail(device->host, TN_ERR_UNSUPPORTED,
                                  "the tensors are too large: no launch has so many work groups");
    return device->driver->launch(call->stream, kernel, launch);
}

void gpu_launch_elements(gpu_launch *launch, const gpu_traits *traits, int64_t n, int64_t each) {
    gpu_launch_items(launch, gpu_ceil_div(n, traits->is_cpu ? 1 : each), GPU_GROUP);
    launch->goes_on = !traits->is_cpu;
}

uint64_t gpu_macros(const char *options, char *out, uint64_t room) {
    uint64_t n = 0;
    while (*(options += strspn(options, " "))) {
        int word = (int)strcspn(options, " "), name = (int)strcspn(options, "= ");
        const char *value = options + name + (name < word);
        n += (uint64_t)snprintf(n < room ? out + n : NULL, n < room ? room - n : 0,
                                "#define %.*s %.*s\n", name - 2, options + 2,
                                (int)(options + word - value), value);
        options += word;
    }
    return n + 1;
}

tn_status gpu_device_init(gpu_device *device, const tn_host *host, const gpu_driver *driver,
                          const gpu_traits *traits) {
    *device = (gpu_device){.host = host, .driver = driver, .traits = traits};
    gpu_kernel_table *kernels = host->alloc(host, sizeof *kernels, _Alignof(gpu_kernel_table));
    if (!kernels)
        return host->fail(host, TN_ERR_OUT_OF_MEMORY, "no host memory for the table of kernels");
    memset(kernels, 0, sizeof *kernels);
    pthread_mutex_init(&kernels->building, NULL);
    device->kernels = kernels;
    return TN_OK;
}

void gpu_device_finish(gpu_device *device) {
    gpu_kernel_table *kernels = device->kernels;
    if (!kernels)
        return;
    for (int i = 0; i < TABLE; i++)
        if (kernels->entries[i].key)
            device->driver->release((tn_device_impl *)device, kernels->entries[i].kernel);
    pthread_mutex_destroy(&kernels->building);
    device->host->dealloc(device->host, kernels);
    device->kernels = NULL;
}
