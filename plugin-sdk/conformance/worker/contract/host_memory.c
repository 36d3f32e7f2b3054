/* Host memory exhaustion: for each stage of a plugin's lifecycle the n-th allocation fails, for
 * every n there is. The call fails cleanly or can do without, nothing is lost, and the same call
 * succeeds when there is memory again. */
#include "plugin-sdk/conformance/worker/contract/host_memory_stages.h"

#include <stdio.h>
#include <string.h>

/* ---- stages ------------------------------------------------------------------------------ */

char tc_trial_poison;

void tc_gave(tc_trial *t, const void *out, const char *what) {
    if (out && out != &tc_trial_poison)
        TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE, "%s failed and gave something all the same", what);
}

static tn_status try_init(tc_trial *t) {
    t->s.self = TC_POISONED(tn_instance);
    t->s.host = tc_host_table();
    tc_host_begin(t->s.host);
    tn_status status = t->s.plugin->init(tc_host_table(), t->k->options->plugin, &t->s.self);
    if (!TC_GAVE(t, status, t->s.self, "init"))
        tc_host_end(NULL);
    return status;
}

static void undo_init(tc_trial *t) {
    t->s.plugin->shutdown(t->s.self);
    t->s.self = NULL;
    tc_host_end(NULL);
}

static bool prepare_init(tc_trial *t) {
    return tc_must(t->k, TNP_INIT_RESULT, try_init(t), "init");
}

static tn_status try_open(tc_trial *t) {
    uint32_t n;
    tn_status status = t->s.ops->count(t->s.self, &n);
    t->s.device = status == TN_OK ? TC_POISONED(tn_device_impl) : NULL;
    if (status == TN_OK)
        status = t->s.ops->open(t->s.self, t->k->options->device, &t->s.device);
    (void)TC_GAVE(t, status, t->s.device, "open");
    return status;
}

static void undo_open(tc_trial *t) {
    t->s.ops->close(t->s.device);
    t->s.device = NULL;
}

static tn_status try_stream(tc_trial *t) {
    t->s.stream = TC_POISONED(tn_stream_impl);
    tn_status status = t->s.ops->streams->create(t->s.device, 0, &t->s.stream);
    (void)TC_GAVE(t, status, t->s.stream, "create of a stream");
    return status;
}

static void undo_stream(tc_trial *t) {
    t->s.ops->streams->destroy(t->s.stream);
    t->s.stream = NULL;
}

static bool prepare_device(tc_trial *t) {
    tn_stream_impl *stream = t->s.stream;
    if (stream) /* opening brought one, which the stage makes itself */
        t->s.ops->streams->destroy(stream);
    t->s.stream = NULL;
    return stream != NULL;
}

static bool has_streams(tc_trial *t) {
    return t->s.ops->streams != NULL;
}

static tn_status try_event(tc_trial *t) {
    const tn_event_ops *e = t->s.ops->events;
    t->event = TC_POISONED(tn_event_impl);
    tn_status status = e->create(t->s.device, 0, &t->event);
    if (!TC_GAVE(t, status, t->event, "create of an event"))
        return status;
    status = e->record(t->event, t->s.stream);
    if (status == TN_OK)
        status = e->wait(t->s.stream, t->event);
    if (status == TN_OK)
        status = tc_subject_sync(&t->s);
    if (status != TN_OK) {
        tc_subject_sync(&t->s);
        e->destroy(t->event);
    }
    return status;
}

static void undo_event(tc_trial *t) {
    t->s.ops->events->destroy(t->event);
}

/* An event that was recorded behind long work, and is recorded again. */
static bool prepare_record(tc_trial *t) {
    t->event = NULL;
    return t->s.ops->streams && tc_work_create(t->k, &t->s, &t->work) &&
           tc_must(t->k, TNP_EVENT_CREATE, t->s.ops->events->create(t->s.device, 0, &t->event),
                   "create of an event");
}

static bool arm_record(tc_trial *t) {
    return tc_work_hold(t->k, &t->work, t->s.stream, 0.02) &&
           tc_must(t->k, TNP_EVENT_RECORD, t->s.ops->events->record(t->event, t->s.stream),
                   "record");
}

/* A record that fails leaves the event where it was: not passed while the work before it goes on. */
static tn_status try_record(tc_trial *t) {
    const tn_event_ops *e = t->s.ops->events;
    tn_stream_impl *stream = t->s.stream;
    tn_status status = e->record(t->event, stream);
    tn_status passed = status == TN_OK ? TN_OK : e->query(t->event);
    bool was_idle = t->s.ops->streams->query(stream) == TN_OK;
    tn_status later = tc_subject_sync(&t->s);
    if (status != TN_OK && passed == TN_OK && !was_idle)
        TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE,
                  "record failed for want of host memory, and the event forgot what it had "
                  "recorded before: it is passed, and the work is not done");
    else if (status != TN_OK && later == TN_OK && e->query(t->event) != TN_OK)
        TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE,
                  "record failed for want of host memory, and the event waits for a point that was "
                  "never queued: the stream has run empty, and it is not passed");
    return status == TN_OK ? later : status;
}

