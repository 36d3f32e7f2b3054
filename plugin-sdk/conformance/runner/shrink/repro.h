/* A failing case as a C file of its own. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_SHRINK_REPRO_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_SHRINK_REPRO_H

#include <stdint.h>
#include <stdio.h>

#include "plugin-sdk/conformance/case.h"

/* Whether the case is of a kind that can be written as a C file; `why` says what to do otherwise.
 */
bool tc_repro_possible(const char *line, char why[TC_MESSAGE]);

/* Writes a program that needs plugin.h and kernels.h alone, makes the case's calls on the plugin
 * its command names, and ends with 0 where they come out right, 1 where they do not. False with
 * `why`. */
bool tc_repro_write(FILE *out, const char *line, uint32_t device, char why[TC_MESSAGE]);

#endif
