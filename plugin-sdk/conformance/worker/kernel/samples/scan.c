/* Scans along a dimension. */
#include "plugin-sdk/conformance/worker/kernel/samples/lines.h"

const tc_family tc_family_scan = {"scan", tc_lines_shapes, tc_lines_terms,
                                  NULL,   tc_lines_list,   tc_lines_list_timed};
