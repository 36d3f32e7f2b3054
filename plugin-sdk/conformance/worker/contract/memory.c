/* Device and pinned memory: the contracts of alloc, free and info. */
#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/subject/fence.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- sizes ------------------------------------------------------------------------------- */

/* Blocks of many sizes, alive at once: none shares a byte with another, and the last byte of each
 * is there. */
static void distinct(tc_contract *k) {
    static const uint64_t sizes[] = {1,     2,     3,     7,       64,     63,   65,   127,
                                     255,   256,   257,   512,     999,    4095, 4096, 4097,
                                     65535, 65536, 65537, 1048577, 100000, 5};
    enum { N = sizeof sizes / sizeof *sizes };
    tc_buffer blocks[2 * N] = {0};
    int32_t space = tc_contract_int(k, "pinned") ? TN_SPACE_PINNED : TN_SPACE_DEVICE;
    char what[96];
    int n = 0;
    if (space == TN_SPACE_PINNED && !tc_has_pinned(k))
        return;
    while (n < 2 * N && !tc_failed(k) &&
           tc_buffer_create(k, k->subject, space, sizes[(n * 7) % N], &blocks[n]))
        n++;
    for (int i = 0; i < n && !tc_failed(k); i++) {
        snprintf(what, sizeof what, "allocation %d of %d that live together", i, n);
        tc_buffer_check(k, &blocks[i], k->subject->stream, TNP_ALLOC_HANDLE, what);
    }
    for (int i = 0; i < n; i += 2) /* freeing every other one disturbs none of the rest */
        tc_buffer_destroy(&blocks[i]);
    for (int i = 1; i < n && !tc_failed(k); i += 2)
        tc_buffer_check(k, &blocks[i], k->subject->stream, TNP_FREE_RETURNS_MEMORY,
                        "an allocation beside one that was freed");
}

/* Handles of all spaces are one name space: no two that live are the same. */
static void one_name_space(tc_contract *k) {
    enum { EACH = 12 };
    tc_buffer b[2 * EACH];
    int n = 0;
    if (!tc_has_pinned(k))
        return;
    for (; n < 2 * EACH; n++)
        if (!tc_buffer_create(k, k->subject, n % 2 ? TN_SPACE_PINNED : TN_SPACE_DEVICE,
                              1000 + 100 * (uint64_t)n, &b[n]))
            return;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (b[i].memory == b[j].memory)
                TC_BROKEN(k, TNP_ALLOC_HANDLE, "two live allocations, of spaces %d and %d, %s",
                          (int)b[j].space, (int)b[i].space, "have one handle");
}

/* Takes so many small blocks, or what half of the memory has room for, by what info says of the first. */
static int64_t take_crowd(tc_contract *k, tn_memory *crowd, int64_t wanted) {
    enum { BYTES = 64, FIRST = 100 };
    const tc_subject *s = k->subject;
    uint64_t before = tc_free_bytes(s);
    void *host;
    int64_t n = 0;
    while (n < wanted &&
           tc_must(k, TNP_ALLOC_HANDLE, tc_alloc(s, TN_SPACE_DEVICE, BYTES, &crowd[n], &host),
                   "alloc of one of many small blocks, where there is memory")) {
        uint64_t after = ++n == FIRST ? tc_free_bytes(s) : before;
        int64_t room =
            after < before ? (int64_t)(before / 2 / ((before - after) / FIRST + 1)) : wanted;
        wanted = room < wanted ? room : wanted;
    }
    return n;
}

/* More than any table of a driver has room for without a thought, freed in no order. */
static void many(tc_contract *k) {
    enum { BYTES = 200 };
    tc_subject *s = k->subject;
    int64_t all = tc_contract_int(k, "n"), n = 0;
    tc_buffer *blocks = tc_arena_array(&k->arena, (uint64_t)all, sizeof *blocks);
    tn_memory *crowd =
        tc_arena_array(&k->arena, (uint64_t)tc_contract_int(k, "among") + 1, sizeof *crowd);
    if (!blocks || !crowd) {
        TC_CASE_ERROR(k->out, "the host has no memory for this case");
        return;
    }
    int64_t n_crowd = take_crowd(k, crowd, tc_contract_int(k, "among"));
    while (n < all && !tc_failed(k) && tc_buffer_create(k, s, TN_SPACE_DEVICE, BYTES, &blocks[n]))
        n++;
    for (int64_t i = 0; i < n && !tc_failed(k); i++)
        tc_buffer_check(k, &blocks[i], s->stream, TNP_ALLOC_HANDLE,
                        "one of many allocations that live together");
    for (int64_t i = 0; i < all; i++) /* no multiple of 7; what is not there is skipped */
        tc_buffer_destroy(&blocks[i * 7 % all]);
    while (n_crowd > 0)
        s->memory->dealloc(s->device, TN_SPACE_DEVICE, crowd[--n_crowd]);
}

