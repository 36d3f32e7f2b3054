/* Captures and launches for which host memory runs out: see host_memory.c. */
#include "plugin-sdk/conformance/worker/contract/host_memory_stages.h"

static const tn_ext_capture *capture(const tc_trial *t) {
    return tc_subject_extension(&t->s, TN_EXT_CAPTURE);
}

static bool prepare_capture(tc_trial *t) {
    const tn_ext_capture *ext = t->s.stream ? capture(t) : NULL;
    if (!ext || ext->begin(t->s.stream) != TN_OK)
        return false;
    ext->abandon(t->s.stream);
    return tc_prepare_transfer(t);
}

/* From begin to a launch; whatever fails, the stream is an ordinary one afterwards. */
static tn_status try_capture(tc_trial *t) {
    const tn_ext_capture *ext = capture(t);
    tn_graph_impl *graph = TC_POISONED(tn_graph_impl);
    unsigned char back[TC_TRIAL_BYTES] = {0};
    tn_status status = ext->begin(t->s.stream);
    if (status != TN_OK)
        return status;
    status = t->s.memory->fill(t->s.device, t->s.stream, t->memory[0], 0, 7, TC_TRIAL_BYTES);
    if (status != TN_OK) {
        ext->abandon(t->s.stream);
        return status;
    }
    status = ext->end(t->s.stream, &graph);
    if (TC_GAVE(t, status, graph, "end of a capture")) {
        status = ext->launch(graph, t->s.stream);
        tc_must(t->k, TNP_HOST_ALLOC_FAILURE, tc_subject_sync(&t->s),
                "synchronize behind a launch");
        ext->destroy(graph);
    } else
        tc_must(t->k, TNP_CAPTURE_RECORDS, tc_subject_sync(&t->s),
                "synchronize after the end of a capture failed");
    if (status == TN_OK)
        status = t->s.memory->copy_to_host(t->s.device, t->s.stream, back, 0, t->memory[0], 0,
                                           TC_TRIAL_BYTES);
    if (status == TN_OK && (back[0] != 7 || back[TC_TRIAL_BYTES - 1] != 7))
        TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE,
                  "a launch succeeded while the host had no memory, and did nothing");
    return status;
}

static bool prepare_launch(tc_trial *t) {
    const tn_ext_capture *ext = t->s.stream ? capture(t) : NULL;
    if (!ext || !tc_prepare_transfer(t) || ext->begin(t->s.stream) != TN_OK)
        return false;
    if (t->s.memory->fill(t->s.device, t->s.stream, t->memory[0], 0, 9, TC_TRIAL_BYTES) == TN_OK)
        return ext->end(t->s.stream, &t->graph) == TN_OK;
    ext->abandon(t->s.stream);
    return false;
}

/* Of one graph, again and again: a launch that failed is as if it had not been. */
static tn_status try_launch(tc_trial *t) {
    unsigned char back[TC_TRIAL_BYTES] = {0};
    const tn_memory_ops *m = t->s.memory;
    tn_status status = m->fill(t->s.device, t->s.stream, t->memory[0], 0, 0, TC_TRIAL_BYTES);
    if (status == TN_OK)
        status = capture(t)->launch(t->graph, t->s.stream);
    tc_must(t->k, TNP_HOST_ALLOC_FAILURE, tc_subject_sync(&t->s), "synchronize behind a launch");
    if (status == TN_OK)
        status =
            m->copy_to_host(t->s.device, t->s.stream, back, 0, t->memory[0], 0, TC_TRIAL_BYTES);
    if (status == TN_OK && (back[0] != 9 || back[TC_TRIAL_BYTES - 1] != 9))
        TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE,
                  "a launch succeeded while the host had no memory, and did nothing");
    return status;
}

static void finish_launch(tc_trial *t) {
    if (t->graph)
        capture(t)->destroy(t->graph);
    t->graph = NULL;
    tc_finish_transfer(t);
}

/* Another graph, which fills with something else, and the usual one does that once it is updated. */
static bool prepare_update(tc_trial *t) {
    const tn_ext_capture *ext = t->s.stream ? capture(t) : NULL;
    tn_graph_impl *first;
    if (!ext || !TN_HAS(ext, tn_ext_capture, update) || !ext->update || !prepare_launch(t))
        return false;
    first = t->graph;
    t->graph = NULL;
    if (ext->begin(t->s.stream) == TN_OK) {
        if (t->s.memory->fill(t->s.device, t->s.stream, t->memory[0], 0, 5, TC_TRIAL_BYTES) !=
            TN_OK)
            ext->abandon(t->s.stream);
        else if (ext->end(t->s.stream, &t->other) != TN_OK)
            t->other = NULL;
    }
    t->graph = first;
    return t->other != NULL;
}

/* An update that failed left both graphs what they were. */
static tn_status try_update(tc_trial *t) {
    const tn_ext_capture *ext = capture(t);
    const tc_subject *s = &t->s;
    unsigned char back[TC_TRIAL_BYTES] = {0};
    tn_status status = ext->update(t->graph, t->other);
    if (status == TN_ERR_UNSUPPORTED)
        return TN_OK;
    if (ext->launch(t->graph, s->stream) == TN_OK && tc_subject_sync(&t->s) == TN_OK &&
        s->memory->copy_to_host(s->device, s->stream, back, 0, t->memory[0], 0, TC_TRIAL_BYTES) ==
            TN_OK &&
        back[TC_TRIAL_BYTES - 1] != (status == TN_OK || t->updated ? 5 : 9))
        TC_BROKEN(
            t->k, TNP_HOST_ALLOC_FAILURE, "after an update %s a launch of the graph filled with %d",
            status == TN_OK ? "" : "that failed for want of host memory", back[TC_TRIAL_BYTES - 1]);
    t->updated = t->updated || status == TN_OK;
    return status;
}

static void finish_update(tc_trial *t) {
    if (t->other)
        capture(t)->destroy(t->other);
    finish_launch(t);
}

const tc_stage tc_capture_stages[] = {
    {"capture", TNP_CAPTURE_REPLAYS, true, prepare_capture, try_capture, tc_leave,
     tc_finish_transfer, NULL},
    {"launch", TNP_CAPTURE_REPLAYS, true, prepare_launch, try_launch, tc_leave, finish_launch,
     NULL},
    {"update", TNP_CAPTURE_UPDATE, true, prepare_update, try_update, tc_leave, finish_update, NULL},
    {0},
};
