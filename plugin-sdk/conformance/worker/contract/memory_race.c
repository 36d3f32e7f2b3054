/* Two threads that at once ask for more than half of what is free: it is given out once. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include <pthread.h>

enum { ROUNDS = 8 };

typedef struct asker {
    const tc_subject *s;
    pthread_barrier_t *start;
    uint64_t bytes;
    tn_memory memory;
    tn_status status;
} asker;

static void *ask(void *context) {
    asker *a = context;
    void *host;
    pthread_barrier_wait(a->start);
    a->status = tc_alloc(a->s, TN_SPACE_DEVICE, a->bytes, &a->memory, &host);
    return NULL;
}

static void give_back(asker *a) {
    if (a->status == TN_OK)
        a->s->memory->dealloc(a->s->device, TN_SPACE_DEVICE, a->memory);
}

/* How much cannot be had twice, as two calls one after the other show; 0 with the case ended where the
 * device gives out more than it says, or nobody may ask for as much. */
static uint64_t more_than_half(tc_contract *k) {
    const tc_subject *s = k->subject;
    uint64_t bytes = tc_free_bytes(s) / 16 * 9 / s->alignment * s->alignment;
    tn_memory first, second;
    void *host;
    bool twice;
    if (bytes == 0 || (s->max_allocation && bytes > s->max_allocation) ||
        (s->host_memory && bytes > (uint64_t)1 << 30)) {
        TC_NOT_OFFERED(k, "more than half of what is free cannot be asked for in one piece here");
        return 0;
    }
    if (tc_alloc(s, TN_SPACE_DEVICE, bytes, &first, &host) != TN_OK) {
        TC_NOT_OFFERED(k, "more than half of what is free cannot be had in one piece");
        return 0;
    }
    twice = tc_alloc(s, TN_SPACE_DEVICE, bytes, &second, &host) == TN_OK;
    if (twice)
        s->memory->dealloc(s->device, TN_SPACE_DEVICE, second);
    s->memory->dealloc(s->device, TN_SPACE_DEVICE, first);
    if (twice)
        TC_NOT_OFFERED(k, "the device gives out more memory than it says is free");
    return twice ? 0 : bytes;
}

static void race(tc_contract *k) {
    uint64_t bytes = more_than_half(k);
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, 2);
    for (int i = 0; i < ROUNDS && bytes && !tc_failed(k); i++) {
        asker a = {.s = k->subject, .start = &start, .bytes = bytes}, b = a;
        pthread_t other;
        if (pthread_create(&other, NULL, ask, &a) != 0)
            break;
        ask(&b);
        pthread_join(other, NULL);
        if (a.status == TN_OK && b.status == TN_OK)
            TC_BROKEN(k, TNP_ALLOC_OUT_OF_MEMORY,
                      "two threads that asked at once both got %llu bytes, of which there are not"
                      " twice as many: one after the other the second was refused",
                      (unsigned long long)bytes);
        give_back(&a);
        give_back(&b);
    }
    pthread_barrier_destroy(&start);
}

const tc_contract_row tc_memory_race_rows[] = {
    {"memory-race", "", TC_STANDARD, race},
    {0},
};
