/* How kernels share their work among host threads: one place that knows OpenMP, so that kernels are
 * plain functions over a range, and the number of threads is ours and not the process's. */
#include "plugins/cpu/cpu.h"
#include "plugins/cpu/gemm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/auxv.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static atomic_uint n_selfs;
static atomic_bool forked;

/* libgomp's workers do not exist in a forked child, and waiting for them hangs: stay on one thread.
 */
static void after_fork_in_child(void) {
    atomic_store(&forked, true);
    tnc_blas_forked();
}

static void watch_fork(void) {
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* libomp, which clang links, loads what OMP_TOOL_LIBRARIES names when it is first called, in a set-uid
 * program too; libgomp loads nothing. */
bool tnc_openmp_is_safe(void) {
#if defined(_OPENMP) && defined(__clang__)
    return !getauxval(AT_SECURE);
#else
    return true;
#endif
}

/* What OMP_NUM_THREADS says, else the number of available cores. */
static uint32_t default_threads(void) {
#ifdef _OPENMP
    return tnc_openmp_is_safe() ? (uint32_t)omp_get_max_threads() : 1;
#else
    return 1;
#endif
}

tn_status tnc_threads_start(tn_instance *self, const char *option) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_fork);
    long n = 0;
    if (option && *option) {
        char *end;
        n = strtol(option, &end, 10);
        if (*end || *option < '0' || *option > '9')
            return tnc_fail(self, TN_ERR_INVALID_ARGUMENT,
                            "option threads (TENON_CPU_THREADS) is '%.40s'; it must be a number, 0 "
                            "to leave it to the plugin",
                            option);
    }
    tnc_set_threads(self, n <= 0              ? default_threads()
                          : n > TNC_MAX_SLOTS ? TNC_MAX_SLOTS
                                              : (uint32_t)n);
    atomic_fetch_add(&n_selfs, 1);
    tnc_blas_start();
    return TN_OK;
}

void tnc_threads_stop(void) {
    tnc_blas_stop();
    if (atomic_fetch_sub(&n_selfs, 1) != 1)
        return;
#ifdef _OPENMP
    if (!atomic_load(&forked) && tnc_openmp_is_safe())
        omp_pause_resource_all(omp_pause_soft);
#endif
}

void tnc_set_threads(tn_instance *self, uint32_t n) {
    n = tnc_openmp_is_safe() ? n : 1;
    atomic_store(&self->n_threads, n < 1 ? 1 : n > TNC_MAX_SLOTS ? TNC_MAX_SLOTS : n);
}

void tnc_parallel(const tn_call *call, int64_t n, int64_t grain, int n_slots, tnc_body body,
                  void *context) {
    if (n <= grain) {
        body(context, 0, n, 0);
        return;
    }
#ifdef _OPENMP
    int64_t n_grains = (n - 1) / grain + 1;
    int64_t team = tnc_min(tnc_min(tnc_get_threads(call), n_slots), n_grains);
    bool alone = team <= 1 || atomic_load_explicit(&forked, memory_order_relaxed);
    if (!alone && !omp_in_parallel()) {
#pragma omp parallel num_threads((int)team)
        {
            int64_t size = omp_get_num_threads(), slot = omp_get_thread_num();
            int64_t begin = n_grains * slot / size * grain;
            int64_t end = tnc_min(n_grains * (slot + 1) / size * grain, n);
            if (begin < end)
                body(context, begin, end, (int)slot);
        }
        return;
    }
#endif
    body(context, 0, n, 0);
}
