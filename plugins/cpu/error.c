/* What the host is told when something fails. */
#include "plugins/cpu/cpu.h"

#include <stdarg.h>
#include <stdio.h>

const tn_host *tnc_host;

tn_status tnc_fail(tn_status status, const char *format, ...) {
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return tnc_host->fail(tnc_host, status, message);
}
