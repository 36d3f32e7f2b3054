/* When a class of cases is given up: a plugin that always crashes, hangs or cannot be opened does so
 * in each of ten thousand cases, and the first few have told it all. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_GIVE_UP_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_GIVE_UP_H

#include "plugin-sdk/conformance/case.h"
#include "plugin-sdk/conformance/verdict.h"
#include "plugin-sdk/conformance/runner/run/schedule.h"

typedef struct tc_give_up {
    unsigned limit; /* equal ones in a row; 0: never */
    struct {
        uint64_t kind; /* of the last ones */
        size_t n;      /* in a row */
        bool mixed;    /* there was something else before */
        bool over;     /* given up */
    } classes[TC_N_SCHEDULES];
} tc_give_up;

/* Takes a verdict into account. True where its class is given up now; `why` says for what. */
bool tc_give_up_see(tc_give_up *g, unsigned schedule, const char *line, const tc_verdict *v,
                    char why[TC_VERDICT_MESSAGE]);

/* Whether running the case again tells nothing new: the last ones of its class went the same way. */
bool tc_give_up_knows(const tc_give_up *g, unsigned schedule, const char *line,
                      const tc_verdict *v);

#endif
