/* Scans along a dimension. */
#include "plugin-sdk/conformance/worker/kernel/samples/lines.h"

/* Few lines, and so long in every dtype that they are cut into chunks. */
static void list(const tc_sampler *m) {
    static const char *const lines[] = {"self=[2,20011] dim=1", "self=[20011,2] dim=0"};
    tc_lines_list(m);
    for (int k = 0; m->set != TC_SMOKE && k < TC_LENGTH(lines); k++) {
        tc_line l = tc_line_start(m);
        tc_line_add(&l, "%s data=exact", lines[k]);
        tc_emit(m, l);
    }
    tc_line beyond = tc_line_start(m);
    tc_line_add(&beyond, "self=[%d] dim=0", TC_BEYOND);
    if (tc_has_large(m))
        tc_emit_once(m, beyond);
}

const tc_family tc_family_scan = {"scan", tc_lines_shapes,    tc_lines_terms, NULL,
                                  list,   tc_lines_list_timed};
