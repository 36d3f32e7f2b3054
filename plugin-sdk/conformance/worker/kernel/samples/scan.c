/* Scans: sums over all elements of a line so far. */
#include "plugin-sdk/conformance/worker/kernel/samples/lines.h"

const tc_family tc_family_scan = {"scan", tc_lines_shapes, tc_lines_terms, NULL, tc_lines_list};
