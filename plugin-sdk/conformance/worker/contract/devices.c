/* Two devices of a plugin at once: they are independent, and copies between them work. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include "plugin-sdk/conformance/worker/poison.h"

#include <string.h>

typedef struct pair {
    tc_contract *k;
    tc_subject *a, b; /* the worker's, and one more */
    tc_buffer on_a, on_b;
} pair;

static bool set_up(tc_contract *k, pair *p) {
    *p = (pair){.k = k, .a = k->subject, .b = *k->subject};
    p->b.device = NULL;
    p->b.stream = NULL;
    if (p->a->n_devices < 2)
        return TC_NOT_OFFERED(k, "the plugin has one device");
    p->b.index = p->a->index ? 0 : 1;
    if (!tc_must(k, TNP_OPEN_DEVICE, p->b.ops->open(p->b.self, p->b.index, &p->b.device),
                 "open of a second device"))
        return false;
    if (!p->b.device)
        return TC_BROKEN(k, TNP_OPEN_DEVICE, "open of a second device gave NULL");
    return (!p->b.ops->streams || tc_stream_create(k, &p->b, 0, &p->b.stream)) &&
           tc_buffer_create(k, p->a, TN_SPACE_DEVICE, 70000, &p->on_a) &&
           tc_buffer_create(k, &p->b, TN_SPACE_DEVICE, 70000, &p->on_b);
}

static void close_second(pair *p) {
    if (!p->b.device)
        return;
    tc_release(p->k, p->b.device);
    p->b.ops->close(p->b.device);
}

/* Indices that are none: the nearest one, and the largest there is. */
static void index_refused(tc_contract *k) {
    const tc_subject *s = k->subject;
    const uint32_t indices[] = {s->n_devices, UINT32_MAX};
    for (int i = 0; i < 2; i++) {
        tn_device_impl *device = NULL;
        tc_host_forget();
        tc_must_fail(k, TNP_OPEN_DEVICE, s->ops->open(s->self, indices[i], &device), TN_ERR_DEVICE,
                     "open of an index that no device has");
        if (device) {
            TC_BROKEN(k, TNP_OPEN_DEVICE, "open of index %u of %u devices gave a device",
                      indices[i], s->n_devices);
            s->ops->close(device);
        }
    }
}

static void independent(tc_contract *k) {
    pair p;
    tc_buffer b;
    if (set_up(k, &p)) {
        tc_buffer_fill(k, &p.on_a, p.a->stream, 0x11);
        tc_buffer_check(k, &p.on_b, p.b.stream, TNP_OPEN_DEVICE, "memory of a second device");
        tc_buffer_check(k, &p.on_a, p.a->stream, TNP_OPEN_DEVICE, "memory of the first device");
    }
    close_second(&p);
    /* The first goes on. */
    if (!p.b.device || tc_failed(k))
        return;
    tc_buffer_check(k, &p.on_a, p.a->stream, TNP_OPEN_DEVICE,
                    "memory of a device after another was closed");
    if (tc_buffer_create(k, p.a, TN_SPACE_DEVICE, 999, &b))
        tc_buffer_check(k, &b, p.a->stream, TNP_OPEN_DEVICE,
                        "new memory of a device after another was closed");
}

static void copy_to_peer(tc_contract *k, pair *p) {
    const tn_memory_ops *m = p->a->memory;
    tc_work work;
    if (!TN_HAS(m, tn_memory_ops, copy_peer) || !m->copy_peer) {
        TC_NOT_OFFERED(k, "no copy_peer");
        return;
    }
    tc_must(k, TNP_STREAM_SYNCHRONIZE, tc_subject_sync(p->a), "synchronize");
    /* Behind work of the target's stream: what that writes is overwritten. */
    if (p->b.stream && tc_work_create(k, &p->b, &work))
        tc_work_queue(k, &work, p->b.stream);
    tc_buffer_fill(k, &p->on_b, p->b.stream, 0x77);
    tn_status status = m->copy_peer(p->b.device, p->b.stream, p->on_b.memory, 13, p->a->device,
                                    p->on_a.memory, 7, 65537);
    if (status == TN_OK)
        memcpy(p->on_b.model + 13, p->on_a.model + 7, 65537);
    else if (status != TN_ERR_UNSUPPORTED)
        tc_must(k, TNP_COPY_PEER, status, "copy_peer");
    tc_buffer_check(k, &p->on_b, p->b.stream, TNP_COPY_PEER, "memory after copy_peer");
    tc_buffer_check(k, &p->on_a, p->a->stream, TNP_COPY_PEER, "memory that copy_peer read");
}

