/* The devices of a plugin at once: they are independent, and copies between any two work. */
#include "plugin-sdk/conformance/worker/contract/open_devices.h"

#include "plugin-sdk/conformance/worker/contract/graph_scene.h"
#include "plugin-sdk/conformance/worker/poison.h"

#include <stdio.h>
#include <string.h>

enum { BYTES = 70000 };

/* Two of them, and memory on either. */
typedef struct pair {
    tc_contract *k;
    tc_subject *a, *b;
    tc_buffer on_a, on_b;
} pair;

/* From each that has memory of `space` to each. */
static void each_pair_of(tc_contract *k, int32_t space, void (*run)(tc_contract *k, pair *p)) {
    tc_devices all;
    bool ok = tc_devices_open(k, &all), any = false;
    for (uint32_t i = 0; ok && i < all.n; i++)
        for (uint32_t j = 0; ok && j < all.n; j++) {
            pair p = {.k = k, .a = &all.at[i], .b = &all.at[j]};
            if (i == j || !(p.a->spaces >> space & 1))
                continue;
            any = true;
            if (tc_buffer_create(k, p.a, TN_SPACE_DEVICE, BYTES, &p.on_a) &&
                tc_buffer_create(k, p.b, TN_SPACE_DEVICE, BYTES, &p.on_b))
                run(k, &p);
            tc_subject_sync(p.a);
            tc_subject_sync(p.b);
            ok = !tc_failed(k);
        }
    if (ok && !any)
        TC_NOT_OFFERED(k, "no device has memory of space %d", (int)space);
    tc_devices_close(&all);
}

static void each_pair(tc_contract *k, void (*run)(tc_contract *k, pair *p)) {
    each_pair_of(k, TN_SPACE_DEVICE, run);
}

/* Indices that are none: the nearest one, and the largest there is. */
static void index_refused(tc_contract *k) {
    const tc_subject *s = k->subject;
    const uint32_t indices[] = {s->n_devices, UINT32_MAX};
    for (int i = 0; i < 2; i++) {
        static char poison;
        tn_device_impl *device = (tn_device_impl *)(void *)&poison;
        tc_host_forget();
        tc_must_fail(k, TNP_OPEN_DEVICE, s->ops->open(s->self, indices[i], &device), TN_ERR_DEVICE,
                     "open of an index that no device has");
        if (device)
            TC_BROKEN(k, TNP_OPEN_DEVICE,
                      "open of index %u of %u devices %s *out_device, and "
                      "should make it NULL",
                      indices[i], s->n_devices, (void *)device == &poison ? "left alone" : "set");
    }
}

/* Captures of both, each with what was queued there. */
static void captures(tc_contract *k, pair *p) {
    tc_subject *both[] = {p->a, p->b};
    tc_buffer *buffers[] = {&p->on_a, &p->on_b};
    tn_graph_impl *graphs[2] = {0};
    const tn_ext_capture *ext = tc_capture_extension(k);
    bool ok = ext && tc_subject_sync(p->a) == TN_OK && tc_subject_sync(p->b) == TN_OK;
    int begun = 0;
    for (; begun < 2 && ok; begun += ok)
        ok = tc_capture_begin(k, ext, both[begun]->stream);
    for (int i = 0; i < 2 && ok; i++)
        ok = tc_must(k, TNP_CAPTURE_RECORDS,
                     both[i]->memory->fill(both[i]->device, both[i]->stream, buffers[i]->memory, 0,
                                           (uint8_t)(0x61 + i), BYTES),
                     "fill while streams of two devices capture");
    for (int i = 0; i < begun; i++)
        if (!ok || !tc_capture_end(k, ext, both[i]->stream, &graphs[i]))
            ext->abandon(both[i]->stream);
    for (int i = 0; i < 2 && ok && !tc_failed(k); i++) {
        memset(buffers[i]->model, 0x61 + i, BYTES);
        if (tc_graph_launch(k, ext, graphs[i], both[i]->stream))
            tc_buffer_check(k, buffers[i], both[i]->stream, TNP_CAPTURE_OTHERS,
                            "what was captured while another device captured, too");
    }
    for (int i = 0; i < 2; i++)
        if (graphs[i])
            ext->destroy(graphs[i]);
}

static void captures_of_two(tc_contract *k) {
    if (tc_capture_extension(k))
        each_pair(k, captures);
}