/* A host pointer names those very bytes. */
static void host_pointer(tc_contract *k) {
    tc_buffer b;
    tc_subject *s = k->subject;
    if (!tc_buffer_create(k, s, TN_SPACE_DEVICE, 5000, &b))
        return;
    if (!b.host)
        TC_NOT_OFFERED(k, "device memory has no host pointer");
    else {
        if (memcmp(b.host, b.model, b.bytes) != 0)
            TC_BROKEN(k, TNP_ALLOC_HOST_POINTER,
                      "what the device was written with is not at the host pointer");
        for (uint64_t i = 0; i < b.bytes; i++)
            ((unsigned char *)b.host)[i] = b.model[i] = (unsigned char)tc_next(&k->random);
        tc_buffer_check(k, &b, s->stream, TNP_ALLOC_HOST_POINTER,
                        "bytes written by way of the host pointer");
    }
}

/* ---- too much ---------------------------------------------------------------------------- */

static void refuse(tc_contract *k, uint64_t bytes) {
    tc_subject *s = k->subject;
    tn_memory memory = 0;
    void *host = NULL;
    char what[64];
    snprintf(what, sizeof what, "alloc of %llu bytes", (unsigned long long)bytes);
    tc_host_forget();
    tn_status status = tc_alloc_any(s, TN_SPACE_DEVICE, bytes, &memory, &host);
    if (status == TN_OK) {
        s->memory->dealloc(s->device, TN_SPACE_DEVICE, memory);
        TC_BROKEN(k, TNP_ALLOC_OUT_OF_MEMORY, "%s succeeded, which no device has", what);
    }
    tc_must_fail(k, TNP_ALLOC_OUT_OF_MEMORY, status, TN_ERR_OUT_OF_MEMORY, what);
}

static void refuse_all(tc_contract *k) {
    uint64_t most = k->subject->max_allocation;
    refuse(k, (uint64_t)1 << 60);
    refuse(k, UINT64_MAX);
    refuse(k, UINT64_MAX - 100);
    refuse(k, (uint64_t)1 << 47);
    if (most && most < (uint64_t)1 << 40)
        refuse(k, most + 1);
}

/* Refused, and not charged: other programs take some too, but not each time. */
static void huge(tc_contract *k) {
    tc_buffer before, after;
    tc_subject *s = k->subject;
    bool charged = true;
    if (!tc_buffer_create(k, s, TN_SPACE_DEVICE, 3000, &before))
        return;
    for (int i = 0; i < 4 && charged && !tc_failed(k); i++) {
        uint64_t free_before = tc_free_bytes(s);
        refuse_all(k);
        charged = tc_free_bytes(s) < free_before;
    }
    if (charged)
        TC_BROKEN(k, TNP_ALLOC_OUT_OF_MEMORY, "info has less free after allocations were refused");
    tc_buffer_check(k, &before, s->stream, TNP_ALLOC_OUT_OF_MEMORY,
                    "what was allocated before a refusal");
    if (tc_buffer_create(k, s, TN_SPACE_DEVICE, 3000, &after))
        tc_buffer_check(k, &after, s->stream, TNP_ALLOC_OUT_OF_MEMORY,
                        "what is allocated after a refusal");
}

/* ---- coming and going -------------------------------------------------------------------- */

/* As many blocks again and again: device memory that leaks runs out, or shows in `info`. Two that live meanwhile, of
 * before and of half way, stay what they are also when handles are used again. */
