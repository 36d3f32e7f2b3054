/* Device memory exhaustion, and recovery from it. Allocations are bounded and never touched, as a
 * device whose memory is the host's could take all of the machine's. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/process/state.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* No device is asked for more than this where its memory is the host's, or unknown in size. The
 * suite's host fills what it hands out, so this costs time and real memory. */
static const uint64_t HOST_BOUND = UINT64_C(256) << 20;
static const uint64_t DEVICE_BOUND = UINT64_C(1) << 40;
enum { MOST = 8192, PARTS = 24, SPARE = 4 << 20, LEAST = 65536, ROUNDS = 3 };

typedef struct hoard {
    tn_memory memory[MOST];
    uint64_t n, bytes;
    bool full; /* the device said so; otherwise the bound was reached */
} hoard;

static uint64_t total_bytes(const tc_subject *s) {
    tn_memory_info info = {.struct_size = sizeof info};
    if (TN_HAS(s->memory, tn_memory_ops, info) && s->memory->info &&
        s->memory->info(s->device, TN_SPACE_DEVICE, &info) == TN_OK && info.total_bytes)
        return info.total_bytes;
    return s->max_allocation;
}

/* Takes blocks of `size`, then smaller ones, until none is left. */
static void take_all(tc_contract *k, const tc_subject *s, uint64_t size, uint64_t bound, hoard *h) {
    void *host;
    h->n = h->bytes = 0;
    h->full = false;
    while (h->n < MOST && h->bytes + size <= bound) {
        tn_memory *memory = &h->memory[h->n];
        *memory = 0;
        tc_host_forget();
        tn_status status = tc_alloc(s, TN_SPACE_DEVICE, size, memory, &host);
        if (status != TN_OK) {
            h->full = true;
            if (!tc_must_fail(k, TNP_ALLOC_OUT_OF_MEMORY, status, TN_ERR_OUT_OF_MEMORY,
                              "alloc when memory runs out"))
                return;
            if (size <= LEAST)
                return;
            size /= 4;
            continue;
        }
        if (!*memory) {
            TC_BROKEN(k, TNP_ALLOC_HANDLE, "alloc succeeded with the handle 0");
            return;
        }
        h->n++;
        h->bytes += size;
    }
}

static void give_back(const tc_subject *s, hoard *h, bool backwards) {
    for (uint64_t i = 0; i < h->n; i++)
        s->memory->dealloc(s->device, TN_SPACE_DEVICE, h->memory[backwards ? h->n - 1 - i : i]);
    h->n = 0;
}

/* While memory is full: what needs some may say so, and nothing crashes. */
static void live_when_full(tc_contract *k, tc_subject *s) {
    tn_memory memory = 0;
    void *host;
    for (int i = 0; i < 20; i++) {
        tc_host_forget();
        tn_status status = tc_alloc_any(s, TN_SPACE_DEVICE, UINT64_C(1) << 26, &memory, &host);
        if (status == TN_OK)
            s->memory->dealloc(s->device, TN_SPACE_DEVICE, memory);
        else
            tc_must_fail(k, TNP_ALLOC_OUT_OF_MEMORY, status, TN_ERR_OUT_OF_MEMORY,
                         "alloc when memory has run out");
    }
    if (s->ops->streams) {
        tn_stream_impl *stream = NULL;
        tc_host_forget();
        tn_status status = s->ops->streams->create(s->device, 0, &stream);
        if (status == TN_OK)
            s->ops->streams->destroy(stream);
        else
            tc_must_fail(k, TNP_STATUS_CODES, status, TN_ERR_OUT_OF_MEMORY,
                         "stream create when memory has run out");
    }
    if (s->ops->streams && s->ops->events) {
        tn_event_impl *event = NULL;
        tc_host_forget();
        tn_status status = s->ops->events->create(s->device, 0, &event);
        if (status == TN_OK)
            s->ops->events->destroy(event);
        else
            tc_must_fail(k, TNP_STATUS_CODES, status, TN_ERR_OUT_OF_MEMORY,
                         "event create when memory has run out");
    }
}

/* A block taken before keeps its bytes. */
enum { KEPT = 5000 };

static void check_kept(tc_contract *k, tc_subject *s, tn_memory kept) {
    unsigned char back[KEPT];
    char reason[TC_MESSAGE];
    memset(back, 0, sizeof back);
    tn_status status = s->memory->copy_to_host(s->device, s->stream, back, 0, kept, 0, KEPT);
    tn_status later = tc_subject_sync(s);
    if (status == TN_OK)
        status = later;
    if (status != TN_OK)
        TC_BROKEN(k, TNP_ALLOC_OUT_OF_MEMORY, "read when memory has run out: %s",
                  tc_reason(status, reason));
    for (int i = 0; i < KEPT && status == TN_OK; i++)
        if (back[i] != 0x3c) {
            TC_BROKEN(k, TNP_ALLOC_OUT_OF_MEMORY,
                      "byte %d of an allocation changed when memory ran out", i);
            return;
        }
}

