/* Workloads: captures, launches and updates of graphs. */
#include "plugin-sdk/conformance/worker/contract/workload.h"

#include <string.h>

static bool uses(tc_workload *w, const tc_recorded_graph *g, const tc_place *p) {
    for (int i = 0; i < g->n; i++)
        if (tc_action_uses(w, &g->actions[i], g->device, p))
            return true;
    return false;
}

bool tc_is_recorded(tc_workload *w, const tc_place *p) {
    return uses(w, &w->recording, p);
}

static void drop(tc_workload *w, tc_recorded_graph *g) {
    if (g->graph)
        w->capture->destroy(g->graph);
    *g = (tc_recorded_graph){0};
}

void tc_graphs_drop(tc_workload *w, const tc_place *that_use) {
    for (int i = 0; i < TC_WORKLOAD_GRAPHS; i++)
        if (!that_use || uses(w, &w->graphs[i], that_use))
            drop(w, &w->graphs[i]);
}

static tc_recorded_graph *any_graph(tc_workload *w) {
    tc_recorded_graph *g = &w->graphs[tc_workload_below(w, TC_WORKLOAD_GRAPHS)];
    return g->graph ? g : NULL;
}

/* ---- captures ---------------------------------------------------------------------------- */

static bool begin(tc_workload *w, int lane) {
    tc_lane *l = &w->lanes[lane];
    if (!tc_lane_mark_before(w, lane))
        return false;
    tn_status status = w->capture->begin(l->stream);
    if (status == TN_ERR_UNSUPPORTED) { /* this device cannot */
        w->capture = NULL;
        return true;
    }
    l->captures = tc_workload_must(w, TNP_CAPTURE_RECORDS, status, "begin of a capture");
    return l->captures;
}

/* Some actions, and between them what others do. */
static bool record(tc_workload *w, int lane) {
    tc_recorded_graph *g = &w->recording;
    int n = 1 + (int)tc_workload_below(w, TC_WORKLOAD_ACTIONS);
    for (int i = 0; i < n; i++) {
        bool done;
        TC_DID(w, "action %d of the capture of stream %d", i, lane);
        tc_action a = tc_draw_action(w, g->device, true);
        if (!tc_action_queue(w, &a, lane, &done))
            return false;
        if (done)
            g->actions[g->n++] = a;
        if (tc_workload_below(w, 3) == 0 && !tc_any_op(w))
            return false;
    }
    return true;
}

/* Ended, or given up; the lane goes on as if nothing had been. */
bool tc_op_capture(tc_workload *w) {
    int lane = tc_any_lane(w, -1);
    if (!w->capture || w->recording_now || lane == TC_NOBODY)
        return true;
    tc_lane *l = &w->lanes[lane];
    tc_recorded_graph *g = &w->graphs[tc_workload_below(w, TC_WORKLOAD_GRAPHS)];
    TC_DID(w, "capture of stream %d", lane);
    drop(w, g);
    w->recording = (tc_recorded_graph){.device = l->device};
    if (!begin(w, lane) || !l->captures)
        return !tc_failed(w->k);
    w->recording_now = true;
    bool ok = record(w, lane);
    w->recording_now = l->captures = false;
    if (!ok || tc_workload_below(w, 8) == 0)
        w->capture->abandon(l->stream);
    else if (tc_workload_must(w, TNP_CAPTURE_RECORDS,
                              w->capture->end(l->stream, &w->recording.graph),
                              "end of a capture")) {
        *g = w->recording;
        if (!g->graph)
            TC_BROKEN(w->k, TNP_CAPTURE_RECORDS, "end of a capture gave no graph");
    }
    w->recording = (tc_recorded_graph){0};
    return !tc_failed(w->k);
}

/* ---- graphs ------------------------------------------------------------------------------ */

bool tc_op_launch(tc_workload *w) {
    tc_recorded_graph *g = any_graph(w);
    int lane = g ? tc_any_lane(w, g->device) : TC_NOBODY;
    if (lane == TC_NOBODY)
        return true;
    TC_DID(w, "launch of graph %d on stream %d", (int)(g - w->graphs), lane);
    for (int i = 0; i < g->n; i++)
        if (!tc_action_take(w, &g->actions[i], lane))
            return false;
    if (!tc_workload_must(w, TNP_CAPTURE_REPLAYS,
                          w->capture->launch(g->graph, w->lanes[lane].stream), "launch"))
        return false;
    for (int i = 0; i < g->n; i++)
        tc_action_apply(w, &g->actions[i], g->device);
    tc_lane_did(w, lane);
    return true;
}

/* One does what another does, which goes its way; or is as it was. */
bool tc_op_update(tc_workload *w) {
    tc_recorded_graph *g = any_graph(w), *from = any_graph(w);
    if (!g || !from || g == from || g->device != from->device ||
        !TN_HAS(w->capture, tn_ext_capture, update) || !w->capture->update)
        return true;
    TC_DID(w, "update of graph %d from %d", (int)(g - w->graphs), (int)(from - w->graphs));
    tn_status status = w->capture->update(g->graph, from->graph);
    if (status == TN_ERR_UNSUPPORTED)
        return true;
    g->n = from->n;
    memcpy(g->actions, from->actions, sizeof g->actions);
    if (tc_workload_below(w, 2))
        drop(w, from);
    return tc_workload_must(w, TNP_CAPTURE_UPDATE, status, "update");
}
