/* What a fork means for open devices.
 *
 * A plugin's threads and its driver's state do not follow into the child, so there its devices are
 * marked as unusable, unless the plugin says that they work on. That a fork happened costs the
 * calls nothing: the mark is the one that a lost device has.
 */
#include "base/fork.h"
#include "core/device/open.h"
#include "core/memory/allocator.h"

#include <tenon/ext/fork.h>

tni_lock tni_devices_lock = TNI_LOCK_INITIALIZER;

static void mark_forked(tni_device *d) {
    atomic_store(&d->forked, true);
    atomic_store(&d->lost, true);
}

/* The open devices, one after the other; none while another thread holds their table. Those are as
 * they were before the fork when it is over. */
static tni_device *device_at(uint32_t i) {
    return tni_lock_is_mine(&tni_devices_lock) ? tni_device_at(i) : NULL;
}

/* ---- the table --------------------------------------------------------------------------- */

/* Published whole, so that it can be read at any moment; but the parts of devices were not held. */
static void mend_table(bool whole) {
    tni_device *d;
    for (uint32_t i = 0; !whole && (d = tni_device_at(i)); i++) {
        pthread_mutex_init(&d->lock, NULL);
        if (d->is_meta)
            continue;
        tni_allocator_after_fork(d->allocator, true);
        mark_forked(d);
    }
}

TNI_FORK_LOCK(DEVICES, tni_devices_lock, mend_table)

/* ---- allocators -------------------------------------------------------------------------- */

static void fork_before_ALLOCATORS(void) {
    tni_device *d;
    for (uint32_t i = 0; (d = device_at(i)); i++)
        if (!d->is_meta)
            tni_allocator_before_fork(d->allocator);
}

static void fork_after_ALLOCATORS(bool in_child) {
    tni_device *d;
    for (uint32_t i = 0; (d = device_at(i)); i++) {
        if (d->is_meta)
            continue;
        bool whole = tni_allocator_after_fork(d->allocator, in_child);
        bool safe = (d->plugin->table->flags & TN_PLUGIN_FORK_SAFE) != 0;
        if (in_child && !(whole && safe))
            mark_forked(d);
    }
}

TNI_FORK_PART(ALLOCATORS)

/* ---- streams and events, and the plugins' own -------------------------------------------- */

/* What the device's plugin wants to be told of forks: at the first device of it that works. */
static const tn_ext_fork *fork_of(const tni_device *d) {
    if (!d->fork || atomic_load(&d->forked))
        return NULL;
    for (uint32_t i = 0; i < d->ordinal; i++) {
        const tni_device *other = tni_device_at(i);
        if (other->plugin == d->plugin && !atomic_load(&other->forked))
            return NULL;
    }
    return d->fork;
}

/* Plugins come after all locks under which the core calls them, so that they may hold up the threads
 * that call them. */
static void fork_before_DEVICE(void) {
    tni_device *d;
    for (uint32_t i = 0; (d = device_at(i)); i++)
        pthread_mutex_lock(&d->lock);
    for (uint32_t i = 0; (d = device_at(i)); i++)
        if (fork_of(d))
            d->fork->before(d->plugin->self);
}

static void fork_after_DEVICE(bool in_child) {
    tni_device *d;
    for (uint32_t i = 0; (d = device_at(i)); i++)
        if (fork_of(d))
            d->fork->after(d->plugin->self, in_child);
    for (uint32_t i = 0; (d = device_at(i)); i++)
        pthread_mutex_unlock(&d->lock);
}

TNI_FORK_PART(DEVICE)
