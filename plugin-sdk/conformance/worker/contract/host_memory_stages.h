/* The stages at which host memory runs out, and what a trial of one has (host_memory.c). */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_HOST_MEMORY_STAGES_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_HOST_MEMORY_STAGES_H

#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"

#include <tenon/ext/capture.h>

typedef struct tc_trial {
    tc_contract *k;
    tc_subject s;
    tn_event_impl *event;
    tn_memory memory[2];
    tc_placed placed;
    tc_invocation call;
    const char *line; /* of the kernel call */
    tn_graph_impl *graph, *other;
    bool updated; /* `graph` does what `other` does */
    tc_work work;
    unsigned char *large;
    tn_device_impl *peer;
    tn_memory of_peer;
} tc_trial;

/* A stage begins where `prepare` left the plugin, `attempt` is the call, `undo` takes a successful
 * one back. */
typedef struct tc_stage {
    const char *name;
    tn_requirement requirement; /* that it succeeds when there is memory */
    bool opens;                 /* a device and a stream are open before it */
    bool (*prepare)(tc_trial *t);
    tn_status (*attempt)(tc_trial *t);
    void (*undo)(tc_trial *t);
    void (*finish)(tc_trial *t);
    bool (*arm)(tc_trial *t); /* before each attempt, with memory to be had; may be NULL */
} tc_stage;

/* Of captures and of transfers (host_memory_captures.c, host_memory_transfers.c); one without a name ends them. */
extern const tc_stage tc_capture_stages[], tc_transfer_stages[];

/* Two allocations of so many bytes. */
enum { TC_TRIAL_BYTES = 3000 };
bool tc_prepare_transfer(tc_trial *t);
void tc_finish_transfer(tc_trial *t);

/* What need not be taken back. */
void tc_leave(tc_trial *t);

/* What an output holds before the call: after one that fails it does still, or is cleared. */
extern char tc_trial_poison;
#define TC_POISONED(type) ((type *)(void *)&tc_trial_poison)

/* True, and the output cleared, where the call gave something. */
#define TC_GAVE(t, status, out, what) \
    ((status) == TN_OK || (tc_gave((t), (out), (what)), (out) = NULL, false))
void tc_gave(tc_trial *t, const void *out, const char *what);

#endif
