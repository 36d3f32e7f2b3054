/* Times work on the subject's stream.
 *
 * It is done n times in a row on one stream and waited for; n is found so that this lasts some
 * 20 ms, and it is done a few times over. The median counts, as what else a machine does only ever
 * makes a run longer. Before each run that counts the outputs are spoilt, after it they are
 * checked, so that only work that was done is timed.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_PERF_STOPWATCH_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_PERF_STOPWATCH_H

#include "plugin-sdk/conformance/worker/kernel/execute.h"

typedef struct tc_timed {
    void *context;
    /* Makes the outputs wrong, and waits until they are. False with the verdict filled. */
    bool (*spoil)(void *context, tc_verdict *verdict);
    tn_status (*call)(void *context);
    /* What became of a run's calls: the first failure, the stream's error, the outputs. */
    void (*check)(void *context, tc_result *result, tc_verdict *verdict);
} tc_timed;

/* Fills ns, spread and device_ns. False with the verdict filled where a check did not hold. */
bool tc_time(tc_subject *s, const tc_timed *what, tc_figures *out, tc_verdict *verdict);

#endif
