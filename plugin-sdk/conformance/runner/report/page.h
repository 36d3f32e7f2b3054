/* How pages look that need nothing beside them. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_PAGE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_PAGE_H

extern const char tc_page_style[]; /* CSS */

#endif
