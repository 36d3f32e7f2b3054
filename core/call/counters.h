/* How often an operator ran on the CPU, or through the host, for want of a kernel. */
#ifndef TNI_CORE_CALL_COUNTERS_H
#define TNI_CORE_CALL_COUNTERS_H

#include "core/device/device.h"

/* Counts one; what the arguments are, tn_fallback_info says. `operator_name` is copied at first
 * sight, `kernel` lasts. Never fails: without memory it is not counted. */
void tni_count_fallback(const char *operator_name, const char *kernel, const tni_device *device,
                        tn_dtype dtype, tn_dtype to);
void tni_counters_finish(void);

#endif
