/* What the host is told when something fails. */
#include "plugins/shared/text.h"
#include "plugins/sim/sim.h"

#include <stdarg.h>
#include <stdio.h>

tn_status sim_fail(const tn_instance *self, tn_status status, const char *format, ...) {
    char message[SIM_MESSAGE];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    plugin_mend_text(message);
    return self->host->fail(self->host, status, message);
}

tn_status sim_check_lost(tn_device_impl *device) {
    if (!atomic_load_explicit(&device->lost, memory_order_acquire))
        return TN_OK;
    return sim_fail(device->self, TN_ERR_DEVICE_LOST,
                    "sim:%u is lost, as TENON_SIM_LOSE asks; close it and open it again",
                    device->index);
}
