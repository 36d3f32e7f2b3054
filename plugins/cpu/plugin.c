/* Who the plugin is: the one exported function, which kernels this machine gets, start and end, and
 * the table of tables. (A new backend begins with plugin-sdk/template/: this one has globals.)
 *
 * Options
 *   threads  (TENON_CPU_THREADS)  threads that a kernel may use; 0 or nothing: OMP_NUM_THREADS, or
 *                                 one for each core
 *   isa      (TENON_CPU_ISA)      base, avx2, avx512 or avx512_bf16: the kernels to use; nothing: the
 *                                 best that the machine has
 */
#include "plugins/cpu/cpu.h"
#include "plugins/cpu/gemm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ext/fork.h>
#include <tenon/ext/threads.h>

/* ---- choosing the kernels ---------------------------------------------------------------- */

#define DECLARE(isa, family) extern const tnc_family tnc_family_##family##_##isa;
#define DECLARE_BASE(family) DECLARE(base, family)
#define ADDRESS_BASE(family) &tnc_family_##family##_base,
TNC_FAMILIES(DECLARE_BASE)
static const tnc_family *const base[] = {TNC_FAMILIES(ADDRESS_BASE)};

static bool has_base(void) {
    return true;
}

/* The features that the compiler's flags in meson.build imply. */
#ifdef TNC_HAVE_AVX2
#define DECLARE_AVX2(family) DECLARE(avx2, family)
#define ADDRESS_AVX2(family) &tnc_family_##family##_avx2,
TNC_FAMILIES(DECLARE_AVX2)
static const tnc_family *const avx2[] = {TNC_FAMILIES(ADDRESS_AVX2)};

static bool has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2"); /* and f16c: no processor has AVX2 without it */
}
#endif

#ifdef TNC_HAVE_AVX512
#define DECLARE_AVX512(family) DECLARE(avx512, family)
#define ADDRESS_AVX512(family) &tnc_family_##family##_avx512,
TNC_FAMILIES(DECLARE_AVX512)
static const tnc_family *const avx512[] = {TNC_FAMILIES(ADDRESS_AVX512)};

static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2");
}
#endif

/* avx512 with products of its own. */
#ifdef TNC_HAVE_AVX512_BF16
DECLARE(avx512_bf16, matmul);

static bool has_avx512_bf16(void) {
    return has_avx512() && __builtin_cpu_supports("avx512bf16");
}
#endif

/* The instruction sets, best first. */
typedef struct instruction_set {
    const char *name;
    const tnc_family *const *families;
    bool (*is_here)(void);
    const tnc_family *matmul; /* in place of that of `families`, or NULL */
} instruction_set;

static const instruction_set isas[] = {
#ifdef TNC_HAVE_AVX512_BF16
    {"avx512_bf16", avx512, has_avx512_bf16, &tnc_family_matmul_avx512_bf16},
#endif
#ifdef TNC_HAVE_AVX512
    {"avx512", avx512, has_avx512, NULL},
#endif
#ifdef TNC_HAVE_AVX2
    {"avx2", avx2, has_avx2, NULL},
#endif
    {"base", base, has_base, NULL},
};

/* The set called `name`, or with NULL the best; NULL when this machine or build lacks it. */
static const instruction_set *choose(const char *name) {
    for (size_t i = 0; i < TNC_LENGTH(isas); i++)
        if ((!name || strcmp(name, isas[i].name) == 0) && isas[i].is_here())
            return &isas[i];
    return NULL;
}

#define NUMBER(family) NUMBER_##family,
enum { TNC_FAMILIES(NUMBER) N_FAMILIES };

static const tnc_family *family_of(const instruction_set *isa, size_t number) {
    return number == NUMBER_matmul && isa->matmul ? isa->matmul : isa->families[number];
}

/* The chosen families as one array of pointers, which is what crosses the boundary. Chosen at the
 * first query for all lives: the tables do not change after it, nor with the option of one host. */
enum { MAX_KERNELS = 1024 };
static const tn_kernel *kernels[MAX_KERNELS];
static const instruction_set *chosen;
static tn_plugin plugin;

