/* Random workloads, compared with a model on the host: what a program may do, in any order.
 *
 * Lanes are streams with what is known of their order. Who uses a buffer next waits, in one of the ways
 * there are, for who used it last, so that the buffers are those of the operations one after the other.
 * What is wrong with order, ranges or lifetimes shows here sooner or later.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_WORKLOAD_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_WORKLOAD_H

#include "plugin-sdk/conformance/worker/contract/open_devices.h"

#include <stdio.h>
#include <tenon/ext/capture.h>

enum {
    TC_MOST_LANES = 4,
    TC_WORKLOAD_DEVICES = 2,
    TC_WORKLOAD_BUFFERS = 6, /* on each device */
    TC_WORKLOAD_MARKS = 5,
    TC_WORKLOAD_GRAPHS = 3,
    TC_WORKLOAD_ACTIONS = 6, /* in a graph */
    TC_WORKLOAD_TAKEN = 3 * TC_WORKLOAD_ACTIONS,
    TC_NOBODY = -1,
};

/* How much of each lane's work lies behind somebody: a vector clock (C. Fidge, Timestamps in
 * Message-Passing Systems That Preserve the Partial Ordering, 1988). */
typedef struct tc_clock {
    uint64_t at[TC_MOST_LANES];
} tc_clock;

/* The nth operation of a lane; of TC_NOBODY: long ago. */
typedef struct tc_use {
    int lane;
    uint64_t n;
} tc_use;

typedef struct tc_lane {
    tc_subject *s;
    int device; /* among those of the workload */
    tn_stream_impl *stream;
    uint64_t n;      /* operations so far */
    tc_clock behind; /* what the next one lies behind */
    bool captures;
    tn_event_impl *before; /* recorded when the capture began */
    tc_clock before_at;
} tc_lane;

/* An event that is kept, and recorded again and again. */
typedef struct tc_mark {
    tc_subject *s;
    tn_event_impl *event;
    tc_clock at;     /* what it is behind */
    tc_use recorded; /* of TC_NOBODY: not yet */
    bool passed;     /* as query said */
} tc_mark;

typedef struct tc_place {
    tc_buffer b;
    tc_use last;
} tc_place;

typedef enum tc_action_kind {
    TC_ACT_FILL,
    TC_ACT_COPY,
    TC_ACT_ADD,
    TC_ACT_TO_PINNED,
    TC_ACT_FROM_PINNED,
    TC_ACT_PEER, /* never recorded */
    TC_N_ACTS,
} tc_action_kind;

/* What a stream does, now or as part of a graph. Places are indices; those of another device in
 * PEER's `a`. */
typedef struct tc_action {
    tc_action_kind kind;
    int a, b, c; /* from a to b; ADD: a + 3 b to c */
    uint64_t from, to, bytes;
    uint8_t value;
} tc_action;

typedef struct tc_recorded_graph {
    tn_graph_impl *graph;
    int device;
    int n;
    tc_action actions[TC_WORKLOAD_ACTIONS];
} tc_recorded_graph;

typedef struct tc_workload {
    tc_contract *k;
    tc_random random;
    tc_devices devices;
    int n_devices, n_lanes;
    bool streams; /* without them all is done when a call returns */
    int size;     /* of buffers, as a power of two at most */
    tc_lane lanes[TC_MOST_LANES];
    tc_place places[TC_WORKLOAD_DEVICES][TC_WORKLOAD_BUFFERS], pinned[TC_WORKLOAD_DEVICES];
    tc_work work[TC_WORKLOAD_DEVICES];
    tc_mark marks[TC_WORKLOAD_MARKS];
    tc_recorded_graph graphs[TC_WORKLOAD_GRAPHS], recording;
    tc_clock host; /* what the host knows to be done */
    unsigned char *scratch;
    const tn_kernel *add[TC_WORKLOAD_DEVICES]; /* NULL: the device has none */
    const tn_ext_capture *capture;
    bool no_peer;
    tc_place *taken[TC_WORKLOAD_TAKEN]; /* for the operation that is to be queued */
    int n_taken;
    bool recording_now;
    int op;
    char what[160]; /* the operation, for messages */
} tc_workload;

static inline uint64_t tc_workload_below(tc_workload *w, uint64_t n) {
    return tc_below(&w->random, n);
}

#define TC_DID(w, ...) snprintf((w)->what, sizeof(w)->what, __VA_ARGS__)

/* As tc_must, with the operation in the message. */
bool tc_workload_must(tc_workload *w, tn_requirement requirement, tn_status status,
                      const char *what);

/* ---- order (workload_order.c) ------------------------------------------------------------ */

/* A lane that does not capture; of `device`, or of any where that is negative. TC_NOBODY: there
 * is none. */
int tc_any_lane(tc_workload *w, int device);

/* The lane may use the place: waits for who used it last. */
bool tc_take(tc_workload *w, tc_place *p, int lane);

/* The host may: returns when that use is done. */
bool tc_host_waits(tc_workload *w, tc_use use);

/* Records the lane's `before`. */
bool tc_lane_mark_before(tc_workload *w, int lane);

/* The lane has queued one more operation, which uses the places that were taken. */
void tc_lane_did(tc_workload *w, int lane);

/* Operations on events, and destroys of streams. False where the case has failed. */
bool tc_op_mark(tc_workload *w);
bool tc_op_wait(tc_workload *w);
bool tc_op_ask(tc_workload *w);
bool tc_op_elapsed(tc_workload *w);
bool tc_op_renew_mark(tc_workload *w);
bool tc_op_new_stream(tc_workload *w);

/* ---- actions (workload_actions.c) -------------------------------------------------------- */

tc_action tc_draw_action(tc_workload *w, int device, bool recorded);
bool tc_action_uses(tc_workload *w, const tc_action *a, int device, const tc_place *p);

/* The lane may do it: waits for all who used its places. */
bool tc_action_take(tc_workload *w, const tc_action *a, int lane);

/* Queues it. *out_done: it was not declined. */
bool tc_action_queue(tc_workload *w, const tc_action *a, int lane, bool *out_done);

/* What it does to the models. */
void tc_action_apply(tc_workload *w, const tc_action *a, int device);

/* ---- graphs (workload_graphs.c) ---------------------------------------------------------- */

bool tc_op_capture(tc_workload *w);
bool tc_op_launch(tc_workload *w);
bool tc_op_update(tc_workload *w);
void tc_graphs_drop(tc_workload *w, const tc_place *that_use); /* NULL: all */

/* By the capture that is going on. */
bool tc_is_recorded(tc_workload *w, const tc_place *p);

/* Any operation, on a lane that does not capture. */
bool tc_any_op(tc_workload *w);

#endif
