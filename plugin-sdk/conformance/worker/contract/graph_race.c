/* Threads that launch one graph at once: on one stream, and on two. */
#include "plugin-sdk/conformance/worker/contract/graph_scene.h"

#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/worker/contract/meet.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

/* What goes wrong between two calls does so in nanoseconds: many launches, and fewer where each takes long. First
 * the threads meet before each, then each goes on as it comes. */
enum { MEETINGS = 3000, LAUNCHES = 10000, THREADS = 4 };
static const double seconds = 0.2;

typedef struct race_course {
    tc_meeting meeting;
    atomic_int last;                         /* of the meetings */
    enum { WAITS, GOES, IS_OFF } _Atomic on; /* it is off where not all threads can be started */
} race_course;

typedef struct launcher {
    const tc_scene *n;
    race_course *course;
    int number;
    tn_stream_impl *stream;
    tn_status status;
} launcher;

static void launch_once(launcher *l) {
    if (l->status == TN_OK)
        l->status = l->n->ext->launch(l->n->graph, l->stream);
}

/* The first thread says which meeting is the last, before it comes to that one. */
static void launch_together(launcher *l) {
    race_course *c = l->course;
    tc_random r = {(uint64_t)l->number};
    double end = tc_now() + seconds;
    for (int i = 0; i <= atomic_load(&c->last); i++) {
        if (l->number == 0 && (i == MEETINGS || tc_now() > end))
            atomic_store(&c->last, i);
        tc_meet(&c->meeting);
        tc_come_late(&r);
        launch_once(l);
    }
}

static void *launch(void *context) {
    launcher *l = context;
    while (atomic_load(&l->course->on) == WAITS)
        sched_yield();
    if (atomic_load(&l->course->on) == IS_OFF)
        return NULL;
    launch_together(l);
    double end = tc_now() + seconds;
    for (int i = 0; i < LAUNCHES && tc_now() < end; i++)
        launch_once(l);
    return NULL;
}

/* Half of the threads on each of the streams, which may be one. */
static void launch_all(tc_contract *k, tc_scene *n, tn_stream_impl *second, const char *what) {
    pthread_t threads[THREADS];
    launcher all[THREADS];
    race_course course = {.last = INT_MAX};
    int started = 0;
    tc_meeting_init(&course.meeting, THREADS);
    for (int i = 0; i < THREADS; i++)
        all[i] = (launcher){n, &course, i, i % 2 ? second : n->stream, TN_OK};
    while (started < THREADS && pthread_create(&threads[started], NULL, launch, &all[started]) == 0)
        started++;
    atomic_store(&course.on, started == THREADS ? GOES : IS_OFF);
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
