/* Transfers at every offset and of every length near an edge, against a model. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

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
        memset(w->bounce + 1, 0xee, bytes);
        break;
    case READ:
        memset(w->bounce, 0xee, bytes + 2);
        status = s->memory->copy_to_host(s->device, s->stream, w->bounce + 1, 0, w->a.memory,
                                         offset, bytes);
        if (status == TN_OK && memcmp(w->bounce + 1, w->a.model + offset, bytes) != 0)
            TC_BROKEN(w->k, TNP_TRANSFER_RANGE,
                      "read of %llu bytes at %llu: other bytes than are there",
                      (unsigned long long)bytes, (unsigned long long)offset);
        if (w->bounce[0] != 0xee || w->bounce[bytes + 1] != 0xee)
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
    if (tc_buffer_create(k, s, TN_SPACE_DEVICE, PINNED, &a) &&
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

/* Within one allocation, side by side: the ranges touch and do not overlap. */
static void within(tc_contract *k) {
    tc_subject *s = k->subject;
    tc_buffer b;
    if (!tc_buffer_create(k, s, TN_SPACE_DEVICE, 10000, &b))
        return;
    for (uint64_t n = 1; n < 4000 && !tc_failed(k); n = n * 2 + 1) {
        bool up = n % 3 == 0;
        uint64_t from = up ? 100 : 100 + n, to = up ? 100 + n : 100;
        memcpy(b.model + to, b.model + from, n);
        tc_must(k, TNP_TRANSFER_RANGE,
                s->memory->copy(s->device, s->stream, b.memory, to, b.memory, from, n), "copy");
    }
    tc_buffer_check(k, &b, s->stream, TNP_TRANSFER_RANGE, "memory after copies within it");
}

const tc_contract_row tc_transfer_rows[] = {
    {"transfer-pinned", "", TC_SMOKE, pinned},
    {"transfer-sweep", "kind=write", TC_SMOKE, run},
    {"transfer-sweep", "kind=read", TC_SMOKE, run},
    {"transfer-sweep", "kind=fill", TC_SMOKE, run},
    {"transfer-sweep", "kind=copy", TC_SMOKE, run},
    {"transfer-within", "", TC_SMOKE, within},
    {0},
};
