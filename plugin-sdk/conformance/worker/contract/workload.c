/* The cases contract/workload; see workload.h. */
#include "plugin-sdk/conformance/worker/contract/workload.h"

#include <pthread.h>
#include <string.h>
#include <tenon/kernels.h>

#include "plugin-sdk/conformance/worker/poison.h"
#include "plugin-sdk/conformance/worker/subject/watch.h"

bool tc_workload_must(tc_workload *w, tn_requirement requirement, tn_status status,
                      const char *what) {
    char text[256];
    if (status == TN_OK)
        return true;
    snprintf(text, sizeof text, "operation %d, %s: %s", w->op, w->what, what);
    return tc_must(w->k, requirement, status, text);
}

/* ---- operations -------------------------------------------------------------------------- */

static tc_place *any_place(tc_workload *w, int device) {
    return &w->places[device][tc_workload_below(w, TC_WORKLOAD_BUFFERS)];
}

static void range(tc_workload *w, const tc_buffer *b, uint64_t *offset, uint64_t *bytes) {
    *offset = tc_workload_below(w, b->bytes + 1);
    *bytes = tc_workload_below(w, 1 + b->bytes - *offset);
}

static bool op_action(tc_workload *w) {
    int lane = tc_any_lane(w, -1);
    bool done;
    if (lane == TC_NOBODY)
        return true;
    int device = w->lanes[lane].device;
    tc_action a = tc_draw_action(w, device, false);
    static const char *const names[TC_N_ACTS] = {
        "fill", "copy", "add", "read to pinned memory", "write from pinned memory", "copy_peer"};
    TC_DID(w, "%s of %llu bytes, %d at %llu to %d at %llu, on stream %d", names[a.kind],
           (unsigned long long)a.bytes, a.a, (unsigned long long)a.from, a.b,
           (unsigned long long)a.to, lane);
    bool ok = tc_action_take(w, &a, lane) && tc_action_queue(w, &a, lane, &done);
    if (ok && done)
        tc_action_apply(w, &a, device);
    tc_lane_did(w, lane);
    return ok;
}

static bool op_write(tc_workload *w) {
    int lane = tc_any_lane(w, -1);
    uint64_t offset, bytes;
    if (lane == TC_NOBODY)
        return true;
    const tc_lane *l = &w->lanes[lane];
    tc_place *p = any_place(w, l->device);
    range(w, &p->b, &offset, &bytes);
    for (uint64_t i = 0; i < bytes; i++)
        w->scratch[i] = (unsigned char)tc_next(&w->random);
    TC_DID(w, "write of %llu bytes at %llu on stream %d", (unsigned long long)bytes,
           (unsigned long long)offset, lane);
    memcpy(p->b.model + offset, w->scratch, bytes);
    bool ok = tc_take(w, p, lane) &&
              tc_workload_must(w, TNP_WRITE_CONSUMES_SOURCE,
                               l->s->memory->copy_from_host(l->s->device, l->stream, p->b.memory,
                                                            offset, w->scratch, 0, bytes),
                               "copy_from_host");
    memset(w->scratch, TC_POISON_SOURCE, bytes); /* it was consumed */
    tc_lane_did(w, lane);
    return ok;
}

static bool read_back(tc_workload *w, const tc_place *p, const unsigned char *target,
                      uint64_t offset, uint64_t bytes) {
    if (target[-1] != TC_POISON_TARGET || target[bytes] != TC_POISON_TARGET)
        return TC_BROKEN(w->k, TNP_TRANSFER_RANGE,
                         "operation %d, %s: bytes round the target were written", w->op, w->what);
    for (uint64_t i = 0; i < bytes; i++)
        if (target[i] != p->b.model[offset + i])
            return TC_BROKEN(w->k, tc_poison_breaks(target[i], TNP_STREAM_ORDER),
                             "operation %d, %s: byte %llu should be 0x%02x and is 0x%02x%s", w->op,
                             w->what, (unsigned long long)i, p->b.model[offset + i], target[i],
                             tc_poison_text(target[i]));
    return true;
}

