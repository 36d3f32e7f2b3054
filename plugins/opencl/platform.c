/* Which devices there are.
 *
 * Devices of all platforms stand in one list, whose order does not depend on how the loader reads
 * its folder: GPUs, accelerators, CPUs, others; within a type by the platform's name and version,
 * then as the platform counts them. Simulators of OpenCL (Oclgrind) only get in the way of real
 * devices: they are found where option `platform` (TENON_OPENCL_PLATFORM) names them, and then
 * nothing else is. */
#include "plugins/opencl/opencl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

enum { MAX_PLATFORMS = 32 };

/* What every device that can be used has: kernels run in groups of that many, and a training step
 * that needs less memory is no training step. */
static const uint64_t MIN_MEMORY = 32u << 20, MIN_PIECE = 8u << 20;

/* Of memory: what OpenCL asks of every device (the largest type has 128 bytes), so less is a
 * mistake of the driver, and more than a large page is one, too. Whether memory lies as
 * the driver says cannot be seen: a cl_mem has no address. */
static const uint64_t MIN_ALIGNMENT = 128, MAX_ALIGNMENT = 2u << 20;

static unsigned long long mib(uint64_t bytes) {
    return (unsigned long long)(bytes >> 20);
}

/* Where no device is left these are all that a user learns. */
static void keep(tn_instance *self, tn_log_level level, const char *who, const char *why) {
    size_t n = strlen(self->reason);
    snprintf(self->reason + n, sizeof self->reason - n, "%s%.120s %.200s", n ? "; " : "", who, why);
    char line[OCL_MESSAGE];
    snprintf(line, sizeof line, "%.120s is not used: it %.200s", who, why);
    self->host->log_message(self->host, level, line);
}

static void keep_reason(tn_instance *self, const char *who, const char *why) {
    keep(self, TN_LOG_INFO, who, why);
}

/* Worth a warning also beside drivers that work. */
static void keep_failure(tn_instance *self, const char *who, const char *what, cl_int error) {
    char why[OCL_MESSAGE];
    snprintf(why, sizeof why, "%s: %s (%d); its driver is broken, or does not fit the kernel's",
             what, ocl_error_name(error), error);
    keep(self, TN_LOG_WARN, who, why);
    self->is_broken = true;
}

/* ---- one device -------------------------------------------------------------------------- */

static bool ask(cl_device_id id, cl_device_info what, size_t bytes, void *out) {
    return clGetDeviceInfo(id, what, bytes, out, NULL) == CL_SUCCESS;
}

static bool ask_text(cl_device_id id, cl_device_info what, char *out, size_t room) {
    size_t n = 0;
    if (clGetDeviceInfo(id, what, 0, NULL, &n) != CL_SUCCESS || n == 0)
        return false;
    char *text = malloc(n); /* extensions are long; gone before this returns */
    bool good = text && clGetDeviceInfo(id, what, n, text, NULL) == CL_SUCCESS;
    if (good)
        snprintf(out, room, "%s", text);
    free(text);
    return good;
}

/* What a device says of itself. */
typedef struct answers {
    cl_bool available, compiler, little;
    cl_uint align_bits, units, bits;
    cl_ulong memory, most, local;
    size_t parameter, group;
    char version[OCL_NAME], driver[OCL_NAME];
} answers;

static bool ask_all(cl_device_id id, ocl_found *out, answers *a) {
    return ask(id, CL_DEVICE_TYPE, sizeof out->type, &out->type) &&
           ask_text(id, CL_DEVICE_NAME, out->name, sizeof out->name) &&
           ask_text(id, CL_DEVICE_VERSION, a->version, sizeof a->version) &&
           ask_text(id, CL_DRIVER_VERSION, a->driver, sizeof a->driver) &&
           ask(id, CL_DEVICE_AVAILABLE, sizeof a->available, &a->available) &&
           ask(id, CL_DEVICE_COMPILER_AVAILABLE, sizeof a->compiler, &a->compiler) &&
           ask(id, CL_DEVICE_ENDIAN_LITTLE, sizeof a->little, &a->little) &&
           ask(id, CL_DEVICE_ADDRESS_BITS, sizeof a->bits, &a->bits) &&
           ask(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof a->align_bits, &a->align_bits) &&
           ask(id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof a->units, &a->units) &&
           ask(id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof a->memory, &a->memory) &&
           ask(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof a->most, &a->most) &&
           ask(id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof a->local, &a->local) &&
           ask(id, CL_DEVICE_MAX_PARAMETER_SIZE, sizeof a->parameter, &a->parameter) &&
           ask(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof a->group, &a->group);
}

