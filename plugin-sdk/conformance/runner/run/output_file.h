/* The file that has all that workers printed in cases that failed. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_OUTPUT_FILE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_OUTPUT_FILE_H

#include "plugin-sdk/conformance/verdict.h"
#include "plugin-sdk/conformance/runner/run/output.h"

typedef struct tc_output_file {
    const char *path; /* NULL: there is none, or it cannot be written */
    FILE *file;       /* opened for the first that fails */
} tc_output_file;

/* Adds what was printed in a case to its message: `excerpt` (tc_output_excerpt), and, where it is to
 * be kept, the file that has all of it. */
void tc_output_tell(tc_output_file *file, const tc_output *output, const char *line,
                    const char *excerpt, bool keep, tc_verdict *v);

void tc_output_close(tc_output_file *file);

#endif
