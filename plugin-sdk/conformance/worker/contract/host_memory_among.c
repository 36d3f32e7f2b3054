/* process/host-memory-among: host memory runs out in a call that makes one more of what there are many of by then, at
 * each number of them: a table that grows is as it was, or larger, and never half of it. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 700, FAILING = 4 /* allocations of a call, the first of them */ };

/* What there are many of: the call that makes one, and the one that takes it back. */
typedef struct thing {
    const char *name;
    tn_requirement requirement;
    int most;
    bool (*offered)(const tc_subject *s);
    tn_status (*make)(const tc_subject *s, int32_t space, void **out);
    void (*destroy)(const tc_subject *s, int32_t space, void *one);
    int32_t space; /* of memory */
} thing;

static bool has_memory(const tc_subject *s) {
    (void)s;
    return true;
}

static bool has_pinned(const tc_subject *s) {
    return s->spaces >> TN_SPACE_PINNED & 1;
}

static tn_status make_block(const tc_subject *s, int32_t space, void **out) {
    tn_memory memory = 0;
    void *host;
    tn_status status = tc_alloc(s, space, 64, &memory, &host);
    *out = (void *)(uintptr_t)memory;
    return status;
}

static void free_block(const tc_subject *s, int32_t space, void *one) {
    s->memory->dealloc(s->device, space, (tn_memory)(uintptr_t)one);
}

static bool has_streams(const tc_subject *s) {
    return s->ops->streams && s->ops->events;
}

static tn_status make_event(const tc_subject *s, int32_t space, void **out) {
    (void)space;
    tn_event_impl *event = NULL;
    tn_status status = s->ops->events->create(s->device, 0, &event);
    if (status == TN_OK) { /* a mark of it, too; without memory for one it is but an event */
        tc_host_fail_after(-1);
        status = s->ops->events->record(event, s->stream);
    }
    *out = event;
    return status;
}

static void destroy_event(const tc_subject *s, int32_t space, void *one) {
    (void)space;
    s->ops->events->destroy(one);
}

static tn_status make_stream(const tc_subject *s, int32_t space, void **out) {
    (void)space;
    tn_stream_impl *stream = NULL;
    tn_status status = s->ops->streams->create(s->device, 0, &stream);
    *out = stream;
    return status;
}

static void destroy_stream(const tc_subject *s, int32_t space, void *one) {
    (void)space;
    s->ops->streams->destroy(one);
}

static const thing things[] = {
    {"memory", TNP_ALLOC_HANDLE, MOST, has_memory, make_block, free_block, TN_SPACE_DEVICE},
    {"pinned", TNP_ALLOC_HANDLE, 150, has_pinned, make_block, free_block, TN_SPACE_PINNED},
    {"event", TNP_EVENT_CREATE, MOST, has_streams, make_event, destroy_event, 0},
    {"stream", TNP_STREAM_CREATE, 70, has_streams, make_stream, destroy_stream, 0},
};

/* One more, for which first each of some allocations fails; then there is memory again. */
static bool make_one(tc_contract *k, const tc_subject *s, const thing *t, int n, void **out) {
    char what[TC_MESSAGE];
    bool failed = true;
    tn_status status = TN_OK;
    snprintf(what, sizeof what, "one %s more than %d, when host memory runs out in the call,",
             t->name, n);
    for (int i = 0; i < FAILING && failed && !tc_failed(k); i++) {
        tc_host_forget();
        tc_host_fail_after(i);
        status = t->make(s, t->space, out);
        failed = tc_host_failed();
        tc_host_fail_after(-1);
        if (status == TN_OK) /* it did without */
            return true;
        if (failed)
            tc_must_fail(k, TNP_HOST_ALLOC_FAILURE, status, TN_ERR_OUT_OF_MEMORY, what);
    }
    snprintf(what, sizeof what, "one %s more than %d, once there is host memory again,", t->name,
             n);
    return !tc_failed(k) && tc_must(k, t->requirement, t->make(s, t->space, out), what);
}

static void make_all(tc_contract *k, tc_subject *s, const thing *t, void *made[MOST]) {
    int n = 0;
    if (!t->offered(s)) {
        TC_NOT_OFFERED(k, "the device has nothing of of=%s", t->name);
        return;
    }
    while (n < t->most && make_one(k, s, t, n, &made[n]))
        n++;
    if (!tc_failed(k))
        tc_lifecycle_probe(k, s, TC_WORK_SMALL, TNP_HOST_ALLOC_FAILURE,
                           "after host memory had run out among many", NULL);
    while (n > 0)
        t->destroy(s, t->space, made[--n]);
}

static void among(tc_contract *k) {
    const char *of = tc_contract_word(k, "of");
    tc_subject s;
    void **made = tc_arena_array(&k->arena, MOST, sizeof *made);
    if (!made) {
        TC_CASE_ERROR(k->out, "the host has no memory for a list");
        return;
    }
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_NONE, "before host memory runs out"))
        return;
    for (size_t i = 0; i < sizeof things / sizeof *things; i++)
        if (strcmp(things[i].name, of) == 0)
            make_all(k, &s, &things[i], made);
    tc_subject_close(&s);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED,
                          "after host memory had run out among many, and shutdown");
}

const tc_contract_row tc_host_memory_among_rows[] = {
    {"host-memory-among", "of=memory", TC_STANDARD, among},
    {"host-memory-among", "of=pinned", TC_STANDARD, among},
    {"host-memory-among", "of=event", TC_STANDARD, among},
    {"host-memory-among", "of=stream", TC_STANDARD, among},
    {0},
};
