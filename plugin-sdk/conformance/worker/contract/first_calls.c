/* process/life-first-calls: two threads make the first call of a kind that a device sees at the same moment. What it
 * makes ready by then it makes ready once, for both. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/contract/meet.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tenon/ext/capture.h>

enum { CALLERS = 2, BYTES = 3000, LIVES = 60, LEAST = 4 };
static const double SECONDS = 0.25; /* of lives for each kind of call */

typedef struct scene scene;
typedef struct caller {
    scene *n;
    int number;
    tc_random random;
    tn_status status;
    char reason[TC_MESSAGE];
    const char *name; /* of the device */
    tn_memory memory;
    void *host; /* of it, or NULL */
    tn_stream_impl *stream;
    tn_event_impl *event;
    tn_graph_impl *graph;
    tc_placed placed;
    unsigned char bytes[BYTES];
} caller;

struct scene {
    tc_contract *k;
    tc_subject s; /* with a stream, where there are any */
    const tn_ext_capture *capture;
    tc_invocation call;
    tn_memory memory; /* of both callers, BYTES each */
    tc_meeting meeting;
    caller callers[CALLERS];
};

/* In the order of a life: made ready for the calls, the calls, what they are worth, and all of it released. */
typedef struct kind {
    const char *name;
    bool (*prepare)(
        scene *n); /* false: there is no such call here, or the case has failed; may be NULL */
    tn_status (*call)(caller *c);
    bool (*check)(scene *n); /* false with the case failed; may be NULL */
    void (*release)(caller *c);
} kind;

static bool must(scene *n, tn_status status, const char *what) {
    return tc_must(n->k, TNP_THREADS_CONCURRENT, status, what);
}

/* ---- memory ------------------------------------------------------------------------------ */

static tn_status take(caller *c, int32_t space) {
    return tc_alloc(&c->n->s, space, BYTES, &c->memory, &c->host);
}

static tn_status take_memory(caller *c) {
    return take(c, TN_SPACE_DEVICE);
}

static void give_memory(caller *c) {
    if (c->memory)
        c->n->s.memory->dealloc(c->n->s.device, TN_SPACE_DEVICE, c->memory);
}

static bool has_pinned(scene *n) {
    return n->s.spaces >> TN_SPACE_PINNED & 1;
}

static tn_status take_pinned(caller *c) {
    return take(c, TN_SPACE_PINNED);
}

static void give_pinned(caller *c) {
    if (c->memory)
        c->n->s.memory->dealloc(c->n->s.device, TN_SPACE_PINNED, c->memory);
}

/* Each has its own, and keeps what is written there. */
static bool check_kept(scene *n, const unsigned char *bytes, int value) {
    for (int i = 0; i < BYTES; i++)
        if (bytes[i] != value)
            return TC_BROKEN(n->k, TNP_THREADS_CONCURRENT,
                             "two threads made the first allocations of a device at once: what is "
                             "written to one is not kept beside the other");
    return true;
}

static bool check_memory(scene *n) {
    const tc_subject *s = &n->s;
    bool ok = true;
    for (int i = 0; ok && i < CALLERS; i++)
        ok = must(
            n,
            s->memory->fill(s->device, s->stream, n->callers[i].memory, 0, (uint8_t)(i + 1), BYTES),
            "fill of what one of two threads allocated first");
    for (int i = 0; ok && i < CALLERS; i++) {
        caller *c = &n->callers[i];
        ok =
            must(n, s->memory->copy_to_host(s->device, s->stream, c->bytes, 0, c->memory, 0, BYTES),
                 "read of what one of two threads allocated first") &&
            must(n, tc_subject_sync(&n->s), "synchronize") && check_kept(n, c->bytes, i + 1);
    }
    return ok;
}

