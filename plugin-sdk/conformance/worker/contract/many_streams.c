/* Many streams: waits for one of them from streams made long after it, and launches of one graph whose turns come in
 * another order than their streams are free. */
#include "plugin-sdk/conformance/worker/contract/graph_scene.h"

#include <string.h>

/* ---- waits from far ---------------------------------------------------------------------- */

enum { MADE = 512, NEAR = 8, WAITING = 64, PIECE = 500 };

/* Of streams made after the first: the next ones, and those a power of two, thrice such or a round number away, by
 * which who counts them in few bits, or in a table, takes one for the other. */
static bool is_tried(int distance) {
    int odd = distance;
    while (odd % 2 == 0)
        odd /= 2;
    return distance <= NEAR || odd == 1 || odd == 3 || distance % 100 == 0;
}

/* What the latest stream copies behind its wait, which the others have no part in. */
static bool copy_behind(tc_contract *k, tn_stream_impl *stream, tn_event_impl *event,
                        const tc_buffer *from, tc_buffer *to, int place) {
    const tc_subject *s = k->subject;
    memcpy(to->model + (size_t)place * PIECE, from->model, PIECE);
    return tc_must(k, TNP_EVENT_WAIT, s->ops->events->wait(stream, event), "wait") &&
           tc_must(k, TNP_TRANSFER_ORDER,
                   s->memory->copy(s->device, stream, to->memory, (uint64_t)place * PIECE,
                                   from->memory, 0, PIECE),
                   "copy");
}

static void wait_from_far(tc_contract *k) {
    tc_subject *s = k->subject;
    tc_work work;
    tc_buffer from = {0}, to = {0};
    tn_stream_impl *first, *stream, *waiting[WAITING];
    tn_event_impl *event;
    int n = 0;
    bool ok = tc_has_streams(k) && tc_work_create(k, s, &work) &&
              tc_buffer_create(k, s, TN_SPACE_DEVICE, PIECE, &from) &&
              tc_buffer_create(k, s, TN_SPACE_DEVICE, WAITING * PIECE, &to) &&
              tc_stream_create(k, s, 0, &first) && tc_event_create(k, s, 0, &event) &&
              tc_work_hold(k, &work, first, 0.4) && tc_buffer_fill(k, &from, first, 0x39) &&
              tc_must(k, TNP_EVENT_RECORD, s->ops->events->record(event, first), "record");
    for (int i = 1; i <= MADE && ok && n < WAITING; i++) {
        ok = tc_stream_create(k, s, 0, &stream);
        if (ok && is_tried(i)) {
            waiting[n] = stream;
            ok = copy_behind(k, stream, event, &from, &to, n++);
        } else if (ok) {
            tc_stream_destroy(k, stream);
        }
    }
    for (int i = 0; i < n && ok; i++)
        ok = tc_stream_sync(k, waiting[i]);
    if (ok)
        tc_buffer_check(k, &to, first, TNP_EVENT_WAIT,
                        "what was queued before an event that streams wait for which were made "
                        "long after its own");
}

/* ---- turns ------------------------------------------------------------------------------- */

enum { STREAMS = 6, ROUNDS = 3, STEP = 1000 };

/* Each launch moves all of `b` on by a step. */
static bool capture_step(tc_scene *n) {
    return tc_scene_begin(n) && tc_scene_copy(n, &n->a, 0, &n->b, TC_SCENE_BYTES) &&
           tc_scene_copy(n, &n->b, STEP, &n->a, TC_SCENE_BYTES - STEP) &&
           tc_scene_end(n, &n->graph);
}

static void step(tc_scene *n) {
    memmove(n->b.model + STEP, n->b.model, TC_SCENE_BYTES - STEP);
}

/* Streams that are held up for a time of their own, in an order that the round's number says: the first in turn is
 * free last, or in the middle. */
static void turns(tc_contract *k) {
    tc_scene n;
    tc_work work[STREAMS]; /* its memory is one stream's */
    tn_stream_impl *streams[STREAMS];
    bool ok = tc_scene_set_up(k, &n) && capture_step(&n);
    for (int i = 0; i < STREAMS && ok; i++)
        ok = tc_stream_create(k, n.s, 0, &streams[i]) && tc_work_create(k, n.s, &work[i]);
    for (int round = 0; round < ROUNDS && ok; round++) {
        for (int i = 0; i < STREAMS && ok; i++) {
            int place = round ? (int)tc_below(&k->random, STREAMS) : STREAMS - 1 - i;
            ok = tc_work_hold(k, &work[i], streams[i], 0.006 * place) &&
                 tc_scene_launch(&n, n.graph, streams[i]);
            step(&n);
        }
        for (int i = 0; i < STREAMS && ok; i++)
            ok = tc_stream_sync(k, streams[i]);
        ok = ok && tc_scene_check(&n, &n.b, n.stream, TNP_CAPTURE_LAUNCH_ORDER,
                                  "what launches of a graph on many streams wrote, which were held "
                                  "up for different times");
    }
    tc_scene_finish(&n);
}

