/* Random programs: writes, reads, copies, fills and kernels on several streams, joined by events
 * where data goes from one to another, and compared with a model on the host. What is wrong with
 * order, ranges or lifetimes shows here sooner or later.
 *
 * Each buffer belongs to the stream that used it last. Who uses it next waits for that stream by an
 * event, so the result is that of the operations one after the other.
 */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include <stdio.h>
#include <string.h>
#include <tenon/kernels.h>

enum { MOST_STREAMS = 4, N_BUFFERS = 6, NOBODY = -1 };

typedef struct program {
    tc_contract *k;
    tc_subject *s;
    tc_random random;
    int n_streams;
    tn_pstream *streams[MOST_STREAMS];
    tc_buffer buffers[N_BUFFERS], pinned;
    int owner[N_BUFFERS];
    int pinned_user; /* the stream that may still use the pinned memory */
    tc_work work[MOST_STREAMS];
    const tn_kernel *add;
    int op;
    char what[128]; /* the operation, for messages */
} program;

static uint64_t below(program *p, uint64_t n) {
    return tc_below(&p->random, n);
}

static int any_stream(program *p) {
    return (int)below(p, (uint64_t)p->n_streams);
}

#define DID(p, ...) snprintf((p)->what, sizeof(p)->what, __VA_ARGS__)

static bool must(program *p, tn_requirement requirement, tn_status status) {
    char text[192];
    snprintf(text, sizeof text, "operation %d, %s,", p->op, p->what);
    return tc_must(p->k, requirement, status, text);
}

/* Stream `to` goes on when all that `from` has queued so far is done. */
static bool join(program *p, int from, int to) {
    const tn_event_ops *events = p->s->ops->events;
    tn_pevent *event;
    if (from == NOBODY || from == to)
        return true;
    if (!tc_event_create(p->k, p->s, 0, &event))
        return false;
    bool ok = must(p, TNP_EVENT_RECORD, events->record(event, p->streams[from])) &&
              must(p, TNP_EVENT_WAIT, events->wait(p->streams[to], event));
    if (ok && below(p, 3) == 0) /* a later mark is not waited for */
        ok = must(p, TNP_EVENT_RECORD, events->record(event, p->streams[any_stream(p)]));
    events->destroy(event); /* those that wait still do */
    return ok;
}

/* Stream `to` may use the buffer. */
static bool take(program *p, int buffer, int to) {
    int from = p->owner[buffer];
    p->owner[buffer] = to;
    return join(p, from, to);
}

static void range(program *p, const tc_buffer *b, uint64_t *offset, uint64_t *bytes) {
    *offset = below(p, b->bytes);
    *bytes = 1 + below(p, b->bytes - *offset);
}

/* ---- operations -------------------------------------------------------------------------- */

static bool op_write(program *p) {
    int b = (int)below(p, N_BUFFERS), stream = any_stream(p);
    tc_buffer *to = &p->buffers[b];
    unsigned char source[4096];
    uint64_t offset, bytes;
    range(p, to, &offset, &bytes);
    bytes = bytes < sizeof source ? bytes : sizeof source;
    for (uint64_t i = 0; i < bytes; i++)
        source[i] = (unsigned char)tc_next(&p->random);
    DID(p, "write of %llu bytes to buffer %d at %llu on stream %d", (unsigned long long)bytes, b,
        (unsigned long long)offset, stream);
    memcpy(to->model + offset, source, bytes);
    if (!take(p, b, stream) || !must(p, TNP_WRITE_CONSUMES_SOURCE,
                                     p->s->memory->write(p->s->device, p->streams[stream],
                                                         to->memory, offset, source, bytes)))
        return false;
    memset(source, 0xee, sizeof source); /* it was consumed */
    return true;
}

