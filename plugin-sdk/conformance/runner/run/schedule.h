/* What a class of cases asks of its worker (decision 0008). */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_SCHEDULE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_SCHEDULE_H

#include <stdbool.h>

/* In the order in which they run: what the others rest on first, so that a cause is told before what follows from it.
 * X(class, program, fresh, alone, heap, patience, cost)
 * program: which worker runs it: this one, which knows plugin.h alone, the one that is linked with libtenon, or PyTorch's.
 * fresh: a process of its own. alone: nothing else runs beside it. heap: looks at what malloc has given out.
 * patience: times the time limit. cost: milliseconds of a case on cpu or sim, about; the time that is left is guessed by it. */
#define TC_SCHEDULES(X) \
    X("process", PLUGIN, true, false, true, 2, 100) \
    X("contract", PLUGIN, false, false, false, 1, 100) \
    X("kernel", PLUGIN, false, false, false, 1, 0.5) \
    X("same", PLUGIN, false, false, false, 1, 0.5) \
    X("refuse", PLUGIN, false, false, false, 1, 0.5) \
    X("operator", CORE, false, false, false, 1, 0.2) \
    X("gradient", CORE, false, false, false, 2, 1) \
    X("train", CORE, true, true, false, 20, 30) \
    X("perf", PLUGIN, false, true, false, 2, 300) \
    X("torch", TORCH, false, false, false, 5, 1)

typedef enum tc_program { TC_PROGRAM_PLUGIN, TC_PROGRAM_CORE, TC_PROGRAM_TORCH } tc_program;

typedef struct tc_schedule {
    const char *class;
    tc_program program;
    bool fresh, alone, heap;
    int patience;
    double cost;
} tc_schedule;

#define TC_SCHEDULE_ONE(class, program, fresh, alone, heap, patience, cost) +1
enum { TC_UNKNOWN_SCHEDULE = 0, TC_N_SCHEDULES = 1 TC_SCHEDULES(TC_SCHEDULE_ONE) };
#undef TC_SCHEDULE_ONE

/* A line of no known class has TC_UNKNOWN_SCHEDULE, comes first, and goes to the first worker, which
 * answers that it knows no such class. */
unsigned tc_schedule_of(const char *line);
const tc_schedule *tc_schedule_get(unsigned schedule);

/* Of one case, some of which ask for more than their class: that nothing else runs beside it, and
 * how many times the time limit it has. */
bool tc_schedule_alone(const char *line);
int tc_schedule_patience(const char *line);

#endif
