/* contract/record-arguments, record-lists, capture-arguments and capture-lists: calls that wait in a queue, or in a
 * graph, keep their arguments, each its own.
 *
 * Scalars, sizes and strides travel to the device by way of something that a driver has only so much
 * of: rings of constants, slots for descriptors, parameters that are taken to be those of the call
 * before. More calls than that are queued behind long work, each with outputs of its own, which
 * differ in their data and their attributes, of each operator that has such; and of a few also in
 * how their tensors lie, which is the driver's matter and not the operator's. They go to some
 * streams in turn, each of which has room for 512: of one operator there are nearly as many. Of every
 * other operator a thread for each stream queues them, all at the same time.
 *
 * Captured, some are one graph, which is launched when others have been called. */
#include "plugin-sdk/conformance/worker/contract/graph_scene.h"
#include "plugin-sdk/conformance/worker/contract/reach.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"
#include "plugin-sdk/conformance/worker/kernel/mutate.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Of attributes there are AROUND sets, a number that is no part of a power of two. */
enum { STREAMS = 3, CALLS = 300, MOST = 500 * STREAMS, AROUND = 25, STEPS = 41, LAID_OUT = 8 };

typedef struct queued {
    tc_invocation call;
    tc_placed placed;
    char line[TC_MAX_LINE];
    bool declined; /* no record takes it after all */
} queued;

typedef struct scene {
    tc_contract *k;
    tc_work work;
    tn_stream_impl *streams[STREAMS];
    tn_event_impl *held;
    queued *calls; /* [MOST] */
    int n;
} scene;

/* The next attribute has its next value. */
static void step_attribute(tc_draft *d, const tc_record *record, int v) {
    for (int i = 0; i < (int)d->n; i++)
        if (tc_mutate_attribute(d, record, (v + i) % (int)d->n))
            return;
}

static bool has_attributes(const tc_record *record) {
    bool any = false;
    for (uint32_t a = 0; a < record->n_args; a++)
        any = any || (record->args[a].kind != TC_ARG_TENSOR &&
                      record->args[a].kind != TC_ARG_INTS && record->args[a].kind != TC_ARG_STRING);
    return any;
}

/* Every other time one tensor has its elements further apart. */
static void step_layout(tc_draft *d, const tc_record *record, int v) {
    const tc_arg *arg = &record->args[(uint32_t)v / 2 % (record->n_args ? record->n_args : 1)];
    tc_shape s;
    int at = tc_draft_find(d, record->n_args ? arg->name : "");
    if (v % 2 == 0 || at < 0 || arg->kind != TC_ARG_TENSOR || !tc_draft_shape(d, at, &s))
        return;
    for (int32_t k = 0; k < s.rank; k++)
        s.strides[k] *= 2 + v / 2 % STEPS;
    s.placed = true;
    tc_draft_put_shape(d, at, &s);
}

static bool read(tc_arena *arena, const char *line, int v, queued *q) {
    char why[TC_MESSAGE];
    tc_case c;
    snprintf(q->line, sizeof q->line, "%s", line);
    if (!tc_case_parse(line, &c, why) || !tc_invocation_parse(&c, arena, &q->call, why))
        return false;
    q->call.seed += 0x1000003 * (uint64_t)v;
    return tc_invocation_fill(&q->call, q->call.seed, why);
}

/* At most `most` calls that follow from a line, ready to be queued: fewer where memory has no room for them. */
static void make_calls(scene *n, tc_arena *arena, const char *line, bool laid_out, int most) {
    tc_contract *k = n->k;
    tc_draft base, walking;
    char why[TC_MESSAGE], text[TC_MAX_LINE];
    n->n = 0;
    if (!tc_draft_read(line, &base, why))
        return;
    tc_draft_set(&base, "data", "exact"); /* how good functions are is asked elsewhere */
    const tc_record *record = tc_record_find(base.subject);
    walking = base;
    uint64_t left = tc_free_bytes(k->subject) / 4; /* for workspaces, and what else the case has */
    for (int v = 0; v < most && !tc_failed(k) && tc_free_bytes(k->subject) > left; v++) {
        tc_verdict none = {.status = TC_PASS};
        tc_draft d;
        step_attribute(&walking, record, v);
        if (v % AROUND == 0 || !tc_draft_line(&walking, text)) /* no such call */
            walking = base;
        d = walking;
        if (laid_out)
            step_layout(&d, record, v);
        queued *q = &n->calls[n->n];
        q->declined = false;
        memset(&q->placed, 0, sizeof q->placed);
        if (!tc_draft_line(&d, text) || !read(arena, text, v, q))
            continue;
        if (q->call.in_place < 0 &&
            tc_place_call(k->subject, n->streams[n->n % STREAMS], &q->call, &q->placed, &none))
            n->n++;
        else
            tc_unplace(&q->placed);
        if (none.status == TC_FAIL || none.status == TC_ERROR)
            tc_verdict_set(k->out, none.status, none.requirement, "%s", none.message);
        if (tc_lacks(TN_ERR_OUT_OF_MEMORY))
            return;
    }
}

