/* Transfers at every offset and of every length near an edge, against a model. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include "plugin-sdk/conformance/worker/poison.h"

#include <stdio.h>
#include <string.h>

enum { ROOM = 70000 };

typedef enum kind { WRITE, READ, FILL, COPY } kind;

typedef struct sweep {
    tc_contract *k;
    tc_buffer a, b;
    kind kind;
    unsigned char *bounce; /* [ROOM + 2] */
} sweep;

static bool one(sweep *w, uint64_t offset, uint64_t bytes) {
    tc_subject *s = w->k->subject;
    uint64_t from = (offset * 7 + 3) % (ROOM - bytes + 1);
    tn_status status = TN_OK;
    switch (w->kind) {
    case WRITE:
        for (uint64_t i = 0; i < bytes; i++)
            w->bounce[i + 1] = w->a.model[offset + i] = (unsigned char)tc_next(&w->k->random);
        status = s->memory->copy_from_host(s->device, s->stream, w->a.memory, offset, w->bounce + 1,
                                           0, bytes);
        memset(w->bounce + 1, TC_POISON_SOURCE, bytes);
        break;
    case READ:
        memset(w->bounce, TC_POISON_TARGET, bytes + 2);
        status = s->memory->copy_to_host(s->device, s->stream, w->bounce + 1, 0, w->a.memory,
                                         offset, bytes);
        for (uint64_t i = 0; status == TN_OK && i < bytes && !tc_failed(w->k); i++)
            if (w->bounce[i + 1] != w->a.model[offset + i])
                TC_BROKEN(w->k, tc_poison_breaks(w->bounce[i + 1], TNP_TRANSFER_RANGE),
                          "read of %llu bytes at %llu: byte %llu should be 0x%02x and is 0x%02x%s",
                          (unsigned long long)bytes, (unsigned long long)offset,
                          (unsigned long long)i, w->a.model[offset + i], w->bounce[i + 1],
                          tc_poison_text(w->bounce[i + 1]));
        if (w->bounce[0] != TC_POISON_TARGET || w->bounce[bytes + 1] != TC_POISON_TARGET)
            TC_BROKEN(w->k, TNP_TRANSFER_RANGE,
                      "read of %llu bytes at %llu wrote beside the target",
                      (unsigned long long)bytes, (unsigned long long)offset);
        break;
    case FILL:
        memset(w->a.model + offset, (int)(bytes & 0xff), bytes);
        status = s->memory->fill(s->device, s->stream, w->a.memory, offset, (uint8_t)bytes, bytes);
        break;
    case COPY:
        memcpy(w->a.model + offset, w->b.model + from, bytes);
        status =
            s->memory->copy(s->device, s->stream, w->a.memory, offset, w->b.memory, from, bytes);
        break;
    }
    return tc_must(w->k, TNP_TRANSFER_RANGE, status, "a transfer") && !tc_failed(w->k);
}

/* One transfer, and a look at all of the memory: a later one would cover up what is missing. */
static bool one_seen(sweep *w, uint64_t offset, uint64_t bytes) {
    static const char *const names[] = {"write", "read", "fill", "copy"};
    char what[96];
    if (!one(w, offset, bytes))
        return false;
    snprintf(what, sizeof what, "memory after a %s of %llu bytes at offset %llu", names[w->kind],
             (unsigned long long)bytes, (unsigned long long)offset);
    return w->kind == READ ||
           tc_buffer_check(w->k, &w->a, w->k->subject->stream,
                           w->kind == FILL ? TNP_FILL_VALUE : TNP_TRANSFER_RANGE, what);
}

