/* What cases there are, for people who look for some. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_OVERVIEW_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_OVERVIEW_H

#include <stdio.h>

#include "plugin-sdk/conformance/runner/run/selection.h"

/* Classes with the number of their lines, one a line. */
void tc_overview_put(const tc_selection *selection, FILE *out);

/* Says that the pattern finds nothing, and what it could be: lines of the class and subject that it
 * begins with, subjects of its class, or classes. */
void tc_overview_missing(const tc_selection *selection, const char *pattern, FILE *out);

#endif