static void again(tc_contract *k) {
    tc_subject *s = k->subject;
    enum { BLOCKS = 16 };
    uint64_t bytes = (uint64_t)tc_contract_int(k, "bytes");
    int64_t times = tc_contract_int(k, "times");
    tn_memory_info first = {.struct_size = sizeof first}, middle = first, last = first;
    bool informed = TN_HAS(s->memory, tn_memory_ops, info) && s->memory->info;
    tn_memory blocks[BLOCKS];
    void *host;
    int64_t host_blocks = 0;
    tc_buffer kept[2] = {0};
    for (int64_t t = 0; t < times && !tc_failed(k); t++) {
        if ((t == 0 || t == times / 2) &&
            !tc_buffer_create(k, s, TN_SPACE_DEVICE, 100, &kept[t > 0]))
            return;
        memset(blocks, 0, sizeof blocks);
        for (int i = 0; i < BLOCKS; i++) {
            if (!tc_must(k, TNP_FREE_RETURNS_MEMORY,
                         tc_alloc(s, TN_SPACE_DEVICE, bytes, &blocks[i], &host),
                         "alloc of what was freed before"))
                break;
        }
        for (int i = 0; i < BLOCKS; i++)
            if (blocks[(i * 5) % BLOCKS])
                s->memory->dealloc(s->device, TN_SPACE_DEVICE, blocks[(i * 5) % BLOCKS]);
        if (t == 1) {
            host_blocks = tc_host_blocks();
            if (informed)
                s->memory->info(s->device, TN_SPACE_DEVICE, &first);
        }
        if (t == times / 2 && informed)
            s->memory->info(s->device, TN_SPACE_DEVICE, &middle);
    }
    if (informed)
        s->memory->info(s->device, TN_SPACE_DEVICE, &last);
    for (int i = 0; i < 2 && kept[i].memory && !tc_failed(k); i++) /* one where times is 1 */
        tc_buffer_check(k, &kept[i], s->stream, TNP_FREE_RETURNS_MEMORY,
                        "an allocation that lived while others came and went");
    /* Other programs take and give as well, but hardly in both halves; where memory is the host's
     * they do all the time. */
    if (!tc_failed(k) && informed && first.free_bytes > middle.free_bytes + times * 4 &&
        middle.free_bytes > last.free_bytes + times * 4)
        if (!s->host_memory)
            TC_BROKEN(k, TNP_FREE_RETURNS_MEMORY,
                      "%lld times %d blocks came and went, and %llu bytes fewer are free",
                      (long long)times, BLOCKS,
                      (unsigned long long)(first.free_bytes - last.free_bytes));
    if (!tc_failed(k) && tc_host_blocks() > host_blocks + 8)
        TC_BROKEN(k, TNP_FREE_RETURNS_MEMORY,
                  "%lld times %d allocations came and went, and %lld host blocks more are out",
                  (long long)times, BLOCKS, (long long)(tc_host_blocks() - host_blocks));
}

/* What the process holds does not grow with memory that comes, is used, and goes. */
static void resident(tc_contract *k) {
    enum { BYTES = 2 << 20, FIRST = 8, STEP = 12 };
    tc_subject *s = k->subject;
    int64_t held[3] = {0};
    int32_t space = tc_contract_int(k, "pinned") ? TN_SPACE_PINNED : TN_SPACE_DEVICE;
    if (space == TN_SPACE_PINNED && !tc_has_pinned(k))
        return;
    if (dlsym(RTLD_DEFAULT, "__asan_init")) {
        TC_NOT_OFFERED(k, "AddressSanitizer keeps what is freed for a while");
        return;
    }
    for (int t = 0; t <= FIRST + 2 * STEP && !tc_failed(k); t++) {
        tn_memory memory;
        void *host;
        if (t >= FIRST && (t - FIRST) % STEP == 0)
            held[(t - FIRST) / STEP] = tc_census_take(INT64_MAX).resident_bytes;
        if (!tc_must(k, TNP_FREE_RETURNS_MEMORY, tc_alloc(s, space, BYTES, &memory, &host),
                     "alloc of what was freed before"))
            return;
        if (space == TN_SPACE_PINNED)
            memset(host, t, BYTES);
        else
            tc_must(k, TNP_FILL_VALUE,
                    s->memory->fill(s->device, s->stream, memory, 0, (uint8_t)t, BYTES), "fill");
        tc_must(k, TNP_FILL_VALUE, tc_subject_sync(s), "synchronize");
        s->memory->dealloc(s->device, space, memory);
    }
    if (!tc_failed(k) && held[1] - held[0] > STEP * BYTES / 2 &&
        held[2] - held[1] > STEP * BYTES / 2)
        TC_BROKEN(k, TNP_FREE_RETURNS_MEMORY,
                  "2 MiB came, were used and went %d times, and the process holds %lld bytes more",
                  2 * STEP, (long long)(held[2] - held[0]));
}

