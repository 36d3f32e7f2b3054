/* Random workloads: writes, reads, copies, fills and kernels on several streams, joined by events
 * where data goes from one to another, and compared with a model on the host. What is wrong with
 * order, ranges or lifetimes shows here sooner or later.
 *
 * Each buffer belongs to the stream that used it last. Who uses it next waits for that stream by an
 * event, so the result is that of the operations one after the other.
 */
#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/subject/watch.h"

#include "plugin-sdk/conformance/worker/poison.h"

#include <stdio.h>
#include <string.h>
#include <tenon/kernels.h>

enum { MOST_STREAMS = 4, N_BUFFERS = 6, NOBODY = -1 };

typedef struct workload {
    tc_contract *k;
    tc_subject *s;
    tc_random random;
    int n_streams;
    tn_stream_impl *streams[MOST_STREAMS];
    tc_buffer buffers[N_BUFFERS], pinned;
    int owner[N_BUFFERS];
    int pinned_user; /* the stream that may still use the pinned memory */
    tc_work work[MOST_STREAMS];
    const tn_kernel *add;
    int op;
    char what[128]; /* the operation, for messages */
} workload;

static uint64_t below(workload *w, uint64_t n) {
    return tc_below(&w->random, n);
}

static int any_stream(workload *w) {
    return (int)below(w, (uint64_t)w->n_streams);
}

#define DID(w, ...) snprintf((w)->what, sizeof(w)->what, __VA_ARGS__)

static bool must(workload *w, tn_requirement requirement, tn_status status) {
    char text[192];
    snprintf(text, sizeof text, "operation %d, %s,", w->op, w->what);
    return tc_must(w->k, requirement, status, text);
}

/* Stream `to` goes on when all that `from` has queued so far is done. */
static bool join(workload *w, int from, int to) {
    const tn_event_ops *events = w->s->ops->events;
    tn_event_impl *event;
    if (from == NOBODY || from == to)
        return true;
    if (!tc_event_create(w->k, w->s, 0, &event))
        return false;
    bool ok = must(w, TNP_EVENT_RECORD, events->record(event, w->streams[from])) &&
              must(w, TNP_EVENT_WAIT, events->wait(w->streams[to], event));
    if (ok && below(w, 3) == 0) /* a later mark is not waited for */
        ok = must(w, TNP_EVENT_RECORD, events->record(event, w->streams[any_stream(w)]));
    tc_event_destroy(w->k, event); /* those that wait still do */
    return ok;
}

/* Stream `to` may use the buffer. */
static bool take(workload *w, int buffer, int to) {
    int from = w->owner[buffer];
    w->owner[buffer] = to;
    return join(w, from, to);
}

static void range(workload *w, const tc_buffer *b, uint64_t *offset, uint64_t *bytes) {
    *offset = below(w, b->bytes);
    *bytes = 1 + below(w, b->bytes - *offset);
}

/* ---- operations -------------------------------------------------------------------------- */

static bool op_write(workload *w) {
    int b = (int)below(w, N_BUFFERS), stream = any_stream(w);
    tc_buffer *to = &w->buffers[b];
    unsigned char source[4096];
    uint64_t offset, bytes;
    range(w, to, &offset, &bytes);
    bytes = bytes < sizeof source ? bytes : sizeof source;
    for (uint64_t i = 0; i < bytes; i++)
        source[i] = (unsigned char)tc_next(&w->random);
    DID(w, "write of %llu bytes to buffer %d at %llu on stream %d", (unsigned long long)bytes, b,
        (unsigned long long)offset, stream);
    memcpy(to->model + offset, source, bytes);
    if (!take(w, b, stream) ||
        !must(w, TNP_WRITE_CONSUMES_SOURCE,
              w->s->memory->copy_from_host(w->s->device, w->streams[stream], to->memory, offset,
                                           source, 0, bytes)))
        return false;
    memset(source, TC_POISON_SOURCE, sizeof source); /* it was consumed */
    return true;
}