static void run(tc_contract *k) {
    static const char *const names[] = {"write", "read", "fill", "copy"};
    static const uint64_t around[] = {64, 128, 256, 512, 1024, 4096, 65536};
    sweep w = {.k = k, .bounce = tc_arena_array(&k->arena, ROOM + 2, 1)};
    for (int i = 0; i < 4; i++)
        if (strcmp(tc_contract_word(k, "kind"), names[i]) == 0)
            w.kind = (kind)i;
    if (!w.bounce || !tc_buffer_create(k, k->subject, TN_SPACE_DEVICE, ROOM, &w.a) ||
        !tc_buffer_create(k, k->subject, TN_SPACE_DEVICE, ROOM, &w.b))
        return;
    bool ok = true;
    for (uint64_t offset = 0; ok && offset <= 17; offset++)
        for (uint64_t bytes = 1; ok && bytes <= 33; bytes++)
            ok = one_seen(&w, offset, bytes);
    for (int i = 0; ok && i < 7; i++)
        for (uint64_t d = 0; ok && d < 5; d++)
            for (uint64_t offset = 0; ok && offset < 3; offset++)
                ok = one_seen(&w, offset * 5, around[i] - 2 + d);
    ok = ok && one_seen(&w, ROOM - 1, 1) && one_seen(&w, 0, ROOM);
    if (ok)
        tc_buffer_check(k, &w.b, k->subject->stream, TNP_TRANSFER_RANGE,
                        "memory that was only copied from");
}

/* Pinned memory, from and to any byte of it: what lies beside stays. */
static void pinned(tc_contract *k) {
    enum { PINNED = 4096 };
    tc_subject *s = k->subject;
    tc_buffer a = {0}, p = {0};
    if (tc_has_pinned(k) && tc_buffer_create(k, s, TN_SPACE_DEVICE, PINNED, &a) &&
        tc_buffer_create(k, s, TN_SPACE_PINNED, PINNED, &p)) {
        unsigned char *host = p.host;
        for (uint64_t at = 0; at < 140 && !tc_failed(k); at += 1 + at / 16) {
            uint64_t bytes = 16 + at % 5;
            memcpy(p.model, host, PINNED);
            memcpy(p.model + at, a.model + 100, bytes);
            tc_must(k, TNP_TRANSFER_RANGE,
                    s->memory->copy_to_host(s->device, s->stream, host + at, p.memory, a.memory,
                                            100, bytes),
                    "read into pinned memory");
            tc_must(k, TNP_STREAM_SYNCHRONIZE, tc_subject_sync(s), "synchronize");
            if (memcmp(host, p.model, PINNED) != 0)
                TC_BROKEN(k, TNP_TRANSFER_PINNED,
                          "read of %llu bytes to byte %llu of pinned memory wrote elsewhere",
                          (unsigned long long)bytes, (unsigned long long)at);
            memcpy(a.model + 2000, host + at, bytes);
            tc_must(k, TNP_TRANSFER_RANGE,
                    s->memory->copy_from_host(s->device, s->stream, a.memory, 2000, host + at,
                                              p.memory, bytes),
                    "write from pinned memory");
            tc_buffer_check(k, &a, s->stream, TNP_TRANSFER_PINNED,
                            "memory written from within pinned memory");
        }
    }
}

/* Without a handle the call alone decides, wherever the host's end lies: what is in memory that the
 * device reaches by itself is consumed, or there, when the call returns. Behind long work one that
 * relies on the address is late. */
