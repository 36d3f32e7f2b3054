/* Marks in streams.
 *
 * An event is a name for its latest mark. Each record makes a new mark; the event, the record
 * command and every wait hold a reference to it. So recording an event again, or destroying it,
 * leaves alone the streams and threads that wait for an earlier mark. */
#include "plugins/sim/sim.h"

#include <time.h>

struct sim_mark {
    tn_instance *self;
    atomic_uint references;
    pthread_mutex_t lock; /* guards passed and time_ns */
    pthread_cond_t passing;
    bool passed;
    uint64_t time_ns; /* when it was passed */
};

typedef struct mark_command {
    sim_command command;
    sim_mark *mark;
} mark_command;

static sim_mark *mark_create(tn_instance *self) {
    sim_mark *mark = sim_host_alloc(self, sizeof *mark, "the mark of an event");
    if (!mark)
        return NULL;
    *mark = (sim_mark){.self = self, .references = 1};
    pthread_mutex_init(&mark->lock, NULL);
    pthread_cond_init(&mark->passing, NULL);
    return mark;
}

static sim_mark *mark_keep(sim_mark *mark) {
    atomic_fetch_add_explicit(&mark->references, 1, memory_order_relaxed);
    return mark;
}

static void mark_drop(sim_mark *mark) {
    if (!mark || atomic_fetch_sub_explicit(&mark->references, 1, memory_order_acq_rel) != 1)
        return;
    pthread_cond_destroy(&mark->passing);
    pthread_mutex_destroy(&mark->lock);
    mark->self->host->dealloc(mark->self->host, mark);
}

static void mark_pass(sim_mark *mark) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&mark->lock);
    mark->passed = true;
    mark->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    pthread_cond_broadcast(&mark->passing);
    pthread_mutex_unlock(&mark->lock);
}

static void mark_wait(sim_mark *mark) {
    pthread_mutex_lock(&mark->lock);
    while (!mark->passed)
        pthread_cond_wait(&mark->passing, &mark->lock);
    pthread_mutex_unlock(&mark->lock);
}

/* Whether it was passed, and when. */
static bool mark_time(sim_mark *mark, uint64_t *out_ns) {
    pthread_mutex_lock(&mark->lock);
    bool passed = mark->passed;
    *out_ns = mark->time_ns;
    pthread_mutex_unlock(&mark->lock);
    return passed;
}

static tn_status run_record(sim_command *command, char message[SIM_MESSAGE]) {
    mark_command *record = (mark_command *)command;
    mark_pass(record->mark);
    mark_drop(record->mark);
    return TN_OK;
}

static tn_status run_wait(sim_command *command, char message[SIM_MESSAGE]) {
    mark_command *wait = (mark_command *)command;
    mark_wait(wait->mark);
    mark_drop(wait->mark);
    return TN_OK;
}

/* ---- the table --------------------------------------------------------------------------- */

static tn_status create(tn_device_impl *device, uint32_t flags, tn_event_impl **out_event) {
    *out_event = NULL;
    PLUGIN_TRY(sim_enter(device, SIM_FAULT_event));
    if (flags & ~TN_EVENT_TIMING)
        return sim_fail(device->self, TN_ERR_UNSUPPORTED, "sim:%u knows no event flags %#x",
                        device->index, flags & ~TN_EVENT_TIMING);
    tn_event_impl *event = sim_host_alloc(device->self, sizeof *event, "an event");
    if (!event)
        return TN_ERR_OUT_OF_MEMORY;
    *event = (tn_event_impl){.device = device, .flags = flags};
    pthread_mutex_init(&event->lock, NULL);
    device->n_events++;
    *out_event = event;
    return TN_OK;
}

static void destroy(tn_event_impl *event) {
    if (!event)
        return;
    mark_drop(event->mark);
    pthread_mutex_destroy(&event->lock);
    event->device->n_events--;
    event->device->self->host->dealloc(event->device->self->host, event);
}

/* The event's present mark, kept for the caller; NULL when it was never recorded. */
static sim_mark *present_mark(tn_event_impl *event) {
    pthread_mutex_lock(&event->lock);
    sim_mark *mark = event->mark ? mark_keep(event->mark) : NULL;
    pthread_mutex_unlock(&event->lock);
    return mark;
}

