/* The log: levels and subsystems, off unless TENON_LOG or tn_log_set asks. */
#ifndef TNI_BASE_LOG_H
#define TNI_BASE_LOG_H

#include <stdbool.h>
#include <tenon/base.h>

/* Would a line at `level` of `subsystem` be written? Cheap when the log is off. */
bool tni_log_on(int32_t level, const char *subsystem);

void tni_log_line(int32_t level, const char *subsystem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
