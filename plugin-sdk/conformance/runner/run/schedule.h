/* What a class of cases asks of its worker (decision 0008). */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_SCHEDULE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_SCHEDULE_H

#include <stdbool.h>

/* X(class, core, fresh, alone, heap, patience). core: needs the worker that is linked with
 * libtenon. fresh: a process of its own. alone: nothing else runs beside it; such cases come last.
 * heap: looks at what malloc has given out. patience: times the time limit. */
#define TC_SCHEDULES(X) \
    X("kernel", false, false, false, false, 1) \
    X("same", false, false, false, false, 1) \
    X("refuse", false, false, false, false, 1) \
    X("contract", false, false, false, false, 1) \
    X("operator", true, false, false, false, 1) \
    X("gradient", true, false, false, false, 2) \
    X("process", false, true, true, true, 2) \
    X("train", true, true, true, false, 20) \
    X("perf", false, false, true, false, 2)

typedef struct tc_schedule {
    const char *class;
    bool core, fresh, alone, heap;
    int patience;
} tc_schedule;

enum { TC_UNKNOWN_SCHEDULE = 0 };

/* Schedules in the order in which they run. A line of no known class has TC_UNKNOWN_SCHEDULE, and goes to
 * the first worker, which answers that it knows no such class. */
unsigned tc_schedule_of(const char *line);
const tc_schedule *tc_schedule_get(unsigned schedule);

#endif