/* What keeps a device from being used, or NULL; `room` is for its words. */
static const char *why_not(const answers *a, char room[OCL_NAME]) {
    int major = 0, minor = 0;
    uint64_t alignment = a->align_bits / 8;
    if (sscanf(a->version, "OpenCL %d.%d", &major, &minor) != 2 || major * 10 + minor < 12)
        return "is older than OpenCL 1.2";
    if (!a->available)
        return "says that it is not available";
    if (!a->compiler)
        return "has no compiler";
    if (!a->little)
        return "is big-endian";
    if (a->bits != 64)
        return "has no addresses of 64 bits";
    if (a->parameter < GPU_ARGUMENTS)
        return "takes fewer than 1024 bytes of kernel arguments";
    if (a->group < GPU_GROUP)
        return "has work groups of fewer than 256";
    if (a->local < GPU_LOCAL)
        return "has less than 32 KiB of local memory";
    if (a->memory < MIN_MEMORY || a->most < MIN_PIECE) {
        snprintf(room, OCL_NAME,
                 "is too small: %llu MiB of memory, %llu in one piece, and %llu and "
                 "%llu are needed",
                 mib(a->memory), mib(a->most), mib(MIN_MEMORY), mib(MIN_PIECE));
        return room;
    }
    if (a->align_bits % 8 || alignment == 0 || (alignment & (alignment - 1)) ||
        alignment > MAX_ALIGNMENT) {
        snprintf(room, OCL_NAME,
                 "says that memory is aligned to %u bits, which is no power of two "
                 "from a byte to 2 MiB; another version of the driver may know better",
                 a->align_bits);
        return room;
    }
    return NULL;
}