/* ---- numbers ----------------------------------------------------------------------------- */

/* Launches that wait are counted, and counts have ends: 2^8, 2^16. Behind a mark that is held one stream has as many as
 * that, and another the next one, which is not done before them. A device that makes the caller wait for room before
 * shows less. */
static void launch_count(tc_contract *k) {
    enum { LAUNCHES = 1 << 16, TRIES = 3 };
    tc_scene n;
    tc_work work;
    tn_event_impl *mark;
    tn_stream_impl *slow;
    const tn_event_ops *events = k->subject->ops->events;
    bool held = false;
    bool ok = tc_scene_set_up(k, &n) && tc_work_create(k, n.s, &work) &&
              tc_stream_create(k, n.s, 0, &slow) && tc_event_create(k, n.s, 0, &mark);
    for (int i = 0; ok && i < TRIES && !held; i++) {
        ok = tc_scene_begin(&n) && tc_scene_copy(&n, &n.b, 0, &n.a, 1) &&
             tc_scene_end(&n, &n.graph) && tc_buffer_fill(k, &n.b, n.stream, 0) &&
             tc_stream_sync(k, n.stream) && tc_work_hold(k, &work, slow, 0.15 * (1 << 2 * i)) &&
             tc_buffer_fill(k, &n.a, slow, 0x41 + i) &&
             tc_must(k, TNP_EVENT_RECORD, events->record(mark, slow), "record") &&
             tc_must(k, TNP_EVENT_WAIT, events->wait(n.stream, mark), "wait");
        held = ok;
        for (int j = 0; ok && held && j <= LAUNCHES; j++) {
            ok = tc_scene_launch(&n, n.graph, j < LAUNCHES ? n.stream : n.other);
            held = j % 64 || events->query(mark) == TN_NOT_READY;
        }
        n.b.model[0] = n.a.model[0];
        ok = ok && (held || tc_scene_launch(&n, n.graph, n.other)) &&
             tc_scene_check(&n, &n.b, n.other, TNP_CAPTURE_LAUNCH_ORDER,
                            "what a launch copied behind tens of thousands of others");
        tc_scene_drop(&n);
    }
    tc_scene_finish(&n);
}

/* Streams that capture at once, each what is its own; graphs of which hundreds live, and are launched in another order
 * than they were made in. */
static void captures_at_once(tc_contract *k) {
    enum { CAPTURING = 40, EACH = 25, GRAPHS = CAPTURING * EACH, SPAN = 40 };
    tc_scene n;
    tn_stream_impl *streams[CAPTURING];
    int made = 0;
    bool ok = tc_scene_set_up(k, &n);
    tn_graph_impl **graphs = tc_arena_array(&k->arena, GRAPHS, sizeof *graphs);
    if (ok && !graphs)
        ok = TC_CASE_ERROR(k->out, "the host has no memory for this case");
    for (int i = 0; i < CAPTURING && ok; i++)
        ok = tc_stream_create(k, n.s, 0, &streams[i]);
    for (int i = 0; i < EACH && ok; i++) {
        for (int j = 0; j < CAPTURING && ok; j++)
            ok = tc_capture_begin(k, n.ext, streams[j]);
        for (int j = 0; j < CAPTURING && ok; j++)
            ok = tc_must(k, TNP_CAPTURE_RECORDS,
                         n.s->memory->fill(n.s->device, streams[j], n.a.memory,
                                           (uint64_t)(i * CAPTURING + j) * SPAN, (uint8_t)(i + j),
                                           SPAN),
                         "fill on one of many streams that capture");
        for (int j = 0; j < CAPTURING && ok; j++, made += ok)
            ok = tc_capture_end(k, n.ext, streams[j], &graphs[made]);
    }
    for (int i = 0; i < GRAPHS && ok; i++) {
        int g = i * 7 % GRAPHS;
        ok = tc_scene_launch(&n, graphs[g], n.stream);
        memset(n.a.model + g * SPAN, (g / CAPTURING + g % CAPTURING) & 0xff, SPAN);
    }
    if (ok)
        tc_scene_check(&n, &n.a, n.stream, TNP_CAPTURE_REPLAYS, "what many graphs wrote");
    for (int i = 0; i < made; i++)
        n.ext->destroy(graphs[i]);
    tc_scene_finish(&n);
}

const tc_contract_row tc_many_streams_rows[] = {
    {"event-wait-far", "", TC_STANDARD, wait_from_far},
    {"capture-launch-turns", "", TC_SMOKE, turns},
    {"capture-launch-count", "", TC_STANDARD, launch_count},
    {"capture-at-once", "", TC_STANDARD, captures_at_once},
    {0},
};
