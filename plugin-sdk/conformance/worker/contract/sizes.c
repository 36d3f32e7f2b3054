/* Transfers of the sizes at which drivers change their ways: from 1 KiB on, a power of two and what
 * lies beside it, at odd offsets. Each is queued behind work, so that what is read late or not waited
 * for shows, and all of both allocations is compared after it. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include "plugin-sdk/conformance/worker/poison.h"

#include <stdio.h>
#include <string.h>

typedef enum kind { WRITE, READ, FILL, COPY, N_KINDS } kind;
static const char *const names[N_KINDS] = {"write", "read", "fill", "copy"};

/* Bytes round a range that must stay as they are. */
enum { BESIDE = 160 };

typedef struct scene {
    tc_contract *k;
    tc_subject *s;
    kind kind;
    tc_work work;
    tc_buffer a, b, pinned; /* b: copied from */
    unsigned char *host;    /* the host's end: pinned, or of the arena */
    tn_memory handle;       /* of `host`, 0 for pageable memory */
} scene;

static void write_noise(scene *n, unsigned char *to, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t x = tc_next(&n->k->random);
        memcpy(to + i, &x, bytes - i < 8 ? bytes - i : 8);
    }
}

static tn_status write(scene *n, uint64_t at, uint64_t bytes) {
    unsigned char *source = n->host + at;
    write_noise(n, source, bytes);
    memcpy(n->a.model + at, source, bytes);
    tn_status status = n->s->memory->copy_from_host(n->s->device, n->s->stream, n->a.memory, at,
                                                    source, n->handle, bytes);
    if (!n->handle)
        memset(source, TC_POISON_SOURCE, bytes); /* it was consumed */
    return status;
}

static tn_status read(scene *n, uint64_t at, uint64_t bytes) {
    unsigned char *target = n->host + BESIDE;
    memset(n->host, TC_POISON_TARGET, bytes + 2 * BESIDE);
    tn_status status = n->s->memory->copy_to_host(n->s->device, n->s->stream, target, n->handle,
                                                  n->a.memory, at, bytes);
    if (status == TN_OK && n->handle)
        status = tc_subject_sync(n->s);
    if (status != TN_OK)
        return status;
    if (memcmp(target, n->a.model + at, bytes) != 0)
        TC_BROKEN(n->k, TNP_READ_COMPLETE, "read of %llu bytes at %llu: other bytes than are there",
                  (unsigned long long)bytes, (unsigned long long)at);
    for (uint64_t i = 0; i < BESIDE; i++)
        if (n->host[i] != TC_POISON_TARGET || target[bytes + i] != TC_POISON_TARGET)
            TC_BROKEN(n->k, TNP_TRANSFER_RANGE,
                      "read of %llu bytes at %llu wrote beside the target",
                      (unsigned long long)bytes, (unsigned long long)at);
    return TN_OK;
}

static tn_status transfer(scene *n, uint64_t at, uint64_t bytes) {
    const tn_memory_ops *m = n->s->memory;
    uint64_t from = BESIDE - at % 7;
    switch (n->kind) {
    case WRITE:
        return write(n, at, bytes);
    case READ:
        return read(n, at, bytes);
    case FILL:
        memset(n->a.model + at, (int)(bytes % 251), bytes);
        return m->fill(n->s->device, n->s->stream, n->a.memory, at, (uint8_t)(bytes % 251), bytes);
    default:
        memcpy(n->a.model + at, n->b.model + from, bytes);
        return m->copy(n->s->device, n->s->stream, n->a.memory, at, n->b.memory, from, bytes);
    }
}

