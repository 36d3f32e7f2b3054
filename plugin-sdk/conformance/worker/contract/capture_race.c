/* contract/capture-race: threads that queue on a stream at the moment at which another begins a capture of it, and
 * ends or abandons it. What they queue is recorded, runs or is refused; nothing that is gone is touched, and the stream is
 * an ordinary one afterwards. */
#include "plugin-sdk/conformance/worker/contract/graph_scene.h"

#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/worker/contract/meet.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

/* Fills at each meeting, which take no time, and captures. */
enum { FEEDERS = 2, MEETINGS = 4000, FILLS = 24, CAPTURES = 8, PART = 64 };
static const double SECONDS = 0.3;

typedef struct course course;
typedef struct feeder {
    course *of;
    int number;
    pthread_t thread;
} feeder;

struct course {
    tc_scene *n;
    tc_meeting meeting;
    atomic_int last; /* of the meetings */
    feeder feeders[FEEDERS];
    bool abandons;
};

static tn_status fill(const feeder *f, int value) {
    const tc_scene *n = f->of->n;
    return n->s->memory->fill(n->s->device, n->stream, n->a.memory, (uint64_t)f->number * PART,
                              (uint8_t)value, PART);
}

static void *feed(void *context) {
    feeder *f = context;
    course *c = f->of;
    tc_random r = {(uint64_t)f->number + 1};
    for (int i = 0; i <= atomic_load(&c->last); i++) {
        tc_meet(&c->meeting);
        tc_come_late(&r);
        for (int j = 0; j < FILLS; j++)
            (void)fill(f, i + j); /* recorded, done or refused */
    }
    return NULL;
}

/* One capture that the feeders meet, of nothing or of something. */
static tn_status capture(course *c, tc_random *r) {
    const tc_scene *n = c->n;
    tn_graph_impl *graph = NULL;
    tn_status status = n->ext->begin(n->stream);
    tc_come_late(r);
    if (c->abandons || status != TN_OK) {
        n->ext->abandon(n->stream);
        return status;
    }
    status = n->ext->end(n->stream, &graph);
    if (graph)
        n->ext->destroy(graph);
    return status;
}

/* The captor says which meeting is the last, before it comes to that one. */
static void meet_captures(course *c) {
    tc_contract *k = c->n->k;
    tc_random r = {77};
    double end = tc_now() + SECONDS;
    for (int i = 0; i <= atomic_load(&c->last); i++) {
        if (i == MEETINGS || tc_now() > end || tc_failed(k))
            atomic_store(&c->last, i);
        tc_meet(&c->meeting);
        for (int j = 0; j < CAPTURES && !tc_failed(k); j++)
            tc_must(k, TNP_CAPTURE_OTHERS, capture(c, &r),
                    "a capture of a stream on which other threads queue");
    }
}

/* The stream is an ordinary one afterwards. */
static void check(course *c) {
    tc_scene *n = c->n;
    tc_contract *k = n->k;
    n->ext->abandon(n->stream);
    for (int i = 0; i < FEEDERS && !tc_failed(k); i++)
        tc_must(k, TNP_CAPTURE_ABANDON, fill(&c->feeders[i], 0x51 + i), "fill after all captures");
    for (int i = 0; i < FEEDERS; i++)
        memset(n->a.model + i * PART, 0x51 + i, PART);
    if (!tc_failed(k))
        tc_scene_check(n, &n->a, n->stream, TNP_CAPTURE_ABANDON,
                       "memory that was filled after captures which other threads met");
}

static void race(tc_contract *k) {
    tc_scene n;
    course c = {
        .n = &n, .last = INT_MAX, .abandons = strcmp(tc_contract_word(k, "of"), "abandon") == 0};
    if (tc_scene_set_up(k, &n) && tc_scene_begin(&n)) {
        int started = 0;
        n.ext->abandon(n.stream);
        tc_meeting_init(&c.meeting, FEEDERS + 1);
        while (started < FEEDERS) {
            feeder *f = &c.feeders[started];
            *f = (feeder){.of = &c, .number = started};
            if (pthread_create(&f->thread, NULL, feed, f) != 0)
                break;
            started++;
        }
        if (started < FEEDERS)
            c.meeting.n = started + 1; /* those who are there wait for the first meeting */
        meet_captures(&c);
        for (int i = 0; i < started; i++)
            pthread_join(c.feeders[i].thread, NULL);
        if (started < FEEDERS)
            TC_CASE_ERROR(k->out, "a thread cannot be started");
        else
            check(&c);
    }
    tc_scene_finish(&n);
}

const tc_contract_row tc_capture_race_rows[] = {
    {"capture-race", "of=abandon", TC_STANDARD, race},
    {"capture-race", "of=end", TC_STANDARD, race},
    {0},
};