static void pageable(tc_contract *k) {
    static const uint64_t sizes[] = {64, 5000, 60000};
    tc_subject *s = k->subject;
    bool pinned = strcmp(tc_contract_word(k, "memory"), "pinned") == 0;
    tc_work work;
    tc_buffer a, h;
    if ((pinned && !tc_has_pinned(k)) || !tc_work_create(k, s, &work) ||
        !tc_buffer_create(k, s, TN_SPACE_DEVICE, ROOM, &a) ||
        !tc_buffer_create(k, s, pinned ? TN_SPACE_PINNED : TN_SPACE_DEVICE, ROOM, &h))
        return;
    if (!h.host) {
        TC_NOT_OFFERED(k, "device memory has no host pointer");
        return;
    }
    for (size_t i = 0; i < 3 && !tc_failed(k); i++) {
        unsigned char *host = (unsigned char *)h.host + 100 * i;
        memset(host, 0x11 * (int)(i + 1), sizes[i]);
        memset(a.model + 50, 0x11 * (int)(i + 1), sizes[i]);
        tc_work_queue(k, &work, s->stream);
        tc_must(k, TNP_WRITE_CONSUMES_SOURCE,
                s->memory->copy_from_host(s->device, s->stream, a.memory, 50, host, 0, sizes[i]),
                "write");
        memset(host, TC_POISON_SOURCE, sizes[i]);
        tc_buffer_check(k, &a, s->stream, TNP_WRITE_CONSUMES_SOURCE,
                        "memory written with src_pinned 0, of which the source was changed once "
                        "the call had returned");
        tc_work_queue(k, &work, s->stream);
        tc_buffer_fill(k, &a, s->stream, 0x60 + (int)i);
        tc_must(k, TNP_READ_COMPLETE,
                s->memory->copy_to_host(s->device, s->stream, host, 0, a.memory, 7, sizes[i]),
                "read");
        if (memcmp(host, a.model + 7, sizes[i]) != 0)
            TC_BROKEN(k, TNP_READ_COMPLETE,
                      "read of %llu bytes with dst_pinned 0: they are not there when the call "
                      "returns",
                      (unsigned long long)sizes[i]);
    }
}

/* No bytes, at either end of an allocation, with and without a handle. */
static void empty(tc_contract *k) {
    tc_subject *s = k->subject;
    const tn_memory_ops *m = s->memory;
    tc_buffer a, b, p = {0};
    if (!tc_buffer_create(k, s, TN_SPACE_DEVICE, 1000, &a) ||
        !tc_buffer_create(k, s, TN_SPACE_DEVICE, 1000, &b) ||
        ((s->spaces >> TN_SPACE_PINNED & 1) && !tc_buffer_create(k, s, TN_SPACE_PINNED, 64, &p)))
        return;
    for (uint64_t at = 0; at <= a.bytes; at += a.bytes) {
        char *host = p.host ? (char *)p.host + (at ? p.bytes : 0) : NULL;
        tn_status all[] = {
            m->copy_from_host(s->device, s->stream, a.memory, at, a.model, 0, 0),
            m->copy_from_host(s->device, s->stream, a.memory, at, host, p.memory, 0),
            m->copy_to_host(s->device, s->stream, b.model, 0, a.memory, at, 0),
            m->copy_to_host(s->device, s->stream, host, p.memory, a.memory, at, 0),
            m->copy(s->device, s->stream, a.memory, at, b.memory, at, 0),
            m->copy(s->device, s->stream, a.memory, at, a.memory, at, 0),
            m->fill(s->device, s->stream, a.memory, at, 0x77, 0),
        };
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            tc_must(k, TNP_TRANSFER_RANGE, all[i], "a transfer of no bytes");
    }
    tc_must(k, TNP_STREAM_SYNCHRONIZE, tc_subject_sync(s), "synchronize");
    tc_buffer_check(k, &a, s->stream, TNP_TRANSFER_RANGE, "memory after transfers of no bytes");
    tc_buffer_check(k, &b, s->stream, TNP_TRANSFER_RANGE, "memory that no bytes were copied from");
}

/* Memory of the caller's own, aligned as its elements are and no better, where handles are
 * addresses. */
