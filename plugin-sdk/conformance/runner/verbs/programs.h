/* Where the worker programs are. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_VERBS_PROGRAMS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_VERBS_PROGRAMS_H

#include <stddef.h>

/* This program, which is the first worker. False: it cannot be found out. Returns out, or NULL. */
char *tc_own_path(char *out, size_t room);

/* tenon-conform-core: TENON_CONFORM_CORE, else where it was installed relative to this program.
 * Returns out, or NULL where there is none that can be executed. */
char *tc_core_path(char *out, size_t room);

#endif
