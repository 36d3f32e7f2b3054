/* Transfers for which host memory runs out: see host_memory.c. */
#include "plugin-sdk/conformance/worker/contract/host_memory_stages.h"

#include <stdio.h>
#include <string.h>

bool tc_prepare_transfer(tc_trial *t) {
    void *host;
    for (int i = 0; i < 2; i++)
        if (!tc_must(t->k, TNP_ALLOC_HANDLE,
                     tc_alloc(&t->s, TN_SPACE_DEVICE, TC_TRIAL_BYTES, &t->memory[i], &host),
                     "alloc"))
            return false;
    return true;
}

static tn_status try_transfer(tc_trial *t) {
    const tn_memory_ops *m = t->s.memory;
    unsigned char there[TC_TRIAL_BYTES], back[TC_TRIAL_BYTES];
    for (int i = 0; i < TC_TRIAL_BYTES; i++)
        there[i] = (unsigned char)(i * 11);
    memset(back, 0, sizeof back);
    tn_status status =
        m->copy_from_host(t->s.device, t->s.stream, t->memory[0], 0, there, 0, TC_TRIAL_BYTES);
    if (status == TN_OK)
        status = m->fill(t->s.device, t->s.stream, t->memory[1], 0, 1, TC_TRIAL_BYTES);
    if (status == TN_OK)
        status =
            m->copy(t->s.device, t->s.stream, t->memory[1], 0, t->memory[0], 0, TC_TRIAL_BYTES);
    if (status == TN_OK)
        status =
            m->copy_to_host(t->s.device, t->s.stream, back, 0, t->memory[1], 0, TC_TRIAL_BYTES);
    tn_status later = tc_subject_sync(&t->s);
    if (status == TN_OK)
        status = later;
    if (status == TN_OK && memcmp(there, back, TC_TRIAL_BYTES) != 0)
        TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE,
                  "transfers succeeded while the host had no memory, and did not move "
                  "the bytes");
    return status;
}

void tc_finish_transfer(tc_trial *t) {
    for (int i = 0; i < 2; i++)
        if (t->memory[i])
            t->s.memory->dealloc(t->s.device, TN_SPACE_DEVICE, t->memory[i]);
}

/* ---- large transfers --------------------------------------------------------------------- */

/* Of sizes that drivers cut into pieces: one that fails has moved nothing, neither before the piece that
 * failed nor behind it. */
enum { LARGE = (3 << 20) + 5, WAS = 0x3c };

static bool prepare_large(tc_trial *t) {
    void *host;
    t->large = tc_arena_array(&t->k->arena, LARGE, 1);
    for (int i = 0; i < 2; i++)
        if (!t->large ||
            !tc_must(t->k, TNP_ALLOC_HANDLE,
                     tc_alloc(&t->s, TN_SPACE_DEVICE, LARGE, &t->memory[i], &host), "alloc"))
            return false;
    return true;
}

static bool arm_large(tc_trial *t) {
    const tc_subject *s = &t->s;
    memset(t->large, 0x71, LARGE);
    for (int i = 0; i < 2; i++)
        if (!tc_must(t->k, TNP_FILL_VALUE,
                     s->memory->fill(s->device, s->stream, t->memory[i], 0, WAS + i, LARGE),
                     "fill"))
            return false;
    return tc_must(t->k, TNP_FILL_VALUE, tc_subject_sync(&t->s), "synchronize");
}

/* The first memory holds `value` all over. */
static void expect(tc_trial *t, int value, const char *what) {
    const tc_subject *s = &t->s;
    if (!tc_must(t->k, TNP_READ_COMPLETE,
                 s->memory->copy_to_host(s->device, s->stream, t->large, 0, t->memory[0], 0, LARGE),
                 "read"))
        return;
    for (uint64_t i = 0; i < LARGE && !tc_failed(t->k); i++)
        if (t->large[i] != value)
            TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE,
                      "%s: byte %llu of %d is 0x%02x, and should be 0x%02x", what,
                      (unsigned long long)i, LARGE, t->large[i], (unsigned)value);
}

static tn_status try_large(tc_trial *t) {
    static const char *const names[] = {"a large write", "a large fill", "a large copy"};
    const tc_subject *s = &t->s;
    const tn_memory_ops *m = s->memory;
    static const int values[] = {WAS, 0x71, 0x22};
    tn_status status = TN_OK;
    int done = 0;
    for (; status == TN_OK && done < 3; done += status == TN_OK)
        status =
            done == 0 ? m->copy_from_host(s->device, s->stream, t->memory[0], 0, t->large, 0, LARGE)
            : done == 1 ? m->fill(s->device, s->stream, t->memory[0], 0, 0x22, LARGE)
                        : m->copy(s->device, s->stream, t->memory[0], 0, t->memory[1], 0, LARGE);
    tn_status later = tc_subject_sync(&t->s);
    if (status != TN_OK && tc_host_failed()) {
        char what[96];
        snprintf(what, sizeof what, "after %s failed for want of host memory", names[done]);
        expect(t, values[done], what);
    }
    return status == TN_OK ? later : status;
}

static void undo_large(tc_trial *t) {
    expect(t, WAS + 1, "after large transfers");
}

