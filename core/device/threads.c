/* The number of host threads that kernels may use, handed on to the plugins that compute on them
 * (tenon/ext/threads.h). */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/env.h"
#include "base/error.h"
#include "core/device/open.h"

#include <sched.h>
#include <tenon/ext/threads.h>

static _Atomic uint32_t chosen; /* by tn_set_num_threads; 0: not yet */

/* What TENON_NUM_THREADS says, 0 for nothing. */
static uint32_t from_environment(void) {
    return (uint32_t)tni_env_i64(TNI_ENV_NUM_THREADS);
}

static tn_status tell(const tni_device *d, uint32_t n) {
    const tn_ext_threads *threads = tni_device_extension(d, TN_EXT_THREADS);
    if (!threads || !TNI_SLOT(threads, tn_ext_threads, set_num_threads))
        return TN_OK;
    tni_error_plugin(TN_OK, NULL);
    return threads->set_num_threads(d->plugin->self, n);
}

void tni_threads_apply(const tni_device *d) {
    uint32_t n = atomic_load(&chosen);
    if (n == 0)
        n = from_environment();
    if (n > 0)
        tell(d, n);
    tni_error_plugin(TN_OK, NULL);
}

void tni_threads_finish(void) {
    atomic_store(&chosen, 0);
}

tn_status tn_set_num_threads(uint32_t n) {
    if (n == 0 || n > INT32_MAX)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_set_num_threads: n is %u; give 1 or more", n);
    atomic_store(&chosen, n);
    tn_status first = TN_OK;
    tni_device *d;
    for (uint32_t i = 0; (d = tni_device_at(i)); i++) {
        tn_status status = d->is_meta ? TN_OK : tni_device_check(d);
        if (!status) {
            status = tell(d, n);
            if (status)
                status = tni_device_fail(d, status, "setting the number of threads");
        }
        if (!first)
            first = status;
    }
    return first;
}

static uint32_t processors(void) {
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    return n > 0 ? (uint32_t)n : 1;
}

uint32_t tn_get_num_threads(void) {
    uint32_t n = atomic_load(&chosen);
    if (n > 0)
        return n;
    tni_device *d;
    for (uint32_t i = 0; (d = tni_device_at(i)); i++) {
        const tn_ext_threads *threads =
            atomic_load(&d->lost) ? NULL : tni_device_extension(d, TN_EXT_THREADS);
        if (threads && TNI_SLOT(threads, tn_ext_threads, get_num_threads))
            return threads->get_num_threads(d->plugin->self);
    }
    n = from_environment();
    return n > 0 ? n : processors();
}
