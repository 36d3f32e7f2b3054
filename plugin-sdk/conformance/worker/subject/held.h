/* What the suite holds of each device's memory, counted as it is handed out and given back, and from
 * that whether a device that is out of memory may be: a small one, or one that hands memory out in
 * large pieces, runs out of it under a case that means nothing of the kind. A device that has lost
 * what was given back, or refuses while there is enough, finds no excuse here.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_SUBJECT_HELD_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_SUBJECT_HELD_H

#include <stdbool.h>
#include <tenon/plugin.h>

/* Round `alloc`, `dealloc` and `close` of every device, from any thread. They order nothing between
 * threads, so that what races in a plugin races still. */
void tc_held_add(const tn_device_impl *device, int32_t space, tn_memory memory, uint64_t bytes);
uint64_t tc_held_remove(const tn_device_impl *device, int32_t space, tn_memory memory);
void tc_held_removed(uint64_t bytes); /* what that gave; the plugin has it back */
void tc_held_forget(const tn_device_impl *device);

/* All that was ever given back; to be asked before an allocation that may fail. */
uint64_t tc_held_given(void);

/* May the device have been out of memory of that space for `bytes` more, beside what was held of it since
 * `given`? Asks `info`, where there is one. */
bool tc_held_fills(const tn_memory_ops *memory, tn_device_impl *device, int32_t space,
                   uint64_t bytes, uint64_t given);

#endif