static void beside(tc_contract *k, pair *p) {
    tc_buffer_fill(k, &p->on_a, p->a->stream, 0x11);
    tc_buffer_check(k, &p->on_b, p->b->stream, TNP_OPEN_DEVICE, "memory of another device");
    tc_buffer_check(k, &p->on_a, p->a->stream, TNP_OPEN_DEVICE, "memory of a device beside it");
}

/* Each works beside the others, and goes on when they are closed. */
static void independent(tc_contract *k) {
    tc_buffer before, after;
    if (k->subject->n_devices > 1 &&
        !tc_buffer_create(k, k->subject, TN_SPACE_DEVICE, BYTES, &before))
        return;
    each_pair(k, beside);
    if (tc_failed(k))
        return;
    tc_buffer_check(k, &before, k->subject->stream, TNP_OPEN_DEVICE,
                    "memory of a device after others were closed");
    if (tc_buffer_create(k, k->subject, TN_SPACE_DEVICE, 999, &after))
        tc_buffer_check(k, &after, k->subject->stream, TNP_OPEN_DEVICE,
                        "new memory of a device after others were closed");
}

/* The same number while devices are open, and the same properties. */
static void counted(tc_contract *k) {
    tc_devices all;
    bool ok = k->subject->n_devices < 2 || tc_devices_open(k, &all);
    uint32_t n = UINT32_MAX;
    if (ok &&
        tc_must(k, TNP_COUNT_DEVICES, k->subject->ops->count(k->subject->self, &n), "count") &&
        n != k->subject->n_devices)
        TC_BROKEN(k, TNP_COUNT_DEVICES, "count said %u, and %u while all of them are open",
                  k->subject->n_devices, n);
    if (k->subject->n_devices > 1)
        tc_devices_close(&all);
}

/* ---- from one to the other --------------------------------------------------------------- */

static bool copy_once(tc_contract *k, pair *p, tc_work *work, uint64_t to, uint64_t from,
                      uint64_t bytes) {
    const tn_memory_ops *m = p->a->memory;
    char what[96];
    /* Behind work of the target's stream: what that writes is overwritten. */
    if (p->b->stream)
        tc_work_queue(k, work, p->b->stream);
    tc_buffer_fill(k, &p->on_b, p->b->stream, 0x77);
    tn_status status = m->copy_peer(p->b->device, p->b->stream, p->on_b.memory, to, p->a->device,
                                    p->on_a.memory, from, bytes);
    if (status == TN_OK)
        memcpy(p->on_b.model + to, p->on_a.model + from, bytes);
    else if (status != TN_ERR_UNSUPPORTED)
        tc_must(k, TNP_COPY_PEER, status, "copy_peer");
    snprintf(what, sizeof what, "memory after copy_peer of %llu bytes from device %u to %u",
             (unsigned long long)bytes, p->a->index, p->b->index);
    return tc_buffer_check(k, &p->on_b, p->b->stream, TNP_COPY_PEER, what) && status == TN_OK;
}

/* At odd offsets, of the sizes at which drivers change their ways. The core makes the stream wait
 * for the source. */
static void copy_to_peer(tc_contract *k, pair *p) {
    static const uint64_t sizes[] = {0, 1, 1023, 4097, 65537, 262147, 1048577, 4194309};
    enum { LARGE = (4 << 20) + 64 };
    tc_work work;
    if (!TN_HAS(p->a->memory, tn_memory_ops, copy_peer) || !p->a->memory->copy_peer) {
        TC_NOT_OFFERED(k, "no copy_peer");
        return;
    }
    tc_buffer_destroy(&p->on_a);
    tc_buffer_destroy(&p->on_b);
    if (!tc_work_create(k, p->b, &work) ||
        !tc_buffer_create(k, p->a, TN_SPACE_DEVICE, LARGE, &p->on_a) ||
        !tc_buffer_create(k, p->b, TN_SPACE_DEVICE, LARGE, &p->on_b))
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (!copy_once(k, p, &work, 13 + i, 7, sizes[i]))
            break;
    tc_buffer_check(k, &p->on_a, p->a->stream, TNP_COPY_PEER, "memory that copy_peer read");
    tc_buffer_destroy(&p->on_a);
    tc_buffer_destroy(&p->on_b);
}

static void peer(tc_contract *k) {
    each_pair(k, copy_to_peer);
}