static bool op_read(program *p) {
    int b = (int)below(p, N_BUFFERS), stream = any_stream(p);
    tc_buffer *from = &p->buffers[b];
    unsigned char target[4096 + 2];
    uint64_t offset, bytes;
    range(p, from, &offset, &bytes);
    bytes = bytes < 4096 ? bytes : 4096;
    memset(target, 0xee, sizeof target);
    DID(p, "read of %llu bytes from buffer %d at %llu on stream %d", (unsigned long long)bytes, b,
        (unsigned long long)offset, stream);
    if (!take(p, b, stream) || !must(p, TNP_READ_COMPLETE,
                                     p->s->memory->read(p->s->device, p->streams[stream],
                                                        target + 1, from->memory, offset, bytes)))
        return false;
    if (target[0] != 0xee || target[bytes + 1] != 0xee)
        TC_BROKEN(p->k, TNP_TRANSFER_RANGE, "operation %d, %s: bytes round the target were written",
                  p->op, p->what);
    for (uint64_t i = 0; i < bytes; i++)
        if (target[i + 1] != from->model[offset + i]) {
            TC_BROKEN(p->k, TNP_STREAM_ORDER,
                      "operation %d, %s: byte %llu should be 0x%02x and is 0x%02x", p->op, p->what,
                      (unsigned long long)i, from->model[offset + i], target[i + 1]);
            return false;
        }
    return true;
}

static bool op_fill(program *p) {
    int b = (int)below(p, N_BUFFERS), stream = any_stream(p);
    tc_buffer *to = &p->buffers[b];
    uint32_t value = (uint32_t)tc_next(&p->random);
    uint64_t offset, bytes;
    range(p, to, &offset, &bytes);
    DID(p, "fill of %llu bytes of buffer %d at %llu with 0x%x on stream %d",
        (unsigned long long)bytes, b, (unsigned long long)offset, value, stream);
    memset(to->model + offset, (int)(value & 0xff), bytes);
    return take(p, b, stream) && must(p, TNP_FILL_VALUE,
                                      p->s->memory->fill(p->s->device, p->streams[stream],
                                                         to->memory, offset, value, bytes));
}

static bool op_copy(program *p) {
    int a = (int)below(p, N_BUFFERS), b = (int)below(p, N_BUFFERS), stream = any_stream(p);
    tc_buffer *from = &p->buffers[a], *to = &p->buffers[b];
    uint64_t start, bytes, target, room;
    range(p, from, &start, &bytes);
    range(p, to, &target, &room);
    bytes = bytes < room ? bytes : room;
    if (a == b) { /* the ranges do not overlap */
        start = below(p, from->bytes / 2);
        target = from->bytes / 2 + below(p, from->bytes / 2);
        bytes = bytes < from->bytes / 2 - start ? bytes : from->bytes / 2 - start;
        bytes = bytes < from->bytes - target ? bytes : from->bytes - target;
        if (bytes == 0)
            return true;
    }
    DID(p, "copy of %llu bytes from buffer %d at %llu to buffer %d at %llu on stream %d",
        (unsigned long long)bytes, a, (unsigned long long)start, b, (unsigned long long)target,
        stream);
    memcpy(to->model + target, from->model + start, bytes);
    return take(p, a, stream) && take(p, b, stream) &&
           must(p, TNP_TRANSFER_RANGE,
                p->s->memory->copy(p->s->device, p->streams[stream], to->memory, target,
                                   from->memory, start, bytes));
}