static bool op_read(tc_workload *w) {
    int lane = tc_any_lane(w, -1);
    uint64_t offset, bytes;
    if (lane == TC_NOBODY)
        return true;
    const tc_lane *l = &w->lanes[lane];
    tc_place *p = any_place(w, l->device);
    range(w, &p->b, &offset, &bytes);
    TC_DID(w, "read of %llu bytes at %llu on stream %d", (unsigned long long)bytes,
           (unsigned long long)offset, lane);
    memset(w->scratch, TC_POISON_TARGET, bytes + 2);
    bool ok = tc_take(w, p, lane) &&
              tc_workload_must(w, TNP_READ_COMPLETE,
                               l->s->memory->copy_to_host(l->s->device, l->stream, w->scratch + 1,
                                                          0, p->b.memory, offset, bytes),
                               "copy_to_host") &&
              read_back(w, p, w->scratch + 1, offset, bytes);
    tc_lane_did(w, lane);
    return ok;
}

/* The host reads pinned memory, and writes some of it. */
static bool op_pinned(tc_workload *w) {
    int device = (int)tc_workload_below(w, (uint64_t)w->n_devices);
    tc_place *p = &w->pinned[device];
    uint64_t offset, bytes;
    if (!p->b.bytes)
        return true;
    TC_DID(w, "look at pinned memory of device %d", device);
    if (!tc_host_waits(w, p->last))
        return false;
    p->last.lane = TC_NOBODY;
    if (!tc_buffer_check(w->k, &p->b, NULL, TNP_TRANSFER_PINNED,
                         "pinned memory, when the work that uses it is done"))
        return false;
    range(w, &p->b, &offset, &bytes);
    for (uint64_t i = 0; i < bytes; i++)
        p->b.model[offset + i] = (unsigned char)tc_next(&w->random);
    memcpy((char *)p->b.host + offset, p->b.model + offset, bytes);
    return true;
}

static uint64_t any_size(tc_workload *w) {
    return 64 + tc_workload_below(w, 1ull << (8 + tc_workload_below(w, (uint64_t)w->size - 7)));
}

/* Memory is freed when nothing queued uses it; what comes in its place is new. */
static bool op_renew(tc_workload *w) {
    int device = (int)tc_workload_below(w, (uint64_t)w->n_devices);
    tc_place *p = any_place(w, device);
    if (tc_is_recorded(w, p))
        return true;
    TC_DID(w, "free and alloc on device %d", device);
    if (!tc_host_waits(w, p->last))
        return false;
    tc_graphs_drop(w, p);
    tc_buffer_destroy(&p->b);
    p->last.lane = TC_NOBODY;
    return tc_buffer_create(w->k, p->b.subject, TN_SPACE_DEVICE, any_size(w), &p->b);
}

static bool op_busy(tc_workload *w) {
    int lane = tc_any_lane(w, -1);
    if (lane == TC_NOBODY)
        return true;
    TC_DID(w, "long work on stream %d", lane);
    bool ok = tc_work_queue(w->k, &w->work[w->lanes[lane].device], w->lanes[lane].stream);
    tc_lane_did(w, lane);
    return ok;
}

static const struct choice {
    bool (*run)(tc_workload *w);
    uint64_t weight;
    bool streams; /* only where the device has them */
} choices[] = {
    {op_action, 16, false},   {op_write, 5, false},        {op_read, 4, false},
    {op_pinned, 3, false},    {op_renew, 1, false},        {op_busy, 2, false},
    {tc_op_mark, 2, true},    {tc_op_wait, 2, true},       {tc_op_ask, 2, true},
    {tc_op_elapsed, 1, true}, {tc_op_renew_mark, 1, true}, {tc_op_new_stream, 1, true},
    {tc_op_capture, 2, true}, {tc_op_launch, 5, true},     {tc_op_update, 1, true},
};

/* How often an operation is drawn. */
static uint64_t weight_of(const tc_workload *w, size_t i) {
    return choices[i].streams && !w->streams ? 0 : choices[i].weight;
}

