/* One kernel call on the subject's device.
 *
 * Tensors are placed in allocations of their own, or side by side in one (memory=one), image by
 * image, so that offsets, holes and guards are as the case has them; the workspace lies between
 * guards too. Afterwards all of it is read back.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_EXECUTE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_EXECUTE_H

#include "plugin-sdk/conformance/worker/kernel/choose.h"

typedef struct tc_result {
    const tn_kernel *kernel;  /* that took the call */
    tn_status run, sync;      /* what `run` returned, and the stream afterwards */
    char message[TC_MESSAGE]; /* of the failure, if there was one */
    unsigned char *args[TC_MAX_ARGS],
        *outs[TC_MAX_OUTS]; /* images afterwards; in the call's arena */
    bool workspace_overrun;
} tc_result;

/* Makes the call as the core does: the first record that takes it; where `prepare` or `run`
 * declines, the next. One that declines in `run` has written nothing, or the verdict says so. False
 * where that failed, or the suite or the device could not set it up (memory, transfers), or no
 * record is left, with the verdict filled. On true `out` says what became of it. */
bool tc_execute(tc_subject *s, tc_invocation *call, tc_result *out, tc_verdict *verdict);

/* Memory that serves one call after the other, allocation by allocation, and is not given back
 * between them; all zeros at first. */
typedef struct tc_shelf {
    tn_memory memory[TC_MAX_ARGS + TC_MAX_OUTS];
    uint64_t room[TC_MAX_ARGS + TC_MAX_OUTS];
} tc_shelf;
bool tc_execute_on(tc_shelf *shelf, tc_subject *s, tc_invocation *call, tc_result *out,
                   tc_verdict *verdict);
void tc_shelf_clear(tc_shelf *shelf, tc_subject *s);

/* The parts of it, for those who call otherwise (several threads, out of order). */
typedef struct tc_placed {
    tc_subject *subject;
    const tn_kernel *kernel; /* the record that is asked */
    tc_invocation *call;
    tn_tensor_view arg_views[TC_MAX_ARGS], out_views[TC_MAX_OUTS];
    const tn_tensor_view *outs[TC_MAX_OUTS];
    tn_cell cells[TC_MAX_ARGS];
    tn_memory memory[TC_MAX_ARGS + TC_MAX_OUTS]; /* to be freed, unless it is the shelf's */
    uint32_t n_memory;
    uint64_t used;   /* of the one allocation of all tensors */
    tc_shelf *shelf; /* or NULL */
    tn_call tn;
    tn_memory workspace;     /* serves again when the call is made again */
    uint64_t workspace_room; /* of it, guards included */
} tc_placed;

/* Chooses the first record and places the tensors. */
bool tc_place_call(tc_subject *s, tn_stream_impl *stream, tc_invocation *call, tc_placed *out,
                   tc_verdict *verdict);

/* The next record that takes the call; false: there is none. */
bool tc_next_record(tc_placed *p);

/* For who has changed what was placed: does `supports` still take it? */
bool tc_supports_placed(tc_placed *p);

/* Asks `supports`, which has taken the call, and `prepare`. On true either they take the call, of which `run` or
 * tc_abandon_placed follows on this thread, or `prepare` declines. */
bool tc_ready_call(tc_placed *p, bool *out_declined, tc_verdict *verdict);

/* `prepare` alone, with memory for the workspace. Cells, views and lists are copies, overwritten as
 * soon as it has returned, here and in the next two. Any thread. */
tn_status tc_prepare_placed(tc_placed *p);
void tc_abandon_placed(tc_placed *p);
tn_status tc_run_placed(const tc_placed *p);

/* All of what a host does, from `prepare` on: as often as one likes, on any thread. */
tn_status tc_call_placed(tc_placed *p);

/* All that was placed; the outputs alone. */
bool tc_read_back(tc_placed *p, tc_result *out, tc_verdict *verdict);
bool tc_read_outs(tc_placed *p, tc_result *out, tc_verdict *verdict);
void tc_unplace(tc_placed *p);

#endif