/* Host, device, other device, host: at odd offsets. The core makes the stream wait for the source.
 */
static void peer(tc_contract *k) {
    pair p;
    if (set_up(k, &p))
        copy_to_peer(k, &p);
    close_second(&p);
}

/* An event of one device holds a stream of the other: the first device reads into pinned memory
 * late; the second waits for that. */
static void events(tc_contract *k) {
    pair p;
    tc_work work;
    tc_buffer pinned;
    tn_event_impl *event;
    if (!tc_has_streams(k) || !tc_has_pinned(k))
        return;
    if (set_up(k, &p) && tc_work_create(k, p.a, &work) && tc_event_create(k, p.a, 0, &event) &&
        tc_buffer_create(k, p.a, TN_SPACE_PINNED, 5000, &pinned)) {
        tc_work_queue(k, &work, p.a->stream);
        memcpy(pinned.model, p.on_a.model, pinned.bytes);
        tc_must(k, TNP_TRANSFER_PINNED,
                p.a->memory->copy_to_host(p.a->device, p.a->stream, pinned.host, pinned.memory,
                                          p.on_a.memory, 0, pinned.bytes),
                "read to pinned memory");
        tc_must(k, TNP_EVENT_RECORD, p.a->ops->events->record(event, p.a->stream), "record");
        tc_must(k, TNP_EVENT_WAIT, p.b.ops->events->wait(p.b.stream, event),
                "wait for an event of another device");
        tc_must(k, TNP_EVENT_WAIT, p.b.ops->streams->synchronize(p.b.stream), "synchronize");
        tc_buffer_check(k, &pinned, NULL, TNP_EVENT_WAIT,
                        "what an event of another device was waited for");
        tc_subject_sync(p.a);
    }
    close_second(&p);
}

/* Pinned memory of one device is like any other to the next: it is passed without a handle. */
static void pinned_of_another(tc_contract *k) {
    enum { BYTES = 40000 };
    pair p;
    tc_work work;
    tc_buffer pinned;
    if (!tc_has_pinned(k))
        return;
    if (set_up(k, &p) && tc_work_create(k, &p.b, &work) &&
        tc_buffer_create(k, p.a, TN_SPACE_PINNED, BYTES + 3, &pinned)) {
        unsigned char *host = (unsigned char *)pinned.host + 3;
        tc_work_queue(k, &work, p.b.stream);
        memset(host, 0x2d, BYTES);
        memset(p.on_b.model + 5, 0x2d, BYTES);
        tc_must(
            k, TNP_WRITE_CONSUMES_SOURCE,
            p.b.memory->copy_from_host(p.b.device, p.b.stream, p.on_b.memory, 5, host, 0, BYTES),
            "write from pinned memory of another device");
        memset(host, TC_POISON_SOURCE, BYTES);
        tc_buffer_check(k, &p.on_b, p.b.stream, TNP_WRITE_CONSUMES_SOURCE,
                        "memory written from another device's pinned memory, which was changed "
                        "once the call had returned");
        tc_work_queue(k, &work, p.b.stream);
        tc_buffer_fill(k, &p.on_b, p.b.stream, 0x4e);
        tc_must(k, TNP_READ_COMPLETE,
                p.b.memory->copy_to_host(p.b.device, p.b.stream, host, 0, p.on_b.memory, 0, BYTES),
                "read to pinned memory of another device");
        if (memcmp(host, p.on_b.model, BYTES) != 0)
            TC_BROKEN(k, TNP_READ_COMPLETE,
                      "what was read to another device's pinned memory is not there when the call "
                      "returns");
    }
    close_second(&p);
}

const tc_contract_row tc_device_rows[] = {
    {"device-index", "", TC_SMOKE, index_refused},
    {"device-independent", "", TC_SMOKE, independent},
    {"device-peer", "", TC_SMOKE, peer},
    {"device-pinned", "", TC_SMOKE, pinned_of_another},
    {"device-events", "", TC_SMOKE, events},
    {0},
};