static void finish_record(tc_trial *t) {
    if (t->event)
        t->s.ops->events->destroy(t->event);
    tc_release(t->k, NULL);
    t->k->owned = NULL; /* its list lies in the arena, which ends with the trial */
}

static tn_status alloc_in(tc_trial *t, int32_t space) {
    void *host;
    t->memory[0] = 0;
    return tc_alloc(&t->s, space, 100000, &t->memory[0], &host);
}

static tn_status try_alloc(tc_trial *t) {
    return alloc_in(t, TN_SPACE_DEVICE);
}

static void undo_alloc(tc_trial *t) {
    t->s.memory->dealloc(t->s.device, TN_SPACE_DEVICE, t->memory[0]);
}

static bool has_pinned(tc_trial *t) {
    return t->s.spaces >> TN_SPACE_PINNED & 1;
}

static tn_status try_pinned(tc_trial *t) {
    return alloc_in(t, TN_SPACE_PINNED);
}

static void undo_pinned(tc_trial *t) {
    t->s.memory->dealloc(t->s.device, TN_SPACE_PINNED, t->memory[0]);
}

/* ---- kernels ----------------------------------------------------------------------------- */

static bool prepare_kernel(tc_trial *t) {
    char why[TC_MESSAGE];
    const tn_kernel *kernel;
    tc_case *c = tc_arena_array(&t->k->arena, 1, sizeof *c);
    if (!c || !tc_case_parse(t->line, c, why) ||
        !tc_invocation_parse(c, &t->k->arena, &t->call, why) ||
        !tc_fill_for(&t->s, &t->call, t->call.seed, why))
        return TC_CASE_ERROR(t->k->out, "%s: %s", t->line, c ? why : "no memory");
    if (tc_find_kernel(&t->s, &t->call, NULL, &kernel) != TC_CLAIMED)
        return false;
    return tc_place_call(&t->s, t->s.stream, &t->call, &t->placed, t->k->out) &&
           tc_subject_sync(&t->s) == TN_OK;
}

static tn_status try_kernel(tc_trial *t) {
    tn_status status = tc_call_placed(&t->placed), later = tc_subject_sync(&t->s);
    return status != TN_OK ? status : later;
}

/* Has no record taken the call, though there was memory? Asked often, as a device may decline now and then; where it
 * takes all of these it was the memory. */
static bool is_declined(tc_trial *t, tn_status status) {
    enum { TRIES = 100 };
    bool declined = false;
    if (status != TN_ERR_UNSUPPORTED || !t->placed.subject)
        return false;
    for (int i = 0; i < TRIES && !declined; i++)
        declined = try_kernel(t) == TN_ERR_UNSUPPORTED;
    return declined;
}

/* The result of a run that succeeded is right. */
static void undo_kernel(tc_trial *t) {
    tc_result result = {0};
    if (tc_read_back(&t->placed, &result, t->k->out))
        tc_check_outputs(&t->call, &result, &t->s, t->k->out);
}

static void finish_kernel(tc_trial *t) {
    tc_unplace(&t->placed);
}

void tc_leave(tc_trial *t) {
    (void)t;
}

static const tc_stage stages[] = {
    {"init", TNP_INIT_RESULT, false, NULL, try_init, undo_init, tc_leave, NULL},
    {"open", TNP_OPEN_DEVICE, false, prepare_init, try_open, undo_open, tc_leave, NULL},
    {"stream", TNP_STREAM_CREATE, true, prepare_device, try_stream, undo_stream, tc_leave, NULL},
    {"event", TNP_EVENT_CREATE, true, has_streams, try_event, undo_event, tc_leave, NULL},
    {"record", TNP_EVENT_RECORD, true, prepare_record, try_record, tc_leave, finish_record,
     arm_record},
    {"alloc", TNP_ALLOC_HANDLE, true, NULL, try_alloc, undo_alloc, tc_leave, NULL},
    {"pinned", TNP_ALLOC_HANDLE, true, has_pinned, try_pinned, undo_pinned, tc_leave, NULL},
    {"kernel", TNP_KERNEL_RESULT, true, prepare_kernel, try_kernel, undo_kernel, finish_kernel,
     NULL},
    {0},
};

/* ---- trials ------------------------------------------------------------------------------ */

/* One attempt of which allocation n fails. Returns whether one did. */
static bool attempt(tc_trial *t, const tc_stage *stage, int64_t n) {
    tc_contract *k = t->k;
    char what[TC_MESSAGE];
    snprintf(what, sizeof what, "%s%s%.60s, when allocation %lld of host memory in it fails,",
             stage->name, t->line ? " " : "", t->line ? t->line : "", (long long)n);
    tc_host_forget();
    if (stage->arm && !stage->arm(t))
        return false;
    tc_host_fail_after(n);
    tn_status status = stage->attempt(t);
    bool failed = tc_host_failed();
    tc_host_fail_after(-1);
    if (status == TN_OK)
        stage->undo(t);
    else if (is_declined(t, status))
        failed = false; /* it is not about this number */
    else if (failed)
        tc_must_fail(k, TNP_HOST_ALLOC_FAILURE, status, TN_ERR_OUT_OF_MEMORY, what);
    else
        tc_must(k, stage->requirement, status, stage->name);
    return failed;
}