/* What `info` says of a device is right also where another one was the last that was used. */
static void info_of_each(tc_contract *k, pair *p) {
    enum { SHARE = 8 << 20, TRIES = 5 };
    bool taken = false;
    if (p->a->host_memory)
        return;
    for (int i = 0; i < TRIES && !taken && !tc_failed(k); i++) {
        tn_memory_info now[2] = {{.struct_size = sizeof *now}, {.struct_size = sizeof *now}};
        tc_buffer share = {0};
        for (int j = 0; j < 2; j++)
            if ((j == 1 && !tc_buffer_create(k, p->a, TN_SPACE_DEVICE, SHARE, &share)) ||
                !tc_buffer_fill(k, &p->on_b, p->b->stream, i) ||
                !tc_must(k, TNP_MEMORY_INFO,
                         p->a->memory->info(p->a->device, TN_SPACE_DEVICE, &now[j]), "info") ||
                !now[j].free_bytes)
                return;
        taken = now[1].free_bytes + SHARE <= now[0].free_bytes;
        tc_buffer_destroy(&share);
    }
    if (!taken && !tc_failed(k))
        TC_BROKEN(k, TNP_MEMORY_INFO,
                  "info: %d bytes are allocated on a device, another one is used, and no fewer are "
                  "free on the first",
                  SHARE);
}

static void infos(tc_contract *k) {
    const tn_memory_ops *m = k->subject->memory;
    if (TN_HAS(m, tn_memory_ops, info) && m->info)
        each_pair(k, info_of_each);
    else
        TC_NOT_OFFERED(k, "no info");
}

/* An event of one device holds a stream of the other: the first device reads into pinned memory
 * late; the second waits for that. */
static void wait_for_other(tc_contract *k, pair *p) {
    tc_work work;
    tc_buffer pinned;
    tn_event_impl *event;
    const tn_event_ops *events = p->a->ops->events;
    if (!tc_work_create(k, p->a, &work) || !tc_event_create(k, p->a, 0, &event) ||
        !tc_buffer_create(k, p->a, TN_SPACE_PINNED, 5000, &pinned))
        return;
    tc_work_queue(k, &work, p->a->stream);
    memcpy(pinned.model, p->on_a.model, pinned.bytes);
    tc_must(k, TNP_TRANSFER_PINNED,
            p->a->memory->copy_to_host(p->a->device, p->a->stream, pinned.host, pinned.memory,
                                       p->on_a.memory, 0, pinned.bytes),
            "read to pinned memory");
    tc_must(k, TNP_EVENT_RECORD, events->record(event, p->a->stream), "record");
    tc_must(k, TNP_EVENT_WAIT, events->wait(p->b->stream, event),
            "wait for an event of another device");
    tc_must(k, TNP_EVENT_WAIT, p->b->ops->streams->synchronize(p->b->stream), "synchronize");
    tc_buffer_check(k, &pinned, NULL, TNP_EVENT_WAIT,
                    "what an event of another device was waited for");
    tc_subject_sync(p->a);
}

static void events(tc_contract *k) {
    if (tc_has_streams(k))
        each_pair_of(k, TN_SPACE_PINNED, wait_for_other);
}

/* The stream waits, and not who says so: at least once of some times the event is not passed when the
 * call is back. */
static void wait_at_once(tc_contract *k, pair *p) {
    tc_work work;
    tn_event_impl *event;
    const tn_event_ops *events = p->a->ops->events;
    bool held = false;
    if (!tc_work_create(k, p->a, &work) || !tc_event_create(k, p->a, 0, &event))
        return;
    for (int i = 0; i < 4 && !held && !tc_failed(k); i++)
        if (tc_work_hold(k, &work, p->a->stream, 0.03 * (1 << i)) &&
            tc_must(k, TNP_EVENT_RECORD, events->record(event, p->a->stream), "record") &&
            tc_must(k, TNP_EVENT_WAIT, events->wait(p->b->stream, event),
                    "wait for an event of another device")) {
            held = events->query(event) == TN_NOT_READY;
            tc_subject_sync(p->a);
            tc_subject_sync(p->b);
        }
    if (!held && !tc_failed(k))
        TC_BROKEN(k, TNP_EVENT_WAIT,
                  "wait for an event of another device keeps the host until it is passed");
}

static void events_held(tc_contract *k) {
    if (tc_has_streams(k))
        each_pair(k, wait_at_once);
}