static bool check_pinned(scene *n) {
    bool ok = true;
    for (int i = 0; i < CALLERS; i++)
        memset(n->callers[i].host, i + 1, BYTES);
    for (int i = 0; ok && i < CALLERS; i++)
        ok = check_kept(n, n->callers[i].host, i + 1);
    return ok;
}

/* ---- transfers --------------------------------------------------------------------------- */

static bool take_both(scene *n) {
    void *host;
    return must(n, tc_alloc(&n->s, TN_SPACE_DEVICE, (uint64_t)CALLERS * BYTES, &n->memory, &host),
                "alloc");
}

/* There and back. */
static tn_status transfer(caller *c) {
    const tc_subject *s = &c->n->s;
    unsigned char there[BYTES];
    uint64_t from = (uint64_t)c->number * BYTES;
    memset(there, c->number + 0x31, BYTES);
    tn_status status =
        s->memory->copy_from_host(s->device, s->stream, c->n->memory, from, there, 0, BYTES);
    if (status == TN_OK)
        status =
            s->memory->copy_to_host(s->device, s->stream, c->bytes, 0, c->n->memory, from, BYTES);
    return status == TN_OK && s->stream ? s->ops->streams->synchronize(s->stream) : status;
}

static bool check_transfer(scene *n) {
    bool ok = true;
    for (int i = 0; ok && i < CALLERS; i++)
        for (int j = 0; ok && j < BYTES; j++)
            ok = n->callers[i].bytes[j] == i + 0x31 ||
                 TC_BROKEN(n->k, TNP_THREADS_CONCURRENT,
                           "two threads made the first transfers of a device at once, each there "
                           "and back: other bytes came back");
    return ok;
}

static void give_both(caller *c) {
    if (c->number == 0 && c->n->memory)
        c->n->s.memory->dealloc(c->n->s.device, TN_SPACE_DEVICE, c->n->memory);
}

/* ---- queues ------------------------------------------------------------------------------ */

static bool has_streams(scene *n) {
    return n->s.stream != NULL;
}

static tn_status make_stream(caller *c) {
    return c->n->s.ops->streams->create(c->n->s.device, 0, &c->stream);
}

static bool check_streams(scene *n) {
    bool ok = true;
    for (int i = 0; ok && i < CALLERS; i++) {
        tc_subject on = n->s;
        on.stream = n->callers[i].stream;
        ok = tc_lifecycle_probe(n->k, &on, TC_WORK_SMALL, TNP_THREADS_CONCURRENT,
                                "on a stream that one of two threads created first", NULL);
    }
    return ok;
}

static void release_stream(caller *c) {
    if (c->stream)
        c->n->s.ops->streams->destroy(c->stream);
}

static tn_status make_event(caller *c) {
    const tn_event_ops *events = c->n->s.ops->events;
    tn_status status = events->create(c->n->s.device, 0, &c->event);
    if (status == TN_OK)
        status = events->record(c->event, c->n->s.stream);
    return status == TN_OK ? events->synchronize(c->event) : status;
}

static bool check_events(scene *n) {
    bool ok = true;
    for (int i = 0; ok && i < CALLERS; i++)
        ok = must(n, n->s.ops->events->query(n->callers[i].event),
                  "query of an event that one of two threads made first, and waited for");
    return ok;
}

static void release_event(caller *c) {
    if (c->event)
        c->n->s.ops->events->destroy(c->event);
}

/* ---- kernels ----------------------------------------------------------------------------- */

static bool place_calls(scene *n) {
    bool ok = tc_lifecycle_call(n->k, &n->s, TC_WORK_SMALL, &n->call) != NULL;
    for (int i = 0; ok && i < CALLERS; i++)
        ok = tc_place_call(&n->s, n->s.stream, &n->call, &n->callers[i].placed, n->k->out);
    return ok;
}

static tn_status run_kernel(caller *c) {
    return tc_call_placed(&c->placed);
}

