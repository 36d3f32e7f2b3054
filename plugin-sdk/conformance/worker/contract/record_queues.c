/* contract/record-queues: no record waits in `run` for what its stream has to do before. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/contract/reach.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"

#include <string.h>

typedef struct queued {
    tc_case c;
    tc_invocation call;
    tc_placed placed;
    bool ready; /* has been called once, for what a first call has to do */
} queued;

static void place(tc_contract *k, const char *line, queued *q) {
    tc_subject *s = k->subject;
    char why[TC_MESSAGE];
    if (!tc_case_parse(line, &q->c, why) || !tc_invocation_parse(&q->c, &k->arena, &q->call, why) ||
        !tc_fill_for(s, &q->call, q->call.seed, why))
        TC_CASE_ERROR(k->out, "%s: %s", line, why);
    else if (tc_place_call(s, s->stream, &q->call, &q->placed, k->out) &&
             tc_call_placed(&q->placed) == TN_OK)
        q->ready = tc_subject_sync(s) == TN_OK;
}

static tn_status call_again(tc_contract *k, void *of) {
    (void)k;
    queued *q = of;
    return tc_call_placed(&q->placed);
}

/* One after the other behind long work. A call behind which that is done has waited, or the host was
 * kept off its core: then it is asked alone, several times. */
static void behind_work(tc_contract *k, tc_work *work, queued *calls, uint64_t n) {
    tn_stream_impl *stream = k->subject->stream;
    const tn_stream_ops *streams = k->subject->ops->streams;
    bool busy = false;
    for (uint64_t i = 0; i < n && !tc_failed(k); i++) {
        if (!calls[i].ready)
            continue;
        busy = busy && streams->query(stream) == TN_NOT_READY;
        bool ok = true;
        for (int j = 0; j < 2 && !busy && ok; j++)
            ok = tc_work_queue(k, work, stream);
        if (!ok)
            break;
        tn_status status = tc_call_placed(&calls[i].placed);
        if (status == TN_ERR_UNSUPPORTED) /* now, and not before */
            continue;
        if (!tc_must(k, TNP_KERNEL_RESULT, status, calls[i].call.record->op))
            break;
        busy = streams->query(stream) == TN_NOT_READY;
        if (!busy && tc_question_waits(k, work, stream, NULL, call_again, &calls[i]))
            TC_BROKEN(
                k, TNP_KERNEL_STREAM,
                "%s: run returns when the work before it on the stream is done; it queues its "
                "own and returns",
                calls[i].call.record->op);
    }
    streams->synchronize(stream);
}

void tc_record_queues(tc_contract *k) {
    const tn_plugin *p = k->subject->plugin;
    tc_work work;
    if (!tc_has_streams(k) || !tc_work_create(k, k->subject, &work))
        return;
    tc_reached *reached = tc_reach_records(k, TC_SMOKE, NULL);
    queued *calls = tc_arena_array(&k->arena, p->n_kernels + 1, sizeof *calls);
    if (!calls)
        TC_CASE_ERROR(k->out, "the host has no memory for this case");
    for (uint64_t i = 0; reached && calls && i < p->n_kernels && !tc_failed(k); i++)
        if (reached[i].lines[0])
            place(k, reached[i].lines[0], &calls[i]);
    if (reached && calls)
        behind_work(k, &work, calls, p->n_kernels);
    for (uint64_t i = 0; calls && i < p->n_kernels; i++)
        if (calls[i].placed.subject)
            tc_unplace(&calls[i].placed);
}
