/* contract/one-command: while a stream is in the middle of one long command, nothing that has no need of it waits. A device
 * that keeps its lock while it works lets nobody in until the command is through. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

enum { BYTES = 3000, TIMES = 3 };

typedef struct scene {
    tc_subject *s;
    tn_event_impl *event;
    tc_buffer b;
} scene;

static tn_status alloc(tc_contract *k, void *of) {
    const scene *n = of;
    tn_memory memory;
    void *host;
    (void)k;
    tn_status status = tc_alloc(n->s, TN_SPACE_DEVICE, BYTES, &memory, &host);
    if (status == TN_OK)
        n->s->memory->dealloc(n->s->device, TN_SPACE_DEVICE, memory);
    return status;
}

static tn_status info(tc_contract *k, void *of) {
    const scene *n = of;
    (void)k;
    return tc_free_bytes(n->s) > 0 ? TN_OK : TN_ERR_UNSUPPORTED;
}

static tn_status fill(tc_contract *k, void *of) {
    scene *n = of;
    return tc_buffer_fill(k, &n->b, n->s->stream, 3) ? TN_OK : TN_ERR_INTERNAL;
}

static tn_status record(tc_contract *k, void *of) {
    const scene *n = of;
    (void)k;
    return n->s->ops->events->record(n->event, n->s->stream);
}

static tn_status query(tc_contract *k, void *of) {
    const scene *n = of;
    (void)k;
    tn_status status = n->s->ops->events->query(n->event);
    return status == TN_NOT_READY ? TN_OK : status;
}

static const struct {
    const char *what;
    tn_requirement requirement;
    tc_question *ask;
} questions[] = {
    {"alloc and dealloc", TNP_ALLOC_HANDLE, alloc},
    {"info", TNP_MEMORY_INFO, info},
    {"fill on another stream", TNP_FILL_VALUE, fill},
    {"record on another stream", TNP_EVENT_RECORD, record},
    {"query of an event of another stream", TNP_EVENT_QUERY, query},
};

/* Each of some times only when the command was done? */
static bool waits(tc_contract *k, tc_work *w, tn_stream_impl *busy, tc_question *ask, void *of) {
    bool late = true;
    for (int i = 0; i < TIMES && late && !tc_failed(k); i++) {
        if (!tc_work_queue(k, w, busy))
            return false;
        tc_let_begin(w);
        double start = tc_now();
        bool asked = ask(k, of) == TN_OK;
        double after = tc_now() - start;
        late =
            tc_stream_sync(k, busy) && asked && after > 0.002 && after > 0.8 * (tc_now() - start);
    }
    return late && !tc_failed(k);
}

static void one_command(tc_contract *k) {
    scene n = {.s = k->subject};
    tc_work work;
    tn_stream_impl *busy;
    if (!tc_has_streams(k) || !tc_stream_create(k, n.s, 0, &busy) ||
        !tc_event_create(k, n.s, 0, &n.event) ||
        !tc_buffer_create(k, n.s, TN_SPACE_DEVICE, BYTES, &n.b) ||
        !tc_work_create_one(k, n.s, &work))
        return;
    for (size_t i = 0; i < sizeof questions / sizeof *questions && !tc_failed(k); i++)
        if (waits(k, &work, busy, questions[i].ask, &n))
            TC_BROKEN(k, questions[i].requirement,
                      "%s returns when one long command of a stream that has nothing to do with it "
                      "is done",
                      questions[i].what);
    tc_subject_sync(n.s);
}

const tc_contract_row tc_one_command_rows[] = {{"one-command", "", TC_STANDARD, one_command}, {0}};