/* For longer than who polls another device's word has patience: what waits ends behind it. */
static void wait_for_long(tc_contract *k, pair *p) {
    tc_work work;
    tn_event_impl *event;
    const tn_event_ops *events = p->a->ops->events;
    if (!tc_work_create(k, p->a, &work) || !tc_event_create(k, p->a, 0, &event) ||
        !tc_work_hold(k, &work, p->a->stream, 1.5) ||
        !tc_must(k, TNP_EVENT_RECORD, events->record(event, p->a->stream), "record") ||
        !tc_must(k, TNP_EVENT_WAIT, events->wait(p->b->stream, event),
                 "wait for an event of another device") ||
        !tc_must(k, TNP_EVENT_WAIT, tc_subject_sync(p->b), "synchronize"))
        return;
    if (events->query(event) == TN_NOT_READY)
        TC_BROKEN(k, TNP_EVENT_WAIT,
                  "a stream that waits for an event of another device went on before that was "
                  "passed");
}

static void events_long(tc_contract *k) {
    if (tc_has_streams(k))
        each_pair(k, wait_for_long);
}

/* Their clocks have nothing in common. */
static void time_between(tc_contract *k, pair *p) {
    tn_event_impl *start, *end;
    double ns;
    if (!tc_event_create(k, p->a, TN_EVENT_TIMING, &start) ||
        !tc_event_create(k, p->b, TN_EVENT_TIMING, &end) ||
        !tc_must(k, TNP_EVENT_RECORD, p->a->ops->events->record(start, p->a->stream), "record") ||
        !tc_must(k, TNP_EVENT_RECORD, p->b->ops->events->record(end, p->b->stream), "record"))
        return;
    tc_subject_sync(p->a);
    tc_subject_sync(p->b);
    tc_host_forget();
    tc_must_fail(k, TNP_EVENT_ELAPSED, p->a->ops->events->elapsed(start, end, &ns), TN_ERR_STATE,
                 "elapsed between events of two devices");
}

static void elapsed(tc_contract *k) {
    const tn_event_ops *e = k->subject->ops->events;
    if (!tc_has_streams(k))
        return;
    if (TN_HAS(e, tn_event_ops, elapsed) && e->elapsed)
        each_pair(k, time_between);
    else
        TC_NOT_OFFERED(k, "no elapsed");
}

/* Pinned memory of one device is like any other to the next: it is passed without a handle. */
static void use_pinned_of_other(tc_contract *k, pair *p) {
    enum { PART = 40000 };
    const tn_memory_ops *m = p->b->memory;
    tc_work work;
    tc_buffer pinned;
    if (!tc_work_create(k, p->b, &work) ||
        !tc_buffer_create(k, p->a, TN_SPACE_PINNED, PART + 3, &pinned))
        return;
    unsigned char *host = (unsigned char *)pinned.host + 3;
    tc_work_queue(k, &work, p->b->stream);
    memset(host, 0x2d, PART);
    memset(p->on_b.model + 5, 0x2d, PART);
    tc_must(k, TNP_WRITE_CONSUMES_SOURCE,
            m->copy_from_host(p->b->device, p->b->stream, p->on_b.memory, 5, host, 0, PART),
            "write from pinned memory of another device");
    memset(host, TC_POISON_SOURCE, PART);
    tc_buffer_check(k, &p->on_b, p->b->stream, TNP_WRITE_CONSUMES_SOURCE,
                    "memory written from another device's pinned memory, which was changed once "
                    "the call had returned");
    tc_work_queue(k, &work, p->b->stream);
    tc_buffer_fill(k, &p->on_b, p->b->stream, 0x4e);
    tc_must(k, TNP_READ_COMPLETE,
            m->copy_to_host(p->b->device, p->b->stream, host, 0, p->on_b.memory, 0, PART),
            "read to pinned memory of another device");
    if (memcmp(host, p->on_b.model, PART) != 0)
        TC_BROKEN(k, TNP_READ_COMPLETE,
                  "what was read to another device's pinned memory is not there when the call "
                  "returns");
}

static void pinned_of_another(tc_contract *k) {
    each_pair_of(k, TN_SPACE_PINNED, use_pinned_of_other);
}

const tc_contract_row tc_device_rows[] = {
    {"device-index", "", TC_SMOKE, index_refused},
    {"device-count", "", TC_SMOKE, counted},
    {"device-independent", "", TC_SMOKE, independent},
    {"device-peer", "", TC_SMOKE, peer},
    {"device-pinned", "", TC_SMOKE, pinned_of_another},
    {"device-info", "", TC_SMOKE, infos},
    {"device-events", "", TC_SMOKE, events},
    {"device-events-held", "", TC_SMOKE, events_held},
    {"device-events-long", "", TC_STANDARD, events_long},
    {"device-elapsed", "", TC_SMOKE, elapsed},
    {"device-captures", "", TC_STANDARD, captures_of_two},
    {0},
};
