/* What scan, sort and softmax share: each line of a tensor along one dimension is taken by itself,
 * and as many elements come out as went in. */
#ifndef TENON_CONFORMANCE_LINES_H
#define TENON_CONFORMANCE_LINES_H

#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

/* Members of tc_family. */
bool tc_lines_shapes(tc_invocation *call, char why[TC_MESSAGE]);
int64_t tc_lines_terms(const tc_invocation *call);
void tc_lines_list(const tc_record *record, const tn_dtype *types, tc_set set, tc_sink *sink);

#endif