/* What `alloc` no longer gives is not free: a driver keeps a little, and others give back now and then. */
static void check_full(tc_contract *k, const tc_subject *s, uint64_t total, int round,
                       int *n_wrong) {
    uint64_t left = tc_free_bytes(s);
    *n_wrong += left != UINT64_MAX && left > total / 16 + SPARE;
    if (*n_wrong == round + 1 && round == ROUNDS - 1)
        TC_BROKEN(k, TNP_MEMORY_INFO,
                  "alloc has refused even %d bytes, and info says that %llu bytes of %llu are free",
                  LEAST, (unsigned long long)left, (unsigned long long)total);
}

static void rounds(tc_contract *k, tc_subject *s, tn_memory kept, hoard *h) {
    uint64_t total = total_bytes(s);
    uint64_t limit = s->host_memory || !total ? HOST_BOUND : DEVICE_BOUND;
    bool bounded = s->host_memory || !total || total > limit;
    uint64_t block = (bounded ? limit : total) / PARTS / 4096 * 4096, first = 0;
    if (s->max_allocation && block > s->max_allocation)
        block = s->max_allocation;
    if (block < 4096)
        block = 4096;
    int n_wrong = 0;
    for (int round = 0; round < ROUNDS && !tc_failed(k); round++) {
        take_all(k, s, block, limit, h);
        if (!tc_failed(k) && h->full) {
            live_when_full(k, s);
            check_full(k, s, total, round, &n_wrong);
        }
        check_kept(k, s, kept);
        uint64_t bytes = h->bytes;
        give_back(s, h, round % 2 == 1);
        if (tc_failed(k))
            break;
        if (round == 0)
            first = bytes;
        /* A device may keep a little; a sixteenth is more than that. */
        else if (bytes + bytes / 16 + SPARE < first)
            TC_BROKEN(k, TNP_FREE_RETURNS_MEMORY,
                      "%llu bytes could be allocated at first, and %llu after they were "
                      "freed",
                      (unsigned long long)first, (unsigned long long)bytes);
        tc_lifecycle_probe(k, s, TC_WORK_SMALL, TNP_ALLOC_OUT_OF_MEMORY, "after memory had run out",
                           NULL);
    }
}

static void exhaustion_device(tc_contract *k) {
    tc_subject s;
    tn_memory kept = 0;
    void *host;
    hoard *h = tc_arena_array(&k->arena, 1, sizeof *h);
    if (!h) {
        TC_CASE_ERROR(k->out, "the host has no memory for a list of allocations");
        return;
    }
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_NONE, "before memory runs out"))
        return;
    if (tc_must(k, TNP_ALLOC_HANDLE, tc_alloc(&s, TN_SPACE_DEVICE, KEPT, &kept, &host), "alloc")) {
        tc_must(k, TNP_FILL_VALUE, s.memory->fill(s.device, s.stream, kept, 0, 0x3c, KEPT), "fill");
        tc_must(k, TNP_FILL_VALUE, tc_subject_sync(&s), "synchronize");
        rounds(k, &s, kept, h);
        s.memory->dealloc(s.device, TN_SPACE_DEVICE, kept);
    }
    tc_subject_close(&s);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after memory had run out, and shutdown");
}

/* The most that can be taken in one piece, up to half of memory: other programs may have some of
 * it. It is given back. */
static uint64_t find_half(tc_contract *k, tc_subject *s) {
    uint64_t total = total_bytes(s);
    uint64_t half = s->host_memory || !total ? HOST_BOUND / 4 : total / 2;
    tn_memory memory = 0;
    tn_status status;
    void *host;
    if (s->max_allocation && half > s->max_allocation)
        half = s->max_allocation;
    do {
        tc_host_forget();
        status = tc_alloc(s, TN_SPACE_DEVICE, half, &memory, &host);
    } while (status == TN_ERR_OUT_OF_MEMORY && (half /= 2) >= 65536);
    if (!tc_must(k, TNP_ALLOC_HANDLE, status, "alloc of half of memory"))
        return 0;
    s->memory->dealloc(s->device, TN_SPACE_DEVICE, memory);
    return half;
}