static bool op_read(workload *w) {
    int b = (int)below(w, N_BUFFERS), stream = any_stream(w);
    tc_buffer *from = &w->buffers[b];
    unsigned char target[4096 + 2];
    uint64_t offset, bytes;
    range(w, from, &offset, &bytes);
    bytes = bytes < 4096 ? bytes : 4096;
    memset(target, TC_POISON_TARGET, sizeof target);
    DID(w, "read of %llu bytes from buffer %d at %llu on stream %d", (unsigned long long)bytes, b,
        (unsigned long long)offset, stream);
    if (!take(w, b, stream) ||
        !must(w, TNP_READ_COMPLETE,
              w->s->memory->copy_to_host(w->s->device, w->streams[stream], target + 1, 0,
                                         from->memory, offset, bytes)))
        return false;
    if (target[0] != TC_POISON_TARGET || target[bytes + 1] != TC_POISON_TARGET)
        TC_BROKEN(w->k, TNP_TRANSFER_RANGE, "operation %d, %s: bytes round the target were written",
                  w->op, w->what);
    for (uint64_t i = 0; i < bytes; i++)
        if (target[i + 1] != from->model[offset + i])
            return TC_BROKEN(w->k, tc_poison_breaks(target[i + 1], TNP_STREAM_ORDER),
                             "operation %d, %s: byte %llu should be 0x%02x and is 0x%02x%s", w->op,
                             w->what, (unsigned long long)i, from->model[offset + i], target[i + 1],
                             tc_poison_text(target[i + 1]));
    return true;
}

static bool op_fill(workload *w) {
    int b = (int)below(w, N_BUFFERS), stream = any_stream(w);
    tc_buffer *to = &w->buffers[b];
    uint8_t value = (uint8_t)tc_next(&w->random);
    uint64_t offset, bytes;
    range(w, to, &offset, &bytes);
    DID(w, "fill of %llu bytes of buffer %d at %llu with 0x%x on stream %d",
        (unsigned long long)bytes, b, (unsigned long long)offset, value, stream);
    memset(to->model + offset, value, bytes);
    return take(w, b, stream) && must(w, TNP_FILL_VALUE,
                                      w->s->memory->fill(w->s->device, w->streams[stream],
                                                         to->memory, offset, value, bytes));
}

static bool op_copy(workload *w) {
    int a = (int)below(w, N_BUFFERS), b = (int)below(w, N_BUFFERS), stream = any_stream(w);
    tc_buffer *from = &w->buffers[a], *to = &w->buffers[b];
    uint64_t start, bytes, target, room;
    range(w, from, &start, &bytes);
    range(w, to, &target, &room);
    bytes = bytes < room ? bytes : room;
    if (a == b) { /* the ranges do not overlap */
        start = below(w, from->bytes / 2);
        target = from->bytes / 2 + below(w, from->bytes / 2);
        bytes = bytes < from->bytes / 2 - start ? bytes : from->bytes / 2 - start;
        bytes = bytes < from->bytes - target ? bytes : from->bytes - target;
        if (bytes == 0)
            return true;
    }
    DID(w, "copy of %llu bytes from buffer %d at %llu to buffer %d at %llu on stream %d",
        (unsigned long long)bytes, a, (unsigned long long)start, b, (unsigned long long)target,
        stream);
    memcpy(to->model + target, from->model + start, bytes);
    return take(w, a, stream) && take(w, b, stream) &&
           must(w, TNP_TRANSFER_RANGE,
                w->s->memory->copy(w->s->device, w->streams[stream], to->memory, target,
                                   from->memory, start, bytes));
}

static bool op_pinned(workload *w) {
    int b = (int)below(w, N_BUFFERS), stream = any_stream(w);
    tc_buffer *device = &w->buffers[b];
    if (!w->pinned.bytes)
        return op_read(w);
    uint64_t bytes = device->bytes < w->pinned.bytes ? device->bytes : w->pinned.bytes;
    bool read = below(w, 2);
    DID(w, "%s pinned memory of %llu bytes of buffer %d on stream %d",
        read ? "read to" : "write from", (unsigned long long)bytes, b, stream);
    if (w->pinned_user != NOBODY && w->s->ops->streams &&
        !must(w, TNP_STREAM_SYNCHRONIZE,
              w->s->ops->streams->synchronize(w->streams[w->pinned_user])))
        return false;
    if (!tc_buffer_check(w->k, &w->pinned, NULL, TNP_TRANSFER_PINNED,
                         "pinned memory after its stream was synchronized"))
        return false;
    w->pinned_user = stream;
    if (!take(w, b, stream))
        return false;
    if (read) {
        memcpy(w->pinned.model, device->model, bytes);
        return must(w, TNP_TRANSFER_PINNED,
                    w->s->memory->copy_to_host(w->s->device, w->streams[stream], w->pinned.host,
                                               w->pinned.memory, device->memory, 0, bytes));
    }
    for (uint64_t i = 0; i < bytes; i++)
        w->pinned.model[i] = (unsigned char)tc_next(&w->random);
    memcpy(w->pinned.host, w->pinned.model, bytes);
    memcpy(device->model, w->pinned.model, bytes);
    return must(w, TNP_TRANSFER_PINNED,
                w->s->memory->copy_from_host(w->s->device, w->streams[stream], device->memory, 0,
                                             w->pinned.host, w->pinned.memory, bytes));
}