static tn_status record(tn_event_impl *event, tn_stream_impl *stream) {
    tn_instance *self = event->device->self;
    PLUGIN_TRY(sim_enter(event->device, SIM_FAULT_record));
    PLUGIN_TRY(sim_stream_check(event->device, stream, "event record"));
    PLUGIN_TRY(sim_check_capture(stream, "event record"));
    mark_command *command = sim_host_alloc(self, sizeof *command, "an event record");
    sim_mark *mark = command ? mark_create(self) : NULL;
    if (!mark) {
        self->host->dealloc(self->host, command);
        return TN_ERR_OUT_OF_MEMORY;
    }
    *command =
        (mark_command){.command = {.run = run_record, .is_mark = true}, .mark = mark_keep(mark)};

    pthread_mutex_lock(&event->lock);
    sim_mark *before = event->mark;
    event->mark = mark;
    sim_stream_push(stream, &command->command);
    pthread_mutex_unlock(&event->lock);
    mark_drop(before);
    return TN_OK;
}

static tn_status wait(tn_stream_impl *stream, tn_event_impl *event) {
    tn_instance *self = event->device->self;
    PLUGIN_TRY(sim_enter(stream->device, SIM_FAULT_wait));
    PLUGIN_TRY(sim_check_lost(event->device));
    PLUGIN_TRY(sim_check_capture(stream, "event wait"));
    sim_mark *mark = present_mark(event);
    if (!mark)
        return TN_OK;
    mark_command *command = sim_host_alloc(self, sizeof *command, "an event wait");
    if (!command) {
        mark_drop(mark);
        return TN_ERR_OUT_OF_MEMORY;
    }
    *command = (mark_command){.command = {.run = run_wait, .is_mark = true}, .mark = mark};
    sim_stream_push(stream, &command->command);
    return TN_OK;
}

static tn_status query(tn_event_impl *event) {
    uint64_t ns;
    PLUGIN_TRY(sim_check_lost(event->device));
    sim_mark *mark = present_mark(event);
    tn_status status = !mark || mark_time(mark, &ns) ? TN_OK : TN_NOT_READY;
    mark_drop(mark);
    return status;
}

static tn_status synchronize(tn_event_impl *event) {
    PLUGIN_TRY(sim_check_lost(event->device));
    sim_mark *mark = present_mark(event);
    if (mark)
        mark_wait(mark);
    mark_drop(mark);
    return sim_check_lost(event->device);
}

static tn_status elapsed(tn_event_impl *start, tn_event_impl *end, double *out_ns) {
    const tn_instance *self = start->device->self;
    uint64_t start_ns = 0, end_ns = 0;
    tn_status status = sim_check_lost(start->device);
    *out_ns = 0;
    if (status == TN_OK)
        status = sim_check_lost(end->device);
    if (status != TN_OK)
        return status;
    if (start->device != end->device)
        return sim_fail(self, TN_ERR_STATE, "elapsed: an event of sim:%u and one of sim:%u",
                        start->device->index, end->device->index);
    if (!(start->flags & end->flags & TN_EVENT_TIMING))
        return sim_fail(self, TN_ERR_STATE,
                        "elapsed: an event was created without TN_EVENT_TIMING");
    sim_mark *first = present_mark(start), *last = present_mark(end);
    if (!first || !last)
        status = sim_fail(self, TN_ERR_STATE, "elapsed: an event was never recorded");
    else if (!mark_time(first, &start_ns) || !mark_time(last, &end_ns))
        status = sim_fail(self, TN_ERR_STATE,
                          "elapsed: an event has not been passed yet; synchronize it first");
    else
        *out_ns = (double)end_ns - (double)start_ns;
    mark_drop(first);
    mark_drop(last);
    return status;
}

const tn_event_ops sim_event_ops = {
    .struct_size = sizeof sim_event_ops,
    .create = create,
    .destroy = destroy,
    .record = record,
    .wait = wait,
    .query = query,
    .synchronize = synchronize,
    .elapsed = elapsed,
};