static bool prepare(tc_trial *t, const tc_stage *stage) {
    char why[TC_MESSAGE];
    tc_contract *k = t->k;
    if (stage->opens) {
        if (!tc_lifecycle_open(k, &t->s, tc_host_table(), TNP_NONE, "before host memory runs out"))
            return false;
    } else if (!tc_subject_load(&t->s, k->options->plugin, tc_host_table(), why))
        return TC_BROKEN(k, t->s.broken, "%s", why);
    return !stage->prepare || stage->prepare(t);
}

/* Allocation n fails, twice; then the call succeeds. False when no allocation has that number, or
 * the case is over. */
static bool try_number(tc_contract *k, const tc_stage *stage, const char *line, int64_t n,
                       bool *out_offered) {
    tc_trial t = {.k = k, .line = line};
    bool failed = false;
    *out_offered = prepare(&t, stage);
    if (*out_offered) {
        failed = attempt(&t, stage, n);
        uint64_t before = 0, after = 1;
        for (int i = 0; failed && stage->opens && before != after && i < 3;
             i++) { /* other programs take some and give some back, but not each time */
            before = tc_free_bytes(&t.s);
            after = attempt(&t, stage, n) ? tc_free_bytes(&t.s) : before;
        }
        if (failed && stage->opens && before != after)
            TC_BROKEN(k, TNP_ALLOC_OUT_OF_MEMORY,
                      "%s: after each failure for want of host memory (allocation %lld) info has "
                      "%s free device memory",
                      stage->name, (long long)n, after < before ? "less" : "more");
        int64_t blocks = tc_host_blocks();
        if (failed && attempt(&t, stage, n) && tc_host_blocks() > blocks)
            TC_BROKEN(k, TNP_HOST_ALLOC_FAILURE,
                      "%s: each failure for want of host memory (allocation %lld) keeps "
                      "some",
                      stage->name, (long long)n);
        tc_host_forget();
        tn_status status = stage->attempt(&t);
        if (!is_declined(&t, status) && tc_must(k, TNP_HOST_ALLOC_FAILURE, status,
                                                "the same call once there is host memory again"))
            stage->undo(&t);
    }
    if (stage->finish)
        stage->finish(&t);
    tc_subject_close(&t.s);
    tc_arena_finish(&k->arena);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED,
                          "after calls that lacked host memory, and shutdown");
    return failed && !tc_failed(k);
}

enum { MOST = 400 };

static bool try_stage(tc_contract *k, const tc_stage *stage, const char *line) {
    bool offered = true;
    for (int64_t n = 0; n < MOST && try_number(k, stage, line, n, &offered); n++)
        ;
    return offered;
}

static const char *const lines[] = {
    "kernel/add T=f32 self=[5,13] other=[5,13] alpha=2 data=exact",
    "kernel/add T=f32 self=[512,300] other=[512,300] alpha=2 data=exact",
    "kernel/copy S=f32 D=f32 self=[5,13] data=exact",
    "kernel/sum T=f32 self=[20,30] dim=[1] data=exact",
    "kernel/bmm T=f32 self=[2,33,40] mat2=[2,40,35] data=exact",
    "kernel/softmax T=f32 self=[20,30] dim=1 data=exact",
    "kernel/fill T=f32 value=3 out=[5,13] data=exact",
};

static const tc_stage *find_stage(const char *name) {
    static const tc_stage *const all[] = {stages, tc_transfer_stages, tc_capture_stages};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (const tc_stage *stage = all[i]; stage->name; stage++)
            if (strcmp(stage->name, name) == 0)
                return stage;
    return NULL;
}

static void host_memory_fails(tc_contract *k) {
    const char *name = tc_contract_word(k, "stage");
    const tc_stage *stage = find_stage(name);
    if (!stage)
        TC_CASE_ERROR(k->out, "stage=%s: there is no such stage", name);
    else if (strcmp(name, "kernel") == 0)
        for (size_t n = 0; n < sizeof lines / sizeof *lines && !tc_failed(k); n++)
            try_stage(k, stage, lines[n]);
    else if (!try_stage(k, stage, NULL) && !tc_failed(k))
        TC_NOT_OFFERED(k, "the device has nothing of stage=%s", name);
}

const tc_contract_row tc_host_memory_rows[] = {
    {"host-memory-fails", "stage=init", TC_SMOKE, host_memory_fails},
    {"host-memory-fails", "stage=open", TC_SMOKE, host_memory_fails},
    {"host-memory-fails", "stage=stream", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=event", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=record", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=alloc", TC_SMOKE, host_memory_fails},
    {"host-memory-fails", "stage=pinned", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=transfer", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=capture", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=launch", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=update", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=large", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=huge", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=peer", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=kernel", TC_STANDARD, host_memory_fails},
    {0},
};