static void check(tc_contract *k, queued *q) {
    tc_result result = {0};
    tc_verdict v = {.status = TC_PASS};
    if (tc_read_back(&q->placed, &result, &v)) {
        tc_check_untouched(&q->call, &result, &v);
        tc_check_outputs(&q->call, &result, k->subject, &v);
    }
    if (v.status == TC_FAIL)
        TC_BROKEN(k, TNP_KERNEL_RESULT, "`%.200s`, one of many calls in a queue: %.600s", q->line,
                  v.message);
}

static bool settle(scene *n) {
    bool ok = true;
    for (int i = 0; i < STREAMS; i++)
        ok = tc_stream_sync(n->k, n->streams[i]) && ok;
    return ok;
}

/* The calls from `first` on, of which each `step`th. */
typedef struct share {
    scene *n;
    int first, step;
    tn_status status; /* of the call at `last` */
    int last;
} share;

/* A call that no record takes, or for whose workspace there is no memory beside the others', is left out from
 * then on. */
static void *queue_share(void *context) {
    share *s = context;
    for (int i = s->first; i < s->n->n && s->status == TN_OK; i += s->step) {
        queued *q = &s->n->calls[i];
        if (q->declined)
            continue;
        s->last = i;
        s->status = tc_call_placed(&q->placed);
        q->declined = s->status == TN_ERR_UNSUPPORTED || tc_lacks(s->status);
        if (q->declined)
            s->status = TN_OK;
    }
    return NULL;
}

static bool went_well(const share *s) {
    return s->status == TN_OK ||
           tc_must(s->n->k, TNP_KERNEL_RESULT, s->status, s->n->calls[s->last].line);
}

static bool queue_each(scene *n) {
    share all = {.n = n, .step = 1};
    queue_share(&all);
    return went_well(&all);
}

static bool queue_at_once(scene *n) {
    share shares[STREAMS];
    pthread_t threads[STREAMS];
    bool started[STREAMS], ok = true;
    for (int i = 0; i < STREAMS; i++) {
        shares[i] = (share){.n = n, .first = i, .step = STREAMS};
        started[i] = pthread_create(&threads[i], NULL, queue_share, &shares[i]) == 0;
    }
    for (int i = 0; i < STREAMS; i++) {
        if (started[i])
            pthread_join(threads[i], NULL);
        ok = ok && (started[i] ? went_well(&shares[i])
                               : TC_CASE_ERROR(n->k->out, "a thread cannot be started"));
    }
    return ok;
}

/* What is queued on any of the streams from now on runs in so many seconds. */
static bool hold(scene *n, double seconds) {
    const tn_event_ops *events = n->k->subject->ops->events;
    bool ok = tc_work_hold(n->k, &n->work, n->streams[0], seconds) &&
              tc_must(n->k, TNP_EVENT_RECORD, events->record(n->held, n->streams[0]), "record");
    for (int i = 1; i < STREAMS && ok; i++)
        ok = tc_must(n->k, TNP_EVENT_WAIT, events->wait(n->streams[i], n->held), "wait");
    return ok;
}

/* All at once, and then what came of each: behind work that takes longer than to queue them, which
 * is known when they have been called before, the first time for what a first call has to do. */
static void queue_all(scene *n, const char *line, bool laid_out, int most, bool at_once) {
    tc_arena arena = {NULL};
    make_calls(n, &arena, line, laid_out, most);
    bool ok = !tc_failed(n->k) && queue_each(n) && settle(n);
    double start = tc_now();
    ok = ok && queue_each(n);
    double took = tc_now() - start;
    ok = ok && settle(n) && hold(n, 2 * took > 0.01 ? 2 * took : 0.01) &&
         (at_once ? queue_at_once(n) : queue_each(n));
    ok = settle(n) && ok;
    for (int i = 0; i < n->n; i++) {
        if (ok && !n->calls[i].declined && !tc_failed(n->k))
            check(n->k, &n->calls[i]);
        tc_unplace(&n->calls[i].placed);
    }
    tc_arena_finish(&arena);
}

/* ---- in a graph -------------------------------------------------------------------------- */

/* Of the calls those of the first stream are captured, and the others called when that is over. */
static bool queue_some(scene *n, bool captured) {
    for (int i = 0; i < n->n; i++) {
        queued *q = &n->calls[i];
        tn_status status;
        if ((i % STREAMS == 0) != captured)
            continue;
        status = tc_call_placed(&q->placed);
        q->declined = status == TN_ERR_UNSUPPORTED || tc_lacks(status);
        if (!q->declined && !tc_must(n->k, TNP_CAPTURE_RECORDS, status, q->line))
            return false;
    }
    return true;
}

