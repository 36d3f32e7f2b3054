/* Captures: the commands of a stream, kept in the place of being run, and run again as a whole.
 *
 * Commands copy all that they were called with and hold their memory, so a capture is a list of them.
 * A launch is one command that runs the list. The launches of a graph are numbered as they are queued,
 * and each waits for the one before it, on whichever stream that is. */
#include "plugins/sim/sim.h"

#include <tenon/ext/capture.h>

/* What was recorded. Launches that are queued hold it, so that an update or the graph's end leaves
 * them alone. */
struct sim_recording {
    tn_instance *self;
    atomic_uint references;
    pthread_mutex_t running; /* two graphs may have it, after an update */
    sim_command *head, **tail;
};

/* How far the launches of a graph are. */
typedef struct sim_turns {
    tn_instance *self;
    atomic_uint references;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t progress;
    uint64_t queued, done;
} sim_turns;

struct tn_graph_impl {
    tn_device_impl *device;
    sim_turns *turns;
    sim_recording *recording;
};

typedef struct launch_command {
    sim_command command;
    tn_device_impl *device;
    sim_turns *turns;
    sim_recording *recording;
    uint64_t turn;
} launch_command;

/* ---- what launches share ----------------------------------------------------------------- */

static sim_recording *recording_create(tn_instance *self) {
    sim_recording *r = sim_host_alloc(self, sizeof *r, "a capture");
    if (!r)
        return NULL;
    *r = (sim_recording){.self = self, .references = 1, .tail = &r->head};
    pthread_mutex_init(&r->running, NULL);
    return r;
}

static bool was_last(atomic_uint *references) {
    return atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}

static void recording_drop(sim_recording *r) {
    if (!r || !was_last(&r->references))
        return;
    for (sim_command *next; r->head; r->head = next) {
        next = r->head->next;
        sim_command_free(r->self, r->head);
    }
    pthread_mutex_destroy(&r->running);
    r->self->host->dealloc(r->self->host, r);
}

static sim_recording *recording_keep(sim_recording *r) {
    atomic_fetch_add_explicit(&r->references, 1, memory_order_relaxed);
    return r;
}

void sim_recording_add(sim_recording *r, sim_command *command) {
    *r->tail = command;
    r->tail = &command->next;
}

static sim_turns *turns_create(tn_instance *self) {
    sim_turns *t = sim_host_alloc(self, sizeof *t, "a graph");
    if (!t)
        return NULL;
    *t = (sim_turns){.self = self, .references = 1};
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->progress, NULL);
    return t;
}

