/* What a class of cases asks of its worker (decision 0008). */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_ROUTE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_ROUTE_H

#include <stdbool.h>

/* X(class, core, fresh, alone, heap, patience). core: needs the worker that is linked with
 * libtenon. fresh: a process of its own. alone: nothing else runs beside it; such cases come last.
 * heap: looks at what malloc has given out. patience: times the time limit. */
#define TC_ROUTES(X) \
    X("kernel", false, false, false, false, 1) \
    X("same", false, false, false, false, 1) \
    X("refuse", false, false, false, false, 1) \
    X("contract", false, false, false, false, 1) \
    X("operator", true, false, false, false, 1) \
    X("gradient", true, false, false, false, 2) \
    X("process", false, true, true, true, 2) \
    X("train", true, true, true, false, 20) \
    X("perf", false, false, true, false, 2)

typedef struct tc_route {
    const char *class;
    bool core, fresh, alone, heap;
    int patience;
} tc_route;

enum { TC_UNKNOWN_ROUTE = 0 };

/* Routes in the order in which they run. A line of no known class has TC_UNKNOWN_ROUTE, and goes to
 * the first worker, which answers that it knows no such class. */
unsigned tc_route_of(const char *line);
const tc_route *tc_route_get(unsigned route);
unsigned tc_n_routes(void);

#endif
