/* Text from anywhere, made harmless where it is put. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_ESCAPE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_ESCAPE_H

#include <limits.h>
#include <stdio.h>

#include "plugin-sdk/conformance/case.h"

/* In XML and HTML, text and quoted attributes: &<>"' as entities; what XML 1.0 cannot hold as '?'.
 * The text is UTF-8 (logs are). */
void tc_put_xml(FILE *out, const char *text);

/* In a Markdown table or list: on one line, with no meaning to Markdown or HTML. */
void tc_put_markdown(FILE *out, const char *text);

/* The same as code, where it has nothing that would end that. */
void tc_put_markdown_code(FILE *out, const char *text);

/* A word as a shell reads it, in quotes where it needs them. */
void tc_put_shell(FILE *out, const char *word);

/* The command that runs a case again on a device, the same way. Returns out. */
enum { TC_COMMAND = 4 * (PATH_MAX + TC_MAX_LINE) + 32 };
char *tc_command_text(const char *plugin, unsigned device, const char *line, char out[TC_COMMAND]);

#endif
