/* process/memory-total: many times the memory that there is comes and goes in one life, more bytes than 34 bits count
 * in all, while the life's first allocation lives on. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"

enum { BLOCKS = 2, MOST = 100 }; /* at a time; times, where blocks are small */
static const uint64_t MIB = 1 << 20, WANTED = UINT64_C(256) << 20, TOTAL = UINT64_C(9) << 31;

/* Of each block: as much as the device has room for twice over. */
static uint64_t choose_bytes(const tc_subject *s) {
    uint64_t bytes = WANTED, there = tc_free_bytes(s);
    if (s->max_allocation && bytes > s->max_allocation)
        bytes = s->max_allocation;
    while (bytes > MIB && there && bytes > there / (2 * BLOCKS))
        bytes /= 2;
    return bytes;
}

static bool come_and_go(tc_contract *k, tc_subject *s, tc_buffer *first, uint64_t bytes) {
    tn_memory blocks[BLOCKS + 1] = {0}; /* the last is small, and lies behind */
    void *host;
    bool ok = true;
    for (int i = 0; i <= BLOCKS && ok; i++)
        ok = tc_must(k, TNP_FREE_RETURNS_MEMORY,
                     tc_alloc(s, TN_SPACE_DEVICE, i < BLOCKS ? bytes : 100, &blocks[i], &host),
                     "alloc, where as much was freed before") &&
             (blocks[i] != first->memory ||
              TC_BROKEN(k, TNP_ALLOC_HANDLE, "two allocations that live have the handle 0x%llx",
                        (unsigned long long)blocks[i]));
    ok = ok && tc_buffer_check(k, first, s->stream, TNP_FREE_RETURNS_MEMORY,
                               "an allocation that lives while gigabytes come and go");
    for (int i = 0; i <= BLOCKS; i++)
        if (blocks[i])
            s->memory->dealloc(s->device, TN_SPACE_DEVICE, blocks[i]);
    return ok;
}

static void total(tc_contract *k) {
    tc_subject s;
    tc_buffer first = {0};
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_NONE, "before gigabytes come and go"))
        return;
    bool ok = tc_buffer_create(k, &s, TN_SPACE_DEVICE, 100, &first);
    uint64_t bytes = choose_bytes(&s);
    for (uint64_t i = 0; ok && i < MOST && i * BLOCKS * bytes < TOTAL; i++)
        ok = come_and_go(k, &s, &first, bytes);
    if (ok)
        tc_buffer_check(k, &first, s.stream, TNP_FREE_RETURNS_MEMORY,
                        "an allocation that lived while gigabytes came and went");
    tc_release(k, NULL);
    tc_subject_close(&s);
}

const tc_contract_row tc_total_rows[] = {
    {"memory-total", "", TC_STANDARD, total},
    {0},
};
