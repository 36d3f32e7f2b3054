/* One kernel call on the subject's device.
 *
 * Tensors are placed in allocations of their own, image by image, so that offsets, holes and guards
 * are as the case has them; the workspace lies between guards too. Afterwards all of it is read
 * back.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_EXECUTE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_EXECUTE_H

#include "plugin-sdk/conformance/worker/subject/subject.h"
#include "plugin-sdk/conformance/worker/kernel/record.h"

/* Why a plugin need not run a call. */
typedef enum tc_claim { TC_CLAIMED, TC_NO_DTYPE, TC_NO_FLAG, TC_NO_SHAPE } tc_claim;

/* The record that serves the call, as the core would choose it: dtypes, then flags. */
tc_claim tc_find_kernel(const tc_subject *s, const tc_invocation *call, const tn_kernel **out);

/* The flags that a kernel must have to be handed this call as it is. */
uint32_t tc_needed_flags(const tc_invocation *call);
const char *tc_flag_name(uint32_t flag);

typedef struct tc_result {
    tn_status run, sync;      /* what `run` returned, and the stream afterwards */
    char message[TC_MESSAGE]; /* of the failure, if there was one */
    bool said_no; /* `supports` answered TN_ERR_UNSUPPORTED; `run` was called all the same */
    unsigned char *args[TC_MAX_ARGS],
        *outs[TC_MAX_OUTS]; /* images afterwards; in the call's arena */
    bool workspace_overrun;
} tc_result;

/* Runs the call. False where the suite or the device could not set it up (memory, transfers), with
 * the verdict filled. On true `out` says what became of it. */
bool tc_execute(tc_subject *s, const tn_kernel *kernel, tc_invocation *call, tc_result *out,
                tc_verdict *verdict);

/* The parts of it, for those who call otherwise (several threads, out of order). */
typedef struct tc_placed {
    tc_subject *subject;
    const tn_kernel *kernel;
    tc_invocation *call;
    tn_tensor_view arg_views[TC_MAX_ARGS], out_views[TC_MAX_OUTS];
    const tn_tensor_view *outs[TC_MAX_OUTS];
    tn_cell cells[TC_MAX_ARGS];
    tn_memory memory[TC_MAX_ARGS + TC_MAX_OUTS + 1]; /* to be freed */
    uint32_t n_memory;
    tn_call tn;
    uint64_t workspace_room; /* allocated for it, guards included */
} tc_placed;

bool tc_place_call(tc_subject *s, tn_stream_impl *stream, const tn_kernel *kernel,
                   tc_invocation *call, tc_placed *out, tc_verdict *verdict);
/* An argument that is no tensor, or arrives as none, as `run` gets it. */
tn_cell tc_value_cell(const tc_invocation *call, uint32_t a);
/* Runs the call as a host does that keeps nothing: cells, views and lists are copies, overwritten
 * as soon as `run` has returned. Any thread. */
tn_status tc_run_placed(const tc_placed *p);
/* Asks `supports`, and gives the call its workspace unless it says no. */
bool tc_ready_call(tc_placed *p, bool *out_said_no, tc_verdict *verdict);
/* All that was placed; the outputs alone. */
bool tc_read_back(tc_placed *p, tc_result *out, tc_verdict *verdict);
bool tc_read_outs(tc_placed *p, tc_result *out, tc_verdict *verdict);
void tc_unplace(tc_placed *p);

#endif