static void choose_kernels(void) {
    uint64_t n = 0;
    const char *name = getenv("TENON_CPU_ISA");
    chosen = choose(name && *name ? name : NULL);
    if (!chosen) /* init will say so */
        chosen = choose(NULL);
    for (size_t f = 0; f < N_FAMILIES; f++)
        for (uint32_t i = 0; i < family_of(chosen, f)->n_records; i++, n++)
            if (n < MAX_KERNELS)
                kernels[n] = &family_of(chosen, f)->records[i];
    plugin.n_kernels = n;
}

/* `option` is the value of option `isa` or NULL. */
static tn_status check_isa(const tn_instance *self, const char *option) {
    if (!option || !*option)
        return TN_OK;
    const instruction_set *isa = choose(option);
    if (!isa)
        return tnc_fail(self, TN_ERR_INVALID_ARGUMENT,
                        "option isa (TENON_CPU_ISA) is '%.40s'; it must be base, avx2, avx512 or "
                        "avx512_bf16, and this machine and build must have it",
                        option);
    if (isa != chosen)
        return tnc_fail(self, TN_ERR_STATE,
                        "option isa is '%s', but the kernels for %s were taken when the plugin was "
                        "loaded; set TENON_CPU_ISA in the environment before that",
                        isa->name, chosen->name);
    return TN_OK;
}

/* ---- life -------------------------------------------------------------------------------- */

static tn_status init(const tn_host *host, const char *path, tn_instance **out_self) {
    (void)path;
    *out_self = NULL;
    tn_instance *self = host->alloc(host, sizeof *self, 16);
    if (!self)
        return host->fail(host, TN_ERR_OUT_OF_MEMORY, "no host memory for the plugin's state");
    self->host = host;
    tn_status status = check_isa(self, host->option(host, "isa"));
    if (status == TN_OK)
        status = tnc_threads_start(self, host->option(host, "threads"));
    if (status != TN_OK) {
        host->dealloc(host, self);
        return status;
    }
    *out_self = self;
    return TN_OK;
}

static void shutdown(tn_instance *self) {
    tnc_threads_stop();
    self->host->dealloc(self->host, self);
}

static tn_status set_num_threads(tn_instance *self, uint32_t n) {
    if (n < 1)
        return tnc_fail(self, TN_ERR_INVALID_ARGUMENT, "0 threads: at least 1 must compute");
    tnc_set_threads(self, n);
    return TN_OK;
}

static uint32_t get_num_threads(tn_instance *self) {
    return atomic_load_explicit(&self->n_threads, memory_order_relaxed);
}

static const tn_ext_threads threads = {
    .struct_size = sizeof threads,
    .set_num_threads = set_num_threads,
    .get_num_threads = get_num_threads,
};

static void before_fork(tn_instance *self) {
    (void)self;
    tnc_blas_before_fork();
}

static void after_fork(tn_instance *self, int32_t in_child) {
    (void)self;
    tnc_blas_after_fork(in_child);
}

static const tn_ext_fork forks = {
    .struct_size = sizeof forks,
    .before = before_fork,
    .after = after_fork,
};

static const void *extension(tn_instance *self, const char *id) {
    (void)self;
    if (strcmp(id, TN_EXT_FORK) == 0)
        return &forks;
    return strcmp(id, TN_EXT_THREADS) == 0 ? &threads : NULL;
}

/* ---- the table --------------------------------------------------------------------------- */

static tn_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_version = TN_ABI_VERSION,
    .abi_required = TN_ABI_TARGET,
    .flags = TN_PLUGIN_FORK_SAFE, /* on one thread: see threads.c */
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
    /* `option` is the last slot we call; a host without it is older than we can work with. */
    if (!host || !TN_HAS(host, tn_host, option) || host->abi_version < plugin.abi_required)
        return NULL;
    pthread_once(&once, choose_kernels);
    if (plugin.n_kernels > MAX_KERNELS) {
        host->fail(host, TN_ERR_INTERNAL, "more kernels than MAX_KERNELS in plugins/cpu/plugin.c");
        return NULL;
    }
    return &plugin;
}