/* What a caller knows of the struct is all that is written. */
static void info_short(tc_contract *k, int32_t space) {
    tn_memory_info known = {.struct_size = offsetof(tn_memory_info, free_bytes), .free_bytes = 77};
    if (!tc_must(k, TNP_MEMORY_INFO, k->subject->memory->info(k->subject->device, space, &known),
                 "info of a caller that knows total_bytes only"))
        return;
    if (known.free_bytes != 77)
        TC_BROKEN(
            k, TNP_HOST_STRUCT_SIZE,
            "info wrote free_bytes beyond the caller's struct_size of %llu; test TN_HAS first",
            (unsigned long long)known.struct_size);
    if (known.struct_size != offsetof(tn_memory_info, free_bytes))
        TC_BROKEN(k, TNP_HOST_STRUCT_SIZE, "info changed struct_size");
    tn_memory_info none = {sizeof none.struct_size, 66, 77};
    if (tc_must(k, TNP_MEMORY_INFO, k->subject->memory->info(k->subject->device, space, &none),
                "info of a caller that knows struct_size only") &&
        (none.total_bytes != 66 || none.free_bytes != 77))
        TC_BROKEN(k, TNP_HOST_STRUCT_SIZE,
                  "info wrote beyond the caller's struct_size of 8; test TN_HAS first");
}

/* A caller that knows more than the plugin is told as much as others, and gets the rest back as it was. */
static void info_long(tc_contract *k, int32_t space) {
    uint64_t untold = 0x7171717171717171;
    tn_memory_info plain = {.struct_size = sizeof plain};
    struct {
        tn_memory_info info;
        uint64_t later[4];
    } newer = {.info = {sizeof newer, untold, untold}, .later = {1, 2, 3, 4}};
    plain.total_bytes = plain.free_bytes = untold;
    if (!tc_must(k, TNP_MEMORY_INFO, k->subject->memory->info(k->subject->device, space, &plain),
                 "info") ||
        !tc_must(k, TNP_MEMORY_INFO,
                 k->subject->memory->info(k->subject->device, space, &newer.info),
                 "info of a caller that knows more members"))
        return;
    if ((newer.info.total_bytes == untold && plain.total_bytes != untold) ||
        (newer.info.free_bytes == untold && plain.free_bytes != untold))
        TC_BROKEN(k, TNP_HOST_STRUCT_SIZE,
                  "info leaves out a member for a caller whose struct is larger than that of this "
                  "version; test TN_HAS, not the whole size");
    if (newer.info.struct_size != sizeof newer)
        TC_BROKEN(k, TNP_HOST_STRUCT_SIZE,
                  "info changed the struct_size of a newer caller; it is the caller's");
    for (uint64_t i = 0; i < 4; i++)
        if (newer.later[i] != i + 1)
            TC_BROKEN(k, TNP_HOST_STRUCT_SIZE,
                      "info wrote behind the struct that the plugin knows");
}

enum { SHARE = 8 << 20 };

/* Free before SHARE bytes are allocated, meanwhile and after. */
static bool look(tc_contract *k, tn_memory_info now[3]) {
    tc_subject *s = k->subject;
    tc_buffer b = {0}, small = {0};
    for (int i = 0; i < 3; i++) {
        now[i] = (tn_memory_info){.struct_size = sizeof *now};
        if (i == 1 && !(tc_buffer_create(k, s, TN_SPACE_DEVICE, SHARE, &b) &&
                        tc_buffer_create(k, s, TN_SPACE_DEVICE, 100, &small)))
            break;
        if (i == 2) { /* in the order in which they came */
            tc_buffer_destroy(&b);
            tc_buffer_destroy(&small);
        }
        if (!tc_must(k, TNP_MEMORY_INFO, s->memory->info(s->device, TN_SPACE_DEVICE, &now[i]),
                     "info"))
            break;
        if (now[i].total_bytes && now[i].free_bytes > now[i].total_bytes)
            TC_BROKEN(k, TNP_MEMORY_INFO, "info: %llu bytes are free of %llu",
                      (unsigned long long)now[i].free_bytes,
                      (unsigned long long)now[i].total_bytes);
    }
    tc_buffer_destroy(&b);
    tc_buffer_destroy(&small);
    return !tc_failed(k);
}

