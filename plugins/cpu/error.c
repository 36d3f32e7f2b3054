/* What the host is told when something fails. */
#include "plugins/cpu/cpu.h"
#include "plugins/shared/text.h"

#include <stdarg.h>
#include <stdio.h>

tn_status tnc_fail(const tn_instance *self, tn_status status, const char *format, ...) {
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    plugin_mend_text(message);
    return self->host->fail(self->host, status, message);
}
