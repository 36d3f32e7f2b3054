/* Threads that are to call at the same moment: they wait for each other awake, since who sleeps is woken up
 * long after the first has called. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_MEET_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_MEET_H

#include "plugin-sdk/conformance/worker/data/element.h"

#include <stdatomic.h>

typedef struct tc_meeting {
    int n; /* threads */
    atomic_int arrived, over;
} tc_meeting;

void tc_meeting_init(tc_meeting *m, int n);

/* Returns when all have come. */
void tc_meet(tc_meeting *m);

/* The same of two threads, or after so many seconds; who gives up does not count for the next ones. */
bool tc_meet_at_most(tc_meeting *m, double seconds);

/* Loses between none and some thousand instructions, of each order of magnitude as often. */
void tc_come_late(tc_random *r);

#endif