static bool check_calls(scene *n) {
    for (int i = 0; i < CALLERS; i++) {
        tc_result result = {.kernel = n->callers[i].placed.kernel};
        tc_verdict v = {0};
        result.sync = tc_subject_sync(&n->s);
        if (tc_read_back(&n->callers[i].placed, &result, &v) &&
            tc_check_success(&n->call, &result, &v))
            tc_check_outputs(&n->call, &result, &n->s, &v);
        if (v.status == TC_FAIL)
            TC_BROKEN(n->k, TNP_THREADS_CONCURRENT,
                      "two threads made the first kernel calls of a device at once: %.800s",
                      v.message);
    }
    return !tc_failed(n->k);
}

static void release_call(caller *c) {
    if (c->placed.subject)
        tc_unplace(&c->placed);
}

/* ---- captures ---------------------------------------------------------------------------- */

static bool prepare_capture(scene *n) {
    n->capture = n->s.stream ? tc_subject_extension(&n->s, TN_EXT_CAPTURE) : NULL;
    if (!n->capture || !take_both(n))
        return false;
    bool ok = true;
    for (int i = 0; ok && i < CALLERS; i++)
        ok = must(n, make_stream(&n->callers[i]), "create of a stream");
    return ok;
}

static tn_status capture(caller *c) {
    const tc_subject *s = &c->n->s;
    tn_status status = c->n->capture->begin(c->stream);
    if (status != TN_OK)
        return status;
    status = s->memory->fill(s->device, c->stream, c->n->memory, (uint64_t)c->number * BYTES,
                             (uint8_t)(c->number + 0x31), BYTES);
    tn_status ended = c->n->capture->end(c->stream, &c->graph);
    return status == TN_OK ? ended : status;
}

static bool check_capture(scene *n) {
    const tc_subject *s = &n->s;
    bool ok = true;
    for (int i = 0; ok && i < CALLERS; i++) {
        caller *c = &n->callers[i];
        ok = must(n, n->capture->launch(c->graph, c->stream), "launch") &&
             must(n,
                  s->memory->copy_to_host(s->device, c->stream, c->bytes, 0, n->memory,
                                          (uint64_t)i * BYTES, BYTES),
                  "read") &&
             must(n, s->ops->streams->synchronize(c->stream), "synchronize");
    }
    return ok && check_transfer(n);
}

static void release_capture(caller *c) {
    if (c->graph)
        c->n->capture->destroy(c->graph);
    release_stream(c);
    give_both(c);
}

/* ---- all of it --------------------------------------------------------------------------- */

static const kind kinds[] = {
    {"memory", NULL, take_memory, check_memory, give_memory},
    {"pinned", has_pinned, take_pinned, check_pinned, give_pinned},
    {"transfer", take_both, transfer, check_transfer, give_both},
    {"stream", has_streams, make_stream, check_streams, release_stream},
    {"event", has_streams, make_event, check_events, release_event},
    {"kernel", place_calls, run_kernel, check_calls, release_call},
    {"capture", prepare_capture, capture, check_capture, release_capture},
};

typedef struct errand {
    caller *c;
    tn_status (*call)(caller *c);
} errand;

static void *run_errand(void *context) {
    errand *e = context;
    tc_meet(&e->c->n->meeting);
    tc_come_late(&e->c->random);
    tc_host_forget();
    e->c->status = e->call(e->c);
    (void)tc_reason(e->c->status, e->c->reason);
    return NULL;
}

static bool call_at_once(scene *n, tn_status (*call)(caller *c), const char *what) {
    errand own = {&n->callers[0], call}, others = {&n->callers[1], call};
    pthread_t other;
    tc_meeting_init(&n->meeting, CALLERS);
    if (pthread_create(&other, NULL, run_errand, &others) != 0)
        return TC_CASE_ERROR(n->k->out, "a thread cannot be started");
    run_errand(&own);
    pthread_join(other, NULL);
    for (int i = 0; i < CALLERS; i++)
        if (n->callers[i].status == TN_ERR_UNSUPPORTED && call == run_kernel)
            TC_NOT_OFFERED(n->k, "prepare or run of every record declines the call");
        else if (n->callers[i].status != TN_OK)
            TC_BROKEN(n->k, TNP_THREADS_CONCURRENT,
                      "two threads made the first calls of a device at once, of=%s: %.800s", what,
                      n->callers[i].reason);
    return !tc_failed(n->k);
}