bool tc_any_op(tc_workload *w) {
    uint64_t total = 0;
    size_t i = 0;
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++)
        total += weight_of(w, k);
    uint64_t at = tc_workload_below(w, total);
    while (at >= weight_of(w, i))
        at -= weight_of(w, i++);
    return choices[i].run(w);
}

/* ---- threads ----------------------------------------------------------------------------- */

/* One operation after the other, each by one of some threads: what a plugin keeps for a thread must not
 * matter. */
enum { MOST_THREADS = 3 };

typedef struct shift {
    tc_workload *w;
    int n_threads;
    int64_t n_ops;
    pthread_mutex_t lock;
    pthread_cond_t next;
    int turn; /* whose it is; n_threads: nobody's any more */
} shift;

typedef struct hand {
    shift *all;
    int number;
} hand;

static void one_turn(shift *all) {
    tc_workload *w = all->w;
    bool on = tc_any_op(w) && !tc_failed(w->k) && ++w->op < all->n_ops;
    all->turn = on ? (int)tc_workload_below(w, (uint64_t)all->n_threads) : all->n_threads;
}

static void *take_turns(void *context) {
    hand *h = context;
    shift *all = h->all;
    pthread_mutex_lock(&all->lock);
    while (all->turn != all->n_threads) {
        if (all->turn == h->number)
            one_turn(all);
        else
            pthread_cond_wait(&all->next, &all->lock);
        pthread_cond_broadcast(&all->next);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

static void run_ops(tc_workload *w, int n_threads, int64_t n_ops) {
    shift all = {.w = w, .n_threads = n_threads, .n_ops = n_ops};
    hand hands[MOST_THREADS];
    pthread_t threads[MOST_THREADS];
    int started = 1;
    pthread_mutex_init(&all.lock, NULL);
    pthread_cond_init(&all.next, NULL);
    for (int i = 0; i < n_threads; i++)
        hands[i] = (hand){&all, i};
    while (started < n_threads &&
           pthread_create(&threads[started], NULL, take_turns, &hands[started]) == 0)
        started++;
    if (started < n_threads) {
        TC_CASE_ERROR(w->k->out, "a thread cannot be started");
        pthread_mutex_lock(&all.lock);
        all.turn = n_threads;
        pthread_cond_broadcast(&all.next);
        pthread_mutex_unlock(&all.lock);
    }
    take_turns(&hands[0]);
    while (--started > 0)
        pthread_join(threads[started], NULL);
    pthread_cond_destroy(&all.next);
    pthread_mutex_destroy(&all.lock);
}

/* ---- a workload -------------------------------------------------------------------------- */

static bool set_up_device(tc_workload *w, int device) {
    tc_subject *s = &w->devices.at[device];
    if (!tc_work_create(w->k, s, &w->work[device]))
        return false;
    w->work[device].fills = 1 + w->work[device].fills / 6;
    for (int i = 0; i < TC_WORKLOAD_BUFFERS; i++) {
        w->places[device][i].last.lane = TC_NOBODY;
        if (!tc_buffer_create(w->k, s, TN_SPACE_DEVICE, any_size(w), &w->places[device][i].b))
            return false;
    }
    w->pinned[device].last.lane = TC_NOBODY;
    return !(s->spaces >> TN_SPACE_PINNED & 1) ||
           tc_buffer_create(w->k, s, TN_SPACE_PINNED, any_size(w), &w->pinned[device].b);
}

static bool set_up_lane(tc_workload *w, int lane) {
    tc_lane *l = &w->lanes[lane];
    l->device = lane % w->n_devices;
    l->s = &w->devices.at[l->device];
    return !w->streams || (tc_stream_create(w->k, l->s, 0, &l->stream) &&
                           tc_event_create(w->k, l->s, 0, &l->before));
}

static bool set_up_mark(tc_workload *w, int i) {
    tc_mark *m = &w->marks[i];
    *m = (tc_mark){.s = &w->devices.at[i % w->n_devices], .recorded = {TC_NOBODY, 0}};
    return tc_event_create(w->k, m->s, TN_EVENT_TIMING, &m->event);
}

static bool set_up(tc_workload *w) {
    bool ok = true;
    w->scratch = tc_arena_array(&w->k->arena, 66 + (1ull << w->size), 1);
    if (!w->scratch)
        return TC_CASE_ERROR(w->k->out, "the host has no memory for this case");
    for (int i = 0; i < w->n_devices && ok; i++)
        ok = set_up_device(w, i);
    for (int i = 0; i < w->n_lanes && ok; i++)
        ok = set_up_lane(w, i);
    for (int i = 0; i < TC_WORKLOAD_MARKS && w->streams && ok; i++)
        ok = set_up_mark(w, i);
    return ok;
}

static void finish(tc_workload *w) {
    for (int i = 0; i < w->n_lanes; i++)
        if (w->lanes[i].stream) {
            TC_DID(w, "synchronize of stream %d at the end", i);
            tc_workload_must(w, TNP_STREAM_SYNCHRONIZE,
                             w->lanes[i].s->ops->streams->synchronize(w->lanes[i].stream), "");
        }
    for (int d = 0; d < w->n_devices; d++)
        for (int i = 0; i < TC_WORKLOAD_BUFFERS && !tc_failed(w->k); i++)
            tc_buffer_check(w->k, &w->places[d][i].b, w->devices.at[d].stream, TNP_STREAM_ORDER,
                            "a buffer at the end of the workload");
    for (int d = 0; d < w->n_devices && !tc_failed(w->k); d++)
        if (w->pinned[d].b.bytes)
            tc_buffer_check(w->k, &w->pinned[d].b, NULL, TNP_TRANSFER_PINNED,
                            "pinned memory at the end of the workload");
    tc_graphs_drop(w, NULL);
}

/* The record that the core would ask first, where that needs neither `supports` nor `prepare`. */
static const tn_kernel *find_add(tc_subject *s) {
    for (uint64_t i = 0; i < s->plugin->n_kernels; i++) {
        const tn_kernel *kernel = s->plugin->kernels[i];
        if (kernel->schema_hash == TN_KERNEL_HASH_add &&
            (kernel->dtypes[0] & TN_DTYPE_BIT(TN_I32)) &&
            (!s->ops->accepts || s->ops->accepts(s->device, kernel) == TN_OK))
            return kernel->prepare || kernel->supports ? NULL : kernel;
    }
    return NULL;
}

/* NULL: workloads do without. That it is complete, the cases of captures see. */
static const tn_ext_capture *find_capture(tc_subject *s) {
    const tn_ext_capture *ext = tc_subject_extension(s, TN_EXT_CAPTURE);
    bool has = ext && TN_HAS(ext, tn_ext_capture, destroy) && ext->begin && ext->end &&
               ext->abandon && ext->launch && ext->destroy;
    return has && s->ops->streams ? ext : NULL;
}

static void run(tc_contract *k) {
    int64_t n_ops = tc_contract_int(k, "ops"), n_threads = tc_contract_int(k, "threads");
    tc_workload *w = tc_arena_array(&k->arena, 1, sizeof *w);
    if (!w) {
        TC_CASE_ERROR(k->out, "the host has no memory for this case");
        return;
    }
    *w = (tc_workload){.k = k,
                       .random = {k->c->seed + 1},
                       .n_devices = (int)tc_contract_int(k, "devices"),
                       .n_lanes = (int)tc_contract_int(k, "streams"),
                       .size = (int)tc_contract_int(k, "size"),
                       .streams = k->subject->ops->streams};
    if (w->n_lanes < 1 || w->n_lanes > TC_MOST_LANES || w->n_devices < 1 ||
        w->n_devices > TC_WORKLOAD_DEVICES || n_threads < 1 || n_threads > MOST_THREADS ||
        w->size < 8 || w->size > 24 || tc_failed(k)) {
        TC_CASE_ERROR(k->out,
                      "streams= is 1 to %d, devices= 1 to %d, threads= 1 to %d, size= 8 to 24",
                      TC_MOST_LANES, TC_WORKLOAD_DEVICES, MOST_THREADS);
        return;
    }
    if (!w->streams)
        w->n_lanes = w->n_devices;
    w->devices = (tc_devices){.k = k, .n = 1, .at = {*k->subject}};
    w->capture = find_capture(k->subject);
    w->no_peer =
        !TN_HAS(k->subject->memory, tn_memory_ops, copy_peer) || !k->subject->memory->copy_peer;
    if (w->n_devices == 1 || tc_devices_open(k, &w->devices)) {
        for (int i = 0; i < w->n_devices; i++)
            w->add[i] = find_add(&w->devices.at[i]);
        if (set_up(w))
            run_ops(w, (int)n_threads, n_ops);
        finish(w);
    }
    tc_devices_close(&w->devices);
}

/* `n` tells workloads apart, as the seed follows from the line. */
#define ROW(streams, devices, threads, size, ops, n, set) \
    { \
        "workload", \
            "streams=" #streams " devices=" #devices " threads=" #threads " size=" #size \
            " ops=" #ops " n=" #n, \
            set, run \
    }
#define ROWS(streams, devices, threads, size, ops) \
    ROW(streams, devices, threads, size, ops, 1, TC_STANDARD), \
        ROW(streams, devices, threads, size, ops, 2, TC_STANDARD), \
        ROW(streams, devices, threads, size, ops, 3, TC_STANDARD), \
        ROW(streams, devices, threads, size, ops, 4, TC_STANDARD), \
        ROW(streams, devices, threads, size, ops, 5, TC_STANDARD), \
        ROW(streams, devices, threads, size, ops, 6, TC_STANDARD), \
        ROW(streams, devices, threads, size, ops, 7, TC_STANDARD), \
        ROW(streams, devices, threads, size, ops, 8, TC_STANDARD)

#define MORE(streams, devices, threads, size, ops) \
    ROW(streams, devices, threads, size, ops, 11, TC_EXHAUSTIVE), \
        ROW(streams, devices, threads, size, ops, 12, TC_EXHAUSTIVE), \
        ROW(streams, devices, threads, size, ops, 13, TC_EXHAUSTIVE), \
        ROW(streams, devices, threads, size, ops, 14, TC_EXHAUSTIVE), \
        ROW(streams, devices, threads, size, ops, 15, TC_EXHAUSTIVE), \
        ROW(streams, devices, threads, size, ops, 16, TC_EXHAUSTIVE), \
        ROW(streams, devices, threads, size, ops, 17, TC_EXHAUSTIVE), \
        ROW(streams, devices, threads, size, ops, 18, TC_EXHAUSTIVE)

const tc_contract_row tc_workload_rows[] = {
    ROW(1, 1, 1, 12, 60, 1, TC_SMOKE),
    ROW(3, 1, 1, 12, 60, 1, TC_SMOKE),
    ROW(4, 2, 1, 12, 100, 1, TC_SMOKE),
    ROWS(1, 1, 1, 12, 100),
    ROWS(2, 1, 1, 12, 200),
    ROWS(3, 1, 3, 12, 200),
    ROWS(4, 1, 1, 12, 300),
    ROWS(3, 1, 1, 20, 100),
    ROWS(4, 2, 1, 12, 200),
    ROWS(4, 2, 3, 16, 200),
    MORE(1, 1, 1, 12, 400),
    MORE(2, 1, 1, 10, 800),
    MORE(3, 1, 3, 12, 800),
    MORE(4, 1, 1, 14, 800),
    MORE(4, 2, 1, 12, 800),
    MORE(4, 2, 3, 16, 800),
    ROW(4, 1, 3, 12, 3000, 1, TC_EXHAUSTIVE),
    ROW(4, 2, 3, 14, 3000, 2, TC_EXHAUSTIVE),
    {0},
};