/* More is not free when pinned memory was given back than before it was taken, while some of the device's is
 * in use. In a few tries: other programs give back, too. */
static void info_of_each_space(tc_contract *k) {
    tc_subject *s = k->subject;
    tc_buffer held, pinned;
    uint64_t before = 0, after = 1;
    if (s->host_memory || !(s->spaces >> TN_SPACE_PINNED & 1) || tc_free_bytes(s) == UINT64_MAX ||
        !tc_buffer_create(k, s, TN_SPACE_DEVICE, SHARE, &held))
        return;
    for (int i = 0; i < 5 && after > before && !tc_failed(k); i++) {
        before = tc_free_bytes(s);
        if (tc_buffer_create(k, s, TN_SPACE_PINNED, SHARE / 16, &pinned))
            tc_buffer_destroy(&pinned);
        after = tc_free_bytes(s);
    }
    tc_buffer_destroy(&held);
    if (after > before && !tc_failed(k))
        TC_BROKEN(k, TNP_MEMORY_INFO,
                  "info: pinned memory came and went, and of the device's %llu bytes are free "
                  "after %llu",
                  (unsigned long long)after, (unsigned long long)before);
}

static uint64_t free_pinned(const tc_subject *s) {
    tn_memory_info now = {.struct_size = sizeof now};
    return s->memory->info(s->device, TN_SPACE_PINNED, &now) == TN_OK ? now.free_bytes : 0;
}

/* How many bytes of pinned memory fewer are free while one more of `space` is there; 0: as many, or more. */
static uint64_t pinned_taken(tc_contract *k, int32_t space) {
    tc_subject *s = k->subject;
    uint64_t before = free_pinned(s), now = before;
    tc_buffer b = {0};
    if (tc_buffer_create(k, s, space, SHARE, &b))
        now = free_pinned(s);
    tc_buffer_destroy(&b);
    return before > now ? before - now : 0;
}

/* Where so much of the device's memory is so much less that can be pinned each time, and pinned memory never counts,
 * it is the device's figures that were told. Both may be one pool. */
static void info_of_pinned(tc_contract *k) {
    const tc_subject *s = k->subject;
    bool other = s->host_memory || !(s->spaces >> TN_SPACE_PINNED & 1) || free_pinned(s) == 0;
    for (int i = 0; i < 5 && !other && !tc_failed(k); i++)
        other = pinned_taken(k, TN_SPACE_DEVICE) < SHARE || pinned_taken(k, TN_SPACE_PINNED) > 0;
    if (!other && !tc_failed(k))
        TC_BROKEN(k, TNP_MEMORY_INFO,
                  "info of pinned memory: less is free for each allocation of device memory, and "
                  "as much for "
                  "those of pinned memory; what is not known is 0");
}

/* Other programs may take and give at the same time: one of a few looks shows what is so. */
static void info(tc_contract *k) {
    tc_subject *s = k->subject;
    tn_memory_info now[3];
    bool taken = false, given_back = false, same_total = false;
    if (!TN_HAS(s->memory, tn_memory_ops, info) || !s->memory->info) {
        TC_NOT_OFFERED(k, "no info");
        return;
    }
    for (int32_t space = TN_SPACE_DEVICE; space <= TN_SPACE_PINNED; space++)
        if (s->spaces >> space & 1) {
            info_short(k, space);
            info_long(k, space);
        }
    info_of_each_space(k);
    info_of_pinned(k);
    for (int i = 0; i < 5 && !(taken && given_back && same_total); i++) {
        if (!look(k, now))
            return;
        if (s->host_memory || !now[0].free_bytes)
            return;
        taken |= now[1].free_bytes + SHARE <= now[0].free_bytes;
        given_back |= now[2].free_bytes >= now[0].free_bytes;
        same_total |= now[1].total_bytes == now[0].total_bytes;
    }
    if (!same_total)
        TC_BROKEN(k, TNP_MEMORY_INFO,
                  "info: 8 MiB were allocated, and there are %llu bytes in all after %llu",
                  (unsigned long long)now[1].total_bytes, (unsigned long long)now[0].total_bytes);
    if (!taken)
        TC_BROKEN(k, TNP_MEMORY_INFO,
                  "info: 8 MiB were allocated, and %llu bytes are free after %llu",
                  (unsigned long long)now[1].free_bytes, (unsigned long long)now[0].free_bytes);
    if (!given_back)
        TC_BROKEN(k, TNP_MEMORY_INFO,
                  "info: 8 MiB were freed, and %llu bytes are free; before there were %llu",
                  (unsigned long long)now[2].free_bytes, (unsigned long long)now[0].free_bytes);
}