/* Waits until `count` launches are done. */
static void turns_wait(sim_turns *t, uint64_t count) {
    pthread_mutex_lock(&t->lock);
    while (t->done < count)
        pthread_cond_wait(&t->progress, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

static void turns_drop(sim_turns *t) {
    if (!t || !was_last(&t->references))
        return;
    pthread_cond_destroy(&t->progress);
    pthread_mutex_destroy(&t->lock);
    t->self->host->dealloc(t->self->host, t);
}

/* ---- launching --------------------------------------------------------------------------- */

/* Also where the device is lost: others wait for their turn. The first error is the launch's. */
static tn_status run_launch(sim_command *command, char message[SIM_MESSAGE]) {
    launch_command *l = (launch_command *)command;
    tn_status status = TN_OK;
    char later[SIM_MESSAGE] = "";
    turns_wait(l->turns, l->turn);
    pthread_mutex_lock(&l->recording->running);
    for (sim_command *c = l->recording->head; c; c = c->next) {
        tn_status ran = sim_command_run(l->device, c, status == TN_OK ? message : later);
        status = status == TN_OK ? ran : status;
    }
    pthread_mutex_unlock(&l->recording->running);
    recording_drop(l->recording); /* while destroy of the graph still waits */

    pthread_mutex_lock(&l->turns->lock);
    l->turns->done++;
    pthread_cond_broadcast(&l->turns->progress);
    pthread_mutex_unlock(&l->turns->lock);
    turns_drop(l->turns);
    return status;
}

static tn_status launch(tn_graph_impl *graph, tn_stream_impl *stream) {
    tn_device_impl *device = graph->device;
    PLUGIN_TRY(sim_enter(device, SIM_FAULT_launch));
    PLUGIN_TRY(sim_stream_check(device, stream, "launch of a graph"));
    PLUGIN_TRY(sim_check_capture(stream, "launch of a graph"));
    launch_command *l = sim_host_alloc(device->self, sizeof *l, "the launch of a graph");
    if (!l)
        return TN_ERR_OUT_OF_MEMORY;
    *l = (launch_command){.command = {.run = run_launch, .is_mark = true},
                          .device = device,
                          .turns = graph->turns,
                          .recording = recording_keep(graph->recording)};
    atomic_fetch_add_explicit(&l->turns->references, 1, memory_order_relaxed);
    pthread_mutex_lock(&graph->turns->lock); /* turns are queued in their order */
    l->turn = graph->turns->queued++;
    sim_stream_push(stream, &l->command);
    pthread_mutex_unlock(&graph->turns->lock);
    return TN_OK;
}

/* ---- capturing --------------------------------------------------------------------------- */

static tn_status fail_captures(const tn_stream_impl *stream, const char *what) {
    return sim_fail(stream->device->self, TN_ERR_STATE,
                    "%s: the stream of sim:%u captures, and this cannot be recorded; end or "
                    "abandon the capture first",
                    what, stream->device->index);
}

tn_status sim_check_capture(tn_stream_impl *stream, const char *what) {
    pthread_mutex_lock(&stream->lock);
    bool captures = stream->recording != NULL;
    pthread_mutex_unlock(&stream->lock);
    return captures ? fail_captures(stream, what) : TN_OK;
}

/* The stream is an ordinary one from here on. */
static sim_recording *take_recording(tn_stream_impl *stream) {
    pthread_mutex_lock(&stream->lock);
    sim_recording *r = stream->recording;
    stream->recording = NULL;
    pthread_mutex_unlock(&stream->lock);
    return r;
}

static tn_status begin(tn_stream_impl *stream) {
    PLUGIN_TRY(sim_enter(stream->device, SIM_FAULT_begin));
    sim_recording *r = recording_create(stream->device->self);
    if (!r)
        return TN_ERR_OUT_OF_MEMORY;
    pthread_mutex_lock(&stream->lock);
    bool captures = stream->recording != NULL;
    if (!captures)
        stream->recording = r;
    pthread_mutex_unlock(&stream->lock);
    if (!captures)
        return TN_OK;
    recording_drop(r);
    return fail_captures(stream, "begin of a capture");
}

static void abandon(tn_stream_impl *stream) {
    recording_drop(take_recording(stream));
}

static tn_status end(tn_stream_impl *stream, tn_graph_impl **out_graph) {
    tn_device_impl *device = stream->device;
    *out_graph = NULL;
    sim_recording *r = take_recording(stream);
    tn_status status = sim_enter(device, SIM_FAULT_end);
    if (status == TN_OK && !r)
        status = sim_fail(device->self, TN_ERR_STATE,
                          "end of a capture: the stream of sim:%u does not capture", device->index);
    if (status != TN_OK) {
        recording_drop(r);
        return status;
    }
    sim_turns *turns = turns_create(device->self);
    tn_graph_impl *graph = turns ? sim_host_alloc(device->self, sizeof *graph, "a graph") : NULL;
    if (!graph) {
        turns_drop(turns);
        recording_drop(r);
        return TN_ERR_OUT_OF_MEMORY;
    }
    *graph = (tn_graph_impl){.device = device, .turns = turns, .recording = r};
    device->n_graphs++;
    *out_graph = graph;
    return TN_OK;
}

static tn_status update(tn_graph_impl *graph, tn_graph_impl *from) {
    PLUGIN_TRY(sim_check_lost(graph->device));
    if (graph->device != from->device)
        return sim_fail(graph->device->self, TN_ERR_INVALID_ARGUMENT,
                        "update: a graph of sim:%u from one of sim:%u", graph->device->index,
                        from->device->index);
    sim_recording *before = graph->recording;
    graph->recording = recording_keep(from->recording);
    recording_drop(before);
    return TN_OK;
}

static void destroy(tn_graph_impl *graph) {
    if (!graph)
        return;
    tn_device_impl *device = graph->device;
    turns_wait(graph->turns, graph->turns->queued); /* no thread launches it now */
    recording_drop(graph->recording);
    turns_drop(graph->turns);
    device->n_graphs--;
    device->self->host->dealloc(device->self->host, graph);
}

const tn_ext_capture sim_ext_capture = {
    .struct_size = sizeof sim_ext_capture,
    .begin = begin,
    .end = end,
    .abandon = abandon,
    .launch = launch,
    .destroy = destroy,
    .update = update,
};