static tn_tensor_view view(const tc_buffer *b, uint64_t offset, const int64_t *n,
                           const int64_t *one) {
    return (tn_tensor_view){.struct_size = sizeof(tn_tensor_view),
                            .memory = b->memory,
                            .offset = offset,
                            .numel = *n,
                            .dtype = TN_I32,
                            .rank = 1,
                            .sizes = n,
                            .strides = one};
}

/* out = a + 3 * b over i32. What was handed over is overwritten as soon as run returns. A record
 * that declines is not asked again. */
static bool op_add(workload *w) {
    int a = (int)below(w, N_BUFFERS), b = (a + 1) % N_BUFFERS, c = (a + 2) % N_BUFFERS,
        stream = any_stream(w);
    const tc_buffer *x = &w->buffers[a], *y = &w->buffers[b];
    tc_buffer *z = &w->buffers[c];
    if (!w->add)
        return op_fill(w);
    uint64_t skip = 4 * below(w, 4);
    uint64_t least = x->bytes < y->bytes ? x->bytes : y->bytes;
    least = least < z->bytes ? least : z->bytes;
    int64_t n = (int64_t)((least - skip) / 4), one = 1, n_elements = n;
    tn_tensor_view views[] = {view(x, skip, &n, &one), view(y, 0, &n, &one),
                              view(z, skip, &n, &one)};
    const tn_tensor_view *outs[] = {&views[2]};
    tn_cell cells[] = {{.tag = TN_CELL_TENSOR, .v.view = &views[0]},
                       {.tag = TN_CELL_TENSOR, .v.view = &views[1]},
                       {.tag = TN_CELL_I64, .v.i64 = 3}};
    tn_call call = {.struct_size = sizeof call,
                    .device = w->s->device,
                    .stream = w->streams[stream],
                    .user = w->add->user,
                    .args = cells,
                    .outs = outs,
                    .n_args = 3,
                    .n_outs = 1};
    DID(w, "add of %lld elements of buffers %d and %d to %d on stream %d", (long long)n, a, b, c,
        stream);
    if (!take(w, a, stream) || !take(w, b, stream) || !take(w, c, stream))
        return false;
    tn_status status = tc_watch_run(w->add, &call);
    memset(views, TC_POISON_CALL, sizeof views);
    memset(cells, TC_POISON_CALL, sizeof cells);
    memset(&call, TC_POISON_CALL, sizeof call);
    outs[0] = NULL;
    n = -1, one = -1;
    if (status == TN_ERR_UNSUPPORTED) {
        w->add = NULL;
        return true;
    }
    for (int64_t i = 0; i < n_elements; i++) {
        uint32_t u, v;
        memcpy(&u, x->model + skip + 4 * (uint64_t)i, 4);
        memcpy(&v, y->model + 4 * (uint64_t)i, 4);
        u += 3 * v;
        memcpy(z->model + skip + 4 * (uint64_t)i, &u, 4);
    }
    return must(w, TNP_KERNEL_STREAM, status);
}

/* Memory is freed when nothing queued uses it; what comes in its place is new. */
static bool op_renew(workload *w) {
    int b = (int)below(w, N_BUFFERS);
    DID(w, "free and alloc of buffer %d", b);
    if (w->owner[b] != NOBODY && w->s->ops->streams &&
        !must(w, TNP_STREAM_SYNCHRONIZE, w->s->ops->streams->synchronize(w->streams[w->owner[b]])))
        return false;
    w->owner[b] = NOBODY;
    tc_buffer_destroy(&w->buffers[b]);
    return tc_buffer_create(w->k, w->s, TN_SPACE_DEVICE, 64 + below(w, 4000), &w->buffers[b]);
}

static bool op_busy(workload *w) {
    int stream = any_stream(w);
    DID(w, "long work on stream %d", stream);
    return tc_work_queue(w->k, &w->work[stream], w->streams[stream]);
}

/* destroy finishes what is queued: afterwards nobody owns what the stream used. */
static bool op_new_stream(workload *w) {
    int stream = any_stream(w);
    DID(w, "destroy of stream %d", stream);
    if (!w->s->ops->streams || w->n_streams < 2)
        return op_fill(w);
    tc_stream_destroy(w->k, w->streams[stream]);
    for (int b = 0; b < N_BUFFERS; b++)
        if (w->owner[b] == stream)
            w->owner[b] = NOBODY;
    if (w->pinned_user == stream)
        w->pinned_user = NOBODY;
    return tc_stream_create(w->k, w->s, (int32_t)below(w, 3) - 1, &w->streams[stream]);
}

