/* contract/memory-account-sizes: what is free while blocks of many sizes come and go, each now and then in the place of
 * one of another size. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

enum { BLOCKS = 12, STEPS = 150, TRIES = 3 };

/* Of block i, from 3 KiB to 6 MiB; none is a whole number of pages. */
static uint64_t bytes_of(int i) {
    return ((uint64_t)3000 << i) + (uint64_t)i;
}

typedef struct account {
    tc_contract *k;
    uint64_t at_first, charge[BLOCKS]; /* of a block that is alone */
    tn_memory blocks[BLOCKS];
    uint64_t live, charged,
        most_charged; /* bytes of what lives, what it should take, and took at most */
} account;

static uint64_t free_bytes(const account *a) {
    return tc_free_bytes(a->k->subject);
}

static bool take(account *a, int i) {
    void *host;
    if (!tc_must(a->k, TNP_FREE_RETURNS_MEMORY,
                 tc_alloc(a->k->subject, TN_SPACE_DEVICE, bytes_of(i), &a->blocks[i], &host),
                 "alloc, where as much was freed before"))
        return false;
    a->live += bytes_of(i);
    a->charged += a->charge[i];
    a->most_charged = a->most_charged > a->charged ? a->most_charged : a->charged;
    return true;
}

static void give(account *a, int i) {
    const tc_subject *s = a->k->subject;
    if (!a->blocks[i])
        return;
    s->memory->dealloc(s->device, TN_SPACE_DEVICE, a->blocks[i]);
    a->blocks[i] = 0;
    a->live -= bytes_of(i);
    a->charged -= a->charge[i];
}

/* Each size by itself, the largest first, so that what a driver takes in larger pieces is there. */
static bool weigh(account *a) {
    bool ok = true;
    for (int i = BLOCKS - 1; ok && i >= 0; i--) {
        ok = take(a, i);
        give(a, i);
    }
    a->at_first = free_bytes(a);
    for (int i = BLOCKS - 1; ok && i >= 0; i--) {
        ok = take(a, i);
        uint64_t now = free_bytes(a);
        a->charge[i] = now < a->at_first ? a->at_first - now : 0;
        a->charged = 0;
        give(a, i);
        a->charged = a->most_charged = 0;
    }
    return ok;
}

/* A driver may keep what it once took, not more; what lives is not free. */
static const char *wrong(const account *a, uint64_t now) {
    if (now > a->at_first - a->live)
        return "more is free than what was free at first without what lives now";
    if (now < a->at_first - a->most_charged)
        return "less is free than all blocks ever took at once, each as it takes alone";
    return NULL;
}

/* What was wrong first, or NULL. */
static const char *walk(account *a, uint64_t *out_now) {
    const char *what = NULL;
    for (int step = 0; !what && step < STEPS && !tc_failed(a->k); step++) {
        int i = (int)tc_below(&a->k->random, BLOCKS);
        if (a->blocks[i])
            give(a, i);
        else if (!take(a, i))
            break;
        *out_now = free_bytes(a);
        what = wrong(a, *out_now);
    }
    for (int i = 0; i < BLOCKS; i++)
        give(a, i);
    if (!what && !tc_failed(a->k) && (*out_now = free_bytes(a)) < a->at_first)
        what = "less is free when all was given back";
    return what;
}

/* Others may take some meanwhile, and give some back: not each time. */
static void sizes(tc_contract *k) {
    const char *what = "";
    account a = {.k = k};
    uint64_t now = 0;
    if (tc_free_bytes(k->subject) == UINT64_MAX) {
        TC_NOT_OFFERED(k, "no info of memory that is the device's alone");
        return;
    }
    if (tc_free_bytes(k->subject) < 4 * bytes_of(BLOCKS)) {
        TC_NOT_OFFERED(k, "less than %llu bytes are free",
                       (unsigned long long)(4 * bytes_of(BLOCKS)));
        return;
    }
    for (int i = 0; what && i < TRIES && !tc_failed(k); i++) {
        a = (account){.k = k};
        what = weigh(&a) ? walk(&a, &now) : NULL;
    }
    if (what && !tc_failed(k))
        TC_BROKEN(
            k, TNP_MEMORY_INFO,
            "info: %s: %llu bytes, of %llu at first, after blocks of many sizes came and went",
            what, (unsigned long long)now, (unsigned long long)a.at_first);
}

const tc_contract_row tc_memory_size_rows[] = {
    {"memory-account-sizes", "", TC_STANDARD, sizes},
    {0},
};