static tn_status ask_name(caller *c) {
    tn_cell name = {0};
    tn_status status =
        c->n->s.ops->property(c->n->s.self, c->n->k->options->device, TN_PROP_NAME, &name);
    c->name = name.tag == TN_CELL_STRING ? name.v.string : NULL;
    return status;
}

/* A device's name is asked for before it is open. */
static bool name(scene *n) {
    if (!call_at_once(n, ask_name, "name"))
        return false;
    const char *one = n->callers[0].name, *other = n->callers[1].name;
    return (one && other && strcmp(one, other) == 0) ||
           TC_BROKEN(n->k, TNP_PROPERTY_STABLE,
                     "two threads that ask for a device's name at once get different ones");
}

static bool open_device(scene *n) {
    tc_contract *k = n->k;
    if (!tc_lifecycle_load(k, &n->s) || !tc_lifecycle_init(k, &n->s, k->options->plugin) ||
        !name(n))
        return false;
    tc_subject plugin = n->s;
    if (!tc_lifecycle_open_device(k, &plugin, k->options->device, &n->s)) {
        n->s = plugin;
        return false;
    }
    n->s.spaces =
        (uint64_t)tc_subject_property(&n->s, n->s.index, TN_PROP_SPACES, 1 << TN_SPACE_DEVICE);
    return true;
}

/* One life; false: there is no such call, or the case has failed. */
static bool live(tc_contract *k, const kind *x, int life) {
    scene n = {.k = k};
    for (int i = 0; i < CALLERS; i++)
        n.callers[i] =
            (caller){.n = &n, .number = i, .random = {k->c->seed + (uint64_t)(life * CALLERS + i)}};
    bool ok = open_device(&n);
    if (ok && n.s.ops->streams && x->call != make_stream)
        ok = must(&n, n.s.ops->streams->create(n.s.device, 0, &n.s.stream), "create of a stream");
    ok = ok && (!x->prepare || x->prepare(&n)) && call_at_once(&n, x->call, x->name) &&
         (!x->check || x->check(&n));
    if (n.s.stream)
        (void)n.s.ops->streams->synchronize(n.s.stream);
    for (int i = 0; n.s.device && i < CALLERS; i++)
        x->release(&n.callers[i]);
    if (n.s.self)
        tc_subject_close(&n.s);
    return ok;
}

static void first_calls(tc_contract *k) {
    const kind *x = kinds;
    while (strcmp(tc_contract_word(k, "of"), x->name) != 0)
        x++;
    double end = tc_now() + SECONDS;
    bool ok = true;
    int life = 0;
    for (; ok && life < LIVES && (life < LEAST || tc_now() < end); life++)
        ok = live(k, x, life);
    if (!ok && life == 1 && !tc_failed(k))
        TC_NOT_OFFERED(k, "the device has nothing of of=%s", x->name);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED,
                          "after lives in which two threads made the first calls at once");
}

const tc_contract_row tc_first_call_rows[] = {
    {"life-first-calls", "of=memory", TC_STANDARD, first_calls},
    {"life-first-calls", "of=pinned", TC_STANDARD, first_calls},
    {"life-first-calls", "of=transfer", TC_STANDARD, first_calls},
    {"life-first-calls", "of=stream", TC_STANDARD, first_calls},
    {"life-first-calls", "of=event", TC_STANDARD, first_calls},
    {"life-first-calls", "of=kernel", TC_STANDARD, first_calls},
    {"life-first-calls", "of=capture", TC_STANDARD, first_calls},
    {0},
};
