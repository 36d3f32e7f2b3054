/* An allocation of more than 2^27 bytes: what lies behind each power of two is its own place, for every transfer. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include <stdio.h>
#include <string.h>

/* At each place: what is written from pageable memory, filled, copied from there, and in pinned memory. */
enum { SLOT = 16, PLACE = 4 * SLOT, BEHIND = 40, LEAST = 20, MOST = 27, PLACES = MOST - LEAST + 2 };
static const uint64_t BYTES = (UINT64_C(1) << MOST) + 4096;

typedef struct scene {
    tc_contract *k;
    tc_subject *s;
    tn_memory memory, pinned; /* the second 0: there is none */
    unsigned char *host;      /* of pinned */
    unsigned char model[PLACES][PLACE];
} scene;

static uint64_t place(int i) {
    return BEHIND + (i ? UINT64_C(1) << (LEAST - 1 + i) : 0);
}

static bool must(scene *n, tn_status status, const char *what, int i) {
    char text[128];
    snprintf(text, sizeof text, "%s at byte %llu of a large allocation", what,
             (unsigned long long)place(i));
    return tc_must(n->k, TNP_TRANSFER_RANGE, status, text);
}

/* The copy is from the place before, which has been written; the first of all copies its own. */
static bool write_place(scene *n, int i) {
    const tn_memory_ops *m = n->s->memory;
    tn_device_impl *device = n->s->device;
    tn_stream_impl *stream = n->s->stream;
    uint64_t at = place(i);
    int from = i ? i - 1 : 0;
    for (int j = 0; j < SLOT; j++)
        n->model[i][j] = n->model[i][3 * SLOT + j] = (unsigned char)tc_next(&n->k->random);
    memset(n->model[i] + SLOT, 0x60 + i, SLOT);
    memcpy(n->model[i] + 2 * SLOT, n->model[from], SLOT);
    if (n->pinned)
        memcpy(n->host + at, n->model[i] + 3 * SLOT, SLOT);
    return must(n, m->copy_from_host(device, stream, n->memory, at, n->model[i], 0, SLOT), "write",
                i) &&
           must(n, m->fill(device, stream, n->memory, at + SLOT, (uint8_t)(0x60 + i), SLOT), "fill",
                i) &&
           must(n, m->copy(device, stream, n->memory, at + 2 * SLOT, n->memory, place(from), SLOT),
                "copy", i);
}

/* From pinned memory to the device, and from there to pinned memory beside it, when all places were written. */
static bool move_pinned(scene *n, int i) {
    const tn_memory_ops *m = n->s->memory;
    uint64_t at = place(i);
    return must(n,
                m->copy_from_host(n->s->device, n->s->stream, n->memory, at + 3 * SLOT,
                                  n->host + at, n->pinned, SLOT),
                "write from pinned memory", i) &&
           must(n,
                m->copy_to_host(n->s->device, n->s->stream, n->host + at + SLOT, n->pinned,
                                n->memory, at + 3 * SLOT, SLOT),
                "read to pinned memory", i);
}

static bool check_place(scene *n, int i) {
    unsigned char back[PLACE];
    uint64_t bytes = n->pinned ? PLACE : 3 * SLOT;
    if (!must(n,
              n->s->memory->copy_to_host(n->s->device, n->s->stream, back, 0, n->memory, place(i),
                                         bytes),
              "read", i))
        return false;
    for (uint64_t j = 0; j < bytes; j++)
        if (back[j] != n->model[i][j])
            return TC_BROKEN(n->k, TNP_TRANSFER_RANGE,
                             "a large allocation holds 0x%02x at byte %llu, and should hold 0x%02x",
                             back[j], (unsigned long long)(place(i) + j), n->model[i][j]);
    if (n->pinned && memcmp(n->host + place(i) + SLOT, n->model[i] + 3 * SLOT, SLOT) != 0)
        return TC_BROKEN(n->k, TNP_TRANSFER_RANGE,
                         "a large pinned allocation holds other bytes at %llu than were read there",
                         (unsigned long long)(place(i) + SLOT));
    return true;
}

static bool take(scene *n, int32_t space, tn_memory *out) {
    void *host;
    if (tc_alloc(n->s, space, BYTES, out, &host) != TN_OK)
        return TC_NOT_OFFERED(n->k, "there is no memory for one large allocation");
    if (space == TN_SPACE_PINNED)
        n->host = host;
    return true;
}

static void far_places(tc_contract *k) {
    scene n = {.k = k, .s = k->subject};
    if (n.s->max_allocation && n.s->max_allocation < BYTES) {
        TC_NOT_OFFERED(k, "the device has no allocation as large");
        return;
    }
    bool ok = take(&n, TN_SPACE_DEVICE, &n.memory) &&
              (!(n.s->spaces >> TN_SPACE_PINNED & 1) || take(&n, TN_SPACE_PINNED, &n.pinned));
    for (int i = 0; ok && i < PLACES; i++)
        ok = write_place(&n, i);
    for (int i = 0; ok && n.pinned && i < PLACES; i++)
        ok = move_pinned(&n, i);
    ok = tc_must(k, TNP_STREAM_SYNCHRONIZE, tc_subject_sync(n.s), "synchronize") && ok;
    for (int i = 0; ok && i < PLACES; i++)
        ok = check_place(&n, i);
    if (n.memory)
        n.s->memory->dealloc(n.s->device, TN_SPACE_DEVICE, n.memory);
    if (n.pinned)
        n.s->memory->dealloc(n.s->device, TN_SPACE_PINNED, n.pinned);
}

const tc_contract_row tc_far_rows[] = {
    {"memory-far", "", TC_STANDARD, far_places},
    {0},
};
