/* Threads that launch one graph at once: on one stream, and on two. */
#include "plugin-sdk/conformance/worker/contract/graph_scene.h"

#include <pthread.h>
#include <string.h>

#include "plugin-sdk/conformance/clock.h"

/* What goes wrong between two calls does so in nanoseconds: many launches, and fewer where each takes long. */
enum { LAUNCHES = 20000, THREADS = 4 };
static const double seconds = 0.4;

typedef struct launcher {
    const tc_scene *n;
    tn_stream_impl *stream;
    tn_status status;
} launcher;

static void *launch(void *context) {
    launcher *l = context;
    double end = tc_now() + seconds;
    for (int i = 0; i < LAUNCHES && l->status == TN_OK && tc_now() < end; i++)
        l->status = l->n->ext->launch(l->n->graph, l->stream);
    return NULL;
}

/* Half of the threads on each of the streams, which may be one. */
static void launch_all(tc_contract *k, tc_scene *n, tn_stream_impl *second, const char *what) {
    pthread_t threads[THREADS];
    launcher all[THREADS];
    int started = 0;
    for (int i = 0; i < THREADS; i++)
        all[i] = (launcher){n, i % 2 ? second : n->stream, TN_OK};
    while (started < THREADS && pthread_create(&threads[started], NULL, launch, &all[started]) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (started < THREADS) {
        TC_CASE_ERROR(k->out, "a thread cannot be started");
        return;
    }
    bool ok = true;
    for (int i = 0; i < THREADS && ok; i++)
        ok = tc_must(k, TNP_CAPTURE_LAUNCH_ORDER, all[i].status, what);
    if (ok && tc_stream_sync(k, second))
        tc_scene_check(n, &n->a, n->stream, TNP_CAPTURE_LAUNCH_ORDER, what);
}

static void race(tc_contract *k) {
    tc_scene n;
    if (tc_scene_set_up(k, &n) && tc_scene_capture_fill(&n, &n.a, 0x31, &n.graph)) {
        memset(n.a.model, 0x31, TC_SCENE_BYTES);
        launch_all(k, &n, n.stream, "launches of one graph by several threads on one stream");
        if (!tc_failed(k))
            launch_all(k, &n, n.other, "launches of one graph by several threads on two streams");
    }
    tc_scene_finish(&n);
}

const tc_contract_row tc_graph_race_rows[] = {
    {"capture-launch-race", "", TC_SMOKE, race},
    {0},
};
