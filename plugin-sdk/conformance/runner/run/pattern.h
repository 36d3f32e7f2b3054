/* Which lines are meant, in filters, lists and levels.
 *
 *     kernel/add                 every case of it
 *     kernel/?* T=f32            every kernel's cases in f32; * is any letters, ? is any one
 *     kernel/add T=f* self=[3,4]
 *     kernel                     every case of the class, as kernel/ and kernel/?* are
 *     kernel/@small T=f32        of the kernels of the small set; @all: of all of TN_KERNEL_TABLE
 *     /^kernel.*alpha=2/         a POSIX extended regular expression on the canonical line
 *
 * The first word is for class/subject; each further one asks for a parameter, the rest of a line's
 * parameters may be anything. So a whole line is a pattern, and finds that line.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_PATTERN_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_PATTERN_H

#include <regex.h>

#include "plugin-sdk/conformance/case.h"

typedef struct tc_pattern {
    char text[TC_MAX_LINE];      /* as it was written, one blank between words */
    char words[2 * TC_MAX_LINE]; /* each as fnmatch takes it, ended by a zero */
    const char *subject;         /* for class/subject; NULL: the regular expression */
    bool kernels, small; /* what stands for @all or @small is a kernel's name, a small one's */
    const char *params[TC_MAX_PARAMS];
    uint32_t n_params;
    regex_t regex;
} tc_pattern;

/* NULL with `why` filled where the text is no pattern. Destroying NULL is fine. */
tc_pattern *tc_pattern_create(const char *text, char why[TC_MESSAGE]);
void tc_pattern_destroy(tc_pattern *p);

/* `line` is canonical. */
bool tc_pattern_finds(const tc_pattern *p, const char *line);

/* What stands behind --filter, each time it is given. */
enum { TC_MOST_FILTERS = 64 };
typedef struct tc_filters {
    tc_pattern *at[TC_MOST_FILTERS];
    size_t n;
} tc_filters;

/* False with `why`: the text is no pattern, or one too many. */
bool tc_filters_add(tc_filters *filters, const char *text, char why[TC_MESSAGE]);
void tc_filters_finish(tc_filters *filters);

#endif
