/* See guard.h. */
#include "plugin-sdk/conformance/worker/contract/guard.h"

#include "plugin-sdk/conformance/worker/contract/capture.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"
#include "plugin-sdk/conformance/worker/subject/watch.h"
#include "plugin-sdk/conformance/worker/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- environment variables, which process/ cannot put back ------------------------------- */

static char **variables; /* as they were before the first case */

static char **copy_variables(char *const *from, bool deep) {
    size_t n = 0;
    while (from[n])
        n++;
    char **to = calloc(n + 1, sizeof *to);
    for (size_t i = 0; to && i < n; i++)
        to[i] = deep ? strdup(from[i]) : from[i];
    return to;
}

/* ---- standard output --------------------------------------------------------------------- */

static tc_capture output;
static bool captures;

/* What came is told on stderr, where the runner shows it. */
static void check_output(tc_verdict *out) {
    char text[64];
    if (!captures || tc_capture_look(&output, text) == 0)
        return;
    fprintf(stderr, "on standard output: %s\n", text);
    tc_verdict_set(out, TC_FAIL, TNP_NO_OUTPUT,
                   "the plugin printed to stdout: %s; what it says goes to host->log_message",
                   text);
}

/* ---- cases ------------------------------------------------------------------------------- */

/* A case of process/ loads the plugin into a fresh process, which this one is not any more. */
static void name_the_call(const tc_class *class, const tc_case *c, const tc_options *options,
                          const char *text, tc_verdict *out) {
    tc_verdict again = {0};
    if (class != &tc_class_process) {
        tc_watch_all(true);
        class->run(c, options, &again);
        tc_check_host(&again);
        tc_watch_all(false);
    }
    *out = again;
    if (again.requirement == TNP_PROCESS_STATE_KEPT)
        return;
    *out = (tc_verdict){0};
    tc_verdict_set(out, TC_FAIL, TNP_PROCESS_STATE_KEPT,
                   "what the plugin did in this case %s; put it back before the call returns",
                   text);
}

void tc_guard_case(const tc_class *class, const tc_case *c, const tc_options *options,
                   tc_verdict *out) {
    static tni_process_state before;
    static bool looked;
    char text[256];
    if (class->timed) {
        class->run(c, options, out);
        return;
    }
    if (!looked) {
        captures = tc_capture_start(&output, 1);
        variables = copy_variables(environ, true);
        tni_process_look(&before);
        looked = true;
    }
    class->run(c, options, out);
    tc_check_host(out);
    check_output(out);
    if (!tc_watch_called() && class != &tc_class_process)
        return;
    tni_process_part part = tni_process_compare(&before, text, sizeof text);
    if (part == TNI_PROCESS_PARTS)
        return;
    char **fresh = variables ? copy_variables(variables, false) : NULL;
    if (part == TNI_PROCESS_ENVIRONMENT && fresh)
        environ = fresh; /* stays, as who has read it may keep the old one */
    else
        free(fresh);
    tni_process_restore(&before);
    if (out->status != TC_FAIL)
        name_the_call(class, c, options, text, out);
    tni_process_look(&before); /* what could not be put back is told once */
}
