/* The plugin's entry: who it is, which kernels this machine gets, and how it starts and ends. A new
 * backend is a copy of this file with other names in the table at its end. */
#include "cpu.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <tenon/ext/threads.h>

const tn_host *tnc_host;

tn_status tnc_fail(tn_status status, const char *format, ...) {
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return tnc_host->fail(status, message);
}

/* ---- choosing the kernels ------------------------------------------------------------------- */

#define DECLARE(isa, family) extern const tnc_family tnc_family_##family##_##isa;
#define DECLARE_BASE(family) DECLARE(base, family)
#define ADDRESS_BASE(family) &tnc_family_##family##_base,
TNC_FAMILIES(DECLARE_BASE)
static const tnc_family *const base[] = {TNC_FAMILIES(ADDRESS_BASE)};

#ifdef TNC_HAVE_AVX2
#define DECLARE_AVX2(family) DECLARE(avx2, family)
#define ADDRESS_AVX2(family) &tnc_family_##family##_avx2,
TNC_FAMILIES(DECLARE_AVX2)
static const tnc_family *const avx2[] = {TNC_FAMILIES(ADDRESS_AVX2)};
#endif

#ifdef TNC_HAVE_AVX512
#define DECLARE_AVX512(family) DECLARE(avx512, family)
#define ADDRESS_AVX512(family) &tnc_family_##family##_avx512,
TNC_FAMILIES(DECLARE_AVX512)
static const tnc_family *const avx512[] = {TNC_FAMILIES(ADDRESS_AVX512)};
#endif

static const tnc_family *const *choose(void) {
#ifdef TNC_HAVE_AVX512
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2"))
        return avx512;
#endif
#ifdef TNC_HAVE_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return avx2;
#endif
    return base;
}

/* The chosen families as one array of pointers, which is what crosses the boundary. */
enum { MAX_KERNELS = 1024 };
static const tn_kernel *kernels[MAX_KERNELS];
static tn_plugin plugin;

static void gather_kernels(void) {
    const tnc_family *const *families = choose();
    uint64_t n = 0;
    for (size_t f = 0; f < TNC_LENGTH(base); f++)
        for (uint32_t i = 0; i < families[f]->n_records && n < MAX_KERNELS; i++)
            kernels[n++] = &families[f]->records[i];
    plugin.n_kernels = n;
}

/* ---- life ----------------------------------------------------------------------------------- */

static tn_status init(const tn_host *host, const char *path, tn_pself **out_self) {
    (void)path;
    tnc_host = host;
    tn_pself *self = host->alloc(sizeof *self, 16);
    if (!self)
        return tnc_fail(TN_OUT_OF_MEMORY, "no host memory for the plugin's state");
    self->host = host;
    tnc_threads_start(host->option(self, "threads"));
    *out_self = self;
    return TN_OK;
}

static void shutdown(tn_pself *self) {
    tnc_threads_stop();
    self->host->free(self);
}

static tn_status set_num_threads(tn_pself *self, uint32_t n) {
    (void)self;
    if (n < 1)
        return tnc_fail(TN_INVALID_ARGUMENT, "0 threads: at least 1 must compute");
    tnc_set_threads(n);
    return TN_OK;
}

static uint32_t get_num_threads(tn_pself *self) {
    (void)self;
    return tnc_get_threads();
}

static const tn_ext_threads threads = {
    .struct_size = sizeof threads,
    .set_num_threads = set_num_threads,
    .get_num_threads = get_num_threads,
};

static const void *extension(tn_pself *self, const char *id) {
    (void)self;
    return strcmp(id, TN_EXT_THREADS) == 0 ? &threads : NULL;
}

/* ---- the table ------------------------------------------------------------------------------ */

static tn_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_version = TN_ABI_VERSION,
    .abi_required = TN_ABI_VERSION,
    .id = "org.tenon.cpu",
    .device_type = "cpu",
    .name = "Tenon reference CPU",
    .version = TNC_VERSION,
    .init = init,
    .shutdown = shutdown,
    .devices = &tnc_device_ops,
    .kernels = kernels,
    .extension = extension,
};

const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (host->abi_version != TN_ABI_VERSION)
        return NULL;
    pthread_once(&once, gather_kernels);
    return &plugin;
}