/* ---- threads ----------------------------------------------------------------------------- */

typedef struct worker {
    tc_subject *subject;
    pthread_t thread;
    uint64_t seed;
    bool yields; /* the host does, in alloc and dealloc, now and then for long */
    tn_memory shared;
    char wrong[128];
} worker;

/* Blocks that live together with those of other threads: each is there when it is written to. What an
 * allocator does without a lock meets itself, where it makes room for more of them at the latest. */
enum { MOST_BLOCKS = 300 };

static void come_and_go(worker *w, tc_random *r, int wanted) {
    const tc_subject *s = w->subject;
    tn_memory blocks[MOST_BLOCKS] = {0};
    void *host;
    int n = 0;
    tn_status status = TN_OK;
    while (n < wanted && status == TN_OK) {
        status = tc_alloc(s, TN_SPACE_DEVICE, 1 + tc_below(r, 64), &blocks[n], &host);
        n += status == TN_OK;
    }
    if (status != TN_OK && !tc_lacks(status)) /* fewer of them where memory is in large pieces */
        snprintf(w->wrong, sizeof w->wrong, "alloc of a few bytes failed");
    for (int i = 0; i < n && !*w->wrong; i++)
        if (s->memory->copy_from_host(s->device, s->stream, blocks[i], 0, "x", 0, 1) != TN_OK)
            snprintf(w->wrong, sizeof w->wrong, "a write to one of %d blocks failed", n);
    if (s->ops->streams && s->ops->streams->synchronize(s->stream) != TN_OK)
        snprintf(w->wrong, sizeof w->wrong, "synchronize failed");
    while (n-- > 0)
        s->memory->dealloc(s->device, TN_SPACE_DEVICE, blocks[n]);
}

/* Allocates, writes, reads and frees; whatever another thread does must not be seen. */
static void *work(void *context) {
    worker *w = context;
    tc_subject *s = w->subject;
    tc_random r = {w->seed};
    for (int i = 0; i < 200 && !*w->wrong; i++) {
        unsigned char source[600], target[600];
        uint64_t bytes = 1 + tc_below(&r, i % 2 ? sizeof source : 16);
        tn_memory memory;
        void *host;
        memset(source, (int)tc_below(&r, 256), sizeof source);
        come_and_go(w, &r, i ? 4 : MOST_BLOCKS);
        tn_status status = tc_alloc(s, TN_SPACE_DEVICE, bytes, &memory, &host);
        if (tc_lacks(status)) /* the others have it all */
            continue;
        if (status != TN_OK) {
            snprintf(w->wrong, sizeof w->wrong, "alloc of %llu bytes failed",
                     (unsigned long long)bytes);
            break;
        }
        if (s->memory->copy_from_host(s->device, s->stream, memory, 0, source, 0, bytes) != TN_OK ||
            s->memory->copy_to_host(s->device, s->stream, target, 0, memory, 0, bytes) != TN_OK)
            snprintf(w->wrong, sizeof w->wrong, "a transfer failed");
        else if (memcmp(source, target, bytes) != 0)
            snprintf(w->wrong, sizeof w->wrong, "other bytes came back than were written");
        s->memory->dealloc(s->device, TN_SPACE_DEVICE, memory);
    }
    return NULL;
}

