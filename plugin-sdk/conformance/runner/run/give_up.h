/* When a class of cases is given up: a plugin that always crashes, hangs or cannot be opened does so
 * in each of ten thousand cases, and the first few have told it all. And which failures need no second
 * look, because equal ones had it. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_GIVE_UP_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_GIVE_UP_H

#include "plugin-sdk/conformance/case.h"
#include "plugin-sdk/conformance/verdict.h"
#include "plugin-sdk/conformance/runner/run/schedule.h"

enum { TC_MOST_KNOWN = 64 };

typedef struct tc_known_failure {
    uint64_t kind;
    unsigned n; /* that were run again and failed again, since one that did not */
} tc_known_failure;

typedef struct tc_give_up {
    unsigned limit; /* equal ones in a row; 0: never */
    struct {
        uint64_t kind; /* of the last ones */
        size_t n;      /* in a row */
        bool mixed;    /* there was something else before */
        bool over;     /* given up */
        tc_known_failure known[TC_MOST_KNOWN];
    } classes[TC_N_SCHEDULES];
} tc_give_up;

/* Takes a verdict into account. True where its class is given up now; `why` says for what. */
bool tc_give_up_see(tc_give_up *g, unsigned schedule, const char *line, const tc_verdict *v,
                    char why[TC_VERDICT_MESSAGE]);

/* A case that failed was run again: alone, or behind those before it, it fails again, or it is flaky. */
void tc_give_up_again(tc_give_up *g, unsigned schedule, const char *line, const tc_verdict *v,
                      bool failed);

/* Whether running the case again tells nothing new: the last ones of its class went the same way, or
 * three equal failures of its class were confirmed. */
bool tc_give_up_knows(const tc_give_up *g, unsigned schedule, const char *line,
                      const tc_verdict *v);

#endif
