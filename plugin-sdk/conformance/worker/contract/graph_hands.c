/* The steps of a capture on two threads: it belongs to its stream, and to neither. */
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
        tc_scene_drop(n);
    }
    tc_reason(h->status, h->reason);
    return NULL;
}

/* Here, or on a thread that is another while this one is there. */
static bool take_step(tc_scene *n, step one, bool elsewhere, int value) {
    hand h = {.n = n, .step = one, .value = value};
    pthread_t thread;
    if (!elsewhere)
        make(&h);
    else if (pthread_create(&thread, NULL, make, &h) == 0)
        pthread_join(thread, NULL);
    else
        return TC_CASE_ERROR(n->k->out, "a thread cannot be started");
    if (h.status != TN_OK)
        TC_BROKEN(n->k, one == LAUNCH ? TNP_CAPTURE_REPLAYS : TNP_CAPTURE_RECORDS,
                  "%s, on another thread than what was called before: %.200s", names[one],
                  h.reason);
    return h.status == TN_OK;
}

/* Given up by the other thread, and then ended by it; it destroys the graph, too. */
static bool in_turn(tc_scene *n, bool elsewhere) {
    tc_contract *k = n->k;
    bool other = !elsewhere;
    int value = 0x61 + elsewhere;
    bool ok = take_step(n, BEGIN, elsewhere, 0) && take_step(n, FILL, other, 0x51) &&
              take_step(n, ABANDON, other, 0) &&
              tc_must(k, TNP_CAPTURE_ABANDON, n->s->ops->streams->synchronize(n->stream),
                      "synchronize after another thread abandoned a capture") &&
              tc_buffer_check(k, &n->a, n->s->stream, TNP_CAPTURE_ABANDON,
                              "memory of a capture that another thread abandoned") &&
              take_step(n, BEGIN, elsewhere, 0) && take_step(n, FILL, other, value) &&
              take_step(n, END, other, 0) && take_step(n, LAUNCH, elsewhere, 0) &&
              take_step(n, DESTROY, other, 0);
    memset(n->a.model, value, TC_SCENE_BYTES);
    if (ok)
        return tc_buffer_check(k, &n->a, n->s->stream, TNP_CAPTURE_REPLAYS,
                               "what a graph wrote that two threads made");
    n->ext->abandon(n->stream);
    return false;
}

static void hands(tc_contract *k) {
    tc_scene n;
    if (!tc_scene_set_up(k, &n) || !tc_scene_begin(&n))
        return;
    n.ext->abandon(n.stream);
    if (in_turn(&n, false))
        in_turn(&n, true);
    tc_scene_finish(&n);
}

const tc_contract_row tc_graph_hand_rows[] = {
    {"capture-hands", "", TC_SMOKE, hands},
    {0},
};