static bool op_pinned(program *p) {
    int b = (int)below(p, N_BUFFERS), stream = any_stream(p);
    tc_buffer *device = &p->buffers[b];
    uint64_t bytes = device->bytes < p->pinned.bytes ? device->bytes : p->pinned.bytes;
    bool read = below(p, 2);
    DID(p, "%s pinned memory of %llu bytes of buffer %d on stream %d",
        read ? "read to" : "write from", (unsigned long long)bytes, b, stream);
    if (p->pinned_user != NOBODY && p->s->ops->streams &&
        !must(p, TNP_STREAM_SYNCHRONIZE,
              p->s->ops->streams->synchronize(p->streams[p->pinned_user])))
        return false;
    if (!tc_buffer_check(p->k, &p->pinned, NULL, TNP_TRANSFER_PINNED,
                         "pinned memory after its stream was synchronized"))
        return false;
    p->pinned_user = stream;
    if (!take(p, b, stream))
        return false;
    if (read) {
        memcpy(p->pinned.model, device->model, bytes);
        return must(p, TNP_TRANSFER_PINNED,
                    p->s->memory->read(p->s->device, p->streams[stream], p->pinned.host,
                                       device->memory, 0, bytes));
    }
    for (uint64_t i = 0; i < bytes; i++)
        p->pinned.model[i] = (unsigned char)tc_next(&p->random);
    memcpy(p->pinned.host, p->pinned.model, bytes);
    memcpy(device->model, p->pinned.model, bytes);
    return must(p, TNP_TRANSFER_PINNED,
                p->s->memory->write(p->s->device, p->streams[stream], device->memory, 0,
                                    p->pinned.host, bytes));
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

/* out = a + 3 * b over i32. What was handed over is overwritten as soon as run returns. */
static bool op_add(program *p) {
    int a = (int)below(p, N_BUFFERS), b = (a + 1) % N_BUFFERS, c = (a + 2) % N_BUFFERS,
        stream = any_stream(p);
    const tc_buffer *x = &p->buffers[a], *y = &p->buffers[b];
    tc_buffer *z = &p->buffers[c];
    if (!p->add)
        return op_fill(p);
    uint64_t skip = 4 * below(p, 4);
    uint64_t least = x->bytes < y->bytes ? x->bytes : y->bytes;
    least = least < z->bytes ? least : z->bytes;
    int64_t n = (int64_t)((least - skip) / 4), one = 1;
    tn_tensor_view views[] = {view(x, skip, &n, &one), view(y, 0, &n, &one),
                              view(z, skip, &n, &one)};
    const tn_tensor_view *outs[] = {&views[2]};
    tn_cell cells[] = {{.tag = TN_CELL_TENSOR, .v.view = &views[0]},
                       {.tag = TN_CELL_TENSOR, .v.view = &views[1]},
                       {.tag = TN_CELL_I64, .v.i64 = 3}};
    tn_call call = {.struct_size = sizeof call,
                    .device = p->s->device,
                    .stream = p->streams[stream],
                    .user = p->add->user,
                    .args = cells,
                    .outs = outs,
                    .n_args = 3,
                    .n_outs = 1};
    DID(p, "add of %lld elements of buffers %d and %d to %d on stream %d", (long long)n, a, b, c,
        stream);
    for (int64_t i = 0; i < n; i++) {
        uint32_t u, v;
        memcpy(&u, x->model + skip + 4 * (uint64_t)i, 4);
        memcpy(&v, y->model + 4 * (uint64_t)i, 4);
        u += 3 * v;
        memcpy(z->model + skip + 4 * (uint64_t)i, &u, 4);
    }
    bool ok = take(p, a, stream) && take(p, b, stream) && take(p, c, stream) &&
              must(p, TNP_KERNEL_STREAM, p->add->run(&call));
    memset(views, 0xee, sizeof views);
    memset(cells, 0xee, sizeof cells);
    memset(&call, 0xee, sizeof call);
    outs[0] = NULL;
    n = -1, one = -1;
    return ok;
}

/* Memory is freed when nothing queued uses it; what comes in its place is new. */
static bool op_renew(program *p) {
    int b = (int)below(p, N_BUFFERS);
    DID(p, "free and alloc of buffer %d", b);
    if (p->owner[b] != NOBODY && p->s->ops->streams &&
        !must(p, TNP_STREAM_SYNCHRONIZE, p->s->ops->streams->synchronize(p->streams[p->owner[b]])))
        return false;
    p->owner[b] = NOBODY;
    tc_buffer_destroy(&p->buffers[b]);
    return tc_buffer_create(p->k, p->s, TN_SPACE_DEVICE, 64 + below(p, 4000), &p->buffers[b]);
}

static bool op_busy(program *p) {
    int stream = any_stream(p);
    DID(p, "long work on stream %d", stream);
    return tc_work_queue(p->k, &p->work[stream], p->streams[stream]);
}

/* destroy finishes what is queued: afterwards nobody owns what the stream used. */
static bool op_new_stream(program *p) {
    int stream = any_stream(p);
    DID(p, "destroy of stream %d", stream);
    if (!p->s->ops->streams || p->n_streams < 2)
        return op_fill(p);
    p->s->ops->streams->destroy(p->streams[stream]);
    for (int b = 0; b < N_BUFFERS; b++)
        if (p->owner[b] == stream)
            p->owner[b] = NOBODY;
    if (p->pinned_user == stream)
        p->pinned_user = NOBODY;
    return tc_stream_create(p->k, p->s, (int32_t)below(p, 3) - 1, &p->streams[stream]);
}

/* ---- a program --------------------------------------------------------------------------- */

static const struct choice {
    bool (*run)(program *p);
    uint64_t weight;
} choices[] = {{op_write, 5}, {op_read, 4},  {op_fill, 4}, {op_copy, 6},      {op_pinned, 2},
               {op_add, 6},   {op_renew, 1}, {op_busy, 2}, {op_new_stream, 1}};

static bool any_op(program *p) {
    uint64_t total = 0;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        total += choices[i].weight;
    uint64_t at = below(p, total);
    for (size_t i = 0;; i++) {
        if (at < choices[i].weight)
            return choices[i].run(p);
        at -= choices[i].weight;
    }
}

static bool set_up(program *p) {
    for (int i = 0; i < p->n_streams; i++)
        if (p->s->ops->streams && !tc_stream_create(p->k, p->s, 0, &p->streams[i]))
            return false;
    for (int i = 0; i < p->n_streams; i++) {
        if (!tc_work_create(p->k, p->s, &p->work[i]))
            return false;
        p->work[i].fills = 1 + p->work[i].fills / 6;
    }
    for (int b = 0; b < N_BUFFERS; b++) {
        p->owner[b] = NOBODY;
        if (!tc_buffer_create(p->k, p->s, TN_SPACE_DEVICE, 64 + below(p, 4000), &p->buffers[b]))
            return false;
    }
    return tc_buffer_create(p->k, p->s, TN_SPACE_PINNED, 3000, &p->pinned);
}

static void finish(program *p) {
    char what[64];
    for (int i = 0; i < p->n_streams; i++)
        if (p->streams[i]) {
            DID(p, "synchronize of stream %d at the end", i);
            must(p, TNP_STREAM_SYNCHRONIZE, p->s->ops->streams->synchronize(p->streams[i]));
        }
    for (int b = 0; b < N_BUFFERS && !tc_failed(p->k); b++) {
        snprintf(what, sizeof what, "buffer %d at the end of the program", b);
        tc_buffer_check(p->k, &p->buffers[b], p->s->stream, TNP_STREAM_ORDER, what);
    }
    if (!tc_failed(p->k))
        tc_buffer_check(p->k, &p->pinned, NULL, TNP_TRANSFER_PINNED,
                        "pinned memory at the end of the program");
}

static const tn_kernel *find_add(tc_subject *s) {
    for (uint64_t i = 0; i < s->plugin->n_kernels; i++) {
        const tn_kernel *kernel = s->plugin->kernels[i];
        if (strcmp(kernel->op, TN_KERNEL_add) == 0 && (kernel->dtypes[0] & TN_DTYPE_BIT(TN_I32)) &&
            !kernel->workspace && !kernel->supports &&
            (!s->ops->supports || s->ops->supports(s->device, kernel) == TN_OK))
            return kernel;
    }
    return NULL;
}

static void run(tc_contract *k) {
    program p = {.k = k, .s = k->subject, .random = {k->c->seed + 1}, .pinned_user = NOBODY};
    int64_t n_ops = tc_contract_int(k, "ops");
    p.n_streams = (int)tc_contract_int(k, "streams");
    if (p.n_streams < 1 || p.n_streams > MOST_STREAMS || tc_failed(k)) {
        tc_verdict_set(k->out, TC_ERROR, TNP_NONE, "streams= is 1 to %d", MOST_STREAMS);
        return;
    }
    if (!k->subject->ops->streams)
        p.n_streams = 1;
    p.add = find_add(k->subject);
    bool ok = set_up(&p);
    for (p.op = 0; ok && p.op < n_ops && !tc_failed(k); p.op++)
        ok = any_op(&p);
    finish(&p);
    for (int i = 0; i < p.n_streams; i++) {
        if (p.streams[i])
            p.s->ops->streams->destroy(p.streams[i]);
        tc_work_destroy(&p.work[i]);
    }
    for (int b = 0; b < N_BUFFERS; b++)
        tc_buffer_destroy(&p.buffers[b]);
    tc_buffer_destroy(&p.pinned);
}

/* `n` tells programs apart, as the seed follows from the line. */
#define ROW(streams, ops, n, set) \
    { "program", "streams=" #streams " ops=" #ops " n=" #n, set, run }
#define ROWS(streams, ops, n) \
    ROW(streams, ops, n##0, TC_STANDARD), ROW(streams, ops, n##1, TC_STANDARD), \
        ROW(streams, ops, n##2, TC_STANDARD), ROW(streams, ops, n##3, TC_STANDARD), \
        ROW(streams, ops, n##4, TC_STANDARD), ROW(streams, ops, n##5, TC_STANDARD), \
        ROW(streams, ops, n##6, TC_STANDARD), ROW(streams, ops, n##7, TC_STANDARD), \
        ROW(streams, ops, n##8, TC_STANDARD), ROW(streams, ops, n##9, TC_STANDARD)

const tc_contract_row tc_program_rows[] = {
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
