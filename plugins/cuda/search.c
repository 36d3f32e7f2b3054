/* Which devices there are: those of the driver, in its order (CUDA_VISIBLE_DEVICES holds), but for
 * those that are older than device code is written for. */
#include "plugins/cuda/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

enum { MIN_CAPABILITY = 75, MIN_DRIVER = 12000 };

static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};

static void keep_reason(tn_instance *self, const char *who, const char *why) {
    size_t n = strlen(self->reason);
    snprintf(self->reason + n, sizeof self->reason - n, "%s%.120s %.200s", n ? "; " : "", who, why);
    char line[CUDA_MESSAGE];
    snprintf(line, sizeof line, "%.120s is not used: it %.200s", who, why);
    self->host->log_message(self->host, TN_LOG_INFO, line);
}

/* ---- one device -------------------------------------------------------------------------- */

static CUresult describe(const cuda_driver *d, cuda_found *out) {
    int units = 0, group = 0, threads = 0, shared = 0;
    size_t bytes = 0;
    const struct {
        int *out;
        CUdevice_attribute what;
    } asked[] = {{&out->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
                 {&out->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
                 {&units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
                 {&group, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
                 {&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
                 {&shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK}};
    CUresult error = d->cuDeviceGetName(out->name, sizeof out->name, out->id);
    out->name[sizeof out->name - 1] = '\0';
    for (size_t i = 0; error == CUDA_SUCCESS && i < sizeof asked / sizeof asked[0]; i++)
        error = d->cuDeviceGetAttribute(asked[i].out, asked[i].what, out->id);
    if (error == CUDA_SUCCESS)
        error = d->cuDeviceTotalMem_v2(&bytes, out->id);
    out->memory_bytes = bytes;
    out->traits = (gpu_traits){.is_cpu = false,
                               .has_f64 = true,
                               .compute_units = units > 0 ? (uint32_t)units : 1,
                               .unit_items = threads > 0 ? (uint32_t)threads : 0,
                               .max_group = group > 0 ? (uint32_t)group : GPU_GROUP,
                               .warp = 32,
                               .local_bytes = shared > GPU_LOCAL ? (uint32_t)shared : GPU_LOCAL,
                               .vector_bytes = 16};
    return error;
}

static void add_device(tn_instance *self, int ordinal) {
    const cuda_driver *d = &self->driver;
    cuda_found found = {0};
    char who[CUDA_NAME], why[CUDA_NAME];
    snprintf(who, sizeof who, "GPU %d", ordinal);
    CUresult error = d->cuDeviceGet(&found.id, ordinal);
    if (error == CUDA_SUCCESS)
        error = describe(d, &found);
    if (error != CUDA_SUCCESS) {
        const char *name = NULL;
        d->cuGetErrorName(error, &name);
        snprintf(why, sizeof why, "does not answer: %s (%d)", name ? name : "an unknown error",
                 (int)error);
    } else if (found.major * 10 + found.minor < MIN_CAPABILITY) {
        snprintf(who, sizeof who, "%.120s", found.name);
        snprintf(why, sizeof why, "has compute capability %d.%d, and 7.5 or later is needed",
                 found.major, found.minor);
    } else if (self->n_found == CUDA_MAX_DEVICES) {
        snprintf(why, sizeof why, "is one of more devices than can be listed");
    } else {
        self->found[self->n_found++] = found;
        return;
    }
    keep_reason(self, who, why);
}

/* ---- all of them ------------------------------------------------------------------------- */

/* Errors of cuInit and of counting that mean that there is nothing here, which is no failure. */
static bool is_absence(CUresult error) {
    return error == CUDA_ERROR_NO_DEVICE;
}

static tn_status fail_start(tn_instance *self, CUresult error, const char *what) {
    const char *name = NULL, *text = NULL;
    self->driver.cuGetErrorName(error, &name);
    self->driver.cuGetErrorString(error, &text);
    return cuda_fail(self, TN_ERR_IO, "the CUDA driver fails at %s: %s (%d): %s; %s", what,
                     name ? name : "an unknown error", (int)error, text ? text : "",
                     error == CUDA_ERROR_NOT_INITIALIZED
                         ? "it does not start in a process that was forked from one that used it: "
                           "fork before, or start the child with exec"
                         : "`nvidia-smi` shows whether the driver and the kernel's module fit each "
                           "other");
}

/* A driver that is too old lacks functions, too: of the two its version says more. */
static tn_status find_functions(tn_instance *self) {
    cuda_driver *d = &self->driver;
    const char *missing = NULL;
    CUresult error = CUDA_SUCCESS;
    self->driver_version = MIN_DRIVER;
#define FIND(function) \
    *(void **)&d->function = dlsym(d->library, #function); \
    if (!d->function && !missing) \
        missing = #function;
    CUDA_DRIVER_FUNCTIONS(FIND)
#undef FIND
    if (d->cuDriverGetVersion)
        error = d->cuDriverGetVersion(&self->driver_version);
    snprintf(self->driver_text, sizeof self->driver_text, "CUDA %d.%d", self->driver_version / 1000,
             self->driver_version % 1000 / 10);
    if (self->driver_version < MIN_DRIVER)
        return cuda_fail(self, TN_ERR_UNSUPPORTED,
                         "the CUDA driver is of version %d.%d, and 12.0 (525.60) or later is "
                         "needed; update it",
                         self->driver_version / 1000, self->driver_version % 1000 / 10);
    if (missing)
        return cuda_fail(
            self, TN_ERR_UNSUPPORTED,
            "the CUDA driver has no %s, as 12.0 (525.60) and later have; update it, or "
            "install it again",
            missing);
    return error == CUDA_SUCCESS ? TN_OK : fail_start(self, error, "cuDriverGetVersion");
}

static tn_status list_devices(tn_instance *self) {
    const cuda_driver *d = &self->driver;
    int n = 0;
    CUresult error = d->cuInit(0);
    if (error != CUDA_SUCCESS && !is_absence(error))
        return fail_start(self, error, "cuInit");
    if (error == CUDA_SUCCESS) {
        error = d->cuDeviceGetCount(&n);
        if (error != CUDA_SUCCESS && !is_absence(error))
            return fail_start(self, error, "cuDeviceGetCount");
    }
    for (int i = 0; i < n; i++)
        add_device(self, i);
    if (n == 0)
        snprintf(self->reason, sizeof self->reason,
                 "the CUDA driver finds no GPU; CUDA_VISIBLE_DEVICES may hide what `nvidia-smi -L` "
                 "lists");
    return TN_OK;
}

static tn_status search(tn_instance *self) {
    /* The driver, too, loads what the environment names (CUDA_INJECTION64_PATH). */
    if (getauxval(AT_SECURE)) {
        snprintf(self->reason, sizeof self->reason,
                 "the program runs with raised privileges (set-uid, set-gid or capabilities), and "
                 "the CUDA driver runs code that its caller's environment names; start it without, "
                 "or choose another device");
        return TN_OK;
    }
    if (!self->driver.library) {
        char why[CUDA_MESSAGE / 2];
        self->driver.library = cuda_library_open(self, "driver", names, why, sizeof why);
        if (!self->driver.library) {
            snprintf(self->reason, sizeof self->reason,
                     "the NVIDIA driver cannot be used: %s. It is installed apart from the CUDA "
                     "Toolkit; `nvidia-smi` shows whether it is there",
                     why);
            return TN_OK;
        }
    }
    PLUGIN_TRY(find_functions(self));
    return list_devices(self);
}

tn_status cuda_search(tn_instance *self) {
    pthread_mutex_lock(&self->lock);
    if (!self->searched) {
        self->n_found = 0;
        self->reason[0] = '\0';
        self->search_status = search(self);
        self->searched = self->search_status == TN_OK;
    }
    tn_status status = self->search_status;
    pthread_mutex_unlock(&self->lock);
    return status;
}