static void launch_some(scene *n, const tn_ext_capture *ext, const char *line, bool laid_out) {
    enum { SOME = 8 * STREAMS };
    tc_arena arena = {NULL};
    tn_graph_impl *graph = NULL;
    make_calls(n, &arena, line, laid_out, SOME);
    bool ok = !tc_failed(n->k) && settle(n) && tc_capture_begin(n->k, ext, n->streams[0]);
    if (ok && !queue_some(n, true)) {
        ext->abandon(n->streams[0]);
        ok = false;
    }
    ok = ok && tc_capture_end(n->k, ext, n->streams[0], &graph) && queue_some(n, false) &&
         settle(n) && tc_graph_launch(n->k, ext, graph, n->streams[1]);
    ok = settle(n) && ok;
    for (int i = 0; i < n->n; i++) {
        if (ok && !n->calls[i].declined && !tc_failed(n->k))
            check(n->k, &n->calls[i]);
        tc_unplace(&n->calls[i].placed);
    }
    if (graph)
        ext->destroy(graph);
    tc_arena_finish(&arena);
}

/* ---- rows -------------------------------------------------------------------------------- */

static bool set_up(tc_contract *k, scene *n) {
    *n = (scene){.k = k};
    bool ok = tc_has_streams(k) && tc_work_create(k, k->subject, &n->work) &&
              tc_event_create(k, k->subject, 0, &n->held);
    for (int i = 0; i < STREAMS && ok; i++)
        ok = tc_stream_create(k, k->subject, 0, &n->streams[i]);
    n->calls = ok ? tc_arena_array(&k->arena, MOST, sizeof *n->calls) : NULL;
    return ok && (n->calls || TC_CASE_ERROR(k->out, "the host has no memory for this case"));
}

/* One record of each operator: is this the first that lines reach? */
static bool is_first(const tn_plugin *p, const tc_reached *reached, uint64_t i) {
    bool seen = !reached[i].lines[0];
    for (uint64_t j = 0; j < i && !seen; j++)
        seen = strcmp(p->kernels[i]->op, p->kernels[j]->op) == 0 && reached[j].lines[0];
    return !seen;
}

void tc_record_arguments(tc_contract *k) {
    const tn_plugin *p = k->subject->plugin;
    scene n;
    int operators = 0, most = MOST; /* until one has had them */
    tc_reached *reached = set_up(k, &n) ? tc_reach_records(k, TC_SMOKE, NULL) : NULL;
    for (uint64_t i = 0; reached && i < p->n_kernels && !tc_failed(k); i++) {
        if (!is_first(p, reached, i))
            continue;
        bool attributes = has_attributes(tc_record_find(p->kernels[i]->op)),
             laid_out = operators < LAID_OUT, at_once = operators++ % 2 == 1;
        if (!attributes && !laid_out)
            continue;
        queue_all(&n, reached[i].lines[0], laid_out, attributes ? most : CALLS, at_once);
        if (attributes)
            most = CALLS;
    }
}

/* Lists of every length, and long shapes, which may have another place than short ones. */
static void each_list(tc_contract *k, scene *n, const tn_ext_capture *ext) {
    const tn_plugin *p = k->subject->plugin;
    tc_listed *listed = tc_reach_lists(k, TC_STANDARD);
    for (uint64_t i = 0; listed && i < p->n_kernels; i++)
        for (int length = 0; length <= TC_MAX_RANK && !tc_failed(k); length++) {
            const char *line = listed[i].lines[length];
            bool seen = !line;
            for (uint64_t j = 0; j < i && !seen; j++)
                seen = strcmp(p->kernels[i]->op, p->kernels[j]->op) == 0 && listed[j].lines[length];
            if (seen)
                continue;
            if (ext)
                launch_some(n, ext, line, false);
            else
                queue_all(n, line, false, 2 * STREAMS, false);
        }
}

void tc_record_lists(tc_contract *k) {
    scene n;
    if (set_up(k, &n))
        each_list(k, &n, NULL);
}

void tc_capture_lists(tc_contract *k) {
    scene n;
    const tn_ext_capture *ext = tc_capture_extension(k);
    if (ext && set_up(k, &n))
        each_list(k, &n, ext);
}

void tc_capture_arguments(tc_contract *k) {
    const tn_plugin *p = k->subject->plugin;
    scene n;
    int operators = 0;
    const tn_ext_capture *ext = tc_capture_extension(k);
    tc_reached *reached = ext && set_up(k, &n) ? tc_reach_records(k, TC_SMOKE, NULL) : NULL;
    for (uint64_t i = 0; reached && i < p->n_kernels && !tc_failed(k); i++)
        if (is_first(p, reached, i)) {
            bool laid_out = operators++ < LAID_OUT;
            if (laid_out || has_attributes(tc_record_find(p->kernels[i]->op)))
                launch_some(&n, ext, reached[i].lines[0], laid_out);
        }
}