/* Allocates and frees, and nothing that waits; more of it where the host does not either. */
static void *take_and_give(void *context) {
    worker *w = context;
    tc_random r = {w->seed};
    for (int i = 0; i < (w->yields ? 300 : 5000) && !*w->wrong; i++) {
        tn_memory memory;
        void *host;
        if (tc_alloc(w->subject, TN_SPACE_DEVICE, 1 + tc_below(&r, 64), &memory, &host) == TN_OK)
            w->subject->memory->dealloc(w->subject->device, TN_SPACE_DEVICE, memory);
        else
            snprintf(w->wrong, sizeof w->wrong, "alloc of a few bytes failed");
    }
    return NULL;
}

static void run_workers(tc_contract *k, void *(*work_)(void *context), bool at_once, bool yields) {
    enum { THREADS = 6 };
    worker workers[THREADS] = {0};
    int n = 0;
    tc_host_yield(yields);
    for (; n < THREADS; n++) {
        workers[n] = (worker){.subject = k->subject, .seed = tc_next(&k->random), .yields = yields};
        if (pthread_create(&workers[n].thread, NULL, work_, &workers[n]) != 0)
            break;
        if (!at_once)
            pthread_join(workers[n].thread, NULL);
    }
    for (int i = 0; at_once && i < n; i++)
        pthread_join(workers[i].thread, NULL);
    tc_host_yield(false);
    for (int i = 0; i < n; i++)
        if (*workers[i].wrong)
            TC_BROKEN(k, TNP_THREADS_CONCURRENT, "%d threads use memory %s: %s", n,
                      at_once ? "at once" : "in turn", workers[i].wrong);
    tc_must(k, TNP_THREADS_CONCURRENT, tc_subject_sync(k->subject), "synchronize");
}

/* Blocks that live while others come and go at their side: a table of them is large, and changes all the time. */
static void *use_one_of_many(void *context) {
    worker *w = context;
    tc_subject *s = w->subject;
    tn_memory own, others[MOST_BLOCKS] = {0};
    tc_random r = {w->seed};
    void *host;
    unsigned char byte = 7;
    tn_status first = tc_alloc(s, TN_SPACE_DEVICE, 64, &own, &host);
    if (first != TN_OK) {
        if (!tc_lacks(first))
            snprintf(w->wrong, sizeof w->wrong, "alloc of a few bytes failed");
        return NULL;
    }
    for (int i = 0; i < 3000 && !*w->wrong; i++) {
        tn_memory *one = &others[tc_below(&r, MOST_BLOCKS)];
        if (*one)
            s->memory->dealloc(s->device, TN_SPACE_DEVICE, *one);
        *one = 0;
        tn_status status = tc_alloc(s, TN_SPACE_DEVICE, 1 + tc_below(&r, 64), one, &host);
        if (status != TN_OK && !tc_lacks(status))
            snprintf(w->wrong, sizeof w->wrong, "alloc of a few bytes failed");
        if (i % 4 == 0 && s->memory->fill(s->device, s->stream, own, 0, byte, 64) != TN_OK)
            snprintf(w->wrong, sizeof w->wrong,
                     "a fill of a block that lives failed while others came and went");
    }
    for (int i = 0; i < MOST_BLOCKS; i++)
        if (others[i])
            s->memory->dealloc(s->device, TN_SPACE_DEVICE, others[i]);
    if (s->ops->streams && s->ops->streams->synchronize(s->stream) != TN_OK)
        snprintf(w->wrong, sizeof w->wrong, "synchronize failed");
    s->memory->dealloc(s->device, TN_SPACE_DEVICE, own);
    return NULL;
}

static void threads(tc_contract *k) {
    run_workers(k, work, true, true);
    if (!tc_failed(k))
        run_workers(k, use_one_of_many, true, true);
}

static void *write_own_byte(void *context) {
    worker *w = context;
    const tc_subject *s = w->subject;
    for (int i = 0; i < 300 && !*w->wrong; i++)
        if (s->memory->fill(s->device, s->stream, w->shared, w->seed, (uint8_t)i, 1) != TN_OK)
            snprintf(w->wrong, sizeof w->wrong, "a fill failed");
    return NULL;
}

/* Threads write to one block, each its own byte, and it goes when they are done: who counts what is under way in a
 * block counts for all of them, and nothing of it stays on the host. */
