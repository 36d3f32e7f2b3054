/* What returns nothing cannot fail: memory, streams, events, graphs and devices go, and captures end, also where the
 * n-th allocation of host memory on the way fails, for every n there is. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"

#include <stdio.h>
#include <string.h>
#include <tenon/ext/capture.h>

enum { BYTES = 3000, LARGE = 1 << 20, MOST = 100, TIMES = 3 };

/* A device, opened as it is needed, and what is made and released. */
typedef struct trial {
    tc_contract *k;
    tc_subject s;
    const tn_ext_capture *capture; /* or NULL */
    tc_work work;
    tc_buffer b;
    int value; /* of the latest fill of it */
    tn_memory memory;
    tn_stream_impl *stream;
    tn_event_impl *event;
    tn_graph_impl *graph;
} trial;

typedef struct thing {
    const char *name;
    bool (*make)(trial *t); /* false where the device has no such thing, or the case has failed */
    void (*release)(trial *t);
    void (*check)(trial *t); /* that it was done all the same; may be NULL */
} thing;

static bool must(trial *t, tn_status status, const char *what) {
    return tc_must(t->k, TNP_HOST_ALLOC_FAILURE, status, what);
}

/* ---- memory ------------------------------------------------------------------------------ */

static bool make_in(trial *t, int32_t space) {
    void *host;
    return must(t, tc_alloc(&t->s, space, LARGE, &t->memory, &host), "alloc");
}

static bool make_memory(trial *t) {
    return make_in(t, TN_SPACE_DEVICE);
}

static void release_memory(trial *t) {
    t->s.memory->dealloc(t->s.device, TN_SPACE_DEVICE, t->memory);
}

static bool make_pinned(trial *t) {
    return (t->s.spaces >> TN_SPACE_PINNED & 1) && make_in(t, TN_SPACE_PINNED);
}

static void release_pinned(trial *t) {
    t->s.memory->dealloc(t->s.device, TN_SPACE_PINNED, t->memory);
}

/* ---- queues ------------------------------------------------------------------------------ */

/* A stream that has something to do, and a fill behind it. */
static bool make_stream(trial *t) {
    return t->s.ops->streams &&
           must(t, t->s.ops->streams->create(t->s.device, 0, &t->stream), "create of a stream") &&
           tc_work_hold(t->k, &t->work, t->stream, 0.01) &&
           tc_buffer_fill(t->k, &t->b, t->stream, ++t->value & 0xff);
}

static void release_stream(trial *t) {
    t->s.ops->streams->destroy(t->stream);
}

static void check_fill(trial *t) {
    tc_buffer_check(t->k, &t->b, t->s.stream, TNP_HOST_ALLOC_FAILURE,
                    "what was to be done before destroy returns, where host memory failed");
}

static bool make_event(trial *t) {
    const tn_event_ops *events = t->s.ops->events;
    return t->s.ops->streams && must(t, events->create(t->s.device, 0, &t->event), "create") &&
           tc_work_hold(t->k, &t->work, t->s.stream, 0.01) &&
           must(t, events->record(t->event, t->s.stream), "record");
}

static void release_event(trial *t) {
    t->s.ops->events->destroy(t->event);
}

static void check_stream(trial *t) {
    if (must(t, tc_subject_sync(&t->s), "synchronize") &&
        tc_buffer_fill(t->k, &t->b, t->s.stream, ++t->value & 0xff))
        check_fill(t);
}

/* ---- captures ---------------------------------------------------------------------------- */

static bool make_capture(trial *t) {
    const tc_subject *s = &t->s;
    return t->capture && t->capture->begin(s->stream) == TN_OK &&
           must(t, s->memory->fill(s->device, s->stream, t->b.memory, 0, 0x3d, BYTES), "fill");
}

static void release_capture(trial *t) {
    t->capture->abandon(t->s.stream);
}