static const char *describe(cl_device_id id, ocl_found *out, char room[OCL_NAME]) {
    answers a = {0};
    cl_uint width = 0;
    cl_device_fp_config f64 = 0, f32 = 0;
    if (!ask_all(id, out, &a))
        return "does not answer what every device must";
    const char *why = why_not(&a, room);
    if (why)
        return why;
    ask(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof width, &width);
    ask(id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof f32, &f32);
    ask(id, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof f64, &f64); /* not in every 1.2 driver */
    size_t known = strlen(out->driver);                    /* the platform's */
    snprintf(out->driver + known, sizeof out->driver - known, ", %s, %s", a.version, a.driver);
    uint64_t alignment = a.align_bits / 8;
    out->id = id;
    out->memory_bytes = a.memory;
    out->max_allocation = a.most;
    out->alignment = alignment < MIN_ALIGNMENT ? MIN_ALIGNMENT : alignment;
    out->traits = (gpu_traits){.is_cpu = (out->type & CL_DEVICE_TYPE_CPU) != 0,
                               .has_f64 = f64 != 0,
                               .compute_units = a.units ? a.units : 1,
                               .max_group = a.group < UINT32_MAX ? (uint32_t)a.group : UINT32_MAX,
                               .local_bytes = a.local < UINT32_MAX ? (uint32_t)a.local : UINT32_MAX,
                               .vector_bytes = width >= 16  ? 64
                                               : width >= 8 ? 32
                                                            : 16};
    out->has_subnormals = (f32 & CL_FP_DENORM) != 0;
    out->divides_exactly = (f32 & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    return NULL;
}

/* ---- all of them ------------------------------------------------------------------------- */

static void add_device(tn_instance *self, const ocl_found *platform, cl_device_id id) {
    ocl_found found = *platform;
    char room[OCL_NAME];
    snprintf(found.name, sizeof found.name, "a device of %.100s", platform->platform_name);
    const char *why = describe(id, &found, room);
    if (why)
        keep_reason(self, found.name, why);
    else if (self->n_found < OCL_MAX_DEVICES)
        self->found[self->n_found++] = found;
    else
        keep_reason(self, found.name, "is one of more devices than can be listed");
}

static bool ask_platform(cl_platform_id id, cl_platform_info what, char *out, size_t room) {
    char text[4 * OCL_NAME];
    if (clGetPlatformInfo(id, what, sizeof text, text, NULL) != CL_SUCCESS)
        return false;
    snprintf(out, room, "%.*s", (int)room - 1, text);
    return true;
}

static void add_platform(tn_instance *self, cl_platform_id id, const char *wanted) {
    ocl_found platform = {.platform = id};
    char version[OCL_NAME];
    cl_device_id ids[OCL_MAX_DEVICES];
    cl_uint n = 0;
    if (!ask_platform(id, CL_PLATFORM_NAME, platform.platform_name,
                      sizeof platform.platform_name) ||
        !ask_platform(id, CL_PLATFORM_VERSION, version, sizeof version)) {
        keep_reason(self, "a platform", "does not say its name");
        return;
    }
    snprintf(platform.driver, sizeof platform.driver, "%s", version);
    platform.is_simulator = strstr(platform.platform_name, "Oclgrind") != NULL;
    platform.is_pocl = strstr(platform.platform_name, "Portable Computing Language") != NULL;
    if (wanted && !strstr(platform.platform_name, wanted)) {
        keep_reason(self, platform.platform_name, "is not what TENON_OPENCL_PLATFORM names");
        return;
    }
    if (!wanted && platform.is_simulator) {
        keep_reason(self, platform.platform_name,
                    "is a simulator, for which TENON_OPENCL_PLATFORM must name it");
        return;
    }
    cl_int error = clGetDeviceIDs(id, CL_DEVICE_TYPE_ALL, OCL_MAX_DEVICES, ids, &n);
    if (error != CL_SUCCESS && error != CL_DEVICE_NOT_FOUND)
        keep_failure(self, platform.platform_name, "fails to list its devices", error);
    else if (error == CL_DEVICE_NOT_FOUND || n == 0)
        keep_reason(self, platform.platform_name, "has no device");
    else
        for (cl_uint i = 0; i < n && i < OCL_MAX_DEVICES; i++)
            add_device(self, &platform, ids[i]);
}

static int rank_of(const ocl_found *f) {
    return f->type & CL_DEVICE_TYPE_GPU           ? 0
           : f->type & CL_DEVICE_TYPE_ACCELERATOR ? 1
           : f->type & CL_DEVICE_TYPE_CPU         ? 2
                                                  : 3;
}

static bool comes_before(const ocl_found *a, const ocl_found *b) {
    int order = rank_of(a) - rank_of(b);
    return order ? order < 0 : strcmp(a->platform_name, b->platform_name) < 0;
}

/* Stable: devices of one platform stay as it counts them. */
static void sort(tn_instance *self) {
    for (uint32_t i = 1; i < self->n_found; i++)
        for (uint32_t j = i; j > 0 && comes_before(&self->found[j], &self->found[j - 1]); j--) {
            ocl_found swapped = self->found[j];
            self->found[j] = self->found[j - 1];
            self->found[j - 1] = swapped;
        }
}

/* The loader passes over a driver whose library it cannot load, without a word. */
static void explain_no_platform(tn_instance *self) {
    const char *folder = getenv("OCL_ICD_VENDORS");
    snprintf(
        self->reason, sizeof self->reason,
        "no OpenCL driver is installed, or none can be loaded; `clinfo -l` lists them, and their "
        ".icd files are looked for in %.160s%s",
        folder ? folder : "/etc/OpenCL/vendors",
        folder ? " (OCL_ICD_VENDORS)" : "; for CPUs there is PoCL");
}

static tn_status search(tn_instance *self) {
    cl_platform_id ids[MAX_PLATFORMS];
    cl_uint n = 0;
    /* Loaders and drivers run code from files that the environment names (OCL_ICD_VENDORS,
     * OPENCL_LAYERS, POCL_CACHE_DIR, XDG_CACHE_HOME ...), and no list of these can be complete. */
    if (getauxval(AT_SECURE)) {
        snprintf(self->reason, sizeof self->reason,
                 "the program runs with raised privileges (set-uid, set-gid or capabilities), and "
                 "OpenCL drivers run code that their caller's environment names; start it without, "
                 "or choose another device");
        return TN_OK;
    }
    const char *wanted = self->host->option(self->host, "platform");
    if (wanted && !*wanted)
        wanted = NULL;
    cl_int error = clGetPlatformIDs(MAX_PLATFORMS, ids, &n);
    if (error != CL_SUCCESS && error != -1001 /* CL_PLATFORM_NOT_FOUND_KHR */)
        return ocl_fail(self, TN_ERR_IO, "the OpenCL loader fails to list platforms: %s (%d)",
                        ocl_error_name(error), error);
    for (cl_uint i = 0; error == CL_SUCCESS && i < n && i < MAX_PLATFORMS; i++)
        add_platform(self, ids[i], wanted);
    sort(self);
    if (self->n_found > 0)
        return TN_OK;
    if (self->reason[0] == '\0')
        explain_no_platform(self);
    if (wanted)
        return ocl_fail(self, TN_ERR_NOT_FOUND,
                        "no OpenCL platform with a device has '%.60s' in its name "
                        "(TENON_OPENCL_PLATFORM): %s",
                        wanted, self->reason);
    return self->is_broken ? ocl_fail(self, TN_ERR_IO, "%s", self->reason) : TN_OK;
}

tn_status ocl_search(tn_instance *self) {
    pthread_mutex_lock(&self->lock);
    if (!self->searched) {
        ocl_guard guard;
        ocl_guard_enter(&guard);
        self->n_found = 0;
        self->reason[0] = '\0';
        self->is_broken = false;
        self->search_status = search(self);
        ocl_guard_leave(&guard);
        self->searched = self->search_status == TN_OK;
    }
    tn_status status = self->search_status;
    pthread_mutex_unlock(&self->lock);
    return status;
}