static void one_for_all(tc_contract *k) {
    enum { ROUNDS = 30, WRITERS = 4 };
    tc_subject *s = k->subject;
    int64_t blocks = tc_host_blocks();
    void *host;
    for (int round = 0; round < ROUNDS && !tc_failed(k); round++) {
        worker workers[WRITERS];
        tn_memory shared = 0;
        int n = 0;
        if (!tc_must(k, TNP_ALLOC_HANDLE, tc_alloc(s, TN_SPACE_DEVICE, WRITERS, &shared, &host),
                     "alloc"))
            return;
        for (; n < WRITERS; n++) {
            workers[n] = (worker){.subject = s, .seed = (uint64_t)n, .shared = shared};
            if (pthread_create(&workers[n].thread, NULL, write_own_byte, &workers[n]) != 0)
                break;
        }
        for (int i = 0; i < n; i++) {
            pthread_join(workers[i].thread, NULL);
            if (*workers[i].wrong)
                TC_BROKEN(k, TNP_THREADS_CONCURRENT, "%d threads use one block at once: %s", n,
                          workers[i].wrong);
        }
        tc_must(k, TNP_THREADS_CONCURRENT, tc_subject_sync(s), "synchronize");
        s->memory->dealloc(s->device, TN_SPACE_DEVICE, shared);
    }
    if (!tc_failed(k) && tc_host_blocks() > blocks + ROUNDS / 4)
        TC_BROKEN(k, TNP_FREE_RETURNS_MEMORY,
                  "%d blocks were written to by threads at once and freed, and %lld host blocks "
                  "more are out",
                  (int)ROUNDS, (long long)(tc_host_blocks() - blocks));
}

static bool changes_free(tc_contract *k, bool at_once, bool yields) {
    uint64_t before = tc_free_bytes(k->subject);
    run_workers(k, take_and_give, at_once, yields);
    return tc_free_bytes(k->subject) != before;
}

/* Threads that give back all that they take leave as much free as there was. Others may take some, too, whether ours
 * are at it at once or in turn; an update that is lost takes many tries to be met. */
static void account(tc_contract *k) {
    enum { ROUNDS = 16, ENOUGH = 2 };
    double seconds = tc_fence_is_set() ? 0.3 : 2; /* fenced pages are slow to come and go */
    uint64_t before = tc_free_bytes(k->subject);
    double end = tc_now() + seconds;
    int at_once = 0, in_turn = 0;
    if (before == UINT64_MAX) {
        TC_NOT_OFFERED(k, "no info of memory that is the device's alone");
        return;
    }
    for (int i = 0; i < ROUNDS && at_once < ENOUGH && !tc_failed(k) && tc_now() < end; i++) {
        in_turn += changes_free(k, false, false);
        at_once += changes_free(k, true, i % 4 == 0);
    }
    if (!tc_failed(k) && at_once >= ENOUGH && in_turn == 0)
        TC_BROKEN(k, TNP_MEMORY_INFO,
                  "info: %llu bytes are free after threads gave back at once all that they had "
                  "taken; at first there were %llu, and in turn it comes out even",
                  (unsigned long long)tc_free_bytes(k->subject), (unsigned long long)before);
}

const tc_contract_row tc_memory_rows[] = {
    {"memory-threads", "", TC_SMOKE, threads},
    {"memory-one-for-all", "", TC_SMOKE, one_for_all},
    {"memory-account", "", TC_SMOKE, account},
    {"memory-distinct", "pinned=0", TC_SMOKE, distinct},
    {"memory-distinct", "pinned=1", TC_SMOKE, distinct},
    {"memory-handles", "", TC_SMOKE, one_name_space},
    {"memory-many", "among=0 n=1100", TC_SMOKE, many},
    {"memory-many", "among=30000 n=1100", TC_STANDARD, many},
    {"memory-host-pointer", "", TC_SMOKE, host_pointer},
    {"memory-huge", "", TC_SMOKE, huge},
    {"memory-again", "bytes=1000 times=40", TC_SMOKE, again},
    {"memory-again", "bytes=1 times=300", TC_STANDARD, again},
    {"memory-again", "bytes=1048576 times=60", TC_STANDARD, again},
    {"memory-again", "bytes=4194304 times=280", TC_EXHAUSTIVE, again},
    {"memory-resident", "pinned=0", TC_STANDARD, resident},
    {"memory-resident", "pinned=1", TC_STANDARD, resident},
    {"memory-info", "", TC_SMOKE, info},
    {0},
};
