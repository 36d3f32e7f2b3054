/* What the files of core/device share: the parts of opening and closing a device. */
#ifndef TNI_CORE_DEVICE_OPEN_H
#define TNI_CORE_DEVICE_OPEN_H

#include "base/fork.h"
#include "core/device/device.h"

/* The device's default stream and the list of the others (stream.c). */
tn_status tni_streams_init(tni_device *device);
/* Destroys them; all work was waited for, the allocator is gone. */
void tni_streams_finish(tni_device *device);
/* Forgets the current streams of every thread. */
void tni_current_streams_finish(void);

/* Starts the plugin of `type` ("npu", "npu@com.acme", "meta") if need be; says the type's id and
 * how many devices it has (device.c). */
tn_status tni_device_type_count(const char *type, int32_t *out_type, uint32_t *out_n);
/* Why a type without devices has none. */
const char *tni_device_type_reason(int32_t type);

/* Held while a device is opened, while types are added, and while programs add and take back
 * kernels. */
extern tni_lock tni_devices_lock;
static inline tn_status tni_devices_enter(void) {
    return tni_lock_enter(&tni_devices_lock, "a device is opened or closed");
}

/* Gives a device that is being opened what programs registered for its type (program_kernels.c). */
tn_status tni_program_kernels_attach(tni_device *device);
/* Frees the registrations. The caller holds the lock for both. */
void tni_program_kernels_finish(void);

/* Lets the default device be chosen anew (name.c). */
void tni_default_device_forget(void);

/* A table of the device's plugin, NULL when it has none (device.c). */
const void *tni_device_extension(const tni_device *device, const char *id);

/* Destroys the idle events (event.c). */
void tni_events_finish(tni_device *device);

/* Tells the device's plugin what tn_set_num_threads or TENON_NUM_THREADS said (threads.c). */
void tni_threads_apply(const tni_device *device);
void tni_threads_finish(void);

#endif
