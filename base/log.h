/* The log: levels and subsystems. Unless TENON_LOG or tn_log_set asks for more it has what is
 * wrong with the environment, and what validation finds. */
#ifndef TNI_BASE_LOG_H
#define TNI_BASE_LOG_H

#include <stdbool.h>
#include <tenon/base.h>

/* Would a line at `level` of `subsystem` be written? Cheap when the log is off. */
bool tni_log_on(int32_t level, const char *subsystem);

void tni_log_line(int32_t level, const char *subsystem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, but nothing for a line that was logged before. */
void tni_log_once(int32_t level, const char *subsystem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Says what of TENON_LOG is not understood: in the log, or the first of it in `out`. */
void tni_log_check(void);
bool tni_log_problem(char *out, size_t size);

#endif