static bool fits_again(tc_contract *k, tc_subject *s, uint64_t bytes, const char *what) {
    tn_memory memory = 0;
    void *host;
    tc_host_forget();
    if (!tc_must(k, TNP_FREE_RETURNS_MEMORY, tc_alloc(s, TN_SPACE_DEVICE, bytes, &memory, &host),
                 what))
        return false;
    s->memory->dealloc(s->device, TN_SPACE_DEVICE, memory);
    return true;
}

/* Many times: a leak of device memory shows. */
static void exhaustion_again(tc_contract *k) {
    tc_subject s;
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_NONE, "to take half of memory"))
        return;
    uint64_t half = find_half(k, &s);
    bool fits = half > 0;
    for (int i = 1; i < 10 && fits; i++)
        fits = fits_again(k, &s, half, "alloc of half of memory, after it was freed,");
    tc_lifecycle_probe(k, &s, TC_WORK_SMALL, TNP_ALLOC_OUT_OF_MEMORY,
                       "after half of memory was taken and freed", NULL);
    tc_subject_close(&s);
}

/* ---- what small blocks take -------------------------------------------------------------- */

enum { SMALL = 24000, MORE_SMALL = 12000, MOST_SMALL = SMALL + MORE_SMALL };

/* More than the pieces in which drivers take memory. */
static const uint64_t UNTOLD = 4 << 20;

typedef struct smalls {
    tn_memory memory[MOST_SMALL];
    int n;
} smalls;

/* Blocks of one byte, until there are so many or none is left. */
static bool take_small(const tc_subject *s, int wanted, smalls *small) {
    void *host;
    while (small->n < wanted &&
           tc_alloc(s, TN_SPACE_DEVICE, 1, &small->memory[small->n], &host) == TN_OK)
        small->n++;
    return small->n == wanted;
}

/* What info says is free where `alloc` gives not even a byte, with so many small blocks and more in it; UINT64_MAX: it
 * cannot be filled. */
static uint64_t left_when_full(tc_contract *k, const tc_subject *s, int n_small, hoard *h,
                               smalls *small) {
    uint64_t left = UINT64_MAX, total = total_bytes(s);
    uint64_t block = total / PARTS / 4096 * 4096;
    if (s->max_allocation && block > s->max_allocation)
        block = s->max_allocation;
    small->n = 0;
    if (take_small(s, n_small, small)) {
        take_all(k, s, block > 4096 ? block : 4096, DEVICE_BOUND, h);
        if (!tc_failed(k) && h->full && !take_small(s, n_small + MORE_SMALL, small))
            left = tc_free_bytes(s);
        give_back(s, h, false);
    }
    while (small->n > 0)
        s->memory->dealloc(s->device, TN_SPACE_DEVICE, small->memory[--small->n]);
    return left;
}

/* A block takes what the driver rounds it up to, and that is not free. */
static void exhaustion_small(tc_contract *k) {
    tc_subject s;
    hoard *h = tc_arena_array(&k->arena, 1, sizeof *h);
    smalls *small = tc_arena_array(&k->arena, 1, sizeof *small);
    if (!h || !small) {
        TC_CASE_ERROR(k->out, "the host has no memory for a list of allocations");
        return;
    }
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_NONE, "before small blocks fill memory"))
        return;
    if (tc_free_bytes(&s) == UINT64_MAX || !total_bytes(&s)) {
        TC_NOT_OFFERED(k, "no info of memory that is the device's alone");
    } else {
        bool untold = true;
        uint64_t without = 0, with = 0;
        for (int i = 0; untold && i < ROUNDS && !tc_failed(k); i++) {
            without = left_when_full(k, &s, 0, h, small);
            with = left_when_full(k, &s, SMALL, h, small);
            untold = without != UINT64_MAX && with != UINT64_MAX && with > without + UNTOLD;
        }
        if (untold)
            TC_BROKEN(k, TNP_MEMORY_INFO,
                      "alloc refuses even a byte, and info says that %llu bytes are free among %d "
                      "blocks of one byte, %llu without them: a block takes what it is rounded up "
                      "to",
                      (unsigned long long)with, SMALL, (unsigned long long)without);
    }
    tc_subject_close(&s);
}

/* ---- sizes that no device has ------------------------------------------------------------ */