static bool one(scene *n, uint64_t at, uint64_t bytes) {
    char what[128];
    if (n->s->stream && !tc_work_queue(n->k, &n->work, n->s->stream))
        return false;
    if (n->kind == READ) { /* what the work before has left is what is read */
        memset(n->a.model + at, (int)(bytes % 249), bytes);
        if (!tc_must(n->k, TNP_FILL_VALUE,
                     n->s->memory->fill(n->s->device, n->s->stream, n->a.memory, at,
                                        (uint8_t)(bytes % 249), bytes),
                     "fill"))
            return false;
    }
    snprintf(what, sizeof what, "memory after a %s of %llu bytes at offset %llu", names[n->kind],
             (unsigned long long)bytes, (unsigned long long)at);
    return tc_must(n->k, TNP_TRANSFER_RANGE, transfer(n, at, bytes), "a transfer") &&
           tc_buffer_check(n->k, &n->a, n->s->stream,
                           n->kind == FILL ? TNP_FILL_VALUE : TNP_TRANSFER_RANGE, what);
}

static bool create(scene *n, bool pinned, uint64_t bytes) {
    tc_contract *k = n->k;
    if (!tc_buffer_create(k, n->s, TN_SPACE_DEVICE, bytes, &n->a) ||
        (n->kind == COPY && !tc_buffer_create(k, n->s, TN_SPACE_DEVICE, bytes, &n->b)) ||
        (pinned && !tc_buffer_create(k, n->s, TN_SPACE_PINNED, bytes, &n->pinned)))
        return false;
    n->host = pinned ? n->pinned.host : tc_arena_array(&k->arena, bytes, 1);
    n->handle = pinned ? n->pinned.memory : 0;
    return n->host || TC_CASE_ERROR(k->out, "the host has no memory for this case");
}

/* A power of two, with tails and at offsets that suit no engine. */
static bool around(scene *n, bool pinned, uint64_t power) {
    static const int tails[] = {0, 1, -1, 13};
    bool ok = create(n, pinned, power + 3 * BESIDE);
    for (int i = 0; ok && i < 4; i++)
        ok = one(n, i == 0 ? 64 : 3 + 5 * (uint64_t)i, power + (uint64_t)(int64_t)tails[i]);
    if (ok && n->kind == COPY)
        tc_buffer_check(n->k, &n->b, n->s->stream, TNP_TRANSFER_RANGE,
                        "memory that was only copied from");
    tc_buffer_destroy(&n->pinned);
    tc_buffer_destroy(&n->b);
    tc_buffer_destroy(&n->a);
    n->a = n->b = n->pinned = (tc_buffer){0};
    return ok && !tc_failed(n->k);
}

static void run(tc_contract *k) {
    scene n = {.k = k, .s = k->subject};
    bool pinned = strcmp(tc_contract_word(k, "host"), "pinned") == 0;
    uint64_t most = (uint64_t)tc_contract_int(k, "most");
    if ((pinned && !tc_has_pinned(k)) || tc_failed(k) || !tc_work_create(k, n.s, &n.work))
        return;
    n.work.fills = 1 + n.work.fills / 8;
    while (n.kind < N_KINDS - 1 && strcmp(tc_contract_word(k, "kind"), names[n.kind]) != 0)
        n.kind++;
    for (uint64_t power = (uint64_t)tc_contract_int(k, "least"); power <= most; power *= 2)
        if (n.s->max_allocation && n.s->max_allocation < 2 * power)
            break;
        else if (!around(&n, pinned, power))
            break;
}

#define ROWS(kind, host) \
    {"transfer-sizes", "kind=" #kind " host=" #host " least=1024 most=1048576", TC_SMOKE, run}, \
        {"transfer-sizes", "kind=" #kind " host=" #host " least=2097152 most=16777216", \
         TC_STANDARD, run}, \
    { \
        "transfer-sizes", "kind=" #kind " host=" #host " least=33554432 most=67108864", \
            TC_EXHAUSTIVE, run \
    }

const tc_contract_row tc_size_rows[] = {
    ROWS(write, pageable),
    ROWS(write, pinned),
    ROWS(read, pageable),
    ROWS(read, pinned),
    ROWS(fill, none),
    ROWS(copy, none),
    {0},
};