/* A graph that is launched behind work. */
static bool make_graph(trial *t) {
    if (!make_capture(t) || !must(t, t->capture->end(t->s.stream, &t->graph), "end of a capture") ||
        !make_stream(t) || !must(t, t->capture->launch(t->graph, t->stream), "launch"))
        return false;
    memset(t->b.model, 0x3d, BYTES);
    return true;
}

static void release_graph(trial *t) {
    t->capture->destroy(t->graph);
}

static void check_graph(trial *t) {
    check_fill(t);
    t->s.ops->streams->destroy(t->stream);
}

/* ---- all of it --------------------------------------------------------------------------- */

static bool open_device(trial *t) {
    tc_contract *k = t->k;
    if (t->s.device)
        return true;
    if (!tc_lifecycle_open(k, &t->s, tc_host_table(), TNP_NONE, "before host memory runs out"))
        return false;
    t->capture = t->s.stream ? tc_subject_extension(&t->s, TN_EXT_CAPTURE) : NULL;
    return tc_buffer_create(k, &t->s, TN_SPACE_DEVICE, BYTES, &t->b) &&
           (!t->s.stream || tc_work_create(k, &t->s, &t->work));
}

static void close_device(trial *t) {
    tc_subject_close(&t->s);
    t->s = (tc_subject){0};
}

static bool make_device(trial *t) {
    tc_release(t->k, NULL);
    return t->s.device != NULL;
}

static const thing things[] = {
    {"memory", make_memory, release_memory, NULL},
    {"pinned", make_pinned, release_pinned, NULL},
    {"stream", make_stream, release_stream, check_fill},
    {"event", make_event, release_event, check_stream},
    {"capture", make_capture, release_capture, check_stream},
    {"graph", make_graph, release_graph, check_graph},
    {"device", make_device, close_device, NULL},
};

/* Made, and released while allocation n fails. Returns whether there was one. */
static bool release_starved(trial *t, const thing *x, int64_t n, bool *out_made) {
    *out_made = open_device(t) && x->make(t);
    if (!*out_made || tc_failed(t->k))
        return false;
    tc_host_fail_after(n);
    x->release(t);
    bool failed = tc_host_failed();
    tc_host_fail_after(-1);
    if (x->check)
        x->check(t);
    return failed && !tc_failed(t->k);
}

/* Several times: other programs take device memory too, but not each time. */
static bool release_again(trial *t, const thing *x, int64_t n, bool *out_made) {
    int lost = 0, times = 0;
    while (times < TIMES) {
        uint64_t before = t->s.device ? tc_free_bytes(&t->s) : 0;
        if (!release_starved(t, x, n, out_made))
            return false;
        lost += before && t->s.device && tc_free_bytes(&t->s) < before;
        times++;
    }
    if (lost == TIMES)
        TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE,
                  "%s: each release where allocation %lld of host memory in it fails leaves less "
                  "free device memory",
                  x->name, (long long)n);
    return !tc_failed(t->k);
}

static void release(tc_contract *k) {
    trial t = {.k = k};
    const thing *x = things;
    bool made = true, any = false;
    while (strcmp(x->name, tc_contract_word(k, "of")) != 0)
        x++;
    for (int64_t n = 0; n < MOST && release_again(&t, x, n, &made); n++)
        any = true;
    if (!made && !any && !tc_failed(k))
        TC_NOT_OFFERED(k, "the device has nothing of of=%s", x->name);
    tc_host_fail_after(-1);
    if (t.s.device) {
        tc_release(k, NULL);
        close_device(&t);
    }
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED,
                          "after things were released where host memory failed, and shutdown");
}

const tc_contract_row tc_release_rows[] = {
    {"host-memory-release", "of=memory", TC_STANDARD, release},
    {"host-memory-release", "of=pinned", TC_STANDARD, release},
    {"host-memory-release", "of=stream", TC_STANDARD, release},
    {"host-memory-release", "of=event", TC_STANDARD, release},
    {"host-memory-release", "of=capture", TC_STANDARD, release},
    {"host-memory-release", "of=graph", TC_STANDARD, release},
    {"host-memory-release", "of=device", TC_STANDARD, release},
    {0},
};