/* ---- a workload -------------------------------------------------------------------------- */

static const struct choice {
    bool (*run)(workload *w);
    uint64_t weight;
} choices[] = {{op_write, 5}, {op_read, 4},  {op_fill, 4}, {op_copy, 6},      {op_pinned, 2},
               {op_add, 6},   {op_renew, 1}, {op_busy, 2}, {op_new_stream, 1}};

static bool any_op(workload *w) {
    uint64_t total = 0;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        total += choices[i].weight;
    uint64_t at = below(w, total);
    for (size_t i = 0;; i++) {
        if (at < choices[i].weight)
            return choices[i].run(w);
        at -= choices[i].weight;
    }
}

static bool set_up(workload *w) {
    for (int i = 0; i < w->n_streams; i++)
        if (w->s->ops->streams && !tc_stream_create(w->k, w->s, 0, &w->streams[i]))
            return false;
    for (int i = 0; i < w->n_streams; i++) {
        if (!tc_work_create(w->k, w->s, &w->work[i]))
            return false;
        w->work[i].fills = 1 + w->work[i].fills / 6;
    }
    for (int b = 0; b < N_BUFFERS; b++) {
        w->owner[b] = NOBODY;
        if (!tc_buffer_create(w->k, w->s, TN_SPACE_DEVICE, 64 + below(w, 4000), &w->buffers[b]))
            return false;
    }
    return !(w->s->spaces >> TN_SPACE_PINNED & 1) ||
           tc_buffer_create(w->k, w->s, TN_SPACE_PINNED, 3000, &w->pinned);
}

static void finish(workload *w) {
    char what[64];
    for (int i = 0; i < w->n_streams; i++)
        if (w->streams[i]) {
            DID(w, "synchronize of stream %d at the end", i);
            must(w, TNP_STREAM_SYNCHRONIZE, w->s->ops->streams->synchronize(w->streams[i]));
        }
    for (int b = 0; b < N_BUFFERS && !tc_failed(w->k); b++) {
        snprintf(what, sizeof what, "buffer %d at the end of the workload", b);
        tc_buffer_check(w->k, &w->buffers[b], w->s->stream, TNP_STREAM_ORDER, what);
    }
    if (!tc_failed(w->k) && w->pinned.bytes)
        tc_buffer_check(w->k, &w->pinned, NULL, TNP_TRANSFER_PINNED,
                        "pinned memory at the end of the workload");
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

static void run(tc_contract *k) {
    workload w = {.k = k, .s = k->subject, .random = {k->c->seed + 1}, .pinned_user = NOBODY};
    int64_t n_ops = tc_contract_int(k, "ops");
    w.n_streams = (int)tc_contract_int(k, "streams");
    if (w.n_streams < 1 || w.n_streams > MOST_STREAMS || tc_failed(k)) {
        TC_CASE_ERROR(k->out, "streams= is 1 to %d", MOST_STREAMS);
        return;
    }
    if (!k->subject->ops->streams)
        w.n_streams = 1;
    w.add = find_add(k->subject);
    bool ok = set_up(&w);
    for (w.op = 0; ok && w.op < n_ops && !tc_failed(k); w.op++)
        ok = any_op(&w);
    finish(&w);
}

/* `n` tells workloads apart, as the seed follows from the line. */
#define ROW(streams, ops, n, set) \
    { "workload", "streams=" #streams " ops=" #ops " n=" #n, set, run }
#define ROWS(streams, ops, n) \
    ROW(streams, ops, n##0, TC_STANDARD), ROW(streams, ops, n##1, TC_STANDARD), \
        ROW(streams, ops, n##2, TC_STANDARD), ROW(streams, ops, n##3, TC_STANDARD), \
        ROW(streams, ops, n##4, TC_STANDARD), ROW(streams, ops, n##5, TC_STANDARD), \
        ROW(streams, ops, n##6, TC_STANDARD), ROW(streams, ops, n##7, TC_STANDARD), \
        ROW(streams, ops, n##8, TC_STANDARD), ROW(streams, ops, n##9, TC_STANDARD)

const tc_contract_row tc_workload_rows[] = {
    ROW(1, 60, 1, TC_SMOKE),
    ROW(3, 60, 1, TC_SMOKE),
    ROWS(1, 100, 1),
    ROWS(2, 100, 1),
    ROWS(2, 200, 2),
    ROWS(3, 150, 1),
    ROWS(4, 120, 1),
    ROWS(4, 200, 2),
    ROW(4, 2000, 1, TC_EXHAUSTIVE),
    ROW(3, 2000, 2, TC_EXHAUSTIVE),
    {0},
};