static void callers(tc_contract *k) {
    static const uint64_t sizes[] = {1, 64, 5000, 70000, 1 << 20, 9 << 20};
    enum { MOST = (9 << 20) + 64 };
    tc_subject *s = k->subject;
    const tn_memory_ops *m = s->memory;
    tc_buffer b;
    if (!tc_buffer_create(k, s, TN_SPACE_DEVICE, MOST, &b))
        return;
    unsigned char *own = tc_arena_array(&k->arena, MOST, 1);
    if (!s->host_memory || b.memory != (uintptr_t)b.host || !own) {
        TC_NOT_OFFERED(k, "memory handles are no addresses of the host's");
        return;
    }
    for (size_t i = 0; i < 3 * sizeof sizes / sizeof *sizes && !tc_failed(k); i++) {
        uint64_t bytes = sizes[i / 3], base = (uintptr_t)own + 16 + (i % 3) * 4, offset = 16;
        memset(own, 0x11, MOST);
        tc_must(k, TNP_TRANSFER_RANGE, m->fill(s->device, s->stream, base, offset, 0, bytes),
                "fill of the caller's memory");
        tc_subject_sync(s);
        const unsigned char *from = (const unsigned char *)(uintptr_t)base + offset;
        for (uint64_t at = 0; at < bytes && !tc_failed(k); at++)
            if (from[at] != 0)
                TC_BROKEN(k, TNP_TRANSFER_RANGE,
                          "fill of the caller's memory: byte %llu of %llu is 0x%02x",
                          (unsigned long long)at, (unsigned long long)bytes, from[at]);
        if (!tc_failed(k) && (from[-1] != 0x11 || from[bytes] != 0x11))
            TC_BROKEN(k, TNP_TRANSFER_RANGE,
                      "fill of the caller's memory wrote beside its %llu bytes",
                      (unsigned long long)bytes);
        tc_must(k, TNP_TRANSFER_RANGE,
                m->copy(s->device, s->stream, base, offset, b.memory, 8, bytes),
                "copy to the caller's memory");
        tc_must(k, TNP_TRANSFER_RANGE,
                m->copy(s->device, s->stream, b.memory, 8, base, offset, bytes),
                "copy from the caller's memory");
        tc_subject_sync(s);
        if (!tc_failed(k) && memcmp(from, b.model + 8, bytes) != 0)
            TC_BROKEN(k, TNP_TRANSFER_RANGE, "copy to the caller's memory: other bytes came");
    }
    tc_buffer_check(k, &b, s->stream, TNP_TRANSFER_RANGE, "memory beside the caller's");
}

/* Within one allocation, side by side: the ranges touch and do not overlap. */
static void within(tc_contract *k) {
    tc_subject *s = k->subject;
    tc_buffer b;
    if (!tc_buffer_create(k, s, TN_SPACE_DEVICE, 5 << 20, &b))
        return;
    for (uint64_t n = 1; n < 2500000 && !tc_failed(k); n = n * 2 + 1) {
        bool up = n % 3 == 0;
        uint64_t from = up ? 100 : 100 + n, to = up ? 100 + n : 100;
        memcpy(b.model + to, b.model + from, n);
        tc_must(k, TNP_TRANSFER_RANGE,
                s->memory->copy(s->device, s->stream, b.memory, to, b.memory, from, n), "copy");
    }
    tc_buffer_check(k, &b, s->stream, TNP_TRANSFER_RANGE, "memory after copies within it");
}

/* Behind work, in pieces of `least` to `most` bytes: the caller's buffer is another's at once, and staging memory only when it
 * was read. */
static bool write_in_pieces(tc_contract *k, tc_work *work, tc_buffer *a, uint64_t from, uint64_t to,
                            uint64_t least, uint64_t most) {
    enum { LARGEST = 64 << 10 };
    tc_subject *s = k->subject;
    unsigned char piece[LARGEST];
    if (s->stream && !tc_work_hold(k, work, s->stream, 0.03 + 3e-8 * (double)(to - from)))
        return false;
    for (uint64_t at = from, n = 0, bytes; at < to && !tc_failed(k); at += bytes, n++) {
        bytes = least + tc_below(&k->random, most - least + 1);
        bytes = bytes < to - at ? bytes : to - at;
        for (uint64_t i = 0; i < bytes; i++)
            piece[i] = a->model[at + i] = (unsigned char)(n * 97 + at * 31 + i * 7);
        tc_must(k, TNP_WRITE_CONSUMES_SOURCE,
                s->memory->copy_from_host(s->device, s->stream, a->memory, at, piece, 0, bytes),
                "write of one of many pieces");
        memset(piece, TC_POISON_SOURCE, bytes);
    }
    return !tc_failed(k);
}

