/* process/memory-total: many times the memory that there is comes and goes in one life, more bytes than 34 bits count
 * in all, while the life's first allocations live on; and as much pinned memory, as far as some seconds go. */
#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"

enum {
    BLOCKS = 2,
    MOST = 100,
    FIRST = 10
}; /* at a time; times, where blocks are small; that live on */
static const uint64_t MIB = 1 << 20, WANTED = UINT64_C(256) << 20, TOTAL = UINT64_C(9) << 31;
static const double PINNED_SECONDS = 2; /* a driver has to lock each page */

/* Of each block: as much as the device has room for twice over. */
static uint64_t choose_bytes(const tc_subject *s) {
    uint64_t bytes = WANTED, there = tc_free_bytes(s);
    if (s->max_allocation && bytes > s->max_allocation)
        bytes = s->max_allocation;
    while (bytes > MIB && there && bytes > there / (2 * BLOCKS))
        bytes /= 2;
    return bytes;
}

/* Does the device have so much, as far as one can tell who does not know what there is? */
static bool has_room(const tc_subject *s, int32_t space, uint64_t bytes) {
    tn_memory blocks[BLOCKS + 1] = {0};
    void *host;
    tn_status status = TN_OK;
    for (int i = 0; i <= BLOCKS && status == TN_OK; i++)
        status = tc_alloc(s, space, i < BLOCKS ? bytes : 100, &blocks[i], &host);
    bool lacks = tc_lacks(status);
    for (int i = 0; i <= BLOCKS; i++)
        if (blocks[i])
            s->memory->dealloc(s->device, space, blocks[i]);
    return !lacks;
}

static bool is_any(tc_contract *k, const tc_buffer *first, tn_memory memory) {
    for (int i = 0; i < FIRST; i++)
        if (first[i].memory == memory) {
            TC_BROKEN(k, TNP_ALLOC_HANDLE, "two allocations that live have the handle 0x%llx",
                      (unsigned long long)memory);
            return true;
        }
    return false;
}

static bool come_and_go(tc_contract *k, tc_subject *s, tc_buffer *first, int32_t space,
                        uint64_t bytes) {
    tn_memory blocks[BLOCKS + 1] = {0}; /* the last is small, and lies behind */
    void *host;
    bool ok = true;
    for (int i = 0; i <= BLOCKS && ok; i++)
        ok = tc_must(k, TNP_FREE_RETURNS_MEMORY,
                     tc_alloc(s, space, i < BLOCKS ? bytes : 100, &blocks[i], &host),
                     "alloc, where as much was freed before") &&
             !is_any(k, first, blocks[i]);
    for (int i = 0; i < FIRST && ok; i++)
        ok = tc_buffer_check(k, &first[i], s->stream, TNP_FREE_RETURNS_MEMORY,
                             "an allocation that lives while gigabytes come and go");
    for (int i = 0; i <= BLOCKS; i++)
        if (blocks[i])
            s->memory->dealloc(s->device, space, blocks[i]);
    return ok;
}

static void total(tc_contract *k) {
    tc_subject s;
    tc_buffer first[FIRST] = {0};
    bool pinned = tc_contract_int(k, "pinned");
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_NONE, "before gigabytes come and go"))
        return;
    if (pinned && !(s.spaces >> TN_SPACE_PINNED & 1)) {
        TC_NOT_OFFERED(k, "the device has no TN_SPACE_PINNED");
        tc_subject_close(&s);
        return;
    }
    bool ok = true;
    for (int i = 0; i < FIRST && ok; i++)
        ok = tc_buffer_create(k, &s, TN_SPACE_DEVICE, 256, &first[i]);
    int32_t space = pinned ? TN_SPACE_PINNED : TN_SPACE_DEVICE;
    uint64_t bytes = choose_bytes(&s);
    while (bytes > MIB && !has_room(&s, space, bytes))
        bytes /= 2;
    double end = tc_now() + PINNED_SECONDS;
    for (uint64_t i = 0; ok && i < MOST && i * BLOCKS * bytes < TOTAL; i++)
        if (!pinned || tc_now() < end)
            ok = come_and_go(k, &s, first, space, bytes);
    for (int i = 0; i < FIRST && ok; i++)
        ok = tc_buffer_check(k, &first[i], s.stream, TNP_FREE_RETURNS_MEMORY,
                             "an allocation that lived while gigabytes came and went");
    tc_release(k, NULL);
    tc_subject_close(&s);
}

const tc_contract_row tc_total_rows[] = {
    {"memory-total", "pinned=0", TC_STANDARD, total},
    {"memory-total", "pinned=1", TC_STANDARD, total},
    {0},
};
