/* contract/one-command: while a stream is in the middle of one long command, what queues work on another does not wait for
 * it, nor what never blocks. A device that keeps a lock while it works lets nobody in until the command is through. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"

/* Now and then a host is kept off its core as long, or the stream has not begun yet. */
enum { BYTES = 3000, TIMES = 12, MOST_OF_THEM = 8 };

typedef struct scene {
    tc_subject *s;
    tn_stream_impl *busy;
    tn_event_impl *event;
    tc_buffer b;
    tc_invocation call;
    tc_placed placed;
    bool placed_well; /* a kernel takes it */
} scene;

static tn_status run(tc_contract *k, scene *n) {
    (void)k;
    return n->placed_well ? tc_call_placed(&n->placed) : TN_OK;
}

static tn_status fill(tc_contract *k, scene *n) {
    return tc_buffer_fill(k, &n->b, n->s->stream, 3) ? TN_OK : TN_ERR_INTERNAL;
}

static tn_status record(tc_contract *k, scene *n) {
    (void)k;
    return n->s->ops->events->record(n->event, n->s->stream);
}

static tn_status either(tn_status status) {
    return status == TN_NOT_READY ? TN_OK : status;
}

static tn_status query_event(tc_contract *k, scene *n) {
    (void)k;
    return either(n->s->ops->events->query(n->event));
}

static tn_status query_stream(tc_contract *k, scene *n) {
    (void)k;
    return either(n->s->ops->streams->query(n->s->stream));
}

static const struct {
    const char *what;
    tn_requirement requirement;
    tn_status (*ask)(tc_contract *k, scene *n);
} questions[] = {
    {"run of a kernel", TNP_STREAM_ROOM, run},
    {"fill", TNP_STREAM_ROOM, fill},
    {"record", TNP_STREAM_ROOM, record},
    {"query of an event", TNP_EVENT_QUERY, query_event},
    {"query of a stream", TNP_STREAM_QUERY, query_stream},
};
enum { N_QUESTIONS = sizeof questions / sizeof *questions };

/* Did most of some calls return only when the command was done? */
static bool waits(tc_contract *k, scene *n, tc_work *w, int question) {
    int late = 0;
    for (int i = 0; i < TIMES && late + TIMES - i >= MOST_OF_THEM && !tc_failed(k); i++) {
        if (!tc_work_queue(k, w, n->busy))
            return false;
        tc_let_begin(w);
        double start = tc_now();
        bool good = questions[question].ask(k, n) == TN_OK;
        double asked = tc_now() - start;
        good = tc_stream_sync(k, n->busy) && good;
        late += good && asked > 0.002 && asked > 0.8 * (tc_now() - start);
    }
    return late >= MOST_OF_THEM && !tc_failed(k);
}

static bool place(tc_contract *k, scene *n) {
    char why[TC_MESSAGE];
    tc_case c;
    tc_verdict none = {.status = TC_PASS};
    if (!tc_case_parse("kernel/fill T=f32 out=[70] value=1", &c, why) ||
        !tc_invocation_parse(&c, &k->arena, &n->call, why) ||
        !tc_invocation_fill(&n->call, n->call.seed, why))
        return TC_CASE_ERROR(k->out, "%s", why);
    n->placed_well = tc_place_call(n->s, n->s->stream, &n->call, &n->placed, &none) &&
                     tc_call_placed(&n->placed) == TN_OK; /* for what a first call has to do */
    return true;
}

static void one_command(tc_contract *k) {
    tc_work work;
    scene *n = tc_arena_array(&k->arena, 1, sizeof *n);
    if (!n) {
        TC_CASE_ERROR(k->out, "the host has no memory for this case");
        return;
    }
    n->s = k->subject;
    bool ready = tc_has_streams(k) && tc_stream_create(k, n->s, 0, &n->busy) &&
                 tc_event_create(k, n->s, 0, &n->event) &&
                 tc_buffer_create(k, n->s, TN_SPACE_DEVICE, BYTES, &n->b) &&
                 tc_work_create_one(k, n->s, &work) && place(k, n);
    for (int i = 0; i < N_QUESTIONS && ready && !tc_failed(k); i++)
        if (waits(k, n, &work, i))
            TC_BROKEN(k, questions[i].requirement,
                      "%s, on a stream that has nothing to do with it, returns when one long "
                      "command of another is done",
                      questions[i].what);
    tc_subject_sync(n->s);
    tc_unplace(&n->placed);
}

const tc_contract_row tc_one_command_rows[] = {{"one-command", "", TC_STANDARD, one_command}, {0}};