/* More than a driver has room to stage, whether it counts bytes or pieces: each size may have a place of its own. */
static void staged(tc_contract *k) {
    enum { ALL = 16 << 20 };
    static const struct {
        uint64_t pieces, least, most;
    } phases[] = {{400, 1, 1},
                  {400, 4, 4},
                  {400, 8, 8},
                  {400, 16, 16},
                  {400, 64, 64},
                  {400, 1, 64},
                  {300, 256, 256},
                  {300, 1, 1 << 10},
                  {150, 4 << 10, 4 << 10},
                  {300, 1, 32 << 10},
                  {100, 64 << 10, 64 << 10}};
    tc_buffer a;
    tc_work work;
    uint64_t at = 0;
    if (!tc_work_create(k, k->subject, &work) ||
        !tc_buffer_create(k, k->subject, TN_SPACE_DEVICE, ALL, &a))
        return;
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        uint64_t bytes = phases[i].pieces * (phases[i].least + phases[i].most) / 2;
        if (!write_in_pieces(k, &work, &a, at, at + bytes, phases[i].least, phases[i].most))
            return;
        at += bytes;
    }
    tc_buffer_check(k, &a, k->subject->stream, TNP_WRITE_CONSUMES_SOURCE,
                    "memory written in many pieces behind work");
}

/* A read into pinned memory and a write from it, one queued behind the other. */
static void pinned_order(tc_contract *k) {
    static const uint64_t sizes[] = {1, 16, 100, 4096, 4099, 65537, 1048583};
    enum { MOST = 1048583 };
    tc_subject *s = k->subject;
    const tn_memory_ops *m = s->memory;
    tc_work work;
    tc_buffer a, b, p;
    if (!tc_has_pinned(k) || !tc_work_create(k, s, &work) ||
        !tc_buffer_create(k, s, TN_SPACE_DEVICE, MOST, &a) ||
        !tc_buffer_create(k, s, TN_SPACE_DEVICE, MOST, &b) ||
        !tc_buffer_create(k, s, TN_SPACE_PINNED, MOST, &p))
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !tc_failed(k); i++) {
        if (s->stream)
            tc_work_queue(k, &work, s->stream);
        tc_buffer_fill(k, &a, s->stream, 0x15 + (int)i);
        tc_must(k, TNP_TRANSFER_PINNED,
                m->copy_to_host(s->device, s->stream, p.host, p.memory, a.memory, 0, sizes[i]),
                "read to pinned memory");
        tc_must(k, TNP_TRANSFER_PINNED,
                m->copy_from_host(s->device, s->stream, b.memory, 0, p.host, p.memory, sizes[i]),
                "write from pinned memory behind a read to it");
        memcpy(b.model, a.model, sizes[i]);
        tc_buffer_check(k, &b, s->stream, TNP_TRANSFER_PINNED,
                        "what was read to pinned memory and written from it, in stream order");
    }
}

const tc_contract_row tc_transfer_rows[] = {
    {"transfer-staged", "", TC_SMOKE, staged},
    {"transfer-pinned-order", "", TC_SMOKE, pinned_order},
    {"transfer-pinned", "", TC_SMOKE, pinned},
    {"transfer-pageable", "memory=pinned", TC_SMOKE, pageable},
    {"transfer-pageable", "memory=device", TC_SMOKE, pageable},
    {"transfer-empty", "", TC_SMOKE, empty},
    {"transfer-callers", "", TC_SMOKE, callers},
    {"transfer-sweep", "kind=write", TC_SMOKE, run},
    {"transfer-sweep", "kind=read", TC_SMOKE, run},
    {"transfer-sweep", "kind=fill", TC_SMOKE, run},
    {"transfer-sweep", "kind=copy", TC_SMOKE, run},
    {"transfer-within", "", TC_SMOKE, within},
    {0},
};
