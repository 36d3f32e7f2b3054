/* Errors of queued work: reported once, by the stream they belong to, while what is behind them
 * runs. The error is an index out of range of gather, or of index_select. */
#include "buffers.h"

#include "../kernel/execute.h"

#include <stdio.h>
#include <string.h>

/* A call with one index out of range, and the same call as it should be. */
typedef struct scene {
    tc_contract *k;
    tc_subject *s;
    const tn_kernel *kernel;
    tc_case line;
    tc_invocation bad, good;
    tn_pstream *stream;
} scene;

/* Fills the call; `bad` becomes one of its indices, unless it is 0. */
static bool prepare(scene *n, tc_invocation *call, int64_t bad) {
    char why[TC_MESSAGE];
    if (!tc_invocation_parse(&n->line, &n->k->arena, call, why) ||
        !tc_invocation_fill(call, n->k->c->seed, why)) {
        tc_verdict_set(n->k->out, TC_ERROR, 0, "%s", why);
        return false;
    }
    tc_operand *index = &call->args[tc_record_arg(call->record, "index")].tensor;
    if (bad) {
        index->values[index->shape.numel / 2].i = bad;
        tc_operand_settle(index);
    }
    return true;
}

static bool set_up(tc_contract *k, scene *n) {
    static const char *const lines[] = {
        "kernel/gather T=f32 self=[60,40] dim=0 index=[50,40]",
        "kernel/index_select T=f32 self=[60,40] dim=0 index=[50]",
    };
    char why[TC_MESSAGE];
    *n = (scene){.k = k, .s = k->subject};
    if (!n->s->ops->streams) {
        TC_NOT_OFFERED(k, "the device has no streams");
        return false;
    }
    for (int i = 0; i < 2 && !n->kernel; i++)
        if (tc_case_parse(lines[i], &n->line, why) && prepare(n, &n->good, 0) &&
            tc_find_kernel(n->s, &n->good, &n->kernel) != TC_CLAIMED)
            n->kernel = NULL;
    if (!n->kernel || n->kernel->workspace) {
        TC_NOT_OFFERED(k, "no kernel that finds a bad index");
        return false;
    }
    return prepare(n, &n->bad, 1000000) && prepare(n, &n->good, 0) &&
           tc_stream_create(k, n->s, 0, &n->stream);
}

static void finish(scene *n) {
    if (n->stream)
        n->s->ops->streams->destroy(n->stream);
}

static bool queue(scene *n, tc_invocation *call, tc_placed *p) {
    return tc_place_call(n->s, n->stream, n->kernel, call, p, n->k->out) &&
           tc_must(n->k, 73, n->kernel->run(&p->tn), "run of a call whose index is out of range");
}

/* Asks until the work is done. */
static tn_status settle(scene *n, bool by_query) {
    tn_status status = TN_NOT_READY;
    tc_host_forget();
    if (!by_query)
        return n->s->ops->streams->synchronize(n->stream);
    for (const double end = tc_clock() + 30; status == TN_NOT_READY && tc_clock() < end;)
        status = n->s->ops->streams->query(n->stream);
    return status;
}

static bool reported(scene *n, bool by_query) {
    return tc_must_fail(n->k, 57, settle(n, by_query), TN_INDEX_OUT_OF_RANGE,
                        by_query ? "query after an index out of range"
                                 : "synchronize after an index out of range");
}

