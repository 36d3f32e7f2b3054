/* Backend ids: small numbers for device types, given out at first sight. Names are published
 * atomically, so that reading one takes no lock. */
#include "base/alloc.h"
#include "base/error.h"
#include "dispatcher/internal.h"

#include <string.h>

static _Atomic(const char *) names[TNI_MAX_BACKENDS] = {"cpu"};
static int n_backends = 1;

int tni_backend_id_locked(const char *key) {
    if (!key || !*key)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "a device type has no name"), -1;
    for (int i = 0; i < n_backends; i++) {
        if (strcmp(atomic_load_explicit(&names[i], memory_order_relaxed), key) == 0)
            return i;
    }
    if (n_backends == TNI_MAX_BACKENDS)
        return tn_fail(TN_ERR_UNSUPPORTED,
                       "device type '%s': all %d backends of this process are taken", key,
                       TNI_MAX_BACKENDS),
               -1;
    char *copy = tni_strdup(key);
    if (!copy)
        return tni_fail_memory("a device type's name"), -1;
    atomic_store_explicit(&names[n_backends], copy, memory_order_release);
    return n_backends++;
}

int tni_backend_id(const char *key) {
    pthread_mutex_lock(&tni_registry_lock);
    int id = tni_backend_id_locked(key);
    pthread_mutex_unlock(&tni_registry_lock);
    return id;
}

const char *tni_backend_name(int id) {
    return id >= 0 && id < TNI_MAX_BACKENDS ? atomic_load_explicit(&names[id], memory_order_acquire)
                                            : NULL;
}

void tni_backends_finish(void) {
    for (int i = 1; i < n_backends; i++) {
        tni_free((void *)(uintptr_t)atomic_load(&names[i]));
        atomic_store(&names[i], NULL);
    }
    n_backends = 1;
}