/* ---- transfers that a driver takes in pieces --------------------------------------------- */

enum { HUGE = 160 << 20, MARKS = 11, MARK = 64 };

static uint64_t mark_place(int i) {
    return (uint64_t)i * ((HUGE - MARK) / (MARKS - 1));
}

static bool prepare_huge(tc_trial *t) {
    void *host;
    if (tc_free_bytes(&t->s) / 4 < HUGE)
        return false;
    for (int i = 0; i < 2; i++)
        if (!tc_must(t->k, TNP_ALLOC_HANDLE,
                     tc_alloc(&t->s, TN_SPACE_DEVICE, HUGE, &t->memory[i], &host), "alloc"))
            return false;
    return true;
}

/* Marks at places all over the first memory; the second holds other bytes there. */
static bool arm_huge(tc_trial *t) {
    const tc_subject *s = &t->s;
    bool ok = true;
    for (int i = 0; i < 2 * MARKS && ok; i++)
        ok = tc_must(t->k, TNP_FILL_VALUE,
                     s->memory->fill(s->device, s->stream, t->memory[i % 2], mark_place(i / 2),
                                     (uint8_t)(WAS + i % 2), MARK),
                     "fill");
    return ok && tc_must(t->k, TNP_FILL_VALUE, tc_subject_sync(&t->s), "synchronize");
}

static void expect_marks(tc_trial *t, int value, const char *what) {
    const tc_subject *s = &t->s;
    unsigned char mark[MARK];
    for (int i = 0; i < MARKS && !tc_failed(t->k); i++) {
        tn_status status = s->memory->copy_to_host(s->device, s->stream, mark, 0, t->memory[0],
                                                   mark_place(i), MARK);
        if (tc_must(t->k, TNP_READ_COMPLETE, status, "read") && mark[0] != value)
            TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE,
                      "%s: byte %llu of %d is 0x%02x, and should be 0x%02x", what,
                      (unsigned long long)mark_place(i), HUGE, mark[0], (unsigned)value);
    }
}

static tn_status try_huge(tc_trial *t) {
    const tc_subject *s = &t->s;
    const tn_memory_ops *m = s->memory;
    tn_status status = m->copy(s->device, s->stream, t->memory[0], 0, t->memory[1], 0, HUGE);
    bool copied = status == TN_OK;
    if (copied)
        status = m->fill(s->device, s->stream, t->memory[0], 0, 0x22, HUGE);
    tn_status later = tc_subject_sync(&t->s);
    if (status != TN_OK && tc_host_failed())
        expect_marks(t, copied ? WAS + 1 : WAS,
                     copied ? "after a fill of 160 MiB failed for want of host memory"
                            : "after a copy of 160 MiB failed for want of host memory");
    return status == TN_OK ? later : status;
}

static void undo_huge(tc_trial *t) {
    expect_marks(t, 0x22, "after transfers of 160 MiB");
}

/* ---- from device to device --------------------------------------------------------------- */

static bool prepare_peer(tc_trial *t) {
    const tn_memory_ops *m = t->s.memory;
    tc_subject peer = t->s;
    void *host;
    if (t->s.n_devices < 2 || !TN_HAS(m, tn_memory_ops, copy_peer) || !m->copy_peer ||
        !tc_prepare_transfer(t) || t->s.ops->open(t->s.self, t->s.index ? 0 : 1, &t->peer) != TN_OK)
        return false;
    peer.device = t->peer;
    tc_subject_describe(&peer, t->s.index ? 0 : 1);
    return tc_alloc(&peer, TN_SPACE_DEVICE, TC_TRIAL_BYTES, &t->of_peer, &host) == TN_OK &&
           m->copy_peer(t->s.device, t->s.stream, t->memory[0], 0, t->peer, t->of_peer, 0,
                        TC_TRIAL_BYTES) == TN_OK &&
           tc_subject_sync(&t->s) == TN_OK;
}

static tn_status try_peer(tc_trial *t) {
    const tc_subject *s = &t->s;
    tn_status status = s->memory->copy_peer(s->device, s->stream, t->memory[0], 0, t->peer,
                                            t->of_peer, 0, TC_TRIAL_BYTES);
    tn_status later = tc_subject_sync(&t->s);
    return status == TN_OK ? later : status;
}

static void finish_peer(tc_trial *t) {
    if (t->of_peer)
        t->s.memory->dealloc(t->peer, TN_SPACE_DEVICE, t->of_peer);
    if (t->peer)
        t->s.ops->close(t->peer);
    tc_finish_transfer(t);
}

const tc_stage tc_transfer_stages[] = {
    {"transfer", TNP_TRANSFER_RANGE, true, tc_prepare_transfer, try_transfer, tc_leave,
     tc_finish_transfer, NULL},
    {"large", TNP_TRANSFER_RANGE, true, prepare_large, try_large, undo_large, tc_finish_transfer,
     arm_large},
    {"huge", TNP_TRANSFER_RANGE, true, prepare_huge, try_huge, undo_huge, tc_finish_transfer,
     arm_huge},
    {"peer", TNP_COPY_PEER, true, prepare_peer, try_peer, tc_leave, finish_peer, NULL},
    {0},
};
