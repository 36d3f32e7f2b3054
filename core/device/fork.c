/* What a fork means for open devices.
 *
 * A plugin's threads and its driver's state do not follow into the child, so there its devices are
 * marked as unusable, unless the plugin says that they work on. That a fork happened costs the
 * calls nothing: the mark is the one that a lost device has.
 */
#include "base/error.h"
#include "core/device/open.h"
#include "core/memory/allocator.h"

#include <pthread.h>

static void in_child(void) {
    tni_devices_forked();
    for (uint32_t i = 0; i < TNI_MAX_DEVICES; i++) {
        tni_device *d = tni_device_at(i);
        if (!d || d->is_meta)
            continue;
        bool safe = (d->plugin->table->flags & TN_PLUGIN_FORK_SAFE) != 0;
        pthread_mutex_init(&d->lock, NULL);
        if (!tni_allocator_forked(d->allocator) || !safe) {
            atomic_store(&d->forked, true);
            atomic_store(&d->lost, true);
        }
    }
    tni_pinned_forked();
}

/* Called with the lock of opening held. */
tn_status tni_fork_watch(void) {
    static bool watching;
    if (!watching && pthread_atfork(NULL, NULL, in_child) != 0)
        return tni_fail_memory("the watch for forks");
    watching = true;
    return TN_OK;
}
