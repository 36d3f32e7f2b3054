/* Each step of a capture on a thread of its own, which is gone when the next comes: a capture belongs to its stream,
 * and to no thread. */
#include "plugin-sdk/conformance/worker/contract/graph_scene.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef enum step { BEGIN, FILL, ABANDON, END, LAUNCH, DESTROY } step;
static const char *const names[] = {"begin", "fill", "abandon", "end", "launch", "destroy"};

typedef struct hand {
    tc_scene *n;
    step step;
    int value; /* of a fill */
    tn_status status;
    char reason[TC_MESSAGE];
} hand;

static void *make(void *context) {
    hand *h = context;
    tc_scene *n = h->n;
    tc_host_forget();
    switch (h->step) {
    case BEGIN:
        h->status = n->ext->begin(n->stream);
        break;
    case FILL:
        h->status = n->s->memory->fill(n->s->device, n->stream, n->a.memory, 0, (uint8_t)h->value,
                                       TC_SCENE_BYTES);
        break;
    case ABANDON:
        n->ext->abandon(n->stream);
        break;
    case END:
        h->status = n->ext->end(n->stream, &n->graph);
        break;
    case LAUNCH:
        h->status = n->ext->launch(n->graph, n->stream);
        break;
    case DESTROY:
        n->ext->destroy(n->graph);
        n->graph = NULL;
    }
    tc_reason(h->status, h->reason);
    return NULL;
}

static bool take_step(tc_scene *n, step one, int value) {
    hand h = {.n = n, .step = one, .value = value};
    pthread_t thread;
    if (pthread_create(&thread, NULL, make, &h) != 0)
        return TC_CASE_ERROR(n->k->out, "a thread cannot be started");
    pthread_join(thread, NULL);
    if (h.status != TN_OK)
        TC_BROKEN(n->k, one == LAUNCH ? TNP_CAPTURE_REPLAYS : TNP_CAPTURE_RECORDS,
                  "%s, on another thread than what was called before: %.200s", names[one],
                  h.reason);
    return h.status == TN_OK;
}

/* Given up, and then ended; the graph goes behind its launch. */
static void hands(tc_contract *k) {
    tc_scene n;
    if (!tc_scene_set_up(k, &n) || !tc_scene_begin(&n))
        return;
    n.ext->abandon(n.stream);
    bool ok = take_step(&n, BEGIN, 0) && take_step(&n, FILL, 0x61) && take_step(&n, ABANDON, 0) &&
              tc_must(k, TNP_CAPTURE_ABANDON, n.s->ops->streams->synchronize(n.stream),
                      "synchronize after another thread abandoned a capture") &&
              tc_buffer_check(k, &n.a, n.s->stream, TNP_CAPTURE_ABANDON,
                              "memory of a capture that another thread abandoned") &&
              take_step(&n, BEGIN, 0) && take_step(&n, FILL, 0x62) && take_step(&n, END, 0) &&
              take_step(&n, LAUNCH, 0) && take_step(&n, DESTROY, 0);
    memset(n.a.model, 0x62, TC_SCENE_BYTES);
    if (ok)
        tc_buffer_check(k, &n.a, n.s->stream, TNP_CAPTURE_REPLAYS,
                        "what a graph wrote, each step of which another thread made");
    else
        n.ext->abandon(n.stream);
    tc_scene_finish(&n);
}

const tc_contract_row tc_graph_hand_rows[] = {
    {"capture-hands", "", TC_SMOKE, hands},
    {0},
};