/* Once, by whoever asks first; the work behind it has run, and the stream goes on. */
static void once(tc_contract *k) {
    scene n;
    tc_buffer b = {0};
    tc_placed bad = {0}, good = {0};
    tc_result result = {0};
    const bool by_query = strcmp(tc_contract_word(k, "by"), "query") == 0;
    if (set_up(k, &n) && tc_buffer_create(k, n.s, TN_SPACE_DEVICE, 3000, &b) &&
        queue(&n, &n.bad, &bad)) {
        memset(b.model, 0x5a, b.bytes);
        tc_must(k, 57, n.s->memory->fill(n.s->device, n.stream, b.memory, 0, 0x5a, b.bytes),
                "fill behind work that will fail");
        unsigned char byte;
        if (strcmp(tc_contract_word(k, "with"), "read") == 0 && /* does not report it */
            tc_must(k, 46, n.s->memory->read(n.s->device, n.stream, &byte, b.memory, 0, 1),
                    "read behind work that failed"))
            tc_buffer_check(k, &b, n.stream, 46, "memory that was read behind an error");
        if (reported(&n, by_query)) {
            tc_must(k, 57, settle(&n, false), "synchronize after the error was reported");
            tc_must(k, 57, settle(&n, true), "query after the error was reported");
            tc_buffer_check(k, &b, n.stream, 57, "what was queued behind an error");
        }
        if (!tc_failed(k) && queue(&n, &n.good, &good) &&
            tc_must(k, 57, settle(&n, by_query), "a call after an error"))
            tc_read_back(&good, &result, k->out);
    }
    tc_subject_sync(k->subject);
    tc_unplace(&good);
    tc_unplace(&bad);
    tc_buffer_destroy(&b);
    finish(&n);
}

/* Another stream knows nothing of it, and no event swallows it. */
static void elsewhere(tc_contract *k) {
    scene n;
    tc_placed bad = {0};
    tn_pevent *event = NULL;
    if (set_up(k, &n) && tc_event_create(k, n.s, 0, &event) && queue(&n, &n.bad, &bad)) {
        tc_must(k, 60, n.s->ops->events->record(event, n.stream), "record behind an error");
        tc_must(k, 57, n.s->ops->events->synchronize(event),
                "synchronize of an event behind an error");
        tc_must(k, 57, n.s->ops->events->query(event), "query of an event behind an error");
        tc_must(k, 63, n.s->ops->events->wait(n.s->stream, event),
                "wait for an event behind an error");
        tc_must(k, 57, tc_subject_sync(n.s), "synchronize of another stream");
        reported(&n, false);
    }
    tc_subject_sync(k->subject);
    if (event)
        n.s->ops->events->destroy(event);
    tc_unplace(&bad);
    finish(&n);
}

/* The message of an error that is reported, for a call that is queued alone. */
static bool message_of(scene *n, tc_invocation *call, char out[TC_MESSAGE]) {
    tc_placed placed = {0};
    const bool ok = queue(n, call, &placed) && reported(n, false);
    snprintf(out, TC_MESSAGE, "%s", tc_host_message());
    tc_unplace(&placed);
    return ok;
}

/* Two errors before anybody asks: one is reported, the first. Which of them it was shows where the
 * plugin's messages tell them apart. */
static void two(tc_contract *k) {
    scene n;
    tc_invocation worse;
    tc_placed first = {0}, second = {0};
    char one[TC_MESSAGE], other[TC_MESSAGE];
    if (set_up(k, &n) && prepare(&n, &worse, -77) && message_of(&n, &n.bad, one) &&
        message_of(&n, &worse, other) && queue(&n, &n.bad, &first) && queue(&n, &worse, &second) &&
        reported(&n, false)) {
        if (strcmp(one, other) != 0 && strcmp(tc_host_message(), other) == 0)
            TC_BROKEN(k, 57, "of two errors the second was reported: %.200s", other);
        tc_must(k, 57, settle(&n, false), "synchronize after the first of two errors was reported");
    }
    tc_subject_sync(k->subject);
    tc_unplace(&second);
    tc_unplace(&first);
    finish(&n);
}

const tc_contract_row tc_error_rows[] = {
    {"error-once", "by=synchronize with=read", TC_SMOKE, once},
    {"error-once", "by=query with=nothing", TC_SMOKE, once},
    {"error-elsewhere", "", TC_SMOKE, elsewhere},
    {"error-two", "", TC_SMOKE, two},
    {0},
};
