/* Text from anywhere, made harmless where it is put. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_ESCAPE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_ESCAPE_H

#include <stdio.h>

/* In XML and HTML, text and quoted attributes: &<>"' as entities; what XML 1.0 cannot hold as '?'.
 * The text is UTF-8 (logs are). */
void tc_put_xml(FILE *out, const char *text);

/* In a Markdown table or list: on one line, with no meaning to Markdown or HTML. */
void tc_put_markdown(FILE *out, const char *text);

#endif