/* Refused, and not charged. */
static void exhaustion_huge(tc_contract *k) {
    static const uint64_t sizes[] = {UINT64_C(1) << 50, UINT64_C(1) << 62, UINT64_MAX / 2,
                                     UINT64_MAX - 4096, UINT64_MAX - 63,   UINT64_MAX};
    tc_subject s;
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_NONE, "to ask for too much"))
        return;
    uint64_t half = find_half(k, &s);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int32_t space = TN_SPACE_DEVICE; space <= TN_SPACE_PINNED; space++) {
            tn_memory memory = 0;
            void *host = NULL;
            char what[TC_MESSAGE];
            if (!(s.spaces >> space & 1))
                continue;
            snprintf(what, sizeof what, "alloc of %llu bytes", (unsigned long long)sizes[i]);
            tc_host_forget();
            tn_status status = tc_alloc_any(&s, space, sizes[i], &memory, &host);
            tc_must_fail(k, TNP_ALLOC_OUT_OF_MEMORY, status, TN_ERR_OUT_OF_MEMORY, what);
            if (status == TN_OK)
                s.memory->dealloc(s.device, space, memory);
        }
    if (half)
        fits_again(k, &s, half, "alloc of half of memory, after too much was asked for in vain,");
    tc_lifecycle_probe(k, &s, TC_WORK_SMALL, TNP_ALLOC_OUT_OF_MEMORY,
                       "after too much was asked for", NULL);
    tc_subject_close(&s);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after too much was asked for, and shutdown");
}

/* ---- threads ----------------------------------------------------------------------------- */

/* A stream that is made works, or says that it does not. */
static void use_stream(tc_contract *k, tc_subject *s, tn_memory memory, tn_stream_impl *stream) {
    enum { BYTES = 64 };
    if (s->memory->fill(s->device, stream, memory, 0, 1, BYTES) == TN_OK &&
        tc_ask_until_done(s, stream, NULL) == TN_NOT_READY)
        TC_BROKEN(k, TNP_STREAM_CREATE,
                  "a stream that was made where no thread can be made does not do its work");
}

/* No thread has room for its stack: a stream that would need one is refused, and the caller is as he
 * was, or it does without. */
static void refuse_streams(tc_contract *k, tc_subject *s, tn_memory memory) {
    tni_process_state before;
    char changed[512];
    tni_process_look(&before);
    for (int i = 0; i < 2 && !tc_failed(k); i++) {
        static char poison;
        tn_stream_impl *stream = (tn_stream_impl *)(void *)&poison;
        tc_host_forget();
        tn_status status = s->ops->streams->create(s->device, 0, &stream);
        if (status == TN_OK) {
            use_stream(k, s, memory, stream);
            s->ops->streams->destroy(stream);
        } else if (tc_must_fail(k, TNP_STREAM_CREATE, status, TN_ERR_OUT_OF_MEMORY,
                                "create of a stream where no thread can be made") &&
                   stream && (void *)stream != &poison)
            TC_BROKEN(k, TNP_STREAM_CREATE,
                      "create of a stream failed and gave something all the same");
    }
    if (tni_process_compare(&before, changed, sizeof changed) != TNI_PROCESS_PARTS)
        TC_BROKEN(k, TNP_PROCESS_STATE_KEPT, "create of a stream where no thread can be made %s",
                  changed);
}

static void exhaustion_threads(tc_contract *k) {
    tc_subject s;
    pthread_attr_t usual, huge;
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_NONE, "before threads run out"))
        return;
    tn_memory memory = 0;
    void *host;
    if (!tc_must(k, TNP_ALLOC_HANDLE, tc_alloc(&s, TN_SPACE_DEVICE, 64, &memory, &host), "alloc")) {
        tc_subject_close(&s);
        return;
    }
    int64_t blocks = tc_host_blocks();
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, (size_t)1 << 47); /* more than a process has addresses */
    if (!s.ops->streams)
        TC_NOT_OFFERED(k, "the device has no streams");
    else if (pthread_getattr_default_np(&usual) == 0 && pthread_setattr_default_np(&huge) == 0) {
        refuse_streams(k, &s, memory);
        pthread_setattr_default_np(&usual);
        if (tc_host_blocks() > blocks)
            TC_BROKEN(k, TNP_STREAM_CREATE, "streams that could not be made keep %lld host blocks",
                      (long long)(tc_host_blocks() - blocks));
        tc_lifecycle_probe(k, &s, TC_WORK_SMALL, TNP_STREAM_CREATE,
                           "after streams could not be made", NULL);
    }
    pthread_attr_destroy(&huge);
    s.memory->dealloc(s.device, TN_SPACE_DEVICE, memory);
    tc_subject_close(&s);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after threads had run out, and shutdown");
}

const tc_contract_row tc_exhaustion_rows[] = {
    {"exhaustion-threads", "", TC_STANDARD, exhaustion_threads},
    {"exhaustion-device", "", TC_STANDARD, exhaustion_device},
    {"exhaustion-again", "", TC_STANDARD, exhaustion_again},
    {"exhaustion-huge", "", TC_SMOKE, exhaustion_huge},
    {"exhaustion-small", "", TC_STANDARD, exhaustion_small},
    {0},
};
